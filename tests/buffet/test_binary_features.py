"""The estimator: scikit-learn's own checks, features that are known, tables with names, missing entries."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")

from block_images import FEATURES, block_images, worn_words
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from cavity.models import BinaryFeatures


def quick(*given, **settings):
    return BinaryFeatures(*given, **({"n_sweeps": 200, "n_draws": 20, "n_chains": 1, "random_state": 0} | settings))


# Every check has data of another shape, for which a sweep is compiled anew.
@pytest.mark.slow
@parametrize_with_checks([BinaryFeatures(n_sweeps=20, n_draws=5, n_chains=1)])
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def images():
    values, shown = block_images(240)
    return values[:200], values[200:], shown


@pytest.fixture(scope="module", params=["mcmc", "variational"])
def fitted(request, images):
    return quick(center=False, inference=request.param).fit(images[0])


def matches(shown, found):
    """For each shape the feature that tells best which images show it."""
    return np.abs(np.corrcoef(shown.T, found.T)[:4, 4:]).argmax(axis=1)


def test_the_shapes_are_found(fitted, images):
    _, test, shown = images
    best = matches(shown[:200], fitted.features_)
    assert sorted(set(best)) == sorted(best)
    np.testing.assert_allclose(fitted.components_[best], FEATURES, atol=0.35)
    assert np.mean((fitted.features_[:, best] > 0.5) == shown[:200]) > 0.97
    new = fitted.transform(test)
    assert new.shape == (40, fitted.n_components_)
    assert np.mean((new[:, best] > 0.5) == shown[200:]) > 0.97
    assert (np.diff(fitted.prevalence_) <= 1e-12).all()
    assert fitted.get_feature_names_out()[0] == "binaryfeatures0"


def test_reconstructions_and_densities(fitted, images):
    _, test, shown = images
    truth = shown[200:] @ FEATURES
    assert np.mean((fitted.reconstruct(test) - truth) ** 2) < 0.03
    best_possible = -18.0 * np.log(2.0 * np.pi * 0.25) - 18.0
    assert best_possible - 8.0 < fitted.score(test) < best_possible + 4.0
    assert fitted.score(test) == pytest.approx(fitted.score_samples(test).mean())
    shown_by = fitted.inverse_transform(np.eye(fitted.n_components_))
    np.testing.assert_allclose(shown_by, fitted.components_, atol=1e-9)
    with pytest.raises(ValueError, match=r"\(rows, "):
        fitted.inverse_transform(np.zeros((2, 1)))


def test_missing_entries_are_filled_in(fitted, images):
    _, test, shown = images
    gaps = test.copy()
    gaps[np.random.default_rng(1).random(gaps.shape) < 0.3] = np.nan
    missing = np.isnan(gaps)
    left = (fitted.reconstruct(gaps) - shown[200:] @ FEATURES)[missing]
    assert np.mean(left**2) < 0.05
    assert (fitted.score_samples(gaps) > fitted.score_samples(test)).mean() > 0.9


def test_draws_have_the_law_of_the_data(fitted, images):
    drawn = fitted.sample(3000)
    np.testing.assert_allclose(drawn.mean(axis=0), images[0].mean(axis=0), atol=0.2)
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(images[0].T), atol=0.25)


def test_the_same_answer_again_in_other_units_and_after_pickling(images):
    train, test, _ = images
    first, again = quick(n_sweeps=60).fit(train), clone(quick(n_sweeps=60)).fit(train)
    np.testing.assert_array_equal(first.components_, again.components_)
    other = quick(n_sweeps=60).fit(10.0 * train + 3.0)
    np.testing.assert_allclose(other.components_, 10.0 * first.components_, rtol=1e-6, atol=1e-6)
    assert other.score(10.0 * test + 3.0) == pytest.approx(first.score(test) - 36.0 * np.log(10.0), abs=1e-5)
    copy = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(copy.transform(test), first.transform(test))
    np.testing.assert_array_equal(copy.sample(4), first.sample(4))


@pytest.mark.parametrize("inference", ["mcmc", "variational"])
def test_words_have_their_reasons(inference):
    words, shown = worn_words(150)
    found = quick("bernoulli", inference=inference).fit(words)
    best = matches(shown, found.features_)
    assert sorted(set(best)) == sorted(best)
    assert np.mean((found.features_[:, best] > 0.5) == shown) > 0.9
    assert ((found.components_[best] > 0.5) == (FEATURES > 0)).mean() > 0.95
    drawn = found.sample(50)
    assert set(np.unique(drawn)) <= {0.0, 1.0}


def test_names_are_kept(images):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(images[0], [f"image {i}" for i in range(200)], [f"pixel {i}" for i in range(36)])
    found = quick(n_sweeps=40).fit(frame)
    assert list(found.sample_names_[:2]) == ["image 0", "image 1"]
    assert list(found.feature_names_in_[:2]) == ["pixel 0", "pixel 1"]
    named = clone(found).set_output(transform="pandas").fit_transform(frame[:20])
    assert list(named.index[:2]) == ["image 0", "image 1"]
    assert list(named.columns) == [f"binaryfeatures{i}" for i in range(named.shape[1])]
    with pytest.raises(ValueError, match="feature names"):
        found.transform(frame.rename(columns={"pixel 0": "other"}))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"likelihood": "normal"}, "likelihood= is one of 'gaussian'"),
        ({"prior": "none"}, "prior= is one of 'ibp', 'finite', 'dp-ibp', 'ibp-ibp'; found"),
        ({"prior": "finite"}, "n_components= is the number of features"),
        ({"n_components": 3}, "n_components= is the number of features"),
        ({"n_sweeps": 1.5}, "n_sweeps= is a whole number"),
        ({"n_sweeps": 10, "n_draws": 20}, "Take n_sweeps=40 or more"),
        ({"inference": "nuts"}, "inference= is one of 'mcmc', 'variational'; found"),
        ({"likelihood": "poisson", "inference": "variational"}, "is for likelihood= 'gaussian', 'bernoulli'"),
        ({"likelihood": "bernoulli"}, "entries 0 and 1"),
    ],
)
def test_what_is_wrong_is_told(settings, text):
    with pytest.raises(ValueError, match=text):
        quick(**settings).fit(np.full((4, 3), 2.5))

"""The estimator given likelihoods as objects and priors of correlated features."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")

from block_images import FEATURES, block_images, worn_words
from sklearn.base import clone

from cavity.models import BinaryFeatures
from cavity.models.buffet.kinds import WORDS, kind_of
from cavity.models.buffet.likelihoods import Detection, LaplaceICA, LinearGaussian, NoisyOr, PoissonGamma

CORRELATED = ["dp-ibp", "ibp-ibp"]


def quick(*given, **settings):
    return BinaryFeatures(*given, **({"n_sweeps": 200, "n_draws": 20, "n_chains": 1, "random_state": 0} | settings))


@pytest.fixture(scope="module")
def images():
    values, shown = block_images(240)
    return values[:200], values[200:], shown


def matches(shown, found):
    """For each shape the feature that tells best which rows show it."""
    return np.abs(np.corrcoef(shown.T, found.T)[:4, 4:]).argmax(axis=1)


def test_a_likelihood_begins_and_moves_as_its_word():
    for word in WORDS.values():
        fresh = pickle.loads(pickle.dumps(word.likelihood))
        assert kind_of(fresh) == kind_of(word.likelihood)
    given = kind_of(LinearGaussian(noise_precision=4.0))
    assert given.begins
    assert given.sweep == kind_of(LinearGaussian()).sweep
    assert kind_of(NoisyOr(quiet=(9.0, 1.0), attenuation=0.1)).field == NoisyOr(quiet=0.9, attenuation=0.1)
    assert kind_of(PoissonGamma()).field is None


@pytest.mark.parametrize("prior", ["ibp", *(pytest.param(prior, marks=pytest.mark.slow) for prior in CORRELATED)])
def test_objects_and_priors_find_the_shapes(prior, images):
    train, test, shown = images
    found = quick(LinearGaussian(noise_precision=4.0), prior).fit(train)
    best = matches(shown[:200], found.features_)
    assert sorted(set(best)) == sorted(best)
    np.testing.assert_allclose(found.components_[best], FEATURES, atol=0.35)
    assert np.mean((found.transform(test)[:, best] > 0.5) == shown[200:]) > 0.95
    truth = shown[200:] @ FEATURES
    assert np.mean((found.reconstruct(test) - truth) ** 2) < 0.03
    assert found.score(test) > -18.0 * np.log(2.0 * np.pi * 0.25) - 18.0 - 8.0
    np.testing.assert_allclose(found.sample(3000).mean(axis=0), train.mean(axis=0), atol=0.2)
    copy = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(copy.transform(test), found.transform(test))
    assert clone(found).likelihood == found.likelihood


@pytest.mark.slow
@pytest.mark.parametrize("prior", CORRELATED)
@pytest.mark.parametrize("likelihood", ["bernoulli", Detection()], ids=["word", "object"])
def test_words_have_their_reasons_under_any_prior(likelihood, prior):
    words, shown = worn_words(150)
    found = quick(likelihood, prior).fit(words)
    best = matches(shown, found.features_)
    assert np.mean((found.features_[:, best] > 0.5) == shown) > 0.85
    assert set(np.unique(found.sample(50))) <= {0.0, 1.0}
    assert found.transform(words).shape == (150, found.n_components_)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"likelihood": LaplaceICA()}, "LaplaceICA gives each row its own weights"),
        ({"prior": "dp-ibp", "inference": "variational"}, "is for prior= 'ibp', 'finite'; found 'dp-ibp'"),
        ({"prior": "ibp-ibp", "n_components": 3}, "n_components= is the number of features of prior='finite'"),
        ({"likelihood": Detection(), "inference": "variational"}, "is for likelihood= 'gaussian', 'bernoulli'"),
    ],
)
def test_what_is_wrong_is_told(settings, text):
    with pytest.raises(ValueError, match=text):
        quick(**settings).fit(np.eye(4, 3))

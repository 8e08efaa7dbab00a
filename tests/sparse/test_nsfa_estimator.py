"""The estimator: scikit-learn's own checks, tables with names, missing entries, and both ways of inference."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.decomposition import FactorAnalysis
from sklearn.utils.estimator_checks import parametrize_with_checks

from cavity.engine.answers.loadings import explained, match_factors
from cavity.models import NSFA


def quick(**settings):
    return NSFA(**({"n_sweeps": 200, "n_draws": 40, "n_chains": 1, "random_state": 0} | settings))


# Every check has data of another shape, for which a sweep is compiled anew.
@pytest.mark.slow
@parametrize_with_checks([NSFA(n_sweeps=40, n_draws=10, n_chains=1)])
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def table():
    """Three factors, each on eight of 24 features, and 150 samples."""
    random = np.random.default_rng(0)
    loading = np.zeros((24, 3))
    for k in range(3):
        loading[8 * k : 8 * k + 8, k] = random.choice([-1.0, 1.0], 8) * random.uniform(0.8, 1.5, 8)
    noise = random.uniform(0.3, 0.6, 24)
    values = random.normal(size=(150, 3)) @ loading.T + noise * random.normal(size=(150, 24)) + random.normal(size=24)
    return SimpleNamespace(train=values[:100], test=values[100:], loading=loading, noise=noise)


@pytest.fixture(scope="module", params=["mcmc", "messages"])
def fitted(request, table):
    return quick(inference=request.param).fit(table.train)


def test_the_factors_are_found(fitted, table):
    assert fitted.n_factors_ == 3
    match = match_factors(table.loading, fitted.components_.T)
    assert (np.abs(match.correlation) > 0.98).all()
    active = fitted.activity_[match.index].T > 0.5
    assert np.mean(active == (table.loading != 0.0)) > 0.97
    assert fitted.components_sd_.shape == fitted.activity_.shape == (3, 24)
    assert fitted.noise_variance_ * fitted.scale_**2 == pytest.approx(table.noise**2, rel=0.6)
    assert fitted.factors_.shape == (100, 3)


def test_densities_beat_dense_factors(fitted, table):
    dense = FactorAnalysis(n_components=6).fit(table.train)
    assert fitted.score(table.test) > dense.score(table.test)
    assert fitted.score(table.test) == pytest.approx(fitted.score_samples(table.test).mean())


def test_factors_and_back(fitted, table):
    factors = fitted.transform(table.test)
    assert factors.shape == (50, 3)
    left = table.test - fitted.inverse_transform(factors)
    assert np.mean(left**2) == pytest.approx(np.mean(table.noise**2), rel=0.2)
    assert fitted.get_feature_names_out().tolist() == ["nsfa0", "nsfa1", "nsfa2"]
    with pytest.raises(ValueError, match=r"\(samples, 3\)"):
        fitted.inverse_transform(np.zeros((2, 4)))


def test_missing_entries_are_filled_in(fitted, table):
    gaps = table.test.copy()
    gaps[np.random.default_rng(1).random(gaps.shape) < 0.2] = np.nan
    missing = np.isnan(gaps)
    found = fitted.reconstruct(gaps)
    mean = np.broadcast_to(table.train.mean(axis=0), gaps.shape)
    error, trivial = ((each[missing] - table.test[missing]) ** 2 for each in (found, mean))
    assert error.mean() < 0.4 * trivial.mean()
    assert np.isfinite(fitted.score_samples(gaps)).all()


def test_draws_have_the_law_of_the_data(fitted, table):
    drawn = fitted.sample(4000)
    everything = np.vstack([table.train, table.test])
    assert drawn.mean(axis=0) == pytest.approx(everything.mean(axis=0), abs=0.3)
    assert np.abs(np.corrcoef(drawn.T) - np.corrcoef(everything.T)).mean() < 0.1


def test_fitting_with_gaps_again_and_in_other_units(table):
    """The same key gives the same answer; units change nothing but the density."""
    gaps = table.train.copy()
    gaps[::7, ::5] = np.nan
    first, again = quick().fit(gaps), clone(quick()).fit(gaps)
    np.testing.assert_array_equal(first.components_, again.components_)
    other = quick().fit(100.0 * gaps + 5.0)
    np.testing.assert_allclose(other.components_, first.components_, atol=1e-6)
    assert other.score(100.0 * table.test + 5.0) == pytest.approx(
        first.score(table.test) - 24 * np.log(100.0), abs=1e-5
    )
    copy = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(copy.transform(table.test), first.transform(table.test))


class Annotated:
    """As much of AnnData as it takes."""

    def __init__(self, values, samples, features):
        self.X, self.obs_names, self.var_names = scipy.sparse.csr_array(values), samples, features

    def to_df(self):
        return pytest.importorskip("pandas").DataFrame(self.X.toarray(), self.obs_names, self.var_names)


def test_names_are_kept(table):
    pandas = pytest.importorskip("pandas")
    genes, tumours = [f"gene {i}" for i in range(24)], [f"tumour {i}" for i in range(100)]
    model = quick(inference="messages").fit(Annotated(table.train, tumours, genes))
    assert model.feature_names_in_.tolist() == genes
    assert model.sample_names_.tolist() == tumours
    shuffled = Annotated(table.test, tumours[:50], genes[::-1])
    with pytest.raises(ValueError, match="same order"):
        model.transform(shuffled)
    frame = pandas.DataFrame(table.train, index=tumours, columns=genes)
    other = quick(inference="messages").fit(frame)
    assert other.feature_names_in_.tolist() == genes
    assert other.sample_names_.tolist() == tumours
    out = other.set_output(transform="pandas").transform(frame)
    assert out.index.tolist() == tumours


@pytest.mark.slow
@pytest.mark.parametrize("inference", ["mcmc", "messages"])
@pytest.mark.parametrize("model", ["sfa", "fa", "afa", "ppca", "fokoue"])
def test_relatives(table, model, inference):
    """Every relative describes the data better than independent features do."""
    fitted = quick(model=model, n_factors=4, inference=inference).fit(table.train)
    independent = -0.5 * np.log(2.0 * np.pi * np.e * table.train.var(axis=0)).sum()
    assert fitted.score(table.test) > independent + 1.0
    assert fitted.transform(table.test).shape == (50, fitted.n_factors_)
    assert fitted.reconstruct(table.test).shape == table.test.shape


@pytest.mark.slow
def test_probabilities_of_all_loadings_by_messages(table):
    known = np.where(table.loading != 0.0, 0.5, 0.0)
    model = quick(inference="messages", known=known).fit(table.train)
    assert model.n_factors_ == 3
    match = match_factors(table.loading, model.components_.T)
    assert (model.activity_[match.index].T[known == 0.0] == 0.0).all()
    with pytest.raises(ValueError, match="4 of them"):
        quick(inference="messages", known=known, n_factors=4).fit(table.train)


def test_known_factors_come_first(table):
    """A mask says which features a factor may act on; its component is the first even where others are larger."""
    known = np.zeros((24, 1))
    known[8:16] = 1.0
    scaled = table.train * np.where(known[:, 0] == 1.0, 0.5, 1.0)
    model = quick(known=known).fit(scaled)
    assert ((model.components_[0] != 0.0) == (known[:, 0] == 1.0)).all()
    assert explained(model.components_.T).argmax() > 0
    assert np.abs(np.corrcoef(model.transform(scaled).T)[0, 1:]).max() < 0.5
    draw = model.chains_.draw(0, 0)
    assert (draw.loading[:8, 0] == 0.0).all()
    assert (draw.loading[16:, 0] == 0.0).all()
    assert (draw.loading[8:16, 0] != 0.0).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inference": "exact"}, "'mcmc' or 'messages'"),
        ({"scale": "unit"}, "'overall'"),
        ({"n_sweeps": 10}, "no 40 draws to keep"),
        ({"n_draws": 0}, "at least 1"),
        ({"model": "ica"}, "Models are nsfa"),
        ({"model": "sfa"}, "needs factors="),
        ({"n_factors": 5}, "learns their number"),
        ({"settings": {"noise": -1.0}}, "positive number"),
        ({"settings": {"alpha": 1.0}}, "asked: alpha"),
        ({"settings": {"factors": 3}}, "n_factors="),
        ({"settings": 3}, "name: value"),
        ({"settings": {"mass": 2.0}, "inference": "messages"}, "would not use mass"),
        ({"known": np.zeros((3, 1))}, "each of the 24 rows"),
    ],
)
def test_settings_without_meaning(table, change, message):
    with pytest.raises(ValueError, match=message):
        quick(**change).fit(table.train)


def test_units_are_about_what_is_removed(table):
    model = quick(center=False, n_sweeps=2, n_draws=1).fit(table.train)
    assert (model.mean_ == 0.0).all()
    assert model.scale_ == pytest.approx(np.full(24, np.sqrt(np.mean(table.train**2))))


def test_data_without_meaning(table):
    flat = table.train.copy()
    flat[:, 3] = 2.0
    with pytest.raises(ValueError, match="All entries of feature 3 are 2"):
        quick().fit(flat)
    flat[:, 3] = np.nan
    with pytest.raises(ValueError, match="Feature 3 has no entry"):
        quick().fit(flat)
    empty = table.train.copy()
    empty[5] = np.nan
    with pytest.raises(ValueError, match="Sample 5 has no entry"):
        quick().fit(empty)

"""The estimator GaussianMixture: scikit-learn's checks, closed densities, and the number of components it chooses."""

import pickle

import numpy as np
import pytest
from scipy.stats import multivariate_normal, multivariate_t, t
from sklearn.base import clone

import cavity as cv
from cavity.models import GaussianMixture, gaussian_mixture

from .scikit_checks import checks

KINDS = ("full", "diag", "spherical", "tied")


@pytest.mark.parametrize(("estimator", "check"), list(checks(GaussianMixture())))
def test_scikit_learn_accepts(estimator, check):
    check(estimator)


def groups(seed=0, rows=30):
    """Three groups of two columns in units of their own, and the group of each row."""
    rng = np.random.default_rng(seed)
    label = np.arange(3 * rows) % 3
    centre, sd = np.array([[0.0, 0.0], [4.0, 3.0], [-4.0, 4.0]]), np.array([[1.0, 0.5], [0.5, 1.0], [1.0, 1.0]])
    return (centre[label] + sd[label] * rng.normal(size=(3 * rows, 2))) * [1.0, 30.0] + [5.0, 0.0], label


@pytest.fixture(scope="module")
def fitted():
    """One fit of each kind of covariance, of two components."""
    x = groups()[0]
    return {kind: GaussianMixture(2, covariance_type=kind, random_state=0, n_init=2).fit(x) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_are_those_of_scikit_learn(fitted, kind):
    found, x = fitted[kind], groups()[0]
    assert found.weights_.sum() == pytest.approx(1.0)
    assert found.means_.shape == (2, 2)
    shapes = {"full": (2, 2, 2), "diag": (2, 2), "spherical": (2,), "tied": (2, 2)}
    assert found.covariances_.shape == shapes[kind]
    assert found.labels_.tolist() == found.predict(x).tolist()
    assert found.predict_proba(x).sum(axis=1) == pytest.approx(np.ones(len(x)))
    assert found.score(x) == pytest.approx(found.score_samples(x).mean())
    assert found.converged_
    assert found.n_iter_ >= 1
    assert found.log_evidences_ == {2: found.log_evidence_}


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_the_density_is_the_predictive_one_of_the_posterior(fitted, kind):
    """A mixture of Student-t densities, here by scipy."""
    found, x = fitted[kind], groups(1)[0]
    parts = found._components
    inputs = found._units.inputs(x)
    by_component = [
        multivariate_t(centre, square, df=freedom).logpdf(inputs)
        if kind == "full"
        else t(freedom, centre, np.sqrt(square)).logpdf(inputs).sum(axis=1)
        for centre, square, freedom in zip(parts.centre, parts.square, parts.freedom, strict=True)
    ]
    density = np.logaddexp.reduce(np.log(parts.weight)[:, None] + by_component, axis=0) - found._units.log_volume
    assert found.score_samples(x) == pytest.approx(density, abs=1e-10)
    assert found.posterior_["mean"].mean == pytest.approx(parts.centre)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_has_the_moments_of_the_density(fitted, kind):
    found = clone(fitted[kind]).fit(groups()[0])
    rows, label = found.sample(40_000)
    assert rows.shape == (40_000, 2)
    assert np.bincount(label) / 40_000 == pytest.approx(found.weights_, abs=0.02)
    scale = rows.std(axis=0)
    assert rows.mean(axis=0) / scale == pytest.approx(found.weights_ @ found.means_ / scale, abs=0.03)
    for part in range(2):
        assert rows[label == part].mean(axis=0) / scale == pytest.approx(found.means_[part] / scale, abs=0.03)
    entropy = -found.score(rows)
    first, second = rows[::2], rows[1::2]
    assert -found.score(first) == pytest.approx(entropy, abs=0.03)
    assert -found.score(second) == pytest.approx(entropy, abs=0.03)


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_one_component_has_its_exact_evidence(kind):
    """The product of one-step predictive densities, each a Student t of the rows before it.

    The prior of the covariance is around that of the data, in their own units.
    """
    x = groups(rows=6)[0]
    multiple, dof, total = 0.01, 4.0, 0.0
    centre, matrix = x.mean(axis=0), np.cov(x.T, bias=True)
    for row in x:
        share = (1.0 + multiple) / multiple
        if kind == "full":
            free = dof - 1.0
            total += multivariate_t(centre, matrix * share / free, df=free).logpdf(row)
        else:
            total += t(dof, centre, np.sqrt(np.diag(matrix) * share / dof)).logpdf(row).sum()
        away = row - centre
        matrix = matrix + multiple / (multiple + 1.0) * np.outer(away, away)
        centre, multiple, dof = centre + away / (multiple + 1.0), multiple + 1.0, dof + 1.0
    found = GaussianMixture(1, covariance_type=kind).fit(x)
    assert found.log_evidence_ == pytest.approx(total, abs=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_the_evidence_does_not_depend_on_the_units_of_the_data(fitted, kind):
    """Full matrices allow any linear map, diagonal ones a scale of each column, spherical ones one of all."""
    x, found = groups()[0], fitted[kind]
    maps = {"diag": np.diag([10.0, 0.1]), "spherical": 3.0 * np.eye(2)}
    linear = maps.get(kind, np.array([[2.0, 1.0], [-30.0, 5.0]]))
    other = GaussianMixture(2, covariance_type=kind, random_state=0, n_init=2).fit(x @ linear.T + [3.0, 7.0])
    change = len(x) * np.linalg.slogdet(linear)[1]
    assert other.log_evidence_ == pytest.approx(found.log_evidence_ - change, abs=1e-3)
    assert sorted(other.weights_) == pytest.approx(sorted(found.weights_), abs=1e-4)


def test_columns_that_say_the_same_are_no_trouble():
    x = groups()[0]
    found = GaussianMixture(2, random_state=0).fit(np.column_stack([x, x @ [1.0, 2.0], np.ones(len(x))]))
    assert np.isfinite(found.score(np.column_stack([x, x @ [1.0, 2.0], np.ones(len(x))])))


@pytest.mark.slow
@pytest.mark.parametrize("inference", ["vmp", "ep", "power"])
@pytest.mark.parametrize("kind", ["full", "diag"])
def test_the_evidence_chooses_three_components(inference, kind):
    x, label = groups(rows=40)
    found = GaussianMixture(covariance_type=kind, inference=inference, random_state=0, max_components=5).fit(x)
    assert found.n_components_ == 3
    assert max(found.log_evidences_, key=lambda number: found.log_evidences_[number]) == 3
    table = np.zeros((3, 3))
    np.add.at(table, (label, found.labels_), 1)
    assert table.max(axis=1).sum() >= len(x) - 2
    means, variances = [[5.0, 0.0], [9.0, 90.0], [1.0, 120.0]], [[1.0, 225.0], [0.25, 900.0], [1.0, 900.0]]
    truth = [multivariate_normal(mean, np.diag(variance)) for mean, variance in zip(means, variances, strict=True)]
    new = groups(2, 200)[0]
    best = np.logaddexp.reduce([own.logpdf(new) - np.log(3.0) for own in truth], axis=0).mean()
    assert best - 0.15 < found.score(new) < best + 0.05


def test_ep_begins_at_the_beliefs_of_vmp_and_lies_above_their_bound():
    x = groups()[0]
    vmp = GaussianMixture(2, covariance_type="diag", random_state=0, n_init=2).fit(x)
    ep = GaussianMixture(2, covariance_type="diag", inference="ep", random_state=0, n_init=2).fit(x)
    assert ep.converged_
    assert ep.n_iter_ <= 20
    assert vmp.log_evidence_ < ep.log_evidence_ < vmp.log_evidence_ + 3.0
    assert ep.means_ == pytest.approx(vmp.means_, rel=0.05)


def test_a_fit_travels_in_a_pickle(fitted):
    found, x = fitted["full"], groups()[0]
    again = pickle.loads(pickle.dumps(found))
    assert again.score_samples(x) == pytest.approx(found.score_samples(x))
    assert again.posterior_["mean"].mean == pytest.approx(found.posterior_["mean"].mean)


BAD = {
    "covariance": ({"covariance_type": "block"}, "covariance_type= is one of full, diag"),
    "inference": ({"inference": "gibbs"}, "inference= is 'vmp', 'ep' or 'power'"),
    "ep of tied": ({"covariance_type": "tied", "inference": "ep"}, "Take 'full' or 'diag'"),
    "no components": ({"n_components": 0}, "n_components= is a whole number of at least 1"),
    "half a component": ({"n_components": 1.5}, "n_components= is a whole number"),
    "no starts": ({"n_init": 0}, "n_init= is a whole number"),
    "more than rows": ({"n_components": 91}, "more than n_samples = 90"),
    "little freedom": ({"freedom": 3.0}, "freedom= is above 3"),
}


@pytest.mark.parametrize(("settings", "says"), BAD.values(), ids=BAD)
def test_settings_that_do_not_fit_are_refused_before_anything_is_compiled(settings, says):
    with pytest.raises(ValueError, match=says.replace("(", r"\(")):
        GaussianMixture(**settings).fit(groups()[0])


def test_the_definition_refuses_another_covariance():
    with pytest.raises(cv.ModelError, match="'block'"):
        gaussian_mixture(2, 2, "block")

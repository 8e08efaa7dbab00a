"""Probabilities of statements, narrowest intervals and modes, against closed forms of SciPy."""

import numpy as np
import pytest
import scipy.stats as st
from numpy.testing import assert_allclose

import cavity as cv
from cavity.engine.answers.marginal import Marginal
from cavity.engine.distributions.mixed_over_grid import GridMixture, OnGrid
from cavity.engine.distributions.partly_observed import Completed
from cavity.engine.distributions.weighted_draws import WeightedDraws
from cavity.factors.families import Bernoulli, Beta, Categorical, Gamma, Gaussian, Point, SpikeAndSlab

PRIORS = {
    "gaussian": (cv.gaussian(1.0, variance=4.0), st.norm(1.0, 2.0), 1.0),
    "gamma": (cv.gamma(3.0, 2.0), st.gamma(3.0, scale=0.5), 1.0),
    "beta": (cv.beta(2.0, 3.0), st.beta(2.0, 3.0), 1.0 / 3.0),
    "student_t": (cv.student_t(4.0, 0.5, 2.0), st.t(4.0, 0.5, 2.0), 0.5),
    "log_normal": (cv.log_normal(0.0, 1.0), st.lognorm(1.0), np.exp(-1.0)),
    "half_cauchy": (cv.half_cauchy(2.0), st.halfcauchy(scale=2.0), 0.0),
    "inverse_gamma": (cv.inverse_gamma(3.0, 2.0), st.invgamma(3.0, scale=2.0), 0.5),
    "uniform": (cv.uniform(-1.0, 3.0), st.uniform(-1.0, 4.0), None),
    "poisson": (cv.poisson(3.5), st.poisson(3.5), 3.0),
    "binomial": (cv.binomial(7, 0.4), st.binom(7, 0.4), 3.0),
}
STATEMENTS = {
    "above": (lambda v: v > 1.2, lambda law: law.sf(1.2)),
    "within": (lambda v: (v > 0.4) & (v <= 2.0), lambda law: law.cdf(2.0) - law.cdf(0.4)),
    "outside": (lambda v: abs(v - 0.7) > 0.6, lambda law: law.cdf(0.1) + law.sf(1.3)),
    "always": (lambda v: v == v, lambda law: 1.0),
    "never": (lambda v: v != v, lambda law: 0.0),
}


@pytest.fixture(scope="module")
def priors():
    """The marginals of priors that nothing is observed of."""
    m = cv.Model("priors")
    for name, (term, *_) in PRIORS.items():
        m.random(name, term)
    m.random("seen", cv.gaussian(0.0, variance=1.0))
    return cv.infer(m, {"seen": 0.5})


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("statement", STATEMENTS)
def test_probabilities_of_statements(priors, name, statement):
    holds, right = STATEMENTS[statement]
    assert_allclose(priors[name].prob(holds), right(PRIORS[name][1]), atol=1e-9)


@pytest.mark.parametrize("name", PRIORS)
def test_modes(priors, name):
    right = PRIORS[name][2]
    if right is not None:
        assert_allclose(priors[name].mode, right, atol=1e-5)


@pytest.mark.parametrize("name", [name for name, (_, law, _) in PRIORS.items() if hasattr(law.dist, "pdf")])
@pytest.mark.parametrize("probability", [0.5, 0.9])
def test_no_interval_of_the_same_probability_is_narrower(priors, name, probability):
    law, (low, high) = PRIORS[name][1], priors[name].hdi(probability)
    assert_allclose(law.cdf(high) - law.cdf(low), probability, atol=1e-7)
    tails = np.linspace(1e-9, 1.0 - probability - 1e-9, 4001)
    assert high - low <= np.min(law.ppf(tails + probability) - law.ppf(tails)) * (1.0 + 1e-6)


def test_names_of_numpy(priors):
    marginal = priors["gamma"]
    assert marginal.std == marginal.sd
    assert marginal.var == marginal.variance
    assert marginal.median == marginal.quantile(0.5)
    assert marginal.sample() == marginal.sample(0)


def test_discrete_values():
    flag, kind = Marginal(Bernoulli.from_parameters(probability=np.array([0.2, 0.7]))), Categorical
    assert_allclose(flag.prob(lambda v: ~v), [0.8, 0.3])
    assert flag.mode.tolist() == [False, True]
    of_class = Marginal(kind.from_parameters(probability=np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]])))
    assert_allclose(of_class.prob(lambda v: v >= 1), [0.8, 0.4])
    assert of_class.mode.tolist() == [1, 0]


def test_what_was_observed_is_certain(priors):
    assert priors["seen"].prob(lambda v: v > 0.4) == 1.0
    assert priors["seen"].mode == 0.5
    half = Completed(
        np.array([1.0, 0.0]), np.array([False, True]), Gaussian.from_parameters(mean=np.zeros(2), variance=np.ones(2))
    )
    assert_allclose(Marginal(half).prob(lambda v: v > 0.5), [1.0, st.norm.sf(0.5)])
    assert_allclose(Marginal(half).mode, [1.0, 0.0])
    assert Marginal(Point(np.array([1.0, 2.0]))).prob(lambda v: v > 1.5).tolist() == [0.0, 1.0]


def test_a_spike_has_its_mass_on_zero():
    law = Marginal(SpikeAndSlab.from_parameters(probability=0.4, slab_mean=1.0, slab_variance=0.25))
    positive = 0.4 * st.norm(1.0, 0.5).sf(0.0)
    assert_allclose(law.prob(lambda v: v > 0.0), positive, atol=1e-9)
    assert_allclose(law.prob(lambda v: v >= 0.0), positive + 0.6, atol=1e-9)
    assert_allclose(law.prob(lambda v: v == 0.0), 0.6, atol=1e-9)


def test_weighted_draws_and_grids():
    draws, weights = np.array([[1.0], [2.0], [3.0]]), np.array([0.2, 0.5, 0.3])
    assert_allclose(Marginal(WeightedDraws(draws, weights, "real")).prob(lambda v: v > 1.5), [0.8])
    parts = Gaussian.from_parameters(mean=np.array([-1.0, 2.0]), variance=np.array([1.0, 0.25]))
    mixed = Marginal(GridMixture(parts, np.array([0.3, 0.7])))
    right = 0.3 * st.norm(-1.0, 1.0).sf(1.0) + 0.7 * st.norm(2.0, 0.5).sf(1.0)
    assert_allclose(mixed.prob(lambda v: v > 1.0), right, atol=1e-9)
    assert_allclose(mixed.mode, 2.0, atol=1e-2)
    grid = Marginal(OnGrid(np.log(np.array([1.0, 2.0, 4.0])), np.array([0.2, 0.5, 0.3]), 0.3, "positive"))
    assert_allclose(grid.prob(lambda v: v <= grid.quantile(0.37)), 0.37, atol=1e-6)


def test_points_of_a_grid_have_mass_between_them():
    points = np.array([1.0, 2.0, 4.0])
    of_points = GridMixture(
        Gaussian.from_parameters(mean=points, variance=np.full(3, 1e-12)), np.array([0.2, 0.5, 0.3])
    )
    marginal = Marginal(of_points)
    for level in (0.2, 0.5, 0.8):
        at = marginal.quantile(level)
        assert_allclose(marginal.prob(lambda v, at=at: v <= at), level, atol=1e-6)


def test_vectors_by_coordinate_and_as_wholes():
    m = cv.Model()
    v = m.random("v", cv.vector_gaussian(np.zeros(2), covariance=np.array([[1.0, 0.9], [0.9, 1.0]])))
    m.random("y", cv.gaussian(cv.dot(v, np.array([1.0, 0.0])), variance=1e6))
    marginal = cv.infer(m, {"y": 0.0})["v"]
    assert_allclose(marginal.prob(lambda v: v > 1.0), st.norm.sf(1.0) * np.ones(2), atol=1e-4)
    both = marginal.prob(lambda v: (v > 0.0).all(axis=-1))
    assert abs(both - (0.25 + np.arcsin(0.9) / (2.0 * np.pi))) < 0.01  # drawn


@pytest.mark.parametrize("statement", [3, None, lambda v: v, lambda v: True, lambda v: np.array([True])])
def test_what_is_no_statement(statement):
    marginal = Marginal(Gamma.from_parameters(shape=2.0, rate=1.0))
    with pytest.raises(cv.DataError, match="prob"):
        marginal.prob(statement)


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.1, "half", [0.1, 0.2]])
def test_what_is_no_probability(probability):
    with pytest.raises(cv.DataError, match="hdi"):
        Marginal(Beta.from_parameters(a=2.0, b=2.0)).hdi(probability)


def test_statements_across_elements_are_refused():
    m = cv.Model()
    m.random("a", cv.gaussian(0.0, variance=1.0), plates=m.plate("p", 2))
    marginal = cv.infer(m, {})["a"]
    for statement in (lambda v: v[..., 0] > v[..., 1], lambda v: v.sum(-1) > 1.0):
        with pytest.raises(cv.DataError, match="prob"):
            marginal.prob(statement)


def test_modes_at_the_ends_and_on_a_spike():
    assert Marginal(Beta.from_parameters(a=0.5, b=0.5)).mode in (0.0, 1.0)
    assert Marginal(SpikeAndSlab.from_parameters(probability=0.4, slab_mean=1.0, slab_variance=0.25)).mode == 0.0
    with pytest.raises(cv.UnsupportedError, match="interval"):
        Marginal(Bernoulli.from_parameters(probability=0.5)).hdi()

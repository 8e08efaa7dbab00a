"""The mass of an interval under any factor of numbers, against SciPy, also far out in its tails."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

from cavity.factors import REGISTRY
from cavity.factors.quadrature.interval_mass import log_mass

INF = np.inf
CASES = {
    "gaussian": ({"mean": 1.0, "precision": 4.0}, scipy.stats.norm(1.0, 0.5), [(-INF, -10), (20, INF), (0, 1)]),
    "laplace": ({"mean": 1.0, "scale": 2.0}, scipy.stats.laplace(1.0, 2.0), [(-INF, -100), (1000, INF), (-1, 3)]),
    "student_t": (
        {"dof": 3.0, "mean": 1.0, "scale": 2.0},
        scipy.stats.t(3.0, 1.0, 2.0),
        [(-INF, -100), (1000, INF), (-1, 0.2)],
    ),
    "log_normal": (
        {"mean": 1.0, "precision": 4.0},
        scipy.stats.lognorm(0.5, scale=np.e),
        [(-INF, 0.01), (200, INF), (1, 2)],
    ),
    "weibull": (
        {"scale": 2.0, "shape": 1.7},
        scipy.stats.weibull_min(1.7, scale=2.0),
        [(-INF, 1e-3), (30, INF), (1, 2)],
    ),
    "exponential": ({"rate": 2.0}, scipy.stats.expon(scale=0.5), [(-INF, 1e-3), (30, INF), (1, 2)]),
    "gamma": ({"shape": 0.1, "rate": 3.0}, scipy.stats.gamma(0.1, scale=1 / 3), [(-INF, 1e-3), (30, INF), (1, 2)]),
    "beta": ({"a": 2.5, "b": 3.0}, scipy.stats.beta(2.5, 3.0), [(-INF, 1e-3), (0.99, INF), (0.1, 0.2)]),
    "poisson": ({"rate": 3.0}, scipy.stats.poisson(3.0), [(1, INF), (-INF, 0), (200, INF), (1.5, 5)]),
    "negative_binomial": (
        {"mean": 300.0, "dispersion": 5.0},
        scipy.stats.nbinom(5.0, 5.0 / 305.0),
        [(1, INF), (-INF, 0), (200, INF), (2, 500)],
    ),
    "binomial": ({"n": 30.0, "probability": 0.3}, scipy.stats.binom(30, 0.3), [(1, INF), (-INF, 0), (20, INF), (2, 5)]),
}


def by_scipy(law, low, high, counts):
    if counts:
        return scipy.special.logsumexp(law.logpmf(np.arange(max(0, np.ceil(low)), min(high, 20000) + 1)))
    if np.isinf(high):
        return law.logsf(low)
    if np.isinf(low):
        return law.logcdf(high)
    return np.log(law.cdf(high) - law.cdf(low))


@pytest.mark.parametrize("name", CASES)
def test_it_is_the_difference_of_the_distribution_function(name):
    arguments, law, intervals = CASES[name]
    factor = REGISTRY[name]
    with jax.enable_x64(True):
        low, high = np.array(intervals, float).T
        points = {edge: jnp.asarray(value) for edge, value in arguments.items()}
        both = jax.value_and_grad(lambda a, low, high: log_mass(factor, low, high, **a))
        found, slopes = jax.jit(jax.vmap(both, in_axes=(None, 0, 0)))(points, low, high)
    wanted = [by_scipy(law, *interval, factor.kind == "count") for interval in intervals]
    np.testing.assert_allclose(found, wanted, rtol=2e-8, atol=2e-8)
    assert all(np.isfinite(slope).all() for edge, slope in slopes.items() if edge != "n")


@pytest.mark.parametrize("name", ["gaussian", "gamma", "poisson"])
def test_no_bounds_hold_all_and_reversed_ones_nothing(name):
    points = {edge: jnp.asarray(value) for edge, value in CASES[name][0].items()}
    ends = [(-INF, INF), (5.0, 3.0), (-5.0, -3.0)]
    mass = jax.jit(lambda low, high: log_mass(REGISTRY[name], low, high, **points))
    all_of_it, reversed_, beyond = (mass(*end) for end in ends)
    assert all_of_it == 0.0
    assert reversed_ == -INF
    assert (beyond == -INF) == (name != "gaussian")

"""How probable features after the first sticks are: the table of the bounds, draws, and a heuristic that is none."""

import numpy as np
import pytest
import scipy.special

from cavity.factors.errors import DataError, ModelError
from cavity.models.buffet.variational.truncation import (
    features_needed,
    truncation_bound,
    truncation_log_bound,
    truncation_probability,
)

# places, the probability, the bound of the Poisson process, the series from the next and from the last stick, its bound
TABLE = [
    (10, 0.9977, 1.0, 1.0, 1.0, 1.0),
    (20, 0.8437, 0.9800, 0.9809, 0.9914, 0.9999),
    (30, 0.3692, 0.4684, 0.4693, 0.5326, 0.7805),
    (40, 0.0879, 0.0970, 0.0971, 0.1153, 0.2172),
    (60, 0.0026, 0.0027, 0.0027, 0.0032, 0.0064),
]


def by_series(rows, mass, first):
    """Jensen's bound by the series of the logarithm: `sum over i >= first of E log(1 - weight_i)`."""
    r = np.arange(1, 200_000)
    return -np.expm1(-rows * (np.exp(first * np.log(mass / (mass + r))) * (mass + r) / r**2).sum())


def draws(rows, mass, places, count, seed):
    """Whether rows have features after the first places, in draws of sticks; means and standard error."""
    random = np.random.default_rng(seed)
    weights = np.cumprod(random.beta(mass, 1.0, (count, places + 200)), axis=1)[:, places:]
    shares = -np.expm1(rows * np.log1p(-weights).sum(axis=1))
    return shares.mean(), shares.std() / np.sqrt(count)


@pytest.mark.parametrize(("places", "exact", "poisson", "next_stick", "last_stick", "log_bound"), TABLE)
def test_the_table(places, exact, poisson, next_stick, last_stick, log_bound):
    assert abs(truncation_probability(30, 5.0, places) - exact) < 6e-4  # the table's exact column is of draws
    assert abs(truncation_bound(30, 5.0, places) - poisson) < 6e-5
    assert abs(by_series(30, 5.0, places + 1) - next_stick) < 6e-5
    assert abs(by_series(30, 5.0, places) - last_stick) < 6e-5
    assert abs(truncation_log_bound(30, 5.0, places) - log_bound) < 6e-5


@pytest.mark.parametrize(("rows", "mass", "places"), [(30, 5.0, 30), (4, 1.0, 2), (100, 0.3, 3), (1, 2.0, 1)])
def test_the_probability_is_that_of_draws(rows, mass, places):
    found, (mean, error) = truncation_probability(rows, mass, places), draws(rows, mass, places, 20_000, 1)
    assert abs(found - mean) < 5.0 * error


def test_bounds_are_in_order_and_fall():
    for rows, mass in [(1, 0.2), (30, 5.0), (1000, 2.0)]:
        before = 1.0
        for places in (1, 3, 10, 30, 100):
            found = truncation_probability(rows, mass, places)
            assert 0.0 < found <= min(before, 1.0)
            assert found <= truncation_bound(rows, mass, places) + 1e-12
            assert truncation_bound(rows, mass, places) <= by_series(rows, mass, places + 1) + 1e-12
            assert by_series(rows, mass, places) <= truncation_log_bound(rows, mass, places) + 1e-12
            before = found


def test_where_it_is_small_the_bound_is_close():
    assert 1.0 < truncation_bound(30, 5.0, 120) / truncation_probability(30, 5.0, 120) < 1.001


def test_the_heuristic_of_the_zeta_function_is_no_bound():
    """As printed it does not decay; read with the next argument it is below the probability."""
    heuristic = [-np.expm1(-30 * 5.0**30 * scipy.special.zeta(31, argument)) for argument in (5.0, 6.0)]
    exact = truncation_probability(30, 5.0, 30)
    assert heuristic[1] < 0.1 * exact
    assert abs(-np.expm1(-30 * np.exp(200 * np.log(5.0) + np.log(scipy.special.zeta(201, 5.0)))) - 0.9975) < 1e-4
    assert heuristic[0] > 0.9975 - 1e-4


def test_the_features_needed():
    for rows, mass, share in [(30, 5.0, 0.01), (1000, 2.0, 1e-3), (1, 0.01, 0.9)]:
        places = features_needed(rows, mass, share)
        assert truncation_bound(rows, mass, places) <= share
        assert places == 1 or truncation_bound(rows, mass, places - 1) > share


def test_bad_requests():
    for function in (truncation_probability, truncation_bound, truncation_log_bound):
        with pytest.raises(ModelError, match="mass"):
            function(10, 0.0, 3)
        with pytest.raises(DataError, match="places"):
            function(10, 1.0, 0)
        with pytest.raises(DataError, match="rows"):
            function(0, 1.0, 3)
    with pytest.raises(ModelError, match="probability"):
        features_needed(10, 1.0, 0.0)

"""Shrinkage: its exact risk against draws, below that of the values themselves, and the estimates behind it."""

import numpy as np
import pytest

from cavity.factors.errors import DataError
from cavity.models.sparse.james_stein import marginal_precision, risk, shrunk


@pytest.mark.parametrize("length", [0.0, 1.5, 6.0])
@pytest.mark.parametrize(("dimensions", "times"), [(5, None), (5, 1.0), (10, None), (10, 10.0)])
def test_the_risk_is_the_mean_squared_error_of_draws(length, dimensions, times):
    random = np.random.default_rng(0)
    theta = np.zeros(dimensions)
    theta[-1] = length
    x = theta + random.standard_normal((100_000, dimensions))
    errors = np.sum((shrunk(x, times) - theta) ** 2, axis=1)
    assert abs(errors.mean() - risk(length, dimensions, times)) < 5.0 * errors.std() / np.sqrt(len(errors))


def test_the_risk_is_below_that_of_the_values_for_all_means_and_two_of_zero():
    for dimensions in (3, 5, 40):
        risks = [risk(length, dimensions) for length in (0.0, 0.5, 2.0, 10.0, 100.0)]
        assert np.isclose(risks[0], 2.0, rtol=1e-12)
        assert np.all(np.diff(risks) > 0.0)
        assert risks[-1] < dimensions
        assert all(risk(3.0, dimensions, times) >= risk(3.0, dimensions) for times in (dimensions - 1, dimensions))


def test_the_unbiased_precision_is_d_less_two_over_the_square():
    random = np.random.default_rng(1)
    precision, dimensions = 0.3, 8
    x = random.standard_normal((200_000, dimensions)) / np.sqrt(precision)
    own = marginal_precision(x)
    assert abs(own.mean() - precision) < 5.0 * own.std() / np.sqrt(len(own))
    others = [marginal_precision(x, times).mean() for times in (dimensions - 1, dimensions)]
    assert all(other > precision * 1.1 for other in others)  # what is not unbiased
    assert np.allclose(shrunk(x[:5]), (1.0 - own[:5, None]) * x[:5], rtol=1e-13)


def test_of_two_numbers_nothing_is_gained():
    with pytest.raises(DataError):
        shrunk([1.0, 2.0])
    with pytest.raises(DataError):
        marginal_precision([1.0])
    with pytest.raises(DataError):
        risk(1.0, 2)
    with pytest.raises(DataError):
        risk(-1.0, 3)
    assert np.array_equal(shrunk(np.zeros(3)), np.zeros(3))

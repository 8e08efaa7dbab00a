"""Draws of auxiliary variables: Polya-Gamma numbers by mean and Laplace transform, normal ones in their tails."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from cavity.engine.sampling.augmented import normal_above
from cavity.engine.sampling.polya_gamma import polya_gamma

DRAWS = 200_000


@pytest.mark.parametrize("tilt", [0.0, 0.3, 2.0, -2.0, 12.0, 60.0])
def test_mean_and_transform(tilt):
    with jax.enable_x64(True):
        x = np.asarray(polya_gamma(jax.random.key(3), jnp.full(DRAWS, tilt)))
    half = 0.5 * abs(tilt)
    mean = 0.25 if tilt == 0.0 else np.tanh(half) / (2.0 * abs(tilt))
    assert x.mean() == pytest.approx(mean, abs=4.5 * x.std() / np.sqrt(DRAWS))
    # E exp(-t w) = cosh(c / 2) / cosh(sqrt(c^2 / 4 + t / 2))
    t = 3.0 / mean
    transform, values = np.cosh(half) / np.cosh(np.sqrt(half**2 + 0.5 * t)), np.exp(-t * x)
    assert values.mean() == pytest.approx(transform, abs=4.5 * values.std() / np.sqrt(DRAWS))


@pytest.mark.parametrize("low", [-30.0, -3.0, 0.0, 3.99, 4.01, 8.0, 30.0, 200.0])
def test_normal_numbers_above_a_bound_have_their_distribution_in_the_tail(low):
    with jax.enable_x64(True):
        x = np.asarray(normal_above(jax.random.key(1), jnp.full(20_000, low)))
    assert (x >= low).all()
    above = np.exp(stats.norm.logsf(x) - stats.norm.logsf(low))
    assert stats.kstest(above, "uniform").pvalue > 1e-4

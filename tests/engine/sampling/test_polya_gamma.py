"""Polya-Gamma numbers: their mean, variance and Laplace transform are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

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

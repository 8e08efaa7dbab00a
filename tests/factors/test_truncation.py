"""The Gaussian between two bounds, against many digits."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from cavity.factors.positive.truncated_gamma import factor as TRUNCATED_GAMMA
from cavity.factors.quadrature.truncation import between, interval_site, quantile

BOUNDS = [
    (-1, 1), (-np.inf, 0.3), (0.3, np.inf), (-np.inf, np.inf), (30, 31), (30, np.inf), (-40, -39), (-np.inf, -100),
    (1e3, 1e3 + 1e-3), (1e5, np.inf), (-2, 5), (-20, 0.1), (-0.1, 20), (3, 3 + 1e-6), (-1e-10, 1e-10), (8, 9),
    (-8.5, -8.4), (5, 50),
]  # fmt: skip


def exact(low, high):
    """log mass, mean and variance with 80 digits."""
    with mpmath.workdps(80):
        a, b = mpmath.mpf(low), mpmath.mpf(high)
        sign = 1
        if a + b > 0:
            a, b, sign = -b, -a, -1
        mass = (mpmath.erfc(-b / mpmath.sqrt(2)) - mpmath.erfc(-a / mpmath.sqrt(2))) / 2
        at_a, at_b = (mpmath.npdf(x) if mpmath.isfinite(x) else mpmath.mpf(0) for x in (a, b))
        mean = (at_a - at_b) / mass
        edge = (a * at_a if at_a else 0) - (b * at_b if at_b else 0)
        return float(mpmath.log(mass)), float(sign * mean), float(1 + edge / mass - mean**2)


@pytest.mark.parametrize("share", [0.001, 0.3, 0.5, 0.9, 0.999])
def test_the_share_below_a_quantile_is_what_was_asked(share):
    low, high = np.array(BOUNDS, float).T
    with jax.enable_x64(True):
        found = np.asarray(quantile(jnp.full(len(low), share), jnp.asarray(low), jnp.asarray(high)))
    for a, b, z in zip(low, high, found, strict=True):
        assert a <= z <= b
        if b - a > 1e-5 * max(abs(a), 1.0):  # else a number has not the digits to tell shares apart
            wanted = exact(a, z)[0] - exact(a, b)[0]
            np.testing.assert_allclose(np.exp(wanted), share, atol=2e-3)


def test_mass_and_moments():
    low, high = np.array(BOUNDS, float).T
    with jax.enable_x64(True):
        log_mass, mean, variance = (np.asarray(part) for part in between(jnp.asarray(low), jnp.asarray(high)))
    expected = np.array([exact(float(a), float(b)) for a, b in BOUNDS]).T
    np.testing.assert_allclose(log_mass, expected[0], rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(mean, expected[1], rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(variance, expected[2], rtol=1e-12)


def test_empty_interval_has_no_mass():
    with jax.enable_x64(True):
        assert between(jnp.asarray(2.0), jnp.asarray(1.0))[0] == -np.inf


def test_the_site_with_noise_is_the_site_without_at_the_total_variance():
    with jax.enable_x64(True):
        low, high, mean = jnp.asarray(-0.5), jnp.asarray(2.0), jnp.asarray(0.3)
        sharp = interval_site(low, high, mean, jnp.asarray(3.0))
        noisy = interval_site(low, high, mean, jnp.asarray(2.0), 1.0)
        np.testing.assert_allclose(noisy.log_evidence, sharp.log_evidence, rtol=1e-14)
        np.testing.assert_allclose(noisy.score, sharp.score, rtol=1e-14)
        np.testing.assert_allclose(noisy.curvature, sharp.curvature, rtol=1e-13)
        np.testing.assert_allclose(noisy.ratio, 1 - 2.0 * noisy.curvature, rtol=1e-13)


@pytest.mark.parametrize(
    ("shape", "rate", "low", "high"),
    [
        (2.0, 1e5, 0.3, 3.0),
        (2.0, 3e3, 0.3, np.inf),
        (0.3, 2.5e3, 0.3, 0.31),
        (900.0, 1.0, 0.01, 0.3),
        (2.0, 1.0, 0.3, 3),
    ],
)
def test_a_truncated_gamma_far_out_in_a_tail(shape, rate, low, high):
    """Where the mass of the interval underflows, the density must not explode, nor its gradient."""
    out = 0.3
    with mpmath.workdps(60):
        mass = mpmath.gammainc(shape, mpmath.mpf(low) * rate, mpmath.mpf(high) * rate, regularized=True)
        log = shape * mpmath.log(rate) - mpmath.loggamma(shape) + (shape - 1) * mpmath.log(out) - mpmath.mpf(rate) * out
        exact_log = float(log - mpmath.log(mass))
    with jax.enable_x64(True):
        np.testing.assert_allclose(TRUNCATED_GAMMA.log_density(out, shape, rate, low, high), exact_log, rtol=1e-9)
        assert np.isfinite(jax.grad(lambda r: TRUNCATED_GAMMA.log_density(out, shape, r, low, high))(rate))

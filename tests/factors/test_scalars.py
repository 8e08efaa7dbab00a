"""Moments of powers of single numbers, and of the larger of two Gaussians, by quadrature."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from cavity.factors.moments import Positive, Real, Unit
from cavity.factors.scalars import BetaNumber, GammaNumber, LogNormalNumber, covariance, expectation, larger, number_of

close = np.testing.assert_allclose


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


NUMBERS = {
    "gamma": (GammaNumber(7.3, 2.1), scipy.stats.gamma(7.3, scale=1 / 2.1), (-3, -1, 1, 2, 3)),
    "beta": (BetaNumber(2.5, 4.0), scipy.stats.beta(2.5, 4.0), (1, 2, 3)),
    "log normal": (LogNormalNumber(0.3, 0.2), scipy.stats.lognorm(0.2**0.5, scale=np.exp(0.3)), (-2, -1, 1, 2)),
    "gaussian": (Real(0.7, 0.4), scipy.stats.norm(0.7, 0.4**0.5), (1, 2)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_powers_of_numbers(name):
    number, law, powers = NUMBERS[name]
    number = type(number)(*map(jnp.asarray, number))

    def mean(n):
        return law.expect(lambda x: x**n, epsabs=1e-12, epsrel=1e-12)

    for n, k in itertools.product(powers, powers):
        close(expectation(number, n), mean(n), rtol=1e-7)
        close(covariance(number, n, k), mean(n + k) - mean(n) * mean(k), rtol=1e-6, atol=1e-9)


def test_powers_of_concentrated_numbers_keep_their_digits():
    """Var(1/x) of a Gamma of shape s is E^2 / (s - 2)."""
    number = GammaNumber(jnp.asarray(1e10), jnp.asarray(1e10))
    close(covariance(number, -1, -1), expectation(number, -1) ** 2 / (1e10 - 2), rtol=1e-12)
    close(covariance(number, 1, -1), 1 - expectation(number, -1), rtol=1e-5)  # the right side has few digits


def test_powers_that_do_not_exist_are_infinite():
    assert expectation(GammaNumber(jnp.asarray(0.9), jnp.asarray(1.0)), -1) == np.inf


@pytest.mark.parametrize(
    ("moments", "mean"),
    [
        (lambda q: Positive(q[0] / q[1], jax.scipy.special.digamma(q[0]) - jnp.log(q[1])), lambda q: q[0] ** 2 / q[1]),
        (
            lambda q: Unit(*(jax.scipy.special.digamma(q) - jax.scipy.special.digamma(q.sum()))),
            lambda q: q[0] / q.sum() * q[1],
        ),
    ],
)
def test_parameters_from_moments_and_their_slopes(moments, mean):
    """The family is recovered, and a function of it has the derivatives that it has in the parameters."""
    q = jnp.array([3.2, 1.7])
    close(jnp.stack(number_of(moments(q))), q, rtol=1e-9)
    found = jax.grad(lambda q: mean(jnp.stack(number_of(moments(q)))))(q)
    close(found, jax.grad(mean)(q), rtol=1e-7)


@pytest.mark.parametrize(("a", "b", "rho"), [((1.0, 0.5), (0.7, 2.0), 0.3), ((0.0, 1.0), (8.0, 1.0), -0.9)])
def test_larger_of_two_gaussians(a, b, rho):
    """Against an integral over one of them, of the expectations given it."""
    cross = rho * np.sqrt(a[1] * b[1])
    found = larger(Real(*a), Real(*b), Real(a[0] - b[0], a[1] + b[1] - 2 * cross))

    def moment(n):
        def given(x):
            mean, sd = b[0] + cross / a[1] * (x - a[0]), np.sqrt(b[1] - cross**2 / a[1])
            z = (x - mean) / sd
            below, above = scipy.stats.norm.cdf(z), scipy.stats.norm.sf(z)
            first = mean * above + sd * scipy.stats.norm.pdf(z)
            second = (mean**2 + sd**2) * above + sd * (mean + x) * scipy.stats.norm.pdf(z)
            return x**n * below + (first if n == 1 else second)

        return scipy.stats.norm(a[0], a[1] ** 0.5).expect(given, lb=a[0] - 12, ub=a[0] + 12, epsabs=1e-12)

    close(found.mean, moment(1), rtol=1e-8)
    close(found.variance, moment(2) - moment(1) ** 2, rtol=1e-7)

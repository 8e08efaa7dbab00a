"""Powers of independent random numbers: E x^n and Cov(x^n, x^k), in closed form by family and without cancellation.

With these, the mean and the variance of any polynomial in independent numbers follow. A number is one of the tuples
below, or `Real` (see `moments.py`) for one of which only mean and variance are known: its squares are a Gaussian's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Float

from .arrays import Array, Exponent
from .families import Beta, Gamma
from .moments import Boolean, Moments, Positive, Real, Sparse, Unit
from .special import TINY, trigamma

_Family = TypeVar("_Family", Gamma, Beta)


class GammaNumber(NamedTuple):
    """A Gamma distributed number: all powers above -shape."""

    shape: Float[Array, "*plates"]
    rate: Float[Array, "*plates"]


class BetaNumber(NamedTuple):
    """A Beta distributed number: all positive powers."""

    a: Float[Array, "*plates"]
    b: Float[Array, "*plates"]


class LogNormalNumber(NamedTuple):
    """The exponential of a Gaussian of this mean and variance: all powers."""

    mean: Float[Array, "*plates"]
    variance: Float[Array, "*plates"]


Number: TypeAlias = GammaNumber | BetaNumber | LogNormalNumber | Real | Sparse


def number_of(moments: Positive | Unit | Number) -> Number:
    """The number whose family has these moments; that of a `Positive` is a Gamma, of a `Unit` a Beta."""
    if isinstance(moments, Positive):
        family = _family_with(Gamma, moments)
        return GammaNumber(jnp.asarray(family.shape), jnp.asarray(family.rate))
    if isinstance(moments, Unit):
        family = _family_with(Beta, moments)
        return BetaNumber(jnp.asarray(family.a), jnp.asarray(family.b))
    return moments


def _family_with(family: type[_Family], moments: Positive | Unit) -> _Family:
    """The family of these expected statistics, with the derivatives of the inverse: one step of Newton from it."""
    solved = family.from_stats(jax.lax.stop_gradient(tuple(moments)))
    solved = jax.lax.stop_gradient(solved)
    missing = jax.tree.map(jnp.subtract, tuple(moments), tuple(solved.expected_stats()))
    step = solved.fisher_solve(missing)
    # The step itself is rounding; only its derivative is wanted.
    return family.from_naturals(
        tuple(n + d - jax.lax.stop_gradient(d) for n, d in zip(solved.naturals(), step, strict=True))
    )


def as_real(moments: Positive | Unit | Number) -> Real:
    """Mean and variance of a positive number or a probability."""
    number = number_of(moments)
    return Real(expectation(number, 1), covariance(number, 1, 1))


READ_AS: dict[tuple[type | None, type | None], Callable[[Any], Moments]] = {
    (Real, Sparse): lambda found: Real(found.mean, found.variance),
    (Real, Positive): as_real,
    (Real, Unit): as_real,
    (Unit, Boolean): lambda found: found,
}
"""Moments (wanted, found) that are read as others where a number of another domain stands for one."""


def log_of(moments: Positive | Unit) -> Real:
    """Mean and variance of the logarithm."""
    number = number_of(moments)
    if isinstance(number, GammaNumber):
        return Real(moments.log, trigamma(number.shape))
    assert isinstance(number, BetaNumber)
    return Real(moments.log, trigamma(number.a) - trigamma(number.a + number.b))


def power_of(moments: Positive, exponent: Exponent) -> Positive:
    """E x^n and E log x^n of a positive number."""
    return Positive(expectation(number_of(moments), exponent), exponent * moments.log)


def expectation(number: Number, n: Exponent) -> Array:
    """E x^n; infinite for powers that a Gamma does not have."""
    match number:
        case GammaNumber(shape, rate):
            return jnp.exp(_rising(shape, n)) * (shape / rate) ** n
        case BetaNumber(a, b):
            return jnp.exp(_rising(a, n) - _rising(a + b, n)) * (a / (a + b)) ** n
        case LogNormalNumber(mean, variance):
            return jnp.exp(n * mean + 0.5 * n * n * variance)
    return number.mean if n == 1 else number.mean**2 + number.variance


def covariance(number: Number, n: Exponent, k: Exponent) -> Array:
    """Cov(x^n, x^k)."""
    match number:
        case GammaNumber(shape, _):
            excess = _rising(shape, n + k) - _rising(shape, n) - _rising(shape, k)
        case BetaNumber(a, b):
            excess = _rising(a, n + k) - _rising(a, n) - _rising(a, k)
            excess = excess - (_rising(a + b, n + k) - _rising(a + b, n) - _rising(a + b, k))
        case LogNormalNumber(_, variance):
            excess = n * k * variance
        case _:
            return _of_gaussian(number, n, k)
    return expectation(number, n) * expectation(number, k) * jnp.expm1(excess)


def _of_gaussian(number: Real | Sparse, n: Exponent, k: Exponent) -> Array:
    mean, variance = number.mean, number.variance
    if n + k == 2:
        return variance
    return 2.0 * mean * variance if n + k == 3 else 2.0 * variance**2 + 4.0 * mean**2 * variance


def _rising(a: Array, n: Exponent) -> Array:
    """log of gamma(a + n) / (gamma(a) a^n): small for large a, and infinite where a + n is not positive."""
    if n != int(n):
        return _between_rising(a, n)
    n = int(n)
    if n >= 0:
        return sum((jnp.log1p(i / a) for i in range(1, n)), start=jnp.zeros_like(a))
    exists = a + n > 0.0
    safe = jnp.where(exists, a, 1.0 - n)
    return jnp.where(exists, -sum(jnp.log1p(-i / safe) for i in range(1, 1 - n)), jnp.inf)


_SHIFT = 12  # from there on a series of three terms has the digits of a float


def _between_rising(a: Array, n: Exponent) -> Array:
    """The same of an exponent that is not whole: by Stirling's series at a + `_SHIFT`, and the quotients on the way."""
    exists = a + n > 0.0
    safe = jnp.where(exists, a, 1.0 + abs(n))
    way = n * jnp.log1p(_SHIFT / safe) - sum(jnp.log1p(n / (safe + i)) for i in range(_SHIFT))
    far = safe + _SHIFT
    found = way + (far + n - 0.5) * jnp.log1p(n / far) - n + _beyond_stirling(far + n) - _beyond_stirling(far)
    return jnp.where(exists, found, jnp.inf)


def _beyond_stirling(x: Array) -> Array:
    """log gamma(x) less (x - 1/2) log x - x + log(2 pi) / 2, for x above 10."""
    y = 1.0 / (x * x)
    return (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))) / x


def larger(a: Real, b: Real, difference: Real) -> Real:
    """Mean and variance of the larger of two Gaussian numbers, given those of a - b. Source clark1961greatest."""
    spread = jnp.sqrt(jnp.maximum(difference.variance, TINY))
    z = difference.mean / spread
    p, density = jax.scipy.special.ndtr(z), jnp.exp(-0.5 * z * z) / jnp.sqrt(2.0 * jnp.pi)
    q = jax.scipy.special.ndtr(-z)
    mean = a.mean * p + b.mean * q + spread * density
    # Deviations from the mean instead of second moments: these are small differences of large numbers.
    up, down = a.mean - mean, b.mean - mean
    return Real(mean, (up**2 + a.variance) * p + (down**2 + b.variance) * q + (up + down) * spread * density)

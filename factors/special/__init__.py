"""Special functions of message passing: normal tails, logistic functions, the gamma family.

Branch-free compositions of `exp`, one or two divisions and polynomials, which XLA vectorises also inside larger
fusions; its own double precision versions are 5 to 100 times slower and dominated whole EP sweeps. All act elementwise
on arrays of any shape, in float64 to about 1e-14 and in float32 to about 1e-6 relative unless stated, tails included.
Derivatives are closed forms in the same functions, so they stay finite and accurate where the functions do. NaN goes
in and comes out; nothing raises. The coefficients come from tests/factors/make_special_coefficients.py.

Divisions are written as products with a reciprocal of one expression where a quotient is used more than once: XLA fuses
the former and stores the latter in memory.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ..arrays import Array, Numeric
from . import coefficients as coefficients

Values: TypeAlias = Float[Array, "*shape"]

TINY = 1e-300  # in place of zero, where a logarithm or a quotient follows
_SQRT_2 = math.sqrt(2.0)
_SQRT_2PI = math.sqrt(2.0 * math.pi)
_EULER = 0.5772156649015329
_LN2_HIGH = 6.93147180369123816490e-01  # the last 32 bits are zero: exponent * _LN2_HIGH is exact
_LN2_LOW = 1.90821492927058770002e-10


def _as_float(x: Numeric) -> Float[Array, "..."]:
    array = jnp.asarray(x)
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(jnp.result_type(float))


def _elementwise(function: Callable[[Array], Array]) -> Callable[[Numeric], Array]:
    """Compile a function of one floating array; its derivative is the entry of that name in `_DERIVATIVES` below."""
    name = function.__name__
    compiled = jax.custom_jvp(jax.jit(function, inline=True))
    compiled.defjvps(lambda tangent, value, x: tangent * _DERIVATIVES[name](x))

    @functools.wraps(function)
    def public(x: Numeric) -> Float[Array, "..."]:
        return compiled(_as_float(x))

    return public


def _finite(x: Values) -> Values:
    """x with infinity made the largest number, for a product with zero."""
    return jnp.minimum(x, jnp.finfo(x.dtype).max)


def _polynomial(table: coefficients.Table, u: Values) -> Values:
    first, *rest = table[0] if u.dtype == jnp.float64 else table[1]
    total = jnp.full_like(u, first)
    for coefficient in rest:  # operators would do, at three times the time of tracing
        total = jax.lax.add(jax.lax.mul(total, u), u.dtype.type(coefficient))
    return total


# Logarithm


def _log(x: Values) -> Values:
    """log of a positive normal number, infinity or NaN."""
    if x.dtype != jnp.float64:
        return jnp.log(x)
    # x = 2^k m with m in [sqrt(1/2), sqrt(2)): subtracting the bits of sqrt(1/2) turns the exponent field into k.
    bits = jax.lax.bitcast_convert_type(x, jnp.uint64)
    above = bits - jnp.uint64(0x3FE6A09E667F3BCD)
    mantissa = jax.lax.bitcast_convert_type(bits - (above & jnp.uint64(0xFFF << 52)), jnp.float64)
    # k + 1023 becomes a float by standing behind the bits of 2^52: a conversion has no vector form below AVX-512.
    biased = (above + jnp.uint64(1023 << 52)) >> jnp.uint64(52)
    k = jax.lax.bitcast_convert_type(biased | jnp.uint64(0x433 << 52), jnp.float64) - (2.0**52 + 1023.0)
    f = mantissa - 1.0
    s = f * (1.0 / (2.0 + f))
    z = s * s
    small = 2.0 * s + s * z * _polynomial(coefficients.LOG, z * (2.0 / (3.0 - 2.0 * _SQRT_2) ** 2) - 1.0)
    value = k * _LN2_HIGH + (small + k * _LN2_LOW)
    return jnp.where(x < jnp.inf, value, x)


def _log1p_unit(y: Values) -> Values:
    """log(1 + y) for 0 <= y <= 1, to relative accuracy."""
    s = y * (1.0 / (2.0 + y))
    z = s * s
    return 2.0 * s + s * z * _polynomial(coefficients.LOG1P, 18.0 * z - 1.0)


@_elementwise
def log(x: Values) -> Values:
    """Natural logarithm of x (any shape): -inf at zero and at subnormal numbers, NaN below zero.

    Faster than `jnp.log` in double precision when fused with other work, where XLA's version loses its vector form.
    """
    tiny = jnp.finfo(x.dtype).tiny
    return jnp.where(x >= tiny, _log(jnp.maximum(x, tiny)), jnp.where(x >= 0.0, -jnp.inf, jnp.nan))


# Logistic functions


@_elementwise
def sigmoid(x: Values) -> Values:
    """1 / (1 + exp(-x)) for real x (any shape): a probability, to relative accuracy in the lower tail."""
    small = jnp.exp(-jnp.abs(x))
    return jnp.where(x < 0.0, small, 1.0) / (1.0 + small)


@_elementwise
def softplus(x: Values) -> Values:
    """log(1 + exp(x)) for real x (any shape): positive, to relative accuracy in both tails."""
    return jnp.maximum(x, 0.0) + _log1p_unit(jnp.exp(-jnp.abs(x)))


def log_sigmoid(x: Numeric) -> Float[Array, "..."]:
    """log(1 / (1 + exp(-x))) for real x (any shape): the log-probability of a logit."""
    return -softplus(-_as_float(x))


# Normal distribution. Everything comes from one polynomial for the excess g(t) = h(t) - t >= 0 at t >= 0 of the inverse
# Mills ratio h(t) = density / upper tail: h = t + g has no cancellation, and g is what variances of truncations need.


def _excess(t: Values) -> Values:
    """h(t) - t for t >= 0; decreases from sqrt(2 / pi) like 1 / t."""
    r = 1.0 / (t + 4.0)
    return _polynomial(coefficients.EXCESS, 1.0 - 8.0 * r) * r


def _exp_square(scale: float, t: Array) -> Array:
    """exp(scale t^2). Splitting t keeps the rounding of t^2, magnified by the exponential, out of the result."""
    double = t.dtype == jnp.float64
    t = jnp.minimum(jnp.abs(t), 40.0 if double else 15.0)  # zero or infinite beyond
    grid = 2.0**20 if double else 2.0**8
    coarse = jnp.round(t * grid) * (1.0 / grid)  # its square is exact
    d = scale * (t - coarse) * (t + coarse)
    # A polynomial for exp(d), |d| < 0.06, because XLA would merge exp(a) exp(b) into exp(a + b).
    return jnp.exp(scale * coarse * coarse) * (1.0 + d * (1.0 + d * (0.5 + d * (1.0 / 6.0))))


def _density(t: Values) -> Values:
    return _exp_square(-0.5, t) * (1.0 / _SQRT_2PI)


@_elementwise
def ndtr(x: Values) -> Values:
    """Probability that a standard normal is below x, for real x (any shape), to relative accuracy in the lower tail."""
    t = jnp.abs(x)
    tail = _density(t) * (1.0 / (t + _excess(t)))
    return jnp.where(x < 0.0, tail, 1.0 - tail)


@_elementwise
def log_ndtr(x: Values) -> Values:
    """Log-probability that a standard normal is below x, for real x (any shape), to relative accuracy in both tails.

    -x^2 / 2 far below zero; above zero a small negative number, which underflows at 37.6 (float32: 13.2).
    """
    t = jnp.abs(x)
    mills = 1.0 / (t + _excess(t))
    tail = _density(t) * mills
    rest = 1.0 - tail
    below = -0.5 * t * t
    above = (1.0 - rest) - tail  # what rounding took from `rest`: log1p(-tail) = log(rest) + above
    return jnp.where(x < 0.0, below, above) + _log(jnp.where(x < 0.0, mills * (1.0 / _SQRT_2PI), rest))


@_elementwise
def hazard(x: Values) -> Values:
    """Normal density over distribution function at x, for real x (any shape): the derivative of `log_ndtr`.

    About -x far below zero, accurate there to any x; underflows at 37.6 (float32: 13.2). The EP quantities that cancel
    when built from it are `truncated_mean` and `truncated_variance`.
    """
    t = jnp.abs(x)
    inverse_mills = t + _excess(t)
    density, bounded = _density(t), _finite(inverse_mills)
    return jnp.where(x < 0.0, inverse_mills, density * bounded / (bounded - density))


@_elementwise
def truncated_mean(x: Values) -> Values:
    """x + hazard(x), the mean of a N(x, 1) variable given that it is positive (x real, any shape).

    Positive, to relative accuracy where the sum would cancel (about -1 / x far below zero).
    """
    return jnp.where(x < 0.0, _excess(jnp.abs(x)), x + hazard(x))


@_elementwise
def truncated_variance(x: Values) -> Values:
    """1 - hazard(x) (x + hazard(x)), the variance of a N(x, 1) variable given that it is positive (x real, any shape).

    In (0, 1], to relative accuracy where the difference would cancel (about 1 / x^2 far below zero). Its derivative has
    absolute accuracy only.
    """
    t = jnp.abs(x)
    r = 1.0 / (t + 4.0)
    h = hazard(x)
    return jnp.where(x < 0.0, _polynomial(coefficients.VARIANCE, 1.0 - 8.0 * r) * r * r, 1.0 - h * (_finite(x) + h))


@_elementwise
def erfcx(x: Values) -> Values:
    """exp(x^2) erfc(x) for real x (any shape), to relative accuracy; infinite below -26.6 (float32: -9.4)."""
    t = _SQRT_2 * jnp.abs(x)
    upper = math.sqrt(2.0 / math.pi) / (t + _excess(t))
    return jnp.where(x < 0.0, 2.0 * _exp_square(1.0, x) - upper, upper)


# Gamma family. The recurrence moves x to z = x + 4, where functions of 1 / z <= 1/4 remain. With y = x (x + 3) its four
# terms pair up, y = x (x + 3) and y + 2 = (x + 1) (x + 2), so that its sums cost two divisions and never cancel.


def _recurrence(x: Values) -> tuple[Values, Values, Values, Values]:
    """2 x + 3, y, 1 / y and 1 / (y + 2) for y = x (x + 3), bounded where they no longer matter."""
    x = jnp.minimum(x, 1e150 if x.dtype == jnp.float64 else 1e18)
    y = x * (x + 3.0)
    return 2.0 * x + 3.0, y, 1.0 / y, 1.0 / (y + 2.0)


def _positive(x: Values, value: Values) -> Values:
    """`value` where x >= 0, NaN elsewhere.

    This final choice also ends what XLA may merge into a following sum: it hands a sum of plain arithmetic to a library
    that stores every intermediate array, 10 to 20 times slower.
    """
    return jnp.where(x >= 0.0, value, jnp.nan)


@_elementwise
def lgamma(x: Values) -> Values:
    """Log of the gamma function for x >= 0 (any shape; NaN below).

    Relative accuracy, except around the zeros at 1 and 2: there the absolute error is below 3e-15 (float32: 2e-6).
    """
    z = x + 4.0
    r = 1.0 / z
    stirling = (x - 0.5) * (_log(z) - 1.0) + r * _polynomial(coefficients.LGAMMA, 1.0 - 8.0 * r)
    product = _finite(x) * r * (1.0 - r) * (1.0 - 2.0 * r) * (1.0 - 3.0 * r)  # x (x + 1) (x + 2) (x + 3) / z^4
    return _positive(x, stirling + (0.5 * math.log(2.0 * math.pi) - 4.5) - log(product))


@_elementwise
def digamma(x: Values) -> Values:
    """Derivative of `lgamma` for x > 0 (any shape). Around its zero at 1.46 the absolute error is below 2e-15."""
    z = x + 4.0
    r = 1.0 / z
    s, _, first, second = _recurrence(x)
    rest = r * _polynomial(coefficients.DIGAMMA, 1.0 - 8.0 * r)
    return _positive(x, _log(z) - rest - s * (first + second))


@_elementwise
def trigamma(x: Values) -> Values:
    """Second derivative of `lgamma` for x > 0 (any shape), positive."""
    r = 1.0 / (x + 4.0)
    _, y, first, second = _recurrence(x)
    squares = (2.0 * y + 9.0) * first * first + (2.0 * y + 5.0) * second * second
    return _positive(x, squares + r * _polynomial(coefficients.TRIGAMMA, 1.0 - 8.0 * r))


def _tetragamma(x: Values) -> Values:
    r = 1.0 / (x + 4.0)
    s, y, first, second = _recurrence(x)
    # In this order no product leaves the range of float32.
    cubes = (s * first) * ((y + 9.0) * first) * first + (s * second) * ((y + 3.0) * second) * second
    return _positive(x, -2.0 * cubes - r * r * _polynomial(coefficients.TETRAGAMMA, 1.0 - 8.0 * r))


@_elementwise
def tetragamma(x: Values) -> Values:
    """Third derivative of `lgamma` for x > 0 (any shape), negative."""
    return _tetragamma(x)


@_elementwise
def inverse_digamma(y: Values) -> Values:
    """The x > 0 with digamma(x) = y, for real y (any shape).

    Five Newton steps from the start of Minka (2000), enough for 1e-13 relative over y in [-1e6, 30].
    """
    x = jnp.where(y >= -2.22, jnp.exp(y) + 0.5, -1.0 / (jnp.minimum(y, -2.22) + _EULER))
    for _ in range(5):
        x = x - (digamma(x) - y) / trigamma(x)
    return x


def log_chance(probability: Numeric) -> Float[Array, "..."]:
    """Natural logarithm of a probability (any shape): of zero -inf, with the derivative zero.

    A case that is impossible has no weight in a sum of cases: an infinite derivative would make it no number.
    """
    probability = _as_float(probability)
    possible = probability != 0.0
    return jnp.where(possible, jnp.log(jnp.where(possible, probability, 1.0)), -jnp.inf)


def log_complement(probability: Numeric) -> Float[Array, "..."]:
    """log(1 - p) of a probability p (any shape): of one -inf, with the derivative zero, as `log_chance`."""
    probability = _as_float(probability)
    possible = probability != 1.0
    return jnp.where(possible, jnp.log1p(-jnp.where(possible, probability, 0.0)), -jnp.inf)


def multivariate_lgamma(a: Numeric, d: int) -> Float[Array, "..."]:
    """Log of the multivariate gamma function of dimension d, for a > (d - 1) / 2 (any shape)."""
    return d * (d - 1) / 4.0 * math.log(math.pi) + _sum_of_halves(lgamma, a, d)


def multivariate_digamma(a: Numeric, d: int) -> Float[Array, "..."]:
    """Derivative of `multivariate_lgamma` in a, for a > (d - 1) / 2 (any shape)."""
    return _sum_of_halves(digamma, a, d)


def _sum_of_halves(function: Callable[[Numeric], Array], a: Numeric, d: int) -> Float[Array, "..."]:
    """f(a) + f(a - 1/2) + ... + f(a - (d - 1) / 2)."""
    # One call on an axis, not a loop: reverse mode through a loop loses the custom derivatives of the second order.
    first = _as_float(a)[..., None]
    return jnp.sum(function(first - 0.5 * jnp.arange(d, dtype=first.dtype)), axis=-1)


# Derivatives in closed form, none of which cancels where its function is accurate (but see `truncated_variance`).


def _erfcx_slope(x: Values) -> Values:
    t = _SQRT_2 * jnp.abs(x)
    g = _excess(t)
    # Above zero 2 x erfcx(x) - 2 / sqrt(pi) cancels.
    return (2.0 / math.sqrt(math.pi)) * jnp.where(x < 0.0, math.sqrt(math.pi) * x * erfcx(x) - 1.0, -g / (t + g))


_DERIVATIVES: dict[str, Callable[[Array], Array]] = {
    "log": lambda x: 1.0 / x,
    "sigmoid": lambda x: sigmoid(x) * sigmoid(-x),
    "softplus": sigmoid,
    "ndtr": _density,
    "log_ndtr": hazard,
    "hazard": lambda x: -hazard(x) * truncated_mean(x),
    "truncated_mean": truncated_variance,
    "truncated_variance": lambda x: (
        (1.0 - truncated_variance(x)) * truncated_mean(x) - hazard(x) * truncated_variance(x)
    ),
    "erfcx": _erfcx_slope,
    "lgamma": digamma,
    "digamma": trigamma,
    "trigamma": tetragamma,
    "tetragamma": lambda x: jax.jvp(_tetragamma, (x,), (jnp.ones_like(x),))[1],
    "inverse_digamma": lambda y: 1.0 / trigamma(inverse_digamma(y)),
}

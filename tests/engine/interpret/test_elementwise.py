"""Arithmetic is XLA's, for every pair of edge values of every type."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from cavity.engine.interpret.elementwise import ELEMENTWISE

REALS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.0, 1e-3, 0.3, -0.7, 20.0, 1e10, -1e10, 1e200, np.inf, -np.inf, np.nan]
WHOLE = {
    "int32": [0, 1, -1, 2, 3, -7, 31, 32, 40, 2**31 - 1, -(2**31)],
    "int64": [0, 1, -1, 2, 3, -7, 63, 64, 70, 2**63 - 1, -(2**63)],
    "uint32": [0, 1, 2, 3, 7, 31, 32, 40, 2**32 - 1],
    "uint64": [0, 1, 2, 3, 7, 63, 64, 70, 2**64 - 1],
}
TYPES = {"float64": REALS, **WHOLE, "bool": [False, True]}
ARITHMETIC = ("add", "sub", "mul", "max", "min")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
SHIFTS = ("shift_left", "shift_right_logical", "shift_right_arithmetic")
OF_ONE = (
    "neg", "abs", "sign", "square", "sqrt", "rsqrt", "cbrt", "exp", "exp2", "expm1", "log", "log1p", "logistic", "sin",
    "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "floor", "ceil",
    "is_finite", "erf", "erfc", "erf_inv", "lgamma", "digamma", "bessel_i0e", "bessel_i1e",
)  # fmt: skip
# What the two compute by different series, or what only sums of angles that large tell apart.
LOOSE = dict.fromkeys(("lgamma", "digamma", "erf_inv", "erfc", "igamma", "igammac", "bessel_i0e", "bessel_i1e"), 3e-13)


def pairs(name):
    left, right = zip(*itertools.product(TYPES[name], repeat=2), strict=True)
    return np.array(left, name), np.array(right, name)


@pytest.mark.parametrize("name", OF_ONE)
def test_functions_of_one_number(agree, name):
    values = np.array([*REALS, 0.9, -0.9, 7.5, -30.5])
    if name in ("sin", "cos", "tan"):
        values = values[np.abs(values) < 1e5]
    agree(getattr(lax, name), values, tolerance=LOOSE.get(name, 1e-14))
    for number in values[:3]:
        agree(getattr(lax, name), number, tolerance=LOOSE.get(name, 1e-14))


@pytest.mark.parametrize("type", ["float64", *WHOLE])
def test_arithmetic(agree, type):
    names = [*ARITHMETIC, "div", "rem"]
    agree(lambda a, b: [getattr(lax, name)(a, b) for name in names], *pairs(type))


@pytest.mark.parametrize("type", TYPES)
def test_comparisons(agree, type):
    agree(lambda a, b: [getattr(lax, name)(a, b) for name in COMPARISONS], *pairs(type))


@pytest.mark.parametrize("type", WHOLE)
def test_bits(agree, type):
    names = (*SHIFTS, "bitwise_and", "bitwise_or", "bitwise_xor")
    agree(lambda a, b: [getattr(lax, name)(a, b) for name in names], *pairs(type))
    agree(lambda a: (lax.bitwise_not(a), lax.population_count(a), -a, lax.sign(a), abs(a)), np.array(WHOLE[type], type))


def test_truth_values(agree):
    agree(lambda a, b: (a & b, a | b, a ^ b, ~a, jnp.where(a, b, ~b)), *pairs("bool"))


def test_scalars_are_as_arrays_are(agree):
    def function(a, b):
        return a + b, a * b, a / b, jnp.maximum(a, b), jnp.minimum(a, b), jnp.where(a > b, a, b), a**3, a**-2, a**0

    for a, b in itertools.product(REALS[::2], repeat=2):
        agree(function, a, b)


def test_powers(agree):
    a, b = pairs("float64")
    agree(lambda a, b: [a**k for k in (-3, -1, 0, 1, 2, 3, 5)] + [lax.clamp(a, b, a + 1)], a, b)
    agree(lambda a, b: lax.pow(a, b), a, b)
    agree(lambda a, b: (lax.nextafter(a, b), lax.atan2(a, b)), a, b)


@pytest.mark.parametrize(("source", "target"), list(itertools.product(TYPES, [*TYPES, "float32"])))
def test_conversions(agree, source, target):
    values = TYPES[source]
    if source == "float64":
        values = [*values, 2.0**31, 2.0**32, 2.0**63, 2.0**64, -(2.0**31), -(2.0**63), 1e19, 3e9, -3e9]
    agree(lambda x: lax.convert_element_type(x, target), np.array(values, source))


def test_bits_of_numbers(agree):
    agree(lambda x: lax.bitcast_convert_type(x, jnp.uint64), np.array([x for x in REALS if x == x]))
    agree(lambda x: lax.bitcast_convert_type(x, jnp.float64), np.array([0, 1 << 62, (1 << 63) + (1 << 62)], np.uint64))


def test_rounding(agree):
    halves = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999999999999994, 1e300, np.inf, np.nan, 3.2])
    agree(lambda x: [lax.round(x, lax.RoundingMethod(method)) for method in (0, 1)], halves)


def test_incomplete_gamma_and_beta(agree):
    a, x = (part.ravel() for part in np.meshgrid([0.3, 1.0, 4.5, 30.0], [0.0, 0.2, 1.0, 5.0, 60.0]))
    agree(lambda a, x: (lax.igamma(a, x), lax.igammac(a, x)), a, x, tolerance=1e-12)
    x = np.linspace(0.0, 1.0, a.size)
    agree(lambda a, x: lax.betainc(a, a + 1.0, x), a, x, tolerance=1e-12)


def test_choices(agree):
    which = np.array([0, 1, 2, 1], np.int32)
    agree(lambda w, *cases: lax.select_n(w, *cases), which, *np.arange(12.0).reshape(3, 4))
    agree(lambda w, a, b: jnp.where(w, a, b), True, np.ones(3), np.zeros(3))
    agree(lambda w, a, b: jnp.where(w, a, b), np.array([True, False, True]), 1.0, np.nan)


def test_sorting_knows_the_total_order(agree):
    agree(lambda a, b: lax.sort((a, b), num_keys=2), *pairs("float64"))
    agree(lambda a: jnp.searchsorted(a, a[::-1]), np.array([-np.inf, -1.0, 0.0, 0.0, 2.0, np.inf, np.nan]))


def test_the_table_is_tried():
    """Every rule is named by a test of this file: a new one has to be put to the proof."""
    named = {*OF_ONE, *ARITHMETIC, *COMPARISONS, *SHIFTS}
    named |= {"div", "rem", "and", "or", "xor", "not", "population_count", "integer_pow", "pow", "clamp", "atan2"}
    named |= {"nextafter", "convert_element_type", "bitcast_convert_type", "round", "select_n", "igamma", "igammac"}
    named |= {"regularized_incomplete_beta", "eq_to", "lt_to", "le_to", "add_any", "polygamma", "zeta"}
    assert set(ELEMENTWISE) == named


def test_orders_and_series(agree):
    a, b = pairs("float64")
    for name in ("eq_to", "lt_to", "le_to"):
        primitive = getattr(lax, f"{name}_p")
        agree(primitive.bind, a, b)
    x = np.array([1.5, 2.0, 3.7, 30.0])
    agree(lambda x: (lax.polygamma(jnp.ones_like(x), x), lax.zeta(x, x + 1.0)), x, tolerance=1e-12)
    agree(lambda x: jax.grad(lambda x: jnp.sum(x * x + x))(x), x)

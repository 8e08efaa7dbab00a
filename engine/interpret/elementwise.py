"""Arithmetic, element by element, as XLA does it: whole numbers wrap around, numbers that do not fit are clamped."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .equation import Equation, Function, Rule, Unknown


def of(function: Function) -> Rule:
    """The rule that is a function of arrays of any type."""
    return lambda equation: function


def of_scipy(name: str) -> Rule:
    """The rule that is this function of SciPy's: loading that takes longer than small programs run."""

    def rule(equation: Equation) -> Function:
        from scipy import special

        return getattr(special, name)

    return rule


def by_type(real: Function, whole: Function) -> Rule:
    """The rule with one function for real and one for whole numbers."""
    return lambda equation: real if equation.type.kind == "f" else whole


def divided(a: Any, b: Any) -> Any:
    """Whole numbers divided, rounded towards zero; by zero the number whose bits are all one."""
    quotient = a // b
    if np.asarray(a).dtype.kind == "i":
        quotient = quotient + ((a - quotient * b != 0) & ((a < 0) != (b < 0))).astype(quotient.dtype)
    return np.where(b == 0, _all_ones(quotient.dtype), quotient)[()]


def remainder(a: Any, b: Any) -> Any:
    """What is left of whole numbers, with the sign of the dividend; by zero the dividend."""
    return np.where(b == 0, a, np.fmod(a, b))[()]


def _all_ones(type: np.dtype) -> Any:
    return ~np.zeros((), type)


def larger(equation: Equation) -> Function:
    """The larger; what is no number wins."""
    return _larger if equation.scalar else np.maximum


def smaller(equation: Equation) -> Function:
    """The smaller; what is no number wins."""
    return _smaller if equation.scalar else np.minimum


def _larger(a: Any, b: Any) -> Any:
    return a if a >= b or a != a else b


def _smaller(a: Any, b: Any) -> Any:
    return a if a <= b or a != a else b


def whole_power(equation: Equation) -> Function:
    """A power by multiplications, the ones that JAX does."""
    exponent, one = equation.params["y"], np.ones((), equation.type)[()]
    if exponent == 2:
        return _square

    def power(x: Any) -> Any:
        left, found, square = abs(exponent), None, x
        while left > 0:
            if left & 1:
                found = square if found is None else found * square
            left >>= 1
            if left:
                square = square * square
        if found is None:
            return np.ones_like(x)[()]
        return one / found if exponent < 0 else found

    return power


def power(equation: Equation) -> Function:
    """A power of real numbers."""
    if equation.type.kind != "f":
        raise Unknown(f"pow of {equation.type}")
    return np.power


def _square(x: Any) -> Any:
    return x * x


def sign(x: Any) -> Any:
    """Minus one, zero with its sign, or one."""
    return np.where(x == 0, x, np.sign(x))[()]


def clamp(low: Any, x: Any, high: Any) -> Any:
    """The nearest number between two others."""
    return np.minimum(np.maximum(x, low), high)


def rounded(equation: Equation) -> Function:
    """The nearest whole number; of two the even one, or the one away from zero."""
    if int(equation.params["rounding_method"]) == 1:
        return np.rint
    # Not floor(|x| + 1/2): that sum is rounded.
    return lambda x: np.where(np.abs(x - np.trunc(x)) >= 0.5, np.trunc(x) + np.sign(x), np.rint(x))[()]


def converted(equation: Equation) -> Function:
    """The same numbers in another type: real numbers that are too large for whole ones are clamped, NaN is zero."""
    source, target = equation.type, equation.out_type
    if target.kind == "b":
        return lambda x: x != 0
    if source.kind != "f" or target.kind == "f":
        return lambda x: x.astype(target)
    limits = np.iinfo(target)
    low, high, least, most = float(limits.min), float(limits.max), limits.min, limits.max

    def clamped(x: Any) -> Any:
        inside = np.where((x > low) & (x < high), x, 0).astype(target)
        return np.where(x >= high, target.type(most), np.where(x <= low, target.type(least), inside))[()]

    return clamped


def same_bits(equation: Equation) -> Function:
    """The same bits in another type of the same width."""
    target = equation.out_type
    if equation.type.itemsize != target.itemsize or "b" in (equation.type.kind, target.kind):
        raise Unknown(f"bits of {equation.type} as {target}")
    return lambda x: x.view(target)


def shifted(function: Function, kind: str) -> Rule:
    """The rule of a shift to the right that takes its numbers for signed ("i") or unsigned ("u") ones."""

    def rule(equation: Equation) -> Function:
        own = equation.type
        seen = np.dtype(f"{kind}{own.itemsize}")
        return lambda x, by: function(x.view(seen), by.view(seen)).view(own)

    return rule


def ones(equation: Equation) -> Function:
    """The number of bits that are one."""
    type = equation.type
    bits = np.dtype(f"u{type.itemsize}")
    return lambda x: np.bitwise_count(x.view(bits)).astype(type)


def select(equation: Equation) -> Function:
    """One of several arrays, element by element."""
    if len(equation.ins) > 3:
        return lambda which, *cases: np.choose(which, cases)
    if equation.type.kind != "b":
        return lambda which, first, *rest: np.where(which, rest[0], first)[()] if rest else first
    if not equation.shapes[0] and equation.shapes[1] == equation.shapes[2]:
        return lambda which, no, yes: yes if which else no
    return lambda which, no, yes: np.where(which, yes, no)


def log_gamma(equation: Equation) -> Function:
    """The logarithm of the Gamma function's absolute value: infinite at both ends."""
    own = of_scipy("gammaln")(equation)
    return lambda x: np.where(x == -np.inf, np.inf, own(x))[()]


def digamma(equation: Equation) -> Function:
    """Its derivative: no number at any of the poles."""
    own = of_scipy("digamma")(equation)
    return lambda x: np.where(x == 0, np.nan, own(x))[()]


def in_order(function: Function) -> Rule:
    """The rule of a comparison in the total order of real numbers: -NaN, -inf, ..., -0, 0, ..., inf, NaN."""

    def rule(equation: Equation) -> Function:
        if equation.type.kind != "f":
            return function
        bits = np.dtype(f"i{equation.type.itemsize}")
        most = np.iinfo(bits).max

        def place(x: Any) -> Any:
            whole = x.view(bits)
            return np.where(whole < 0, whole ^ most, whole)

        return lambda a, b: function(place(a), place(b))

    return rule


ELEMENTWISE: dict[str, Rule] = {
    "add": of(operator.add),
    "add_any": of(operator.add),
    "sub": of(operator.sub),
    "mul": of(operator.mul),
    "div": by_type(operator.truediv, divided),
    "rem": by_type(np.fmod, remainder),
    "neg": of(operator.neg),
    "max": larger,
    "min": smaller,
    "clamp": of(clamp),
    "abs": of(abs),
    "sign": by_type(sign, np.sign),
    "integer_pow": whole_power,
    "pow": power,
    "square": of(_square),
    "sqrt": of(np.sqrt),
    "rsqrt": of(lambda x: 1 / np.sqrt(x)),
    "cbrt": of(np.cbrt),
    "exp": of(np.exp),
    "exp2": of(np.exp2),
    "expm1": of(np.expm1),
    "log": of(np.log),
    "log1p": of(np.log1p),
    "logistic": of_scipy("expit"),
    "sin": of(np.sin),
    "cos": of(np.cos),
    "tan": of(np.tan),
    "sinh": of(np.sinh),
    "cosh": of(np.cosh),
    "tanh": of(np.tanh),
    "asin": of(np.arcsin),
    "acos": of(np.arccos),
    "atan": of(np.arctan),
    "atan2": of(np.arctan2),
    "asinh": of(np.arcsinh),
    "acosh": of(np.arccosh),
    "atanh": of(np.arctanh),
    "floor": of(np.floor),
    "ceil": of(np.ceil),
    "round": rounded,
    "is_finite": of(np.isfinite),
    "nextafter": of(np.nextafter),
    "convert_element_type": converted,
    "bitcast_convert_type": same_bits,
    "eq": of(operator.eq),
    "ne": of(operator.ne),
    "lt": of(operator.lt),
    "le": of(operator.le),
    "gt": of(operator.gt),
    "ge": of(operator.ge),
    "eq_to": in_order(operator.eq),
    "lt_to": in_order(operator.lt),
    "le_to": in_order(operator.le),
    "and": of(operator.and_),
    "or": of(operator.or_),
    "xor": of(operator.xor),
    "not": of(operator.invert),
    "population_count": ones,
    "shift_left": of(lambda x, by: np.left_shift(x, by)),
    "shift_right_logical": shifted(np.right_shift, "u"),
    "shift_right_arithmetic": shifted(np.right_shift, "i"),
    "select_n": select,
    "erf": of_scipy("erf"),
    "erfc": of_scipy("erfc"),
    "erf_inv": of_scipy("erfinv"),
    "lgamma": log_gamma,
    "digamma": digamma,
    "polygamma": of_scipy("polygamma"),
    "zeta": of_scipy("zeta"),
    "igamma": of_scipy("gammainc"),
    "igammac": of_scipy("gammaincc"),
    "regularized_incomplete_beta": of_scipy("betainc"),
    "bessel_i0e": of_scipy("i0e"),
    "bessel_i1e": of_scipy("i1e"),
}

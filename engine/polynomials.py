"""Mean and variance of real expressions: polynomials in independent random numbers."""

from __future__ import annotations

import operator
from typing import Any

import jax.numpy as jnp

from ..compiler.expressions import Apply, Expr, Gather, Let, Random
from ..compiler.join import with_directions
from ..compiler.polynomial import monomials, powers, variables
from ..compiler.sums import dependent, unrolled
from ..factors.errors import UnsupportedError
from ..factors.moments import Real, Vector
from ..factors.scalars import LogNormalNumber, covariance, expectation, larger, log_of, number_of
from .evaluate import Scope, along, known, moments, value
from .placed import Placed, mapped, to_event

Powers = dict[tuple, int]  # atoms by key, with their exponents


def real_moments(expr: Expr, scope: Scope) -> Placed:
    """Mean and variance of a polynomial in independent numbers."""
    terms = monomials(expr, lambda e: known(e, scope))
    if scope.joints:
        terms = [part for monomial in terms for part in unrolled(monomial, scope.sizes)]
        terms = with_directions(terms, scope.joint_of, lambda e: known(e, scope))
    found: dict[tuple, Placed] = {}
    parts: list[tuple[list[Placed], Powers]] = []
    for coefficients, atoms in terms:
        bases = powers(atoms)
        for key, (base, _) in bases.items():
            if key not in found:
                found[key] = _number(base, scope)
        exponents = {key: exponent for key, (_, exponent) in bases.items()}
        parts.append(([value(c, scope) for c in coefficients], exponents))
    return _sum(parts, found, expr)


def _sum(parts: list[tuple[list[Placed], Powers]], found: dict[tuple, Placed], expr: Expr) -> Placed:
    keys = [key for _, exponents in parts for key in exponents]
    sizes = [len(coefficients) for coefficients, _ in parts]
    data = [c for coefficients, _ in parts for c in coefficients]
    products = [exponents for _, exponents in parts]
    independent = len(keys) == len(set(keys))

    def combine(*args):
        values, numbers = list(args[: len(data)]), dict(zip(found, args[len(data) :], strict=True))
        scales = []
        for size in sizes:
            scale = 1.0
            for v in values[:size]:
                scale = scale * v
            values = values[size:]
            scales.append(scale)
        pairs = list(zip(scales, products, strict=True))
        mean = sum(scale * _mean(numbers, product) for scale, product in pairs)
        if independent:
            variance = sum(scale**2 * _covariance(numbers, p, p) for scale, p in pairs if p)
        else:
            variance = sum(
                s * t * _covariance(numbers, p, q) for s, p in pairs for t, q in pairs if p.keys() & q.keys()
            )
        return Real(mean, variance + jnp.zeros_like(mean))

    return mapped(combine, *data, *found.values(), order=expr.plates)


def _mean(numbers: dict, product: Powers) -> Any:
    total = 1.0
    for key, exponent in product.items():
        total = total * expectation(numbers[key], exponent)
    return total


def _covariance(numbers: dict, left: Powers, right: Powers) -> Any:
    """Cov of two products of independent numbers, of which they share some."""
    apart, together = 1.0, 0.0  # E l E r and Cov(l, r) of the factors so far
    for key in dict.fromkeys([*left, *right]):
        n, k = left.get(key, 0), right.get(key, 0)
        own = 1.0
        for exponent in (n, k):
            own = own * expectation(numbers[key], exponent) if exponent else own
        cross = covariance(numbers[key], n, k) if n and k else 0.0
        together = together * (own + cross) + apart * cross
        apart = apart * own
    return together


def stack_moments(expr: Apply, scope: Scope) -> Placed:
    """Mean and covariance of a vector of numbers; Cov(a, b) = (Var(a + b) - Var(a - b)) / 4 where they share some."""
    if "over" in dict(expr.options):
        over = expr.option("over")
        if dependent(expr.args[0], over, lambda e: known(e, scope)):
            raise UnsupportedError(
                f"'{expr}' makes a vector of elements over plate '{over.name}' that share random variables, so they "
                "are dependent. Stack variables of that plate alone, and add what they share outside."
            )
        found = along(moments(expr.args[0], scope, "real"), expr, scope)
        return mapped(lambda x: Vector(x.mean, jnp.diag(x.variance)), found)
    apart = [{v for v in variables(arg) if not known(v, scope)} for arg in expr.args]
    own = [moments(arg, scope, "real") for arg in expr.args]
    pairs = [(i, j) for j in range(len(own)) for i in range(j) if apart[i] & apart[j]]
    sums = [
        real_moments(sign(expr.args[i], expr.args[j]), scope) for i, j in pairs for sign in (operator.add, operator.sub)
    ]

    def stacked(*found):
        numbers, both = found[: len(own)], found[len(own) :]
        covariance = jnp.diag(jnp.stack([number.variance for number in numbers]))
        for (i, j), up, down in zip(pairs, both[::2], both[1::2], strict=True):
            cross = 0.25 * (up.variance - down.variance)
            covariance = covariance.at[i, j].set(cross).at[j, i].set(cross)
        return Vector(jnp.stack([number.mean for number in numbers]), covariance)

    return mapped(stacked, *own, *sums, order=expr.plates)


# Atoms ----------------------------------------------------------------------------------------------------------------


def _number(expr: Expr, scope: Scope) -> Placed:
    """What an atom is distributed as."""
    if not isinstance(expr, Apply):
        return mapped(number_of, moments(expr, scope, expr.domain.kind))
    if expr.op == "dot":
        left, right = expr.args
        if known(left, scope):
            left, right = right, left
        if known(right, scope):
            return mapped(_project, moments(left, scope, "vector"), value(right, scope), order=expr.plates)
        return mapped(_dot, moments(left, scope, "vector"), moments(right, scope, "vector"), order=expr.plates)
    if expr.op == "exp":
        argument = moments(expr.args[0], scope, "real")
        return mapped(lambda s: LogNormalNumber(s.mean, s.variance), argument, order=expr.plates)
    if expr.op == "log" and _is_variable(expr.args[0]):
        return mapped(log_of, moments(expr.args[0], scope, expr.args[0].domain.kind), order=expr.plates)
    if expr.op == "sum":
        own = to_event(real_moments(expr.args[0], scope), expr.option("over"))
        return mapped(lambda s: Real(s.mean.sum(), s.variance.sum()), own, order=expr.plates)
    if expr.op == "max":
        left, right = expr.args
        operands = [moments(e, scope, "real") for e in (left, right, left - right)]
        return mapped(larger, *operands, order=expr.plates)
    raise UnsupportedError(
        f"The real expression '{expr}' ({expr.op}) has no moments in closed form; sums, products, quotients and powers "
        "of variables, cv.dot, cv.max, cv.min, cv.exp, and cv.log of positive variables do."
    )


def _is_variable(expr: Expr) -> bool:
    while isinstance(expr, (Gather, Let)):
        expr = expr.source if isinstance(expr, Gather) else expr.expression
    return isinstance(expr, Random) and expr.domain.kind in ("positive", "unit")


def _dot(a: Vector, b: Vector) -> Real:
    # One inner product of concatenated parts: over plates a single matrix product.
    left = jnp.concatenate([(a.covariance + jnp.outer(a.mean, a.mean)).ravel(), a.covariance.ravel()])
    right = jnp.concatenate([b.covariance.ravel(), jnp.outer(b.mean, b.mean).ravel()])
    return Real(jnp.dot(a.mean, b.mean), jnp.dot(left, right))


def _project(a: Vector, x: Any) -> Real:
    return Real(jnp.dot(a.mean, x), jnp.dot(x @ a.covariance, x))

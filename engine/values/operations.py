"""What JAX computes for the operations of the language: the value of each, and the formula of each rule of VMP.

The operations are declared in `compiler/language/operations.py`, the rules in `compiler/algebra/averages.py`. Values
are functions of one instance of the operands; a formula takes a rule, the values of its data and the moments of its
parts.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from ...compiler.algebra import averages as rules
from ...compiler.language.nodes import Apply
from ...factors import LINKS
from ...factors.factor import RUNNING_LINKS, VECTOR_LINKS
from ...factors.families.matrices import covariance_of, outer, regular_inverse
from ...factors.moments import Boolean, PosDef, Positive, Real, Vector
from ...factors.scalars import LogNormalNumber, larger, log_of, number_of, power_of
from .joint_beliefs import together
from .plated import Placed, mapped, to_event
from .polynomial_moments import polynomial
from .scope import Scope

# Values ---------------------------------------------------------------------------------------------------------------

VALUES: dict[str, Callable[..., PyTree]] = {
    "add": jnp.add,
    "subtract": jnp.subtract,
    "negate": jnp.negative,
    "multiply": jnp.multiply,
    "divide": jnp.divide,
    "power": lambda x, exponent: x**exponent,
    "max": jnp.maximum,
    "log": jnp.log,
    "tanh": jnp.tanh,
    "sin": jnp.sin,
    "cos": jnp.cos,
    "where": jnp.where,
    "dot": jnp.dot,
    "matvec": jnp.matmul,
    "stack": lambda *numbers: jnp.stack(numbers),
    "covariance": covariance_of,
    "inverse": regular_inverse,
    "and": jnp.logical_and,
    "or": jnp.logical_or,
    "xor": jnp.logical_xor,
    "not": jnp.logical_not,
    "equal": jnp.equal,
    "greater": jnp.greater,
    **{name: link.value for name, link in LINKS.items() if name not in (*VECTOR_LINKS, *RUNNING_LINKS)},
}
"""Of one instance of the operands."""
ALONG: dict[str, Callable[..., PyTree]] = {
    "sum": lambda x: jnp.sum(x, axis=0),  # also of vectors
    "all": jnp.all,
    "any": jnp.any,
    "stack": lambda elements: elements,
    **{name: LINKS[name].value for name in (*VECTOR_LINKS, *RUNNING_LINKS)},
}
"""Of all elements along the plate `over`, the first axis."""
REPEATED: dict[str, Callable[..., PyTree]] = {
    "sum": lambda x, times: times * x,
    "all": lambda x, _: x,
    "any": lambda x, _: x,
}
"""The same of as many equal elements, where that is simpler."""
VALUELESS = {"together": "its members are read from their beliefs, and have no value as one vector"}


def point_function(expr: Apply) -> Callable[..., PyTree]:
    """The function of one scalar instance that `expr` applies."""
    function, options = VALUES[expr.op], dict(expr.options)
    if expr.domain.is_category:  # truth values are added as 0 and 1
        return lambda *numbers: function(*(jnp.asarray(number, jnp.int32) for number in numbers), **options)
    return (lambda *numbers: function(*numbers, **options)) if options else function


def over_plate(expr: Apply, found: Placed, scope: Scope) -> Placed:
    """What `expr` makes of all elements along a plate; what is the same along the plate is counted."""
    over = expr.option("over")
    if over not in set(found.plates) and expr.op in REPEATED:
        times = scope.sizes[over.name]
        return mapped(lambda x: REPEATED[expr.op](x, times), found, order=expr.plates)
    return kept(expr, mapped(ALONG[expr.op], along(expr, found, scope), order=expr.plates))


def kept(expr: Apply, found: Placed) -> Placed:
    """With the event axis that an operation runs along as a plate again, where its result has that plate."""
    over = expr.option("over")
    return Placed(found.value, (*found.plates, over)) if over in set(expr.plates) else found


def along(expr: Apply, found: Placed, scope: Scope) -> Placed:
    """The elements along the plate of an operation as an event; what is the same along the plate is repeated."""
    over = expr.option("over")
    if over in set(found.plates):
        return to_event(found, over)
    return mapped(
        lambda x: jax.tree.map(lambda a: jnp.broadcast_to(a, (scope.sizes[over.name], *jnp.shape(a))), x), found
    )


# Moments --------------------------------------------------------------------------------------------------------------


def _linked(rule: rules.Linked, scope: Scope, argument: Placed) -> Placed:
    assert isinstance(rule.expr, Apply)
    link = LINKS[rule.expr.op]
    bound = scope.bound if scope.bound in link.bounds else next(iter(link.bounds))
    if rule.expr.over is None:
        return Placed(link.moments(argument.value, bound), argument.plates)
    argument = along(rule.expr, argument, scope)
    return kept(rule.expr, Placed(link.moments(argument.value, bound), argument.plates))


PROBABILITIES: dict[str, Callable[..., PyTree]] = {
    "not": lambda p: 1 - p,
    "and": lambda p, q: p * q,
    "or": lambda p, q: 1 - (1 - p) * (1 - q),
    "xor": lambda p, q: p + q - 2 * p * q,
    "equal": lambda p, q: 1 - p - q + 2 * p * q,
}
"""Of a logical operation, from those of independent operands."""


def _logical(rule: rules.Logical, *operands: Boolean) -> Boolean:
    assert isinstance(rule.expr, Apply)
    return Boolean(PROBABILITIES[rule.expr.op](*(operand.probability for operand in operands)))


def _quotient(rule: rules.Quotient, above: Positive, below: Positive) -> Positive:
    inverse = power_of(below, rule.exponent)
    return Positive(above.mean * inverse.mean, above.log + inverse.log)


def _scaled(rule: rules.Scaled, v: Vector, s: Real) -> Vector:
    second = v.covariance + outer(v.mean, v.mean)
    return Vector(s.mean * v.mean, s.mean**2 * v.covariance + s.variance * second)


def _stacked(rule: rules.Stacked, *found: Real) -> Vector:
    assert isinstance(rule.expr, Apply)
    count = len(rule.expr.args)
    numbers, both = found[:count], found[count:]
    covariance = jnp.diag(jnp.stack([number.variance for number in numbers]))
    for (i, j), up, down in zip(rule.pairs, both[::2], both[1::2], strict=True):
        cross = 0.25 * (up.variance - down.variance)
        covariance = covariance.at[i, j].set(cross).at[j, i].set(cross)
    return Vector(jnp.stack([number.mean for number in numbers]), covariance)


_FAR = 0.99  # a correlation that is looked at


def _inverse_covariance(rule: rules.InverseCovariance, *found: Positive | Real) -> PosDef:
    """Powers of the scales in closed form; the correlations at two points each, one sd of all of them away."""
    scales = [part for part in found if isinstance(part, Positive)]
    r = [part for part in found if isinstance(part, Real)]
    means = jnp.stack([part.mean for part in r])
    reach = jnp.sqrt(len(r) * jnp.maximum(jnp.stack([part.variance for part in r]), 1e-12))
    steps = jnp.concatenate([jnp.diag(reach), -jnp.diag(reach)])
    points = jnp.clip(means + steps, -_FAR, _FAR)
    inverse = jax.vmap(lambda p: regular_inverse(covariance_of(jnp.ones(len(scales)), p)))(points).mean(0)
    one, two = (jnp.stack([power_of(s, n).mean for s in scales]) for n in (-1, -2))
    across = outer(one, one)
    across = across - jnp.diag(jnp.diag(across)) + jnp.diag(two)
    level = jnp.log1p(-(points**2)).sum(-1).mean() + 2.0 * sum(s.log for s in scales)
    return PosDef(across * inverse, -level)


def _inner_product(rule: rules.InnerProduct, a: Vector, b: Vector) -> Real:
    # One inner product of concatenated parts: over plates a single matrix product.
    left = jnp.concatenate([(a.covariance + outer(a.mean, a.mean)).ravel(), a.covariance.ravel()])
    right = jnp.concatenate([b.covariance.ravel(), outer(b.mean, b.mean).ravel()])
    return Real(jnp.dot(a.mean, b.mean), jnp.dot(left, right))


def _squared_length(rule: rules.SquaredLength, a: Vector) -> Real:
    """a . a of a Gaussian vector."""
    spread = a.covariance @ (a.covariance + 2.0 * outer(a.mean, a.mean))
    return Real(jnp.dot(a.mean, a.mean) + jnp.trace(a.covariance), 2.0 * jnp.trace(spread))


def _along(function: Callable[[PyTree], PyTree]) -> Callable[..., Placed]:
    """The formula that applies a function to all elements along a plate."""
    return lambda rule, scope, found: mapped(function, along(rule.expr, found, scope), order=rule.expr.plates)


EACH: dict[type[rules.Average], Callable[..., PyTree]] = {
    rules.Logical: _logical,
    rules.Product: lambda rule, a, b: Positive(a.mean * b.mean, a.log + b.log),
    rules.KnownQuotient: lambda rule, a, b: Positive(a.mean / b.mean, a.log - b.log),
    rules.Power: lambda rule, x: power_of(x, rule.exponent),
    rules.Quotient: _quotient,
    rules.Chosen: lambda rule, c, a, b: jax.tree.map(lambda x, y: jnp.where(c, x, y), a, b),
    rules.VectorSum: lambda rule, a, b: Vector(a.mean + b.mean, a.covariance + b.covariance),
    rules.VectorDifference: lambda rule, a, b: Vector(a.mean - b.mean, a.covariance + b.covariance),
    rules.Opposite: lambda rule, a: Vector(-a.mean, a.covariance),
    rules.MatrixProduct: lambda rule, a, v: Vector(a @ v.mean, a @ v.covariance @ a.T),
    rules.Scaled: _scaled,
    rules.InverseCovariance: _inverse_covariance,
    rules.ScaledMatrix: lambda rule, p, s: PosDef(s.mean * p.mean, p.log_det + p.mean.shape[-1] * s.log),
    rules.Stacked: _stacked,
    rules.Polynomial: polynomial,
    rules.Number: lambda rule, x: number_of(x),
    rules.InnerProductWithData: lambda rule, x, a: Real(jnp.dot(a.mean, x), jnp.dot(x @ a.covariance, x)),
    rules.SquaredLength: _squared_length,
    rules.InnerProduct: _inner_product,
    rules.Exponential: lambda rule, s: LogNormalNumber(s.mean, s.variance),
    rules.Logarithm: lambda rule, x: log_of(x),
    rules.Larger: lambda rule, a, b, difference: larger(a, b, difference),
}
"""Formulas of one instance of the data and the parts."""
WHOLE: dict[type[rules.Average], Callable[..., Placed]] = {
    rules.Linked: _linked,
    rules.PlateSum: _along(lambda v: Vector(v.mean.sum(0), v.covariance.sum(0))),
    rules.Elements: _along(lambda x: Vector(x.mean, jnp.diag(x.variance))),
    rules.NumberSum: _along(lambda s: Real(s.mean.sum(), s.variance.sum())),
    rules.JointVector: lambda rule, scope: together(
        rule.expr.args, rule.expr.plates, scope.moments, scope.joints, scope.sizes
    ),
}
"""Formulas of all instances at once."""


def averaged(rule: rules.Average, scope: Scope, *found: Placed) -> Placed:
    """The moments that a rule gives, from the values of its data and the moments of its parts."""
    if type(rule) in WHOLE:
        return WHOLE[type(rule)](rule, scope, *found)
    return mapped(lambda *each: EACH[type(rule)](rule, *each), *found, order=rule.expr.plates)

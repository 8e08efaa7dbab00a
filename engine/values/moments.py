"""Moments of expressions, from those of their random variables.

This is all of VMP and NCVMP, since a message is the gradient of an expected log density in the moments that went in.
Which rule averages an expression, the compiler says (`compiler/algebra/averaging.py`).
"""

from __future__ import annotations

import jax.numpy as jnp

from ...compiler.algebra.averages import NUMBER, POLYNOMIAL
from ...compiler.algebra.averaging import average
from ...compiler.algebra.polynomial import Rewrite, monomials
from ...compiler.algebra.sums import all_unrolled
from ...compiler.language.atoms import Monomial
from ...compiler.language.nodes import Apply, Expr, Gather, IsData, Let, Random, parents
from ...compiler.passes.join import Direction, spans, with_directions
from ...factors import LINKS
from ...factors.arrays import Array
from ...factors.errors import UnsupportedError
from ...factors.families import FOR_DOMAIN
from ...factors.families.base import Moments
from ...factors.moments import BY_KIND, Real, Vector
from ...factors.scalars import READ_AS
from .evaluate import gather, known, value
from .joint_beliefs import member_moments
from .operations import along, averaged, kept
from .plated import Placed, mapped
from .scope import Scope


def moments(expr: Expr, scope: Scope, kind: str | None = None) -> Placed:
    """The moments of `expr`, read as `kind` (its own domain's by default), of the domains and the two of `averages.py`.

    A gather by a random index keeps the plate it chooses from. UnsupportedError where VMP has no rule.
    """
    kind = kind or expr.domain.kind
    if kind in (NUMBER, POLYNOMIAL):
        return _by_rule(expr, scope, kind)
    if isinstance(expr, Random) and (joint := scope.joint_of(expr)) is not None:
        own = member_moments(expr, joint, scope.moments[joint.variable.name], scope.sizes)
        return Placed(_cast(own, kind, expr), expr.plates)
    if isinstance(expr, (Random, Let)) and expr.name in scope.moments:
        return _cast_placed(scope.seen(scope.moments[expr.name], expr.plates), kind, expr)
    if known(expr, scope):
        return point(kind, value(expr, scope), None if kind != "category" else scope.size(expr.domain.size))
    if isinstance(expr, Let):
        return moments(expr.expression, scope, kind)
    if isinstance(expr, Gather):
        source = moments(expr.source, scope, kind)
        return gather(source, value(expr.index, scope), expr) if known(expr.index, scope) else source
    assert isinstance(expr, Apply), f"{expr} has no belief yet"
    return _cast_placed(_by_rule(expr, scope, kind), kind, expr)


def _by_rule(expr: Expr, scope: Scope, kind: str) -> Placed:
    if (scores := scores_together(expr, scope)) is not None:
        assert isinstance(expr, Apply)
        jointly = LINKS[expr.op].jointly
        assert jointly is not None
        return kept(expr, Placed(jointly(scores.value), scores.plates))
    is_known, rewrite = _readers(scope)
    rule = average(expr, kind, is_known, rewrite if scope.joints else None)
    data = [value(e, scope) for e in rule.data]
    return averaged(rule, scope, *data, *(moments(e, scope, own) for e, own in rule.parts))


def _readers(scope: Scope) -> tuple[IsData, Rewrite]:
    """What is known, and the members of a joint belief as inner products with it."""

    def is_known(e: Expr) -> bool:
        return known(e, scope)

    def rewrite(terms: list[Monomial]) -> list[Monomial]:
        return with_directions(all_unrolled(terms, scope.sizes), scope.joint_of, is_known)

    return is_known, rewrite


def scores_together(expr: Expr, scope: Scope) -> Placed | None:
    """The argument of a link of a plate as a Gaussian vector, where its elements share beliefs; None elsewhere."""
    if not scope.joints or not spans(expr, scope.bound, scope.sizes):
        return None
    argument, over = expr.args[0], expr.option("over")
    covariances, directions = [], []
    for _, atoms in monomials(argument, *_readers(scope)):
        for part in parents(atoms[0]) if len(atoms) == 1 else ():
            if isinstance(part, Direction) and over in set(part.plates) and not part.joint.variable.plates:
                covariances.append(scope.moments[part.joint.variable.name].covariance)
                directions.append(along(expr, value(part, scope), scope))
    if not directions:
        return None

    def vector(score: Real, *directions: Array) -> Vector:
        shared = [d @ own @ d.T for d, own in zip(directions, covariances, strict=True)]
        return _with_covariances(score, sum(shared[1:], shared[0]))

    return mapped(vector, along(expr, moments(argument, scope, "real"), scope), *directions)


def _with_covariances(score: Real, covariance: Array) -> Vector:
    """Elements with these variances of their own, and covariances between them."""
    own = jnp.eye(covariance.shape[-1], dtype=bool)
    return Vector(score.mean, jnp.where(own, score.variance, covariance))


def point(kind: str, placed: Placed, size: int | None = None) -> Placed:
    """The moments of known values read as the given kind of domain."""
    if kind in ("concentration", "vector"):
        zeros = jnp.zeros((*placed.value.shape, placed.value.shape[-1]))
        return Placed(Vector(placed.value, zeros), placed.plates)
    if kind == "natural":  # parameters of a given belief, which are no values of a variable
        return placed
    family = FOR_DOMAIN[kind]
    if kind == "category":
        assert size is not None
        return Placed(family.moments_at(placed.value, size), placed.plates)
    values = placed.value if kind == "boolean" else jnp.asarray(placed.value, float)
    return Placed(family.moments_at(values), placed.plates)


def _cast(found: Moments, kind: str, expr: Expr) -> Moments:
    wanted = BY_KIND.get(kind, Vector)
    if isinstance(found, wanted):
        return found
    if (wanted, type(found)) in READ_AS:
        return READ_AS[wanted, type(found)](found)
    raise UnsupportedError(
        f"'{expr}' is {expr.domain} and is used where a {kind} value is needed. "
        f"Its distribution gives no {kind} moments: "
        "map it with cv.exp, cv.log, cv.logistic or declare it in the domain that the factor needs."
    )


def _cast_placed(placed: Placed, kind: str, expr: Expr) -> Placed:
    return Placed(_cast(placed.value, kind, expr), placed.plates)

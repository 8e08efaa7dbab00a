"""The mean and variance of an expression, or its probabilities, over a cloud; and the family that has them."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Float

from ...compiler.language.monomials import expand
from ...compiler.language.nodes import Apply, Expr, Let, Random, applies, inside, parents
from ...compiler.language.operations import MAX, WHERE
from ...factors.arrays import Array
from ...factors.domains import Domain
from ...factors.families import FOR_DOMAIN, Family, TwoMomentFamily
from ...factors.moments import POINT_VARIANCE, Boolean, Category
from ...factors.special import ndtr
from ..distributions.belief_points import diverges
from . import clouds
from .clouds import Cloud, Form, NumberKey
from .parts import Data, IsKnown, evaluated, key_of
from .transformed import matching

Statistics = Array | tuple[Array, Array]


def beside(array: Float[Array, "elements ..."]) -> Float[Array, "elements 1 1 ..."]:
    """Data by element beside (elements, cases, nodes)."""
    return array.reshape((array.shape[0], 1, 1, *array.shape[1:]))


def statistics(node: Let, cloud: Cloud, data: Data, is_known: IsKnown, line: bool = False) -> Statistics:
    """Mean and variance of a number or the probability of a boolean, (instances,); of a category (instances, states).

    Where the cloud is a `line` of points over all of one belief, a moment may be infinite.
    """
    expr, form = node.expression, form_of(node, cloud, is_known)
    if node.domain.is_category:
        values = clouds.spread(cloud, form)
        states = jnp.arange(_states(node))
        outcome = jnp.asarray(evaluated(expr, values.at, data, is_known), int)
        shares = [clouds.expectation(values, lambda _, s=s: jnp.asarray(outcome == s, float))[0] for s in states]
        return jnp.stack(shares, axis=-1)
    if node.domain.is_boolean:
        if (margin := _gaussian_margin(expr, cloud, is_known)) is not None:
            return _above_zero(cloud, lambda at: evaluated(margin, at, data, is_known))
        values = clouds.spread(cloud, form)
        return clouds.expectation(values, lambda at: jnp.asarray(evaluated(expr, at, data, is_known), float))[0]
    values = clouds.spread(cloud, form)
    mean, variance = clouds.expectation(values, lambda at: jnp.asarray(evaluated(expr, at, data, is_known), float))
    if not line or cloud.names:
        return mean, variance
    size = jnp.abs(jnp.broadcast_to(evaluated(expr, values.at, data, is_known), values.weights.shape))[..., 0].T
    weights = values.weights[..., 0].T
    endless = [diverges(weights, jnp.where(weights > 0.0, weights * size**power, 0.0)) for power in (1, 2)]
    return jnp.where(endless[0], jnp.inf, mean), jnp.where(endless[1], jnp.inf, variance)


def form_of(node: Let, cloud: Cloud, is_known: IsKnown) -> Form:
    """What an expression is as a function of the numbers that are Gaussian in every case of a cloud."""
    if node.domain.is_discrete:
        return Form.JUMPS
    parts = [part for part in inside([node.expression]) if applies(part, WHERE, MAX) and not is_known(part)]
    if any(applies(part, WHERE) and not is_known(part.args[0]) for part in parts):
        return Form.JUMPS
    if any(applies(part, MAX) for part in parts):
        return Form.BENT
    return Form.LINEAR if is_linear(node.expression, cloud, is_known) else Form.SMOOTH


def _states(node: Let) -> int:
    size = node.domain.size
    return size if isinstance(size, int) else size.size


def of_classes(expr: Apply) -> bool:
    """Whether a comparison is of classes, which have no difference with numbers."""
    return any(arg.domain.is_discrete for arg in expr.args)


def _gaussian_margin(expr: Expr, cloud: Cloud, is_known: IsKnown) -> Expr | None:
    """left - right of a comparison that is linear in numbers that are Gaussian in every case."""
    while isinstance(expr, Let):
        expr = expr.expression
    if not (isinstance(expr, Apply) and expr.op == "greater" and cloud.names):
        return None
    if of_classes(expr):
        return None
    margin = expr.args[0] - expr.args[1]
    return margin if is_linear(margin, cloud, is_known) else None


def is_linear(expr: Expr, cloud: Cloud, is_known: IsKnown) -> bool:
    """Whether an expression is linear in the numbers that are Gaussian in every case of a cloud."""
    names = set(cloud.names)

    def fixed(node: Expr) -> bool:
        if is_known(node):
            return True
        if (key := key_of(node, is_known)) is not None:
            return key not in names
        return not isinstance(node, Random) and bool(parents(node)) and all(map(fixed, parents(node)))

    return all(len(atoms) < 2 and all(key_of(a, is_known) in names for a in atoms) for _, atoms in expand(expr, fixed))


def _above_zero(cloud: Cloud, margin: Callable[[dict[NumberKey, Array]], Array]) -> Float[Array, " instances"]:
    """P(margin > 0), the margin Gaussian in every case."""
    values = clouds.spread(cloud)
    margins = jnp.broadcast_to(margin(values.at), values.weights.shape)
    inside = values.weights / jnp.maximum(jnp.sum(values.weights, axis=2, keepdims=True), 1e-300)
    mean = jnp.sum(inside * margins, axis=2, keepdims=True)
    variance = jnp.sum(inside * (margins - mean) ** 2, axis=2)
    p = jnp.where(
        variance <= 0.0, mean[..., 0] > 0.0, ndtr(mean[..., 0] / jnp.sqrt(jnp.maximum(variance, POINT_VARIANCE)))
    )
    return jnp.sum(jnp.sum(values.weights, axis=2) * p, axis=1)


def family_with(domain: Domain, found: Statistics) -> Family:
    """The family of a domain with these statistics, which are those of `statistics` with the axes of plates."""
    if domain.is_discrete:
        assert not isinstance(found, tuple)
        if domain.is_category:
            return FOR_DOMAIN["category"].from_moments(Category(jnp.maximum(found, 0.0)))
        return FOR_DOMAIN["boolean"].from_moments(Boolean(jnp.clip(found, 0.0, 1.0)))
    mean, variance = found
    variance = jnp.maximum(variance, POINT_VARIANCE)
    # The mean and the variance of a count, or of a number that may be zero, decide no member of its own family.
    kind = domain.kind if issubclass(FOR_DOMAIN[domain.kind], TwoMomentFamily) else "real"
    return matching(kind, mean, variance)

"""Joint Gaussian beliefs: where their members stand in the vector, and what the members' moments are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import jax.numpy as jnp
from jaxtyping import PyTree

from ...compiler.blocks.site import LinearTerm
from ...compiler.graph import Joint, Plan
from ...compiler.language.nodes import Expr, Plate, Random
from ...compiler.passes.join import Direction, dimension
from ...factors.arrays import Array
from ...factors.families import FOR_DOMAIN, ExponentialFamily
from ...factors.moments import Real, Vector
from .plated import Placed, mapped, to_event

Evaluate = Callable[[Expr, dict[str, Array]], Placed]  # an expression, with extra data by name


def joint_sizes(graph: Plan) -> dict[str, int]:
    """The dimensions of the joint beliefs, as sizes of the plates that stand for them."""
    axes = [joint.variable.domain.size for joint in graph.joints]
    return {axis.name: axis.size for axis in axes}


def offsets(joint: Joint, sizes: Mapping[str, int]) -> dict[str, int]:
    """The first position of every member in an element of the joint belief."""
    found, total = {}, 0
    for member in joint.members:
        found[member.name] = total
        total += dimension(member, joint.variable.plates, sizes)
    return found


def given_places(
    joint: Joint, partly: Mapping[str, PyTree], data: Mapping[str, PyTree], sizes: Mapping[str, int]
) -> Array | None:
    """One at the dimensions of a joint belief whose entries the data give, zero elsewhere; None where none are."""
    if not any(member.name in partly for member in joint.members):
        return None
    plates, parts = joint.variable.plates, []
    for member in joint.members:
        shape = (*(sizes[plate.name] for plate in plates), dimension(member, plates, sizes))
        own = jnp.zeros(shape)
        if member.name in partly:
            given = jnp.asarray(data[partly[member.name].given.name], float)
            own = jnp.repeat(given[..., None], member.domain.size or 1, axis=-1).reshape(shape)
        parts.append(own)
    return jnp.concatenate(parts, axis=-1)


def direction_value(expr: Direction, evaluate: Evaluate, sizes: Mapping[str, int]) -> Placed:
    """The vector of a direction; `evaluate(expr, extra)` gives the value of an expression with extra data by name."""
    start, plates = offsets(expr.joint, sizes), expr.joint.variable.plates
    total = sum(dimension(member, plates, sizes) for member in expr.joint.members)
    parts = []
    for term in expr.terms:
        coefficients = [evaluate(c, {}) for c in term.coefficients]
        along = Placed(jnp.ones(1), ()) if term.direction is None else evaluate(term.direction, {})
        first, width = start[term.variable.name], term.variable.domain.size or 1
        if term.over is not None:
            position = _along(_position(term, evaluate, sizes), term.over, sizes)
            each = _along(mapped(_product, *coefficients), term.over, sizes)

            def summed(position, each, first=first):
                return jnp.zeros(total).at[first + position].add(each)

            parts.append(mapped(summed, position, each))
            continue
        if plates or not term.variable.plates:  # the place is known: no scatter, which takes its rows one by one

            def placed(along, *coefficients, first=first, width=width):
                own = along * math.prod(coefficients, start=jnp.ones(()))
                return jnp.concatenate([jnp.zeros(first), own, jnp.zeros(total - first - width)])

            parts.append(mapped(placed, along, *coefficients))
            continue

        def vector(position, along, *coefficients, first=first, width=width):
            places = first + position * width + jnp.arange(width)
            return jnp.zeros(total).at[places].set(along * math.prod(coefficients, start=jnp.ones(())))

        parts.append(mapped(vector, _position(term, evaluate, sizes), along, *coefficients))
    return mapped(lambda *vectors: sum(vectors), *parts, order=expr.plates)


def _product(*coefficients: Array) -> Array:
    return math.prod(coefficients, start=jnp.ones(()))


def _along(placed: Placed, over: Plate, sizes: Mapping[str, int]) -> Placed:
    """A value for each element of a plate, as an event."""
    if over in set(placed.plates):
        return to_event(placed, over)
    return mapped(lambda x: jnp.broadcast_to(x, (sizes[over.name],)), placed)


def _position(term: LinearTerm, evaluate: Evaluate, sizes: Mapping[str, int]) -> Placed:
    """Which element of its variable a term takes."""
    shape = tuple(sizes[plate.name] for plate in term.variable.plates)
    numbers = jnp.arange(math.prod(shape), dtype=jnp.int32).reshape(shape)
    return evaluate(term.element, {term.variable.name: numbers})


def member_moments(member: Random, joint: Joint, moments: Vector, sizes: Mapping[str, int]) -> Real | Vector:
    """The moments of all elements of a member, from those of the joint belief."""
    plates = joint.variable.plates
    first, count = offsets(joint, sizes)[member.name], dimension(member, plates, sizes)
    shape = tuple(sizes[plate.name] for plate in member.plates)
    mean = moments.mean[..., first : first + count]
    covariance = moments.covariance[..., first : first + count, first : first + count]
    if member.domain.is_real:
        return Real(mean.reshape(shape), jnp.diagonal(covariance, axis1=-2, axis2=-1).reshape(shape))
    width = member.domain.size
    blocks = covariance.reshape(*covariance.shape[:-2], count // width, width, count // width, width)
    own = jnp.einsum("...aiaj->...aij", blocks)
    return Vector(mean.reshape((*shape, width)), own.reshape((*shape, width, width)))


def member_values(member: Random, joint: Joint, values: Array, sizes: Mapping[str, int]) -> Array:
    """The values of all elements of a member, from those of the joint belief: more axes may come first."""
    plates = joint.variable.plates
    first, count = offsets(joint, sizes)[member.name], dimension(member, plates, sizes)
    lead = values.shape[: values.ndim - 1 - len(plates)]
    event = () if member.domain.is_real else (member.domain.size,)
    shape = (*(sizes[plate.name] for plate in member.plates), *event)
    return values[..., first : first + count].reshape((*lead, *shape))


def together(
    members: tuple[Random, ...],
    plates: tuple[Plate, ...],
    moments: Mapping[str, PyTree],
    joints: Iterable[Joint],
    sizes: Mapping[str, int],
) -> Placed:
    """The moments of variables as one vector over `plates`: with their covariances where they share a joint belief."""
    shape = tuple(sizes[plate.name] for plate in plates)
    counts = [dimension(member, plates, sizes) for member in members]
    joint = next((joint for joint in joints if set(members) <= set(joint.members)), None)
    if joint is not None and joint.variable.name in moments:
        own = moments[joint.variable.name]
        start, axes = offsets(joint, sizes), joint.variable.plates
        if len(axes) == len(plates):  # the same elements, perhaps with more members
            places = jnp.concatenate([start[m.name] + jnp.arange(n) for m, n in zip(members, counts, strict=True)])
            return Placed(Vector(own.mean[..., places], own.covariance[..., places, :][..., places]), plates)
        parts = [
            start[m.name] + jnp.arange(math.prod(shape) * n).reshape((*shape, n))
            for m, n in zip(members, counts, strict=True)
        ]
        places = jnp.concatenate(parts, axis=-1)
        return Placed(Vector(own.mean[places], own.covariance[places[..., :, None], places[..., None, :]]), plates)
    total, first = sum(counts), 0
    mean, covariance = jnp.zeros((*shape, total)), jnp.zeros((*shape, total, total))
    for member, count in zip(members, counts, strict=True):
        found, width, here = moments[member.name], member.domain.size or 1, slice(first, first + count)
        matrices = found.variance[..., None, None] if isinstance(found, Real) else found.covariance
        matrices = matrices.reshape((*shape, count // width, width, width))
        spread = jnp.einsum("...aij,ab->...aibj", matrices, jnp.eye(count // width))
        mean = mean.at[..., here].set(found.mean.reshape((*shape, count)))
        covariance = covariance.at[..., here, here].set(spread.reshape((*shape, count, count)))
        first += count
    return Placed(Vector(mean, covariance), plates)


def member_families(joint: Joint, family: ExponentialFamily, sizes: Mapping[str, int]) -> dict[str, ExponentialFamily]:
    """The marginals of the members."""
    moments = family.moments()
    assert isinstance(moments, Vector)
    return {
        member.name: FOR_DOMAIN[member.domain.kind].from_moments(member_moments(member, joint, moments, sizes))
        for member in joint.members
    }

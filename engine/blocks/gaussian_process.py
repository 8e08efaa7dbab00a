"""Gaussian processes in the engine: what `exact_kind` asks of a block, and predictions at new inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...compiler.blocks.base import Block
from ...compiler.blocks.whole import ProcessBlock, ProcessTerm
from ...compiler.data.keys import is_present, learned_process
from ...compiler.language.nodes import Plate, Random
from ...compiler.rules.gaussian_process import check_size, process_of
from ...factors.families import Gaussian
from ...factors.kernels import covariance, variance
from ...factors.real.gaussian_process import JITTER, Dense, Sparse, half_cross, lower_factor, spread_out
from ..values.evaluate import value
from ..values.plated import Placed, arrange, mapped, spread
from ..values.scope import Scope


class Prepared(NamedTuple):
    """What depends on data only: the prior (one for all functions where their kernels agree), its mean (functions,
    points), the marginals that it begins with, and what is observed of it: values and where they are, or None.
    """

    prior: Any
    mean: Any
    silent: dict[str, Any]
    observed: Any


class Anchor(NamedTuple):
    """What a posterior keeps of a process for predictions: its points, and the messages to it there.

    `shift` and `precision` (functions, points) are those of the messages to f - mean.
    """

    points: Any
    shift: Any
    precision: Any


# Layout: a variable has its plates in any order; here functions come first, then points ------------------------------


def _functions(node: Random, process: ProcessTerm) -> tuple[Plate, ...]:
    """The plates that count independent functions."""
    return tuple(plate for plate in node.plates if plate not in set(process.over))


def _laid_out(placed: Placed, node: Random, process: ProcessTerm, scope: Scope) -> Any:
    """A value by (functions, points)."""
    full = spread(placed, (*_functions(node, process), *process.over), scope.sizes)
    return full.reshape((-1, process.points(scope.sizes)))


def _from_flat(array: Any, node: Random, process: ProcessTerm, scope: Scope) -> Any:
    """A flat array over the variable's plates by (functions, points)."""
    shape = [scope.sizes[plate.name] for plate in node.plates]
    return _laid_out(Placed(array.reshape(shape), node.plates), node, process, scope)


def _placed(array: Any, node: Random, process: ProcessTerm, scope: Scope) -> Placed:
    """An array by (functions, points), placed on the variable's plates."""
    plates = (*_functions(node, process), *process.over)
    return arrange(Placed(array.reshape([scope.sizes[plate.name] for plate in plates]), plates), node.plates)


def _points(process: ProcessTerm, scope: Scope) -> Any:
    """The inputs in rows."""
    found = value(process.inputs, scope)
    dimension = found.value.shape[len(found.plates) :]
    return jnp.asarray(spread(found, process.over, scope.sizes), float).reshape((-1, *(dimension or (1,))))


def _parameters(node: Random, process: ProcessTerm, scope: Scope) -> tuple[dict[str, Any], dict[str, int | None]]:
    """The kernel's parameters by name, and for each the axis of the functions, None where all share it."""
    over = _functions(node, process)
    values, axes = {}, {}
    for name, expr in process.parameters.items():
        found = value(expr, scope)
        own = bool(found.plates)
        full = spread(found, over, scope.sizes) if own else found.value
        values[name] = jnp.asarray(full, float).reshape((-1, *full.shape[len(over) :])) if own else full
        axes[name] = 0 if own else None
    return values, axes


# The prior ------------------------------------------------------------------------------------------------------------


def _prior(process: ProcessTerm, values: dict[str, Any], x: Any) -> Any:
    """The prior of one function at the points x."""
    kernel = process.kernel
    own = variance(kernel, values, x)
    least = JITTER * jnp.mean(own)  # a point where the function is certain keeps a proper belief
    if process.inducing is None:
        return Dense(covariance(kernel, values, x, x, True) + jnp.diag(jnp.maximum(least - own, 0.0)))
    factor = _half(process, values, x, x).T
    return Sparse(factor, jnp.maximum(own - jnp.sum(factor * factor, axis=1), least))


def _cross(process: ProcessTerm, values: dict[str, Any], x: Any, new: Any) -> Any:
    """What `predict` of the prior at x needs to know of new points."""
    if process.inducing is None:
        return covariance(process.kernel, values, x, new)
    return _half(process, values, x, new)


def _half(process: ProcessTerm, values: dict[str, Any], x: Any, new: Any) -> Any:
    z = _inducing(process, values, x)
    lower = lower_factor(covariance(process.kernel, values, z, z))
    return half_cross(lower, covariance(process.kernel, values, z, new))


def _inducing(process: ProcessTerm, values: dict[str, Any], x: Any) -> Any:
    """The inducing inputs: as given, or as many of the points as asked for."""
    if not isinstance(process.inducing, int):
        return jnp.asarray(process.inducing)
    values, points = jax.lax.stop_gradient((values, x))
    chosen = spread_out(
        variance(process.kernel, values, points),
        lambda i: covariance(process.kernel, values, points, points[i][None])[:, 0],
        min(process.inducing, len(x)),
    )
    return x[chosen]


# The kind of block ----------------------------------------------------------------------------------------------------


def prepare(block: ProcessBlock, scope: Scope, key: Any, apart: bool) -> Prepared:
    """The prior and where it begins."""
    node, process = block.out, block.process
    check_size(node.name, process, scope.sizes)
    x = _points(process, scope)
    values, axes = _parameters(node, process, scope)
    mean = _laid_out(value(process.mean, scope), node, process, scope)

    def build(values):
        return _prior(process, values, x)

    prior = jax.vmap(build, (axes,))(values) if _differ(axes) else build(values)
    if not block.latent:
        seen = _laid_out(value(node, scope), node, process, scope)
        present = scope.data.get(is_present(node.name), jnp.ones(()))
        present = _laid_out(Placed(present, node.plates if jnp.ndim(present) else ()), node, process, scope)
        return Prepared(prior, mean, {}, (jnp.where(present, seen - mean, 0.0), present))
    silent = _solved(node, process, prior, mean, axes, jnp.zeros_like(mean), jnp.zeros_like(mean), scope)[1]
    return Prepared(prior, mean, {node.name: silent}, None)


def _differ(axes: dict[str, int | None]) -> bool:
    return any(axis is not None for axis in axes.values())


def solve(
    block: ProcessBlock, prepared: Prepared, cavities: dict[str, Any], scope: Scope
) -> tuple[Any, dict[str, Any]]:
    """log Z and the marginals given the messages of all other blocks."""
    node, process = block.out, block.process
    _, axes = _parameters(node, process, scope)
    if prepared.observed is not None:
        axis = 0 if _differ(axes) else None
        each = jax.vmap(lambda prior, r, present: prior.log_density(r, present), (axis, 0, 0))
        return jnp.sum(each(prepared.prior, *prepared.observed)), {}
    linear, quadratic = (_from_flat(n, node, process, scope) for n in cavities[node.name])
    log_z, naturals = _solved(node, process, prepared.prior, prepared.mean, axes, linear, -2.0 * quadratic, scope)
    return log_z, {node.name: naturals}


def _solved(
    node: Random, process: ProcessTerm, prior: Any, mean: Any, axes: Any, h: Any, p: Any, scope: Scope
) -> tuple[Any, tuple[Any, Any]]:
    """log Z, and the marginals' naturals over the variable's plates in one axis."""
    each = jax.vmap(lambda prior, h, p: prior.solve(h, p), (0 if _differ(axes) else None, 0, 0))
    found = each(prior, h - p * mean, p)
    precision = 1.0 / found.variance
    naturals = (precision * (mean + found.mean), -0.5 * precision)
    log_z = jnp.sum(found.log_z) + jnp.sum(h * mean - 0.5 * p * mean**2)
    return log_z, tuple(_placed(n, node, process, scope).value.ravel() for n in naturals)


def family(block: ProcessBlock, name: str) -> Any:
    """The family of a process's marginals."""
    return Gaussian


# Predictions ----------------------------------------------------------------------------------------------------------


def anchors(
    blocks: dict[str, Block],
    outputs: Any,
    flat: Callable[[Block, Any], Any],
    scope: Scope,
    fresh: frozenset[str],
) -> dict[str, Anchor]:
    """What is known of the processes whose points are new, the plates `fresh`; the functions must be the old ones."""
    found = {}
    for number, block in blocks.items():
        if not isinstance(block, ProcessBlock) or not fresh & {plate.name for plate in block.process.over}:
            continue
        node, process = block.out, block.process
        if fresh & {plate.name for plate in _functions(node, process)}:
            continue
        x = _points(process, scope)
        mean = _laid_out(value(process.mean, scope), node, process, scope)
        if block.latent:
            (belief,), (message,) = flat(block, outputs["beliefs"]).values(), outputs["messages"][number].values()
            h, half = (_from_flat(b - m, node, process, scope) for b, m in zip(belief, message, strict=True))
            found[learned_process(node.name)] = Anchor(x, h + 2.0 * half * mean, -2.0 * half)
        else:
            prepared = prepare(block, scope, None, False)
            r, present = prepared.observed
            p = present / jnp.reshape(prepared.prior.noise(), (-1, 1))
            found[learned_process(node.name)] = Anchor(x, r * p, p)
    return found


def predicted(node: Random, scope: Scope) -> Placed:
    """The marginals at the points in `scope`, given what is known of the function elsewhere."""
    process = process_of(node)
    new = _points(process, scope)
    values, axes = _parameters(node, process, scope)
    mean = _laid_out(value(process.mean, scope), node, process, scope)
    known: Any = scope.data.get(learned_process(node.name))

    def prior(values):
        own = variance(process.kernel, values, new)
        return jnp.zeros_like(own), own

    def posterior(values, h, p):
        old = known.points
        cross, own = _cross(process, values, old, new), variance(process.kernel, values, new)
        return _prior(process, values, old).predict(h, p, cross, own)

    if known is None:
        found = jax.vmap(prior, (axes,), axis_size=len(mean))(values)
    else:
        found = jax.vmap(posterior, (axes, 0, 0))(values, known.shift, known.precision)
    placed = [_placed(part, node, process, scope) for part in (mean + found[0], found[1])]
    return mapped(lambda m, v: Gaussian.from_parameters(mean=m, variance=v), *placed, order=node.plates)

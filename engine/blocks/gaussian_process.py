"""Gaussian processes in the engine: what `exact_kind` asks of a block, and predictions at new inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from ...compiler.blocks.base import Block
from ...compiler.blocks.whole import ProcessBlock, ProcessTerm
from ...compiler.data.keys import is_present, learned_process
from ...compiler.language.nodes import Plate, Random
from ...compiler.rules.gaussian_process import check_size, process_of
from ...factors.arrays import Array, Key
from ...factors.errors import UnsupportedError
from ...factors.families import ExponentialFamily
from ...factors.kernels import covariance, variance
from ...factors.moments import Real
from ...factors.real.gaussian_process import JITTER, Dense, Sparse, half_cross, lower_factor, spread_out
from ..values.evaluate import value
from ..values.first_beliefs import family_of
from ..values.naturals import Naturals
from ..values.plated import Placed, arrange, mapped, spread
from ..values.scope import Scope

Prior: TypeAlias = Dense | Sparse
Parameters: TypeAlias = dict[str, Array]  # of a kernel, by name
Axes: TypeAlias = dict[str, int | None]  # of the functions, by name of a parameter; None where all share it


class ObservedProcess(NamedTuple):
    """What is observed of a process: its values minus the prior mean, zero where `present` is."""

    values: Float[Array, "functions points"]
    present: Float[Array, "functions points"]


class PreparedProcess(NamedTuple):
    """What depends on data only: the prior (one for all functions where their kernels agree), its mean, the messages
    that it begins with, which are the prior's marginals, and what is observed of it, None where it is latent.
    """

    prior: Prior
    mean: Float[Array, "functions points"]
    initial: Naturals
    observed: ObservedProcess | None


class Anchor(NamedTuple):
    """What a posterior keeps of a process for predictions: its points, and the messages to it there.

    `shift` and `precision` (functions, points) are those of the messages to f - mean.
    """

    points: Float[Array, "points dimension"]
    shift: Float[Array, "functions points"]
    precision: Float[Array, "functions points"]


# Layout: a variable has its plates in any order; here functions come first, then points ------------------------------


def _functions(node: Random, process: ProcessTerm) -> tuple[Plate, ...]:
    """The plates that count independent functions."""
    return tuple(plate for plate in node.plates if plate not in set(process.over))


def _laid_out(placed: Placed, node: Random, process: ProcessTerm, scope: Scope) -> Float[Array, "functions points"]:
    """A value by (functions, points)."""
    full = spread(placed, (*_functions(node, process), *process.over), scope.sizes)
    return full.reshape((-1, process.points(scope.sizes)))


def _from_flat(
    array: Float[Array, " elements"], node: Random, process: ProcessTerm, scope: Scope
) -> Float[Array, "functions points"]:
    """A flat array over the variable's plates by (functions, points)."""
    shape = [scope.sizes[plate.name] for plate in node.plates]
    return _laid_out(Placed(array.reshape(shape), node.plates), node, process, scope)


def _placed(array: Float[Array, "functions points"], node: Random, process: ProcessTerm, scope: Scope) -> Placed:
    """An array by (functions, points), placed on the variable's plates."""
    plates = (*_functions(node, process), *process.over)
    return arrange(Placed(array.reshape([scope.sizes[plate.name] for plate in plates]), plates), node.plates)


def _points(process: ProcessTerm, scope: Scope) -> Float[Array, "points dimension"]:
    """The inputs in rows."""
    inputs = value(process.inputs, scope)
    dimension = inputs.value.shape[len(inputs.plates) :]
    return jnp.asarray(spread(inputs, process.over, scope.sizes), float).reshape((-1, *(dimension or (1,))))


def _parameters(node: Random, process: ProcessTerm, scope: Scope) -> tuple[Parameters, Axes]:
    """The kernel's parameters by name, and for each the axis of the functions, None where all share it."""
    over = _functions(node, process)
    values: Parameters = {}
    axes: Axes = {}
    for name, expr in process.parameters.items():
        parameter = value(expr, scope)
        by_function = bool(parameter.plates)
        full = spread(parameter, over, scope.sizes) if by_function else parameter.value
        values[name] = jnp.asarray(full, float).reshape((-1, *full.shape[len(over) :])) if by_function else full
        axes[name] = 0 if by_function else None
    return values, axes


# The prior ------------------------------------------------------------------------------------------------------------


def _prior(process: ProcessTerm, values: Parameters, x: Float[Array, "points dimension"]) -> Prior:
    """The prior of one function at the points x."""
    kernel = process.kernel
    diagonal = variance(kernel, values, x)
    least = JITTER * jnp.mean(diagonal)  # a point where the function is certain keeps a proper belief
    if process.inducing is None:
        return Dense(covariance(kernel, values, x, x, True) + jnp.diag(jnp.maximum(least - diagonal, 0.0)))
    factor = _half(process, values, x, x).T
    return Sparse(factor, jnp.maximum(diagonal - jnp.sum(factor * factor, axis=1), least))


def _cross(
    process: ProcessTerm, values: Parameters, x: Float[Array, "points dimension"], new: Float[Array, "new dimension"]
) -> Float[Array, "rank new"]:
    """What `predict` of the prior at x needs to know of new points: its covariances with these, or its factor there."""
    if process.inducing is None:
        return covariance(process.kernel, values, x, new)
    return _half(process, values, x, new)


def _half(
    process: ProcessTerm, values: Parameters, x: Float[Array, "points dimension"], new: Float[Array, "new dimension"]
) -> Float[Array, "inducing new"]:
    """The factor of the sparse prior at x, at new points."""
    z = _inducing(process, values, x)
    lower = lower_factor(covariance(process.kernel, values, z, z))
    return half_cross(lower, covariance(process.kernel, values, z, new))


def _inducing(
    process: ProcessTerm, values: Parameters, x: Float[Array, "points dimension"]
) -> Float[Array, "inducing dimension"]:
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


def _prior_of(node: Random, process: ProcessTerm, scope: Scope) -> tuple[Prior, Float[Array, "functions points"], Axes]:
    """The prior of all functions, their mean, and which parameters differ between them.

    Raises DataError where an exact prior would be too large.
    """
    check_size(node.name, process, scope.sizes)
    x = _points(process, scope)
    values, axes = _parameters(node, process, scope)
    mean = _laid_out(value(process.mean, scope), node, process, scope)

    def build(values: Parameters) -> Prior:
        return _prior(process, values, x)

    return jax.vmap(build, (axes,))(values) if _differ(axes) else build(values), mean, axes


# Densities and draws -------------------------------------------------------------------------------------------------


def process_density(node: Random, scope: Scope) -> Placed:
    """The log density of the functions at the values in `scope`: each element's given those before it."""
    process = process_of(node)
    prior, mean, axes = _prior_of(node, process, scope)
    values = _laid_out(value(node, scope), node, process, scope) - mean
    by_function = jax.vmap(lambda prior, x: prior.in_order(x), (0 if _differ(axes) else None, 0))
    return _placed(by_function(prior, values), node, process, scope)


def process_draw(node: Random, scope: Scope, key: Key) -> Array:
    """Functions drawn from the prior."""
    process = process_of(node)
    prior, mean, axes = _prior_of(node, process, scope)
    by_function = jax.vmap(lambda prior, key: prior.draw(key), (0 if _differ(axes) else None, 0))
    return _placed(mean + by_function(prior, jax.random.split(key, len(mean))), node, process, scope).value


def process_mean(node: Random, scope: Scope) -> Array:
    """The mean of the prior."""
    process = process_of(node)
    return _placed(_laid_out(value(process.mean, scope), node, process, scope), node, process, scope).value


# The kind of block ----------------------------------------------------------------------------------------------------


def prepare(block: ProcessBlock, scope: Scope, key: Key | None, apart: bool) -> PreparedProcess:
    """The prior at the inputs of the data, and where the run begins; there is nothing random in it.

    Raises DataError where an exact prior would be too large.
    """
    node, process = block.out, block.process
    prior, mean, axes = _prior_of(node, process, scope)
    if not block.latent:
        observed = _laid_out(value(node, scope), node, process, scope)
        present = scope.data.get(is_present(node.name), jnp.ones(()))
        present = _laid_out(Placed(present, node.plates if jnp.ndim(present) else ()), node, process, scope)
        return PreparedProcess(prior, mean, {}, ObservedProcess(jnp.where(present, observed - mean, 0.0), present))
    nothing = jnp.zeros_like(mean)
    _, marginals = _solved(node, process, prior, mean, axes, nothing, nothing, scope)
    return PreparedProcess(prior, mean, {node.name: marginals}, None)


def _differ(axes: Axes) -> bool:
    return any(axis is not None for axis in axes.values())


def solve(
    block: ProcessBlock, prepared: PreparedProcess, cavities: Naturals, scope: Scope
) -> tuple[Float[Array, ""], Naturals]:
    """log Z and the naturals of the marginals given the messages of all other blocks: exact.

    `cavities` has the naturals of these messages by variable, each with all plates in one axis, and so has the answer;
    an observed process has no marginals.
    """
    node, process = block.out, block.process
    _, axes = _parameters(node, process, scope)
    if prepared.observed is not None:
        axis = 0 if _differ(axes) else None
        log_densities = jax.vmap(lambda prior, r, present: prior.log_density(r, present), (axis, 0, 0))
        return jnp.sum(log_densities(prepared.prior, *prepared.observed)), {}
    linear, quadratic = (_from_flat(n, node, process, scope) for n in cavities[node.name])
    log_z, naturals = _solved(node, process, prepared.prior, prepared.mean, axes, linear, -2.0 * quadratic, scope)
    return log_z, {node.name: naturals}


def _solved(
    node: Random,
    process: ProcessTerm,
    prior: Prior,
    mean: Float[Array, "functions points"],
    axes: Axes,
    h: Float[Array, "functions points"],
    p: Float[Array, "functions points"],
    scope: Scope,
) -> tuple[Float[Array, ""], tuple[Float[Array, " elements"], ...]]:
    """log Z, and the marginals' naturals over the variable's plates in one axis."""
    solved = jax.vmap(lambda prior, h, p: prior.solve(h, p), (0 if _differ(axes) else None, 0, 0))
    posterior = solved(prior, h - p * mean, p)
    precision = 1.0 / posterior.variance
    naturals = (precision * (mean + posterior.mean), -0.5 * precision)
    log_z = jnp.sum(posterior.log_z) + jnp.sum(h * mean - 0.5 * p * mean**2)
    return log_z, tuple(_placed(n, node, process, scope).value.ravel() for n in naturals)


def joint_covariance(
    block: ProcessBlock, beliefs: Naturals, messages: Naturals, scope: Scope
) -> tuple[Int[Array, "functions points"], Float[Array, "functions points points"]]:
    """The places of elements among all, and their covariance under the beliefs: exact, of all points of a function.

    Raises UnsupportedError for a sparse prior, whose points are known through few others.
    """
    node, process = block.out, block.process
    prior, _, axes = _prior_of(node, process, scope)
    if not isinstance(prior, Dense):
        raise UnsupportedError(
            f"The covariance of all points of '{node.name}' is asked for, and with inducing= it is not known. Leave "
            "inducing= out."
        )
    (_, half), (_, own) = beliefs[node.name], messages[node.name]
    p = _from_flat(-2.0 * (half - own), node, process, scope)

    def of(covariance: Array, p: Array) -> Array:
        return jnp.linalg.solve(jnp.eye(len(p)) + covariance * p, covariance)

    found = jax.vmap(of, (0 if _differ(axes) else None, 0))(prior.covariance, p)
    places = _from_flat(jnp.arange(p.size), node, process, scope)
    return places, 0.5 * (found + jnp.swapaxes(found, -1, -2))


def family(block: ProcessBlock, name: str) -> type[ExponentialFamily]:
    """The family of a process's marginals."""
    return family_of(block.out)


# Predictions ----------------------------------------------------------------------------------------------------------


def anchors(
    blocks: dict[str, Block],
    outputs: Mapping[str, Any],
    flat: Callable[[Block, Naturals], Naturals],
    scope: Scope,
    fresh: frozenset[str],
) -> dict[str, Anchor]:
    """What is known of the processes whose points are new, by the name of the input that holds it.

    Points are new on the plates named in `fresh`; the functions must be the old ones. `outputs` are those of a run,
    `flat(block, beliefs)` gives the naturals that a block reads, with all plates in one axis.
    """
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
            assert prepared.observed is not None  # it is not latent
            p = prepared.observed.present / jnp.reshape(prepared.prior.noise(), (-1, 1))
            found[learned_process(node.name)] = Anchor(x, prepared.observed.values * p, p)
    return found


def predicted(node: Random, scope: Scope) -> Placed:
    """The Gaussian marginals of a process at the inputs in `scope`, placed on its plates.

    They are given what is known of the function elsewhere (an `Anchor` among the data), or those of the prior.
    """
    process = process_of(node)
    new = _points(process, scope)
    values, axes = _parameters(node, process, scope)
    mean = _laid_out(value(process.mean, scope), node, process, scope)
    anchor: Anchor | None = scope.data.get(learned_process(node.name))

    def at_new_points(
        values: Parameters, h: Float[Array, " points"], p: Float[Array, " points"]
    ) -> tuple[Float[Array, " new"], Float[Array, " new"]]:
        assert anchor is not None
        cross, diagonal = _cross(process, values, anchor.points, new), variance(process.kernel, values, new)
        return _prior(process, values, anchor.points).predict(h, p, cross, diagonal)

    if anchor is None:
        spreads = jax.vmap(lambda values: variance(process.kernel, values, new), (axes,), axis_size=len(mean))(values)
        shift = jnp.zeros_like(spreads)
    else:
        shift, spreads = jax.vmap(at_new_points, (axes, 0, 0))(values, anchor.shift, anchor.precision)
    placed = [_placed(part, node, process, scope) for part in (mean + shift, spreads)]
    return mapped(lambda m, v: family_of(node).from_moments(Real(m, v)), *placed, order=node.plates)

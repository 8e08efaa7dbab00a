"""Where the elements of an inner product begin: principal components of the data, turned towards few large elements.

Random loadings are far from every good optimum, and loadings that start alike stay alike. Components explain the data
at once, and among their rotations, which explain it equally well, sparse ones are nearest to what a sparse prior finds.
Missing entries count as zero. Restarts turn from other rotations. Source: tipping1999probabilistic.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from ...compiler.algebra.inner_products import Side, in_turn, is_latent, sides
from ...compiler.algebra.known import ungathered
from ...compiler.blocks.energy import EnergyBlock
from ...compiler.language.nodes import Let, Random
from ...factors.arrays import Array, Key
from ...factors.roles import Spike
from ..values.evaluate import known, value
from ..values.masks import present
from ..values.plated import spread
from ..values.scope import Scope
from .bound_plan import BoundPlan

_TURNS = 30  # of the rotation, which need not converge
_CERTAINTY = 100.0  # of a start: its mean square over its variance
_ACTIVE = 5.0  # log odds of a start to be active: what is not needed is switched off later, but hardly on again


def components(machine: BoundPlan, scope: Scope, key: Key) -> dict[str, Float[Array, "*plates"]]:
    """Means by name for the scalars that meet in inner products observed under Gaussian noise."""
    found: dict[str, Float[Array, "*plates"]] = {}
    for i, block in enumerate(machine.energies):
        if not (set(in_turn(block)) - set(found)) or not known(block.out, scope) or scope.rows.get(block):
            continue
        pair = sides(block)
        if pair is not None and all(is_latent(side.expr, block) for side in pair):
            found |= _of_block(block, pair, scope, jax.random.fold_in(key, i))
    return found


def undecided(machine: BoundPlan, centres: Iterable[str]) -> list[str]:
    """The probabilities of being active that the first sweep takes for one half: the start knows nothing of them."""
    priors = [block for block in machine.energies if getattr(block.out, "name", None) in set(centres)]
    roles = [(block, block.factor.role) for block in priors]
    nodes = [ungathered(block.args[role.probability]) for block, role in roles if isinstance(role, Spike)]
    return [node.name for node in nodes if isinstance(node, Random) and node.name in machine.moving]


def _of_block(
    block: EnergyBlock, pair: tuple[Side, Side], scope: Scope, key: Key
) -> dict[str, Float[Array, "*plates"]]:
    """The means of the sides of one inner product; none where its plates are no rows and columns."""
    left, right = pair
    if left.over is None:
        left, right = right, left
    rows = tuple(plate for plate in left.expr.plates if plate is not left.over)
    columns = tuple(plate for plate in block.plates if plate not in set(rows))
    if not rows or not columns or set(columns) != set(right.expr.plates) - {right.over}:
        return {}
    plates, over = (*rows, *columns), left.over
    assert over is not None
    data = spread(value(block.out, scope), plates, scope.sizes)
    if (mask := present(block, scope)) is not None:
        data = data * spread(mask, plates, scope.sizes)
    shapes = [tuple(scope.sizes[plate.name] for plate in group) for group in (rows, columns)]
    matrix, size = data.reshape((math.prod(shapes[0]), -1)), scope.sizes[over.name]
    loadings = _turned(_principal(matrix, size), key)
    found = {str(left.expr): _placed(loadings, shapes[0], left.expr.plates.index(over))}
    if right.over is not None:
        scores = matrix.T @ jnp.linalg.solve(loadings.T @ loadings + jnp.eye(size), loadings.T).T
        found[str(right.expr)] = _placed(scores, shapes[1], right.expr.plates.index(right.over))
    return found


def _placed(matrix: Float[Array, "row k"], shape: tuple[int, ...], position: int) -> Float[Array, "*plates"]:
    """Rows of components with the plate of these where their variable has it."""
    return jnp.moveaxis(matrix.reshape((*shape, matrix.shape[-1])), -1, position)


def _principal(matrix: Float[Array, "row column"], size: int) -> Float[Array, "row k"]:
    """The first `size` left singular vectors times singular values, for columns of unit variance; zeros beyond."""
    rows, columns = matrix.shape
    small = matrix @ matrix.T if rows <= columns else matrix.T @ matrix
    values, vectors = jnp.linalg.eigh(small)
    values, vectors = jnp.maximum(values[::-1][:size], 0.0), vectors[:, ::-1][:, :size]
    largest = jnp.take_along_axis(vectors, jnp.argmax(jnp.abs(vectors), axis=0)[None], axis=0)
    vectors = vectors * jnp.where(largest < 0.0, -1.0, 1.0)  # either sign is one: rounding must not decide
    found = vectors * jnp.sqrt(values) if rows <= columns else matrix @ vectors
    return jnp.pad(found / math.sqrt(columns), ((0, 0), (0, size - found.shape[1])))


def _turned(loadings: Float[Array, "row k"], key: Key) -> Float[Array, "row k"]:
    """The rotation with the largest variance of squares (varimax), from a random one."""
    size = loadings.shape[1]
    rotation = jnp.linalg.qr(jax.random.normal(key, (size, size)))[0]

    def step(_: Int[Array, ""] | int, rotation: Float[Array, "k k"]) -> Float[Array, "k k"]:
        turned = loadings @ rotation
        slope = loadings.T @ (turned**3 - turned * jnp.mean(turned**2, axis=0))
        left, _, right = jnp.linalg.svd(slope)
        return left @ right

    return loadings @ jax.lax.fori_loop(0, _TURNS, step, rotation)


def begun(variable: Random | Let, means: Float[Array, "*plates"]) -> tuple[Float[Array, "*plates"], ...]:
    """A narrow belief around these means; one that may be zero begins as active."""
    precision = _CERTAINTY / jnp.maximum(jnp.mean(means**2), 1e-300)
    linear, half = precision * means, jnp.full_like(means, -0.5 * precision)
    if variable.domain.is_real:
        return linear, half
    offset = _ACTIVE - 0.5 * (precision * means**2 + jnp.log(2.0 * jnp.pi / precision))
    return offset, linear, half

"""Inner products of two vectors under Gaussian noise, summed over plates without a matrix for every pair.

The sum over rows and columns of tau E(y - w.x)^2 is a contraction of the factors' own arrays: E[w w'] is summed over
its plate before it meets E[x x']. What is left per pair is one matrix product with the data. It is the same energy as
the general rule, in another order of summation. Where entries are missing, or elements are updated in turn, the sums
over the plates of one side are by row: the Gram form (`Gram`).
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from ...compiler.algebra.inner_products import Side, sides
from ...compiler.blocks.base import Block
from ...compiler.blocks.energy import EnergyBlock
from ...compiler.graph import Plan
from ...compiler.language.nodes import Let, Plate, Random
from ...factors.arrays import Array
from ...factors.quadrature import HALF_LOG_2PI
from ...factors.roles import LinearGaussian, gaussian_arguments
from ..values.evaluate import known
from ..values.masks import present
from ..values.moments import moments
from ..values.plated import Placed, mapped, to_event
from ..values.row_blocks import within
from ..values.scope import Scope

Operand: TypeAlias = tuple[Array, tuple[Plate, ...], str]  # a value, its plates, and the letters of its event axes


class Gram(NamedTuple):
    """What the data say of one side of an inner product, by row: sums over the rest of w y E x, w E x x' and w y^2.

    The weight w is the presence of an entry, times the precision where that varies over the rest; `outside` is the
    precision where it does not, else None. The rows may lack plates that nothing varies over. Event axes: (k,) of
    `linear`, (k, k) of `square`, none of the others.
    """

    linear: Placed
    square: Placed
    constant: Placed
    outside: Placed | None


def second_moments(side: Side, scope: Scope) -> tuple[Placed, Placed]:
    """E x (k,) and E x x' (k, k) of one side, elements along a plate being independent."""
    if side.over is None:
        vector = moments(side.expr, scope, "vector")
        outer = mapped(lambda x: x.covariance + jnp.outer(x.mean, x.mean), vector)
        return Placed(vector.value.mean, vector.plates), outer
    elements = to_event(moments(side.expr, scope, "real"), side.over)
    outer = mapped(lambda x: jnp.outer(x.mean, x.mean) + jnp.diag(x.variance), elements)
    return Placed(elements.value.mean, elements.plates), outer


def gram(block: EnergyBlock, own: Side, other: Side, scope: Scope) -> Gram:
    """The Gram form of a block for the side `own`, by blocks of rows where it is cut into these."""
    rows = scope.rows.get(block)
    if rows is None:
        return _gram(block, own, other, scope)

    def of_rows(number: int | Int[Array, ""]) -> Gram:
        return _gram(block, own, other, within(scope, rows, jnp.asarray(number)))

    first = of_rows(0)

    def more(total: list[Placed], number: Int[Array, ""]) -> tuple[list[Placed], None]:
        linear, square, constant, _ = of_rows(number)
        return [_added(a, b) for a, b in zip(total, (linear, square, constant), strict=True)], None

    summed, _ = jax.lax.scan(more, list(first[:3]), jnp.arange(1, rows.number))
    linear, square, constant = summed
    return Gram(linear, square, constant, first.outside)


def _added(a: Placed, b: Placed) -> Placed:
    return Placed(a.value + b.value, a.plates)


def _gram(block: EnergyBlock, own: Side, other: Side, scope: Scope) -> Gram:
    rows = tuple(plate for plate in own.expr.plates if plate in set(block.plates))
    tau, out = moments(gaussian_arguments(block)[1], scope, "positive"), moments(block.out, scope)
    weights = [] if (mask := present(block, scope)) is None else [(mask.value, mask.plates, "")]
    inside = not set(tau.plates) <= set(rows)
    weights += [(tau.value.mean, tau.plates, "")] if inside else []
    mean, square = second_moments(other, scope)
    seen = (out.value.mean, out.plates, "")
    return Gram(
        _contracted(block, scope, [*weights, seen, (mean.value, mean.plates, "i")], rows, "i"),
        _contracted(block, scope, [*weights, (square.value, square.plates, "ij")], rows, "ij"),
        _contracted(block, scope, [*weights, (out.value.mean**2 + out.value.variance, out.plates, "")], rows, ""),
        None if inside else Placed(tau.value.mean, tau.plates),
    )


def _contracted(
    block: EnergyBlock, scope: Scope, operands: list[Operand], kept: tuple[Plate, ...], event: str
) -> Placed:
    """The sum of a product over the plates of the block that are not kept; kept ones that nothing varies over lack."""
    letters = {plate: chr(ord("a") + i) for i, plate in enumerate(block.plates)}
    seen = set().union(*(plates for _, plates, _ in operands))
    result = tuple(plate for plate in kept if plate in seen)
    spec = ",".join("".join(letters[plate] for plate in plates) + event for _, plates, event in operands)
    repeats = math.prod(scope.sizes[plate.name] for plate in block.plates if plate not in seen | set(kept))
    spec = f"{spec}->{''.join(letters[plate] for plate in result)}{event}"
    return Placed(repeats * jnp.einsum(spec, *(array for array, _, _ in operands), optimize="optimal"), result)


def bilinear_energy(block: EnergyBlock, scope: Scope) -> Float[Array, ""] | None:
    """The energy of a block that is the inner product of two vectors under Gaussian noise, summed; else None."""
    pair = sides(block)
    if pair is None or scope.window is not None:
        return None
    random = [not known(side.expr, scope) for side in pair]
    if not all(random) and all(side.over is None for side in pair):
        return None
    if present(block, scope) is not None:
        first = next((i for i, side in enumerate(pair) if side.over is not None and random[i]), 0)
        return _by_row(block, pair[first], pair[1 - first], scope)
    (left, left_square), (right, right_square) = (second_moments(side, scope) for side in pair)
    out, tau = moments(block.out, scope), moments(gaussian_arguments(block)[1], scope, "positive")

    def total(*operands: Operand) -> Float[Array, ""]:
        return _contracted(block, scope, list(operands), (), "").value

    weight = (tau.value.mean, tau.plates, "")
    square = (out.value.mean**2 + out.value.variance, out.plates, "")
    cross = total(
        weight, (out.value.mean, out.plates, ""), (left.value, left.plates, "i"), (right.value, right.plates, "i")
    )
    seconds = total(
        weight, (left_square.value, left_square.plates, "ij"), (right_square.value, right_square.plates, "ij")
    )
    constant = total((0.5 * tau.value.log - HALF_LOG_2PI, tau.plates, ""))
    return constant - 0.5 * (total(weight, square) - 2.0 * cross + seconds)


def _by_row(block: EnergyBlock, own: Side, other: Side, scope: Scope) -> Float[Array, ""]:
    """The energy in the Gram form, in which a mask costs no more than one matrix product."""
    mean, square = second_moments(own, scope)
    tau, found = moments(gaussian_arguments(block)[1], scope, "positive"), gram(block, own, other, scope)
    mask = present(block, scope)
    assert mask is not None
    count = _contracted(
        block, scope, [(mask.value, mask.plates, ""), (0.5 * tau.value.log - HALF_LOG_2PI, tau.plates, "")], (), ""
    )

    def residual(
        constant: Float[Array, ""],
        linear: Float[Array, " k"],
        square: Float[Array, "k k"],
        mean: Float[Array, " k"],
        second: Float[Array, "k k"],
    ) -> Float[Array, ""]:
        return constant - 2.0 * jnp.dot(linear, mean) + jnp.sum(square * second)

    total = mapped(residual, found.constant, found.linear, found.square, mean, square)
    if found.outside is not None:
        total = mapped(jnp.multiply, found.outside, total)
    alike = math.prod(
        scope.sizes[p.name] for p in own.expr.plates if p in set(block.plates) and p not in set(total.plates)
    )
    return count.value - 0.5 * alike * jnp.sum(total.value)


def shared_precision(graph: Plan) -> frozenset[str]:
    """Vector variables whose precision is the same for all elements, so that one inverse serves them all."""
    found = set()
    for name, variable in graph.latent.items():
        mine = [block for block in graph.blocks if name in block.latent]
        if (
            variable.domain.is_vector
            and variable.plates
            and name not in graph.partly
            and all(_plain(block, variable, graph) for block in mine)
        ):
            found.add(name)
    return frozenset(found)


def _plain(block: Block, variable: Random | Let, graph: Plan) -> bool:
    """A block whose message to the variable has a precision without plates."""
    if not isinstance(block, EnergyBlock):
        return False
    if block.out is variable and block.constant:
        if not isinstance(block.factor.role, LinearGaussian):
            return False
        return variable.name not in graph.given and not gaussian_arguments(block)[1].plates
    pair = sides(block) or ()
    if variable not in {side.expr for side in pair if side.over is None} or block.where:
        return False
    if block.out.name in graph.missing or not all(isinstance(side.expr, Random) for side in pair):
        return False
    return not set(gaussian_arguments(block)[1].plates) & set(variable.plates)

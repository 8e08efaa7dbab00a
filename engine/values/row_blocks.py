"""Blocks of rows: what a factor on a large plate computes of its rows exists for one block of them at a time.

A scope with a window sees the rows of one block, as if the plate had no others; all rules for expressions and factors
stay as they are. Only sums over the blocks, and numbers by row that the caller asks for, outlive one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from ...compiler.blocks.base import Block
from ...compiler.blocks.energy import EnergyBlock
from ...compiler.blocks.site import SiteBlock
from ...compiler.graph import Plan
from ...compiler.language.nodes import Apply, Constant, Expr, Gather, Input, Member, Plate, Position, inside, parents
from ...factors.arrays import Array, Numeric
from .plated import Placed

LARGE = 1 << 21  # numbers that a factor may hold at once; one with more is cut into blocks
CELLS = 1 << 17  # numbers of one block: a megabyte, what the cache of a core holds
FEWEST = 32  # rows of a block
ON_ACCELERATOR = 1 << 6  # times as many of both there, where blocks that follow one another cost more than memory


class Rows(NamedTuple):
    """A plate of `total` rows in `number` blocks of `size`; the last reaches back where they do not come out even."""

    plate: Plate
    total: int
    size: int

    @property
    def number(self) -> int:
        return -(-self.total // self.size)

    def window(self, number: Numeric) -> Window:
        """One block; `number` may be traced."""
        fresh = jnp.asarray(number) * self.size
        return Window(self, jnp.minimum(fresh, self.total - self.size), fresh)


class Window(NamedTuple):
    """The rows from `first` on that an expression sees, of which those before `fresh` have been counted already.

    Those from `stop` on are padding, where it is not None.
    """

    rows: Rows
    first: Array
    fresh: Array
    stop: Array | None = None

    def seen(self, placed: Placed) -> Placed:
        """The part of a value that is inside."""
        if self.rows.plate not in placed.plates:
            return placed
        axis = placed.plates.index(self.rows.plate)

        def part(array):
            return jax.lax.dynamic_slice_in_dim(array, self.first, self.rows.size, axis)

        return Placed(jax.tree.map(part, placed.value), placed.plates)

    @property
    def counted(self) -> Placed | None:
        """One for a row that counts, zero for one that the block before has had; None where all count."""
        if self.rows.total % self.rows.size == 0 and self.stop is None:
            return None
        row = self.first + jnp.arange(self.rows.size)
        counts = row >= self.fresh if self.stop is None else (row >= self.fresh) & (row < self.stop)
        return Placed(counts.astype(float), (self.rows.plate,))


def rows_of(graph: Plan, sizes: Mapping[str, int], streamed: Collection[str] = ()) -> dict[Block, Rows]:
    """How the factors that would hold too many numbers at once are cut; factors on one plate have the same blocks.

    So are those that read the inputs `streamed` from files.
    """
    candidates = {block: plate for block in graph.blocks if (plate := _longest(graph, block, sizes)) is not None}
    found: dict[Plate, Rows] = {}
    for plate in dict.fromkeys(candidates.values()):
        width = max(_width(block, plate, sizes) for block, own in candidates.items() if own is plate)
        reads = any(_reads(block, streamed) for block, own in candidates.items() if own is plate)
        if reads or is_large(sizes[plate.name] * width):
            found[plate] = rows_by_width(plate, width, sizes)
    return {block: found[plate] for block, plate in candidates.items() if plate in found}


def _reads(block: Block, names: Collection[str]) -> bool:
    """Whether a block reads one of these inputs."""
    return bool(names) and any(isinstance(node, Input) and node.name in names for node in nodes_of(block))


def rows_by_width(plate: Plate, width: int, sizes: Mapping[str, int]) -> Rows:
    """A plate cut so that a block of rows of `width` numbers each fits the cache of a core."""
    total = sizes[plate.name]
    number = -(-total // max(FEWEST, CELLS * _times() // width))
    return Rows(plate, total, -(-total // number))


def is_large(numbers: int) -> bool:
    """Whether a factor that would hold so many numbers at once is cut into blocks."""
    return numbers > LARGE * _times()


def _times() -> int:
    return 1 if jax.default_backend() == "cpu" else ON_ACCELERATOR


def _longest(graph: Plan, block: Block, sizes: Mapping[str, int]) -> Plate | None:
    """The longest plate that a block may be cut along."""
    plates = [plate for plate in block.plates if divisible(graph, block, plate)]
    return max(plates, key=lambda plate: sizes[plate.name], default=None)


def divisible(graph: Plan, block: Block, plate: Plate) -> bool:
    """Whether the instances of a block over `plate` meet in sums alone: none reads another, and no belief lives there.

    The rows of a site must follow one another among its instances.
    """
    if plate not in block.plates or not isinstance(block, (EnergyBlock, SiteBlock)):
        return False
    if isinstance(block, SiteBlock) and not _in_rows(block, plate):
        return False
    variables = [graph.latent[name] for name in block.latent if name in graph.latent]
    joined = [m for joint in graph.joints if joint.variable in set(variables) for m in joint.members]
    return not any(plate in variable.plates for variable in [*variables, *joined]) and not any(
        reaches_across(node, plate) for node in nodes_of(block)
    )


def _in_rows(block: SiteBlock, plate: Plate) -> bool:
    """Whether a site has directions, and the instances of a row of `plate` follow one another, with beliefs apart."""
    terms = block.form.terms
    apart = len({term.variable for term in terms}) == len(terms)
    return apart and block.plates[0] is plate and any(term.direction is not None for term in terms)


def reaches_across(node: Expr, plate: Plate) -> bool:
    """Whether an expression on one row may read other rows."""
    if isinstance(node, Gather):
        return node.axis is plate
    if isinstance(node, Input):
        return node.domain.is_index and node.domain.plate is plate
    return isinstance(node, Apply) and dict(node.options).get("over") is plate


def needs_place(node: Expr, plate: Plate) -> bool:
    """Whether an expression at a row depends on which of all rows it is, which a device does not know of its own."""
    return isinstance(node, (Constant, Position, Member)) and plate in node.plates


def nodes_of(block: Block) -> list[Expr]:
    """The expressions that a block evaluates."""
    roots = [*block.arguments, *block.where, *(gate.selector for gate in block.gates)]
    roots += [block.out] if isinstance(block.out, Expr) else []
    if isinstance(block, SiteBlock):
        for term in block.form.terms:
            inner = getattr(term.direction, "terms", (term,))  # a direction in a joint belief has terms of its own
            roots += [e for t in inner for e in (t.element, *t.coefficients, t.direction) if e is not None]
            roots += [term.element]
        roots += [c for product in block.form.offsets for c in product]
        roots += [e for product, precision in block.form.noise for e in (*product, precision)]
    return inside(roots)


def _width(block: Block, plate: Plate, sizes: Mapping[str, int]) -> int:
    """About how many numbers the block holds for a row."""
    terms = block.form.terms if isinstance(block, SiteBlock) else ()
    return max([width(nodes_of(block), plate, sizes), *(_dimension(term.variable, sizes) for term in terms)])


def width(nodes: Iterable[Expr], plate: Plate, sizes: Mapping[str, int]) -> int:
    """The size of the largest array that expressions make of one row of a plate."""

    def numbers(node: Expr) -> int:
        others = [sizes[other.name] for other in node.plates if other is not plate]
        return math.prod(others) * max(_dimension(e, sizes) for e in (node, *parents(node)))

    return max((numbers(node) for node in nodes if plate in node.plates), default=1)


def _dimension(node: Expr, sizes: Mapping[str, int]) -> int:
    size = node.domain.size if node.domain.is_vector or node.domain.is_simplex or node.domain.is_category else 1
    return sizes[size.name] if isinstance(size, Plate) else int(size or 1)


def summed(energy: Callable[[PyTree], PyTree], rows: Rows, scope: Any) -> Array:
    """The sum of a function of windowed scopes over all blocks; its gradient too holds one block at a time."""
    one = jax.checkpoint(lambda number: energy(within(scope, rows, number)), prevent_cse=False)
    return jnp.sum(jax.lax.map(one, jnp.arange(rows.number)))


def summed_with_gradient(
    energy: Callable[[PyTree, PyTree], PyTree], rows: Rows, scope: Any, here: PyTree
) -> tuple[Array, PyTree]:
    """The sum of `energy(scope, moments)` over all blocks, and its gradient in the moments: one pass over the rows."""

    def one(total, number):
        found = jax.value_and_grad(lambda own: energy(within(scope, rows, number), own))(here)
        return jax.tree.map(jnp.add, total, found), None

    start = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, here))
    return jax.lax.scan(jax.checkpoint(one, prevent_cse=False), start, jnp.arange(rows.number))[0]


def joined(blocks: PyTree, axis: int, rows: Rows) -> PyTree:
    """Blocks of rows stacked along a first axis, as one array with all rows along `axis`."""
    array = jnp.moveaxis(blocks, 0, axis)
    array = array.reshape((*array.shape[:axis], -1, *array.shape[axis + 2 :]))
    again = rows.number * rows.size - rows.total  # rows that the last block has once more
    if not again:
        return array
    whole, last = jnp.split(array, [array.shape[axis] - rows.size], axis)
    return jnp.concatenate([whole, jax.lax.slice_in_dim(last, again, None, axis=axis)], axis)


def within(scope: Any, rows: Rows, number: Array) -> Any:
    """The scope that sees one block of rows, and counts those that no block before has had."""
    return windowed(scope, rows.window(number))


def beginning_at(scope: Any, rows: Rows, first: Array) -> Any:
    """The scope that sees the block of rows that begins with row `first`."""
    return windowed(scope, Window(rows, first, first))


def windowed(scope: Any, window: Window) -> Any:
    """The scope that sees the rows of a window alone."""
    rows = window.rows
    return dataclasses.replace(scope, window=window, sizes={**scope.sizes, rows.plate.name: rows.size}, rows={})

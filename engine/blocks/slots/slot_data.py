"""The data of a slot block in schedule order: everything about its instances that does not change in a run.

Arrays are laid out (batches, width, one axis for each discrete slot, event axes); what is the same for all instances
has neither batches nor a width of more than one and stays outside the scan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
from jaxtyping import Shaped

from ....compiler.blocks.slots import Branch, Slot, SlotsBlock
from ....compiler.language.atoms import atom_key
from ....compiler.language.nodes import Apply, Expr, Gather, Let, Plate
from ....compiler.rules.logic import TRUE
from ....compiler.rules.slot_finder import discrete_key, given_states
from ....factors.arrays import Array, Key
from ....factors.special import TINY
from ...values.evaluate import gather, known, value
from ...values.instances import ScheduleLayout, arranged, count, layout, positions
from ...values.masks import present
from ...values.operations import point_function
from ...values.plated import Placed, mapped, spread
from ...values.scope import Scope
from ..discrete.tables import states

Local: TypeAlias = dict[str, Array]  # the arrays of one batch by name, and what is the same for all
Form: TypeAlias = tuple[list[Array], Array]  # coefficients by edge, and the offset


class Prepared(NamedTuple):
    """Arrays by name: `scanned` in schedule order, `fixed` the same for all instances."""

    scanned: dict[str, Shaped[Array, "batch row ..."]]
    fixed: dict[str, Array]
    plan: ScheduleLayout | None


def axes_of(block: SlotsBlock, scope: Scope) -> tuple[Plate, ...]:
    """A plate of states for each discrete slot."""
    return tuple(Plate(f"states of {expr}, slot {d}", states(expr, scope)) for d, expr in enumerate(block.discrete))


def selected(block: SlotsBlock) -> bool:
    """True when the selector of the branches is data."""
    return len(block.atoms) < len(block.discrete)


def given(block: SlotsBlock, scope: Scope) -> Callable[[Expr], bool]:
    """Tells what is data once the discrete slots have a state."""
    return given_states(lambda expr: known(expr, scope), block.discrete)


def leaves(block: SlotsBlock, scope: Scope) -> list[Expr]:
    """The largest expressions of data and discrete states that the branches are made of."""
    is_given = given(block, scope)
    found: dict[int, Expr] = {}

    def visit(expr: Expr, slots: set[tuple]) -> None:
        if is_given(expr):
            found.setdefault(id(expr), expr)
        elif atom_key(expr) not in slots:
            for child in expr.args if isinstance(expr, Apply) else (expr.expression,) if isinstance(expr, Let) else ():
                visit(child, slots)

    for branch in block.branches:
        keys = {atom_key(slot.expr) for slot in branch.slots}
        for root in branch_roots(branch):
            visit(root, keys)
    return list(found.values())


def branch_roots(branch: Branch) -> list[Expr]:
    """The expressions that a branch evaluates."""
    out = [] if branch.out is None or branch.out is TRUE else [branch.out]
    roots = [*out, *branch.args.values()]
    for part in (branch, branch.side) if branch.side is not None else (branch,):
        roots += [*(c for _, c in part.members), *([] if part.shift is None else [part.shift])]
    for slot in branch.slots:
        roots += [c for _, c in slot.members] + ([] if slot.offset is None else [slot.offset])
    return roots


def _at_states(expr: Expr, scope: Scope, grids: dict[tuple, Placed]) -> Placed:
    """The value of an expression of data with its discrete slots at all their states."""
    if expr.domain.is_discrete and discrete_key(expr) in grids:
        return grids[discrete_key(expr)]
    if known(expr, scope):
        return value(expr, scope)
    if isinstance(expr, Let):
        return _at_states(expr.expression, scope, grids)
    if isinstance(expr, Gather):
        return gather(_at_states(expr.source, scope, grids), _at_states(expr.index, scope, grids), expr)
    assert isinstance(expr, Apply), f"{expr} has no value without inference"
    args = [_at_states(arg, scope, grids) for arg in expr.args]
    return mapped(point_function(expr), *args, order=expr.plates)


def prepare(block: SlotsBlock, scope: Scope, key: Key, apart: bool = False) -> Prepared:
    """Evaluates everything about the block that depends only on data."""
    axes = axes_of(block, scope)
    grids = {}
    for expr, axis in zip(block.discrete, axes, strict=True):
        numbers = jnp.arange(axis.size)
        grids[discrete_key(expr)] = Placed(numbers > 0 if expr.domain.is_boolean else numbers, (axis,))
    if selected(block):
        del grids[discrete_key(block.discrete[0])]
    plan = layout(block, scope, tuple(edge.element for edge in block.edges) + block.atoms, key)
    sizes = {**scope.sizes, **{axis.name: axis.size for axis in axes}}
    scanned, fixed = {}, {}

    def keep(name: str, placed: Placed) -> None:
        own = any(plate in block.plates for plate in placed.plates)
        here = tuple(axis for axis in axes if axis in placed.plates)
        full = spread(placed, (*(block.plates if own else ()), *here), sizes)
        event = full.shape[(len(block.plates) if own else 0) + len(here) :]
        width = count(block, scope.sizes) if own else 1
        full = full.reshape((width, *(axis.size if axis in here else 1 for axis in axes), *event))
        if own:
            scanned[name] = arranged(full, plan)
        else:
            fixed[name] = full

    for number, leaf in enumerate(leaves(block, scope)):
        placed = _at_states(leaf, scope, grids)
        as_number = not leaf.domain.is_category and not leaf.domain.is_index
        keep(f"leaf{number}", Placed(jnp.asarray(placed.value, float) if as_number else placed.value, placed.plates))
    for number, edge in enumerate(block.edges):
        size = count(edge.variable, scope.sizes)
        if size > 1:
            numbers = jnp.arange(size, dtype=jnp.int32).reshape([scope.sizes[p.name] for p in edge.variable.plates])
            inside = Scope(scope.sizes, {**scope.data, edge.variable.name: numbers}, scope.moments)
            keep(f"position{number}", _at_states(edge.element, inside, grids))
        if edge.direction is not None:
            keep(f"direction{number}", _at_states(edge.direction, scope, grids))
    for number, atom in enumerate(block.atoms):
        place = positions(atom, block, scope)
        if place is not None:
            scanned[f"state{number}"] = arranged(place, plan)
    if selected(block):
        keep("selector", value(block.discrete[0], scope))
    if plan is not None:
        scanned["present"] = plan.present
    if (mask := present(block, scope)) is not None:
        full = spread(mask, block.plates, scope.sizes).reshape(-1)
        here = arranged(full, plan) > 0
        scanned["present"] = here & scanned["present"] if "present" in scanned else here
    return Prepared(scanned, fixed, plan)


def branch_arguments(branch: Branch) -> list[Expr]:
    """The expressions that the factor of a branch takes; of a closed form, those of its quantities."""
    if branch.link == "density":
        return [*([] if branch.out is None else [branch.out]), *branch.args.values()]
    quantities = [branch] if branch.side is None else [branch, branch.side]
    shifts = [quantity.shift for quantity in quantities if quantity.shift is not None]
    return [*branch.args.values(), *(c for quantity in quantities for _, c in quantity.members), *shifts]


class Formula:
    """The expressions of a branch as functions of the values of its slots, for arrays of instances and nodes."""

    def __init__(self, block: SlotsBlock, branch: Branch, scope: Scope, arrays: Local) -> None:
        names = {id(leaf): f"leaf{number}" for number, leaf in enumerate(leaves(block, scope))}
        self.arrays = {key: arrays[name] for key, name in names.items()}
        self.rank = 1 + len(block.discrete)
        self.slots = {atom_key(slot.expr): number for number, slot in enumerate(branch.slots)}
        self.nodes = len(branch.slots)

    def known(self, expr: Expr) -> bool:
        """True for an expression that is data given the states."""
        return id(expr) in self.arrays

    def arguments(self, exprs: list[Expr]) -> tuple[list[int], list[int]]:
        """The leaves and the slots that expressions are made of."""
        found: dict[int, None] = {}
        slots: dict[int, None] = {}

        def visit(expr: Expr) -> None:
            if id(expr) in self.arrays:
                found[id(expr)] = None
            elif atom_key(expr) in self.slots:
                slots[self.slots[atom_key(expr)]] = None
            else:
                for child in expr.args if isinstance(expr, Apply) else (expr.expression,):  # type: ignore[attr-defined]
                    visit(child)

        for expr in exprs:
            visit(expr)
        return list(found), list(slots)

    def __call__(
        self, function: Callable[..., Array], exprs: list[Expr], values: tuple[Array, ...] | None, lift: int
    ) -> Shaped[Array, "..."]:
        """`function` of the expressions' values, at all instances; `lift` is the number of node axes."""
        keys, slots = self.arguments(exprs)
        arrays = [self._lifted(self.arrays[key], lift) for key in keys]
        given = [values[number] for number in slots] if values is not None else []

        def one(*operands: Array) -> Array:
            table = dict(zip(keys, operands[: len(keys)], strict=True))
            chosen = dict(zip(slots, operands[len(keys) :], strict=True))
            return function(*(self._point(expr, table, chosen) for expr in exprs))

        events = [array.ndim - self.rank - lift for array in arrays] + [0] * len(given)
        signature = ",".join(f"({','.join(f'e{i}x{j}' for j in range(n))})" for i, n in enumerate(events))
        if not events:
            return one()
        return jnp.vectorize(one, signature=f"{signature}->()")(*arrays, *given)

    def given(self, expr: Expr, lift: int) -> Array:
        """What is data given the states, at all instances; vectors, such as cutpoints, keep their axis."""
        return self._lifted(self.arrays[id(expr)], lift)

    def _lifted(self, array: Array, lift: int) -> Array:
        return array.reshape((*array.shape[: self.rank], *(1,) * lift, *array.shape[self.rank :]))

    def _point(self, expr: Expr, table: dict[int, Array], slots: dict[int, Array]) -> Array:
        if id(expr) in table:
            return table[id(expr)]
        if atom_key(expr) in self.slots:
            return slots[self.slots[atom_key(expr)]]
        if isinstance(expr, Let):
            return self._point(expr.expression, table, slots)
        assert isinstance(expr, Apply), f"{expr} is no function of the slots"
        found = point_function(expr)(*(self._point(arg, table, slots) for arg in expr.args))
        # A probability that rounds to zero or one would have an infinite logarithm.
        return jnp.clip(found, TINY, 1.0 - 2.0**-53) if expr.domain.is_unit else found

    def data(self, expr: Expr | None) -> Array:
        """The value of an expression without slots, zero for none."""
        return jnp.zeros((1,) * self.rank) if expr is None else self(lambda x: x, [expr], None, 0)

    def form(self, slot: Slot) -> Form:
        """The coefficients of a real slot's edges, and its offset."""
        return [self.data(c) for _, c in slot.members], self.data(slot.offset)

"""What the rows of a mixture block are: lambda and c by state, and the elements that they are about.

A row is one element of the selector; see `mixture`, which computes with them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float, PyTree

from ...compiler.blocks.energy import EnergyBlock
from ...compiler.blocks.mixture import MixtureBlock
from ...compiler.language.nodes import Expr, Gather, Let, Plate, Random
from ...factors.arrays import Array, Key
from ...factors.families import FOR_DOMAIN
from ..values.evaluate import gather, value
from ..values.first_beliefs import event_size, family_of, seeds, stats_from_moments
from ..values.instances import ScheduleLayout, arranged, count, layout
from ..values.masks import present
from ..values.moments import moments
from ..values.naturals import Parts
from ..values.padding import counts, padded_plates
from ..values.plated import Placed, mapped, spread
from ..values.scope import Scope

STATE = Plate("state")
Local = dict[str, PyTree]


class Prepared(NamedTuple):
    """A block's data: by name in schedule order, or, where they are the same for all rows, with one row.

    `log` is c, shaped rows + (state,). For each parent `natural0` is lambda and `position0` the element, both shaped
    rows + (own plates, state, ...), where the axis of states has one place for an element that all states share.
    """

    scanned: Local
    fixed: Local
    plan: ScheduleLayout | None
    seeds: Float[Array, "batch row state"] | None


def prepare(block: MixtureBlock, scope: Scope, key: Key, apart: bool = False) -> Prepared:
    """Everything about the rows that does not change in a run."""
    plan = layout(block, scope, block.elements, key)
    terms = [_term(block, number, scope) for number in range(len(block.terms))]
    log = sum((_laid(term.log, block, (), scope) for term in terms), jnp.zeros(()))
    found: Local = {"log": log[:, 0]}
    for number, parent in enumerate(block.parents):
        where = _positions(parent.opened, block, scope)
        own = tuple(plate for plate in where.plates if plate not in {*block.plates, STATE})
        found[f"position{number}"] = _laid(where, block, own, scope, 1 if not parent.chosen else None).astype(jnp.int32)
        naturals = [terms[i].naturals[edge] for i, edge in parent.uses]
        parts = [_summed(natural, block, own, scope) for natural in naturals]
        found[f"natural{number}"] = tuple(map(sum, zip(*parts, strict=True)))
    if block.kept:
        found["own"] = jnp.arange(count(block.selector, scope.sizes), dtype=jnp.int32)
    if plan is None and (rows := padded_plates(block, scope)):
        here = mapped(lambda *each: math.prod(each), *(counts(plate, scope) for plate in rows))
        found["present"] = spread(here, block.plates, scope.sizes).reshape(-1) > 0
    scanned, fixed = {}, {}
    for name, array in found.items():
        same = jax.tree.leaves(array)[0].shape[0] == 1
        if same:
            fixed[name] = array
        else:
            scanned[name] = jax.tree.map(lambda a: arranged(a, plan), array)
    if plan is not None:
        scanned["present"] = plan.present
    return Prepared(scanned, fixed, plan, _seeds(block, scope, plan, jax.random.fold_in(key, 1)))


class _Term(NamedTuple):
    """c of a term, and lambda by random argument, on its plates and the axis of states."""

    log: Placed
    naturals: dict[str, Placed]


def _term(block: MixtureBlock, number: int, scope: Scope) -> _Term:
    term, axis = block.terms[number], block.axes[number]
    edges = list(term.args)
    random = [edge for parent in block.parents for i, edge in parent.uses if i == number]
    args = [_argument(term, edge, edge in random, scope) for edge in edges]
    out = _states(block, scope) if term.out is block.selector else moments(term.out, scope)

    def log(out: PyTree, *args: PyTree) -> Float[Array, ""]:
        return term.factor.expected_log(out, **dict(zip(edges, args, strict=True)))

    def natural(out: PyTree, *args: PyTree) -> Parts:
        place = edges.index(random[0])
        family = FOR_DOMAIN[term.factor.edges[random[0]]]
        return family.pull(args[place], jax.grad(log, place + 1)(out, *args))

    def rest(out: PyTree, *args: PyTree) -> Float[Array, ""]:
        if not random:
            return log(out, *args)
        stats = stats_from_moments(args[edges.index(random[0])])
        linear = sum(jnp.sum(a * b) for a, b in zip(natural(out, *args), stats, strict=True))
        return log(out, *args) - linear

    def by_state(placed: Placed) -> Placed:
        placed = Placed(placed.value, tuple(STATE if plate is axis else plate for plate in placed.plates))
        return _masked(placed, term, scope) if not term.gates else _in_state(placed, term, block, scope)

    naturals = {edge: by_state(mapped(natural, out, *args)) for edge in random}
    return _Term(by_state(mapped(rest, out, *args)), naturals)


def _argument(term: EnergyBlock, edge: str, random: bool, scope: Scope) -> Placed:
    """The moments of an argument; of a random one any will do, since the log density is linear in them."""
    kind, expr = term.factor.edges[edge], term.args[edge]
    if not random:
        return moments(expr, scope, kind)
    size = expr.domain.size
    return Placed(FOR_DOMAIN[kind].first_moments(None if size is None else scope.size(size)), ())


def _states(block: MixtureBlock, scope: Scope) -> Placed:
    """The outcome of the selector's own term at each of its states."""
    family, size = family_of(block.selector), event_size(block.selector, scope)
    numbers = jnp.arange(_number(block, scope))
    return Placed(family.moments_at(numbers, *(() if size is None else (size,))), (STATE,))


def _number(block: MixtureBlock, scope: Scope) -> int:
    return event_size(block.selector, scope) or 2


def _masked(placed: Placed, term: EnergyBlock, scope: Scope) -> Placed:
    mask = present(term, scope)
    return placed if mask is None else mapped(_times, mask, placed, order=placed.plates)


def _in_state(placed: Placed, term: EnergyBlock, block: MixtureBlock, scope: Scope) -> Placed:
    """What holds in the state of a gate, and zero in all others."""
    ones = Placed(jnp.arange(_number(block, scope)) == term.gates[0].case, (STATE,))
    return mapped(_times, ones, _masked(placed, term, scope), order=placed.plates)


def _times(mask: Array, own: PyTree) -> PyTree:
    return jax.tree.map(lambda a: jnp.where(mask > 0, a, 0.0), own)


def _positions(opened: Expr, block: MixtureBlock, scope: Scope) -> Placed:
    """The number of the element in its variable, on the plates of the row, its own and that of the states."""
    if isinstance(opened, Let):
        return _positions(opened.expression, block, scope)
    if isinstance(opened, Gather):
        return gather(_positions(opened.source, block, scope), value(opened.index, scope), opened)
    assert isinstance(opened, Random)
    shape = tuple(scope.sizes[plate.name] for plate in opened.plates)
    numbers = jnp.arange(math.prod(shape), dtype=jnp.int32).reshape(shape)
    axes = {axis for axis in block.axes if axis is not None}
    return Placed(numbers, tuple(STATE if plate in axes else plate for plate in opened.plates))


def _laid(
    placed: Placed, block: MixtureBlock, own: tuple[Plate, ...], scope: Scope, states: int | None = None
) -> Array:
    """A value shaped rows + (own, state) + event, with one row where all rows are alike, summed over other plates."""
    inner = [plate for plate in placed.plates if plate not in {*block.plates, *own, STATE}]
    sizes = {**scope.sizes, STATE.name: _number(block, scope)}
    rows = block.plates if set(block.plates) & set(placed.plates) else ()
    number = () if states == 1 and STATE not in placed.plates else (STATE,)
    full = spread(placed, (*rows, *own, *number, *inner), sizes)
    kept = len(rows) + len(own) + len(number)
    full = jnp.sum(full, axis=tuple(range(kept, kept + len(inner)))) if inner else full
    event = full.shape[kept:]
    lead = math.prod(full.shape[: len(rows)])
    middle = math.prod(full.shape[len(rows) : len(rows) + len(own)])
    return full.reshape((lead, middle, sizes[STATE.name] if number else 1, *event))


def _summed(natural: Placed, block: MixtureBlock, own: tuple[Plate, ...], scope: Scope) -> Parts:
    """lambda of a parent, on one state where it is the same in all."""
    return tuple(_laid(Placed(part, natural.plates), block, own, scope, 1) for part in natural.value)


def _seeds(block: MixtureBlock, scope: Scope, plan: ScheduleLayout | None, key: Key) -> Array | None:
    """Of states that the model cannot tell apart each begins with one random row of its own."""
    if not block.alike:
        return None
    found = seeds(block.selector, scope, key).probability
    return arranged(found.reshape((-1, found.shape[-1])), plan)

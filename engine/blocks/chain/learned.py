"""Chains of states whose probabilities are random elements, under EP and power EP.

The factor of a step has, for a pair of states (i, j), the probability j of the row i, exp(<lambda_j, t>) in the
statistics of the row. Raised to the power alpha under a cavity of the row it integrates to
Z_ij = exp(A(cavity + alpha lambda_j) - A(cavity)), and sums over the states along the chain are exact with
log Z_ij / alpha in the place of log probabilities. They give the probabilities of the pairs, with which the tilted
distribution of a row is a mixture of its cavity, where the parent is in another state, and of the cavities
+ alpha lambda_j; that is projected. All steps are taken side by side. As alpha goes to zero this is structured VMP.
Source: paquet2007thesis, section 3.8.1; minka2005divergence.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from ....compiler.blocks.whole import LearnedChainBlock
from ....compiler.language.nodes import Expr, Plate, Random, source_of
from ....factors.arrays import Array, Key, Numeric
from ....factors.factor import Term
from ....factors.families import FOR_DOMAIN, ExponentialFamily
from ...values.first_beliefs import discrete_family_of, event_size, family_of
from ...values.instances import count, numbered
from ...values.naturals import Naturals, Parts, add, subtract
from ...values.plated import spread
from ...values.scope import Scope
from ..discrete import tables
from ..mixture import by_event, cavity_of
from . import discrete_chain
from .discrete_chain import Probabilities, SmoothedStates, Transitions
from .transitions import (
    after_each,
    axes_of,
    expected_log,
    first_of,
    outcomes,
    state_count,
    table_of,
)


class Rows(NamedTuple):
    """Where a term finds its probabilities: by step, state of the parent and lane the element; lambda by outcome."""

    position: Int[Array, "time states lanes"]
    outcome: Parts


class Prepared(NamedTuple):
    """Of each term its rows, or the logarithms of its known probabilities."""

    first: Rows | Probabilities
    then: Rows | Transitions


class Messages(NamedTuple):
    """To the states of the elements, flat, and to the rows of each term, by step, state and lane; () of a known one."""

    states: Parts
    first: Parts
    then: Parts


class Step(NamedTuple):
    """The rows of a term: their cavities, these with each outcome, and log Z / power; `whole` tells proper cavities."""

    cavity: Parts
    after: Parts
    log: Float[Array, "time states lanes outcome"]
    whole: Bool[Array, "time states lanes"]


class Tilted(NamedTuple):
    """The messages of all others to the states, flat, the rows of each term, and the states along the chain."""

    outside: Parts
    first: Step | None
    then: Step | None
    smoothed: SmoothedStates


def prepare(block: LearnedChainBlock, scope: Scope, key: Key, apart: bool = False) -> Prepared:
    """What depends on data only; there is nothing random in it."""
    node: Random = block.out
    order = axes_of(node, scope).order
    first: Rows | Probabilities = (
        first_of(node, scope, expected_log) if block.first is None else _rows(block, block.first, scope, order[1:])
    )
    then: Rows | Transitions
    if block.then is not None:
        states = Plate("states of the previous element", state_count(node, scope))
        rows = _rows(block, block.then, after_each(node, states, scope), order, states)
        then = rows._replace(position=rows.position[1:])
    else:
        table = table_of(node, scope, expected_log)
        then = table[1:] if table.shape[0] > 1 else table
    return Prepared(first, then)


def _rows(
    block: LearnedChainBlock, element: Expr, scope: Scope, plates: tuple[Plate, ...], states: Plate | None = None
) -> Rows:
    """The places of an element on these plates, by time where they have it, and by state of the parent."""
    others = axes_of(block.out, scope).order[1:]
    wanted = (*plates, *(() if states is None else (states,)))
    sizes = {**scope.sizes, **({} if states is None else {states.name: states.size})}
    full = spread(numbered(element, scope), wanted, sizes)
    lanes = math.prod(scope.sizes[plate.name] for plate in others)
    full = full.reshape((-1, lanes, 1 if states is None else full.shape[-1]))
    term = block.chain.first if states is None else block.chain.then
    assert isinstance(term, Term)
    return Rows(jnp.swapaxes(full, 1, 2).astype(jnp.int32), _outcome(term, block.out, scope))


def _outcome(term: Term, node: Random, scope: Scope) -> Parts:
    """lambda by outcome: the log probability of an outcome is linear in the statistics of the row."""
    ((edge, arg),) = term.args.items()
    family, density = FOR_DOMAIN[term.factor.edges[edge]], term.factor.expected_log
    assert density is not None
    any_moments = family.first_moments(None if arg.domain.size is None else scope.size(arg.domain.size))

    def natural(out) -> Parts:
        return family.pull(any_moments, jax.grad(lambda own: density(out, **{edge: own}))(any_moments))

    return jax.vmap(natural)(outcomes(node, state_count(node, scope)))


def initial(block: LearnedChainBlock, prepared: Prepared, scope: Scope) -> Messages:
    """Uniform messages."""
    node: Random = block.out
    states = family_of(node).uniform((count(node, scope.sizes),), event_size(node, scope)).naturals()

    def zeros(rows: Rows | Array) -> Parts:
        if not isinstance(rows, Rows):
            return ()
        return tuple(jnp.zeros((*rows.position.shape, *part.shape[1:])) for part in rows.outcome)

    return Messages(states, zeros(prepared.first), zeros(prepared.then))


def _family(element: Expr | None) -> tuple[str, type[ExponentialFamily]]:
    """Name and family of the variable that rows are elements of."""
    assert element is not None
    variable = source_of(element)
    assert isinstance(variable, Random)
    return variable.name, family_of(variable)


def _step(element: Expr | None, rows: Rows | Array, naturals: Naturals, message: Parts, power: float) -> Step | None:
    """The rows of a term under their cavities; None where its probabilities are known."""
    if not isinstance(rows, Rows):
        return None
    name, family = _family(element)
    belief = tuple(own[rows.position] for own in naturals[name])
    cavity, whole = cavity_of(family, belief, tuple(power * part for part in message))
    after = tuple(part[:, :, :, None] + power * own for part, own in zip(cavity, rows.outcome, strict=True))
    before = family.from_naturals(cavity).log_partition()
    log = (family.from_naturals(after).log_partition() - before[..., None]) / power
    return Step(cavity, after, log, whole)


def tilted(
    block: LearnedChainBlock, prepared: Prepared, naturals: Naturals, messages: Messages, scope: Scope
) -> Tilted:
    """The states along the chain under the messages of all other factors, and under the cavities of the rows."""
    node, power = block.out, block.method.alpha
    outside = subtract(naturals[node.name], messages.states)
    first = _step(block.first, prepared.first, naturals, messages.first, power)
    then = _step(block.then, prepared.then, naturals, messages.then, power)
    begin = prepared.first if first is None else jnp.swapaxes(first.log[0, 0], 0, 1)
    table = prepared.then if then is None else jnp.swapaxes(then.log, 2, 3)
    assert not isinstance(begin, Rows)
    assert not isinstance(table, Rows)
    log = axes_of(node, scope).from_flat(discrete_family_of(node).from_naturals(outside).logits_by_state())
    return Tilted(outside, first, then, discrete_chain.smooth(begin, table, log))


def targets(block: LearnedChainBlock, found: Tilted, scope: Scope) -> Messages:
    """The messages that the projections of the tilted distributions ask for."""
    node, smoothed = block.out, found.smoothed
    logits = axes_of(node, scope).to_flat(smoothed.message - jnp.max(smoothed.message, axis=1, keepdims=True))
    states = discrete_family_of(node).from_logits(tables.bounded(logits, True)).naturals()
    of_first = jnp.swapaxes(smoothed.first, 0, 1)[None, None]
    of_pairs = jnp.swapaxes(smoothed.counts, 2, 3)
    return Messages(
        states,
        _projected(block, block.first, found.first, of_first),
        _projected(block, block.then, found.then, of_pairs),
    )


def _projected(
    block: LearnedChainBlock,
    element: Expr | None,
    step: Step | None,
    chances: Float[Array, "time states lanes outcome"],
) -> Parts:
    """The message to rows, whose parent is in their state and leads to each outcome with these chances."""
    if step is None:
        return ()
    _, family = _family(element)
    before = family.from_naturals(step.cavity).expected_stats()
    after = family.from_naturals(step.after).expected_stats()
    rest = 1.0 - jnp.sum(chances, axis=-1)
    stats = tuple(
        by_event(rest, b) * b + jnp.sum(by_event(chances, a) * a, axis=3) for b, a in zip(before, after, strict=True)
    )
    wanted = subtract(family.from_stats(stats).naturals(), step.cavity)
    return tuple(part / block.method.alpha for part in wanted)


def update(
    block: LearnedChainBlock, prepared: Prepared, naturals: Naturals, messages: Messages, step: Numeric, scope: Scope
) -> tuple[Naturals, Messages, Int[Array, ""]]:
    """All elements and all rows at once."""
    found = tilted(block, prepared, naturals, messages, scope)

    def step_of(new: Array, old: Array) -> Array:
        return jnp.where(jnp.isfinite(new), step * (new - old), 0.0)

    change = jax.tree.map(step_of, targets(block, found, scope), messages)
    messages = jax.tree.map(jnp.add, messages, change)
    return accumulate(block, prepared, change, naturals), messages, _short(found)


def accumulate(block: LearnedChainBlock, prepared: Prepared, messages: Messages, naturals: Naturals) -> Naturals:
    """Adds all messages of the block to the flat naturals."""
    name = block.out.name
    naturals = {**naturals, name: add(naturals[name], messages.states)}
    for element, rows, parts in zip(block.probabilities, prepared, messages[1:], strict=True):
        if isinstance(rows, Rows):
            name, _ = _family(element)
            own = zip(naturals[name], parts, strict=True)
            naturals[name] = tuple(one.at[rows.position].add(part) for one, part in own)
    return naturals


def evidence(
    block: LearnedChainBlock, prepared: Prepared, naturals: Naturals, messages: Messages, scope: Scope
) -> Float[Array, ""]:
    """log Z of the chain, less the normalisers of its beliefs, + sum of (A(cavity) - A(belief)) / power of the rows."""
    found, power = tilted(block, prepared, naturals, messages, scope), block.method.alpha
    belief = family_of(block.out).from_naturals(naturals[block.out.name])
    total = jnp.sum(found.smoothed.log_z) - belief.log_partition().sum()
    steps = found.first, found.then
    for element, step, message in zip(block.probabilities, steps, messages[1:], strict=True):
        if step is not None:
            _, family = _family(element)
            own = add(step.cavity, tuple(power * part for part in message))
            change = family.from_naturals(step.cavity).log_partition() - family.from_naturals(own).log_partition()
            total = total + change.sum() / power
    return total


def improper(
    block: LearnedChainBlock, prepared: Prepared, naturals: Naturals, messages: Messages, scope: Scope
) -> Int[Array, ""]:
    """Of how many rows a cavity is no distribution."""
    return _short(tilted(block, prepared, naturals, messages, scope))


def _short(found: Tilted) -> Int[Array, ""]:
    return sum((jnp.sum(~step.whole) for step in (found.first, found.then) if step is not None), jnp.zeros((), int))


def naturals_of(block: LearnedChainBlock, stats: Messages) -> Messages:
    """The naturals of the members with these statistics, in the form of messages."""

    def own(element: Expr | None, parts: Parts) -> Parts:
        return _family(element)[1].from_stats(parts).naturals() if parts else ()

    states = family_of(block.out).from_stats(stats.states).naturals()
    return Messages(states, own(block.first, stats.first), own(block.then, stats.then))

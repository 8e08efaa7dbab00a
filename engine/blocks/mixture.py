"""EP of mixtures: the tilted distribution of a row is a finite mixture of conjugate posteriors, known in closed form.

A row is one element of the selector. In state k its data multiply the cavity of a parent, with naturals eta, by
exp(power * <lambda_k, t> + power * c_k): a member of the same family again. So log Z_k, the integral of that, is a
difference of log normalisers, and the expected statistics are averages over the states.

Under power EP the selector has a message, its probabilities p, which stands in the tilted distribution with the
exponent 1 - power: p_k is proportional to p_k^(1 - power) Z_k, so p_k to Z_k^(1 / power). That is put in for p, and the
row adds logsumexp_k(log Z_k / power) to the evidence. The fixed points are those of source paquet2007thesis, whose
inner loops search for p.

Where a cavity is no distribution, less of the message is taken out, and that is counted: a state that needs it is no
fixed point of EP (`improper`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int, PyTree

from ...compiler.blocks.energy import EnergyBlock
from ...compiler.blocks.mixture import MixtureBlock, Parent
from ...compiler.language.nodes import Expr, Gather, Let, Plate, Random
from ...factors.arrays import Array, Key, Numeric
from ...factors.families import FOR_DOMAIN, ExponentialFamily
from ..values.evaluate import gather, value
from ..values.first_beliefs import discrete_family_of, event_size, family_of, seeds, stats_from_moments
from ..values.instances import ScheduleLayout, arranged, count, flattened, layout, schedule_shape
from ..values.masks import present
from ..values.moments import moments
from ..values.naturals import Naturals, Parts, add, subtract
from ..values.padding import counts, padded_plates
from ..values.plated import Placed, mapped, spread
from ..values.scope import Scope
from .discrete import tables

logsumexp = jax.scipy.special.logsumexp
STATE = Plate("state")
FIRST = 3  # times that rows are given to states before the first sweep
SHARES = (0.9, 0.5, 0.0)  # of a message that are taken out where all of it would leave no distribution
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


# To each parent its naturals, in schedule order, shaped as the positions; and last to a selector that is kept.
Messages = tuple[Parts, ...]


class Tilted(NamedTuple):
    """What a batch of rows says: log Z / power by state, the beliefs projected, and which cavities are whole.

    Of a selector that is kept `outside` is what all others say of it, 0 otherwise; `states` has that too.
    """

    states: Float[Array, "row state"]
    outside: Float[Array, "row state"]
    cavities: tuple[Parts, ...]
    projected: tuple[Parts, ...]
    whole: Bool[Array, " row"]


# what depends on data only ------------------------------------------------------------------------------------------


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


# messages -----------------------------------------------------------------------------------------------------------


def initial(block: MixtureBlock, prepared: Prepared, scope: Scope) -> Messages:
    """Uniform messages."""
    shape = schedule_shape(prepared.plan, block, scope.sizes)
    found = []
    for number, parent in enumerate(block.parents):
        natural, position = _both(prepared, number)
        dims = position.shape[-2:]
        ndims = family_of(parent.variable).natural_ndims
        events = (part.shape[part.ndim - ndim :] for part, ndim in zip(natural, ndims, strict=True))
        found.append(tuple(jnp.zeros((*shape, *dims, *event)) for event in events))
    if block.kept:
        event = () if block.selector.domain.is_boolean else (_number(block, scope),)
        found.append((jnp.zeros((*shape, *event)),))
    return tuple(found)


def begin(block: MixtureBlock, prepared: Prepared, naturals: Naturals, scope: Scope) -> Messages:
    """The messages that a run begins with, where the beliefs have these naturals without any.

    Where the model cannot tell the states apart, each is first one random row of its own; then rows belong to states as
    these predict them, some times over. Messages are then shares of the likelihood, so that beliefs are proper.
    """
    messages = initial(block, prepared, scope)
    if prepared.seeds is None:
        return messages
    local, uniform = all_rows(prepared, messages)
    chances = prepared.seeds.reshape((-1, prepared.seeds.shape[-1]))

    def again(_: Numeric, chances: Float[Array, "row state"]) -> Float[Array, "row state"]:
        shares = _shares(block, local, chances, uniform)
        return _predicted(block, local, _added(block, local, naturals, shares), uniform)

    shares = _shares(block, local, jax.lax.fori_loop(0, FIRST, again, chances), uniform)
    return jax.tree.map(lambda part, like: part.reshape(like.shape), shares, messages)


def towards(block: MixtureBlock, prepared: Prepared, naturals: Naturals, scope: Scope) -> Messages:
    """The messages that a run begins with where these beliefs are given: rows belong to states as they predict them."""
    messages = initial(block, prepared, scope)
    local, uniform = all_rows(prepared, messages)
    shares = _shares(block, local, _predicted(block, local, naturals, uniform), uniform)
    return jax.tree.map(lambda part, like: part.reshape(like.shape), shares, messages)


def _predicted(block: MixtureBlock, local: Local, naturals: Naturals, uniform: Messages) -> Float[Array, "row state"]:
    return jax.nn.softmax(tilted(block, local, naturals, uniform, 1.0).states, axis=-1)


def _shares(block: MixtureBlock, local: Local, chances: Float[Array, "row state"], like: Messages) -> Messages:
    """The likelihood of each row, to the power of the chances of its states."""
    here = local.get("present")
    weight = (chances if here is None else jnp.where(here[:, None], chances, 0.0))[:, None, :]
    found = []
    for number, (parent, parts) in enumerate(zip(block.parents, like, strict=False)):
        own = []
        for part, zeros in zip(local[f"natural{number}"], parts, strict=True):
            share = by_event(weight, part) * part
            own.append(zeros + (share if parent.chosen else jnp.sum(share, axis=2, keepdims=True)))
        found.append(tuple(own))
    return (*found, *like[len(found) :])


def _both(prepared: Prepared, number: int) -> tuple[Parts, Int[Array, "..."]]:
    arrays = {
        **prepared.scanned,
        **{name: jax.tree.map(lambda a: a[None], own) for name, own in prepared.fixed.items()},
    }
    return arrays[f"natural{number}"], arrays[f"position{number}"]


def tilted(
    block: MixtureBlock, local: Local, naturals: Naturals, messages: Messages, power: float | None = None
) -> Tilted:
    """The rows of a batch: cavities, log Z, and the projection of each parent, by default with the block's power."""
    power = block.method.alpha if power is None else power
    log_z = power * local["log"]
    cavities, posteriors = [], []
    whole = jnp.asarray(True)
    for number, (parent, message) in enumerate(zip(block.parents, messages, strict=False)):
        belief = tuple(n[local[f"position{number}"]] for n in naturals[parent.variable.name])
        cavity, proper = cavity_of(family_of(parent.variable), belief, tuple(power * m for m in message))
        whole = whole & jnp.all(proper, axis=(1, 2))
        cavities.append(cavity)
        posteriors.append(add(cavity, tuple(power * part for part in local[f"natural{number}"])))
    for parent, cavity, posterior in zip(block.parents, cavities, posteriors, strict=True):
        before, after = (family_of(parent.variable).from_naturals(own).log_partition() for own in (cavity, posterior))
        log_z = log_z + (after - before).sum(axis=1)
    outside = jnp.zeros(())
    if block.kept:
        family = discrete_family_of(block.selector)
        outside = family.from_naturals(_outside(block, local, naturals, messages)).logits_by_state()
    states = log_z / power + outside
    chances = jax.nn.softmax(states, axis=-1)
    projected = tuple(
        _projected(parent, cavity, posterior, chances)
        for parent, cavity, posterior in zip(block.parents, cavities, posteriors, strict=True)
    )
    return Tilted(states, outside, tuple(cavities), projected, whole)


def _outside(block: MixtureBlock, local: Local, naturals: Naturals, messages: Messages) -> Parts:
    """The naturals of what all others say of a selector that is kept."""
    return subtract(tuple(own[local["own"]] for own in naturals[block.selector.name]), messages[-1])


def _to_selector(block: MixtureBlock, found: Tilted) -> Messages:
    """The message to a selector that is kept."""
    if not block.kept:
        return ()
    logits = found.states - found.outside
    logits = tables.bounded(logits - jnp.max(logits, axis=-1, keepdims=True), True)
    return (discrete_family_of(block.selector).from_logits(logits).naturals(),)


def cavity_of(
    family: type[ExponentialFamily], belief: Parts, message: Parts
) -> tuple[Parts, Bool[Array, "row own state"]]:
    """The belief without a message, or without a share of it, and where all of it is out."""

    def without(share: Numeric) -> Parts:
        return tuple(
            b - (share if jnp.ndim(share) == 0 else by_event(jnp.asarray(share), m)) * m
            for b, m in zip(belief, message, strict=True)
        )

    def is_proper(cavity: Parts) -> Bool[Array, "row own state"]:
        return jnp.asarray(family.from_naturals(cavity).is_proper())

    whole = is_proper(without(1.0))

    def shortened(share: Float[Array, "row own state"]) -> Float[Array, "row own state"]:
        """The largest share that leaves a distribution; a loop, so that the test of that is compiled once."""
        shares = jnp.array(sorted(SHARES))

        def longer(i: Numeric, share: Float[Array, "row own state"]) -> Float[Array, "row own state"]:
            less = jnp.full_like(share, shares[i])
            return jnp.where(whole | ~is_proper(without(less)), share, less)

        return jax.lax.fori_loop(0, len(SHARES), longer, share)

    share = jnp.where(whole, 1.0, 0.0)
    return without(jax.lax.cond(jnp.all(whole), lambda own: own, shortened, share)), whole


def _projected(parent: Parent, cavity: Parts, posterior: Parts, states: Float[Array, "row state"]) -> Parts:
    """The member with the expected statistics of the mixture of a parent's posteriors."""
    family: type[ExponentialFamily] = family_of(parent.variable)
    after = family.from_naturals(posterior).expected_stats()
    weight = states[:, None, :]
    if parent.chosen:
        before = family.from_naturals(cavity).expected_stats()
        stats = tuple(
            by_event(1.0 - weight, b) * b + by_event(weight, a) * a for b, a in zip(before, after, strict=True)
        )
    else:
        stats = tuple(jnp.sum(by_event(weight, a) * a, axis=2, keepdims=True) for a in after)
    return family.from_stats(stats).naturals()


def by_event(weight: Float[Array, "row own state"], array: Numeric) -> Array:
    return weight.reshape((*weight.shape, *(1,) * (jnp.ndim(array) - weight.ndim)))


def _change(
    block: MixtureBlock, local: Local, naturals: Naturals, old: Messages, step: Numeric
) -> tuple[Messages, Int[Array, ""]]:
    """What a batch adds to its messages, and of how many rows a cavity was no distribution."""
    power = block.method.alpha
    found = tilted(block, local, naturals, old)
    targets = tuple(
        tuple(part / power for part in subtract(new, cavity))
        for new, cavity in zip(found.projected, found.cavities, strict=True)
    )
    targets = (*targets, *_to_selector(block, found))
    here = local.get("present", jnp.ones_like(found.whole))
    finite = jnp.isfinite(logsumexp(found.states, axis=-1))
    for parts in targets:
        for part in parts:
            finite = finite & jnp.all(jnp.isfinite(part), axis=tuple(range(1, part.ndim)))
    moved = here & finite

    def step_of(new: Array, before: Array) -> Array:
        return jnp.where(moved.reshape((-1,) + (1,) * (before.ndim - 1)), step * (new - before), 0.0)

    change = jax.tree.map(step_of, targets, old)
    return change, jnp.sum(here & ~found.whole)


def _added(block: MixtureBlock, local: Local, naturals: Naturals, parents: tuple[Parts, ...]) -> Naturals:
    naturals = dict(naturals)
    if block.kept:
        own = zip(naturals[block.selector.name], parents[-1], strict=True)
        naturals[block.selector.name] = tuple(one.at[local["own"]].add(part) for one, part in own)
    for number, (parent, parts) in enumerate(zip(block.parents, parents, strict=False)):
        name, position = parent.variable.name, local[f"position{number}"]
        if position.shape[0] == 1:  # the same elements for all rows
            parts = tuple(part.sum(0, keepdims=True) for part in parts)
        naturals[name] = tuple(own.at[position].add(part) for own, part in zip(naturals[name], parts, strict=True))
    return naturals


def update(
    block: MixtureBlock, prepared: Prepared, naturals: Naturals, messages: Messages, step: Numeric, scope: Scope
) -> tuple[Naturals, Messages, Int[Array, ""]]:
    """One sweep over the batches."""

    def batch(carry, scanned):
        naturals, short = carry
        data, old = scanned
        local = {**prepared.fixed, **data}
        change, counted = _change(block, local, naturals, old, step)
        naturals = _added(block, local, naturals, change)
        return (naturals, short + counted), jax.tree.map(jnp.add, old, change)

    carry = (naturals, jnp.zeros((), int))
    (naturals, short), messages = jax.lax.scan(batch, carry, (prepared.scanned, messages))
    return naturals, messages, short


def naturals_of(block: MixtureBlock, stats: Messages) -> Messages:
    """The naturals of the members with these statistics, in the form of messages."""
    variables = [*(parent.variable for parent in block.parents), block.selector]
    each = zip(variables, stats, strict=False)
    return tuple(family_of(variable).from_stats(own).naturals() for variable, own in each)


def all_rows(prepared: Prepared, messages: Messages) -> tuple[Local, Messages]:
    """The data and the messages of all rows."""
    data, flat = flattened(prepared.scanned, messages)
    return {**prepared.fixed, **data}, flat


def accumulate(block: MixtureBlock, prepared: Prepared, messages: Messages, naturals: Naturals) -> Naturals:
    """Adds all messages of the block to the flat naturals."""
    local, flat = all_rows(prepared, messages)
    return _added(block, local, naturals, flat)


def evidence(
    block: MixtureBlock, prepared: Prepared, naturals: Naturals, messages: Messages, scope: Scope
) -> Float[Array, ""]:
    """Sum over rows of logsumexp_k(log Z_k / power) + sum of (A(cavity) - A(belief)) / power."""
    power = block.method.alpha
    local, flat = all_rows(prepared, messages)
    found = tilted(block, local, naturals, flat)
    total = logsumexp(found.states, axis=-1)
    if block.kept:
        belief = add(_outside(block, local, naturals, flat), flat[-1])
        total = total - family_of(block.selector).from_naturals(belief).log_partition()
    for parent, cavity, message in zip(block.parents, found.cavities, flat, strict=False):
        family = family_of(parent.variable)
        belief = add(cavity, tuple(power * part for part in message))
        change = family.from_naturals(cavity).log_partition() - family.from_naturals(belief).log_partition()
        total = total + change.sum(axis=(1, 2)) / power
    if "present" in local:
        total = jnp.where(local["present"], total, 0.0)
    return jnp.sum(total)


def improper(
    block: MixtureBlock, prepared: Prepared, naturals: Naturals, messages: Messages, scope: Scope
) -> Int[Array, ""]:
    """Of how many rows a cavity is no distribution."""
    local, flat = all_rows(prepared, messages)
    found = tilted(block, local, naturals, flat)
    return jnp.sum(local.get("present", jnp.ones_like(found.whole)) & ~found.whole)


def states(
    block: MixtureBlock, prepared: Prepared, naturals: Naturals, messages: Messages
) -> Float[Array, "row state"]:
    """The log probabilities of the selector's states, by row in schedule order."""
    local, flat = all_rows(prepared, messages)
    return jax.nn.log_softmax(tilted(block, local, naturals, flat).states, axis=-1)

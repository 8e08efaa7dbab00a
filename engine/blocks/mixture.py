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

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from ...compiler.blocks.mixture import MixtureBlock, Parent
from ...factors.arrays import Array, Numeric
from ...factors.families import ExponentialFamily
from ..values.first_beliefs import discrete_family_of, event_size, family_of
from ..values.instances import flattened, schedule_shape
from ..values.naturals import Naturals, Parts, add, subtract
from ..values.scope import Scope
from .discrete import tables
from .mixture_data import Local, Prepared

logsumexp = jax.scipy.special.logsumexp
FIRST = 3  # times that rows are given to states before the first sweep
SHARES = (0.9, 0.5, 0.0)  # of a message that are taken out where all of it would leave no distribution


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
        selector = block.selector
        found.append(family_of(selector).uniform(shape, event_size(selector, scope)).naturals())
    return tuple(found)


def begin(block: MixtureBlock, prepared: Prepared, naturals: Naturals, scope: Scope) -> Messages:
    """The messages that a run begins with, where the beliefs have these naturals without any.

    Where the model cannot tell the states apart, each is first one random row of its own; then rows belong to states as
    these predict them, some times over. Messages are then shares of the likelihood, so that beliefs are proper.
    """
    messages = initial(block, prepared, scope)
    if prepared.seeds is None:
        return messages

    def again(_: Numeric, chances: Float[Array, "batch row state"]) -> Float[Array, "batch row state"]:
        def one(now: Naturals, scanned: tuple[Local, Array, Messages]) -> tuple[Naturals, None]:
            data, own, uniform = scanned
            local = {**prepared.fixed, **data}
            return added(block, local, now, shares(block, local, own, uniform)), None

        now = jax.lax.scan(one, naturals, (prepared.scanned, chances, messages))[0]
        return _predicted(block, prepared, now, messages)

    return belonging(block, prepared, jax.lax.fori_loop(0, FIRST, again, prepared.seeds), scope)


def towards(block: MixtureBlock, prepared: Prepared, naturals: Naturals, scope: Scope) -> Messages:
    """The messages that a run begins with where these beliefs are given: rows belong to states as they predict them."""
    messages = initial(block, prepared, scope)
    return belonging(block, prepared, _predicted(block, prepared, naturals, messages), scope)


def belonging(
    block: MixtureBlock, prepared: Prepared, chances: Float[Array, "batch row state"], scope: Scope
) -> Messages:
    """The messages where rows, in batches, belong to their states with these probabilities."""

    def one(_: None, scanned: tuple[Local, Array, Messages]) -> tuple[None, Messages]:
        data, own, uniform = scanned
        return None, shares(block, {**prepared.fixed, **data}, own, uniform)

    return jax.lax.scan(one, None, (prepared.scanned, chances, initial(block, prepared, scope)))[1]


def _predicted(
    block: MixtureBlock, prepared: Prepared, naturals: Naturals, uniform: Messages
) -> Float[Array, "batch row state"]:
    def one(_: None, scanned: tuple[Local, Messages]) -> tuple[None, Float[Array, "row state"]]:
        data, own = scanned
        found = tilted(block, {**prepared.fixed, **data}, naturals, own, 1.0)
        return None, jax.nn.softmax(found.states, axis=-1)

    return jax.lax.scan(one, None, (prepared.scanned, uniform))[1]


def shares(block: MixtureBlock, local: Local, chances: Float[Array, "row state"], like: Messages) -> Messages:
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


def added(block: MixtureBlock, local: Local, naturals: Naturals, parents: tuple[Parts, ...]) -> Naturals:
    """The naturals of the beliefs with what these rows say added."""
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
        naturals = added(block, local, naturals, change)
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
    data, flat = flattened((prepared.scanned, messages), prepared.plan)
    return {**prepared.fixed, **data}, flat


def accumulate(block: MixtureBlock, prepared: Prepared, messages: Messages, naturals: Naturals) -> Naturals:
    """Adds all messages of the block to the flat naturals."""
    local, flat = all_rows(prepared, messages)
    return added(block, local, naturals, flat)


def evidence(
    block: MixtureBlock, prepared: Prepared, naturals: Naturals, messages: Messages, scope: Scope
) -> Float[Array, ""]:
    """Sum over rows of logsumexp_k(log Z_k / power) + sum of (A(cavity) - A(belief)) / power."""
    partition = {
        parent.variable.name: jnp.asarray(
            family_of(parent.variable).from_naturals(naturals[parent.variable.name]).log_partition()
        )
        for parent in block.parents
    }

    def batch(total: Float[Array, ""], scanned: tuple[Local, Messages]) -> tuple[Float[Array, ""], None]:
        data, own = scanned
        local = {**prepared.fixed, **data}
        return total + jnp.sum(_by_row(block, local, naturals, own, partition)), None

    return jax.lax.scan(batch, jnp.zeros(()), (prepared.scanned, messages))[0]


def _by_row(
    block: MixtureBlock, local: Local, naturals: Naturals, messages: Messages, partition: Mapping[str, Array]
) -> Float[Array, " row"]:
    """What each row adds to the evidence; `partition` has A of the beliefs about all elements of the parents.

    Where a share of a message was left in a cavity, A is not that of the belief but of the cavity and the message.
    """
    power = block.method.alpha
    found = tilted(block, local, naturals, messages)
    total = logsumexp(found.states, axis=-1)
    if block.kept:
        belief = add(_outside(block, local, naturals, messages), messages[-1])
        total = total - family_of(block.selector).from_naturals(belief).log_partition()
    for number, (parent, cavity, message) in enumerate(zip(block.parents, found.cavities, messages, strict=False)):
        family: type[ExponentialFamily] = family_of(parent.variable)
        before = jnp.asarray(family.from_naturals(cavity).log_partition())

        def together(cavity: Parts, message: Parts, family: type[ExponentialFamily] = family) -> Array:
            belief = add(cavity, tuple(power * part for part in message))
            return jnp.asarray(family.from_naturals(belief).log_partition())

        known = jnp.broadcast_to(partition[parent.variable.name][local[f"position{number}"]], before.shape)
        belief = jax.lax.cond(
            jnp.all(found.whole), lambda _, known=known: known, lambda own, of=together: of(*own), (cavity, message)
        )
        total = total + (before - belief).sum(axis=(1, 2)) / power
    return jnp.where(local["present"], total, 0.0) if "present" in local else total


def improper(
    block: MixtureBlock, prepared: Prepared, naturals: Naturals, messages: Messages, scope: Scope
) -> Int[Array, ""]:
    """Of how many rows a cavity is no distribution."""

    def batch(total: Int[Array, ""], scanned: tuple[Local, Messages]) -> tuple[Int[Array, ""], None]:
        data, own = scanned
        local = {**prepared.fixed, **data}
        found = tilted(block, local, naturals, own)
        return total + jnp.sum(local.get("present", jnp.ones_like(found.whole)) & ~found.whole), None

    return jax.lax.scan(batch, jnp.zeros((), int), (prepared.scanned, messages))[0]


def states(
    block: MixtureBlock, prepared: Prepared, naturals: Naturals, messages: Messages
) -> Float[Array, "row state"]:
    """The log probabilities of the selector's states, by row in schedule order."""
    local, flat = all_rows(prepared, messages)
    return jax.nn.log_softmax(tilted(block, local, naturals, flat).states, axis=-1)

"""EP for any factor over the slots of an instance: cavities, messages, updates and evidence.

States are summed, Gaussians integrated in closed form and the rest by quadrature: see `tilted.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from ....compiler.blocks.slots import Edge, SlotsBlock
from ....factors.arrays import Array, Numeric
from ....factors.factor import Site
from ....factors.families.matrices import regular_inverse
from ....factors.moments import Count
from ....factors.special import log_sigmoid
from ...values.first_beliefs import family_of
from ...values.instances import flattened, root, schedule_shape
from ...values.scope import Scope
from ..discrete.tables import CERTAIN
from ..site.sites import Flat, Term, partition_change, project, readable, scatter
from . import vectors
from .nodes import Cavity, gaussian
from .slot_data import Local, Prepared, axes_of, selected
from .tilted import Outcome, OverStates, entire, outcome

logsumexp = jax.scipy.special.logsumexp
FLOOR = 1e-3  # of a cavity's rate and shape, relative to the belief's
SMALLEST = 1e-10


class Messages(NamedTuple):
    """Messages in schedule order: to each edge its naturals (Gaussians: shift and precision), and to random states."""

    edges: tuple[tuple[Float[Array, "batch row ..."], ...], ...]
    states: tuple[Float[Array, "batch row ..."], ...]


def initial(block: SlotsBlock, prepared: Prepared, scope: Scope) -> Messages:
    """Uniform messages."""
    shape = schedule_shape(prepared.plan, block, scope.sizes)
    arrays = {**prepared.scanned, **{name: array[None] for name, array in prepared.fixed.items()}}
    edges = []
    for number, edge in enumerate(block.edges):
        position = arrays.get(f"position{number}")
        dims = (1,) * len(block.discrete) if position is None else position.shape[2:]
        events = [()] * len(family_of(edge.variable).natural_ndims)
        if entire(edge):
            size = scope.size(edge.variable.domain.size)
            events = [(size,), (size, size)]
        edges.append(tuple(jnp.zeros((*shape, *dims, *event)) for event in events))
    sizes = [axis.size for axis in axes_of(block, scope)][len(block.discrete) - len(block.atoms) :]
    states = tuple(
        jnp.zeros(shape if atom.domain.is_boolean else (*shape, size or 0))
        for atom, size in zip(block.atoms, sizes, strict=True)
    )
    return Messages(tuple(edges), states)


def _rows(number: int, local: Local, shape: tuple[int, ...]) -> Term:
    """An edge as a term over rows: instances and the states that choose its element, in one axis."""
    position, direction = local.get(f"position{number}"), local.get(f"direction{number}")
    if position is not None:
        position = jnp.broadcast_to(position, shape).reshape(-1)
    if direction is not None:
        direction = jnp.broadcast_to(direction, (*shape, direction.shape[-1])).reshape(-1, direction.shape[-1])
    return Term(position, jnp.ones(()), direction)


def _cavity(block: SlotsBlock, number: int, local: Local, naturals: Flat, message: tuple[Array, ...]) -> Cavity:
    edge, power = block.edges[number], block.method.alpha
    if entire(edge):
        position = local.get(f"position{number}")
        belief = tuple(part[0] if position is None else part[position] for part in naturals[edge.variable.name])
        values, floored = vectors.cavity(belief, message, power)
        return Cavity(values, None, floored)
    shape = message[0].shape
    term, own = _rows(number, local, shape), naturals[edge.variable.name]
    if gaussian(edge):
        found = project(
            term, readable(edge.variable, own), jnp.stack([part.reshape(-1) for part in message], axis=-1), power
        )
        found = jax.tree.map(lambda a: jnp.broadcast_to(a, (message[0].size,)).reshape(shape), found)
        return Cavity(found.cavity, found, found.floored)
    belief = [(part[0] if term.position is None else part[term.position].reshape(shape)) for part in own]
    if edge.variable.domain.is_count:
        return Cavity((belief[0] - power * message[0],), None, jnp.zeros(shape, bool))
    # Rate and shape of a Gamma, both exponents of a Beta: as positive numbers.
    sign, one = (jnp.asarray([-1.0, 1.0]), jnp.asarray([0.0, 1.0])) if _is_gamma(edge) else (jnp.ones(2), jnp.ones(2))
    floored, values = jnp.zeros(shape, bool), []
    for i, (part, change) in enumerate(zip(belief, message, strict=True)):
        whole = sign[i] * part + one[i]
        left = whole - sign[i] * power * change
        low = jnp.maximum(FLOOR * whole, SMALLEST)
        floored = floored | (left < low)
        values.append(sign[i] * (jnp.maximum(left, low) - one[i]))
    return Cavity(tuple(values), None, floored)


def generates(block: SlotsBlock, edge: Edge) -> bool:
    """Whether the edge is to a latent count that the factor generates: its 1 / x! is in the count's family already."""
    return edge.variable.domain.is_count and edge.element is block.out


def _is_gamma(edge: Edge) -> bool:
    return edge.variable.domain.is_positive


def _log_states(block: SlotsBlock, local: Local, naturals: Flat, states: tuple[Array, ...]) -> list[OverStates]:
    """The cavities of the discrete slots as log probabilities, each along its own axis; the selector's first."""
    logs = []
    for number, (atom, message) in enumerate(zip(block.atoms, states, strict=True)):
        own, place = naturals[root(atom).name][0], local.get(f"state{number}")
        cavity = (own[0] if place is None else own[place]) - block.method.alpha * message
        if atom.domain.is_boolean:
            logs.append(jnp.stack([log_sigmoid(-cavity), log_sigmoid(cavity)], axis=-1))
        else:
            logs.append(jax.nn.log_softmax(cavity, axis=-1))
    if selected(block):
        chosen = local["selector"].reshape(-1)
        logs = [jnp.where(chosen[:, None] == jnp.arange(len(block.cases)), 0.0, -jnp.inf), *logs]
    rank = len(logs)
    return [log.reshape((log.shape[0], *(1,) * d, log.shape[1], *(1,) * (rank - d - 1))) for d, log in enumerate(logs)]


def _targets(block: SlotsBlock, cavities: list[Cavity], tilted: Outcome, old: Messages) -> Messages:
    """The new messages; those of an instance that is impossible stay."""
    power = block.method.alpha
    possible = jnp.isfinite(tilted.log_evidence).reshape(-1)
    edges = []
    for edge, cavity, found, before in zip(block.edges, cavities, tilted.edges, old.edges, strict=True):
        if isinstance(found, Site) and entire(edge):
            new = vectors.message(found, cavity.values)
        elif isinstance(found, Site):
            precision = found.curvature / found.ratio
            new = ((found.score + cavity.values[0] * found.curvature) / found.ratio, precision)
        else:
            projected = family_of(edge.variable).from_stats(found).naturals()
            new = tuple(p - c for p, c in zip(projected, cavity.values, strict=True))
        edges.append(_where(possible, tuple(part / power for part in new), before))
    states = []
    for atom, log, before in zip(
        block.atoms, tilted.states[len(tilted.states) - len(block.atoms) :], old.states, strict=True
    ):
        log = jnp.broadcast_to(
            log.reshape(-1, log.shape[-1] if log.ndim == 2 else log.size // log.shape[0]),
            (possible.shape[0], log.size // log.shape[0]),
        )
        log = jnp.maximum(log - jnp.max(log, axis=-1, keepdims=True), -2.0 * CERTAIN)
        new = log[..., 1] - log[..., 0] if atom.domain.is_boolean else log
        (new,) = _where(possible, (jnp.clip(new / power, -CERTAIN, CERTAIN),), (before,))
        states.append(new)
    return Messages(tuple(edges), tuple(states))


def _where(flags: Bool[Array, " row"], new: tuple[Array, ...], old: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(jnp.where(flags.reshape((-1,) + (1,) * (o.ndim - 1)), n, o) for n, o in zip(new, old, strict=True))


def _added(block: SlotsBlock, local: Local, naturals: Flat, change: Messages) -> Flat:
    """The flat naturals with changes of messages added."""
    naturals = dict(naturals)
    for number, (edge, parts) in enumerate(zip(block.edges, change.edges, strict=True)):
        name = edge.variable.name
        position = local.get(f"position{number}")
        if position is not None and position.shape[0] == 1 and edge.direction is None:
            parts = tuple(part.sum(0, keepdims=True) for part in parts)  # the same elements for all instances
        if entire(edge):
            place = position
            if place is not None:
                place = jnp.broadcast_to(place, parts[0].shape[:-1]).reshape(-1)
            naturals[name] = vectors.added(naturals[name], place, parts)
            continue
        term = _rows(number, local, parts[0].shape)
        flat = [part.reshape(-1) for part in parts]
        if gaussian(edge):
            naturals[name] = scatter(term, naturals[name], jnp.stack(flat, axis=-1))
        else:
            naturals[name] = tuple(
                old + part.sum() if term.position is None else old.at[term.position].add(part)
                for old, part in zip(naturals[name], flat, strict=True)
            )
    for number, (atom, part) in enumerate(zip(block.atoms, change.states, strict=True)):
        name, place = root(atom).name, local.get(f"state{number}")
        (old,) = naturals[name]
        naturals[name] = (old + part.sum(0) if place is None else old.at[place].add(part),)
    return naturals


def cavities_and_states(
    block: SlotsBlock, local: Local, naturals: Flat, messages: Messages
) -> tuple[list[Cavity], list[OverStates]]:
    """The cavities of the edges, and those of the discrete slots as log probabilities."""
    cavities = [_cavity(block, n, local, naturals, message) for n, message in enumerate(messages.edges)]
    return cavities, _log_states(block, local, naturals, messages.states)


def _tilt(
    block: SlotsBlock, scope: Scope, local: Local, naturals: Flat, messages: Messages
) -> tuple[list[Cavity], list[OverStates], Outcome]:
    cavities, logs = cavities_and_states(block, local, naturals, messages)
    return cavities, logs, outcome(block, scope, local, cavities, logs)


def update(
    block: SlotsBlock, prepared: Prepared, naturals: Flat, messages: Messages, step: Numeric, scope: Scope
) -> tuple[Flat, Messages, Int[Array, ""]]:
    """One sweep over the batches."""

    def batch(carry, scanned):
        naturals, floored = carry
        data, old = scanned
        local = {**prepared.fixed, **data}
        cavities, _, found = _tilt(block, scope, local, naturals, old)
        change = jax.tree.map(lambda t, o: step * (t - o), _targets(block, cavities, found, old), old)
        if "present" in local:
            here = local["present"]
            change = jax.tree.map(lambda c: jnp.where(here.reshape((-1,) + (1,) * (c.ndim - 1)), c, 0.0), change)
        floored = floored + sum((jnp.sum(cavity.floored) for cavity in cavities), jnp.zeros((), int))
        return (_added(block, local, naturals, change), floored), jax.tree.map(jnp.add, old, change)

    carry, scanned = (naturals, jnp.zeros((), int)), (prepared.scanned, messages)
    if jax.tree.leaves(messages)[0].shape[0] > 1:
        (naturals, floored), messages = jax.lax.scan(batch, carry, scanned)
        return naturals, messages, floored
    (naturals, floored), new = batch(carry, jax.tree.map(lambda a: a[0], scanned))
    return naturals, jax.tree.map(lambda a: a[None], new), floored


def naturals_of(block: SlotsBlock, stats: Messages) -> Messages:
    """The naturals of the members with these statistics, in the form of messages."""
    edges = tuple(_naturals(edge, own) for edge, own in zip(block.edges, stats.edges, strict=True))
    states = tuple(
        jnp.log(own) - jnp.log1p(-own) if atom.domain.is_boolean else jnp.log(own)
        for atom, own in zip(block.atoms, stats.states, strict=True)
    )
    return Messages(edges, states)


def _naturals(edge: Edge, stats: tuple[Array, ...]) -> tuple[Array, ...]:
    if entire(edge):
        mean, square = stats
        precision = regular_inverse(-2.0 * square - mean[..., :, None] * mean[..., None, :])
        return jnp.einsum("...ij,...j->...i", precision, mean), precision
    if gaussian(edge):
        mean, square = stats
        precision = 1.0 / (-2.0 * square - mean**2)
        return precision * mean, precision
    return tuple(jnp.asarray(own) for own in family_of(edge.variable).from_stats(stats).naturals())


def _flattened(prepared: Prepared, messages: Messages) -> tuple[Local, Messages]:
    data, flat = flattened((prepared.scanned, messages), prepared.plan)
    return {**prepared.fixed, **data}, flat


def accumulate(block: SlotsBlock, prepared: Prepared, messages: Messages, naturals: Flat) -> Flat:
    """Adds all messages of the block to the flat naturals."""
    local, flat = _flattened(prepared, messages)
    return _added(block, local, naturals, flat)


def evidence(
    block: SlotsBlock, prepared: Prepared, naturals: Flat, messages: Messages, scope: Scope
) -> Float[Array, ""]:
    """Sum over instances of (log evidence of f^power under the cavities + sum of A(cavity) - A(belief)) / power."""
    power = block.method.alpha
    local, flat = _flattened(prepared, messages)
    cavities, logs, found = _tilt(block, scope, local, naturals, flat)
    width = jax.tree.leaves(flat)[0].shape[0]
    total = jnp.broadcast_to(found.log_evidence.reshape(-1), (width,))
    for edge, cavity, message in zip(block.edges, cavities, flat.edges, strict=True):
        if cavity.projection is not None:
            part = partition_change(cavity.projection, message, power)
        else:
            family, values = family_of(edge.variable), cavity.values
            if entire(edge):
                precision = regular_inverse(values[1])
                values = (jnp.einsum("...ij,...j->...i", precision, values[0]), -0.5 * precision)
                message = (message[0], -0.5 * message[1])
            belief = tuple(c + power * m for c, m in zip(values, message, strict=True))
            part = family.from_naturals(values).log_partition() - family.from_naturals(belief).log_partition()
            if generates(block, edge):  # the entropy of the belief has its 1 / x! as well
                counts = family.from_naturals(belief).moments()
                assert isinstance(counts, Count)
                part = part - power * counts.log_factorial
        total = total + part.reshape(width, -1).sum(-1)
    for atom, log, message in zip(block.atoms, logs[len(logs) - len(block.atoms) :], flat.states, strict=True):
        lift = power * message
        lift = jnp.stack([jnp.zeros_like(lift), lift], axis=-1) if atom.domain.is_boolean else lift
        # A(cavity) - A(belief) = -log E_cavity exp(message)
        total = total - logsumexp(lift + log.reshape(log.shape[0], -1), axis=-1)
    if "present" in local:
        total = jnp.where(local["present"], total, 0.0)
    return jnp.sum(total) / power

"""EP for any factor over the slots of an instance: states summed, Gaussians in closed form, the rest by quadrature.

Given the states of the discrete slots, a branch of the factor has a log evidence and, for each edge, the derivatives of
it (Gaussian edges: score, curvature, ratio as in a `Site`) or the tilted statistics (other families). Quadrature nodes
and states are both cases of a mixture, and a mixture of tilted distributions is matched in the same way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..compiler.atoms import Branch, Edge, Slots
from ..compiler.graph import Block
from ..factors.factor import Site
from ..factors.gaussian import gaussian_site
from ..factors.probit import positive_site
from ..factors.special import log_sigmoid
from ..factors.tilted import Tilted, tilted
from .beliefs import family_of
from .evaluate import Scope
from .instances import root, schedule_shape
from .sites import Projection, Term, project, readable, scatter
from .slot_data import Formula, Prepared, axes_of, selected
from .tables import CERTAIN

logsumexp = jax.scipy.special.logsumexp
FLOOR = 1e-3  # of a cavity's rate and shape, relative to the belief's
SMALLEST = 1e-10
TINY_VARIANCE = 1e-20


class Messages(NamedTuple):
    """Messages in schedule order: to each edge its naturals (Gaussians: shift and precision), and to random states."""

    edges: tuple[tuple[Any, ...], ...]
    states: tuple[Any, ...]


class Cavity(NamedTuple):
    """An edge without the block's own message: mean and variance of a Gaussian, naturals of any other family."""

    values: tuple[Any, ...]
    projection: Projection | None
    floored: Any


class Outcome(NamedTuple):
    """The tilted distribution of a batch: log evidence, by edge a Site or statistics, by discrete slot log likelihoods."""

    log_evidence: Any
    edges: list[Any]
    states: list[Any]


def gaussian(edge: Edge) -> bool:
    """True for edges to Gaussian variables."""
    return edge.variable.domain.kind in ("real", "vector")


def initial(block: Block, prepared: Prepared, scope: Scope) -> Messages:
    """Messages that say nothing."""
    shape = schedule_shape(prepared.plan, block, scope.sizes)
    arrays = {**prepared.scanned, **{name: array[None] for name, array in prepared.fixed.items()}}
    edges = []
    for number, edge in enumerate(block.details.edges):
        position = arrays.get(f"position{number}")
        dims = (1,) * len(block.details.discrete) if position is None else position.shape[2:]
        edges.append(tuple(jnp.zeros((*shape, *dims)) for _ in range(len(family_of(edge.variable).natural_ndims))))
    sizes = [axis.size for axis in axes_of(block, scope)][len(block.details.discrete) - len(block.atoms) :]
    states = tuple(
        jnp.zeros(shape if atom.domain.kind == "boolean" else (*shape, size or 0))
        for atom, size in zip(block.atoms, sizes, strict=True)
    )
    return Messages(tuple(edges), states)


def _rows(number: int, local: dict[str, Any], shape: tuple[int, ...]) -> Term:
    """An edge as a term over rows: instances and the states that choose its element, in one axis."""
    position, direction = local.get(f"position{number}"), local.get(f"direction{number}")
    if position is not None:
        position = jnp.broadcast_to(position, shape).reshape(-1)
    if direction is not None:
        direction = jnp.broadcast_to(direction, (*shape, direction.shape[-1])).reshape(-1, direction.shape[-1])
    return Term(position, jnp.ones(()), direction)


def _cavity(block: Block, number: int, local: dict[str, Any], naturals: dict[str, Any], message: Any) -> Cavity:
    edge, power = block.details.edges[number], block.method.alpha
    shape = message[0].shape
    term, own = _rows(number, local, shape), naturals[edge.variable.name]
    if gaussian(edge):
        found = project(
            term, readable(edge.variable, own), jnp.stack([part.reshape(-1) for part in message], axis=-1), power
        )
        found = jax.tree.map(lambda a: jnp.broadcast_to(a, (message[0].size,)).reshape(shape), found)
        return Cavity(found.cavity, found, found.floored)
    belief = [(part[0] if term.position is None else part[term.position].reshape(shape)) for part in own]
    if edge.variable.domain.kind == "count":
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


def _is_gamma(edge: Edge) -> bool:
    return edge.variable.domain.kind == "positive"


def _log_states(block: Block, local: dict[str, Any], naturals: dict[str, Any], states: tuple[Any, ...]) -> list[Any]:
    """The cavities of the discrete slots as log probabilities, each along its own axis; the selector's first."""
    slots: Slots = block.details
    logs = []
    for number, (atom, message) in enumerate(zip(block.atoms, states, strict=True)):
        own, place = naturals[root(atom).name][0], local.get(f"state{number}")
        cavity = (own[0] if place is None else own[place]) - block.method.alpha * message
        if atom.domain.kind == "boolean":
            logs.append(jnp.stack([log_sigmoid(-cavity), log_sigmoid(cavity)], axis=-1))
        else:
            logs.append(jax.nn.log_softmax(cavity, axis=-1))
    if selected(block):
        chosen = local["selector"].reshape(-1)
        logs = [jnp.where(chosen[:, None] == jnp.arange(len(slots.branches)), 0.0, -jnp.inf), *logs]
    rank = len(logs)
    return [log.reshape((log.shape[0], *(1,) * d, log.shape[1], *(1,) * (rank - d - 1))) for d, log in enumerate(logs)]


class Branched(NamedTuple):
    """A branch at all states: its log evidence, and what it says of each edge that it touches."""

    log_evidence: Any
    edges: dict[int, Any]


def _sum(weights: Any, values: Any, axes: tuple[int, ...]) -> Any:
    return jnp.sum(jnp.where(weights == 0.0, 0.0, weights * values), axis=axes) if axes else values


def _mixed(weights: Any, site: Site, share: Any, variance: Any, axes: tuple[int, ...], keep: bool) -> Site:
    """The site of a mixture of sites: `share` is the weight of the cases that speak, the others are silent."""

    def total(values):
        return jnp.sum(jnp.where(weights == 0.0, 0.0, weights * values), axis=axes, keepdims=keep)

    score = total(site.score)
    apart = total((site.score - (score if keep else jnp.expand_dims(score, axes))) ** 2) + (1.0 - share) * score**2
    return Site(
        total(jnp.zeros_like(site.score)),
        score,
        total(site.curvature) - apart,
        total(site.ratio) + (1.0 - share) + variance * apart,
    )


def _branch(block: Block, branch: Branch, scope: Scope, local: dict[str, Any], cavities: list[Cavity]) -> Branched:
    """The tilted distribution of one branch, given the states of all discrete slots."""
    formula, power, lift = Formula(block, branch, scope, local), block.method.alpha, len(branch.slots)

    def lifted(array):
        return array.reshape((*array.shape, *(1,) * lift))

    forms = [formula.form(slot) if slot.kind == "real" else None for slot in branch.slots]
    slot_cavities = []
    for slot, form in zip(branch.slots, forms, strict=True):
        if form is None:
            slot_cavities.append(cavities[slot.members[0][0]].values)
            continue
        own = [cavities[number].values for number, _ in slot.members]
        mean = form[1] + sum(c * m for c, (m, _) in zip(form[0], own, strict=True))
        variance = sum(c**2 * v for c, (_, v) in zip(form[0], own, strict=True))
        slot_cavities.append((mean, jnp.maximum(variance, TINY_VARIANCE)))

    def linear(*values):
        """Coefficients of the edges in closed form, and the site of their sum."""
        at = values if values else None
        factors = [formula(lambda x: x, [c], at, lift) for _, c in branch.members]
        own = [tuple(map(lifted, cavities[number].values)) for number, _ in branch.members]
        mean = sum(c * m for c, (m, _) in zip(factors, own, strict=True))
        if branch.shift is not None:
            mean = mean + formula(lambda x: x, [branch.shift], at, lift)
        variance = sum(c**2 * v for c, (_, v) in zip(factors, own, strict=True))
        constant = jnp.zeros(())
        if branch.link == "identity":
            precision = formula(lambda x: x, [branch.args["precision"]], at, lift)
            variance = variance + 1.0 / (power * precision)
            if power != 1.0:
                constant = 0.5 * ((1.0 - power) * jnp.log(2.0 * jnp.pi / precision) - jnp.log(power))
        mean, variance = jnp.broadcast_arrays(mean, jnp.maximum(variance, TINY_VARIANCE))
        site = _site(block, branch, formula, lift, mean, variance)
        return factors, own, variance, site._replace(log_evidence=site.log_evidence + constant)

    def log_factor(*values):
        if branch.link == "density":
            edges = list(branch.args)
            density = formula(
                lambda out, *args: branch.factor.log_density(out, **dict(zip(edges, args, strict=True))),
                [branch.out, *branch.args.values()],
                values if values else None,
                lift,
            )
            return power * density
        return linear(*values)[3].log_evidence

    touched = [arrays for cavity in slot_cavities for arrays in cavity]
    touched += [array for number, _ in branch.members for array in cavities[number].values]
    touched += [formula.arrays[key] for key in formula.arguments(_roots(branch))[0]]
    shape = jnp.broadcast_shapes(*(jnp.shape(array)[: formula.rank] for array in touched), (1,) * formula.rank)
    wide = [tuple(jnp.broadcast_to(a, shape) for a in cavity) for cavity in slot_cavities]
    found = tilted(log_factor, tuple(slot.kind for slot in branch.slots), tuple(wide))
    axes = tuple(range(formula.rank, formula.rank + lift))
    log_evidence = logsumexp(found.log_weights, axis=axes) if lift else found.log_weights
    log_evidence = jnp.where(jnp.isnan(log_evidence), -jnp.inf, log_evidence)
    safe = jnp.where(jnp.isfinite(log_evidence), log_evidence, 0.0)
    weights = jnp.exp(found.log_weights - lifted(safe)) if lift else jnp.ones(shape)
    edges = _slot_edges(branch, forms, wide, found, weights, axes, cavities)
    if branch.members:
        factors, own, variance, site = linear(*found.values)
        for (number, _), c, (_, v) in zip(branch.members, factors, own, strict=True):
            seen = Site(site.log_evidence, c * site.score, c**2 * site.curvature, site.ratio + site.curvature * (variance - c**2 * v))
            edges[number] = _mixed(weights, seen, 1.0, cavities[number].values[1], axes, False) if lift else seen
    return Branched(log_evidence, edges)


def _roots(branch: Branch) -> list[Any]:
    if branch.link == "density":
        return [branch.out, *branch.args.values()]
    return [*branch.args.values(), *(c for _, c in branch.members), *([] if branch.shift is None else [branch.shift])]


def _site(block: Block, branch: Branch, formula: Formula, lift: int, mean: Any, variance: Any) -> Site:
    power = block.method.alpha
    if branch.link == "identity":
        return gaussian_site(jnp.zeros_like(mean), mean, variance)
    out = jnp.ones_like(mean) if branch.out is None or not formula.known(branch.out) else formula(lambda x: x, [branch.out], None, lift)
    if branch.link == "positive":
        return positive_site(out, mean, variance)
    others = {name: formula(lambda x: x, [arg], None, lift) for name, arg in branch.args.items()}
    mean, variance, out = jnp.broadcast_arrays(mean, variance, out)
    return branch.factor.sites[branch.link](out, mean, variance, power, **others)


def _slot_edges(
    branch: Branch, forms: list, cavities: list, found: Tilted, weights: Any, axes: tuple[int, ...], edge_cavities: list
) -> dict[int, Any]:
    """What the nodes say of the edges of the slots."""
    edges: dict[int, Any] = {}
    for slot, form, cavity, u, own in zip(branch.slots, forms, cavities, found.coordinates, found.lines, strict=True):
        if form is None:
            edges[slot.members[0][0]] = tuple(
                _sum(weights, stat, axes) for stat in (jnp.broadcast_to(s, weights.shape) for s in _stats(own, u, weights))
            )
            continue
        mean, variance = cavity
        away = jnp.broadcast_to(u, weights.shape) - jnp.expand_dims(mean, axes)
        shift = _sum(weights, away, axes)
        spread = _sum(weights, (away - jnp.expand_dims(shift, axes)) ** 2, axes)
        ratio = spread / variance
        score, curvature = shift / variance, (1.0 - ratio) / variance
        for (number, _), c in zip(slot.members, form[0], strict=True):
            v = edge_cavities[number].values[1]
            rest = ratio + curvature * (variance - c**2 * v)
            edges[number] = Site(shift, c * score, c**2 * curvature, rest)
    return edges


def _stats(own: Any, u: Any, weights: Any) -> tuple[Any, ...]:
    """The statistics at the nodes; those of an outer slot on its own axis."""
    if u.ndim == weights.ndim and u.shape[-1] == 1 and weights.shape[-1] != 1:
        return tuple(stat[..., None] for stat in own.stats(u[..., 0]))
    return own.stats(u)


def _outcome(block: Block, scope: Scope, local: dict[str, Any], cavities: list[Cavity], logs: list[Any]) -> Outcome:
    """All branches at all states, mixed."""
    slots: Slots = block.details
    rank = len(slots.discrete)
    sizes = [log.shape[1 + d] for d, log in enumerate(logs)]
    branches = []
    for state, branch in enumerate(slots.branches):
        here, own = local, cavities
        if slots.selector is not None:
            axis = 1 + slots.selector

            def at(array, axis=axis, state=state):
                wide = jnp.ndim(array) > axis and array.shape[axis] > 1
                return jax.lax.slice_in_dim(array, state, state + 1, axis=axis) if wide else array

            names = [name for name in local if name.startswith("leaf")]
            here = {**local, **{name: at(local[name]) for name in names}}
            own = [Cavity(tuple(map(at, c.values)), None, c.floored) for c in cavities]
        branches.append(_branch(block, branch, scope, here, own))

    def joined(parts):
        """One array over all states from one for each branch."""
        width = max(part.shape[0] for part in parts)
        if slots.selector is None:
            return jnp.broadcast_to(parts[0], (width, *sizes))
        shape = (width, *(1 if d == slots.selector else n for d, n in enumerate(sizes)))
        return jnp.concatenate([jnp.broadcast_to(part, shape) for part in parts], axis=1 + slots.selector)

    evidence = joined([branch.log_evidence for branch in branches])
    prior = sum(logs, jnp.zeros((1,) * (1 + rank)))
    joint = evidence + prior
    every = tuple(range(1, 1 + rank))
    total = logsumexp(joint, axis=every) if rank else joint
    safe = jnp.where(jnp.isfinite(total), total, 0.0)
    weights = jnp.exp(joint - jnp.expand_dims(safe, every)) if rank else jnp.ones_like(joint)
    edges = [
        _edge_outcome(block.details.edges[n], n, branches, cavities[n], weights, joined, every)
        for n in range(len(slots.edges))
    ]
    states = []
    for d in range(rank):
        others = tuple(axis for axis in every if axis != 1 + d)
        without = evidence + (prior - logs[d] if len(logs) > 1 else 0.0)
        without = evidence + sum((log for i, log in enumerate(logs) if i != d), jnp.zeros((1,) * (1 + rank)))
        states.append(logsumexp(without, axis=others) if others else without)
    return Outcome(total, edges, states)


def _edge_outcome(edge: Edge, number: int, branches: list, cavity: Cavity, weights: Any, joined: Any, every: Any) -> Any:
    """The Site of an edge, or its tilted statistics, over all states; branches that do not touch it leave it alone."""
    axes = tuple(axis for axis in every if cavity.values[0].shape[axis] == 1)
    speaks = [number in branch.edges for branch in branches]
    live = joined([jnp.full((1,) * weights.ndim, float(flag)) for flag in speaks])
    share = jnp.sum(weights * live, axis=axes, keepdims=True)
    one = jnp.zeros((1,) * weights.ndim)
    if gaussian(edge):
        silent = Site(one, one, one, one + 1.0)
        parts = [branch.edges.get(number, silent) for branch in branches]
        site = Site(*(joined([getattr(part, field) for part in parts]) for field in Site._fields))
        return _mixed(weights * live, site, share, cavity.values[1], axes, True)
    own = family_of(edge.variable).from_naturals(cavity.values).expected_stats()
    stats = []
    for i, stat in enumerate(own):
        values = joined([branch.edges[number][i] if flag else one for branch, flag in zip(branches, speaks, strict=True)])
        weighed = weights * live
        stats.append(
            jnp.sum(jnp.where(weighed == 0.0, 0.0, weighed * values), axis=axes, keepdims=True) + (1.0 - share) * stat
        )
    return tuple(stats)


def _targets(block: Block, cavities: list[Cavity], outcome: Outcome, old: Messages) -> Messages:
    """The new messages; those of an instance that is impossible stay."""
    power = block.method.alpha
    possible = jnp.isfinite(outcome.log_evidence).reshape(-1)
    edges = []
    for edge, cavity, found, before in zip(block.details.edges, cavities, outcome.edges, old.edges, strict=True):
        if gaussian(edge):
            precision = found.curvature / found.ratio
            new = ((found.score + cavity.values[0] * found.curvature) / found.ratio, precision)
        else:
            projected = family_of(edge.variable).from_stats(found).naturals()
            new = tuple(p - c for p, c in zip(projected, cavity.values, strict=True))
        edges.append(_where(possible, tuple(part / power for part in new), before))
    states = []
    for atom, log, before in zip(block.atoms, outcome.states[len(outcome.states) - len(block.atoms) :], old.states, strict=True):
        log = jnp.broadcast_to(log.reshape(-1, log.shape[-1] if log.ndim == 2 else log.size // log.shape[0]), (possible.shape[0], log.size // log.shape[0]))
        log = jnp.maximum(log - jnp.max(log, axis=-1, keepdims=True), -2.0 * CERTAIN)
        new = log[..., 1] - log[..., 0] if atom.domain.kind == "boolean" else log
        (new,) = _where(possible, (jnp.clip(new / power, -CERTAIN, CERTAIN),), (before,))
        states.append(new)
    return Messages(tuple(edges), tuple(states))


def _where(flags: Any, new: tuple[Any, ...], old: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(jnp.where(flags.reshape((-1,) + (1,) * (o.ndim - 1)), n, o) for n, o in zip(new, old, strict=True))


def _added(block: Block, local: dict[str, Any], naturals: dict[str, Any], change: Messages) -> dict[str, Any]:
    """The flat naturals with changes of messages added."""
    naturals = dict(naturals)
    for number, (edge, parts) in enumerate(zip(block.details.edges, change.edges, strict=True)):
        name = edge.variable.name
        position = local.get(f"position{number}")
        if position is not None and position.shape[0] == 1 and edge.direction is None:
            parts = tuple(part.sum(0, keepdims=True) for part in parts)  # the same elements for all instances
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


def _tilt(block: Block, scope: Scope, local: dict[str, Any], naturals: dict[str, Any], messages: Messages) -> tuple:
    cavities = [_cavity(block, n, local, naturals, message) for n, message in enumerate(messages.edges)]
    logs = _log_states(block, local, naturals, messages.states)
    return cavities, logs, _outcome(block, scope, local, cavities, logs)


def update(
    block: Block, prepared: Prepared, naturals: dict[str, Any], messages: Messages, step: Any, scope: Scope
) -> tuple[dict[str, Any], Messages, Any]:
    """One sweep over the batches."""

    def batch(carry, scanned):
        naturals, floored = carry
        data, old = scanned
        local = {**prepared.fixed, **data}
        cavities, _, outcome = _tilt(block, scope, local, naturals, old)
        change = jax.tree.map(lambda t, o: step * (t - o), _targets(block, cavities, outcome, old), old)
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


def _flattened(prepared: Prepared, messages: Messages) -> tuple[dict[str, Any], Messages]:
    data, flat = jax.tree.map(lambda a: a.reshape((-1, *a.shape[2:])), (prepared.scanned, messages))
    return {**prepared.fixed, **data}, flat


def accumulate(block: Block, prepared: Prepared, messages: Messages, naturals: dict[str, Any]) -> dict[str, Any]:
    """Adds all messages of the block to the flat naturals."""
    local, flat = _flattened(prepared, messages)
    return _added(block, local, naturals, flat)


def evidence(block: Block, prepared: Prepared, naturals: dict[str, Any], messages: Messages, scope: Scope) -> Any:
    """Sum over instances of (log evidence of f^power under the cavities + sum of A(cavity) - A(belief)) / power."""
    power = block.method.alpha
    local, flat = _flattened(prepared, messages)
    cavities, logs, outcome = _tilt(block, scope, local, naturals, flat)
    width = jax.tree.leaves(flat)[0].shape[0]
    total = jnp.broadcast_to(outcome.log_evidence.reshape(-1), (width,))
    for number, (edge, cavity, message) in enumerate(zip(block.details.edges, cavities, flat.edges, strict=True)):
        if cavity.projection is not None:
            mean, variance = cavity.projection.belief
            denominator, (shift, precision) = cavity.projection.denominator, message
            quadratic = power * (precision * mean**2 - 2.0 * shift * mean + power * shift**2 * variance) / denominator
            part = 0.5 * (quadratic - jnp.log(denominator))
        else:
            family = family_of(edge.variable)
            belief = tuple(c + power * m for c, m in zip(cavity.values, message, strict=True))
            part = family.from_naturals(cavity.values).log_partition() - family.from_naturals(belief).log_partition()
        total = total + part.reshape(width, -1).sum(-1)
    for atom, log, message in zip(block.atoms, logs[len(logs) - len(block.atoms) :], flat.states, strict=True):
        lift = power * message
        lift = jnp.stack([jnp.zeros_like(lift), lift], axis=-1) if atom.domain.kind == "boolean" else lift
        # A(cavity) - A(belief) = -log E_cavity exp(message)
        total = total - logsumexp(lift + log.reshape(log.shape[0], -1), axis=-1)
    if "present" in local:
        total = jnp.where(local["present"], total, 0.0)
    return jnp.sum(total) / power

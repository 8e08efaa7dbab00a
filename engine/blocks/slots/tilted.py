"""The tilted distribution of a batch of instances of a factor: its branches at all states of the discrete slots, mixed.

Given the states, a branch has a log evidence and, for each edge, the derivatives of it (Gaussian edges: score,
curvature, ratio as in a `Site`) or the tilted statistics (other families). Quadrature nodes and states are both cases
of a mixture, and a mixture of tilted distributions is matched in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ....compiler.blocks.slots import Branch, Edge, SlotsBlock
from ....factors.arrays import Array, Numeric
from ....factors.factor import Site
from ....factors.quadrature.tilted import Line
from ...values.first_beliefs import family_of
from ...values.scope import Scope
from . import vectors
from .closed_form import confined, members
from .nodes import Cavity, Nodes, OverNodes, branch_nodes, gaussian
from .slot_data import Formula, Local

logsumexp = jax.scipy.special.logsumexp
OverStates: TypeAlias = Float[Array, "..."]  # instances, states
Found: TypeAlias = Site | tuple[OverStates, ...]  # of an edge: of all but Gaussians the tilted statistics
UNTOUCHED = Site(np.zeros(()), np.zeros(()), np.zeros(()), np.ones(()))


class Outcome(NamedTuple):
    """Log evidence by instance; by edge a Site or tilted statistics; by discrete slot its states' log likelihood."""

    log_evidence: OverStates
    edges: list[Found]
    states: list[OverStates]


def entire(edge: Edge) -> bool:
    """True for edges to vectors that are met as such, not in an inner product."""
    return edge.variable.domain.is_vector and edge.direction is None


class Branched(NamedTuple):
    """A branch at all states: its log evidence, and by edge that it touches the site or the tilted statistics."""

    log_evidence: OverStates
    edges: Mapping[int, Found]


def _sum(weights: OverNodes, values: OverNodes, axes: tuple[int, ...]) -> OverStates:
    return jnp.sum(jnp.where(weights == 0.0, 0.0, weights * values), axis=axes) if axes else values


def _mixed(
    weights: OverNodes, site: Site, share: Numeric, variance: OverNodes, axes: tuple[int, ...], keep: bool
) -> Site:
    """The site of a mixture of sites: `share` is the weight of the cases that read the edge."""

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


def _branch(block: SlotsBlock, branch: Branch, scope: Scope, local: Local, cavities: list[Cavity]) -> Branched:
    """The log evidence and the edges of one branch, given the states of all discrete slots."""
    if branch.link == "vector":
        formula = Formula(block, branch, scope, local)
        read = lambda expr: formula.arrays[id(expr)]  # noqa: E731
        return Branched(*vectors.branch(branch, block.method.alpha, read, cavities))
    nodes, lift = branch_nodes(block, branch, scope, local, cavities), len(branch.slots)

    def lifted(array):
        return array.reshape((*array.shape, *(1,) * lift))

    rank = nodes.log_weights.ndim - lift
    axes = tuple(range(rank, rank + lift))
    log_evidence = logsumexp(nodes.log_weights, axis=axes) if lift else nodes.log_weights
    log_evidence = jnp.where(jnp.isnan(log_evidence), -jnp.inf, log_evidence)
    safe = jnp.where(jnp.isfinite(log_evidence), log_evidence, 0.0)
    weights = jnp.exp(nodes.log_weights - lifted(safe)) if lift else jnp.ones(log_evidence.shape)
    edges = _slot_edges(branch, nodes, weights, axes, cavities)
    if nodes.whole is not None:
        spreads = {n: lifted(cavities[n].values[1]) for n, _ in members(branch)}
        seen_by = {n: nodes.whole.edge(n) for n in spreads}
        if nodes.side is not None:
            seen_by = confined(nodes.whole, nodes.side, seen_by, spreads)[1]
        for number, seen in seen_by.items():
            edges[number] = _mixed(weights, seen, 1.0, cavities[number].values[1], axes, False) if lift else seen
    return Branched(log_evidence, edges)


def _together(block: SlotsBlock, parts: list[Branched], cavities: list[Cavity]) -> Branched:
    """The sum of branches that exclude each other."""
    shape = jnp.broadcast_shapes(*(part.log_evidence.shape for part in parts))

    def stacked(arrays):
        return jnp.stack([jnp.broadcast_to(array, shape) for array in arrays], axis=-1)

    logs = stacked([part.log_evidence for part in parts])
    log_evidence = logsumexp(logs, axis=-1)
    weights = jnp.exp(logs - jnp.where(jnp.isfinite(log_evidence), log_evidence, 0.0)[..., None])
    edges = {}
    for number in dict.fromkeys(number for part in parts for number in part.edges):
        cavity = cavities[number].values
        axes = (weights.ndim - 1,)
        if gaussian(block.edges[number]):
            sites = [part.edges.get(number, UNTOUCHED) for part in parts]
            site = Site(*(stacked([getattr(site, field) for site in sites]) for field in Site._fields))
            edges[number] = _mixed(weights, site, 1.0, cavity[1], axes, False)
        else:
            own = family_of(block.edges[number].variable).from_naturals(cavity).expected_stats()
            stats = zip(*(part.edges.get(number, own) for part in parts), strict=True)
            edges[number] = tuple(_sum(weights, stacked(stat), axes) for stat in stats)
    return Branched(log_evidence, edges)


def _slot_edges(
    branch: Branch, nodes: Nodes, weights: OverNodes, axes: tuple[int, ...], edge_cavities: list[Cavity]
) -> dict[int, Found]:
    """The sites of the edges of the slots, or their tilted statistics, from the nodes."""
    edges: dict[int, Found] = {}
    found = zip(nodes.found.coordinates, nodes.found.values, nodes.found.lines, strict=True)
    for slot, form, cavity, (u, x, own) in zip(branch.slots, nodes.forms, nodes.cavities, found, strict=True):
        if form is None:
            edges[slot.members[0][0]] = tuple(
                _sum(weights, stat, axes)
                for stat in (jnp.broadcast_to(s, weights.shape) for s in _stats(own, u, weights))
            )
            continue
        mean, variance = cavity
        away = jnp.broadcast_to(x, weights.shape) - jnp.expand_dims(mean, axes)
        shift = _sum(weights, away, axes)
        spread = _sum(weights, (away - jnp.expand_dims(shift, axes)) ** 2, axes)
        ratio = spread / variance
        score, curvature = shift / variance, (1.0 - ratio) / variance
        for (number, _), c in zip(slot.members, form[0], strict=True):
            v = edge_cavities[number].values[1]
            rest = ratio + curvature * (variance - c**2 * v)
            edges[number] = Site(shift, c * score, c**2 * curvature, rest)
    return edges


def _stats(own: Line, u: OverNodes, weights: OverNodes) -> tuple[OverNodes, ...]:
    """The statistics at the nodes; those of an outer slot on its own axis."""
    if u.ndim == weights.ndim and u.shape[-1] == 1 and weights.shape[-1] != 1:
        return tuple(stat[..., None] for stat in own.stats(u[..., 0]))
    return own.stats(u)


def at_state(block: SlotsBlock, local: Local, cavities: list[Cavity], state: int) -> tuple[Local, list[Cavity]]:
    """Data and cavities where the selector has one state; all of them without a selector."""
    if block.selector is None:
        return local, cavities
    axis = 1 + block.selector

    def at(array):
        wide = jnp.ndim(array) > axis and array.shape[axis] > 1
        return jax.lax.slice_in_dim(array, state, state + 1, axis=axis) if wide else array

    here = {**local, **{name: at(local[name]) for name in local if name.startswith("leaf")}}
    return here, [Cavity(tuple(map(at, c.values)), None, c.floored) for c in cavities]


def outcome(block: SlotsBlock, scope: Scope, local: Local, cavities: list[Cavity], logs: list[OverStates]) -> Outcome:
    """All branches at all states, mixed."""
    rank = len(block.discrete)
    sizes = [log.shape[1 + d] for d, log in enumerate(logs)]
    branches = []
    for state, case in enumerate(block.cases):
        here, own = at_state(block, local, cavities, state)
        parts = [_branch(block, branch, scope, here, own) for branch in case]
        branches.append(parts[0] if len(parts) == 1 else _together(block, parts, own))

    def joined(parts: list[OverStates]) -> OverStates:
        """One array over all states from one for each branch."""
        width, event = max(part.shape[0] for part in parts), max((part.shape[1 + rank :] for part in parts), key=len)
        if block.selector is None:
            return jnp.broadcast_to(parts[0], (width, *sizes, *event))
        shape = (width, *(1 if d == block.selector else n for d, n in enumerate(sizes)), *event)
        return jnp.concatenate([jnp.broadcast_to(part, shape) for part in parts], axis=1 + block.selector)

    evidence = joined([branch.log_evidence for branch in branches])
    prior = sum(logs, jnp.zeros((1,) * (1 + rank)))
    joint = evidence + prior
    every = tuple(range(1, 1 + rank))
    total = logsumexp(joint, axis=every) if rank else joint
    safe = jnp.where(jnp.isfinite(total), total, 0.0)
    weights = jnp.exp(joint - jnp.expand_dims(safe, every)) if rank else jnp.ones_like(joint)
    edges = [
        _edge_outcome(block.edges[n], n, branches, cavities[n], weights, joined, every) for n in range(len(block.edges))
    ]
    states = []
    for d in range(rank):
        others = tuple(axis for axis in every if axis != 1 + d)
        without = evidence + sum((log for i, log in enumerate(logs) if i != d), jnp.zeros((1,) * (1 + rank)))
        states.append(logsumexp(without, axis=others) if others else without)
    return Outcome(total, edges, states)


def _edge_outcome(
    edge: Edge,
    number: int,
    branches: list[Branched],
    cavity: Cavity,
    weights: OverStates,
    joined: Callable[[list[OverStates]], OverStates],
    every: tuple[int, ...],
) -> Found:
    """The Site of an edge, or its tilted statistics, over all states; branches that do not touch it leave it alone."""
    axes = tuple(axis for axis in every if cavity.values[0].shape[axis] == 1)  # states that do not choose the element
    touched = [number in branch.edges for branch in branches]
    live = joined([jnp.full((1,) * weights.ndim, float(flag)) for flag in touched])
    share = jnp.sum(weights * live, axis=axes, keepdims=True)
    one = jnp.zeros((1,) * weights.ndim)
    if entire(edge):
        parts = [branch.edges.get(number) for branch in branches]
        mean, covariance = cavity.values
        score = joined(
            [jnp.zeros((1,) * weights.ndim + mean.shape[-1:]) if not isinstance(p, Site) else p.score for p in parts]
        )
        flat = jnp.zeros((1,) * weights.ndim + covariance.shape[-2:])
        site = Site(one, score, joined([p.curvature if isinstance(p, Site) else flat for p in parts]), one)
        return vectors.mixed(weights * live, site, share, axes)
    if gaussian(edge):
        untouched = Site(one, one, one, one + 1.0)
        parts = [branch.edges.get(number, untouched) for branch in branches]
        site = Site(*(joined([getattr(part, field) for part in parts]) for field in Site._fields))
        return _mixed(weights * live, site, share, cavity.values[1], axes, True)
    own = family_of(edge.variable).from_naturals(cavity.values).expected_stats()
    stats = []
    for i, stat in enumerate(own):
        values = joined(
            [branch.edges[number][i] if flag else one for branch, flag in zip(branches, touched, strict=True)]
        )
        weighed = weights * live
        stats.append(
            jnp.sum(jnp.where(weighed == 0.0, 0.0, weighed * values), axis=axes, keepdims=True) + (1.0 - share) * stat
        )
    return tuple(stats)

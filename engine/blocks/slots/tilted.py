"""The tilted distribution of a batch of instances of a factor: its branches at all states of the discrete slots, mixed.

Given the states, a branch has a log evidence and, for each edge, the derivatives of it (Gaussian edges: score,
curvature, ratio as in a `Site`) or the tilted statistics (other families). Quadrature nodes and states are both cases
of a mixture, and a mixture of tilted distributions is matched in the same way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ....compiler.blocks.slots import Branch, Edge, SlotsBlock
from ....factors.factor import Site
from ....factors.families import FOR_DOMAIN
from ....factors.links.probit import positive_site
from ....factors.quadrature.tilted import Tilted, tilted
from ....factors.real.gaussian import gaussian_site
from ...values.first_beliefs import family_of
from ...values.scope import Scope
from ..site.sites import SMALLEST_VARIANCE, Projection
from . import vectors
from .closed_form import Whole, confined, cut_of, members
from .slot_data import Formula

logsumexp = jax.scipy.special.logsumexp
SILENT = Site(0.0, 0.0, 0.0, 1.0)


class Cavity(NamedTuple):
    """An edge without the block's own message: mean and variance of a Gaussian, naturals of any other family."""

    values: tuple[Any, ...]
    projection: Projection | None
    floored: Any


class Outcome(NamedTuple):
    """Log evidence by instance; by edge a Site or tilted statistics; by discrete slot its states' log likelihood."""

    log_evidence: Any
    edges: list[Any]
    states: list[Any]


def gaussian(edge: Edge) -> bool:
    """True for edges to Gaussian variables."""
    return edge.variable.domain.is_gaussian


def entire(edge: Edge) -> bool:
    """True for edges to vectors that are met as such, not in an inner product."""
    return edge.variable.domain.is_vector and edge.direction is None


class Branched(NamedTuple):
    """A branch at all states: its log evidence, and what it says of each edge that it touches."""

    log_evidence: Any
    edges: dict[int, Any]


def _sum(weights: Any, values: Any, axes: tuple[int, ...]) -> Any:
    return jnp.sum(jnp.where(weights == 0.0, 0.0, weights * values), axis=axes) if axes else values


def _mixed(weights: Any, site: Site, share: Any, variance: Any, axes: tuple[int, ...], keep: bool) -> Site:
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


class Nodes(NamedTuple):
    """A branch at the nodes of its slots, over (instances, states..., nodes...): the tilted distribution as it is.

    `log_weights` are those of factor and cavities, `cavities` the slots' own, `forms` their coefficients by edge and
    offsets (None where the slot is its edge). `whole` is the closed form over the other edges at every node, None
    where there is none, with the quantity that `side` confines to be positive.
    """

    log_weights: Any
    found: Tilted
    cavities: list[tuple[Any, ...]]
    forms: list[Any]
    whole: Whole | None
    side: tuple[Any, ...] | None


def branch_nodes(
    block: SlotsBlock, branch: Branch, scope: Scope, local: dict[str, Any], cavities: list[Cavity]
) -> Nodes:
    """The tilted distribution of one branch, given the states of all discrete slots, at the nodes of its slots."""
    formula, power, lift = Formula(block, branch, scope, local), block.method.alpha, len(branch.slots)

    def lifted(array):
        return array.reshape((*array.shape, *(1,) * lift))

    forms = [formula.form(slot) if slot.domain.is_real else None for slot in branch.slots]
    slot_cavities = []
    for slot, form in zip(branch.slots, forms, strict=True):
        if form is None:
            slot_cavities.append(cavities[slot.members[0][0]].values)
            continue
        own = [cavities[number].values for number, _ in slot.members]
        mean = form[1] + sum(c * m for c, (m, _) in zip(form[0], own, strict=True))
        variance = sum(c**2 * v for c, (_, v) in zip(form[0], own, strict=True))
        slot_cavities.append((mean, jnp.maximum(variance, SMALLEST_VARIANCE)))

    def total(quantity, at):
        """A quantity's coefficients by edge, its mean and its variance at nodes."""
        factors = {number: formula(lambda x: x, [c], at, lift) for number, c in quantity.members}
        own = {number: tuple(map(lifted, cavities[number].values)) for number in factors}
        mean = sum(c * own[number][0] for number, c in factors.items())
        if quantity.shift is not None:
            mean = mean + formula(lambda x: x, [quantity.shift], at, lift)
        return factors, mean, sum(c**2 * own[number][1] for number, c in factors.items())

    def whole(at):
        """The closed form at nodes, and the constant of a power."""
        factors, mean, variance = total(branch, at)
        constant = noise = jnp.zeros(())
        if branch.link == "identity":
            precision = formula(lambda x: x, [branch.args[branch.factor.role.precision]], at, lift)
            noise = 1.0 / (power * precision)
            variance = variance + noise
            if power != 1.0:
                constant = 0.5 * ((1.0 - power) * jnp.log(2.0 * jnp.pi / precision) - jnp.log(power))
        mean, variance = jnp.broadcast_arrays(mean, jnp.maximum(variance, SMALLEST_VARIANCE))
        spreads = {n: lifted(cavities[n].values[1]) for n, _ in members(branch)}
        parts = {n: c**2 * spreads[n] for n, c in factors.items()}
        return Whole(
            factors, parts, noise, mean, variance, _site(block, branch, formula, lift, mean, variance)
        ), constant

    def log_factor(*values):
        if branch.link == "density":
            edges = list(branch.args)
            # The family of a latent count holds its 1 / x!, which the factor that generates it has as well.
            latent_count = branch.out is not None and branch.out.domain.is_count and not formula.known(branch.out)

            def log_density(out, *args):
                own = branch.factor.log_density(out, **dict(zip(edges, args, strict=True)))
                return own - FOR_DOMAIN["count"].log_base(out) if latent_count else own

            density = formula(
                log_density,
                _roots(branch),
                values if values else None,
                lift,
            )
            return power * density
        at = values if values else None
        own, constant = whole(at)
        log_evidence = own.site.log_evidence
        if branch.side is not None:
            spreads = {n: lifted(cavities[n].values[1]) for n, _ in members(branch)}
            log_evidence = log_evidence + cut_of(own, total(branch.side, at), spreads).site.log_evidence
        return log_evidence + constant

    touched = [arrays for cavity in slot_cavities for arrays in cavity]
    touched += [array for number, _ in members(branch) for array in cavities[number].values]
    touched += [formula.arrays[key] for key in formula.arguments(_roots(branch))[0]]
    shape = jnp.broadcast_shapes(*(jnp.shape(array)[: formula.rank] for array in touched), (1,) * formula.rank)
    wide = [tuple(jnp.broadcast_to(a, shape) for a in cavity) for cavity in slot_cavities]
    kinds, given = tuple(slot.domain.kind for slot in branch.slots), tuple(wide)
    if branch.half:
        turn = jnp.broadcast_to(_turn(formula, branch), shape)
        kinds, given = ("half",), ((*wide[0], turn, jnp.full(shape, float(branch.half))),)
    found = tilted(log_factor, kinds, given)
    at = found.values if lift else None
    closed = whole(at)[0] if members(branch) else None
    side = total(branch.side, at) if branch.side is not None else None
    log_weights = jnp.broadcast_to(found.log_weights, (*shape, *found.log_weights.shape[formula.rank :]))
    return Nodes(log_weights, found, wide, forms, closed, side)


def _branch(block: SlotsBlock, branch: Branch, scope: Scope, local: dict[str, Any], cavities: list[Cavity]) -> Branched:
    """What one branch says of its edges, given the states of all discrete slots."""
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
    edges = _slot_edges(branch, nodes.forms, nodes.cavities, nodes.found, weights, axes, cavities)
    if nodes.whole is not None:
        spreads = {n: lifted(cavities[n].values[1]) for n, _ in members(branch)}
        seen_by = {n: nodes.whole.edge(n) for n in spreads}
        if nodes.side is not None:
            seen_by = confined(nodes.whole, nodes.side, seen_by, spreads)[1]
        for number, seen in seen_by.items():
            edges[number] = _mixed(weights, seen, 1.0, cavities[number].values[1], axes, False) if lift else seen
    return Branched(log_evidence, edges)


def _turn(formula: Formula, branch: Branch) -> Any:
    """Where the coefficient of the only edge, linear in the only slot, is zero; anywhere if it is constant."""
    ((_, coefficient),) = branch.members
    at = [formula(lambda x: x, [coefficient], (jnp.full((1,) * (formula.rank + 1), x),), 1)[..., 0] for x in (0.0, 1.0)]
    slope = at[1] - at[0]
    return jnp.where(slope == 0.0, 0.0, -at[0] / jnp.where(slope == 0.0, 1.0, slope))


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
            sites = [part.edges.get(number, SILENT) for part in parts]
            site = Site(*(stacked([getattr(site, field) for site in sites]) for field in Site._fields))
            edges[number] = _mixed(weights, site, 1.0, cavity[1], axes, False)
        else:
            own = family_of(block.edges[number].variable).from_naturals(cavity).expected_stats()
            stats = zip(*(part.edges.get(number, own) for part in parts), strict=True)
            edges[number] = tuple(_sum(weights, stacked(stat), axes) for stat in stats)
    return Branched(log_evidence, edges)


def _roots(branch: Branch) -> list[Any]:
    if branch.link == "density":
        return [*([] if branch.out is None else [branch.out]), *branch.args.values()]
    quantities = [branch] if branch.side is None else [branch, branch.side]
    shifts = [quantity.shift for quantity in quantities if quantity.shift is not None]
    return [*branch.args.values(), *(c for quantity in quantities for _, c in quantity.members), *shifts]


def _site(block: SlotsBlock, branch: Branch, formula: Formula, lift: int, mean: Any, variance: Any) -> Site:
    power = block.method.alpha
    if branch.link == "identity":
        return gaussian_site(jnp.zeros_like(mean), mean, variance)
    out = (
        jnp.ones_like(mean)
        if branch.out is None or not formula.known(branch.out)
        else formula(lambda x: x, [branch.out], None, lift)
    )
    if branch.link == "positive":
        return positive_site(out, mean, variance)
    others = {name: formula.given(arg, lift) for name, arg in branch.args.items()}
    mean, variance, out = jnp.broadcast_arrays(mean, variance, out)
    return branch.factor.sites[branch.link](out, mean, variance, power, **others)


def _slot_edges(
    branch: Branch, forms: list, cavities: list, found: Tilted, weights: Any, axes: tuple[int, ...], edge_cavities: list
) -> dict[int, Any]:
    """What the nodes say of the edges of the slots."""
    edges: dict[int, Any] = {}
    nodes = zip(found.coordinates, found.values, found.lines, strict=True)
    for slot, form, cavity, (u, x, own) in zip(branch.slots, forms, cavities, nodes, strict=True):
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


def _stats(own: Any, u: Any, weights: Any) -> tuple[Any, ...]:
    """The statistics at the nodes; those of an outer slot on its own axis."""
    if u.ndim == weights.ndim and u.shape[-1] == 1 and weights.shape[-1] != 1:
        return tuple(stat[..., None] for stat in own.stats(u[..., 0]))
    return own.stats(u)


def at_state(
    block: SlotsBlock, local: dict[str, Any], cavities: list[Cavity], state: int
) -> tuple[dict[str, Any], list[Cavity]]:
    """Data and cavities where the selector has one state; all of them without a selector."""
    if block.selector is None:
        return local, cavities
    axis = 1 + block.selector

    def at(array):
        wide = jnp.ndim(array) > axis and array.shape[axis] > 1
        return jax.lax.slice_in_dim(array, state, state + 1, axis=axis) if wide else array

    here = {**local, **{name: at(local[name]) for name in local if name.startswith("leaf")}}
    return here, [Cavity(tuple(map(at, c.values)), None, c.floored) for c in cavities]


def outcome(block: SlotsBlock, scope: Scope, local: dict[str, Any], cavities: list[Cavity], logs: list[Any]) -> Outcome:
    """All branches at all states, mixed."""
    rank = len(block.discrete)
    sizes = [log.shape[1 + d] for d, log in enumerate(logs)]
    branches = []
    for state, case in enumerate(block.cases):
        here, own = at_state(block, local, cavities, state)
        parts = [_branch(block, branch, scope, here, own) for branch in case]
        branches.append(parts[0] if len(parts) == 1 else _together(block, parts, own))

    def joined(parts):
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
    edge: Edge, number: int, branches: list, cavity: Cavity, weights: Any, joined: Any, every: Any
) -> Any:
    """The Site of an edge, or its tilted statistics, over all states; branches that do not touch it leave it alone."""
    axes = tuple(axis for axis in every if cavity.values[0].shape[axis] == 1)  # states that do not choose the element
    speaks = [number in branch.edges for branch in branches]
    live = joined([jnp.full((1,) * weights.ndim, float(flag)) for flag in speaks])
    share = jnp.sum(weights * live, axis=axes, keepdims=True)
    one = jnp.zeros((1,) * weights.ndim)
    if entire(edge):
        parts = [branch.edges.get(number) for branch in branches]
        mean, covariance = cavity.values
        score = joined([jnp.zeros((1,) * weights.ndim + mean.shape[-1:]) if p is None else p.score for p in parts])
        flat = jnp.zeros((1,) * weights.ndim + covariance.shape[-2:])
        site = Site(one, score, joined([flat if p is None else p.curvature for p in parts]), one)
        return vectors.mixed(weights * live, site, share, axes)
    if gaussian(edge):
        silent = Site(one, one, one, one + 1.0)
        parts = [branch.edges.get(number, silent) for branch in branches]
        site = Site(*(joined([getattr(part, field) for part in parts]) for field in Site._fields))
        return _mixed(weights * live, site, share, cavity.values[1], axes, True)
    own = family_of(edge.variable).from_naturals(cavity.values).expected_stats()
    stats = []
    for i, stat in enumerate(own):
        values = joined(
            [branch.edges[number][i] if flag else one for branch, flag in zip(branches, speaks, strict=True)]
        )
        weighed = weights * live
        stats.append(
            jnp.sum(jnp.where(weighed == 0.0, 0.0, weighed * values), axis=axes, keepdims=True) + (1.0 - share) * stat
        )
    return tuple(stats)

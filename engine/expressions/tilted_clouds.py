"""The joint distribution of the variables that meet in one instance of a block with messages, as a cloud.

It is the block's tilted distribution, cavities times factor: what EP itself takes the moments of, before it keeps no
more than those of single variables.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from ...compiler.blocks.site import SiteBlock
from ...compiler.blocks.slots import Branch, Edge, SlotsBlock
from ...compiler.blocks.table import TableBlock
from ...compiler.language.atoms import atom_key
from ...compiler.rules.logic import TRUE
from ...factors.arrays import Array
from ...factors.special import ndtr
from ..blocks.discrete import tables
from ..blocks.site import sites
from ..blocks.site.site_data import Prepared as PreparedSite
from ..blocks.site.site_data import per_batch, scanned_parts
from ..blocks.slots import slots
from ..blocks.slots.closed_form import cut_of, members
from ..blocks.slots.nodes import Cavity, Nodes, branch_nodes, gaussian
from ..blocks.slots.tilted import at_state
from ..values.instances import count, flattened, root
from ..values.masks import present
from ..values.naturals import Naturals
from ..values.plated import spread
from ..values.scope import Scope
from . import clouds
from .clouds import Cloud, NumberKey
from .parts import NoCloud

ndtri = jax.scipy.special.ndtri


Rows: TypeAlias = Int[Array, " rows"]  # numbers of instances of a block
Instanced: TypeAlias = SiteBlock | SlotsBlock | TableBlock  # how their numbers meet is known by instance


class Levels:
    """Those of the quantiles of a truncated number, dense in both tails, and the logarithms of their weights."""

    def __init__(self, number: int) -> None:
        self.scores = np.linspace(-6.0, 6.0, number)
        self.log_shares = -0.5 * self.scores**2

    @functools.cached_property
    def at(self) -> Float[np.ndarray, " level"]:
        import scipy.special  # here: it takes a third of a second to import

        return np.asarray(scipy.special.ndtr(self.scores))


FOR_MOMENTS, FOR_SHAPES = Levels(49), Levels(385)


class Source:
    """A block's messages after a run, and which of its instances an element of an expression reads.

    `rows` are numbers of instances; `keys` the numbers that are wanted, with their places in the block. `prepared` and
    `messages` are as the kind of the block has them, `naturals` have all plates of a variable in one axis.
    """

    def __init__(
        self, block: Instanced, prepared: Any, naturals: Naturals, messages: Any, scope: Scope, levels: Levels
    ) -> None:
        self.block, self.prepared, self.naturals, self.scope, self.levels = block, prepared, naturals, scope, levels
        scanned = _scanned(block, prepared)
        self.by_row, self.messages = flattened((scanned, messages), prepared.plan)
        plan = prepared.plan
        instances = count(block, scope.sizes)
        self.place = jnp.arange(instances)
        if plan is not None:
            order = jnp.where(plan.present, plan.order, instances).reshape(-1)
            self.place = jnp.zeros(instances, int).at[order].set(jnp.arange(order.size), mode="drop")

    def at(self, rows: Rows) -> tuple[dict[str, Any], Any]:
        """The data and the messages of these instances: pytrees of arrays that begin with an axis of them."""
        place = self.place[rows]
        return jax.tree.map(lambda a: a[place], (self.by_row, self.messages))

    def present(self, rows: Int[Array, ...]) -> Bool[Array, ...]:
        """Which of these instances count."""
        mask = present(self.block, self.scope)
        if mask is None:
            return jnp.ones(jnp.shape(rows), bool)
        return spread(mask, self.block.plates, self.scope.sizes).reshape(-1)[rows] > 0

    def cloud(self, keys: dict[NumberKey, int], rows: Rows, whole: bool = True) -> Cloud:
        """The tilted distribution of these instances over the numbers in `keys`, given by their places in the block.

        As a `whole` it is what it is; as a part, to be multiplied, all that is Gaussian in its cavity has a covariance.
        """
        match self.block:
            case SiteBlock():
                return _of_site(self, self.block, keys, rows)
            case SlotsBlock():
                return _of_slots(self, self.block, keys, rows, _bare(self.block) if whole else frozenset())
            case TableBlock():
                return _of_table(self, self.block, keys, rows)


def _scanned(block: Instanced, prepared: Any) -> dict[str, Any]:
    """What differs between the instances of a block, by name, in schedule order."""
    match block:
        case SiteBlock():
            return scanned_parts(prepared)
        case SlotsBlock():
            return prepared.scanned
        case TableBlock():
            return tables.scanned_parts(block, prepared)


def _of_site(source: Source, block: SiteBlock, keys: dict[NumberKey, int], rows: Rows) -> Cloud:
    """Gaussians along the terms of a linear form, together by its site."""
    prepared = source.prepared
    data, messages = source.at(rows)
    local: PreparedSite = per_batch(prepared._replace(directions=None), data)
    beliefs = {
        term.variable.name: sites.readable(term.variable, source.naturals[term.variable.name])
        for term in block.form.terms
    }
    odds = source.naturals[root(block.atoms[0]).name][0] if block.atoms else None
    projections, _, _, centre, total, _, found = sites._batch(block, local, beliefs, odds, messages, source.scope.sizes)

    def wide(array: Array) -> Float[Array, " rows"]:
        return jnp.broadcast_to(array, jnp.shape(rows))

    cavities = {key: projections[j].cavity for key, j in keys.items()}
    mean = jnp.stack([wide(m) for m, _ in cavities.values()], axis=-1)
    variance = jnp.stack([wide(v) for _, v in cavities.values()], axis=-1)
    slopes = jnp.stack([wide(local.terms[j].coefficient) for j in keys.values()], axis=-1) * variance
    score, curvature = wide(found.site.score)[:, None], wide(found.site.curvature)[:, None]
    log_weights = jnp.zeros_like(score)
    if block.link == "positive" and block.out is TRUE:
        _, score, curvature = _truncated(source.levels, {}, wide(centre)[:, None], wide(total)[:, None])
        log_weights = jnp.broadcast_to(source.levels.log_shares, score.shape)
    covariance = variance[:, :, None] * jnp.eye(len(cavities))
    covariance = covariance - curvature[..., None] * slopes[:, :, None] * slopes[:, None, :]
    cases = score.shape[1]
    return Cloud(
        log_weights,
        {},
        tuple(cavities),
        mean[:, None] + slopes[:, None] * score[..., None],
        jnp.broadcast_to(covariance[:, None], (len(rows), cases, *covariance.shape[1:])),
    )


def _of_table(source: Source, block: TableBlock, keys: dict[NumberKey, int], rows: Rows) -> Cloud:
    """All states of the variables of a truth table or a table of probabilities."""
    data, messages = source.at(rows)
    local = tables.local_part(source.prepared, data)
    table, placed = tables.joint_logs(block, local, tables.cavities_of(block, local, source.naturals, messages))
    sizes = [log.shape[1 + j] for j, log in enumerate(placed)]
    joint = jnp.broadcast_to(table + sum(placed), (jnp.shape(rows)[0], *sizes))
    return _over_states(joint, keys)


def _over_states(joint: Float[Array, "rows ..."], keys: dict[NumberKey, int]) -> Cloud:
    grids = jnp.meshgrid(*(jnp.arange(size) for size in joint.shape[1:]), indexing="ij")
    flat = joint.reshape((joint.shape[0], -1))
    return clouds.of_points({key: grids[j].reshape(-1)[None] for key, j in keys.items()}, flat)


# slots ----------------------------------------------------------------------------------------------------------------


def _bare(block: SlotsBlock) -> frozenset[int]:
    """The Gaussian edges that are a slot by themselves in all branches: at a node they are points."""
    held = [
        {
            number
            for slot in branch.slots
            for number, _ in slot.members
            if slot.domain.is_real and atom_key(slot.expr) == atom_key(block.edges[number].expr)
        }
        for branch in block.branches
    ]
    return frozenset(set.intersection(*held))


def _of_slots(source: Source, block: SlotsBlock, keys: dict[NumberKey, int], rows: Rows, bare: frozenset[int]) -> Cloud:
    """All branches at all states and nodes; edges by their number, discrete slots by minus one minus theirs.

    Of the Gaussian edges those that are `bare` are points.
    """
    scope = source.scope
    data, messages = source.at(rows)
    local = {**source.prepared.fixed, **data}
    cavities, logs = slots.cavities_and_states(block, local, source.naturals, messages)
    sizes = [log.shape[1 + d] for d, log in enumerate(logs)]
    prior = sum(logs, jnp.zeros((1,) * (1 + len(sizes))))
    parts = []
    for state, case in enumerate(block.cases):
        data_there, cavities_there = at_state(block, local, cavities, state)
        shape, log_prior, states = list(sizes), prior, {}
        if block.selector is not None:
            shape[block.selector], states = 1, {block.selector: state}
            log_prior = jax.lax.slice_in_dim(prior, state, state + 1, axis=1 + block.selector)
        for branch in case:
            nodes = branch_nodes(block, branch, scope, data_there, cavities_there)
            whole = (jnp.shape(rows)[0], *shape)
            case_of = (nodes, cavities_there, keys, bare, whole, log_prior, states)
            parts.append(_cases(source, block.edges, branch, *case_of))
    return clouds.joined(parts)


def _cases(
    source: Source,
    edges: tuple[Edge, ...],
    branch: Branch,
    nodes: Nodes,
    cavities: list[Cavity],
    keys: dict[NumberKey, int],
    bare: frozenset[int],
    shape: tuple[int, ...],
    log_prior: Float[Array, "rows ..."],
    states: dict[int, int],
) -> Cloud:
    """The cases of one branch: `shape` is that of instances and states; the last axis is that of a truncation."""
    import scipy.special

    lift = len(branch.slots)

    def lifted(array: Array) -> Array:
        return array.reshape((*jnp.shape(array), *(1,) * lift))

    moves, truncated = _moves(source.levels, branch, nodes, cavities, lifted)
    logs = jnp.where(jnp.isnan(nodes.log_weights), -jnp.inf, nodes.log_weights) + lifted(log_prior)
    shares = source.levels.log_shares if truncated else np.zeros(1)
    whole = (*shape, *logs.shape[logs.ndim - lift :], len(shares))
    # Shares that sum to one, so that branches with and without a truncation weigh what their factor says.
    logs = logs[..., None] + shares - np.asarray(scipy.special.logsumexp(shares))

    def flat(array: Array) -> Float[Array, "rows cases"]:
        return jnp.broadcast_to(array, whole).reshape((shape[0], -1))

    means: dict[NumberKey, Array] = {}
    variances: dict[NumberKey, Array] = {}
    points: dict[NumberKey, Array] = {}
    for key, number in keys.items():
        if number < 0:
            d = -1 - number
            values = jnp.full((1,) * len(whole), states[d]) if d in states else _along(shape[1 + d], 1 + d, len(whole))
            points[key] = flat(values)
        elif gaussian(edges[number]) and number not in bare:
            mean, variances[key] = (lifted(array)[..., None] for array in cavities[number].values)
            means[key] = mean + sum((m.slopes[number] * m.score for m in moves if number in m.slopes), jnp.zeros(()))
        else:
            points[key] = flat(_at_nodes(branch, nodes, number)[..., None])

    def covariance(first: NumberKey, second: NumberKey) -> Float[Array, "rows cases"]:
        i, j = keys[first], keys[second]
        both = [move for move in moves if i in move.slopes and j in move.slopes]
        known = sum((move.slopes[i] * move.slopes[j] * move.curvature for move in both), jnp.zeros(()))
        return flat((variances[first] if first == second else 0.0) - known)

    names, empty = tuple(means), jnp.zeros((shape[0], math.prod(whole[1:]), 0))
    if not names:
        return Cloud(flat(logs), points, (), empty, empty[..., None, :])
    mean = jnp.stack([flat(value) for value in means.values()], axis=-1)
    rows = [jnp.stack([covariance(first, second) for second in names], axis=-1) for first in names]
    return Cloud(flat(logs), points, names, mean, jnp.stack(rows, axis=-2))


def _along(size: int, axis: int, rank: int) -> Int[Array, ...]:
    """The numbers 0, ..., size - 1 on one of so many axes."""
    return jnp.arange(size).reshape([size if i == axis else 1 for i in range(rank)])


class Move(NamedTuple):
    """What is known of a linear quantity: Cov(edge, quantity) by edge, and the score and curvature of its site.

    An edge's mean moves by Cov * score, two edges' covariance by minus the product of theirs * curvature.
    """

    slopes: dict[int, Array]
    score: Array
    curvature: Array


def _moves(
    levels: Levels, branch: Branch, nodes: Nodes, cavities: list[Cavity], lifted: Callable[[Array], Array]
) -> tuple[list[Move], bool]:
    """What is known at a node, one quantity after the other, each given those before; and whether one is truncated."""

    def wide(array: Array) -> Array:
        return jnp.asarray(array)[..., None]

    moves = []
    for slot, form, cavity, value in zip(branch.slots, nodes.forms, nodes.cavities, nodes.found.values, strict=True):
        if form is None:
            continue
        mean, variance = (lifted(array) for array in cavity)
        slopes = {
            n: wide(lifted(c) * lifted(cavities[n].values[1])) for (n, _), c in zip(slot.members, form[0], strict=True)
        }
        moves.append(Move(slopes, wide((value - mean) / variance), wide(1.0 / variance)))
    if nodes.whole is None:
        return moves, False
    whole, spreads = nodes.whole, {n: lifted(cavities[n].values[1]) for n, _ in members(branch)}
    slopes = {n: wide(c * spreads[n]) for n, c in whole.factors.items()}
    if branch.link == "positive" and (branch.out is None or branch.out is TRUE):
        return [*moves, _truncated(levels, slopes, wide(whole.mean), wide(whole.variance))], True
    moves.append(Move(slopes, wide(whole.site.score), wide(whole.site.curvature)))
    if nodes.side is None:
        return moves, False
    cut = cut_of(whole, nodes.side, spreads)
    slopes = {n: wide(g * spreads[n]) for n, g in cut.slopes.items()}
    return [*moves, _truncated(levels, slopes, wide(cut.mean), wide(cut.variance))], True


def _truncated(levels: Levels, slopes: dict[int, Array], mean: Array, variance: Array) -> Move:
    """A Gaussian quantity that is positive, at its quantiles: given its value the rest is Gaussian as before."""
    sd = jnp.sqrt(variance)
    away = -ndtri(levels.at * jnp.maximum(ndtr(mean / sd), 1e-290))
    return Move(slopes, away / sd, 1.0 / variance)


def _at_nodes(branch: Branch, nodes: Nodes, number: int) -> Array:
    """The values of a number that is a slot by itself, at the nodes."""
    for slot, value in zip(branch.slots, nodes.found.values, strict=True):
        if len(slot.members) == 1 and slot.members[0][0] == number:
            return value
    raise NoCloud  # a case of a switch that does not touch it

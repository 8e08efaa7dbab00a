"""Moves of a tree that `cv.sample` changes: subtrees that hang elsewhere, divergence times, and the prior of both."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ...engine.mcmc.structure import Place, Score
from ...engine.moves.asked import check_times
from ...factors.arrays import Array, Key
from ...factors.errors import ModelError, UnsupportedError
from .jax_kernels.density import cumulative, intensity
from .jax_kernels.moves import inverse
from .prior import Tables, TreePrior, tables
from .shapes.sample import sample_tree

TREE = ("parent", "length", "first", "above", "left", "waiting")  # of `diffusion_tree(tree="moved")` what is a tree
NOBODY = -2  # no node, nor what is above the top
SHRINKS = 60  # of a slice, which is then a point


class Hanging(NamedTuple):
    """A binary tree of N leaves.

    Attributes:
        parent: (2N - 1,) of each node, leaves first; -1 at the top.
        depth: (N - 1,) of the branch points, -log(1 - t).
    """

    parent: jax.Array
    depth: jax.Array

    @property
    def leaves(self) -> int:
        """N."""
        return len(self.depth) + 1

    def depths(self) -> tuple[jax.Array, jax.Array]:
        """(2N - 1,) depth of every node and of its parent: infinite at leaves, 0 at the origin."""
        every = jnp.concatenate([jnp.full(self.leaves, jnp.inf), self.depth])
        return every, jnp.where(self.parent < 0, 0.0, every[self.parent])


def counts(tree: Hanging, pruned: Array | int = NOBODY) -> jax.Array:
    """(2N - 1,) leaves below each node; all that is below the node `pruned` counts as one leaf, at that node."""
    nodes = jnp.arange(len(tree.parent))

    def up(_: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        at, inside = carry
        inside = inside | (at == pruned)
        return jnp.where(at < 0, -1, tree.parent[at]), inside

    _, below = lax.fori_loop(0, tree.leaves, up, (nodes, nodes < 0))
    starts = jnp.where(below, nodes == pruned, nodes < tree.leaves)

    def add(_: Any, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        at, found = carry
        found = found.at[jnp.maximum(at, 0)].add(jnp.where(at < 0, 0, 1))
        return jnp.where(at < 0, -1, tree.parent[at]), found

    return lax.fori_loop(0, tree.leaves, add, (jnp.where(starts, nodes, -1), jnp.zeros(nodes.shape, int)))[1]


def waiting_of(tree: Hanging, table: Tables, count: Array) -> Array:
    """(2N - 1,) the integral of the divergence function over the branch of each branch point, times H(m - 1)."""
    depth, above = (jnp.where(count > 1, part, 0.0) for part in tree.depths())
    passed = cumulative(table.coefficients, depth) - cumulative(table.coefficients, above)
    return passed * jnp.asarray(table.harmonic)[jnp.maximum(count - 1, 0)]


def log_structure_of(tree: Hanging, table: Tables, pruned: Array | int = NOBODY) -> Array:
    """Log density of structure and depths but for `exp(-waiting)`, which has the rate; of what is left of a tree whose
    node `pruned` is a leaf; minus infinity where depths are out of order."""
    count, (depth, above) = counts(tree, pruned), tree.depths()
    follow, total = (jnp.asarray(part) for part in (table.log_follow, table.log_total))
    nodes = jnp.arange(len(count))
    points = (nodes >= tree.leaves) & (nodes != pruned) & (count > 1)
    at = jnp.where(points, depth, 1.0)
    own = jnp.log(intensity(table.coefficients, at)[0]) - total[count] - table.log_unit
    below = jnp.where((count > 0) & (tree.parent >= 0), follow[count], 0.0)
    ordered = jnp.all(jnp.where(points, depth > above, True))
    return jnp.where(ordered, jnp.sum(jnp.where(points, own, 0.0)) + jnp.sum(below), -jnp.inf)


def log_prior_of(tree: Hanging, table: Tables, pruned: Array | int = NOBODY) -> Array:
    """Log density of structure and depths, as `log_prior` has it, of what is left of a tree whose node `pruned` is a
    leaf; minus infinity where depths are out of order."""
    nodes, count = jnp.arange(len(tree.parent)), counts(tree, pruned)
    waiting = waiting_of(tree, table, jnp.where(nodes == pruned, 1, count))
    return log_structure_of(tree, table, pruned) - jnp.sum(waiting)


@dataclasses.dataclass(frozen=True)
class OfTrees:
    """What moves of trees share: the tree to begin with, the prior, and the arrays that the model takes."""

    prior: TreePrior
    times: int

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs that are a tree together."""
        return TREE

    def init(self, key: Key, places: tuple[Place, ...], data: Mapping[str, Any]) -> Hanging:
        names = tuple(place.name for place in places)
        if names != TREE:
            raise ModelError(
                f"moves= asks for moves of subtrees under {names}. A tree is {TREE} together, in this order: write "
                "moves={'parent': subtree_moves()}, for diffusion_tree(tree='moved')."
            )
        if given := [place.name for place in places if place.start is not None]:
            raise ModelError(
                f"The tree is drawn: it begins with one of its prior. Leave {', '.join(given)} out of data."
            )
        tree = sample_tree(self.prior, places[3].shape[0], key)
        return Hanging(jnp.asarray(tree.parent), jnp.asarray(tree.depth[tree.n_leaves :]))

    def data_of(self, tree: Hanging) -> tuple[Array, ...]:
        depth, above = tree.depths()
        parent, points = tree.parent[tree.leaves :] - tree.leaves, jnp.arange(len(tree.depth))
        length = jnp.exp(-above) * -jnp.expm1(above - depth)
        top = jnp.argmin(tree.parent)
        return (
            jnp.where(parent < 0, points, parent),
            length[tree.leaves :],
            length[top],
            tree.parent[: tree.leaves] - tree.leaves,
            length[: tree.leaves],
            waiting_of(tree, tables(self.prior, tree.leaves), counts(tree))[tree.leaves :],
        )

    def log_prior(self, tree: Hanging) -> Array:
        """But for `waiting`, an exponential variable of the model, whose rate may be random."""
        return log_structure_of(tree, tables(self.prior, tree.leaves))


class Regrafts(OfTrees):
    """A subtree is taken off and hung where the process that draws trees, with the rate 1, would hang a new leaf."""

    def propose(self, key: Key, tree: Hanging, score: Score) -> tuple[Hanging, Array]:
        table = tables(self.prior, tree.leaves)
        keys = jax.random.split(key)
        top = jnp.argmin(tree.parent)
        root = jax.random.randint(keys[0], (), 0, len(tree.parent) - 1)
        root = root + (root >= top)
        rest = _without(tree, root)
        branch, depth = _walk(rest, root, table, keys[1])
        slot = tree.parent[root]
        parent = rest.parent.at[slot].set(rest.parent[branch]).at[branch].set(slot).at[root].set(slot)
        found = Hanging(parent, tree.depth.at[slot - tree.leaves].set(depth))
        ratio = log_prior_of(tree, table, root) - log_prior_of(found, table, root)
        late = depth >= tree.depths()[0][root]  # then the prior refuses it
        return found, jnp.where(late, 0.0, ratio)


class Depths(OfTrees):
    """The depth of one branch point by slice sampling, in the coordinate time."""

    def propose(self, key: Key, tree: Hanging, score: Score) -> tuple[Hanging, Array]:
        keys = jax.random.split(key, 3)
        at = jax.random.randint(keys[0], (), 0, len(tree.depth))
        depth, above = tree.depths()
        node = at + tree.leaves
        below = jnp.min(jnp.where(tree.parent == node, depth, jnp.inf))
        low, high = -jnp.expm1(-above[node]), -jnp.expm1(-below)

        def there(time: Array) -> tuple[Hanging, Array]:
            found = tree._replace(depth=tree.depth.at[at].set(-jnp.log1p(-time)))
            return found, score(found) - jnp.log1p(-time)  # the density per unit of time

        now = -jnp.expm1(-tree.depth[at])
        level = there(now)[1] + jnp.log(jax.random.uniform(keys[1]))

        def shrink(carry: tuple) -> tuple:
            low, high, _, step, _ = carry
            time = low + (high - low) * jax.random.uniform(jax.random.fold_in(keys[2], step))
            return (
                jnp.where(time < now, time, low),
                jnp.where(time < now, high, time),
                time,
                step + 1,
                there(time)[1] > level,
            )

        start = low, high, now, jnp.asarray(0), jnp.asarray(False)
        _, _, time, _, found = lax.while_loop(lambda carry: ~carry[4] & (carry[3] < SHRINKS), shrink, start)
        new = there(jnp.where(found, time, now))[0]
        return new, score(tree) - score(new)  # a draw of the slice is accepted as it is


def _without(tree: Hanging, root: Array) -> Hanging:
    """The tree whose node above `root` is passed over; neither is reached from other leaves."""
    slot = tree.parent[root]
    nodes = jnp.arange(len(tree.parent))
    sibling = jnp.argmax((tree.parent == slot) & (nodes != root))
    parent = tree.parent.at[sibling].set(tree.parent[slot]).at[slot].set(-1).at[root].set(-1)
    return Hanging(parent, tree.depth)


def _walk(rest: Hanging, root: Array, table: Tables, key: Key) -> tuple[Array, Array]:
    """Where a new leaf leaves the rest of a tree: the node at the end of the branch, and the depth.

    One exponential variable is spent along the path; where it ends, the leaf leaves.
    """
    count, (depth, above) = counts(rest, root).at[root].set(0), rest.depths()
    nodes = jnp.arange(len(count))
    harmonic, follow = jnp.asarray(table.harmonic), jnp.asarray(table.log_follow)
    total = jnp.asarray(table.log_total)

    def room(node: Array) -> tuple[Array, Array, Array]:
        start = cumulative(table.coefficients, above[node])
        rate = harmonic[count[node]] - harmonic[count[node] - 1]
        finite = jnp.isfinite(depth[node])
        end = cumulative(table.coefficients, jnp.where(finite, depth[node], 0.0))
        return start, rate, jnp.where(finite, (end - start) * rate, jnp.inf)

    def down(carry: tuple) -> tuple:
        node, patience, step = carry
        one = jnp.argmax(rest.parent == node)
        two = len(nodes) - 1 - jnp.argmax((rest.parent == node)[::-1])
        n, m = count[one], count[node]
        share = jnp.exp(follow[n + 1] - follow[n] - (total[m + 1] - total[m]))
        chosen = jnp.where(jax.random.uniform(jax.random.fold_in(key, step)) < share, one, two)
        return chosen, patience - room(node)[2], step + 1

    top = jnp.argmax((rest.parent < 0) & (count > 0))
    patience = jax.random.exponential(key)
    start = top, patience, jnp.asarray(1)
    node, patience, _ = lax.while_loop(lambda carry: carry[1] >= room(carry[0])[2], down, start)
    begun, rate, _ = room(node)
    return node, inverse(table, begun + patience / rate)


def subtree_moves(prior: TreePrior | None = None, times: int = 10) -> list[OfTrees]:
    """Moves of a tree for `cv.sample`: subtrees are hung elsewhere, and divergence times drawn by slices.

    `cv.sample(diffusion_tree(columns, likelihood, tree="moved"), data, moves={"parent": subtree_moves()},
    collapse=["location"])` draws trees under any likelihood at the leaves; locations of branch points are integrated
    out, up to 400 numbers, or else drawn. Asked for under "parent" the moves change all of `TREE` together.

    Args:
        prior: of binary trees: concentration -2 discount; by default the Dirichlet diffusion tree with rate 1.
        times: proposals of subtrees in a sweep, and as many of times.

    Returns:
        The two moves, which keep structure and depths at their density given all else.

    Raises:
        UnsupportedError: a prior of trees with more than two children. ModelError: `times` below 1.

    Source: neal2003density, knowles2015pitman.
    """
    prior = TreePrior() if prior is None else prior
    if not prior.binary:
        raise UnsupportedError(
            f"Moves of a tree in cv.sample are of binary ones: concentration -2 discount; found {prior!r}. For others "
            "see sample_posterior, with Gaussian and binary columns."
        )
    times = check_times("subtree_moves", times)
    return [Regrafts(prior, times), Depths(prior, times)]

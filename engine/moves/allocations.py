"""Moves of allocations: two classes become one, or one becomes two."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Int

from ...factors.arrays import Array, Key
from ...factors.calls import call_checked
from ...factors.errors import ModelError
from ..mcmc.structure import Place, Score
from .asked import check_times, only
from .priors import ChineseRestaurant

Labels = Int[jax.Array, " n"]


class Allocation(NamedTuple):
    """The class of each element, and how many elements each class has."""

    label: Labels
    size: Int[jax.Array, " classes"]


def _sized(label: Labels, classes: int) -> Allocation:
    return Allocation(label, jnp.zeros(classes, int).at[label].add(1))


@dataclasses.dataclass(frozen=True)
class Splits:
    """See `splits`."""

    times: int
    scans: int
    prior: ChineseRestaurant | None

    def init(self, key: Key, places: tuple[Place, ...], data: Mapping[str, Any]) -> Allocation:
        place = only(places, type(self).__name__.lower(), self.prior, "classes")
        if place.states is None or len(place.shape) != 1 or place.shape[0] < 2:
            raise ModelError(
                f"moves= of '{place.name}': splits are of the classes of two elements or more along one plate, a "
                f"category or an index; it has shape {place.shape}."
            )
        if place.start is not None:
            return _sized(jnp.asarray(place.start, jnp.int32), place.states)
        return _sized(jnp.zeros(place.shape, jnp.int32), place.states)

    def data_of(self, structure: Allocation) -> tuple[Array, ...]:
        return (structure.label,)

    def log_prior(self, structure: Allocation) -> Array:
        return jnp.zeros(()) if self.prior is None else self.prior.log_probability(structure.size)

    def propose(self, key: Key, structure: Allocation, score: Score) -> tuple[Allocation, Array]:
        """Two elements of one class part with it, or their two classes join.

        Which of the others goes with which is told by Gibbs scans from a random start, the last of which is the
        proposal: its density is known.
        """
        label, classes = structure.label, len(structure.size)
        keys = jax.random.split(key, 4)
        first, second = jax.random.choice(keys[0], len(label), (2,), replace=False)
        joined, apart = label[second], label[first] != label[second]
        empty = structure.size == 0
        fresh = jax.random.categorical(keys[1], jnp.where(empty, 0.0, -jnp.inf)).astype(label.dtype)
        own = jnp.where(apart, label[first], fresh)  # of the first element where they are apart
        among = (label == joined) | (label == own)
        free = among & (jnp.arange(len(label)) != first) & (jnp.arange(len(label)) != second)
        whole = _sized(jnp.where(among, joined, label), classes)

        def visit(key: Key, launch: Labels, wanted: Labels | None) -> tuple[Labels, Array]:
            """A scan, drawn or towards what is wanted, and the log probability of what came of it."""

            def one(i: Array, now: tuple[Labels, Array]) -> tuple[Labels, Array]:
                z, total = now
                heights = jnp.stack([score(_sized(z.at[i].set(to), classes)) for to in (own, joined)])
                heights = jax.nn.log_softmax(heights)
                uniform = jax.random.uniform(jax.random.fold_in(key, i))
                is_own = uniform < jnp.exp(heights[0]) if wanted is None else wanted[i] == own
                new = z.at[i].set(jnp.where(is_own, own, joined))
                gained = jnp.where(is_own, heights[0], heights[1])
                return jnp.where(free[i], new, z), total + jnp.where(free[i], gained, 0.0)

            return jax.lax.fori_loop(0, len(label), one, (launch, jnp.zeros(())))

        side = jnp.where(jax.random.bernoulli(keys[2], 0.5, label.shape), own, joined)
        launch = jnp.where(free, side, label).at[first].set(own).at[second].set(joined)
        for i in range(self.scans):
            launch, _ = visit(jax.random.fold_in(keys[3], i), launch, None)
        split, log_split = visit(jax.random.fold_in(keys[3], self.scans), launch, None)
        _, log_back = visit(keys[3], launch, label)
        places = jnp.log(jnp.sum(empty)), jnp.log(jnp.sum(whole.size == 0))  # of the label that a split takes
        other = _sized(jnp.where(apart, whole.label, jnp.where(jnp.any(empty), split, label)), classes)
        return other, jnp.where(apart, log_back - places[1], jnp.where(jnp.any(empty), places[0] - log_split, 0.0))


@call_checked
def splits(times: int = 1, scans: int = 2, prior: ChineseRestaurant | None = None) -> Splits:
    """Moves of classes (category or index along one plate) that let one class become two, or two one.

    `times`: proposals in a sweep, each of which computes the score 2 n (`scans` + 2) times; `scans`: restricted Gibbs
    scans before the one that is proposed; `prior`: of an input, `cv.moves.chinese_restaurant(concentration)`. Single
    elements change class by `relabels`. Starts with one class. Returns a move for `cv.sample` and `cv.search`.
    Source: jain2004split.
    """
    return Splits(check_times("splits", times), check_times("splits", scans), prior)


class Relabels(Splits):
    """See `relabels`."""

    def propose(self, key: Key, structure: Allocation, score: Score) -> tuple[Allocation, Array]:
        keys = jax.random.split(key)
        label, classes = structure.label, len(structure.size)
        at = jax.random.randint(keys[0], (), 0, len(label))

        def to(own: Array) -> Array:
            return score(_sized(label.at[at].set(own), classes))

        heights = jax.nn.log_softmax(jax.lax.map(to, jnp.arange(classes, dtype=label.dtype), batch_size=64))
        chosen = jax.random.categorical(keys[1], heights).astype(label.dtype)
        return _sized(label.at[at].set(chosen), classes), heights[label[at]] - heights[chosen]


@call_checked
def relabels(times: int = 10, prior: ChineseRestaurant | None = None) -> Relabels:
    """Moves of classes (category or index along one plate) that draw the class of one element from its conditional.

    `times`: elements in a sweep; `prior`: of an input, `cv.moves.chinese_restaurant(concentration)`. Returns a move for
    `cv.sample` and `cv.search`.
    """
    return Relabels(check_times("relabels", times), 1, prior)

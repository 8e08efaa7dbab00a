"""Some elements of a distribution over plates: what is asked of the whole, read at their places."""

from __future__ import annotations

import functools
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ...factors.arrays import Array, Key, Numeric
from ...factors.conditionals.beliefs import below
from ...factors.families import ExponentialFamily, Family, Point
from ...factors.families.base import Levels
from ...factors.records import fixed
from .cases import Projected, title
from .partly_observed import Completed
from .weighted_draws import WeightedDraws

Places = tuple[int | None, ...]  # for each plate a place, or None for all of them


@final
class Selected(Family):
    """The elements of `whole` at `places`, one for each plate."""

    whole: PyTree  # a family
    places: Places = fixed()

    def mean(self) -> Array:
        return self._of(self.whole.mean())

    def variance(self) -> Array:
        return self._of(self.whole.variance())

    def covariance(self) -> Array:
        """Cov x of a vector."""
        return self._of(self.whole.covariance())

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        found = np.asarray(self.whole.quantile(level))
        return np.asarray(self._of(found, np.ndim(np.asarray(level))))

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        return self._of(self.whole.sample(key, shape), len(shape))

    def log_density(self, value: Numeric) -> Array:
        """The logarithm of the density at a value shaped as the mean (more leading axes allowed)."""
        value, lead = self._everywhere(value)
        return self._of(self.whole.log_density(value), lead)

    def below(self, x: Array) -> Array:
        """P(X <= x), by element."""
        x, lead = self._everywhere(x)
        return self._of(below(self.whole, x), lead)

    def parameters(self) -> dict[str, Array]:
        shape = jnp.shape(self.whole.mean())[: len(self.places)]
        found = {name: jnp.asarray(value) for name, value in self.whole.parameters().items()}
        return {n: self._of(a) if a.shape[: len(shape)] == shape else a for n, a in found.items()}

    @property
    def kind(self) -> str:
        """The kind of its domain."""
        return self.whole.kind

    @property
    def title(self) -> str:
        """What it is, for a reader."""
        return title(self.whole)

    def _of(self, array: Any, lead: int = 0) -> Any:
        """The elements of an array over so many leading axes, the plates, and more."""
        return array[self.index(lead)]

    def index(self, lead: int = 0) -> tuple[Any, ...]:
        """Where they are in an array of so many leading axes before the plates."""
        return (slice(None),) * lead + tuple(slice(None) if p is None else p for p in self.places)

    def _everywhere(self, value: Numeric) -> tuple[Array, int]:
        """A value of these elements as one of all, and how many axes it has before the plates."""
        value, shape = jnp.asarray(value, float), jnp.shape(self.whole.mean())
        lead = max(value.ndim - (len(shape) - sum(place is not None for place in self.places)), 0)
        for axis, place in enumerate(self.places):
            value = value if place is None else jnp.expand_dims(value, lead + axis)
        return jnp.broadcast_to(value, (*value.shape[:lead], *shape)), lead


@functools.singledispatch
def selected(family: Any, places: Places) -> Any:
    """The same elements, of the family itself where its parameters tell them apart."""
    return Selected(family, places)


@selected.register
def _(family: ExponentialFamily, places: Places) -> Family:
    index, plates = Selected(family, places).index(), family.plates
    leaves = jax.tree.leaves(family)
    if len(plates) == len(places) and all(np.shape(leaf)[: len(plates)] == plates for leaf in leaves):
        return jax.tree.map(lambda leaf: leaf[index], family)
    return Selected(family, places)


@selected.register
def _(family: Point, places: Places) -> Family:
    return Point(np.asarray(family.value)[Selected(family, places).index()])


@selected.register
def _(family: Completed, places: Places) -> Family:
    index, predicted = Selected(family, places).index(), selected(family.predicted, places)
    return Completed(np.asarray(family.value)[index], np.asarray(family.missing)[index], predicted)


@selected.register
def _(family: WeightedDraws, places: Places) -> Family:
    return WeightedDraws(np.asarray(family.values)[Selected(family, places).index(1)], family.weights, family.kind)


@selected.register
def _(family: Projected, places: Places) -> Family:
    return Projected(selected(family.own, places))

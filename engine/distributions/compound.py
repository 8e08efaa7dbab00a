"""Predictive distributions as what they are: a factor's own distribution, mixed over the beliefs about its arguments.

p(x) = E f(x | arguments). Means, variances, densities and quantiles are sums over a quadrature of the beliefs, draws
are drawn through them. Beliefs that no quadrature covers (vectors, matrices, more than three of them) are represented
by a fixed number of draws, which the title tells.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from ...factors.arrays import Array, Key, Numeric
from ...factors.conditional import Conditional, inverted
from ...factors.errors import UnsupportedError
from ...factors.families.base import ExponentialFamily, Levels
from ...factors.families.matrices import outer
from ...factors.records import fixed
from ...factors.switches import double_precision
from ..support.compiled import compiled
from .belief_points import diverges, is_scalar, rule
from .formula import Tree, evaluated
from .shown import Belief, Shown

DRAWS = 4096
_POINTS = {0: 1, 1: 400, 2: 48, 3: 20}  # for each argument, by the number of random ones
_POINTS_OF_JUMPS = {0: 1, 1: 4000, 2: 200, 3: 40}
_LARGE = 2**22  # numbers at once
Nodes = tuple[tuple[int, ...], Array, dict[str, Array]]  # see `Compound._nodes`


@final
class Compound(Shown):
    """The distribution of an outcome whose `conditional` has random arguments.

    `formulas` gives each argument as an expression of `sources` (independent beliefs) and of `known` values. All
    arrays have the plates of the variable first. `projection` is the member of the domain's family with the statistics
    that messages use.
    """

    sources: tuple[Belief, ...]
    known: tuple[Numeric, ...]
    projection: ExponentialFamily
    conditional: Conditional = fixed()
    formulas: tuple[tuple[str, Tree], ...] = fixed()

    # what a belief is asked ------------------------------------------------------------------------------------------

    def mean(self) -> Array:
        return self._each(lambda one: one._mean())

    def variance(self) -> Array:
        return self._each(lambda one: one._variance())

    def covariance(self) -> Array:
        """Cov x of a vector, shaped plates + (D, D)."""
        own = self.conditional.covariance
        if own is None:
            raise UnsupportedError(
                f"A {self.title} has no covariance matrix. Read its variances, or draw with .sample()."
            )

        def one(single: Compound) -> Array:
            nodes = single._nodes()
            mean = single._average(single.conditional.mean, nodes)

            def second(**arguments: Array) -> Array:
                gap = single.conditional.mean(**arguments) - mean
                return own(**arguments) + outer(gap, gap)

            return single._average(second, nodes)

        return self._each(one)

    def log_density(self, value: Array) -> Array:
        """The logarithm of the mixed density at a value shaped plates + event (more leading axes allowed)."""

        def one(single: Compound, x: Array) -> Array:
            _, weights, arguments = single._nodes()
            parts = jax.vmap(lambda a: single.conditional.log_density(x, **a))(arguments)
            return jax.scipy.special.logsumexp(jnp.where(weights > 0, parts, -jnp.inf), b=weights)

        return self._at(one, jnp.asarray(value, float), 0)

    def below(self, x: Array) -> Array:
        """P(X <= x), by element, at a value shaped plates + event (more leading axes allowed)."""
        return self._at(lambda single, at: single._below(at, single._nodes()), jnp.asarray(x, float))

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        if self.conditional.below is None:
            raise UnsupportedError(f"{self.title} has no quantiles: use those of draws, `sample(key, shape)`.")
        with double_precision():
            found = np.asarray(_quantile(self, np.asarray(level, float)))
        return np.round(found) if self.conditional.whole else found

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        return _sample_of(self, key, tuple(shape))

    def parameters(self) -> dict[str, Numeric]:
        """The arguments where all are known, else mean and variance."""
        if self.sources:
            return {"mean": self.mean(), "variance": self.variance()}
        return {edge: self.known[tree[1]] for edge, tree in self.formulas if tree[0] == "known"}

    @property
    def title(self) -> str:
        """What it is, for a reader."""
        own = "".join(part.capitalize() for part in self.conditional.name.removesuffix("_about").split("_"))
        if not self.sources:
            return own
        return f"{own} mixture" + (f" by {DRAWS} draws" if self._by_draws() else "")

    # what the forward pass asks --------------------------------------------------------------------------------------

    def stand_in(self) -> ExponentialFamily:
        return self.projection

    @property
    def plates(self) -> tuple[int, ...]:
        """The shape of the plates."""
        return self.projection.plates

    # for one scalar instance -----------------------------------------------------------------------------------------

    def _by_draws(self) -> bool:
        return len(self.sources) > 3 or not all(is_scalar(source) for source in self.sources)

    def _nodes(self, points_of: dict[int, int] = _POINTS) -> Nodes:
        """The counts of points along each source, the weights of their product, and the arguments there."""
        if self._by_draws():
            keys = [jax.random.fold_in(jax.random.key(0), number) for number in range(len(self.sources))]
            drawn = [source.sample(key, (DRAWS,)) for source, key in zip(self.sources, keys, strict=True)]
            return (DRAWS,), jnp.full(DRAWS, 1.0 / DRAWS), self._arguments(drawn, ())
        rules = [rule(source, points_of[len(self.sources)]) for source in self.sources]
        counts = tuple(weights.shape[0] for _, weights in rules)
        weights, points = jnp.ones(()), []
        for number, (at, own) in enumerate(rules):
            weights = weights[..., None] * own
            line = at.reshape((1,) * number + (-1,) + (1,) * (len(rules) - number - 1))
            points.append(jnp.broadcast_to(line, counts).ravel())
        return counts, weights.ravel(), self._arguments(points, counts)

    def _arguments(self, points: list[Array], counts: tuple[int, ...]) -> dict[str, Array]:
        """All arguments at points of the sources: those on the first axis."""
        number = math.prod(counts) if counts or not points else points[0].shape[0]

        def at(values: list[Array]) -> dict[str, Array]:
            return {edge: evaluated(tree, values, self.known) for edge, tree in self.formulas}

        if not points:
            return jax.tree.map(lambda a: jnp.asarray(a)[None], at([]))
        return jax.vmap(at, axis_size=number)(points)

    def expected(self, function: Callable[..., Array]) -> Array:
        """The expectation of a bounded function of the arguments of one scalar instance, which may jump."""
        _, weights, arguments = self._nodes(_POINTS_OF_JUMPS)
        return jnp.tensordot(weights, jax.vmap(lambda a: function(**a))(arguments), axes=1)

    def _average(self, function: Callable[..., Array], nodes: Nodes) -> Array:
        """The expectation of a function of the arguments; infinite where the outermost points hold a share of it."""
        counts, weights, arguments = nodes
        values = jax.vmap(lambda a: function(**a))(arguments)
        weights = weights.reshape((-1,) + (1,) * (values.ndim - 1))
        parts = jnp.where(weights > 0, weights * values, 0.0)
        total = parts.sum(0)
        if not self.sources or self._by_draws():
            return total
        table = jnp.abs(parts).reshape((*counts, *parts.shape[1:]))
        for axis, source in enumerate(self.sources):
            if source.kind in ("count", "boolean", "category"):
                continue
            others = tuple(i for i in range(len(counts)) if i != axis)
            endless = diverges(weights.reshape(counts).sum(others), table.sum(others))
            total = jnp.where(endless, jnp.inf * jnp.sign(total), total)
        return total

    def _mean(self) -> Array:
        """NaN where the mean spread is infinite about a centre: what lies to the left and to the right both are."""
        nodes = self._nodes()
        mean = self._average(self.conditional.mean, nodes)
        if not self.sources or self.kind not in ("real", "sparse"):
            return mean

        def spread(**arguments: Array) -> Array:
            variance = self.conditional.variance(**arguments)
            return jnp.sqrt(jnp.where(jnp.isfinite(variance), variance, 0.0))  # a Student's t may have a mean without

        return jnp.where(jnp.isinf(self._average(spread, nodes)), jnp.nan, mean)

    def _variance(self) -> Array:
        own, nodes = self.conditional, self._nodes()
        mean = self._average(own.mean, nodes)
        within = self._average(own.variance, nodes)
        between = self._average(lambda **a: (own.mean(**a) - mean) ** 2, nodes) if self.sources else 0.0
        return jnp.where(jnp.isinf(mean), jnp.inf, within + between)

    def _below(self, x: Array, nodes: Nodes) -> Array:
        _, weights, arguments = nodes
        below: Any = self.conditional.below
        return _mixed(weights, jax.vmap(lambda a: below(x, **a))(arguments))

    def _quantile(self, level: Array, event: tuple[int, ...]) -> Array:
        nodes = self._nodes()
        found = inverted(lambda x: self._below(x, nodes) < level, self.kind, event)
        return jnp.where(jnp.isnan(self._below(found, nodes)), jnp.nan, found)

    def _draw(self, key: Key) -> Array:
        keys = jax.random.split(key, len(self.sources) + 1)
        values = [source.sample(own, ()) for source, own in zip(self.sources, keys, strict=False)]
        arguments = {edge: evaluated(tree, values, self.known) for edge, tree in self.formulas}
        return self.conditional.draw(keys[-1], **arguments)

    # over the plates -------------------------------------------------------------------------------------------------

    def _size(self) -> int:
        """How many numbers an instance needs at once."""
        if self._by_draws():
            return DRAWS
        return _POINTS[len(self.sources)] ** max(len(self.sources), 1)

    def _each(self, function: Callable[..., Array], *arrays: Array) -> Array:
        """`function`, written for one scalar instance, over all plates, by parts where that holds too many numbers."""
        plates = self.plates
        number, rank = math.prod(plates), len(plates)
        flat = jax.tree.map(lambda a: jnp.reshape(a, (number, *jnp.shape(a)[rank:])), (self, *arrays))
        size = max(1, _LARGE // self._size())
        found = (
            jax.vmap(function)(*flat)
            if number <= size
            else jax.lax.map(lambda one: function(*one), flat, batch_size=size)
        )
        return jax.tree.map(lambda a: a.reshape((*plates, *a.shape[1:])), found)

    def _at(self, function: Callable[..., Array], value: Array, event: int | None = None) -> Array:
        """`function(instance, x)` at values with the plates, and perhaps more axes before these."""
        rank = len(self.plates) + self._event_ndim()
        value = jnp.broadcast_to(value, jnp.broadcast_shapes(jnp.shape(value), self._shape()))
        lead = value.ndim - rank
        for_all = lambda x: self._each(function, x)  # noqa: E731 - wrapped in one map for each leading axis
        for _ in range(lead):
            for_all = jax.vmap(for_all)
        return for_all(value)

    def _shape(self) -> tuple[int, ...]:
        return tuple(jax.eval_shape(lambda family: family.projection.mean(), self).shape)

    def _event_ndim(self) -> int:
        return len(self._shape()) - len(self.plates)


def _quantile_of(family: Compound, levels: Array) -> Array:
    event = family._shape()[len(family.plates) :]
    for_all = lambda level: family._each(lambda one: one._quantile(level, event))  # noqa: E731 - wrapped below
    for _ in range(levels.ndim):
        for_all = jax.vmap(for_all)
    return for_all(levels)


def _sample_of(family: Compound, key: Key, shape: tuple[int, ...]) -> Array:
    for_all = lambda keys: family._each(lambda one, own: one._draw(own), keys)  # noqa: E731 - wrapped below
    for _ in shape:
        for_all = jax.vmap(for_all)
    return for_all(jax.random.split(key, (*shape, *family.plates)))


_quantile = compiled("compound quantile", (), _quantile_of)


def _mixed(weights: Array, parts: Array) -> Array:
    """The average over nodes, without those at which a density cannot be evaluated; NaN where these have weight."""
    weights = weights.reshape((-1,) + (1,) * (parts.ndim - 1))
    sound = ~jnp.isnan(parts)
    kept = jnp.where(sound, weights, 0.0).sum(0)
    return jnp.where(kept > 0.999 * weights.sum(0), jnp.where(sound, weights * parts, 0.0).sum(0) / kept, jnp.nan)

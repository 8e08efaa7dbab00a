"""Steps of a chain that are not linear: each pair of parent and child, tilted by its own factor, as a linear step.

Under the belief of a pair its step is taken for N(s; A p + b, Q) exp(-p' E p / 2 + e' p). The tilted distribution is
that belief times the true step over this one; its mean and covariance, by quadrature over the parent, are what the
next linear step gives the pair: expectation propagation with the factors of a chain, which keeps the covariance of each
pair. The child is integrated in closed form given its parent, since the step is Gaussian there, whatever its mean and
its covariance are as functions of the parent. Source: minka2001ep, deisenroth2012expectation.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from ....compiler.language.nodes import Plate, Random
from ....factors.arrays import Numeric
from ....factors.factor import Term
from ....factors.roles import gaussian_arguments
from ...values.moments import moments
from ...values.plated import Placed, mapped, spread
from ...values.row_blocks import Rows
from ...values.scope import Scope
from .gaussian_chain import LinearTransitions, Matrices, Vectors, given_parent, up
from .small_matrices import applied, cholesky, eye, inner, inverse, outer, product, symmetric, transposed
from .transitions import Axes, Gaussians, as_matrices, axes_of, chain_of, gaussians_of, ordinary_at

POINTS = Plate("points of the previous element")
NODES = {1: 15, 2: 6, 3: 4, 4: 3}  # along each axis, by the dimension of a state
SMALLEST = 1e-7  # share of the precision of the child that its step has at least, without its sign


class Points(NamedTuple):
    """Standard normal nodes, with the logarithms of their weights."""

    at: Float[np.ndarray, "nodes D"]
    log_weight: Float[np.ndarray, " nodes"]


def product_rule(dimension: int, along: int) -> Points:
    """A product of Gauss-Hermite rules."""
    z, w = np.polynomial.hermite_e.hermegauss(along)
    at = np.stack([g.ravel() for g in np.meshgrid(*[z] * dimension, indexing="ij")], axis=-1)
    weight = np.prod([g.ravel() for g in np.meshgrid(*[w / w.sum()] * dimension, indexing="ij")], axis=0)
    return Points(at, np.log(weight))


def cubature(dimension: int) -> Points:
    """Two points along each axis, exact up to the third degree. Source: arasaratnam2009cubature."""
    at = math.sqrt(dimension) * np.concatenate([np.eye(dimension), -np.eye(dimension)])
    return Points(at, np.full(2 * dimension, -math.log(2 * dimension)))


def fine(dimension: int) -> Points:
    """The rule of tilted pairs."""
    return product_rule(dimension, NODES[dimension]) if dimension in NODES else cubature(dimension)


def coarse(dimension: int) -> Points:
    """That of the first pass."""
    return product_rule(1, 3) if dimension == 1 else cubature(dimension)


class Known(NamedTuple):
    """What all factors but its step tell of each child, as a precision and a shift."""

    precision: Matrices
    shift: Vectors


class Pairs(NamedTuple):
    """Means and covariances of parents and of children."""

    parent: Vectors
    parent_covariance: Matrices
    child: Vectors
    child_covariance: Matrices


class Nodes(NamedTuple):
    """The step at each node, (nodes, ..., pairs): mean, covariance, and the log of what stands before it."""

    mean: Vectors
    covariance: Matrices
    log: Float[jax.Array, "nodes pairs"]


class Tilted(NamedTuple):
    """Pairs at the nodes, (nodes, ..., pairs): the parent, the child given it, and the logarithm of its weight.

    The child has the covariance R and the mean `pull` + R l, and `gain` is 1 - R L, of all that is known of it but for
    its step: exp(l' s - s' L s / 2).
    """

    place: Vectors
    pull: Vectors
    gain: Matrices
    covariance: Matrices
    log_weight: Float[jax.Array, "nodes pairs"]

    @property
    def log_ratio(self) -> Float[jax.Array, " pairs"]:
        """log E of the true step over the linear one."""
        return jax.scipy.special.logsumexp(self.log_weight, axis=0)


Pair: TypeAlias = tuple[Vectors, Matrices]  # mean and covariance; here (..., pairs)


def side_by_side(tree: Any) -> Any:
    """Arrays (time, ..., lanes) as (..., pairs): vector loops run over pairs."""

    def each(array: jax.Array) -> jax.Array:
        moved = jnp.moveaxis(array, 0, -2)
        return moved.reshape((*moved.shape[:-2], -1))

    return jax.tree.map(each, tree)


def in_time(tree: Any, times: int) -> Any:
    """The way back."""

    def each(array: jax.Array) -> jax.Array:
        return jnp.moveaxis(array.reshape((*array.shape[:-1], times, -1)), -2, 0)

    return jax.tree.map(each, tree)


@dataclasses.dataclass(frozen=True, eq=False)
class GaussianSteps:
    """The steps of a chain that are Gaussian given the parent, with a mean and a covariance that may depend on it."""

    node: Random
    scope: Scope
    root: Bool[jax.Array, " time"]  # the elements without a parent

    @property
    def axes(self) -> Axes:
        """The plates of the chain."""
        return axes_of(self.node, self.scope)

    @property
    def begin(self) -> Gaussians:
        """What generates the elements without a parent, without an axis of time."""
        chain = chain_of(self.node)
        return gaussians_of(chain.first, chain.previous, self.scope, self.axes.one)

    def first(self) -> Pair:
        """Mean and covariance of the elements without a parent, without an axis of time."""
        return self.begin.links.b, self.begin.links.q

    def at(self, place: Vectors, element: Numeric | None = None) -> Nodes:
        """The steps at these values of the parents, (nodes, D, pairs); of one element, or of all."""
        chain, root = chain_of(self.node), self.root
        scope = ordinary_at(root, chain, self.scope)
        if element is not None:
            rows, root = Rows(chain.over, self.scope.sizes[chain.over.name], 1), root[element][None]
            scope = dataclasses.replace(scope, window=rows.window(element))
        sizes = {**self.scope.sizes, chain.over.name: root.shape[0], POINTS.name: place.shape[0]}
        scope = scope.with_data({chain.previous.name: self._placed(place, sizes)})
        mean, weight, log_det = _of_term(chain.then, self.node.domain.is_vector, scope)
        lost = Placed(log_det.value - jnp.linalg.slogdet(weight.value)[1], log_det.plates)
        spent = mapped(lambda v, w: -jnp.vdot(w, v), Placed(mean.value[1], mean.plates), weight)
        centre, spread_of = Placed(mean.value[0], mean.plates), Placed(jnp.linalg.inv(weight.value), weight.plates)
        first, times = self.begin, root.shape[0]
        constant = 0.5 * (first.log_det - first.log_det_mean) + first.e0

        def laid(placed: Placed, at_root: jax.Array) -> jax.Array:
            follow = self._laid(placed, sizes)
            begin = jnp.broadcast_to(at_root[..., None, :], (*at_root.shape[:-1], times, at_root.shape[-1]))
            flags = jnp.repeat(root, at_root.shape[-1])
            return jnp.where(flags, begin.reshape((*at_root.shape[:-1], -1)), follow)

        log = mapped(lambda a, b: 0.5 * (a + b), spent, lost)
        return Nodes(laid(centre, first.links.b), laid(spread_of, first.links.q), laid(log, constant))

    def _placed(self, place: Vectors, sizes: Mapping[str, int]) -> Placed:
        """Values of the parents as an expression looks them up."""
        plates = (POINTS, *self.axes.order)
        array = jnp.moveaxis(place, -1, 1)
        array = array.reshape((*(sizes[plate.name] for plate in plates), array.shape[-1]))
        return Placed(array if self.node.domain.is_vector else array[..., 0], plates)

    def _laid(self, placed: Placed, sizes: Mapping[str, int]) -> jax.Array:
        """A value at the nodes as (nodes, ..., pairs); one node where it is the same at all."""
        sizes = {**sizes, POINTS.name: sizes[POINTS.name] if POINTS in set(placed.plates) else 1}
        plates = (POINTS, *self.axes.order)
        array = spread(placed, plates, sizes)
        array = array.reshape((array.shape[0], -1, *array.shape[len(plates) :]))
        return jnp.moveaxis(array, 1, -1)

    def tilted(self, links: LinearTransitions, parent: Pair, known: Known, element: Numeric | None = None) -> Tilted:
        """The tilted pairs at the nodes of the parents' beliefs; all arrays (..., pairs)."""
        mean, covariance = parent
        rule = fine(mean.shape[-2])
        place = jax.lax.stop_gradient(_nodes_of(rule, parent))
        nodes, (a, b, q, e_matrix, e) = self.at(place, element), links
        identity, no_matrix, nothing = eye(mean.shape[-2]), jnp.zeros_like(e_matrix), jnp.zeros_like(e)
        above, log_true = given_parent(
            LinearTransitions(identity, nodes.mean, nodes.covariance, no_matrix, nothing), *known
        )
        _, log_step = given_parent(LinearTransitions(identity, applied(a, place) + b, q, no_matrix, nothing), *known)
        log_step = log_step + inner(e, place) - 0.5 * inner(place, applied(e_matrix, place))
        log = jnp.asarray(rule.log_weight)[:, None] + log_true + nodes.log - jax.lax.stop_gradient(log_step)
        log = jnp.where(jnp.isfinite(log), log, -jnp.inf)
        return Tilted(place, applied(above.gain, nodes.mean), above.gain, above.covariance, log)

    def predicted(self, parent: Pair, element: Numeric) -> LinearTransitions:
        """A linear step fitted to the parent's belief alone."""
        rule = coarse(parent[0].shape[-2])
        place = _nodes_of(rule, parent)
        nodes = self.at(place, element)
        sound = jnp.isfinite(jnp.sum(nodes.mean, axis=-2) + nodes.log)
        weight = jnp.where(sound, jnp.exp(jnp.asarray(rule.log_weight))[:, None], 0.0)
        weight = (weight / jnp.sum(weight, axis=0))[:, None]
        centre = jnp.where(sound[:, None], nodes.mean, 0.0)
        p, s = jnp.sum(weight * place, axis=0), jnp.sum(weight * centre, axis=0)
        dp, ds = place - p, centre - s
        a = product(jnp.sum(weight[:, None] * outer(ds, dp), axis=0), inverse(parent[1]))
        rest = ds - applied(a, dp)
        noise = jnp.where(sound[:, None, None], nodes.covariance, 0.0)
        q = jnp.sum(weight[:, None] * (outer(rest, rest) + noise), axis=0)
        return LinearTransitions(a, s - applied(a, p), q, jnp.zeros_like(q), jnp.zeros_like(s))


def _of_term(term: Term, vector: bool, scope: Scope) -> tuple[Placed, Placed, Placed]:
    """Of a Gaussian term the mean and its covariance over parameters, the mean precision, and E log det of it."""
    centre, certainty = gaussian_arguments(term)
    mean = moments(centre, scope, "vector" if vector else "real")
    precision = moments(certainty, scope, "posdef" if vector else "positive")
    if not vector:
        precision = as_matrices(precision)
        mean = Placed((mean.value.mean[..., None], mean.value.variance[..., None, None]), mean.plates)
    weight, log_det = precision.value
    return mean, Placed(weight, precision.plates), Placed(log_det, precision.plates)


def _nodes_of(rule: Points, parent: Pair) -> Vectors:
    mean, covariance = parent
    return mean + applied(cholesky(covariance), jnp.asarray(rule.at)[:, :, None])


def fitted(tilted: Tilted, links: LinearTransitions, parent: Pair, known: Known) -> tuple[LinearTransitions, Pairs]:
    """The linear steps that give the pairs the means and covariances of the tilted ones; all arrays (..., pairs)."""
    weight = jnp.exp(tilted.log_weight - tilted.log_ratio)[:, None]
    precision, shift = known

    def mean_of(array: jax.Array) -> jax.Array:
        return jnp.sum((weight if array.ndim == weight.ndim else weight[:, None]) * array, axis=0)

    p, pull = mean_of(tilted.place), mean_of(tilted.pull)
    within, gain = mean_of(tilted.covariance), mean_of(tilted.gain)
    shifted = applied(tilted.covariance - within, shift)  # zero where the noise is the same everywhere
    child = tilted.pull + applied(tilted.covariance, shift)
    s = mean_of(child)
    dp, ds = tilted.place - p, child - s
    spread_p = mean_of(outer(dp, dp))
    slope = product(mean_of(outer(ds, dp)), inverse(spread_p))
    rest = ds - applied(slope, dp)
    more = mean_of(outer(rest, rest))
    back = inverse(_away_from_zero(gain - product(more, precision)))
    a, q = product(back, slope), symmetric(product(back, within + more))
    b = applied(back, pull + mean_of(shifted) - applied(slope, p) - applied(more, shift))
    nothing = LinearTransitions(a, b, q, jnp.zeros_like(q), jnp.zeros_like(b))
    old, new = up(links, *known), up(nothing, *known)
    belief, found = inverse(parent[1]), inverse(spread_p)
    e_matrix = symmetric(found - belief) + old[0] - new[0]
    e = applied(found, p) - applied(belief, parent[0]) + old[1] - new[1]
    spread_s = within + more + product(product(slope, spread_p), transposed(slope))
    return LinearTransitions(a, b, q, e_matrix, e), Pairs(p, spread_p, s, spread_s)


def _away_from_zero(k: Matrices) -> Matrices:
    """Numbers that can be divided by."""
    if k.shape[-2] > 1:
        return k
    return jnp.where(jnp.abs(k) < SMALLEST, jnp.where(k < 0.0, -SMALLEST, SMALLEST), k)

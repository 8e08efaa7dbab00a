"""Steps of a chain that are not linear: each pair of parent and child, tilted by its own factor, as a linear step.

Under the belief of a pair its step is taken for N(s; A p + b, Q) exp(-p' E p / 2 + e' p). The tilted distribution is
that belief times the true step over this one; its mean and covariance, by quadrature over the parent, are what the
next linear step gives the pair: expectation propagation with the factors of a chain, which keeps the covariance of each
pair. The child is integrated in closed form given its parent, since the step is Gaussian there, whatever its mean and
its covariance are as functions of the parent. Source: minka2001ep, deisenroth2012expectation.
"""

from __future__ import annotations

import abc
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
from ....factors.factor import Chain, Term
from ....factors.quadrature import HALF_LOG_2PI
from ....factors.quadrature.derived import completed
from ....factors.roles import gaussian_arguments
from ...values.evaluate import known as is_known
from ...values.evaluate import value
from ...values.moments import moments, point
from ...values.plated import Placed, mapped, spread
from ...values.row_blocks import Rows
from ...values.scope import Scope
from .gaussian_chain import LinearTransitions, Matrices, Vectors, given_parent, up
from .small_matrices import applied, cholesky, eye, inner, inverse, outer, product, symmetric, transposed
from .transitions import Axes, Gaussians, as_matrices, axes_of, chain_of, gaussians_of, ordinary_at

POINTS, CHILDREN = Plate("points of the previous element"), Plate("points of the element")
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
class Steps(abc.ABC):
    """The steps of a chain or a tree; all arrays are (..., pairs) but where times are told apart."""

    node: Random
    scope: Scope
    root: Bool[jax.Array, " time"]  # the elements without a parent

    @property
    def axes(self) -> Axes:
        """The plates of the chain."""
        return axes_of(self.node, self.scope)

    @abc.abstractmethod
    def first(self) -> Pair:
        """Mean and covariance of the elements without a parent, without an axis of time."""

    @abc.abstractmethod
    def tilted(self, links: LinearTransitions, parent: Pair, known: Known) -> Tilted:
        """The tilted pairs at nodes around their beliefs."""

    @abc.abstractmethod
    def moments(self, place: Vectors, element: Numeric) -> tuple[Vectors, Matrices]:
        """Mean and covariance of the child of one element at these values of the parent, (nodes, ..., lanes)."""

    def predicted(self, parent: Pair, element: Numeric) -> LinearTransitions:
        """The linear step of one element that is fitted to the belief about its parent alone."""
        rule = coarse(parent[0].shape[-2])
        place = _nodes_of(rule, parent)
        mean, covariance = self.moments(place, element)
        sound = jnp.all(jnp.isfinite(mean), axis=-2) & jnp.all(jnp.isfinite(covariance), axis=(-3, -2))
        weight = jnp.where(sound, jnp.exp(jnp.asarray(rule.log_weight))[:, None], 0.0)
        weight = (weight / jnp.sum(weight, axis=0))[:, None]
        centre = jnp.where(sound[:, None], mean, 0.0)
        p, s = jnp.sum(weight * place, axis=0), jnp.sum(weight * centre, axis=0)
        dp, ds = place - p, centre - s
        a = product(jnp.sum(weight[:, None] * outer(ds, dp), axis=0), inverse(parent[1]))
        rest = ds - applied(a, dp)
        noise = jnp.where(sound[:, None, None], covariance, 0.0)
        q = jnp.sum(weight[:, None] * (outer(rest, rest) + noise), axis=0)
        return LinearTransitions(a, s - applied(a, p), q, jnp.zeros_like(q), jnp.zeros_like(s))

    def log_density(self, place: Vectors, child: Vectors) -> Float[jax.Array, "nodes children pairs"]:
        """E log of the step over random parameters, from parents (nodes, D, pairs), of children with one more axis."""
        chain, sizes = chain_of(self.node), self._sizes(place, self.root.shape[0])
        scope = ordinary_at(self.root, chain, self.scope)
        scope = scope.with_data({chain.previous.name: self._placed(place, sizes)})
        plates = (POINTS, CHILDREN, *self.axes.order)
        sizes = {**sizes, CHILDREN.name: child.shape[1]}
        values = jnp.moveaxis(child, -1, 2)
        values = values.reshape((*(sizes[plate.name] for plate in plates), values.shape[-1]))
        out = Placed(values if self.node.domain.is_vector else values[..., 0], plates)
        first_term, then_term = plain_terms(chain)
        then = spread(_expected_log(then_term, out, scope), plates, sizes)
        first = spread(_expected_log(first_term, out, self.scope), plates, sizes)
        both = (array.reshape((*array.shape[:2], -1)) for array in (first, then))
        return jnp.where(self._flags(), *both)

    def _flags(self) -> Bool[jax.Array, " pairs"]:
        """By pair whether its child has no parent."""
        lanes = math.prod(self.scope.sizes[plate.name] for plate in self.axes.order[1:])
        return jnp.repeat(self.root, lanes)

    def _sizes(self, place: Vectors, times: int) -> dict[str, int]:
        return {**self.scope.sizes, chain_of(self.node).over.name: times, POINTS.name: place.shape[0]}

    def _at(self, element: Numeric | None) -> tuple[Scope, Bool[jax.Array, " time"]]:
        """What one element looks up, or what all do; and which of these have no parent."""
        chain = chain_of(self.node)
        scope = ordinary_at(self.root, chain, self.scope)
        if element is None:
            return scope, self.root
        rows = Rows(chain.over, self.scope.sizes[chain.over.name], 1)
        return dataclasses.replace(scope, window=rows.window(element)), self.root[element][None]

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


def _expected_log(term: Term, out: Placed, scope: Scope) -> Placed:
    """E log density of a term over its random arguments, at values of the outcome."""
    edges = list(term.args)
    random = [edge for edge in edges if not is_known(term.args[edge], scope)]
    if not random:
        found = [value(term.args[edge], scope) for edge in edges]
        density = term.factor.log_density
        return mapped(lambda o, *args: density(o, **dict(zip(edges, args, strict=True))), out, *found)
    factor = completed(term.factor, random, term.factor.kind)
    average = factor.expected_log
    assert average is not None
    kind = factor.kind
    operands = [moments(term.args[edge], scope, factor.edges[edge]) for edge in edges]
    return mapped(lambda o, *args: average(o, **dict(zip(edges, args, strict=True))), point(kind, out), *operands)


@dataclasses.dataclass(frozen=True, eq=False)
class GaussianSteps(Steps):
    """The steps of a chain that are Gaussian given the parent, with a mean and a covariance that may depend on it."""

    @property
    def begin(self) -> Gaussians:
        """What generates the elements without a parent, without an axis of time."""
        chain = chain_of(self.node)
        return gaussians_of(plain_terms(chain)[0], chain.previous, self.scope, self.axes.one)

    def first(self) -> Pair:
        """Mean and covariance of the elements without a parent, without an axis of time."""
        return self.begin.links.b, self.begin.links.q

    def at(self, place: Vectors, element: Numeric | None = None) -> Nodes:
        """The steps at these values of the parents, (nodes, D, pairs); of one element, or of all."""
        chain = chain_of(self.node)
        scope, root = self._at(element)
        sizes = self._sizes(place, root.shape[0])
        scope = scope.with_data({chain.previous.name: self._placed(place, sizes)})
        mean, weight, log_det = _of_term(plain_terms(chain)[1], self.node.domain.is_vector, scope)
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

    def tilted(self, links: LinearTransitions, parent: Pair, known: Known) -> Tilted:
        """The tilted pairs at the nodes of the parents' beliefs."""
        rule = fine(parent[0].shape[-2])
        place = jax.lax.stop_gradient(_nodes_of(rule, parent))
        nodes, (a, b, q, e_matrix, e) = self.at(place), links
        identity, no_matrix, nothing = eye(links.e.shape[-2]), jnp.zeros_like(links.e_matrix), jnp.zeros_like(e)
        above, log_true = given_parent(
            LinearTransitions(identity, nodes.mean, nodes.covariance, no_matrix, nothing), *known
        )
        _, log_step = given_parent(LinearTransitions(identity, applied(a, place) + b, q, no_matrix, nothing), *known)
        log_step = log_step + inner(e, place) - 0.5 * inner(place, applied(e_matrix, place))
        log = jnp.asarray(rule.log_weight)[:, None] + log_true + nodes.log - jax.lax.stop_gradient(log_step)
        log = jnp.where(jnp.isfinite(log), log, -jnp.inf)
        return Tilted(place, applied(above.gain, nodes.mean), above.gain, above.covariance, log)

    def moments(self, place: Vectors, element: Numeric) -> tuple[Vectors, Matrices]:
        """Mean and covariance of the step."""
        nodes = self.at(place, element)
        return nodes.mean, nodes.covariance


@dataclasses.dataclass(frozen=True, eq=False)
class DensitySteps(Steps):
    """The steps of a chain of numbers of any density: parent and child are both integrated by quadrature."""

    def first(self) -> Pair:
        """Mean and variance of the elements without a parent."""
        mean, variance = (self.axes.one(part) for part in _predicted(plain_terms(chain_of(self.node))[0], self.scope))
        return mean[None], variance[None, None]

    def tilted(self, links: LinearTransitions, parent: Pair, known: Known) -> Tilted:
        """The tilted pairs at nodes that are dense in the middle of their beliefs and reach far out."""
        above, _ = given_parent(links, *known)
        z, log_weight = far_reaching()
        place = jax.lax.stop_gradient(_nodes_of(Points(z[:, None], log_weight), parent))
        mean = applied(above.gain, place) + above.shift
        sd = jnp.sqrt(above.covariance[0])
        child = jax.lax.stop_gradient(mean[:, None] + jnp.asarray(z)[None, :, None, None] * sd)
        density = self.log_density(place, child)
        a, b, q, e_matrix, e = links
        error = child - (applied(a, place) + b)[:, None]
        step = -0.5 * error[..., 0, :] ** 2 / q[0, 0] - 0.5 * jnp.log(jnp.abs(q[0, 0])) - HALF_LOG_2PI
        step = step + (inner(e, place) - 0.5 * inner(place, applied(e_matrix, place)))[:, None]
        rule = jnp.asarray(log_weight)[:, None, None] + jnp.asarray(log_weight)[None, :, None]
        log = rule + density - jax.lax.stop_gradient(step)
        log = jnp.where(jnp.isnan(log), -jnp.inf, log)
        parents = jnp.broadcast_to(place[:, None], child.shape)
        flat = [array.reshape((-1, *array.shape[2:])) for array in (parents, child, log)]
        one, none = jnp.ones((1, 1, 1, 1)), jnp.zeros((1, 1, 1, 1))
        return Tilted(flat[0], flat[1], one, none, flat[2])

    def moments(self, place: Vectors, element: Numeric) -> tuple[Vectors, Matrices]:
        """Mean and variance of the step."""
        chain = chain_of(self.node)
        scope, root = self._at(element)
        sizes = self._sizes(place, root.shape[0])
        found = _predicted(plain_terms(chain)[1], scope.with_data({chain.previous.name: self._placed(place, sizes)}))
        mean, variance = (self._laid(each, sizes) for each in found)
        return mean[:, None], variance[:, None, None]


NUMBER, REACH = 31, 50.0  # nodes along an axis, and standard deviations that they reach


def far_reaching() -> tuple[Float[np.ndarray, " nodes"], Float[np.ndarray, " nodes"]]:
    """Nodes for a standard normal number, and the logarithms of their weights: a sinh-stretched trapezoid rule."""
    t = np.linspace(-np.arcsinh(REACH), np.arcsinh(REACH), NUMBER)
    z = np.sinh(t)
    return z, np.log((t[1] - t[0]) * np.cosh(t)) - 0.5 * z**2 - HALF_LOG_2PI


def _predicted(term: Term, scope: Scope) -> tuple[Placed, Placed]:
    """Mean and variance of what a term generates; without them its centre, and the variance of a Gaussian as high."""
    edges = list(term.args)
    factor = completed(term.factor, [edge for edge in edges if not is_known(term.args[edge], scope)], term.factor.kind)
    operands = [moments(term.args[edge], scope, factor.edges[edge]) for edge in edges]
    predict: Any = factor.predict

    def each(*args: Any) -> tuple[jax.Array, jax.Array]:
        belief = predict(**dict(zip(edges, args, strict=True)))
        return belief.mean(), belief.variance()

    found = mapped(each, *operands) if edges else Placed((predict().mean(), predict().variance()), ())
    mean, variance = (Placed(part, found.plates) for part in found.value)
    edge = factor.site_edge or ""
    if factor.edges.get(edge) == "real":  # of a belief without a variance nothing is left of the mean
        centre = moments(term.args[edge], scope, "real")
        mean = mapped(lambda m, c: jnp.where(jnp.isfinite(m), m, c.mean), mean, centre)
    height = _expected_log(term, mean, scope)
    finite = mapped(
        lambda v, log: jnp.where(jnp.isfinite(v), v, jnp.exp(-2.0 * log - 2.0 * HALF_LOG_2PI)), variance, height
    )
    return mean, finite


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


def plain_terms(chain: Chain) -> tuple[Term, Term]:
    """What generates the elements of a curved chain, first and later ones: the compiler gives it no switches."""
    assert isinstance(chain.first, Term)
    assert isinstance(chain.then, Term)
    return chain.first, chain.then


def steps_of(node: Random, scope: Scope, root: Bool[jax.Array, " time"]) -> Steps:
    """The steps of a chain or a tree, by what their terms are."""
    chain = chain_of(node)
    roles = [term.factor.role for term in plain_terms(chain)]
    gaussian = all(role is not None and role.states == node.domain.kind for role in roles)
    return (GaussianSteps if gaussian else DensitySteps)(node, scope, root)

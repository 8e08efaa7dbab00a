"""Steps of a chain that are not linear: each pair of parent and child, tilted by its own factor, as a linear step.

Under the belief of a pair its step is taken for N(s; A p + b, Q) exp(-p' E p / 2 + e' p). The tilted distribution is
that belief times the true step over this one; its mean and covariance, by quadrature over the parent, are what the
next linear step gives the pair: expectation propagation with the factors of a chain, which keeps the covariance of each
pair. The child is integrated in closed form given its parent, since the step is Gaussian there, whatever its mean and
its covariance are as functions of the parent. Source: minka2001ep, heskes2002.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ....compiler.language.nodes import Plate, Random
from ....factors.arrays import Array, Numeric
from ....factors.roles import gaussian_arguments
from ...values.moments import moments
from ...values.plated import Placed, mapped, spread
from ...values.row_blocks import Rows
from ...values.scope import Scope
from .gaussian_chain import LinearTransitions, Matrices, Vectors, given_parent, up
from .small_matrices import applied, cholesky, eye, inner, inverse, outer, product, symmetric, transposed
from .transitions import Axes, as_matrices, axes_of, chain_of, gaussians_of, ordinary_at

POINTS = Plate("points of the previous element")
NODES = {1: 21, 2: 9, 3: 6, 4: 4}  # along each axis, by the dimension of a state
SMALLEST = 1e-7  # share of the precision of the child that its step has at least, without its sign


class Points(NamedTuple):
    """Standard normal nodes, with the logarithms of their weights."""

    at: Float[np.ndarray, "nodes D"]
    log_weight: Float[np.ndarray, " nodes"]


def points(dimension: int) -> Points:
    """A product of Gauss-Hermite rules; in many dimensions two points along each axis."""
    if dimension not in NODES:
        at = math.sqrt(dimension) * np.concatenate([np.eye(dimension), -np.eye(dimension)])
        return Points(at, np.full(2 * dimension, -math.log(2 * dimension)))
    z, w = np.polynomial.hermite_e.hermegauss(NODES[dimension])
    at = np.stack([g.ravel() for g in np.meshgrid(*[z] * dimension, indexing="ij")], axis=-1)
    weight = np.prod([g.ravel() for g in np.meshgrid(*[w / w.sum()] * dimension, indexing="ij")], axis=0)
    return Points(at, np.log(weight))


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
    """The step at each node, (time, nodes, ..., lanes): mean, covariance, and the log of what stands before it."""

    mean: Vectors
    covariance: Matrices
    log: Float[jax.Array, "time nodes lanes"]


@dataclasses.dataclass(frozen=True, eq=False)
class GaussianSteps:
    """The steps of a chain that are Gaussian given the parent, with a mean and a covariance that may depend on it."""

    node: Random
    scope: Scope
    root: jax.Array  # by element whether it has no parent

    @property
    def axes(self) -> Axes:
        return axes_of(self.node, self.scope)

    def first(self) -> tuple[Vectors, Matrices]:
        """Mean and covariance of the elements without a parent, without an axis of time."""
        chain = chain_of(self.node)
        terms = gaussians_of(chain.first, chain.previous, self.scope, self.axes.one)
        return terms.links.b, terms.links.q

    def at(self, place: Vectors, element: Numeric | None = None) -> Nodes:
        """The steps at these values of the parents, (time, nodes, D, lanes); of one element, or of all."""
        chain, scope = chain_of(self.node), ordinary_at(self.root, chain_of(self.node), self.scope)
        own = self._sizes(place)
        if element is not None:
            scope = dataclasses.replace(scope, window=Rows(chain.over, self.scope.sizes[chain.over.name], 1).window(element))
        scope = scope.with_data({chain.previous.name: self._placed(place, own, element)})
        vector = self.node.domain.is_vector
        centre, certainty = gaussian_arguments(chain.then)
        mean = moments(centre, scope, "vector" if vector else "real")
        precision = moments(certainty, scope, "posdef" if vector else "positive")
        if not vector:
            precision = as_matrices(precision)
            mean = Placed((mean.value.mean[..., None], mean.value.variance[..., None, None]), mean.plates)
        weight, log_det = precision.value
        covariance = Placed(jnp.linalg.inv(weight) if vector else 1.0 / weight, precision.plates)
        lost = Placed(log_det - jnp.linalg.slogdet(weight)[1], precision.plates)
        spent = mapped(lambda v, w: -jnp.vdot(w, v), Placed(mean.value[1], mean.plates), Placed(weight, precision.plates))
        first = gaussians_of(chain.first, chain.previous, self.scope, self.axes.one)
        root = self.root if element is None else self.root[element][None]
        lay = lambda placed: self._laid(placed, own)
        begin = first.links.b, first.links.q, 0.5 * (first.log_det - first.log_det_mean) + first.e0
        follow = lay(Placed(mean.value[0], mean.plates)), lay(covariance), 0.5 * (lay(spent) + lay(lost))
        return Nodes(*(jnp.where(_like(root, f), b[None, None], f) for b, f in zip(begin, follow, strict=True)))

    def _sizes(self, place: Vectors) -> dict[str, int]:
        over = chain_of(self.node).over.name
        return {**self.scope.sizes, over: place.shape[0], POINTS.name: place.shape[1]}

    def _placed(self, place: Vectors, sizes: dict[str, int], element: Numeric | None) -> Placed:
        """Values of the parent as an expression looks them up."""
        order = self.axes.order
        array = jnp.moveaxis(place, -1, 1)  # time, lanes, nodes, D
        shape = [sizes[plate.name] for plate in order]
        array = array.reshape((*shape, *array.shape[2:]))
        array = array if self.node.domain.is_vector else array[..., 0]
        plates = (*order, POINTS)
        return Placed(array, plates) if element is None else Placed(array[0], plates[1:])

    def _laid(self, placed: Placed, sizes: dict[str, int]) -> jax.Array:
        """A value at the nodes as (time, nodes, ..., lanes); one node where it is the same at all."""
        order = self.axes.order
        sizes = {**sizes, POINTS.name: sizes[POINTS.name] if POINTS in placed.plates else 1}
        array = spread(placed, (*order, POINTS), sizes)
        array = array.reshape((array.shape[0], -1, *array.shape[len(order) :]))
        return jnp.moveaxis(array, 1, -1)

    def tilted(
        self, links: LinearTransitions, parent: tuple[Vectors, Matrices], known: Known, element: Numeric | None = None
    ) -> Tilted:
        """The tilted pairs at the nodes of the parents' beliefs."""
        mean, covariance = parent
        rule = points(mean.shape[-2])
        place = mean[:, None] + applied(cholesky(covariance)[:, None], jnp.asarray(rule.at)[None, :, :, None])
        place = jax.lax.stop_gradient(place)
        nodes = self.at(place, element)
        identity = jnp.broadcast_to(eye(mean.shape[-2]), (1, 1, *eye(mean.shape[-2]).shape))
        a, b, q, e_matrix, e = (array[:, None] for array in links)
        nothing = jnp.zeros_like(e)
        true = LinearTransitions(identity, nodes.mean, nodes.covariance, jnp.zeros_like(e_matrix), nothing)
        step = LinearTransitions(identity, applied(a, place) + b, q, e_matrix, e)
        below = known.precision[:, None], known.shift[:, None]
        above, log_true = given_parent(true, *below)
        _, log_step = given_parent(step, *below)
        log_step = log_step + inner(e, place) - 0.5 * inner(place, applied(e_matrix, place))
        log = jnp.asarray(rule.log_weight)[None, :, None] + log_true + nodes.log - jax.lax.stop_gradient(log_step)
        log = jnp.where(jnp.isfinite(log), log, -jnp.inf)
        return Tilted(place, applied(above.gain, nodes.mean), above.gain, above.covariance, log)


class Tilted(NamedTuple):
    """Pairs at the nodes: the parent, the child given it (`pull` + R l, R, `gain` = 1 - R L), and the log weights."""

    place: Vectors
    pull: Vectors
    gain: Matrices
    covariance: Matrices
    log_weight: Float[jax.Array, "time nodes lanes"]

    @property
    def log_ratio(self) -> Float[jax.Array, "time lanes"]:
        return jax.scipy.special.logsumexp(self.log_weight, axis=1)


def _like(root: jax.Array, array: jax.Array) -> jax.Array:
    return root.reshape((-1,) + (1,) * (array.ndim - 1))


def fitted(
    tilted: Tilted,
    links: LinearTransitions,
    parent: tuple[Vectors, Matrices],
    known: Known,
    root: Float[jax.Array, " time"],
) -> tuple[LinearTransitions, Pairs]:
    """The linear steps that give the pairs the means and covariances of the tilted ones."""
    weight = jnp.exp(tilted.log_weight - tilted.log_ratio[:, None])[:, :, None]
    precision, shift = known

    def mean_of(array: jax.Array) -> jax.Array:
        lead = weight if array.ndim == weight.ndim else weight[:, :, None]
        return jnp.sum(lead * array, axis=1)

    p = mean_of(tilted.place)
    pull = mean_of(tilted.pull)
    within, gain = mean_of(tilted.covariance), mean_of(tilted.gain)
    dp = tilted.place - p[:, None]
    child = tilted.pull + applied(tilted.covariance, shift[:, None])
    s = mean_of(child)
    ds = child - s[:, None]
    spread_p = mean_of(outer(dp, dp))
    slope = product(mean_of(outer(ds, dp)), inverse(spread_p))
    rest = ds - applied(slope[:, None], dp)
    more = mean_of(outer(rest, rest))
    total = within + more
    k = gain - product(more, precision)
    if k.shape[-2] == 1:
        k = jnp.where(jnp.abs(k) < SMALLEST, jnp.where(k < 0.0, -SMALLEST, SMALLEST), k)
    back = inverse(k)
    a, q = product(back, slope), symmetric(product(back, total))
    shifted = jnp.sum(weight * applied(tilted.covariance - within[:, None], shift[:, None]), axis=1)
    b = applied(back, pull + shifted - applied(slope, p) - applied(more, shift))
    nothing = LinearTransitions(a, b, q, jnp.zeros_like(links.e_matrix), jnp.zeros_like(links.e))
    old, new = up(links, precision, shift), up(nothing, precision, shift)
    belief, found = inverse(parent[1]), inverse(spread_p)
    e_matrix = symmetric(found - belief + old[0] - new[0])
    e = applied(found, p) - applied(belief, parent[0]) + old[1] - new[1]
    alone = _like(root, a)
    made = LinearTransitions(
        jnp.where(alone, 0.0, a),
        b,
        q,
        jnp.where(alone, 0.0, e_matrix),
        jnp.where(_like(root, e), 0.0, e),
    )
    return made, Pairs(p, spread_p, s, total + product(product(slope, spread_p), transposed(slope)))

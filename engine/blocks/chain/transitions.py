"""What a chain or a tree is made of, as arrays: the expected log transition densities under their parameters.

Arrays have time first and lanes last: the elements along the plate of the chain, and the independent chains of all
other plates.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ....compiler.language.nodes import Expr, Gather, Plate, Random, parents
from ....factors.factor import Chain, Term
from ....factors.moments import Boolean, Category, Real, Vector
from ....factors.quadrature import HALF_LOG_2PI
from ....factors.roles import gaussian_arguments
from ...values.first_beliefs import family_of
from ...values.moments import moments
from ...values.plated import Placed, arrange, mapped, spread
from ...values.scope import Scope
from .gaussian_chain import Links
from .small_matrices import applied, inner, outer, product, transposed


@dataclasses.dataclass(frozen=True)
class Axes:
    """The plates of a chain's variable: `order` has the plate of the chain first."""

    plates: tuple[Plate, ...]
    order: tuple[Plate, ...]
    sizes: dict[str, int]

    def lanes(self, placed: Placed) -> Any:
        """A placed value as (time, ..., lanes)."""
        return self._last(spread(placed, self.order, self.sizes))

    def one(self, placed: Placed) -> Any:
        """A placed value that does not vary along the chain, as (..., lanes)."""
        return self._last(spread(placed, self.order[1:], self.sizes)[None])[0]

    def _last(self, array: Any) -> Any:
        event = array.shape[len(self.order) :]
        return jnp.moveaxis(array.reshape((array.shape[0], -1, *event)), 1, -1)

    def from_flat(self, array: Any) -> Any:
        """Naturals with all plates in one axis as (time, ..., lanes)."""
        shape = [self.sizes[plate.name] for plate in self.plates]
        return self.lanes(Placed(array.reshape((*shape, *array.shape[1:])), self.plates))

    def to_flat(self, array: Any) -> Any:
        """The way back."""
        array = jnp.moveaxis(array, -1, 1)
        full = array.reshape((*(self.sizes[plate.name] for plate in self.order), *array.shape[2:]))
        found = arrange(Placed(full, self.order), self.plates).value
        return found.reshape((-1, *array.shape[2:]))


def axes_of(node: Random, scope: Scope) -> Axes:
    """The axes of a chain's variable."""
    over = node.term.over  # type: ignore[union-attr]
    order = (over, *(plate for plate in node.plates if plate is not over))
    return Axes(node.plates, order, scope.sizes)


# Gaussian -------------------------------------------------------------------------------------------------------------


class Gaussians(NamedTuple):
    """E log N(s; A p + b, 1 / W) over A, b and W, by element: `log_det` is E log det W, W its mean.

    Random coefficients add the log of exp(e0 + e' p - p' E p / 2), minus half the trace of W times the variance of
    A p + b over them.
    """

    links: Links
    precision: Any
    log_det: Any
    log_det_mean: Any
    e0: Any


def gaussians(node: Random, scope: Scope, root: Any) -> Gaussians:
    """The terms of a Gaussian chain by element; `root` (time,) tells the elements without a parent."""
    chain = node.term
    assert isinstance(chain, Chain)
    axes = axes_of(node, scope)
    then = _gaussian_term(chain.then, chain.previous, _ordinary_at(root, chain, scope), axes.lanes)
    first = _gaussian_term(chain.first, chain.previous, scope, axes.one)

    def chosen(begin, follow):
        return jnp.where(root.reshape((-1,) + (1,) * begin.ndim), begin, follow)

    return jax.tree.map(chosen, first, then)


def _ordinary_at(root: Any, chain: Chain, scope: Scope) -> Scope:
    """The scope of then=, with an ordinary moment for every positive parameter of an element without a parent.

    Such a parameter stays at its prior, where 1 / x may have no mean; nothing uses it, but infinity times zero is no
    number, also in a gradient. So it is replaced before anything is made of it.
    """
    used, gathered = _positive_parameters(chain)
    moments_of = {}
    for variable in used - gathered:
        if (found := scope.moments.get(variable.name)) is not None:
            flags = root.reshape((-1,) + (1,) * (len(variable.plates) - 1 - variable.plates.index(chain.over)))
            usual = family_of(variable).placeholder().moments()
            moments_of[variable.name] = jax.tree.map(lambda u, own, f=flags: jnp.where(f, u, own), usual, found)
    return scope.with_moments({**scope.moments, **moments_of})


def _positive_parameters(chain: Chain) -> tuple[set[Random], set[Random]]:
    """The positive parameters of then= along the chain, element by element; and those that indices choose among."""
    used: set[Random] = set()
    gathered: set[Random] = set()
    stack: list[tuple[Expr, bool]] = [(arg, False) for arg in chain.then.args.values()]
    while stack:
        node, chosen = stack.pop()
        if isinstance(node, Random):
            if node.domain.is_positive and chain.over in node.plates:
                (gathered if chosen else used).add(node)
        else:
            chosen = chosen or (isinstance(node, Gather) and node.axis is chain.over)
            stack += [(child, chosen) for child in parents(node)]
    return used, gathered


def _gaussian_term(term: Term, previous: Random, scope: Scope, lay: Any) -> Gaussians:
    vector = previous.domain.is_vector
    dimension = scope.size(previous.domain.size) if vector else 1
    centre, certainty = gaussian_arguments(term)
    precision = moments(certainty, scope, "posdef" if vector else "positive")
    w = precision if vector else _as_matrices(precision)
    plates: Any = None

    def mean(p):
        nonlocal plates
        at = Vector(p, jnp.zeros((dimension, dimension))) if vector else Real(p[0], jnp.zeros(()))
        inside = scope.with_moments({**scope.moments, previous.name: Placed(at, ())})
        found = moments(centre, inside, "vector" if vector else "real")
        plates = found.plates
        return (
            (found.value.mean, found.value.covariance)
            if vector
            else (found.value.mean[..., None], found.value.variance[..., None, None])
        )

    def penalty(p):
        variance = mean(p)[1]
        return mapped(lambda v, w: -0.5 * jnp.vdot(w[0], v), Placed(variance, plates), w)

    origin = jnp.zeros(dimension)
    b = mean(origin)[0]
    a = jax.jacfwd(lambda p: mean(p)[0])(origin)
    at_origin = penalty(origin)
    e = jax.jacfwd(lambda p: penalty(p).value)(origin)
    e_matrix = -jax.jacfwd(jax.jacfwd(lambda p: penalty(p).value))(origin)
    q = Placed(jnp.linalg.inv(w.value[0]), w.plates)
    links = Links(
        lay(Placed(a, plates)),
        lay(Placed(b, plates)),
        lay(q),
        lay(Placed(e_matrix, at_origin.plates)),
        lay(Placed(e, at_origin.plates)),
    )
    log_det_mean = Placed(jnp.linalg.slogdet(w.value[0])[1], w.plates)
    return Gaussians(
        links, lay(Placed(w.value[0], w.plates)), lay(Placed(w.value[1], w.plates)), lay(log_det_mean), lay(at_origin)
    )


def _as_matrices(precision: Placed) -> Placed:
    mean, log = precision.value
    return Placed((mean[..., None, None], log), precision.plates)


def gaussian_energy(terms: Gaussians, own: Any, parent: Any, cross: Any) -> Any:
    """The sum of the terms expected under the pairs' marginals: (mean, covariance) of both and Cov(own, parent)."""
    a, b, _, e_matrix, e = terms.links
    error = own[0] - applied(a, parent[0]) - b
    product_of_both = product(a, transposed(cross))
    square = outer(error, error) + own[1] + product(product(a, parent[1]), transposed(a))
    square = square - product_of_both - transposed(product_of_both)
    second = parent[1] + outer(parent[0], parent[0])
    total = 0.5 * terms.log_det - b.shape[-2] * HALF_LOG_2PI - 0.5 * jnp.sum(terms.precision * square, axis=(-3, -2))
    return jnp.sum(total + terms.e0 + inner(e, parent[0]) - 0.5 * jnp.sum(e_matrix * second, axis=(-3, -2)))


# discrete -------------------------------------------------------------------------------------------------------------


class Tables(NamedTuple):
    """E log p(first) (states, lanes) and E log p(child | parent) (time or 1, states, states, lanes or 1)."""

    first: Any
    table: Any


def table_terms(node: Random, scope: Scope, evaluate: Any) -> Tables:
    """The terms of a discrete chain: `evaluate(term, out, scope)` gives the placed log probability of `out`."""
    chain = node.term
    assert isinstance(chain, Chain)
    axes = axes_of(node, scope)
    size = state_count(node, scope)
    rows, columns = Plate("states of the previous element", size), Plate("states of the element", size)
    numbers = jnp.arange(size)
    inside = scope.with_data({chain.previous.name: Placed(numbers > 0 if node.domain.is_boolean else numbers, (rows,))})
    out = Boolean(1.0 * numbers) if node.domain.is_boolean else Category(jnp.eye(size))
    placed = Placed(out, (columns,))
    first, table = evaluate(chain.first, placed, scope), evaluate(chain.then, placed, inside)
    sizes = {**scope.sizes, rows.name: size, columns.name: size}
    others = axes.order[1:]
    along = axes.order[:1] if axes.order[0] in set(table.plates) else ()
    across = others if set(others) & set(table.plates) else ()
    first = Placed(spread(first, (*others, columns), sizes), ())
    table = Placed(spread(table, (*along, *across, rows, columns), sizes), along)
    times = scope.sizes[axes.order[0].name] if axes.order[0] in set(table.plates) else 1
    flat = jnp.moveaxis(table.value.reshape((times, -1, size, size)), 1, -1)
    return Tables(jnp.moveaxis(first.value.reshape((-1, size)), 0, -1), flat)


def state_count(node: Random, scope: Scope) -> int:
    """How many states an element has."""
    return 2 if node.domain.is_boolean else scope.size(node.domain.size)


def expected_log(term: Term, out: Placed, scope: Scope) -> Placed:
    """E log p(out), under VMP."""
    ((edge, arg),) = term.args.items()
    found = moments(arg, scope, term.factor.edges[edge])
    density: Any = term.factor.expected_log
    return mapped(lambda out, p: density(out, **{edge: p}), out, found)


def table_energy(terms: Tables, first: Any, counts: Any) -> Any:
    """The sum of the terms expected under the marginals; what has no weight costs nothing."""
    parts = zip((first, counts), terms, strict=True)
    return sum(jnp.sum(jnp.where(weight > 0.0, weight * jnp.where(weight > 0.0, t, 0.0), 0.0)) for weight, t in parts)

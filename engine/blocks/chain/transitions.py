"""What a chain or a tree is made of, as arrays: the expected log transition densities under their parameters.

Arrays have time first and lanes last: the elements along the plate of the chain, and the independent chains of all
other plates.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from ....compiler.algebra.complement import complement_of
from ....compiler.language.nodes import Expr, Gather, Plate, Random, parents
from ....factors.arrays import Array
from ....factors.factor import Chain, Switch, Term, arguments_of
from ....factors.moments import Boolean, Category, Real, Vector
from ....factors.quadrature import HALF_LOG_2PI
from ....factors.roles import gaussian_arguments
from ...values.evaluate import case_number
from ...values.first_beliefs import family_of
from ...values.moments import moments
from ...values.plated import Placed, arrange, mapped, spread
from ...values.scope import Scope
from .discrete_chain import Probabilities, Transitions
from .gaussian_chain import LinearTransitions, Matrices, Vectors
from .small_matrices import applied, inner, outer, product, transposed


@dataclasses.dataclass(frozen=True)
class Axes:
    """The plates of a chain's variable: `order` has the plate of the chain first."""

    plates: tuple[Plate, ...]
    order: tuple[Plate, ...]
    sizes: dict[str, int]

    def lanes(self, placed: Placed) -> Float[jax.Array, "time ..."]:
        """A placed value as (time, ..., lanes)."""
        return self._last(spread(placed, self.order, self.sizes))

    def one(self, placed: Placed) -> Float[jax.Array, "... lanes"]:
        """A placed value that does not vary along the chain, as (..., lanes)."""
        return self._last(spread(placed, self.order[1:], self.sizes)[None])[0]

    def _last(self, array: jax.Array) -> jax.Array:
        """Independent chains in one last axis; their plates follow that of time."""
        event = array.shape[len(self.order) :]
        return jnp.moveaxis(array.reshape((array.shape[0], -1, *event)), 1, -1)

    def from_flat(self, array: Float[Array, "elements ..."]) -> Float[jax.Array, "time ..."]:
        """Naturals with all plates in one axis as (time, ..., lanes)."""
        shape = [self.sizes[plate.name] for plate in self.plates]
        return self.lanes(Placed(array.reshape((*shape, *array.shape[1:])), self.plates))

    def to_flat(self, array: Float[jax.Array, "time ..."]) -> Float[jax.Array, "elements ..."]:
        """The way back."""
        array = jnp.moveaxis(array, -1, 1)
        full = array.reshape((*(self.sizes[plate.name] for plate in self.order), *array.shape[2:]))
        return arrange(Placed(full, self.order), self.plates).value.reshape((-1, *array.shape[2:]))


def chain_of(node: Random) -> Chain:
    """What generates the elements of the variable of a chain or a tree."""
    assert isinstance(node.term, Chain)
    return node.term


def axes_of(node: Random, scope: Scope) -> Axes:
    """The axes of a chain's variable."""
    over = chain_of(node).over
    order = (over, *(plate for plate in node.plates if plate is not over))
    return Axes(node.plates, order, scope.sizes)


# Gaussian -------------------------------------------------------------------------------------------------------------


class Gaussians(NamedTuple):
    """E log N(s; A p + b, 1 / W) over A, b and W, by element: `log_det` is E log det W, W its mean.

    Random coefficients add the log of exp(e0 + e' p - p' E p / 2), minus half the trace of W times the variance of
    A p + b over them.
    """

    links: LinearTransitions
    precision: Matrices
    log_det: Float[jax.Array, "*time lanes"]
    log_det_mean: Float[jax.Array, "*time lanes"]
    e0: Float[jax.Array, "*time lanes"]


def gaussians(node: Random, scope: Scope, root: Bool[jax.Array, " time"], axes: Axes | None = None) -> Gaussians:
    """The terms of a Gaussian chain by element; `root` is true of the elements without a parent.

    `axes` are those of the variable, or also of the states of what gates it, which the data of the scope hold.
    """
    chain = chain_of(node)
    axes = axes_of(node, scope) if axes is None else axes
    then = _gaussian_case(chain.then, chain.previous, ordinary_at(root, chain, scope), axes.lanes)
    first = _gaussian_case(chain.first, chain.previous, scope, axes.one)

    def chosen(begin: jax.Array, follow: jax.Array) -> jax.Array:
        return jnp.where(root.reshape((-1,) + (1,) * begin.ndim), begin, follow)

    return jax.tree.map(chosen, first, then)


def ordinary_at(root: Bool[jax.Array, " time"], chain: Chain, scope: Scope) -> Scope:
    """The scope of then=, with an ordinary moment for every positive parameter of an element without a parent.

    Such a parameter stays at its prior, where 1 / x may have no mean; nothing uses it, but infinity times zero is no
    number, also in a gradient. So it is replaced before anything is made of it.
    """
    used, gathered = _positive_parameters(chain)
    moments_of = {}
    for variable in used - gathered:
        if (current := scope.moments.get(variable.name)) is not None:
            flags = root.reshape((-1,) + (1,) * (len(variable.plates) - 1 - variable.plates.index(chain.over)))
            usual = family_of(variable).placeholder().moments()
            moments_of[variable.name] = jax.tree.map(lambda u, own, f=flags: jnp.where(f, u, own), usual, current)
    return scope.with_moments({**scope.moments, **moments_of})


def _positive_parameters(chain: Chain) -> tuple[set[Random], set[Random]]:
    """The positive parameters of then= along the chain, element by element; and those that indices choose among."""
    used: set[Random] = set()
    gathered: set[Random] = set()
    stack: list[tuple[Expr, bool]] = [(arg, False) for arg in arguments_of(chain.then)]
    while stack:
        node, chosen = stack.pop()
        if isinstance(node, Random):
            if node.domain.is_positive and chain.over in node.plates:
                (gathered if chosen else used).add(node)
        else:
            chosen = chosen or (isinstance(node, Gather) and node.axis is chain.over)
            stack += [(child, chosen) for child in parents(node)]
    return used, gathered


def _gaussian_case(
    term: Term | Switch, previous: Random, scope: Scope, lay: Callable[[Placed], jax.Array]
) -> Gaussians:
    """The terms of all elements, of a gate those of the case that its selector chooses."""
    if isinstance(term, Term):
        return gaussians_of(term, previous, scope, lay)
    chosen = lay(case_number(term, scope))

    def choose(*cases: jax.Array) -> jax.Array:
        found = cases[-1]
        for number, case in enumerate(cases[:-1]):
            here = chosen == number
            here = here.reshape((*here.shape[:-1], *(1,) * (case.ndim - here.ndim), here.shape[-1]))
            found = jnp.where(here, case, found)
        return found

    return jax.tree.map(choose, *(gaussians_of(case, previous, scope, lay) for case in term.terms))


def gaussians_of(term: Term, previous: Random, scope: Scope, lay: Callable[[Placed], jax.Array]) -> Gaussians:
    """The terms of all elements that one term generates, by element as `lay` makes arrays of placed values."""
    vector = previous.domain.is_vector
    dimension = scope.size(previous.domain.size) if vector else 1
    centre, certainty = gaussian_arguments(term)
    precision = moments(certainty, scope, "posdef" if vector else "positive")
    w = precision if vector else as_matrices(precision)
    plates: tuple[Plate, ...] = ()

    def mean(p: Float[jax.Array, " D"]) -> tuple[Float[jax.Array, "*plates D"], Float[jax.Array, "*plates D D"]]:
        """Mean and covariance of A p + b over the parameters."""
        nonlocal plates
        at = Vector(p, jnp.zeros((dimension, dimension))) if vector else Real(p[0], jnp.zeros(()))
        inside = scope.with_moments({**scope.moments, previous.name: Placed(at, ())})
        image = moments(centre, inside, "vector" if vector else "real")
        plates = image.plates
        if vector:
            return image.value.mean, image.value.covariance
        return image.value.mean[..., None], image.value.variance[..., None, None]

    def penalty(p: Float[jax.Array, " D"]) -> Placed:
        """Minus half the trace of W times that covariance."""
        variance = mean(p)[1]
        return mapped(lambda v, w: -0.5 * jnp.vdot(w[0], v), Placed(variance, plates), w)

    origin = jnp.zeros(dimension)
    b = mean(origin)[0]
    a = jax.jacfwd(lambda p: mean(p)[0])(origin)
    at_origin = penalty(origin)
    e = jax.jacfwd(lambda p: penalty(p).value)(origin)
    e_matrix = -jax.jacfwd(jax.jacfwd(lambda p: penalty(p).value))(origin)
    q = Placed(jnp.linalg.inv(w.value[0]), w.plates)
    links = LinearTransitions(
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


def as_matrices(precision: Placed) -> Placed:
    mean, log = precision.value
    return Placed((mean[..., None, None], log), precision.plates)


Marginals: TypeAlias = tuple[Vectors, Matrices]  # mean and covariance


def gaussian_energy(terms: Gaussians, own: Marginals, parent: Marginals, cross: Matrices) -> Float[jax.Array, ""]:
    """The sum of the terms expected under the pairs' marginals; `cross` is Cov(own, parent)."""
    return jnp.sum(gaussian_energies(terms, own, parent, cross))


def gaussian_energies(
    terms: Gaussians, own: Marginals, parent: Marginals, cross: Matrices
) -> Float[jax.Array, "*time lanes"]:
    """The same by element."""
    a, b, _, e_matrix, e = terms.links
    error = own[0] - applied(a, parent[0]) - b
    product_of_both = product(a, transposed(cross))
    square = outer(error, error) + own[1] + product(product(a, parent[1]), transposed(a))
    square = square - product_of_both - transposed(product_of_both)
    second = parent[1] + outer(parent[0], parent[0])
    total = 0.5 * terms.log_det - b.shape[-2] * HALF_LOG_2PI - 0.5 * jnp.sum(terms.precision * square, axis=(-3, -2))
    return total + terms.e0 + inner(e, parent[0]) - 0.5 * jnp.sum(e_matrix * second, axis=(-3, -2))


# discrete -------------------------------------------------------------------------------------------------------------


class TransitionTables(NamedTuple):
    """E log p(first) and E log p(child | parent)."""

    first: Probabilities
    table: Transitions


def table_terms(node: Random, scope: Scope, evaluate: Callable[[Term, Placed, Scope], Placed]) -> TransitionTables:
    """The terms of a discrete chain: `evaluate(term, out, scope)` gives the placed log probability of `out`."""
    return TransitionTables(first_of(node, scope, evaluate), table_of(node, scope, evaluate))


def first_of(node: Random, scope: Scope, evaluate: Callable[[Term, Placed, Scope], Placed]) -> Probabilities:
    """The log probabilities of the first element."""
    size, columns = state_count(node, scope), Plate("states of the element", state_count(node, scope))
    placed = Placed(outcomes(node, size), (columns,))
    first = by_case(chain_of(node).first, scope, lambda term: evaluate(term, placed, scope))
    full = spread(first, (*axes_of(node, scope).order[1:], columns), {**scope.sizes, columns.name: size})
    return jnp.moveaxis(full.reshape((-1, size)), 0, -1)


def table_of(node: Random, scope: Scope, evaluate: Callable[[Term, Placed, Scope], Placed]) -> Transitions:
    """The log probabilities of an element given the one before; one time or lane where all are alike."""
    axes, size = axes_of(node, scope), state_count(node, scope)
    rows, columns = Plate("states of the previous element", size), Plate("states of the element", size)
    inside, placed = after_each(node, rows, scope), Placed(outcomes(node, size), (columns,))
    table = by_case(chain_of(node).then, inside, lambda term: evaluate(term, placed, inside))
    sizes = {**scope.sizes, rows.name: size, columns.name: size}
    others = axes.order[1:]
    along = axes.order[:1] if axes.order[0] in set(table.plates) else ()
    across = others if set(others) & set(table.plates) else ()
    full = spread(table, (*along, *across, rows, columns), sizes)
    times = scope.sizes[axes.order[0].name] if along else 1
    return jnp.moveaxis(full.reshape((times, -1, size, size)), 1, -1)


def outcomes(node: Random, size: int) -> Boolean | Category:
    """The moments of an element in each of its states."""
    return Boolean(1.0 * jnp.arange(size)) if node.domain.is_boolean else Category(jnp.eye(size))


def after_each(node: Random, rows: Plate, scope: Scope) -> Scope:
    """The scope in which the previous element is in each of its states, along the plate `rows`."""
    numbers = jnp.arange(state_count(node, scope))
    previous = Placed(numbers > 0 if node.domain.is_boolean else numbers, (rows,))
    return scope.with_data({chain_of(node).previous.name: previous})


def by_case(term: Term | Switch, scope: Scope, evaluate: Callable[[Term], Placed]) -> Placed:
    """What a term gives, of a gate that of the case which its selector chooses."""
    if isinstance(term, Term):
        return evaluate(term)
    cases = [evaluate(case) for case in term.terms]
    return mapped(lambda number, *of: jnp.stack(of)[number], case_number(term, scope), *cases)


def state_count(node: Random, scope: Scope) -> int:
    """How many states an element has."""
    return 2 if node.domain.is_boolean else scope.size(node.domain.size)


def expected_log(term: Term, out: Placed, scope: Scope) -> Placed:
    """E log p(out) of a term with a single argument, under VMP; `out` are moments."""
    ((edge, arg),) = term.args.items()
    density = term.factor.expected_log
    assert density is not None  # the compiler makes no chain of other factors
    if (p := complement_of(arg)) is not None and isinstance(out.value, Boolean):
        arg, out = p, Placed(Boolean(1.0 - out.value.probability), out.plates)
    return mapped(lambda out, p: density(out, **{edge: p}), out, moments(arg, scope, term.factor.edges[edge]))


def table_energy(terms: TransitionTables, first: Probabilities, counts: Transitions) -> Float[jax.Array, ""]:
    """The sum of the terms expected under the marginals; what has no weight costs nothing."""

    def expected(weight: jax.Array, log: jax.Array) -> Float[jax.Array, ""]:
        return jnp.sum(jnp.where(weight > 0.0, weight * jnp.where(weight > 0.0, log, 0.0), 0.0))

    return expected(first, terms.first) + expected(counts, terms.table)

"""Unconstrained coordinates of the latent variables of a model: a vector whose every point is a possible state."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Collection, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from ...compiler.language.nodes import Constant, Expr, Random, inside
from ...factors.arrays import Array
from ...factors.domains import real
from ...factors.errors import UnsupportedError
from ...factors.factor import Support, Term
from ...factors.families.bijections import Bijection, interval
from ...factors.switches import double_precision
from ..values.evaluate import value
from ..values.first_beliefs import family_of
from ..values.plated import spread
from .contents import Contents
from .orders import Compared, check_lengths, in_order, order_among


@dataclasses.dataclass(frozen=True, eq=False)
class Coordinates:
    """The unconstrained coordinates of the variables of a density.

    Attributes:
        contents: what the density is made of.
        at_first: of variables whose elements constraints compare, coordinates that keep the order of the data.
        kept: those of them whose order no data change.
    """

    contents: Contents
    at_first: Mapping[str, Bijection]
    kept: Mapping[str, Bijection]

    @property
    def variables(self) -> Mapping[str, Random]:
        return self.contents.variables

    def values(self, z: Array, data: Mapping[str, Array]) -> dict[str, Array]:
        """The values of the variables at a vector of coordinates."""
        shape = self.contents.shape
        return {n: b.forward(part).reshape(shape(self.variables[n])) for n, (b, part) in self._parts(z, data).items()}

    def vector(self, values: Mapping[str, Array], data: Mapping[str, Array]) -> Array:
        """The vector of coordinates at values of the variables."""
        maps = self.bijections(data)
        return jnp.concatenate([maps[name].backward(values[name]) for name in self.variables] or [jnp.zeros(0)])

    def log_jacobian(self, z: Array, data: Mapping[str, Array]) -> Array:
        """log |d values / d coordinates|."""
        return sum((b.log_jacobian(part) for b, part in self._parts(z, data).values()), jnp.zeros(()))

    @functools.cached_property
    def slices(self) -> dict[str, slice]:
        """Which coordinates belong to which variable."""
        with double_precision():
            ends = np.cumsum([0, *(b.size for b in self.bijections(self.contents.data).values())])
        return {name: slice(int(a), int(b)) for name, a, b in zip(self.variables, ends[:-1], ends[1:], strict=True)}

    def _parts(self, z: Array, data: Mapping[str, Array]) -> dict[str, tuple[Bijection, Array]]:
        found, start = {}, 0
        for name, b in self.bijections(data).items():
            found[name] = (b, z[start : start + b.size])
            start += b.size
        return found

    def bijections(self, data: Mapping[str, Array]) -> dict[str, Bijection]:
        return {name: self.bijection(variable, data) for name, variable in self.variables.items()}

    def of_start(self, variable: Random) -> Bijection:
        """What a start of `variable` is read by: in the order that all data have now, also those that are moved."""
        return self.at_first.get(variable.name) or self.bijection(variable, self.contents.data)

    def bijection(self, variable: Random, data: Mapping[str, Array]) -> Bijection:
        """The coordinates of one variable. UnsupportedError for a discrete one."""
        shape = self.contents.plates_shape(variable)
        if variable.name in self.contents.holes:
            return _filled(self.contents.holes[variable.name], shape, data[variable.name])
        if variable.name in self.kept:
            return self.kept[variable.name]
        if isinstance(variable.term, Term) and variable.term.factor.support is not None:
            return _between(*ends_of(self.contents, variable, variable.term, variable.term.factor.support), shape)
        found = family_of(variable).bijection(self.contents.event_size(variable))
        if found is None:
            raise UnsupportedError(
                f"'{variable.name}' is {variable.domain}, which has no unconstrained coordinates: gradients and "
                "samplers need continuous values. Sum it out (discrete variables of a single plate element are), or "
                "observe it."
            )
        return found.over(shape)


def coordinates_of(contents: Contents, ordered: bool, moved: Collection[str]) -> Coordinates:
    """The coordinates of a density; `ordered` and `moved` are those of `LogDensity`."""
    with double_precision():
        at_first = _in_order_of_data(contents) if ordered else {}
        check_lengths(contents.compared.values(), contents.terms, contents.scope({}), moved)
    changed = {one.variable.name for one in contents.compared.values() if one.index_data & set(moved)}
    changed |= {name for name in at_first if set(moved) & _read_by_ends(contents.variables[name])}
    return Coordinates(contents, at_first, {name: own for name, own in at_first.items() if name not in changed})


def _in_order_of_data(contents: Contents) -> dict[str, Bijection]:
    """Coordinates of each variable whose elements constraints compare, if these lie between the same ends."""
    found: dict[str, Bijection] = {}
    numbers = functools.partial(Compared.numbers, scope=contents.scope({}))
    compared = dict.fromkeys(one.variable.name for one in contents.compared.values())
    for name in [name for name in compared if name in contents.variables and name not in contents.holes]:
        mine = [one for one in contents.compared.values() if one.variable.name == name]
        ends, shape = _common_ends(contents, contents.variables[name]), contents.shape(contents.variables[name])
        if ends is None or ends[0] >= ends[1]:
            continue
        with jax.ensure_compile_time_eval():
            pairs = [(np.asarray(larger), np.asarray(smaller)) for larger, smaller in map(numbers, mine)]
        found[name] = in_order(order_among(name, pairs, math.prod(shape)), *ends, shape)
    return found


def _common_ends(contents: Contents, variable: Random) -> tuple[float, float] | None:
    """The ends of the interval that all elements of a variable lie in; None where they differ, or are random."""
    term, domain = variable.term, variable.domain
    if not isinstance(term, Term) or term.factor.support is None:
        kinds = ((domain.is_real, (-math.inf, math.inf)), (domain.is_positive, (0.0, math.inf)))
        return next((ends for is_one, ends in (*kinds, (domain.is_unit, (0.0, 1.0))) if is_one), None)
    try:
        low, high = ends_of(contents, variable, term, term.factor.support)
    except UnsupportedError:
        return None
    alike = np.all(low == low[0]) and np.all(high == high[0])
    return (float(low[0]), float(high[0])) if alike else None


def ends_of(contents: Contents, variable: Random, term: Term, support: Support) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the interval of each element, which must be known: UnsupportedError where they are random."""
    sides = [term.args[side] if isinstance(side, str) else Constant(np.array(side), (), real) for side in support]
    for side in sides:
        if not is_known(side, set(contents.data)):
            raise UnsupportedError(
                f"'{variable.name}' lies between bounds that are random themselves ('{side}'), which "
                "has no fixed change of variables. Give the bounds as numbers or inputs."
            )
    scope = contents.scope({})
    with jax.ensure_compile_time_eval():  # the bounds decide the map, so they are numbers also inside a trace
        low, high = (np.asarray(spread(value(side, scope), variable.plates, contents.sizes)).ravel() for side in sides)
    return low, high


def is_known(expr: Expr, data: set[str]) -> bool:
    """Whether an expression reads no random variable but those that are data."""
    return not any(isinstance(node, Random) and node.name not in data for node in inside([expr]))


def _read_by_ends(variable: Random) -> set[str]:
    """The names of what decides the ends of the support of a variable."""
    term = variable.term
    sides = term.factor.support or () if isinstance(term, Term) else ()
    ends = [term.args[side] for side in sides if isinstance(side, str)] if isinstance(term, Term) else []
    return {str(getattr(node, "name", "")) for node in inside(ends)}


def _filled(holes: np.ndarray, shape: tuple[int, ...], data: Array) -> Bijection:
    """Missing entries, each any number, between those that were given."""
    whole = jnp.asarray(data, float)
    event = whole.shape[len(shape) :]
    given = whole.reshape((math.prod(shape), *event))
    return Bijection(
        len(holes) * math.prod(event),
        lambda z: given.at[holes].set(z.reshape((len(holes), *event))).reshape(whole.shape),
        lambda x: jnp.reshape(jnp.asarray(x, float), given.shape)[holes].ravel(),
        lambda z: jnp.zeros(()),
    )


def _between(low: np.ndarray, high: np.ndarray, shape: tuple[int, ...]) -> Bijection:
    """Each element between its ends, numbers or arguments that are data."""
    each = [interval(float(a), float(b)) for a, b in zip(low, high, strict=True)]
    if all(a == low[0] and b == high[0] for a, b in zip(low, high, strict=True)):
        return each[0].over(shape)
    return Bijection(
        len(each),
        lambda z: jnp.stack([b.forward(z[i : i + 1]) for i, b in enumerate(each)]).reshape(shape),
        lambda x: jnp.concatenate([b.backward(x.ravel()[i]) for i, b in enumerate(each)]),
        lambda z: sum((b.log_jacobian(z[i : i + 1]) for i, b in enumerate(each)), jnp.zeros(())),
    )

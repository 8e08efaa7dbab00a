"""Log densities as tables over the states of discrete variables, each along a plate of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax.numpy as jnp

from ...compiler.language.nodes import Expr, Gather, Plate, Random
from ...factors.arrays import Array
from ...factors.errors import UnsupportedError
from ...factors.factor import Chain
from ..values.plated import Placed, mapped
from ..values.scope import Scope

LARGEST_TABLE = 10**7


class Factor(NamedTuple):
    """What a factor of the density is made of, and the plates of its instances."""

    roots: tuple[Expr, ...]
    plates: tuple[Plate, ...]


class Read(NamedTuple):
    """How the instances of a log density read discrete variables.

    `plates` are all plates of its instances, also those it is constant over; `gathers` tells by variable the gather
    through which it is read, None where an instance reads its own element.
    """

    name: str
    plates: tuple[Plate, ...]
    gathers: Mapping[str, Gather | None]


class InstanceDensity(NamedTuple):
    """A log density by instance, and how it reads discrete variables: see `Read`."""

    read: Read
    density: Placed


class Summed(NamedTuple):
    """A discrete variable that is summed out: the plate of its states, in a chain also that of the element before."""

    variable: Random
    axis: Plate
    before: Plate | None


def summed(variable: Random) -> Summed:
    """A discrete variable with plates for its states."""
    before = Plate(f"states of the one before {variable.name}") if isinstance(variable.term, Chain) else None
    return Summed(variable, Plate(f"states of {variable.name}"), before)


def states(one: Summed, scope: Scope) -> Placed:
    """All values of a discrete variable along the plate of its states."""
    if one.variable.domain.is_boolean:
        return Placed(jnp.asarray([False, True]), (one.axis,))
    return Placed(jnp.arange(scope.size(one.variable.domain.size)), (one.axis,))


class Between(NamedTuple):
    """Log densities at one point, and a share of those at another: tables(before) + share * tables(after).

    The derivative in the share, where it is zero, of the logarithm of a sum over states (or of an integral) of the
    exponential is the mean of the log density at `after` under the conditional of the states given `before`: what is
    summed needs no form of its own for it. `before` and `after` are values by name that a scope is given.
    """

    before: Mapping[str, Array]
    after: Mapping[str, Array]
    share: Array

    def of(self, tables: Callable[[Scope], Sequence[Placed]], scope: Scope) -> list[Placed]:
        """The tables of a scope."""
        here, there = (tables(scope.with_data(dict(values))) for values in (self.before, self.after))
        return [mapped(self._mixed, one, other) for one, other in zip(here, there, strict=True)]

    def _mixed(self, one: Array, other: Array) -> Array:
        possible = jnp.isfinite(one) & jnp.isfinite(other)
        return jnp.where(possible, one + self.share * jnp.where(possible, other, 0.0), one)


def taken(tables: Callable[[Scope], Sequence[Placed]], scope: Scope, between: Between | None) -> list[Placed]:
    """The tables of a scope, or those between two points of it."""
    return list(tables(scope)) if between is None else between.of(tables, scope)


def sum_of(tables: Sequence[Placed], order: tuple[Plate, ...] = ()) -> Placed:
    """The sum of tables, over all plates of any."""
    return mapped(lambda *logs: sum(logs), *tables, order=order)


def lengths(table: Placed) -> dict[Plate, int]:
    """The size of each plate of a table."""
    return dict(zip(table.plates, table.value.shape, strict=True))


def checked_size(name: str, entries: int) -> None:
    """UnsupportedError where a table is too large."""
    if entries > LARGEST_TABLE:
        raise UnsupportedError(
            f"Summing '{name}' out needs a table of more than {LARGEST_TABLE:,} entries, because many discrete "
            "variables meet in it. Observe some of them."
        )

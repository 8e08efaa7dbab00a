"""The joint density of a model factor by factor, with every variable among its values: what conditionals are read of.

A conditional is the sum of the factors that touch a variable. Where each instance of each of them reads one element of
it, its elements are independent given all others, and the sum is known by element.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Self, TypeVar

import jax
import jax.numpy as jnp

from ...compiler.data.bind import Binding
from ...compiler.language.model import Model
from ...compiler.language.nodes import Gather, Random, inside, parents
from ...factors.arrays import Array, Key
from ...factors.errors import UnsupportedError
from ...factors.factor import Chain
from ..density.contents import Contents
from ..density.log_density import LogDensity
from ..density.order import gathers_of
from ..density.sum_out import eliminate, everything, owned
from ..density.tables import Between, Factor, InstanceDensity, Read, sum_of, taken
from ..density.terms import is_process
from ..mcmc.structure import Structured
from ..values.plated import Placed
from ..values.scope import Scope
from .augmented import Augmented, auxiliaries_of

Values = dict[str, Array]  # of all latent variables and auxiliary ones, by name
Data = Mapping[str, Array]
Gathers = Mapping[str, Gather | None]  # how each factor reads the elements of a variable
# The logarithm of an integral (or a sum) over variables that are not drawn, perhaps between two points of the others.
Integral = Callable[[Mapping[str, Array], Data, Between | None], Array]


class Joint:
    """The factors of a model given data.

    `variables` are the latent ones, `factors` by name what each is made of, `augmented` those that an auxiliary
    variable makes Gaussian, `integrals` what is left of factors whose variable was integrated out, `structures` those
    data that moves change, which are among the values too; `density` has everything that a log density knows.
    """

    def __init__(
        self, model: Model, binding: Binding, everything: bool = False, structures: Sequence[Structured] = ()
    ) -> None:
        moved = [name for one in structures for name in one.names]
        self.density = LogDensity(model, binding, sum_out=False, everything=everything, moved=moved)
        self.sizes = binding.sizes
        self.variables: dict[str, Random] = {**self.contents.variables, **self.density.discrete}
        self.data = {n: a for n, a in self.contents.data.items() if n not in self.variables}
        self.factors = {name: self._factor(name) for name in self.density.terms.single}
        self.augmented: dict[str, Augmented] = auxiliaries_of(self.density, self.factors, self.data, moved)
        self.integrals: dict[str, Integral] = {}
        self._draws: dict[str, Callable[[Key, Values, Data], Array]] = {}
        self.structures = tuple(structures)
        self.varying: tuple[str, ...] = ()  # data that change from step to step
        self.points: Between | None = None  # where densities are taken between two points

    @property
    def contents(self) -> Contents:
        """What the density is made of."""
        return self.density.contents

    def _factor(self, name: str) -> Factor:
        """What a factor reads: an outcome that is latent among it, and what stands behind noise that is integrated."""
        density = self.density
        if (comparison := density.contents.comparisons.get(name)) is not None:
            behind = [arg for noise in comparison.noise for arg in parents(noise)]
            return Factor((*comparison.expression.args, *behind), comparison.expression.plates)
        if name in density.contents.events:
            expression, _ = density.contents.events[name]
            return Factor((expression,), expression.plates)
        node = density.model.randoms[name]
        own = (node,) if name in self.variables else ()
        return Factor((*own, *parents(node)), node.plates)

    def replaced(
        self, factors: dict[str, Factor], variables: dict[str, Random], integrals: dict[str, Integral]
    ) -> Self:
        """The joint density of fewer variables, with other factors."""
        found = copy.copy(self)
        found.factors, found.variables, found.integrals = factors, variables, integrals
        return found

    def auxiliary_draw(self, augmented: Augmented, key: Key, values: Values) -> Array:
        """A draw of an auxiliary variable given all others, compiled once: their draws have loops."""

        def draw(key: Key, values: Values, data: Data) -> Array:
            return augmented.draw(key, self.scope(values, data))

        return self._draws.setdefault(augmented.name, jax.jit(draw))(key, values, self.arrays)

    def between(self, points: Between | None) -> Joint:
        """The joint density between two points of some variables."""
        found = copy.copy(self)
        found.points = points
        return found

    def bare(self) -> Joint:
        """The joint density without any auxiliary variable."""
        found = copy.copy(self)
        found.augmented = {}
        return found

    def unaugmented(self) -> Joint:
        """The joint density with those auxiliary variables summed out that are not for all that their factor reads."""
        found = copy.copy(self)
        found.augmented = {name: one for name, one in self.augmented.items() if not one.summed}
        return found

    def touching(self, names: Iterable[str]) -> tuple[str, ...]:
        """The factors that read any of these variables."""
        wanted = {id(self.variables[name]) for name in names}
        given = set(self.data)

        def reads(factor: Factor) -> bool:
            return any(id(node) in wanted for node in inside(factor.roots) if getattr(node, "name", None) not in given)

        return tuple(name for name, factor in self.factors.items() if reads(factor))

    def gathers(self, name: str) -> Gathers | None:
        """How each factor that touches a variable reads its elements; None where one instance reads several of them."""
        variable = self.variables[name]
        joins = isinstance(variable.term, Chain) or is_process(variable)
        return None if joins else self.gathers_outside(name, ())

    def gathers_outside(self, name: str, leave: Iterable[str] | None = None) -> Gathers | None:
        """The same of all factors but its own, or but those in `leave`."""
        found = {}
        for factor in set_in_order(self.touching([name]), (name,) if leave is None else leave):
            if factor in self.integrals and self.variables[name].plates:
                return None
            try:
                read = gathers_of(factor, self.factors[factor].roots, {name}, set(self.data))
            except UnsupportedError:
                return None
            found[factor] = read.get(name)
        return found

    def dims(self) -> dict[str, list[str]]:
        """The names of the plates of each variable."""
        model = self.density.model
        moved = {name: model.inputs[name] for one in self.structures for name in one.names if name in model.inputs}
        named = {**model.randoms, **model.lets, **moved}
        return {name: [plate.name for plate in node.plates] for name, node in named.items()}

    def scope(self, values: Mapping[str, Array | Placed], data: Data) -> Scope:
        """What factors are evaluated in."""
        return Scope(self.sizes, {**data, **values}, {})

    def table(self, factor: str, scope: Scope) -> Placed:
        """The log density of a factor by instance, given its auxiliary variable where it has one."""
        if factor in self.integrals:
            values = {name: array for name, array in scope.data.items() if name not in self.data}
            return Placed(self.integrals[factor](values, self.data_in(scope), self.points), ())
        return taken(lambda at: [self._own_table(factor, at)], scope, self.points)[0]

    def _own_table(self, factor: str, scope: Scope) -> Placed:
        if factor in self.augmented:
            found = self.augmented[factor]
            return self.contents.where_given(factor, found.table(scope), found.out.plates)
        return self.density.terms.table(factor, scope)

    @functools.cached_property
    def arrays(self) -> Data:
        """The data as arrays of JAX: what a traced function takes as its argument."""
        return {name: jnp.asarray(array) for name, array in self.data.items()}

    def data_in(self, scope: Scope) -> Data:
        """The data of a scope."""
        return {name: scope.data[name] for name in self.data}

    def total(self, factors: Sequence[str], values: Mapping[str, Array], data: Data) -> Array:
        """The sum of these factors."""
        scope = self.scope(values, data)
        return eliminate([self._piece(name, None, None, scope) for name in factors], (), scope)

    def finite(self, factors: Sequence[str], values: Mapping[str, Array], data: Data) -> Array:
        """The sum of factors that are finite everywhere, such as those of a Gaussian conditional."""
        scope = self.scope(values, data)
        return everything([self._piece(name, None, None, scope) for name in factors], scope)

    def by_element(
        self, name: str, gathers: Gathers, values: Mapping[str, Array | Placed], data: Data, extra: tuple = ()
    ) -> Placed:
        """The log density of each element of a variable given all others, up to a constant of each.

        `gathers` are its own; what `extra` plates the value of the variable has come last.
        """
        variable, scope = self.variables[name], self.scope(values, data)
        pieces = [self._piece(factor, name, gather, scope) for factor, gather in gathers.items()]
        zero = Placed(jnp.zeros([scope.sizes[plate.name] for plate in variable.plates]), variable.plates)
        order = (*variable.plates, *extra)
        return sum_of([zero, *(owned(piece, variable, scope) for piece in pieces)], order)

    def _piece(self, factor: str, name: str | None, gather: Gather | None, scope: Scope) -> InstanceDensity:
        reads = {} if name is None else {name: gather}
        return InstanceDensity(Read(factor, self.factors[factor].plates, reads), self.table(factor, scope))


SomeJoint = TypeVar("SomeJoint", bound=Joint)


def set_in_order(names: Iterable[str], leave: Iterable[str]) -> tuple[str, ...]:
    """The names without those to be left out."""
    out = set(leave)
    return tuple(name for name in names if name not in out)

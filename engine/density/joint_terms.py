"""The factors of a joint density at values of its variables, and their product with discrete variables summed out."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Collection, Mapping

import jax.numpy as jnp
import numpy as np

from ...compiler.language.nodes import Random
from ...factors.arrays import Array
from ..blocks.discrete.networks import NEVER, log_sum
from ..values.evaluate import value
from ..values.plated import Placed, mapped, to_event
from ..values.scope import Scope
from .contents import Contents
from .integrated_chains import log_integral
from .order import Group, groups_of
from .probit_noise import comparison_density
from .sum_chains import chain_densities, chain_of
from .sum_networks import sum_network
from .sum_out import eliminate
from .tables import Between, InstanceDensity, Read, Summed, states, sum_of, taken
from .terms import term_density


@dataclasses.dataclass(frozen=True, eq=False)
class JointTerms:
    """The factors of a joint density, as they are summed.

    Attributes:
        contents: what the density is made of.
        groups: discrete variables that hang together, each with the factors that read them.
        single: the factors that read no discrete variable.
        flat: variables whose terms are left out.
    """

    contents: Contents
    groups: tuple[Group, ...]
    single: Mapping[str, Read]
    flat: Collection[str]

    def density(
        self, values: Mapping[str, Array], data: Mapping[str, Array], tilts: Mapping[str, Array] | None = None
    ) -> Array:
        """The log density; `tilts` are added to the log probabilities of the states of the variables summed out."""
        scope = self.contents.scope(values, data)
        pieces = [InstanceDensity(read, self.table(name, scope)) for name, read in self.single.items()]
        total = eliminate(pieces, (), scope)
        for chain in self.contents.chains:
            total = total + log_integral(chain, self.table, scope)
        for group in self.groups:
            own = {name: tilt for name, tilt in (tilts or {}).items() if name in group.summed}
            total = total + self._summed_group(group, own, scope)
        return jnp.where(self._in_order(scope) & ~(total < 1e-5 * NEVER), total, -jnp.inf)

    def _in_order(self, scope: Scope) -> Array:
        """Whether elements are in the order that constraints state: elsewhere other factors may be no numbers."""
        kept = jnp.asarray(True)
        for one in self.contents.compared.values():
            kept = kept & one.holds(scope)
        return kept

    def prior(self, values: Mapping[str, Array], data: Mapping[str, Array]) -> Array:
        """The sum of the terms of the latent variables themselves."""
        scope = self.contents.scope(values, data)
        names = self.contents.variables
        return eliminate([InstanceDensity(self.single[name], self.table(name, scope)) for name in names], (), scope)

    def sum_of_states(
        self, values: Mapping[str, Array], data: Mapping[str, Array], between: Between | None = None
    ) -> Array:
        """log of the sum over all discrete variables of all factors that read them, at values of the others.

        Args:
            values: of all other variables, by name, shaped plates + event.
            data: what was observed, by name, in the shapes of the model.
            between: two points between which the factors are mixed; see `Between`.
        """
        scope = self.contents.scope(values, data)
        parts = [self._summed_group(group, {}, scope, between) for group in self.groups]
        return sum(parts, jnp.zeros(()))

    def _summed_group(
        self, group: Group, tilts: Mapping[str, Array], scope: Scope, between: Between | None = None
    ) -> Array:
        """log of the sum of the factors of a group over all states of its variables."""

        def table(name: str, scope: Scope) -> Placed:
            return taken(lambda at: [self.table(name, at)], scope, between)[0]

        tilts = self._against_others(group, tilts, scope)
        if group.network is not None:
            zeros = {n: jnp.zeros(self.contents.states_shape(one.variable)) for n, one in group.summed.items()}
            return sum_network(group.network, table, {**zeros, **tilts}, scope)
        scope = scope.with_data({name: states(one, scope) for name, one in group.summed.items()})
        tables: list[Placed | None] = []
        for name in group.factors:
            one = group.summed.get(name)
            if one is not None and (chain := chain_of(one.variable)) is not None:
                tables += taken(functools.partial(chain_densities, one, chain), scope, between)
            else:
                tables.append(table(name, scope))
        for name, one in group.summed.items():
            tables.append(Placed(tilts[name], (*one.variable.plates, one.axis)) if name in tilts else None)
        pieces = [t if t is None else InstanceDensity(read, t) for read, t in zip(group.reads, tables, strict=True)]
        return eliminate(pieces, group.steps, scope)

    def _against_others(self, group: Group, tilts: Mapping[str, Array], scope: Scope) -> dict[str, Array]:
        """The tilts, and for entries that the data give what keeps them in their state."""
        found, holes = dict(tilts), self.contents.holes
        for name in [name for name in group.summed if name in holes]:
            shape = self.contents.states_shape(self.contents.model.randoms[name])
            given = np.ones(math.prod(shape[:-1]), bool)
            given[holes[name]] = False
            values = jnp.ravel(jnp.asarray(scope.data[name])).astype(jnp.int32)
            elsewhere = given[:, None] & (values[:, None] != jnp.arange(shape[-1]))
            found[name] = found.get(name, 0.0) + jnp.where(elsewhere, NEVER, 0.0).reshape(shape)
        return found

    def table(self, name: str, scope: Scope) -> Placed:
        """The log density of a factor, a variable's term or an event, at the values in `scope`, by instance."""
        own = self.contents
        if name in self.flat:
            return Placed(jnp.zeros(()), ())
        if name in own.comparisons:
            return comparison_density(own.comparisons[name], scope)
        if name in own.events:
            return self._event_table(name, scope)
        node = own.model.randoms[name]
        term = node.term if name in own.data else node.term.uncensored
        return own.where_given(name, term_density(term, node, scope), node.plates)

    def _event_table(self, name: str, scope: Scope) -> Placed:
        """Nothing where an event is as given, minus infinity elsewhere."""
        expr, outcome = self.contents.events[name]
        inside = Scope(scope.sizes, {n: a for n, a in scope.data.items() if n != name}, {})
        wanted = Placed(jnp.asarray(True), ()) if outcome is None else value(outcome, scope)
        told = mapped(lambda e, w: jnp.where(e == w, 0.0, -jnp.inf), value(expr, inside), wanted)
        if (one := self.contents.compared.get(name)) is not None:
            told = mapped(lambda t, same: jnp.where(same, 0.0, t), told, one.same(inside))
        return self.contents.where_given(name, told, expr.plates)

    def reads_summed(self, name: str) -> bool:
        """Whether the term of the variable called `name` depends on one that was summed out, and not on its own alone.

        The class of a mixture is its own: each element has one, which nothing else reads.
        """
        return any(name in group.factors for group in self.groups) and self._own_class(name) is None

    def _own_class(self, name: str) -> Summed | None:
        """The discrete variable of which each element belongs to the same element of the variable called `name`."""
        for group in self.groups:
            if name in group.factors and group.network is None and len(group.summed) == 1:
                (one,) = group.summed.values()
                own = set(group.factors) == {name, one.variable.name} and one.before is None
                read = all(gather is None for read in group.reads for gather in read.gathers.values())
                if own and read and set(one.variable.plates) == set(self.contents.model.randoms[name].plates):
                    return one
        return None

    def by_element(self, node: Random, scope: Scope) -> Placed:
        """log p(element | others) of a variable, its class summed out where it has one of its own."""
        one = self._own_class(node.name)
        if one is None:
            return term_density(node.term, node, scope)
        scope = scope.with_data({one.variable.name: states(one, scope)})
        parts = [term_density(v.term, v, scope) for v in (one.variable, node)]
        total = to_event(sum_of(parts, node.plates), one.axis)
        return Placed(log_sum(total.value, total.value.ndim - 1), total.plates)

    def entries(self) -> int:
        """How many numbers are added up where chains, or elements that hang together, are summed out."""
        total = 0
        for group in self.groups:
            if group.network is not None:
                total += group.network.entries(self.contents.sizes)
            for step in group.steps:
                total += self._entries_of(step.group) if step.group[0].before is not None else 0
        return total

    def _entries_of(self, chains: tuple[Summed, ...]) -> int:
        """Of each element of chains that meet, a table of all their states and those before of one."""
        elements = math.prod(self.contents.plates_shape(chains[0].variable))
        sizes = [self.contents.states_shape(one.variable)[-1] for one in chains]
        return elements * math.prod(sizes) * sum(sizes)


def joint_terms(contents: Contents, flat: Collection[str]) -> JointTerms:
    """The factors of a density, those that read discrete variables together in groups."""
    known = {name: array for name, array in contents.data.items() if name not in contents.states}
    numbers = {name: contents.states_shape(one.variable)[-1] for name, one in contents.states.items()}
    groups = tuple(groups_of(contents.factors, contents.states, known, contents.sizes, numbers))
    grouped = {name for group in groups for name in group.factors}
    alone = {name: factor for name, factor in contents.factors.items() if name not in grouped}
    return JointTerms(contents, groups, {name: Read(name, one.plates, {}) for name, one in alone.items()}, flat)

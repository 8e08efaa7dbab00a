"""The joint log density of a model given data, as a function of its latent variables: what samplers and checks need."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Hashable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import PyTree

from ...compiler.data.bind import Binding
from ...compiler.data.sparse_matrices import is_sparse, is_streamed
from ...compiler.language.model import Model
from ...compiler.language.nodes import Constant, Expr, Let, Random, inside, is_data, parents
from ...compiler.passes.roles import below
from ...factors.arrays import Array, Key
from ...factors.calls import call_checked, methods_checked
from ...factors.domains import real
from ...factors.errors import DataError, UnsupportedError
from ...factors.factor import Support, Term
from ...factors.families.bijections import Bijection, interval
from ...factors.switches import double_precision
from ..answers.inferred import Inferred
from ..blocks.discrete.networks import NEVER, log_sum
from ..data.rules_of_arguments import bind_checked
from ..support.asked_arguments import key_words, list_of_names, the_model
from ..support.cache import Recent
from ..support.compiled import Call, compiled
from ..values.evaluate import value
from ..values.first_beliefs import family_of
from ..values.plated import Placed, Plates, mapped, spread, to_event
from ..values.scope import Scope
from .integrated_chains import IntegratedChain, check_readers, integrated_chain, log_integral
from .order import Group, groups_of
from .orders import Compared, check_lengths, compared_by, in_order, order_among
from .probit_noise import comparison_density, comparisons
from .sum_chains import chain_densities, chain_of
from .sum_networks import sum_network
from .sum_out import eliminate
from .tables import Between, Factor, InstanceDensity, Read, Summed, states, sum_of, summed, taken
from .terms import is_process, is_whole, term_density

FUNCTIONS = 16  # that a density keeps
TERMS = 200  # draws at once that the terms of a variable are taken at


@call_checked
def log_density(
    model: Model, data: Mapping[str, PyTree], sizes: Mapping[str, int] | None = None, integrate: Sequence[str] = ()
) -> LogDensity:
    """log p(latent variables, data) of `model`: a function of the values of the latent variables by name.

    `data` and `sizes` are those of `infer`. The latent variables are those that an observation or a constraint depends
    on. Discrete ones are summed out, chains and trees by messages, elements that a factor joins jointly; Gaussian noise
    that only a comparison sees (`m.constrain(margin > 0)`) is integrated out, and so are chains and trees of numbers
    that `integrate` names, whose steps and whatever sees them are linear and Gaussian. Returns a `LogDensity`, which
    also takes unconstrained coordinates. Raises DataError for data that do not fit, UnsupportedError, with the reason,
    for a model without a joint density: an observed sum or product, a random count, discrete elements whose joint table
    is too large.
    """
    names = list_of_names(integrate, "integrate=")
    return LogDensity(the_model(model), bind_checked(model, data, sizes), integrate=names)


def density_of(posterior: Inferred) -> LogDensity:
    """The joint log density that a posterior approximates, up to its constant."""
    if given := posterior.graph.given:
        raise UnsupportedError(
            f"'{min(given)}' has the belief of another posterior as its prior (prior=), which is no part of the model: "
            "there is no joint density to compare with. Check a run on all data at once."
        )
    return LogDensity(posterior.model, posterior.binding, ordered=False)  # beliefs are not in that order


@methods_checked("log_density")
class LogDensity:
    """The joint log density of the latent variables of a model, given its data.

    Called with `values`, a dictionary of arrays by name, it gives log p(values, data). In unconstrained coordinates it
    is `unconstrained(z) = log p(constrain(z), data) + log |d constrain / dz|` for a vector z of `dimension` numbers.
    Both may be jitted and differentiated; use them inside `jax.enable_x64(True)` then. `shapes` maps each latent
    variable to the shape of its array, `summed` names the discrete variables that were summed out, `collapsed` the
    Gaussian noise and the chains of `integrate` that were integrated out, `hard` the constraints that make the density
    jump to zero, which no gradient tells. Constraints that put elements of one variable in order are no such, but
    `ordered`: every point of the unconstrained coordinates keeps that order, unless it is not asked for, or changes
    with data that are `moved`. `model` is whose density it is, `binding` the data, as checked. Without `sum_out` the
    discrete variables are among the values, with `everything` also what nothing observed depends on. The terms of
    variables in `flat` are left out, so that these have flat priors.
    Raises UnsupportedError for a model without a joint density.
    """

    def __init__(
        self,
        model: Model,
        binding: Binding,
        sum_out: bool = True,
        everything: bool = False,
        integrate: Sequence[str] = (),
        flat: Collection[str] = (),
        ordered: bool = True,
        moved: Collection[str] = (),
    ) -> None:
        self.model, self.binding, self._sizes, self.flat = model, binding, binding.sizes, tuple(sorted(flat))
        self._data = {**{name: _dense(array) for name, array in binding.inputs.items()}, **binding.observed}
        holes = self._read_by_others(binding.missing)
        self._missing = {name: ~mask for name, mask in binding.missing.items() if name not in holes}
        self._holes = {name: np.flatnonzero(binding.missing[name]) for name in holes}
        self._needed = set(model.randoms) if everything else _needed(model, set(binding.observed))
        latent = {n for n in self._needed if n not in binding.observed} | holes
        free = {n: v for n, v in model.randoms.items() if n in latent}
        self._events = self._find_events(set(binding.observed))
        parts = {node.name: parents(node) for node in self._factors()}
        parts |= {name: (expr,) for name, (expr, _) in self._events.items()}
        self._comparisons = comparisons(self._events, parts, free)
        noise = {v.name for event in self._comparisons.values() for v in event.noise}
        self.collapsed = tuple(noise)
        self._variables = {n: v for n, v in free.items() if n not in noise and not v.domain.is_discrete}
        self.discrete = {n: v for n, v in free.items() if v.domain.is_discrete}
        discrete = self.discrete if sum_out else {}
        self.summed = tuple(discrete)
        self._states = {name: summed(variable) for name, variable in discrete.items()}
        self._check(sum_out)
        factors = {name: factor for name, factor in self._read(parts, discrete).items() if name not in noise}
        self._chains = self._integrated(integrate, factors)
        factors = {n: f for n, f in factors.items() if not any(n in chain.factors for chain in self._chains)}
        states = {name: self._states_shape(variable)[-1] for name, variable in discrete.items()}
        known = {name: array for name, array in self._data.items() if name not in discrete}
        self._groups = groups_of(factors, self._states, known, self._sizes, states)
        grouped = {name for group in self._groups for name in group.factors}
        self._single = {name: Read(name, factor.plates, {}) for name, factor in factors.items() if name not in grouped}
        self._compared = self._orders()
        with double_precision():
            self._begun = self._by_variable() if ordered else {}
            check_lengths(self._compared.values(), self._factors(), Scope(self._sizes, dict(self._data), {}), moved)
        changed = {one.variable.name for one in self._compared.values() if one.index_data & set(moved)}
        changed |= {name for name in self._begun if set(moved) & _read_by_ends(self._variables[name])}
        self._placed = {name: own for name, own in self._begun.items() if name not in changed}
        self.ordered = tuple(n for n, one in self._compared.items() if one.variable.name in self._placed)
        self.hard = tuple(
            name
            for name, (expr, _) in self._events.items()
            if name not in (*self._comparisons, *self.ordered) and _reads_continuous(expr, self._variables)
        )
        self.names = tuple(self._variables)
        self.shapes = {name: self._shape(variable) for name, variable in self._variables.items()}

    # structure --------------------------------------------------------------------------------------------------------

    def _integrated(self, names: Sequence[str], factors: Mapping[str, Factor]) -> tuple[IntegratedChain, ...]:
        """The chains that messages integrate out, which are no longer among the variables."""
        found: list[IntegratedChain] = []
        for name in dict.fromkeys(names):
            chain = integrated_chain(name, self._variables, factors, {n for n in self._data if n not in self._holes})
            check_readers(chain, self.model.randoms)
            if taken := {name for other in found for name in other.factors} & set(chain.factors):
                raise UnsupportedError(
                    f"integrate= names '{chain.node.name}' and another chain, and '{min(taken)}' reads both: messages "
                    "along one do not integrate the other. Name one of them."
                )
            found.append(chain)
        gone = {chain.node.name for chain in found}
        self._variables = {name: variable for name, variable in self._variables.items() if name not in gone}
        self.collapsed = (*self.collapsed, *gone)
        return tuple(found)

    def _factors(self) -> list[Random]:
        """The variables whose terms are part of the density."""
        return [node for name, node in self.model.randoms.items() if name in self._needed or name in self._data]

    def _read(self, parts: Mapping[str, tuple[Expr, ...]], discrete: Mapping[str, Random]) -> dict[str, Factor]:
        """All factors of the density, with what they read: a discrete variable that is summed out also itself."""
        plates = {node.name: node.plates for node in self._factors()}
        plates |= {name: expr.plates for name, (expr, _) in self._events.items()}
        own = {name: (variable,) for name, variable in discrete.items()}
        return {name: Factor((*own.get(name, ()), *roots), plates[name]) for name, roots in parts.items()}

    def _find_events(self, observed: set[str]) -> dict[str, tuple[Expr, Let | None]]:
        """Constraints, and observed lets: discrete expressions that must be as given."""
        events: dict[str, tuple[Expr, Let | None]] = {n: (e, None) for n, e in self.model.constraints.items()}
        for name in observed & set(self.model.lets):
            node = self.model.lets[name]
            if is_data(node.expression):
                continue
            if not node.domain.is_discrete:
                raise UnsupportedError(
                    f"'{name}' is a deterministic expression, {node.expression}, and observed: its parts have no joint "
                    "density, because they are tied to it exactly. Observe a random variable with a little noise "
                    f"instead, such as m.random('{name} observed', cv.gaussian({name}, variance=...))."
                )
            events[name] = (node.expression, node)
        return events

    def _read_by_others(self, missing: Collection[str]) -> set[str]:
        """Variables with missing entries that something depends on, other elements of a chain: these are latent."""
        roots = [*self.model.constraints.values()]
        roots += [node for name, node in self.model.randoms.items() if name in missing and _joins_elements(node)]
        for other in [*self.model.randoms.values(), *self.model.lets.values()]:
            roots += parents(other)
        return {node.name for node in inside(roots) if isinstance(node, Random) and node.name in missing}

    def _check(self, sum_out: bool) -> None:
        for name in self._holes:
            domain = self.model.randoms[name].domain
            if not (domain.is_real or domain.is_vector or domain.is_discrete):
                raise UnsupportedError(
                    f"'{name}' has missing entries and others depend on it, so these entries are latent and the others "
                    "are not. For the joint log density leave the whole variable out of the data."
                )
        for name, variable in self._variables.items():
            if sum_out and is_whole(variable):
                raise UnsupportedError(
                    f"'{name}' counts and is not observed: it has no gradient, and too many states to sum. cv.sample "
                    "draws it. Else observe it, or integrate it out of the model by hand."
                )

    def _shape(self, variable: Random) -> tuple[int, ...]:
        plates = tuple(self._sizes[plate.name] for plate in variable.plates)
        size = self._event_size(variable)
        return plates + (size,) * variable.domain.event_ndim if isinstance(size, int) else plates

    def _event_size(self, variable: Random) -> int | None:
        size = variable.domain.size
        return None if size is None else Scope(self._sizes, {}, {}).size(size)

    def _orders(self) -> dict[str, Compared]:
        """The constraints that put elements of one variable in order."""
        numbers = {name: node for name, node in self.model.randoms.items() if not node.domain.is_discrete}
        constraints = {n: e for n, (e, outcome) in self._events.items() if outcome is None}
        found = {n: compared_by(e, numbers, set(self._data) - set(self._holes)) for n, e in constraints.items()}
        return {name: one for name, one in found.items() if one is not None and name not in self._comparisons}

    def _by_variable(self) -> dict[str, Bijection]:
        """Coordinates of each variable whose elements constraints compare, if these lie between the same ends."""
        found: dict[str, Bijection] = {}
        numbers = functools.partial(Compared.numbers, scope=Scope(self._sizes, dict(self._data), {}))
        compared = dict.fromkeys(one.variable.name for one in self._compared.values())
        for name in [name for name in compared if name in self._variables and name not in self._holes]:
            mine = [one for one in self._compared.values() if one.variable.name == name]
            ends, shape = self._common_ends(self._variables[name]), self._shape(self._variables[name])
            if ends is None or ends[0] >= ends[1]:
                continue
            with jax.ensure_compile_time_eval():
                pairs = [(np.asarray(larger), np.asarray(smaller)) for larger, smaller in map(numbers, mine)]
            found[name] = in_order(order_among(name, pairs, math.prod(shape)), *ends, shape)
        return found

    def _common_ends(self, variable: Random) -> tuple[float, float] | None:
        """The ends of the interval that all elements of a variable lie in; None where they differ, or are random."""
        term, domain = variable.term, variable.domain
        if not isinstance(term, Term) or term.factor.support is None:
            kinds = ((domain.is_real, (-math.inf, math.inf)), (domain.is_positive, (0.0, math.inf)))
            return next((ends for is_one, ends in (*kinds, (domain.is_unit, (0.0, 1.0))) if is_one), None)
        try:
            low, high = self._ends(variable, term, term.factor.support)
        except UnsupportedError:
            return None
        alike = np.all(low == low[0]) and np.all(high == high[0])
        return (float(low[0]), float(high[0])) if alike else None

    # the density ------------------------------------------------------------------------------------------------------

    def _density(
        self, values: Mapping[str, Array], data: Mapping[str, Array], tilts: Mapping[str, Array] | None = None
    ) -> Array:
        """The log density; `tilts` are added to the log probabilities of the states of the variables summed out."""
        scope = Scope(self._sizes, {**data, **values}, {})
        pieces = [InstanceDensity(read, self._table(name, scope)) for name, read in self._single.items()]
        total = eliminate(pieces, (), scope)
        for chain in self._chains:
            total = total + log_integral(chain, self._table, scope)
        for group in self._groups:
            own = {name: tilt for name, tilt in (tilts or {}).items() if name in group.summed}
            total = total + self._summed_group(group, own, scope)
        return jnp.where(self._in_order(scope) & ~(total < 1e-5 * NEVER), total, -jnp.inf)

    def _in_order(self, scope: Scope) -> Array:
        """Whether elements are in the order that constraints state: elsewhere other factors may be no numbers."""
        kept = jnp.asarray(True)
        for one in self._compared.values():
            kept = kept & one.holds(scope)
        return kept

    def sum_of_states(
        self, values: Mapping[str, Array], data: Mapping[str, Array], between: Between | None = None
    ) -> Array:
        """log of the sum over all discrete variables of all factors that read them, at values of the others.

        Args:
            values: of all other variables, by name, shaped plates + event.
            data: what was observed, by name, in the shapes of the model.
            between: two points between which the factors are mixed; see `Between`.
        """
        scope = Scope(self._sizes, {**data, **values}, {})
        parts = [self._summed_group(group, {}, scope, between) for group in self._groups]
        return sum(parts, jnp.zeros(()))

    def _summed_group(
        self, group: Group, tilts: Mapping[str, Array], scope: Scope, between: Between | None = None
    ) -> Array:
        """log of the sum of the factors of a group over all states of its variables."""

        def table(name: str, scope: Scope) -> Placed:
            return taken(lambda at: [self._table(name, at)], scope, between)[0]

        tilts = self._against_others(group, tilts, scope)
        if group.network is not None:
            zeros = {name: jnp.zeros(self._states_shape(one.variable)) for name, one in group.summed.items()}
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
        found = dict(tilts)
        for name in [name for name in group.summed if name in self._holes]:
            shape = self._states_shape(self.model.randoms[name])
            given = np.ones(math.prod(shape[:-1]), bool)
            given[self._holes[name]] = False
            values = jnp.ravel(jnp.asarray(scope.data[name])).astype(jnp.int32)
            elsewhere = given[:, None] & (values[:, None] != jnp.arange(shape[-1]))
            found[name] = found.get(name, 0.0) + jnp.where(elsewhere, NEVER, 0.0).reshape(shape)
        return found

    def _table(self, name: str, scope: Scope) -> Placed:
        """The log density of a factor, a variable's term or an event, at the values in `scope`, by instance."""
        if name in self.flat:
            return Placed(jnp.zeros(()), ())
        if name in self._comparisons:
            return comparison_density(self._comparisons[name], scope)
        if name in self._events:
            expr, outcome = self._events[name]
            inside = Scope(scope.sizes, {n: a for n, a in scope.data.items() if n != name}, {})
            wanted = Placed(jnp.asarray(True), ()) if outcome is None else value(outcome, scope)
            told = mapped(lambda e, w: jnp.where(e == w, 0.0, -jnp.inf), value(expr, inside), wanted)
            if (one := self._compared.get(name)) is not None:
                told = mapped(lambda t, same: jnp.where(same, 0.0, t), told, one.same(inside))
            return self._where_given(name, told, expr.plates)
        node = self.model.randoms[name]
        term = node.term if name in self._data else node.term.uncensored
        return self._where_given(name, term_density(term, node, scope), node.plates)

    def _where_given(self, name: str, density: Placed, plates: Plates) -> Placed:
        """The log density of what is observed under a name, nothing where it is missing."""
        if name not in self._missing:
            return density
        return mapped(lambda d, p: jnp.where(p, d, 0.0), density, Placed(jnp.asarray(self._missing[name]), plates))

    @property
    def observed(self) -> frozenset[str]:
        """The random variables that the data give."""
        return frozenset(self._data) & frozenset(self.model.randoms)

    def reads_summed(self, name: str) -> bool:
        """Whether the term of the variable called `name` depends on one that was summed out, and not on its own alone.

        The class of a mixture is its own: each element has one, which nothing else reads.
        """
        return any(name in group.factors for group in self._groups) and self._own_class(name) is None

    def _own_class(self, name: str) -> Summed | None:
        """The discrete variable of which each element belongs to the same element of the variable called `name`."""
        for group in self._groups:
            if name in group.factors and group.network is None and len(group.summed) == 1:
                (one,) = group.summed.values()
                own = set(group.factors) == {name, one.variable.name} and one.before is None
                read = all(gather is None for read in group.reads for gather in read.gathers.values())
                if own and read and set(one.variable.plates) == set(self.model.randoms[name].plates):
                    return one
        return None

    def _term_by_element(self, node: Random, scope: Scope) -> Placed:
        """log p(element | others) of a variable, its class summed out where it has one of its own."""
        one = self._own_class(node.name)
        if one is None:
            return term_density(node.term, node, scope)
        scope = scope.with_data({one.variable.name: states(one, scope)})
        parts = [term_density(v.term, v, scope) for v in (one.variable, node)]
        total = to_event(sum_of(parts, node.plates), one.axis)
        return Placed(log_sum(total.value, total.value.ndim - 1), total.plates)

    def terms_of(self, name: str, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """log p(element | others) of every element of the observed variable called `name`, at each of many `values`.

        They are the first axis. UnsupportedError for a Gaussian process, whose elements are drawn together.
        """
        node = self.model.randoms[name]
        if is_process(node):
            raise UnsupportedError(
                f"'{name}' is a Gaussian process, whose elements have no terms of their own. "
                "Observe each element with noise of its own, m.random('y', cv.gaussian(f, sd=...))."
            )

        def terms_at_draws(values: Mapping[str, Array], data: Mapping[str, Array]) -> Array:
            def one(at: Mapping[str, Array]) -> Array:
                scope = Scope(self._sizes, {**data, **at}, {})
                return spread(self._term_by_element(node, scope), node.plates, self._sizes)

            return jax.lax.map(one, values, batch_size=TERMS)

        with double_precision():
            call = self.function("terms", (name,), terms_at_draws)
            return np.asarray(call(jax.tree.map(np.asarray, dict(values)), self._data))

    def _states_given(self, z: Array, data: Mapping[str, Array]) -> dict[str, Array]:
        """The probabilities of the states of each variable summed out, given the others and the data.

        They are the derivatives of the log density in what is added to the log probabilities of the states.
        """
        values = self._constrain(z, data)
        tilts = {name: jnp.zeros(self._states_shape(one.variable)) for name, one in self._states.items()}
        return jax.grad(lambda tilts: self._density(values, data, tilts))(tilts)

    @functools.cached_property
    def joint_entries(self) -> int:
        """How many numbers are added up where chains, or elements that hang together, are summed out."""
        total = 0
        for group in self._groups:
            if group.network is not None:
                total += group.network.entries(self._sizes)
            for step in group.steps:
                total += self._entries_of(step.group) if step.group[0].before is not None else 0
        return total

    def _entries_of(self, chains: tuple[Summed, ...]) -> int:
        """Of each element of chains that meet, a table of all their states and those before of one."""
        elements = math.prod(self._sizes[plate.name] for plate in chains[0].variable.plates)
        states = [self._states_shape(one.variable)[-1] for one in chains]
        return elements * math.prod(states) * sum(states)

    def _states_shape(self, variable: Random) -> tuple[int, ...]:
        plates = tuple(self._sizes[plate.name] for plate in variable.plates)
        size = 2 if variable.domain.is_boolean else self._event_size(variable)
        assert isinstance(size, int)
        return (*plates, size)

    def __call__(self, values: Mapping[str, PyTree]) -> Array | float:
        """log p(values, data). `values` has one array for each name in `names`, of the shape in `shapes`."""
        arrays = self._checked(values)
        return self._numbers(self._density, arrays)

    def unconstrained(self, z: PyTree) -> Array | float:
        """log p(constrain(z), data) + log |d constrain / dz|."""
        return self._numbers(self._unconstrained, self._vector(z))

    def _unconstrained(self, z: Array, data: Mapping[str, Array]) -> Array:
        total = self._density(self._constrain(z, data), data)
        return total + sum(b.log_jacobian(part) for b, part in self._parts(z, data).values())

    def prior(self, z: PyTree) -> Array | float:
        """log p(constrain(z)) + log |d constrain / dz|: `unconstrained` without what the data and constraints tell.

        Nested sampling and sequential Monte Carlo take it apart from the likelihood, which is the difference. Raises
        UnsupportedError where a prior depends on discrete variables, which are summed out, or has entries given.
        """
        if self.ordered:
            raise UnsupportedError(
                f"'{self.ordered[0]}' puts elements in order, which the coordinates keep: in these the prior lacks "
                "what is out of order. cv.evidence finds the evidence of such a model."
            )
        for name, variable in self._variables.items():
            read = {node.name for node in inside(parents(variable)) if isinstance(node, Random)}
            if (joined := read & set(self.summed)) or name in self._holes:
                why = f"depends on '{min(joined)}', which is summed out" if joined else "has entries that the data give"
                raise UnsupportedError(
                    f"'{name}' {why}: the joint density does not fall into a prior and a likelihood. cv.evidence finds "
                    "the evidence of models with discrete variables."
                )
        return self._numbers(self._prior, self._vector(z))

    def _prior(self, z: Array, data: Mapping[str, Array]) -> Array:
        scope = Scope(self._sizes, {**data, **self._constrain(z, data)}, {})
        terms = [InstanceDensity(self._single[name], self._table(name, scope)) for name in self.names]
        return eliminate(terms, (), scope) + sum(b.log_jacobian(part) for b, part in self._parts(z, data).values())

    def constrain(self, z: PyTree) -> dict[str, Array | float]:
        """The values of the latent variables at the unconstrained vector z."""
        return self._numbers(self._constrain, self._vector(z))

    def _constrain(self, z: Array, data: Mapping[str, Array]) -> dict[str, Array]:
        return {name: b.forward(part).reshape(self.shapes[name]) for name, (b, part) in self._parts(z, data).items()}

    def unconstrain(self, values: Mapping[str, PyTree]) -> Array:
        """The unconstrained vector at which `constrain` gives these values."""
        return self._numbers(self._unconstrain, self._checked(values))

    def _unconstrain(self, values: Mapping[str, Array], data: Mapping[str, Array]) -> Array:
        maps = self._bijections(data)
        return jnp.concatenate([maps[name].backward(values[name]) for name in self.names] or [jnp.zeros(0)])

    def initial(self, key: Key | int) -> np.ndarray:
        """A start for a sampler: an unconstrained vector drawn from a uniform distribution between -1 and 1.

        `key` is a random key or an integer seed. Returns `dimension` numbers.
        """
        with double_precision():
            key = jax.random.wrap_key_data(jnp.asarray(key_words(key)))
            return np.asarray(jax.random.uniform(key, (self.dimension,), minval=-1.0, maxval=1.0))

    @functools.cached_property
    def dimension(self) -> int:
        """The number of unconstrained coordinates."""
        with double_precision():
            return sum(b.size for b in self._bijections(self._data).values())

    @functools.cached_property
    def slices(self) -> dict[str, slice]:
        """Which unconstrained coordinates belong to which variable."""
        with double_precision():
            ends = np.cumsum([0, *(b.size for b in self._bijections(self._data).values())])
        return {name: slice(int(a), int(b)) for name, a, b in zip(self.names, ends[:-1], ends[1:], strict=True)}

    def _parts(self, z: Array, data: Mapping[str, Array]) -> dict[str, tuple[Bijection, Array]]:
        found, start = {}, 0
        for name, b in self._bijections(data).items():
            found[name] = (b, z[start : start + b.size])
            start += b.size
        return found

    def _bijections(self, data: Mapping[str, Array]) -> dict[str, Bijection]:
        return {name: self._bijection(variable, data) for name, variable in self._variables.items()}

    def bijection_of_start(self, variable: Random) -> Bijection:
        """What a start of `variable` is read by: in the order that all data have now, also those that are moved."""
        return self._begun.get(variable.name) or self._bijection(variable, self._data)

    def _bijection(self, variable: Random, data: Mapping[str, Array]) -> Bijection:
        shape = tuple(self._sizes[plate.name] for plate in variable.plates)
        if variable.name in self._holes:
            return self._filled(variable.name, shape, data)
        if variable.name in self._placed:
            return self._placed[variable.name]
        if isinstance(variable.term, Term) and variable.term.factor.support is not None:
            return self._between(variable, shape, variable.term, variable.term.factor.support)
        found = family_of(variable).bijection(self._event_size(variable))
        if found is None:
            raise UnsupportedError(
                f"'{variable.name}' is {variable.domain}, which has no unconstrained coordinates: gradients and "
                "samplers need continuous values. Sum it out (discrete variables of a single plate element are), or "
                "observe it."
            )
        return found.over(shape)

    def _filled(self, name: str, shape: tuple[int, ...], data: Mapping[str, Array]) -> Bijection:
        """Missing entries, each any number, between those that were given."""
        holes, whole = self._holes[name], jnp.asarray(data[name], float)
        event = whole.shape[len(shape) :]
        given = whole.reshape((math.prod(shape), *event))
        return Bijection(
            len(holes) * math.prod(event),
            lambda z: given.at[holes].set(z.reshape((len(holes), *event))).reshape(whole.shape),
            lambda x: jnp.reshape(jnp.asarray(x, float), given.shape)[holes].ravel(),
            lambda z: jnp.zeros(()),
        )

    def _ends(self, variable: Random, term: Term, support: Support) -> tuple[np.ndarray, np.ndarray]:
        """The ends of the interval of each element, which must be known: UnsupportedError where they are random."""
        sides = [term.args[side] if isinstance(side, str) else Constant(np.array(side), (), real) for side in support]
        for side in sides:
            if not is_known(side, set(self._data)):
                raise UnsupportedError(
                    f"'{variable.name}' lies between bounds that are random themselves ('{side}'), which "
                    "has no fixed change of variables. Give the bounds as numbers or inputs."
                )
        scope = Scope(self._sizes, dict(self._data), {})
        with jax.ensure_compile_time_eval():  # the bounds decide the map, so they are numbers also inside a trace
            low, high = (np.asarray(spread(value(side, scope), variable.plates, self._sizes)).ravel() for side in sides)
        return low, high

    def _between(self, variable: Random, shape: tuple[int, ...], term: Term, support: Support) -> Bijection:
        """A support that the factor states: each element between its ends, numbers or arguments that are data."""
        low, high = self._ends(variable, term, support)
        each = [interval(float(a), float(b)) for a, b in zip(low, high, strict=True)]
        if all(a == low[0] and b == high[0] for a, b in zip(low, high, strict=True)):
            return each[0].over(shape)
        return Bijection(
            len(each),
            lambda z: jnp.stack([b.forward(z[i : i + 1]) for i, b in enumerate(each)]).reshape(shape),
            lambda x: jnp.concatenate([b.backward(x.ravel()[i]) for i, b in enumerate(each)]),
            lambda z: sum((b.log_jacobian(z[i : i + 1]) for i, b in enumerate(each)), jnp.zeros(())),
        )

    # calls ------------------------------------------------------------------------------------------------------------

    def _checked(self, values: Mapping[str, PyTree]) -> dict[str, Array]:
        lacks = [name for name in self.names if name not in values]
        extra = [name for name in values if name not in self.shapes]
        if lacks or extra:
            raise DataError(
                f"The log density takes values of {', '.join(self.names) or 'nothing'}; "
                + (f"{lacks[0]!r} is missing." if lacks else f"{extra[0]!r} is not among them.")
                + (f" Summed out: {', '.join(self.summed)}." if self.summed else "")
                + (f" Integrated out: {', '.join(self.collapsed)}." if self.collapsed else "")
            )
        arrays = {name: a if hasattr(a, "dtype") else np.asarray(a, float) for name, a in values.items()}
        for name, shape in self.shapes.items():
            if arrays[name].shape != shape:
                raise DataError(
                    f"The value of '{name}' must have shape {shape} (plates, then one value's axes); found "
                    f"{arrays[name].shape}."
                )
        return arrays

    def _vector(self, z: PyTree) -> Array:
        z = z if hasattr(z, "dtype") else np.asarray(z, float)
        if np.shape(z) != (self.dimension,):
            raise DataError(
                f"An unconstrained point of this model is a vector of {self.dimension} numbers; found shape "
                f"{np.shape(z)}."
            )
        return z

    def function(self, what: str, of: tuple[Hashable, ...], own: Call) -> Call:
        """`own`, a function of nested arrays, made ready at most once: this density and `of` decide what it computes.

        Data are arguments of it, and part of its structure too: which discrete variables hang together depends on them.
        """
        given = self._sizes, self._missing, self._holes, self._data
        structure = self.model, *given, self.collapsed, self.flat, tuple(sorted(self._placed)), *of
        return self._functions.get((what, *of), lambda: compiled(what, structure, own))

    @functools.cached_property
    def _functions(self) -> Recent[Call]:
        return Recent(FUNCTIONS)

    def _numbers(self, own: Call, argument: PyTree) -> PyTree:
        """Traced values pass through; numbers are computed in double precision and come back as NumPy."""
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(argument)):
            return jax.jit(own)(argument, self._data)
        with double_precision():
            argument = jax.tree.map(lambda a: np.asarray(a, float), argument)
            found = jax.tree.map(np.asarray, self.function(own.__name__, (), own)(argument, self._data))
        return float(found) if isinstance(found, np.ndarray) and found.ndim == 0 else found

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}{list(shape) if shape else ''}" for name, shape in self.shapes.items())
        out = [f"summed out: {', '.join(self.summed)}"] * bool(self.summed)
        out += [f"integrated out: {', '.join(self.collapsed)}"] * bool(self.collapsed)
        return "<" + "; ".join([f"Log density of {self.model.name!r} in {shapes or 'nothing'}", *out]) + ">"


def _joins_elements(variable: Random) -> bool:
    """Whether elements depend on each other by the variable's own term."""
    return chain_of(variable) is not None or is_process(variable)


def is_known(expr: Expr, data: set[str]) -> bool:
    return not any(isinstance(node, Random) and node.name not in data for node in inside([expr]))


def _read_by_ends(variable: Random) -> set[str]:
    """The names of what decides the ends of the support of a variable."""
    term = variable.term
    sides = term.factor.support or () if isinstance(term, Term) else ()
    ends = [term.args[side] for side in sides if isinstance(side, str)] if isinstance(term, Term) else []
    return {str(getattr(node, "name", "")) for node in inside(ends)}


def _reads_continuous(expr: Expr, variables: Mapping[str, Random]) -> bool:
    return any(isinstance(node, Random) and node.name in variables for node in inside([expr]))


def _dense(array: PyTree) -> Array:
    if is_streamed(array):
        raise UnsupportedError(
            f"The joint density needs all rows at once of what is streamed from files, {array!r}. Have them in memory "
            "for this question: cv.rows(..., stream=False)."
        )
    return array.toarray() if is_sparse(array) else array


def _needed(model: Model, observed: set[str]) -> set[str]:
    """The random variables that an observation or a constraint depends on."""
    named = {**model.randoms, **model.lets}
    roots: list[Expr] = [named[name] for name in observed] + list(model.constraints.values())
    return {node.name for node in below(roots) if isinstance(node, Random)}

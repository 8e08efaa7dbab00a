"""What the joint density of a model given data is made of: its variables, its factors, and what each of them reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ...compiler.data.bind import Binding
from ...compiler.data.sparse_matrices import is_sparse, is_streamed
from ...compiler.language.model import Model
from ...compiler.language.nodes import Expr, Let, Random, inside, is_data, parents
from ...compiler.passes.roles import below
from ...factors.arrays import Array
from ...factors.errors import UnsupportedError
from ..values.plated import Placed, Plates, mapped
from ..values.scope import Scope
from .integrated_chains import IntegratedChain, check_readers, integrated_chain
from .orders import Compared, compared_by
from .probit_noise import Comparison, comparisons
from .sum_chains import chain_of
from .tables import Factor, Summed, summed
from .terms import is_process, is_whole

Events = Mapping[str, tuple[Expr, Let | None]]


@dataclasses.dataclass(frozen=True, eq=False)
class Contents:
    """The variables and factors of the joint density of `model`, given the data of `binding`.

    Attributes:
        data: inputs and what was observed, by name.
        given: of an observed variable with missing entries, which entries the data give.
        holes: the numbers of missing entries that are latent, because others depend on them.
        terms: the variables whose terms are part of the density.
        events: constraints and observed lets, discrete expressions that must be as given, with the let.
        comparisons: those events behind which Gaussian noise is integrated out.
        variables: the latent variables that are numbers.
        discrete: the latent variables that are discrete.
        states: those of them that are summed out.
        factors: what each factor reads that is no part of a chain.
        chains: what messages integrate out.
        collapsed: the names of what was integrated out, noise and chains.
        compared: constraints that put elements of one variable in order.
    """

    model: Model
    binding: Binding
    data: Mapping[str, PyTree]
    given: Mapping[str, np.ndarray]
    holes: Mapping[str, np.ndarray]
    terms: tuple[Random, ...]
    events: Events
    comparisons: Mapping[str, Comparison]
    variables: Mapping[str, Random]
    discrete: Mapping[str, Random]
    states: Mapping[str, Summed]
    factors: Mapping[str, Factor]
    chains: tuple[IntegratedChain, ...]
    collapsed: tuple[str, ...]
    compared: Mapping[str, Compared]

    @property
    def sizes(self) -> dict[str, int]:
        return self.binding.sizes

    def scope(self, values: Mapping[str, Array], data: Mapping[str, Array] | None = None) -> Scope:
        """Where expressions are read at values, and at data that stand in for these."""
        return Scope(self.sizes, {**(self.data if data is None else data), **values}, {})

    def event_size(self, variable: Random) -> int | None:
        """How many numbers one value of a vector has, or how many states a category."""
        size = variable.domain.size
        return None if size is None else Scope(self.sizes, {}, {}).size(size)

    def plates_shape(self, variable: Random) -> tuple[int, ...]:
        return tuple(self.sizes[plate.name] for plate in variable.plates)

    def shape(self, variable: Random) -> tuple[int, ...]:
        """The shape of the array of a variable: plates, then the axes of one value."""
        size = self.event_size(variable)
        return self.plates_shape(variable) + ((size,) * variable.domain.event_ndim if isinstance(size, int) else ())

    def states_shape(self, variable: Random) -> tuple[int, ...]:
        """The shape of a table over the states of each element of a discrete variable."""
        size = 2 if variable.domain.is_boolean else self.event_size(variable)
        assert isinstance(size, int)
        return (*self.plates_shape(variable), size)

    def where_given(self, name: str, density: Placed, plates: Plates) -> Placed:
        """The log density of what is observed under a name, nothing where it is missing."""
        if name not in self.given:
            return density
        return mapped(lambda d, p: jnp.where(p, d, 0.0), density, Placed(jnp.asarray(self.given[name]), plates))


def contents_of(model: Model, binding: Binding, sum_out: bool, everything: bool, integrate: Sequence[str]) -> Contents:
    """What the joint density is made of; the arguments are those of `LogDensity`."""
    data = {**{name: _dense(array) for name, array in binding.inputs.items()}, **binding.observed}
    read_by_others = _read_by_others(model, binding.missing)
    holes = {name: np.flatnonzero(binding.missing[name]) for name in read_by_others}
    _check_holes(model, holes)
    needed = set(model.randoms) if everything else _needed(model, set(binding.observed))
    terms = tuple(node for name, node in model.randoms.items() if name in needed or name in data)
    latent = {n for n in needed if n not in binding.observed} | read_by_others
    free = {name: node for name, node in model.randoms.items() if name in latent}
    events = _events(model, set(binding.observed))
    roots = {node.name: parents(node) for node in terms} | {name: (expr,) for name, (expr, _) in events.items()}
    seen = comparisons(events, roots, free)
    noise = {one.name for event in seen.values() for one in event.noise}
    variables = {n: v for n, v in free.items() if n not in noise and not v.domain.is_discrete}
    discrete = {n: v for n, v in free.items() if v.domain.is_discrete}
    states = {n: summed(v) for n, v in discrete.items()} if sum_out else {}
    if sum_out:
        _check_counts(variables)
    factors = {n: f for n, f in _factors(terms, events, roots, states).items() if n not in noise}
    chains = _integrated(integrate, variables, factors, set(data) - set(holes), model)
    inside_chains = {name for chain in chains for name in chain.factors}
    integrated = [chain.node.name for chain in chains]
    return Contents(
        model,
        binding,
        data,
        {name: ~mask for name, mask in binding.missing.items() if name not in holes},
        holes,
        terms,
        events,
        seen,
        {name: node for name, node in variables.items() if name not in integrated},
        discrete,
        states,
        {name: factor for name, factor in factors.items() if name not in inside_chains},
        chains,
        (*noise, *integrated),
        _compared(model, events, seen, set(data) - set(holes)),
    )


def _factors(
    terms: Sequence[Random], events: Events, roots: Mapping[str, tuple[Expr, ...]], states: Mapping[str, Summed]
) -> dict[str, Factor]:
    """All factors with what they read: the term of a discrete variable that is summed out reads also itself."""
    plates = {node.name: node.plates for node in terms} | {name: expr.plates for name, (expr, _) in events.items()}
    own = {name: (one.variable,) for name, one in states.items()}
    return {name: Factor((*own.get(name, ()), *read), plates[name]) for name, read in roots.items()}


def _integrated(
    names: Sequence[str],
    variables: Mapping[str, Random],
    factors: Mapping[str, Factor],
    data: Collection[str],
    model: Model,
) -> tuple[IntegratedChain, ...]:
    """The chains that messages integrate out."""
    found: list[IntegratedChain] = []
    for name in dict.fromkeys(names):
        chain = integrated_chain(name, variables, factors, data)
        check_readers(chain, model.randoms)
        if taken := {name for other in found for name in other.factors} & set(chain.factors):
            raise UnsupportedError(
                f"integrate= names '{chain.node.name}' and another chain, and '{min(taken)}' reads both: messages "
                "along one do not integrate the other. Name one of them."
            )
        found.append(chain)
    return tuple(found)


def _events(model: Model, observed: set[str]) -> dict[str, tuple[Expr, Let | None]]:
    """Constraints, and observed lets: discrete expressions that must be as given."""
    events: dict[str, tuple[Expr, Let | None]] = {n: (e, None) for n, e in model.constraints.items()}
    for name in observed & set(model.lets):
        node = model.lets[name]
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


def _compared(
    model: Model, events: Events, seen: Mapping[str, Comparison], data: Collection[str]
) -> dict[str, Compared]:
    """The constraints that put elements of one variable in order."""
    numbers = {name: node for name, node in model.randoms.items() if not node.domain.is_discrete}
    constraints = {n: e for n, (e, outcome) in events.items() if outcome is None and n not in seen}
    found = {n: compared_by(e, numbers, data) for n, e in constraints.items()}
    return {name: one for name, one in found.items() if one is not None}


def _read_by_others(model: Model, missing: Collection[str]) -> set[str]:
    """Variables with missing entries that something depends on, other elements of a chain: these are latent."""
    roots = [*model.constraints.values()]
    roots += [node for name, node in model.randoms.items() if name in missing and _joins_elements(node)]
    for other in [*model.randoms.values(), *model.lets.values()]:
        roots += parents(other)
    return {node.name for node in inside(roots) if isinstance(node, Random) and node.name in missing}


def _joins_elements(variable: Random) -> bool:
    """Whether elements depend on each other by the variable's own term."""
    return chain_of(variable) is not None or is_process(variable)


def _check_holes(model: Model, holes: Collection[str]) -> None:
    for name in holes:
        domain = model.randoms[name].domain
        if not (domain.is_real or domain.is_vector or domain.is_discrete):
            raise UnsupportedError(
                f"'{name}' has missing entries and others depend on it, so these entries are latent and the others "
                "are not. For the joint log density leave the whole variable out of the data."
            )


def _check_counts(variables: Mapping[str, Random]) -> None:
    for name, variable in variables.items():
        if is_whole(variable):
            raise UnsupportedError(
                f"'{name}' counts and is not observed: it has no gradient, and too many states to sum. cv.sample "
                "draws it. Else observe it, or integrate it out of the model by hand."
            )


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

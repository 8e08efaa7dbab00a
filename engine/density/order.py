"""Which discrete variables of a joint density hang together, and in which order each such group is summed out.

It follows from structure alone: variables of most plates go first, since what is local to an element of fewer plates is
no part of its table then; of several the one that makes the smallest table. Source: obermeyer2019tensor.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from ...compiler.discrete.cells import UnknownSize
from ...compiler.discrete.networks import Network, TooLarge
from ...compiler.language.atoms import atom_key
from ...compiler.language.nodes import Apply, Expr, Gather, Let, Random, parents
from ...factors.errors import UnsupportedError
from ...factors.factor import arguments_of
from ..values.plated import Plates
from .sum_chains import chain_of, together
from .sum_networks import network_of
from .tables import Factor, Read, Summed


class Step(NamedTuple):
    """Sums a variable, or chains that meet, out of the pieces numbered `inputs`; `result` is one more piece."""

    group: tuple[Summed, ...]
    inputs: tuple[int, ...]
    result: Read


class Group(NamedTuple):
    """Discrete variables that hang together, and the factors that read them.

    They go one element after the other: the pieces of the density are `reads`, and `steps` sum them out. Or jointly, as
    a `network`.
    """

    summed: Mapping[str, Summed]
    factors: tuple[str, ...]
    reads: tuple[Read, ...] = ()
    steps: tuple[Step, ...] = ()
    network: Network | None = None


def groups_of(
    factors: Mapping[str, Factor],
    summed: Mapping[str, Summed],
    data: Collection[str],
    sizes: Mapping[str, int],
    states: Mapping[str, int],
) -> tuple[Group, ...]:
    """The groups of discrete variables; `states` has the number of values of each.

    UnsupportedError for a group that can be summed out neither element by element nor jointly.
    """
    found: list[tuple[set[str], list[str]]] = []
    for name, factor in factors.items():
        mine, members = _variables_in(factor.roots, summed, data), [name]
        if not mine:
            continue
        for near in [near for near in found if near[0] & mine]:
            mine, members = mine | near[0], near[1] + members
            found.remove(near)
        found.append((mine, members))
    groups = []
    for mine, members in found:
        own = {name: one for name, one in summed.items() if name in mine}
        groups.append(_group({name: factors[name] for name in members}, own, data, sizes, states))
    return tuple(groups)


def _variables_in(roots: Iterable[Expr], summed: Collection[str], data: Collection[str]) -> set[str]:
    found, stack = set(), list(roots)
    while stack:
        node = stack.pop()
        if isinstance(node, (Random, Let)) and node.name in data:
            continue
        if isinstance(node, Random):
            found |= {node.name} & set(summed)
        else:
            stack += parents(node)
    return found


def _group(
    factors: Mapping[str, Factor],
    summed: Mapping[str, Summed],
    data: Collection[str],
    sizes: Mapping[str, int],
    states: Mapping[str, int],
) -> Group:
    try:
        reads = [read for name, factor in factors.items() for read in _reads(name, factor, summed, data)]
        reads += [Read(name, one.variable.plates, {name: None}) for name, one in summed.items()]  # for tilts
        return Group(summed, tuple(factors), tuple(reads), _steps(reads, summed, states))
    except UnsupportedError as problem:
        chains = [name for name, one in summed.items() if chain_of(one.variable) is not None]
        if chains:
            raise UnsupportedError(f"{problem} '{chains[0]}', a chain or a tree, hangs together with them.") from None
        try:
            variables = {name: one.variable for name, one in summed.items()}
            return Group(summed, tuple(factors), network=network_of(factors, variables, data, sizes))
        except (TooLarge, UnknownSize) as reason:
            raise UnsupportedError(f"{problem} All combinations are too many: {reason}.") from None


def _reads(name: str, factor: Factor, summed: Mapping[str, Summed], data: Collection[str]) -> list[Read]:
    """How a factor reads the summed variables; a chain that is summed out is two pieces, of roots and of all others."""
    own = summed.get(name)
    chain = None if own is None else chain_of(own.variable)
    if own is None or chain is None:
        return [Read(name, factor.plates, gathers_of(name, factor.roots, summed, data))]
    lanes = tuple(plate for plate in factor.plates if plate is not chain.over)
    first, then = (
        gathers_of(name, (own.variable, *arguments_of(term)), summed, data) for term in (chain.first, chain.then)
    )
    return [Read(name, lanes, first), Read(name, factor.plates, then)]


def gathers_of(
    name: str, roots: tuple[Expr, ...], summed: Collection[str], data: Collection[str]
) -> dict[str, Gather | None]:
    """How the factor called `name` with these parts reads each summed variable.

    UnsupportedError where an instance reads several elements of one: they would have to be enumerated jointly.
    """
    found: dict[str, Gather | None] = {}
    keys: dict[str, tuple | None] = {}
    stack: list[tuple[Expr, tuple[Expr, ...]]] = [(root, ()) for root in roots]
    while stack:
        node, above = stack.pop()
        if isinstance(node, (Random, Let)) and node.name in data:
            continue
        if isinstance(node, Random):
            if node.name in summed:
                gather = _only_gather(name, node, above)
                if gather is not None and _variables_in((gather.index,), summed, data):
                    raise UnsupportedError(_coupled(name, node))
                key = None if gather is None else atom_key(gather.index)
                if keys.setdefault(node.name, key) != key:
                    raise UnsupportedError(_coupled(name, node))
                found[node.name] = gather
            continue
        for child in parents(node):
            passes = isinstance(node, Gather) and child is node.source and above_matters(node, child)
            couples = isinstance(node, Apply) and node.over is not None
            stack.append((child, (*above, node) if passes or couples else above))
    return found


def above_matters(gather: Gather, source: Expr) -> bool:
    """A gather matters to what it takes elements of."""
    return gather.axis in set(source.plates)


def _only_gather(name: str, variable: Random, above: tuple[Expr, ...]) -> Gather | None:
    mine = set(variable.plates)
    relevant = [
        node
        for node in above
        if (isinstance(node, Gather) and node.axis in mine) or (isinstance(node, Apply) and node.option("over") in mine)
    ]
    if not relevant:
        return None
    if len(relevant) > 1 or not isinstance(relevant[0], Gather):
        raise UnsupportedError(_coupled(name, variable))
    return relevant[0]


def _coupled(name: str, variable: Random) -> str:
    return (
        f"'{name}' joins several elements of the discrete variable '{variable.name}', so that they cannot be summed "
        "out one by one and the joint log density would need all their combinations."
    )


def _steps(reads: Sequence[Read], summed: Mapping[str, Summed], states: Mapping[str, int]) -> tuple[Step, ...]:
    """UnsupportedError where variables meet whose elements cannot be told apart."""
    live, left, steps = dict(enumerate(reads)), dict(summed), []
    while left:
        first = _next(left, live.values(), states)
        chain = chain_of(first.variable)
        group = {first.variable.name: first} if chain is None else together(first, left, live.values())
        left = {name: one for name, one in left.items() if name not in group}
        inputs = tuple(number for number, read in live.items() if set(group) & set(read.gathers))
        mine = [live.pop(number) for number in inputs]
        plates = tuple(plate for plate in first.variable.plates if chain is None or plate is not chain.over)
        for name, other in left.items():
            _check_read(first.variable, plates, other, [read for read in mine if name in read.gathers])
        for read in mine:
            _one_key(read.name, first.variable, [read.gathers[name] for name in group if name in read.gathers])
        gathers = {name: g for read in mine for name, g in read.gathers.items() if name not in group}
        result = Read(" & ".join(group), plates, gathers)
        live[len(reads) + len(steps)] = result
        steps.append(Step(tuple(group.values()), inputs, result))
    return tuple(steps)


def _next(left: Mapping[str, Summed], reads: Collection[Read], states: Mapping[str, int]) -> Summed:
    """Of the variables of most plates the one that makes the smallest table; chains after all others of these."""

    def cost(one: Summed) -> tuple[int, bool, int]:
        met = set().union(*(read.gathers for read in reads if one.variable.name in read.gathers))
        return -len(one.variable.plates), one.before is not None, math.prod(states[name] for name in met)

    return min(left.values(), key=cost)


def _check_read(variable: Random, plates: Plates, other: Summed, reads: list[Read]) -> None:
    """What is left when `variable` is summed out of these pieces must read one element of `other` on its `plates`."""
    gathers = [read.gathers[other.variable.name] for read in reads]
    _one_key(variable.name, other.variable, gathers)
    for gather in gathers[:1]:
        needed = set(other.variable.plates)
        if gather is not None:
            needed = needed - {gather.axis} | set(gather.index.plates)
        if not needed <= set(plates):
            raise UnsupportedError(_tangled(variable, other.variable))


def _one_key(name: str, variable: Random, gathers: Iterable[Gather | None]) -> None:
    if len({None if gather is None else atom_key(gather.index) for gather in gathers}) > 1:
        raise UnsupportedError(_coupled(name, variable))


def _tangled(variable: Random, other: Random) -> str:
    return (
        f"The discrete variables '{variable.name}' and '{other.name}' meet in one factor but live on different plates, "
        "neither inside the other: their elements cannot be summed out one by one."
    )

"""Discrete variables of which one factor reads several elements: summed out jointly, as inference sums them.

The plates of such elements are taken apart, so that each element is a variable of its own, and the compiler lays out
the order in which they go (`compiler/discrete`). Here the tables are log densities of any factor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeGuard

import jax

from ...compiler.discrete.cells import FactorTable, Sizes, edges_of, reads_of
from ...compiler.discrete.networks import LIMITS, Network, eliminated
from ...compiler.language.nodes import Expr, Let, Random
from ...factors.arrays import Array, Key
from ..blocks.discrete.networks import Named, cell_of, draw_of, grid, log_sum_of, over
from ..values.plated import Placed
from ..values.scope import Scope
from .tables import Factor


def network_of(
    factors: Mapping[str, Factor], variables: Mapping[str, Random], data: Collection[str], sizes: Mapping[str, int]
) -> Network:
    """The tables of these factors and the order in which the variables are summed out; TooLarge beyond the limits."""

    def known(node: Expr) -> bool:
        return isinstance(node, (Random, Let)) and node.name in data

    def latent(node: Expr) -> TypeGuard[Random | Let]:
        return isinstance(node, Random) and node.name in variables

    known_sizes = Sizes(sizes, frozenset())
    parts = []
    for name, factor in factors.items():
        found = reads_of(factor.roots, known, latent, sums=False)
        parts.append(FactorTable(name, factor.plates, edges_of(found, known_sizes)))
    return eliminated(parts, tuple(variables.values()), known_sizes, LIMITS["default"])[0]


def sum_network(
    network: Network, table_of: Callable[[str, Scope], Placed], tilts: Mapping[str, Array], scope: Scope
) -> Array:
    """log of the sum over all states; `table_of(name, scope)` is the log density of a factor at the values in `scope`.

    `tilts` are added to the log probabilities of the states, (plates..., states) by name.
    """
    return log_sum_of(network, _cells(network, table_of, scope), tilts, scope)


def draw_network(
    key: Key, network: Network, table_of: Callable[[str, Scope], Placed], tilts: Mapping[str, Array], scope: Scope
) -> Mapping[str, Array]:
    """The states of all variables drawn jointly, (plates...) by name; arguments as of `sum_network`."""
    return draw_of(key, network, _cells(network, table_of, scope), tilts, scope)


def _cells(network: Network, table_of: Callable[[str, Scope], Placed], scope: Scope) -> list[jax.Array]:
    """The tables of all cells."""
    tables = []
    for part in network.parts:
        grids = {e.variable.name: grid(e, scope) for e in part.edges if isinstance(e.variable, Random)}
        table, axes = table_of(part.name, scope.with_data(grids)), (*part.plates, *part.axes)
        tables.append(Named(over(table.value, table.plates, axes), axes))
    return [cell_of(network.parts[cell.part], cell, tables[cell.part]) for cell in network.cells]

"""What an expression is made of, number by number, and its value at values of these numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TypeAlias

import jax.numpy as jnp

from ...compiler.algebra.linear import element_of, linear_term, summed_term
from ...compiler.blocks.base import Block
from ...compiler.blocks.site import LinearTerm, SiteBlock
from ...compiler.blocks.slots import Edge, SlotsBlock
from ...compiler.language.atoms import atom_key
from ...compiler.language.nodes import Apply, Expr, Gather, Let, Random, parents
from ...compiler.language.operations import Reach
from ...compiler.rules.slot_finder import discrete_key
from ...factors.arrays import Array
from ...factors.domains import Domain
from ...factors.families.base import ExponentialFamily
from ..distributions.partly_observed import Completed
from ..distributions.shown import Shown
from ..values.evaluate import gather, known, value
from ..values.operations import point_function
from ..values.plated import Placed, to_event
from ..values.scope import Scope
from .clouds import NumberKey

Belief: TypeAlias = ExponentialFamily | Shown | Completed
Families: TypeAlias = Mapping[str, Belief]  # of variables, by name
IsKnown: TypeAlias = Callable[[Expr], bool]  # whether an expression is data
Data: TypeAlias = Mapping[int, Array]  # values of parts that are data, by the identity of these


@dataclasses.dataclass
class Parts:
    """The numbers of an expression by key, and its largest parts that are data by identity."""

    atoms: dict[NumberKey, Expr]
    data: dict[int, Expr]


def has_line_of_its_own(domain: Domain) -> bool:
    """Whether values are single numbers, of which no belief is Gaussian."""
    return domain.is_numeric and not domain.is_real


class NoCloud(Exception):
    """The expression is no function of a few numbers."""


def parts_of(expr: Expr, scope: Scope, families: Families) -> Parts:
    """What an expression is made of; NoCloud where this cannot be listed number by number."""
    found = Parts({}, {})

    def is_known(node: Expr) -> bool:
        return known(node, scope)

    def visit(node: Expr) -> None:
        if is_known(node):
            found.data[id(node)] = node
            return
        key = key_of(node, is_known)
        if key is not None and (not node.domain.is_discrete or name_of(node) in families):
            found.atoms[key] = node
        elif isinstance(node, Let):
            visit(node.expression)
        elif isinstance(node, Gather) and is_known(node.source):  # a table
            found.data[id(node.source)] = node.source
            visit(node.index)
        elif isinstance(node, Gather) and node.domain.is_real and _of_variable(node):
            found.atoms[_key(node)] = node  # an element that a random index chooses
        elif isinstance(node, Apply) and node.operation.reach is Reach.ELEMENT:
            for arg in node.args:
                visit(arg)
        else:
            raise NoCloud

    visit(expr)
    return found


def key_of(node: Expr, is_known: IsKnown) -> NumberKey | None:
    """A key of a scalar random number, the same for every way to write it; None for anything else."""
    term = linear_term(node, (), is_known)
    if term is not None:
        return number_key(term)
    if summed_term(node, (), is_known) is not None:
        return _key(node)
    if node.domain.is_discrete:
        named = isinstance(node, Let) or element_of(node, is_known) is not None
        return _discrete(node) if named else None
    variable = element_of(node, is_known)
    if variable is not None and has_line_of_its_own(variable.domain):
        return _key(node)
    return None


def number_key(number: Edge | LinearTerm) -> NumberKey:
    """The key of a number that a factor reads, whatever its coefficients there."""
    return _key(number.element, number.direction)


def _key(element: Expr, direction: Expr | None = None) -> NumberKey:
    return repr((atom_key(element), direction is None or atom_key(direction)))


def whole_key(expr: Expr) -> NumberKey:
    """A key under which `evaluated` looks up the value of a part as a whole."""
    return _key(expr)


def _discrete(node: Expr) -> NumberKey:
    return repr(discrete_key(node))


def _of_variable(node: Expr) -> bool:
    while isinstance(node, Gather):
        node = node.source
    return isinstance(node, Random)


def name_of(node: Expr) -> str:
    """The name of the variable that an expression is an element of; empty for anything else."""
    while isinstance(node, Gather):
        node = node.source
    return getattr(node, "name", "")


def keys_of(block: Block) -> dict[NumberKey, int]:
    """The numbers that meet in an instance of a block, with their places in it; discrete slots count from minus one."""
    if isinstance(block, SiteBlock):
        return {number_key(term): j for j, term in enumerate(block.form.terms)}
    if isinstance(block, SlotsBlock):
        found = {number_key(edge): j for j, edge in enumerate(block.edges)}
        return found | {_discrete(expr): -1 - d for d, expr in enumerate(block.discrete)}
    return {_discrete(atom): j for j, atom in enumerate(block.atoms)}


def element_at(expr: Expr, placed: Placed, scope: Scope) -> Placed:
    """The element of a placed value that an expression chooses by index data, placed on the plates that are left.

    `placed` is on the plates of the variable that the expression is an element of.
    """
    if isinstance(expr, Let) and not expr.domain.is_discrete:  # these are variables of their own
        return element_at(expr.expression, placed, scope)
    if isinstance(expr, Gather):
        return gather(element_at(expr.source, placed, scope), value(expr.index, scope), expr)
    return placed


def evaluated(expr: Expr, at: Mapping[NumberKey, Array], data: Data, is_known: IsKnown) -> Array:
    """The value of an expression at values of its numbers, all arrays of one layout: (instances, cases, nodes)."""
    if id(expr) in data:
        return data[id(expr)]
    for key in (key_of(expr, is_known), _key(expr)):
        if key is not None and key in at:
            return at[key]
    if isinstance(expr, Let):
        return evaluated(expr.expression, at, data, is_known)
    if isinstance(expr, Gather):
        index = jnp.asarray(evaluated(expr.index, at, data, is_known), int)
        table = data[id(expr.source)]
        index = jnp.broadcast_to(index, jnp.broadcast_shapes(index.shape, (table.shape[0], 1, 1)))
        rows = jnp.broadcast_to(table, (*index.shape, table.shape[-1]))
        return jnp.take_along_axis(rows, index[..., None], -1)[..., 0]
    assert isinstance(expr, Apply)
    return point_function(expr)(*(evaluated(arg, at, data, is_known) for arg in expr.args))


def table_of(expr: Expr, root: Expr, scope: Scope) -> Placed:
    """The value of a part that is data; one that a random index chooses from keeps its axis as an event."""
    table = value(expr, scope)
    stack: list[Expr] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Gather) and node.source is expr and node.axis in set(table.plates):
            return to_event(table, node.axis)
        stack.extend(() if isinstance(node, Random) else parents(node))
    return table

"""Discrete variables summed out jointly: exact where belief propagation is not.

The compiler has laid out which elements are nodes and in which order they are summed out. Here the tables become arrays
over (plates..., states of nodes...), the cavities of the beliefs join them, and the marginals are the derivative of log
Z. Source: koller2009pgm.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ....compiler.discrete.cells import Cell, FactorTable, TableEdge
from ....compiler.discrete.elimination import Node
from ....compiler.discrete.networks import Network, NetworkBlock
from ....compiler.language.nodes import Apply, Let, Plate, Random
from ....factors.arrays import Array, Key
from ....factors.families.base import ExponentialFamily
from ...values.first_beliefs import discrete_family_of, family_of, shape_of, uniform
from ...values.instances import count
from ...values.naturals import Naturals
from ...values.plated import Placed
from ...values.scope import Scope
from . import tables

# The logarithm of an impossible combination: finite, so that derivatives exist where all combinations are.
NEVER = -1e30
HOPELESS = 0.9 * tables.CERTAIN


Axis: TypeAlias = Plate | Node


class Named(NamedTuple):
    """Logarithms with an axis for each of these."""

    logs: jax.Array
    axes: tuple[Axis, ...]


class PreparedNetwork(NamedTuple):
    """One array of logarithms for every cell, over its plates and its nodes (length one where it does not depend on
    them), and uniform messages.
    """

    cells: tuple[jax.Array, ...]
    initial: Naturals


def prepare(block: NetworkBlock, scope: Scope, key: Key, apart: bool = False) -> PreparedNetwork:
    """All tables, evaluated once; there is nothing random in it."""
    network = block.network
    tables_of_parts = [_table(part, scope) for part in network.parts]
    cells = tuple(cell_of(network.parts[cell.part], cell, tables_of_parts[cell.part]) for cell in network.cells)
    initial = {
        variable.name: tuple(
            natural.reshape((count(variable, scope.sizes), *natural.shape[len(variable.plates) :]))
            for natural in uniform(variable, scope)
        )
        for variable in network.variables
    }
    return PreparedNetwork(cells, initial)


def solve(
    block: NetworkBlock, prepared: PreparedNetwork, cavities: Naturals, scope: Scope
) -> tuple[Float[Array, ""], Naturals]:
    """log Z of the tables times exp(cavities), and the naturals of all marginals.

    Log odds (elements,) of booleans, logits (elements, classes) of categories, by the name of the variable: as the
    cavities. Minus infinity, where all combinations are impossible.
    """
    network = block.network
    outside = {variable.name: _logs(variable, cavities[variable.name][0], scope) for variable in network.variables}
    log_z, marginals = jax.value_and_grad(lambda logs: log_sum_of(network, prepared.cells, logs, scope))(outside)
    beliefs = {}
    for variable in network.variables:
        (cavity,) = cavities[variable.name]
        log_p = jnp.log(marginals[variable.name]).reshape((count(variable, scope.sizes), -1))
        if variable.domain.is_boolean:
            message = log_p[:, 1] - log_p[:, 0] - cavity
        else:
            message = log_p - cavity
            message = message - jnp.max(message, axis=-1, keepdims=True)
        # A certain state stays finite, as in tables.
        beliefs[variable.name] = (cavity + jnp.clip(message, -tables.CERTAIN, tables.CERTAIN),)
    return jnp.where(log_z < 1e-5 * NEVER, -jnp.inf, log_z), beliefs


def family(block: NetworkBlock, name: str) -> type[ExponentialFamily]:
    """The family of one of the variables."""
    return family_of(next(variable for variable in block.network.variables if variable.name == name))


def _logs(variable: Random | Let, natural: Array, scope: Scope) -> Float[Array, "*plates states"]:
    """The logarithms exp'd by a cavity, by state; those of certain beliefs in another state are impossible."""
    logs = discrete_family_of(variable).from_naturals((natural,)).logits_by_state()
    logs = jnp.where(jax.nn.log_softmax(logs, axis=-1) < -HOPELESS, NEVER, logs)
    return logs.reshape((*shape_of(variable, scope), logs.shape[-1]))


# Tables ---------------------------------------------------------------------------------------------------------------


def _table(part: FactorTable, scope: Scope) -> Named:
    """The logarithms of a part over its plates and axes, as one array."""
    grids = {tables.key_of(edge.variable): grid(edge, scope) for edge in part.edges}
    if part.block is not None:
        table = tables.log_density(part.block, scope, grids)
    else:
        assert part.chain is not None
        table = _chain_table(part, part.chain, scope, grids)
    axes = (*part.plates, *part.axes)
    return Named(over(table.value, table.plates, axes), axes)


def grid(edge: TableEdge, scope: Scope) -> Placed:
    """The values of a variable at all states: those of its element, or of all elements along `edge.whole`."""
    numbers = jnp.arange(edge.axes[0].size)
    values = numbers > 0 if edge.variable.domain.is_boolean else numbers
    if not edge.whole:
        return Placed(values, edge.axes)
    shape = tuple(axis.size for axis in edge.axes)
    elements = [jnp.broadcast_to(over(values, (axis,), edge.axes), shape) for axis in edge.axes]
    sizes = tuple(scope.sizes[plate.name] for plate in edge.whole)
    return Placed(jnp.stack(elements).reshape((*sizes, *shape)), (*edge.whole, *edge.axes))


def _chain_table(part: FactorTable, chain: Apply, scope: Scope, grids: dict[tuple, Placed]) -> Placed:
    """after = before + element, or the same with `and`, `or`."""
    element = tables.evaluate(chain.args[0], scope, grids)
    before, after = (jnp.arange(axis.size) for axis in part.ends)
    value = element.value.astype(int)[..., None, None]
    rank = element.value.ndim
    before = before.reshape((1,) * rank + (-1, 1))
    total = {"sum": jnp.add, "all": jnp.minimum, "any": jnp.maximum}[chain.op](before, value)
    return Placed(jnp.where(total == after, 0.0, NEVER), (*element.plates, *part.ends))


def cell_of(part: FactorTable, cell: Cell, whole: Named) -> jax.Array:
    """The part's table at one place, over the cell's plates and nodes."""
    table, axes = whole.logs, list(whole.axes)
    for plate, k in cell.place:
        where = [axis is plate for axis in axes].index(True)
        table = jax.lax.index_in_dim(table, min(k, table.shape[where] - 1), where, keepdims=False)
        del axes[where]
    start = len(cell.plates)
    for node in cell.nodes:
        if node is None:
            assert part.chain is not None
            table = jax.lax.index_in_dim(table, int(part.chain.op == "all"), start, keepdims=False)
            continue
        if table.shape[start] > node.states:  # a partial sum has fewer states than the whole
            table = jax.lax.slice_in_dim(table, 0, node.states, axis=start)
        start += 1
    return jnp.maximum(table, NEVER)


# Elimination ----------------------------------------------------------------------------------------------------------


def log_sum_of(
    network: Network, cells: Sequence[jax.Array], outside: Mapping[str, Array], scope: Scope
) -> Float[Array, ""]:
    """log of the sum over all states of the product of the cells: the steps of the elimination on logarithms.

    `outside` is added to the logarithms of the states of each variable: (plates..., states), by name.
    """
    return _summed(network, cells, outside, scope)[0]


def draw_of(
    key: Key, network: Network, cells: Sequence[jax.Array], outside: Mapping[str, Array], scope: Scope
) -> Mapping[str, Array]:
    """The states of all variables drawn jointly, (plates...) by name: `cells` and `outside` as of `log_sum_of`.

    The steps of the elimination backwards: each node from the table that it was summed out of, at the states that those
    which were summed out later have by then. Source: koller2009pgm.
    """
    found: dict[Node, Array] = {}
    for number, (node, table) in enumerate(reversed(_summed(network, cells, outside, scope)[1])):
        logits = _given_others(table, node, found, scope)
        found[node] = jax.random.categorical(jax.random.fold_in(key, number), logits, axis=-1)
    states: dict[str, jax.Array] = {v.name: jnp.zeros(shape_of(v, scope), int) for v in network.variables}
    plates = {variable.name: variable.plates for variable in network.variables}
    for node in network.nodes:
        place = dict(node.place)
        at = tuple(place.get(plate, slice(None)) for plate in plates[node.key])
        states[node.key] = states[node.key].at[at].set(found[node])
    return dict(states)


def _given_others(table: Named, node: Node, found: Mapping[Node, Array], scope: Scope) -> Array:
    """The logarithms of the states of a node, over its plates, where the other nodes of a table have these states."""
    others = [axis for axis in table.axes if isinstance(axis, Node) and axis is not node]
    array = over(table.logs, table.axes, (*node.plates, node, *others))
    lengths = [scope.sizes[plate.name] for plate in node.plates]
    array = jnp.broadcast_to(array, (*lengths, node.states, *array.shape[len(lengths) + 1 :]))
    for other in reversed(others):
        state = over(found[other], other.plates, node.plates)
        where = state.reshape((*state.shape, *(1 for _ in range(array.ndim - len(lengths)))))
        where = jnp.minimum(where, array.shape[-1] - 1)  # a table that is constant in it has one entry
        array = jnp.take_along_axis(array, where, axis=-1)[..., 0]
    return array


def _summed(
    network: Network, cells: Sequence[jax.Array], outside: Mapping[str, Array], scope: Scope
) -> tuple[Float[Array, ""], list[tuple[Node, Named]]]:
    """log of the sum over all states, and the table that each node is summed out of, in the order of the steps."""
    tables: list[tuple[Node, Named]] = []
    live: list[Named | None] = [
        Named(array, (*cell.plates, *(node for node in cell.nodes if node is not None)))
        for array, cell in zip(cells, network.cells, strict=True)
    ]
    plates = {variable.name: variable.plates for variable in network.variables}
    live += [Named(_element(outside[node.key], plates[node.key], node), (*node.plates, node)) for node in network.nodes]
    for step in network.elimination.steps:
        inputs = [named for number in step.inputs if (named := live[number]) is not None]
        for number in step.inputs:
            live[number] = None
        product = _product(inputs)
        if step.node is not None:
            tables.append((step.node, product))
        live.append(_stepped(product, step.node, step.plates, scope))
    return sum((named.logs for named in live if named is not None), jnp.zeros(())), tables


def _element(logs: Array, plates: tuple[Plate, ...], node: Node) -> jax.Array:
    place = dict(node.place)
    return jnp.asarray(logs)[tuple(place.get(plate, slice(None)) for plate in plates)]


def _product(inputs: list[Named]) -> Named:
    """The product of some arrays, plates first."""
    axes = tuple(dict.fromkeys(axis for _, mine in inputs for axis in mine))
    axes = (*(axis for axis in axes if isinstance(axis, Plate)), *(axis for axis in axes if isinstance(axis, Node)))
    return Named(sum((over(array, mine, axes) for array, mine in inputs), jnp.zeros((1,) * len(axes))), axes)


def _stepped(product: Named, node: Node | None, plates: tuple[Plate, ...], scope: Scope) -> Named:
    """An array with a node and plates summed and multiplied out."""
    total, axes = product
    if node is not None:
        where = axes.index(node)
        total = log_sum(jnp.broadcast_to(total, _shape(total, where, node.states)), where)
    for plate in plates:
        where = axes.index(plate)
        repeats = scope.sizes[plate.name] // total.shape[where]
        total = repeats * jnp.sum(total, axis=where)
        axes = axes[:where] + axes[where + 1 :]
    return Named(total, tuple(axis for axis in axes if axis is not node))


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def log_sum(logs: jax.Array, axis: int) -> jax.Array:
    """log sum exp of finite numbers: a third of the operations of the general one, and they are most of compiling."""
    top = jnp.max(logs, axis=axis)
    return top + jnp.log(jnp.sum(jnp.exp(logs - jnp.expand_dims(top, axis)), axis=axis))


@log_sum.defjvp
def _log_sum_jvp(axis: int, primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    (logs,), (change,) = primals, tangents
    total = log_sum(logs, axis)
    return total, jnp.sum(jnp.exp(logs - jnp.expand_dims(total, axis)) * change, axis=axis)


def _shape(array: jax.Array, where: int, size: int) -> tuple[int, ...]:
    return (*array.shape[:where], size, *array.shape[where + 1 :])


def over(array: Array, own: Sequence[Axis], axes: Sequence[Axis]) -> jax.Array:
    """An array with the axes `own` laid out over `axes`, of length one where it has none of that name."""
    kept = [axis for axis in axes if axis in set(own)]
    array = jnp.transpose(array, [own.index(axis) for axis in kept])
    lengths = dict(zip(kept, array.shape, strict=True))
    return array.reshape([lengths.get(axis, 1) for axis in axes])

"""Moves of discrete variables: element by element, along a chain, all elements at once, or one after the other."""

from __future__ import annotations

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np

from ....compiler.discrete.cells import UnknownSize
from ....compiler.discrete.networks import TooLarge
from ....compiler.language.nodes import Random
from ....factors import draws
from ....factors.arrays import Array, Key
from ....factors.errors import UnsupportedError
from ...blocks.chain.trees import RootedTree, tree_of
from ...blocks.discrete.networks import NEVER
from ...density.sum_chains import chain_densities, chain_of
from ...density.sum_networks import draw_network, network_of
from ...density.sum_out import owned
from ...density.tables import InstanceDensity, Read, Summed, states, sum_of, summed
from ...values.evaluate import value
from ...values.plated import Placed, spread
from ..joint import Data, Gathers, Joint, Values
from ..move import Move, stateless

ALL_AT_ONCE = 4096  # states of a few variables together that are enumerated


def state_count(joint: Joint, variable: Random) -> int:
    """How many values an element has."""
    return joint.contents.states_shape(variable)[-1]


def as_values(variable: Random, state: Array) -> Array:
    """The numbers of states as values."""
    return state > 0 if variable.domain.is_boolean else state


def by_element(joint: Joint, name: str, gathers: Gathers) -> Move:
    """Each element from the table of its states."""
    variable = joint.variables[name]
    one = summed(variable)

    def draw(key: Key, values: Values, data: Data) -> Values:
        grid = states(one, joint.scope({}, data))
        table = joint.by_element(name, gathers, {**values, name: grid}, data, (one.axis,))
        sizes = {**joint.sizes, one.axis.name: state_count(joint, variable)}
        logits = spread(table, (*variable.plates, one.axis), sizes)
        return {name: as_values(variable, draws.categorical(key, logits))}

    return stateless((name,), "each element from the table of its states", draw)


def along_chain(joint: Joint, name: str, gathers: Gathers) -> Move:
    """All elements of a chain or a tree jointly: messages from the end, draws from the start.

    `gathers` are those of all factors but the chain's own. Elements that are given have one possible state. Source:
    fruhwirth1994data.
    """
    variable = joint.variables[name]
    chain, one = chain_of(variable), summed(variable)
    assert chain is not None
    assert one.before is not None
    over, before = chain.over, one.before
    lanes = tuple(plate for plate in variable.plates if plate is not over)
    size = state_count(joint, variable)
    sizes = {**joint.sizes, one.axis.name: size, before.name: size}
    order = (over, *lanes)

    def draw(key: Key, values: Values, data: Data) -> Values:
        scope = joint.scope({**values, name: states(one, joint.scope({}, data))}, data)
        first, then = chain_densities(one, chain, scope)
        pieces = [
            InstanceDensity(Read(f, joint.factors[f].plates, {name: g}), joint.table(f, scope))
            for f, g in gathers.items()
        ]
        zero = Placed(jnp.zeros(sizes[over.name]), (over,))
        known = spread(sum_of([zero, *(owned(p, variable, scope) for p in pieces)]), (*order, one.axis), sizes)
        known = known + spread(_given(joint, name, values, one), (*order, one.axis), sizes)
        start = spread(first, (*lanes, one.axis), sizes)
        moves = spread(then, (*order, before, one.axis), sizes)
        if chain.parent is not None:
            tree = tree_of(jnp.asarray(value(chain.parent, scope).value))
            drawn = Placed(_down_tree(key, tree, known, start, moves), order)
            return {name: as_values(variable, spread(drawn, variable.plates, sizes))}

        def up(message: Array, element: tuple[Array, Array]) -> tuple[Array, Array]:
            own, table = element
            below = own + message
            return jax.scipy.special.logsumexp(table + below[..., None, :], axis=-1), below

        top, below = jax.lax.scan(up, jnp.zeros(known.shape[1:]), (known[1:], moves[1:]), reverse=True)
        numbers = draws.uniform(key, known.shape[:-1])  # all before the loop, whose steps are many and small
        root = draws.state_at(numbers[0], start + known[0] + top)

        def down(previous: Array, element: tuple[Array, Array, Array]) -> tuple[Array, Array]:
            own, table, below = element
            row = jnp.take_along_axis(table, previous[..., None, None], axis=-2)[..., 0, :]
            state = draws.state_at(own, row + below)
            return state, state

        _, rest = jax.lax.scan(down, root, (numbers[1:], moves[1:], below))
        drawn = Placed(jnp.concatenate([root[None], rest]), order)
        return {name: as_values(variable, spread(drawn, variable.plates, sizes))}

    what = "the chain jointly, forward filtering and backward sampling"
    if chain.parent is not None:
        what = "the tree jointly, from messages of the leaves and draws from the roots on"
    return stateless((name,), what, draw)


def network(joint: Joint, names: tuple[str, ...]) -> Move | None:
    """Variables that meet in factors, by summing them out one after the other and drawing them on the way back.

    None where the tables would be too large, and for chains and trees.
    """
    variables, factors = {name: joint.variables[name] for name in names}, joint.touching(names)
    if any(chain_of(variable) is not None for variable in variables.values()) or set(factors) & set(joint.integrals):
        return None
    try:
        found = network_of({f: joint.factors[f] for f in factors}, variables, set(joint.data), joint.sizes)
    except (TooLarge, UnknownSize, UnsupportedError):
        return None

    def draw(key: Key, values: Values, data: Data) -> Values:
        scope = joint.scope(values, data)
        tilts = {name: jnp.maximum(_possible(joint, name, values), NEVER) for name in names}
        states = draw_network(key, found, joint.table, tilts, scope)
        return {name: as_values(variables[name], states[name]) for name in names}

    how = "all elements jointly, summed out one after the other and drawn on the way back"
    return stateless(names, how, draw)._replace(searches=True)


def _given(joint: Joint, name: str, values: Values, one: Summed) -> Placed:
    """Logarithms of which states are possible."""
    return Placed(_possible(joint, name, values), (*joint.variables[name].plates, one.axis))


def _possible(joint: Joint, name: str, values: Values) -> Array:
    """Logarithms of which states are possible: all of them, or the one that is given, (plates..., states)."""
    variable = joint.variables[name]
    if name not in joint.contents.holes:
        return jnp.zeros(joint.contents.states_shape(variable))
    shape = joint.contents.shape(variable)
    free = jnp.zeros(math.prod(shape), bool).at[joint.contents.holes[name]].set(True).reshape((*shape, 1))
    state = jnp.arange(state_count(joint, variable)) == jnp.asarray(values[name], int)[..., None]
    return jnp.where(free | state, 0.0, -jnp.inf)


def _down_tree(key: Key, tree: RootedTree, known: Array, start: Array, moves: Array) -> Array:
    """States of all elements of a tree: what is known below each element first, then draws from the roots on."""
    logsumexp = jax.scipy.special.logsumexp

    def climb(known: jax.Array, i: Array) -> tuple[jax.Array, None]:
        message = logsumexp(moves[i] + known[i][..., None, :], axis=-1)
        return known.at[tree.parent[i]].add(jnp.where(tree.root[i], 0.0, message)), None

    numbers = draws.uniform(key, known.shape[:-1])
    known, _ = jax.lax.scan(climb, jnp.asarray(known), tree.order, reverse=True)

    def descend(states: jax.Array, i: Array) -> tuple[jax.Array, None]:
        above = states[tree.parent[i]]
        row = jnp.take_along_axis(moves[i], above[..., None, None], axis=-2)[..., 0, :]
        logits = known[i] + jnp.where(tree.root[i], start, row)
        return states.at[i].set(draws.state_at(numbers[i], logits)), None

    return jax.lax.scan(descend, jnp.zeros(known.shape[:-1], int), tree.order)[0]


def together(joint: Joint, names: tuple[str, ...]) -> Move | None:
    """A few elements from the table of all their states; None where these are too many."""
    shapes = {name: joint.contents.shape(joint.variables[name]) for name in names}
    counts = [state_count(joint, joint.variables[n]) for n in names for _ in range(math.prod(shapes[n]))]
    if math.prod(counts) > ALL_AT_ONCE:
        return None
    rows = np.array(list(itertools.product(*map(range, counts)))).reshape(-1, len(counts))
    factors = joint.touching(names)

    def at(row: Array) -> Values:
        found, begin = {}, 0
        for name, shape in shapes.items():
            end = begin + math.prod(shape)
            found[name] = as_values(joint.variables[name], row[begin:end].reshape(shape))
            begin = end
        return found

    def draw(key: Key, values: Values, data: Data) -> Values:
        logits = jax.lax.map(lambda row: joint.total(factors, {**values, **at(row)}, data), rows, batch_size=256)
        return at(jnp.asarray(rows)[draws.categorical(key, logits)])

    return stateless(names, "all elements at once, from the table of their states", draw)


def one_after_other(joint: Joint, name: str) -> Move:
    """Each element given the others, in turn."""
    variable, factors = joint.variables[name], joint.touching([name])
    shape, size = joint.contents.shape(variable), state_count(joint, variable)

    def draw(key: Key, values: Values, data: Data) -> Values:
        def visit(i: Array, flat: jax.Array) -> jax.Array:
            def at(state: Array) -> Array:
                moved = as_values(variable, flat.at[i].set(state)).reshape(shape)
                return joint.total(factors, {**values, name: moved}, data)

            logits = jax.vmap(at)(jnp.arange(size))
            return flat.at[i].set(draws.state_at(numbers[i], logits))

        numbers = draws.uniform(key, (math.prod(shape),))
        flat = jnp.asarray(values[name], int).ravel()
        found = jax.lax.fori_loop(0, math.prod(shape), visit, flat)
        return {name: as_values(variable, found.reshape(shape))}

    return stateless(
        (name,), "one element after the other, from its table: some factor reads several", draw, exact=False
    )

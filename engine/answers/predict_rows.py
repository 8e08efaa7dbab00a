"""The forward pass of predictions, compiled once for its shapes; many rows one block at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial

import jax
import jax.numpy as jnp

from ...compiler.graph import Joint, Plan
from ...compiler.language.nodes import Constant, Expr, Let, Plate, Random, inside, parents
from ...factors.arrays import Array
from ...factors.factor import Term
from ...factors.families import Family
from ...factors.roles import Process
from ..data.missing_and_sparse import Arrays
from ..support.cache import Recent
from ..support.compiled import compiled
from ..values import row_blocks as blocks
from ..values.joint_beliefs import joint_sizes
from ..values.plated import Placed
from ..values.row_blocks import Rows
from ..values.sparse_rows import Pages
from .predictive import marginals

Forward = Callable[[Arrays, Mapping[str, Family]], dict[str, Family]]  # the marginals of data and beliefs
Predictors = Recent[tuple[Plan, Forward]]  # the jitted forward passes of a program, and the plan of each


def predictor(
    kept: Predictors,
    plan: Plan,
    joints: tuple[Joint, ...],
    names: tuple[str, ...],
    observed: frozenset[str],
    sizes: dict[str, int],
) -> Forward:
    """The jitted forward pass to the named variables from these joint beliefs, for the given plate sizes."""

    def make() -> tuple[Plan, Forward]:
        graph = dataclasses.replace(plan, observed=observed, joints=joints)
        # The plan is kept too: while it lives, no other has its identity.
        return plan, compiled("predict", (graph, names, sizes), partial(predictions, graph, names, sizes))

    members = tuple(tuple(member.name for member in joint.members) for joint in joints)
    return kept.get((id(plan), members, names, observed, tuple(sorted(sizes.items()))), make)[1]


def predictions(
    graph: Plan, names: tuple[str, ...], sizes: dict[str, int], data: Arrays, families: Mapping[str, Family]
) -> dict[str, Family]:
    """What `marginals` gives; by blocks of rows where all at once would hold too many numbers."""
    rows = prediction_rows(graph, names, sizes) if names else None
    if rows is not None:  # sparse data come in blocks already
        rows = next((a.rows for a in data.values() if isinstance(a, Pages) and a.rows.plate is rows.plate), rows)
    if rows is None or any(rows.plate in _plates(graph, name) for name in families):
        return marginals(graph, names, sizes, data, families)
    fewer = {**sizes, rows.plate.name: rows.size}

    def one(number):
        window = rows.window(number)

        def part(name: str, array: Array | Pages) -> Array:
            own = _plates(graph, name)
            return array.seen(window, own).value if isinstance(array, Pages) else window.seen(Placed(array, own)).value

        return marginals(graph, names, fewer, {name: part(name, array) for name, array in data.items()}, families)

    stacked = jax.lax.map(one, jnp.arange(rows.number))

    def whole(name: str) -> Family:
        axis = _plates(graph, name).index(rows.plate)
        return jax.tree.map(lambda leaf: blocks.joined(leaf, axis, rows), stacked[name])

    return {name: whole(name) for name in names}


def prediction_rows(graph: Plan, names: tuple[str, ...], sizes: Mapping[str, int]) -> Rows | None:
    """How a plate that all of the named variables are on is cut; None where it need not or cannot be."""
    named = {**graph.model.randoms, **graph.model.lets}
    shared = [plate for plate in _plates(graph, names[0]) if all(plate in _plates(graph, name) for name in names)]
    plate = max(shared, key=lambda plate: sizes[plate.name], default=None)
    nodes = inside(part for name in names for part in (*parents(named[name]), *_definition(named[name])))
    if plate is None or not all(_plain(named[name]) for name in names):
        return None
    if any(blocks.reaches_across(node, plate) or _written_out(node, plate) for node in nodes):
        return None
    width = blocks.width(nodes, plate, {**sizes, **joint_sizes(graph)})
    return blocks.rows_by_width(plate, width, sizes) if blocks.is_large(sizes[plate.name] * width) else None


def _written_out(node: Expr, plate: Plate) -> bool:
    """Whether the model itself holds a value for every row."""
    return isinstance(node, Constant) and plate in node.plates


def _definition(node: Random | Let) -> tuple[Expr, ...]:
    return (node.expression,) if isinstance(node, Let) else ()


def _plain(node: Random | Let) -> bool:
    """Whether a variable's elements are generated one by one."""
    return isinstance(node, Let) or (isinstance(node.term, Term) and not isinstance(node.term.factor.role, Process))


def _plates(graph: Plan, name: str) -> tuple[Plate, ...]:
    """The plates of what goes by a name; none for what only the engine knows."""
    model = graph.model
    node = {**model.inputs, **model.randoms, **model.lets}.get(name)
    return () if node is None else node.plates

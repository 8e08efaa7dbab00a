"""Blocks that keep messages, by class: first messages, an update, their sum, and the evidence, as functions.

Every function takes the block first. `naturals` are those of the beliefs that the block sends messages to, with all
plates of a variable in one axis; a variable that the block meets through its moments (a parameter of a chain under VMP)
stands in `scope.moments` instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from ...compiler.blocks.base import Block
from ...compiler.blocks.site import SiteBlock
from ...compiler.blocks.slots import SlotsBlock
from ...compiler.blocks.table import ConditionalTableBlock, TruthTableBlock
from ...compiler.blocks.whole import ChainBlock, ProcessBlock, ProductBlock, TreeBlock
from ...compiler.discrete.networks import NetworkBlock
from ..values.naturals import add, subtract
from ..values.scope import Scope
from . import gaussian_process, observed_product
from .chain import chains
from .discrete import networks, tables
from .site import site_data, sites
from .slots import slot_data, slots


class Kind(NamedTuple):
    """The functions of one kind of block.

    `prepare(block, scope, key, apart)` evaluates what depends on data only; `initial(block, prepared, scope)` gives
    uniform messages; `update(block, prepared, naturals, messages, step, scope)` returns the naturals, the
    messages and how many cavities were floored; `accumulate(block, prepared, messages, naturals)` adds the messages;
    `evidence(block, prepared, naturals, messages, scope)` is the block's part of the log evidence; and
    `energy(block, prepared, naturals, messages, scope)`, for kinds with parameters, a scalar whose gradient in their
    moments is the message to them. Kinds that treat their variables jointly and exactly have `solve` too (see
    `exact_kind`).
    """

    prepare: Callable[..., Any]
    initial: Callable[..., Any]
    update: Callable[..., Any]
    accumulate: Callable[..., Any]
    evidence: Callable[..., Any]
    energy: Callable[..., Any] | None = None
    solve: Callable[..., Any] | None = None


def _site_evidence(block: Any, prepared: Any, naturals: Any, messages: Any, scope: Scope) -> Any:
    return sites.read(block, prepared, naturals, messages, scope)[0]


KINDS: dict[type[Block], Kind] = {
    SiteBlock: Kind(site_data.prepare, sites.initial, sites.update, sites.accumulate, _site_evidence),
    **dict.fromkeys(
        (TruthTableBlock, ConditionalTableBlock),
        Kind(tables.prepare, tables.initial, tables.update, tables.accumulate, tables.read),
    ),
    SlotsBlock: Kind(slot_data.prepare, slots.initial, slots.update, slots.accumulate, slots.evidence),
}


def exact_kind(
    prepare: Callable[..., Any], solve: Callable[..., tuple[Any, dict[str, Any]]], family_of: Callable[..., Any]
) -> Kind:
    """The kind of a block that treats its variables jointly and exactly, given the messages of all other blocks.

    `solve(block, prepared, cavities, scope)` takes the cavities' naturals by variable and returns log Z, the logarithm
    of the integral of f * prod_j exp(eta_j . t_j), and the naturals of the marginals by variable. Its log Z must be
    differentiable in `scope.moments`. Its messages are the marginals minus the cavities: one update is exact.
    """

    def cavities(naturals, messages):
        return {name: subtract(naturals[name], messages[name]) for name in messages}

    def initial(block, prepared, scope):
        return {name: prepared.silent[name] for name in prepared.silent}

    def update(block, prepared, naturals, messages, step, scope):
        outside = cavities(naturals, messages)
        _, found = solve(block, prepared, outside, scope)
        change = {
            name: jax.tree.map(lambda a: step * a, subtract(subtract(found[name], outside[name]), messages[name]))
            for name in messages
        }
        naturals = {**naturals, **{name: add(naturals[name], change[name]) for name in messages}}
        return naturals, {name: add(messages[name], change[name]) for name in messages}, jax.numpy.zeros((), int)

    def accumulate(block, prepared, messages, naturals):
        return {**naturals, **{name: add(naturals[name], messages[name]) for name in messages}}

    def evidence(block, prepared, naturals, messages, scope):
        log_z, _ = solve(block, prepared, cavities(naturals, messages), scope)
        return log_z - partitions({name: family_of(block, name).from_naturals(naturals[name]) for name in messages})

    def energy(block, prepared, naturals, messages, scope):
        outside = jax.lax.stop_gradient(cavities(naturals, messages))
        return solve(block, prepared, outside, scope)[0]

    return Kind(prepare, initial, update, accumulate, evidence, energy, solve)


def partitions(families: dict[str, Any]) -> Any:
    """The sum of the log normalisers of beliefs."""
    return sum(family.log_partition().sum() for family in families.values())


KINDS[ProcessBlock] = exact_kind(gaussian_process.prepare, gaussian_process.solve, gaussian_process.family)
KINDS[NetworkBlock] = exact_kind(networks.prepare, networks.solve, networks.family)
KINDS[ChainBlock] = KINDS[TreeBlock] = exact_kind(chains.prepare, chains.solve, chains.family)
KINDS[ProductBlock] = exact_kind(observed_product.prepare, observed_product.solve, observed_product.family)

"""Blocks that keep messages, by class: first messages, an update, their sum, and the evidence, as functions.

Every function takes the block first. `naturals` are those of the beliefs that the block sends messages to, with all
plates of a variable in one axis; a variable that the block meets through its moments (a parameter of a chain under VMP)
stands in `scope.moments` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from ...compiler.blocks.base import Block
from ...compiler.blocks.mixture import MixtureBlock
from ...compiler.blocks.site import SiteBlock
from ...compiler.blocks.slots import SlotsBlock
from ...compiler.blocks.table import ConditionalTableBlock, TruthTableBlock
from ...compiler.blocks.whole import (
    ChainBlock,
    CurvedChainBlock,
    GatedBlock,
    LearnedChainBlock,
    MaximumBlock,
    ProcessBlock,
    ProductBlock,
    TreeBlock,
)
from ...compiler.discrete.networks import NetworkBlock
from ...factors.arrays import Array, Key, Numeric
from ...factors.families.base import ExponentialFamily
from ..values.naturals import Naturals, add, subtract
from ..values.scope import Scope
from . import gaussian_process, mixture, mixture_data, observed_maximum, observed_product
from .chain import chains, curved, gated, learned
from .discrete import networks, tables
from .site import site_data, sites
from .slots import slot_data, slots

OfBlock = TypeVar("OfBlock", bound=Block)
Prepared = TypeVar("Prepared")  # what depends on data only
Messages = TypeVar("Messages")  # a pytree of arrays
Watched: TypeAlias = tuple[Float[Array, ""], Naturals, Float[Array, ""]]


class Kind(NamedTuple, Generic[OfBlock, Prepared, Messages]):
    """The functions of one kind of block.

    `prepare(block, scope, key, apart)` evaluates what depends on data only, `apart` where these are known to give no
    instance one element twice; `initial(block, prepared, scope)` gives the messages that a run begins with, uniform
    where the block does not know better; `update(block, prepared, naturals, messages, step, scope)` returns the
    naturals, the messages and how many cavities were floored; `accumulate(block, prepared, messages, naturals)` adds
    the messages to the naturals;
    `evidence(block, prepared, naturals, messages, scope)` is the block's part of the log evidence;
    `naturals_of(block, stats)` are the natural parameters, in the form of messages, of the members with these expected
    statistics, which are gradients in the messages; and `energy(block, prepared, naturals, messages, scope)`, for kinds
    with parameters, a scalar whose gradient in their moments is the message to them. Kinds that treat their variables
    jointly and exactly have `solve` too (see `exact_kind`), and where it searches for its solution `watched`, which
    also tells how far in standard deviations it stopped from it, zero where it found it. `improper(block, prepared,
    naturals, messages, scope)` counts the instances of which a cavity is no distribution, for kinds whose fixed points
    have none. `begin(block, prepared, naturals, scope)` gives better first messages where it knows the beliefs without
    any, and `towards(block, prepared, naturals, scope)` those that lead to about these beliefs.
    """

    prepare: Callable[[OfBlock, Scope, Key, bool], Prepared]
    initial: Callable[[OfBlock, Prepared, Scope], Messages]
    update: Callable[[OfBlock, Prepared, Naturals, Messages, Numeric, Scope], tuple[Naturals, Messages, Int[Array, ""]]]
    accumulate: Callable[[OfBlock, Prepared, Messages, Naturals], Naturals]
    evidence: Callable[[OfBlock, Prepared, Naturals, Messages, Scope], Float[Array, ""]]
    naturals_of: Callable[[OfBlock, Messages], Messages]
    energy: Callable[[OfBlock, Prepared, Naturals, Messages, Scope], Float[Array, ""]] | None = None
    solve: Callable[[OfBlock, Prepared, Naturals, Scope], tuple[Float[Array, ""], Naturals]] | None = None
    watched: Callable[[OfBlock, Prepared, Naturals, Scope], Watched] | None = None
    improper: Callable[[OfBlock, Prepared, Naturals, Messages, Scope], Int[Array, ""]] | None = None
    begin: Callable[[OfBlock, Prepared, Naturals, Scope], Messages] | None = None
    towards: Callable[[OfBlock, Prepared, Naturals, Scope], Messages] | None = None


KINDS: dict[type[Block], Kind[Any, Any, Any]] = {  # its own classes of block, data and messages for each
    SiteBlock: Kind(
        site_data.prepare,
        sites.initial,
        sites.update,
        sites.accumulate,
        sites.evidence,
        sites.naturals_of,
    ),
    **dict.fromkeys(
        (TruthTableBlock, ConditionalTableBlock),
        Kind(
            tables.prepare,
            tables.initial,
            tables.update,
            tables.accumulate,
            tables.read,
            tables.naturals_of,
        ),
    ),
    SlotsBlock: Kind(
        slot_data.prepare,
        slots.initial,
        slots.update,
        slots.accumulate,
        slots.evidence,
        slots.naturals_of,
    ),
    MixtureBlock: Kind(
        mixture_data.prepare,
        mixture.initial,
        mixture.update,
        mixture.accumulate,
        mixture.evidence,
        mixture.naturals_of,
        improper=mixture.improper,
        begin=mixture.begin,
        towards=mixture.towards,
    ),
    LearnedChainBlock: Kind(
        learned.prepare,
        learned.initial,
        learned.update,
        learned.accumulate,
        learned.evidence,
        learned.naturals_of,
        improper=learned.improper,
    ),
}


@runtime_checkable
class WithInitial(Protocol):
    """What a block that is solved as a whole knows of the data: among it the messages that it begins with."""

    @property
    def initial(self) -> Naturals: ...


Whole = TypeVar("Whole", bound=WithInitial)


def exact_kind(
    prepare: Callable[[OfBlock, Scope, Key, bool], Whole],
    solve: Callable[[OfBlock, Whole, Naturals, Scope], tuple[Float[Array, ""], Naturals]],
    family_of: Callable[[OfBlock, str], type[ExponentialFamily]],
    watched: Callable[[OfBlock, Whole, Naturals, Scope], tuple[Float[Array, ""], Naturals, Float[Array, ""]]]
    | None = None,
) -> Kind[OfBlock, Whole, Naturals]:
    """The kind of a block that treats its variables jointly and exactly, given the messages of all other blocks.

    `solve(block, prepared, cavities, scope)` takes the cavities' naturals by variable and returns log Z, the logarithm
    of the integral of f * prod_j exp(eta_j . t_j), and the naturals of the marginals by variable. Its log Z must be
    differentiable in `scope.moments`. Its messages are the marginals minus the cavities: one update is exact.
    `family_of(block, name)` is the family of the marginals of a variable, `watched` that of `Kind`.
    """

    def cavities(naturals: Naturals, messages: Naturals) -> Naturals:
        return {name: subtract(naturals[name], messages[name]) for name in messages}

    def initial(block: OfBlock, prepared: Whole, scope: Scope) -> Naturals:
        return dict(prepared.initial)

    def update(
        block: OfBlock, prepared: Whole, naturals: Naturals, messages: Naturals, step: Numeric, scope: Scope
    ) -> tuple[Naturals, Naturals, Int[Array, ""]]:
        outside = cavities(naturals, messages)
        _, marginals = solve(block, prepared, outside, scope)
        change = {
            name: jax.tree.map(lambda a: step * a, subtract(subtract(marginals[name], outside[name]), messages[name]))
            for name in messages
        }
        naturals = {**naturals, **{name: add(naturals[name], change[name]) for name in messages}}
        return naturals, {name: add(messages[name], change[name]) for name in messages}, jnp.zeros((), int)

    def accumulate(block: OfBlock, prepared: Whole, messages: Naturals, naturals: Naturals) -> Naturals:
        return {**naturals, **{name: add(naturals[name], messages[name]) for name in messages}}

    def evidence(
        block: OfBlock, prepared: Whole, naturals: Naturals, messages: Naturals, scope: Scope
    ) -> Float[Array, ""]:
        log_z, _ = solve(block, prepared, cavities(naturals, messages), scope)
        return log_z - partitions({name: family_of(block, name).from_naturals(naturals[name]) for name in messages})

    def energy(
        block: OfBlock, prepared: Whole, naturals: Naturals, messages: Naturals, scope: Scope
    ) -> Float[Array, ""]:
        outside = jax.lax.stop_gradient(cavities(naturals, messages))
        return solve(block, prepared, outside, scope)[0]

    def naturals_of(block: OfBlock, stats: Naturals) -> Naturals:
        return {name: family_of(block, name).from_stats(own).naturals() for name, own in stats.items()}

    return Kind(prepare, initial, update, accumulate, evidence, naturals_of, energy, solve, watched)


def partitions(families: Mapping[str, ExponentialFamily]) -> Numeric:
    """The sum of the log normalisers A of beliefs, over all variables and their elements; zero of none."""
    return sum(family.log_partition().sum() for family in families.values())


KINDS[ProcessBlock] = exact_kind(gaussian_process.prepare, gaussian_process.solve, gaussian_process.family)
KINDS[NetworkBlock] = exact_kind(networks.prepare, networks.solve, networks.family)
KINDS[ChainBlock] = KINDS[TreeBlock] = exact_kind(chains.prepare, chains.solve, chains.family)
KINDS[GatedBlock] = exact_kind(gated.prepare, gated.solve, gated.family)._replace(energy=gated.energy)
KINDS[CurvedChainBlock] = exact_kind(chains.prepare, curved.solve, chains.family, curved.watched)
KINDS[ProductBlock] = exact_kind(observed_product.prepare, observed_product.solve, observed_product.family)
KINDS[MaximumBlock] = exact_kind(observed_maximum.prepare, observed_maximum.solve, observed_maximum.family)

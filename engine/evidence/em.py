"""Expectation maximisation of mixtures: the values of largest density, from what each row is expected to add to them.

A row is one element of a selector. Under values of the parents its states have probabilities r, and it adds
sum_k r_k lambda_k to the naturals of each parent, lambda_k those of its likelihood in state k. Batches of rows take
turns: each takes out what it had added, adds what it expects now, and the parents have the values of largest density
at once. With one row in a batch this is incremental EM: no turn lowers sum r (log p - log r), which at its maximum is
the log density. Source: neal1998em.

The value of largest density is what the mean of a belief tends to as the belief grows sharp, so no family needs a
formula of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from ...compiler.blocks.mixture import MixtureBlock
from ...compiler.data.bind import Binding
from ...compiler.language.model import Model
from ...compiler.schedules import Asked, checked_schedule
from ...factors.arrays import Array, Key
from ...factors.errors import UnsupportedError
from ...factors.families import ExponentialFamily
from ...factors.families.capabilities import PairFamily
from ...factors.switches import double_precision
from ..blocks import mixture
from ..blocks.mixture import Messages
from ..blocks.mixture_data import Local, Prepared
from ..data.missing_and_sparse import arrays_of
from ..options import Options
from ..program import Program
from ..run.bound_plan import Data
from ..run.machine import Machine
from ..run.start import prepare
from ..values.first_beliefs import family_of
from ..values.naturals import Naturals, Parts
from ..values.scope import Scope

SHARP = 1e9  # times the naturals: the mean of a sharp belief is off the place of largest density by its inverse
PASSES = 500  # over the rows at most
CHANCE = 0.1  # of what rows add first is random, where the model cannot tell states apart
STILL = 1e-10  # nats, times the height: what a pass gains when it was the last

Rows = dict[str, Messages]  # what every row adds to the naturals, by block
States = Float[Array, "row state"]


class Ended(NamedTuple):
    """Where the passes ended: values by name, and how many passes there were."""

    values: dict[str, np.ndarray]
    passes: int


class _Now(NamedTuple):
    naturals: Naturals
    rows: Rows
    height: Float[Array, ""]  # the log density of the pass before, but for a constant
    gain: Float[Array, ""]
    passes: Int[Array, ""]


def maximised(
    model: Model, binding: Binding, flat: Sequence[str], schedule: Asked, restarts: int, key: np.ndarray
) -> list[Ended]:
    """The values that passes over the rows come to, one for each start; `flat` variables have no prior there.

    UnsupportedError for a model that is not a mixture of conjugate parts with known priors, and where values come to
    an edge of their domain in every start.
    """
    program = Program(model, list(binding.observed), "ep", binding.sizes, Options(schedule=checked_schedule(schedule)))
    with double_precision():
        machine, _ = program.machine_and_runner(binding, binding.inputs)
        _check(machine)
        own = machine.function("em", (*flat, PASSES), _run(machine, tuple(flat)))
        arrays = arrays_of(binding, machine.graph)
        keys = jax.random.split(jax.random.wrap_key_data(jnp.asarray(key)), restarts)
        found = [own(jax.random.key_data(one), np.asarray(i > 0), arrays) for i, one in enumerate(keys)]
    ended = [Ended({n: np.asarray(v) for n, v in values.items()}, int(passes)) for values, passes in found]
    sound = [one for one in ended if all(np.isfinite(value).all() for value in one.values.values())]
    if not sound:
        raise UnsupportedError(
            "map(method='em'): in every start values came to the edge of their domain, where the density has no bound "
            "or its largest value: a component that is left with one row has a variance of zero. Give scales a prior "
            "with no mass there, leave them out of flat=, or give restarts=."
        )
    return sound


def _check(machine: Machine) -> None:
    blocks = machine.ep_blocks.values()
    whole = all(isinstance(block, MixtureBlock) and not block.kept for block in blocks)
    if not blocks or not whole or machine.moving:
        raise UnsupportedError(
            "map(method='em') is for mixtures whose rows are independent and conjugate in each of their states, with "
            "known priors: a mean and its precision are so where the prior of the mean has a multiple of the "
            "precision, cv.gaussian(m0, precision=v0 * precision). Leave method= out: the climb takes any model."
        )


def _run(machine: Machine, flat: tuple[str, ...]) -> Any:
    """A function of the words of a key, of whether the start is random, and of data: the values and the passes."""

    def run(words: Array, random: Bool[Array, ""], data: Data) -> tuple[dict[str, Array], Int[Array, ""]]:
        key = jax.random.wrap_key_data(jnp.asarray(words))
        data = machine.completed(data)
        fixed, scope = prepare(machine, data, key), machine.scope(data)
        prior = _without(machine, fixed.constant, flat)
        rows = _begun(machine, fixed.prepared, fixed.constant, scope, random, jax.random.fold_in(key, 1))
        naturals = machine.with_messages(fixed, rows, prior)

        def goes_on(now: _Now) -> Bool[Array, ""]:
            still = (now.passes > 0) & (now.gain <= STILL * (1.0 + jnp.abs(now.height)))
            return (now.passes < PASSES) & ~still

        def again(now: _Now) -> _Now:
            naturals, rows = dict(now.naturals), dict(now.rows)
            for number, block in _blocks(machine).items():
                flat_naturals = machine.flat(block, naturals)
                flat_naturals, rows[number] = _passed(block, fixed.prepared[number], flat_naturals, rows[number])
                naturals |= {name: machine.shaped(name, own) for name, own in flat_naturals.items()}
            height = _height(machine, fixed.prepared, prior, naturals, rows)
            return _Now(naturals, rows, height, jnp.abs(height - now.height), now.passes + 1)

        first = _Now(naturals, rows, jnp.asarray(-jnp.inf), jnp.asarray(jnp.inf), jnp.zeros((), int))
        end = jax.lax.while_loop(goes_on, again, first)
        return _values(machine, end.naturals), end.passes

    return run


def _blocks(machine: Machine) -> dict[str, MixtureBlock]:
    return {number: block for number, block in machine.ep_blocks.items() if isinstance(block, MixtureBlock)}


def _without(machine: Machine, constant: Naturals, flat: tuple[str, ...]) -> Naturals:
    """The naturals of the priors, zero where they are left out: of a pair where either is."""
    members = {pair.variable.name: {pair.mean.name, pair.precision.name} for pair in machine.graph.pairs}
    left = {name: not {name, *members.get(name, ())} & set(flat) for name in constant}
    return {name: tuple(part * left[name] for part in own) for name, own in constant.items()}


def _begun(
    machine: Machine,
    prepared: Mapping[str, Prepared],
    constant: Naturals,
    scope: Scope,
    random: Bool[Array, ""],
    key: Key,
) -> Rows:
    """What rows add first: as components begin under EP, or, where states differ, as the priors predict or random.

    Components that begin as one row each may begin as equal rows, so there is some chance in what all rows add.
    """
    found = {}
    for i, (number, block) in enumerate(_blocks(machine).items()):
        own, naturals = prepared[number], machine.flat(block, constant)
        first = mixture.towards if own.seeds is None else mixture.begin
        told = first(block, own, naturals, scope)
        batches, width = jax.tree.leaves(told)[0].shape[:2]
        states = {**own.scanned, **own.fixed}["log"].shape[-1]
        chances = jax.random.dirichlet(jax.random.fold_in(key, i), jnp.ones(states), (batches * width,))
        chances = chances.reshape((batches, width, states))
        by_chance = mixture.belonging(block, own, chances, scope)
        share = jnp.where(random, 1.0, 0.0) if own.seeds is None else CHANCE
        found[number] = jax.tree.map(lambda a, b, share=share: share * a + (1.0 - share) * b, by_chance, told)
    return found


def _passed(block: MixtureBlock, prepared: Prepared, naturals: Naturals, rows: Messages) -> tuple[Naturals, Messages]:
    """One pass: the batches take turns."""

    def batch(naturals: Naturals, scanned: tuple[Local, Messages]) -> tuple[Naturals, Messages]:
        data, old = scanned
        local = {**prepared.fixed, **data}
        chances = jax.nn.softmax(_scores(block, local, naturals), axis=-1)
        new = mixture.shares(block, local, chances, jax.tree.map(jnp.zeros_like, old))
        change = jax.tree.map(jnp.subtract, new, old)
        return mixture.added(block, local, naturals, change), new

    return jax.lax.scan(batch, naturals, (prepared.scanned, rows))


def _scores(block: MixtureBlock, local: Local, naturals: Naturals) -> States:
    """log p(row, state) at the values of largest density."""
    scores = local["log"]
    for number, parent in enumerate(block.parents):
        belief = tuple(own[local[f"position{number}"]] for own in naturals[parent.variable.name])
        stats = _sharp(family_of(parent.variable), belief).expected_stats()
        for natural, stat in zip(local[f"natural{number}"], stats, strict=True):
            product = natural * stat
            scores = scores + jnp.sum(product, axis=(1, *range(3, product.ndim)))
    return scores


def _sharp(family: type[ExponentialFamily], naturals: Parts) -> ExponentialFamily:
    return family.from_naturals(tuple(SHARP * part for part in naturals))


def _height(
    machine: Machine, prepared: Mapping[str, Prepared], prior: Naturals, naturals: Naturals, rows: Rows
) -> Float[Array, ""]:
    """The log density, but for a constant."""
    total = jnp.zeros(())
    for number, block in _blocks(machine).items():
        local, _ = mixture.all_rows(prepared[number], rows[number])
        by_row = jax.scipy.special.logsumexp(_scores(block, local, machine.flat(block, naturals)), axis=-1)
        total = total + jnp.sum(jnp.where(local["present"], by_row, 0.0) if "present" in local else by_row)
    for name, own in prior.items():
        stats = _sharp(family_of(machine.graph.latent[name]), naturals[name]).expected_stats()
        total = total + sum(jnp.sum(a * b) for a, b in zip(own, stats, strict=True))
    return total


def _values(machine: Machine, naturals: Naturals) -> dict[str, Array]:
    """The values of largest density of all variables."""
    pairs = {pair.variable.name: pair for pair in machine.graph.pairs}
    found: dict[str, Any] = {}
    for name, own in naturals.items():
        belief = _sharp(family_of(machine.graph.latent[name]), own)
        if isinstance(belief, PairFamily):
            found[pairs[name].mean.name] = belief.of_mean().stand_in.mean()
            found[pairs[name].precision.name] = belief.precision().mean()
        else:
            found[name] = belief.mean()
    return found

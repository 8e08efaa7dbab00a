"""Chains of binary features at a ladder of powers of the likelihood, which exchange their states.

Where a chain at the posterior keeps one shape in two features, one at a low power goes on, and hands on what it finds.
The lowest power is zero: a draw of the prior each time, so that means along the ladder tell the log evidence. The
estimators of it and the choice of the ladder are those of all models of the package. Source: earl2005parallel,
syed2022nonreversible.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ....engine.mcmc.bar import progress_bar
from ....engine.mcmc.keys import generator
from ....engine.support import machine_code
from ....engine.support.user_numbers import table
from ....engine.support.warn import warn
from ....engine.tempering.estimators import Estimate, estimates
from ....engine.tempering.ladder import equalised, first_ladder, gap_of, rejections, rungs_for
from ....factors.arrays import Array, Key
from ....factors.errors import ModelError, UnsupportedError
from ....factors.switches import double_precision
from ..likelihoods.contract import Likelihood, Rows, totals
from ..likelihoods.raised import raised
from ..prior import BetaBernoulli, IndianBuffet
from ..sample import sample_finite, sample_restaurant
from .law import Law
from .sampler import Sampler, bucket
from .state import State
from .sweeps import Sweep
from .uncollapsed import uncollapsed

PILOT = 8  # rungs of the first ladder, and the fewest
FIRST = 200  # draws of the prior that the first ladder is made from


@dataclasses.dataclass(frozen=True, eq=False)
class Tempered:
    """What chains along the ladder found.

    Attributes:
        states: of the chain at the posterior, one for each sweep that counts, of all copies in turn.
        ladder: (rungs,) powers of the likelihood, from 0 to 1.
        log_likelihood: (sweeps, copies, rungs) of the states on each rung.
        rejected: (rungs - 1,) how often exchanges of neighbours are.
    """

    states: list[State]
    ladder: np.ndarray
    log_likelihood: np.ndarray
    rejected: np.ndarray

    @property
    def estimates(self) -> dict[str, Estimate]:
        """The log evidence with its standard error, by "bridge", "stepping stone" and "thermodynamic integration"."""
        return estimates(self.log_likelihood, self.ladder)

    @property
    def log_evidence(self) -> float:
        """By the estimator of least variance, the bridge."""
        return self.estimates["bridge"].value


class Ladder(NamedTuple):
    """The chains of one copy.

    Attributes:
        powers: (rungs,) from 0 to 1.
        states: of the rungs.
        log_likelihood: (rungs,) of their data.
    """

    powers: np.ndarray
    states: list[State]
    log_likelihood: np.ndarray


class Rungs:
    """Transitions of one copy: a sweep on each rung, and exchanges."""

    def __init__(self, rows: Rows, likelihood: Likelihood, law: Law, sweep: Sweep) -> None:
        if law.discount:
            raise UnsupportedError(f"Tempered chains are of laws without a discount; found {law.discount}.")
        self.likelihood: Any = raised(likelihood)
        self.sampler = Sampler(rows, self.likelihood, law, sweep, ())
        self.law = law
        self._prior, self._density = _of_prior(self.likelihood, law), _whole(self.likelihood)

    def drawn(self, key: Key) -> State:
        """From the prior, at the power one."""
        keys, rows = jax.random.split(key, 3), self.sampler.rows
        with double_precision():
            mass, concentration = (float(each) for each in self.law.draw(keys[0]))
        if self.law.features is None:
            matrix = sample_restaurant(IndianBuffet(mass, concentration), len(rows.values), keys[1])
        else:
            matrix = sample_finite(BetaBernoulli(mass, self.law.features), len(rows.values), keys[1]).matrix
        places = bucket(matrix.shape[1]) if self.law.features is None else self.law.features
        active = np.pad(matrix, [(0, 0), (0, places - matrix.shape[1])])
        return self._prior(keys[2], rows, active, np.asarray(mass), np.asarray(concentration))

    def log_likelihood(self, state: State) -> float:
        """Of the data given the state, at the power one."""
        return float(self._density(self.sampler.rows, state))

    def start(self, key: Key, powers: np.ndarray) -> Ladder:
        """Draws of the prior."""
        states = [self.drawn(each) for each in jax.random.split(key, len(powers))]
        logs = np.array([self.log_likelihood(state) for state in states])
        return self.moved(Ladder(powers, states, logs), powers)

    def moved(self, now: Ladder, powers: np.ndarray) -> Ladder:
        """The same states, at other powers; the lowest has no use for one."""
        with double_precision():
            states = [
                state._replace(numbers=jax.tree.map(np.asarray, self.likelihood.at_power(state.numbers, power or 1.0)))
                for state, power in zip(now.states, powers, strict=True)
            ]
        return Ladder(powers, states, now.log_likelihood)

    def step(self, key: Key, now: Ladder, number: int) -> Ladder:
        """A sweep on each rung, then exchanges of every other pair."""
        keys = jax.random.split(key, len(now.powers) + 1)
        states = [self.drawn(keys[0])]
        states += [self.sampler.step(own, state) for own, state in zip(keys[1:-1], now.states[1:], strict=True)]
        logs = np.array([self.log_likelihood(state) for state in states])
        order = exchanged(generator(keys[-1]), logs, now.powers, number)
        return self.moved(Ladder(now.powers, [states[i] for i in order], logs[order]), now.powers)


def exchanged(random: np.random.Generator, logs: np.ndarray, powers: np.ndarray, number: int) -> np.ndarray:
    """(rungs,) from which rung each gets its state: even pairs and odd ones in turn."""
    order, u = np.arange(len(powers)), random.random(len(powers))
    for i in range(number % 2, len(powers) - 1, 2):
        if np.log(u[i]) < (powers[i + 1] - powers[i]) * (logs[i] - logs[i + 1]):
            order[[i, i + 1]] = i + 1, i
    return order


def temper(
    data: Any,
    key: Key,
    sweeps: int,
    likelihood: Likelihood,
    law: Law | None = None,
    *,
    sweep: Sweep = uncollapsed,
    warmup: int = 100,
    rungs: int | None = None,
    copies: int = 2,
    ladder: Sequence[float] | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
) -> Tempered:
    """Chains at powers of the likelihood from 0 to 1, which exchange their states, and the log evidence.

    `p_b(Z, A, numbers) = p(Z, A, numbers) p(X | Z, A, numbers)^b / Z_b`; neighbours exchange their states with the
    probability `exp((b' - b) (L - L'))`, at most 1, of log likelihoods L and L'.

    Args:
        data: (rows, dimensions) numbers, NaN where missing.
        key: a key of `jax.random`.
        sweeps: that count, of each chain.
        likelihood: one that `raised` takes.
        law: the prior of the matrix; by default the Indian buffet process, its mass learned under Gamma(1, 1).
        sweep: one transition, of `cavity.models.buffet.samplers`.
        warmup: sweeps before, half of them on the last ladder; below 8 that is the first one, chosen by draws of the
            prior alone.
        rungs: how many powers, by default as many as the rejections of exchanges ask for, 8 to 80. After an eighth, a
            quarter and half of the warmup they are set so that all pairs exchange equally often.
        copies: independent ladders of chains.
        ladder: the powers, increasing from 0 to 1, instead.
        progress: as in `cavity.engine.mcmc.run.run`.

    Returns:
        States at the posterior, the ladder, and the log evidence.

    Raises:
        ModelError: a count out of range, or a ladder that is none. DataError: entries that the likelihood does not
            give, a row or column without any. UnsupportedError: a likelihood whose powers are not known, a discount.
        A `CavityWarning` where two neighbours have hardly a state in common.

    Source: earl2005parallel, syed2022nonreversible.
    """
    raised(likelihood)
    _check(sweeps, warmup, rungs, copies, ladder)
    values = table(data, "row", "dimension")
    seen = ~np.isnan(values)
    likelihood.check(values, seen)
    chains = Rungs(Rows(np.where(seen, values, 0.0), seen), likelihood, Law() if law is None else law, sweep)
    keys = jax.random.split(key, 2 + copies)
    powers = np.asarray(ladder, float) if ladder is not None else _first(chains, keys[0], rungs or PILOT)
    now = [chains.start(own, powers) for own in keys[2:]]
    with progress_bar(progress, "sweep") as show:
        found = _run(chains, keys[1], now, (warmup, sweeps), (ladder is None, rungs is None), show)
    gap = gap_of(found.rejected, found.ladder)
    if gap is not None:
        warn(f"{gap} Leave ladder= and rungs= out, or give more of them, or a longer warmup=.")
    return found


def _run(
    chains: Rungs,
    key: Key,
    now: list[Ladder],
    numbers: tuple[int, int],
    adapts: tuple[bool, bool],
    show: Callable[[int, int], Any],
) -> Tempered:
    """So many sweeps of warmup and so many that count; `adapts`: the powers, and their number, in the warmup."""
    powers, total, since = now[0].powers, sum(numbers), 0
    rounds = {numbers[0] // part for part in (8, 4, 2)} if adapts[0] and numbers[0] >= 8 else set()
    states: list[State] = []
    logs: list[list[np.ndarray]] = []
    for i in range(total):
        own = jax.random.split(jax.random.fold_in(key, i), len(now))
        now = [chains.step(each, copy, i) for each, copy in zip(own, now, strict=True)]
        logs.append([copy.log_likelihood for copy in now])
        if i + 1 in rounds:
            rejected = rejections(np.array(logs[(since + i) // 2 :]), powers)  # of the later half on this ladder
            count = rungs_for(rejected, PILOT) if adapts[1] else len(powers)
            powers = equalised(powers, rejected, count)
            now, since = [chains.moved(_nearest(copy, powers), powers) for copy in now], i + 1
        if i >= numbers[0]:
            states += [copy.states[-1] for copy in now]
        show(i + 1, total)
    found = np.array(logs[numbers[0] :])
    return Tempered(states, powers, found, rejections(found, powers))


def _nearest(now: Ladder, powers: np.ndarray) -> Ladder:
    """For each of other powers the state of the nearest rung."""
    order = np.abs(now.powers[None, :] - powers[:, None]).argmin(axis=1)
    return Ladder(now.powers[order], [now.states[i] for i in order], now.log_likelihood[order])


def _check(sweeps: int, warmup: int, rungs: int | None, copies: int, ladder: Sequence[float] | None) -> None:
    for name, value, least in (
        ("sweeps", sweeps, 2),
        ("warmup", warmup, 0),
        ("rungs", PILOT if rungs is None else rungs, 2),
        ("copies", copies, 1),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ModelError(f"temper({name}=) is a whole number of at least {least}; found {value!r}.")
    if ladder is not None:
        powers = np.asarray(ladder, float)
        if powers.ndim != 1 or len(powers) < 2 or powers[0] != 0.0 or powers[-1] != 1.0 or (np.diff(powers) <= 0).any():
            raise ModelError(f"temper(ladder=) increases from 0 to 1; found {ladder!r}.")


def _first(chains: Rungs, key: Key, rungs: int) -> np.ndarray:
    """Powers from how much the log likelihood varies under the prior."""
    return first_ladder(
        np.array([chains.log_likelihood(chains.drawn(own)) for own in jax.random.split(key, FIRST)]), rungs
    )


def _of_prior(likelihood: Any, law: Law) -> machine_code.Kernel:
    """Numbers, values and weights of a matrix."""

    def one(key: Key, rows: Rows, active: Array, mass: Array, concentration: Array) -> State:
        keys, places = jax.random.split(key, 3), active.shape[1]
        numbers = likelihood.draw_numbers(keys[0])
        values = likelihood.draw_values(keys[1], numbers, places, rows.values.shape[1])
        used = jnp.any(active, axis=0)[:, None] if law.features is None else True
        return State(active, jnp.where(used, values, 0.0), jnp.zeros((0, 0)), numbers, mass, concentration)

    return machine_code.Kernel(one)


def _whole(likelihood: Any) -> machine_code.Kernel:
    """The log likelihood of what is seen."""

    def one(rows: Rows, state: State) -> Array:
        entries = likelihood.log_whole(rows.values, totals(state.point), state.numbers)
        return jnp.sum(entries, where=rows.seen)

    return machine_code.Kernel(one)

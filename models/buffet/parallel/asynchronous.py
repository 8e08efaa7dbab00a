"""Shards that do not wait for each other: each goes on with what it was last told by its neighbours in a tree.

After a turn a shard tells each neighbour the sum of its own sums and of what its other neighbours told it, so that each
shard's rows count once in what any shard knows, though what is known of far ones is old. The root draws the precisions
and the prior's numbers, which go down the tree. No shard knows all rows at one time: there is no moment
at which a feature is gone for all, so features have names, and one that is gone here may be kept elsewhere.

From nothing all shards would find the same features at once, each its own, and many chains never put them together. So
births begin at the root, and a few turns later a step further down the tree; until then a shard's rows take up what
others found. Which turn it is does not depend on what was drawn, and each kind of turn leaves the same law as it is.

With a window all shards do so many seconds of turns, then wait, and all tell all at once: nobody waits for long, and
what is known is of one time. With a window of no length that is the synchronous sampler.

Turns are jobs of a pool: processes, actors of Ray, or workers with a simulated clock. Source: doshivelez2009large.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ....compiler.portable import packed
from ....engine.cluster.workers import RETRIES, Ended, Pool, Workers, check_workers, pool_of
from ....engine.files.archive import check_folder
from ....engine.mcmc.run import check_plan
from ....factors.arrays import Array, Key
from ....factors.errors import DataError, LostError, ModelError, UnsupportedError
from ....factors.switches import double_precision
from ..likelihoods.linear_gaussian import LinearGaussian, Sums
from ..samplers.law import Law
from . import saved
from .clocked import Clocked, Costs
from .shards import Shards, shards_of
from .site import Known, Plan, Site, Turn, renewed, turn
from .telling import Told, together, told_of
from .tree import depth, neighbours, parent, side

ROWS = ("values", "full")  # what a shard has of each entry
LATER = 3  # turns after its parent a shard begins to have births, in a run from nothing


@dataclasses.dataclass(frozen=True, eq=False)
class TurnsOfShards:
    """What the root knew turn after turn, and what the shards were in the end.

    Attributes:
        draws: by name, (draws,) each: number_of_features, mass, concentration, noise_precision, value_precision, and
            `clock`, the seconds when that was known, simulated or not.
        sites: the shards after their last turns.
        known: what the root drew last.
        turns: (shards,) how many each has done.
        seconds: all that the run took, simulated or not.
        lost: turns that were lost with their workers and done again.
    """

    draws: dict[str, np.ndarray]
    sites: tuple[Site, ...]
    known: Known
    turns: np.ndarray
    seconds: float
    lost: int

    def __getitem__(self, name: str) -> np.ndarray:
        return self.draws[name]

    @property
    def score(self) -> float:
        """Mean log density of the entries held out, of the mean of the densities over turns; NaN where there are none.

        Each shard predicts its own, by its own draws of features and values.
        """
        logs = [(site.log_held - np.log(max(site.kept, 1)))[site.held] for site in self.sites]
        every = np.concatenate(logs)
        return float(every.mean()) if every.size else np.nan


def sample_in_turns(
    parts: Sequence[Any],
    key: Key,
    draws: int,
    likelihood: LinearGaussian | None = None,
    law: Law | None = None,
    *,
    inner: int = 1,
    window: float | None = None,
    warmup: int = 0,
    held_out: Sequence[Any] | None = None,
    start: TurnsOfShards | None = None,
    workers: Workers = None,
    costs: Costs | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = 60.0,
) -> TurnsOfShards:
    """Draws of features of rows in shards that do not wait for each other: approximate, as what shards know is old.

    With workers that are processes the draws depend on which is faster; with `costs` on the key and these alone.

    Args:
        parts: as of `shards_of`, numbers about zero: arrays or paths.
        key: a key of `jax.random`.
        draws: turns of the root, shard 0, that are kept; or rounds of all shards where there is a window.
        likelihood: `LinearGaussian`, by default with both precisions learned.
        law: the Indian buffet process; by default its mass is learned under Gamma(1, 1).
        inner: sweeps of a turn.
        window: None, and nobody waits; or seconds during which all do turns before all tell all, 0 for one turn each.
        warmup: turns of the root before the first draw.
        held_out: for each shard (rows, dimensions) booleans, entries to predict and not to see.
        start: a run of the same rows to go on from, in as many shards or others; its predictions do not count.
        workers: processes or what makes a pool, as of `program.map`; by default one for each core.
        costs: of workers with a simulated clock, one for each shard, in place of `workers`.
        checkpoint: a file that is written now and then, and in the end, and that a run of the same shards, model and
            key goes on from; `draws` may be more. With `window=0.0` the draws are those of a run that was not stopped;
            else turns that were under way are begun again.
        every: seconds between two writings, at least.

    Returns:
        What the root knew, and the shards.

    Raises:
        ModelError: an argument out of range.
        DataError: bad shards; a checkpoint of another run.
        UnsupportedError: another likelihood, a finite prior, or several processes of `jax.distributed`.
        LostError: a turn that was lost time and again.

    Source: doshivelez2009large.
    """
    _check(likelihood, law, draws, warmup, inner, window)
    _check_run(workers, costs, draws, checkpoint, every)
    plan, sites = _planned(parts, held_out, start, likelihood, law, inner)
    pool = pool_of(workers, len(sites)) if costs is None else Clocked(len(sites), costs)
    known = _first(plan, sites) if start is None else start.known
    office = _Office(plan, sites, known, key, pool, draws, warmup, window)
    try:
        return office.run(None if checkpoint is None else _Notebook(office, checkpoint, every))
    finally:
        pool.close()


def _check(likelihood: Any, law: Law | None, draws: int, warmup: int, inner: int, window: float | None) -> None:
    for name, value, least in (("draws", draws, 1), ("warmup", warmup, 0), ("inner", inner, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ModelError(f"{name}= is a whole number of at least {least}; found {value!r}.")
    if window is not None and not window >= 0.0:
        raise ModelError(f"window= is None, or seconds of at least 0; found {window!r}.")
    if likelihood is not None and not isinstance(likelihood, LinearGaussian):
        raise UnsupportedError(f"Shards tell sums that LinearGaussian has; found {type(likelihood).__name__}.")
    if law is not None and law.features is not None:
        raise UnsupportedError(f"The finite prior, of {law.features} features, is for sample_in_shards.")
    if jax.process_count() > 1:
        raise UnsupportedError("Turns are given out by one process. Call it in that one, with workers=.")


def _check_run(workers: Workers, costs: Costs | None, draws: int, checkpoint: Any, every: float) -> None:
    if costs is not None and workers is not None:
        raise ModelError("costs= makes workers with a simulated clock. Give it, or workers=, not both.")
    check_workers(workers)
    check_folder(checkpoint)
    check_plan(draws, 1, every=every)


def _planned(
    parts: Sequence[Any],
    held_out: Sequence[Any] | None,
    start: TurnsOfShards | None,
    likelihood: LinearGaussian | None,
    law: Law | None,
    inner: int,
) -> tuple[Plan, list[Site]]:
    """The model, and the shards as they begin."""
    sites = _sites(parts, held_out)
    if start is not None:
        sites = _after(sites, start)
    gaussian, law = LinearGaussian() if likelihood is None else likelihood, Law() if law is None else law
    return Plan(gaussian, law, inner, sum(site.count for site in sites), len(sites)), sites


def _sites(parts: Sequence[Any], held_out: Sequence[Any] | None) -> list[Site]:
    shards = shards_of(parts)
    held = np.zeros(shards.seen.shape, bool)
    for number, own in enumerate([] if held_out is None else held_out):
        shape = (int(shards.counts[number]), shards.values.shape[2])
        found = np.asarray(own)
        if found.dtype != bool or found.shape != shape:
            wrong = f"found {found.dtype} of shape {found.shape}"
            raise DataError(f"held_out= of shard {number} holds booleans of shape {shape}; {wrong}.")
        held[number, : shape[0]] = found
    held &= shards.seen
    return [_site(shards, held[number], number) for number in range(shards.every)]


def _site(shards: Shards, held: np.ndarray, number: int) -> Site:
    values, seen = shards.values[number], shards.seen[number] & ~held
    none, log_held = np.zeros((len(values), 0), bool), np.full(values.shape, -np.inf)
    full = np.where(seen, values, 0.0)
    return Site(
        number, values, seen, held, int(shards.counts[number]), none, np.zeros(0, int), full, 0, log_held, 0
    )  # fmt: skip


def _after(sites: Sequence[Site], start: TurnsOfShards) -> list[Site]:
    """The rows as they were at the end of a run, however they were dealt to its shards."""
    values, full = (np.concatenate([getattr(each, name)[: each.count] for each in start.sites]) for name in ROWS)
    now = np.concatenate([site.values[: site.count] for site in sites])
    if not np.array_equal(values, now):
        raise DataError(
            f"start= is of other shards: {len(values)} rows that are not the {len(now)} of these, in their order. Give "
            "the run's own rows, in as many shards or others."
        )
    names = np.unique(np.concatenate([each.names for each in start.sites]))
    active = np.zeros((len(values), len(names)), bool)
    ends = np.cumsum([each.count for each in start.sites])
    for each, end in zip(start.sites, ends, strict=True):
        active[end - each.count : end, np.searchsorted(names, each.names)] = each.active[: each.count]
    made = int(names.max(initial=-1)) // len(sites) + 1  # so that no name is given again
    found, first = [], 0
    for site in sites:
        own = np.zeros((len(site.values), len(names)), bool)
        own[: site.count], filled = active[first : first + site.count], site.full.copy()
        filled[: site.count] = full[first : first + site.count]
        used, first = own.any(axis=0), first + site.count
        filled = np.where(site.seen, site.values, filled)
        found.append(site._replace(active=own[:, used], names=names[used], made=made, full=filled))
    return found


def _first(plan: Plan, sites: Sequence[Site]) -> Known:
    """Precisions of the size of the data."""
    square = sum(float(np.sum(site.full**2)) for site in sites) / max(sum(int(site.seen.sum()) for site in sites), 1)
    with double_precision():
        mass, concentration = (np.asarray(each) for each in plan.law.first())
        numbers: dict[str, Array] = {
            name: np.asarray(value) for name, value in plan.gaussian.numbers_of_size(square).items()
        }
    return Known(numbers, mass, concentration)


def _told(site: Site) -> Told:
    z = site.active.astype(float)
    return told_of(site.names, Sums(z.T @ z, z.T @ site.full), float(np.sum(site.full**2)))


class _Office:
    """Gives out turns and passes on what shards tell.

    `mail[p][q]` is the last that q told p of all rows on its side of the tree. What is on its way has a time to arrive.
    """

    def __init__(
        self, plan: Plan, sites: list[Site], known: Known, key: Key, pool: Pool | Clocked, draws: int, warmup: int,
        window: float | None,
    ) -> None:  # fmt: skip
        self.plan, self.sites, self.key, self.pool, self.window = plan, sites, key, pool, window
        self.draws, self.warmup, self.dimensions = draws, warmup, sites[0].values.shape[1]
        self.known = [known for _ in sites]
        self.told = [_told(site) for site in sites]
        self.mail = [{q: self.of(side(p, q, plan.every)) for q in neighbours(p, plan.every)} for p in range(plan.every)]
        self.others = [self.of([q for q in range(plan.every) if q != p]) for p in range(plan.every)]
        self.coming: list[deque[tuple[float, int, Told, Known]]] = [deque() for _ in sites]
        self.turns, self.rounds, self.lost = np.zeros(plan.every, int), 0, 0
        self.records: list[dict[str, Any]] = []
        later = 0 if any(site.names.size for site in sites) else LATER
        self.births_from = [later * depth(shard + 1) for shard in range(plan.every)]  # the turn of the first ones
        self.waiting: deque[int] = deque()
        self.jobs: dict[int, tuple[tuple[Any, ...], int]] = {}  # under way, and how often they were lost
        self.began = time.perf_counter()

    def of(self, shards: Sequence[int]) -> Told:
        """What these shards told, together."""
        return together([self.told[shard] for shard in shards], self.dimensions)

    def now(self) -> float:
        """Seconds since the beginning, simulated or not."""
        return self.pool.now if isinstance(self.pool, Clocked) else time.perf_counter() - self.began

    def run(self, notebook: _Notebook | None = None) -> TurnsOfShards:
        """Turns until the root has all draws."""
        self.waiting.extend(range(self.plan.every))
        if notebook is not None:
            notebook.open()
        end_of_window = 0.0 if self.window is None else self.now() + self.window
        while len(self.records) < self.draws:
            while self.waiting and len(self.jobs) < self.pool.workers:
                self.start(self.waiting.popleft())
            shard = self.ended(self.pool.wait())
            if shard is None:
                continue
            if self.window is None:
                self.tell(shard)
                self.waiting.append(shard)
            elif self.now() < end_of_window:
                self.waiting.append(shard)
            elif not self.jobs and not self.waiting:
                self.tell_all()
                self.waiting.extend(range(self.plan.every))
                end_of_window = self.now() + self.window
            if notebook is not None:
                notebook.write(last=len(self.records) >= self.draws)
        records = self.records[: self.draws]
        draws = {name: np.array([record[name] for record in records]) for name in records[0]}
        return TurnsOfShards(draws, tuple(self.sites), self.known[0], self.turns, self.now(), self.lost)

    def start(self, shard: int) -> None:
        """Gives out the next turn of a shard, given all that has arrived."""
        number = int(self.turns[shard]) * self.plan.every + shard
        if self.window is None:
            self.read(shard)
        with double_precision():
            words = np.asarray(jax.random.key_data(jax.random.fold_in(jax.random.fold_in(self.key, number), 0)))
        keep = self.rounds >= self.warmup
        plan = self.plan._replace(births=bool(self.turns[shard] >= self.births_from[shard]))
        given = plan, self.sites[shard], self.others[shard], self.known[shard], words, keep
        self.give_out(number, given, 0)

    def give_out(self, number: int, given: tuple[Any, ...], times: int) -> None:
        """A turn that was lost so many times."""
        self.jobs[number] = given, times
        if isinstance(self.pool, Clocked):
            self.pool.take(number, given)
        else:
            self.pool.submit(number, packed((turn, given), "A turn of a shard"))

    def read(self, shard: int) -> None:
        """What has arrived by now, the newest of each neighbour."""
        coming, above = self.coming[shard], parent(shard)
        for message in [each for each in coming if each[0] <= self.now()]:
            _, sender, told, known = message
            coming.remove(message)
            self.mail[shard][sender] = told
            if sender == above:
                self.known[shard] = known
        self.others[shard] = together(list(self.mail[shard].values()), self.dimensions)

    def ended(self, ended: Ended) -> int | None:
        """The shard whose turn ended, None where it was lost and is given out again as it was."""
        given, times = self.jobs.pop(ended.number)
        if ended.problem is not None:
            raise ended.problem
        if ended.lost:
            self.lost += 1
            if times >= RETRIES:
                raise LostError(
                    f"A turn of shard {ended.number % self.plan.every} was lost {times + 1} times with its worker, the "
                    f"last time as {ended.lost}. Give workers more memory, or make shards smaller."
                )
            self.give_out(ended.number, given, times + 1)
            return None
        shard, found = ended.number % self.plan.every, ended.answer
        assert isinstance(found, Turn)
        self.sites[shard], self.told[shard] = found.site, found.told
        self.turns[shard] += 1
        return shard

    def tell(self, shard: int) -> None:
        """After a turn of a shard: the root draws what it knows; neighbours are told."""
        if parent(shard) is None:
            self.read(shard)
            self.draw(together([self.told[shard], self.others[shard]], self.dimensions))
        for neighbour in self.mail[shard]:
            rest = [told for sender, told in self.mail[shard].items() if sender != neighbour]
            message = together([self.told[shard], *rest], self.dimensions)
            late = self.pool.costs.message(message.size) if isinstance(self.pool, Clocked) else 0.0
            self.coming[neighbour].append((self.now() + late, shard, message, self.known[shard]))

    def tell_all(self) -> None:
        """All at once: what one knows of the others is all but its own."""
        shards = range(self.plan.every)
        every = self.of(shards)
        self.draw(every)
        self.known = [self.known[0]] * self.plan.every
        self.others = [self.of([other for other in shards if other != shard]) for shard in shards]
        if isinstance(self.pool, Clocked):
            self.pool.now += self.pool.costs.along_the_tree(every.size, self.plan.every)

    def draw(self, told: Told) -> None:
        """What the root knows next, and a draw of it after the warmup."""
        number = self.rounds * self.plan.every
        with double_precision():
            words = np.asarray(jax.random.key_data(jax.random.fold_in(jax.random.fold_in(self.key, number), 1)))
        known = self.known[0] = renewed(self.plan, told, self.known[0], words)
        self.rounds += 1
        if self.rounds > self.warmup:
            own = {name: float(np.asarray(value)) for name, value in known.numbers.items()}
            own |= {"mass": float(np.asarray(known.mass)), "concentration": float(np.asarray(known.concentration))}
            self.records.append(own | {"number_of_features": len(told.names), "clock": self.now()})


class _Notebook:
    """The file of a run."""

    def __init__(self, office: _Office, path: str | os.PathLike[str], every: float) -> None:
        self.office, self.path, self.every = office, path, every
        identity = office.plan, office.sites, office.key, office.warmup, office.window
        self.identity, self.written = saved.identity_of(*identity), time.monotonic()

    def open(self) -> None:
        """The run as it was, where there is a file."""
        office = self.office
        if not os.path.exists(self.path):
            return
        found = saved.read(self.path, self.identity, self._now())
        office.sites, office.known, office.told, office.others = found.sites, found.known, found.told, found.others
        office.mail, office.turns, office.rounds, office.lost = found.mail, found.turns, found.rounds, found.lost
        number = max(found.rounds - office.warmup, 0)
        office.records = [{name: each[i] for name, each in found.records.items()} for i in range(number)]
        office.waiting = deque(found.waiting)
        office.began -= found.clock
        if isinstance(office.pool, Clocked):
            office.pool.now = found.clock

    def write(self, last: bool) -> None:
        """After a turn, if it is time; with a window only after all have told all."""
        office, due = self.office, last or time.monotonic() - self.written >= self.every
        if due and (office.window is None or not office.jobs):
            saved.write(self.path, self.identity, self._now())
            self.written = time.monotonic()

    def _now(self) -> saved.Saved:
        """What has arrived, and what is under way as what goes on first."""
        office = self.office
        mail, known = [dict(box) for box in office.mail], list(office.known)
        for shard, messages in enumerate(office.coming):
            for _, sender, told, above in messages:
                mail[shard][sender] = told
                known[shard] = above if sender == parent(shard) else known[shard]
        names = office.records[0] if office.records else {}
        records = {name: np.array([record[name] for record in office.records]) for name in names}
        waiting = [*(number % office.plan.every for number in office.jobs), *office.waiting]
        several = office.sites, known, office.told, office.others, mail, office.turns, records, waiting
        return saved.Saved(*several, office.rounds, office.lost, office.now())

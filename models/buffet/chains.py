"""Draws of which rows have which features, with any sampler and any likelihood; what all draws say together."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from ...engine.cluster.workers import Workers
from ...engine.mcmc.apart import run_apart
from ...engine.mcmc.kernel import Kernel, Totals
from ...engine.mcmc.run import Chains, run
from ...engine.support.user_numbers import table
from ...factors.arrays import Array, Key
from ...factors.errors import DataError, ModelError, UnsupportedError
from ...factors.switches import double_precision
from .likelihoods.contract import Likelihood, Numbers, Rows
from .samplers.law import Law
from .samplers.sampler import Sampler, Start
from .samplers.state import State
from .samplers.sweeps import OtherLaw, Sweep, name_of
from .samplers.uncollapsed import uncollapsed

BULKY = ("active", "values", "weights")  # what a draw has that is not one number


class Draw(NamedTuple):
    """One draw without padding.

    Attributes:
        active: (rows, K) booleans.
        values: (K, dimensions) of features.
        numbers: of the likelihood.
        mass, concentration: of the prior.
        weights: (rows, K) of features where rows have such, under `CountLaw` how many times; else None.
    """

    active: np.ndarray
    values: np.ndarray
    numbers: Numbers
    mass: float
    concentration: float
    weights: np.ndarray | None = None


class HeldOut(NamedTuple):
    """How well entries that were held out are predicted; draws are of the rows' features, values and numbers.

    Attributes:
        row, dimension: (entries,) which they are.
        log_density: (entries,) of the mean over draws of the densities, in nats.
        mean: (entries,) predictions, the posterior means.
    """

    row: np.ndarray
    dimension: np.ndarray
    log_density: np.ndarray
    mean: np.ndarray

    @property
    def score(self) -> float:
        """Mean of `log_density` over the entries."""
        return float(self.log_density.mean())


@dataclasses.dataclass(frozen=True, eq=False)
class FeatureChains:
    """Draws of features and what is known of them.

    Attributes:
        chains: draws by name, (chains, draws, ...) each: number_of_features, mass, concentration, log_likelihood (of
            what was observed), the numbers of the likelihood; unless only summaries were kept also active (rows, K) and
            values (K, dimensions), with zeros where a draw has fewer features than the largest one, weights (rows, K)
            where rows have such, and log_joint (of what was observed and of active, given values and numbers).
        sampler: what made them.
        data: (rows, dimensions) with the held-out entries, NaN where missing.
        held: (rows, dimensions) booleans, what was held out.
    """

    chains: Chains
    sampler: Sampler
    data: np.ndarray
    held: np.ndarray

    def __getitem__(self, name: str) -> np.ndarray:
        return self.chains[name]

    @property
    def shape(self) -> tuple[int, int]:
        """Chains and draws."""
        chains, draws = self["number_of_features"].shape
        return chains, draws

    def draw(self, chain: int, draw: int) -> Draw:
        """One draw.

        Raises:
            UnsupportedError: only summaries were kept.
        """
        if "active" not in self.chains.draws:
            raise UnsupportedError(
                "Features of single draws were not kept: sample_features ran with keep='summaries'. Run it with "
                "keep='all'."
            )
        active = self["active"][chain, draw]
        used = np.ones(active.shape[1], bool)
        if self.sampler.law.features is None:
            used = active.any(axis=0)
        numbers = {name: self[name][chain, draw] for name in self.chains.states[chain].numbers}
        mass, concentration = float(self["mass"][chain, draw]), float(self["concentration"][chain, draw])
        weights = self["weights"][chain, draw][:, used] if "weights" in self.chains.draws else None
        return Draw(active[:, used] > 0, self["values"][chain, draw][used], numbers, mass, concentration, weights)

    def draws(self, every: int = 1) -> Iterator[Draw]:
        """Draws of all chains, of each every so many."""
        chains, draws = self.shape
        return (self.draw(chain, draw) for chain in range(chains) for draw in range(0, draws, every))

    @functools.cached_property
    def number_of_features(self) -> np.ndarray:
        """Posterior probabilities of 0, 1, 2, ... features that some row has."""
        counts = self["number_of_features"].astype(int).ravel()
        return np.bincount(counts) / counts.size

    @functools.cached_property
    def reconstruction(self) -> np.ndarray:
        """(rows, dimensions) posterior means of entries, of those that are missing too."""
        total = sum(each["fit"] for each in self.chains.totals)
        return np.asarray(total) / sum(float(each["number"]) for each in self.chains.totals)

    @functools.cached_property
    def held_out(self) -> HeldOut | None:
        """Predictions of what was held out; None where nothing was."""
        if not self.held.any():
            return None
        row, dimension = np.nonzero(self.held)
        logs = np.logaddexp.reduce([each["held"] for each in self.chains.totals])
        number = sum(float(each["number"]) for each in self.chains.totals)
        return HeldOut(row, dimension, logs - np.log(number), self.reconstruction[row, dimension])

    def to_arviz(self) -> Any:
        """For ArviZ: number_of_features, mass, the log likelihood and the numbers of the likelihood."""
        kept = {name: draws for name, draws in self.chains.draws.items() if name not in BULKY}
        kept["number_of_features"] = kept["number_of_features"].astype(float)
        kept["log_likelihood_of_data"] = kept.pop("log_likelihood")
        return dataclasses.replace(self.chains, draws=kept).to_arviz()


def sample_features(
    data: Any,
    key: Key,
    draws: int,
    likelihood: Likelihood,
    law: Law | OtherLaw | None = None,
    *,
    sweep: Sweep | None = None,
    chains: int = 4,
    warmup: int = 0,
    thin: int = 1,
    held_out: Any = None,
    keep: str = "all",
    start: Start | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = 60.0,
    max_seconds: float | None = None,
    workers: Workers = None,
) -> FeatureChains:
    """Draws from the posterior of which rows have which features, of their values and of all that is learned.

    Draw i of chain c depends on the key, c and i alone, also where chains go on from a checkpoint.

    Args:
        data: (rows, dimensions) numbers, NaN or masked where missing.
        key: a key of `jax.random`.
        draws: kept, of each chain.
        likelihood: what rows show of their features, of `cavity.models.buffet.likelihoods`.
        law: the prior of the matrix; by default the Indian buffet process, its mass learned under Gamma(1, 1).
        sweep: one transition, of `cavity.models.buffet.samplers`; by default `uncollapsed`, or the first of the law's.
        chains, warmup, thin, progress, checkpoint, every, max_seconds: as in `cavity.engine.mcmc.run.run`.
        held_out: (rows, dimensions) booleans: entries to predict and not to see.
        keep: "all", or "summaries": no features of single draws.
        start: what `fit_variational` gave, to begin at draws of it (not for likelihoods with weights); by default at
            draws of the prior, or, where the noise is given, what 100 sweeps with more make of them, beside the warmup.
        workers: how many processes have a chain each at a time, or a pool as of `program.map`.

    Returns:
        The draws, and sums over them.

    Raises:
        ModelError: an argument out of range.
        DataError: bad data; a checkpoint of another run.
        UnsupportedError: a sweep that is not for this law, or not for this likelihood.

    Source: griffiths2011indian.
    """
    _check(likelihood, keep, start)
    values, held = _read(data, held_out, likelihood)
    arguments = (values, held, likelihood, *_law_and_sweep(law, likelihood, sweep), keep, start)
    asked: dict[str, Any] = {"chains": chains, "warmup": warmup, "thin": thin, "every": every}
    asked |= {"progress": progress, "checkpoint": checkpoint, "max_seconds": max_seconds}
    sampler = _sampler(*arguments)
    if workers is None:
        found = run(_kernel(sampler, held), key, draws, **asked)
    else:
        found = run_apart(_made, arguments, key, draws, workers=workers, **asked)
    extra = {"log_joint": _log_joint(found, sampler.law)} if keep == "all" else {}
    return FeatureChains(dataclasses.replace(found, draws=found.draws | extra), sampler, values, held)


def _law_and_sweep(
    law: Law | OtherLaw | None, likelihood: Likelihood, sweep: Sweep | None
) -> tuple[Law | OtherLaw, Sweep]:
    """Those asked for, or what they are by default; UnsupportedError for a sweep of another law or likelihood."""
    law = Law() if law is None else law
    if isinstance(law, type) or not isinstance(law, Law | OtherLaw):
        raise ModelError(
            "law= is a Law of cavity.models.buffet.samplers.law, or a BetaProcessLaw, CountLaw, MarkovLaw or "
            f"PhylogeneticLaw of cavity.models.buffet.structured; found {law!r}, for which there is no sampler."
        )
    if sweep is not None and not callable(sweep):
        raise ModelError(
            f"sweep= is a sweep itself, such as cavity.models.buffet.samplers.uncollapsed.uncollapsed; found {sweep!r}."
        )
    if not likelihood.apart and sweep not in (None, uncollapsed):
        raise UnsupportedError(
            f"Weights of {type(likelihood).__name__} depend on each other, and {name_of(sweep)} draws them apart. Use "
            "the sweep uncollapsed, or leave sweep= out."
        )
    if isinstance(law, Law):
        return law, uncollapsed if sweep is None else sweep
    if sweep is not None and sweep not in law.sweeps:
        names = ", ".join(name_of(each) for each in law.sweeps)
        raise UnsupportedError(
            f"Under {type(law).__name__} rows depend on each other in a way of their own, and its sweeps are {names}; "
            f"found {name_of(sweep)}. Use one of these, or leave sweep= out."
        )
    return law, law.sweeps[0] if sweep is None else sweep


def _log_joint(found: Chains, law: Law | OtherLaw) -> np.ndarray:
    """(chains, draws) of data and matrix, given values and numbers."""
    if not isinstance(law, Law):
        active, weights = found["active"] > 0, found.draws.get("weights", found["active"])
        matrix = [
            [law.log_of_draw(*one) for one in zip(*chain, strict=True)]
            for chain in zip(active, weights, found["mass"], strict=True)
        ]
        return found["log_likelihood"] + np.array(matrix)
    empty, rows = np.zeros((0, 0)), found["active"].shape[2]

    def one(owners: Array, mass: Array, concentration: Array) -> Array:
        return law.log_probability(owners, rows, State(empty, empty, empty, {}, mass, concentration))

    with double_precision():
        owners = (found["active"] > 0).sum(axis=2).astype(float)
        matrix = jax.vmap(jax.vmap(one))(owners, found["mass"], found["concentration"])
    return found["log_likelihood"] + np.asarray(matrix)


def _check(likelihood: Likelihood, keep: str, start: Start | None) -> None:
    if not isinstance(likelihood, Likelihood):
        raise ModelError(
            f"likelihood= is one of cavity.models.buffet.likelihoods, such as LinearGaussian(); found {likelihood!r}."
        )
    if keep not in ("all", "summaries"):
        raise ModelError(f"keep= is 'all' or 'summaries'; found {keep!r}.")
    if start is not None and likelihood.weighted:
        raise ModelError("start= has no weights of rows, which this likelihood needs. Leave it out.")


def _read(data: Any, held_out: Any, likelihood: Likelihood) -> tuple[np.ndarray, np.ndarray]:
    values = table(data, "row", "dimension")
    held = np.zeros(values.shape, bool) if held_out is None else np.asarray(held_out)
    if held.dtype != bool or held.shape != values.shape:
        raise DataError(
            f"held_out= holds True or False for every entry of the data, shape {values.shape}; found {held.dtype} of "
            f"shape {held.shape}."
        )
    there = ~np.isnan(values)
    held = held & there
    if not (there & ~held).any():
        raise DataError("No entry is left to learn from: all are missing or held out.")
    likelihood.check(values, there)
    return values, held


def _sampler(
    values: np.ndarray,
    held: np.ndarray,
    likelihood: Likelihood,
    law: Law | OtherLaw,
    sweep: Sweep,
    keep: str,
    start: Start | None = None,
) -> Sampler:
    seen = ~np.isnan(values) & ~held
    kept = ("active", "values", "fit", "entries") if keep == "all" else ("fit", "entries")
    if keep == "all" and (likelihood.weighted or not isinstance(law, Law)):
        kept += ("weights",)
    rows = Rows(np.where(seen, values, 0.0), seen)
    return Sampler(rows, likelihood, law, sweep, kept, np.nan_to_num(values), start)


def _kernel(sampler: Sampler, held: np.ndarray) -> Kernel:
    return sampler.kernel()._replace(reduce=functools.partial(_gathered, held))


def _made(*arguments: Any) -> Callable[[float | None], Kernel]:
    """The kernel of a worker, however many seconds it has."""
    kernel = _kernel(_sampler(*arguments), arguments[1])
    return lambda seconds: kernel


def _gathered(held: np.ndarray, totals: Totals | None, recorded: dict[str, Any]) -> tuple[Totals, dict[str, Any]]:
    """Sums over draws of the means of entries and of the densities of those held out."""
    fit, entries = recorded.pop("fit"), recorded.pop("entries")[held]
    if totals is None:
        return {"number": np.ones(()), "fit": fit, "held": entries}, recorded
    of_held = np.logaddexp(totals["held"], entries)
    return {"number": totals["number"] + 1.0, "fit": totals["fit"] + fit, "held": of_held}, recorded

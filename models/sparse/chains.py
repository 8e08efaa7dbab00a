"""Draws from the posterior of sparse factor models."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...engine.cluster.workers import Workers
from ...engine.mcmc.apart import run_apart
from ...engine.mcmc.kernel import Kernel
from ...engine.mcmc.run import Chains, run
from ...factors.errors import ModelError, UnsupportedError
from .data import Data
from .kernels import parallel
from .predict import Draw
from .sampler import Sampler, Sweep
from .settings import Settings
from .summary import Summary, summarise

TOGETHER = 500_000  # entries of the data beyond which chains are faster one after the other


@dataclasses.dataclass(frozen=True, eq=False)
class FactorChains:
    """Draws of loadings, factors and hyperparameters.

    Attributes:
        chains: draws by name, (chains, draws, ...) each: number_of_factors, mass, concentration, precision_rate,
            noise_rate, log_likelihood (of what was observed, given loadings, factors and noise), acceptance (of births
            and deaths so far); unless only summaries were kept also noise (rows,), and loading (K, rows), factor
            (K, samples) and precision (K,), with zeros where a draw has fewer factors than the largest one.
        sampler: what made them.
        compilations: of sweeps, in this run.
    """

    chains: Chains
    sampler: Sampler
    compilations: int

    def __getitem__(self, name: str) -> np.ndarray:
        return self.chains[name]

    @property
    def shape(self) -> tuple[int, int]:
        """Chains and draws."""
        chains, draws = self["number_of_factors"].shape
        return chains, draws

    def loading(self, chain: int, draw: int) -> np.ndarray:
        """(rows, K) loadings of one draw."""
        return self.draw(chain, draw).loading

    def factor(self, chain: int, draw: int) -> np.ndarray:
        """(K, samples) factors of one draw."""
        found = self.draw(chain, draw).factor
        assert found is not None
        return found

    def draw(self, chain: int, draw: int) -> Draw:
        """One draw, from which other samples are predicted.

        Raises:
            UnsupportedError: only summaries were kept.
        """
        if "loading" not in self.chains.draws:
            raise UnsupportedError(
                "Loadings of single draws were not kept: sample_posterior ran with keep='summaries'. Run it with "
                "keep='all', or take last(chain)."
            )
        count = int(self["number_of_factors"][chain, draw])
        loading, factor = self["loading"][chain, draw, :count], self["factor"][chain, draw, :count]
        return Draw(loading.T, self["noise"][chain, draw], factor, self._score_mass)

    def last(self, chain: int) -> Draw:
        """Where a chain ended, whatever was kept."""
        state = self.chains.states[chain].state
        count = int(state.count)
        return Draw(state.loading[:count].T, state.noise, state.factor[:count], self._score_mass)

    @property
    def _score_mass(self) -> float | None:
        settings = self.sampler.settings
        return None if settings.scores == "gaussian" else settings.score_mass

    def draws(self, every: int = 1) -> Iterator[Draw]:
        """Draws of all chains, of each every so many."""
        chains, draws = self.shape
        return (self.draw(chain, draw) for chain in range(chains) for draw in range(0, draws, every))

    @functools.cached_property
    def summary(self) -> Summary:
        """Posterior of the number of factors, mean reconstruction, predictions of what was held out."""
        return summarise(self.sampler.data, self.chains.totals, self["number_of_factors"])

    def to_arviz(self) -> Any:
        """For ArviZ: log_likelihood_of_data, and number_of_factors, mass and others where they were sampled."""
        kept = {name: self[name] for name in sorted(self.sampler.settings.learn)}
        if self.sampler.settings.factors is None:
            kept["number_of_factors"] = self["number_of_factors"].astype(float)
        kept["log_likelihood_of_data"] = self["log_likelihood"]
        return dataclasses.replace(self.chains, draws=kept).to_arviz()


def sample_posterior(
    data: Any,
    key: Any,
    draws: int,
    settings: Settings | None = None,
    *,
    chains: int = 4,
    warmup: int = 0,
    thin: int = 1,
    held_out: Any = None,
    keep: str = "all",
    together: bool | None = None,
    sweep: Sweep = parallel,
    progress: bool | Callable[[int, int], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = 60.0,
    workers: Workers = None,
) -> FactorChains:
    """Draws from the posterior of loadings, factors and hyperparameters.

    Draw i of chain c depends on the key, c and i alone, up to rounding (chains together and chains alone add numbers in
    different orders, and what differs in the last digit may decide differently much later). Chains that go on from a
    checkpoint make exactly the draws of chains that never stopped.

    Args:
        data: (rows, samples) numbers about 0 (see `centred`), NaN or masked where missing; or a `Data`.
        key: a key of `jax.random`.
        draws: kept, of each chain.
        settings: the model and its sampler; by default nonparametric sparse factor analysis.
        chains, warmup, thin, progress, checkpoint, every: as in `cavity.engine.mcmc.run.run`.
        held_out: (rows, samples) booleans: entries to predict and not to see; see `held_out_mask`.
        keep: "all", or "summaries", for data whose loadings are too large to keep for every draw.
        together: whether chains sweep at once or one after the other; None: at once where the data are small enough for
            the processor's caches, which is faster only there.
        sweep: a transition of the same state in place of the package's own (benchmarks/nsfa has the published one).
        workers: how many processes have a chain each at a time, or a pool as of `program.map`.

    Returns:
        The draws, and sums over them.

    Raises:
        ModelError: settings that do not fit the data, or an argument out of range.
        DataError: bad data, see `Data`; a checkpoint of another run, other data or another model.
    """
    data = _checked(data, held_out, settings, keep, together)
    sampler = Sampler(data, settings, keep, sweep)
    asked: dict[str, Any] = {"chains": chains, "warmup": warmup, "thin": thin, "every": every}
    asked |= {"progress": progress, "checkpoint": checkpoint}
    if workers is None:
        at_once = chains > 1 and (data.values.size <= TOGETHER if together is None else together)
        found = run(sampler.kernel(at_once), key, draws, **asked)
    else:
        found = run_apart(_made, (data, settings, keep, sweep), key, draws, workers=workers, **asked)
    return FactorChains(found, sampler, sampler.compilations)


def _checked(data: Any, held_out: Any, settings: Any, keep: Any, together: Any) -> Data:
    """The data; ModelError for options that are none."""
    if settings is not None and not isinstance(settings, Settings):
        raise ModelError(f"settings= is a Settings, such as family('nsfa'); found {settings!r}.")
    if keep not in ("all", "summaries"):
        raise ModelError(f"keep= is 'all' or 'summaries'; found {keep!r}.")
    if together not in (None, True, False):
        raise ModelError(f"together= is True, False or None; found {together!r}.")
    if isinstance(data, Data):
        return data if held_out is None else Data(data.values, held_out)
    return Data(data, held_out)


def _made(data: Data, settings: Settings | None, keep: str, sweep: Sweep) -> Callable[[float | None], Kernel]:
    """The kernel of a worker, however many seconds it has."""
    kernel = Sampler(data, settings, keep, sweep).kernel(False)
    return lambda seconds: kernel

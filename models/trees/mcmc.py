"""Markov chain Monte Carlo over trees, divergence times and hyperparameters."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from ...engine.cluster.workers import Workers
from ...engine.mcmc.apart import run_apart
from ...engine.mcmc.kernel import Kernel
from ...engine.mcmc.run import Chains, run
from .backend import Kernels
from .chains.sampler import Sampler
from .chains.settings import Settings
from .fitted_tree import FittedTree
from .likelihoods.leaves import to_leaves
from .likelihoods.table import Data
from .shapes.arrays import unpack
from .tree import Tree


@dataclasses.dataclass(frozen=True)
class TreeChains:
    """Draws of trees and their hyperparameters.

    Attributes:
        chains: draws by name: parent and depth (rows of `Arrays`), variance, coefficients, concentration, discount,
            noise, log_joint, acceptance (shares of moves from the prior and of scored ones so far).
        sampler: what made them.
    """

    chains: Chains
    sampler: Sampler

    def tree(self, chain: int, draw: int) -> Tree:
        """One drawn tree."""
        return unpack(self.sampler.state_of(self.chains, chain, draw).arrays)

    def fitted(self, chain: int, draw: int) -> FittedTree:
        """One drawn tree with what its leaves say, from which new rows are predicted."""
        return self.sampler.fitted(self.sampler.state_of(self.chains, chain, draw))

    def to_arviz(self) -> Any:
        """For ArviZ: what was sampled of variance, noise, rate, constant, square, concentration and discount, with
        log_joint, top_time (the first divergence time), and branch_points where they are not always n - 1."""
        draws, settings = dict(self.chains.draws), self.sampler.settings
        parent, depth = draws["parent"], draws["depth"]
        rows = depth.shape[-1]
        branching = np.isfinite(depth) & (parent >= 0)
        top = np.where(branching & (parent == rows - 1), depth, 0.0).sum(axis=-1)
        draws |= dict(zip(("constant", "rate", "square"), np.moveaxis(draws["coefficients"], -1, 0), strict=True))
        kept = {name: draws[name] for name in (*sorted(settings.learn), "log_joint")}
        kept["top_time"] = -np.expm1(-top)
        if not settings.prior.binary:
            kept["branch_points"] = branching.sum(axis=-1).astype(float)
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
    backend: str | Kernels = "jax",
    progress: bool | Callable[[int, int], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    workers: Workers = None,
) -> TreeChains:
    """Draws from the posterior of trees, divergence times and hyperparameters.

    Args:
        data: (N, D) numbers, NaN for missing entries, or a `Data` with binary columns.
        key: a key of `jax.random`; the same key gives the same draws with the same back end.
        draws: kept, of each chain.
        settings: what is sampled; by default diffusion variance and divergence rate of a Dirichlet diffusion tree.
        chains, warmup, thin, progress, checkpoint: as in `cavity.engine.mcmc.run.run`.
        backend: "jax" or "numba".
        workers: how many processes have a chain each at a time, or a pool as of `program.map`.

    Raises:
        ModelError: settings that do not fit the data.
        DataError: bad data, see `Data`; rows that are equal, without noise; a checkpoint of another run.
    """
    data = data if isinstance(data, Data) else Data(data)
    settings = Settings() if settings is None else settings
    to_leaves(data, settings.variance, settings.noise)  # refuses rows that are equal
    sampler = Sampler(data, settings, backend)
    asked: dict[str, Any] = {"chains": chains, "warmup": warmup, "thin": thin}
    asked |= {"progress": progress, "checkpoint": checkpoint}
    if workers is None:
        found = run(sampler.kernel, key, draws, **asked)
    else:
        found = run_apart(_made, (data, settings, backend), key, draws, workers=workers, **asked)
    return TreeChains(found, sampler)


def _made(data: Data, settings: Settings, backend: str | Kernels) -> Callable[[float | None], Kernel]:
    """The kernel of a worker, however many seconds it has."""
    kernel = Sampler(data, settings, backend).kernel
    return lambda seconds: kernel

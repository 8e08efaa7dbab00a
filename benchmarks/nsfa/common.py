"""What the experiments on sparse factor models share: options, runs of a model, tables, files.

Import this module before NumPy and JAX: it pins the threads of BLAS and XLA through the harness of the benchmarks.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import experiments
import harness

# isort: split
from typing import Any, NamedTuple

import jax
import numpy as np

from cavity.models.sparse.chains import sample_posterior
from cavity.models.sparse.settings import family

folder, table = experiments.folder, experiments.table
NONPARAMETRIC = {
    "NSFA": family("nsfa"),
    "NSFA, mass 1": family("nsfa", learn=()),
    "NSFA, noise rate": family("nsfa_shared_noise"),
}


def options(description):
    """The options that every experiment on sparse factor models has."""
    parser = experiments.options(description)
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers")
    parser.add_argument("--out", type=Path, default=harness.RESULTS / "nsfa", help="folder of numbers and pictures")
    return parser


def save(arguments, name, figures=None, **content):
    """Keeps the numbers as json, and pictures by their names as png, in the folder that was asked for."""
    experiments.save(arguments.out, name, figures, quick=arguments.quick, seed=arguments.seed, **content)


class Run(NamedTuple):
    """A model's chains.

    Attributes:
        found: of `sample_posterior`; the sweeps before `last` are not among its draws.
        sweeps: of each chain.
        cpu: seconds, with compilations.
        warm: CPU milliseconds for a sweep of a chain, without them: the median over the draws that were kept.
    """

    found: Any
    sweeps: int
    cpu: float
    warm: float

    @property
    def factors(self):
        """(chains, last) numbers of factors in use; of finite models, those that are not empty where loadings were
        kept."""
        chains = self.found.chains
        if self.found.sampler.settings.factors is None or "loading" not in chains.draws:
            return chains["number_of_factors"]
        return (chains["loading"] != 0.0).any(axis=-1).sum(axis=-1)

    @property
    def score(self):
        """Held-out log density per entry, averaged over draws inside the logarithm."""
        return self.found.summary.held_out.score

    @property
    def single(self):
        """The same with the logarithm inside the average: of a single draw, on average."""
        return float(self.found.summary.held_out.mean_log_density.mean())

    @property
    def zeros(self):
        """The share of the loadings that are exactly zero, over draws; nan without factors or where none was kept."""
        if "loading" not in self.found.chains.draws:
            return np.nan
        chains, draws = self.found.shape
        each = [self.found.loading(chain, draw) for chain in range(chains) for draw in range(draws)]
        return float(np.mean([np.mean(loading == 0.0) for loading in each if loading.size] or [np.nan]))


def sample(values, settings, seed, sweeps, last, held_out=None, chains=1, **options):
    """`sweeps` of each chain, of which the `last` ones are kept."""
    cpu = harness.cpu_seconds()
    found = sample_posterior(
        values, jax.random.key(seed), last, settings, chains=chains, warmup=sweeps - last, held_out=held_out,
        progress=False, **options,
    )  # fmt: skip
    return Run(found, sweeps, harness.cpu_seconds() - cpu, 1e3 * float(np.median(np.diff(found.chains.seconds))))


def middle(values):
    """Mean and standard error, as a word for tables."""
    values = np.asarray(values, float)
    if values.size < 2:
        return f"{values.mean():.4f}"
    return f"{values.mean():.4f} ({values.std(ddof=1) / np.sqrt(values.size):.4f})"

"""What the experiments on binary features share: options, times of chains, predictions of hidden entries.

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

from cavity.models.buffet.chains import sample_features

SHAPES = (
    "010000/111000/010000/000000/000000/000000",
    "000111/000101/000111/000000/000000/000000",
    "000000/000000/000000/100000/110000/111000",
    "000000/000000/000000/000111/000010/000010",
)


def options(description):
    """The options that every experiment on binary features has."""
    parser = experiments.options(description)
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers")
    return parser


def report(name, arguments, **settings):
    """The numbers of the page of this name, which says what was run and whether the machine did other work."""
    words = experiments.circumstances(arguments)
    return harness.Report(f"buffet_{name}", seed=arguments.seed, **words, **settings)


class Run(NamedTuple):
    """Chains and what they took.

    Attributes:
        found: of `sample_features`.
        cpu: seconds, with compilations.
        sweep: seconds for a sweep of a chain, without them: the median.
    """

    found: Any
    cpu: float
    sweep: float

    @property
    def score(self):
        """Mean log density of hidden entries, in nats."""
        return self.found.held_out.score

    @property
    def error(self):
        """Mean squared error of hidden entries."""
        hidden = self.found.held_out
        return float(np.mean((hidden.mean - self.found.data[hidden.row, hidden.dimension]) ** 2))


def sample(values, seed, sweeps, last, likelihood, law, sweep, **others):
    """`sweeps` of each chain, of which the `last` ones are kept."""
    cpu = harness.cpu_seconds()
    found = sample_features(
        values, jax.random.key(seed), last, likelihood, law, sweep=sweep, warmup=sweeps - last, **others
    )
    return Run(found, harness.cpu_seconds() - cpu, per_sweep(found.chains))


def per_sweep(chains):
    """Seconds: the median over the draws that were kept; nan for one draw."""
    return float(np.median(np.diff(chains.seconds))) if chains.seconds.shape[1] > 1 else np.nan


def hidden(shape, share, seed):
    """(rows, columns) booleans with so large a share at random, and neither a row nor a column that is all hidden."""
    random = np.random.default_rng(seed)
    found = random.random(shape) < share
    for row in np.flatnonzero(found.all(axis=1)):
        found[row, random.integers(shape[1])] = False
    for column in np.flatnonzero(found.all(axis=0)):
        found[random.integers(shape[0]), column] = False
    return found


def blocks():
    """(4, 36) of zeros and ones, the four shapes."""
    return np.array([[float(pixel) for pixel in shape.replace("/", "")] for shape in SHAPES])


def shown(number, digits=4):
    """A number for a cell of a table, a dash for what there is not."""
    return "-" if number is None or np.isnan(number) else f"{number:.{digits}g}"

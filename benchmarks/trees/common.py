"""What the experiments of this folder share: options, tables, and where numbers and pictures go.

Import this module before NumPy and JAX: it pins the threads of BLAS and XLA through the harness of the benchmarks.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import experiments
import harness

folder, table = experiments.folder, experiments.table
RESULTS = harness.RESULTS / "trees"


def options(description):
    """The options that every experiment on trees has."""
    parser = experiments.options(description)
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers")
    parser.add_argument("--backend", choices=("jax", "numba"), default="numba", help="kernels (numba is an extra)")
    return parser


def save(name, figures=None, **content):
    """Keeps the numbers as json, and pictures by their names as png, under `benchmarks/results/trees`."""
    experiments.save(RESULTS, name, figures, **content)

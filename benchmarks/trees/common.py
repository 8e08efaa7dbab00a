"""What the experiments of this folder share: options, tables, and where numbers and pictures go.

Import this module before NumPy and JAX: it pins the threads of BLAS and XLA through the harness of the benchmarks.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import experiments
import harness

# isort: split
import json

import numpy as np

folder = experiments.folder
RESULTS = harness.RESULTS / "trees"


def options(description):
    """The options that every experiment on trees has."""
    parser = experiments.options(description)
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers")
    parser.add_argument("--backend", choices=("jax", "numba"), default="numba", help="kernels (numba is an extra)")
    return parser


def table(title, columns, rows):
    """Prints a table; the first column names the row, numbers have four digits."""
    cells = [[one if isinstance(one, str) else f"{one:.4g}" for one in row] for row in [columns, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    print(f"\n{title}")
    for row in cells:
        first = row[0].ljust(widths[0])
        print("  ".join([first, *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]))


def save(name, figures=None, **content):
    """Keeps the numbers as json, and pictures by their names as png, under `benchmarks/results/trees`."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(content | {"machine": harness.machine()}, indent=1, default=_plain) + "\n")
    print(f"\nsaved {path}")
    for which, figure in (figures or {}).items():
        figure.savefig(RESULTS / f"{which}.png", dpi=120)
        print(f"saved {RESULTS / which}.png")


def _plain(value):
    return str(value) if isinstance(value, Path) else np.asarray(value).tolist()

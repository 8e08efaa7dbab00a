"""What the experiments of this folder share: options, real data, tables and pictures.

Import this module before NumPy and JAX: it pins the threads of BLAS and XLA through the harness of the benchmarks.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import experiments
import harness

# isort: split
import json

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

options, folder = experiments.options, experiments.folder
RESULTS = harness.RESULTS / "ncvmp"


def standardised(x):
    """Columns of zero mean and unit variance; a constant column stays zero."""
    x = np.asarray(x, float) - np.mean(x, 0)
    spread = x.std(0)
    return x / np.where(spread > 0, spread, 1.0)


def table(title, columns, rows):
    """Prints a table; the first column names the row, numbers have four digits."""
    cells = [[one if isinstance(one, str) else f"{one:.4g}" for one in row] for row in [columns, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    print(f"\n{title}")
    for row in cells:
        print(
            "  ".join(
                cell.rjust(width) if i else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
        )


def save(name, figure=None, **content):
    """Keeps the numbers as json and the picture as png under `benchmarks/results/ncvmp`."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.json").write_text(
        json.dumps(content | {"machine": harness.machine()}, indent=1, default=_plain)
    )
    if figure is not None:
        figure.tight_layout()
        figure.savefig(RESULTS / f"{name}.png", dpi=120)
        plt.close(figure)
    print(f"\nsaved {RESULTS / name}.json" + ("" if figure is None else " and .png"))


def _plain(value):
    return np.asarray(value).tolist()

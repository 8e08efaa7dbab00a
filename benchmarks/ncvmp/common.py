"""What the experiments of this folder share: options, real data, tables and pictures.

Import this module before NumPy and JAX: it pins the threads of BLAS and XLA through the harness of the benchmarks.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import experiments
import harness

# isort: split
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

options, folder, table = experiments.options, experiments.folder, experiments.table
RESULTS = harness.RESULTS / "ncvmp"


def standardised(x):
    """Columns of zero mean and unit variance; a constant column stays zero."""
    x = np.asarray(x, float) - np.mean(x, 0)
    spread = x.std(0)
    return x / np.where(spread > 0, spread, 1.0)


def save(name, figure=None, **content):
    """Keeps the numbers as json and the picture as png under `benchmarks/results/ncvmp`."""
    if figure is not None:
        figure.tight_layout()
    experiments.save(RESULTS, name, {} if figure is None else {name: figure}, **content)
    if figure is not None:
        plt.close(figure)

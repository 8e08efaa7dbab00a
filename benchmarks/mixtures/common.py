"""What the experiments of this folder share: options, real data, tables and where results go.

Import this module before NumPy and JAX: it pins the threads of BLAS and XLA through the harness of the benchmarks.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import experiments
import harness

# isort: split
import numpy as np

options, folder, table = experiments.options, experiments.folder, experiments.table
RESULTS = harness.RESULTS / "mixtures"

# Numbers of a table of real data: the folder, the file, and which columns.
SETS = {
    "old faithful, 272 x 2": ("mixture_faithful", "faithful_272x2.csv", (0, 1)),
    "diabetes, 145 x 3": ("mclust_diabetes", "diabetes_145x4.csv", (1, 2, 3)),
    "iris, 150 x 4": ("iris", "iris_150x5.csv", (0, 1, 2, 3)),
    "crabs, 200 x 5": ("crabs", "crabs_200x8.csv", (3, 4, 5, 6, 7)),
    "thyroid, 215 x 5": ("mclust_thyroid", "thyroid_215x6.csv", (1, 2, 3, 4, 5)),
    "banknotes, 200 x 6": ("mclust_banknote", "banknote_200x7.csv", (1, 2, 3, 4, 5, 6)),
}


def real(arguments, name):
    """The numbers (rows, columns) of one of `SETS`."""
    where, file, columns = SETS[name]
    return np.loadtxt(folder(arguments, where, file), delimiter=",", skiprows=1, usecols=columns)


def save(name, figures=None, **content):
    """Keeps the numbers as json and the pictures as png under `benchmarks/results/mixtures`."""
    experiments.save(RESULTS, name, figures, **content)

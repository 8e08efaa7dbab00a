"""Data and outputs of other systems' runs, where a copy of them lies beside the repository."""

from pathlib import Path

import numpy as np

RUNS = Path(__file__).resolve().parents[1].parent / "shared" / "reference" / "runs"


def path(run, name):
    """The path of a file of a run, or None where there is no copy."""
    found = RUNS / run / name
    return found if found.is_file() else None


def column(run, name, number=0, heading=1):
    """One column of a table with so many lines of heading, or None where there is no copy."""
    found = path(run, name)
    return (
        None if found is None else np.loadtxt(found, delimiter=",", skiprows=heading, ndmin=2, usecols=[number])[:, 0]
    )

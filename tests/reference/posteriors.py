"""Real-data checks: runs a model of `models_posteriors.py` and sets it beside the reference means and deviations."""

from __future__ import annotations

import csv
import functools
import json
import pathlib
from typing import NamedTuple

import numpy as np
from models_posteriors import BUGS, POSTERIORS

import cavity as cv

DATA = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "data"


class Row(NamedTuple):
    """One parameter: what the engine says, and the reference."""

    parameter: str
    mean: float
    sd: float
    reference_mean: float
    reference_sd: float

    @property
    def error(self) -> float:
        """The error of the mean in reference standard deviations."""
        return abs(self.mean - self.reference_mean) / self.reference_sd

    @property
    def ratio(self) -> float:
        """The standard deviation over the reference one."""
        return self.sd / self.reference_sd


@functools.cache
def references(file: str, key: str) -> dict[str, dict[str, tuple[float, float]]]:
    """Means and standard deviations by model and parameter."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    with open(DATA / file, newline="") as lines:
        for row in csv.DictReader(lines):
            found.setdefault(row[key], {})[row["parameter"]] = float(row["mean"]), float(row["sd"])
    return found


def setup(name: str):
    """The model, its data, where its parameters are, and the reference."""
    if name in BUGS:
        folder, data, program = "bugs", name, BUGS[name]
        reference = references("bugs/jags_reference_means_sds.csv", "model")[name]
    else:
        folder, data, program = "posteriordb/data", name.partition("-")[0], POSTERIORS[name]
        reference = references("posteriordb/reference_means_sds.csv", "posterior")[name]
    return *program(json.loads((DATA / folder / f"{data}.json").read_text())), reference


def rows(name: str, **options) -> tuple[cv.Posterior, list[Row]]:
    """The posterior under the method that auto picks, and every reference parameter beside it."""
    model, data, where, reference = setup(name)
    posterior = cv.infer(model, data, **options)
    return posterior, compared(posterior, where, reference)


def compared(posterior: cv.Posterior, where: dict, reference: dict) -> list[Row]:
    """Every reference parameter beside what `posterior` says of it."""
    found = []
    for parameter, (mean, sd) in reference.items():
        place = where[parameter]
        if callable(place):
            ours = place(posterior)
        else:
            variable, index = place
            ours = np.asarray(posterior[variable].mean)[index], np.asarray(posterior[variable].sd)[index]
        found.append(Row(parameter, float(ours[0]), float(ours[1]), mean, sd))
    return found

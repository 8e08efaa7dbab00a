"""One small model inferred for the first time in this process, then again, declared anew, and with one row more.

    python benchmarks/first_posterior.py MODEL EXECUTION

Prints json: CPU seconds of each call, and whether it traced. Seconds begin after the import of cavity and NumPy and end
when means and standard deviations of the named variables are there. No harness here: a process loads what it times.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from everyday import coin_cavity, location_cavity, schools_cavity, schools_data

DATA = Path(__file__).parents[1] / "examples" / "data"
ROW = {  # what one row more of each model is
    "coin": {"throw": True},
    "mean and precision": {"x": 2.5},
    "skills": {"winner": 1, "loser": 3},
    "logistic regression": {"x": [0.5, -0.5, 0.2, 0.1], "y": True},
    "softmax on Iris": {"x": [0.1, -0.2, 0.3, 0.1], "y": 1},
    "mixture, 8 restarts": {"x": [0.5, 0.6]},
    "eight schools": {"y": 5.0, "sigma": 12.0},
}


class Problem(NamedTuple):
    """A model as a function of the package, its data, the variables asked for, and options of the inference."""

    declare: Callable[[Any], Any]
    data: Callable[[], dict]
    names: tuple[str, ...]
    options: dict


def logistic_data(rows=100, features=4):
    random = np.random.default_rng(0)
    x = random.normal(size=(rows, features))
    return {"x": x, "y": random.random(rows) < 1.0 / (1.0 + np.exp(-x @ np.array([1.0, -0.5, 0.3, 0.0])))}


def iris():
    table = np.loadtxt(DATA / "iris.csv", delimiter=",", skiprows=1, dtype=str, quotechar='"')
    x = table[:, :4].astype(float)
    return {"x": (x - x.mean(axis=0)) / x.std(axis=0), "y": np.unique(table[:, 4], return_inverse=True)[1]}


def old_faithful():
    table = np.loadtxt(DATA / "old_faithful.csv", delimiter=",", skiprows=1)
    return {"x": (table - table.mean(axis=0)) / table.std(axis=0)}


PROBLEMS = {
    "coin": Problem(coin_cavity, lambda: {"throw": np.arange(21) % 3 > 0}, ("p",), {}),
    "mean and precision": Problem(
        location_cavity, lambda: {"x": np.random.default_rng(0).normal(3.0, 2.0, size=50)}, ("mean", "precision"), {}
    ),
    "skills": Problem(
        lambda cv: cv.models.skills(),
        lambda: {"winner": np.array([0, 0, 1, 2]), "loser": np.array([1, 2, 3, 3])},
        ("skill",),
        {"sizes": {"player": 4}},
    ),
    "logistic regression": Problem(
        lambda cv: cv.models.logistic_regression(4), logistic_data, ("weight", "bias"), {"method": "ep"}
    ),
    "softmax on Iris": Problem(lambda cv: cv.models.softmax_regression(4, 3), iris, ("weight", "bias"), {}),
    "mixture, 8 restarts": Problem(
        lambda cv: cv.models.mixture(components=6, dimension=2),
        old_faithful,
        ("weights", "mean", "precision"),
        {"restarts": 8},
    ),
    "eight schools": Problem(
        schools_cavity,
        lambda: schools_data(None),
        ("mu", "tau", "theta"),
        {},
    ),
}


def asked(cv, model, problem, data, execution):
    """CPU seconds until means and standard deviations are there, and whether the inference traced its program."""
    began = time.process_time()
    posterior = cv.infer(model or problem.declare(cv), data, execution=execution, **problem.options)
    found = {name: (posterior[name].mean, posterior[name].sd) for name in problem.names}
    seconds = time.process_time() - began
    if not all(np.isfinite(part).all() for pair in found.values() for part in pair):
        raise SystemExit(f"{model or problem.names}: not all beliefs are numbers")
    return posterior, {"cpu": seconds, "traced": int(posterior.timing.trace > 0)}


def main(name, execution):
    """Prints the four calls of one problem."""
    problem = PROBLEMS[name]
    data = problem.data()
    longer = {key: np.concatenate([values, np.array([ROW[name][key]])]) for key, values in data.items()}

    import cavity as cv  # seconds are counted from here on

    posterior, first = asked(cv, None, problem, data, execution)
    second = asked(cv, posterior.model, problem, data, execution)[1]
    anew = asked(cv, None, problem, data, execution)[1]
    more = asked(cv, posterior.model, problem, longer, execution)[1]
    print(json.dumps({"first": first, "second": second, "anew": anew, "more": more}))


if __name__ == "__main__":
    main(*sys.argv[1:])

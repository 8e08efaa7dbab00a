"""Runs the cases of the reference suite (the json files beside it) in cavity's language and compares.

A case names a program (a function of a `models_*.py` module that returns a model for it), data, a method and expected
quantities: `variable.property`, or `log_evidence`, or `evidence` for its exponential. A number is compared at the
case's relative tolerance (1e-6), or at half a unit of the last decimal where `decimals` says how many were printed.
"""

from __future__ import annotations

import importlib
import json
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

import cavity as cv

HERE = pathlib.Path(__file__).resolve().parent
SECTIONS = ("ep_gaussian", "ep_gamma_logistic", "discrete", "vmp", "ncvmp", "bugs")
METHODS: dict[str, dict[str, Any]] = {
    "auto": {},
    "ep": {"method": "ep"},
    "vmp": {"method": "vmp"},
    "ncvmp": {"method": "ncvmp"},
    "exact": {"accuracy": "best"},
} | {
    f"ncvmp {bound}": {"method": cv.ncvmp(bound=bound)}
    for bound in ("quadrature", "jaakkola", "tilted", "log", "quadratic")
}


class Setup(NamedTuple):
    """A model with the data that the engine is given, and how new data are turned into inputs, where not as written."""

    model: cv.Model
    data: dict[str, Any]
    new: Callable[[dict[str, Any]], dict[str, Any]] = lambda data: data


def cases() -> list[dict[str, Any]]:
    """All cases, each with its section."""
    return [
        {"section": section, **case}
        for section in SECTIONS
        for case in json.loads((HERE / f"{section}.json").read_text())["cases"]
    ]


def setup(case: dict[str, Any]) -> Setup:
    """The case in cavity's language."""
    made = getattr(importlib.import_module(f"models_{case['section']}"), case["program"])(case)
    return made if isinstance(made, Setup) else Setup(made, numbers(case["data"]))


def numbers(data: dict[str, Any]) -> dict[str, Any]:
    """Data with null entries of lists as NaN."""
    return {
        name: [np.nan if entry is None else entry for entry in value] if isinstance(value, list) else value
        for name, value in data.items()
    }


def run(case: dict[str, Any]) -> None:
    """Infers the case and compares every expected quantity. AssertionError where one is off or nothing converged."""
    model, data, new = setup(case)
    options = {"tolerance": 1e-11, **METHODS[case["method"]]}
    posterior = cv.infer(model, data, sizes=case.get("sizes"), **options)
    assert posterior.converged, posterior.diagnosis
    for name, expected in case["expected"].items():
        compare(name, evidence(posterior, name), expected, case)
    if predict := case.get("predict"):
        prediction = posterior.predict(new(predict["data"]))
        for name, expected in predict["expected"].items():
            compare(f"predicted {name}", quantity(prediction, name), expected, {**predict, "id": case["id"]})


def compare(name: str, found: Any, expected: Any, case: dict[str, Any]) -> None:
    """Raises AssertionError where a number is off."""
    decimals = case.get("decimals", {})
    if isinstance(decimals, dict):
        decimals = decimals.get(name.removeprefix("predicted "))
    tolerance = {"rtol": case.get("tolerance", 1e-6), "atol": 0.0}
    if decimals is not None:
        tolerance = {"rtol": 0.0, "atol": 0.51 * 10.0**-decimals}
    np.testing.assert_allclose(found, expected, err_msg=f"{case['id']}: {name}", **tolerance)


def evidence(posterior: cv.Posterior, name: str) -> Any:
    """The evidence, its logarithm, or a quantity of a variable."""
    if name == "log_evidence":
        return posterior.log_evidence
    if name == "evidence":
        return np.exp(posterior.log_evidence)
    return quantity(posterior, name)


def quantity(marginals: Any, name: str) -> np.ndarray:
    """`variable.property`: a property of the marginal, a parameter of its family, or one of those below."""
    variable, _, wanted = name.rpartition(".")
    marginal = marginals[variable]
    if wanted == "second_moment":
        return marginal.variance + marginal.mean**2
    if wanted == "precision":
        return 1.0 / marginal.variance
    if wanted == "precision_mean":
        return marginal.mean / marginal.variance
    if wanted == "log_odds":
        return np.log(marginal.mean) - np.log1p(-marginal.mean)
    if wanted == "expected_log":
        with jax.enable_x64(True):
            return np.asarray(marginal.family.moments().log)
    if hasattr(marginal, wanted):
        return np.asarray(getattr(marginal, wanted))
    return marginal.parameters[wanted]

"""The documented vocabulary as tables: terms and operations by kind of value, with the kinds of what they take."""

from __future__ import annotations

from typing import Any

import numpy as np


def N(value: Any) -> tuple[str, Any]:
    """A constant in an expression."""
    return ("number", value)


BOUNDS = ({"low": N(-0.5), "high": N(1.5)}, {"low": N(-0.5), "high": N(np.inf)}, {"low": N(-np.inf), "high": N(1.0)})
SPREADS = ({"variance": "positive"}, {"precision": "positive"}, {"sd": "positive"})
COVARIANCE, MATRIX = np.array([[1.5, 0.6], [0.6, 1.0]]), np.array([[1.0, 0.4], [-0.3, 0.8]])

# By kind of value: the terms that have it, each with the kinds of their arguments; what is not a kind is a constant.
TERMS: dict[str, dict[str, tuple[dict[str, Any], ...]]] = {
    "real": {
        "gaussian": tuple({"mean": "real", **spread} for spread in SPREADS),
        "truncated_gaussian": tuple({"mean": "real", "variance": "positive", **bound} for bound in BOUNDS),
        "student_t": tuple({"dof": N(float(d)), "mean": "real", "scale": "positive"} for d in (3, 4, 8)),
        "laplace": ({"mean": "real", "scale": "positive"},),
        "cauchy": ({"location": "real", "scale": "positive"},),
        "skew_normal": ({"location": "real", "scale": "positive", "skew": N(2.0)},),
        "uniform": ({"low": N(-2.0), "high": N(3.0)}, {"low": ("neg", "width"), "high": "width"}),
        "spike_and_slab": tuple({"probability": "unit", **spread} for spread in SPREADS),
        "gaussian_process": tuple(
            {"inputs": "place", "kernel": ("kernel", name, 1.3, 1.5)} for name in ("squared_exponential", "matern32")
        ),
        "von_mises": ({"mean": "real", "concentration": "positive"}, {"mean": N(2.8), "concentration": "level"}),
        "own_logistic": ({"mean": "real", "scale": "positive"},),
        "switch": ({},),
        "chain": ({},),
        "tree": ({},),
    },
    "positive": {
        "gamma": ({"shape": "shape", "rate": "positive"}, {"mean": "level", "variance": "level"}),
        "truncated_gamma": (
            {"shape": N(2.0), "rate": "positive", "low": N(0.3), "high": N(3.0)},
            {"shape": N(1.5), "rate": "positive", "low": N(0.0), "high": N(2.0)},
            {"shape": N(3.0), "rate": "positive", "low": N(0.5), "high": N(np.inf)},
        ),
        "log_normal": ({"mean": "real", "variance": "positive"},),
        "half_cauchy": ({"scale": "positive"},),
        "half_normal": ({"scale": "positive"},),
        "weibull": ({"shape": "positive", "scale": "positive"}, {"shape": N(1.7), "scale": "positive"}),
        "exponential": ({"rate": "positive"}, {"mean": "positive"}),
        "inverse_gamma": ({"shape": N(4.0), "scale": "positive"},),
        "inverse_gaussian": ({"mean": "positive", "shape": "positive"},),
        "half_student_t": ({"dof": N(5.0), "scale": "positive"},),
        "own_waiting": ({"rate": "positive"},),
        "switch": ({},),
    },
    "unit": {
        "beta": ({"a": "shape", "b": "shape"}, {"mean": "unit", "total": "shape"}),
        "uniform": ({"low": N(0.0), "high": N(1.0)},),
        "logit_normal": tuple({"mean": "real", **spread} for spread in SPREADS),
    },
    "boolean": {
        "bernoulli": ({"p": "unit"},),
        "between": (
            {"value": "real", "low": N(-0.7), "high": N(0.9)}, {"value": "real", "low": N(0.1), "high": N(np.inf)},
        ),
        "own_agreement": ({"other": "boolean"},),
        "switch": ({},),
        "chain": ({},),
    },
    "category": {
        "categorical": ({"p": "simplex"},),
        "discrete_uniform": ({"size": N(3)},),
        "ordered_probit": ({"score": "real", "cutpoints": N(np.array([-0.6, 0.8]))},),
        "ordered_logistic": ({"score": "real", "cutpoints": N(np.array([-0.6, 0.8]))},),
    },
    "count": {
        "poisson": ({"rate": "positive"},),
        "binomial": ({"n": N(5), "p": "unit"}, {"n": "count", "p": "unit"}),
        "negative_binomial": (
            {"mean": "positive", "dispersion": "positive"}, {"successes": "level", "probability": "unit"},
        ),
    },
    "vector": {
        "vector_gaussian": ({"mean": "vector", "covariance": N(COVARIANCE)}, {"mean": "vector", "precision": "posdef"}),
        "switch": ({},),
        "multinomial": ({"n": N(6), "p": "simplex"},),
        "dirichlet_multinomial": (
            {"n": N(6), "mean": N(np.array([0.3, 0.7])), "total": "positive"},
            {"n": N(6), "concentration": N(np.array([1.5, 2.0]))},
        ),
    },
    "simplex": {
        "dirichlet": (
            {"concentration": N(np.array([1.5, 2.0, 0.8]))}, {"concentration": N(np.array([1.0, 1.0]))},
            {"mean": N(np.array([0.3, 0.7])), "total": "shape"},
        ),
    },
    "posdef": {"wishart": ({"dof": N(4.0), "scale": N(np.eye(2) / 4.0)},)},
}  # fmt: skip

# By kind of value: the operations that have it, with the kinds of their operands; a name of a plate is that plate.
OPERATIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    "real": {
        "add": ("real", "real"), "sub": ("real", "real"), "mul": ("real", "real"), "div": ("real", "positive"),
        "neg": ("real",), "square": ("real",), "power": ("real", 3), "max": ("real", "real"), "min": ("real", "real"),
        "log": ("positive",), "dot": ("vector", "direction"), "element": ("vector", 1), "sum": ("elements", "k"),
        "scaled": ("real",),
    },
    "positive": {
        "exp": ("real",), "mul": ("level", "positive"), "div": ("level", "positive"), "power": ("positive", 2),
        "add": ("positive", "positive"),
    },
    "unit": {"logistic": ("real",), "probit": ("real",)},
    "boolean": {
        "and": ("boolean", "boolean"), "or": ("boolean", "boolean"), "xor": ("boolean", "boolean"), "not": ("boolean",),
        "greater": ("real", "real"), "less": ("real", "level"), "greater_equal": ("count", N(2)),
        "less_equal": ("count", N(1)), "equal": ("category", N(1)), "unequal": ("category", N(0)),
        "all": ("flags", "k"), "any": ("flags", "k"),
    },
    "category": {"sum": ("flags", "k")},
    "count": {"add": ("count", "count")},
    "vector": {
        "stack": ("real", "real"), "stack_over": ("elements", "k"), "matmul": (N(MATRIX), "vector"),
        "subvector": ("vector", 0, 2), "add": ("vector", "vector"), "mul": ("vector", "real"),
    },
    "simplex": {"softmax": ("elements", "k"), "probit_over": ("elements", "k")},
}  # fmt: skip

# The cases of a switch.
SIMPLE = {
    "real": ("gaussian", "gaussian", "student_t", "laplace"), "positive": ("gamma", "log_normal"),
    "boolean": ("bernoulli",), "count": ("poisson", "binomial"), "vector": ("vector_gaussian",),
}  # fmt: skip
WITHOUT_MEAN = ("cauchy",)
JOINT = ("chain", "tree", "gaussian_process")  # elements depend on each other
FEATURES = (
    "gate", "gate", "nested switch", "missing", "missing", "constraint", "constraint", "observed let", "observed let",
    "sharp", "sharp", "gather",
)  # fmt: skip
# What some operands are made of: elements of a plate, several flags, a positive number that is given.
DEPENDENT = {
    "elements": "real", "flags": "boolean", "level": "positive", "shape": "positive", "width": "positive",
}  # fmt: skip
ONLY_OBSERVED = ("own_logistic", "own_agreement", "multinomial", "dirichlet_multinomial", "between")
ONLY_LATENT = (*JOINT, "wishart")


def _each(role: str, table: dict[str, dict[str, Any]], without: tuple[str, ...] = ()) -> list[tuple[str, str, str]]:
    return [(role, kind, name) for kind, names in table.items() for name in names if name not in without]


FOCUS = [
    *_each("prior", TERMS, ONLY_OBSERVED),
    *_each("observed", TERMS, ONLY_LATENT),
    *_each("predicted", TERMS, ONLY_LATENT),
    *_each("let", OPERATIONS),
    *_each("argument", {kind: names for kind, names in OPERATIONS.items() if kind != "category"}),
    *(("feature", "", feature) for feature in FEATURES),
]
ORDER = np.random.default_rng(13).permutation(len(FOCUS))


def focus_of(seed: int) -> tuple[str, str, str]:
    """What the structure of this seed has: a term in a role, an operation in a let or an argument, or a feature."""
    return FOCUS[ORDER[seed % len(FOCUS)]]

"""Every term with every argument replaced by every wrong value: as a constant, and as data of an input."""

from __future__ import annotations

import functools

import numpy as np
from misuse_judge import Case
from values import WRONG, legal, number_of

import cavity as cv
from cavity.engine.data.rules_of_arguments import bind_checked

EYE, ZEROS, THIRDS = np.eye(3), np.zeros(3), np.full(3, 1.0 / 3.0)
# builder: arguments that are right, and the kind of each; "-" where no single number is ever right
TERMS = {
    "bernoulli": (cv.bernoulli, {"probability": (0.5, "unit")}),
    "beta": (cv.beta, {"a": (2.0, "positive"), "b": (2.0, "positive")}),
    "beta of mean": (cv.beta, {"mean": (0.5, "inner"), "total": (2.0, "positive")}),
    "beta of variance": (cv.beta, {"mean": (0.5, "inner"), "variance": (0.05, "below a quarter")}),
    "binomial": (cv.binomial, {"n": (4, "count"), "p": (0.5, "unit")}),
    "between": (lambda low, high: cv.between(VALUE["v"], low, high), {"low": (-9.0, "low"), "high": (9.0, "high")}),
    "categorical": (cv.categorical, {"p": (THIRDS, "three")}),
    "dirichlet": (cv.dirichlet, {"concentration": (np.ones(3), "three")}),
    "dirichlet of mean": (cv.dirichlet, {"mean": (THIRDS, "three"), "total": (3.0, "positive")}),
    "dirichlet_multinomial": (cv.dirichlet_multinomial, {"n": (4, "count"), "concentration": (np.ones(3), "three")}),
    "dirichlet_multinomial of mean": (
        cv.dirichlet_multinomial,
        {"n": (4, "count"), "mean": (THIRDS, "three"), "total": (3.0, "positive")},
    ),
    "discrete_uniform": (cv.discrete_uniform, {"size": (3, "size")}),
    "cauchy": (cv.cauchy, {"location": (0.0, "real"), "scale": (2.0, "positive")}),
    "exponential": (cv.exponential, {"rate": (2.0, "positive")}),
    "exponential of mean": (cv.exponential, {"mean": (2.0, "positive")}),
    "half_student_t": (cv.half_student_t, {"dof": (3.0, "positive"), "scale": (2.0, "positive")}),
    "inverse_gamma": (cv.inverse_gamma, {"shape": (3.0, "positive"), "scale": (2.0, "positive")}),
    "inverse_gaussian": (cv.inverse_gaussian, {"mean": (3.0, "positive"), "shape": (2.0, "positive")}),
    "lkj": (cv.lkj, {"concentration": (2.0, "positive")}),
    "logit_normal": (cv.logit_normal, {"mean": (0.0, "real"), "variance": (2.0, "positive")}),
    "pareto": (cv.pareto, {"shape": (3.0, "positive"), "scale": (2.0, "positive")}),
    "skew_normal": (
        cv.skew_normal,
        {"location": (0.0, "real"), "scale": (2.0, "positive"), "skew": (1.0, "real")},
    ),
    "flat": (cv.flat, {"domain": (cv.real, "-")}),
    "gamma": (cv.gamma, {"shape": (2.0, "positive"), "rate": (2.0, "positive")}),
    "gaussian": (cv.gaussian, {"mean": (0.0, "real"), "variance": (2.0, "positive")}),
    "gaussian of precision": (cv.gaussian, {"mean": (0.0, "real"), "precision": (2.0, "positive")}),
    "gaussian of sd": (cv.gaussian, {"mean": (0.0, "real"), "sd": (2.0, "square")}),
    "half_cauchy": (cv.half_cauchy, {"scale": (1.0, "positive")}),
    "half_normal": (cv.half_normal, {"scale": (1.0, "positive")}),
    "laplace": (cv.laplace, {"mean": (0.0, "real"), "scale": (2.0, "positive")}),
    "log_normal": (cv.log_normal, {"mean": (0.0, "real"), "variance": (2.0, "positive")}),
    "multinomial": (cv.multinomial, {"n": (4, "count"), "p": (THIRDS, "three")}),
    "negative_binomial": (cv.negative_binomial, {"mean": (4.0, "positive"), "dispersion": (0.5, "positive")}),
    "negative_binomial of trials": (
        cv.negative_binomial,
        {"successes": (4.0, "positive"), "probability": (0.5, "inner")},
    ),
    "ordered_logistic": (cv.ordered_logistic, {"score": (0.0, "real"), "cutpoints": (np.arange(2.0), "cuts")}),
    "ordered_probit": (cv.ordered_probit, {"score": (0.0, "real"), "cutpoints": (np.arange(2.0), "cuts")}),
    "point": (cv.point, {"value": (2, "count")}),
    "poisson": (cv.poisson, {"rate": (4.0, "positive")}),
    "spike_and_slab": (cv.spike_and_slab, {"probability": (0.5, "unit"), "variance": (2.0, "positive")}),
    "student_t": (cv.student_t, {"dof": (4.0, "positive"), "mean": (0.0, "real"), "scale": (2.0, "positive")}),
    "truncated_gamma": (
        cv.truncated_gamma,
        {"shape": (2.0, "positive"), "rate": (2.0, "positive"), "low": (-9.0, "low"), "high": (9.0, "above zero")},
    ),
    "truncated_gaussian": (
        cv.truncated_gaussian,
        {"mean": (0.0, "real"), "variance": (2.0, "positive"), "low": (-9.0, "low"), "high": (9.0, "high")},
    ),
    "uniform": (cv.uniform, {"low": (-9.0, "finite low"), "high": (9.0, "finite high")}),
    "vector_gaussian": (cv.vector_gaussian, {"mean": (ZEROS, "triple"), "covariance": (EYE, "-")}),
    "vector_gaussian of precision": (cv.vector_gaussian, {"mean": (ZEROS, "triple"), "precision": (EYE, "positive")}),
    "von_mises": (cv.von_mises, {"mean": (0.0, "real"), "concentration": (2.0, "positive")}),
    "weibull": (cv.weibull, {"shape": (2.0, "positive"), "scale": (1.5, "positive")}),
    "wishart": (cv.wishart, {"dof": (4.0, "dof"), "scale": (EYE, "-")}),
    "wishart of rate": (cv.wishart, {"dof": (4.0, "dof"), "rate": (EYE, "-")}),
}
VALUE = {}


def _legal(name, kind):
    number = number_of(name)
    if kind in ("three", "triple"):
        return name == "three"
    if kind == "cuts":
        return name == "three"  # increasing
    if kind == "-" or number is None or np.isnan(number):
        return False
    match kind:
        case "low":
            return number < 9.0
        case "high":
            return number > -9.0
        case "above zero":
            return number > 0.0
        case "finite low":
            return -np.inf < number < 9.0
        case "finite high":
            return -9.0 < number < np.inf
        case "dof":
            return 2.0 < number < np.inf
        case "size":
            return name in ("3", "int8")
        case "below a quarter":
            return 0.0 < number < 0.25
        case "square":
            return number > 0.0 and number**2 < np.inf if number < 1e200 else False
    return legal(name, kind)


def _declared(builder, arguments):
    m = cv.Model()
    VALUE["v"] = m.random("v", cv.gaussian(0.0, variance=1.0))
    m.random("x", builder(**arguments))
    return m


def constants():
    """Wrong constants."""
    for term, (builder, arguments) in TERMS.items():
        base = {name: value for name, (value, _) in arguments.items()}
        for name, (_, kind) in arguments.items():
            for wrong, value in WRONG.items():
                right = (lambda m: True) if _legal(wrong, kind) else None
                call = functools.partial(_declared, builder, {**base, name: value})
                yield Case(f"{term}({name}={wrong})", call, right)


INPUTS = {
    "real": cv.real, "positive": cv.positive, "unit": cv.unit, "inner": cv.unit, "count": cv.count, "low": cv.real,
    "high": cv.real, "above zero": cv.real, "finite low": cv.real, "finite high": cv.real, "dof": cv.positive,
    "three": cv.simplex(3), "triple": cv.vector(3), "cuts": cv.vector(2), "square": cv.positive,
}  # fmt: skip


def _bound(builder, base, name, kind, value):
    m = cv.Model()
    row = m.plate("row", 2)
    VALUE["v"] = m.random("v", cv.gaussian(0.0, variance=1.0))
    given = m.input("given", INPUTS[kind], plates=row)
    m.random("x", builder(**{**base, name: given}), plates=row)
    return bind_checked(m, {"given": value})


def inputs():
    """Wrong data of an input that is the argument: the second of two rows is wrong, the first is right."""
    for term, (builder, arguments) in TERMS.items():
        base = {name: value for name, (value, _) in arguments.items()}
        for name, (value, kind) in arguments.items():
            if kind not in INPUTS or name == "precision" or (term, name) in NO_INPUT:
                continue
            for wrong, bad in WRONG.items():
                bound = kind in ("low", "high", "above zero")  # an infinite one is none
                finite = number_of(wrong) is not None and (bound or np.isfinite(number_of(wrong)))
                fits = _legal(wrong, kind) and (finite or wrong == "three")
                fits = fits and kind != "cuts"  # two cutpoints are declared
                right = (lambda binding: True) if fits else None
                yield Case(
                    f"{term}({name}=input with {wrong})",
                    functools.partial(_bound, builder, base, name, kind, [value, bad]),
                    right,
                )


NO_INPUT = {("beta of variance", "mean"), ("dirichlet", "concentration"), ("dirichlet_multinomial", "concentration")}

"""Wrong data of every domain: as an input, as an observation, and in the shape, the names and the sizes."""

from __future__ import annotations

import functools

import numpy as np
from misuse_judge import Case
from values import WRONG, legal, number_of

import cavity as cv
from cavity.engine.data.rules_of_arguments import bind_checked

EYE = np.eye(2)
# domain -> two values that are right, and wrong ones of the right shape
GIVEN = {
    "real": (lambda plate: cv.real, [0.5, -1.0], {}),
    "positive": (lambda plate: cv.positive, [0.5, 2.0], {}),
    "unit": (lambda plate: cv.unit, [0.5, 0.25], {}),
    "boolean": (lambda plate: cv.boolean, [True, False], {}),
    "count": (lambda plate: cv.count, [1, 2], {}),
    "category": (lambda plate: cv.category(3), [1, 2], {"too large": 3, "negative": -1, "half": 0.5, "NaN": np.nan}),
    "index": (cv.index, [1, 0], {"too large": 3, "negative": -1, "half": 0.5, "NaN": np.nan, "huge": 2**40}),
    "vector": (
        lambda plate: cv.vector(2), [[1.0, 2.0], [0.0, 1.0]],
        {"NaN": [np.nan, 1.0], "infinite": [np.inf, 1.0], "longer": [1.0, 2.0, 3.0], "number": 1.0},
    ),
    "simplex": (
        lambda plate: cv.simplex(2), [[0.5, 0.5], [0.25, 0.75]],
        {"sum of 1.1": [0.6, 0.5], "negative": [-0.5, 1.5], "NaN": [np.nan, 0.5], "scores": [2.0, 3.0]},
    ),
    "posdef": (
        lambda plate: cv.posdef(2), [EYE, 2.0 * EYE],
        {
            "asymmetric": [[1.0, 0.5], [0.0, 1.0]], "indefinite": [[1.0, 2.0], [2.0, 1.0]], "zero": 0.0 * EYE,
            "negative": -EYE, "NaN": np.nan * EYE, "infinite": np.full((2, 2), np.inf), "larger": np.eye(3),
        },
    ),
    "matrix": (
        lambda plate: cv.matrix(2, 3), [np.ones((2, 3)), np.zeros((2, 3))],
        {"NaN": np.full((2, 3), np.nan), "transposed": np.ones((3, 2))},
    ),
}  # fmt: skip
NUMBERS = ("real", "positive", "unit", "boolean", "count")


def _model(domain):
    m = cv.Model()
    row = m.plate("row", 2)
    m.input("x", GIVEN[domain][0](row), plates=row)
    return m


def _bind(model, data, sizes=None):
    return bind_checked(model(), data, sizes)


def inputs():
    """Wrong values of inputs: the second of two rows, and the whole array."""
    for domain, (_, right, wrong) in GIVEN.items():
        model = functools.partial(_model, domain)
        for name, value in wrong.items():
            yield Case(f"input {domain} {name}", functools.partial(_bind, model, {"x": [right[0], value]}))
        for name, value in WRONG.items():
            one = domain in NUMBERS and legal(name, domain)
            index = domain in ("category", "index") and number_of(name) in (0.0, 1.0)
            index = index or (domain == "category" and number_of(name) == 2.0)
            rows = [right[0], value]
            yield Case(
                f"input {domain}, a row {name}",
                functools.partial(_bind, model, {"x": rows}),
                functools.partial(_kept, "inputs", number_of(name)) if one or index else None,
            )
            labels = _are_labels if domain == "index" and name == "array of text" else None
            yield Case(f"input {domain}, all {name}", functools.partial(_bind, model, {"x": value}), labels)
        bad = {
            "three rows": [right[0]] * 3, "one row": [right[0]], "no rows": [], "a row too few axes": right[0],
            "None": None, "rows of rows": [right, right], "missing": {}, "a mask": np.ma.array(right, mask=True),
        }  # fmt: skip
        for name, value in bad.items():
            data = {} if name == "missing" else {"x": value}
            yield Case(f"input {domain}, {name}", functools.partial(_bind, model, data))


def _kept(group, number, binding):
    return float(np.asarray(getattr(binding, group)["x"])[1]) == number


def _are_labels(binding):
    """Text is the names of the elements that an index points at."""
    return binding.inputs["x"].tolist() == [0, 1] and binding.names == {"row": ("a", "b")}


TERMS = {
    "real": (lambda: cv.gaussian(0.0, variance=1.0), [0.5, -1.0]),
    "real heavy": (lambda: cv.student_t(4.0, 0.0, 1.0), [0.5, -1.0]),
    "positive": (lambda: cv.gamma(1.0, 1.0), [0.5, 2.0]),
    "unit": (lambda: cv.beta(2.0, 2.0), [0.5, 0.25]),
    "boolean": (lambda: cv.bernoulli(0.5), [True, False]),
    "count": (lambda: cv.poisson(2.0), [1, 2]),
    "count of trials": (lambda: cv.binomial(3, 0.5), [1, 2]),
    "category": (lambda: cv.categorical([0.2, 0.5, 0.3]), [1, 2]),
    "ordered": (lambda: cv.ordered_probit(0.0, [-1.0, 1.0]), [1, 2]),
    "simplex": (lambda: cv.dirichlet(np.ones(2)), [[0.5, 0.5], [0.25, 0.75]]),
    "vector": (lambda: cv.vector_gaussian(np.zeros(2), covariance=EYE), [[1.0, 2.0], [0.0, 1.0]]),
    "posdef": (lambda: cv.wishart(3.0, EYE), [EYE, 2.0 * EYE]),
    "counts": (lambda: cv.multinomial(3, [0.5, 0.5]), [[1, 2], [3, 0]]),
    "counts that vary": (lambda: cv.dirichlet_multinomial(3, [0.5, 0.5]), [[1, 2], [3, 0]]),
    "angle": (lambda: cv.von_mises(0.0, 2.0), [0.5, -1.0]),
    "positive time": (lambda: cv.weibull(2.0, 1.5), [0.5, 2.0]),
}
MORE = {"counts": {"too many": [2, 2], "negative": [-1, 4], "halves": [1.5, 1.5]}}
MORE["counts that vary"] = MORE["counts"]
MORE["angle"] = {"a turn too far": 0.5 + 2.0 * np.pi, "degrees": 90.0, "at minus pi": -np.pi}
MORE["vector"], MORE["simplex"], MORE["posdef"] = (
    {name: value for name, value in GIVEN[domain][2].items() if name != "NaN"}
    for domain in ("vector", "simplex", "posdef")
)
TOP = {"count of trials": 3, "category": 2, "ordered": 2}


def _observed(term):
    m = cv.Model()
    m.random("x", TERMS[term][0](), plates=m.plate("row", 2))
    return m


def _legal_outcome(term, wrong):
    if term == "angle":
        return legal(wrong, "real") and -np.pi < number_of(wrong) <= np.pi
    kind = "count" if term in TOP else "inner" if term == "unit" else term.split()[0]
    single = kind in (*NUMBERS, "inner") and legal(wrong, kind)
    return single and (term not in TOP or number_of(wrong) <= TOP[term])


def observations():
    """Wrong values of observed variables; NaN, None and what is masked are missing, where a value may be missing."""
    for term, (_, right) in TERMS.items():
        model = functools.partial(_observed, term)
        for name, value in WRONG.items():
            missing = name in ("nan", "None") and np.ndim(right[0]) == 0
            answer = functools.partial(_kept, "observed", number_of(name)) if _legal_outcome(term, name) else None
            answer = _second_is_missing if missing else answer
            yield Case(
                f"observed {term}, a row {name}", functools.partial(_bind, model, {"x": [right[0], value]}), answer
            )
            scalar = term in TOP or term.split()[0] in ("real", "positive", "count", "boolean", "angle")
            pair = scalar and name in ("nan among numbers", "array of objects")
            pair = pair or (
                name == "masked" and term in ("real", "real heavy", "positive", "positive time", "unit", "angle")
            )
            yield Case(
                f"observed {term}, all {name}",
                functools.partial(_bind, model, {"x": value}),
                _missing if pair else None,
            )
        for name, value in MORE.get(term, {}).items():
            yield Case(f"observed {term} {name}", functools.partial(_bind, model, {"x": [right[0], value]}))
        for name, value in {"three rows": [right[0]] * 3, "no rows": [], "rows of rows": [right, right]}.items():
            yield Case(f"observed {term}, {name}", functools.partial(_bind, model, {"x": value}))


def _second_is_missing(binding):
    return binding.missing["x"].tolist() == [False, True]


def _missing(binding):
    return binding.missing["x"].sum() == 1

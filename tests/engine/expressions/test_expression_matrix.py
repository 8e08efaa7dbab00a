"""Every operation on every pair of domains, unobserved: an answer that draws agree with, or a sentence.

The draws are of the priors, in NumPy, with NumPy's own operations.
"""

from __future__ import annotations

import operator

import numpy as np
import pytest
from scipy.special import expit, ndtr, softmax

import cavity as cv

DRAWS = 200_000
K = 3

rng = np.random.default_rng(0)
# domain: two terms, and how to draw from them
DOMAINS = {
    "real": (
        (cv.gaussian(0.5, variance=1.0), lambda: rng.normal(0.5, 1.0, DRAWS)),
        (cv.gaussian(-0.2, variance=2.0), lambda: rng.normal(-0.2, np.sqrt(2.0), DRAWS)),
    ),
    "positive": (
        (cv.gamma(3.0, 2.0), lambda: rng.gamma(3.0, 0.5, DRAWS)),
        (cv.gamma(6.0, 4.0), lambda: rng.gamma(6.0, 0.25, DRAWS)),
    ),
    "unit": (
        (cv.beta(2.0, 3.0), lambda: rng.beta(2.0, 3.0, DRAWS)),
        (cv.beta(4.0, 3.0), lambda: rng.beta(4.0, 3.0, DRAWS)),
    ),
    "boolean": (
        (cv.bernoulli(0.3), lambda: rng.random(DRAWS) < 0.3),
        (cv.bernoulli(0.6), lambda: rng.random(DRAWS) < 0.6),
    ),
    "category": (
        (cv.categorical([0.2, 0.3, 0.5]), lambda: rng.choice(3, DRAWS, p=[0.2, 0.3, 0.5])),
        (cv.categorical([0.1, 0.3, 0.6]), lambda: rng.choice(3, DRAWS, p=[0.1, 0.3, 0.6])),
    ),
    "count": (
        (cv.poisson(2.0), lambda: rng.poisson(2.0, DRAWS)),
        (cv.poisson(3.5), lambda: rng.poisson(3.5, DRAWS)),
    ),
    "vector": (
        (cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)), lambda: rng.normal(size=(DRAWS, 2))),
        (cv.vector_gaussian(np.ones(2), covariance=np.eye(2)), lambda: 1.0 + rng.normal(size=(DRAWS, 2))),
    ),
    "simplex": (
        (cv.dirichlet([1.0, 2.0, 3.0]), lambda: rng.dirichlet([1.0, 2.0, 3.0], DRAWS)),
        (cv.dirichlet([2.0, 2.0, 3.0]), lambda: rng.dirichlet([2.0, 2.0, 3.0], DRAWS)),
    ),
}


def times(function):
    """A NumPy operation with numbers beside vectors."""

    def one(a, b):
        wide = max(np.ndim(a), np.ndim(b))
        return function(*(x[:, None] if np.ndim(x) == 1 and wide == 2 else x for x in (a, b)))

    return one


PAIRS = {
    "+": (operator.add, lambda a, b: 1 * a + 1 * b),  # booleans are counted
    "-": (operator.sub, operator.sub),
    "*": (operator.mul, times(operator.mul)),
    "/": (operator.truediv, times(operator.truediv)),
    ">": (operator.gt, operator.gt),
    ">=": (operator.ge, operator.ge),
    "==": (operator.eq, operator.eq),
    "!=": (operator.ne, operator.ne),
    "&": (operator.and_, operator.and_),
    "|": (operator.or_, operator.or_),
    "^": (operator.xor, operator.xor),
    "@": (operator.matmul, lambda a, b: np.sum(a * b, axis=-1)),
    "max": (cv.max, np.maximum),
    "min": (cv.min, np.minimum),
    "stack": (cv.stack, lambda a, b: np.stack(np.broadcast_arrays(a, b), axis=-1)),
}
SINGLES = {
    "-": (operator.neg, operator.neg),
    "~": (operator.invert, operator.invert),
    "**2": (lambda a: a**2, lambda a: a**2),
    "**3": (lambda a: a**3, lambda a: a**3),
    "**-1": (lambda a: a**-1, lambda a: 1.0 / a),
    "exp": (lambda a: cv.exp(-a), lambda a: np.exp(-a)),
    "log": (cv.log, np.log),
    "logistic": (cv.logistic, expit),
    "probit": (cv.probit, ndtr),
    "log of a sum": (lambda a: cv.log(cv.exp(a) + 1.0), lambda a: np.log1p(np.exp(a))),
    "nested": (lambda a: cv.logistic(a * a - cv.exp(-a)), lambda a: expit(a * a - np.exp(-a))),
}
OVER = {
    "sum": (cv.sum, lambda a: a.sum(-1)),
    "all": (cv.all, lambda a: a.all(-1)),
    "any": (cv.any, lambda a: a.any(-1)),
    "softmax": (cv.softmax, lambda a: softmax(a, axis=-1)),
    "stack": (lambda a, over: cv.stack(a, over=over), lambda a: a),
}
PLATED = ("real", "positive", "boolean", "category", "count")


def table():
    """One model with everything that the language accepts of the table, and the draws by name."""
    m = cv.Model("matrix")
    k = m.plate("k", K)
    nodes, draws = {}, {}
    for kind, terms in DOMAINS.items():
        for number, (term, draw) in enumerate(terms):
            nodes[kind, number] = m.random(f"{kind}{number}", term)
            draws[kind, number] = draw()
    for kind in PLATED:
        term, draw = DOMAINS[kind][0]
        nodes[kind, k] = m.random(f"{kind} over k", term, plates=k)
        draws[kind, k] = np.stack([draw() for _ in range(K)], axis=-1)
    cells = {}

    def add(name, build, function):
        try:
            expr = build()
            m.let(name, expr)
        except (cv.ModelError, cv.UnsupportedError):
            return  # no expression of the language
        with np.errstate(all="ignore"):
            cells[name] = (expr.domain, np.asarray(function()))

    for op, (build, function) in PAIRS.items():
        for a in DOMAINS:
            x, dx = nodes[a, 0], draws[a, 0]
            for b in DOMAINS:
                y, dy = nodes[b, 1], draws[b, 1]
                add(f"{a} {op} {b}", lambda: build(x, y), lambda: function(dx, dy))  # noqa: B023
            add(f"{a} {op} 2", lambda: build(x, 2), lambda: function(dx, 2))  # noqa: B023
            add(f"2 {op} {a}", lambda: build(2, x), lambda: function(2, dx))  # noqa: B023
            if op != ">=":  # of real numbers the same as >, except for a number and itself
                add(f"{a} {op} itself", lambda: build(x, x), lambda: function(dx, dx))  # noqa: B023
    for op, (build, function) in SINGLES.items():
        for a in DOMAINS:
            add(f"{op} of {a}", lambda: build(nodes[a, 0]), lambda: function(draws[a, 0]))  # noqa: B023
    for op, (build, function) in OVER.items():
        for a in PLATED:
            add(f"{op} over k of {a}", lambda: build(nodes[a, k], over=k), lambda: function(draws[a, k]))  # noqa: B023
    for a in PLATED:
        chosen, index = draws[a, k], draws["category", 0]
        add(f"{a}[category]", lambda: nodes[a, k][nodes["category", 0]], lambda: chosen[np.arange(DRAWS), index])  # noqa: B023
    return m, cells


def check(posterior, name, domain, values):
    """An answer that agrees with draws, or a sentence; whether there was an answer."""
    try:
        found = posterior[name]
        mean, sd = found.mean, found.sd
        assert repr(found)
    except (cv.UnsupportedError, cv.ModelError):
        return False
    if domain.kind == "category":
        size = domain.size if isinstance(domain.size, int) else domain.size.size
        values = values[:, None] == np.arange(size)
    values = np.asarray(values, float)
    if "may be zero" in found.note:  # a quotient without a mean: its quantiles, in sds of a normal number with these
        levels = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
        below = np.mean(values[:, None] <= found.quantile(levels), axis=0)
        np.testing.assert_allclose(below, levels, atol=0.01, err_msg=name)
        return True
    assert np.isfinite(mean).all(), name
    drawn, error = values.mean(0), values.std(0) / np.sqrt(DRAWS)
    # A quadrature of what jumps is good to a few thousandths.
    np.testing.assert_allclose(mean, drawn, atol=np.max(5.0 * error + 2e-3 * (1.0 + np.abs(drawn))), err_msg=name)
    light = np.all(np.abs((values - drawn) / np.maximum(values.std(0), 1e-9)).max(0) < 12.0)
    if domain.kind in ("real", "positive", "unit", "count") and values.ndim == 1 and light:
        np.testing.assert_allclose(sd, values.std(), rtol=0.03, atol=1e-3, err_msg=name)
    return True


EVERY = 11  # of the cells, in the default suite


@pytest.mark.parametrize("step", [EVERY, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
def test_every_cell_is_an_answer_or_a_sentence(step):
    m, cells = table()
    posterior = cv.infer(m, {})
    answered = sum(check(posterior, name, *cells[name]) for name in list(cells)[::step])
    assert answered > 0.85 * len(cells) / step


def test_a_count_that_is_compared():
    m = cv.Model()
    n = m.random("n", cv.poisson(2.0))
    m.let("big", n > 3)
    m.let("twice", n + n)
    m.let("none", n == 0)
    posterior = cv.infer(m, {})
    below = np.exp(-2.0) * (1 + 2 + 2 + 4 / 3)
    np.testing.assert_allclose(posterior["big"].mean, 1 - below, rtol=1e-9)
    np.testing.assert_allclose(posterior["none"].mean, np.exp(-2.0), rtol=1e-9)
    np.testing.assert_allclose([posterior["twice"].mean, posterior["twice"].variance], [4.0, 8.0], rtol=1e-9)

"""Blocks of rows give what all rows at once give, and hold a constant number of temporaries."""

from __future__ import annotations

import numpy as np
import pytest

import cavity as cv
from cavity.engine.values import row_blocks

close = np.testing.assert_allclose
N, D, K = 61, 3, 4


@pytest.fixture
def small_blocks(monkeypatch):
    """Every block of rows has eight of them: 61 rows are seven blocks and a last one that reaches back."""

    def cut():
        monkeypatch.setattr(row_blocks, "LARGE", 1)
        monkeypatch.setattr(row_blocks, "CELLS", 1)
        monkeypatch.setattr(row_blocks, "FEWEST", 8)

    return cut


def data(seed=0):
    random = np.random.default_rng(seed)
    x = random.standard_normal((N, D))
    return x, x @ np.array([1.0, -2.0, 0.5]), random


def weights(m, plates=()):
    return m.random("w", cv.vector_gaussian(np.zeros(D), covariance=np.eye(D)), plates=plates)


def softmax():
    x, s, random = data()
    m = cv.Model()
    row, cls = m.plate("row"), m.plate("class", K)
    inputs = m.input("x", cv.vector(D), plates=row)
    bias = m.random("bias", cv.gaussian(0.0, variance=1.0), plates=cls)
    m.random("y", cv.categorical(cv.softmax(cv.dot(weights(m, cls), inputs) + bias, over=cls)), plates=row)
    return m, {"x": x, "y": np.argmax(random.standard_normal((N, K)) + s[:, None] * np.arange(K), 1)}


def linked(link):
    def build():
        x, s, random = data()
        m = cv.Model()
        row = m.plate("row")
        inputs = m.input("x", cv.vector(D), plates=row)
        bias = m.random("bias", cv.gaussian(0.0, variance=1.0))
        score = cv.dot(weights(m), inputs) + bias
        if link == "exp":
            m.random("y", cv.poisson(cv.exp(score)), plates=row)
            return m, {"x": x, "y": random.poisson(np.exp(0.3 * s))}
        if link == "noise":
            precision = m.random("precision", cv.gamma(1.0, 1.0))
            m.random("y", cv.gaussian(score, precision=precision), plates=row)
            return m, {"x": x, "y": s + 0.3 * random.standard_normal(N)}
        m.random("y", cv.bernoulli(getattr(cv, link)(score)), plates=row)
        return m, {"x": x, "y": random.random(N) < 1.0 / (1.0 + np.exp(-s))}

    return build


def missing():
    m, given = linked("logistic")()
    y = given["y"].astype(float)
    y[::7] = np.nan
    return m, {**given, "y": y}


CASES = {
    "softmax": (softmax, "auto"),
    "softmax apart": (softmax, "ncvmp"),
    "logistic": (linked("logistic"), "auto"),
    "logistic ncvmp": (linked("logistic"), "ncvmp"),
    "logistic missing": (missing, "auto"),
    "logistic missing ncvmp": (missing, "ncvmp"),
    "probit": (linked("probit"), "auto"),
    "poisson": (linked("exp"), "auto"),
    "poisson ncvmp": (linked("exp"), "ncvmp"),
    "noise": (linked("noise"), "auto"),
    "noise vmp": (linked("noise"), "vmp"),
}


# Cases that a sibling covers: the same factor with missing outcomes, or the same method with another factor.
SLOW = {"softmax apart", "logistic", "logistic ncvmp", "logistic missing ncvmp", "probit", "poisson", "noise vmp"}


@pytest.mark.parametrize("case", [pytest.param(c, marks=[pytest.mark.slow] * (c in SLOW)) for c in CASES])
def test_blocks_of_rows_give_what_all_rows_give(case, small_blocks):
    build, method = CASES[case]
    model, given = build()
    options = {"max_iterations": 4} if case == "softmax apart" else {"tolerance": 1e-10}
    whole = cv.infer(model, given, method=method, **options)
    assert not whole.machine.rows
    small_blocks()
    parts = cv.infer(build()[0], given, method=method, **options)
    assert {cut.number for cut in parts.machine.rows.values()} == {8}
    assert whole.converged == parts.converged == (case != "softmax apart")
    close(parts.log_evidence, whole.log_evidence, rtol=1e-9)
    for name in ("w", "bias"):
        close(parts[name].mean, whole[name].mean, rtol=1e-7, atol=1e-8)
        close(parts[name].variance, whole[name].variance, rtol=1e-7)


@pytest.mark.parametrize("method", [pytest.param("ep", marks=pytest.mark.slow), "ncvmp"])
def test_gradients_of_the_evidence_pass_through_blocks(method, small_blocks):
    found = []
    for cut in (lambda: None, small_blocks):
        cut()
        model, given = linked("logistic")()
        posterior = cv.infer(model, given, method=method, tolerance=1e-11)
        assert bool(posterior.machine.rows) is (cut is small_blocks)
        found.append(posterior.evidence_gradient("x")["x"])
    close(found[1], found[0], rtol=1e-6, atol=1e-8)

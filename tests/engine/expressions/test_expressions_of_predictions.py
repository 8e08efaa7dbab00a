"""Expressions of predicted variables that share a parent: the joint distribution, or a verdict that tells."""

from __future__ import annotations

import numpy as np
import pytest

import cavity as cv

close = np.testing.assert_allclose


def family():
    m = cv.Model("family")
    n = m.plate("n", 3)
    a = m.random("a", cv.gaussian(1.0, sd=1.0))
    b = m.random("b", cv.gaussian(a, sd=1.0))
    c = m.random("c", cv.gaussian(b, sd=2.0))
    d = m.random("d", cv.gaussian(a, sd=m.random("s", cv.half_normal(1.0))))
    e = m.random("e", cv.gaussian(b, sd=1.0), plates=n)
    return m, n, a, b, c, d, e


def test_what_shares_a_parent_is_not_independent():
    m, n, a, b, c, d, e = family()
    wanted = {
        "sum": (a + b, 2.0, np.sqrt(5.0)),
        "three": (a + b - c, 1.0, np.sqrt(5.0)),
        "scaled": (d - a, 0.0, 1.0),
        "product": (a * b, 2.0, np.sqrt(8.0)),
        "two elements": (e[0] - e[1], 0.0, np.sqrt(2.0)),
        "over": (cv.sum(e, over=n), 3.0, np.sqrt(21.0)),
        "errors": (e - b, np.zeros(3), np.ones(3)),
        "larger": (cv.max(a, b), 1.0 + 1.0 / np.sqrt(2.0 * np.pi), np.sqrt(1.5 - 0.5 / np.pi)),
    }
    for name, (expression, _, _) in wanted.items():
        m.let(name, expression)
    found = cv.infer(m, {})
    for name, (_, mean, sd) in wanted.items():
        close(found[name].mean, mean, atol=1e-4)
        close(found[name].sd, sd, rtol=1e-4)
    assert found.verdict.level == "good"


def test_predictions_of_new_rows():
    m = cv.Model("rows")
    n = m.plate("n")
    mu = m.random("mu", cv.gaussian(0.0, sd=1.0))
    x = m.random("x", cv.gaussian(mu, sd=1.0), plates=n)
    y = m.random("y", cv.gaussian(x, sd=0.5), plates=n)
    m.let("error", y - x)
    m.let("difference", x[0] - x[1])
    new = cv.infer(m, {"y": [1.0, 2.0, 3.0]}).predict({}, sizes={"n": 4})
    close(new["error"].sd, np.full(4, 0.5), rtol=1e-9)
    close(new["difference"].sd, np.sqrt(2.0), rtol=1e-9)


@pytest.mark.parametrize("kind", ["counts", "chain"])
def test_what_has_no_joint_distribution_is_told(kind):
    m = cv.Model("told")
    if kind == "counts":
        rate = m.random("rate", cv.gamma(2.0, 1.0))
        m.let("total", m.random("k", cv.poisson(rate)) + m.random("j", cv.poisson(rate)))
    else:
        t = m.plate("t", 4)
        x = m.chain("x", over=t, first=cv.gaussian(0.0, sd=2.0), then=lambda p: cv.gaussian(p, sd=1.0))
        m.let("steps", x[1:] - x[:-1])
    m.let("own", 2.0 * m.random("alone", cv.gaussian(0.0, sd=1.0)))
    found = cv.infer(m, {})
    assert found.verdict.level == "doubtful"
    assert "as independent" in found.verdict.reason
    assert "'own'" not in found.verdict.reason

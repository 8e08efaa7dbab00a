"""`cv.where` on data with divisors that are zero where they are not chosen, against grids and weights made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import cavity as cv

X = np.array([0.0, 1.0, 2.0, -1.0, 3.0, 0.0])
Y = np.array([0.1, 2.0, 1.1, 0.0, 0.7, -0.2])
SAFE = np.where(X > 0, X, 1.0)


def chosen(mean):
    m = cv.Model("chosen")
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    b = m.random("b", cv.gaussian(0.0, sd=3.0))
    m.random("y", cv.gaussian(mean(m, b, x), sd=0.5))
    return m, {"x": X, "y": Y}


def on_a_grid(mean):
    b = np.linspace(-15.0, 15.0, 20001)
    logs = stats.norm.logpdf(b, 0.0, 3.0) + stats.norm.logpdf(Y, mean(b[:, None]), 0.5).sum(1)
    weights = np.exp(logs - logs.max())
    centre = weights @ b / weights.sum()
    log_z = np.log(weights.sum() * (b[1] - b[0])) + logs.max()
    return centre, np.sqrt(weights @ (b - centre) ** 2 / weights.sum()), log_z


@pytest.mark.parametrize("method", ["auto", "ep", "vmp"])
@pytest.mark.parametrize(
    "mean",
    [
        lambda m, b, x: cv.where(x > 0, b / x, 0.0),
        lambda m, b, x: cv.where(x <= 0, 0.0, b / x),
        lambda m, b, x: cv.where(x > 0, m.let("ratio", b / x), 0.0),
        lambda m, b, x: b * cv.where(x > 0, 1.0 / x, 0.0),
    ],
    ids=["first", "second", "named", "data"],
)
def test_a_quotient_by_data_with_zeros(method, mean):
    model, data = chosen(mean)
    found = cv.infer(model, data, method=method)
    wanted = on_a_grid(lambda b: np.where(X > 0, b / SAFE, 0.0))
    np.testing.assert_allclose([found["b"].mean, found["b"].sd, found.log_evidence], wanted, rtol=1e-7)


@pytest.mark.parametrize(
    ("mean", "by_hand"),
    [
        (lambda m, b, x: cv.where(x > 0, cv.exp(b / x), 0.0), lambda b: np.where(X > 0, np.exp(b / SAFE), 0.0)),
        (
            lambda m, b, x: cv.where(x > 0, cv.where(x > 1, b / (x - 1.0), b), 1.0 + b),
            lambda b: np.where(X > 0, np.where(X > 1, b / np.where(X > 1, X - 1.0, 1.0), b), 1.0 + b),
        ),
    ],
    ids=["inside", "nested"],
)
def test_a_quotient_inside_what_is_chosen(mean, by_hand):
    model, data = chosen(mean)
    found = cv.infer(model, data)
    np.testing.assert_allclose([found["b"].mean, found["b"].sd, found.log_evidence], on_a_grid(by_hand), rtol=5e-3)
    assert np.isfinite(cv.log_density(model, data)({"b": 0.3}))


def test_data_that_are_equal_are_at_least_as_large():
    """Random numbers are equal with probability zero; data need not be."""
    model, data = chosen(lambda m, b, x: b * cv.where(x >= 0, 1.0, 2.0) + cv.where(x <= 1, 1.0, 0.0))
    found = cv.infer(model, data)
    wanted = on_a_grid(lambda b: b * np.where(X >= 0, 1.0, 2.0) + np.where(X <= 1, 1.0, 0.0))
    np.testing.assert_allclose([found["b"].mean, found["b"].sd, found.log_evidence], wanted, rtol=1e-7)

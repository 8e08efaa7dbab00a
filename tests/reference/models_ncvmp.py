"""The programs of ncvmp.json."""

from __future__ import annotations

from models_ep_gamma_logistic import logistic_weight

import cavity as cv

__all__ = ["logistic_regression", "logistic_weight", "softmax_of_three", "standard_logistic"]


def standard_logistic(case):
    m = cv.Model("logistic")
    x = m.random("x", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.bernoulli(cv.logistic(x)))
    return m


def logistic_regression(case):
    """Two scalar weights: apart in the approximation, as one vector they would not be."""
    m = cv.Model("logistic regression")
    row = m.plate("row")
    first, second = (m.input(name, cv.real, plates=row) for name in ("x1", "x2"))
    w1, w2 = (m.random(name, cv.gaussian(1.2, precision=0.4)) for name in ("w1", "w2"))
    m.random("y", cv.bernoulli(cv.logistic(w1 * first + w2 * second)))
    return m


def softmax_of_three(case):
    m = cv.Model("softmax")
    k = m.plate("k", 3)
    x = m.random("x", cv.gaussian(0.0, variance=1.0), plates=k)
    m.random("y", cv.categorical(cv.softmax(x, over=k)))
    return m

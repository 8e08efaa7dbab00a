"""Softmax regression: classes from linear scores."""

import cavity as cv  # pyright: ignore[reportMissingImports]

from ..factors.calls import call_checked
from .linear_score import weight_prior


@call_checked
def softmax_regression(
    features: int, classes: int, prior_variance: float | str = 1.0, bias_variance: float = 1.0
) -> cv.Model:
    """y_i ~ Categorical(softmax_k(<weight_k, x_i> + bias_k)), weight_k ~ N(0, prior_variance I), bias_k ~ N(0, b).

    `prior_variance` is a number, or learned: "shared" gives all weights N(0, 1 / precision) with precision ~ Gamma(1,
    0.1), "per class" gives each class a precision of its own. The biases have variance b = `bias_variance` in any case.
    Standardise the features. `features` is the length of each x, `classes` the number of values of y. Inputs: `x`
    (row, features). Random: `weight` (class, features), `bias` (class), `y` (row, values 0 to classes - 1), which is
    usually observed, and `precision` () or (class) where it is learned. Deterministic: `score` (row, class). Returns
    the model. Raises ModelError for another word. Source: knowles2011ncvmp.
    """
    m = cv.Model("softmax regression")
    row, cls = m.plate("row"), m.plate("class", classes)
    x = m.input("x", cv.vector(features), plates=row)
    weight = m.random("weight", weight_prior(m, features, prior_variance, cls), plates=cls)
    bias = m.random("bias", cv.gaussian(0.0, variance=bias_variance), plates=cls)
    score = m.let("score", cv.dot(weight, x) + bias)
    m.random("y", cv.categorical(cv.softmax(score, over=cls)), plates=row)
    return m

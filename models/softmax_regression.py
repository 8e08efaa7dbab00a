"""Softmax regression: classes from linear scores."""

import numpy as np

import cavity as cv  # pyright: ignore[reportMissingImports]


def softmax_regression(
    features: int, classes: int, prior_variance: float | str = 1.0, bias_variance: float = 1.0
) -> cv.Model:
    """y_i ~ Categorical(softmax_k(<weight_k, x_i> + bias_k)), weight_k ~ N(0, prior_variance I), bias_k ~ N(0, b).

    `prior_variance` is a number, or learned: "shared" gives all weights N(0, 1 / precision) with precision ~ Gamma(1,
    1), "per class" gives each class a precision of its own. The biases have variance b =
    `bias_variance` in any case. Standardise the features. `features` is the length of each x, `classes` the number of
    values of y. Inputs: `x` (row, features). Random: `weight` (class, features), `bias` (class), `y` (row, values 0 to
    classes - 1), which is usually observed, and `precision` () or (class) where it is learned. Deterministic: `score`
    (row, class). Returns the model. Raises ModelError for another word. Source: knowles2011ncvmp.
    """
    m = cv.Model("softmax regression")
    row, cls = m.plate("row"), m.plate("class", classes)
    x = m.input("x", cv.vector(features), plates=row)
    if prior_variance in ("shared", "per class"):
        owner = cls if prior_variance == "per class" else ()
        precision = m.random("precision", cv.gamma(shape=1.0, rate=1.0), plates=owner)
        prior = cv.vector_gaussian(np.zeros(features), precision=precision)
    elif isinstance(prior_variance, str):
        raise cv.ModelError(f'prior_variance={prior_variance!r} is no number. Give one, or "shared" or "per class".')
    else:
        prior = cv.vector_gaussian(np.zeros(features), covariance=prior_variance * np.eye(features))
    weight = m.random("weight", prior, plates=cls)
    bias = m.random("bias", cv.gaussian(0.0, variance=bias_variance), plates=cls)
    score = m.let("score", cv.dot(weight, x) + bias)
    m.random("y", cv.categorical(cv.softmax(score, over=cls)), plates=row)
    return m

"""Heteroskedastic regression: a linear mean, and a linear logarithm of the precision."""

import numpy as np

import cavity as cv  # pyright: ignore[reportMissingImports]


def heteroskedastic_regression(features: int) -> cv.Model:
    """y_i ~ N(<weight, x_i> + bias, precision = exp(<precision_weight, x_i> + precision_bias)).

    The exponential is a precision, one over the variance of the noise: a positive precision weight means less noise
    where its feature grows. All weights and biases have standard normal priors; standardise the features and y.
    `features` is the length of each x. Inputs: `x` (row, features). Random: `weight` (features), `bias`,
    `precision_weight` (features), `precision_bias`, `y` (row), which is usually observed. Deterministic: `mean` (row),
    `log_precision` (row). Returns the model. Source: knowles2012thesis.
    """
    m = cv.Model("heteroskedastic regression")
    row = m.plate("row")
    x = m.input("x", cv.vector(features), plates=row)
    standard = {"mean": np.zeros(features), "covariance": np.eye(features)}
    weight = m.random("weight", cv.vector_gaussian(**standard))
    bias = m.random("bias", cv.gaussian(0.0, variance=1.0))
    precision_weight = m.random("precision_weight", cv.vector_gaussian(**standard))
    precision_bias = m.random("precision_bias", cv.gaussian(0.0, variance=1.0))
    mean = m.let("mean", cv.dot(weight, x) + bias)
    log_precision = m.let("log_precision", cv.dot(precision_weight, x) + precision_bias)
    m.random("y", cv.gaussian(mean, precision=cv.exp(log_precision)))
    return m

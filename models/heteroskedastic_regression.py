"""Heteroskedastic regression: a linear mean, and a linear logarithm of the precision."""

import cavity as cv  # pyright: ignore[reportMissingImports]

from ..factors.calls import call_checked
from .linear_score import weight_prior


@call_checked
def heteroskedastic_regression(features: int, prior_variance: float | str = 1.0) -> cv.Model:
    """y_i ~ N(<weight, x_i> + bias, precision = exp(<precision_weight, x_i> + precision_bias)).

    The exponential is a precision, one over the variance of the noise: a positive precision weight means less noise
    where its feature grows. All weights have N(0, prior_variance I), all biases standard normal priors; standardise the
    features and y. `prior_variance` is a number, or "shared", which learns one for the weights and one for the
    precision weights: N(0, I / weight_precision), N(0, I / precision_weight_precision), both precisions ~
    Gamma(1, 0.1). `features` is the length of each x. Inputs: `x` (row, features). Random: `weight` (features), `bias`,
    `precision_weight` (features), `precision_bias`, `y` (row), which is usually observed, and the two precisions where
    they are learned. Deterministic: `mean` (row), `log_precision` (row). Returns the model. Raises ModelError for
    another word. Source: knowles2012thesis.
    """
    m = cv.Model("heteroskedastic regression")
    row = m.plate("row")
    x = m.input("x", cv.vector(features), plates=row)
    weight = m.random("weight", weight_prior(m, features, prior_variance, name="weight_precision"))
    bias = m.random("bias", cv.gaussian(0.0, variance=1.0))
    prior = weight_prior(m, features, prior_variance, name="precision_weight_precision")
    precision_weight = m.random("precision_weight", prior)
    precision_bias = m.random("precision_bias", cv.gaussian(0.0, variance=1.0))
    mean = m.let("mean", cv.dot(weight, x) + bias)
    log_precision = m.let("log_precision", cv.dot(precision_weight, x) + precision_bias)
    m.random("y", cv.gaussian(mean, precision=cv.exp(log_precision)))
    return m

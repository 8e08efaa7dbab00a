"""Poisson regression: counts whose logarithmic rate is linear."""

import cavity as cv  # pyright: ignore[reportMissingImports]

from ..factors.calls import call_checked
from .linear_score import linear_score


@call_checked
def poisson_regression(features: int, prior_variance: float | str = 1.0, bias_variance: float = 10.0) -> cv.Model:
    """y_i ~ Poisson(exp(<weight, x_i> + bias)).

    Priors: weight ~ N(0, prior_variance I), bias ~ N(0, bias_variance), which is wide, since the bias is the logarithm
    of a typical count. `prior_variance` is a number, or "shared", which learns it: N(0, I / precision) with precision ~
    Gamma(1, 0.1). Standardise the features. `features` is the length of each x. Inputs: `x` (row, features). Random:
    `weight` (features), `bias`, `precision` where it is learned, `y` (row, counts), which is usually observed.
    Deterministic: `score` (row), the logarithm of the rate. Returns the model. Raises ModelError for another word.
    Source: knowles2011ncvmp, minka2001ep.
    """
    m = cv.Model("Poisson regression")
    row = m.plate("row")
    score = linear_score(m, row, features, prior_variance, bias_variance)
    m.random("y", cv.poisson(cv.exp(score)))
    return m

"""Probit regression: a binary outcome from the sign of a linear score with Gaussian noise."""

import cavity as cv  # pyright: ignore[reportMissingImports]

from ..factors.calls import call_checked
from .linear_score import linear_score


@call_checked
def probit_regression(features: int, prior_variance: float | str = 1.0, bias_variance: float = 1.0) -> cv.Model:
    """y_i ~ Bernoulli(Phi(<weight, x_i> + bias)), Phi the standard normal distribution function.

    Priors: weight ~ N(0, prior_variance I), bias ~ N(0, bias_variance). `prior_variance` is a number, or "shared",
    which learns it: N(0, I / precision) with precision ~ Gamma(1, 0.1). Standardise the features. `features` is the
    length of each x. Inputs: `x` (row, features). Random: `weight` (features), `bias`, `precision` where it is learned,
    `y` (row, booleans), which is usually observed. Deterministic: `score` (row). Returns the model. Raises ModelError
    for another word. Source: minka2001ep.
    """
    m = cv.Model("probit regression")
    row = m.plate("row")
    score = linear_score(m, row, features, prior_variance, bias_variance)
    m.random("y", cv.bernoulli(cv.probit(score)))
    return m

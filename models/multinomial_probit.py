"""Multinomial probit regression: the class of the largest of noisy linear scores."""

import cavity as cv  # pyright: ignore[reportMissingImports]

from ..factors.calls import call_checked
from .linear_score import weight_prior


@call_checked
def multinomial_probit(
    features: int, classes: int, prior_variance: float | str = 1.0, bias_variance: float = 1.0
) -> cv.Model:
    """y_i = argmax_k <weight_k, x_i> + bias_k + e_ik, all e_ik ~ N(0, 1).

    Priors: weight_k ~ N(0, prior_variance I), bias_k ~ N(0, bias_variance). `prior_variance` is a number, or learned:
    "shared" gives all weights N(0, 1 / precision) with precision ~ Gamma(1, 0.1), "per class" gives each class a
    precision of its own. Standardise the features. `features` is the length of each x, `classes` the number of values
    of y. Inputs: `x` (row, features). Random: `weight` (class, features), `bias` (class), `y` (row, values 0 to
    classes - 1), which is usually observed, and `precision` () or (class) where it is learned. Returns the model.
    Raises ModelError for another word. Source: girolami2006multinomial.
    """
    m = cv.Model("multinomial probit regression")
    row, cls = m.plate("row"), m.plate("class", classes)
    x = m.input("x", cv.vector(features), plates=row)
    weight = m.random("weight", weight_prior(m, features, prior_variance, cls), plates=cls)
    bias = m.random("bias", cv.gaussian(0.0, variance=bias_variance), plates=cls)
    score = m.let("score", cv.dot(weight, x) + bias)
    m.random("y", cv.categorical(cv.probit(score, over=cls)), plates=row)
    return m

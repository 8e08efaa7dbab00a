"""The linear score that regressions with one outcome share."""

import numpy as np

import cavity as cv  # pyright: ignore[reportMissingImports]

from ..compiler.language.nodes import Expr, Plate


def linear_score(m: cv.Model, row: Plate, features: int, prior_variance: float, bias_variance: float) -> Expr:
    """<weight, x> + bias with weight ~ N(0, prior_variance I) and bias ~ N(0, bias_variance), declared in a model.

    `m` is the model, `row` its plate of rows, `features` the length of each x. Declares the input `x` (row, features),
    the random `weight` (features) and `bias`, and the deterministic `score` (row), which is returned.
    """
    x = m.input("x", cv.vector(features), plates=row)
    prior = cv.vector_gaussian(np.zeros(features), covariance=prior_variance * np.eye(features))
    weight = m.random("weight", prior)
    bias = m.random("bias", cv.gaussian(0.0, variance=bias_variance))
    return m.let("score", cv.dot(weight, x) + bias)

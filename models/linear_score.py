"""The linear score that regressions with one outcome share, and the prior of weights that all of them have."""

from __future__ import annotations

import numpy as np

import cavity as cv  # pyright: ignore[reportMissingImports]

from ..compiler.language.nodes import Expr, Plate
from ..factors.factor import Term

SHAPE, RATE = 1.0, 0.1  # of the Gamma prior of a learned precision: weights of standardised features are mostly small


def linear_score(m: cv.Model, row: Plate, features: int, prior_variance: float | str, bias_variance: float) -> Expr:
    """<weight, x> + bias with weight ~ N(0, prior_variance I) and bias ~ N(0, bias_variance), declared in a model.

    `m` is the model, `row` its plate of rows, `features` the length of each x. Declares the input `x` (row, features),
    the random `weight` (features) and `bias`, the `precision` of the weights where `prior_variance` is "shared" (see
    `weight_prior`), and the deterministic `score` (row), which is returned.
    """
    x = m.input("x", cv.vector(features), plates=row)
    weight = m.random("weight", weight_prior(m, features, prior_variance))
    bias = m.random("bias", cv.gaussian(0.0, variance=bias_variance))
    return m.let("score", cv.dot(weight, x) + bias)


def weight_prior(
    m: cv.Model, features: int, prior_variance: float | str, owner: Plate | None = None, name: str = "precision"
) -> Term:
    """N(0, prior_variance I) of the weights of standardised features, given or learned.

    A number `prior_variance` is taken as it is. "shared" learns it: N(0, I / precision) with precision ~ Gamma(1, 0.1),
    declared in `m` as the random variable called `name`, one for all weights; "per class" one for each element of the
    plate `owner`, where there is one. `features` is the length of a weight. Raises ModelError for another word.
    """
    if not isinstance(prior_variance, str):
        return cv.vector_gaussian(np.zeros(features), covariance=prior_variance * np.eye(features))
    words = {"shared": (), "per class": owner} if owner else {"shared": ()}
    if prior_variance not in words:
        known = " or ".join(f'"{word}"' for word in words)
        raise cv.ModelError(f"prior_variance={prior_variance!r} is no number. Give one, or {known}, which learn it.")
    precision = m.random(name, cv.gamma(shape=SHAPE, rate=RATE), plates=words[prior_variance])
    return cv.vector_gaussian(np.zeros(features), precision=precision)

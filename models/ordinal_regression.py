"""Ordinal regression: ordered classes from a linear score with Gaussian noise, cut at learned points."""

from itertools import accumulate

import numpy as np

import cavity as cv  # pyright: ignore[reportMissingImports]

from ..factors.calls import call_checked


def gaps(classes: int) -> tuple[str, ...]:
    """The inputs with the distances between neighbouring cutpoints."""
    return tuple(f"gap_{k}" for k in range(1, classes - 1))


@call_checked
def ordinal_regression(features: int, classes: int, bias_variance: float = 10.0) -> cv.Model:
    """P(y_i <= k) = Phi(cutpoint_k - <weight, x_i> - bias), k = 0, ..., classes - 2: the ordered probit.

    Priors: weight ~ N(0, I / precision), bias ~ N(0, bias_variance). The first cutpoint is zero, since the bias moves
    all of them; the others follow at the distances gap_1, gap_2, ... So they keep their order, and the posterior of
    weights and bias is one Gaussian with all covariances. (Cutpoints that are Gaussian variables with a constraint for
    each row would be tied by EP only through loops: their sds come out as 0.4 to 0.7 of the true ones.) Standardise the
    features. Inputs: `x` (row, features), and the positive numbers `precision`, `gap_1`, ..., `gap_(classes - 2)`,
    which `cv.learn(program, data, ("precision", *gaps(classes)))` fits by the gradient of the evidence. Random:
    `weight` (features), `bias`, `y` (row, values 0 to classes - 1), which is usually observed. Deterministic: `score`
    (row). Returns the model. Source: mccullagh1980ordinal, chu2005ordinal.
    """
    m = cv.Model("ordinal regression")
    row = m.plate("row")
    x = m.input("x", cv.vector(features), plates=row)
    precision = m.input("precision", cv.positive)
    distances = [m.input(name, cv.positive) for name in gaps(classes)]
    weight = m.random("weight", cv.vector_gaussian(np.zeros(features), precision=precision))
    bias = m.random("bias", cv.gaussian(0.0, variance=bias_variance))
    score = m.let("score", cv.dot(weight, x) + bias)
    cutpoints = cv.stack(0.0, *accumulate(distances)) if distances else np.zeros(1)
    m.random("y", cv.ordered_probit(score, cutpoints))
    return m

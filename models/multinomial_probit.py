"""Multinomial probit regression: the class of the largest of noisy linear scores."""

import numpy as np

import cavity as cv  # pyright: ignore[reportMissingImports]


def multinomial_probit(features: int, classes: int) -> cv.Model:
    """y_i = argmax_k <weight_k, x_i> + bias_k + e_ik, all e_ik ~ N(0, 1), weight_k ~ N(0, I), bias_k ~ N(0, 1).

    Standardise the features. `features` is the length of each x, `classes` the number of values of y. Inputs: `x`
    (row, features). Random: `weight` (class, features), `bias` (class), `y` (row, values 0 to classes - 1), which is
    usually observed. Returns the model. Source: girolami2006multinomial.
    """
    m = cv.Model("multinomial probit regression")
    row, cls = m.plate("row"), m.plate("class", classes)
    x = m.input("x", cv.vector(features), plates=row)
    weight = m.random("weight", cv.vector_gaussian(np.zeros(features), covariance=np.eye(features)), plates=cls)
    bias = m.random("bias", cv.gaussian(0.0, variance=1.0), plates=cls)
    score = m.let("score", cv.dot(weight, x) + bias)
    m.random("y", cv.categorical(cv.probit(score, over=cls)), plates=row)
    return m

"""Marginals of named probabilities and positive numbers: the mean and variance of a function of a Gaussian or Gamma."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, ndtr

import cavity as cv


@pytest.fixture(scope="module")
def posterior():
    m = cv.Model("functions")
    s = m.random("s", cv.gaussian(0.7, variance=2.0))
    t = m.random("t", cv.gamma(5.0, 2.0))
    m.let("logistic", cv.logistic(s))
    m.let("probit", cv.probit(0.5 * s - 1.0))
    m.let("exp", cv.exp(0.3 * s))
    m.let("inverse", 1.0 / t)
    return cv.infer(m, {})


def of_gaussian(function):
    z = np.linspace(-12.0, 12.0, 200001)
    weight = np.exp(-0.5 * z**2)
    weight /= weight.sum()
    values = function(0.7 + np.sqrt(2.0) * z)
    mean = weight @ values
    return mean, weight @ (values - mean) ** 2


@pytest.mark.parametrize(
    ("name", "function"),
    [("logistic", expit), ("probit", lambda s: ndtr(0.5 * s - 1.0)), ("exp", lambda s: np.exp(0.3 * s))],
)
def test_function_of_a_gaussian(posterior, name, function):
    mean, variance = of_gaussian(function)
    np.testing.assert_allclose(posterior[name].mean, mean, rtol=1e-6)
    np.testing.assert_allclose(posterior[name].variance, variance, rtol=1e-5)


def test_inverse_of_a_gamma_keeps_its_mean(posterior):
    np.testing.assert_allclose(posterior["inverse"].mean, 2.0 / 4.0, rtol=1e-9)


def test_a_product_of_probabilities():
    m = cv.Model()
    p, q = (m.random(name, cv.beta(2.0, 3.0)) for name in ("p", "q"))
    m.let("both", p * q)
    both = cv.infer(m, {})["both"]
    np.testing.assert_allclose(both.mean, 0.4**2, rtol=1e-6)
    np.testing.assert_allclose(both.variance, (2 * 3 / (5 * 6)) ** 2 - 0.4**4, rtol=1e-5)


def test_what_has_no_mean_is_refused():
    m = cv.Model()
    n = m.random("n", cv.poisson(2.0))
    m.let("inverse", 1.0 / n)
    with pytest.raises(cv.UnsupportedError, match="may be zero"):
        cv.infer(m, {})["inverse"]

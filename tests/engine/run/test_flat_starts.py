"""Flat priors whose variables meet others in one factor under VMP begin from beliefs that have moments."""

from __future__ import annotations

import numpy as np
import pytest

import cavity as cv

NOISE = np.array([[1.0, 0.3], [0.3, 1.0]])
Y = np.random.default_rng(0).normal(size=(20, 2)) + np.array([1.0, 2.0])


@pytest.mark.parametrize("accuracy", ["fast", "default"])
def test_flat_numbers_that_are_stacked(accuracy):
    m = cv.Model("stacked")
    n = m.plate("n")
    a, b = m.random("a", cv.flat()), m.random("b", cv.flat())
    m.random("y", cv.vector_gaussian(cv.stack(a, b), covariance=NOISE), plates=n)
    found = cv.infer(m, {"y": Y}, accuracy=accuracy)
    np.testing.assert_allclose([found["a"].mean, found["b"].mean], Y.mean(0), atol=1e-6)
    sd = np.sqrt(1.0 / 20) if accuracy == "default" else np.sqrt((1.0 - 0.3**2) / 20)  # VMP: given the other
    np.testing.assert_allclose([found["a"].sd, found["b"].sd], sd, rtol=1e-5)


def test_what_the_data_do_not_bound_is_still_improper():
    m = cv.Model("improper")
    n = m.plate("n")
    a, b = m.random("a", cv.flat()), m.random("b", cv.flat())
    m.random("y", cv.vector_gaussian(cv.stack(a + b, 1.0), covariance=NOISE), plates=n)
    with pytest.raises(cv.UnsupportedError, match="flat prior"):
        cv.infer(m, {"y": Y})

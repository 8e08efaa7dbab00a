"""Expressions of predicted counts, against the Poisson distribution and sums over its values."""

from __future__ import annotations

import numpy as np
from scipy import stats

import cavity as cv

close = np.testing.assert_allclose


def test_the_counts_of_a_plate_may_lie_orders_of_magnitude_apart():
    """Each element has its own points: those of the widest would step over all of a narrow one."""
    m = cv.Model()
    rows = m.plate("rows")
    y = m.random("y", cv.poisson(m.input("rate", cv.positive, rows)), rows)
    m.let("half", 0.5 * y)
    m.let("square", y * y)
    m.let("many", y > 50)
    rate = np.array([2.0, 50.0, 1e4, 1e7])
    found = cv.infer(m, {"rate": rate})
    close(found["half"].mean, 0.5 * rate, rtol=1e-8)
    close(found["half"].variance, 0.25 * rate, rtol=1e-6)
    close(found["square"].mean, rate + rate**2, rtol=1e-8)
    fourth = rate**4 + 6 * rate**3 + 7 * rate**2 + rate
    close(found["square"].variance[:3], (fourth - (rate + rate**2) ** 2)[:3], rtol=1e-6)
    close(found["many"].mean, stats.poisson.sf(50, rate), rtol=1e-9)


def test_a_count_that_is_far_from_zero_and_narrow():
    m = cv.Model()
    m.let("half", 0.5 * m.random("y", cv.poisson(1e7)))
    half = cv.infer(m, {})["half"]
    close((half.mean, half.variance), (0.5e7, 0.25e7), rtol=1e-6)


def test_counts_of_random_rates_that_lie_orders_of_magnitude_apart():
    """Poisson counts over a gamma rate, whose variance is e E r + e^2 Var r for the exposure e."""
    m = cv.Model()
    rows = m.plate("rows")
    r = m.random("r", cv.gamma(2.0, 1.0))
    y = m.random("y", cv.poisson(r * m.input("exposure", cv.positive, rows)), rows)
    m.let("half", 0.5 * y)
    e = np.array([1.0, 1000.0])
    half = cv.infer(m, {"exposure": e})["half"]
    close(half.mean, 0.5 * 2.0 * e, rtol=1e-3)
    close(half.variance, 0.25 * (2.0 * e + 2.0 * e**2), rtol=1e-3)


def test_two_counts_of_different_size_that_are_compared():
    m = cv.Model()
    few, many = m.random("few", cv.poisson(50.0)), m.random("many", cv.poisson(300.0))
    m.let("more", many > 6 * few)
    k = np.arange(400)
    wanted = stats.poisson.pmf(k, 50.0) @ stats.poisson.sf(6 * k, 300.0)
    close(cv.infer(m, {})["more"].mean, wanted, rtol=1e-9)

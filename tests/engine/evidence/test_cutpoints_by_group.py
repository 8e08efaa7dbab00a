"""Ordered cutpoints of each group, `c[w]`: the same as a model of each group where they share nothing."""

from __future__ import annotations

import numpy as np

import cavity as cv


def of_groups(number):
    m = cv.Model("raters")
    rater, n = m.plate("rater", number), m.plate("n")
    w, x = m.input("w", cv.index(rater), plates=n), m.input("x", cv.real, plates=n)
    c = m.random("c", cv.ordered(cv.gaussian(0.0, sd=2.0), size=2), plates=rater)
    m.random("y", cv.ordered_logistic(x, c[w]))
    return m


def test_each_group_has_its_own_cutpoints():
    rng = np.random.default_rng(0)
    w, x = np.repeat([0, 1], 12), rng.normal(size=24)
    y = (x[:, None] + rng.logistic(size=(24, 1)) > np.array([[-2.0, 1.0], [0.0, 3.0]])[w]).sum(1)
    together = cv.infer(of_groups(2), {"w": w, "x": x, "y": y}, accuracy="fast", tolerance=1e-9)
    evidence = 0.0
    for group in (0, 1):
        own = w == group
        data = {"w": np.zeros(12, int), "x": x[own], "y": y[own]}
        alone = cv.infer(of_groups(1), data, accuracy="fast", tolerance=1e-9)
        np.testing.assert_allclose(together["c"].mean[group], alone["c"].mean[0], atol=1e-5)
        np.testing.assert_allclose(together["c"].sd[group], alone["c"].sd[0], atol=1e-5)
        evidence += alone.log_evidence
    np.testing.assert_allclose(together.log_evidence, evidence, atol=1e-6)

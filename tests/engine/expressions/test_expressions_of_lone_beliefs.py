"""Expressions of variables that nothing observed depends on, whose beliefs are of no family that messages have."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from scipy.special import expit

import cavity as cv


def lone_beliefs(m):
    """Variables that no data speak of, whose beliefs are of no family that messages have; and draws of them."""
    rng = np.random.default_rng(3)
    z, flag = rng.normal(size=(4, 400_000)), rng.random(400_000) < 0.3
    choose = m.random("choose", cv.bernoulli(0.3))
    one, two = np.array([1.0, -1.0]), np.array([-2.0, 3.0])
    covariance = np.array([[1.5, 0.6], [0.6, 1.0]])
    m.random("half", cv.half_normal(2.0))
    m.random("t", cv.student_t(8.0, 0.5, 1.0))
    m.random("mixture", cv.switch(choose, cv.gaussian(3.0, variance=0.5), cv.gaussian(-1.0, variance=1.0)))
    m.random("cut", cv.truncated_gaussian(0.0, variance=1.0, low=-np.inf, high=1.0))
    m.random("spike", cv.spike_and_slab(0.4, variance=2.0))
    m.random("vector", cv.vector_gaussian(np.array([0.3, -0.2]), covariance=covariance))
    m.random("vectors", cv.switch(choose, *(cv.vector_gaussian(c, covariance=covariance) for c in (one, two))))
    noise = z[:2].T @ np.linalg.cholesky(covariance).T
    return {
        "half": 2.0 * np.abs(z[0]),
        "t": 0.5 + rng.standard_t(8, size=400_000),
        "mixture": np.where(flag, 3.0 + np.sqrt(0.5) * z[2], z[3] - 1.0),
        "cut": scipy.stats.truncnorm.ppf(rng.random(400_000), -np.inf, 1.0),
        "spike": (rng.random(400_000) < 0.4) * np.sqrt(2.0) * z[3],
        "vector": np.array([0.3, -0.2]) + noise,
        "vectors": np.where(flag[:, None], one, two) + noise,
    }


@pytest.mark.slow
def test_functions_of_beliefs_that_are_no_members_of_their_family():
    """Mean, sd and quantiles against draws: of one number, of two, and of two elements of one vector."""
    m = cv.Model()
    draws = lone_beliefs(m)
    direction = np.array([1.0, -0.7])
    named = {
        "log of half": (lambda v: cv.log(v["half"]), lambda d: np.log(d["half"])),
        "square of t": (lambda v: v["t"] ** 2, lambda d: d["t"] ** 2),
        "logistic of mixture": (lambda v: cv.logistic(v["mixture"]), lambda d: expit(d["mixture"])),
        "exp of cut": (lambda v: cv.exp(v["cut"]), lambda d: np.exp(d["cut"])),
        "logistic of spike": (lambda v: cv.logistic(v["spike"]), lambda d: expit(d["spike"])),
        "product": (lambda v: v["half"] * v["t"], lambda d: d["half"] * d["t"]),
        "elements": (
            lambda v: cv.element(v["vector"], 0) * cv.element(v["vector"], 1),
            lambda d: d["vector"][:, 0] * d["vector"][:, 1],
        ),
        "square of dot": (lambda v: cv.dot(v["vectors"], direction) ** 2, lambda d: (d["vectors"] @ direction) ** 2),
        "above": (lambda v: v["t"] > 1.0, lambda d: d["t"] > 1.0),
    }
    for name, (expression, _) in named.items():
        m.let(name, expression(m.randoms))
    found = cv.infer(m, {})
    for name, (_, values) in named.items():
        own, truth = found[name], values(draws).astype(float)
        assert abs(own.mean - truth.mean()) < 5 * truth.std() / np.sqrt(truth.size), name
        assert np.isclose(own.sd, truth.std(), rtol=0.01), name
        if name != "above":
            for level in (0.1, 0.5, 0.9):  # which may lie within an atom
                x = own.quantile(level)
                assert (truth < x - 1e-9).mean() - 0.006 < level < (truth <= x + 1e-9).mean() + 0.006, name


def test_a_function_that_has_no_mean_has_quantiles():
    m = cv.Model()
    m.let("square", m.random("x", cv.half_cauchy(1.0)) ** 2)
    m.let("log", cv.log(m.randoms["x"]))
    found = cv.infer(m, {})
    assert not np.isfinite(found["square"].mean)
    levels = np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(found["square"].quantile(levels), np.tan(np.pi / 2 * levels) ** 2, rtol=1e-2)
    assert np.isclose(found["log"].sd, np.pi / 2, rtol=1e-4)

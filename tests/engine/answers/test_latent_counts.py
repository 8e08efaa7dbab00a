"""Counts that are inferred, against sums over all their values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import cavity as cv

close = np.testing.assert_allclose
K = np.arange(200)


def by_summation(log_prior, log_likelihood):
    """Probabilities of the values, their mean and variance, and the log evidence."""
    logs = log_prior + log_likelihood
    p = np.exp(logs - logs.max())
    total, p = p.sum(), p / p.sum()
    mean = p @ K
    return p, mean, p @ (K - mean) ** 2, np.log(total) + logs.max()


def agrees(marginal, wanted):
    p, mean, variance, _ = wanted
    close(marginal.mean, mean, rtol=1e-8)
    close(marginal.variance, variance, rtol=1e-8)
    close(marginal.quantile([0.1, 0.5, 0.9]), np.searchsorted(p.cumsum(), [0.1, 0.5, 0.9]))
    close(np.exp(marginal.log_density(3)), p[3], rtol=1e-8)
    draws = marginal.sample(0, (20_000,))
    assert abs(draws.mean() - mean) < 5 * np.sqrt(variance / 20_000)
    assert abs(draws.var() / variance - 1) < 0.1


def test_a_thinned_count_has_its_own_variance(tmp_path):
    """Poisson(6) of which each was seen with probability .3: what was seen, and a Poisson(4.2) besides."""
    m = cv.Model()
    n = m.random("n", cv.poisson(6.0))
    m.random("y", cv.binomial(n, 0.3))
    found = cv.infer(m, {"y": 2})
    wanted = by_summation(stats.poisson.logpmf(K, 6), stats.binom.logpmf(2, K, 0.3))
    agrees(found["n"], wanted)
    close(found["n"].variance, 4.2, rtol=1e-8)
    close(found.log_evidence, wanted[-1], rtol=1e-9)
    assert "CountTable" in found.summary()
    assert repr(found["n"]) == "CountTable(mean=6.2, variance=4.2)"
    found.save(tmp_path / "counts.npz")
    for loaded in (cv.load(tmp_path / "counts.npz"), cv.load(tmp_path / "counts.npz", m)):
        close(loaded["n"].quantile(0.9), found["n"].quantile(0.9))
        close(loaded["n"].variance, 4.2, rtol=1e-8)


def test_what_several_rows_say_of_a_count_is_multiplied():
    """Each row is a factor of the count alone; strides serve counts of hundreds."""
    m = cv.Model()
    groups, rows = m.plate("groups", 3), m.plate("rows")
    n = m.random("n", cv.poisson(m.input("rate", cv.positive, groups)), groups)
    m.random("y", cv.binomial(n[m.input("group", cv.index(groups), rows)], 0.3), rows)
    m.let("many", n > 5)
    rate, group, y = np.array([6.0, 4.0, 900.0]), np.array([0, 0, 1, 0, 2]), np.array([2, 3, 1, 1, 250])
    found = cv.infer(m, {"rate": rate, "group": group, "y": y})
    many, found = found["many"], found["n"]
    for g in (0, 1):
        likelihood = sum(stats.binom.logpmf(seen, K, 0.3) for seen in y[group == g])
        p, mean, variance, _ = by_summation(stats.poisson.logpmf(K, rate[g]), likelihood)
        close(many.mean[g], p[6:].sum(), rtol=1e-8)
        close((found.mean[g], found.variance[g]), (mean, variance), rtol=1e-8)
    close((found.mean[2], found.variance[2]), (250 + 630, 630), rtol=2e-3)  # a Poisson(630) besides those seen


def test_a_count_that_a_factor_with_messages_generates():
    """EP is exact where the rate is known to a thousandth: its message is that of the known rate."""
    m = cv.Model()
    r = m.random("r", cv.gamma(4e6, 1e6))
    n = m.random("n", cv.poisson(r))
    m.random("y", cv.binomial(n, 0.3))
    found = cv.infer(m, {"y": 2}, method="ep")
    close(found["n"].mean, 2 + 0.7 * 4, rtol=1e-5)
    close(found.log_evidence, stats.poisson.logpmf(2, 0.3 * 4), rtol=1e-5)


def test_a_count_with_a_bounded_prior():
    m = cv.Model()
    n = m.random("n", cv.binomial(5, 0.4))
    m.random("y", cv.binomial(n, 0.3))
    agrees(cv.infer(m, {"y": 1})["n"], by_summation(stats.binom.logpmf(K, 5, 0.4), stats.binom.logpmf(1, K, 0.3)))


@pytest.mark.slow
def test_a_count_whose_table_is_not_known_is_called_a_projection():
    m = cv.Model()
    n = m.random("n", cv.poisson(m.random("r", cv.gamma(3.0, 0.5))))
    m.random("y", cv.binomial(n, 0.3))
    assert "Poisson (projection)" in repr(cv.infer(m, {"y": 2}, accuracy="fast")["n"])
    _, mean, variance, _ = by_summation(stats.nbinom.logpmf(K, 3.0, 1.0 / 3.0), stats.binom.logpmf(2, K, 0.3))
    found = cv.infer(m, {"y": 2})["n"]  # given the rate the table is known
    close((found.mean, found.variance), (mean, variance), rtol=2e-3)

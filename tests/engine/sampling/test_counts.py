"""Counts that are not observed, drawn by slices of whole numbers: against sums over all of their values."""

import itertools

import numpy as np
import pytest
from drawn import errors_off
from scipy import stats

import cavity as cv


def sampled(m, data, **options):
    return cv.sample(m, data, draws=800, chains=2, progress=False, **options)


def seen(m):
    """How many are there, of which each is seen with a known chance, at two visits; one site has far more."""
    i, j = m.plate("i", 2), m.plate("j", 2)
    n = m.random("n", cv.poisson(m.input("rate", cv.positive, plates=i)))
    m.random("y", cv.binomial(n, 0.5), plates=(i, j))
    return {"rate": np.array([6.0, 900.0]), "y": np.array([[4, 2], [420, 470]])}


def test_counts_behind_counts():
    m = cv.Model()
    data = seen(m)
    samples = sampled(m, data)
    counts = np.arange(2000)
    for i, (rate, y) in enumerate(zip(data["rate"], data["y"], strict=True)):
        log_joint = stats.poisson.logpmf(counts, rate) + stats.binom.logpmf(y[:, None], counts, 0.5).sum(0)
        law = np.exp(log_joint - log_joint.max())
        law /= law.sum()
        off = errors_off(samples["n"][..., i], law @ counts, np.sqrt(law @ (counts - law @ counts) ** 2))
        assert off < 4.5
    assert np.all(samples["n"] == np.round(samples["n"]))
    assert "each count by slice sampling" in samples.explain()


def test_counts_that_a_factor_joins():
    m = cv.Model()
    i = m.plate("i", 2)
    n = m.random("n", cv.poisson(3.0), plates=i)
    m.random("y", cv.binomial(cv.sum(n, over=i), 0.5))
    samples = sampled(m, {"y": 6})
    # Given the sum each is binomial; what was not seen of the sum is Poisson.
    assert errors_off(samples["n"].sum(-1), 6.0 + 3.0, np.sqrt(3.0)) < 4.5
    assert "in turn" in samples.explain()


def test_vectors_of_counts():
    m = cv.Model()
    c = m.random("c", cv.multinomial(6, [0.2, 0.3, 0.5]), plates=m.plate("n", 2))
    m.random("y", cv.vector_gaussian(c, covariance=np.eye(3)))
    y = np.array([[3.0, 2.0, 1.0], [0.0, 1.0, 5.0]])
    samples = sampled(m, {"y": y})
    states = np.array([s for s in itertools.product(range(7), repeat=3) if sum(s) == 6], float)
    for row, point in enumerate(y):
        weights = stats.multinomial.pmf(states, 6, [0.2, 0.3, 0.5]) * np.exp(-0.5 * ((point - states) ** 2).sum(1))
        weights /= weights.sum()
        mean = weights @ states
        for k, sd in enumerate(np.sqrt(weights @ (states - mean) ** 2)):
            assert errors_off(samples["c"][..., row, k], mean[k], sd) < 4.5


def test_a_log_density_does_not_sum_counts_out():
    m = cv.Model()
    data = seen(m)
    with pytest.raises(cv.UnsupportedError, match=r"cv\.sample draws it"):
        cv.log_density(m, data)

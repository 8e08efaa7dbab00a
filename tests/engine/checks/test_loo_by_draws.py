"""Leave-one-out densities of mixtures and of ordered outcomes, by draws, against grids that leave each row out."""

from __future__ import annotations

import numpy as np
from scipy import stats

import cavity as cv


def left_out(log_prior, log_terms):
    """log p(y_i | others) from the log prior over a grid and the log terms of each row there."""
    whole = log_prior + log_terms.sum(0)

    def log_mass(logs):
        return np.log(np.exp(logs - logs.max()).sum()) + logs.max()

    return np.array([log_mass(whole) - log_mass(whole - own) for own in log_terms])


def test_a_mixture_whose_classes_are_summed_out():
    y = np.array([1.0, 2.0, 1.5, 2.2, 9.0, -12.0])
    m = cv.Model("outliers")
    n = m.plate("n")
    mu, w = m.random("mu", cv.gaussian(0.0, sd=5.0)), m.random("w", cv.beta(1, 1))
    m.random("y", cv.mixture(w, cv.gaussian(mu, sd=1.0), cv.gaussian(0.0, sd=10.0)), plates=n)
    found = cv.infer(m, {"y": y}).loo()
    at, share = (a.ravel() for a in np.meshgrid(np.linspace(-15.0, 15.0, 601), (np.arange(100) + 0.5) / 100))
    rows = y[:, None]
    terms = np.log(share * stats.norm.pdf(rows, at, 1.0) + (1.0 - share) * stats.norm.pdf(rows, 0.0, 10.0))
    np.testing.assert_allclose(found["y"], left_out(stats.norm.logpdf(at, 0.0, 5.0), terms), atol=0.06)


def test_ordered_outcomes_with_random_cutpoints():
    x, y = np.array([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0]), np.array([0, 0, 1, 1, 1, 2, 2])
    m = cv.Model("ordered")
    n = m.plate("n")
    slope = m.random("slope", cv.gaussian(0.0, sd=2.0))
    cutpoints = m.random("cutpoints", cv.ordered(cv.gaussian(0.0, sd=3.0), size=2))
    m.random("y", cv.ordered_logistic(slope * m.input("x", cv.real, plates=n), cutpoints))
    found = cv.infer(m, {"x": x, "y": y}).loo()
    grid = np.meshgrid(np.linspace(-4.0, 9.0, 66), np.linspace(-12.0, 8.0, 81), np.linspace(-8.0, 12.0, 81))
    s, low, high = (a.ravel() for a in grid)
    s, low, high = (a[low < high] for a in (s, low, high))
    below = [1.0 / (1.0 + np.exp(s * x[:, None] - c)) for c in (low, high)]
    chances = np.stack([below[0], below[1] - below[0], 1.0 - below[1]])
    terms = np.log(np.maximum(chances[y, np.arange(7)], 1e-300))
    prior = stats.norm.logpdf(s, 0.0, 2.0) + stats.norm.logpdf(low, 0.0, 3.0) + stats.norm.logpdf(high, 0.0, 3.0)
    np.testing.assert_allclose(found["y"], left_out(prior, terms), atol=0.06)

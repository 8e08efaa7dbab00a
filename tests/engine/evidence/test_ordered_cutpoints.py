"""Cutpoints that are random and in order: their prior, and the default ordinal model, against dense grids and draws."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from scipy.special import expit

import cavity as cv

RNG = np.random.default_rng(2)


def test_the_joint_density_is_that_of_draws_in_order():
    """size! prod_k p(x_k), for both terms that can be ordered."""
    for term, law in (
        (cv.gaussian(0.5, sd=2.0), scipy.stats.norm(0.5, 2.0)),
        (cv.student_t(3.0, 0.0, 2.5), scipy.stats.t(3.0, 0.0, 2.5)),
    ):
        m = cv.Model()
        entries = m.random("c", cv.ordered(term, size=3))
        m.random("y", cv.gaussian(cv.dot(entries, np.ones(3)), sd=1.0))
        density = cv.log_density(m, {"y": 0.7})
        c = np.array([-1.2, 0.4, 3.1])
        at = {"c[0]": c[0], "c[1] - c[0]": c[1] - c[0], "c[2] - c[1]": c[2] - c[1]}
        found = density(at)
        observed = scipy.stats.norm(c.sum(), 1.0).logpdf(0.7)
        assert float(found) == pytest.approx(np.log(6.0) + law.logpdf(c).sum() + observed, rel=1e-9)


def test_fixed_scores():
    """Three classes and nothing else: against a grid over two cutpoints."""
    y = np.repeat([0, 1, 2], [9, 14, 4])
    m = cv.Model("ordinal")
    n = m.plate("n")
    c = m.random("cutpoints", cv.ordered(cv.gaussian(0.0, sd=3.0), size=2))
    m.random("y", cv.ordered_logistic(0.0, c), plates=n)
    posterior = cv.infer(m, {"y": y})
    a, b = np.meshgrid(np.linspace(-4.0, 2.5, 900), np.linspace(-2.0, 6.0, 900), indexing="ij")
    low, high = expit(a), expit(b)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = -(a**2 + b**2) / 18.0 + 9 * np.log(low) + 14 * np.log(high - low) + 4 * np.log1p(-high)
    weights = np.where(b > a, np.exp(logs - np.nanmax(logs)), 0.0)
    weights /= weights.sum()
    for k, grid in enumerate((a, b)):
        mean = np.sum(weights * grid)
        sd = np.sqrt(np.sum(weights * (grid - mean) ** 2))
        assert abs(posterior["cutpoints"].mean[k] - mean) < 0.02 * sd
        assert posterior["cutpoints"].sd[k] == pytest.approx(sd, rel=0.02)


@pytest.mark.slow
def test_a_regression_of_ordered_classes(tmp_path):
    """Against weighted draws of the prior; saved, loaded and asked for predictions as any model."""
    x = RNG.normal(size=25)
    y = np.searchsorted([-0.8, 0.9], 0.8 * x + RNG.logistic(size=25))
    m = cv.Model("ordinal regression")
    n = m.plate("n")
    slope = m.random("slope", cv.gaussian(0.0, sd=1.0))
    c = m.random("cutpoints", cv.ordered(cv.gaussian(0.0, sd=1.5), size=2))
    m.random("y", cv.ordered_logistic(slope * m.input("x", cv.real, plates=n), c))
    posterior = cv.infer(m, {"x": x, "y": y})
    draws = 400_000
    slopes, cuts = RNG.normal(size=draws), np.sort(RNG.normal(0.0, 1.5, (draws, 2)), axis=1)
    logs = np.zeros(draws)
    for xi, yi in zip(x, y, strict=True):
        edges = np.concatenate([np.full((draws, 1), -np.inf), cuts, np.full((draws, 1), np.inf)], axis=1)
        logs += np.log(expit(edges[:, yi + 1] - slopes * xi) - expit(edges[:, yi] - slopes * xi))
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    for found, drawn in ((posterior["slope"].mean, slopes), *zip(posterior["cutpoints"].mean, cuts.T, strict=True)):
        mean = weights @ drawn
        assert abs(found - mean) < 0.05 * np.sqrt(weights @ (drawn - mean) ** 2)
    posterior.save(tmp_path / "ordinal")
    again = cv.load(tmp_path / "ordinal", m)
    np.testing.assert_allclose(again["cutpoints"].mean, posterior["cutpoints"].mean, rtol=1e-9)
    chances = np.asarray(posterior.predict({"x": [0.0, 2.0]})["y"].mean)
    np.testing.assert_allclose(chances.sum(-1), 1.0, rtol=1e-9)
    assert chances[1, 2] > chances[0, 2]


def test_what_cannot_be_ordered_is_told():
    with pytest.raises(cv.ModelError, match=r"found gamma\. Write cv\.ordered"):
        cv.ordered(cv.gamma(1.0, 1.0), size=2)
    with pytest.raises(cv.ModelError, match="size=0"):
        cv.ordered(cv.gaussian(0.0, sd=1.0), size=0)
    m = cv.Model()
    c = m.random("c", cv.vector_gaussian(np.array([0.0, 1.0]), covariance=np.eye(2)))
    m.random("y", cv.ordered_logistic(0.0, c), plates=m.plate("n"))
    with pytest.raises(cv.UnsupportedError, match=r"cv\.ordered\(cv\.gaussian"):
        cv.infer(m, {"y": [0, 1, 2]})


def test_terms_inside_the_drawn_term_are_named_once_and_a_refusal_leaves_nothing():
    m = cv.Model()
    m.random("cut", cv.ordered(cv.gaussian(cv.gaussian(0.0, sd=1.0), sd=1.0), np.int64(3)))
    assert list(m.randoms) == ["cut.mean", "cut[0]", "cut[1] - cut[0]", "cut[2] - cut[1]"]
    other = cv.Model()
    strange = m.plate("n", 2)
    with pytest.raises(cv.ModelError):
        other.random("cut", cv.ordered(cv.gaussian(cv.gaussian(0.0, sd=1.0), sd=1.0), 3), plates=strange)
    assert not other.randoms
    with pytest.raises(cv.ModelError, match="sd"):
        cv.ordered(cv.gaussian(0.0, sd=-1.0), 3)

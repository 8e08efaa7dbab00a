"""The designs of an integration: laws of their rules, and known densities that they must integrate."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from cavity.engine.evidence.design.bent import bent, straight
from cavity.engine.evidence.design.designs import MOST, OnGrid, Weighted, affordable, finest
from cavity.engine.evidence.design.grid import COARSE
from cavity.engine.evidence.design.peak import peak
from cavity.engine.evidence.design.rules import composite, spread
from cavity.engine.evidence.design.weighted_points import weighted_points


def gaussian(d, seed):
    """A log density with its mean and covariance."""
    random = np.random.default_rng(seed)
    root = 0.4 * random.normal(size=(d, d)) + np.eye(d)
    mean, covariance = 5.0 * random.normal(size=d), root @ root.T
    density = scipy.stats.multivariate_normal(mean, covariance)
    return lambda points: np.asarray(density.logpdf(points)).reshape(len(points)), mean, covariance


class LogGamma:
    """Logarithms of Gamma variables of one shape, mixed by a matrix and moved."""

    def __init__(self, d, shape, seed):
        random = np.random.default_rng(seed)
        self.root = 0.3 * random.normal(size=(d, d)) + np.eye(d)
        self.shift, self.shape = random.normal(size=d), shape
        self.mean = self.shift + self.root @ np.full(d, scipy.special.digamma(shape))
        self.variance = (self.root**2).sum(axis=1) * scipy.special.polygamma(1, shape)

    def __call__(self, points):
        u = (points - self.shift) @ np.linalg.inv(self.root).T
        own = self.shape * u - np.exp(u) - scipy.special.gammaln(self.shape)
        return own.sum(axis=1) - np.linalg.slogdet(self.root)[1]


@pytest.mark.parametrize("d", range(2, MOST + 1))
def test_a_composite_design_has_the_moments_of_a_normal_up_to_the_fifth(d):
    points, weights = composite(d)
    assert np.all(weights > 0.0)
    np.testing.assert_allclose(weights.sum(), 1.0)
    for powers in itertools.islice(itertools.combinations_with_replacement(range(min(d, 6)), 4), 200):
        expected = np.prod([scipy.special.factorial2(max(powers.count(k) - 1, 0)) for k in set(powers)])
        even = all(powers.count(k) % 2 == 0 for k in set(powers))
        np.testing.assert_allclose(weights @ np.prod(points[:, list(powers)], axis=1), expected * even, atol=1e-12)
    for j in range(d):  # the cube's corners come without their mirror images
        odd = weights @ (points[:, j, None] * points**2)
        np.testing.assert_allclose(odd, 0.0, atol=1e-12)
        np.testing.assert_allclose(weights @ points[:, j] ** 5, 0.0, atol=1e-10)


@pytest.mark.parametrize(("d", "number"), [(1, 64), (4, 256), (12, 512)])
def test_spread_points_are_whitened(d, number):
    points, weights = spread(d, number)
    np.testing.assert_allclose(weights @ points, 0.0, atol=1e-12)
    np.testing.assert_allclose((weights[:, None] * points).T @ points, np.eye(d), atol=1e-12)


@settings(max_examples=15, deadline=None)
@given(d=st.integers(1, 6), seed=st.integers(0, 10_000), far=st.floats(-4.0, 4.0))
def test_every_design_integrates_a_gaussian(d, seed, far):
    log_density, mean, covariance = gaussian(d, seed)
    sds = np.sqrt(np.diag(covariance))
    for design in affordable(d):
        grid = design.found(log_density, mean + far * sds, np.ones(d))
        assert grid is not None
        found, variance = grid.moments()
        # what a grid leaves out beyond its cutoff; the other designs have the moments of a normal exactly
        loose = 2e-2 if isinstance(design, OnGrid) else 1e-3
        assert abs(grid.log_total()) < loose
        assert np.all(np.abs(found - mean) < loose * sds)
        np.testing.assert_allclose(np.sqrt(variance), sds, rtol=loose)


@pytest.mark.parametrize("shape", [1.0, 3.0, 10.0])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_coarse_grid_holds_skewed_densities_with_few_points(d, shape):
    density, looked = LogGamma(d, shape, seed=d), []
    grid = OnGrid(COARSE).found(lambda x: looked.append(len(x)) or density(x), density.mean, np.ones(d), 4 - d)
    assert grid is not None
    found, variance = grid.moments()
    assert abs(grid.log_total()) < 0.02
    assert np.all(np.abs(found - density.mean) < 0.03 * np.sqrt(density.variance))
    np.testing.assert_allclose(np.sqrt(variance / density.variance), 1.0, atol=0.05)
    assert sum(looked) < 1.5 * OnGrid(COARSE).inferences(d, False)


@pytest.mark.parametrize(("number", "off"), [(1024, (0.04, 0.06, 0.03)), (0, (0.1, 0.12, 0.1))])
@pytest.mark.parametrize("d", [4, 6])
def test_weighted_points_of_skewed_densities(d, number, off):
    mean_off, sd_off, evidence_off = off
    density = LogGamma(d, 3.0, seed=d)
    grid = Weighted(number).found(density, density.mean, np.ones(d))
    assert grid is not None
    found, variance = grid.moments()
    assert abs(grid.log_total()) < evidence_off
    assert np.all(np.abs(found - density.mean) < mean_off * np.sqrt(density.variance))
    np.testing.assert_allclose(np.sqrt(variance / density.variance), 1.0, atol=sd_off)
    assert 0.0 < grid.error < 0.2


@pytest.mark.parametrize("share", [0.03, 0.1])
@pytest.mark.parametrize(("away", "wide"), [(7.0, 3.0), (9.0, 5.0)])
def test_mass_away_from_the_peak_is_found_and_told(share, away, wide):
    """A wider normal beside a narrow one: mostly its own variance, and nothing that the curvature at the peak knows."""
    d = 4
    beside = np.full(d, away / np.sqrt(d))
    near = scipy.stats.multivariate_normal(np.zeros(d), np.eye(d))
    far = scipy.stats.multivariate_normal(beside, wide**2 * np.eye(d))
    parts = [np.log1p(-share), np.log(share)]

    def log_density(points):
        return np.logaddexp(parts[0] + near.logpdf(points), parts[1] + far.logpdf(points))

    grid = Weighted(1024).found(log_density, np.full(d, 0.5), np.ones(d))
    mean, variance = grid.moments()
    sds = np.sqrt(1.0 - share + share * (wide**2 + (1.0 - share) * beside**2))
    assert abs(grid.log_total()) < 0.02
    assert np.all(np.abs(mean - share * beside) < 0.1 * sds)
    np.testing.assert_allclose(np.sqrt(variance), sds, rtol=0.1)
    assert share / 2.0 < grid.error < 2.0 * share


@pytest.mark.parametrize("design", [OnGrid(COARSE), Weighted(256), Weighted(0)])
def test_units_do_not_matter(design):
    """Scaled and moved coordinates give the same evidence and moments of the same shape."""
    density, scales, shift = LogGamma(3, 2.0, seed=5), np.array([10.0, 0.1, 3.0]), np.array([100.0, -5.0, 0.0])

    def moved(points):
        return density((points - shift) / scales) - np.log(scales).sum()

    here = design.found(density, density.mean, np.ones(3))
    there = design.found(moved, shift + scales * density.mean, scales)
    np.testing.assert_allclose(there.log_total(), here.log_total(), atol=1e-8)
    for (mean, variance), (other, wide) in [(here.moments(), there.moments())]:
        np.testing.assert_allclose(other, shift + scales * mean, rtol=1e-8)
        np.testing.assert_allclose(wide, scales**2 * variance, rtol=1e-8)


def test_a_shell_is_no_normal():
    """Weights that differ by too much give nothing rather than a wrong answer."""

    def log_density(points):
        return -200.0 * (np.linalg.norm(points, axis=1) - 3.0) ** 2

    assert weighted_points(log_density, np.array([3.0, 0.5, 0.0, 0.0]), np.ones(4), spread(4, 256)) is None


def test_bent_axes_make_a_split_normal_flat():
    """A density that falls with sd 2 on one side and 1 on the other has the same fall on both in bent coordinates."""

    def split(points):
        return -0.5 * np.sum(np.where(points > 0.0, points / 2.0, points) ** 2, axis=1)

    found = peak(split, np.array([0.3, -0.2]), np.eye(2))
    for sign in np.eye(2):
        right, left = split(bent(split, found)._replace(mean=np.zeros(2)).points(np.array([2.0 * sign, -2.0 * sign])))
        assert abs(right - left) < 0.25
        plain_right, plain_left = split(straight(found).points(np.array([2.0 * sign, -2.0 * sign])))
        assert abs(plain_right - plain_left) > 0.8


def test_designs_come_dearest_first():
    for d in range(1, MOST + 1):
        costs = [design.inferences(d, False) for design in affordable(d)]
        assert costs == sorted(costs, reverse=True)
        assert finest(d).inferences(d, False) >= costs[0]


@given(d=st.integers(1, 4), seed=st.integers(0, 1000))
def test_log_slopes_are_those_of_the_points(d, seed):
    random = np.random.default_rng(seed)
    root = random.normal(size=(d, d)) + 2.0 * np.eye(d)
    axes = straight((random.normal(size=d), root))._replace(bend=random.uniform(-0.8, 0.8, d))
    axes = axes.moved(random.normal(size=d), np.eye(d) + 0.2 * random.normal(size=(d, d)))
    z, step = random.normal(size=d), 1e-6
    ends = [axes.points(z + way * step * np.eye(d)) for way in (1.0, -1.0)]
    columns = (ends[0] - ends[1]) / (2.0 * step)
    np.testing.assert_allclose(axes.log_slope(z[None])[0], np.linalg.slogdet(columns)[1], atol=1e-4)

"""Gates over vectors under EP: random indices and switches of vector Gaussians, against sums and dense EP."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import cavity as cv

close = np.testing.assert_allclose
NOISE = np.array([[1.0, 0.4], [0.4, 0.5]])
FAR = 10.0 * np.eye(2)


def infer(model, data, **options):
    posterior = cv.infer(model, data, **{"tolerance": 1e-10, "method": "ep", **options})
    assert posterior.converged, posterior.diagnosis
    return posterior


def mixed(weights, means, covariances):
    """Mean and covariance of a mixture."""
    mean = weights @ means
    apart = means - mean
    return mean, np.einsum("k,kij->ij", weights, covariances) + np.einsum("k,ki,kj->ij", weights, apart, apart)


def conditioned(mean, covariance, outcome, noise):
    """Density of the outcome, then mean and covariance of x ~ N(mean, covariance) given outcome ~ N(x, noise)."""
    gain = covariance @ np.linalg.inv(covariance + noise)
    density = stats.multivariate_normal.pdf(outcome, mean, covariance + noise)
    return density, mean + gain @ (outcome - mean), covariance - gain @ covariance


def test_random_index():
    """One instance, so EP is exact: a sum over the classes."""
    starts, spread, chance = np.array([[-1.0, 0.0], [2.0, 1.0], [0.0, 0.5]]), np.diag([2.0, 0.7]), [0.2, 0.5, 0.3]
    m = cv.Model()
    mean = m.random("mean", cv.vector_gaussian(starts, covariance=spread), plates=m.plate("k", 3))
    z = m.random("z", cv.categorical(np.array(chance)))
    m.random("x", cv.vector_gaussian(mean[z], covariance=NOISE))
    outcome = np.array([0.7, -0.4])
    posterior = infer(m, {"x": outcome})
    parts = [conditioned(start, spread, outcome, NOISE) for start in starts]
    joint = np.array(chance) * [density for density, _, _ in parts]
    weights = joint / joint.sum()
    close(posterior.log_evidence, np.log(joint.sum()), rtol=1e-10)
    close(posterior["z"].mean, weights, rtol=1e-9)
    for k, (_, own, covariance) in enumerate(parts):
        pair = np.array([weights[k], 1.0 - weights[k]])
        wanted = mixed(pair, np.array([own, starts[k]]), np.array([covariance, spread]))
        close(posterior["mean"].mean[k], wanted[0], rtol=1e-9)
        close(posterior["mean"].covariance[k], wanted[1], rtol=1e-9)


CLUTTER = np.array([[0.1, 0.5], [2.3, 1.9], [1.0, -3.0], [1.7, 1.2]])


def dense_clutter(outcomes, power=1.0):
    """EP for the clutter problem in two dimensions: natural parameters of full matrices, one site after the other."""
    prior = (np.zeros(2), np.linalg.inv(100.0 * np.eye(2)))
    sites = [(np.zeros(2), np.zeros((2, 2))) for _ in outcomes]
    for _ in range(200):
        for i, x in enumerate(outcomes):
            shift = prior[0] + sum(s for j, (s, _) in enumerate(sites) if j != i)
            precision = prior[1] + sum(p for j, (_, p) in enumerate(sites) if j != i)
            covariance = np.linalg.inv(precision)
            mean = covariance @ shift
            density, own, spread = conditioned(mean, covariance, x, NOISE)
            joint = 0.6 * density, 0.4 * stats.multivariate_normal.pdf(x, np.zeros(2), FAR)
            weights = np.array(joint) / sum(joint)
            mean, covariance = mixed(weights, np.array([own, mean]), np.array([spread, covariance]))
            new = np.linalg.inv(covariance)
            sites[i] = (new @ mean - shift, new - precision)
    precision = prior[1] + sum(p for _, p in sites)
    return np.linalg.solve(precision, prior[0] + sum(s for s, _ in sites)), np.linalg.inv(precision)


def clutter():
    m = cv.Model("clutter")
    mean = m.random("mean", cv.vector_gaussian(np.zeros(2), covariance=100.0 * np.eye(2)))
    clean = m.random("clean", cv.bernoulli(0.6), plates=m.plate("n"))
    m.random(
        "x",
        cv.switch(clean, cv.vector_gaussian(mean, covariance=NOISE), cv.vector_gaussian(np.zeros(2), covariance=FAR)),
    )
    return m


def test_clutter():
    posterior = infer(clutter(), {"x": CLUTTER})
    mean, covariance = dense_clutter(CLUTTER)
    close(posterior["mean"].mean, mean, rtol=1e-7)
    close(posterior["mean"].covariance, covariance, rtol=1e-7)


def test_multiples_of_a_vector():
    m = cv.Model()
    v = m.random("v", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)))
    on = m.random("on", cv.bernoulli(0.5))
    m.random(
        "x",
        cv.switch(on, cv.vector_gaussian(2.0 * v - v / 4.0, covariance=NOISE), cv.vector_gaussian(v, covariance=FAR)),
    )
    posterior = infer(m, {"x": np.array([1.0, 2.0])})
    parts = [
        (0.5, *conditioned(np.zeros(2), np.eye(2) * scale**2, np.array([1.0, 2.0]), noise), scale)
        for scale, noise in ((1.75, NOISE), (1.0, FAR))
    ]
    joint = np.array([chance * density for chance, density, _, _, _ in parts])
    wanted = mixed(
        joint / joint.sum(),
        np.array([mean / scale for _, _, mean, _, scale in parts]),
        np.array([covariance / scale**2 for _, _, _, covariance, scale in parts]),
    )
    close(posterior.log_evidence, np.log(joint.sum()), rtol=1e-10)
    close(posterior["v"].mean, wanted[0], rtol=1e-9)
    close(posterior["v"].covariance, wanted[1], rtol=1e-9)


def test_random_precision_is_refused():
    m = cv.Model()
    v = m.random("v", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)), plates=m.plate("k", 2))
    precision = m.random("precision", cv.wishart(3.0, np.eye(2)))
    z = m.random("z", cv.bernoulli(0.5))
    m.random("x", cv.vector_gaussian(v[z], precision=precision))
    with pytest.raises(cv.UnsupportedError, match="integral over all of its coordinates"):
        cv.infer(m, {"x": np.zeros(2)}, method="ep")

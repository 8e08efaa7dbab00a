"""Chains and trees of which some elements are given, against dense conditioning and enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import cavity as cv

close = np.testing.assert_allclose
RNG = np.random.default_rng(17)
STEPS = 9
MISSING = np.array([False, True, True, False, True, True, False, False, True])


def dense(parent, first, links):
    """Mean and covariance of all elements: `first` is (mean, covariance) of roots, `links` has (A, b, Q) by element."""
    size = len(np.atleast_1d(first[0]))
    n = len(parent)
    mean, cov = np.zeros((n, size)), np.zeros((n, size, n, size))
    for i in range(n):
        if parent[i] == i:
            mean[i], cov[i, :, i] = first
            continue
        a, b, q = links[i]
        a = np.atleast_2d(a)
        mean[i] = a @ mean[parent[i]] + b
        for j in range(i):
            cov[i, :, j] = a @ cov[parent[i], :, j]
            cov[j, :, i] = cov[i, :, j].T
        cov[i, :, i] = a @ cov[parent[i], :, parent[i]] @ a.T + q
    return mean.ravel(), cov.reshape(n * size, n * size)


def conditioned(mean, cov, known, values):
    """Of a Gaussian vector given the entries `known`: mean and covariance of the others, log density of these."""
    kk, uk, uu = (cov[np.ix_(a, b)] for a, b in ((known, known), (~known, known), (~known, ~known)))
    gain = uk @ np.linalg.inv(kk)
    log_z = multivariate_normal(mean[known], kk).logpdf(values)
    return mean[~known] + gain @ (values - mean[known]), uu - gain @ uk.T, log_z


def walk(sizes=None, drift=0.3, noise=None):
    m = cv.Model("walk")
    t = m.plate("t")
    x = m.chain(
        "x", over=t, first=cv.gaussian(0.5, variance=4.0), then=lambda p: cv.gaussian(0.8 * p + drift, variance=0.7)
    )
    if noise is not None:
        m.random("y", cv.gaussian(2.0 * x, variance=noise))
    return m


def dense_walk(n=STEPS):
    parent = np.maximum(np.arange(n) - 1, 0)
    return dense(parent, (0.5, 4.0), [(0.8, 0.3, 0.7)] * n)


@pytest.mark.parametrize("first", [True, False])
def test_a_chain_with_gaps_and_nothing_else(first):
    missing = MISSING.copy()
    missing[0] = first
    x = np.where(missing, np.nan, RNG.normal(1.0, 1.5, STEPS))
    found = cv.infer(walk(), {"x": x})
    mean, cov, log_z = conditioned(*dense_walk(), ~missing, x[~missing])
    close(np.asarray(found["x"].mean)[missing], mean, atol=1e-9)
    close(np.asarray(found["x"].variance)[missing], np.diag(cov), atol=1e-9)
    close(np.asarray(found["x"].mean)[~missing], x[~missing])
    close(np.asarray(found["x"].variance)[~missing], 0.0)
    close(found.log_evidence, log_z, atol=1e-9)
    close(sum(found.evidence.values()), log_z, atol=1e-9)
    assert found.converged
    assert found.verdict.level == "good"


@pytest.mark.parametrize("method", ["auto", "vmp"])
def test_a_chain_with_gaps_and_noisy_observations_with_others(method):
    x = np.where(MISSING, np.nan, RNG.normal(1.0, 1.5, STEPS))
    y = RNG.normal(2.0, 2.0, STEPS)
    y[[0, 4]] = np.nan
    found = cv.infer(walk(noise=0.5), {"x": x, "y": y}, method=method)
    mean, cov = dense_walk()
    both = np.block([[cov, 2.0 * cov], [2.0 * cov, 4.0 * cov + 0.5 * np.eye(STEPS)]])
    data = np.concatenate([x, y])
    known = np.isfinite(data)
    mean, cov, log_z = conditioned(np.concatenate([mean, 2.0 * mean]), both, known, data[known])
    number = MISSING.sum()
    close(np.asarray(found["x"].mean)[MISSING], mean[:number], atol=1e-9)
    close(np.asarray(found["x"].variance)[MISSING], np.diag(cov)[:number], atol=1e-9)
    close(found.log_evidence, log_z, atol=1e-9)


def vectors():
    a, q = np.array([[0.9, 0.2], [-0.3, 0.8]]), np.array([[0.4, 0.1], [0.1, 0.3]])
    m = cv.Model("vectors")
    t = m.plate("t")
    m.chain(
        "x",
        over=t,
        first=cv.vector_gaussian(np.ones(2), covariance=2.0 * np.eye(2)),
        then=lambda p: cv.vector_gaussian(a @ p + np.array([0.1, -0.2]), covariance=q),
    )
    return m, a, q


def test_vectors_with_gaps():
    m, a, q = vectors()
    x = RNG.normal(size=(STEPS, 2))
    x[MISSING] = np.nan
    found = cv.infer(m, {"x": x})
    parent = np.maximum(np.arange(STEPS) - 1, 0)
    mean, cov = dense(parent, (np.ones(2), 2.0 * np.eye(2)), [(a, np.array([0.1, -0.2]), q)] * STEPS)
    known = np.repeat(~MISSING, 2)
    mean, cov, log_z = conditioned(mean, cov, known, x.ravel()[known])
    close(np.asarray(found["x"].mean)[MISSING].ravel(), mean, atol=1e-9)
    close(np.asarray(found["x"].variance)[MISSING].ravel(), np.diag(cov), atol=1e-9)
    close(found.log_evidence, log_z, atol=1e-9)


def test_a_tree_with_given_leaves_and_an_inner_node():
    parent = np.array([0, 0, 0, 1, 1, 2, 2, 6, 6])
    missing = np.array([True, True, False, False, True, False, True, False, False])
    length = RNG.uniform(0.3, 2.0, 9)
    m = cv.Model("tree")
    node = m.plate("node")
    above, of = m.input("above", cv.index(node), plates=node), m.input("length", cv.positive, plates=node)
    root = cv.gaussian(0.5, variance=3.0)
    m.tree("x", over=node, parent=above, root=root, then=lambda p: cv.gaussian(p, variance=of))
    x = np.where(missing, np.nan, RNG.normal(size=9))
    found = cv.infer(m, {"x": x, "above": parent, "length": length})
    mean, cov = dense(parent, (0.5, 3.0), [(1.0, 0.0, width) for width in length])
    mean, cov, log_z = conditioned(mean, cov, ~missing, x[~missing])
    close(np.asarray(found["x"].mean)[missing], mean, atol=1e-9)
    close(np.asarray(found["x"].variance)[missing], np.diag(cov), atol=1e-9)
    close(found.log_evidence, log_z, atol=1e-9)


FIRST, MOVES = np.array([0.5, 0.3, 0.2]), np.array([[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
MEANS = np.array([-1.0, 0.0, 2.0])


def states(noise=1.0):
    m = cv.Model("states")
    t = m.plate("t")
    z = m.chain("z", over=t, first=cv.categorical(FIRST), then=lambda before: cv.categorical(cv.table(MOVES)[before]))
    m.random("y", cv.gaussian(cv.table(MEANS)[z], variance=noise))
    return m


def enumerated(z, y, parent, first=FIRST, moves=MOVES):
    """Probabilities of the states of each element and log evidence, over all ways to fill in z (-1 where missing)."""
    n, total = len(parent), np.zeros((len(parent), len(first)))
    for path in itertools.product(range(len(first)), repeat=n):
        if any(known not in (-1, state) for known, state in zip(z, path, strict=True)):
            continue
        p = 1.0
        for i, state in enumerate(path):
            p *= first[state] if parent[i] == i else moves[path[parent[i]], state]
            if np.isfinite(y[i]):
                p *= np.exp(-0.5 * (y[i] - MEANS[state]) ** 2) / np.sqrt(2 * np.pi)
        total[np.arange(n), path] += p
    return total / total[0].sum(), np.log(total[0].sum())


def test_categories_with_gaps():
    z = np.ma.array([0, 0, 1, 2, 2, 0, 1], mask=[False, True, True, False, True, True, False])
    y = np.array([-0.5, 0.3, np.nan, 1.8, 0.7, -0.2, 0.4])
    found = cv.infer(states(), {"z": z, "y": y})
    wanted, log_z = enumerated(z.filled(-1), y, np.maximum(np.arange(7) - 1, 0))
    close(found["z"].mean, wanted, atol=1e-9)
    close(found.log_evidence, log_z, atol=1e-9)


def test_categories_with_gaps_and_nothing_else_and_what_cannot_be():
    z = np.ma.array([0, 0, 1, 2, 2], mask=[False, True, True, False, True])
    y = np.full(5, np.nan)
    found = cv.infer(states(), {"z": z, "y": y})
    wanted, log_z = enumerated(z.filled(-1), y, np.maximum(np.arange(5) - 1, 0))
    close(found["z"].mean, wanted, atol=1e-9)
    close(found.log_evidence, log_z, atol=1e-9)
    z = np.ma.array([0, 2, 1], mask=[False, False, True])  # the table has no such step
    with pytest.warns(cv.CavityWarning, match="contradict"):
        assert cv.infer(states(), {"z": z, "y": np.zeros(3)}).code == "contradiction"


def test_a_tree_of_booleans_with_given_leaves():
    parent = np.array([0, 0, 0, 1, 1, 2, 2])
    given = [None, None, True, False, None, True, None]
    m = cv.Model("tree")
    node = m.plate("node")
    above = m.input("above", cv.index(node), plates=node)
    stays = np.array([0.1, 0.8])
    m.tree("b", over=node, parent=above, root=cv.bernoulli(0.3), then=lambda p: cv.bernoulli(cv.table(stays)[p]))
    b = np.ma.array([bool(v) for v in given], mask=[v is None for v in given])
    found = cv.infer(m, {"b": b, "above": parent})
    z = [-1 if v is None else int(v) for v in given]
    moves = np.stack([1.0 - stays, stays], 1)
    wanted, log_z = enumerated(z, np.full(7, np.nan), parent, np.array([0.7, 0.3]), moves)
    close(found["b"].mean, wanted[:, 1], atol=1e-9)
    close(found.log_evidence, log_z, atol=1e-9)


def learned():
    m = cv.Model("learned")
    t = m.plate("t")
    a = m.random("a", cv.gaussian(0.0, variance=1.0))
    w = m.random("w", cv.gamma(2.0, 1.0))
    m.chain("x", over=t, first=cv.gaussian(0.0, variance=4.0), then=lambda p: cv.gaussian(a * p, precision=w))
    return m


def test_random_parameters_of_a_chain_with_gaps():
    """The coefficient and the precision against a grid over both."""
    rng = np.random.default_rng(2)
    x = np.zeros(40)
    for i in range(1, 40):
        x[i] = 0.8 * x[i - 1] + 0.6 * rng.normal()
    x[1:][rng.random(39) < 0.3] = np.nan
    seen = np.flatnonzero(np.isfinite(x))
    a, w = np.linspace(0.0, 1.4, 141)[:, None], np.exp(np.linspace(np.log(0.5), np.log(15.0), 141))
    logs = -0.5 * a**2 + np.log(w) - w + np.log(w)  # both priors; the grid is even in log w
    for before, after in itertools.pairwise(seen):
        steps = after - before
        variance = sum(a ** (2 * i) for i in range(steps)) / w
        logs = logs - 0.5 * (x[after] - a**steps * x[before]) ** 2 / variance - 0.5 * np.log(variance)
    share = np.exp(logs - logs.max())
    share /= share.sum()
    coefficient, precision = a[:, 0], w
    mean_a, mean_w = (share.sum(1) * coefficient).sum(), (share.sum(0) * precision).sum()
    sd_a = np.sqrt((share.sum(1) * coefficient**2).sum() - mean_a**2)
    sd_w = np.sqrt((share.sum(0) * precision**2).sum() - mean_w**2)
    found = cv.infer(learned(), {"x": x})
    assert abs(found["a"].mean - mean_a) < 0.1 * sd_a
    assert abs(found["w"].mean - mean_w) < 0.1 * sd_w
    close([found["a"].sd, found["w"].sd], [sd_a, sd_w], rtol=0.1)


def test_structured_vmp_with_given_elements_is_that_with_hardly_any_noise():
    x = np.array([0.5, np.nan, 0.9, 1.4, np.nan, 1.1])
    found = cv.infer(learned(), {"x": x}, accuracy="fast", tolerance=1e-9)
    m = cv.Model("noisy")
    t = m.plate("t")
    a, w = m.random("a", cv.gaussian(0.0, variance=1.0)), m.random("w", cv.gamma(2.0, 1.0))
    state = m.chain("x", over=t, first=cv.gaussian(0.0, variance=4.0), then=lambda p: cv.gaussian(a * p, precision=w))
    m.random("y", cv.gaussian(state, variance=1e-8))
    noisy = cv.infer(m, {"y": x}, accuracy="fast", tolerance=1e-9)
    close(found["x"].mean, noisy["x"].mean, atol=1e-6)
    close(found["x"].variance, noisy["x"].variance, atol=1e-6)
    close([found[n].mean for n in "aw"], [noisy[n].mean for n in "aw"], atol=1e-6)
    close(found.log_evidence, noisy.log_evidence, atol=1e-6)
    close(sum(found.evidence.values()), found.log_evidence, atol=1e-9)


def test_it_is_saved_predicts_and_has_a_density(tmp_path):
    x = np.where(MISSING, np.nan, RNG.normal(1.0, 1.5, STEPS))
    y = RNG.normal(2.0, 2.0, STEPS)
    m = walk(noise=0.5)
    found = cv.infer(m, {"x": x, "y": y})
    found.save(tmp_path / "x.npz")
    again = cv.load(tmp_path / "x.npz", m)
    close(again["x"].mean, found["x"].mean)
    new = found.predict({}, sizes={"t": 3})
    close(new["x"].mean, dense_walk(3)[0], atol=1e-9)
    density = cv.log_density(m, {"x": x, "y": y})
    filled = np.where(MISSING, 0.3, x)
    mean, cov = dense_walk()
    of_y = multivariate_normal(2.0 * filled, 0.5 * np.eye(9)).logpdf(y)
    close(density({"x": filled}), multivariate_normal(mean, cov).logpdf(filled) + of_y, atol=1e-9)
    assert density.dimension == MISSING.sum()
    left = found.loo()
    assert left["y"].shape == (STEPS,) if "y" in left else left.unavailable["y"]
    assert "x in part" in found.explain()


def test_the_density_of_states_with_gaps_sums_the_missing_ones_out():
    z = np.ma.array([0, 0, 1, 2, 2, 0, 1], mask=[False, True, True, False, True, True, False])
    y = np.array([-0.5, 0.3, np.nan, 1.8, 0.7, -0.2, 0.4])
    density = cv.log_density(states(), {"z": z, "y": y})
    close(density({}), enumerated(z.filled(-1), y, np.maximum(np.arange(7) - 1, 0))[1], atol=1e-9)


def test_the_density_of_vectors_with_gaps():
    m, a, q = vectors()
    x = RNG.normal(size=(STEPS, 2))
    full = x.copy()
    x[MISSING] = np.nan
    density = cv.log_density(m, {"x": x})
    parent = np.maximum(np.arange(STEPS) - 1, 0)
    mean, cov = dense(parent, (np.ones(2), 2.0 * np.eye(2)), [(a, np.array([0.1, -0.2]), q)] * STEPS)
    close(density({"x": full}), multivariate_normal(mean, cov).logpdf(full.ravel()), atol=1e-9)
    assert density.dimension == 2 * MISSING.sum()
    z = density.unconstrain({"x": full})
    close(density.constrain(z)["x"], full)


@pytest.mark.parametrize("accuracy", ["fast", "default"])  # beliefs, and weighted draws
def test_predictions_beyond_the_end_of_a_chain_that_slices_read(accuracy):
    """Nothing that was learned is carried to a new sequence: its prior."""
    m = cv.Model("differences")
    t = m.plate("t")
    x = m.chain("x", over=t, first=cv.gaussian(0.5, sd=2.0), then=lambda p: cv.gaussian(p, sd=1.0))
    m.random("y", cv.gaussian(x[1:] - x[:-1], sd=1.0))
    found = cv.infer(m, {"y": [0.0, 1.0, 2.0, 3.0]}, sizes={"t": 5}, accuracy=accuracy)
    with pytest.raises(cv.DataError, match="learned for its 5"):
        found.predict({}, sizes={"t": 7})
    new = found.predict({}, sizes={"t": 7}, new=["t"])
    close(new["x"].mean, np.full(7, 0.5), atol=1e-9)
    close(new["x"].variance, 4.0 + np.arange(7), atol=1e-9)
    assert new["y"].shape == (6,)

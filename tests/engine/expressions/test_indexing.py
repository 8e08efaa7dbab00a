"""Elements of plates and vectors by number, slice and several indices, against Gaussian algebra, grids and tables."""

import itertools

import numpy as np
import pytest
from scipy import stats

import cavity as cv

DOSE, DEATHS = np.array([-0.86, -0.3, -0.05, 0.73]), np.array([0, 1, 3, 5])


def close(found, wanted, atol=1e-9):
    np.testing.assert_allclose(found, wanted, atol=atol)


def regression(H, y, prior, noise):
    """Mean and sd of w ~ N(0, prior I) given y = H w + noise."""
    covariance = np.linalg.inv(np.eye(H.shape[1]) / prior + H.T @ H / noise)
    return covariance @ H.T @ y / noise, np.sqrt(np.diag(covariance))


def bioassay(mean, covariance):
    """Mean and sd of intercept and slope, on a grid."""
    a, b = np.meshgrid(np.linspace(-8, 12, 300), np.linspace(-20, 60, 400), indexing="ij")
    score = a[..., None] + b[..., None] * DOSE
    log = stats.multivariate_normal(mean, covariance).logpdf(np.stack([a, b], -1))
    log = log + stats.binom.logpmf(DEATHS, 5, 1.0 / (1.0 + np.exp(-score))).sum(-1)
    weight = np.exp(log - log.max()) / np.exp(log - log.max()).sum()
    means = np.array([(weight * a).sum(), (weight * b).sum()])
    return means, np.sqrt([(weight * (a - means[0]) ** 2).sum(), (weight * (b - means[1]) ** 2).sum()])


@pytest.mark.parametrize("form", ["vector", "plate"])
def test_two_elements_of_one_variable_in_a_logistic_regression(form):
    """Within a tenth of an sd, and sds within three parts in a hundred: kept apart, the slope had .8 of its sd."""
    m = cv.Model("bioassay")
    dose = m.input("dose", cv.real, plates=m.plate("row"))
    mean, covariance = np.zeros(2), 100.0 * np.eye(2)
    if form == "vector":
        mean, covariance = np.array([0.0, 10.0]), np.array([[4.0, 10.0], [10.0, 100.0]])
        b = m.random("b", cv.vector_gaussian(mean, covariance=covariance))
    else:
        b = m.random("b", cv.gaussian(0.0, variance=100.0), plates=m.plate("k", 2))
    m.random("y", cv.binomial(5, cv.logistic(b[0] + b[-1] * dose)))
    posterior = cv.infer(m, {"dose": DOSE, "y": DEATHS})
    means, sds = bioassay(mean, covariance)
    close(posterior["b"].mean / sds, means / sds, atol=0.1)
    close(posterior["b"].sd / sds, np.ones(2), atol=0.03)


def test_two_coordinates_of_one_vector_under_ep():
    """The site of their sum, not of two numbers that depend on each other."""
    m = cv.Model()
    row = m.plate("row")
    dose, both = m.input("dose", cv.real, plates=row), m.input("both", cv.vector(2), plates=row)
    by_coordinate, by_vector = (
        m.random(name, cv.vector_gaussian(np.zeros(2), covariance=100.0 * np.eye(2))) for name in ("b", "c")
    )
    m.random("y", cv.binomial(5, cv.logistic(by_coordinate[0] + by_coordinate[1] * dose)))
    m.random("z", cv.binomial(5, cv.logistic(by_vector @ both)))
    data = {"dose": DOSE, "both": np.stack([np.ones(4), DOSE], -1), "y": DEATHS, "z": DEATHS}
    posterior = cv.infer(m, data, method="ep", tolerance=1e-9)
    close(posterior["b"].mean, posterior["c"].mean, atol=1e-6)
    close(posterior["b"].sd, posterior["c"].sd, atol=1e-6)


@pytest.mark.parametrize("size", [6, None])
def test_differences_and_ends_of_a_plate(size):
    m = cv.Model()
    t = m.plate("t", size)
    x = m.random("x", cv.gaussian(0.0, variance=4.0), plates=t)
    step = m.input("step", cv.positive, plates=t[1:])
    m.random("slope", cv.gaussian((x[1:] - x[:-1]) / step, variance=0.25))
    m.random("ends", cv.gaussian(x[0] + x[-1], variance=0.25))
    m.random("bend", cv.gaussian(x[2:] - 2.0 * x[1:-1] + x[:-2], variance=0.25))
    rng = np.random.default_rng(0)
    steps, slope, bend = rng.uniform(0.5, 2.0, 5), rng.normal(size=5), rng.normal(size=4)
    posterior = cv.infer(m, {"step": steps, "slope": slope, "ends": 1.0, "bend": bend})
    one = np.eye(6)
    H = np.vstack([np.diff(one, axis=0) / steps[:, None], one[0] + one[-1], np.diff(one, 2, axis=0)])
    mean, sd = regression(H, np.r_[slope, 1.0, bend], 4.0, 0.25)
    close(posterior["x"].mean, mean)
    close(posterior["x"].sd, sd)


def test_coordinates_of_a_vector_for_each_group():
    rng = np.random.default_rng(1)
    group, t, y = rng.integers(0, 3, 12), rng.normal(size=12), rng.normal(size=12)
    m = cv.Model()
    k, row = m.plate("k", 3), m.plate("row")
    g, x = m.input("g", cv.index(k), plates=row), m.input("x", cv.real, plates=row)
    b = m.random("b", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)), plates=k)
    m.random("y", cv.gaussian(b[g, 0] + b[g, 1] * x, variance=0.5))
    posterior = cv.infer(m, {"g": group, "x": t, "y": y})
    for j in range(3):
        here = group == j
        mean, sd = regression(np.stack([np.ones(here.sum()), t[here]], -1), y[here], 1.0, 0.5)
        close(posterior["b"].mean[j], mean)
        close(posterior["b"].sd[j], sd)


def test_a_player_in_a_year():
    rng = np.random.default_rng(2)
    winner, year, y = rng.integers(0, 4, 12), rng.integers(0, 3, 12), rng.normal(size=12)
    loser = (winner + 1 + rng.integers(0, 3, 12)) % 4
    m = cv.Model()
    player, season, game = m.plate("player", 4), m.plate("season", 3), m.plate("game")
    w, l = (m.input(name, cv.index(player), plates=game) for name in ("w", "l"))  # noqa: E741
    s = m.input("s", cv.index(season), plates=game)
    skill = m.random("skill", cv.gaussian(0.0, variance=2.0), plates=(player, season))
    m.random("y", cv.gaussian(skill[w, s] - skill[l, s], variance=0.5))
    posterior = cv.infer(m, {"w": winner, "l": loser, "s": year, "y": y})
    H = np.zeros((12, 4, 3))
    H[np.arange(12), winner, year] += 1.0
    H[np.arange(12), loser, year] -= 1.0
    mean, sd = regression(H.reshape(12, 12), y, 2.0, 0.5)
    close(posterior["skill"].mean.ravel(), mean)
    close(posterior["skill"].sd.ravel(), sd)


def test_elements_of_what_has_a_name():
    """An element of a named sum is the sum of elements: x_a + y_a and their differences, under EP too."""
    m = cv.Model()
    k, game = m.plate("k", 3), m.plate("game")
    a, b = (m.input(name, cv.index(k), plates=game) for name in ("a", "b"))
    x, y = (m.random(name, cv.gaussian(0.0, variance=1.0), plates=k) for name in ("x", "y"))
    total = m.let("total", x + y)
    m.random("d", cv.gaussian(total[a] - total[b], variance=0.5))
    m.random("e", cv.gaussian(total[0], variance=0.5))
    posterior = cv.infer(m, {"a": [0, 1], "b": [1, 2], "d": [1.0, 0.5], "e": 2.0}, sizes={"game": 2})
    T = np.hstack([np.eye(3), np.eye(3)])
    mean, sd = regression(np.vstack([T[0] - T[1], T[1] - T[2], T[0]]), np.array([1.0, 0.5, 2.0]), 1.0, 0.5)
    close(np.r_[posterior["x"].mean, posterior["y"].mean], mean)
    close(np.r_[posterior["x"].sd, posterior["y"].sd], sd)


def test_elements_of_booleans():
    m = cv.Model()
    z = m.random("z", cv.bernoulli(0.3), plates=m.plate("t", 3))
    m.let("either", z[0] | z[-1])
    m.let("both", z[1:] & z[:-1])
    posterior = cv.infer(m, {"either": True})
    states = [s for s in itertools.product([0, 1], repeat=3) if s[0] or s[2]]
    weights = np.array([0.3 ** sum(s) * 0.7 ** (3 - sum(s)) for s in states])
    close(posterior["z"].mean, weights @ np.array(states) / weights.sum())
    close(posterior["both"].mean, weights @ np.array([(s[0] & s[1], s[1] & s[2]) for s in states]) / weights.sum())
    close(posterior.log_evidence, np.log(weights.sum()))


def test_slices_of_inputs_in_a_prediction_of_another_length():
    m = cv.Model()
    t = m.plate("t")
    u = m.input("u", cv.real, plates=t)
    a = m.random("a", cv.gaussian(0.0, variance=1.0))
    m.random("d", cv.gaussian(a * (u[1:] - u[:-1]) + u[0], variance=1.0))
    posterior = cv.infer(m, {"u": [0.0, 1.0, 3.0], "d": [1.0, 2.0]})
    close(posterior["a"].mean, 5.0 / 6.0)
    close(posterior.predict({"u": [1.0, 2.0, 4.0, 7.0]})["d"].mean, 1.0 + 5.0 / 6.0 * np.array([1.0, 2.0, 3.0]))

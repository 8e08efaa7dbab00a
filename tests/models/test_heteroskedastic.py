"""Heteroskedastic regression against exact posteriors, on simulated data, with learned kernels, and with bad input.

Given the log precisions the rest is Gaussian, so a grid over two numbers (a slope and an offset, or the log precisions
at two points) gives the exact posterior of tiny cases.
"""

import numpy as np
import pytest

import cavity as cv
from cavity.models import heteroskedastic_gp, heteroskedastic_regression

close = np.testing.assert_allclose
KERNEL = ("scale", "variance", "noise_scale", "noise_variance")
GRID = np.linspace(-7.0, 7.0, 141)


def on_a_grid(root, covariance, design, y, log_precision):
    """log Z, and mean and sd of s and of u: s ~ N(0, covariance), u = root @ (two standard normals), and
    y ~ N(design s, 1 / exp(log_precision(u))).
    """
    white = np.stack(np.meshgrid(GRID, GRID), -1).reshape(-1, 2)
    u = white @ root.T
    log_p = log_precision(u)
    p = np.exp(log_p)
    spread = np.linalg.inv(np.linalg.inv(covariance) + np.einsum("na,kn,nb->kab", design, p, design))
    shift = (p * y) @ design
    means = np.einsum("kab,kb->ka", spread, shift)
    log_likelihood = 0.5 * (log_p.sum(1) - p @ y**2 + np.sum(means * shift, 1) - len(y) * np.log(2.0 * np.pi))
    log_likelihood += 0.5 * (np.linalg.slogdet(spread)[1] - np.linalg.slogdet(covariance)[1])
    log_weight = log_likelihood - 0.5 * np.sum(white**2, 1) - np.log(2.0 * np.pi)
    top = log_weight.max()
    weight = np.exp(log_weight - top)
    log_z = top + np.log(weight.sum() * (GRID[1] - GRID[0]) ** 2)
    weight /= weight.sum()
    s_mean, u_mean = weight @ means, weight @ u
    variances = np.diagonal(spread, axis1=1, axis2=2)
    s_sd = np.sqrt(weight @ (variances + (means - s_mean) ** 2))
    return log_z, s_mean, s_sd, u_mean, np.sqrt(weight @ (u - u_mean) ** 2)


def line(size, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(size, 1))
    y = 0.8 * x[:, 0] - 0.3 + np.exp(-0.5 * (1.0 - 0.7 * x[:, 0])) * rng.normal(size=size)
    return x, y


def test_the_linear_model_against_its_exact_posterior():
    x, y = line(60, 0)
    design = np.column_stack([x, np.ones(60)])
    log_z, mean, sd, log_mean, log_sd = on_a_grid(np.eye(2), np.eye(2), design, y, lambda u: u @ design.T)
    posterior = cv.infer(heteroskedastic_regression(1), {"x": x, "y": y})
    assert posterior.converged
    assert log_z - 0.1 < posterior.log_evidence < log_z
    for names, means, sds in (
        (["weight", "bias"], mean, sd),
        (["precision_weight", "precision_bias"], log_mean, log_sd),
    ):
        for i, name in enumerate(names):
            assert abs(float(np.squeeze(posterior[name].mean)) - means[i]) < 0.05 * sds[i]
            close(np.squeeze(posterior[name].sd), sds[i], rtol=0.05)


def squared_exponential(x):
    return np.exp(-0.5 * (x[:, None] - x) ** 2)


def test_the_processes_against_their_exact_posterior():
    """Two inputs, seen ten times each: two log precisions, of which the prior mean is -1."""
    place = np.array([0.0, 0.7])
    covariance = squared_exponential(place)
    design = np.repeat(np.eye(2), 10, axis=0)
    y = design @ [0.7, 0.1] + design @ [0.2, 0.9] * np.random.default_rng(0).normal(size=20)
    root = np.linalg.cholesky(covariance + 1.0)
    log_z, f_mean, f_sd, u_mean, u_sd = on_a_grid(root, covariance, design, y, lambda u: (u - 1.0) @ design.T)
    posterior = cv.infer(heteroskedastic_gp(), {"x": design @ place, "y": y, **dict.fromkeys(KERNEL, 1.0)})
    assert posterior.converged
    assert log_z - 0.2 < posterior.log_evidence < log_z
    f, g = posterior["f"], posterior["log_precision"]
    each = [0, 10]
    assert np.all(np.abs(f.mean[each] - f_mean) < 0.1 * f_sd)
    assert np.all(np.abs(g.mean[each] - (u_mean - 1.0)) < 0.1 * u_sd)
    # A factorised belief is too narrow, by little.
    for found, exact in ((f.sd[each], f_sd), (g.sd[each], u_sd)):
        assert np.all((found / exact > 0.8) & (found / exact < 1.0))


def test_the_linear_model_finds_what_made_the_data():
    rng = np.random.default_rng(1)
    truth = {"weight": [1.0, -0.5], "bias": 0.3, "precision_weight": [0.7, -0.4], "precision_bias": 0.5}
    x = rng.normal(size=(2000, 2))
    log_precision = x @ truth["precision_weight"] + truth["precision_bias"]
    y = x @ truth["weight"] + truth["bias"] + np.exp(-0.5 * log_precision) * rng.normal(size=2000)
    posterior = cv.infer(heteroskedastic_regression(2), {"x": x, "y": y})
    for name, value in truth.items():
        assert np.all(np.abs(posterior[name].mean - value) < 4.0 * posterior[name].sd)
        assert np.all(posterior[name].sd < 0.05)
    new = posterior.predict({"x": x[:3]})
    expected = np.exp(-new["log_precision"].mean + 0.5 * new["log_precision"].variance)
    close(new["y"].variance, new["mean"].variance + expected, rtol=1e-9)


def test_kernels_are_learned_by_one_program():
    """Points along a line in the plane."""
    rng = np.random.default_rng(2)
    t = np.sort(rng.uniform(-2.0, 2.0, 50))
    y = np.sin(2.0 * t) + np.exp(-0.5 * (3.0 - 1.5 * t)) * rng.normal(size=50)
    place = np.array([0.6, -0.8])
    data = {"x": t[:, None] * place, "y": y, **dict.fromkeys(KERNEL, 1.0)}
    program = cv.compile(heteroskedastic_gp(2), ["y"], tolerance=1e-8)
    first = program(data)
    learned = cv.learn(program, data, ("scale", "noise_scale"), tolerance=0.01)
    assert learned.converged
    assert learned.posterior.log_evidence > first.log_evidence
    for name, value in learned.values.items():
        moved = program(data | learned.values | {name: 1.2 * value})
        assert moved.log_evidence < learned.posterior.log_evidence
    assert program.traces == 1
    new = learned.posterior.predict({"x": np.outer([-1.5, 1.5], place)})
    close(new["f"].mean, np.sin([-3.0, 3.0]), atol=0.5)
    assert new["y"].sd[1] > 2.0 * new["y"].sd[0]


def test_bad_input():
    x, y = line(5, 0)
    with pytest.raises(cv.DataError, match="x"):
        cv.infer(heteroskedastic_regression(2), {"x": x, "y": y})
    with pytest.raises(cv.DataError, match="row"):
        cv.infer(heteroskedastic_regression(1), {"x": x, "y": y[:4]})
    data = {"x": x[:, 0], "y": y, **dict.fromkeys(KERNEL, 1.0)}
    with pytest.raises(cv.DataError, match="noise_scale"):
        cv.infer(heteroskedastic_gp(), data | {"noise_scale": -1.0})
    with pytest.raises(cv.DataError, match="scale"):
        cv.infer(heteroskedastic_gp(), {"x": data["x"], "y": data["y"]})
    with pytest.raises(cv.DataError, match="x"):
        cv.infer(heteroskedastic_gp(), data | {"x": np.where(data["x"] == data["x"][0], np.nan, data["x"])})

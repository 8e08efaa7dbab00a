"""Gaussian processes against dense algebra, and against the published numbers of a sparse process."""

from __future__ import annotations

import jax
import mpmath
import numpy as np
import pytest
import scipy.special
import scipy.stats

import cavity as cv
from cavity.factors.kernels import covariance, named_parameters, variance
from cavity.factors.real.gaussian_process import Dense, Sparse, spread_out

close = np.testing.assert_allclose
POINTS = np.linspace(-2, 2, 10)
LABELS = np.array([0, 0, 0, 1, 1, 1, 1, 0, 0, 0], bool)
VALUES = np.array(
    [
        *(-0.06416828853982412, -0.6799959810206935, -0.4541652863622044, 0.155770359928991, 1.036659040456137),
        *(0.7353821980830825, 0.8996680933259047, -0.05368704705684217, -0.7905775695015919, -0.1436284683992815),
    ]
)


def smooth(x, y, scale=1.0, variance=1.0):
    return variance * np.exp(-0.5 * (np.subtract.outer(x, y) / scale) ** 2)


def process(scale=1.0, **options):
    """A model with one function f of the real input x, and what it is used for."""
    m = cv.Model()
    x = m.input("x", cv.real, plates=m.plate("n"))
    return m, m.random("f", cv.gaussian_process(x, cv.kernels.squared_exponential(scale), **options))


def regression(scale=1.0, noise=0.1, **options):
    m, f = process(scale, **options)
    m.random("y", cv.gaussian(f, variance=noise))
    return m


def infer(model, data, **options):
    posterior = cv.infer(model, data, **{"tolerance": 1e-10, **options})
    assert posterior.converged, posterior.diagnosis
    return posterior


# The exact process ----------------------------------------------------------------------------------------------------


def test_regression_is_dense_algebra():
    posterior = infer(regression(2.0, mean=0.3), {"x": POINTS, "y": VALUES})
    k = smooth(POINTS, POINTS, 2.0)
    inverse = np.linalg.inv(k + 0.1 * np.eye(10))
    close(posterior["f"].mean, 0.3 + k @ inverse @ (VALUES - 0.3), rtol=1e-9)
    close(posterior["f"].variance, np.diag(k - k @ inverse @ k), rtol=1e-9)
    evidence = scipy.stats.multivariate_normal.logpdf(VALUES, np.full(10, 0.3), k + 0.1 * np.eye(10))
    close(posterior.log_evidence, evidence, rtol=1e-10)
    new = np.array([-3.0, 0.1, 0.1, 5.0])
    cross = smooth(POINTS, new, 2.0)
    predicted = posterior.predict({"x": new})
    close(predicted["f"].mean, 0.3 + cross.T @ inverse @ (VALUES - 0.3), rtol=1e-9)
    close(predicted["f"].variance, 1 - np.sum(cross * (inverse @ cross), axis=0), rtol=1e-9)
    close(predicted["y"].variance, predicted["f"].variance + 0.1, rtol=1e-12)


def evidence_in_many_digits(x, y, sd):
    """log N(y; 0, K + sd^2 I) in sixty digits: in sixteen, K of fifteen points on a line is singular."""
    with mpmath.workdps(60):

        def entry(i, j):
            return mpmath.exp(-((mpmath.mpf(x[i]) - mpmath.mpf(x[j])) ** 2) / 2) + (
                mpmath.mpf(sd) ** 2 if i == j else 0
            )

        size = len(x)
        k = mpmath.matrix(size, size)
        for i in range(size):
            for j in range(size):
                k[i, j] = entry(i, j)
        values = mpmath.matrix([mpmath.mpf(v) for v in y])
        square = (values.T * mpmath.lu_solve(k, values))[0]
        return float(-0.5 * (square + mpmath.log(mpmath.det(k)) + size * mpmath.log(2 * mpmath.pi)))


def test_little_noise_leaves_the_evidence_its_digits():
    x = np.linspace(0.0, 6.0, 15)
    y = np.sin(x)
    m, f = process()
    m.random("y", cv.gaussian(f, sd=m.input("noise", cv.positive)))
    program = cv.compile(m, {"x": x, "y": y, "noise": 0.1}, accuracy="fast")
    for noise, error in ((1e-1, 1e-10), (1e-2, 1e-8), (1e-3, 1e-7), (1e-4, 1e-6), (1e-5, 1e-4), (1e-6, 1e-2)):
        posterior = program({"x": x, "y": y, "noise": noise})
        close(posterior.log_evidence, evidence_in_many_digits(x, y, noise), rtol=0.0, atol=error)
        close(posterior["f"].mean, y, atol=3.0 * noise)
    with pytest.raises(cv.UnsupportedError, match="no sound state"):  # what is left of such numbers is rounding
        program({"x": x, "y": y, "noise": 1e-9})


@pytest.mark.slow
def test_noise_of_an_exact_function_is_integrated_out():
    x = np.linspace(0.0, 6.0, 15)
    m, f = process()
    m.random("y", cv.gaussian(f, sd=m.random("noise", cv.half_normal(0.5))))
    posterior = cv.infer(m, {"x": x, "y": np.sin(x)})
    logs = np.linspace(np.log(1e-8), np.log(4.0), 300)
    log_densities = np.array([evidence_in_many_digits(x, np.sin(x), float(np.exp(u))) for u in logs])
    weights = np.exp(log_densities - 21.0 + logs) * scipy.stats.halfnorm.pdf(np.exp(logs), scale=0.5)
    total = np.trapezoid(weights, logs)
    close(posterior.log_evidence, 21.0 + np.log(total), atol=0.01)
    close(posterior["noise"].mean, np.trapezoid(weights * np.exp(logs), logs) / total, rtol=0.01)


def test_points_may_coincide_and_outcomes_be_missing():
    posterior = infer(regression(), {"x": [0.0, 0.0, 1.0, 1.0], "y": [1.0, 1.2, np.nan, 0.3]})
    x, y = np.array([0.0, 0.0, 1.0]), np.array([1.0, 1.2, 0.3])
    k = smooth(x, x) + 0.1 * np.eye(3)
    cross = smooth(np.array([0.0, 0.0, 1.0, 1.0]), x)
    close(posterior["f"].mean, cross @ np.linalg.solve(k, y), rtol=1e-9)
    close(posterior["y"].mean[2], posterior["f"].mean[2], rtol=1e-9)
    close(posterior.log_evidence, scipy.stats.multivariate_normal.logpdf(y, cov=k), rtol=1e-10)


def test_parameters_of_the_kernel_may_be_inputs():
    """The same program serves all of them, and vectors have a scale for each coordinate."""
    m = cv.Model()
    x = m.input("x", cv.vector(2), plates=m.plate("n"))
    scale, size = m.input("scale", cv.vector(2)), m.input("size", cv.positive)
    f = m.random("f", cv.gaussian_process(x, cv.kernels.squared_exponential(scale, size)))
    m.random("y", cv.gaussian(f, variance=0.5))
    rng = np.random.default_rng(0)
    points, values = rng.normal(size=(7, 2)), rng.normal(size=7)
    program = cv.compile(m, observed=["y"])
    for lengths, variance_ in (([0.5, 2.0], 1.5), ([3.0, 0.1], 0.2)):
        found = program({"x": points, "scale": lengths, "size": variance_, "y": values})
        gap = (points[:, None] - points[None]) / lengths
        k = variance_ * np.exp(-0.5 * (gap**2).sum(-1)) + 0.5 * np.eye(7)
        close(found.log_evidence, scipy.stats.multivariate_normal.logpdf(values, cov=k), rtol=1e-9)


def test_further_plates_are_independent_functions():
    m = cv.Model()
    n, c = m.plate("n"), m.plate("c", 2)
    x, size = m.input("x", cv.real, plates=n), m.input("size", cv.positive, plates=c)
    f = m.random("f", cv.gaussian_process(x, cv.kernels.squared_exponential(2.0, size)), plates=c)
    m.random("y", cv.gaussian(f, variance=0.1), plates=(c, n))
    values = np.stack([VALUES, VALUES[::-1] ** 2])
    posterior = infer(m, {"x": POINTS, "size": [1.0, 3.0], "y": values})
    covariances = [smooth(POINTS, POINTS, 2.0, v) for v in (1.0, 3.0)]
    evidence = [
        scipy.stats.multivariate_normal.logpdf(y, cov=k + 0.1 * np.eye(10))
        for y, k in zip(values, covariances, strict=True)
    ]
    close(posterior.log_evidence, sum(evidence), rtol=1e-10)
    for found, y, k in zip(posterior["f"].mean, values, covariances, strict=True):
        close(found, k @ np.linalg.solve(k + 0.1 * np.eye(10), y), rtol=1e-9)
    predicted = posterior.predict({"x": POINTS[:3]})["f"]
    close(predicted.mean, posterior["f"].mean[:, :3], rtol=1e-9)


@pytest.mark.slow
def test_vmp_is_the_best_gaussian_of_all():
    """The stationary equations of the variational Gaussian with a full covariance, under a Poisson likelihood."""
    m, f = process()
    m.random("y", cv.poisson(cv.exp(f)))
    counts = np.array([0, 1, 3, 2, 0, 0, 1, 5, 2, 1])
    posterior = infer(m, {"x": POINTS, "y": counts}, method="vmp")
    k, rate = smooth(POINTS, POINTS), np.exp(posterior["f"].mean + 0.5 * posterior["f"].variance)
    close(posterior["f"].mean, k @ (counts - rate), rtol=1e-7)
    whole = k - k @ np.linalg.inv(k + np.diag(1 / rate)) @ k
    close(posterior["f"].variance, np.diag(whole), rtol=1e-7)
    mean = posterior["f"].mean
    inverse = np.linalg.inv(k + 1e-12 * np.eye(10))
    divergence = 0.5 * (
        np.trace(inverse @ whole)
        + mean @ (counts - rate)
        - 10
        - np.linalg.slogdet(np.eye(10) - inverse @ (k - whole))[1]
    )
    expected = np.sum(counts * mean - rate - scipy.special.gammaln(counts + 1.0)) - divergence
    close(posterior.log_evidence, expected, rtol=1e-6)
    assert posterior.log_evidence < infer(m, {"x": POINTS, "y": counts}, method="ep").log_evidence


def test_an_observed_function():
    m, f = process()
    seen = np.array([1.0, 1.2, 0.8, 0.3])
    x = np.array([0.0, 0.5, 1.0, 2.0])
    m.random("y", cv.gaussian(f, variance=0.5))
    posterior = infer(m, {"x": x, "f": seen, "y": seen + 0.1})
    expected = scipy.stats.multivariate_normal.logpdf(seen, cov=smooth(x, x))
    close(posterior.log_evidence, expected + scipy.stats.norm.logpdf(np.full(4, 0.1), 0, 0.5**0.5).sum(), rtol=1e-6)
    predicted = posterior.predict({"x": [0.5, 0.7]})["f"]
    close(predicted.mean, smooth(np.array([0.5, 0.7]), x) @ np.linalg.solve(smooth(x, x), seen), rtol=1e-6)


def test_an_observed_function_with_missing_entries():
    m, _ = process()
    x, seen = np.array([0.0, 0.5, 1.0, 2.0]), np.array([1.0, 1.2, np.nan, 0.3])
    posterior = infer(m, {"x": x, "f": seen})
    there = np.array([0, 1, 3])
    k = smooth(x[there], x[there])
    close(posterior.log_evidence, scipy.stats.multivariate_normal.logpdf(seen[there], cov=k), rtol=1e-6)


def test_nothing_observed_is_the_prior():
    posterior = infer(regression(), {"x": POINTS})
    close(posterior["f"].variance, np.ones(10))
    close(posterior["y"].variance, np.full(10, 1.1))


@pytest.mark.parametrize("shape", [6, (6, 3)])
def test_messages_of_negative_precision(shape):
    """As non-log-concave factors send them, as long as the posterior is proper; exact and with inducing inputs."""
    rng = np.random.default_rng(1)
    root = rng.normal(size=shape if isinstance(shape, tuple) else (6, 6))
    rest = np.full(6, 0.3)
    h, p = rng.normal(size=6), np.array([2.0, -0.02, 0.0, 5.0, -0.01, 0.3])
    k = root @ root.T + (np.diag(rest) if isinstance(shape, tuple) else 0.0)
    with jax.enable_x64(True):
        found = (Sparse(root, rest) if isinstance(shape, tuple) else Dense(k)).solve(h, p)
    whole = np.linalg.inv(np.linalg.inv(k) + np.diag(p))
    close(found.mean, whole @ h, rtol=1e-9)
    close(found.variance, np.diag(whole), rtol=1e-9)
    close(found.log_z, 0.5 * h @ whole @ h - 0.5 * np.linalg.slogdet(np.eye(6) + k * p)[1], rtol=1e-9)


# Inducing inputs ------------------------------------------------------------------------------------------------------


def test_sparse_classification():
    """E18: Infer.NET's test of a sparse process with three basis points, its numbers from another implementation."""
    m, f = process(inducing=POINTS[[1, 4, 8]])
    m.let("y", f > 0)
    posterior = infer(m, {"x": POINTS, "y": LABELS})
    close(posterior.log_evidence, -4.907121241357144, rtol=1e-9)
    found = posterior.predict({"x": [-2.0, -1.0, 0.0]})["f"]
    close(found.mean, [-0.966351175090184, -0.123034591744284, 0.762757400008960], rtol=1e-6)
    close(found.variance, [0.323871157983366, 0.164009511251333, 0.162068482365962], rtol=1e-6)


@pytest.mark.parametrize(
    ("chosen", "mean", "variance_", "evidence"),
    [
        ([4], [0.105348359509159, 0.472138591390244, 0.778424938343491], 0.394054615364932, -0.693147180559945),
        ([1, 4, 8], [0.077592778583272, 0.347746707713812, 0.573337393823702], 0.278455962249970, -2.463679892165236),
    ],
)
def test_sparse_classification_with_one_basis_point(chosen, mean, variance_, evidence):
    m, f = process(inducing=[0.0])
    m.let("y", f > 0)
    posterior = infer(m, {"x": POINTS[chosen], "y": LABELS[chosen]})
    found = posterior.predict({"x": [-2.0, -1.0, 0.0]})["f"]
    close(found.mean, mean, rtol=1e-6)
    close(found.variance[-1], variance_, rtol=1e-6)
    close(posterior.log_evidence, evidence, rtol=1e-9)


def test_sparse_regression():
    """E19: the same for a Gaussian outcome."""
    posterior = infer(regression(2.0, inducing=POINTS[[1, 4, 8]]), {"x": POINTS, "y": VALUES})
    close(posterior.log_evidence, -13.201173794945003, rtol=1e-9)
    found = posterior.predict({"x": [-2.0, -1.0, 0.0]})["f"]
    close(found.mean, [-0.544583265595561, 0.134323399801302, 0.503623822120711], rtol=1e-6)
    close(found.variance, [0.058569682375201, 0.022695532903985, 0.024439582001952], rtol=1e-6)


@pytest.mark.parametrize("inducing", [10, POINTS])
def test_all_points_inducing_is_the_exact_process(inducing):
    m, f = process(inducing=inducing)
    m.let("y", f > 0)
    exact, g = process()
    exact.let("y", g > 0)
    data = {"x": POINTS, "y": LABELS}
    close(infer(m, data).log_evidence, infer(exact, data).log_evidence, rtol=1e-7)


def test_inducing_inputs_are_spread_out():
    """The first of equal variances, then where the prior is least certain given those before: the far ends first."""
    k = smooth(POINTS, POINTS)
    with jax.enable_x64(True):
        chosen = np.asarray(spread_out(jax.numpy.diag(k), lambda i: jax.numpy.asarray(k)[:, i], 4)).tolist()
    for number in range(1, 4):
        given = chosen[:number]
        left = 1 - np.sum(k[:, given] * np.linalg.solve(k[np.ix_(given, given)], k[given]).T, axis=1)
        close(left[chosen[number]], left.max(), rtol=1e-9)


# Kernels --------------------------------------------------------------------------------------------------------------

X, Y = np.array([[0.0, 1.0], [0.5, -1.0], [2.0, 0.3]]), np.array([[0.0, 1.0], [1.0, 1.0]])
R = np.sqrt((((X[:, None] - Y[None]) / [1.0, 2.0]) ** 2).sum(-1))
WAVES = (np.sin(np.pi * (X[:, None] - Y[None]) / 3.0) ** 2 / np.array([1.0, 4.0])).sum(-1)
KERNELS = {
    "squared_exponential": ({"scale": [1.0, 2.0], "variance": 1.5}, 1.5 * np.exp(-0.5 * R**2)),
    "matern32": ({"scale": [1.0, 2.0], "variance": 1.5}, 1.5 * (1 + 3**0.5 * R) * np.exp(-(3**0.5) * R)),
    "matern52": (
        {"scale": [1.0, 2.0], "variance": 1.5},
        1.5 * (1 + 5**0.5 * R + 5 * R**2 / 3) * np.exp(-(5**0.5) * R),
    ),
    "periodic": ({"period": 3.0, "scale": [1.0, 2.0], "variance": 1.5}, 1.5 * np.exp(-2 * WAVES)),
    "linear": ({"variance": 1.5, "scale": [1.0, 2.0]}, 1.5 * (X / [1.0, 2.0]) @ (Y / [1.0, 2.0]).T),
    "constant": ({"variance": 1.5}, np.full((3, 2), 1.5)),
    "white": ({"variance": 1.5}, np.zeros((3, 2))),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name):
    arguments, expected = KERNELS[name]
    kernel = getattr(cv.kernels, name)(**arguments)
    values = named_parameters(kernel)
    with jax.enable_x64(True):
        close(covariance(kernel, values, X, Y), expected, rtol=1e-12)
        own = np.asarray(covariance(kernel, values, X, X, True))
        close(variance(kernel, values, X), np.diag(own), rtol=1e-12)
        slope = jax.grad(lambda v: covariance(kernel, v, X, X, True).sum())({k: np.array(v) for k, v in values.items()})
    assert np.linalg.eigvalsh(own).min() > -1e-12
    assert all(np.all(np.isfinite(s)) for s in slope.values())


def test_sums_and_products_of_kernels():
    a, b, c = cv.kernels.matern32(2.0), cv.kernels.linear(0.5), cv.kernels.white(0.1)
    kernel = a * b + c
    values = named_parameters(kernel)
    with jax.enable_x64(True):
        parts = [np.asarray(covariance(k, named_parameters(k), X, X, True)) for k in (a, b, c)]
        close(covariance(kernel, values, X, X, True), parts[0] * parts[1] + parts[2], rtol=1e-12)
        close(variance(kernel, values, X), np.diag(parts[0] * parts[1] + parts[2]), rtol=1e-12)
    assert str(kernel) == "((matern32 * linear) + white)"


# Errors ---------------------------------------------------------------------------------------------------------------


def test_refusals():
    m = cv.Model()
    n = m.plate("n")
    x, single, by_point = m.input("x", cv.real, plates=n), m.input("s", cv.real), m.input("p", cv.positive, plates=n)
    kernel = cv.kernels.squared_exponential()
    random = m.random("random", cv.gaussian(0.0, variance=1.0), plates=n)
    rate = m.random("rate", cv.gamma(1.0, 1.0))

    for number, (term, message) in enumerate(
        (
            (cv.gaussian_process(x, 1.0), "takes a kernel"),
            (cv.gaussian_process(x, kernel, inducing=0), "inducing= is"),
            (cv.gaussian_process(x, kernel, inducing=[np.nan]), "inducing= is"),
        )
    ):
        with pytest.raises(cv.ModelError, match=message):
            m.random(f"e{number}", term)
    for name, term, message in (
        ("f1", cv.gaussian_process(single, kernel), "has no plates"),
        ("f2", cv.gaussian_process(x, cv.kernels.squared_exponential(by_point)), "one function has one kernel"),
        ("f3", cv.gaussian_process(x, cv.kernels.squared_exponential([1.0, 2.0])), "2 coordinates"),
        ("f4", cv.gaussian_process(x, kernel, inducing=np.zeros((3, 2))), "inducing inputs have 2 coordinates"),
    ):
        f = m.random(name, term)
        y = m.random(f"y{name}", cv.gaussian(f, variance=1.0))
        with pytest.raises(cv.ModelError, match=message):
            cv.compile(m, observed=[y.name])
    for name, term in (
        ("g1", cv.gaussian_process(random, kernel)),
        ("g2", cv.gaussian_process(x, cv.kernels.squared_exponential(1.0, rate))),
    ):
        f = m.random(name, term)
        y = m.random(f"y{name}", cv.gaussian(f, variance=1.0))
        with pytest.raises(cv.UnsupportedError, match="parameters of its kernel as data"):
            cv.compile(m, observed=[y.name])
    switch = m.random("coin", cv.bernoulli(0.5))
    both = cv.switch(switch, cv.gaussian_process(x, kernel), cv.gaussian(0.0, variance=1.0))
    m.random("f5", both)
    with pytest.raises(cv.UnsupportedError, match="inside a switch"):
        cv.compile(m, observed=["f5"])


@pytest.mark.parametrize("arguments", [{"scale": 0.0}, {"variance": [1.0, 2.0]}, {"scale": "long"}, {"scale": np.nan}])
def test_refused_parameters(arguments):
    with pytest.raises(cv.ModelError, match=f"squared_exponential: {next(iter(arguments))}"):
        cv.kernels.squared_exponential(**arguments)


def test_a_kernel_is_no_number():
    with pytest.raises(cv.ModelError, match="constant"):
        cv.kernels.linear() + 1.0


def test_refused_data():
    with pytest.raises(cv.DataError, match="must be finite"):
        cv.infer(regression(), {"x": [0.0, np.nan], "y": [0.0, 0.0]})
    with pytest.raises(cv.UnsupportedError, match="inducing=100"):
        cv.infer(regression(), {"x": np.zeros(3001), "y": np.zeros(3001)})

"""One factor, one or two random scalars, the default call: against sums and quadrature written without the engine."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import cavity as cv

close = np.testing.assert_allclose


def moments(log, *grids):
    """Means, sds and the log of the total of exp(log) on the product of evenly spaced grids."""
    steps = [grid.ravel()[1] - grid.ravel()[0] for grid in grids]
    weights = np.exp(log - log.max())
    total = weights.sum()
    means = [float((weights * grid).sum() / total) for grid in grids]
    sds = [
        float(np.sqrt((weights * (grid - mean) ** 2).sum() / total)) for grid, mean in zip(grids, means, strict=True)
    ]
    return means, sds, float(np.log(total) + log.max() + np.sum(np.log(steps)))


def pair(first, second):
    """Two grids as an outer product."""
    return first[:, None], second[None, :]


# a number of trials --------------------------------------------------------------------------------------------------

TRIALS = np.arange(200.0)


@pytest.mark.parametrize("seen", [0, 2, pytest.param(9, marks=pytest.mark.slow)])
def test_a_random_number_of_trials(seen):
    """n - y is Poisson, so that the belief of n can match its mean alone; the evidence is exact."""
    m = cv.Model()
    n = m.random("n", cv.poisson(6.0))
    m.random("y", cv.binomial(n, 0.3))
    posterior = cv.infer(m, {"y": seen})
    (mean,), _, total = moments(stats.poisson.logpmf(TRIALS, 6.0) + stats.binom.logpmf(seen, TRIALS, 0.3), TRIALS)
    close(posterior["n"].mean, mean, rtol=1e-6)
    close(posterior.log_evidence, total, rtol=1e-9)


@pytest.mark.parametrize("method", ["auto", pytest.param("ep", marks=pytest.mark.slow)])
def test_random_trials_of_random_probability(method):
    m = cv.Model()
    n, p = m.random("n", cv.poisson(6.0)), m.random("p", cv.beta(2.0, 2.0))
    m.random("y", cv.binomial(n, p))
    posterior = cv.infer(m, {"y": 3}, method=method)
    trials, chance = pair(TRIALS, (np.arange(4000) + 0.5) / 4000)
    log = stats.poisson.logpmf(trials, 6.0) + stats.beta.logpdf(chance, 2, 2) + stats.binom.logpmf(3, trials, chance)
    means, sds, total = moments(log, trials, chance)
    close(posterior["n"].mean, means[0], rtol=1e-6)
    close(posterior["p"].mean, means[1], rtol=0.01)  # a Beta belief matches E log p and E log(1 - p)
    close(posterior["p"].sd, sds[1], rtol=0.03)
    close(posterior.log_evidence, total, atol=1e-5)


# a mean between bounds, with random noise ----------------------------------------------------------------------------

PRIORS = {
    "uniform": (cv.uniform(0.0, 10.0), stats.uniform(0.0, 10.0)),
    "truncated": (cv.truncated_gaussian(2.0, 9.0, 0.0, np.inf), stats.truncnorm(-2 / 3, np.inf, 2.0, 3.0)),
    "laplace": (cv.laplace(3.0, 2.0), stats.laplace(3.0, 2.0)),
    "student": (cv.student_t(4.0, 3.0, 2.0), stats.t(4.0, 3.0, 2.0)),
}


@pytest.mark.parametrize("name", [n if n == "uniform" else pytest.param(n, marks=pytest.mark.slow) for n in PRIORS])
def test_a_prior_of_ep_meets_a_likelihood_of_vmp(name):
    """Before the first message from its prior a mean is known from its data alone: a start that has moments."""
    term, density = PRIORS[name]
    m = cv.Model()
    mean, precision = m.random("mean", term), m.random("precision", cv.gamma(1.0, 1.0))
    m.random("y", cv.gaussian(mean, precision=precision), plates=m.plate("row"))
    y = np.array([4.0, 5.0, 6.0, 5.5])
    posterior = cv.infer(m, {"y": y})
    x, t = pair(np.linspace(-4.995, 14.995, 2000), np.linspace(0.005, 20.0, 2000))
    with np.errstate(divide="ignore"):
        log = density.logpdf(x) - t + sum(stats.norm.logpdf(one, x, t**-0.5) for one in y)
    means, sds, total = moments(log, x, t)
    assert posterior.converged
    close([posterior["mean"].mean, posterior["precision"].mean], means, atol=0.06)
    close([posterior["mean"].sd, posterior["precision"].sd], sds, rtol=0.3)  # apart under VMP: too narrow
    close(posterior.log_evidence, total, atol=0.15)


# densities without a declared average --------------------------------------------------------------------------------


def weibull():
    return cv.factor(
        "own_weibull",
        out=cv.positive,
        shape=cv.positive,
        scale=cv.positive,
        log_density=lambda out, shape, scale: (
            jnp.log(shape / scale) + (shape - 1.0) * jnp.log(out / scale) - (out / scale) ** shape
        ),
    )


def shape_and_scale(builder):
    """A model of 40 Weibull points with both arguments random, its data, and the moments and evidence of a grid."""
    m = cv.Model()
    shape, scale = m.random("shape", cv.gamma(1.0, 0.5)), m.random("scale", cv.gamma(1.0, 0.5))
    m.random("y", builder(shape=shape, scale=scale), plates=m.plate("row"))
    y = 1.3 * np.random.default_rng(3).weibull(2.0, 40)
    a, b = pair(np.linspace(0.5, 5.0, 600), np.linspace(0.5, 3.0, 600))
    log = -0.5 * (a + b) + 2.0 * np.log(0.5) + sum(stats.weibull_min.logpdf(one, a, scale=b) for one in y)
    return m, {"y": y}, moments(log, a, b)


@pytest.mark.parametrize("builder", [weibull(), cv.weibull], ids=["own density", "vocabulary"])
def test_a_weibull_of_random_shape_and_scale(builder):
    """Its average over vague beliefs is infinite: `auto` is EP, which integrates it over the cavities instead."""
    model, data, (means, sds, total) = shape_and_scale(builder)
    posterior = cv.infer(model, data)
    assert posterior.converged
    close([posterior["shape"].mean, posterior["scale"].mean], means, rtol=0.01)
    close([posterior["shape"].sd, posterior["scale"].sd], sds, rtol=0.05)
    close(posterior.log_evidence, total, atol=0.05)


def test_vmp_refuses_the_weibull_and_names_the_remedy():
    model, data, _ = shape_and_scale(cv.weibull)
    with pytest.raises(cv.UnsupportedError, match=r"infinite .* method='ep' or 'auto'"):
        cv.infer(model, data, method="vmp")


def test_a_count_whose_mean_is_an_exponential_of_a_square():
    """The average of the log rate's tails is infinite, the integral over a cavity is not."""
    m = cv.Model()
    x = m.random("x", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.negative_binomial(cv.exp(x**2), 3.0), plates=m.plate("row"))
    y = [0, 0, 1]
    posterior = cv.infer(m, {"y": y})
    grid = np.linspace(-7.0, 7.0, 4001)
    log = stats.norm.logpdf(grid) + sum(
        stats.nbinom.logpmf(one, 3.0, special.expit(np.log(3.0) - grid**2)) for one in y
    )
    (mean,), (sd,), total = moments(log, grid)
    assert posterior.converged
    close(posterior["x"].mean, mean, atol=1e-6)
    close(posterior["x"].sd, sd, rtol=0.05)
    close(posterior.log_evidence, total, atol=0.05)


@pytest.mark.parametrize("method", ["auto", pytest.param("ep", marks=pytest.mark.slow)])
def test_a_direction_and_a_concentration(method):
    """Angles whose direction and spread are random, against a grid; the two lie across the end of the circle."""
    angles = np.angle(np.exp(1j * np.random.default_rng(4).vonmises(2.9, 3.0, 30)))
    m = cv.Model()
    mean, level = m.random("mean", cv.gaussian(2.0, variance=1.0)), m.random("level", cv.gamma(2.0, 0.5))
    m.random("angle", cv.von_mises(mean, level), plates=m.plate("row"))
    posterior = cv.infer(m, {"angle": angles}, method=method)
    a, b = pair(np.linspace(1.8, 4.2, 300), np.linspace(0.2, 12.0, 300))
    log = stats.norm.logpdf(a, 2.0, 1.0) + stats.gamma.logpdf(b, 2.0, scale=2.0)
    log = log + sum(stats.vonmises.logpdf(one, b, loc=a) for one in angles)
    means, sds, total = moments(log, a, b)
    assert posterior.converged
    close([posterior["mean"].mean, posterior["level"].mean], means, rtol=0.02)
    close([posterior["mean"].sd, posterior["level"].sd], sds, rtol=0.06)
    close(posterior.log_evidence, total, atol=0.06)


def test_the_total_of_dirichlet_multinomial_counts():
    """How much classes vary between rows, with a known mean: one random scalar, against a sum over a fine line."""
    rng, share = np.random.default_rng(5), np.array([0.5, 0.3, 0.2])
    counts = np.stack([rng.multinomial(20, rng.dirichlet(8.0 * share)) for _ in range(25)])
    m = cv.Model()
    total = m.random("total", cv.gamma(2.0, 0.2))
    m.random("counts", cv.dirichlet_multinomial(20, mean=share, total=total), plates=m.plate("row"))
    posterior = cv.infer(m, {"counts": counts})
    t = np.linspace(0.05, 60.0, 20_000)
    log = stats.gamma.logpdf(t, 2.0, scale=5.0)
    log = log + sum(stats.dirichlet_multinomial.logpmf(row, t[:, None] * share, 20) for row in counts)
    weight = np.exp(log - log.max())
    mean = weight @ t / weight.sum()
    assert posterior.converged
    close(posterior["total"].mean, mean, rtol=0.01)
    # The belief is a Gamma, matched in E t and E log t by every row: its sd is 5.6 % below the truth.
    close(posterior["total"].sd, np.sqrt(weight @ (t - mean) ** 2 / weight.sum()), rtol=0.07)
    close(posterior.log_evidence, log.max() + np.log(weight.sum() * (t[1] - t[0])), atol=0.02)

"""Integration over scalar parameters against dense quadrature."""

import jax
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import cavity as cv

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


@pytest.fixture(scope="module")
def schools():
    m = cv.Model("eight schools")
    school = m.plate("school")
    error = m.input("error", cv.positive, plates=school)
    mean = m.random("mean", cv.gaussian(0.0, variance=25.0))
    spread = m.random("spread", cv.half_cauchy(5.0))
    effect = m.random("effect", cv.gaussian(mean, variance=spread**2), plates=school)
    m.random("y", cv.gaussian(effect, sd=error), plates=school)
    return cv.infer(m, {"error": ERRORS, "y": EFFECTS}, integrate=["spread"], tolerance=1e-9)


def test_eight_schools(schools):
    """Against quadrature over the spread, given which everything is Gaussian."""

    def conditional(spread):
        total = spread**2 + ERRORS**2
        precision = 1.0 / 25.0 + (1.0 / total).sum()
        mean = (EFFECTS / total).sum() / precision
        cov = np.diag(total) + 25.0
        evidence = scipy.stats.multivariate_normal(np.zeros(8), cov).pdf(EFFECTS)
        return evidence * scipy.stats.halfcauchy(scale=5.0).pdf(spread), mean, 1.0 / precision

    def integral(f):
        # in the logarithm of the spread
        return scipy.integrate.quad(
            lambda u: np.exp(u) * f(np.exp(u)), -16.0, 10.0, epsabs=0.0, epsrel=1e-10, limit=400
        )[0]

    total = integral(lambda s: conditional(s)[0])
    mean = integral(lambda s: conditional(s)[0] * conditional(s)[1]) / total
    square = integral(lambda s: conditional(s)[0] * (conditional(s)[2] + conditional(s)[1] ** 2)) / total
    spread = integral(lambda s: conditional(s)[0] * s) / total
    spread_square = integral(lambda s: conditional(s)[0] * s**2) / total
    np.testing.assert_allclose(schools.log_evidence, np.log(total), rtol=1e-6)
    np.testing.assert_allclose(schools["mean"].mean, mean, rtol=1e-4)
    np.testing.assert_allclose(schools["mean"].variance, square - mean**2, rtol=1e-4)
    np.testing.assert_allclose(schools["spread"].mean, spread, rtol=1e-4)
    np.testing.assert_allclose(schools["spread"].variance, spread_square - spread**2, rtol=1e-3)


@pytest.mark.slow
def test_the_mixture_reads_like_a_posterior(schools):
    assert schools.converged
    assert "spread" in schools.diagnosis
    low, high = schools["effect"].interval(0.9)
    draws = schools["effect"].sample(0, (20_000,))
    assert draws.shape == (20_000, 8)
    np.testing.assert_allclose((draws < low).mean(0), 0.05, atol=0.01)
    np.testing.assert_allclose((draws > high).mean(0), 0.05, atol=0.01)
    np.testing.assert_allclose(draws.mean(0), schools["effect"].mean, atol=0.2)
    spreads = schools["spread"].sample(0, (20_000,))
    np.testing.assert_allclose(spreads.mean(), schools["spread"].mean, rtol=0.05)
    assert "Mixture" in schools.summary()
    assert "Integrated spread" in schools.explain()
    grid = np.linspace(-60.0, 60.0, 4001)
    density = np.exp([float(schools["mean"].log_density(x)) for x in grid[::40]])
    np.testing.assert_allclose(density.sum() * (grid[40] - grid[0]), 1.0, rtol=1e-3)


def regression(n=12):
    rng = np.random.default_rng(3)
    x = rng.normal(5.0, 1.0, n)
    m = cv.Model()
    row = m.plate("row")
    feature = m.input("x", cv.real, plates=row)
    level, slope = (m.random(name, cv.gaussian(0.0, variance=100.0)) for name in ("level", "slope"))
    precision = m.random("precision", cv.gamma(1.0, 1.0))
    m.random("y", cv.gaussian(level + slope * feature, precision=precision), plates=row)
    return m, {"x": x, "y": 1.0 + 2.0 * x + rng.normal(0.0, 1.0, n)}


def test_regression_with_unknown_noise():
    m, data = regression()
    posterior = cv.infer(m, data, integrate="auto")
    design = np.stack([np.ones_like(data["x"]), data["x"]], axis=1)
    log_precision = np.linspace(-6.0, 6.0, 4001)
    weights, means, covariances = [], [], []
    for value in np.exp(log_precision):
        covariance = np.linalg.inv(value * design.T @ design + np.eye(2) / 100.0)
        marginal = design @ design.T * 100.0 + np.eye(len(design)) / value
        evidence = scipy.stats.multivariate_normal(np.zeros(len(design)), marginal).logpdf(data["y"])
        weights.append(evidence + scipy.stats.gamma(1.0).logpdf(value) + np.log(value))
        means.append(value * covariance @ design.T @ data["y"])
        covariances.append(np.diag(covariance))
    evidence = np.log(np.exp(weights).sum() * (log_precision[1] - log_precision[0]))
    weights = np.exp(weights - np.max(weights))
    weights /= weights.sum()
    mean = weights @ np.array(means)
    variance = weights @ (np.array(covariances) + (np.array(means) - mean) ** 2)
    np.testing.assert_allclose(posterior.log_evidence, evidence, rtol=1e-7)
    np.testing.assert_allclose([posterior["level"].mean, posterior["slope"].mean], mean, rtol=1e-5)
    np.testing.assert_allclose([posterior["level"].variance, posterior["slope"].variance], variance, rtol=1e-4)
    np.testing.assert_allclose(posterior["precision"].mean, weights @ np.exp(log_precision), rtol=1e-5)
    prediction = posterior.predict({"x": np.array([5.0, 9.0])})["y"]
    expected = weights @ (np.array(means) @ np.array([1.0, 9.0]))
    np.testing.assert_allclose(prediction.mean[1], expected, rtol=1e-5)


def test_two_parameters_in_different_domains():
    """A probability and a rate that meet nothing else: the mixture has their own conjugate posteriors."""
    m = cv.Model()
    n = m.plate("n")
    p = m.random("p", cv.beta(2.0, 3.0))
    rate = m.random("rate", cv.gamma(2.0, 1.0))
    m.random("heads", cv.bernoulli(p), plates=n)
    m.random("count", cv.poisson(rate), plates=n)
    data = {"heads": [True, True, False, True], "count": [3, 1, 4, 2]}
    plain, mixed = cv.infer(m, data), cv.infer(m, data, integrate=["p", "rate"])
    np.testing.assert_allclose(mixed.log_evidence, plain.log_evidence, rtol=1e-6)
    for name in ("p", "rate"):
        np.testing.assert_allclose(mixed[name].mean, plain[name].mean, rtol=1e-4)
        np.testing.assert_allclose(mixed[name].variance, plain[name].variance, rtol=1e-3)
        np.testing.assert_allclose(mixed[name].quantile(0.1), plain[name].quantile(0.1), rtol=2e-2)


@pytest.mark.parametrize(
    ("over", "message"),
    [(["noise"], "'noise'"), (["x"], "'x'"), (["level", "slope", "precision"] * 5, "one to 12")],
)
def test_names_that_cannot_be_integrated(over, message):
    m, data = regression()
    with pytest.raises(cv.ModelError, match=message):
        cv.infer(m, data, integrate=over)


def test_a_second_run_compiles_nothing():
    m, data = regression()
    cv.infer(m, data, integrate="auto")
    from cavity.engine.infer import programs_of

    (program,) = programs_of(m)
    (inner,) = program._conditionals
    before = inner.traces, program.traces
    cv.infer(m, {**data, "y": data["y"] + 0.1}, integrate="auto")
    assert (inner.traces, program.traces) == before


@pytest.mark.parametrize("kind", ["positive", "boolean", "count"])
def test_what_is_given_in_part_has_quantiles_and_draws_where_a_scale_is_integrated(kind):
    terms = {
        "positive": (cv.half_normal, [0.5, 1.2, 0.0, 0.3]),
        "boolean": (lambda s: cv.bernoulli(cv.logistic(s)), [True, False, False, True]),
        "count": (cv.poisson, [2, 0, 0, 1]),
    }
    term, given = terms[kind]
    m = cv.Model()
    n = m.plate("n")
    s = m.random("s", cv.log_normal(0.0, 1.0))
    m.random("y", term(s), plates=n)
    posterior = cv.infer(m, {"y": np.ma.masked_array(given, [0, 0, 1, 0])})
    assert "grid" in posterior.explain()
    found = posterior["y"]
    known = [0, 1, 3]
    np.testing.assert_array_equal(np.asarray(found.quantile(0.5), float)[known], np.asarray(given, float)[known])
    draws = np.asarray(found.sample(jax.random.key(0), (4000,)), float)
    assert (draws[:, known] == np.asarray(given, float)[known]).all()
    assert abs(draws[:, 2].mean() - found.mean[2]) < 5.0 * draws[:, 2].std() / np.sqrt(4000.0)

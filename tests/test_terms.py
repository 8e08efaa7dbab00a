"""The plain terms in small models under the default, against closed forms, grids and importance sampling."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats as st

import cavity as cv

close = np.testing.assert_allclose


def on_grid(log_joint, *axes):
    """Means and sds of each number, and the log evidence, of a log joint density on a fine grid."""
    points = np.meshgrid(*axes, indexing="ij")
    height = log_joint(*points)
    weight = np.exp(height - height.max())
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    log_evidence = np.log(weight.sum() * cell) + height.max()
    weight = weight / weight.sum()
    means = [(weight * x).sum() for x in points]
    sds = [np.sqrt((weight * (x - mean) ** 2).sum()) for x, mean in zip(points, means, strict=True)]
    return np.array(means), np.array(sds), log_evidence


def summed(log_density, data):
    return sum(log_density(y) for y in data)


def observed(term, *priors):
    """A model of observations of `term(*variables)`, with these priors by name."""
    m = cv.Model("observed")
    n = m.plate("n")
    m.random("y", term(*(m.random(name, prior) for name, prior in priors)), plates=n)
    return m


EXPONENTIAL = st.expon.rvs(scale=2.0, size=30, random_state=1)
CAUCHY = st.cauchy.rvs(1.0, 0.7, size=25, random_state=2)
PARETO = st.pareto.rvs(2.5, scale=1.5, size=40, random_state=3)
GAUSSIAN = st.norm.rvs(1.0, 1.5, size=25, random_state=4)
WALD = st.invgauss.rvs(0.4, scale=5.0, size=40, random_state=5)
SHARES = scipy.special.expit(st.norm.rvs(0.5, 1.2, size=30, random_state=6))
INVERSE = st.invgamma.rvs(4.0, scale=3.0, size=50, random_state=7)
ANGLES = st.vonmises.rvs(3.0, loc=1.0, size=30, random_state=8)
LIFETIMES = st.weibull_min.rvs(2.0, scale=1.3, size=40, random_state=9)
SKEWED = st.skewnorm.rvs(4.0, loc=1.0, scale=2.0, size=60, random_state=10)


def log_skewed(y, location, scale, skew):
    z = (y - location) / scale
    return np.log(2.0 / scale) + st.norm.logpdf(z) + st.norm.logcdf(skew * z)


# name -> (model, data, the log joint density, axes of the grid)
AGAINST_A_GRID = {
    "exponential by its mean": (
        observed(lambda mu: cv.exponential(mean=mu), ("mu", cv.half_normal(5.0))),
        EXPONENTIAL,
        lambda mu: st.halfnorm.logpdf(mu, scale=5.0) + summed(lambda y: st.expon.logpdf(y, scale=mu), EXPONENTIAL),
        [np.linspace(0.3, 8.0, 2000)],
    ),
    "cauchy": (
        observed(cv.cauchy, ("location", cv.gaussian(0.0, sd=5.0)), ("scale", cv.half_student_t(4.0, 2.0))),
        CAUCHY,
        lambda a, s: (
            st.norm.logpdf(a, 0.0, 5.0)
            + st.t.logpdf(s, 4.0, scale=2.0)
            + np.log(2.0)
            + summed(lambda y: st.cauchy.logpdf(y, a, s), CAUCHY)
        ),
        [np.linspace(-1.0, 3.0, 300), np.linspace(0.05, 4.0, 300)],
    ),
    "a variance": (
        observed(
            lambda v, mu: cv.gaussian(mu, variance=v),
            ("v", cv.inverse_gamma(3.0, 2.0)),
            ("mu", cv.cauchy(0.0, 3.0)),
        ),
        GAUSSIAN,
        lambda v, mu: (
            st.invgamma.logpdf(v, 3.0, scale=2.0)
            + st.cauchy.logpdf(mu, 0.0, 3.0)
            + summed(lambda y: st.norm.logpdf(y, mu, np.sqrt(v)), GAUSSIAN)
        ),
        [np.linspace(0.3, 12.0, 600), np.linspace(-2.0, 4.0, 300)],
    ),
    "inverse gamma": (
        observed(cv.inverse_gamma, ("shape", cv.gamma(2.0, 0.5)), ("scale", cv.gamma(2.0, 0.5))),
        INVERSE,
        lambda a, b: (
            st.gamma.logpdf(a, 2.0, scale=2.0)
            + st.gamma.logpdf(b, 2.0, scale=2.0)
            + summed(lambda y: st.invgamma.logpdf(y, a, scale=b), INVERSE)
        ),
        [np.linspace(0.5, 12.0, 300), np.linspace(0.3, 12.0, 300)],
    ),
    "inverse gaussian": (
        observed(cv.inverse_gaussian, ("mu", cv.gamma(2.0, 1.0)), ("shape", cv.gamma(2.0, 0.2))),
        WALD,
        lambda mu, shape: (
            st.gamma.logpdf(mu, 2.0)
            + st.gamma.logpdf(shape, 2.0, scale=5.0)
            + summed(lambda y: st.invgauss.logpdf(y, mu / shape, scale=shape), WALD)
        ),
        [np.linspace(0.8, 6.0, 300), np.linspace(0.5, 18.0, 300)],
    ),
    "logit-normal": (
        observed(lambda a, s: cv.logit_normal(a, sd=s), ("a", cv.gaussian(0.0, sd=2.0)), ("s", cv.half_normal(2.0))),
        SHARES,
        lambda a, s: (
            st.norm.logpdf(a, 0.0, 2.0)
            + st.halfnorm.logpdf(s, scale=2.0)
            + summed(lambda z: st.norm.logpdf(z, a, s), scipy.special.logit(SHARES))
            - np.log(SHARES * (1.0 - SHARES)).sum()
        ),
        [np.linspace(-1.5, 2.5, 300), np.linspace(0.3, 4.0, 300)],
    ),
    "weibull": (
        observed(cv.weibull, ("shape", cv.gamma(1.0, 0.5)), ("scale", cv.inverse_gamma(2.0, 2.0))),
        LIFETIMES,
        lambda k, s: (
            st.gamma.logpdf(k, 1.0, scale=2.0)
            + st.invgamma.logpdf(s, 2.0, scale=2.0)
            + summed(lambda y: st.weibull_min.logpdf(y, k, scale=s), LIFETIMES)
        ),
        [np.linspace(0.5, 4.0, 300), np.linspace(0.5, 3.0, 300)],
    ),
    "an angle about an angle": (
        observed(cv.von_mises, ("mean", cv.von_mises(0.0, 0.5)), ("concentration", cv.gamma(2.0, 0.5))),
        ANGLES,
        lambda mu, k: (
            st.vonmises.logpdf(mu, 0.5)
            + st.gamma.logpdf(k, 2.0, scale=2.0)
            + summed(lambda y: st.vonmises.logpdf(y, k, loc=mu), ANGLES)
        ),
        [np.linspace(-1.0, 3.0, 300), np.linspace(0.3, 10.0, 300)],
    ),
    "skew normal": (
        observed(
            cv.skew_normal,
            ("location", cv.gaussian(0.0, sd=5.0)),
            ("scale", cv.half_normal(3.0)),
            ("skew", cv.gaussian(0.0, sd=3.0)),
        ),
        SKEWED,
        lambda a, s, k: (
            st.norm.logpdf(a, 0.0, 5.0)
            + st.halfnorm.logpdf(s, scale=3.0)
            + st.norm.logpdf(k, 0.0, 3.0)
            + summed(lambda y: log_skewed(y, a, s, k), SKEWED)
        ),
        [np.linspace(-2.2, 4.8, 71), np.linspace(0.7, 5.3, 47), np.linspace(-15.0, 24.0, 79)],
    ),
    "flat priors": (
        observed(lambda mu, s: cv.gaussian(mu, sd=s), ("mu", cv.flat()), ("s", cv.flat(cv.positive))),
        GAUSSIAN,
        lambda mu, s: summed(lambda y: st.norm.logpdf(y, mu, s), GAUSSIAN),
        [np.linspace(-3.0, 5.0, 400), np.linspace(0.6, 8.0, 800)],
    ),
}


@pytest.mark.parametrize("name", AGAINST_A_GRID)
def test_random_arguments_under_the_default(name):
    m, data, log_joint, axes = AGAINST_A_GRID[name]
    posterior = cv.infer(m, {"y": data})
    means, sds, log_evidence = on_grid(log_joint, *axes)
    found = [posterior[variable] for variable in m.randoms if variable != "y"]
    close([q.mean for q in found], means, atol=0.01 * sds.min())
    close([q.sd for q in found], sds, rtol=0.03)
    close(posterior.log_evidence, log_evidence, atol=2e-3)
    assert posterior.verdict.short.startswith("good")


def test_the_smallest_value_of_a_power_law():
    """Its posterior ends at the smallest observation, a jump that a grid cannot be exact about."""
    m = observed(cv.pareto, ("shape", cv.gamma(2.0, 1.0)), ("scale", cv.gamma(2.0, 1.0)))
    posterior = cv.infer(m, {"y": PARETO})
    least, logs = PARETO.min(), np.log(PARETO).sum()

    def log_joint(a, s):
        likelihood = len(PARETO) * (np.log(a) + a * np.log(s)) - (a + 1.0) * logs
        return st.gamma.logpdf(a, 2.0) + st.gamma.logpdf(s, 2.0) + likelihood

    means, sds, log_evidence = on_grid(log_joint, np.linspace(0.5, 6.0, 400), np.linspace(0.8 * least, least, 1500))
    close(posterior["shape"].mean, means[0], atol=0.01 * sds[0])
    close(posterior["scale"].mean, means[1], atol=0.05 * sds[1])
    close(posterior.log_evidence, log_evidence, atol=0.02)
    assert posterior["scale"].quantile(0.99) <= least * (1.0 + 1e-6)


def test_conjugate_rates_and_shapes_are_exact():
    exponential = cv.infer(observed(cv.exponential, ("rate", cv.gamma(2.0, 1.0))), {"y": EXPONENTIAL})
    close(list(exponential["rate"].parameters.values()), [2.0 + 30, 1.0 + EXPONENTIAL.sum()], rtol=1e-6)
    a, b = 32.0, 1.0 + EXPONENTIAL.sum()
    close(exponential.log_evidence, scipy.special.gammaln(a) - a * np.log(b), rtol=1e-6)
    pareto = cv.infer(observed(lambda a: cv.pareto(a, 1.5), ("shape", cv.gamma(2.0, 1.0))), {"y": PARETO})
    close(list(pareto["shape"].parameters.values()), [2.0 + 40, 1.0 + np.log(PARETO / 1.5).sum()], rtol=1e-6)


def test_an_inverse_gamma_variance_is_its_conjugate_posterior():
    m = observed(lambda v: cv.gaussian(1.0, variance=v), ("v", cv.inverse_gamma(3.0, 2.0)))
    posterior = cv.infer(m, {"y": GAUSSIAN})
    n, scale = len(GAUSSIAN), 2.0 + 0.5 * ((GAUSSIAN - 1.0) ** 2).sum()
    truth = st.invgamma(3.0 + 0.5 * n, scale=scale)
    close(posterior["v"].mean, truth.mean(), rtol=1e-4)
    close(posterior["v"].sd, truth.std(), rtol=1e-3)
    close(posterior["v"].quantile(0.9), truth.ppf(0.9), rtol=1e-2)
    constants = 3.0 * np.log(2.0) - scipy.special.gammaln(3.0) - 0.5 * n * np.log(2.0 * np.pi)
    evidence = scipy.special.gammaln(3.0 + 0.5 * n) - (3.0 + 0.5 * n) * np.log(scale)
    close(posterior.log_evidence, constants + evidence, atol=1e-4)


def test_a_regression_of_waiting_times():
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    y = rng.exponential(np.exp(-0.5 - 0.8 * x))
    m = cv.Model("waiting")
    n = m.plate("n")
    score = m.random("a", cv.gaussian(0.0, sd=2.0)) + m.random("b", cv.gaussian(0.0, sd=2.0)) * m.input(
        "x", cv.real, plates=n
    )
    m.random("y", cv.exponential(cv.exp(score)))
    posterior = cv.infer(m, {"x": x, "y": y})

    def log_joint(a, b):
        rate = [np.exp(a + b * t) for t in x]
        return (
            st.norm.logpdf(a, 0.0, 2.0)
            + st.norm.logpdf(b, 0.0, 2.0)
            + sum(np.log(r) - r * t for r, t in zip(rate, y, strict=True))
        )

    means, sds, log_evidence = on_grid(log_joint, np.linspace(-1.0, 2.0, 200), np.linspace(-0.5, 2.2, 200))
    close([posterior["a"].mean, posterior["b"].mean], means, atol=0.02 * sds.min())
    close([posterior["a"].sd, posterior["b"].sd], sds, rtol=0.05)
    close(posterior.log_evidence, log_evidence, atol=0.02)


@pytest.mark.parametrize("term", ["library", "own"])
def test_a_latent_probability_whose_prior_is_not_conjugate_has_a_start(term):
    """NCVMP finds a Beta belief from the density alone, in single precision too."""

    def log_density(out, mean):
        odds = jnp.log(out) - jnp.log1p(-out)
        return -0.5 * (odds - mean) ** 2 - 0.5 * jnp.log(2.0 * jnp.pi) - jnp.log(out) - jnp.log1p(-out)

    own = cv.factor("odds", out=cv.unit, mean=cv.real, log_density=log_density)
    m = cv.Model("shares")
    n = m.plate("n")
    p = m.random("p", own(0.5) if term == "own" else cv.logit_normal(0.5, 1.0), plates=n)
    m.random("y", cv.binomial(12, p))
    posterior = cv.infer(m, {"y": [0, 6, 12]}, method="vmp")
    s = np.linspace(-6.0, 8.0, 2001)
    for k, mean in zip([0, 6, 12], posterior["p"].mean, strict=True):
        weight = np.exp(st.norm.logpdf(s, 0.5) + st.binom.logpmf(k, 12, scipy.special.expit(s)))
        close(mean, (weight * scipy.special.expit(s)).sum() / weight.sum(), atol=0.01)


def straight_line():
    m = cv.Model("line")
    n = m.plate("n")
    a, b = m.random("a", cv.flat()), m.random("b", cv.flat())
    m.random("y", cv.gaussian(a + b * m.input("x", cv.real, plates=n), sd=1.0))
    return m


def test_flat_priors_are_least_squares():
    x, y = np.array([0.0, 1.0, 2.0, 4.0]), np.array([1.1, 2.9, 5.2, 8.8])
    posterior = cv.infer(straight_line(), {"x": x, "y": y})
    design = np.stack([np.ones(4), x], axis=1)
    close([posterior["a"].mean, posterior["b"].mean], np.linalg.lstsq(design, y)[0], rtol=1e-5)
    sds = np.sqrt(np.diag(np.linalg.inv(design.T @ design)))
    close([posterior["a"].sd, posterior["b"].sd], sds, rtol=1e-5)


def logistic_of_flat():
    m = cv.Model("separated")
    n = m.plate("n")
    m.random("y", cv.bernoulli(cv.logistic(m.random("b", cv.flat()) * m.input("x", cv.real, plates=n))))
    return m


def sum_of_flat():
    m = cv.Model("sum")
    n = m.plate("n")
    total = m.random("a", cv.flat()) + m.random("b", cv.flat())
    m.random("y", cv.gaussian(total, sd=1.0), plates=n)
    return m


IMPROPER = {
    "one input value": (straight_line, {"x": [1.0, 1.0], "y": [1.0, 2.0]}, "'[ab]' has a flat prior"),
    "only their sum": (sum_of_flat, {"y": [1.0, 2.0]}, "'a' has a flat prior, and the data do not make"),
    "separated": (logistic_of_flat, {"x": [-1.0, 1.0], "y": [False, True]}, "'b' has a flat prior, and the data"),
    "all missing": (sum_of_flat, {"y": [np.nan, np.nan]}, "Flat are the priors of 'a', 'b'|'a' has a flat prior"),
    "nothing observed": (sum_of_flat, {}, "nothing that is observed depends on it"),
}


@pytest.mark.parametrize("name", IMPROPER)
def test_a_posterior_that_stays_improper_is_refused_by_name(name):
    model, data, says = IMPROPER[name]
    with pytest.raises(cv.UnsupportedError, match=says) as told:
        cv.infer(model(), data, sizes=None if data else {"n": 2})
    assert "proper prior" in str(told.value)


def test_flat_in_compiled_programs_and_predictions():
    program = cv.compile(straight_line(), ["y"])
    x = np.array([0.0, 1.0, 2.0])
    posterior = program({"x": x, "y": [1.0, 2.0, 3.0]})
    close(posterior.predict({"x": [3.0]})["y"].mean, 4.0, rtol=1e-5)
    with pytest.raises(cv.UnsupportedError, match="has a flat prior"):
        program({"x": np.ones(3), "y": [1.0, 2.0, 3.0]})
    with pytest.raises(cv.ModelError, match=r"flat priors on cv\.real and on cv\.positive"):
        cv.Model().random("w", cv.flat(cv.vector(2)))


def pairs_of_effects():
    m = cv.Model("pairs")
    n = m.plate("n")
    scales = [m.random(f"sd {i}", cv.half_normal(2.0)) for i in range(2)]
    rho = m.random("rho", cv.lkj(2.0))
    m.random("y", cv.vector_gaussian(np.zeros(2), covariance=cv.covariance(scales, rho)), plates=n)
    return m


def test_scales_and_the_correlation_of_two_effects():
    y = np.random.default_rng(0).multivariate_normal(np.zeros(2), [[1.0, 0.42], [0.42, 0.49]], 30)
    posterior = cv.infer(pairs_of_effects(), {"y": y})
    square = y.T @ y

    def log_joint(a, b, r):
        left = 1.0 - r**2
        far = square[0, 0] / a**2 - 2.0 * r * square[0, 1] / (a * b) + square[1, 1] / b**2
        likelihood = -30.0 * np.log(2.0 * np.pi * a * b * np.sqrt(left)) - 0.5 * far / left
        prior = st.halfnorm.logpdf(a, scale=2.0) + st.halfnorm.logpdf(b, scale=2.0) + np.log(0.75 * left)
        return prior + likelihood

    axes = np.linspace(0.4, 2.2, 90), np.linspace(0.3, 1.6, 90), np.linspace(-0.6, 0.99, 120)
    means, sds, log_evidence = on_grid(log_joint, *axes)
    found = [posterior[name] for name in ("sd 0", "sd 1", "rho")]
    close([q.mean for q in found], means, atol=0.02 * sds.min())
    close([q.sd for q in found], sds, rtol=0.03)
    close(posterior.log_evidence, log_evidence, atol=5e-3)


def test_known_scales_and_a_covariance_as_data():
    """What is a number or data among scales and correlations needs no belief."""
    y = np.random.default_rng(1).multivariate_normal(np.zeros(2), [[1.0, 0.3], [0.3, 0.25]], 20)
    m = cv.Model("known scales")
    n = m.plate("n")
    rho = m.random("rho", cv.lkj(1.0))
    m.random("y", cv.vector_gaussian(np.zeros(2), covariance=cv.covariance([1.0, 0.5], rho)), plates=n)
    posterior = cv.infer(m, {"y": y})
    z = y / [1.0, 0.5]

    def log_joint(r):
        far = ((z**2).sum() - 2.0 * r * (z[:, 0] * z[:, 1]).sum()) / (1.0 - r**2)
        return -np.log(2.0) - 20.0 * np.log(np.pi * np.sqrt(1.0 - r**2)) - 0.5 * far

    means, sds, log_evidence = on_grid(log_joint, np.linspace(-0.999, 0.999, 4000))
    close([posterior["rho"].mean, posterior["rho"].sd], [means[0], sds[0]], rtol=1e-3)
    close(posterior.log_evidence, log_evidence, atol=1e-3)
    m = cv.Model("a matrix as data")
    n = m.plate("n")
    matrix = m.input("matrix", cv.posdef(2))
    mean = m.random("mean", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)))
    m.random("y", cv.vector_gaussian(mean, covariance=matrix), plates=n)
    given = np.array([[1.0, 0.3], [0.3, 0.25]])
    found = cv.infer(m, {"y": y, "matrix": given})["mean"]
    precision = np.eye(2) + 20.0 * np.linalg.inv(given)
    close(found.mean, np.linalg.solve(precision, np.linalg.solve(given, y.sum(0))), rtol=1e-4)


@pytest.mark.parametrize(
    ("scales", "correlations", "says"),
    [
        (["p", "p", "p"], ["r"], r"d scales and d \(d - 1\) / 2 correlations"),
        (["p"], ["r", "r"], r"d scales and d \(d - 1\) / 2 correlations"),
        ([1.0, 2.0], 0.5, "plain numbers"),
    ],
)
def test_scales_and_correlations_that_do_not_belong_together(scales, correlations, says):
    m = cv.Model()
    of = {"p": m.random("p", cv.half_normal(1.0)), "r": m.random("r", cv.lkj(1.0))}
    correlations = correlations if isinstance(correlations, float) else [of[name] for name in correlations]
    with pytest.raises(cv.ModelError, match=says):
        cv.covariance([of.get(name, name) for name in scales], correlations)
    effect = m.plate("effect", 2)
    each = m.random("each", cv.half_normal(1.0), plates=effect)
    with pytest.raises(cv.ModelError, match=r"elements of 'each' on the plate 'effect'.*must be single variables"):
        cv.covariance(cv.stack(each, over=effect), of["r"])
    with pytest.raises(cv.ModelError, match=r"covariance= is 'p', which is positive"):
        m.random("v", cv.vector_gaussian(np.zeros(2), covariance=of["p"]))


def varying_slopes(effects, groups):
    m = cv.Model("varying slopes")
    group, n = m.plate("group", groups), m.plate("n")
    x = m.input("x", cv.vector(effects), plates=n)
    scales = [m.random(f"sd {i}", cv.half_normal(1.0)) for i in range(effects)]
    pairs = [(i, j) for i in range(effects) for j in range(i)]
    partial = [m.random(f"r {i}{j}", cv.lkj(2.0, effects, j)) for i, j in pairs]
    mean = m.random("mean", cv.vector_gaussian(np.zeros(effects), covariance=4.0 * np.eye(effects)))
    own = m.random("own", cv.vector_gaussian(mean, covariance=cv.covariance(scales, partial)), plates=group)
    noise = m.random("noise", cv.half_normal(1.0))
    m.random("y", cv.gaussian(own[m.input("of", cv.index(group), plates=n)] @ x, sd=noise))
    return m


def partial_to_root(partial, size):
    """The Cholesky root of a correlation matrix, written apart from the library's."""
    root, pairs = np.eye(size), iter(partial)
    for i in range(1, size):
        for j in range(i):
            root[i, j] = next(pairs) * np.sqrt(1.0 - (root[i, :j] ** 2).sum())
        root[i, i] = np.sqrt(1.0 - (root[i, :i] ** 2).sum())
    return root


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The verdict")
@pytest.mark.parametrize("effects", [2, 3])
def test_varying_intercepts_and_slopes(effects):
    """Against importance sampling of the scales and correlations, given which all else is Gaussian."""
    rng = np.random.default_rng(5)
    groups, each = 12, 8
    of = np.repeat(np.arange(groups), each)
    x = np.concatenate([np.ones((len(of), 1)), rng.normal(size=(len(of), effects - 1))], axis=1)
    deviations = rng.multivariate_normal(np.zeros(effects), 0.4 * np.eye(effects) + 0.3, groups)
    y = ((0.5 + deviations)[of] * x).sum(1) + rng.normal(0.0, 0.5, len(of))
    m = varying_slopes(effects, groups)
    posterior = cv.infer(m, {"x": x, "of": of, "y": y})
    names = [name for name in m.randoms if name not in ("mean", "own", "y")]
    pairs = effects * (effects - 1) // 2
    order = np.array([j for i in range(effects) for j in range(i)])
    b = 2.0 + 0.5 * (effects - 2 - order)

    def log_joint(theta):
        sd, r, noise = theta[:effects], theta[effects:-1], theta[-1]
        if min(*sd, noise) <= 0.0 or np.abs(r).max() >= 1.0:
            return -np.inf
        root = sd[:, None] * partial_to_root(r, effects)
        covariance = x @ (4.0 * np.eye(effects)) @ x.T + (of[:, None] == of) * (x @ root @ root.T @ x.T)
        prior = st.halfnorm.logpdf([*sd, noise]).sum() + (st.beta.logpdf(0.5 + 0.5 * r, b, b) - np.log(2.0)).sum()
        own = np.linalg.cholesky(covariance + noise**2 * np.eye(len(y)))
        z = np.linalg.solve(own, y)
        return prior - 0.5 * z @ z - np.log(np.diag(own)).sum() - 0.5 * len(y) * np.log(2.0 * np.pi)

    centre = np.array([float(posterior[name].mean) for name in names])
    spread = 1.3 * np.array([float(posterior[name].sd) for name in names])
    assert len(names) == effects + pairs + 1
    steps = rng.standard_t(7, (5000, len(names)))
    draws = centre + spread * steps
    log_weight = np.array([log_joint(draw) for draw in draws]) - (st.t.logpdf(steps, 7) - np.log(spread)).sum(1)
    weight = np.exp(log_weight - log_weight.max())
    log_evidence = np.log(weight.mean()) + log_weight.max()
    weight = weight / weight.sum()
    assert 1.0 / (weight**2).sum() > 500.0
    means = weight @ draws
    sds = np.sqrt(weight @ (draws - means) ** 2)
    assert np.all(np.abs(centre - means) < 0.15 * sds)
    close([posterior[name].sd for name in names], sds, rtol=0.12)
    close(posterior.log_evidence, log_evidence, atol=0.3)


OTHER_QUESTIONS = {name: AGAINST_A_GRID[name][:2] for name in ("cauchy", "inverse gaussian", "flat priors")}


@pytest.mark.parametrize("name", OTHER_QUESTIONS)
def test_the_other_questions(name, tmp_path):
    """Explained, left out one by one, saved and loaded, and as a density."""
    m, data = OTHER_QUESTIONS[name]
    posterior = cv.infer(m, {"y": data})
    assert "y" in posterior.explain()
    assert np.isfinite(posterior.loo().total)
    first = next(iter(m.randoms))
    posterior.save(tmp_path / "posterior")
    close(cv.load(tmp_path / "posterior")[first].mean, posterior[first].mean)
    assert first in cv.log_density(m, {"y": data}).names


def test_predictions_of_new_observations():
    m = cv.Model("waiting")
    n = m.plate("n")
    rate = m.random("rate", cv.gamma(20.0, 10.0))
    m.random("y", cv.exponential(rate), plates=n)
    posterior = cv.infer(m, {"y": [0.3, 1.2, np.nan]})
    rates = st.gamma(22.0, scale=1.0 / 11.5)
    close(posterior["y"].mean[2], 11.5 / 21.0, rtol=1e-3)  # E 1 / rate
    close(posterior["y"].quantile(0.5)[2], 11.5 * (2.0 ** (1.0 / 22.0) - 1.0), rtol=1e-2)  # of a Lomax distribution
    left_out = posterior.loo()
    assert np.isfinite(rates.mean())
    assert np.isfinite(left_out.total)


@pytest.mark.parametrize(
    ("term", "says"),
    [
        (lambda: cv.exponential(), "exactly one of rate= and mean="),
        (lambda: cv.exponential(1.0, mean=1.0), "exactly one of rate= and mean="),
        (lambda: cv.exponential(-1.0), "positive"),
        (lambda: cv.exponential(mean=0.0), "zero|positive|finite"),
        (lambda: cv.inverse_gamma(0.0, 1.0), "positive"),
        (lambda: cv.pareto(1.0, -1.0), "positive"),
        (lambda: cv.cauchy(0.0, 0.0), "positive"),
        (lambda: cv.logit_normal(0.0), "exactly one of variance=, precision=, sd="),
        (lambda: cv.skew_normal(0.0, -1.0, 1.0), "positive"),
        (lambda: cv.lkj(0.0), "positive"),
        (lambda: cv.lkj(1.0, 7), "whole number from 2 to 6"),
        (lambda: cv.lkj(1.0, 3, 2), "at most 1 others"),
        (lambda: cv.flat("real"), "cv.real and on cv.positive"),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_numbers_outside_of_the_domains_are_refused(term, says):
    with pytest.raises(cv.ModelError, match=says):
        cv.Model().random("v", term())

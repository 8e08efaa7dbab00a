"""What is predicted is shown as what it is: mixtures over the beliefs of a term's arguments, not members of a family
with their moments. The truth is drawn by NumPy, or a closed form of SciPy.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats as st

import cavity as cv

close = np.testing.assert_allclose
RNG = np.random.default_rng(0)
N = 200_000
RATE = RNG.gamma(2.0, 1.0, N)
SHAPE = RNG.gamma(6.0, 0.5, N)
SHARE = RNG.beta(2.0, 3.0, N)
REAL = RNG.normal(0.5, 0.8, N)
WEIGHTS = RNG.dirichlet([1.0, 2.0, 3.0], N)


def parents(m):
    return {
        "rate": m.random("rate", cv.gamma(2.0, 1.0)),
        "shape": m.random("shape", cv.gamma(6.0, 2.0)),
        "share": m.random("share", cv.beta(2.0, 3.0)),
        "real": m.random("real", cv.gaussian(0.5, variance=0.64)),
        "weights": m.random("weights", cv.dirichlet([1.0, 2.0, 3.0])),
    }


# A term with random arguments, and draws of it.
TERMS = {
    "poisson": (lambda p: cv.poisson(p["rate"]), lambda: RNG.poisson(RATE)),
    "poisson of exp": (lambda p: cv.poisson(cv.exp(p["real"])), lambda: RNG.poisson(np.exp(REAL))),
    "binomial": (lambda p: cv.binomial(10.0, p["share"]), lambda: RNG.binomial(10, SHARE)),
    "binomial of logistic": (
        lambda p: cv.binomial(10.0, cv.logistic(p["real"])),
        lambda: RNG.binomial(10, 1 / (1 + np.exp(-REAL))),
    ),
    "gaussian": (
        lambda p: cv.gaussian(p["real"], precision=p["shape"]),
        lambda: RNG.normal(REAL, 1 / np.sqrt(SHAPE)),
    ),
    "gaussian with sd": (lambda p: cv.gaussian(0.0, sd=p["rate"]), lambda: RNG.normal(0.0, RATE)),
    "gaussian of a square": (
        lambda p: cv.gaussian(p["real"] ** 2, variance=0.1),
        lambda: RNG.normal(REAL**2, np.sqrt(0.1)),
    ),
    "student_t": (
        lambda p: cv.student_t(7.0, p["real"], p["rate"]),
        lambda: REAL + RATE * RNG.standard_t(7.0, N),
    ),
    "laplace": (lambda p: cv.laplace(p["real"], p["rate"]), lambda: RNG.laplace(REAL, RATE)),
    "negative_binomial": (
        lambda p: cv.negative_binomial(p["rate"], p["shape"]),
        lambda: RNG.poisson(RNG.gamma(SHAPE, RATE / SHAPE)),
    ),
    "gamma": (lambda p: cv.gamma(p["shape"], 2.0), lambda: RNG.gamma(SHAPE, 0.5)),
    "half_normal": (lambda p: cv.half_normal(p["rate"]), lambda: np.abs(RNG.normal(0.0, RATE))),
    "log_normal": (lambda p: cv.log_normal(p["real"], variance=0.2), lambda: np.exp(RNG.normal(REAL, np.sqrt(0.2)))),
    "truncated_gaussian": (
        lambda p: cv.truncated_gaussian(p["real"], 1.0, 0.0, 2.0),
        lambda: st.truncnorm.ppf(RNG.random(N), -REAL, 2.0 - REAL, REAL, 1.0),
    ),
    "beta": (lambda p: cv.beta(p["shape"], p["rate"]), lambda: RNG.beta(SHAPE, RATE)),
    "beta of its mean": (lambda p: cv.beta(mean=p["share"], total=4.0), lambda: RNG.beta(4 * SHARE, 4 * (1 - SHARE))),
    "multinomial": (
        lambda p: cv.multinomial(5.0, p["weights"]),
        lambda: RNG.multinomial(5, WEIGHTS),
    ),
}
QUICK = {"poisson", "poisson of exp", "binomial", "gaussian", "truncated_gaussian", "multinomial"}


def predicted(name):
    m = cv.Model(name)
    m.random("x", TERMS[name][0](parents(m)))
    return cv.infer(m, {})["x"]


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in TERMS])
def test_terms_with_random_arguments(name):
    """Mean, variance, quantiles and draws against draws of the term under draws of its arguments."""
    own, truth = predicted(name), np.asarray(TERMS[name][1](), float)
    error = truth.std(0) / np.sqrt(N)
    assert np.all(np.abs(own.mean - truth.mean(0)) < 5 * error)
    fourth = np.mean((truth - truth.mean(0)) ** 4, 0) - truth.var(0) ** 2
    assert np.all(np.abs(own.variance - truth.var(0)) < 6 * np.sqrt(fourth / N))
    levels = np.array([0.05, 0.5, 0.95])
    for level, x in zip(levels, own.quantile(levels), strict=True):
        slack = 5 * np.sqrt(level * (1 - level) / N) + 1e-3
        assert np.all((truth <= x + 1e-9).mean(0) > level - slack)
        assert np.all((truth < x - 1e-9).mean(0) < level + slack)
    mine = own.sample(0, (4000,))
    assert mine.shape == (4000, *own.shape)
    if mine.ndim == 1:
        assert st.ks_2samp(mine, truth[:50_000]).pvalue > 1e-4
    else:
        close(mine.mean(0), truth.mean(0), atol=5 * truth.std(0).max() / np.sqrt(4000))


def test_a_prior_is_shown_as_itself():
    m = cv.Model()
    m.random("h", cv.half_cauchy(2.0))
    m.random("l", cv.laplace(1.0, 3.0))
    m.random("n", cv.negative_binomial(5.0, 1.0))
    prior = cv.infer(m, {})
    assert str(prior["h"]).startswith("HalfCauchy(scale=2")
    assert prior["h"].mean == np.inf
    close(prior["h"].quantile([0.1, 0.9]), st.halfcauchy(scale=2.0).ppf([0.1, 0.9]), rtol=1e-9)
    close(prior["l"].log_density(2.0), st.laplace(1.0, 3.0).logpdf(2.0), rtol=1e-12)
    close([prior["n"].mean, prior["n"].variance], [5.0, 30.0], rtol=1e-12)
    assert "HalfCauchy" in prior.summary()


@functools.cache
def two_peaks():
    m = cv.Model()
    z = m.random("z", cv.bernoulli(0.25))
    m.random("x", cv.switch(z, cv.gaussian(-5.0, variance=1.0), cv.laplace(5.0, 1.0)))
    s = m.random("s", cv.half_cauchy(1.0))
    m.random("y", cv.gaussian(0.0, sd=s))
    m.random("b", cv.binomial(10.0, m.random("p", cv.beta(1.0, 1.0))))
    return m, cv.infer(m, {})


def test_a_switch_has_two_peaks():
    x = two_peaks()[1]["x"]
    at = np.array([-5.0, 0.0, 5.0])
    close(np.exp(x.log_density(at)), 0.25 * st.norm.pdf(at, -5) + 0.75 * st.laplace.pdf(at, 5), rtol=1e-9)
    close(x.quantile(0.125), -5.0, atol=1e-3)  # the other peak has a tail there
    close(x.sample(0, (20_000,)).mean(), 2.5, atol=0.2)
    assert str(x).startswith("Mixture of Gaussian and Laplace")


def test_moments_that_do_not_exist_are_infinite_and_quantiles_still_hold():
    """A Gaussian whose sd is half-Cauchy has neither a mean nor a finite variance."""
    y = two_peaks()[1]["y"]
    assert np.isnan(y.mean)
    assert y.variance == np.inf
    scale, truth = np.tan(0.5 * np.pi * (np.arange(20_000) + 0.5) / 20_000), st.norm
    x = y.quantile(0.9)
    close(truth.cdf(x / scale).mean(), 0.9, atol=1e-3)


def test_a_mean_exists_where_the_mean_spread_is_finite():
    """E precision^-1/2 of Gamma(a, 1) is finite for a > 1/2, E 1 / precision for a > 1."""
    m = cv.Model()
    shapes = np.array([0.3, 0.8, 1.5])
    g = m.random("g", cv.gamma(shapes, 1.0), m.plate("k", 3))
    m.random("x", cv.gaussian(2.0, precision=g))
    m.random("z", cv.spike_and_slab(0.4, variance=g))
    prior = cv.infer(m, {})
    x, z = prior["x"], prior["z"]
    close(x.mean, [np.nan, 2.0, 2.0], rtol=1e-9)
    close(x.variance, [np.inf, np.inf, 2.0], rtol=1e-6)
    close(z.variance, 0.4 * shapes, rtol=1e-9)  # the mean of the variance, not exp E log


def test_they_are_saved(tmp_path):
    _, prior = two_peaks()
    prior.save(tmp_path / "prior.npz")
    again = cv.load(tmp_path / "prior.npz")
    for name in ("x", "b"):
        close(again[name].quantile([0.1, 0.6]), prior[name].quantile([0.1, 0.6]), rtol=1e-12)
        assert str(again[name]) == str(prior[name])


def test_what_is_only_matched_in_moments_says_so():
    m = cv.Model()
    n = m.plate("n", 3)
    a, b = (m.random(name, cv.gaussian(1.0, variance=1.0), plates=n) for name in "ab")
    m.random("y", cv.gaussian(cv.sum(a * b, over=n), variance=1.0))
    y = cv.infer(m, {})["y"]
    assert str(y).startswith("Gaussian (projection)(mean=3")


def test_factors_of_ones_own():
    """A Weibull variable, from its log density alone; its scale is random."""
    weibull = cv.factor(
        "own_weibull",
        out=cv.positive,
        shape=cv.positive,
        scale=cv.positive,
        log_density=lambda out, shape, scale: (
            jnp.log(shape / scale) + (shape - 1) * jnp.log(out / scale) - (out / scale) ** shape
        ),
    )
    m = cv.Model()
    m.random("x", weibull(1.5, 2.0))
    x, truth = cv.infer(m, {})["x"], st.weibull_min(1.5, scale=2.0)
    close([x.mean, x.variance], [truth.mean(), truth.var()], rtol=1e-4)
    close(x.quantile([0.1, 0.9]), truth.ppf([0.1, 0.9]), rtol=1e-3)


@pytest.mark.parametrize("plates", [1, pytest.param(30_000, marks=pytest.mark.slow)])
def test_many_rows_are_read_by_parts(plates):
    m = cv.Model()
    n = m.plate("n", plates)
    m.random("k", cv.poisson(m.random("rate", cv.log_normal(0.0, variance=1.0), plates=n)))
    k = cv.infer(m, {})["k"]
    mean = np.exp(0.5)
    close(k.mean, np.full(plates, mean), rtol=1e-6)
    close(k.variance, np.full(plates, mean + np.exp(1.0) * np.expm1(1.0)), rtol=1e-4)
    assert isinstance(k.sample(jax.random.key(0)), np.ndarray)


def test_a_count_below_a_count_that_is_no_poisson():
    """By enumeration of the upper one, a negative binomial; the lower one is binomial."""
    m = cv.Model()
    n = m.random("n", cv.negative_binomial(mean=4.0, dispersion=2.0))
    m.random("k", cv.binomial(n, 0.3))
    found = cv.infer(m, {})["k"]
    upper = np.arange(400)
    weights = st.nbinom.pmf(upper, 2.0, 2.0 / 6.0)
    mean = float(weights @ (0.3 * upper))
    second = float(weights @ (0.21 * upper + 0.09 * upper**2))
    assert float(found.mean) == pytest.approx(mean, rel=1e-9)
    assert float(found.variance) == pytest.approx(second - mean**2, rel=1e-8)
    below = [float(weights @ st.binom.cdf(k, upper, 0.3)) for k in range(20)]
    assert float(found.quantile(0.9)) == next(k for k, level in enumerate(below) if level >= 0.9)


def gaussian_nodes(mean, covariance, number=80):
    """Points of two Gaussian numbers, and weights."""
    x, w = np.polynomial.hermite_e.hermegauss(number)
    z = np.stack(np.meshgrid(x, x, indexing="ij"), -1).reshape(-1, 2)
    weights = np.outer(w, w).ravel()
    return mean + z @ np.linalg.cholesky(covariance).T, weights / weights.sum()


def test_arguments_that_share_their_numbers():
    """Mean and spread from the same coefficients, which the data have tied to each other: against quadrature."""
    x = np.array([[0.3, -1.0], [1.2, 0.4], [-0.5, 0.9]])
    seen = np.array([0.6, -0.2, 1.1])
    m = cv.Model()
    n, f = m.plate("n", 3), m.plate("f", 2)
    features, one, two = m.input("x", cv.real, plates=[n, f]), m.input("i", cv.index(f)), m.input("j", cv.index(f))
    w = m.random("w", cv.gaussian(0.3, variance=1.0), plates=f)
    score = cv.sum(w * features, over=f)
    m.random("seen", cv.gaussian(score, variance=0.5))
    m.random("same", cv.gaussian(score - 0.5, sd=cv.exp(0.4 * score)))
    m.random("two", cv.gaussian(w[one], sd=cv.exp(0.5 * w[two])))
    m.random("three", cv.gamma(shape=cv.exp(w[one]), rate=cv.exp(w[one] - w[two])))
    found = cv.infer(m, {"x": x, "seen": seen, "i": 0, "j": 1})
    covariance = np.linalg.inv(np.eye(2) + x.T @ x / 0.5)
    at, weights = gaussian_nodes(covariance @ (0.3 + x.T @ seen / 0.5), covariance)
    (a, b), lines = at.T, at @ x.T
    laws = {
        "same": st.norm(lines - 0.5, np.exp(0.4 * lines)),
        "two": st.norm(a[:, None], np.exp(0.5 * b)[:, None]),
        "three": st.gamma(np.exp(a)[:, None], scale=np.exp(b - a)[:, None]),
    }
    for name, law in laws.items():
        own, mean = found[name], weights @ law.mean()
        close(np.ravel(own.mean), mean, rtol=1e-6)
        close(np.ravel(own.variance), weights @ (law.var() + (law.mean() - mean) ** 2), rtol=1e-5)
        for level in (0.1, 0.5, 0.9):
            close(weights @ law.cdf(np.ravel(own.quantile(level))), level, atol=1e-5)


def test_discrete_outcomes_of_arguments_that_their_moments_do_not_tell():
    """A nonlinear argument, a heavy-tailed one, and one in a denominator: against quadrature over it."""
    m = cv.Model()
    level = m.input("level", cv.real)
    x, t = m.random("x", cv.gaussian(0.3, variance=1.0)), m.random("t", cv.student_t(4.0, 0.0, 1.0))
    g = m.random("g", cv.gamma(0.7, 1.0))
    cuts = np.array([-0.6, 0.8])
    m.random("divided", cv.ordered_probit(level / g, cuts))
    m.random("heavy", cv.ordered_probit(t, cuts))
    m.random("flag", cv.bernoulli(cv.logistic(x**2 - 1.0)))
    m.random("inside", cv.between(x**2, 0.1, 1.0))
    found = cv.infer(m, {"level": 0.4})

    def ordered(law, score):
        at = law.ppf((np.arange(400_000) + 0.5) / 400_000)
        below = st.norm.cdf(cuts[:, None] - score(at)).mean(1)
        return np.diff([0.0, *below, 1.0])

    close(found["divided"].mean, ordered(st.gamma(0.7), lambda v: 0.4 / v), atol=1e-4)
    close(found["heavy"].mean, ordered(st.t(4), lambda v: v), atol=1e-4)
    z = st.norm(0.3, 1.0).ppf((np.arange(400_000) + 0.5) / 400_000)
    close(found["flag"].mean, np.mean(1.0 / (1.0 + np.exp(1.0 - z**2))), atol=1e-4)
    close(found["inside"].mean, np.mean((z**2 > 0.1) & (z**2 < 1.0)), atol=1e-3)


def test_a_row_without_a_feature_is_predicted_by_its_constants():
    """Two inner products with a row of zeros have no variance to share: N(0, exp(0)^2), not nan."""
    m = cv.Model()
    n = m.plate("n")
    x = m.input("x", cv.vector(2), plates=n)
    w = m.random("w", cv.vector_gaussian(np.zeros(2), precision=np.eye(2)))
    v = m.random("v", cv.vector_gaussian(np.zeros(2), precision=4.0 * np.eye(2)))
    m.random("y", cv.gaussian(cv.dot(w, x), sd=cv.exp(cv.dot(v, x))), plates=n)
    rng = np.random.default_rng(0)
    posterior = cv.infer(m, {"x": rng.normal(size=(20, 2)), "y": rng.normal(size=20)})
    y = posterior.predict({"x": [[0.0, 0.0], [1.0, 2.0]]})["y"]
    assert y.mean[0] == pytest.approx(0.0, abs=1e-9)
    assert y.sd[0] == pytest.approx(1.0, abs=1e-9)
    assert np.isfinite(y.sd[1])


@pytest.mark.slow
def test_quantiles_of_a_density_that_cannot_be_evaluated_at_every_node():
    """Where a scale t^2 underflows, the density is no number: such nodes are left out while they have no weight."""

    def log_density(out, scale):
        z = out / scale
        return -z - jnp.log(scale) - 2.0 * jnp.logaddexp(0.0, -z)

    logistic = cv.factor("logistic_noise", out=cv.real, scale=cv.positive, log_density=log_density)
    m = cv.Model()
    t = m.random("t", cv.gamma(0.5, 1.0))
    m.random("y", logistic(scale=t**2))
    y = cv.infer(m, {})["y"]
    scale = st.gamma(0.5).ppf((np.arange(4000) + 0.5) / 4000) ** 2
    for level in (0.1, 0.5, 0.9):
        assert np.mean(st.logistic.cdf(y.quantile(level), scale=scale)) == pytest.approx(level, abs=0.01)

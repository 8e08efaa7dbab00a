"""What predictions know of every factor: its distribution under known arguments, against SciPy's."""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats as st
from factor_arguments import moments_of_point, points_of, whole

from cavity.factors import REGISTRY
from cavity.factors.conditional import from_density, inverted
from cavity.factors.conditionals import conditional_named, conditional_of
from cavity.factors.errors import UnsupportedError
from cavity.factors.moments import Real

close = np.testing.assert_allclose
NUMBERS = ("real", "positive", "unit", "count")
AVERAGED = ("boolean", "category")  # their masses are averaged
KINDS = {name: f.kind for name, f in REGISTRY.items() if f.kind not in AVERAGED and not f.improper}


def cut(own, low, high):
    """The part of a distribution between two bounds."""
    start, mass = own.cdf(low), own.cdf(high) - own.cdf(low)

    class Cut(st.rv_continuous):
        def _pdf(self, x):
            return own.pdf(x) / mass

        def _cdf(self, x):
            return (own.cdf(x) - start) / mass

    return Cut(a=low, b=high)()


def truncated_gaussian(mean, precision, low, high):
    sd = 1 / np.sqrt(precision)
    return st.truncnorm((low - mean) / sd, (high - mean) / sd, mean, sd)


def logit_normal(mean, sd):
    own = st.norm(mean, sd)

    class LogitNormal(st.rv_continuous):
        def _pdf(self, x):
            return own.pdf(scipy.special.logit(x)) / (x * (1.0 - x))

        def _cdf(self, x):
            return own.cdf(scipy.special.logit(x))

        def _ppf(self, q):
            return scipy.special.expit(own.ppf(q))

    return LogitNormal(a=0.0, b=1.0)()


def half_student(dof, scale):
    """Half of SciPy's, whose mean and variance are infinite where it has none."""
    own = st.t(dof, scale=scale)

    class Half(st.rv_continuous):
        def _pdf(self, x):
            return 2.0 * own.pdf(x)

        def _cdf(self, x):
            return 2.0 * own.cdf(x) - 1.0

        def _ppf(self, q):
            return own.ppf(0.5 + 0.5 * q)

    return Half(a=0.0)()


SCALARS = {
    "beta": lambda a, b: st.beta(a, b),
    "beta_of_mean": lambda mean, total: st.beta(mean * total, (1 - mean) * total),
    "binomial": lambda n, probability: st.binom(n, probability),
    "exponential": lambda rate: st.expon(scale=1 / rate),
    "gamma": lambda shape, rate: st.gamma(shape, scale=1 / rate),
    "gaussian": lambda mean, precision: st.norm(mean, 1 / np.sqrt(precision)),
    "half_cauchy": lambda scale: st.halfcauchy(scale=scale),
    "half_normal": lambda scale: st.halfnorm(scale=scale),
    "half_student_t": half_student,
    "inverse_gaussian": lambda mean, shape: st.invgauss(mean / shape, scale=shape),
    "inverse_gamma": lambda shape, scale: st.invgamma(shape, scale=scale),
    "laplace": lambda mean, scale: st.laplace(mean, scale),
    "log_normal": lambda mean, precision: st.lognorm(1 / np.sqrt(precision), scale=np.exp(mean)),
    "lkj": lambda concentration: st.beta(concentration, concentration, -1.0, 2.0),
    "logit_normal": lambda mean, precision: logit_normal(mean, 1 / np.sqrt(precision)),
    "negative_binomial": lambda mean, dispersion: st.nbinom(dispersion, dispersion / (dispersion + mean)),
    "negative_binomial_trials": lambda successes, probability: st.nbinom(successes, probability),
    "pareto": lambda shape, scale: st.pareto(shape, scale=scale),
    "point": lambda value: st.binom(value, 1.0),
    "poisson": lambda rate: st.poisson(rate),
    "skew_normal": lambda location, scale, skew: st.skewnorm(skew, location, scale),
    "student_t": lambda dof, mean, scale: st.t(dof, mean, scale),
    "truncated_gamma": lambda shape, rate, low, high: cut(st.gamma(shape, scale=1 / rate), low, high),
    "truncated_gaussian": truncated_gaussian,
    "uniform": lambda low, high: st.uniform(low, high - low),
    # SciPy's runs on beyond the circle, and its mean and variance are those of directions.
    "von_mises": lambda mean, concentration: cut(st.vonmises(concentration, loc=mean), -np.pi, np.pi),
    "weibull": lambda scale, shape: st.weibull_min(shape, scale=scale),
}
VECTORS = {
    "dirichlet": lambda concentration: st.dirichlet(concentration),
    "dirichlet_multinomial": lambda n, concentration: st.dirichlet_multinomial(concentration, int(n)),
    "dirichlet_multinomial_of_mean": lambda n, mean, total: st.dirichlet_multinomial(mean * total, int(n)),
    "dirichlet_of_mean": lambda mean, total: st.dirichlet(mean * total),
    "isotropic_gaussian": lambda mean, precision: st.multivariate_normal(mean, np.eye(3) / precision),
    "multinomial": lambda n, probability: st.multinomial(int(n), probability),
    "vector_gaussian": lambda mean, precision: st.multivariate_normal(mean, np.linalg.inv(precision)),
    "wishart": lambda dof, rate: st.wishart(dof, np.linalg.inv(rate)),
}
OF_THEIR_OWN = {"spike_and_slab"}  # told below


def beta_parts(concentration):
    return concentration, concentration.sum() - concentration


# The distribution of each element; none for a matrix.
ELEMENTS = {
    "dirichlet": lambda concentration: st.beta(*beta_parts(concentration)),
    "dirichlet_multinomial": lambda n, concentration: st.betabinom(n, *beta_parts(concentration)),
    "dirichlet_multinomial_of_mean": lambda n, mean, total: st.betabinom(n, *beta_parts(mean * total)),
    "dirichlet_of_mean": lambda mean, total: st.beta(*beta_parts(mean * total)),
    "isotropic_gaussian": lambda mean, precision: st.norm(mean, 1 / np.sqrt(precision)),
    "multinomial": lambda n, probability: st.binom(n, probability),
    "vector_gaussian": lambda mean, precision: st.norm(mean, np.sqrt(np.diag(np.linalg.inv(precision)))),
}


@functools.cache
def case(name):
    arguments = points_of(name, np.random.default_rng(5))
    arguments.pop("out")
    return arguments, {edge: jnp.asarray(value, float) for edge, value in arguments.items()}


@functools.cache
def drawn(name, number=4000):
    own = conditional_named(name)
    keys = jax.random.split(jax.random.key(1), number)
    return np.asarray(jax.jit(jax.vmap(lambda key: own.draw(key, **case(name)[1])))(keys))


def within_chance(sample, cdf, whole):
    """Whether the sample follows the distribution function: one in ten thousand samples is farther from it.

    By the inequality of Dvoretzky, Kiefer and Wolfowitz, which holds with atoms too.
    """
    at = np.arange(sample.max() + 2.0) if whole else np.sort(sample)
    above = np.searchsorted(np.sort(sample), at, side="right") / len(sample)
    before = above if whole else np.arange(len(sample)) / len(sample)
    far = max(np.max(np.abs(above - cdf(at))), np.max(np.abs(before - cdf(at))))
    return far < np.sqrt(np.log(2.0 / 1e-4) / (2.0 * len(sample)))


def test_every_factor_has_its_distribution_and_its_truth():
    for name, kind in KINDS.items():
        assert conditional_of(REGISTRY[name], kind).kind == kind
    assert {*SCALARS, *VECTORS, *OF_THEIR_OWN} == set(KINDS), "give the new factor its distribution of SciPy"
    assert set(ELEMENTS) == {name for name in VECTORS if conditional_named(name).below is not None}


@pytest.mark.parametrize("name", sorted(name for name in REGISTRY if REGISTRY[name].improper))
def test_an_improper_prior_has_no_distribution(name):
    own = conditional_of(REGISTRY[name], REGISTRY[name].kind)
    for function in (own.mean, own.variance, REGISTRY[name].predict):
        with pytest.raises(UnsupportedError, match=r"no distribution.*Give a proper prior"):
            function()
    with pytest.raises(UnsupportedError, match="no distribution"):
        own.draw(jax.random.key(0))


@pytest.mark.parametrize("name", SCALARS)
def test_scalars(name):
    arguments, known = case(name)
    own, truth = conditional_named(name), SCALARS[name](**arguments)
    close(own.mean(**known), truth.mean(), rtol=1e-6)
    close(own.variance(**known), truth.var(), rtol=1e-6)
    levels = np.array([0.03, 0.3, 0.72, 0.98])
    at = truth.ppf(levels)
    expected = truth.logpmf(at) if own.kind == "count" else truth.logpdf(at)
    close(jax.vmap(lambda x: own.log_density(x, **known))(jnp.asarray(at)), expected, rtol=1e-8, atol=1e-9)
    below = jax.jit(lambda x: own.below(x, **known))
    close(below(jnp.asarray(at)), truth.cdf(at), rtol=1e-8)
    close(jax.jit(lambda p: inverted(lambda x: below(x) < p, own.kind, (4,)))(levels * (1 - 1e-9)), at, rtol=1e-6)
    sample = drawn(name)
    assert within_chance(sample, truth.cdf, own.kind == "count")
    assert truth.support()[0] <= sample.min() <= sample.max() <= truth.support()[1]


def variance_of(truth):
    """Of every element."""
    if hasattr(truth, "var"):
        return truth.var()
    return np.diag(covariance_of(truth))


def covariance_of(truth):
    return truth.cov() if callable(truth.cov) else truth.cov


@pytest.mark.parametrize("name", VECTORS)
def test_vectors(name):
    arguments, known = case(name)
    own, truth = conditional_named(name), VECTORS[name](**arguments)
    mean = np.asarray(truth.mean() if callable(truth.mean) else truth.mean)
    close(own.mean(**known), mean, rtol=1e-9)
    close(own.variance(**known), variance_of(truth), rtol=1e-9)
    if own.covariance is not None:
        close(own.covariance(**known), covariance_of(truth), rtol=1e-9, atol=1e-12)
    some = drawn(name)[:5]
    expected = [(truth.logpmf if own.whole else truth.logpdf)(one) for one in some]
    close([own.log_density(jnp.asarray(one), **known) for one in some], expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", VECTORS)
def test_draws_of_vectors(name):
    """Means and covariances within five standard errors of the mean of as many products; every element's law."""
    arguments, truth = case(name)[0], VECTORS[name](**case(name)[0])
    mean = np.asarray(truth.mean() if callable(truth.mean) else truth.mean)
    gap = (drawn(name) - mean).reshape(len(drawn(name)), -1)
    assert np.all(np.abs(gap.mean(0)) < 5 * gap.std(0) / np.sqrt(len(gap)) + 1e-12)
    products = gap[:, :, None] * gap[:, None, :]
    far = 5 * products.std(0) / np.sqrt(len(gap)) + 1e-12
    if hasattr(truth, "cov"):
        assert np.all(np.abs(products.mean(0) - covariance_of(truth)) < far)
    else:  # of a matrix SciPy has the variances
        close(np.diagonal(products.mean(0)), truth.var().ravel(), atol=np.diagonal(far).max())
    for i in range(gap.shape[1] if name in ELEMENTS else 0):
        element = ELEMENTS[name](**arguments)
        assert within_chance(
            drawn(name)[:, i], lambda x, i=i, law=element: law.cdf(x[:, None])[:, i], conditional_named(name).whole
        )


@pytest.mark.parametrize("name", ELEMENTS)
def test_elements_of_vectors(name):
    """Each element's distribution function, at its own quantiles and between them."""
    arguments, known = case(name)
    own, element = conditional_named(name), ELEMENTS[name](**arguments)
    for level in (0.03, 0.3, 0.72, 0.98):
        at = element.ppf(level)
        for x in (at, at + 0.4) if own.whole else (at,):
            close(own.below(jnp.asarray(x), **known), element.cdf(x), rtol=1e-8)


@pytest.mark.parametrize("low", [-np.inf, -50.0, -2.0, 30.0, 40.0])
@pytest.mark.parametrize("high", [-45.0, -30.0, 1.0, 50.0, np.inf])
def test_a_truncated_gaussian_between_any_bounds(low, high):
    """Without a bound, and with bounds far from the mean, on each side of it."""
    if low >= high:
        return
    own, truth = conditional_named("truncated_gaussian"), st.truncnorm(low, high, 3.0, 2.0)
    known = {"mean": 3.0, "precision": 0.25, "low": 3.0 + 2.0 * low, "high": 3.0 + 2.0 * high}
    at = np.append(truth.ppf([0.001, 0.3, 0.5, 0.9]), [-200.0, 200.0])
    close(own.below(jnp.asarray(at), **known), truth.cdf(at), atol=1e-9)


@functools.cache
def angles():
    """Mean, variance, distribution function at angles, and quantiles of the von Mises factor, compiled once."""
    own = conditional_of(REGISTRY["von_mises"], "real")

    def all_of(x, levels, **known):
        quantiles = inverted(lambda q: own.below(q, **known) < levels, own.kind, levels.shape)
        return own.mean(**known), own.variance(**known), own.below(x, **known), quantiles

    return jax.jit(all_of)


@pytest.mark.parametrize("concentration", [0.1, 10.0, 1e4, 1e6])
@pytest.mark.parametrize("mean", [0.0, 3.1, -3.1, 3.1 + 4.0 * np.pi])
def test_angles_however_narrow_and_across_the_seam(mean, concentration):
    """Of the outcome in (-pi, pi], with SciPy's distribution function, which runs on beyond the circle."""
    centre, sd = np.angle(np.exp(1j * mean)), 1 / np.sqrt(concentration)
    truth = st.vonmises(concentration, loc=centre)
    near = np.angle(np.exp(1j * (centre + sd * np.linspace(-8.0, 8.0, 81))))
    at = np.unique([-np.pi, *near, *np.linspace(-3.0, 3.0, 13), np.pi])
    levels = np.array([0.02, 0.3, 0.6, 0.97])
    own_mean, own_variance, below, quantiles = angles()(at, levels, mean=mean, concentration=concentration)
    close(below, truth.cdf(at) - truth.cdf(-np.pi), atol=1e-9)
    close(truth.cdf(quantiles) - truth.cdf(-np.pi), levels, atol=1e-9)
    assert np.min(np.diff(below)) >= -1e-15  # rounding
    assert (below[0], below[-1]) == (0.0, 1.0)

    def expected(function):
        pieces = itertools.pairwise(at)
        return sum(scipy.integrate.fixed_quad(lambda x: function(x) * truth.pdf(x), *ends, n=20)[0] for ends in pieces)

    first = expected(lambda x: x)
    close(own_mean, first, atol=1e-9)
    close(own_variance, expected(lambda x: (x - first) ** 2), rtol=1e-9)


@pytest.mark.parametrize("concentration", [1.0, 100.0, 1e6, 1e17])
def test_an_uncertain_direction_widens_the_prediction_of_an_angle(concentration):
    """By its own variance where both are narrow; never narrower than with a known direction."""
    level = moments_of_point("von_mises", "concentration", concentration)

    def predicted(variance):
        return whole("von_mises").predict(mean=Real(0.3, variance), concentration=level).variance()

    known, *widened = (predicted(variance) for variance in (0.0, 1e-6, 0.01, 0.1))
    close(known, conditional_of(REGISTRY["von_mises"], "real").variance(mean=0.3, concentration=concentration))
    assert known < widened[0] < widened[1] < widened[2]
    if concentration > 1.0:
        close(widened[:2], np.add(known, [1e-6, 0.01]), rtol=0.02)


def test_spike_and_slab():
    own, known = conditional_named("spike_and_slab"), {"probability": jnp.asarray(0.3), "precision": jnp.asarray(4.0)}
    close(own.variance(**known), 0.3 / 4.0)
    close(own.below(jnp.asarray([-0.5, 0.0]), **known), [0.3 * st.norm.cdf(-1.0), 0.85])


@pytest.mark.parametrize("name", ["gamma", "gaussian", "beta", "poisson", "weibull"])
def test_from_a_density_alone(name):
    """What a user's factor gets is what the vocabulary has in closed form."""
    _, known = case(name)
    own, derived = (
        conditional_named(name),
        from_density(dataclasses.replace(REGISTRY[name], conditional={}), KINDS[name]),
    )
    close(derived.mean(**known), own.mean(**known), rtol=1e-4)
    close(derived.variance(**known), own.variance(**known), rtol=1e-3)
    at = own.mean(**known)
    close(derived.below(at, **known), own.below(at, **known), atol=1e-3)

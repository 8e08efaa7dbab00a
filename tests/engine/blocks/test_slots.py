"""EP over slots: gates, random scales, products, links of any expression, and a factor of one's own.

Names such as E1 are those of the table of numeric reference cases (see tests/reference/test_cases.py).
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats
from small_models import clutter

import cavity as cv
from cavity.factors.domains import real
from cavity.factors.factor import Factor, Term
from cavity.factors.special import lgamma

close = np.testing.assert_allclose


def infer(model, data, **options):
    posterior = cv.infer(model, data, **{"tolerance": 1e-9, "method": "ep", **options})
    assert posterior.converged, posterior.diagnosis
    return posterior


# gates ----------------------------------------------------------------------------------------------------------------


def test_e1_clutter():
    posterior = infer(clutter(), {"x": [0.1, 2.3]}, tolerance=1e-12)
    close(posterior["mean"].mean, 0.789959657143, rtol=1e-10)
    close(posterior["mean"].variance, 40.1262820429, rtol=1e-9)
    close(posterior.log_evidence, -5.12941537241, rtol=1e-11)
    assert "moment-matched mixture" in posterior.explain()


def test_observed_selector():
    posterior = infer(clutter(), {"x": [0.1, 2.3, 1.0], "clean": [True, False, True]})
    close(posterior["mean"].mean, 1.1 / 2.01, rtol=1e-12)
    close(posterior["mean"].variance, 1.0 / 2.01, rtol=1e-12)


START, DATA = np.array([-1.0, 0.0, 2.0]), np.array([0.3, -2.0, 4.0, 1.5, -1.0])


def test_random_index_is_a_switch():
    m = cv.Model("index")
    k, n = m.plate("k", 3), m.plate("n")
    mean = m.random("mean", cv.gaussian(START, variance=4.0), plates=k)
    z = m.random("z", cv.categorical(np.array([0.2, 0.5, 0.3])), plates=n)
    m.random("x", cv.gaussian(mean[z], variance=0.5))
    indexed = infer(m, {"x": DATA})
    m = cv.Model("switch")
    n = m.plate("n")
    means = [m.random(f"mean{i}", cv.gaussian(start, variance=4.0)) for i, start in enumerate(START)]
    z = m.random("z", cv.categorical(np.array([0.2, 0.5, 0.3])), plates=n)
    m.random("x", cv.switch(z, *[cv.gaussian(mean, variance=0.5) for mean in means]))
    switched = infer(m, {"x": DATA})
    close(indexed.log_evidence, switched.log_evidence, rtol=1e-9)
    close(indexed["mean"].mean, [switched[f"mean{i}"].mean for i in range(3)], rtol=1e-6)
    close(indexed["z"].mean, switched["z"].mean, rtol=1e-6)


def test_index_inside_a_case():
    """One instance, so that EP is exact: the marginal likelihood of each combination of states."""
    m = cv.Model()
    mean = m.random("mean", cv.gaussian(START, variance=4.0), plates=m.plate("k", 3))
    z = m.random("z", cv.categorical(np.array([0.2, 0.5, 0.3])))
    clean = m.random("clean", cv.bernoulli(0.7))
    m.random("x", cv.switch(clean, cv.gaussian(mean[z], variance=0.5), cv.gaussian(0.0, variance=10.0)))
    posterior = infer(m, {"x": 1.3})
    inside = 0.7 * np.array([0.2, 0.5, 0.3]) * stats.norm.pdf(1.3, START, np.sqrt(4.5))
    outside = 0.3 * stats.norm.pdf(1.3, 0.0, np.sqrt(10.0))
    total = inside.sum() + outside
    close(posterior.log_evidence, np.log(total), rtol=1e-10)
    close(posterior["clean"].mean, inside.sum() / total, rtol=1e-9)
    close(posterior["z"].mean, (inside + outside * np.array([0.2, 0.5, 0.3])) / total, rtol=1e-9)
    close(posterior["mean"].mean, START + inside / total * (1.3 - START) * 4.0 / 4.5, rtol=1e-9)


def test_random_index_of_mean_and_precision():
    """One instance: an integral over the precision for each case."""
    m = cv.Model()
    k = m.plate("k", 2)
    mean = m.random("mean", cv.gaussian(np.array([-1.0, 2.0]), variance=4.0), plates=k)
    precision = m.random("precision", cv.gamma(2.0, 1.0), plates=k)
    b = m.random("b", cv.bernoulli(0.4))
    m.random("x", cv.gaussian(mean[b], precision=precision[b]))
    posterior = infer(m, {"x": 1.3})
    parts = [
        integrate.quad(
            lambda t, start=start: stats.norm.pdf(1.3, start, np.sqrt(4 + 1 / t)) * stats.gamma.pdf(t, 2.0), 0, np.inf
        )[0]
        for start in (-1.0, 2.0)
    ]
    total = 0.6 * parts[0] + 0.4 * parts[1]
    close(posterior.log_evidence, np.log(total), rtol=1e-8)
    close(posterior["b"].mean, 0.4 * parts[1] / total, rtol=1e-8)


def test_e9_soft_evidence_of_a_comparison():
    m = cv.Model()
    place = m.input("place", cv.real, plates=m.plate("i"))
    x = m.random("x", cv.gaussian(place, variance=1.0))
    above = m.let("above", m.random("y", cv.gaussian(x, variance=0.01)) > 0)
    m.random("seen", cv.bernoulli(m.input("chance", cv.unit, plates=m.plate("two", 2))[above]))
    start = -np.arange(10.0)
    posterior = infer(m, {"place": start, "chance": [0.3, 0.7], "seen": np.ones(10, bool)})
    z = start / np.sqrt(1.01)
    chance = 0.3 + 0.4 * stats.norm.cdf(z)
    score = 0.4 * stats.norm.pdf(z) / (chance * np.sqrt(1.01))
    close(posterior["x"].mean, start + score, rtol=1e-9)
    close(posterior["x"].variance, 1.0 - score * (score + start / 1.01), rtol=1e-9)
    close(posterior.log_evidence, np.log(chance).sum(), rtol=1e-10)


# products, scales, links ----------------------------------------------------------------------------------------------


def test_e22_product():
    m = cv.Model()
    x, y = m.random("x", cv.gaussian(1.0, variance=2.0)), m.random("y", cv.gaussian(3.0, variance=4.0))
    m.random("z", cv.gaussian(x * y, variance=6.0))
    posterior = infer(m, {"z": 5.0})
    close(posterior.log_evidence, -2.834075861624064, rtol=1e-12)
    close(posterior["x"].mean, 1.440115377416467, rtol=1e-12)
    close(posterior["x"].variance, 0.826021607530145, rtol=1e-12)


def beta_likelihood(a, b):
    def log_density(out, p):
        normaliser = lgamma(jnp.asarray(a + b)) - lgamma(jnp.asarray(a)) - lgamma(jnp.asarray(b))
        return (a - 1.0) * jnp.log(p) + (b - 1.0) * jnp.log1p(-p) + normaliser

    return Factor("beta likelihood", {"p": "unit"}, lambda domains: real, log_density)


L3 = {
    (900.0, 100.0): (2.301146908438258, 2.206120388297770, 0.011173774909080),
    (1.9, 1.1): (1.293468509455230, 1.547755187872655, 1.862487573678543),
    (1.5, 1.0): (1.224934926942292, 1.512798732811160, 2.131541336692143),
    (0.9, 0.1): (0.885586119114385, 3.200623777202209, 3.061252056444702),
}


@pytest.mark.parametrize(
    "likelihood",
    [(900.0, 100.0), (0.9, 0.1), *(pytest.param(ab, marks=pytest.mark.slow) for ab in [(1.9, 1.1), (1.5, 1.0)])],
)
def test_l3_logistic_with_a_beta_likelihood(likelihood):
    m = cv.Model()
    w = m.random("w", cv.gaussian(1.2, precision=0.4))
    m.random("y", Term(beta_likelihood(*likelihood), {"p": cv.logistic(w)}))
    posterior = infer(m, {"y": 0.0})
    found = np.exp(posterior.log_evidence), posterior["w"].mean, posterior["w"].variance
    close(found, L3[likelihood], rtol=1e-8)


@pytest.mark.slow
def test_l7_gamma_with_a_random_rate():
    """The likelihood Gamma(5, rate 6) of x is that of four events at rate 6 x, up to a factor of 6."""
    m = cv.Model()
    rate = m.random("rate", cv.gamma(3.0, 4.0))
    x = m.random("x", cv.gamma(2.5, rate))
    m.random("events", cv.poisson(6.0 * x))
    posterior = infer(m, {"events": 4})
    close(posterior.log_evidence + np.log(6.0), -1.89509023271149, rtol=1e-9)
    close([posterior["x"].mean, posterior["rate"].mean], [0.916411430, 1.124617145], rtol=1e-8)


def test_l8_product_of_gammas():
    """y * scale = 1 with y ~ Gamma(2.5, 1): the product is Gamma(2.5, 1 / scale)."""
    m = cv.Model()
    scale = m.random("scale", cv.gamma(3.0, 4.0))
    m.random("product", cv.gamma(2.5, 1.0 / scale))
    posterior = infer(m, {"product": 1.0})
    close(posterior.log_evidence, -0.93972921, rtol=1e-8)
    close(posterior["scale"].mean, 0.625, rtol=1e-7)  # 4.1666667 * 0.15


def test_l10_exp_with_an_inverse_gamma_likelihood():
    def log_density(out, y):
        return 10.0 * jnp.log(10.0) - lgamma(jnp.asarray(10.0)) - 11.0 * jnp.log(y) - 10.0 / y

    m = cv.Model()
    d = m.random("d", cv.gaussian(1.0, precision=2.0))
    m.random("o", Term(Factor("inverse gamma", {"y": "positive"}, lambda domains: real, log_density), {"y": cv.exp(d)}))
    posterior = infer(m, {"o": 0.0})
    close(posterior.log_evidence, -1.590164533, rtol=1e-9)
    variance = posterior["d"].variance
    close([posterior["d"].mean / variance, 1.0 / variance], [1.343906577, 10.919197518], rtol=1e-8)


def test_square():
    m = cv.Model()
    s = m.random("s", cv.gaussian(0.5, variance=1.0))
    m.random("y", cv.gaussian(s**2, variance=0.5))
    posterior = infer(m, {"y": 2.0})

    def integral(weight):
        def density(x):
            return weight(x) * stats.norm.pdf(x, 0.5) * stats.norm.pdf(2.0, x * x, np.sqrt(0.5))

        return integrate.quad(density, -9.0, 9.0, epsabs=1e-14, limit=500)[0]

    total = integral(lambda x: 1.0)
    close(posterior.log_evidence, np.log(total), rtol=1e-10)
    close(posterior["s"].mean, integral(lambda x: x) / total, rtol=1e-10)


@pytest.mark.slow
def test_random_exponents_of_a_beta():
    u = np.linspace(-25.0, 6.0, 1500)
    a, b = np.meshgrid(np.exp(u), np.exp(u), indexing="ij")
    weight = stats.beta.pdf(0.3, a, b) * stats.gamma.pdf(a, 2.0) * a * stats.gamma.pdf(b, 3.0) * b
    m = cv.Model()
    m.random("x", cv.beta(m.random("a", cv.gamma(2.0, 1.0)), m.random("b", cv.gamma(3.0, 1.0))))
    posterior = infer(m, {"x": 0.3})
    close(posterior.log_evidence, np.log(weight.sum() * (u[1] - u[0]) ** 2), rtol=1e-6)
    close(posterior["a"].mean, (weight * a).sum() / weight.sum(), rtol=1e-6)
    close(posterior["b"].mean, (weight * b).sum() / weight.sum(), rtol=1e-6)


def test_random_outcome_of_a_beta_probability():
    m = cv.Model()
    y = m.random("y", cv.bernoulli(m.random("q", cv.beta(2.0, 3.0))))
    m.random("o", cv.bernoulli(m.input("table", cv.unit, plates=m.plate("two", 2))[y]))
    posterior = infer(m, {"table": [0.2, 0.9], "o": True})
    close(posterior.log_evidence, np.log(0.4 * 0.9 + 0.6 * 0.2), rtol=1e-10)
    close(posterior["y"].mean, 0.36 / 0.48, rtol=1e-9)


# powers ---------------------------------------------------------------------------------------------------------------


def mean_and_precision():
    m = cv.Model()
    mean = m.random("mean", cv.gaussian(0.0, variance=100.0))
    precision = m.random("precision", cv.gamma(1.0, 1.0))
    m.random("x", cv.gaussian(mean, precision=precision), plates=m.plate("n"))
    return m


def test_e25_cyclist():
    """Recomputed by dense quadrature in another program, message by message.

    The table prints (15.33, 1.32) and Gamma(2.242, scale 0.2445): Infer.NET projects the precision on the Gamma with
    the same mean and variance, not on that with the same E x and E log x, which is EP's.
    """
    m = cv.Model("cyclist")
    mean = m.random("mean", cv.gaussian(15.0, precision=0.01))
    precision = m.random("precision", cv.gamma(2.0, 2.0))
    m.random("time", cv.gaussian(mean, precision=precision), plates=m.plate("n"))
    posterior = infer(m, {"time": [13.0, 17.0, 16.0]})
    close([posterior["mean"].mean, posterior["mean"].variance], [15.303453392340964, 1.4015241431925891], rtol=1e-8)
    parameters = posterior["precision"].parameters
    close([parameters["shape"], parameters["rate"]], [1.8853470640308625, 3.387905734131948], rtol=1e-7)


def test_power_ep_meets_vmp():
    """Stationary points are an alpha from VMP's; V1 of the reference cases."""
    below = infer(mean_and_precision(), {"x": [5.0, 7.0]}, method="vmp")
    near = infer(mean_and_precision(), {"x": [5.0, 7.0]}, method=cv.power(1e-3))
    close(below["mean"].mean, 5.9603207170807826, rtol=1e-7)
    close(near["mean"].mean, below["mean"].mean, rtol=1e-5)
    close(near["precision"].mean, below["precision"].mean, rtol=1e-3)
    close(near.log_evidence, below.log_evidence, rtol=1e-3)


def test_one_site_is_exact():
    """EP with a single observation: mean and evidence of the integral over the precision."""
    posterior = infer(mean_and_precision(), {"x": [5.0]})

    def density(t):
        return stats.norm.pdf(5.0, 0.0, np.sqrt(100.0 + 1.0 / t)) * stats.gamma.pdf(t, 1.0)

    total = integrate.quad(density, 0, np.inf, epsabs=1e-15)[0]
    pull = integrate.quad(lambda t: density(t) * 5.0 * 100.0 / (100.0 + 1.0 / t), 0, np.inf, epsabs=1e-15)[0]
    close(posterior.log_evidence, np.log(total), rtol=1e-9)
    close(posterior["mean"].mean, pull / total, rtol=1e-8)


# refusals -------------------------------------------------------------------------------------------------------------


def test_three_random_numbers():
    m = cv.Model()
    a, b, c = (m.random(name, cv.gamma(2.0, 1.0)) for name in "abc")
    m.random("x", cv.gaussian(0.0, precision=a * b + c))
    with pytest.raises(cv.UnsupportedError, match="3 random numbers that are not linear"):
        cv.infer(m, {"x": 1.0}, method="ep")


def test_unnamed_selector():
    m = cv.Model()
    a = m.random("a", cv.gaussian(0.0, variance=1.0))
    m.random("x", cv.switch(a > 0, cv.gaussian(1.0, variance=1.0), cv.gaussian(-1.0, variance=1.0)))
    with pytest.raises(cv.UnsupportedError, match="Name it first"):
        cv.infer(m, {"x": 1.0}, method="ep")

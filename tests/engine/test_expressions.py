"""Expressions of random variables under VMP: their moments by quadrature, their optima by direct search."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats

import cavity as cv
from cavity.factors.moments import Positive, Real, Unit
from cavity.factors.scalars import (
    BetaNumber,
    GammaNumber,
    LogNormalNumber,
    covariance,
    expectation,
    larger,
    number_of,
)

close = np.testing.assert_allclose


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def infer(model, data, method="vmp", **options):
    posterior = cv.infer(model, data, method=method, **{"tolerance": 1e-10, **options})
    assert posterior.converged, posterior.diagnosis
    return posterior


def gaussian(m, name, mean, precision):
    return m.random(name, cv.gaussian(mean, precision=precision))


# Powers of single numbers ---------------------------------------------------------------------------------------------

NUMBERS = {
    "gamma": (GammaNumber(7.3, 2.1), scipy.stats.gamma(7.3, scale=1 / 2.1), (-3, -1, 1, 2, 3)),
    "beta": (BetaNumber(2.5, 4.0), scipy.stats.beta(2.5, 4.0), (1, 2, 3)),
    "log normal": (LogNormalNumber(0.3, 0.2), scipy.stats.lognorm(0.2**0.5, scale=np.exp(0.3)), (-2, -1, 1, 2)),
    "gaussian": (Real(0.7, 0.4), scipy.stats.norm(0.7, 0.4**0.5), (1, 2)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_powers_of_numbers(name):
    number, law, powers = NUMBERS[name]
    number = type(number)(*map(jnp.asarray, number))

    def mean(n):
        return law.expect(lambda x: x**n, epsabs=1e-12, epsrel=1e-12)

    for n, k in itertools.product(powers, powers):
        close(expectation(number, n), mean(n), rtol=1e-7)
        close(covariance(number, n, k), mean(n + k) - mean(n) * mean(k), rtol=1e-6, atol=1e-9)


def test_powers_of_concentrated_numbers_keep_their_digits():
    """Var(1/x) of a Gamma of shape s is E^2 / (s - 2)."""
    number = GammaNumber(jnp.asarray(1e10), jnp.asarray(1e10))
    close(covariance(number, -1, -1), expectation(number, -1) ** 2 / (1e10 - 2), rtol=1e-12)
    close(covariance(number, 1, -1), 1 - expectation(number, -1), rtol=1e-5)  # the right side has few digits


def test_powers_that_do_not_exist_are_infinite():
    assert expectation(GammaNumber(jnp.asarray(0.9), jnp.asarray(1.0)), -1) == np.inf


@pytest.mark.parametrize(
    ("moments", "mean"),
    [
        (lambda q: Positive(q[0] / q[1], jax.scipy.special.digamma(q[0]) - jnp.log(q[1])), lambda q: q[0] ** 2 / q[1]),
        (
            lambda q: Unit(*(jax.scipy.special.digamma(q) - jax.scipy.special.digamma(q.sum()))),
            lambda q: q[0] / q.sum() * q[1],
        ),
    ],
)
def test_parameters_from_moments_and_their_slopes(moments, mean):
    """The family is recovered, and a function of it has the derivatives that it has in the parameters."""
    q = jnp.array([3.2, 1.7])
    close(jnp.stack(number_of(moments(q))), q, rtol=1e-9)
    found = jax.grad(lambda q: mean(jnp.stack(number_of(moments(q)))))(q)
    close(found, jax.grad(mean)(q), rtol=1e-7)


@pytest.mark.parametrize(("a", "b", "rho"), [((1.0, 0.5), (0.7, 2.0), 0.3), ((0.0, 1.0), (8.0, 1.0), -0.9)])
def test_larger_of_two_gaussians(a, b, rho):
    """Against an integral over one of them, of the expectations given it."""
    cross = rho * np.sqrt(a[1] * b[1])
    found = larger(Real(*a), Real(*b), Real(a[0] - b[0], a[1] + b[1] - 2 * cross))

    def moment(n):
        def given(x):
            mean, sd = b[0] + cross / a[1] * (x - a[0]), np.sqrt(b[1] - cross**2 / a[1])
            z = (x - mean) / sd
            below, above = scipy.stats.norm.cdf(z), scipy.stats.norm.sf(z)
            first = mean * above + sd * scipy.stats.norm.pdf(z)
            second = (mean**2 + sd**2) * above + sd * (mean + x) * scipy.stats.norm.pdf(z)
            return x**n * below + (first if n == 1 else second)

        return scipy.stats.norm(a[0], a[1] ** 0.5).expect(given, lb=a[0] - 12, ub=a[0] + 12, epsabs=1e-12)

    close(found.mean, moment(1), rtol=1e-8)
    close(found.variance, moment(2) - moment(1) ** 2, rtol=1e-7)


# Polynomials of Gaussians: the cases of the table of reference cases -------------------------------------------------


def test_v8_product():
    m = cv.Model()
    a, b = gaussian(m, "a", 1.0, 100.0), gaussian(m, "b", 5.0, 10.0)
    m.random("x", cv.gaussian(a * b, precision=10.0))
    posterior = infer(m, {"x": 3.0})
    close([posterior["a"].mean, posterior["b"].mean], [0.7623428, 4.5993225], atol=1e-7)
    close(posterior["a"].variance + posterior["a"].mean ** 2, 0.5843700, atol=1e-7)
    close(posterior.log_evidence, -5.4741729, atol=1e-7)


def test_v9_products_of_three():
    m = cv.Model()
    a, b, c, d = (gaussian(m, n, v, p) for n, v, p in (("a", 1, 100), ("b", 10, 10), ("c", 5, 100), ("d", 15, 100)))
    m.random("x", cv.gaussian(a * b * c, precision=1.0))
    m.random("y", cv.gaussian(a * b * d, precision=10.0))
    posterior = infer(m, {"x": 4.0, "y": 10.0})
    expected = {
        "a": (0.0676801482, 4.4556e-06),
        "b": (9.9315398085, 0.0489642166),
        "c": (5.0042438252, 0.0099549564),
        "d": (14.9937404348, 0.0095671131),
    }
    for name, (mean, variance) in expected.items():
        close(posterior[name].mean, mean, rtol=1e-6)
        close(posterior[name].variance, variance, rtol=1e-5)
    close(posterior.log_evidence, -48.6462320784, rtol=1e-9)


def test_v10_one_product_of_three():
    m = cv.Model()
    a, b, c = gaussian(m, "a", 1.0, 100.0), gaussian(m, "b", 10.0, 10.0), gaussian(m, "c", 7.0, 10.0)
    m.random("x", cv.gaussian(a * b * c, precision=1.0))
    posterior = infer(m, {"x": 35.0})
    close([posterior[n].mean for n in "abc"], [0.5526101627, 9.7420788852, 6.6232022686], rtol=1e-6)
    close(posterior.log_evidence, -15.1670531, atol=1e-7)


def test_v11_a_product_observed_twice():
    m = cv.Model()
    a, b = gaussian(m, "a", 1.0, 100.0), gaussian(m, "b", 10.0, 10.0)
    m.random("x", cv.gaussian(a * b, precision=2.0))
    m.random("y", cv.gaussian(a * b, precision=3.0))
    posterior = infer(m, {"x": 8.0, "y": 11.0})
    close([posterior["a"].mean, posterior["b"].mean], [0.9844589419, 9.9795981257], rtol=1e-8)
    close([posterior["a"].variance, posterior["b"].variance], [0.0016714065, 0.0673212352], rtol=1e-6)
    close(posterior.log_evidence, -7.4496816636, rtol=1e-9)


def test_v12_a_sum_of_dependent_products():
    """x = ab + bc: the products share b, and the mean field that knows it is 0.1076 nats better."""
    m = cv.Model()
    a, b, c = (gaussian(m, n, v, 10.0) for n, v in (("a", -1.0), ("b", 2.0), ("c", 10.0)))
    m.random("x", cv.gaussian(a * b + b * c, precision=10.0))
    posterior = infer(m, {"x": 18.0})
    close([posterior[n].mean for n in "abc"], [-0.9940159687, 1.9964024033, 10.0059840313], rtol=1e-8)
    close(posterior.log_evidence, -3.579903285, rtol=1e-9)


def test_v13_a_multilinear_function():
    m = cv.Model()
    a, b, c = gaussian(m, "a", -1.0, 0.1), gaussian(m, "b", 2.0, 0.1), gaussian(m, "c", 10.0, 1.0)
    m.random("x", cv.gaussian(a * b + b * c + a * c, precision=1.0))
    posterior = infer(m, {"x": 45.0})
    close([posterior[n].mean for n in "abc"], [0.9568753326, 3.2318454315, 9.995599917], rtol=1e-6)
    close([posterior[n].variance for n in "abc"], [0.0057101249, 0.0083252644, 0.0538810028], rtol=1e-6)
    close(posterior.log_evidence, -9.9266984943, rtol=1e-8)


# Everything else: the bound is the best of its kind -------------------------------------------------------------------


def gamma_divergence(shape, rate, prior_shape, prior_rate):
    """KL of two Gamma distributions."""
    digamma, gammaln = scipy.special.digamma, scipy.special.gammaln
    return (
        (shape - prior_shape) * digamma(shape)
        - gammaln(shape)
        + gammaln(prior_shape)
        + prior_shape * np.log(rate / prior_rate)
        + shape * (prior_rate - rate) / rate
    )


def best(bound, start):
    """The highest value of a bound in its unconstrained parameters."""
    options = {"xatol": 1e-9, "fatol": 1e-13, "maxiter": 20000, "maxfev": 20000}
    found = scipy.optimize.minimize(lambda q: -bound(q), start, method="Nelder-Mead", options=options)
    return -found.fun, found.x


POSITIVE = {
    "product": (lambda x, s: x * s, 1, 2.7),
    "quotient": (lambda x, s: x / s, -1, 2.7),
    "square": (lambda x, s: x * s**2, 2, 2.7),
    "of a square": (lambda x, s: s / (s * s) * x, -1, 1.5),
}


@pytest.mark.parametrize("name", POSITIVE)
def test_a_gaussian_times_a_power_of_a_gamma(name):
    """N(y; x s^n, 1.9) with x ~ N(1.2, 3.4) and s ~ Gamma(5.6, 4.8), against the maximum of its bound."""
    build, n, y = POSITIVE[name]
    m = cv.Model()
    x, s = m.random("x", cv.gaussian(1.2, variance=3.4)), m.random("s", cv.gamma(5.6, 4.8))
    m.random("y", cv.gaussian(build(x, s), variance=1.9))
    posterior = infer(m, {"y": y})

    def bound(q):
        mean, variance, shape, rate = q[0], np.exp(q[1]), np.exp(q[2]), np.exp(q[3])
        if shape + 2 * n <= 0:
            return -np.inf
        gammaln = scipy.special.gammaln
        power, square = (np.exp(gammaln(shape + k) - gammaln(shape)) / rate**k for k in (n, 2 * n))
        second = square * (mean**2 + variance)
        expected = -0.5 * np.log(2 * np.pi * 1.9) - 0.5 * (y**2 - 2 * y * mean * power + second) / 1.9
        divergence = 0.5 * ((variance + (mean - 1.2) ** 2) / 3.4 - 1 - np.log(variance / 3.4))
        return expected - divergence - gamma_divergence(shape, rate, 5.6, 4.8)

    parameters = posterior["s"].parameters
    start = [
        posterior["x"].mean,
        np.log(posterior["x"].variance),
        np.log(parameters["shape"]),
        np.log(parameters["rate"]),
    ]
    close(posterior.log_evidence, bound(start), rtol=1e-9)
    found, where = best(bound, np.add(start, [0.05, -0.05, 0.05, 0.03]))
    close(posterior.log_evidence, found, rtol=1e-9)
    close(start, where, rtol=1e-3, atol=1e-4)


def test_v25_a_gaussian_times_a_gamma():
    """Infer.NET's own optimum, printed to 4e-5 of the maximum of the same bound."""
    m = cv.Model()
    x, s = m.random("x", cv.gaussian(1.2, variance=3.4)), m.random("s", cv.gamma(5.6, 4.8))
    m.random("y", cv.gaussian(x * s, variance=1.9))
    posterior = infer(m, {"y": 2.7})
    close([posterior["x"].mean, posterior["x"].variance], [1.902653436767819, 0.992239706783399], rtol=5e-5)
    close(list(posterior["s"].parameters.values()), [8.431332876585183, 7.657476147105538], rtol=5e-5)


def test_v25_a_gaussian_times_a_beta():
    m = cv.Model()
    x, s = m.random("x", cv.gaussian(1.2, variance=3.4)), m.random("s", cv.beta(5.6, 4.8))
    m.random("y", cv.gaussian(x * s, variance=1.9))
    posterior = infer(m, {"y": 2.7})
    close([posterior["x"].mean, posterior["x"].variance], [2.445726690056733, 2.122166142748496], rtol=5e-5)
    close(list(posterior["s"].parameters.values()), [6.383336506695946, 4.961772201516414], rtol=5e-5)


def test_the_square_of_a_gaussian():
    """N(y; x^2, 0.5), x ~ N(1, 1)."""
    m = cv.Model()
    x = m.random("x", cv.gaussian(1.0, variance=1.0))
    m.random("y", cv.gaussian(x**2 + 1.0, variance=0.5))
    posterior = infer(m, {"y": 4.0})

    def bound(q):
        mean, variance = q[0], np.exp(q[1])
        second = mean**2 + variance
        fourth = mean**4 + 6 * mean**2 * variance + 3 * variance**2
        expected = -0.5 * np.log(np.pi) - (9 - 6 * second + fourth)
        return expected - 0.5 * (variance + (mean - 1) ** 2 - 1 - np.log(variance))

    found, where = best(bound, [1.5, -2.0])
    close(posterior.log_evidence, found, rtol=1e-9)
    close(posterior["x"].mean, where[0], rtol=1e-5)
    close(posterior["x"].variance, np.exp(where[1]), rtol=1e-4)


def test_the_logarithm_of_a_gamma():
    """N(y; 2 log s - log 3, 0.5) is that of log(s^2 / 3)."""
    y = 0.4
    results = []
    for build in (lambda s: 2.0 * cv.log(s) - np.log(3.0), lambda s: cv.log(s**2 / 3.0), lambda s: -cv.log(3.0 / s**2)):
        m = cv.Model()
        s = m.random("s", cv.gamma(2.0, 1.5))
        m.random("y", cv.gaussian(build(s), variance=0.5))
        results.append(infer(m, {"y": y}))

    def bound(q):
        shape, rate = np.exp(q)
        mean = 2 * (scipy.special.digamma(shape) - np.log(rate)) - np.log(3)
        variance = 4 * scipy.special.polygamma(1, shape)
        expected = -0.5 * np.log(np.pi) - ((y - mean) ** 2 + variance)
        return expected - gamma_divergence(shape, rate, 2.0, 1.5)

    found, _ = best(bound, [0.5, 0.5])
    for posterior in results:
        close(posterior.log_evidence, found, rtol=1e-9)


def test_a_ratio_of_gammas_as_a_precision():
    """V26 under VMP: N(1; 0, precision a / b). The bound is its maximum, below the exact evidence -1.5926688085."""
    m = cv.Model()
    a, b = m.random("a", cv.gamma(1.0, 1.0)), m.random("b", cv.gamma(3.0, 1.0))
    m.random("x", cv.gaussian(0.0, precision=a / b))
    posterior = infer(m, {"x": 1.0})

    def bound(q):
        sa, ra, sb, rb = np.exp(q)
        if sb <= 1:
            return -np.inf
        digamma = scipy.special.digamma
        log = digamma(sa) - np.log(ra) - digamma(sb) + np.log(rb)
        expected = 0.5 * log - 0.5 * np.log(2 * np.pi) - 0.5 * sa / ra * rb / (sb - 1)
        return expected - gamma_divergence(sa, ra, 1.0, 1.0) - gamma_divergence(sb, rb, 3.0, 1.0)

    found, _ = best(bound, np.log([1.0, 1.0, 3.0, 1.0]))
    close(posterior.log_evidence, found, rtol=1e-8)


def test_the_larger_of_two():
    """A minimum is a maximum of negatives, and |x| is one of x and -x: the variance of the difference is exact."""
    results = []
    for build in (lambda x: cv.max(x, 0.5), lambda x: -cv.min(-x, -0.5), lambda x: cv.max(0.5, x)):
        m = cv.Model()
        x = m.random("x", cv.gaussian(0.3, variance=1.0))
        m.random("y", cv.gaussian(build(x), variance=0.5))
        results.append(infer(m, {"y": 1.0}).log_evidence)
    close(results, results[0], rtol=1e-9)

    def bound(q):
        law = scipy.stats.norm(q[0], np.exp(0.5 * q[1]))
        z = (0.5 - q[0]) / np.exp(0.5 * q[1])
        below, density = scipy.stats.norm.cdf(z), scipy.stats.norm.pdf(z)
        first = 0.5 * below + q[0] * (1 - below) + law.std() * density
        second = 0.25 * below + (q[0] ** 2 + law.var()) * (1 - below) + law.std() * density * (q[0] + 0.5)
        expected = -0.5 * np.log(np.pi) - (1 - 2 * first + second)
        return expected - 0.5 * (law.var() + (q[0] - 0.3) ** 2 - 1 - q[1])

    close(results[0], best(bound, [0.5, -0.5])[0], rtol=1e-8)


def test_an_absolute_value():
    m = cv.Model()
    x = m.random("x", cv.gaussian(0.3, variance=1.0))
    m.let("size", cv.max(x, -x))
    found = cv.infer(m, {})["size"]
    law = scipy.stats.foldnorm(0.3)
    close([found.mean, found.variance], [law.mean(), law.var()], rtol=1e-9)


# Vectors of numbers, numbers of vectors -------------------------------------------------------------------------------


def test_stacked_numbers_are_their_weighted_sum():
    rows, y = np.array([[1.0, 0.5], [-1.0, 2.0], [0.3, 1.0]]), np.array([1.0, 0.2, -0.5])
    results = []
    for build in (
        lambda a, b, x: cv.dot(cv.stack(a, b), x),
        lambda a, b, x: a * cv.element(x, 0) + b * cv.element(x, -1),
    ):
        m = cv.Model()
        x = m.input("x", cv.vector(2), plates=m.plate("n"))
        a, b = m.random("a", cv.gaussian(0.0, variance=2.0)), m.random("b", cv.gaussian(1.0, variance=1.0))
        m.random("y", cv.gaussian(build(a, b, x), variance=0.5))
        for method in ("auto", "vmp"):
            posterior = infer(m, {"x": rows, "y": y}, method=method)
            results.append([posterior.log_evidence, posterior["a"].mean, posterior["b"].mean])
    close(results[0], results[2], rtol=1e-9)
    close(results[1], results[3], rtol=1e-9)
    close(results[0][1:], results[1][1:], rtol=1e-7)


def test_the_moments_of_a_stack():
    """Numbers that share a variable are correlated."""
    m = cv.Model()
    a, b = m.random("a", cv.gaussian(0.5, variance=2.0)), m.random("b", cv.gaussian(1.0, variance=1.0))
    c = m.random("c", cv.gaussian(3.0, variance=4.0))
    m.let("v", cv.stack(a + b, a - b, c))
    found = cv.infer(m, {})["v"]
    close(found.mean, [1.5, -0.5, 3.0])
    close(found.covariance, [[3.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 4.0]], atol=1e-12)


def test_coordinates_of_a_vector():
    """Coordinates 0 and 2 with weights are one inner product, under every method."""
    covariance_ = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 0.5]])
    m = cv.Model()
    v = m.random("v", cv.vector_gaussian([0.1, 0.2, 0.3], covariance=covariance_))
    m.random("y", cv.gaussian(2.0 * cv.element(v, 0) - cv.element(v, 2), variance=0.5))
    w = np.array([2.0, 0.0, -1.0])
    gain = covariance_ @ w / (w @ covariance_ @ w + 0.5)
    for method in ("auto", "vmp", "ep"):
        posterior = infer(m, {"y": 1.3}, method=method)
        close(posterior["v"].mean, np.array([0.1, 0.2, 0.3]) + gain * (1.3 + 0.1), rtol=1e-9)
        expected = scipy.stats.norm.logpdf(1.3, -0.1, (w @ covariance_ @ w + 0.5) ** 0.5)
        close(posterior.log_evidence, expected, rtol=1e-9)


def test_part_of_a_vector():
    covariance_ = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 0.5]])
    m = cv.Model()
    v = m.random("v", cv.vector_gaussian([0.1, 0.2, 0.3], covariance=covariance_))
    m.let("part", cv.subvector(v, 1, 2))
    found = cv.infer(m, {})["part"]
    close(found.mean, [0.2, 0.3])
    close(found.covariance, covariance_[1:, 1:], rtol=1e-12)


def test_a_rotation():
    """Sums of products with the cosines and sines of data."""
    angle = np.array([0.3, 1.2])
    m = cv.Model()
    n = m.plate("n")
    cosine, sine = m.input("cos", cv.real, plates=n), m.input("sin", cv.real, plates=n)
    x, y = m.random("x", cv.gaussian(1.0, variance=1.0)), m.random("y", cv.gaussian(0.0, variance=2.0))
    m.random("u", cv.gaussian(cosine * x - sine * y, variance=0.1))
    posterior = infer(m, {"cos": np.cos(angle), "sin": np.sin(angle), "u": [0.5, -0.5]}, method="auto")
    rows = np.stack([np.cos(angle), -np.sin(angle)], axis=1)
    precision = np.diag([1.0, 0.5]) + rows.T @ rows / 0.1
    close(
        [posterior["x"].mean, posterior["y"].mean],
        np.linalg.solve(precision, np.array([1.0, 0.0]) + rows.T @ [0.5, -0.5] / 0.1),
        rtol=1e-7,
    )


# Sums over a plate ----------------------------------------------------------------------------------------------------

ROWS, OUTCOMES = np.array([[1.0, 0.5], [-1.0, 2.0], [0.3, 0.0]]), np.array([1.0, 0.2, -0.5])


def sum_of_weights(build):
    m = cv.Model()
    n, d = m.plate("n"), m.plate("d")
    x = m.input("x", cv.real, plates=(n, d))
    w = m.random("w", cv.gaussian(0.0, variance=2.0), plates=d)
    m.random("y", cv.gaussian(build(w, x, d), variance=0.5))
    return m


@pytest.mark.parametrize("method", ["auto", "ep", "vmp"])
def test_a_sum_over_a_plate_is_a_linear_regression(method):
    """Its elements are one joint belief by default, messages along a loop under EP, and a mean field under VMP."""
    posterior = infer(sum_of_weights(lambda w, x, d: cv.sum(w * x, over=d)), {"x": ROWS, "y": OUTCOMES}, method=method)
    precision = np.eye(2) / 2.0 + ROWS.T @ ROWS / 0.5
    close(posterior["w"].mean, np.linalg.solve(precision, ROWS.T @ OUTCOMES / 0.5), rtol=1e-8)
    evidence = scipy.stats.multivariate_normal.logpdf(OUTCOMES, cov=2.0 * ROWS @ ROWS.T + 0.5 * np.eye(3))
    if method == "auto":
        close(posterior["w"].variance, np.diag(np.linalg.inv(precision)), rtol=1e-9)
        close(posterior.log_evidence, evidence, rtol=1e-9)
    if method == "vmp":
        close(posterior["w"].variance, 1.0 / np.diag(precision), rtol=1e-8)
        assert posterior.log_evidence < evidence


def test_what_a_sum_shares_is_taken_out():
    """sum_d (2 w_d x_d - w_d x_d + 3 x_d + 1) = sum_d w_d x_d + 3 sum_d x_d + 2."""
    shifted = OUTCOMES + 3.0 * ROWS.sum(1) + 2.0
    model = sum_of_weights(lambda w, x, d: cv.sum(2.0 * w * x - w * x + 3.0 * x + 1.0, over=d))
    plain = infer(sum_of_weights(lambda w, x, d: cv.sum(w * x, over=d)), {"x": ROWS, "y": OUTCOMES})
    found = infer(model, {"x": ROWS, "y": shifted})
    close(found["w"].mean, plain["w"].mean, rtol=1e-9)
    close(found.log_evidence, plain.log_evidence, rtol=1e-9)


def test_a_sum_of_dependent_elements():
    """An index along the plate may choose one element twice."""
    m = cv.Model()
    k, d = m.plate("k", 2), m.plate("d", 3)
    which = m.input("which", cv.index(k), plates=d)
    w = m.random("w", cv.gaussian(0.0, variance=1.0), plates=k)
    m.random("y", cv.gaussian(cv.sum(w[which], over=d), variance=1.0))
    with pytest.raises(cv.UnsupportedError, match="dependent"):
        cv.infer(m, {"which": [0, 1, 1], "y": 1.0}, method="vmp")


# Refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x, z, s: x**3, "to the power 3"),
        (lambda x, z, s: x / z, "divides by 'z'"),
        (lambda x, z, s: x * x * cv.max(x, z), "two different ways"),
        (lambda x, z, s: cv.log(s + 1.0), "no moments in closed form"),
    ],
)
def test_refused_expressions(build, message):
    m = cv.Model()
    x, z = m.random("x", cv.gaussian(0.0, variance=1.0)), m.random("z", cv.gaussian(0.0, variance=1.0))
    s = m.random("s", cv.gamma(1.0, 1.0))
    m.random("y", cv.gaussian(build(x, z, s), variance=1.0))
    with pytest.raises(cv.UnsupportedError, match=message):
        cv.infer(m, {"y": 1.0}, method="vmp")


def test_refused_positive_expressions():
    m = cv.Model()
    s, t = m.random("s", cv.gamma(1.0, 1.0)), m.random("t", cv.gamma(1.0, 1.0))
    m.random("y", cv.gaussian(0.0, precision=s * (s + t)))
    with pytest.raises(cv.UnsupportedError):
        cv.infer(m, {"y": 1.0}, method="vmp")


def test_refused_coordinates():
    m = cv.Model()
    v = m.random("v", cv.vector_gaussian(np.zeros(3), covariance=np.eye(3)))
    x = m.random("x", cv.gaussian(0.0, variance=1.0))
    for call, message in (
        (lambda: cv.element(v, 3), "no coordinate 3"),
        (lambda: cv.element(x, 0), "takes a vector"),
        (lambda: cv.subvector(v, 2, 2), "none such"),
        (lambda: cv.stack(v, x), "takes numbers"),
        (lambda: cv.max(v, 1.0), "takes numbers"),
        (lambda: cv.stack(1.0, 2.0), "builds an expression"),
    ):
        with pytest.raises(cv.ModelError, match=message):
            call()

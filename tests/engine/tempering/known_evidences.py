"""Models whose evidence is known, by closed forms, quadrature and enumeration."""

import itertools

import numpy as np
from scipy.integrate import quad
from scipy.special import betaln, gammaln, log_expit, logsumexp, multigammaln
from scipy.stats import cauchy, gamma, multivariate_normal, norm, poisson, t, uniform

import cavity as cv

RANDOM = np.random.default_rng(0)
MODELS = {}


def known(make):
    """A function that gives model, data and true log evidence."""
    MODELS[make.__name__] = make
    return make


def integral(log_prior, log_likelihood, low=-np.inf, high=np.inf, centre=0.0):
    """log of the integral of a prior times a likelihood, around a point where both are large."""
    top = log_prior(centre) + log_likelihood(centre)
    points = None if np.isinf([low, high]).any() else [centre]
    found, _ = quad(
        lambda x: np.exp(log_prior(x) + log_likelihood(x) - top), low, high, points=points, limit=500, epsabs=1e-10
    )
    return top + np.log(found)


@known
def line():
    m = cv.Model()
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    a, b = m.random("a", cv.gaussian(0.0, sd=10.0)), m.random("b", cv.gaussian(0.0, sd=10.0))
    m.random("y", cv.gaussian(a + b * x, sd=0.5))
    x = RANDOM.normal(size=20)
    y = 1.0 + 2.0 * x + 0.5 * RANDOM.normal(size=20)
    design = np.column_stack([np.ones(20), x])
    return (
        m,
        {"x": x, "y": y},
        multivariate_normal.logpdf(y, np.zeros(20), 100.0 * design @ design.T + 0.25 * np.eye(20)),
    )


def normal_gamma(y, scale=0.01, shape=1.0, rate=0.11):
    """log evidence of normal numbers with mean N(0, 1 / (scale t)) and precision t of a gamma."""
    n, precision = len(y), scale + len(y)
    after = rate + 0.5 * (np.sum(y**2) - np.sum(y) ** 2 / precision)
    return (
        0.5 * np.log(scale / precision)
        + shape * np.log(rate)
        - (shape + 0.5 * n) * np.log(after)
        + gammaln(shape + 0.5 * n)
        - gammaln(shape)
        - 0.5 * n * np.log(2.0 * np.pi)
    )


@known
def mean_and_precision():
    m = cv.Model()
    n = m.plate("n")
    precision = m.random("precision", cv.gamma(1.0, 0.11))
    centre = m.random("centre", cv.gaussian(0.0, precision=0.01 * precision))
    m.random("y", cv.gaussian(centre, precision=precision), plates=n)
    y = RANDOM.normal(3.0, 2.0, size=15)
    return m, {"y": y}, normal_gamma(y)


@known
def coin():
    m = cv.Model()
    n = m.plate("n")
    p = m.random("p", cv.beta(2.0, 1.0))
    m.random("y", cv.bernoulli(p), plates=n)
    return m, {"y": np.arange(12) < 3}, betaln(5.0, 10.0) - betaln(2.0, 1.0)


@known
def counts():
    m = cv.Model()
    n = m.plate("n")
    rate = m.random("rate", cv.gamma(2.0, 0.5))
    m.random("y", cv.poisson(rate), plates=n)
    y = np.array([3, 5, 2, 8, 4])
    truth = 2.0 * np.log(0.5) - gammaln(2.0) + gammaln(2.0 + y.sum()) - (2.0 + y.sum()) * np.log(5.5)
    return m, {"y": y}, truth - gammaln(y + 1.0).sum()


@known
def waiting():
    m = cv.Model()
    n = m.plate("n")
    rate = m.random("rate", cv.gamma(2.0, 3.0))
    m.random("y", cv.exponential(rate), plates=n)
    y = np.array([0.3, 1.2, 0.7, 2.0])
    return m, {"y": y}, 2.0 * np.log(3.0) + gammaln(6.0) - gammaln(2.0) - 6.0 * np.log(3.0 + y.sum())


@known
def shares():
    m = cv.Model()
    n = m.plate("n")
    share = m.random("share", cv.dirichlet([1.0, 2.0, 0.5]))
    m.random("y", cv.categorical(share), plates=n)
    prior, count = np.array([1.0, 2.0, 0.5]), np.array([4.0, 1.0, 5.0])
    truth = gammaln(prior.sum()) - gammaln(13.5) + np.sum(gammaln(prior + count) - gammaln(prior))
    return m, {"y": np.repeat([0, 1, 2], [4, 1, 5])}, truth


@known
def vectors():
    m = cv.Model()
    n = m.plate("n")
    mean = m.random("mean", cv.vector_gaussian(np.zeros(2), covariance=4.0 * np.eye(2)))
    noise = np.array([[1.0, 0.5], [0.5, 2.0]])
    m.random("y", cv.vector_gaussian(mean, covariance=noise), plates=n)
    y = RANDOM.normal(1.0, 1.0, size=(5, 2))
    covariance = np.kron(np.ones((5, 5)), 4.0 * np.eye(2)) + np.kron(np.eye(5), noise)
    return m, {"y": y}, multivariate_normal.logpdf(y.ravel(), np.zeros(10), covariance)


@known
def matrix():
    m = cv.Model()
    n = m.plate("n")
    precision = m.random("precision", cv.wishart(4.0, scale=0.5 * np.eye(2)))
    m.random("y", cv.vector_gaussian(np.zeros(2), precision=precision), plates=n)
    y = RANDOM.normal(0.0, 1.5, size=(6, 2))
    before, after = 2.0 * np.eye(2), 2.0 * np.eye(2) + y.T @ y
    truth = 2.0 * np.linalg.slogdet(before)[1] - 5.0 * np.linalg.slogdet(after)[1] - 6.0 * np.log(np.pi)
    return m, {"y": y}, truth + multigammaln(5.0, 2) - multigammaln(2.0, 2)


def mixture_of(classes, y):
    """A mixture with all parameters random, and its evidence by enumeration of all allocations."""
    m = cv.Model()
    n, k = m.plate("n"), m.plate("k", classes)
    share = m.random("share", cv.dirichlet(np.ones(classes)))
    precision = m.random("precision", cv.gamma(1.0, 0.11), plates=k)
    centre = m.random("centre", cv.gaussian(0.0, precision=0.01 * precision), plates=k)
    z = m.random("z", cv.categorical(share), plates=n)
    m.random("y", cv.gaussian(centre[z], precision=precision[z]))
    logs = []
    for row in map(np.array, itertools.product(range(classes), repeat=len(y))):
        parts = [y[row == c] for c in range(classes)]
        weight = gammaln(classes) - gammaln(classes + len(y)) + sum(gammaln(1.0 + len(part)) for part in parts)
        logs.append(weight + sum(normal_gamma(part) for part in parts if len(part)))
    return m, {"y": y}, logsumexp(logs)


@known
def two_classes():
    return mixture_of(2, np.array([-3.1, -2.4, -1.9, 1.2, 1.8, 2.5, 3.0]))


@known
def three_classes():
    return mixture_of(3, np.array([-3.1, -2.4, -1.9, 1.2, 1.8, 2.5, 3.0]))


@known
def alarms():
    m = cv.Model()
    first, second = m.random("first", cv.bernoulli(0.2)), m.random("second", cv.bernoulli(0.6))
    m.random("y", cv.switch(first | second, cv.bernoulli(0.9), cv.bernoulli(0.1)))
    return m, {"y": True}, np.log(0.9 * (1.0 - 0.8 * 0.4) + 0.1 * 0.8 * 0.4)


@known
def hidden_states():
    m = cv.Model()
    time = m.plate("time", 12)
    step = np.array([[0.9, 0.1], [0.3, 0.7]])
    state = m.chain(
        "state", over=time, first=cv.categorical([0.5, 0.5]), then=lambda before: cv.categorical(cv.table(step)[before])
    )
    m.random("y", cv.gaussian(cv.table([-1.0, 1.5])[state], sd=1.0))
    y = RANDOM.normal(size=12)
    alpha = np.log([0.5, 0.5]) + norm.logpdf(y[0], [-1.0, 1.5])
    for now in y[1:]:
        alpha = logsumexp(alpha[:, None] + np.log(step), axis=0) + norm.logpdf(now, [-1.0, 1.5])
    return m, {"y": y}, logsumexp(alpha)


@known
def walk():
    m = cv.Model()
    time = m.plate("time", 8)
    x = m.chain("x", over=time, first=cv.gaussian(0.0, sd=2.0), then=lambda before: cv.gaussian(0.9 * before, sd=0.5))
    m.random("y", cv.gaussian(x, sd=1.0))
    y = RANDOM.normal(size=8)
    covariance = np.zeros((8, 8))
    variance = 4.0
    for i in range(8):
        variance = variance if i == 0 else 0.81 * variance + 0.25
        covariance[i, i:] = covariance[i:, i] = variance * 0.9 ** np.arange(8 - i)
    return m, {"y": y}, multivariate_normal.logpdf(y, np.zeros(8), covariance + np.eye(8))


@known
def logistic():
    m = cv.Model()
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    w = m.random("w", cv.gaussian(0.0, sd=2.0))
    m.random("y", cv.bernoulli(cv.logistic(w * x)))
    x = np.array([-1.0, 0.5, 1.0, 2.0, -2.0])
    y = np.array([False, True, False, True, False])
    truth = integral(lambda w: norm.logpdf(w, 0.0, 2.0), lambda w: log_expit(np.where(y, 1, -1) * w * x).sum())
    return m, {"x": x, "y": y}, truth


@known
def probit():
    m = cv.Model()
    n = m.plate("n")
    w = m.random("w", cv.gaussian(0.0, sd=2.0))
    m.random("y", cv.bernoulli(cv.probit(w)), plates=n)
    truth = integral(lambda w: norm.logpdf(w, 0.0, 2.0), lambda w: 3.0 * norm.logcdf(w) + 2.0 * norm.logcdf(-w))
    return m, {"y": np.arange(5) < 3}, truth


@known
def heavy_tails():
    m = cv.Model()
    n = m.plate("n")
    x = m.random("x", cv.gaussian(0.0, sd=5.0))
    m.random("y", cv.student_t(3.0, x, 1.0), plates=n)
    y = np.array([0.2, -1.0, 0.7, 9.0])
    return m, {"y": y}, integral(lambda x: norm.logpdf(x, 0.0, 5.0), lambda x: t.logpdf(y, 3.0, x, 1.0).sum())


@known
def scale():
    m = cv.Model()
    n = m.plate("n")
    s = m.random("s", cv.half_cauchy(2.0))
    m.random("y", cv.gaussian(0.0, sd=s), plates=n)
    y = np.array([0.2, -1.0, 0.7, 2.0])

    def height(s):
        return norm.logpdf(y, 0.0, s).sum()

    return m, {"y": y}, integral(lambda s: np.log(2.0) + cauchy.logpdf(s, 0.0, 2.0), height, low=0.0, centre=1.0)


@known
def between_ends():
    m = cv.Model()
    n = m.plate("n")
    x = m.random("x", cv.uniform(0.0, 3.0))
    m.random("y", cv.gaussian(x, sd=1.0), plates=n)
    y = np.array([-0.5, 0.4, 0.1])
    truth = integral(
        lambda x: uniform.logpdf(x, 0.0, 3.0), lambda x: norm.logpdf(y, x, 1.0).sum(), low=0.0, high=3.0, centre=0.1
    )
    return m, {"y": y}, truth


@known
def log_rate():
    m = cv.Model()
    n = m.plate("n")
    x = m.random("x", cv.gaussian(0.0, sd=1.0))
    m.random("y", cv.poisson(cv.exp(x)), plates=n)
    y = np.array([2, 4, 1])
    return (
        m,
        {"y": y},
        integral(norm.logpdf, lambda x: poisson.logpmf(y, np.exp(x)).sum(), low=-9.0, high=9.0, centre=0.7),
    )


@known
def a_constraint():
    m = cv.Model()
    n = m.plate("n")
    x = m.random("x", cv.gaussian(0.0, sd=1.0))
    m.random("y", cv.gaussian(x, sd=1.0), plates=n)
    m.constrain(x > 0.5)
    y = np.array([0.2, 0.9])
    truth = multivariate_normal.logpdf(y, np.zeros(2), 1.0 + np.eye(2)) + norm.logsf(0.5, y.sum() / 3.0, 3.0**-0.5)
    return m, {"y": y}, truth


@known
def a_game():
    m = cv.Model()
    a, b = m.random("a", cv.gaussian(1.0, sd=1.0)), m.random("b", cv.gaussian(0.0, sd=1.0))
    margin = m.random("margin", cv.gaussian(a - b, sd=1.0))
    m.let("won", margin > 0.0)
    return m, {"won": False}, norm.logcdf(-1.0, scale=3.0**0.5)


@known
def in_part():
    m = cv.Model()
    n = m.plate("n")
    rate = m.random("rate", cv.gamma(2.0, 1.0))
    m.random("y", cv.gaussian(0.0, precision=rate), plates=n)
    y = np.array([1.0, np.nan, -2.0, np.nan])
    given = np.array([1.0, -2.0])
    truth = integral(
        lambda r: gamma.logpdf(r, 2.0), lambda r: norm.logpdf(given, 0.0, r**-0.5).sum(), low=0.0, centre=0.5
    )
    return m, {"y": y}, truth

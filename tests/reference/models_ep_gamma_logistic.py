"""The programs of ep_gamma_logistic.json."""

from __future__ import annotations

import jax
from jax.scipy.special import betaln

import cavity as cv


def logistic_weight(case):
    m = cv.Model("logistic")
    w = m.random("w", cv.gaussian(1.2, precision=0.4))
    m.random("y", cv.bernoulli(cv.logistic(w)))
    return m


def beta_on_logistic(case):
    a, b = case["parameters"]["a"], case["parameters"]["b"]

    def log_density(out, w):
        return (a - 1.0) * jax.nn.log_sigmoid(w) + (b - 1.0) * jax.nn.log_sigmoid(-w) - betaln(a, b)

    likelihood = cv.factor("beta likelihood", out=cv.boolean, w=cv.real, log_density=log_density)
    m = cv.Model("beta likelihood")
    w = m.random("w", cv.gaussian(1.2, precision=0.4))
    m.random("seen", likelihood(w=w))
    return m


def poisson_tracker(case):
    m = cv.Model("tracker")
    x = m.random("x0", cv.gaussian(0.0, variance=100.0))
    m.random("y0", cv.poisson(cv.exp(x)))
    for i in (1, 2):
        x = m.random(f"x{i}", cv.gaussian(x, precision=10.0))
        m.random(f"y{i}", cv.poisson(cv.exp(x)))
    return m


def poisson_rate(case):
    m = cv.Model("Poisson")
    x = m.random("x", cv.gaussian(0.0, variance=100.0))
    m.random("y", cv.poisson(cv.exp(x)))
    return m


def gamma_rate(case):
    m = cv.Model("Gamma rate")
    rate = m.random("rate", cv.gamma(shape=3.0, rate=4.0))
    m.random("x", cv.gamma(shape=2.5, rate=rate))
    return m


def gamma_rate_noisy(case):
    m = cv.Model("Gamma rate, noisy")
    rate = m.random("rate", cv.gamma(shape=3.0, rate=4.0))
    x = m.random("x", cv.gamma(shape=2.5, rate=rate))
    m.random("count", cv.poisson(6.0 * x))
    return m


def gamma_product_seen(case):
    m = cv.Model("product of Gammas")
    scale = m.random("scale", cv.gamma(shape=3.0, rate=4.0))
    y = m.random("y", cv.gamma(shape=2.5, rate=1.0))
    m.let("product", scale * y)
    return m


def gamma_product(case):
    p = case["parameters"]
    m = cv.Model("product of Gammas")
    a, b = (m.random(name, cv.gamma(shape=p[name][0], rate=p[name][1])) for name in "ab")
    m.random("count", cv.poisson(p["exposure"] * a * b))
    return m


def inverse_rate(case):
    m = cv.Model("inverse rate")
    d = m.random("d", cv.gaussian(1.0, precision=2.0))
    m.random("count", cv.poisson(10.0 * cv.exp(-d)))
    return m

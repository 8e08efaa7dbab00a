"""The programs of vmp.json."""

from __future__ import annotations

import numpy as np

import cavity as cv


def mean_and_precision(case):
    m = cv.Model("mean and precision")
    mean = m.random("mean", cv.gaussian(0.0, variance=100.0))
    precision = m.random("precision", cv.gamma(shape=1.0, rate=1.0))
    m.random("x", cv.gaussian(mean, precision=precision), plates=m.plate("n"))
    return m


def flat_mean_and_precision(case):
    m = cv.Model("mean and precision, flat priors")
    mean = m.random("mean", cv.gaussian(0.0, precision=1e-6))
    precision = m.random("precision", cv.gamma(shape=1e-6, rate=1e-6))
    m.random("x", cv.gaussian(mean, precision=precision), plates=m.plate("n"))
    return m


def compound_gamma(case):
    m = cv.Model("compound Gamma")
    mean = m.random("mean", cv.gaussian(0.0, variance=100.0))
    rate = m.random("rate", cv.gamma(shape=1.0, rate=1.0))
    precision = m.random("precision", cv.gamma(shape=1.0, rate=rate))
    m.random("x", cv.gaussian(mean, precision=precision), plates=m.plate("n"))
    return m


def one_point(case):
    m = cv.Model("one point")
    precision = m.random("precision", cv.gamma(shape=1.0, rate=1.0))
    mean = m.random("m", cv.gaussian(0.0, precision=10.0))
    m.random("x", cv.gaussian(mean, precision=precision))
    return m


def one_noisy_point(case):
    m = cv.Model("one noisy point")
    precision = m.random("precision", cv.gamma(shape=1.0, rate=1.0))
    mean = m.random("m", cv.gaussian(0.0, precision=10.0))
    x = m.random("x", cv.gaussian(mean, precision=precision))
    m.random("seen", cv.gaussian(x, precision=1.0))
    return m


def product(case):
    m = cv.Model("product")
    a = m.random("a", cv.gaussian(1.0, precision=100.0))
    b = m.random("b", cv.gaussian(5.0, precision=10.0))
    product = m.let("product", a * b)
    m.random("x", cv.gaussian(product, precision=10.0))
    return m


def shared_products(case):
    m = cv.Model("shared products")
    a = m.random("a", cv.gaussian(1.0, precision=100.0))
    b = m.random("b", cv.gaussian(10.0, precision=10.0))
    c = m.random("c", cv.gaussian(5.0, precision=100.0))
    d = m.random("d", cv.gaussian(15.0, precision=100.0))
    m.random("x", cv.gaussian(a * b * c, precision=1.0))
    m.random("y", cv.gaussian(a * b * d, precision=10.0))
    return m


def triple_product(case):
    m = cv.Model("product of three")
    a = m.random("a", cv.gaussian(1.0, precision=100.0))
    b = m.random("b", cv.gaussian(10.0, precision=10.0))
    c = m.random("c", cv.gaussian(7.0, precision=10.0))
    m.random("x", cv.gaussian(a * b * c, precision=1.0))
    return m


def product_twice(case):
    m = cv.Model("product seen twice")
    a = m.random("a", cv.gaussian(1.0, precision=100.0))
    b = m.random("b", cv.gaussian(10.0, precision=10.0))
    product = m.let("product", a * b)
    m.random("x", cv.gaussian(product, precision=2.0))
    m.random("y", cv.gaussian(product, precision=3.0))
    return m


def sum_of_products(case):
    m = cv.Model("sum of products")
    a = m.random("a", cv.gaussian(-1.0, variance=0.1))
    b = m.random("b", cv.gaussian(2.0, variance=0.1))
    c = m.random("c", cv.gaussian(10.0, variance=0.1))
    m.random("x", cv.gaussian(a * b + b * c, precision=10.0))
    return m


def multilinear(case):
    m = cv.Model("multilinear")
    a = m.random("a", cv.gaussian(-1.0, precision=0.1))
    b = m.random("b", cv.gaussian(2.0, precision=0.1))
    c = m.random("c", cv.gaussian(10.0, precision=1.0))
    m.random("x", cv.gaussian(a * b + b * c + a * c, precision=1.0))
    return m


def dirichlet_draws(case):
    m = cv.Model("draws")
    pi = m.random("pi", cv.dirichlet(np.ones(4)))
    m.random("x", cv.categorical(pi), plates=m.plate("n"))
    return m


def known_mixture(case):
    m = cv.Model("known components")
    weights = m.random("weights", cv.dirichlet(np.ones(2)))
    c = m.random("c", cv.categorical(weights), plates=m.plate("n"))
    m.random("x", cv.switch(c, *(cv.gaussian(mean, variance=1.0) for mean in case["parameters"]["means"])))
    return m


def bernoulli_mixture(case):
    m = cv.Model("mixture of Bernoullis")
    h = m.random("h", cv.bernoulli([0.2, 0.1]), plates=m.plate("k", 2))
    c = m.random("c", cv.bernoulli(0.4))
    x = m.let("x", h[c])
    m.random("seen", cv.switch(x, cv.bernoulli(0.3), cv.bernoulli(0.7)))
    return m


def times_gamma(case):
    m = cv.Model("Gaussian times Gamma")
    x = m.random("x", cv.gaussian(1.2, variance=3.4))
    s = m.random("s", cv.gamma(shape=5.6, rate=4.8))
    m.random("seen", cv.gaussian(x * s, variance=1.9))
    return m


def times_beta(case):
    m = cv.Model("Gaussian times Beta")
    x = m.random("x", cv.gaussian(1.2, variance=3.4))
    s = m.random("s", cv.beta(5.6, 4.8))
    m.random("seen", cv.gaussian(x * s, variance=1.9))
    return m


def gamma_ratio(case):
    m = cv.Model("ratio of Gammas")
    a = m.random("a", cv.gamma(shape=2.0, rate=3.0))
    b = m.random("b", cv.gamma(shape=4.0, rate=5.0))
    m.random("x", cv.gaussian(0.0, precision=a / b))
    return m

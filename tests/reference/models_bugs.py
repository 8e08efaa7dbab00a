"""The programs of bugs.json."""

from __future__ import annotations

import cavity as cv


def pumps(case):
    m = cv.Model("pumps")
    t = m.input("t", cv.positive, plates=m.plate("pump"))
    beta = m.random("beta", cv.gamma(shape=0.1, rate=1.0))
    theta = m.random("theta", cv.gamma(shape=0.7, rate=beta), plates=t.plates)
    m.random("x", cv.poisson(theta * t))
    return m


def surgical_fixed(case):
    m = cv.Model("surgical, fixed effects")
    n = m.input("n", cv.count, plates=m.plate("hospital"))
    p = m.random("p", cv.beta(1.0, 1.0), plates=n.plates)
    m.random("r", cv.binomial(n, p))
    return m


def eight_schools(case):
    m = cv.Model("eight schools")
    s = m.input("s", cv.positive, plates=m.plate("school"))
    mu = m.random("mu", cv.gaussian(0.0, sd=5.0))
    tau = m.random("tau", cv.half_cauchy(5.0))
    theta = m.random("theta", cv.gaussian(mu, sd=tau), plates=s.plates)
    m.random("y", cv.gaussian(theta, sd=s))
    return m

"""Accuracy of the two fixed quadrature rules against mpmath; prints the tables of 0002-quadrature.md.

Run from a checkout with the extra `test` installed: python docs/decisions/measure_quadrature.py
"""

import itertools

import jax
import mpmath as mp
import numpy as np

from cavity.factors import LINKS
from cavity.factors.discrete.poisson import factor as poisson
from cavity.factors.links.logistic import logistic_site
from cavity.factors.links.probit import probit_site
from cavity.factors.moments import Real
from cavity.factors.quadrature import gaussian_expectation
from cavity.factors.special import log_sigmoid

mp.mp.dps = 25
MEANS = (-3.0, 0.0, 2.0, 8.0)
COUNT = 3.0
POWER = 0.5


def mp_log_sigmoid(s):
    return -mp.log1p(mp.exp(-s)) if s > 0 else s - mp.log1p(mp.exp(s))


def mp_log_ndtr(s):
    return mp.log(mp.erfc(-s / mp.sqrt(2)) / 2)


def mp_poisson(s):
    return COUNT * s - mp.exp(s) - mp.loggamma(COUNT + 1)


def breaks(weight, low, high):
    """A fine common grid cut down to where the integrand matters, so that Gauss-Legendre converges on every piece."""
    grid = [low + (high - low) * mp.mpf(i) / 600 for i in range(601)]
    heights = [weight(s) for s in grid]
    top = max(heights)
    kept = [i for i, h in enumerate(heights) if h > top - 80]
    first, last = max(kept[0] - 1, 0), min(kept[-1] + 1, 600)
    even = [grid[first] + (grid[last] - grid[first]) * mp.mpf(i) / 60 for i in range(61)]
    # The factors bend within a few units of zero, however wide the cavity is.
    return sorted({*even, *(mp.mpf(i) for i in range(-30, 31, 2) if grid[first] < i < grid[last])})


def integral(function, points):
    """Gauss-Legendre of 24 nodes on each piece."""
    total = mp.mpf(0)
    for a, b in itertools.pairwise(points):
        half, middle = (b - a) / 2, (a + b) / 2
        total += half * sum(w * function(middle + half * x) for x, w in RULE)
    return total


RULE = [(mp.mpf(float(x)), mp.mpf(float(w))) for x, w in zip(*np.polynomial.legendre.leggauss(24), strict=True)]


def exact_site(log_factor, m, v):
    """(log evidence, score, curvature) from the moments of the tilted distribution."""
    m, v = mp.mpf(m), mp.mpf(v)

    def height(s):
        return log_factor(s) - (s - m) ** 2 / (2 * v)

    points = breaks(height, m - 40 * mp.sqrt(v), m + 40 * mp.sqrt(v))
    points = breaks(height, points[0], points[-1])
    top = max(height(s) for s in points)
    total, first, second = (integral(lambda s, k=k: (s - m) ** k * mp.exp(height(s) - top), points) for k in range(3))
    mean, variance = first / total, second / total - (first / total) ** 2
    return mp.log(total) + top - mp.log(2 * mp.pi * v) / 2, mean / v, (1 - variance / v) / v


def site_error(site, log_factor, out, v):
    """Worst over the means of the errors of log evidence, tilted mean (in sd) and tilted variance (relative)."""
    worst = 0.0
    for m in MEANS:
        with jax.enable_x64(True):
            found = [float(x) for x in site(np.float64(out), np.float64(m), np.float64(v))]
        log_evidence, score, curvature = (float(x) for x in exact_site(log_factor, m, v))
        ratio = 1.0 - v * curvature
        errors = abs(found[0] - log_evidence), abs(found[1] - score) * np.sqrt(v / ratio), abs(found[3] / ratio - 1.0)
        worst = max(worst, *errors)
    return worst


def exact_expectation(function, mean, variance):
    """E f and its derivative in the mean."""
    sd = mp.sqrt(variance)
    points = [mean + sd * 11 * mp.mpf(i) / 40 for i in range(-40, 41)]

    def weighted(s):
        return function(s) * mp.exp(-((s - mean) ** 2) / (2 * variance)) / (sd * mp.sqrt(2 * mp.pi))

    return integral(weighted, points), integral(lambda s: (s - mean) / variance * weighted(s), points)


def expectation_error(function, exact, v):
    """Worst over the means of the errors of E f (relative to max(1, |E f|)) and of its derivative in the mean."""
    worst = 0.0
    for m in MEANS:
        with jax.enable_x64(True):
            value, slope = (float(x) for x in jax.value_and_grad(function)(np.float64(m), np.float64(v)))
        true, true_slope = (float(x) for x in exact_expectation(exact, mp.mpf(m), mp.mpf(v)))
        worst = max(worst, abs(value - true) / max(1.0, abs(true)), abs(slope - true_slope))
    return worst


def logistic_expectation(m, v):
    return LINKS["logistic"].moments(Real(m, v), "quadrature").log


def probit_expectation(m, v):
    return LINKS["probit"].moments(Real(m, v), "quadrature").log


def main():
    sites = {
        "logistic": (logistic_site, mp_log_sigmoid, 1.0),
        "Poisson, 3 seen": (poisson.sites["exp"], mp_poisson, COUNT),
        "probit, power 1/2": (
            lambda out, m, v: probit_site(out, m, v, POWER),
            lambda s: POWER * mp_log_ndtr(s),
            1.0,
        ),
        "probit, power 1 (closed form)": (probit_site, mp_log_ndtr, 1.0),
    }
    print("| site | variance 1 | 10 | 100 | 1e4 |\n|---|---|---|---|---|")
    for name, (site, log_factor, out) in sites.items():
        row = " | ".join(f"{site_error(site, log_factor, out, v):.0e}" for v in (1.0, 10.0, 100.0, 1e4))
        print(f"| {name} | {row} |", flush=True)
    expectations = {
        "log sigmoid, by nodes alone": (lambda m, v: gaussian_expectation(log_sigmoid, m, v), mp_log_sigmoid),
        "log sigmoid, as the link uses it": (logistic_expectation, mp_log_sigmoid),
        "log probit": (probit_expectation, mp_log_ndtr),
    }
    print("\n| expectation | variance 1 | 10 | 100 |\n|---|---|---|---|")
    for name, (function, exact) in expectations.items():
        row = " | ".join(f"{expectation_error(function, exact, v):.0e}" for v in (1.0, 10.0, 100.0))
        print(f"| {name} | {row} |", flush=True)


if __name__ == "__main__":
    main()

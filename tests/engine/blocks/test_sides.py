"""EP of maxima and minima: each side of the kink in closed form."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from scipy import integrate, stats

import cavity as cv

close = np.testing.assert_allclose


def infer(model, data, **options):
    posterior = cv.infer(model, data, **{"tolerance": 1e-10, "method": "ep", **options})
    assert posterior.converged, posterior.diagnosis
    return posterior


def weighed(first, second, outcome, noise):
    """Integrals of 1, x, x^2, z, z^2 over x > z times N(outcome; x, noise): over z in closed form, over x by SciPy."""
    (m, v), (n, w) = first, second
    spread, centre = np.sqrt(v * noise / (v + noise)), (m * noise + outcome * v) / (v + noise)
    height, sd = stats.norm.pdf(outcome, m, np.sqrt(v + noise)), np.sqrt(w)

    def integral(weight):
        def density(x):
            z = (x - n) / sd
            return weight(x, stats.norm.cdf(z), stats.norm.pdf(z)) * stats.norm.pdf(x, centre, spread)

        ends = centre - 12.0 * spread, centre + 12.0 * spread
        return height * integrate.quad(density, *ends, epsabs=0, epsrel=1e-13, limit=500)[0]

    return np.array(
        [
            integral(lambda x, p, d: p),
            integral(lambda x, p, d: x * p),
            integral(lambda x, p, d: x * x * p),
            integral(lambda x, p, d: n * p - sd * d),
            integral(lambda x, p, d: (n**2 + w) * p - sd * (x + n) * d),
        ]
    )


def largest(first, second, outcome, noise):
    """log evidence, then mean and variance of both, of outcome ~ N(max(a, b), noise)."""
    total = weighed(first, second, outcome, noise) + weighed(second, first, outcome, noise)[[0, 3, 4, 1, 2]]
    a, aa, b, bb = total[1:] / total[0]
    return np.array([np.log(total[0]), a, aa - a**2, b, bb - b**2])


def found(posterior):
    a, b = posterior["a"], posterior["b"]
    return [posterior.log_evidence, a.mean, a.variance, b.mean, b.variance]


CASES = [(1.3, 0.1), (-3.3, 0.1), (4.0, 1e-6), (0.2, 50.0)]


# What differs between the cases of a test is an input: they share the program that is kept with the model.


@functools.cache
def one_outcome(function, sign):
    m = cv.Model()
    noise = m.input("noise", cv.positive)
    a, b = m.random("a", cv.gaussian(0.0, variance=1.0)), m.random("b", cv.gaussian(sign * 0.5, variance=2.0))
    m.random("y", cv.gaussian(getattr(cv, function)(a, b), variance=noise))
    return m


@pytest.mark.parametrize(("outcome", "noise"), CASES)
@pytest.mark.parametrize("function", ["max", "min"])
def test_one_outcome(function, outcome, noise):
    sign = 1.0 if function == "max" else -1.0
    posterior = infer(one_outcome(function, sign), {"y": sign * outcome, "noise": noise})
    wanted = largest((0.0, 1.0), (0.5, 2.0), outcome, noise) * np.array([1.0, sign, 1.0, sign, 1.0])
    close(found(posterior), wanted, rtol=1e-11)
    assert "each side of a maximum" in posterior.explain()


@functools.cache
def random_outcome():
    m = cv.Model()
    prior = {name: m.input(name, cv.real) for name in ("mean a", "mean b")}
    prior |= {name: m.input(name, cv.positive) for name in ("variance a", "variance b")}
    a, b = (m.random(name, cv.gaussian(prior[f"mean {name}"], variance=prior[f"variance {name}"])) for name in "ab")
    y = m.random("y", cv.gaussian(cv.max(a, b), variance=1e-9))
    m.random("vague", cv.gaussian(y, variance=1e12))
    return m


@pytest.mark.parametrize(
    ("a", "b", "mean", "variance"),
    [
        ((0, 1), (0, 1), 0.564189583547755, 0.681690113816208),
        ((0, 0.5), (0, 1), 0.488602511902919, 0.511267585362156),
        ((0, 0.5), (1, 1), 1.142990909082178, 0.733008646277036),
        ((0, 0.1), (1, 0.1), 1.001971323223190, 0.098024790661557),
    ],
)
def test_e12_random_outcome(a, b, mean, variance):
    """The message up of a maximum, by a vague observation of it."""
    prior = {"mean a": a[0], "variance a": a[1], "mean b": b[0], "variance b": b[1]}
    posterior = infer(random_outcome(), {"vague": 0.0, **prior})
    close([posterior["y"].mean, posterior["y"].variance - 1e-9], [mean, variance], rtol=1e-9)


def test_absolute_value():
    """max(x, -x): both sides are the same variable."""
    m = cv.Model()
    x = m.random("x", cv.gaussian(0.4, variance=2.0))
    m.random("y", cv.gaussian(cv.max(x, -x), variance=0.3))
    posterior = infer(m, {"y": 1.0})
    x = np.linspace(-12.0, 12.0, 240001)
    weight = stats.norm.pdf(x, 0.4, np.sqrt(2.0)) * stats.norm.pdf(1.0, np.abs(x), np.sqrt(0.3))
    mean = (weight * x).sum() / weight.sum()
    close(posterior.log_evidence, np.log(weight.sum() * (x[1] - x[0])), rtol=1e-7)
    close([posterior["x"].mean, posterior["x"].variance], [mean, (weight * (x - mean) ** 2).sum() / weight.sum()], 1e-7)


@pytest.mark.slow
def test_inside_a_gate_with_a_random_scale():
    """A rectifier in one case of a switch, with a random precision: quadrature over the precision alone."""
    m = cv.Model()
    x = m.random("x", cv.gaussian(0.3, variance=1.0))
    precision = m.random("precision", cv.gamma(3.0, 2.0))
    on = m.random("on", cv.bernoulli(0.6))
    m.random("y", cv.switch(on, cv.gaussian(2.0 * cv.max(x, 0.0), precision=precision), cv.gaussian(0.0, variance=4.0)))
    posterior = infer(m, {"y": 0.8})
    x, t = np.linspace(-10.0, 10.0, 8001), np.exp(np.linspace(-12.0, 4.0, 1201))
    step = (x[1] - x[0]) * (np.log(t[1]) - np.log(t[0]))
    grid = stats.norm.pdf(x, 0.3) * (stats.gamma.pdf(t, 3.0, scale=0.5) * t)[:, None]
    inside = grid * stats.norm.pdf(0.8, 2.0 * np.maximum(x, 0.0), t[:, None] ** -0.5)
    on, off = 0.6 * inside.sum() * step, 0.4 * stats.norm.pdf(0.8, 0.0, 2.0)
    close(posterior.log_evidence, np.log(on + off), rtol=1e-6)
    close(posterior["on"].mean, on / (on + off), rtol=1e-6)
    mean = (0.6 * (inside * x).sum() * step + off * 0.3) / (on + off)
    close(posterior["x"].mean, mean, rtol=1e-6)
    mean = (0.6 * (inside * t[:, None]).sum() * step + off * 1.5) / (on + off)
    close(posterior["precision"].mean, mean, rtol=1e-6)


@functools.cache
def sign_of_a_product(turn):
    m = cv.Model()
    mean, spread = m.input("mean", cv.real), m.input("spread", cv.positive)
    a, b = m.random("a", cv.gaussian(mean, variance=spread)), m.random("b", cv.gaussian(0.7, variance=2.0))
    m.constrain((a - turn) * b > 0.0)
    return m


@pytest.mark.parametrize(("mean", "spread"), [(0.4, 1.0), (3.0, 0.5), (-1.0, 3.0)])
def test_the_sign_of_a_product(mean, spread):
    """a * b > 0 jumps where a is zero; (a - 1) * b > 0 where a is one."""
    for turn in (0.0, 1.0):
        posterior = infer(sign_of_a_product(turn), {"mean": mean + turn, "spread": spread})
        parts = []  # probability and mass times mean of the positive and of the negative part of both
        for n, v in ((mean, spread), (0.7, 2.0)):
            p, d = stats.norm.cdf(n / np.sqrt(v)), np.sqrt(v) * stats.norm.pdf(n / np.sqrt(v))
            parts.append(np.array([[p, 1.0 - p], [n * p + d, n * (1.0 - p) - d]]))
        total = parts[0][0] @ parts[1][0]
        close(posterior.log_evidence, np.log(total), rtol=1e-9)
        close(posterior["a"].mean - turn, parts[0][1] @ parts[1][0] / total, rtol=1e-9)
        close(posterior["b"].mean, parts[0][0] @ parts[1][1] / total, rtol=1e-9)


@functools.cache
def bounded_square(scale, outside):
    m = cv.Model()
    c = m.input("c", cv.real)
    r = m.random("r", cv.gaussian(0.3, variance=2.0))
    m.random("y", cv.gaussian(r, variance=1.0))
    m.constrain(scale * r**2 > c if outside else c > scale * r * r)
    return m


def bounded_squares():
    """Both scales and both sides by default, all combinations in the slow suite."""
    sides = [(0.5, True), (4.0, True), (-1.0, True), (0.5, False), (4.0, False)]
    for scale, (bound, outside) in itertools.product((1.0, 2.0), sides):
        yield pytest.param(bound, scale, outside, marks=[pytest.mark.slow] * (outside == (scale == 1.0)))


@pytest.mark.parametrize(("bound", "scale", "outside"), list(bounded_squares()))
def test_a_bounded_square(bound, scale, outside):
    """r^2 > c is a union of two half lines, c > r^2 an interval: truncated moments of the posterior of r given y."""
    posterior = infer(bounded_square(scale, outside), {"y": 0.4, "c": bound})
    mean, sd, edge = (0.3 + 0.4 * 2.0) / 3.0, np.sqrt(2.0 / 3.0), np.sqrt(max(bound, 0.0) / scale)
    pieces = [(-np.inf, -edge), (edge, np.inf)] if outside else [(-edge, edge)]
    moments = np.zeros(3)
    for low, high in pieces:
        part = stats.truncnorm((low - mean) / sd, (high - mean) / sd, mean, sd)
        mass = stats.norm.cdf(high, mean, sd) - stats.norm.cdf(low, mean, sd)
        moments += mass * np.array([1.0, part.mean(), part.var() + part.mean() ** 2])
    total, first, second = moments[0], moments[1] / moments[0], moments[2] / moments[0]
    evidence = np.log(total) + stats.norm.logpdf(0.4, 0.3, np.sqrt(3.0))
    close([posterior.log_evidence, posterior["r"].mean], [evidence, first], rtol=1e-8)
    close(posterior["r"].variance, second - first**2, rtol=1e-8)


def test_a_square_below_a_negative_number_is_a_contradiction():
    m = cv.Model()
    c = m.input("c", cv.real)
    r = m.random("r", cv.gaussian(0.3, variance=2.0))
    m.constrain(c > r**2)
    with pytest.warns(cv.CavityWarning, match="contradict each other"):
        assert cv.infer(m, {"c": -1.0}).code == "contradiction"


@pytest.mark.parametrize("plates", [True, False])
def test_squares_of_chosen_elements(plates):
    """A plate of squares, and one element chosen by data, under auto."""
    m = cv.Model()
    k = m.plate("k", 3)
    chosen = m.input("chosen", cv.index(k))
    r = m.random("r", cv.gaussian(0.3, variance=2.0), plates=k)
    m.constrain((r if plates else r[chosen]) ** 2 > 1.0)
    posterior = cv.infer(m, {"chosen": 1})
    cut = np.diff(stats.norm.cdf([-1.0, 1.0], 0.3, np.sqrt(2.0)))[0]
    inside = stats.truncnorm(-1.3 / np.sqrt(2.0), 0.7 / np.sqrt(2.0), 0.3, np.sqrt(2.0)).mean()
    wanted = (0.3 - cut * inside) / (1.0 - cut)
    close(posterior["r"].mean, [wanted if plates or i == 1 else 0.3 for i in range(3)], rtol=1e-8)

"""What is exact: observations of linear forms, intervals, sums over discrete selectors; and what may not be asked."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats

import cavity as cv
from cavity.factors.links.logistic import BOUNDS

close = np.testing.assert_allclose


def test_exact_observations_of_differences_condition_a_gaussian():
    """Against conditioning of the dense Gaussian; the differences share variables, so that messages would loop."""
    m = cv.Model("differences")
    x = [m.random(name, cv.gaussian(mean, variance=v)) for name, mean, v in (("a", 1.0, 2.0), ("b", 0.0, 3.0))]
    x.append(m.random("c", cv.gaussian(x[0] + x[1], variance=1.0)))
    m.let("first", x[0] - 2.0 * x[1])
    m.let("second", x[2] - x[0])
    m.random("y", cv.gaussian(x[2], variance=0.5))
    posterior = cv.infer(m, {"first": 0.3, "second": -0.2, "y": 1.0}, tolerance=1e-10)
    mean = np.array([1.0, 0.0, 1.0])
    cov = np.array([[2.0, 0.0, 2.0], [0.0, 3.0, 3.0], [2.0, 3.0, 6.0]])
    rows, noise = np.array([[1.0, -2.0, 0.0], [-1.0, 0.0, 1.0], [0.0, 0.0, 1.0]]), np.diag([0.0, 0.0, 0.5])
    total = rows @ cov @ rows.T + noise
    gain = cov @ rows.T @ np.linalg.inv(total)
    seen = np.array([0.3, -0.2, 1.0])
    close([posterior[name].mean for name in "abc"], mean + gain @ (seen - rows @ mean), rtol=1e-6)
    close(
        [posterior[name].variance for name in "abc"],
        np.diag(cov - gain @ rows @ cov),
        rtol=1e-6,
    )
    evidence = scipy.stats.multivariate_normal(rows @ mean, total).logpdf(seen)
    close(posterior.log_evidence, evidence, rtol=1e-6)


def test_an_exact_observation_along_a_vector():
    m = cv.Model("sum to zero")
    w = m.random("w", cv.vector_gaussian(np.zeros(3), covariance=np.diag([1.0, 2.0, 3.0])))
    m.let("total", cv.dot(w, np.ones(3)))
    posterior = cv.infer(m, {"total": 3.0}, tolerance=1e-10)
    close(posterior["w"].mean, [0.5, 1.0, 1.5], rtol=1e-7)
    close(np.diag(posterior["w"].covariance), [5 / 6, 4 / 3, 3 / 2], rtol=1e-6)
    close(posterior.log_evidence, scipy.stats.norm(0.0, np.sqrt(6.0)).logpdf(3.0), rtol=1e-7)


@pytest.mark.parametrize("together", [True, False])
def test_bounds_from_both_sides_are_one_interval(together):
    """Exact moments, whether the bounds come in one constraint or in two."""
    m = cv.Model("interval")
    x = m.random("x", cv.gaussian(0.5, variance=4.0))
    if together:
        m.constrain((x > -1.0) & (x < 2.0))
    else:
        m.constrain(x > -1.0)
        m.constrain(x < 2.0)
    posterior = cv.infer(m, {}, method="ep")
    truth = scipy.stats.truncnorm((-1.0 - 0.5) / 2.0, (2.0 - 0.5) / 2.0, loc=0.5, scale=2.0)
    close(posterior["x"].mean, truth.mean(), rtol=1e-9)
    close(posterior["x"].variance, truth.var(), rtol=1e-9)
    mass = scipy.stats.norm(0.5, 2.0).cdf(2.0) - scipy.stats.norm(0.5, 2.0).cdf(-1.0)
    close(posterior.log_evidence, np.log(mass), rtol=1e-9)


def test_bounds_on_different_forms_stay_apart():
    m = cv.Model("apart")
    x = m.random("x", cv.gaussian(0.0, variance=1.0))
    m.constrain(x > -1.0)
    m.constrain(2.0 * x < 2.0)
    assert "interval" not in cv.explain(m, method="ep")


def which_family():
    """A selector that all data share, over two conjugate models."""
    m = cv.Model("which")
    kind = m.random("kind", cv.categorical([0.5, 0.3, 0.2]))
    p = m.random("p", cv.beta(2.0, 1.0))
    m.random("x", cv.switch(kind, cv.bernoulli(0.5), cv.bernoulli(p), cv.bernoulli(0.9)), plates=m.plate("n"))
    return m


@pytest.mark.parametrize("options", [{"accuracy": "best"}, {"integrate": "kind"}])
def test_a_discrete_selector_is_summed_out(options):
    x = np.array([1, 1, 1, 0, 1, 1], bool)
    posterior = cv.infer(which_family(), {"x": x}, **options)
    beta = scipy.integrate.quad(lambda p: 2 * p * p ** x.sum() * (1 - p) ** (~x).sum(), 0.0, 1.0, epsabs=1e-14)[0]
    weights = np.array([0.5 * 0.5**6, 0.3 * beta, 0.2 * 0.9**5 * 0.1])
    close(posterior["kind"].mean, weights / weights.sum(), rtol=1e-9)
    close(posterior.log_evidence, np.log(weights.sum()), rtol=1e-9)
    share = weights / weights.sum()
    close(posterior["p"].mean, (share[0] + share[2]) * 2 / 3 + share[1] * 7 / 9, rtol=1e-9)


def test_what_alone_decides_a_constraint_is_not_integrated():
    m = cv.Model("decided")
    a, b = (m.random(name, cv.gaussian(0.0, variance=1.0)) for name in "ab")
    m.constrain(a > b)
    with pytest.raises(cv.UnsupportedError, match="alone decide"):
        cv.infer(m, {}, integrate=["a", "b"])


def test_discrete_and_continuous_parameters_are_integrated_together():
    posterior = cv.infer(which_family(), {"x": [True, False]}, integrate=["kind", "p"])
    weights = np.array([0.5 * 0.25, 0.3 * 2.0 * (1.0 / 3.0 - 1.0 / 4.0), 0.2 * 0.9 * 0.1])
    close(posterior["kind"].mean, weights / weights.sum(), rtol=1e-6)
    close(posterior.log_evidence, np.log(weights.sum()), rtol=1e-6)


def test_a_chosen_element_may_be_a_selector():
    """Mean field of h[c] as a selector, against coordinate ascent."""
    m = cv.Model("chosen")
    h = m.random("h", cv.bernoulli([0.2, 0.6, 0.5]), plates=m.plate("k", 3))
    c = m.random("c", cv.categorical([0.5, 0.2, 0.3]))
    m.random("y", cv.switch(h[c], cv.gaussian(1.0, variance=1.0), cv.gaussian(-1.0, variance=2.0)))
    posterior = cv.infer(m, {"y": 0.4}, method="vmp", tolerance=1e-11)
    yes, no = scipy.stats.norm(1.0, 1.0).logpdf(0.4), scipy.stats.norm(-1.0, np.sqrt(2.0)).logpdf(0.4)
    prior, p, q = np.array([0.2, 0.6, 0.5]), np.array([0.5, 0.2, 0.3]), np.array([0.5, 0.2, 0.3])
    for _ in range(500):
        odds = np.log(prior / (1 - prior)) + q * (yes - no)
        on = 1 / (1 + np.exp(-odds))
        q = p * np.exp(on * yes + (1 - on) * no)
        q /= q.sum()
    close(posterior["c"].mean, q, rtol=1e-9)
    close(posterior["h"].mean, on, rtol=1e-9)


@pytest.mark.parametrize(
    ("mean", "variance"), [(0.3, 0.5), (1.0, 2.4), (1.0, 2.6), (-3.0, 20.0), (2.0, 75.0), (9.0, 1e4)]
)
def test_the_expected_log_of_a_logistic_under_any_variance(mean, variance):
    import jax
    import jax.numpy as jnp

    grid = mean + np.sqrt(variance) * np.linspace(-12.0, 12.0, 200_001)
    weights = np.exp(-0.5 * (grid - mean) ** 2 / variance)
    weights /= weights.sum()
    with jax.enable_x64(True):
        found, (slope, bend) = jax.value_and_grad(lambda s: BOUNDS["quadrature"](s[0], s[1]))(
            (jnp.asarray(mean), jnp.asarray(variance))
        )
    p = scipy.special.expit(grid)
    close(found, weights @ np.logaddexp(0.0, grid), rtol=1e-9)
    close(slope, weights @ p, rtol=1e-8)
    close(bend, 0.5 * weights @ (p * (1 - p)), rtol=1e-7)


@pytest.mark.parametrize("nats", [100.0, 5000.0])
def test_a_network_may_force_an_outlier_on_a_state(nats):
    """Two classes that must be equal, seen far apart: unlikely, and possible."""
    m = cv.Model("forced")
    plate = m.plate("class", 2)
    centre = m.input("centre", cv.real, plates=plate)
    a, b = (m.random(name, cv.categorical([0.4, 0.6])) for name in "ab")
    m.constrain(a == b)
    for name, selector in (("x", a), ("y", b)):
        m.random(name, cv.gaussian(centre[selector], variance=1.0))
    far = np.sqrt(2.0 * nats)
    posterior = cv.infer(m, {"centre": [0.0, far], "x": 0.0, "y": far - 0.001}, accuracy="best")
    log = np.log([0.4, 0.6]) * 2
    log += scipy.stats.norm.logpdf(0.0, [0.0, far]) + scipy.stats.norm.logpdf(far - 0.001, [0.0, far])
    close(posterior.log_evidence, scipy.special.logsumexp(log), rtol=1e-9)
    close(posterior["a"].mean, scipy.special.softmax(log), rtol=1e-6)


def test_an_exact_quotient_of_gammas_over_a_plate():
    """Means and evidence of two Gammas on the curve a = c b / 2, element by element."""
    seen = np.array([0.3, 1.0, 40.0])
    m = cv.Model("quotient")
    plate = m.plate("n")
    a = m.random("a", cv.gamma(3.0, 4.0), plates=plate)
    b = m.random("b", cv.gamma(2.5, 1.0), plates=plate)
    m.let("ratio", 2.0 * a / b)
    posterior = cv.infer(m, {"ratio": seen})
    first, second = scipy.stats.gamma(3.0, scale=0.25), scipy.stats.gamma(2.5)

    def integral(f, c):
        def along(u):
            x = np.exp(u)  # b; da / dc = b / 2
            return x * first.pdf(0.5 * c * x) * second.pdf(x) * 0.5 * x * f(0.5 * c * x, x)

        return scipy.integrate.quad(along, -30.0, 6.0, epsabs=1e-14, epsrel=1e-12, points=[-2.0, 0.0, 2.0], limit=500)[
            0
        ]

    totals = np.array([integral(lambda x, y: 1.0, c) for c in seen])
    close(posterior.log_evidence, np.log(totals).sum(), rtol=1e-9)
    close(posterior["a"].mean, [integral(lambda x, y: x, c) / t for c, t in zip(seen, totals, strict=True)], rtol=1e-8)
    close(posterior["b"].mean, [integral(lambda x, y: y, c) / t for c, t in zip(seen, totals, strict=True)], rtol=1e-8)

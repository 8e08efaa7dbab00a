"""The laws of links, which are discovered; each needs a reference in the table below."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from cavity.engine.answers import predictive
from cavity.factors import LINKS
from cavity.factors.moments import BY_KIND, Real

close = np.testing.assert_allclose


def expectation(function, mean, variance):
    """E f(s) under a normal, by a trapezoid rule of 8001 nodes."""
    z = np.linspace(-12, 12, 8001)
    weight = np.exp(-0.5 * z**2)
    nodes = mean[:, None] + np.sqrt(variance)[:, None] * z
    return function(nodes) @ weight / weight.sum()


def log_unit(log_link):
    return lambda m, v: (expectation(log_link, m, v), expectation(lambda s: log_link(-s), m, v))


# link of one real -> the moments of its value, by fine quadrature; a link of a vector -> None, tested below
LINK_REFERENCES = {
    "exp": lambda m, v: (expectation(np.exp, m, v), m),
    "logistic": log_unit(lambda s: -np.logaddexp(0.0, -s)),
    "probit": log_unit(scipy.special.log_ndtr),
    "softmax": None,
    "multinomial_probit": None,
}
OF_REAL = sorted(name for name, link in LINKS.items() if link.of == "real")  # the others: tests/factors/test_cumprod.py
SCALAR_BOUNDS = [(name, b) for name in OF_REAL if LINK_REFERENCES.get(name) for b in LINKS[name].bounds]
ALL_BOUNDS = [(name, bound) for name in OF_REAL for bound in LINKS[name].bounds]
M, V = (a.ravel() for a in np.meshgrid([-4.0, -1.0, 0.0, 0.5, 3.0], [0.0, 0.01, 0.5, 1.0, 4.0], indexing="ij"))


def test_every_link_of_the_vocabulary_has_a_reference():
    assert set(LINKS) == set(LINK_REFERENCES) | {"cumprod"}, "give the new link a reference"


@pytest.mark.parametrize(("name", "bound"), SCALAR_BOUNDS, ids=lambda text: text)
def test_moments_of_links(name, bound):
    """Equal to fine quadrature, or below it where the link says that it is a bound (of log probabilities)."""
    found = LINKS[name].moments(Real(jnp.asarray(M), jnp.asarray(V)), bound)
    accuracy = LINKS[name].bounds[bound]
    assert accuracy in ("exact", "quadrature", "bound")
    for one, other in zip(found, LINK_REFERENCES[name](M, V), strict=True):
        if accuracy == "bound":
            assert np.all(one <= other + 1e-12)
            close(one, other, atol=0.5)
        else:
            close(one, other, rtol=1e-12 if accuracy == "exact" else 1e-6, atol=1e-7)


@pytest.mark.parametrize(("name", "bound"), ALL_BOUNDS, ids=lambda text: text)
def test_links_at_a_point_are_their_value(name, bound):
    """Every bound but those with curvature of their own is tight at variance zero."""
    s = jnp.asarray([-2.0, 0.3, 1.1])
    moments = LINKS[name].moments(Real(s, jnp.zeros(3)), bound)
    value = LINKS[name].value(s)
    log = moments[1] if type(moments) is BY_KIND["positive"] else moments[0]
    if bound == "quadratic":  # one bound for each class: loose even at a point
        assert np.all(log <= jnp.log(value) + 1e-12)
    else:
        close(log, jnp.log(value), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("name", "bound"), ALL_BOUNDS, ids=lambda text: text)
def test_gradients_of_links_are_finite_everywhere(name, bound):
    variances = np.array([0.0, 1e-12, 1.0, 100.0, 1e4])
    means = np.array([-300.0, -1.0, 0.0, 1.0, 300.0])
    if LINK_REFERENCES[name] is None:
        means = np.array([[0.0, 0.0, 0.0], [-300.0, 0.0, 300.0], [1.0, 2.0, -1.0]])
        variances = np.array([[v, v, v] for v in variances] + [[0.0, 1.0, 1e4]])
    m, v = (
        jnp.asarray(np.concatenate(a))
        for a in zip(*((means, np.broadcast_to(v, means.shape)) for v in variances), strict=True)
    )
    if name == "exp":  # its mean itself overflows
        m, v = jnp.clip(m, -10, 10), jnp.minimum(v, 100.0)

    def total(m, v):
        return sum(jnp.sum(part) for part in LINKS[name].moments(Real(m, v), bound))

    value, gradient = jax.value_and_grad(total, (0, 1))(m, v)
    assert np.isfinite(value)
    for part, label in zip(gradient, ("mean", "variance"), strict=True):
        bad = ~np.isfinite(part)
        assert not bad.any(), f"d / d {label} at mean {m[bad]}, variance {v[bad]}"


@pytest.mark.parametrize(("name", "bound"), ALL_BOUNDS, ids=lambda text: text)
def test_gradients_of_links_are_derivatives(name, bound):
    m, v, step = jnp.asarray([-1.0, 0.2, 1.5]), jnp.asarray([0.5, 1.0, 2.0]), 1e-4
    total = jax.jit(lambda m, v: sum(jnp.sum(part) for part in LINKS[name].moments(Real(m, v), bound)))
    in_mean, in_variance = jax.grad(total, (0, 1))(m, v)
    for i in range(3):
        e = step * jnp.eye(3)[i]
        close(in_mean[i], (total(m + e, v) - total(m - e, v)) / (2 * step), rtol=1e-5, atol=1e-6)
        close(in_variance[i], (total(m, v + e) - total(m, v - e)) / (2 * step), rtol=1e-4, atol=1e-5)


def log_sum_exp(m, v, bound):
    """E log sum exp(s), or what bounds it, from the moments of the link."""
    m, v = jnp.asarray(m), jnp.asarray(v)
    return np.asarray((m - LINKS["softmax"].moments(Real(m, v), bound).log)[..., 0])


@pytest.fixture(scope="module")
def softmax_cases():
    """Means, variances (200, 4) and E log sum exp with its standard error, by Monte Carlo; some variances are zero."""
    rng = np.random.default_rng(0)
    m, v = 2 * rng.normal(size=(200, 4)), np.exp(1.5 * rng.normal(size=(200, 4)))
    v[::7, 1] = 0.0
    z = rng.normal(size=(20_000, 4))
    z = np.concatenate([z, -z])
    values = np.stack([scipy.special.logsumexp(a + np.sqrt(b) * z, axis=-1) for a, b in zip(m, v, strict=True)])
    pairs = 0.5 * (values[:, :20_000] + values[:, 20_000:])
    return m, v, pairs.mean(1), pairs.std(1) / np.sqrt(20_000)


def test_softmax_quadrature_is_the_expectation(softmax_cases):
    m, v, mean, error = softmax_cases
    assert np.all(np.abs(log_sum_exp(m, v, "quadrature") - mean) < 5 * error + 1e-7)


def test_softmax_quadrature_of_two_classes_is_logistic():
    """log(e^a + e^b) = b + softplus(a - b): one integral, done finely."""
    m, v = np.array([[0.0, 0.0], [1.0, -2.0], [3.0, 1.0]]), np.array([[1.0, 1.0], [0.5, 4.0], [0.0, 2.0]])
    exact = m[:, 1] + expectation(lambda s: np.logaddexp(0.0, s), m[:, 0] - m[:, 1], v.sum(1))
    close(log_sum_exp(m, v, "quadrature"), exact, rtol=1e-8)


@pytest.mark.parametrize("bound", [b for b, accuracy in LINKS["softmax"].bounds.items() if accuracy == "bound"])
def test_softmax_bounds_are_upper_bounds(softmax_cases, bound):
    m, v, _, _ = softmax_cases
    assert np.all(log_sum_exp(m, v, bound) >= log_sum_exp(m, v, "quadrature") - 1e-7)


def test_softmax_tilted_is_tighter_than_log(softmax_cases):
    m, v, _, _ = softmax_cases
    assert np.all(log_sum_exp(m, v, "tilted") <= log_sum_exp(m, v, "log") + 1e-12)


def test_links_that_take_covariances_predict_with_them():
    assert {name for name, link in LINKS.items() if link.most} == set(predictive._JOINTLY)
    assert all((link.jointly is not None) == (link.most > 0) for link in LINKS.values())

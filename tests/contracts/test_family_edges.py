"""Families at their edges: improper members, certain outcomes, points, and the functions behind the projections."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.stats

from cavity.factors.families import (
    BY_NAME,
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Gamma,
    Point,
    Poisson,
    SpikeAndSlab,
    Wishart,
    gamma_functions,
)


@pytest.mark.parametrize(
    ("name", "naturals"),
    [
        ("Gaussian", (1.0, 0.5)),
        ("VectorGaussian", (np.zeros(2), np.diag([-0.5, 0.5]))),
        ("Gamma", (1.0, 1.0)),
        ("Gamma", (-1.0, -1.5)),
        ("Beta", (-1.5, 1.0)),
        ("Dirichlet", (np.array([0.0, -1.0]),)),
        ("Bernoulli", (np.nan,)),
        ("Categorical", (np.full(3, -np.inf),)),
        ("Wishart", (-np.eye(2), -1.5)),
        ("Wishart", (np.diag([-1.0, 1.0]), 1.0)),
        ("Poisson", (np.inf,)),
        ("SpikeAndSlab", (0.0, 1.0, 0.5)),
        ("SpikeAndSlab", (np.nan, 1.0, -0.5)),
    ],
)
def test_improper_is_seen(name, naturals):
    assert not BY_NAME[name].from_naturals(tuple(map(jnp.asarray, naturals))).is_proper()


@pytest.mark.parametrize("logit", [np.inf, -np.inf, 800.0, -800.0])
def test_certain_boolean(logit):
    q = Bernoulli(jnp.asarray(logit))
    assert q.mean() == (logit > 0)
    assert q.entropy() == 0.0
    assert q.variance() == 0.0
    assert q.log_density(jnp.asarray(logit > 0)) == 0.0
    assert q.is_proper()
    assert np.isfinite(jax.grad(lambda x: Bernoulli(x).entropy())(q.logit))
    assert np.all(np.isfinite(q.fisher_solve(q.expected_stats())))


@pytest.mark.parametrize("offset", [1e12, -1e12])
def test_certain_zero_and_certain_slab(offset):
    q = SpikeAndSlab(jnp.asarray(offset), jnp.asarray(3.0), jnp.asarray(-1.0))
    slab = scipy.stats.norm(1.5, np.sqrt(0.5))
    assert q.probability == (offset > 0)
    assert q.mean() == (1.5 if offset > 0 else 0.0)
    np.testing.assert_allclose(q.variance(), 0.5 if offset > 0 else 0.0)
    np.testing.assert_allclose(q.entropy(), slab.entropy() if offset > 0 else 0.0, rtol=1e-12)
    np.testing.assert_allclose(q.quantile([0.1, 0.5, 0.9]), slab.ppf([0.1, 0.5, 0.9]) if offset > 0 else 0.0)
    assert np.all((np.asarray(q.sample(jax.random.key(0), (5,))) != 0.0) == (offset > 0))
    assert np.all(np.isfinite(q.fisher_solve(q.expected_stats())))


@pytest.mark.parametrize(
    "logits", [[-np.inf, 0.3, -np.inf], [0.0, np.inf, 1.0], [-np.inf, np.inf, 0.0], [0.0, 900.0, 0.0]]
)
def test_certain_category(logits):
    q = Categorical(jnp.asarray(logits))
    assert np.array_equal(q.mean(), [0.0, 1.0, 0.0])
    assert q.entropy() == 0.0
    assert q.is_proper()
    assert q.log_density(jnp.asarray(1)) == 0.0
    assert np.all(np.asarray(q.sample(jax.random.key(0), (5,))) == 1)
    assert np.all(np.isfinite(jax.grad(lambda x: Categorical(x).entropy())(q.logits)))
    assert np.all(np.isfinite(q.fisher_solve(q.expected_stats())[0]))


def test_excluded_class_of_three():
    q = Categorical(jnp.asarray([-np.inf, 1.0, 1.0]))
    np.testing.assert_allclose(q.entropy(), np.log(2.0), rtol=1e-12)
    assert np.all(np.isfinite(jax.grad(lambda x: Categorical(x).entropy())(q.logits)))


@pytest.mark.parametrize("rate", [1e-3, 0.5, 1.0, 10.0, 300.0, 1e5])
def test_poisson_entropy_is_a_sum(rate):
    spread = int(40 * np.sqrt(rate) + 60)
    x = np.arange(max(0, int(rate) - spread), int(rate) + spread)
    log = scipy.stats.poisson.logpmf(x, rate)
    q = Poisson.from_parameters(rate=jnp.asarray(rate))
    np.testing.assert_allclose(q.entropy(), -np.sum(np.exp(log) * log), rtol=1e-9)


def test_point():
    point = Point(jnp.arange(6.0).reshape(2, 3))
    assert np.array_equal(point.mean(), point.value)
    assert not np.any(point.variance())
    assert point.quantile([0.1, 0.9]).shape == (2, 2, 3)
    assert point.sample(jax.random.key(0), (4,)).shape == (4, 2, 3)
    assert list(point.parameters()) == ["value"]


@pytest.mark.parametrize(
    ("name", "exact"),
    [
        ("log_minus_digamma", lambda a: mpmath.log(a) - mpmath.digamma(a)),
        ("trigamma_minus_reciprocal", lambda a: mpmath.psi(1, a) - 1 / a),
        ("gamma_entropy", lambda a: mpmath.loggamma(a) - (a - 1) * mpmath.digamma(a) + a),
    ],
)
def test_gamma_functions_do_not_cancel(name, exact):
    points = np.array([1e-6, 1e-3, 0.5, 1.0, 3.0, 7.9, 8.1, 30.0, 1e3, 1e6, 1e12])
    with mpmath.workdps(50):
        expected = [float(exact(mpmath.mpf(a))) for a in points]
    np.testing.assert_allclose(getattr(gamma_functions, name)(jnp.asarray(points)), expected, rtol=2e-14)


@pytest.mark.parametrize("number", [1, 2, 3, 6, 20])
def test_sums_over_shapes_half_a_unit_apart_do_not_cancel(number):
    above = np.array([1e-6, 1e-3, 0.5, 1.0, 3.0, 8.1, 30.0, 1e3, 1e6, 1e12])
    points = above + 0.5 * (number - 1)
    with mpmath.workdps(50):
        shapes = [[mpmath.mpf(a) - mpmath.mpf(i) / 2 for i in range(number)] for a in points]
        total = [float(sum(mpmath.log(each[0]) - mpmath.digamma(s) for s in each)) for each in shapes]
        slope = [float(sum(mpmath.psi(1, s) - 1 / each[0] for s in each)) for each in shapes]
    found = gamma_functions.log_minus_digammas(jnp.asarray(points), number)
    np.testing.assert_allclose(found, [total, slope], rtol=2e-14)


def test_projection_to_twelve_digits():
    """Above 100 the rounding of the statistics costs more, below 1e-3 that of the natural parameter, shape - 1."""
    shape = jnp.logspace(-3, 2, 200)
    q = Gamma.from_parameters(shape=shape, rate=jnp.ones_like(shape))
    np.testing.assert_allclose(Gamma.from_stats(q.expected_stats()).shape, shape, rtol=1e-12)
    dof = 2.0 + jnp.logspace(-3, 2, 200)
    w = Wishart.from_parameters(dof=dof, scale=jnp.broadcast_to(jnp.eye(3), (200, 3, 3)))
    np.testing.assert_allclose(Wishart.from_stats(w.expected_stats()).dof, dof, rtol=1e-12)


@pytest.mark.parametrize("family", [Beta, Dirichlet])
def test_projection_from_any_concentration(family):
    a, b = (x.ravel() for x in jnp.meshgrid(jnp.logspace(-5, 5, 21), jnp.logspace(-5, 5, 21)))
    parameters = {"a": a, "b": b} if family is Beta else {"concentration": jnp.stack([a, b], axis=-1)}
    stats = family.from_parameters(**parameters).expected_stats()
    for found, expected in zip(family.from_stats(stats).expected_stats(), stats, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_large_dof_entropy_keeps_its_digits():
    """A Gamma of large shape tends to a Gaussian: entropy log(2 pi e shape) / 2 - 1 / (3 shape) + ..."""
    q = Gamma.from_parameters(shape=jnp.asarray(1e10), rate=jnp.asarray(1.0))
    np.testing.assert_allclose(q.entropy(), 0.5 * np.log(2 * np.pi * np.e * 1e10), rtol=1e-10)


def test_log_partition_of_wishart_differentiates_twice():
    """Reverse mode twice: a loop over the shapes would have lost the derivative rules of the special functions."""
    curvature = jax.grad(jax.grad(lambda x: Wishart(-0.5 * jnp.eye(2), x).log_partition()))(0.5)
    expected = sum(float(mpmath.psi(1, a)) for a in (2.0, 1.5))
    np.testing.assert_allclose(curvature, expected, rtol=1e-12)

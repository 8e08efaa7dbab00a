"""E log sum exp of independent Gaussians: against a tensor rule, Monte Carlo, its limits and its own slopes."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from cavity.factors.quadrature.log_sum_exp import FEW, RULES, expected_log_sum_exp, statistics

MANY, ONE = (1e-6, 5e-6, 2e-5), (1e-8, 1e-7, 1e-6)  # of the value, the shares and their spreads


def by_tensor_rule(mean, variance, nodes):
    """E log S, E p and E p (1 - p) by a trapezoid rule in every class, which suits three classes."""
    places = np.linspace(-8.0, 8.0, nodes)
    weights = np.exp(-0.5 * places**2)
    weights /= weights.sum()
    total, share, spread = 0.0, 0.0, 0.0
    for chosen in itertools.product(range(nodes), repeat=len(mean) - 1):
        s = np.empty((nodes, len(mean)))
        s[:, :-1] = mean[:-1] + np.sqrt(variance[:-1]) * places[list(chosen)]
        s[:, -1] = mean[-1] + np.sqrt(variance[-1]) * places
        weight = weights * weights[list(chosen)].prod()
        p = np.exp(log_softmax(s, axis=-1))
        total = total + weight @ logsumexp(s, axis=-1)
        share, spread = share + weight @ p, spread + weight @ (p * (1.0 - p))
    return total, share, spread


THREE_MEANS = np.array([[0.3, -0.8, 0.5], [2.0, 0.0, -3.0]])
THREE_RATIOS = np.array([[1.0, 0.5, 0.2], [0.1, 1.0, 1.0]])


@functools.cache
def three_classes(variance):
    return [by_tensor_rule(m, variance * r, 61) for m, r in zip(THREE_MEANS, THREE_RATIOS, strict=True)]


@pytest.mark.parametrize("many", [False, True], ids=["few scores", "many scores"])
@pytest.mark.parametrize("variance", [0.0, 1e-8, 0.01, 0.09, 0.11, 1.0, 1.43, 1.45, 4.0, 6.2, 6.3])
def test_three_classes_by_a_tensor_rule(variance, many):
    copies = FEW if many else 1
    with jax.enable_x64(True):
        found = statistics(np.tile(THREE_MEANS, (copies, 1)), variance * np.tile(THREE_RATIOS, (copies, 1)))
    for row, expected in enumerate(three_classes(variance)):
        for own, exact, tolerance in zip(found, expected, MANY if many else ONE, strict=True):
            np.testing.assert_allclose(own[row], exact, atol=tolerance)


@pytest.mark.parametrize("variance", [0.05, 1.0, 5.0, 50.0, 1e4])
@pytest.mark.parametrize("classes", [2, 4, 50])
def test_monte_carlo(classes, variance):
    rng = np.random.default_rng(classes)
    mean = rng.normal(size=classes)
    draws = rng.normal(size=(50_000, classes)) * np.sqrt(variance)
    draws = mean + np.concatenate([draws, -draws])
    values, p = logsumexp(draws, axis=-1), np.exp(log_softmax(draws, axis=-1))
    with jax.enable_x64(True):
        value, share, spread = map(np.asarray, statistics(mean, np.full(classes, variance)))
    within = 6.0 / np.sqrt(len(draws))
    assert abs(value - values.mean()) < within * values.std() + 1e-6
    assert (np.abs(share - p.mean(0)) < within * p.std(0) + 1e-5).all()
    assert (np.abs(spread - (p * (1.0 - p)).mean(0)) < within * (p * (1.0 - p)).std(0) + 1e-5).all()


def test_laws():
    """A shift of all scores shifts the value; shares sum to one; no variance, no error; rows do not see each other."""
    rng = np.random.default_rng(1)
    mean, variance = 2.0 * rng.normal(size=(40, 6)), 10.0 ** rng.uniform(-6.0, 2.0, size=(40, 6))
    with jax.enable_x64(True):
        value, share, spread = statistics(mean, variance)
        np.testing.assert_allclose(statistics(mean + 700.0, variance)[0] - 700.0, value, atol=1e-8)
        np.testing.assert_allclose(share.sum(-1), 1.0, atol=3e-5)
        assert (share > -1e-6).all()
        assert (spread > -1e-5).all()
        point = statistics(mean, np.zeros_like(variance))
        np.testing.assert_allclose(point[0], logsumexp(mean, axis=-1), atol=1e-9)
        alone = [statistics(mean[i : i + 1], variance[i : i + 1])[0][0] for i in range(0, 40, 7)]
        np.testing.assert_allclose(alone, value[::7], atol=1e-5)


@pytest.mark.parametrize("number", range(len(RULES)))
def test_derivatives_are_those_of_the_value(number):
    widest = min(RULES[number].widest, 4.0)
    rng = np.random.default_rng(number)
    mean, variance = rng.normal(size=(5, 4)), (0.9 * widest) ** 2 * rng.uniform(0.8, 1.0, size=(5, 4))
    direction = rng.normal(size=(5, 4))
    with jax.enable_x64(True):
        in_mean, in_variance = jax.grad(lambda m, v: expected_log_sum_exp(m, v).sum(), argnums=(0, 1))(mean, variance)
        step = 1e-3
        for slope, m, v in ((in_mean, step, 0.0), (in_variance, 0.0, step)):
            up, down = (statistics(mean + s * m * direction, variance + s * v * direction)[0] for s in (1.0, -1.0))
            np.testing.assert_allclose((slope * direction).sum(-1), (up - down) / (2.0 * step), atol=3e-5)


def test_under_jit_vmap_and_in_single_precision():
    rng = np.random.default_rng(2)
    mean, variance = rng.normal(size=(3, 5, 4)), rng.uniform(0.0, 6.0, size=(3, 5, 4))
    with jax.enable_x64(True):
        value = expected_log_sum_exp(mean, variance)
        np.testing.assert_allclose(jax.jit(jax.vmap(expected_log_sum_exp))(mean, variance), value, atol=1e-5)
    single = expected_log_sum_exp(jnp.asarray(mean, jnp.float32), jnp.asarray(variance, jnp.float32))
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, value, atol=2e-3)

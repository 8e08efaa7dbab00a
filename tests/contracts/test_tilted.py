"""The tilted distribution of any factor by quadrature, against dense quadrature, sums, and closed forms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from cavity.factors.quadrature.tilted import tilted

close = np.testing.assert_allclose


def moments(log_factor, kinds, cavities):
    """log evidence, then mean and variance of each argument."""
    with jax.enable_x64(True):
        given = tuple(tuple(jnp.asarray([number]) for number in cavity) for cavity in cavities)

        @jax.jit
        def run(given):
            found = tilted(log_factor, kinds, given)
            axes = tuple(range(1, 1 + len(kinds)))
            log_z = jax.scipy.special.logsumexp(found.log_weights, axis=axes)
            weights = jnp.exp(found.log_weights - jnp.expand_dims(log_z, axes))
            answer = [log_z]
            for values in found.values:
                mean = (weights * values).sum(axes)
                answer += [mean, (weights * (values - jnp.expand_dims(mean, axes)) ** 2).sum(axes)]
            return jnp.stack(answer)[:, 0]

        return np.asarray(run(given))


def dense(density, low, high):
    """The same by SciPy, for one argument."""
    points = np.linspace(low, high, 9)[1:-1]

    def integral(weight):
        return integrate.quad(
            lambda x: weight(x) * density(x), low, high, points=points, limit=1000, epsabs=0, epsrel=1e-12
        )[0]

    total = integral(lambda x: 1.0)
    mean = integral(lambda x: x) / total
    return np.log(total), mean, integral(lambda x: (x - mean) ** 2) / total


REAL = {
    "poisson": (lambda x: -jnp.exp(x), lambda x: np.exp(-np.exp(x)), 0.0, 100.0, (-90, 6), 1e-8),
    "square": (lambda x: -((2 - x**2) ** 2), lambda x: np.exp(-((2 - x**2) ** 2)), 0.5, 1.0, (-9, 9), 1e-11),
    "needle far away": (
        lambda x: -0.5 * ((x - 70) / 1e-3) ** 2,
        lambda x: np.exp(-0.5 * ((x - 70) / 1e-3) ** 2),
        0.0,
        100.0,
        (69.98, 70.02),
        1e-7,
    ),
    "heavy tails": (
        lambda x: -2.5 * jnp.log1p((x - 8) ** 2 / 4),
        lambda x: (1 + (x - 8) ** 2 / 4) ** -2.5,
        0.0,
        1.0,
        (-9, 17),
        1e-10,
    ),
}


@pytest.mark.parametrize("case", REAL)
def test_real(case):
    log_factor, factor, mean, variance, ends, tolerance = REAL[case]
    wanted = dense(lambda x: factor(x) * stats.norm.pdf(x, mean, np.sqrt(variance)), *ends)
    close(moments(log_factor, ("real",), ((mean, variance),)), wanted, rtol=tolerance)


@pytest.mark.parametrize(("shape", "rate"), [(2.0, 0.5), (0.3, 2.0), (200.0, 3.0), (2.0, 1e-6)])
def test_positive(shape, rate):
    """A Gaussian outcome under a random precision: conjugate, so the tilted distribution is a Gamma."""
    exact = stats.gamma(shape + 0.5, scale=1 / (rate + 0.5 * 1.7**2))
    found = moments(lambda t: 0.5 * jnp.log(t) - 0.5 * t * 1.7**2, ("positive",), ((-rate, shape - 1.0),))
    close(found[1:], (exact.mean(), exact.var()), rtol=1e-9)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.4, 3.0), (500.0, 20.0)])
def test_unit(a, b):
    exact = stats.beta(a + 3, b + 2)
    found = moments(lambda p: 3 * jnp.log(p) + 2 * jnp.log1p(-p), ("unit",), ((a - 1.0, b - 1.0),))
    close(found[1:], (exact.mean(), exact.var()), rtol=1e-9)


def test_count():
    k = np.arange(400)
    weight = stats.poisson.pmf(k, 7.0) * stats.norm.pdf(k, 9.0, 1.5)
    mean = (weight * k).sum() / weight.sum()
    wanted = np.log(weight.sum()), mean, (weight * (k - mean) ** 2).sum() / weight.sum()
    found = moments(
        lambda k: -0.5 * ((k - 9) / 1.5) ** 2 - 0.5 * jnp.log(2 * jnp.pi * 1.5**2), ("count",), ((np.log(7.0),),)
    )
    close(found, wanted, rtol=1e-11)


def test_two_arguments():
    """A Beta outcome with random exponents, against a dense product rule in their logarithms."""
    u = np.linspace(-25.0, 6.0, 1500)
    a, b = np.meshgrid(np.exp(u), np.exp(u), indexing="ij")
    weight = stats.beta.pdf(0.3, a, b) * stats.gamma.pdf(a, 2.0) * a * stats.gamma.pdf(b, 3.0) * b
    total = weight.sum()
    means = [(weight * x).sum() / total for x in (a, b)]
    wanted = [np.log(total * (u[1] - u[0]) ** 2)]
    for x, mean in zip((a, b), means, strict=True):
        wanted += [mean, (weight * (x - mean) ** 2).sum() / total]

    def log_factor(a, b):
        normaliser = jax.scipy.special.betaln(a, b)
        return (a - 1) * jnp.log(0.3) + (b - 1) * jnp.log(0.7) - normaliser

    close(moments(log_factor, ("positive", "positive"), ((-1.0, 1.0), (-1.0, 2.0))), wanted, rtol=1e-6)


def test_nothing_possible():
    found = moments(lambda x: jnp.full_like(x, -jnp.inf), ("real",), ((0.0, 1.0),))
    assert found[0] == -np.inf

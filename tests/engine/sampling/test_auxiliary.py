"""Draws of auxiliary variables: Polya-Gamma numbers by mean and Laplace transform, normal ones in their tails."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from cavity.engine.sampling import polya_gamma
from cavity.engine.sampling.augmented import normal_above, normal_between

DRAWS = 200_000


def mean_and_variance(b, c):
    """Of PG(b, c): b tanh(c / 2) / (2 c) and b (sinh c - c) / (4 c^3 cosh^2(c / 2))."""
    if c == 0.0:
        return b / 4.0, b / 24.0
    return b * np.tanh(c / 2) / (2 * c), b * (np.tanh(c / 2) - c / 2 / np.cosh(c / 2) ** 2) / (2 * c**3)


def drawn(b, c, draws=DRAWS):
    with jax.enable_x64(True):
        return np.asarray(polya_gamma.draw(jax.random.key(3), jnp.full(draws, b), c))


# 4.7 and 4.8 are on either side of where the proposal changes
@pytest.mark.parametrize("tilt", [0.0, 0.3, 2.0, -2.0, 4.7, 4.8, 12.0, 60.0])
def test_mean_variance_and_transform(tilt):
    x, half = drawn(1, tilt), 0.5 * abs(tilt)
    mean, variance = mean_and_variance(1, abs(tilt))
    assert x.mean() == pytest.approx(mean, abs=4.5 * x.std() / np.sqrt(DRAWS))
    square = (x - mean) ** 2
    assert square.mean() == pytest.approx(variance, abs=4.5 * square.std() / np.sqrt(DRAWS))
    # E exp(-t w) = cosh(c / 2) / cosh(sqrt(c^2 / 4 + t / 2))
    t = 3.0 / mean
    transform, values = np.cosh(half) / np.cosh(np.sqrt(half**2 + 0.5 * t)), np.exp(-t * x)
    assert values.mean() == pytest.approx(transform, abs=4.5 * values.std() / np.sqrt(DRAWS))


@pytest.mark.parametrize(("b", "c"), [(1, 0.0), (1, 3.0), (1, 4.7), (1, 6.0), (3, 1.5), (2.5, 1.5), (0.7, 9.0)])
def test_their_distribution_is_that_of_a_sum_of_gamma_numbers(b, c):
    rng, count = np.random.default_rng(0), 10_000
    rate = 2.0 * np.pi**2 * (np.arange(300) + 0.5) ** 2 + 0.5 * c**2
    wanted = rng.standard_gamma(b, (count, 300)) @ (1.0 / rate)
    wanted += mean_and_variance(b, c)[0] - b * np.sum(1.0 / rate)  # of the terms left out, the mean
    assert stats.ks_2samp(drawn(b, c, count), wanted).pvalue > 1e-4


@pytest.mark.parametrize(("b", "c"), [(5, 2.0), (5, 0.0), (2.5, 0.0), (2.5, 4.0), (0.25, 15.0), (40, 30.0)])
def test_mean_and_variance_at_other_numbers_of_trials(b, c):
    x, (mean, variance) = drawn(b, c, 20_000), mean_and_variance(b, c)
    assert x.mean() == pytest.approx(mean, abs=4.5 * x.std() / np.sqrt(len(x)))
    square = (x - mean) ** 2
    assert square.mean() == pytest.approx(variance, abs=4.5 * square.std() / np.sqrt(len(x)))


@pytest.mark.parametrize("tilt", [0.0, 1.5, 6.0, 20.0, 60.0])
@pytest.mark.parametrize("shape", [0.01, 0.3, 0.7, 0.95, 2.5])
def test_shapes_that_are_not_whole_have_their_mean_variance_and_transform(shape, tilt):
    x, (mean, variance) = drawn(shape, tilt), mean_and_variance(shape, tilt)
    square = (x - mean) ** 2
    assert x.mean() == pytest.approx(mean, abs=4.5 * x.std() / np.sqrt(DRAWS))
    assert square.mean() == pytest.approx(variance, abs=4.5 * square.std() / np.sqrt(DRAWS))
    for t in (0.3 / mean, 3.0 / mean, 30.0 / mean):
        root = np.sqrt(0.25 * tilt**2 + 0.5 * t)
        wanted = np.exp(shape * (np.logaddexp(0.5 * tilt, -0.5 * tilt) - np.logaddexp(root, -root)))
        values = np.exp(-t * x)
        assert values.mean() == pytest.approx(wanted, abs=4.5 * values.std() / np.sqrt(DRAWS))


@pytest.mark.parametrize("h", [0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.999])
def test_the_tail_of_a_fraction_lies_below_its_bound(h):
    """x^(1 - h) exp(pi^2 x / 8) times the density of J*(h, 0) from CUT on, against its ends."""
    x = np.linspace(polya_gamma.CUT, 10.0, 400)
    with jax.enable_x64(True):
        log_first = np.asarray(polya_gamma._log_first(x, h))
        ratio = np.asarray(polya_gamma._of_first(jnp.asarray(x), jnp.full(x.shape, h)))
    height = np.log(ratio) + log_first + (1.0 - h) * np.log(x) + np.pi**2 / 8.0 * x
    bound = max(height[0], h * np.log(np.pi / 2.0) - gammaln(h)) + polya_gamma.MARGIN
    assert (height < bound).all()
    assert (height > bound - 0.08).all()  # and near it: nearly all are accepted


def test_no_trials_give_zero_and_what_is_no_number_gives_none():
    with jax.enable_x64(True):
        b, c = jnp.array([0.0, -1.0, jnp.nan, 1.0, 1.0, 1.0]), jnp.array([1.0, 1.0, 1.0, jnp.nan, jnp.inf, 1e150])
        x = np.asarray(jax.jit(polya_gamma.draw)(jax.random.key(0), b, c))
    assert x[0] == 0.0
    assert np.isnan(x[1:5]).all()
    assert x[5] == pytest.approx(0.5e-150, rel=1e-6)


@pytest.mark.parametrize("low", [-30.0, -3.0, 0.0, 3.99, 4.01, 8.0, 30.0, 200.0])
def test_normal_numbers_above_a_bound_have_their_distribution_in_the_tail(low):
    with jax.enable_x64(True):
        x = np.asarray(normal_above(jax.random.key(1), jnp.full(20_000, low)))
    assert (x >= low).all()
    above = np.exp(stats.norm.logsf(x) - stats.norm.logsf(low))
    assert stats.kstest(above, "uniform").pvalue > 1e-4


@pytest.mark.parametrize(
    ("low", "high"),
    [(-np.inf, -5.0), (-np.inf, 2.0), (-1.0, 0.5), (3.0, 3.5), (-9.0, -8.99), (39.0, 45.0), (1.0, np.inf)],
)
def test_normal_numbers_between_bounds_have_their_distribution(low, high):
    with jax.enable_x64(True):
        x = np.asarray(normal_between(jax.random.key(1), jnp.full(20_000, low), jnp.full(20_000, high)))
    assert ((x >= low) & (x <= high)).all()
    if low + high < 0.0:
        x, low, high = -x, -high, -low
    above, end = (np.exp(stats.norm.logsf(value) - stats.norm.logsf(low)) for value in (x, high))
    assert stats.kstest((above - end) / (1.0 - end), "uniform").pvalue > 1e-4

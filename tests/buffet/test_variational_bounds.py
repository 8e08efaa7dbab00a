"""Bounds of `E log(1 - v_1 .. v_k)`: against 50 digits, sampling, gradients, and the claims made of them."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.special

from cavity.engine.support.machine_code import Kernel
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.variational.bounds import beyond_places, multinomial, stick_parameters, taylor
from cavity.models.buffet.variational.weights import weights_of

# Sticks and the expectation, from `by_series` with 50 digits.
TRUE = [
    ([3.5], [2.25], -1.0871839044442019876),
    ([3.5, 1.2], [2.25, 0.7], -0.56635324202992983766),
    ([30.0, 12.0, 50.0, 7.5, 20.0], [2.0, 3.0, 0.5, 1.0, 2.0], -0.94803435583399543648),
    ([30.0] * 10, [3.0] * 10, -0.49305675929260088279),
]
ENCLOSED, MULTINOMIAL = Kernel(taylor), Kernel(lambda first, second: multinomial(first, second).bound)
LONG = Kernel(lambda first, second: taylor(first, second, 5000))


def by_series(first, second):
    """The sum over all moments is a hypergeometric function at one."""
    mpmath.mp.dps = 50
    first, second = [mpmath.mpf(a) for a in first], [mpmath.mpf(b) for b in second]
    lead = mpmath.fprod(a / (a + b) for a, b in zip(first, second, strict=True))
    upper = [1, 1, *(a + 1 for a in first)]
    return -lead * mpmath.hyper(upper, [2, *(a + b + 1 for a, b in zip(first, second, strict=True))], 1)


def padded(first, second):
    """Ten sticks, of which later ones change nothing for those before."""
    return np.pad(first, (0, 10 - len(first)), constant_values=1.0), np.pad(second, (0, 10 - len(second)), "edge")


def random_sticks(seed, places, most_first=50.0, most_second=20.0):
    random = np.random.default_rng(seed)
    return random.uniform(1.0, most_first, places), random.uniform(1.0, most_second, places)


@pytest.mark.parametrize(("first", "second", "true"), TRUE)
def test_the_series_encloses_and_the_multinomial_bound_is_below(first, second, true):
    last, (first, second) = len(first) - 1, padded(first, second)
    for found in (ENCLOSED(first, second), LONG(first, second)):
        assert found.lower[last] - 1e-13 <= true <= found.upper[last] + 1e-13
    assert MULTINOMIAL(first, second)[last] <= true + 1e-13
    wide, narrow = (found.upper - found.lower for found in (ENCLOSED(first, second), LONG(first, second)))
    assert (narrow <= wide).all()
    assert narrow[last] < 2e-5


def test_the_table_is_the_series_at_50_digits():
    assert abs(by_series(*TRUE[3][:2]) - mpmath.mpf(TRUE[3][2])) < 1e-15
    first, second = TRUE[0][:2]
    closed = mpmath.digamma(second[0]) - mpmath.digamma(first[0] + second[0])
    assert abs(closed - mpmath.mpf(TRUE[0][2])) < 1e-15


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second", "true"), TRUE)
def test_all_of_the_table(first, second, true):
    assert abs(by_series(first, second) - mpmath.mpf(true)) < 1e-15


@pytest.mark.parametrize("seed", range(5))
def test_against_draws(seed):
    """Also where sticks have second parameters below one, and for every k at once."""
    random = np.random.default_rng(seed)
    first, second = random.gamma(2.0, 2.0, 10), random.gamma(1.0, 1.0, 10) + 0.05
    kept = np.cumprod(random.beta(first, second, (100_000, 10)), axis=1)
    logs = np.log1p(-np.minimum(kept, 1.0 - 1e-16))
    mean, error = logs.mean(axis=0), logs.std(axis=0) / np.sqrt(len(logs))
    found = ENCLOSED(first, second)
    assert (found.lower < mean + 5.0 * error).all()
    assert (found.upper > mean - 5.0 * error).all()
    assert (MULTINOMIAL(first, second) < mean + 5.0 * error).all()


def test_the_truncated_sum_alone_is_no_lower_bound():
    """All its terms are negative: what is left out makes it too large. The control of the enclosure."""
    for first, second, true in TRUE:
        r = np.arange(50)
        moments = np.exp(np.cumsum(np.log([np.add(a, r) / (a + b + r) for a, b in zip(first, second, strict=True)]), 1))
        assert -(moments.prod(axis=0) / (r + 1.0)).sum() > true


def test_the_enclosure_is_within_the_published_one():
    """Which needs second parameters of one or more: moments below `prefactor r^-n`, n the sum of their whole parts."""
    for first, second, _ in [TRUE[0], TRUE[3]]:
        last, (first, second), r = len(first) - 1, padded(first, second), np.arange(50)[:, None]
        own, whole = first[: last + 1], np.floor(second[: last + 1])
        moments = np.exp(np.log((own + r) / (own + second[: last + 1] + r)).sum(axis=1).cumsum())
        alone = -(moments / (r[:, 0] + 1.0)).sum()
        log_prefactor = (scipy.special.gammaln(own + whole) - scipy.special.gammaln(own)).sum()
        tail = np.exp(log_prefactor + np.log(scipy.special.zeta(1.0 + whole.sum(), 51)))
        found = ENCLOSED(first, second)
        assert alone - tail < found.lower[last] <= found.upper[last] < alone


def test_one_stick_is_exact():
    first, second = np.array([7.3]), np.array([0.4])
    true = scipy.special.digamma(0.4) - scipy.special.digamma(7.7)
    assert np.isclose(MULTINOMIAL(*padded(first, second))[0], true, rtol=1e-13)


def test_extreme_sticks_are_finite():
    first, second = np.array([1e7, 1e-3, 5.0, 1e7]), np.array([1e-2, 1e4, 1e7, 1.0])
    first, second = padded(first, second)
    found = ENCLOSED(first, second)
    assert np.isfinite(found.lower).all()
    assert np.isfinite(found.upper).all()
    assert (found.lower <= found.upper).all()
    assert np.isfinite(MULTINOMIAL(first, second)).all()


def test_updates_of_sticks_are_where_the_gradient_vanishes():
    """The printed expectation of `log(v_1 .. v_k)`, with second parameters in place of first ones, moves them away."""
    weights, ones, rows = weights_of(Law(mass=3.0), 5), np.array([30.0, 22.0, 9.0, 12.0, 0.5]), 40

    def settled(ones):
        now = weights.start()
        return jax.lax.fori_loop(0, 3000, lambda _, now: weights.weighted(now, ones, rows), now)

    now = Kernel(settled)(ones)
    slope = Kernel(jax.grad(lambda both: weights.bound(now._replace(first=both[0], second=both[1]), ones, rows)))
    assert np.abs(np.stack(slope((now.first, now.second)))).max() < 1e-8

    def printed(both):
        first, second = both
        digamma = jax.scipy.special.digamma
        on = (jnp.arange(5) + 1.0) * digamma(second) - jnp.cumsum(digamma(first + second))
        right = jnp.cumsum(digamma(first) - digamma(first + second))
        return weights.bound(now._replace(first=first, second=second), ones, rows) + ones @ (on - right)

    assert np.abs(np.stack(Kernel(jax.grad(printed))((now.first, now.second)))).max() > 0.1


def test_every_update_of_sticks_raises_the_bound():
    weights = weights_of(Law(mass=3.0), 6)
    bound = Kernel(lambda now, ones: weights.bound(now, ones, 40))

    def updated(now, ones):
        first, second = stick_parameters(multinomial(now.first, now.second), ones, 40, now.mass.mean)
        return now._replace(first=first, second=second)

    update = Kernel(updated)
    for seed in range(5):
        ones, now = np.random.default_rng(seed).uniform(0.0, 40.0, 6), weights.start()
        heights = []
        for _ in range(20):
            now = update(now, ones)
            heights.append(bound(now, ones))
        assert np.diff(heights).min() > -1e-10
        assert heights[-1] - heights[0] > 1e-3


def test_what_later_features_cost():
    """Given the first sticks, `sum over k > K of E log(1 - v_1 .. v_k) = -mass Li_2(v_1 .. v_K)`."""
    random, mass = np.random.default_rng(3), 1.7
    for kept in (0.05, 0.6, 0.95):
        later = kept * np.cumprod(random.beta(mass, 1.0, (20_000, 80)), axis=1)
        sums = np.log1p(-later).sum(axis=1)
        wanted = -mass * scipy.special.spence(1.0 - kept)
        assert abs(sums.mean() - wanted) < 5.0 * sums.std() / np.sqrt(len(sums))
    first, second = np.array([5.0, 3.0, 9.0]), np.array([1.5, 2.0, 1.0])
    kept = random.beta(first, second, (400_000, 3)).prod(axis=1)
    values = scipy.special.spence(1.0 - kept)
    found, error = Kernel(beyond_places)(first, second), values.std() / np.sqrt(len(values))
    assert -5.0 * error < found - values.mean() < 5.0 * error + 1e-4


def test_how_loose_the_multinomial_bound_is():
    """Of one expectation: 2 to 10 percent, as is claimed, for two sticks; and several times the truth for ten."""
    loose = []
    for seed in range(60):
        first, second = random_sticks(seed, 10)
        found = LONG(first, second)
        loose.append(MULTINOMIAL(first, second) / (0.5 * (found.lower + found.upper)) - 1.0)
    middle = np.median(loose, axis=0)
    assert abs(middle[0]) < 1e-10
    assert 0.01 < middle[1] < 0.12
    assert 0.15 < middle[4] < 1.0
    assert middle[9] > 2.0

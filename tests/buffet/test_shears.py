"""Shears of features and twins of categories: values integrated out, laws that the moves alone keep, what they find."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from block_images import FEATURES
from correlated_prior import geweke
from scipy.integrate import quad
from scipy.stats import expon, kstest, norm, truncnorm

from cavity.models.buffet.correlated import Correlated, DpIbp, of_partition
from cavity.models.buffet.correlated.framework import Framework, sweep
from cavity.models.buffet.correlated.shears import (
    binary_integral,
    exponential_integral,
    gaussian_integral,
    integral_of,
    sheared,
)
from cavity.models.buffet.correlated.state import Step
from cavity.models.buffet.correlated.twins import drawn_twins
from cavity.models.buffet.likelihoods import ExponentialGaussian, LinearGaussian, NoisyOr, PoissonGamma
from cavity.models.buffet.likelihoods.contract import Rows

NOISE, OWN, RATE, SHARE = 1.7, 0.6, 0.8, 0.3


def rows_of(binary=False):
    """Five rows of two columns, one entry missing, which of them have the feature, and what others show."""
    random = np.random.default_rng(0)
    values = random.normal(size=(5, 2)) + 0.4
    values = (values > 0.5).astype(float) if binary else values
    seen = np.ones((5, 2), bool)
    seen[1, 0] = False
    without = random.integers(0, 3, (5, 2)).astype(float) if binary else 0.3 * random.normal(size=(5, 2))
    return Rows(values, seen), np.array([True, True, False, True, False]), without


def by_quadrature(rows, has, without, log_entry, log_prior, low):
    """Log of the mean over the prior of one column's densities, over those without the feature; for each column."""
    found = []
    for d in range(rows.values.shape[1]):
        mine = has & rows.seen[:, d]
        x, t = rows.values[mine, d], without[mine, d]

        def density(a, x=x, t=t):
            return np.exp(np.sum(log_entry(x, t + a) - log_entry(x, t)) + log_prior(a))

        found.append(np.log(quad(density, low, 30.0, epsabs=1e-13, points=[0.0, 1.0, 3.0])[0]))
    return sum(found)


@pytest.mark.parametrize("kind", ["gaussian", "exponential"])
def test_values_integrated_out_are_those_of_quadrature_and_draws_of_their_law(kind):
    rows, has, without = rows_of()
    numbers = {"noise_precision": np.asarray(NOISE), "value_precision": np.asarray(OWN), "rate": np.asarray(RATE)}
    sd = NOISE**-0.5
    if kind == "gaussian":
        integral, low, prior = gaussian_integral, -30.0, norm(scale=OWN**-0.5)
    else:
        integral, low, prior = exponential_integral, 0.0, expon(scale=1.0 / RATE)
    expected = by_quadrature(rows, has, without, lambda x, t: norm.logpdf(x, t, sd), prior.logpdf, low)
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(0), 2000)
        one = jax.jit(jax.vmap(lambda key: integral(key, rows, has, without, numbers, None)))
        values, logs = (np.asarray(each) for each in one(keys))
    np.testing.assert_allclose(logs, expected, rtol=1e-8)
    mine = has[:, None] & rows.seen
    total = np.where(mine, rows.values - without, 0.0).sum(axis=0)
    for d, number in enumerate(mine.sum(axis=0)):
        precision = NOISE * number + (OWN if kind == "gaussian" else 0.0)
        mean = (NOISE * total[d] - (0.0 if kind == "gaussian" else RATE)) / precision
        law = norm(mean, precision**-0.5)
        if kind == "exponential":
            law = truncnorm(-mean * precision**0.5, np.inf, mean, precision**-0.5)
        assert kstest(values[:, d], law.cdf).pvalue > 1e-4


def test_binary_values_are_summed_out():
    rows, has, without = rows_of(binary=True)
    likelihood = NoisyOr(0.9, 0.3, SHARE)
    with jax.enable_x64(True):
        numbers = {name: jnp.asarray(value) for name, value in likelihood.first_numbers(rows).items()}
        found = binary_integral(jax.random.key(0), rows, has, without, numbers, likelihood)[1]

        def log_density(total):
            return np.asarray(likelihood.log_entry(rows.values, total, numbers))

        gain = np.where(has[:, None] & rows.seen, log_density(without + 1.0) - log_density(without), 0.0).sum(axis=0)
    np.testing.assert_allclose(found, np.sum(np.log(1.0 - SHARE + SHARE * np.exp(gain))), rtol=1e-10)


def test_nothing_is_sheared_where_values_cannot_be_integrated_out():
    assert integral_of(PoissonGamma()) is None
    assert integral_of(LinearGaussian()) is gaussian_integral


@dataclasses.dataclass(frozen=True)
class OnlyMoves(DpIbp):
    """Menus by shears, births, deaths and twins alone."""

    def draw_menus(self, key, rows, state, likelihood):
        keys = jax.random.split(key)
        moved = sheared(keys[0], rows, state, likelihood)
        twins = drawn_twins(keys[1], moved.state)
        fits, accepted = moved.fits & twins.fits, moved.accepted + twins.accepted
        return Step(twins.state, fits, moved.proposed + twins.proposed, accepted)


@dataclasses.dataclass(frozen=True)
class Unweighed(DpIbp):
    """The control: two categories of one menu are divided whatever the prior of menus says."""

    def draw_menus(self, key, rows, state, likelihood):
        menus = Framework.draw_menus(self, key, rows, state, likelihood)
        heavy = state.prior | {"concentration": 3.0 * state.prior["concentration"]}
        twins = drawn_twins(key, menus.state._replace(prior=heavy))
        return menus._replace(state=twins.state._replace(prior=state.prior), fits=menus.fits & twins.fits)


LIKELIHOODS = {
    "exponential": ExponentialGaussian(noise_precision=(4.0, 2.0), rate=(4.0, 4.0)),
    "gaussian": LinearGaussian(noise_precision=(4.0, 2.0), value_precision=(4.0, 4.0)),
    "noisy-or": NoisyOr(quiet=(4.0, 2.0), attenuation=(2.0, 3.0), share=(3.0, 3.0)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_moves_alone_leave_the_law_of_model_and_data_as_it_is(name):
    law = OnlyMoves((6.0, 6.0), (8.0, 8.0))
    scores = geweke(sweep, LIKELIHOODS[name], law, places=(12, 24), missing=[(0, 1)], chains=600, steps=20)
    assert max(abs(score) for score in scores.values()) < 4.0, scores


@pytest.mark.slow
def test_categories_divided_too_often_are_found_out():
    law = Unweighed((6.0, 6.0), (8.0, 8.0))
    scores = geweke(sweep, LIKELIHOODS["gaussian"], law, places=(12, 24), chains=600, steps=20)
    assert max(abs(score) for score in scores.values()) > 8.0


@pytest.mark.slow
def test_four_parts_and_nine_combinations_are_found():
    """From a feature for each of twelve clusters, where chains without shears stay at eight features or more."""
    random = np.random.default_rng(0)
    shown = (random.choice((0, 1, 2, 4, 8, 3, 6, 12, 15), 200)[:, None] >> np.arange(4)) & 1
    values = shown @ FEATURES + 0.5 * random.normal(size=(200, 36))
    rows, vague = Rows(values, np.ones(values.shape, bool)), (1.0, 1.0)
    likelihood = ExponentialGaussian(noise_precision=vague, rate=vague)
    labels = shown @ (1, 2, 4, 8) + 16 * (random.random(200) < 0.3)
    start = of_partition(labels, rows, likelihood, jax.random.key(0))
    sampler = Correlated(rows, likelihood, DpIbp(vague, vague), start=start)
    state, found = sampler.init(jax.random.key(0)), []
    for number in range(600):
        state = sampler.step(jax.random.fold_in(jax.random.key(1), number), state)
        menus = np.unique(state.menu[state.choice.any(axis=0)], axis=0)
        found.append((state.menu.any(axis=0).sum(), len(menus)))
    features, menus = np.array(found[300:]).T
    assert np.mean(features == 4) > 0.5
    assert np.mean(menus == 9) > 0.5

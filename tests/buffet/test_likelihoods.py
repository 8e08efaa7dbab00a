"""Likelihoods of features: their densities, draws of values by closed forms, the exact posterior over all matrices of
a few rows, and Geweke's test of sweeps; with wrong formulas that must be found."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from geweke_of_features import geweke
from quadrature_of_features import exact_posterior, frequencies_of, scores
from scipy import stats

from cavity import DataError, ModelError
from cavity.models.buffet.likelihoods import (
    Detection,
    ExponentialGaussian,
    LaplaceICA,
    LinearGaussian,
    NoisyOr,
    PoissonGamma,
)
from cavity.models.buffet.likelihoods.contract import Point, Rows
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.samplers.uncollapsed import uncollapsed

GIVEN = {
    "gaussian": LinearGaussian(noise_precision=(4.0, 2.0), value_precision=(4.0, 4.0)),
    "noisy-or": NoisyOr(quiet=(4.0, 2.0), attenuation=(2.0, 3.0), share=(3.0, 3.0)),
    "exponential": ExponentialGaussian(noise_precision=(4.0, 2.0), rate=(6.0, 4.0)),
    "poisson": PoissonGamma(base=(3.0, 3.0), shape=1.5, rate=(6.0, 4.0)),
    "ica": LaplaceICA(noise_precision=(4.0, 2.0), value_precision=(4.0, 4.0)),
    "detection": Detection(miss=(2.0, 4.0), false=(2.0, 5.0), share=(3.0, 3.0)),
}
REALS, BOOLEANS = ("gaussian", "exponential", "ica"), ("noisy-or", "detection")
NEW = ["exponential", "poisson", "ica", "detection"]
BUFFET = Law(mass=(8.0, 16.0), concentration=(8.0, 4.0))
FINITE = Law(mass=(8.0, 4.0), features=3)


def worst(found):
    return max(abs(score) for score in found.values())


# Entries


@pytest.mark.parametrize("name", GIVEN)
def test_entries_are_drawn_with_the_density_that_is_said_and_have_the_mean_that_is_said(name):
    likelihood = GIVEN[name]
    with jax.enable_x64(True):
        numbers = likelihood.draw_numbers(jax.random.key(3))
        total = jnp.full(40_000, 1.0)
        drawn = np.asarray(likelihood.draw_entry(jax.random.key(4), total, numbers))
        mean = float(likelihood.mean_entry(jnp.asarray(1.0), numbers))
        real, last = name in REALS, 2.0 if name in BOOLEANS else 60.0
        grid = np.linspace(-20.0, 20.0, 40_001) if real else np.arange(last)
        density = np.exp(np.asarray(likelihood.log_entry(jnp.asarray(grid), jnp.asarray(1.0), numbers)))
    weight = density * (grid[1] - grid[0])
    assert weight.sum() == pytest.approx(1.0, abs=1e-9)
    assert weight @ grid == pytest.approx(mean, abs=1e-9)
    error = np.sqrt(weight @ (grid - mean) ** 2 / len(drawn))
    assert abs(drawn.mean() - mean) < 4.0 * error
    for x in np.quantile(drawn, [0.1, 0.5, 0.9]):
        below = weight[grid <= x].sum()
        assert abs(np.mean(drawn <= x) - below) < 4.0 * np.sqrt(0.25 / len(drawn)) + (1e-3 if real else 0.0)


# Values, drawn given one feature that all rows have: closed forms


def drawn_values(likelihood, numbers, rows, steps, dimensions=4000, key=0):
    """(dimensions,) values of one feature after so many updates, as many copies of one column of data."""
    column = jnp.asarray(rows, float)[:, None]
    data = Rows(jnp.broadcast_to(column, (len(rows), dimensions)), jnp.ones((len(rows), dimensions), bool))
    active = jnp.ones((len(rows), 1), bool)
    values = likelihood.draw_values(jax.random.key(key), numbers, 1, dimensions)
    point = Point(active, values, jnp.zeros((0, 0)), numbers)
    step = jax.jit(lambda key, point: likelihood.draw_values_given(key, data, point))
    for each in jax.random.split(jax.random.key(key + 1), steps):
        point = step(each, point)
    return np.asarray(point.values[0])


def test_exponential_values_are_of_the_normal_that_is_cut_off_and_no_other():
    noise, rate, rows = 2.0, 3.0, [0.4, 0.9, -0.2]
    with jax.enable_x64(True):
        numbers = {"noise_precision": jnp.asarray(noise), "rate": jnp.asarray(rate)}
        drawn = drawn_values(ExponentialGaussian(noise, rate), numbers, rows, 1)
    scale = 1.0 / np.sqrt(noise * len(rows))

    def p_value(rate):
        mean = (noise * np.sum(rows) - rate) * scale**2
        return stats.kstest(drawn, stats.truncnorm(-mean / scale, np.inf, mean, scale).cdf).pvalue

    assert p_value(rate) > 1e-3
    assert p_value(0.0) < 1e-6  # the mean without the rate
    mean = (noise * np.sum(rows) - rate) * scale**2
    assert stats.kstest(drawn, stats.foldnorm(abs(mean) / scale, 0.0, scale).cdf).pvalue < 1e-6  # turned, not cut off


def test_exponential_values_are_right_far_in_the_tail():
    noise, rate, rows = 1.0, 1.0, [-40.0, -60.0]
    with jax.enable_x64(True):
        numbers = {"noise_precision": jnp.asarray(noise), "rate": jnp.asarray(rate)}
        drawn = drawn_values(ExponentialGaussian(noise, rate), numbers, rows, 1)
    assert np.all(drawn >= 0.0)
    # Of precision 2 and mean -50.5, 71 sds below zero: exponential to a ten-thousandth, of rate 101.
    assert stats.kstest(drawn, stats.expon(scale=1.0 / 101.0).cdf).pvalue > 1e-3


def test_rates_of_counts_are_of_their_gamma_law_where_nothing_else_counts():
    rows, shape, rate = [3.0, 5.0, 2.0], 1.5, 0.7
    with jax.enable_x64(True):
        numbers = {"base": jnp.asarray(1e-12), "rate": jnp.asarray(rate)}
        drawn = drawn_values(PoissonGamma(1e-12, shape, rate), numbers, rows, 20)
    assert stats.kstest(drawn, stats.gamma(shape + sum(rows), scale=1.0 / (rate + 3.0)).cdf).pvalue > 1e-3
    assert stats.kstest(drawn, stats.gamma(sum(rows), scale=1.0 / (rate + 3.0)).cdf).pvalue < 1e-6


def test_weights_are_of_a_laplace_law_given_one_entry_and_one_value():
    likelihood, count, noise, value, x = LaplaceICA(2.0, 1.0), 4000, 2.0, 1.5, 1.2
    with jax.enable_x64(True):
        data = Rows(jnp.full((count, 1), x), jnp.ones((count, 1), bool))
        numbers = {"noise_precision": jnp.asarray(noise), "value_precision": jnp.asarray(1.0)}
        weights = likelihood.draw_weights(jax.random.key(0), numbers, (1, count)).T
        own = np.asarray(weights[:, 0])
        point = Point(jnp.ones((count, 1), bool), jnp.full((1, 1), value), weights, numbers)
        step = jax.jit(lambda key, point: likelihood.draw_weights_given(key, data, point))
        for each in jax.random.split(jax.random.key(1), 60):
            point = step(each, point)
    assert stats.kstest(own, stats.laplace.cdf).pvalue > 1e-3
    grid = np.linspace(-15.0, 15.0, 60_001)
    density = np.exp(-np.abs(grid) - 0.5 * noise * (x - grid * value) ** 2)
    below = np.cumsum(density) / density.sum()
    assert stats.kstest(np.asarray(point.weights[:, 0]), lambda s: np.interp(s, grid, below)).pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", GIVEN)
def test_more_places_change_no_draw(name):
    likelihood, rows, places = GIVEN[name], 5, 3
    random = np.random.default_rng(1)
    with jax.enable_x64(True):
        numbers = likelihood.draw_numbers(jax.random.key(3))
        active = jnp.asarray(random.random((rows, places)) < 0.6)
        values = likelihood.draw_values(jax.random.key(4), numbers, places, 2)
        weights = jnp.zeros((0, 0))
        if likelihood.weighted:
            weights = likelihood.draw_weights(jax.random.key(5), numbers, (places, rows)).T
        data = Rows(jnp.asarray(random.integers(0, 2, (rows, 2)) * 1.0), jnp.asarray(random.random((rows, 2)) < 0.8))
        step = jax.jit(lambda point: likelihood.update(jax.random.key(6), data, point))
        few = step(Point(active, values, weights, numbers))
        wide = jnp.pad(weights, [(0, 0), (0, 5)]) if weights.size else weights
        many = step(Point(jnp.pad(active, [(0, 0), (0, 5)]), jnp.pad(values, [(0, 5), (0, 0)]), wide, numbers))
    few, many = jax.tree.map(np.asarray, (few, many))
    assert np.allclose(many.values[:places], few.values, rtol=1e-9)
    assert not weights.size or np.allclose(many.weights[:, :places], few.weights, rtol=1e-9)
    assert all(np.allclose(many.numbers[own], few.numbers[own], rtol=1e-9) for own in numbers)


# All matrices of a few rows


def of_bits(share):
    return (0.0, 1.0), (1.0 - share, share)


def on_grid(density, low, high, number):
    """The middles of so many cells, weighted by a density."""
    edges = np.linspace(low, high, number + 1)
    middle = 0.5 * (edges[1:] + edges[:-1])
    weights = density(middle)
    return middle, weights / weights.sum()


def of_exponential(rate):
    return on_grid(stats.expon(scale=1.0 / rate).pdf, 0.0, 15.0 / rate, 250)


def of_gaussian(precision):
    return on_grid(stats.norm(scale=precision**-0.5).pdf, -6.0 / precision**0.5, 6.0 / precision**0.5, 250)


def of_laplace():
    return on_grid(stats.laplace.pdf, -15.0, 15.0, 400)


def bits(one):
    return lambda x, total: np.log(one(total)) if x else np.log1p(-one(total))


BITS = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
REAL = np.array([[0.9], [1.6], [-0.3]])
COUNTS = np.array([[3.0], [0.0], [5.0]])
MISSING = np.array([[True, True], [True, False], [True, True]])
ALL = np.ones((3, 1), bool)


def detection(miss, false):
    return bits(lambda total: np.where(total > 0.5, 1.0 - miss, false))


def noisy_or(quiet, attenuation):
    return bits(lambda total: 1.0 - quiet * attenuation**total)


def gaussian(precision):
    return lambda x, total: stats.norm.logpdf(x, total, precision**-0.5)


def poisson(base):
    return lambda x, total: stats.poisson.logpmf(x, base + total)


# likelihood, values, seen, features; of entries, of values, of weights; and the same with something wrong.
ONE = ((1.0,), (1.0,))
CASES = {
    "detection": (
        (Detection(0.2, 0.1, 0.4), BITS, MISSING, 2),
        (detection(0.2, 0.1), of_bits(0.4), ONE),
        (detection(0.1, 0.2), of_bits(0.4), ONE),
    ),
    "exponential": (
        (ExponentialGaussian(4.0, 0.5), REAL, ALL, 2),
        (gaussian(4.0), of_exponential(0.5), ONE),
        (gaussian(4.0), of_exponential(1.0), ONE),
    ),
    "noisy-or": (
        (NoisyOr(0.9, 0.2, 0.4), BITS, MISSING, 2),
        (noisy_or(0.9, 0.2), of_bits(0.4), ONE),
        (noisy_or(0.9, 0.2), of_bits(0.5), ONE),
    ),
    "poisson": (
        (PoissonGamma(0.5, 1.0, 0.4), COUNTS, ALL, 2),
        (poisson(0.5), of_exponential(0.4), ONE),
        (poisson(0.7), of_exponential(0.4), ONE),
    ),
    "ica": (
        (LaplaceICA(4.0, 0.5), REAL, ALL, 1),
        (gaussian(4.0), of_gaussian(0.5), of_laplace()),
        (gaussian(4.0), of_gaussian(0.5), of_gaussian(0.5)),  # weights of the variance of Laplace's, but Gaussian
    ),
}


@pytest.mark.parametrize("name", [n if n == "detection" else pytest.param(n, marks=pytest.mark.slow) for n in CASES])
def test_matrices_are_as_frequent_as_they_are_probable(name):
    (likelihood, values, seen, features), right, wrong = CASES[name]
    law = Law(mass=1.2, features=features)
    found = frequencies_of(uncollapsed, likelihood, law, values, seen)
    assert worst(scores(found, exact_posterior(values, seen, law, *right))) < 4.5
    assert worst(scores(found, exact_posterior(values, seen, law, *wrong))) > 6.0


# Geweke's test


def case(name, law, missing):
    quick = name in NEW and law == "buffet" and missing
    words = f"{name}-{law}-{'missing' if missing else 'none'}"
    return pytest.param(name, law, missing, marks=[] if quick else [pytest.mark.slow], id=words)


TABLE = [case(*each) for each in itertools.product(GIVEN, ("buffet", "finite"), (True, False))]


@pytest.mark.parametrize(("name", "law", "missing"), TABLE)
def test_sweeps_leave_the_law_of_model_and_data_as_it_is(name, law, missing):
    own = {"buffet": BUFFET, "finite": FINITE}[law]
    found = geweke(
        uncollapsed, GIVEN[name], own, chains=500, steps=20, places=own.features or 10,
        missing=[(0, 1)] if missing else (),
    )  # fmt: skip
    assert worst(found) < 4.0, found


@dataclasses.dataclass(frozen=True)
class SwitchedOff(Law):
    """A feature that no other row has is switched off by its own conditional."""

    def log_odds(self, others, rows, state):
        return jnp.maximum(super().log_odds(others, rows, state), -1e9)


@dataclasses.dataclass(frozen=True)
class OneRowLess(Law):
    """Odds `m / (rows - 1 - m)`, and new features at the rate `mass / (rows - 1)`."""

    odds: bool = True
    rate: bool = True

    def log_odds(self, others, rows, state):
        return super().log_odds(others, rows - 1 if self.odds else rows, state)

    def rate_alone(self, rows, state):
        return super().rate_alone(rows - 1 if self.rate else rows, state)


def of_given_numbers(law, rows=4):
    """Where all numbers are given, so that the matrix alone tells."""
    return geweke(uncollapsed, LinearGaussian(2.0, 1.0), law, rows=rows, dimensions=1, chains=3000, steps=6, places=24)


def test_a_feature_of_one_row_switched_off_by_its_own_conditional_is_found():
    assert worst(of_given_numbers(SwitchedOff(mass=0.8))) > 6.0


@pytest.mark.slow
@pytest.mark.parametrize(("odds", "rate"), [(True, True), (True, False), (False, True)])
def test_a_prior_of_one_row_less_is_found(odds, rate):
    assert worst(of_given_numbers(Law(mass=0.8))) < 4.0
    assert worst(of_given_numbers(OneRowLess(mass=0.8, odds=odds, rate=rate))) > 6.0


# Wrong settings and data


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ExponentialGaussian(rate=0.0),
        lambda: ExponentialGaussian(noise_precision=(1.0, -1.0)),
        lambda: PoissonGamma(base=0.0),
        lambda: PoissonGamma(rate=np.inf),
        lambda: PoissonGamma(shape=(1.0, 1.0)),
        lambda: PoissonGamma(shape=-1.0),
        lambda: LaplaceICA(value_precision=None),
        lambda: LaplaceICA(noise_precision=True),
        lambda: Detection(miss=1.0),
        lambda: Detection(false=(1.0, 0.0)),
        lambda: Detection(share="half"),
    ],
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(ModelError, match="found"):
        wrong()


@pytest.mark.parametrize(
    ("likelihood", "entry"),
    [(PoissonGamma(), -1.0), (PoissonGamma(), 0.5), (Detection(), 2.0), (Detection(), 0.5), (NoisyOr(), -1.0)],
)
def test_entries_of_no_probability_are_refused_where_they_are_seen(likelihood, entry):
    values = np.array([[1.0, entry]])
    likelihood.check(values, np.array([[True, False]]))
    with pytest.raises(DataError, match=f"found {entry}"):
        likelihood.check(values, np.array([[True, True]]))


@pytest.mark.parametrize("name", GIVEN)
def test_chains_begin_with_finite_numbers_and_with_those_given(name):
    values, silent = np.array([[1.0, 0.0], [0.0, 0.0]]), np.zeros((2, 2))
    for rows in (Rows(values, values < 2.0), Rows(silent, values < 2.0)):
        first = GIVEN[name].first_numbers(rows)
        assert all(np.isfinite(value) and value > 0.0 for value in first.values())
    given = dataclasses.replace(GIVEN[name], **dict.fromkeys(first, 0.5))
    found = given.first_numbers(rows), given.draw_numbers(jax.random.key(0))
    assert all(set(numbers) == set(first) for numbers in found)
    assert all(float(numbers[own]) == 0.5 for numbers in found for own in first)

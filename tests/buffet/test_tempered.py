"""Powers of likelihoods and chains that exchange their states: against all matrices, and against draws of the prior."""

import jax
import numpy as np
import pytest
from enumeration_of_features import class_of, enumerate_features
from geweke_of_features import prior_states
from scipy.special import logsumexp
from scipy.stats import gamma

import cavity as cv
from cavity.factors.errors import DataError, ModelError, UnsupportedError
from cavity.models.buffet.likelihoods import (
    Detection,
    ExponentialGaussian,
    LaplaceICA,
    LinearGaussian,
    NoisyOr,
    PoissonGamma,
)
from cavity.models.buffet.likelihoods.contract import totals
from cavity.models.buffet.likelihoods.raised import raised
from cavity.models.buffet.samplers.accelerated import accelerated_in_jax
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.samplers.tempered import exchanged, temper
from cavity.models.buffet.samplers.uncollapsed import uncollapsed

REAL = np.array([[1.6], [-0.2], [1.4]])
BINARY = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
KEY = jax.random.key(0)
QUICK = {"warmup": 60, "rungs": 5, "copies": 3}


def agrees(found, exact, known=0.0):
    """Each estimator within four errors, which are small: its own, and that to which the truth is known."""
    for value, error in found.estimates.values():
        assert error < 0.25
        assert abs(value - exact) < 4.0 * np.hypot(error, known), (found.estimates, exact)


def test_as_many_rungs_as_the_barrier_asks_for():
    """Eight rows of two columns with little noise: three rungs have pairs with hardly a state in common, and say so;
    how many are taken by default agree with a ladder of many more."""
    random = np.random.default_rng(0)
    data = (random.random((8, 2)) < 0.5) @ (2.0 * random.normal(size=(2, 2))) + 0.1 * random.normal(size=(8, 2))
    asked = {"sweep": accelerated_in_jax, "progress": False}
    likelihood, law = LinearGaussian(100.0, 0.25), Law(1.0, features=2)
    with pytest.warns(cv.CavityWarning, match="hardly a state in common"):
        few = temper(data, KEY, 20, likelihood, law, rungs=3, warmup=8, **asked)
    assert len(few.ladder) == 3
    found = temper(data, KEY, 150, likelihood, law, warmup=48, **asked)
    many = temper(data, jax.random.key(1), 150, likelihood, law, rungs=len(found.ladder) + 6, warmup=48, **asked)
    assert 8 < len(found.ladder) <= 80
    assert found.rejected.max() < 0.9
    one, other = found.estimates["bridge"], many.estimates["bridge"]
    assert abs(one.value - other.value) < 4.0 * np.hypot(one.error, other.error)


def by_prior(values, likelihood, law, draws=50_000):
    """Log mean over draws of the prior of the likelihood, and its standard error."""
    states = prior_states(likelihood, law, *values.shape, draws, law.features or 24, 1)
    with jax.enable_x64(True):
        one = jax.vmap(lambda state: likelihood.log_entry(values, totals(state.point), state.numbers).sum())
        logs = np.asarray(jax.jit(one)(states))
    total = logsumexp(logs) - np.log(draws)
    return total, np.std(np.exp(logs - total)) / np.sqrt(draws)


@pytest.mark.parametrize(
    ("values", "likelihood", "law", "sweep"),
    [
        (REAL, LinearGaussian(4.0, 1.0), Law(0.8, 2.0), accelerated_in_jax),
        pytest.param(REAL, LinearGaussian(4.0, 1.0), Law(0.8, features=3), uncollapsed, marks=pytest.mark.slow),
        pytest.param(BINARY, NoisyOr(0.9, 0.2, 0.5), Law(0.7), uncollapsed, marks=pytest.mark.slow),
    ],
    ids=["gaussian", "finite", "noisy-or"],
)
def test_evidence_and_matrices_are_those_of_enumeration(values, likelihood, law, sweep):
    with jax.enable_x64(True):
        numbers = {name: float(value) for name, value in likelihood.draw_numbers(KEY).items()}
    exact = enumerate_features(values, likelihood, law, numbers, most=6)
    found = temper(values, KEY, 500, likelihood, law, sweep=sweep, **QUICK)
    agrees(found, exact.log_evidence)
    assert len(found.states) == 1500
    drawn = [class_of(np.asarray(state.active)) for state in found.states]
    for each, probability in exact.classes.items():
        if probability > 0.05:
            assert drawn.count(each) / len(drawn) == pytest.approx(probability, abs=0.05)


def learned_noise():
    """The likelihood with its noise learned, and the evidence by enumeration at each of many precisions."""
    likelihood, law = LinearGaussian(noise_precision=(2.0, 1.0), value_precision=1.0), Law(0.8, 2.0)
    middle = gamma.ppf((np.arange(200) + 0.5) / 200, 2.0)
    given = [
        enumerate_features(
            REAL, likelihood, law, {"noise_precision": each, "value_precision": 1.0}, most=4
        ).log_evidence
        for each in middle
    ]
    return likelihood, law, logsumexp(given) - np.log(200)


@pytest.mark.slow
def test_a_learned_precision_counts_each_entry_by_the_power():
    likelihood, law, exact = learned_noise()
    agrees(temper(REAL, KEY, 600, likelihood, law, sweep=accelerated_in_jax, **QUICK), exact)


@pytest.mark.parametrize(
    ("values", "likelihood"),
    [
        pytest.param(REAL, ExponentialGaussian((2.0, 1.0), (2.0, 2.0)), marks=pytest.mark.slow),
        (BINARY, Detection((1.0, 3.0), (1.0, 3.0), (2.0, 2.0))),
        pytest.param(BINARY, NoisyOr((3.0, 1.0), (1.0, 3.0), (2.0, 2.0)), marks=pytest.mark.slow),
    ],
    ids=["exponential", "detection", "noisy-or"],
)
def test_evidence_is_the_mean_over_the_prior(values, likelihood):
    law = Law(0.8)
    exact, error = by_prior(values, likelihood, law)
    assert error < 0.02
    agrees(temper(values, KEY, 300, likelihood, law, **QUICK), exact, error)


@pytest.mark.parametrize("likelihood", [LinearGaussian(), ExponentialGaussian(), NoisyOr(), Detection()])
def test_entries_count_by_the_power(likelihood):
    with jax.enable_x64(True):
        whole = likelihood.draw_numbers(KEY)
        powered = raised(likelihood)
        half = powered.at_power(whole | {"power": 1.0}, 0.5)
        value, total = BINARY, np.abs(REAL).T[:, :2]
        expected = likelihood.log_entry(value, total, whole)
        np.testing.assert_allclose(powered.log_whole(value, total, half), expected, rtol=1e-12)
        np.testing.assert_allclose(powered.log_entry(value, total, half), 0.5 * expected, rtol=1e-12)
        back = powered.at_power(half, 1.0)
    for name, number in whole.items():
        assert float(back[name]) == pytest.approx(float(number), rel=1e-12)
    assert raised(likelihood) is powered


def test_neighbours_exchange_by_their_likelihoods():
    powers, random = np.array([0.0, 0.5, 1.0]), np.random.default_rng(0)
    logs = np.array([0.0, -2.0, -1.0])
    even = np.array([exchanged(random, logs, powers, 0) for _ in range(4000)])
    assert (even[:, 2] == 2).all()
    assert (even[:, 0] == 1).mean() == 1.0
    odd = np.array([exchanged(random, logs, powers, 1) for _ in range(4000)])
    assert (odd[:, 0] == 0).all()
    assert (odd[:, 1] == 2).mean() == pytest.approx(np.exp(-0.5), abs=0.03)


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"likelihood": PoissonGamma()}, UnsupportedError, "Powers are of .*found PoissonGamma"),
        ({"likelihood": LaplaceICA()}, UnsupportedError, "found LaplaceICA"),
        ({"law": Law(discount=0.2)}, UnsupportedError, "without a discount; found 0.2"),
        ({"rungs": 1}, ModelError, r"temper\(rungs=\) is a whole number of at least 2; found 1"),
        ({"ladder": [0.0, 0.7]}, ModelError, r"temper\(ladder=\) increases from 0 to 1"),
        ({"data": np.full((2, 2), np.nan)}, DataError, "Row 0 has no entry that is not missing"),
        ({"likelihood": NoisyOr(), "data": np.full((2, 2), 0.5)}, DataError, "entries 0 and 1; found 0.5"),
    ],
)
def test_what_is_wrong_is_refused(settings, error, text):
    asked = {"data": REAL, "key": KEY, "sweeps": 4, "likelihood": LinearGaussian()} | settings
    with pytest.raises(error, match=text):
        temper(**asked)

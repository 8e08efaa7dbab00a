"""Samplers of matrices under other priors: Geweke's test with their own draws, with controls that must fail."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from geweke_of_features import geweke

from cavity.factors.errors import ModelError
from cavity.models.buffet.likelihoods import LinearGaussian, NoisyOr
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.samplers.state import State
from cavity.models.buffet.samplers.uncollapsed import uncollapsed
from cavity.models.buffet.structured import (
    MarkovBuffet,
    MarkovLaw,
    StableBeta,
    forward_backward,
    hidden_markov_sampler,
)
from cavity.models.buffet.structured.hidden_markov_sampler import draw_chain

GAUSSIAN = LinearGaussian(noise_precision=(4.0, 2.0), value_precision=(4.0, 4.0))
NOISY_OR = NoisyOr(quiet=(4.0, 2.0), attenuation=(2.0, 3.0), share=(3.0, 3.0))
THREE = Law(mass=(8.0, 8.0), concentration=(8.0, 4.0), discount=0.5)


def state_of(matrix, mass, concentration):
    none = np.zeros((0, 0))
    return State(np.asarray(matrix, bool), none, none, {}, jnp.asarray(mass), jnp.asarray(concentration))


def test_the_law_with_a_discount_is_the_process_of_three_parameters():
    prior, law = StableBeta(1.3, 0.7, 0.4), Law(1.3, 0.7, discount=0.4)
    matrix = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [1, 1, 0, 0], [0, 1, 0, 0]])
    with jax.enable_x64(True):
        state = state_of(matrix, 1.3, 0.7)
        found = law.log_probability(jnp.asarray(matrix.sum(axis=0)), 4, state)
        wanted = prior.log_probability(matrix) - np.log(6.0)  # of three columns, none alike, in one of their orders
        assert np.isclose(found, wanted, rtol=0, atol=1e-12)
        odds = np.exp(law.log_odds(jnp.asarray([0, 1, 3]), 4, state))
        chance = prior.conditional([0, 1, 3], 4)
        assert np.allclose(odds, chance / (1.0 - chance), rtol=1e-12)
        assert np.isclose(law.rate_alone(4, state), prior.new_feature_rate(4), rtol=1e-12)


def test_sweeps_keep_the_law_of_three_parameters():
    scores = geweke(uncollapsed, GAUSSIAN, THREE, chains=800, steps=20, missing=[(0, 1)])
    assert max(abs(score) for score in scores.values()) < 4.0, scores


@pytest.mark.slow
def test_sweeps_of_another_discount_are_found():
    def wrong(key, rows, state, likelihood, law):
        return uncollapsed(key, rows, state, likelihood, dataclasses.replace(law, discount=0.2))

    scores = geweke(wrong, GAUSSIAN, THREE, chains=1000, steps=30)
    assert max(abs(score) for score in scores.values()) > 8.0, scores


def chains_of_prior(law, random, mass, concentration, rows, places):
    """(chains, rows, places) of Markov chains: given weights for so many, else one row after the other."""
    chains = len(mass)
    if law.features is not None:
        come = random.beta(mass[:, None] / places, 1.0, (chains, places))
        stay = random.beta(law.stay, law.leave, (chains, places))
        active, now = np.zeros((chains, rows, places), bool), np.zeros((chains, places), bool)
        for n in range(rows):
            now = random.random((chains, places)) < np.where(now, stay, come)
            active[:, n] = now
        return active
    active = np.zeros((chains, rows, places), bool)
    for one, own in zip(active, mass, strict=True):
        drawn = MarkovBuffet(own, law.stay, law.leave).sample(rows, jax.random.key(int(random.integers(2**31))))
        one[:, : drawn.shape[1]] = drawn
    return active


PROCESS = MarkovLaw(mass=(8.0, 16.0), stay=2.0, leave=1.0)
CHAINS = MarkovLaw(mass=(8.0, 4.0), stay=2.0, leave=1.0, features=3)


CASES = [
    pytest.param(PROCESS, GAUSSIAN, id="process"),
    pytest.param(CHAINS, NOISY_OR, id="finite"),
    pytest.param(PROCESS, NOISY_OR, id="process of booleans", marks=pytest.mark.slow),
    pytest.param(CHAINS, GAUSSIAN, id="finite of numbers", marks=pytest.mark.slow),
]


def of_chains(sweep, likelihood, law, chains=400):
    return geweke(
        sweep, likelihood, law, chains=chains, steps=20, places=law.features or 32, missing=[(0, 1)], seed=1,
        matrices=chains_of_prior,
    )  # fmt: skip


@pytest.mark.parametrize(("law", "likelihood"), CASES)
def test_forward_backward_keeps_the_law_of_chains(law, likelihood):
    scores = of_chains(forward_backward, likelihood, law)
    assert max(abs(score) for score in scores.values()) < 4.0, scores


@pytest.mark.slow
def test_forward_backward_keeps_the_law_of_chains_to_more_digits():
    scores = of_chains(forward_backward, GAUSSIAN, PROCESS, chains=3000)
    assert max(abs(score) for score in scores.values()) < 4.0, scores


def without_what_the_least_is_charged(u, gain, come, stay, end):
    return draw_chain(u, gain, come, stay, (jnp.zeros(()), jnp.zeros(())))


@pytest.mark.slow
def test_columns_that_are_not_charged_for_the_level_are_found(monkeypatch):
    monkeypatch.setattr(hidden_markov_sampler, "draw_chain", without_what_the_least_is_charged)

    def wrong(*arguments):  # a function of its own, which nothing compiled before is taken for
        return forward_backward(*arguments)

    scores = of_chains(wrong, GAUSSIAN, PROCESS)
    assert max(abs(score) for score in scores.values()) > 6.0, scores


@pytest.mark.slow
def test_sweeps_of_chains_that_stay_longer_are_found():
    def wrong(key, rows, state, likelihood, law):
        return forward_backward(key, rows, state, likelihood, dataclasses.replace(law, leave=0.3))

    scores = of_chains(wrong, GAUSSIAN, CHAINS)
    assert max(abs(score) for score in scores.values()) > 6.0, scores


@pytest.mark.parametrize(
    "make",
    [
        lambda: Law(discount=1.0), lambda: Law(discount=-0.1), lambda: Law(features=3, discount=0.5),
        lambda: MarkovLaw(stay=0.0), lambda: MarkovLaw(leave=(1.0, 1.0)), lambda: MarkovLaw(mass=-1.0),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(make):
    with pytest.raises(ModelError):
        make()

"""Splits and merges with Gaussian values integrated out: alone they reach all matrices, so that they are tested so."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from enumeration_of_features import enumerate_features, scores_of_sweep
from geweke_of_features import geweke, prior_states

from cavity.factors.errors import ModelError, UnsupportedError
from cavity.models.buffet.likelihoods import LinearGaussian, NoisyOr, Rows
from cavity.models.buffet.samplers import collapsed_jumps as module
from cavity.models.buffet.samplers.accelerated import accelerated_in_jax
from cavity.models.buffet.samplers.collapsed_jumps import with_collapsed_split_merge
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.samplers.sampler import padded
from cavity.models.buffet.samplers.state import Outcome
from cavity.models.buffet.samplers.uncollapsed import drawn_given_matrix

LEARNED = LinearGaussian(noise_precision=(4.0, 2.0), value_precision=(4.0, 4.0))
GIVEN, NUMBERS = LinearGaussian(4.0, 1.0), {"noise_precision": 4.0, "value_precision": 1.0}
VALUES = np.array([[1.2, -0.3], [0.1, 0.2], [1.0, 0.4]])
BUFFET = Law(mass=(8.0, 8.0), concentration=(8.0, 4.0))
FINITE = Law(mass=(8.0, 4.0), features=3)


def values_alone(key, rows, state, likelihood, law):
    """A sweep that leaves the matrix as it is."""
    none = jnp.zeros((), int)
    state = drawn_given_matrix(jax.random.split(key), rows, state, likelihood, law)
    return Outcome(state, jnp.bool_(True), none, none)


@pytest.mark.parametrize("law", [BUFFET, pytest.param(FINITE, marks=pytest.mark.slow)], ids=["buffet", "finite"])
def test_moves_leave_the_law_of_model_and_data_as_it_is(law):
    sweep = with_collapsed_split_merge(values_alone, 4)
    places = law.features or 16
    scores = geweke(sweep, LEARNED, law, places=places, chains=1000, steps=30, missing=[(0, 1)])
    assert max(abs(score) for score in scores.values()) < 4.0, scores


@pytest.mark.slow
def test_together_with_steps_of_one_entry_they_leave_it_too():
    sweep = with_collapsed_split_merge(accelerated_in_jax)
    scores = geweke(sweep, LEARNED, BUFFET, missing=[(0, 1)], seed=5)
    assert max(abs(score) for score in scores.values()) < 4.0, scores


def worst(sweep, law):
    """The greatest z score of a sampler's frequencies against enumeration."""
    exact = enumerate_features(VALUES, GIVEN, law, NUMBERS, most=5)
    scores = scores_of_sweep(sweep, GIVEN, law, exact, VALUES, chains=400, steps=90)
    return max(abs(score) for score in scores.values())


@pytest.mark.parametrize(
    "law",
    [Law(0.8, 2.0), pytest.param(Law(0.8, features=3), marks=pytest.mark.slow)],
    ids=["buffet", "finite"],
)
def test_matrices_are_as_frequent_as_they_are_probable(law):
    assert worst(with_collapsed_split_merge(values_alone, 4), law) < 4.0


def test_moves_without_the_probability_of_the_choice_are_found_out(monkeypatch):
    deal = module.deal
    monkeypatch.setattr(module, "deal", lambda *given: deal(*given)._replace(log_choice=0.0))
    assert worst(with_collapsed_split_merge(lambda *given: values_alone(*given), 4), Law(0.8, 2.0)) > 8.0


def test_more_places_change_no_move():
    law, sweep = Law(1.5), with_collapsed_split_merge(values_alone, 8)
    rows = Rows(VALUES, np.ones(VALUES.shape, bool))
    few = jax.tree.map(lambda each: each[0], prior_states(GIVEN, law, 3, 2, 1, 10, 0))
    step = jax.jit(lambda key, state: sweep(key, rows, state, GIVEN, law))
    with jax.enable_x64(True):
        one, other = (jax.tree.map(np.asarray, step(jax.random.key(4), padded(few, places))) for places in (10, 20))
    assert one.fits
    assert other.fits
    assert one.accepted > 0
    assert np.array_equal(one.state.active, other.state.active[:, :10])
    assert np.allclose(one.state.values, other.state.values[:10], rtol=0, atol=1e-9)


def test_what_is_wrong_is_refused():
    with pytest.raises(ModelError, match=r"with_collapsed_split_merge\(moves=\).*found 0"):
        with_collapsed_split_merge(values_alone, 0)
    assert repr(with_collapsed_split_merge(values_alone, 3)) == "with_collapsed_split_merge(values_alone, 3)"
    state = jax.tree.map(lambda each: each[0], prior_states(NoisyOr(), Law(1.5), 3, 1, 1, 8, 0))
    rows = Rows(np.zeros((3, 1)), np.ones((3, 1), bool))
    with pytest.raises(UnsupportedError, match="found NoisyOr"):
        with_collapsed_split_merge(values_alone)(jax.random.key(0), rows, state, NoisyOr(), Law(1.5))

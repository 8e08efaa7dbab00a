"""The slice sampler: Geweke's test, all matrices of small data, and controls that must fail."""

import jax
import numpy as np
import pytest
from enumeration_of_features import drawn_matrices, enumerate_features, scores_of_sweep
from geweke_of_features import geweke, prior_states
from shards_as_sweeps import by_shards

from cavity.factors.errors import UnsupportedError
from cavity.models.buffet.likelihoods import LinearGaussian, NoisyOr, Rows
from cavity.models.buffet.parallel.exact import exact_iteration
from cavity.models.buffet.samplers import slices as module
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.samplers.slices import slices
from cavity.models.buffet.structured import MarkovLaw
from cavity.models.buffet.structured.hidden_markov_sampler import forward_backward

LEARNED = {
    "gaussian": LinearGaussian(noise_precision=(4.0, 2.0), value_precision=(4.0, 4.0)),
    "noisy-or": NoisyOr(quiet=(4.0, 2.0), attenuation=(2.0, 3.0), share=(3.0, 3.0)),
}
BUFFET = Law(mass=(16.0, 32.0), concentration=(16.0, 16.0))
FINITE = Law(mass=(8.0, 4.0), features=3)
GAUSSIAN = LinearGaussian(4.0, 1.0), {"noise_precision": 4.0, "value_precision": 1.0}
NOISY_OR = NoisyOr(0.9, 0.2, 0.5), {"quiet": 0.9, "attenuation": 0.2, "share": 0.5}
DATA = {
    "gaussian": (*GAUSSIAN, np.array([[1.2], [0.1], [1.0]])),
    "noisy-or": (*NOISY_OR, np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])),
}


def places_of(law):
    """More than for other samplers: a level near zero asks for many weights that no row comes to have."""
    return law.features or 48


def test_sweeps_leave_the_law_of_model_and_data_as_it_is():
    scores = geweke(slices, LEARNED["gaussian"], BUFFET, places=48, chains=1000, steps=20, missing=[(0, 1)])
    assert max(abs(score) for score in scores.values()) < 4.0, scores


@pytest.mark.slow
@pytest.mark.parametrize("law", [BUFFET, FINITE], ids=["buffet", "finite"])
@pytest.mark.parametrize("name", LEARNED)
def test_many_sweeps_leave_it_too(name, law):
    scores = geweke(slices, LEARNED[name], law, places=places_of(law), missing=[(0, 1)], seed=7)
    assert max(abs(score) for score in scores.values()) < 4.0, scores


def worst(sweep, name, law):
    """The greatest z score of a sampler's frequencies against enumeration."""
    likelihood, numbers, values = DATA[name]
    exact = enumerate_features(values, likelihood, law, numbers, most=5)
    scores = scores_of_sweep(sweep, likelihood, law, exact, values, places=places_of(law))
    return max(abs(score) for score in scores.values())


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("noisy-or", Law(0.8, 2.0)),
        pytest.param("gaussian", Law(0.7), marks=pytest.mark.slow),
        pytest.param("noisy-or", Law(0.7), marks=pytest.mark.slow),
        pytest.param("gaussian", Law(0.8, 2.0), marks=pytest.mark.slow),
        pytest.param("gaussian", Law(0.8, features=2), marks=pytest.mark.slow),
    ],
)
def test_matrices_are_as_frequent_as_they_are_probable(name, law):
    assert worst(slices, name, law) < 4.0


def test_entries_drawn_without_the_density_of_the_level_are_found_out(monkeypatch):
    """As where the odds of an entry are those of its weight and the likelihood alone."""
    monkeypatch.setattr(module, "_gain_of_level", lambda place, row, sticks: 0.0)
    assert worst(lambda *given: slices(*given), "noisy-or", Law(0.7)) > 8.0


@pytest.mark.parametrize(
    ("sweep", "law", "rows"),
    [
        pytest.param(slices, Law(1.0), 1, id="slices"),
        pytest.param(by_shards(exact_iteration, 1), Law(1.0), 1, id="one shard"),
        pytest.param(by_shards(exact_iteration, 4), Law(1.0), 4, id="four shards", marks=pytest.mark.slow),
        pytest.param(forward_backward, MarkovLaw(1.0), 1, id="chains"),
    ],
)
def test_without_data_the_number_of_features_keeps_its_law(sweep, law, rows):
    """In a scan in the order of places, with those of new weights last, one row came to have 7 % too many."""
    likelihood, chains, steps = NoisyOr(0.9, 0.2, 0.5), 8000, 4
    states = prior_states(likelihood, Law(1.0), rows, 1, chains, 48, seed=3)
    given = Rows(np.zeros((rows, 1)), np.zeros((rows, 1), bool))
    with jax.enable_x64(True):
        active, fits = drawn_matrices(jax.random.key(0), given, states, sweep, likelihood, law, steps)
    numbers = np.asarray(active).any(axis=2).sum(axis=2).mean(axis=1)
    assert np.all(fits)
    expected = sum(1.0 / (row + 1.0) for row in range(rows))
    assert abs(numbers.mean() - expected) < 4.0 * numbers.std() / np.sqrt(chains)


def test_a_discount_is_refused():
    with pytest.raises(UnsupportedError, match=r"without a discount; found 0\.5"):
        slices(None, None, None, GAUSSIAN[0], Law(discount=0.5))

"""Split, merge, create and destroy: alone with values they reach all matrices, so that they are tested without help."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from enumeration_of_features import enumerate_features, scores_of_sweep
from geweke_of_features import geweke, prior_states

from cavity.factors.errors import ModelError
from cavity.models.buffet.likelihoods import LinearGaussian, NoisyOr, Rows
from cavity.models.buffet.samplers import split_merge as module
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.samplers.sampler import padded
from cavity.models.buffet.samplers.split_merge import log_columns, with_split_merge
from cavity.models.buffet.samplers.state import Outcome, State
from cavity.models.buffet.samplers.uncollapsed import drawn_given_matrix, uncollapsed

LEARNED = {
    "gaussian": LinearGaussian(noise_precision=(4.0, 2.0), value_precision=(4.0, 4.0)),
    "noisy-or": NoisyOr(quiet=(4.0, 2.0), attenuation=(2.0, 3.0), share=(3.0, 3.0)),
}
BUFFET = Law(mass=(8.0, 8.0), concentration=(8.0, 4.0))
FINITE = Law(mass=(8.0, 4.0), features=3)
DATA = {
    "gaussian": (
        LinearGaussian(4.0, 1.0),
        {"noise_precision": 4.0, "value_precision": 1.0},
        np.array([[1.2], [0.1], [1.0]]),
    ),
    "noisy-or": (
        NoisyOr(0.9, 0.2, 0.5),
        {"quiet": 0.9, "attenuation": 0.2, "share": 0.5},
        np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]),
    ),
}


def values_alone(key, rows, state, likelihood, law):
    """A sweep that leaves the matrix as it is."""
    none = jnp.zeros((), int)
    state = drawn_given_matrix(jax.random.split(key), rows, state, likelihood, law)
    return Outcome(state, jnp.bool_(True), none, none)


@pytest.mark.parametrize(
    ("name", "law"), [("gaussian", BUFFET), pytest.param("noisy-or", FINITE, marks=pytest.mark.slow)]
)
def test_moves_leave_the_law_of_model_and_data_as_it_is(name, law):
    sweep = with_split_merge(values_alone, 4)
    places = law.features or 16
    scores = geweke(sweep, LEARNED[name], law, places=places, chains=1000, steps=30, missing=[(0, 1)])
    assert max(abs(score) for score in scores.values()) < 4.0, scores


@pytest.mark.slow
@pytest.mark.parametrize("law", [BUFFET, FINITE], ids=["buffet", "finite"])
@pytest.mark.parametrize("name", LEARNED)
def test_together_with_steps_of_one_entry_they_leave_it_too(name, law):
    places = law.features or 16
    scores = geweke(with_split_merge(uncollapsed), LEARNED[name], law, places=places, missing=[(0, 1)], seed=5)
    assert max(abs(score) for score in scores.values()) < 4.0, scores


def worst(sweep, name, law):
    """The greatest z score of a sampler's frequencies against enumeration."""
    likelihood, numbers, values = DATA[name]
    exact = enumerate_features(values, likelihood, law, numbers, most=5)
    scores = scores_of_sweep(sweep, likelihood, law, exact, values, chains=400, steps=90)
    return max(abs(score) for score in scores.values())


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("noisy-or", Law(0.8, features=3)),
        pytest.param("gaussian", Law(0.8, 2.0), marks=pytest.mark.slow),
        pytest.param("noisy-or", Law(0.7), marks=pytest.mark.slow),
        pytest.param("gaussian", Law(0.8, features=3), marks=pytest.mark.slow),
    ],
)
def test_matrices_are_as_frequent_as_they_are_probable(name, law):
    assert worst(with_split_merge(values_alone, 4), name, law) < 4.0


def test_moves_without_the_probability_of_the_choice_are_found_out(monkeypatch):
    deal = module.deal
    monkeypatch.setattr(module, "deal", lambda *given: deal(*given)._replace(log_choice=0.0))
    assert worst(with_split_merge(lambda *given: values_alone(*given), 4), "noisy-or", Law(0.7)) > 8.0


def test_more_places_change_no_move():
    likelihood, _, values = DATA["gaussian"]
    law, sweep = Law(1.5), with_split_merge(values_alone, 8)
    rows = Rows(values, np.ones(values.shape, bool))
    few = jax.tree.map(lambda each: each[0], prior_states(likelihood, law, 3, 1, 1, 10, 0))
    step = jax.jit(lambda key, state: sweep(key, rows, state, likelihood, law))
    with jax.enable_x64(True):
        both = [step(jax.random.key(4), padded(few, places)) for places in (10, 20)]
    one, other = jax.tree.map(np.asarray, both)
    assert one.fits
    assert other.fits
    assert one.accepted > 0
    assert np.array_equal(one.state.active, other.state.active[:, :10])
    assert np.allclose(one.state.values, other.state.values[:10], rtol=0, atol=1e-12)


@pytest.mark.parametrize("law", [Law(0.7, 2.5), Law(0.8, features=4), Law(0.5, 0.8, discount=0.3)])
def test_columns_add_what_the_law_says(law):
    """`log_probability` of matrices of one column and none."""
    with jax.enable_x64(True):
        mass, concentration = law.first()
        state = State(jnp.zeros((5, 4), bool), jnp.zeros((4, 1)), jnp.zeros((0, 0)), {}, mass, concentration)
        found = log_columns(state, law)
        owners = jnp.zeros((6, 4), int).at[:, 0].set(jnp.arange(6))
        exact = jax.vmap(lambda each: law.log_probability(each, 5, state))(owners)
        assert np.allclose(found, exact - exact[0], rtol=0, atol=1e-12)


def test_bad_numbers_of_moves_are_refused():
    with pytest.raises(ModelError, match=r"moves=.*found 0"):
        with_split_merge(uncollapsed, 0)
    assert with_split_merge(uncollapsed, 3) == with_split_merge(uncollapsed, 3)
    assert repr(with_split_merge(uncollapsed, 3)) == "with_split_merge(uncollapsed, 3)"

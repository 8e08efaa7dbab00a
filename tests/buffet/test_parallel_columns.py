"""Columns dealt to processors, which does not work: each fits its features to what others leave, and all at once."""

import jax
import numpy as np
import pytest
from block_images import block_images

from cavity.models.buffet.likelihoods import LinearGaussian
from cavity.models.buffet.likelihoods.contract import Rows
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.samplers.sampler import compiled
from cavity.models.buffet.samplers.state import State
from cavity.models.buffet.samplers.uncollapsed import uncollapsed

ROUNDS, FEATURES = 12, 8
LIKELIHOOD = LinearGaussian(noise_precision=4.0, value_precision=1.0)


def errors(images, parts):
    """Mean squared errors after each round, eight features being dealt to so many processors."""
    one, size = np.asarray(1.0), FEATURES // parts
    numbers = {"noise_precision": 4.0 * one, "value_precision": one}
    sweep = compiled(uncollapsed, LIKELIHOOD, Law(1.0, features=size))
    random = np.random.default_rng(1)
    seeds = images[random.choice(len(images), (parts, size), replace=False)]
    nobody, none = np.zeros((len(images), size), bool), np.zeros((0, 0))
    states = [State(nobody, values, none, numbers, one, one) for values in seeds]
    found = []
    for round in range(ROUNDS):
        fits = [np.asarray(state.active, float) @ np.asarray(state.values) for state in states]
        rest = images - sum(fits)
        found.append(np.mean(rest**2))
        keys = jax.random.split(jax.random.key(round), parts)
        states = [
            sweep(key, Rows(rest + fit, np.ones(images.shape, bool)), state).state
            for key, fit, state in zip(keys, fits, states, strict=True)
        ]
    return np.array(found)


@pytest.mark.slow
def test_processors_that_fit_their_columns_to_the_same_rest_undo_each_other():
    images, _ = block_images(80)
    together, apart = errors(images, 1), errors(images, FEATURES)
    assert together[-1] < 0.3  # the noise is 0.25
    assert apart[-1] > 2.0 * apart[0]  # worse than before any feature was there

"""Births that look at the row: Geweke's test for each proposal, its density, and a control without it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from geweke_of_features import geweke

from cavity.models.buffet.likelihoods import Detection, ExponentialGaussian, LinearGaussian, NoisyOr, PoissonGamma
from cavity.models.buffet.samplers import births
from cavity.models.buffet.samplers.births import given_rows, proposal_of
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.samplers.state import State
from cavity.models.buffet.samplers.uncollapsed import Row

GIVEN = {
    "noisy-or": NoisyOr(quiet=(4.0, 2.0), attenuation=(2.0, 3.0), share=(3.0, 3.0)),
    "detection": Detection(miss=(2.0, 6.0), false=(2.0, 6.0), share=(3.0, 3.0)),
    "exponential": ExponentialGaussian(noise_precision=(4.0, 2.0), rate=(4.0, 4.0)),
    "poisson": PoissonGamma(base=(4.0, 4.0), shape=1.5, rate=(4.0, 4.0)),
    "gaussian": LinearGaussian(noise_precision=(4.0, 2.0), value_precision=(4.0, 4.0)),
}
LAW = Law(mass=(8.0, 8.0), concentration=(8.0, 4.0))


def worst(likelihood, chains=1000, steps=30):
    scores = geweke(given_rows, likelihood, LAW, chains=chains, steps=steps, places=16, missing=[(0, 1)])
    return max(abs(score) for score in scores.values())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name != "noisy-or")) for name in GIVEN]
)
def test_sweeps_leave_the_law_as_it_is(name):
    assert worst(GIVEN[name]) < 4.0


@pytest.mark.slow
def test_a_proposal_without_its_density_is_found(monkeypatch):
    monkeypatch.setattr(births.OfBinaryRow, "log_over_prior", lambda self, values, row, total, state: 0.0)
    other = dataclasses.replace(GIVEN["noisy-or"], share=(3.0, 2.9))  # of another program than the right one
    assert worst(other) > 8.0


@pytest.mark.parametrize("name", ["noisy-or", "detection", "exponential", "poisson"])
def test_proposals_have_their_density(name):
    """Draws of the prior, weighted with it, have the mass one and the means of draws of the proposal."""
    likelihood = GIVEN[name]
    with jax.enable_x64(True):
        numbers = likelihood.draw_numbers(jax.random.key(3))
        value, total = jnp.array([1.0, 0.0, 1.0]), jnp.array([0.0, 1.0, 0.5])
        if name in ("noisy-or", "detection"):
            total = jnp.round(total)
        seen = jnp.array([True, True, False])
        row = Row(value, seen, jnp.zeros(2, bool), jnp.zeros(0), total, jnp.zeros(2, int), jnp.zeros((2, 3)))
        empty = jnp.zeros((0, 0))
        state = State(empty.astype(bool), empty, empty, numbers, jnp.ones(()), jnp.ones(()))
        proposal = proposal_of(likelihood)

        def one(key):
            keys = jax.random.split(key)
            proposed = proposal.draw(keys[0], row, total, state)
            values = likelihood.draw_values(keys[1], numbers, 1, 3)[0]
            return jnp.arctan(proposed), jnp.arctan(values), proposal.log_over_prior(values, row, total, state)

        proposed, given, log = map(np.asarray, jax.vmap(one)(jax.random.split(jax.random.key(0), 40_000)))
    weights = np.exp(log)
    assert weights.mean() == pytest.approx(1.0, abs=5.0 * weights.std() / np.sqrt(weights.size))
    weighted = weights[:, None] * given
    errors = np.sqrt((proposed.var(axis=0) + weighted.var(axis=0)) / weights.size)
    assert (np.abs(proposed.mean(axis=0) - weighted.mean(axis=0)) < 5.0 * errors).all()
    assert weights.std() > 0.1

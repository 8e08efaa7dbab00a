"""Exact moves from seeded sweeps; and controls: no way back, and features dealt out to processors."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from block_images import block_images
from geweke_of_features import geweke

import cavity as cv
from cavity.models.buffet.chains import sample_features
from cavity.models.buffet.likelihoods import LinearGaussian, NoisyOr
from cavity.models.buffet.likelihoods.contract import totals
from cavity.models.buffet.parallel import SeededShards, metropolis
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.samplers.state import Outcome
from cavity.models.buffet.samplers.uncollapsed import uncollapsed

GIVEN = LinearGaussian(noise_precision=(4.0, 2.0), value_precision=(4.0, 4.0))
BUFFET = Law((8.0, 8.0), 1.0)


def worst(scores):
    return max(abs(score) for score in scores.values())


@pytest.mark.slow
def test_moves_by_a_seed_leave_the_law_as_it_is():
    sweep = SeededShards(shards=2, changed=1, fuzz=0.05)
    scores = geweke(sweep, GIVEN, BUFFET, 4, chains=500, steps=12, places=14, missing=[(0, 1)])
    assert worst(scores) < 4.0, scores


@pytest.mark.slow
def test_several_moves_of_several_rows_leave_it_too():
    sweep = SeededShards(shards=3, changed=2, inner=2, moves=3, fuzz=0.02)
    scores = geweke(sweep, GIVEN, Law((8.0, 8.0), (8.0, 4.0)), 7, chains=1000, steps=30, places=24, missing=[(0, 1)])
    assert worst(scores) < 4.0, scores


@pytest.mark.slow
def test_a_way_back_that_is_not_weighed_is_found_out(monkeypatch):
    """The control: as if what a sweep makes of the proposal were the matrix itself."""
    right, calls = metropolis.seeded, []

    def half(how, active, *rest):
        calls.append(active)
        return right(how, active, *rest) if len(calls) % 2 else metropolis.Moved(active, jnp.bool_(True))

    monkeypatch.setattr(metropolis, "seeded", half)
    scores = geweke(SeededShards(moves=4, fuzz=0.05), GIVEN, BUFFET, 4, chains=500, steps=12, places=14)
    assert len(calls) == 2
    assert worst(scores) > 6.0, scores


@dataclasses.dataclass(frozen=True)
class ByFeatures:
    """Columns dealt out to processors, each of which fits its own to what the others' old ones leave of the data."""

    processors: int

    def __call__(self, key, rows, state, likelihood, law):
        share = law.features // self.processors
        active, values = [], []
        for number in range(self.processors):
            own = slice(number * share, (number + 1) * share)
            rest = totals(state.point) - state.active[:, own].astype(float) @ state.values[own]
            part = state._replace(active=state.active[:, own], values=state.values[own])
            left = rows._replace(values=rows.values - rest)
            found = uncollapsed(jax.random.fold_in(key, number), left, part, likelihood, law).state
            active, values = [*active, found.active], [*values, found.values]
        state = state._replace(active=jnp.concatenate(active, axis=1), values=jnp.concatenate(values))
        return Outcome(state, jnp.bool_(True), 0, 0)


def test_features_dealt_out_to_processors_fit_the_same_rest_several_times():
    """What fails: one processor leaves the law of model and data as it is, four make rows too far from zero."""
    given, law = LinearGaussian(noise_precision=4.0, value_precision=4.0), Law(2.0, features=8)
    one, four = (
        geweke(ByFeatures(processors), given, law, 4, chains=1000, steps=20, places=8) for processors in (1, 4)
    )
    assert worst(one) < 4.0, one
    assert four["total"] > 6.0, four


def test_what_is_wrong_with_moves_is_told():
    with pytest.raises(cv.ModelError, match="SeededShards\\(shards=\\): give a whole number"):
        SeededShards(shards=0)
    with pytest.raises(cv.ModelError, match="above 0 and below"):
        SeededShards(fuzz=0.5)
    key, values = jax.random.key(0), np.eye(3)
    with pytest.raises(cv.UnsupportedError, match="found NoisyOr"):
        sample_features(values, key, 1, NoisyOr(), sweep=SeededShards(), chains=1)
    with pytest.raises(cv.UnsupportedError, match="found 2 features"):
        sample_features(values, key, 1, LinearGaussian(), Law(features=2), sweep=SeededShards(), chains=1)
    with pytest.raises(cv.ModelError, match="more than the 3 there are"):
        sample_features(values, key, 1, LinearGaussian(), sweep=SeededShards(shards=2, changed=2), chains=1)


@pytest.mark.slow
def test_a_chain_of_moves_grows_its_places():
    found = sample_features(
        block_images(40)[0][:, :6], jax.random.key(0), 20, LinearGaussian(), sweep=SeededShards(moves=4), chains=1
    )
    assert np.all(np.isfinite(found["noise_precision"]))

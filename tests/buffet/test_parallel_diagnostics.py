"""Sweeps over some features keep the law; paths of sums of independent draws turn as often as they should."""

import jax.numpy as jnp
import numpy as np
import pytest
from geweke_of_features import geweke

import cavity as cv
from cavity.models.buffet.likelihoods import LinearGaussian, NoisyOr
from cavity.models.buffet.parallel import SomeFeatures, effective_draws, hairiness, subsampled
from cavity.models.buffet.samplers.law import Law

GIVEN = {
    "gaussian": LinearGaussian(noise_precision=(4.0, 2.0), value_precision=(4.0, 4.0)),
    "noisy-or": NoisyOr(quiet=(4.0, 2.0), attenuation=(2.0, 3.0), share=(3.0, 3.0)),
}
BUFFET = Law((8.0, 8.0), 1.0)


@pytest.mark.parametrize("name", ["gaussian", pytest.param("noisy-or", marks=pytest.mark.slow)])
def test_sweeps_over_some_features_leave_the_law_as_it_is(name):
    scores = geweke(SomeFeatures(0.5), GIVEN[name], BUFFET, chains=400, steps=12, places=18, missing=[(0, 1)])
    assert max(abs(score) for score in scores.values()) < 4.0, scores


@pytest.mark.slow
def test_features_that_are_chosen_by_the_state_are_found_out(monkeypatch):
    """The control: each row's sweep is over the features that it has."""
    right = subsampled._draw

    def of_its_own(key, row, order, number, *rest):
        return right(key, row, jnp.argsort(~row.active, stable=True), jnp.sum(row.active), *rest)

    monkeypatch.setattr(subsampled, "_draw", of_its_own)
    scores = geweke(SomeFeatures(0.5), GIVEN["gaussian"], BUFFET, chains=500, steps=16, places=12)
    assert max(abs(score) for score in scores.values()) > 8.0, scores


def test_independent_draws_turn_half_of_the_time_and_slow_ones_hardly():
    random = np.random.default_rng(0)
    inside = [hairiness(random.normal(size=400)).inside for _ in range(100)]
    assert np.mean(inside) > 0.9
    last = [hairiness(random.normal(size=400)) for _ in range(400)]
    assert np.mean([one.lower[-1] <= one.index[-1] <= one.upper[-1] for one in last]) == pytest.approx(0.95, abs=0.04)
    slow = hairiness(np.cumsum(random.normal(size=400)))
    assert slow.index[-1] < slow.lower[-1]
    assert hairiness([0.0, 1.0, 0.0, 1.0]).index.tolist() == [1.0, 1.0, 1.0]
    assert hairiness([0.0, 0.0, 1.0, 1.0]).index.tolist() == [0.0, 0.5, 1 / 3]


def test_draws_that_hold_on_are_worth_less():
    pytest.importorskip("arviz")
    random = np.random.default_rng(1)
    noise = random.normal(size=(2, 4000))
    held = np.zeros_like(noise)
    for t in range(1, 4000):
        held[:, t] = 0.8 * held[:, t - 1] + noise[:, t]
    assert effective_draws(noise) == pytest.approx(8000.0, rel=0.1)
    assert effective_draws(held) == pytest.approx(8000.0 * (1 - 0.8) / (1 + 0.8), rel=0.25)
    assert effective_draws(held[0]) == pytest.approx(4000.0 / 9.0, rel=0.4)


def test_what_is_wrong_is_told():
    with pytest.raises(cv.DataError, match="three or more finite numbers"):
        hairiness([1.0, 1.0, 1.0])
    with pytest.raises(cv.DataError, match="four or more finite draws"):
        effective_draws([1.0, np.nan, 2.0, 3.0])
    with pytest.raises(cv.ModelError, match="above 0 and at most 1"):
        SomeFeatures(0.0)

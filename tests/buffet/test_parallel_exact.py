"""Shards that draw rows given values and weights: Geweke's test, and odds without the level, which fail."""

import jax
import numpy as np
import pytest
from block_images import block_images
from geweke_of_features import geweke
from shards_as_sweeps import by_shards

import cavity as cv
from cavity.models.buffet.likelihoods import LinearGaussian
from cavity.models.buffet.parallel import sample_in_shards
from cavity.models.buffet.parallel.exact import exact_iteration
from cavity.models.buffet.samplers import slices
from cavity.models.buffet.samplers.law import Law

GIVEN = LinearGaussian(noise_precision=(4.0, 2.0), value_precision=(4.0, 4.0))
BUFFET = Law((8.0, 8.0), 1.0)
FINITE = Law((8.0, 4.0), features=3)


@pytest.mark.parametrize("law", [BUFFET, pytest.param(FINITE, marks=pytest.mark.slow)], ids=["buffet", "finite"])
def test_two_shards_leave_the_law_as_it_is(law):
    places = law.features or 40
    scores = geweke(by_shards(exact_iteration, 2), GIVEN, law, 4, chains=400, steps=16, places=places, missing=[(0, 1)])
    assert max(abs(score) for score in scores.values()) < 4.0, scores


@pytest.mark.slow
def test_two_sweeps_of_three_shards_leave_it_too():
    law = Law((8.0, 8.0), (8.0, 4.0))
    sweep = by_shards(exact_iteration, 3, inner=2)
    scores = geweke(sweep, GIVEN, law, rows=6, chains=1000, steps=20, places=160, missing=[(0, 1)])
    assert max(abs(score) for score in scores.values()) < 4.0, scores


@pytest.mark.slow
def test_entries_drawn_without_the_density_of_the_level_are_found_out(monkeypatch):
    """The control: odds of the weights alone, as if no level had been drawn below them."""
    monkeypatch.setattr(slices, "_gain_of_level", lambda place, row, sticks: 0.0)
    scores = geweke(by_shards(exact_iteration, 2), GIVEN, BUFFET, 4, chains=400, steps=16, places=40)
    assert max(abs(score) for score in scores.values()) > 6.0, scores


@pytest.mark.slow
def test_two_exact_shards_agree_with_one_of_the_other_kind():
    """That is exact too. Two columns: in many, births from the prior fit no row. 400 draws are a handful of others."""
    parts = np.array_split(block_images(24)[0][:, [8, 9]], 2)
    found = sample_in_shards(parts, jax.random.key(1), 4000, exact=True, warmup=200, progress=False)
    other = sample_in_shards([np.concatenate(parts)], jax.random.key(2), 4000, warmup=200, progress=False)
    for name, most in (("noise_precision", 0.15), ("mass", 0.15)):
        assert found[name].mean() == pytest.approx(other[name].mean(), rel=most)


def test_a_discount_is_refused():
    with pytest.raises(cv.UnsupportedError, match="laws without a discount"):
        sample_in_shards([np.ones((3, 2))], jax.random.key(0), 2, law=Law(discount=0.5), exact=True)

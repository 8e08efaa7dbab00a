"""Draws of features by any sampler: growth, checkpoints, held-out entries, workers, and what is refused."""

import jax
import numpy as np
import pytest
from block_images import block_images, worn_words

import cavity as cv
from cavity.models.buffet.chains import sample_features
from cavity.models.buffet.likelihoods import LinearGaussian, NoisyOr
from cavity.models.buffet.samplers import sampler
from cavity.models.buffet.samplers.accelerated import accelerated
from cavity.models.buffet.samplers.births import given_rows
from cavity.models.buffet.samplers.law import Law

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def images():
    return block_images(80)[0]


def quick(data, draws=6, likelihood=None, **asked):
    asked = {"sweep": accelerated, "chains": 1, "warmup": 2, "progress": False} | asked
    return sample_features(data, KEY, draws, LinearGaussian() if likelihood is None else likelihood, **asked)


def test_places_change_no_draw(images, monkeypatch):
    """Chains that begin with two places and grow make the draws of chains that have room from the start."""
    wide = quick(images)
    monkeypatch.setattr(sampler, "SMALLEST", 2)
    narrow = quick(images)
    np.testing.assert_array_equal(narrow["number_of_features"], wide["number_of_features"])
    np.testing.assert_allclose(narrow["log_likelihood"], wide["log_likelihood"], rtol=1e-9)


def test_a_chain_goes_on_from_its_checkpoint(images, tmp_path):
    path = tmp_path / "chain"
    quick(images, 3, checkpoint=path)
    longer, whole = quick(images, 6, checkpoint=path), quick(images, 6)
    for name in ("log_likelihood", "mass", "active", "values"):
        np.testing.assert_array_equal(longer[name], whole[name])
    np.testing.assert_array_equal(longer.reconstruction, whole.reconstruction)
    with pytest.raises(cv.DataError, match="another"):
        quick(images + 1.0, 6, checkpoint=path)


def test_held_out_entries_are_predicted(images):
    held = np.random.default_rng(1).random(images.shape) < 0.1
    found = quick(images, 20, warmup=40, held_out=held).held_out
    assert found is not None
    truth = images[held]
    assert found.log_density.shape == truth.shape
    assert np.mean((found.mean - truth) ** 2) < 0.75 * np.mean((truth - images[~held].mean()) ** 2)
    gaussian = -0.5 * np.log(2.0 * np.pi * images.var()) - 0.5
    assert found.score > gaussian + 0.1


def test_chains_from_the_prior_find_few_features_where_the_noise_is_known(monkeypatch):
    """Eight features: from a draw of the prior, with little noise from the first sweep on, each row takes features of
    its own, which it hardly ever gives up again."""
    random = np.random.default_rng(0)
    data = (random.random((100, 8)) < 0.2) @ (2.0 * random.normal(size=(8, 10)))
    data += 0.2 * random.normal(size=data.shape)
    given = LinearGaussian(noise_precision=25.0, value_precision=0.25)

    def found():
        return quick(data, 5, given, warmup=30)["number_of_features"][0, -1]

    assert found() <= 14
    monkeypatch.setattr(sampler, "SWEEPS", 0)
    assert found() >= 25


def test_what_is_held_out_is_not_seen(images):
    held = np.zeros(images.shape, bool)
    held[::3, ::4] = True
    other = np.where(held, 100.0, images)
    one, two = quick(images, held_out=held), quick(other, held_out=held)
    np.testing.assert_array_equal(one["log_likelihood"], two["log_likelihood"])
    missing = quick(np.where(held, np.nan, images))
    np.testing.assert_array_equal(one["log_likelihood"], missing["log_likelihood"])


def test_workers_make_the_same_draws():
    words, _ = worn_words(30)
    asked = {"likelihood": NoisyOr(), "sweep": given_rows, "chains": 2}
    here, there = quick(words, 3, **asked), quick(words, 3, workers=2, **asked)
    np.testing.assert_array_equal(here["active"], there["active"])
    np.testing.assert_array_equal(here["log_likelihood"], there["log_likelihood"])


def test_draws_have_no_padding(images):
    found = quick(images, 4, chains=2)
    for draw in found.draws():
        assert draw.active.any(axis=0).all()
        assert draw.values.shape == (draw.active.shape[1], 36)
    finite = quick(images, 4, law=Law(features=5))
    assert all(draw.active.shape == (80, 5) for draw in finite.draws())
    assert found.number_of_features.sum() == pytest.approx(1.0)
    with pytest.raises(cv.UnsupportedError, match="keep='all'"):
        quick(images, 4, keep="summaries").draw(0, 0)


def test_arviz_reads_them(images):
    arviz = pytest.importorskip("arviz")
    found = quick(images, 5, chains=2).to_arviz()
    assert {"mass", "number_of_features", "noise_precision"} <= set(found.posterior)
    assert np.isfinite(float(arviz.ess(found.posterior["mass"])["mass"]))


@pytest.mark.parametrize(
    ("data", "asked", "error", "text"),
    [
        (np.array([[1.0, np.inf]]), {}, cv.DataError, "Row 0, dimension 1 is infinite"),
        (np.full((2, 2), np.nan), {}, cv.DataError, "Row 0 has no entry that is not missing"),
        (np.ones((2, 2)), {"held_out": np.ones((2, 2), bool)}, cv.DataError, "No entry is left"),
        (np.ones((2, 2)), {"held_out": np.ones(2, bool)}, cv.DataError, r"held_out= .* shape \(2, 2\)"),
        (np.ones((2, 2)), {"keep": "some"}, cv.ModelError, "keep= is 'all' or 'summaries'"),
        (np.full((2, 2), 2.0), {"likelihood": NoisyOr(), "sweep": given_rows}, cv.DataError, "entries 0 and 1"),
        (np.ones((2, 2)), {"likelihood": NoisyOr()}, cv.UnsupportedError, "LinearGaussian allows; found NoisyOr"),
    ],
)
def test_what_is_wrong_is_told(data, asked, error, text):
    with pytest.raises(error, match=text):
        quick(data, **asked)

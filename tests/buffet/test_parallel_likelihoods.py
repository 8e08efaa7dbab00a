"""Rows in shards for likelihoods whose values are not integrated out: exact with one shard, or with `exact=True`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from geweke_of_features import geweke
from shards_as_sweeps import by_shards

import cavity as cv
from cavity.models.buffet.likelihoods import Detection, ExponentialGaussian, LaplaceICA, NoisyOr, PoissonGamma
from cavity.models.buffet.likelihoods.raised import raised
from cavity.models.buffet.parallel import sample_in_shards
from cavity.models.buffet.parallel.exact import exact_iteration
from cavity.models.buffet.parallel.given_values import told_apart, values_iteration
from cavity.models.buffet.parallel.synchronous import Shared
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.structured import CausedBits

BUFFET = Law((8.0, 8.0), 1.0)
FINITE = Law((8.0, 4.0), features=3)
LEARNED = {
    "noisy-or": NoisyOr((8.0, 2.0), (2.0, 4.0), (3.0, 3.0)),
    "detection": Detection((2.0, 8.0), (2.0, 8.0), (3.0, 3.0)),
    "exponential": ExponentialGaussian((4.0, 2.0), (4.0, 4.0)),
    "counts": PoissonGamma((4.0, 4.0), 1.0, (4.0, 4.0)),
}
QUICK = "detection"
NAMES = [name if name == QUICK else pytest.param(name, marks=pytest.mark.slow) for name in LEARNED]


@pytest.mark.parametrize("name", NAMES)
def test_one_shard_is_exact(name):
    sweep = by_shards(values_iteration, 1, inner=2)
    scores = geweke(sweep, LEARNED[name], BUFFET, 3, chains=300, steps=16, places=24, missing=[(0, 1)])
    assert max(abs(score) for score in scores.values()) < 4.0, scores


@pytest.mark.slow
def test_one_shard_is_exact_under_the_finite_prior_too():
    sweep = by_shards(values_iteration, 1)
    scores = geweke(sweep, LEARNED["noisy-or"], FINITE, 3, chains=1000, steps=20, places=3, missing=[(0, 1)])
    assert max(abs(score) for score in scores.values()) < 4.0, scores


@pytest.mark.parametrize("name", NAMES)
def test_shards_given_weights_leave_the_law_as_it_is(name):
    sweep = by_shards(exact_iteration, 2)
    scores = geweke(sweep, LEARNED[name], BUFFET, 4, chains=600, steps=10, places=40, missing=[(0, 1)])
    assert max(abs(score) for score in scores.values()) < 4.0, scores


def test_a_feature_born_where_another_died_is_told_from_it():
    """Of three shards: the first let the feature of place 0 go and found another there, and one in place 2; the second
    took the old one; the third found one in place 2 as well."""
    old = np.zeros((4, 2))
    old[0], old[1] = [1.0, 2.0], [3.0, 4.0]
    tables = np.repeat(old[None], 3, axis=0)
    tables[0, 0], tables[0, 2], tables[2, 2] = [5.0, 5.0], [6.0, 6.0], [7.0, 7.0]
    active = np.zeros((3, 1, 4), bool)
    active[0, 0, [0, 2]] = active[1, 0, [0, 1]] = active[2, 0, 2] = True
    # Place 0 is known, so that five features need six places.
    pad = [(0, 0), (0, 0), (0, 2)]
    active, tables = np.pad(active, pad), np.pad(tables, [(0, 0), (0, 2), (0, 0)])
    owners = jnp.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    blank = jnp.zeros(())
    with jax.enable_x64(True):
        shared = Shared(jnp.pad(old, [(0, 2), (0, 0)]), {}, blank, blank, owners, blank, jnp.bool_(True))
        given = jnp.asarray(active), jnp.asarray(tables), shared, jnp.arange(3), lambda own: own
        found, values, fits = told_apart(*given)
        shown = np.einsum("snk,kd->snd", np.asarray(found, float), np.asarray(values))
    assert fits
    before = np.einsum("snk,skd->snd", active.astype(float), tables)
    np.testing.assert_array_equal(shown, before)
    np.testing.assert_array_equal(np.asarray(found).sum(axis=(0, 1)), [1, 1, 1, 1, 1, 0])
    np.testing.assert_array_equal(values[:2], old[:2])


def tags(rows, seed=0):
    """Overlays of three reasons for eight tags each, and the reasons."""
    random = np.random.default_rng(seed)
    reasons = np.kron(np.eye(3), np.ones(8))
    has = random.random((rows, 3)) < 0.4
    values = (random.random((rows, 24)) < 1.0 - 0.98 * 0.1 ** (has @ reasons)).astype(float)
    values[::9, ::7] = np.nan
    return values, reasons


def test_shards_find_the_reasons_of_tags():
    values, reasons = tags(90)
    found = sample_in_shards(
        np.array_split(values, 3), jax.random.key(1), 5, NoisyOr((19.0, 1.0), (2.0, 8.0), (1.0, 4.0)), warmup=25,
        progress=False,
    )  # fmt: skip
    own = found["values"][0, -1]
    distances = [np.abs(own - reason).sum(axis=1).min() for reason in reasons]
    assert max(distances) <= 2.0
    assert found["quiet"].mean() == pytest.approx(0.98, abs=0.03)


def test_what_shards_cannot_do_is_told():
    given = [np.ones((3, 2))], jax.random.key(0), 2
    with pytest.raises(cv.UnsupportedError, match="LaplaceICA needs weights of rows"):
        sample_in_shards(*given, LaplaceICA())
    with pytest.raises(cv.UnsupportedError, match="RaisedNoisyOr needs more than sums"):
        sample_in_shards(*given, raised(NoisyOr()))
    with pytest.raises(cv.UnsupportedError, match="CausedBits needs more than sums"):
        sample_in_shards(*given, CausedBits((0.5, 0.5)))
    with pytest.raises(cv.ModelError, match=r"one of cavity\.models\.buffet\.likelihoods; found 'bernoulli'"):
        sample_in_shards(*given, "bernoulli")
    with pytest.raises(cv.DataError, match=r"entries 0 and 1; found 2\.0"):
        sample_in_shards([np.full((3, 2), 2.0)], *given[1:], NoisyOr())

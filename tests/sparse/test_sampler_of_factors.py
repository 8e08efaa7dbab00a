"""The host side of a sparse factor model's sampler: data, starts, places for factors that grow and shrink."""

import jax
import numpy as np
import pytest

from cavity.factors.errors import DataError, ModelError
from cavity.models.buffet.prior import harmonic
from cavity.models.sparse.data import Data, centred, held_out_mask, numbers_of, observed_of, switches_of
from cavity.models.sparse.sampler import Sampler, Walk
from cavity.models.sparse.settings import Priors, Settings, family
from cavity.models.sparse.start import bucket, padded

ROWS, SAMPLES = 12, 40
KEY = jax.random.key(5)


def planted(seed=0):
    """Three factors on four rows each."""
    random = np.random.default_rng(seed)
    loading = np.kron(np.eye(3), np.ones((4, 1))) * random.choice([-2.0, 2.0], size=(ROWS, 1))
    return loading, loading @ random.normal(size=(3, SAMPLES)) + 0.3 * random.normal(size=(ROWS, SAMPLES))


# data -----------------------------------------------------------------------------------------------------------------


def with_value(place, value):
    values = planted()[1]
    values[place] = value
    return values


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.zeros(3), "one row as"),
        (np.zeros((0, 3)), "at least one of each"),
        ([["a", "b"]], "could not be read"),
        (planted()[1] + 0j, "complex"),
        (with_value((2, 3), np.inf), "Row 2, sample 3 is infinite"),
        (with_value(4, np.nan), "Row 4 has no entry"),
        (with_value((slice(None), 6), np.nan), "Sample 6 has no entry"),
        (with_value(1, 2.5), "entries of row 1 are 2.5"),
    ],
)
def test_bad_data_are_named(values, words):
    with pytest.raises(DataError, match=words):
        Data(values)


@pytest.mark.parametrize(
    ("held_out", "words"),
    [
        (np.zeros((ROWS, SAMPLES)), "float64"),
        (np.zeros((SAMPLES, ROWS), bool), r"\(40, 12\)"),
        (np.ones((ROWS, SAMPLES), bool), "Row 3, sample 7 is held out but missing"),
    ],
)
def test_bad_masks_are_named(held_out, words):
    with pytest.raises(DataError, match=words):
        Data(with_value((3, 7), np.nan), held_out)


def test_all_held_out_is_named():
    with pytest.raises(DataError, match="nothing is left"):
        Data(planted()[1], np.ones((ROWS, SAMPLES), bool))


def test_kernels_see_zeros_where_entries_are_missing_masked_or_held_out():
    values, held_out = with_value((3, 7), np.nan), np.zeros((ROWS, SAMPLES), bool)
    held_out[0, 5] = True
    masked = np.ma.array(values, mask=np.arange(SAMPLES) == np.where(np.arange(ROWS) == 8, 2, -1)[:, None])
    found = observed_of(Data(masked, held_out), Settings())
    assert list(zip(found.row.tolist(), found.sample.tolist(), strict=True)) == [(0, 5), (3, 7), (8, 2)]
    np.testing.assert_array_equal(found.values[found.row, found.sample], 0.0)
    assert (found.values == np.nan_to_num(values)).sum() == ROWS * SAMPLES - 2


def test_centring_and_scales():
    values = with_value((3, 7), np.nan) + np.arange(ROWS)[:, None]
    for scale, sizes in (("none", None), ("overall", None), ("row", 1)):
        found = centred(values, scale)
        np.testing.assert_allclose(np.nanmean(found.values, axis=1), 0.0, atol=1e-14)
        np.testing.assert_allclose(found.mean[:, None] + found.scale[:, None] * found.values, values)
        if scale != "none":
            np.testing.assert_allclose(np.nanmean(found.values**2, axis=sizes), 1.0)
    with pytest.raises(ModelError, match="scale="):
        centred(values, "column")


def test_means_and_scales_do_not_see_what_is_held_out():
    values, held_out = planted()[1], np.zeros((ROWS, SAMPLES), bool)
    held_out[2, ::3] = True
    changed = np.where(held_out, 100.0, values)
    for scale in ("none", "overall", "row"):
        one, other = centred(values, scale, held_out), centred(changed, scale, held_out)
        np.testing.assert_array_equal(one.mean, other.mean)
        np.testing.assert_array_equal(one.scale, other.scale)
        np.testing.assert_allclose(other.mean[:, None] + other.scale[:, None] * other.values, changed)
    held_out[2] = True
    with pytest.raises(DataError, match="Row 2 is held out as a whole"):
        centred(values, held_out=held_out)


def test_a_mask_holds_out_its_share():
    mask = held_out_mask((30, 20), 0.1, KEY)
    assert mask.shape == (30, 20)
    assert mask.sum() == 60
    np.testing.assert_array_equal(mask, held_out_mask((30, 20), 0.1, KEY))
    assert (mask != held_out_mask((30, 20), 0.1, jax.random.key(6))).any()
    for share in (0.0, 1.0, -0.1, 1e-5, np.nan):
        with pytest.raises(ModelError, match="share"):
            held_out_mask((30, 20), share, KEY)


def test_known_factors_must_fit():
    data = Data(planted()[1])
    with pytest.raises(ModelError, match="12 rows"):
        Sampler(data, Settings(known=np.full((3, 1), 0.5)))
    with pytest.raises(ModelError, match="describes 2 factors"):
        Sampler(data, Settings(known=np.full((ROWS, 2), 0.5), sparsity="finite", factors=1))
    known = np.full((ROWS, 1), 0.5)
    known[0], known[1] = 0.0, 1.0
    np.testing.assert_array_equal(observed_of(data, Settings(known=known)).log_odds[0, :3], [-np.inf, np.inf, 0.0])


# starts ---------------------------------------------------------------------------------------------------------------


def test_components_find_planted_factors_and_their_rows():
    loading, values = planted()
    state = Sampler(Data(values)).init(KEY).state
    count = int(state.count)
    assert 3 <= count <= 5  # more than there are, as chains lose factors faster than they find them
    assert state.loading.shape == (16, ROWS)
    agree = np.abs(np.corrcoef(np.vstack([loading.T, state.loading[:count]]))[:3, 3:])
    np.testing.assert_array_less(0.99, agree.max(axis=1))
    # As much as principal components in excess leave of a variance of 0.09.
    np.testing.assert_allclose(np.mean(1.0 / state.noise), 0.09 * (1.0 - count / len(loading)), rtol=0.3)
    np.testing.assert_allclose(state.loading.T @ state.factor, values, atol=1.6)
    np.testing.assert_array_equal(state.loading[count:], 0.0)


def test_known_factors_start_where_they_probably_are():
    loading, values = planted()
    known = np.where(loading[:, [2]] != 0.0, 0.9, 0.05)
    state = Sampler(Data(values), Settings(known=known)).init(KEY).state
    np.testing.assert_array_equal(state.loading[0] != 0.0, known[:, 0] > 0.5)
    assert abs(np.corrcoef(state.loading[0], loading[:, 2])[0, 1]) > 0.99
    assert 3 <= int(state.count) <= 4


def test_the_prior_start_is_the_prior():
    settings = Settings(start="prior", mass=2.0, learn=frozenset(), priors=Priors(noise=(4.0, 2.0)))
    sampler = Sampler(Data(planted()[1]), settings)
    states = [sampler.init(jax.random.fold_in(KEY, i)).state for i in range(400)]
    counts = np.array([int(state.count) for state in states])
    mean = 2.0 * harmonic(ROWS)
    assert abs(counts.mean() - mean) < 4.0 * np.sqrt(mean / 400)
    ones = np.array([(state.loading != 0.0).sum() for state in states])
    assert abs(ones.mean() - 2.0 * ROWS) < 4.0 * ones.std() / 20.0
    noise = np.array([state.noise for state in states])
    assert abs(noise.mean() - 2.0) < 4.0 / np.sqrt(noise.size)
    assert sampler.init(KEY).state.loading.shape[0] >= 16


@pytest.mark.parametrize("name", ["sfa", "fa", "afa", "ppca", "fokoue", "bfrm"])
@pytest.mark.parametrize("start", ["components", "prior", "empty"])
def test_fixed_numbers_of_factors_need_no_padding(name, start):
    settings = family(name, 4, start=start)
    data = Data(planted()[1])
    state = Sampler(data, settings).init(KEY).state
    assert int(state.count) == 4
    assert state.loading.shape == (4, ROWS)
    assert state.factor.shape == (4, SAMPLES)
    assert state.element.shape == ((4, ROWS) if name == "fokoue" else (0, 0))
    assert state.openness.shape == ((4,) if name == "bfrm" else (0,))
    if start == "prior" and name in ("fa", "ppca", "afa", "fokoue"):
        assert (state.loading != 0.0).all()
    if name == "ppca":
        np.testing.assert_array_equal(state.precision, 1.0)
    if name in ("ppca", "fa"):
        assert len(set(state.precision)) == 1
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state))


def test_an_empty_start_has_no_factors():
    state = Sampler(Data(planted()[1]), Settings(start="empty")).init(KEY).state
    assert int(state.count) == 0
    assert not state.loading.any()


def test_hierarchy_of_few_rows_stays_a_probability():
    numbers = numbers_of(Settings(sparsity="hierarchical", factors=2), 4)
    assert 0.0 < numbers.hierarchy[3] < 1.0
    assert switches_of(family("bfrm", 2), Data(planted()[1])).learn == ()


# places for factors ---------------------------------------------------------------------------------------------------


def test_buckets_double():
    assert [bucket(count) for count in (0, 1, 16, 17, 32, 33, 64, 65, 200)] == [16, 16, 16, 32, 32, 64, 64, 128, 256]


@pytest.mark.parametrize("settings", [Settings(), Settings(precision="shared"), Settings(precision=4.0)])
def test_padding_comes_and_goes(settings):
    state = Sampler(Data(planted()[1]), settings).init(KEY).state
    more = padded(state, 32, settings)
    assert more.loading.shape == (32, ROWS)
    unused = more.precision[int(state.count) :]
    np.testing.assert_array_equal(unused, state.precision[0] if settings.precision == "shared" else (
        4.0 if settings.precision == 4.0 else 1.0
    ))  # fmt: skip
    for ours, theirs in zip(padded(more, 16, settings), state, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_factors_from_1_to_50_take_few_compilations_and_padding_changes_no_draw():
    """With a large mass the sampler cannot but grow: the data are few."""
    settings = Settings(learn=frozenset(), mass=60.0, start="empty", noise=1.0)
    sampler = Sampler(Data(np.random.default_rng(1).normal(size=(11, 3))), settings)
    walk, counts, repeated = sampler.init(KEY), [], 0
    for sweep in range(40):
        key = jax.random.fold_in(KEY, sweep)
        now = sampler.step(key, walk)
        if now.state.loading.shape[0] > walk.state.loading.shape[0]:  # the same sweep from a state with more places
            repeated += 1
            wide = walk._replace(state=padded(walk.state, now.state.loading.shape[0], settings))
            for ours, theirs in zip(sampler.step(key, wide).state, now.state, strict=True):
                np.testing.assert_array_equal(ours, theirs)
        walk = now
        counts.append(int(walk.state.count))
        assert not walk.state.loading[counts[-1] :].any()
        assert (walk.state.loading[: counts[-1]] != 0.0).any(axis=1).all()
        if counts[-1] > 50:
            break
    assert counts[-1] > 50
    assert repeated >= 2
    assert 1 <= sampler.compilations <= 6
    few = Walk(padded(walk.state, 64, settings)._replace(count=np.array(2)), walk.accepted, walk.proposed)
    state = few.state._replace(loading=np.where(np.arange(64)[:, None] < 2, few.state.loading, 0.0))
    assert sampler._trimmed(state).loading.shape == (16, 11)

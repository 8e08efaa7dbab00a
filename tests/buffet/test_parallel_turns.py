"""Shards that take turns: one is exact, sums are those of names, and none waits for a slow or a lost worker."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from block_images import block_images
from geweke_of_features import geweke

import cavity as cv
from cavity.models.buffet.likelihoods import LinearGaussian, NoisyOr
from cavity.models.buffet.likelihoods.linear_gaussian import Sums, of_values, sums_of
from cavity.models.buffet.parallel import Costs, asynchronous, sample_in_turns
from cavity.models.buffet.parallel.site import Known, Plan, known_given, sweeps
from cavity.models.buffet.parallel.telling import in_places, nothing, together, told_of
from cavity.models.buffet.parallel.tree import depth, neighbours, parent, side
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.samplers.state import Outcome, cleared

GIVEN = LinearGaussian(noise_precision=(4.0, 2.0), value_precision=(4.0, 4.0))


def one_shard(key, rows, state, likelihood, law):
    """Turn and root as a sweep of a state."""
    keys = jax.random.split(key, 4)
    every, places = state.active.shape
    plan = Plan(likelihood, law, 2, every, 1)
    known = Known(state.numbers, state.mass, state.concentration)
    others = Sums(jnp.zeros((places, places)), jnp.zeros(state.values.shape))
    full = likelihood.filled(keys[0], rows, state.point)
    found = sweeps(keys[1], plan, state.active, full, rows, jnp.asarray(every), others, known)
    known = known_given(keys[2], plan, found.sums, jnp.sum(found.full**2), known)
    state = state._replace(active=found.active, numbers=known.numbers, mass=known.mass)
    state = state._replace(concentration=known.concentration)
    values = of_values(found.full, found.active, known.numbers).draw(keys[3])
    return Outcome(cleared(state._replace(values=values)), found.fits, 0, 0)


def test_one_shard_is_exact():
    scores = geweke(one_shard, GIVEN, Law((8.0, 8.0), 1.0), chains=600, steps=20, places=12, missing=[(0, 1)])
    assert max(abs(score) for score in scores.values()) < 4.0, scores


def test_sums_of_several_shards_are_those_of_all_rows():
    random = np.random.default_rng(0)
    names, values = np.array([7, 2, 9, 4]), random.normal(size=(9, 3))
    active = random.random((9, 4)) < 0.5
    active[:, 3] = False
    every = []
    for rows in np.array_split(np.arange(9), 3):
        order = random.permutation(4)
        own = active[rows][:, order]
        with jax.enable_x64(True):
            every.append(told_of(names[order], sums_of(values[rows], own), np.sum(values[rows] ** 2)))
    found = together([nothing(3), *every], 3)
    np.testing.assert_array_equal(found.names, [2, 7, 9])
    assert found.square == pytest.approx(np.sum(values**2))
    sums = in_places(found, np.array([9, 2, 5, 7]), 6)
    z = active[:, [2, 1, 3, 0]].astype(float)
    np.testing.assert_allclose(sums.gram[:4, :4], z.T @ z)
    np.testing.assert_allclose(sums.cross[:4], z.T @ values)
    assert not sums.gram[4:].any()


def test_shards_are_a_full_binary_tree():
    assert [parent(number) for number in range(7)] == [None, 0, 0, 1, 1, 2, 2]
    assert neighbours(1, 7) == (0, 3, 4)
    assert neighbours(1, 4) == (0, 3)
    assert (side(1, 0, 7), side(0, 1, 7)) == ((0, 2, 5, 6), (1, 3, 4))
    assert [depth(every) for every in (1, 2, 7, 31, 127)] == [0, 1, 2, 4, 6]


def images(rows, shards, seed=0):
    """Parts, and what of them is held out."""
    values, _ = block_images(rows, seed=seed)
    held = np.random.default_rng(seed).random(values.shape) < 0.1
    return np.array_split(values, shards), np.array_split(held, shards)


def test_turns_that_are_lost_with_their_workers_change_no_draw():
    parts, _ = images(60, 3)
    found = [
        sample_in_turns(parts, jax.random.key(0), 15, window=0.0, costs=Costs(lost=lost, restart=1.0, seed=1))
        for lost in (0.0, 0.2)
    ]
    assert (found[0].lost, found[1].lost > 3) == (0, True)
    assert found[1].seconds > found[0].seconds + 3.0
    for name in ("number_of_features", "noise_precision", "mass"):
        np.testing.assert_array_equal(found[0][name], found[1][name])


@pytest.mark.parametrize("window", [None, 0.01], ids=["none", "window"])
def test_nobody_waits_for_a_slow_worker(window):
    """Turns take a millisecond or two, of one worker ten times as long; workers are lost at times too."""
    parts, held = images(60, 3)
    costs = Costs(step=1e-5, slow={2: 10.0}, lost=0.03)
    waits = sample_in_turns(parts, jax.random.key(0), 40, window=0.0, costs=costs)
    found = sample_in_turns(parts, jax.random.key(0), 40, window=window, held_out=held, costs=costs)
    assert found.turns.sum() / found.seconds > 2.0 * waits.turns.sum() / waits.seconds
    assert found.turns[2] < found.turns[:2].min()
    assert found.lost > 0
    assert np.isfinite(found.score)
    again = sample_in_turns(parts, jax.random.key(0), 40, window=window, held_out=held, costs=costs)
    np.testing.assert_array_equal(found["noise_precision"], again["noise_precision"])


@pytest.mark.slow
def test_who_does_not_wait_predicts_as_well_in_less_time():
    """All go on from the same run: from nothing chains may end with a shape in two features, whoever waits."""
    parts, held = images(240, 4)
    costs = Costs(step=1e-5, slow={3: 5.0}, lost=0.05)
    asked = {"held_out": held, "costs": costs}
    first = sample_in_turns(parts, jax.random.key(0), 150, window=0.0, **asked)
    waits = sample_in_turns(parts, jax.random.key(1), 200, window=0.0, start=first, **asked)
    found = sample_in_turns(parts, jax.random.key(2), 400, start=first, **asked)
    other = sample_in_turns(parts, jax.random.key(3), 100, window=0.02, start=first, **asked)
    assert found.turns.sum() / found.seconds > 1.5 * waits.turns.sum() / waits.seconds
    assert found.score == pytest.approx(waits.score, abs=0.01)
    assert other.score == pytest.approx(waits.score, abs=0.01)


def test_a_run_goes_on_from_another():
    parts, _ = images(60, 3)
    first = sample_in_turns(parts, jax.random.key(0), 15, window=0.0, costs=Costs())
    more = sample_in_turns(parts, jax.random.key(1), 1, start=first, costs=Costs())
    assert abs(more["number_of_features"][0] - first["number_of_features"][-1]) < 6
    assert more["noise_precision"][0] == pytest.approx(first["noise_precision"][-1], rel=0.3)


def test_a_run_goes_on_with_other_shards():
    """Rows keep their features, whose sums are the same however rows are dealt; names are not given twice."""
    parts, held = images(60, 3)
    parts[1][3, 4] = np.nan
    first = sample_in_turns(parts, jax.random.key(0), 15, window=0.0, held_out=held, costs=Costs())
    for number in (1, 4):
        others, also = np.array_split(np.concatenate(parts), number), np.array_split(np.concatenate(held), number)
        sites = asynchronous._after(asynchronous._sites(others, also), first)
        told = [together([asynchronous._told(site) for site in of], 36) for of in (first.sites, sites)]
        np.testing.assert_array_equal(told[1].names, told[0].names)
        np.testing.assert_allclose(told[1].cross, told[0].cross)
        assert all(site.made * number > told[0].names.max() for site in sites)
    more = sample_in_turns(others, jax.random.key(1), 1, start=first, held_out=also, costs=Costs())
    assert more["noise_precision"][0] == pytest.approx(first["noise_precision"][-1], rel=0.3)
    with pytest.raises(cv.DataError, match="not the 60 of these, in their order"):
        sample_in_turns(others[::-1], jax.random.key(1), 1, start=first, costs=Costs())


@pytest.mark.parametrize(("later", "makers"), [(3, {0}), (0, {0, 1, 2})], ids=["in turn", "control: at once"])
def test_from_nothing_features_are_found_by_one_shard_first(monkeypatch, later, makers):
    """The name of a feature tells which shard made it."""
    monkeypatch.setattr(asynchronous, "LATER", later)
    parts, _ = images(60, 3)
    found = sample_in_turns(parts, jax.random.key(0), 3, window=0.0, costs=Costs())
    names = np.concatenate([site.names for site in found.sites])
    assert set(names % 3) == makers
    if later:  # and those of others are among them
        assert {len(site.names) > 0 for site in found.sites} == {True}
        more = sample_in_turns(parts, jax.random.key(0), 15, window=0.0, costs=Costs())
        assert more["noise_precision"][-5:].mean() == pytest.approx(4.0, rel=0.3)


def test_a_run_that_was_stopped_goes_on_as_it_was(tmp_path):
    """Where all wait for each other the draws are the same; where nobody does the root goes on counting."""
    parts, held = images(60, 3)
    parts[0][0, 0] = np.nan
    path, key, asked = tmp_path / "turns", jax.random.key(0), {"held_out": held, "costs": Costs(), "warmup": 3}
    whole = sample_in_turns(parts, key, 12, window=0.0, **asked)
    first = sample_in_turns(parts, key, 5, window=0.0, checkpoint=path, **asked)
    found = sample_in_turns(parts, key, 12, window=0.0, checkpoint=path, every=0.0, **asked)
    for name in whole.draws:
        np.testing.assert_array_equal(found[name], whole[name])
    np.testing.assert_array_equal(first["mass"], whole["mass"][:5])
    np.testing.assert_array_equal(found.turns, whole.turns)
    assert found.score == whole.score
    again = sample_in_turns(parts, key, 4, window=0.0, checkpoint=path, **asked)
    np.testing.assert_array_equal(again["mass"], whole["mass"][:4])
    with pytest.raises(cv.DataError, match="of a run with other data"):
        sample_in_turns(parts, jax.random.key(1), 5, window=0.0, checkpoint=path, **asked)
    with pytest.raises(cv.DataError, match="of a run with other data"):
        sample_in_turns(parts, key, 5, checkpoint=path, **asked)
    other = tmp_path / "not waiting"
    first = sample_in_turns(parts, key, 5, checkpoint=other, **asked)
    found = sample_in_turns(parts, key, 12, checkpoint=other, **asked)
    np.testing.assert_array_equal(found["mass"][:5], first["mass"])
    assert found.turns[0] == first.turns[0] + 7
    assert np.all(np.diff(found["clock"]) >= 0.0)
    path.write_bytes(other.read_bytes()[:-9])
    with pytest.raises(cv.DataError, match="is damaged or is none"):
        sample_in_turns(parts, key, 5, window=0.0, checkpoint=path, **asked)


@pytest.mark.parametrize(
    "workers",
    [cv.workers.here(), cv.workers.simulated(1, workers=2), pytest.param(2, marks=pytest.mark.slow)],
    ids=["here", "simulated", "processes"],
)
def test_any_pool_does_the_turns(workers):
    parts, held = images(60, 3)
    found = sample_in_turns(parts, jax.random.key(0), 30, warmup=20, held_out=held, workers=workers)
    assert found["noise_precision"].shape == (30,)
    assert found["noise_precision"][-1] > 2.0
    assert found.turns.sum() >= 50
    assert np.all(np.diff(found["clock"]) >= 0.0)


def test_what_is_wrong_with_turns_is_told():
    parts, key = [np.ones((3, 2))], jax.random.key(0)
    with pytest.raises(cv.ModelError, match="draws= is a whole number"):
        sample_in_turns(parts, key, 0)
    with pytest.raises(cv.ModelError, match="window= is None, or seconds"):
        sample_in_turns(parts, key, 1, window=-1.0)
    with pytest.raises(cv.ModelError, match="not both"):
        sample_in_turns(parts, key, 1, workers=2, costs=Costs())
    with pytest.raises(cv.UnsupportedError, match="found NoisyOr"):
        sample_in_turns(parts, key, 1, NoisyOr())
    with pytest.raises(cv.UnsupportedError, match="for sample_in_shards"):
        sample_in_turns(parts, key, 1, law=Law(features=3))
    with pytest.raises(cv.DataError, match="held_out= of shard 0 holds booleans of shape"):
        sample_in_turns(parts, key, 1, held_out=[np.zeros((2, 2), bool)])
    with pytest.raises(cv.ModelError, match="probability below 1"):
        Costs(lost=1.0)
    with pytest.raises(cv.ModelError, match="seconds and factors"):
        Costs(step=-1.0)
    with pytest.raises(cv.LostError, match="was lost 4 times with its worker"):
        sample_in_turns(parts, key, 1, costs=Costs(lost=0.99))
    with pytest.raises(cv.DataError, match="start= is of other shards"):
        sample_in_turns(parts, key, 1, costs=Costs(), start=sample_in_turns([np.zeros((3, 2))], key, 1, costs=Costs()))

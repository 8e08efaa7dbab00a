"""Rows in shards: a sweep is that of all rows, and draws are the same for any number of processes."""

import json
import os
import pathlib
import subprocess
import sys

import factors_by_processes
import jax
import numpy as np
import pytest

import cavity as cv
from cavity.engine.support.machine_code import Kernel
from cavity.models.buffet.parallel.chains import mesh_of
from cavity.models.sparse import Settings, family
from cavity.models.sparse.data import Data, numbers_of, observed_of, switches_of
from cavity.models.sparse.kernels import collapsed, parallel
from cavity.models.sparse.sampler import Sampler
from cavity.models.sparse.shards import _Sampler, sample_in_shards, shards_of

COMMON = pathlib.Path(__file__).resolve().parent


def drawn(rows=19, samples=12, missing=0.1):
    random = np.random.default_rng(0)
    loading = random.normal(size=(rows, 3)) * (random.random((rows, 3)) < 0.5)
    values = loading @ random.normal(size=(3, samples)) + 0.5 * random.normal(size=(rows, samples))
    values[random.random(values.shape) < missing] = np.nan
    return values


@pytest.mark.parametrize(
    ("settings", "integrated"),
    [
        (family("nsfa"), False),
        (family("nsfa", slab="laplace", learn={"mass", "noise_rate"}), True),
        pytest.param(family("bfrm", 3, scores="dirichlet"), True, marks=pytest.mark.slow),
    ],
    ids=["buffet", "integrated", "dirichlet"],
)
def test_a_sweep_of_shards_is_the_sweep_of_all_rows(settings, integrated):
    values = drawn()
    shards = shards_of(np.array_split(values, 3))
    by_shards = _Sampler(shards, settings, integrated, mesh_of(None, shards))
    sampler = Sampler(Data(values), settings)
    state = sampler.init(jax.random.key(1)).state
    state = state._replace(missing=np.linspace(-1.0, 1.0, len(state.missing)))
    full = np.where(np.isnan(values), 0.0, values)
    full[np.isnan(values)] = state.missing
    padded = np.zeros(shards.values.shape)
    for one, rows in zip(padded, np.array_split(full, 3), strict=True):
        one[: len(rows)] = rows
    switches, numbers = switches_of(settings, Data(values)), numbers_of(settings, len(values))
    way = collapsed if integrated else parallel
    kernel = Kernel(lambda key, state, observed, bound: way(key, state, observed, numbers, bound, switches))
    walk = by_shards.init(jax.random.key(2))._replace(state=state._replace(missing=np.zeros(0)), full=padded)
    for key in jax.random.split(jax.random.key(3), 3):
        state = kernel(key, state, observed_of(Data(values), settings), state.count).state
        walk = by_shards.step(key, walk)
        for name in ("count", "loading", "factor", "precision", "element", "openness", "noise", "mass", "noise_rate"):
            np.testing.assert_allclose(getattr(walk.state, name), getattr(state, name), rtol=1e-7, atol=1e-9)
        now = np.concatenate([one[:count] for one, count in zip(walk.full, shards.counts, strict=True)])
        np.testing.assert_allclose(now[np.isnan(values)], state.missing, rtol=1e-7, atol=1e-9)
        np.testing.assert_array_equal(now[~np.isnan(values)], values[~np.isnan(values)])


def test_factors_are_found_and_a_run_goes_on_from_its_checkpoint(tmp_path):
    random = np.random.default_rng(1)
    loading = random.normal(size=(40, 3)) * (random.random((40, 3)) < 0.4)
    values = loading @ random.normal(size=(3, 60)) + 0.3 * random.normal(size=(40, 60))
    parts, path = np.array_split(values, 4), tmp_path / "chain"
    asked = {"settings": family("nsfa"), "progress": False}
    whole = sample_in_shards(parts, jax.random.key(2), 30, **asked)
    first = sample_in_shards(parts, jax.random.key(2), 10, checkpoint=path, **asked)
    longer = sample_in_shards(parts, jax.random.key(2), 30, checkpoint=path, **asked)
    np.testing.assert_array_equal(longer["noise"], whole["noise"])
    np.testing.assert_array_equal(first["noise"], whole["noise"][:, :10])
    assert np.median(whole["number_of_factors"][0, 10:]) == 3.0
    expected = (1.0 + 30.0) / (1.0 + 30.0 * 0.09)  # with its prior Gamma(1, 1)
    assert whole["noise"][0, 10:].mean() == pytest.approx(expected, rel=0.1)


@pytest.mark.slow
def test_draws_are_the_same_for_one_and_two_processes(tmp_path):
    for number, part in enumerate(np.array_split(drawn(30), factors_by_processes.SHARDS)):
        np.save(tmp_path / f"part-{number}.npy", part)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    command = [sys.executable, "-m", "cavity", "launch", "-n", "2"]
    command += [str(COMMON / "factors_by_processes.py"), str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stderr[-3000:]
    factors_by_processes.main(str(tmp_path))
    told = [json.loads((tmp_path / f"found-{number}.json").read_text()) for number in (1, 2)]
    assert told[0] == told[1]


def test_what_is_wrong_is_told():
    parts, key = [np.ones((3, 2)), np.ones((2, 2))], jax.random.key(0)
    with pytest.raises(cv.ModelError, match="without known factors"):
        sample_in_shards(parts, key, 2, Settings(known=np.ones((5, 1))))
    with pytest.raises(cv.ModelError, match="without known factors"):
        sample_in_shards(parts, key, 2, "nsfa")
    with pytest.raises(cv.ModelError, match="start from the principal components"):
        sample_in_shards(parts, key, 2, Settings(start="empty"))
    with pytest.raises(cv.ModelError, match="all rows of the"):
        sample_in_shards(parts, key, 2, Settings(shared=2))
    with pytest.raises(cv.ModelError, match="integrated="):
        sample_in_shards(parts, key, 2, integrated=1)
    with pytest.raises(cv.DataError, match="same dimensions"):
        sample_in_shards([np.ones((3, 2)), np.ones((3, 3))], key, 2)

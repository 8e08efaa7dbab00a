"""Chains by workers: the draws are those of one process, whichever workers there are and whichever are lost."""

from __future__ import annotations

import sys

import dealt_models
import jax
import numpy as np
import pytest

import cavity as cv
from cavity.compiler.portable import packed, unpacked
from cavity.engine.mcmc.run import run
from cavity.engine.moves import search
from cavity.models.sparse.chains import sample_posterior as factors_of
from cavity.models.trees.mcmc import sample_posterior as trees_of

SIMULATED = {f"simulated {seed}": cv.workers.simulated(seed) for seed in (1, 7, 31)}


@pytest.fixture(scope="module")
def alone():
    m, data, sizes = dealt_models.logistic(40)
    return m, data, cv.sample(m, data, 60, 3, seed=5, warmup=20, sizes=sizes)


@pytest.mark.parametrize("pool", {"here": cv.workers.here(), **SIMULATED}.items(), ids=lambda item: item[0])
def test_draws_are_those_of_one_process(alone, pool):
    m, data, expected = alone
    found = cv.sample(m, data, 60, 3, seed=5, warmup=20, workers=pool[1])
    np.testing.assert_allclose(found["weight"], expected["weight"], rtol=1e-9, atol=1e-9)
    assert found.warmup["weight"].shape == (3, 20, 3)


def test_processes_have_the_draws_of_jobs_done_here(alone):
    m, data, _ = alone
    here = cv.sample(m, data, 60, 3, seed=5, warmup=20, workers=cv.workers.here())
    two = cv.sample(m, data, 60, 3, seed=5, warmup=20, workers=2)
    np.testing.assert_array_equal(two["weight"], here["weight"])


def test_chains_begin_at_a_posterior_by_workers_too(alone):
    m, data, _ = alone
    start = cv.infer(m, data)
    one, other = (
        cv.sample(m, data, 5, 2, seed=1, warmup=1, start=start, workers=pool) for pool in (None, cv.workers.here())
    )
    np.testing.assert_allclose(one["weight"], other["weight"], rtol=1e-9)


def test_each_chain_has_a_checkpoint_and_goes_on_from_it(alone, tmp_path):
    m, data, expected = alone
    asked = {"seed": 5, "warmup": 20, "workers": cv.workers.here(), "checkpoint": tmp_path / "run"}
    cv.sample(m, data, 10, 3, **asked)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run-0", "run-1", "run-2"]
    found = cv.sample(m, data, 60, 3, **asked)
    np.testing.assert_allclose(found["weight"], expected["weight"], rtol=1e-9, atol=1e-9)
    (tmp_path / "run-1").rename(tmp_path / "run-0")
    with pytest.raises(cv.DataError, match="another number of its chain"):
        cv.sample(m, data, 60, 3, **asked)


def test_what_is_wrong_is_said_before_a_worker_starts(alone, tmp_path):
    m, data, _ = alone

    def never():
        raise AssertionError("a pool was made")

    with pytest.raises(cv.ModelError, match="draws="):
        cv.sample(m, data, 0, workers=never)
    with pytest.raises(cv.DataError, match="no folder"):
        cv.sample(m, data, 10, warmup=1, workers=never, checkpoint=tmp_path / "none" / "run")
    with pytest.raises(cv.ModelError, match="is the path of a file; found 3"):
        cv.sample(m, data, 10, warmup=1, workers=never, checkpoint=3)  # pyright: ignore
    with pytest.raises(cv.ModelError, match="workers="):
        cv.sample(m, data, 10, warmup=1, workers=-1)
    with pytest.raises(cv.ModelError, match="which is no pool"):
        cv.sample(m, data, 10, warmup=1, workers=lambda: 3)  # pyright: ignore
    with pytest.raises(cv.ModelError, match="found one that was made"):
        cv.sample(m, data, 10, warmup=1, workers=cv.workers.here()())  # pyright: ignore


ASKS = {
    "sample": lambda **asked: cv.sample(*dealt_models.coin(9)[:2], **asked),
    "evidence": lambda **asked: cv.evidence(*dealt_models.coin(9)[:2], **asked),
    "search": lambda **asked: cv.search(*clusters(), moves={"z": relabels()}, max_seconds=1.0, **asked),
}


@pytest.mark.parametrize("call", ASKS)
@pytest.mark.parametrize("asked", [{"workers": 0}, {"collapse": "p"}, {"collapse": 3}, {"collapse": iter(["p"])}])
def test_what_is_no_number_and_no_list_is_told_by_each_call(call, asked):
    with pytest.raises(cv.ModelError, match=f"{next(iter(asked))}="):
        ASKS[call](**asked)


@pytest.mark.parametrize("call", ["sample", "search"])
@pytest.mark.parametrize("path", ["", "runs/", "."])
def test_a_checkpoint_is_a_file(call, path):
    for own in ({}, {"workers": cv.workers.here()}):
        with pytest.raises(cv.ModelError, match="is the path of a file"):
            ASKS[call](checkpoint=path, **own)


def test_numbers_of_numpy_count_workers(alone):
    m, data, _ = alone
    assert cv.sample(m, data, 2, 1, warmup=1, workers=np.int64(1))["weight"].shape[1] == 2


def clusters():
    m = cv.Model("clusters")
    row = m.plate("row")
    component = m.plate("component", 5)
    z = m.input("z", cv.index(component), plates=row)
    centre = m.random("centre", cv.gaussian(0.0, sd=3.0), plates=component)
    m.random("y", cv.gaussian(centre[z], sd=0.7), plates=row)
    return m, {"y": np.array([-2.0, -1.9, 0.1, 2.2, 2.0])}


def relabels():
    return cv.moves.relabels(4, cv.moves.chinese_restaurant(0.8))


@pytest.mark.parametrize("pool", [cv.workers.simulated(7), 2], ids=["simulated", "two"])
def test_a_search_by_workers_finds_what_one_process_does(pool):
    m, data = clusters()
    moves = {"z": relabels()}
    asked = {"starts": 3, "sweeps": 20, "collapse": ["centre"], "seed": 2}
    one = cv.search(m, data, moves, 60.0, progress=False, **asked)
    other = cv.search(m, data, moves, 60.0, progress=False, workers=pool, **asked)
    assert other.trace.shape == one.trace.shape
    np.testing.assert_allclose(other.trace, one.trace, rtol=1e-9)
    np.testing.assert_array_equal(other["z"], one["z"])
    assert other.sweeps == 20


def test_starts_that_end_at_different_times_keep_their_traces(monkeypatch):
    m, data = clusters()
    with jax.enable_x64(True):
        ready = search._prepared(search._Call(m, data, None, {"z": relabels()}, 0, ["centre"], None))

    def apart(make, arguments, key, draws, *, workers, **asked):
        return [
            run(search._kernel(ready, search._Clock(60.0, None)), key, n, chains=1, first=k)
            for k, n in enumerate((3, 1))
        ]

    monkeypatch.setattr(search, "each_apart", apart)
    found = cv.search(m, data, {"z": relabels()}, 60.0, starts=2, workers=2, collapse=["centre"])
    assert found.trace.shape == (3, 2)
    np.testing.assert_array_equal(np.isnan(found.trace), [[False, False], [False, True], [False, True]])
    assert found.score >= np.nanmax(found.trace)


def test_moves_travel_without_cloudpickle(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    move = relabels()
    assert unpacked(packed(move, "A move")).times == move.times


def test_trees_by_workers():
    data = np.random.default_rng(0).normal(size=(8, 2)).cumsum(0)
    key = jax.random.key(3)
    one = trees_of(data, key, 5, chains=2, warmup=2)
    other = trees_of(data, key, 5, chains=2, warmup=2, workers=cv.workers.simulated(1))
    np.testing.assert_array_equal(other.chains["parent"], one.chains["parent"])
    np.testing.assert_array_equal(other.chains["variance"], one.chains["variance"])
    np.testing.assert_array_equal(other.tree(1, 4).depth, one.tree(1, 4).depth)


def test_factors_by_workers():
    random = np.random.default_rng(1)
    data = random.normal(size=(5, 2)) @ random.normal(size=(2, 30)) + 0.1 * random.normal(size=(5, 30))
    key = jax.random.key(3)
    one = factors_of(data, key, 6, chains=2, warmup=2, together=False)
    other = factors_of(data, key, 6, chains=2, warmup=2, workers=cv.workers.simulated(1))
    np.testing.assert_array_equal(other["log_likelihood"], one["log_likelihood"])
    np.testing.assert_array_equal(other.loading(1, 5), one.loading(1, 5))
    np.testing.assert_array_equal(other.summary.number_of_factors, one.summary.number_of_factors)

"""Workers: answers do not depend on how many there are, nor on which were lost, late, or asked twice."""

from __future__ import annotations

import os

import dealt_models
import numpy as np
import pytest
import workers_jobs

import cavity as cv
from cavity.compiler.portable import packed, unpacked
from cavity.engine.cluster import parcels
from cavity.engine.cluster.parcels import Parcel
from cavity.engine.cluster.workers import gathered, pool_of

POOLS = {
    "here": cv.workers.here(),
    **{f"simulated {seed}": cv.workers.simulated(seed) for seed in (1, 7, 31)},
    "many are lost": cv.workers.simulated(5, lost=0.5),
    "slow messages": cv.workers.simulated(3, delay=50.0, workers=3),
    "one": 1,
    "three": 3,
}


@pytest.mark.parametrize("pool", POOLS)
def test_answers_are_those_of_a_loop(pool):
    found = cv.workers.mapped(workers_jobs.square, range(9), workers=POOLS[pool], retries=20)
    assert found == [i * i for i in range(9)]


@pytest.mark.parametrize("pool", ["here", "simulated 7", "three"])
def test_the_first_problem_in_order_is_raised(pool):
    with pytest.raises(ZeroDivisionError) as problem:
        cv.workers.mapped(workers_jobs.inverse, [1, 0, 2, 0], workers=POOLS[pool])
    assert problem.value.__notes__ == ["in job 1 of 4"]


def test_a_worker_that_dies_is_replaced_and_its_job_done_again(tmp_path):
    jobs = [(i, str(tmp_path / "died")) for i in range(5)]
    assert cv.workers.mapped(workers_jobs.die_once, jobs, workers=2) == list(range(5))
    assert os.path.exists(jobs[0][1])


def test_a_job_that_always_kills_its_worker_is_named():
    with pytest.raises(cv.LostError, match=r"Job 1 of 3 was lost 3 times .* killed by signal 9"):
        cv.workers.mapped(workers_jobs.die, [0, 1, 0], workers=2, retries=2)


def test_what_a_job_prints_does_not_mix_with_its_answer(capfd):
    assert cv.workers.mapped(workers_jobs.say, ["a", "b"], workers=2) == ["a", "b"]
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("workers", [0, True, "two"])
def test_no_number_of_workers(workers):
    with pytest.raises(cv.ModelError, match="workers= is a number of processes"):
        cv.workers.mapped(workers_jobs.square, [1], workers=workers)


def regression(rows, seed):
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 2))
    return {"x": x, "y": x @ [1.0, -1.0] + random.logistic(size=rows) > 0}


@pytest.mark.parametrize("pool", ["here", "simulated 1", "simulated 7", "simulated 31", "three"])
def test_many_data_sets_have_the_answers_of_calls(pool):
    program = cv.compile(dealt_models.logistic(columns=2)[0], observed=["y"], method="ep")
    datas = [regression(20 + 7 * i, i) for i in range(4)]
    found = program.map(datas, workers=POOLS[pool], retries=20)
    assert len(found) == 4
    for data, posterior in zip(datas, found, strict=True):
        own = program(data)
        assert posterior.log_evidence == pytest.approx(own.log_evidence, rel=1e-13)
        np.testing.assert_allclose(posterior["weight"].mean, own["weight"].mean, rtol=1e-12)
        assert posterior.loo().total == pytest.approx(own.loo().total, rel=1e-10)


def test_a_bad_data_set_is_named_before_any_worker_starts():
    program = cv.compile(dealt_models.logistic(columns=2)[0], observed=["y"])
    with pytest.raises(cv.DataError) as problem:
        program.map([regression(9, 0), {"x": np.zeros((3, 3)), "y": [1, 0, 1]}], workers=1)
    assert problem.value.__notes__ == ["in data set 1"]


def test_models_are_the_same_elsewhere():
    """What stands in a module of the package goes by its name; arrays of JAX keep their digits."""
    import jax
    import jax.numpy as jnp

    for make, options, _ in dealt_models.CASES.values():
        model, data, more = make()
        again = unpacked(packed(model, "the model"))
        assert repr(again) == repr(model)
        one, other = (cv.infer(m, data, **{**options, "accuracy": "fast"}, **more) for m in (model, again))
        assert one.log_evidence == other.log_evidence
    with jax.enable_x64(True):
        data = packed(jnp.asarray(1.0) / 3.0, "a number")
    assert unpacked(data) == 1.0 / 3.0


class Counted:
    """Here, and how many bytes each job had."""

    def __init__(self):
        self.pool, self.bytes = cv.workers.here()(), []
        self.workers, self.wait, self.close = self.pool.workers, self.pool.wait, self.pool.close

    def submit(self, number, job):
        self.bytes.append(len(job))
        self.pool.submit(number, job)


def test_what_jobs_have_in_common_is_sent_once():
    parcels._MADE.clear()  # of an earlier run in this process
    parcel = Parcel((workers_jobs.adds, (np.ones(100_000),)), "data")
    pool = Counted()
    found = gathered([(workers_jobs.of_parcel, (parcel, k)) for k in range(6)], pool)
    assert found == [100_000.0 + k for k in range(6)]
    assert sum(size > 100_000 for size in pool.bytes) == 1
    assert sum(pool.bytes) < 1.1 * 8 * 100_000


@pytest.mark.parametrize("pool", [2, cv.workers.simulated(0, workers=3)])
def test_every_worker_has_what_jobs_have_in_common(pool):
    parcel = Parcel((workers_jobs.adds, (np.ones(10),)), "data")
    assert gathered([(workers_jobs.of_parcel, (parcel, k)) for k in range(9)], pool_of(pool, 9)) == [
        10.0 + k for k in range(9)
    ]

"""Workers of Ray, where it is installed (extra `ray`)."""

from __future__ import annotations

import os

import dealt_models
import numpy as np
import pytest
import workers_jobs

import cavity as cv

ray = pytest.importorskip("ray", reason="Ray is an extra")
pytestmark = pytest.mark.filterwarnings("ignore:os.fork")  # Ray starts its processes so


@pytest.fixture(scope="module", autouse=True)
def cluster():
    here = {
        "PYTHONPATH": os.pathsep.join(
            [os.path.dirname(dealt_models.__file__), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        )
    }
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": here})
    yield
    ray.shutdown()


def test_answers_are_those_of_a_loop():
    assert cv.workers.mapped(workers_jobs.square, range(7), workers=cv.workers.ray(2)) == [i * i for i in range(7)]


def test_an_actor_that_is_killed_is_replaced(tmp_path):
    jobs = [(number, str(tmp_path / "killed")) for number in range(4)]
    assert cv.workers.mapped(workers_jobs.die_once, jobs, workers=cv.workers.ray(2)) == [0, 1, 2, 3]
    assert os.path.exists(jobs[0][1])


def test_chains_of_ray_have_the_draws_of_jobs_done_here():
    m, data, sizes = dealt_models.logistic(40)
    here, far = (
        cv.sample(m, data, 20, 2, warmup=5, sizes=sizes, workers=pool)
        for pool in (cv.workers.here(), cv.workers.ray(2))
    )
    np.testing.assert_array_equal(far["weight"], here["weight"])

"""Forks, new processes and threads: an inference works there, or is refused with a sentence; nothing waits for ever."""

import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
import travelling

import cavity as cv

PATIENCE = 300.0  # seconds: a child that hangs is seen as one, on any machine
forks = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no forks here")
warns = pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning", "ignore:.*fork:DeprecationWarning")


def in_a_fork(function, *arguments):
    """What the function returns in a forked child; None where that gives no answer."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=lambda: there.send(function(*arguments)))
    child.start()
    try:
        return here.recv() if here.poll(PATIENCE) else None
    finally:
        child.kill()
        child.join()


@pytest.fixture(scope="module")
def wanted():
    return travelling.evidence("compile")  # so that JAX has started here


@forks
@warns
def test_machine_code_in_a_forked_child_is_refused(wanted):
    for told in (in_a_fork(travelling.evidence, "compile"), in_a_fork(travelling.chain, 0)):
        assert told.startswith("UnsupportedError")
        assert "forked" in told
        assert "spawn" in told


@forks
@warns
def test_what_numpy_runs_works_in_a_forked_child(wanted):
    np.testing.assert_allclose(in_a_fork(travelling.evidence, "interpret"), wanted, rtol=1e-12)


@forks
@warns
def test_the_parent_of_a_fork_goes_on(wanted):
    in_a_fork(travelling.evidence, "interpret")
    np.testing.assert_allclose(travelling.evidence("compile"), wanted, rtol=1e-12)


def test_a_new_process_infers_and_reads_a_posterior_that_was_sent(wanted):
    posterior = cv.infer(travelling.model(), travelling.DATA)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        np.testing.assert_allclose(pool.submit(travelling.evidence, "compile").result(), wanted, rtol=1e-12)
        assert pool.submit(travelling.mean_of, posterior).result() == float(posterior["a"].mean)


def test_threads_infer_at_once(wanted):
    begin = threading.Barrier(4)

    def infer(number):
        begin.wait()
        return travelling.evidence(("compile", "interpret")[number % 2])

    with ThreadPoolExecutor(4) as pool:
        np.testing.assert_allclose(list(pool.map(infer, range(4))), wanted, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_joblib_has_processes_that_infer(wanted):
    joblib = pytest.importorskip("joblib")
    posterior = cv.infer(travelling.model(), travelling.DATA)
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(travelling.mean_of)(posterior) for _ in range(2))
    assert found == [float(posterior["a"].mean)] * 2


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_dask_has_processes_that_infer(wanted):
    dask = pytest.importorskip("dask")
    posterior = cv.infer(travelling.model(), travelling.DATA)
    found = dask.compute(dask.delayed(travelling.mean_of)(posterior), scheduler="processes", num_workers=1)
    assert found == (float(posterior["a"].mean),)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_dask_has_threads_that_infer(wanted):
    dask = pytest.importorskip("dask")
    posterior = cv.infer(travelling.model(), travelling.DATA)
    jobs = [dask.delayed(travelling.evidence)("interpret"), dask.delayed(travelling.mean_of)(posterior)]
    found = dask.compute(*jobs, scheduler="threads", num_workers=2)
    np.testing.assert_allclose(found, [wanted, float(posterior["a"].mean)], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::ResourceWarning")
def test_models_and_posteriors_go_to_a_cluster_of_dask_and_come_back(wanted):
    distributed = pytest.importorskip("distributed")
    posterior = cv.infer(travelling.model(), travelling.DATA)
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    )
    try:
        with distributed.Client(cluster, timeout=60) as client:
            jobs = [
                client.submit(travelling.mean_of, posterior),
                client.submit(travelling.log_evidence_of, travelling.model(), travelling.DATA),
                client.submit(travelling.posterior_of, travelling.model(), travelling.DATA),
            ]
            mean, evidence, again = (job.result(timeout=PATIENCE) for job in jobs)
    finally:
        cluster.close(timeout=30)
    assert mean == float(posterior["a"].mean)
    np.testing.assert_allclose(evidence, wanted, rtol=1e-12)
    np.testing.assert_allclose(again["a"].mean, posterior["a"].mean, rtol=1e-12)

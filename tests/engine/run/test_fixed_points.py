"""The fixed points that several starts met: distinct ones, best first, each a posterior of its own."""

import dataclasses

import numpy as np
import pytest
from scipy.special import logsumexp

import cavity as cv
from cavity.engine.run.fixed_points import Restart

ROWS = np.array([-6.1, -5.8, -6.4, 0.1, 0.3, -0.2, 5.9, 6.2, 6.1, 5.7])
NOISE, PRIOR, CLASSES = 0.3, 25.0, 3


def mixture():
    m = cv.Model("three means")
    k, n = m.plate("k", CLASSES), m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, variance=PRIOR), plates=k)
    z = m.random("z", cv.categorical(np.full(CLASSES, 1.0 / CLASSES)), plates=n)
    m.random("x", cv.gaussian(mean[z], variance=NOISE))
    return m


@pytest.fixture(scope="module")
def several():
    return cv.infer(mixture(), {"x": ROWS}, restarts=12, accuracy="fast", method="vmp", tolerance=1e-10, seed=2)


def test_every_mode_is_a_fixed_point_of_updates_written_anew(several):
    modes = several.all_modes()
    assert len(modes) == len(several.restarts) > 1
    for mode, record in zip(modes, several.restarts, strict=True):
        m, v = mode["mean"].mean, mode["mean"].variance
        logs = -0.5 * ((ROWS[:, None] - m) ** 2 + v) / NOISE - 0.5 * np.log(2.0 * np.pi * NOISE) - np.log(CLASSES)
        share = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        precision = 1.0 / PRIOR + share.sum(0) / NOISE
        np.testing.assert_allclose(v, 1.0 / precision, rtol=1e-6)
        np.testing.assert_allclose(m, (share * ROWS[:, None]).sum(0) / NOISE / precision, atol=1e-6)
        divergence = 0.5 * np.sum((v + m**2) / PRIOR - 1.0 - np.log(v / PRIOR))
        assert mode.log_evidence == pytest.approx(logsumexp(logs, axis=1).sum() - divergence, abs=1e-7)
        assert record == Restart(mode.log_evidence, mode.converged, mode.iterations, record.starts)


def test_records_are_of_distinct_points_best_first(several):
    records = several.restarts
    evidence = [record.log_evidence for record in records]
    assert evidence == sorted(evidence, reverse=True)
    assert records[0].log_evidence == several.log_evidence == several.all_modes()[0].log_evidence
    assert sum(record.starts for record in records) == 12 == len(np.asarray(records))
    assert np.max(records) == several.log_evidence  # as an array: by start
    assert records[0].starts > 1  # classes in another order are the same point
    found = np.array([np.sort(mode["mean"].mean) for mode in several.all_modes()])
    apart = np.abs(found[:, None] - found).max(-1)
    assert np.all(apart[~np.eye(len(found), dtype=bool)] > 0.1)
    assert len(several.result.modes) == len(records)  # and no state of the others is kept
    with pytest.raises(dataclasses.FrozenInstanceError):
        records[0].starts = 3


def test_every_mode_answers_as_a_posterior(several):
    worst = several.all_modes()[-1]
    assert worst.predict({}, sizes={"n": 2})["x"].mean.shape == (2,)
    again = cv.infer(mixture(), {"x": ROWS}, start=worst, accuracy="fast", method="vmp", tolerance=1e-8)
    assert again.log_evidence == pytest.approx(worst.log_evidence, abs=1e-7)
    assert again.iterations < 10
    assert worst.all_modes()[0].log_evidence == several.log_evidence
    assert f"number {len(several.restarts)}, from the best" in worst.diagnosis
    assert worst.verdict.level == "poor"
    assert "all_modes()[0]" in str(worst.verdict)


def test_files_have_the_records_and_not_the_states(several, tmp_path):
    several.all_modes()[1].save(tmp_path / "second")
    for model in (mixture(), None):
        loaded = cv.load(tmp_path / "second", *([model] if model else []))
        assert list(loaded.restarts) == list(several.restarts)
        np.testing.assert_array_equal(np.asarray(loaded.restarts), np.asarray(several.restarts))
        assert "number 2, from the best" in loaded.diagnosis
        with pytest.raises(cv.UnsupportedError):
            loaded.all_modes()


def test_expectation_propagation_has_several_too():
    found = cv.infer(mixture(), {"x": ROWS}, restarts=8, accuracy="fast", method="ep", seed=0)
    modes = found.all_modes()
    assert len(modes) == len(found.restarts)
    ended = [record.converged for record in found.restarts]
    assert ended == sorted(ended, reverse=True)  # whatever evidence a run claims that did not converge
    assert ended[0]
    for mode in modes:
        if mode.converged:
            again = cv.infer(mixture(), {"x": ROWS}, start=mode, accuracy="fast", method="ep")
            assert again.log_evidence == pytest.approx(mode.log_evidence, abs=1e-5)


def test_a_single_start_is_one_and_a_batch_keeps_the_best():
    one = cv.infer(mixture(), {"x": ROWS}, restarts=1, accuracy="fast", method="vmp")
    assert list(one.restarts) == [Restart(one.log_evidence, True, one.iterations, 1)]
    assert one.all_modes() == (one,)
    batch = cv.compile(mixture(), ["x"], restarts=3, method="vmp").batch([{"x": ROWS}, {"x": ROWS + 1.0}])
    assert batch[0].restarts[0].log_evidence == batch[0].log_evidence
    with pytest.raises(cv.UnsupportedError, match="from a file or from a batch"):
        batch[0].all_modes()


def test_an_answer_of_draws_refers_to_its_beliefs():
    m = cv.Model("draws")
    a, b = (m.random(name, cv.gaussian(0.0, sd=1.0)) for name in "ab")
    m.random("y", cv.gaussian(a * b, sd=0.3))
    found = cv.infer(m, {"y": 1.0}, restarts=4)
    if isinstance(found, cv.Posterior):
        assert found.all_modes()[0].log_evidence == found.log_evidence
    else:
        assert len(found.restarts) == 1
        with pytest.raises(cv.UnsupportedError, match="plain"):
            found.all_modes()
        assert found.plain.all_modes()

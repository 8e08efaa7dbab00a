"""Checkpoints: what they hold is checked before anything is used, and a disk that is full stops no run."""

from __future__ import annotations

import os

import dealt_models
import numpy as np
import pytest

import cavity as cv
from cavity.engine.files import checkpoint

SLOW = {"method": "ncvmp", "damping": 0.9, "acceleration": 0, "tolerance": 1e-9}


def case():
    model, data, _ = dealt_models.logistic(40, 2)
    return model, data


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A checkpoint of a run that ended, of its sweep 64 or later."""
    path = tmp_path_factory.mktemp("kept") / "run.ckpt"
    model, data = case()
    return path, cv.infer(model, data, **SLOW, checkpoint=path, every=0)


def test_it_goes_on_to_the_same_answer(kept):
    path, whole = kept
    model, data = case()
    found = cv.resume(path, model, data)
    assert found.iterations == whole.iterations > 64
    assert found.log_evidence == whole.log_evidence
    np.testing.assert_array_equal(found["weight"].mean, whole["weight"].mean)


def test_model_and_data_are_known_where_the_run_began(kept):
    path, whole = kept
    assert cv.resume(path).log_evidence == whole.log_evidence


def test_they_are_asked_for_elsewhere(kept, monkeypatch):
    monkeypatch.setattr(checkpoint, "WRITTEN", {})
    monkeypatch.setattr("cavity.engine.resume.WRITTEN", {})
    with pytest.raises(cv.DataError, match="give them again"):
        cv.resume(kept[0])


def test_another_model_is_refused(kept):
    other, data, _ = dealt_models.coin()
    with pytest.raises(cv.DataError, match="of another model"):
        cv.resume(kept[0], other, data)


def test_data_of_other_rows_are_refused(tmp_path):
    """Where a run keeps numbers by row, as EP does."""
    model, data = case()
    cv.infer(model, data, **{**SLOW, "method": "ep"}, checkpoint=tmp_path / "run.ckpt", every=0)
    with pytest.raises(cv.DataError, match="a run of another form"):
        cv.resume(tmp_path / "run.ckpt", model, dealt_models.logistic(41, 2)[1])


def test_what_is_no_checkpoint_is_told(tmp_path, kept):
    (tmp_path / "text").write_text("no checkpoint")
    with pytest.raises(cv.DataError, match="is damaged or is none"):
        cv.resume(tmp_path / "text")
    damaged = bytearray(kept[0].read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "damaged").write_bytes(bytes(damaged))
    with pytest.raises(cv.DataError, match="is damaged or is none"):
        cv.resume(tmp_path / "damaged")


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ({"checkpoint": 3}, cv.ModelError, "checkpoint= is the path"),
        ({"checkpoint": os.path.join("nowhere", "run")}, cv.DataError, "there is no folder"),
        ({"checkpoint": "run", "every": -1}, cv.ModelError, "every= is how many seconds"),
        ({"mesh": 2}, cv.ModelError, "mesh= is a jax.sharding.Mesh"),
    ],
)
def test_bad_arguments(asked, error, words):
    model, data = case()
    with pytest.raises(error, match=words):
        cv.infer(model, data, **asked)


def test_a_full_disk_is_a_warning_and_the_run_goes_on(tmp_path, monkeypatch, kept):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "write_archive", full)
    model, data = case()
    with pytest.warns(cv.CavityWarning, match="could not be written after sweep .*No space left"):
        found = cv.infer(model, data, **SLOW, checkpoint=tmp_path / "run.ckpt", every=0)
    assert found.log_evidence == kept[1].log_evidence

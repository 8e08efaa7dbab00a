"""Numbers of 32 bits: many of them stay as they are, and answers are those of the same numbers in 64 bits."""

from __future__ import annotations

import dealt_models
import numpy as np
import pytest

import cavity as cv
from cavity.compiler.data import sparse_matrices
from cavity.engine.data import centred
from cavity.engine.values import row_blocks


@pytest.fixture
def both(monkeypatch):
    """A model with its data in 32 bits and, the same numbers, in 64."""
    monkeypatch.setattr(sparse_matrices, "NARROW", 100)
    m, data, _ = dealt_models.logistic(90, 3)
    x = data["x"].astype(np.float32)
    return m, {**data, "x": x}, {**data, "x": x.astype(float)}


@pytest.mark.parametrize("blocks", [False, True], ids=["whole", "in blocks"])
@pytest.mark.parametrize("method", ["ncvmp", "ep"])
def test_answers_are_those_of_64_bits(both, monkeypatch, method, blocks):
    if blocks:
        monkeypatch.setattr(row_blocks, "LARGE", 50)
        monkeypatch.setattr(row_blocks, "CELLS", 100)
    m, narrow, wide = both
    one, other = (cv.infer(m, data, method=method) for data in (narrow, wide))
    assert one.binding.inputs["x"].dtype == np.float32
    assert other.binding.inputs["x"].dtype == np.float64
    assert one.log_evidence == pytest.approx(other.log_evidence, rel=1e-13)
    np.testing.assert_allclose(one["weight"].covariance, other["weight"].covariance, rtol=1e-12)
    assert one.loo().total == pytest.approx(other.loo().total, rel=1e-12)
    new = np.array([[0.1, 0.2, 0.3]], np.float32)
    predicted = [p.predict({"x": x})["y"].mean for p, x in ((one, new), (other, new.astype(float)))]
    np.testing.assert_allclose(*predicted, rtol=1e-12)


def test_draws_batches_and_files_are_those_of_64_bits(both, tmp_path):
    m, narrow, wide = both
    one, other = (cv.sample(m, data, 10, 1, warmup=5)["weight"] for data in (narrow, wide))
    np.testing.assert_allclose(one, other, rtol=1e-9)
    program = cv.compile(m, observed=["y"], method="ep")
    one, other = (program.batch([data, data]).log_evidence for data in (narrow, wide))
    np.testing.assert_allclose(one, other, rtol=1e-13)
    posterior = cv.infer(m, narrow)
    posterior.save(tmp_path / "posterior")
    assert cv.load(tmp_path / "posterior").log_evidence == posterior.log_evidence


def test_few_numbers_are_kept_in_64_bits():
    m, data, _ = dealt_models.logistic(90, 3)
    assert cv.infer(m, {**data, "x": data["x"].astype(np.float32)}).binding.inputs["x"].dtype == np.float64


def test_what_is_not_finite_is_told(both):
    m, narrow, _ = both
    narrow["x"][7, 1] = np.inf
    with pytest.raises(cv.DataError, match=r"must be finite; found inf at \[7, 1\]"):
        cv.infer(m, narrow)


def test_means_and_deviations_of_columns_are_taken_in_64_bits():
    rows = np.random.default_rng(0).normal(1000.0, 0.1, size=(300_001, 5)).astype(np.float32)
    mean, sd = centred._of_columns(rows)
    np.testing.assert_allclose(mean, rows.astype(float).mean(0), rtol=1e-14)
    np.testing.assert_allclose(sd, rows.astype(float).std(0), rtol=1e-10)

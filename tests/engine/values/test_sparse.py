"""Sparse inputs give what the same numbers give as a dense array."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import scipy.sparse

import cavity as cv
from cavity.engine.values import row_blocks
from cavity.engine.values.sparse_rows import Pages, paged
from cavity.factors.errors import DataError
from cavity.models import logistic_regression

close = np.testing.assert_allclose
N, D, K = 45, 6, 3


def features(seed=0, n=N):
    random = np.random.default_rng(seed)
    return np.where(random.random((n, D)) < 0.3, random.standard_normal((n, D)), 0.0)


def softmax():
    m = cv.Model()
    row, cls = m.plate("row"), m.plate("class", K)
    x = m.input("x", cv.vector(D), plates=row)
    w = m.random("w", cv.vector_gaussian(np.zeros(D), covariance=np.eye(D)), plates=cls)
    m.random("y", cv.categorical(cv.softmax(cv.dot(w, x), over=cls)), plates=row)
    return m


def logistic():
    m = cv.Model()
    row = m.plate("row")
    x = m.input("x", cv.vector(D), plates=row)
    w = m.random("w", cv.vector_gaussian(np.zeros(D), covariance=np.eye(D)))
    m.random("y", cv.bernoulli(cv.logistic(cv.dot(w, x))), plates=row)
    return m


MODELS = {"softmax": softmax, "logistic": logistic}


def outcomes(name, x, seed=1):
    random = np.random.default_rng(seed)
    if name == "softmax":
        return np.argmax(x @ random.standard_normal((D, K)) + random.gumbel(size=(len(x), K)), 1)
    return x @ random.standard_normal(D) + random.logistic(size=len(x)) > 0


def small_blocks(monkeypatch):
    monkeypatch.setattr(row_blocks, "LARGE", 1)
    monkeypatch.setattr(row_blocks, "CELLS", 1)
    monkeypatch.setattr(row_blocks, "FEWEST", 7)


# In blocks there are predictions by default below, and the softmax, which compiles for longest, in test_blocks.py.
@pytest.mark.parametrize(
    ("name", "blocks"),
    [
        ("logistic", False),
        pytest.param("logistic", True, marks=pytest.mark.slow),
        pytest.param("softmax", False, marks=pytest.mark.slow),
        pytest.param("softmax", True, marks=pytest.mark.slow),
    ],
)
def test_a_sparse_input_gives_what_a_dense_one_gives(name, blocks, monkeypatch, tmp_path):
    if blocks:
        small_blocks(monkeypatch)
    x, new = features(), features(5, 17)
    model, y = MODELS[name](), outcomes(name, x)
    dense = cv.infer(model, {"x": x, "y": y}, tolerance=1e-8)
    sparse = cv.infer(model, {"x": scipy.sparse.csr_matrix(x), "y": y}, tolerance=1e-8)
    assert isinstance(sparse.arrays["x"], Pages)
    assert bool(sparse.machine.rows) is blocks
    close(sparse.log_evidence, dense.log_evidence, rtol=1e-9)
    close(sparse["w"].mean, dense["w"].mean, atol=1e-9)
    close(sparse["w"].variance, dense["w"].variance, rtol=1e-8)
    wanted = dense.predict({"x": new})["y"].mean
    close(sparse.predict({"x": scipy.sparse.csr_array(new)})["y"].mean, wanted, atol=1e-9)
    close(sparse.predict({"x": new})["y"].mean, wanted, atol=1e-9)
    close(dense.predict({"x": scipy.sparse.coo_array(new)})["y"].mean, wanted, atol=1e-9)
    sparse.save(tmp_path / "sparse.npz")
    again = cv.load(tmp_path / "sparse.npz", model)
    close(again.predict({"x": new})["y"].mean, wanted, atol=1e-9)


@pytest.mark.parametrize("blocks", [False, True])
def test_other_entries_need_no_other_program(blocks, monkeypatch):
    if blocks:
        small_blocks(monkeypatch)
    program = cv.compile(logistic(), observed=["y"])
    for seed in range(3):
        random = np.random.default_rng(seed)
        x = random.permuted(np.tile([1.0, -2.0, 0.5 + seed, 0.0, 0.0, 0.0], (N, 1)), axis=1)
        x[seed, :] = 0.0  # blocks of almost as many entries have room for as many
        posterior = program({"x": scipy.sparse.csr_matrix(x), "y": outcomes("logistic", x)})
        assert posterior.converged
    assert program.traces == 1


@pytest.mark.parametrize("name", ["logistic", pytest.param("softmax", marks=pytest.mark.slow)])
def test_predictions_in_blocks_of_rows(name, monkeypatch):
    x = features()
    posterior = cv.infer(MODELS[name](), {"x": x, "y": outcomes(name, x)})
    whole = posterior.predict({"x": features(3, 31)})["y"].mean
    small_blocks(monkeypatch)
    again = cv.infer(MODELS[name](), {"x": x, "y": outcomes(name, x)})
    close(again.predict({"x": features(3, 31)})["y"].mean, whole, rtol=1e-6)


def test_pages_hold_the_entries_of_their_rows():
    plate = cv.Model().plate("row")
    x = features(2, 23)
    x[5:9] = 0.0
    cut = row_blocks.Rows(plate, 23, 6)
    pages = paged("x", scipy.sparse.csr_array(x), cut)
    assert pages.values.shape == (4, 16)
    with jax.enable_x64(True):
        np.testing.assert_array_equal(pages.seen(None, (plate,)).value, x)
        for number, first in enumerate((0, 6, 12, 17)):
            np.testing.assert_array_equal(pages.seen(cut.window(number), (plate,)).value, x[first : first + 6])


def test_repeated_entries_are_added():
    entries = ([1.0, 2.0, 1.0, -1.0], ([0, 0, 1, 2], [1, 1, 2, 3]))
    x = scipy.sparse.coo_matrix(entries, shape=(3, D))
    y = np.array([True, False, True])
    sparse, dense = (cv.infer(logistic(), {"x": given, "y": y}) for given in (x, x.toarray()))
    close(sparse["w"].mean, dense["w"].mean, atol=1e-8)


def test_what_a_sparse_matrix_cannot_be():
    x, y = features(), np.zeros(N, bool)
    with pytest.raises(DataError, match=r"Observed 'y': found a sparse matrix, but only an input of vectors"):
        cv.infer(logistic(), {"x": x, "y": scipy.sparse.csr_matrix(y[:, None])})
    with pytest.raises(DataError, match=r"Input 'x': found values of 5 coordinates"):
        cv.infer(logistic(), {"x": scipy.sparse.csr_matrix(x[:, :5]), "y": y})
    with pytest.raises(DataError, match=r"gives plate 'row' 45 elements, but .* gives it 44"):
        cv.infer(logistic(), {"x": scipy.sparse.csr_matrix(x[:-1]), "y": y})
    x[3, 2] = np.nan
    with pytest.raises(DataError, match=r"Input 'x': must be finite; found nan at \[3, 2\]"):
        cv.infer(logistic(), {"x": scipy.sparse.csr_matrix(x), "y": y})
    with pytest.raises(DataError, match=r"found a sparse matrix of type complex128"):
        cv.infer(logistic(), {"x": scipy.sparse.csr_matrix(np.zeros((N, D), complex)), "y": y})
    program = cv.compile(logistic(), observed=["y"])
    given = {"x": scipy.sparse.csr_matrix(features()), "y": y}
    with pytest.raises(DataError, match=r"Input 'x': found a sparse matrix in a batch"):
        program.batch([given, given])


@pytest.mark.slow
@pytest.mark.parametrize("layout", [scipy.sparse.csr_matrix, np.asarray])
def test_a_posterior_of_sparse_rows_is_checked_like_another(layout):
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(60, 4)) * (rng.random((60, 4)) < 0.4), rng.random(60) < 0.5
    trust = cv.infer(logistic_regression(4), {"x": layout(x), "y": y}).trust()
    assert trust.verdict == "good: means and sds agree with the model's joint density."

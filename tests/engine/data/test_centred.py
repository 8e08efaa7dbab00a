"""Data far from zero beside an intercept: refused by name on every path, warned of before, and right below that."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import cavity as cv
from cavity.engine.data.centred import _columns_of_sparse

K = np.arange(20.0)
Y = 2.0 * K + np.random.default_rng(0).normal(size=20)


def scalars(term):
    """level + slope * x in `term`."""
    m = cv.Model()
    x = m.input("x", cv.real, plates=m.plate("row"))
    level, slope = m.random("level", cv.gaussian(0.0, variance=1e20)), m.random("slope", cv.gaussian(0.0, variance=1e2))
    m.random("y", term(m, level + slope * x))
    return m, lambda x: {"x": x}


def column_of_ones(term):
    m = cv.Model()
    x = m.input("x", cv.vector(2), plates=m.plate("row"))
    w = m.random("w", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)))
    m.random("y", term(m, cv.dot(w, x)))
    return m, lambda x: {"x": np.stack([x, np.full(20, 0.1)], 1)}


def levels_of_groups(term):
    m = cv.Model()
    row, group = m.plate("row"), m.plate("group", 2)
    x = m.input("x", cv.real, plates=row)
    of = m.input("of", cv.index(group), plates=row)
    level = m.random("level", cv.gaussian(0.0, variance=1.0), plates=group)
    slope = m.random("slope", cv.gaussian(0.0, variance=1.0))
    m.random("y", term(m, level[of] - 3.0 * (slope * x) / 2.0))
    return m, lambda x: {"x": x, "of": np.arange(20) % 2}


def classes(term):
    m = cv.Model()
    row, group = m.plate("row"), m.plate("group", 3)
    x = m.input("x", cv.vector(1), plates=row)
    w = m.random("w", cv.vector_gaussian(np.zeros(1), covariance=np.eye(1)), plates=group)
    bias = m.random("bias", cv.gaussian(0.0, variance=1.0), plates=group)
    m.random("y", cv.categorical(cv.softmax(cv.dot(w, x) + bias, over=group)))
    return m, lambda x: {"x": x[:, None]}


TERMS = {
    "known noise": (lambda m, s: cv.gaussian(s, variance=1.0), Y),
    "random noise": (lambda m, s: cv.gaussian(s, precision=m.random("noise", cv.gamma(1.0, 1.0))), Y),
    "logistic": (lambda m, s: cv.bernoulli(cv.logistic(s)), K > 9),
    "poisson": (lambda m, s: cv.poisson(cv.exp(s)), K // 5),
    "student": (lambda m, s: cv.student_t(4.0, s, 1.0), Y),
}
MODELS = [(shape, name) for shape in (scalars, column_of_ones, levels_of_groups) for name in TERMS]
MODELS.append((classes, "softmax"))


@pytest.mark.parametrize(("shape", "name"), MODELS, ids=lambda v: getattr(v, "__name__", v))
@pytest.mark.parametrize("method", ["auto", "vmp"])
def test_what_loses_all_digits_is_refused_by_name(shape, name, method):
    term, y = TERMS.get(name, (None, np.arange(20) % 3))
    model, given = shape(term)
    if method == "vmp" and name in ("logistic", "poisson", "student", "softmax"):
        method = "ncvmp"
    program = cv.compile(model, ["y"], method=method)
    for offset in (1e8, -2e9, 5e15):
        with pytest.raises(
            cv.DataError, match=r"Input 'x': its mean is .* beside an intercept in 'y'.* Centre it: give x"
        ):
            program.bind({**given(offset + K), "y": y})
    with pytest.warns(cv.CavityWarning, match="lose 11 of the 16 digits"):
        program.bind({**given(3e6 + K), "y": y})
    for fine in (K, 1e5 + K, np.full(20, 1e9), 1e9 * (K - 9.5)):
        program.bind({**given(fine), "y": y})


def test_sparse_columns_are_judged_as_dense_ones():
    model, _ = column_of_ones(TERMS["known noise"][0])
    program = cv.compile(model, ["y"])
    few = np.where(K % 5 == 0, K + 1.0, 0.0)
    for x, refused in ((few, False), (1e9 * few, False), (1e8 + K, True)):
        rows = np.stack([x, np.ones(20)], 1)
        for layout in (np.asarray, scipy.sparse.csr_array):
            if refused:
                with pytest.raises(cv.DataError, match="Input 'x': its mean is"):
                    program.bind({"x": layout(rows), "y": Y})
            else:
                program.bind({"x": layout(rows), "y": Y})


@pytest.mark.parametrize("layout", [scipy.sparse.csr_matrix, scipy.sparse.csr_array])
def test_means_and_deviations_of_sparse_columns_are_those_of_the_dense_matrix(layout):
    rows = np.random.default_rng(0).normal(size=(30, 6)) * (np.random.default_rng(1).random((30, 6)) < 0.2)
    rows[:, 0], rows[:, 1], rows[:, 2] = 0.1, 0.0, 1e6 + np.arange(30)
    mean, sd = _columns_of_sparse(layout(rows))
    np.testing.assert_allclose(mean, np.abs(rows.mean(0)), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(sd, [0.0, *rows.std(0)[1:]], rtol=1e-10)


def test_a_slope_without_intercept_may_lie_anywhere():
    m = cv.Model()
    x = m.input("x", cv.real, plates=m.plate("row"))
    slope = m.random("slope", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.gaussian(slope * x, variance=1.0))
    posterior = cv.infer(m, {"x": 1e8 + K, "y": 2.0 * (1e8 + K)})
    np.testing.assert_allclose(posterior["slope"].mean, 2.0, rtol=1e-12)


def test_each_data_set_of_a_batch_is_looked_at():
    model, _ = scalars(TERMS["known noise"][0])
    program = cv.compile(model, ["y"])
    with pytest.raises(cv.DataError, match=r"Data set 1: Input 'x'"):
        program.batch([{"x": K, "y": Y}, {"x": 1e8 + K, "y": Y}])


def test_up_to_the_warning_answers_are_those_of_centred_data():
    model, _ = scalars(TERMS["known noise"][0])
    program = cv.compile(model, ["y"])
    slopes = [program({"x": offset + K, "y": Y})["slope"] for offset in (0.0, 1e4, 5e5)]
    for slope in slopes[1:]:
        np.testing.assert_allclose(slope.mean, slopes[0].mean, rtol=1e-4)
        np.testing.assert_allclose(slope.sd, slopes[0].sd, rtol=1e-4)

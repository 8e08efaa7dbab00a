"""Predictions from a mean and a precision that share a belief: Student's t, in closed form."""

import jax
import numpy as np
import pytest
import scipy.stats as st

import cavity as cv
from cavity.factors.conditionals import conditional_named

Y = np.array([0.3, 1.2, -0.4, 2.0])
X = np.array([[0.3, 1.0], [1.2, -0.5], [-0.4, 0.2], [2.0, 1.5], [0.1, 0.0]])
NEW = np.array([[0.1, 0.4], [5.0, -3.0], [0.6, 0.5]])


def scalar(components=0):
    m = cv.Model("mean and precision of numbers")
    n, k = m.plate("n"), m.plate("k", max(components, 1))
    precision = m.random("precision", cv.gamma(2.0, 1.5), plates=k)
    mean = m.random("mean", cv.gaussian(0.3, precision=0.5 * precision), plates=k)
    z = m.random("z", cv.categorical([0.3, 0.7]), plates=n) if components else 0
    m.random("y", cv.gaussian(mean[z], precision=2.0 * precision[z]), plates=n)
    return m


def vector():
    m = cv.Model("mean and precision of vectors")
    n, k = m.plate("n"), m.plate("k", 2)
    matrix = m.random("matrix", cv.wishart(dof=4.0, scale=np.eye(2) / 4.0), plates=k)
    mean = m.random("mean", cv.vector_gaussian(np.zeros(2), precision=0.5 * matrix), plates=k)
    z = m.random("z", cv.categorical([0.3, 0.7]), plates=n)
    m.random("x", cv.vector_gaussian(mean[z], precision=matrix[z]), plates=n)
    return m


def student(y, *, prior=0.5, centre=0.3, shape=2.0, rate=1.5, factor=2.0):
    """The exact predictive distribution of a number after the numbers `y`."""
    multiple = prior + factor * len(y)
    mean = (prior * centre + factor * np.sum(y)) / multiple
    a = shape + 0.5 * len(y)
    b = rate + 0.5 * (prior * centre**2 + factor * np.sum(y**2) - multiple * mean**2)
    return st.t(2.0 * a, mean, np.sqrt(b / a * (1.0 / multiple + 1.0 / factor)))


def student_vector(x, *, prior=0.5, dof=4.0):
    """The exact predictive distribution of a vector after the rows `x`."""
    multiple = prior + len(x)
    mean = x.sum(axis=0) / multiple
    matrix = 4.0 * np.eye(2) + x.T @ x - multiple * np.outer(mean, mean)
    free = dof + len(x) - 1.0
    return st.multivariate_t(mean, matrix * (1.0 + 1.0 / multiple) / free, df=free)


@pytest.mark.parametrize("method", ["vmp", "ep"])
def test_a_new_number_is_students_t(method):
    posterior = cv.infer(scalar(), {"y": Y}, method=method, accuracy="fast")
    new = posterior.predict({}, sizes={"n": 3})["y"]
    truth = student(Y)
    np.testing.assert_allclose(new.log_density(NEW[:, 0]), truth.logpdf(NEW[:, 0]), rtol=1e-9)
    np.testing.assert_allclose(new.variance, truth.var(), rtol=1e-9)
    np.testing.assert_allclose(new.quantile(0.9), truth.ppf(0.9), rtol=1e-6)


def test_a_new_number_of_a_mixture_is_a_mixture_of_them():
    """Given the states of the rows the beliefs are exact, and those of a new row have their prior probabilities."""
    z = np.array([0, 1, 1, 0])
    posterior = cv.infer(scalar(2), {"y": Y, "z": z}, method="vmp", accuracy="fast")
    new = posterior.predict({}, sizes={"n": 3})["y"]
    parts = [student(Y[z == k]).pdf(NEW[:, 0]) for k in range(2)]
    np.testing.assert_allclose(new.log_density(NEW[:, 0]), np.log(0.3 * parts[0] + 0.7 * parts[1]), rtol=1e-9)


def test_a_new_vector_of_a_mixture_is_a_mixture_of_them():
    z = np.array([0, 1, 1, 0, 1])
    posterior = cv.infer(vector(), {"x": X, "z": z}, method="vmp", accuracy="fast")
    new = posterior.predict({}, sizes={"n": 3})["x"]
    parts = [student_vector(X[z == k]) for k in range(2)]
    expected = np.log(0.3 * parts[0].pdf(NEW) + 0.7 * parts[1].pdf(NEW))
    np.testing.assert_allclose(new.log_density(NEW), expected, rtol=1e-9)


def test_students_t_of_vectors():
    dof, mean, square = np.array(7.0), np.array([0.5, -1.0]), np.array([[2.0, 0.6], [0.6, 0.5]])
    own, truth = conditional_named("vector_student_t"), st.multivariate_t(mean, square, df=dof)
    arguments = {"dof": dof, "mean": mean, "square": square}
    with jax.enable_x64(True):
        found = [own.log_density(x, **arguments) for x in NEW]
        covariance, variance = own.covariance(**arguments), own.variance(**arguments)
        below = own.below(np.array([0.7, 0.7]), **arguments)
        keys = jax.random.split(jax.random.key(2), 4000)
        draws = np.asarray(jax.vmap(lambda key: own.draw(key, **arguments))(keys))
        none = own.variance(**{**arguments, "dof": np.array(1.5)})
    np.testing.assert_allclose(found, truth.logpdf(NEW), rtol=1e-10)
    np.testing.assert_allclose(covariance, square * dof / (dof - 2.0))
    np.testing.assert_allclose(variance, np.diag(square) * dof / (dof - 2.0))
    np.testing.assert_allclose(below, st.t(dof, mean, np.sqrt(np.diag(square))).cdf(0.7), rtol=1e-8)
    assert np.all(np.isinf(none))
    along = draws @ np.array([0.6, 0.8])  # any direction is Student's t too
    scale = np.sqrt(np.array([0.6, 0.8]) @ square @ np.array([0.6, 0.8]))
    assert st.kstest(along, st.t(dof, mean @ np.array([0.6, 0.8]), scale).cdf).pvalue > 1e-3

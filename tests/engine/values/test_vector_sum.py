"""The sum of vectors over a plate under VMP."""

import numpy as np
import pytest

import cavity as cv


def test_sum_of_vectors_is_the_sum_of_its_elements():
    """One element below the sum: the mean of all elements moves alike, as in the scalar model of each coordinate."""
    m = cv.Model("sum of vectors")
    k = m.plate("k", 3)
    v = m.random("v", cv.vector_gaussian(np.zeros(2), covariance=np.diag([1.0, 2.0])), plates=k)
    m.random("y", cv.vector_gaussian(cv.sum(v, over=k), covariance=np.eye(2)))
    posterior = cv.infer(m, {"y": [1.0, -2.0]}, method="vmp", tolerance=1e-9)
    # The mean-field means are the exact ones: prior variance s each, so s / (3 s + 1) of the observation.
    np.testing.assert_allclose(posterior["v"].mean, np.tile([1.0 / 4.0, -2.0 * 2.0 / 7.0], (3, 1)), rtol=1e-6)
    np.testing.assert_allclose(posterior["v"].variance, np.tile([1.0 / 2.0, 2.0 / 3.0], (3, 1)), rtol=1e-6)


def test_one_vector_below_the_sum_is_told():
    """Its elements are dependent: taken for independent ones, the covariance of v was 0.25 instead of 0.1."""
    m = cv.Model("one vector, several multipliers")
    n = m.plate("n", 3)
    x = m.input("x", cv.real, plates=n)
    v = m.random("v", cv.vector_gaussian(np.zeros(2), precision=np.eye(2)))
    m.random("y", cv.vector_gaussian(cv.sum(v * x, over=n), precision=np.eye(2)))
    with pytest.raises(cv.UnsupportedError, match="no moments of sum"):
        cv.infer(m, {"x": np.ones(3), "y": [3.0, 6.0]})


def test_the_default_sums_vectors_entry_by_entry():
    """Not all numbers of them: what the joint density, and so weighted draws, took the sum to be."""
    m = cv.Model("sum")
    k = m.plate("k", 2)
    v = m.random("v", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)), plates=k)
    m.random("y", cv.vector_gaussian(cv.sum(v, over=k), covariance=np.eye(2)))
    found = cv.infer(m, {"y": [3.0, 0.0]})
    np.testing.assert_allclose(found["v"].mean, [[1.0, 0.0], [1.0, 0.0]], atol=0.01)
    np.testing.assert_allclose(found["v"].sd, np.sqrt(2.0 / 3.0), rtol=0.05)
    at = np.array([[1.0, 2.0], [0.5, -1.0]])
    wanted = -0.5 * (at**2).sum() - 0.5 * (1.5**2 + 1.0) - 3.0 * np.log(2.0 * np.pi)
    np.testing.assert_allclose(cv.log_density(m, {"y": [3.0, 0.0]})({"v": at}), wanted, rtol=1e-12)


def test_vectors_are_summed_by_groups():
    m = cv.Model("groups")
    g, n = m.plate("g"), m.plate("n")
    by = m.input("by", cv.index(g), plates=n)
    v = m.random("v", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)), plates=n)
    m.random("y", cv.vector_gaussian(cv.sum(v, by=by), covariance=np.eye(2)))
    found = cv.infer(m, {"by": [0, 1, 0], "y": [[3.0, 0.0], [2.0, 1.0]]})
    np.testing.assert_allclose(found["v"].mean, [[1.0, 0.0], [1.0, 0.5], [1.0, 0.0]], atol=0.01)
    np.testing.assert_allclose(found["v"].sd[:, 0], np.sqrt([2.0 / 3.0, 0.5, 2.0 / 3.0]), rtol=0.05)
    np.testing.assert_allclose(found.log_evidence, -2.0 * np.log(2.0 * np.pi) - np.log(6.0) - 2.75, atol=0.02)

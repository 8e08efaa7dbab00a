"""Expressions with vectors of random variables, and sums of them over a plate, against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import cavity as cv

close = np.testing.assert_allclose


def infer(model, data, method="vmp", **options):
    posterior = cv.infer(model, data, method=method, **{"tolerance": 1e-10, **options})
    assert posterior.converged, posterior.diagnosis
    return posterior


# Vectors of numbers, numbers of vectors -------------------------------------------------------------------------------


def test_stacked_numbers_are_their_weighted_sum():
    rows, y = np.array([[1.0, 0.5], [-1.0, 2.0], [0.3, 1.0]]), np.array([1.0, 0.2, -0.5])
    results = []
    for build in (
        lambda a, b, x: cv.dot(cv.stack(a, b), x),
        lambda a, b, x: a * cv.element(x, 0) + b * cv.element(x, -1),
    ):
        m = cv.Model()
        x = m.input("x", cv.vector(2), plates=m.plate("n"))
        a, b = m.random("a", cv.gaussian(0.0, variance=2.0)), m.random("b", cv.gaussian(1.0, variance=1.0))
        m.random("y", cv.gaussian(build(a, b, x), variance=0.5))
        for method in ("auto", "vmp"):
            posterior = infer(m, {"x": rows, "y": y}, method=method)
            results.append([posterior.log_evidence, posterior["a"].mean, posterior["b"].mean])
    close(results[0], results[2], rtol=1e-9)
    close(results[1], results[3], rtol=1e-9)
    close(results[0][1:], results[1][1:], rtol=1e-7)


def test_the_moments_of_a_stack():
    """Numbers that share a variable are correlated."""
    m = cv.Model()
    a, b = m.random("a", cv.gaussian(0.5, variance=2.0)), m.random("b", cv.gaussian(1.0, variance=1.0))
    c = m.random("c", cv.gaussian(3.0, variance=4.0))
    m.let("v", cv.stack(a + b, a - b, c))
    found = cv.infer(m, {})["v"]
    close(found.mean, [1.5, -0.5, 3.0])
    close(found.covariance, [[3.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 4.0]], atol=1e-12)


def test_coordinates_of_a_vector():
    """Coordinates 0 and 2 with weights are one inner product, under every method."""
    covariance_ = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 0.5]])
    m = cv.Model()
    v = m.random("v", cv.vector_gaussian([0.1, 0.2, 0.3], covariance=covariance_))
    m.random("y", cv.gaussian(2.0 * cv.element(v, 0) - cv.element(v, 2), variance=0.5))
    w = np.array([2.0, 0.0, -1.0])
    gain = covariance_ @ w / (w @ covariance_ @ w + 0.5)
    for method in ("auto", "vmp", "ep"):
        posterior = infer(m, {"y": 1.3}, method=method)
        close(posterior["v"].mean, np.array([0.1, 0.2, 0.3]) + gain * (1.3 + 0.1), rtol=1e-9)
        expected = scipy.stats.norm.logpdf(1.3, -0.1, (w @ covariance_ @ w + 0.5) ** 0.5)
        close(posterior.log_evidence, expected, rtol=1e-9)


def test_part_of_a_vector():
    covariance_ = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 0.5]])
    m = cv.Model()
    v = m.random("v", cv.vector_gaussian([0.1, 0.2, 0.3], covariance=covariance_))
    m.let("part", cv.subvector(v, 1, 2))
    found = cv.infer(m, {})["part"]
    close(found.mean, [0.2, 0.3])
    close(found.covariance, covariance_[1:, 1:], rtol=1e-12)


def test_a_rotation():
    """Sums of products with the cosines and sines of data."""
    angle = np.array([0.3, 1.2])
    m = cv.Model()
    n = m.plate("n")
    cosine, sine = m.input("cos", cv.real, plates=n), m.input("sin", cv.real, plates=n)
    x, y = m.random("x", cv.gaussian(1.0, variance=1.0)), m.random("y", cv.gaussian(0.0, variance=2.0))
    m.random("u", cv.gaussian(cosine * x - sine * y, variance=0.1))
    posterior = infer(m, {"cos": np.cos(angle), "sin": np.sin(angle), "u": [0.5, -0.5]}, method="auto")
    rows = np.stack([np.cos(angle), -np.sin(angle)], axis=1)
    precision = np.diag([1.0, 0.5]) + rows.T @ rows / 0.1
    close(
        [posterior["x"].mean, posterior["y"].mean],
        np.linalg.solve(precision, np.array([1.0, 0.0]) + rows.T @ [0.5, -0.5] / 0.1),
        rtol=1e-7,
    )


# Sums over a plate ----------------------------------------------------------------------------------------------------

ROWS, OUTCOMES = np.array([[1.0, 0.5], [-1.0, 2.0], [0.3, 0.0]]), np.array([1.0, 0.2, -0.5])


def sum_of_weights(build):
    m = cv.Model()
    n, d = m.plate("n"), m.plate("d")
    x = m.input("x", cv.real, plates=(n, d))
    w = m.random("w", cv.gaussian(0.0, variance=2.0), plates=d)
    m.random("y", cv.gaussian(build(w, x, d), variance=0.5))
    return m


@pytest.mark.parametrize("method", ["auto", "ep", "vmp"])
def test_a_sum_over_a_plate_is_a_linear_regression(method):
    """Its elements are one joint belief by default, messages along a loop under EP, and a mean field under VMP."""
    posterior = infer(sum_of_weights(lambda w, x, d: cv.sum(w * x, over=d)), {"x": ROWS, "y": OUTCOMES}, method=method)
    precision = np.eye(2) / 2.0 + ROWS.T @ ROWS / 0.5
    close(posterior["w"].mean, np.linalg.solve(precision, ROWS.T @ OUTCOMES / 0.5), rtol=1e-8)
    evidence = scipy.stats.multivariate_normal.logpdf(OUTCOMES, cov=2.0 * ROWS @ ROWS.T + 0.5 * np.eye(3))
    if method == "auto":
        close(posterior["w"].variance, np.diag(np.linalg.inv(precision)), rtol=1e-9)
        close(posterior.log_evidence, evidence, rtol=1e-9)
    if method == "vmp":
        close(posterior["w"].variance, 1.0 / np.diag(precision), rtol=1e-8)
        assert posterior.log_evidence < evidence


def test_what_a_sum_shares_is_taken_out():
    """sum_d (2 w_d x_d - w_d x_d + 3 x_d + 1) = sum_d w_d x_d + 3 sum_d x_d + 2."""
    shifted = OUTCOMES + 3.0 * ROWS.sum(1) + 2.0
    model = sum_of_weights(lambda w, x, d: cv.sum(2.0 * w * x - w * x + 3.0 * x + 1.0, over=d))
    plain = infer(sum_of_weights(lambda w, x, d: cv.sum(w * x, over=d)), {"x": ROWS, "y": OUTCOMES})
    found = infer(model, {"x": ROWS, "y": shifted})
    close(found["w"].mean, plain["w"].mean, rtol=1e-9)
    close(found.log_evidence, plain.log_evidence, rtol=1e-9)


def test_a_sum_of_dependent_elements():
    """An index along the plate may choose one element twice: it then counts twice, as w_0 + 2 w_1 has it."""
    m = cv.Model()
    k, d = m.plate("k", 2), m.plate("d", 3)
    which = m.input("which", cv.index(k), plates=d)
    w = m.random("w", cv.gaussian(0.0, variance=1.0), plates=k)
    m.random("y", cv.gaussian(cv.sum(w[which], over=d), variance=1.0))
    posterior = cv.infer(m, {"which": [0, 1, 1], "y": 1.0}, method="vmp", tolerance=1e-10)
    close(posterior["w"].mean, [1.0 / 6.0, 2.0 / 6.0], rtol=1e-6)
    close(posterior["w"].variance, [1.0 / 2.0, 1.0 / 5.0], rtol=1e-6)  # each given the other, under the mean field


def test_refused_coordinates():
    m = cv.Model()
    v = m.random("v", cv.vector_gaussian(np.zeros(3), covariance=np.eye(3)))
    x = m.random("x", cv.gaussian(0.0, variance=1.0))
    for call, message in (
        (lambda: cv.element(v, 3), "no coordinate 3"),
        (lambda: cv.element(x, 0), "takes a vector"),
        (lambda: cv.subvector(v, 2, 2), "none such"),
        (lambda: cv.stack(v, x), "takes numbers"),
        (lambda: cv.max(v, 1.0), "takes numbers"),
        (lambda: cv.stack(1.0, 2.0), "builds an expression"),
    ):
        with pytest.raises(cv.ModelError, match=message):
            call()

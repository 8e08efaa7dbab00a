"""Vectors seen through projections: precisions of lower rank, beside vague priors, against exact rational algebra."""

from __future__ import annotations

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cavity as cv
from cavity.engine.blocks.chain.conditioned import conditioned, plainly
from cavity.factors.families.vector_gaussian import VectorGaussian
from cavity.factors.switches import double_precision

RNG = np.random.default_rng(11)


def exact(array):
    """The same numbers as fractions."""
    return np.vectorize(lambda number: Fraction(float(number)), otypes=[object])(array)


def eliminated(matrix, right):
    """M^-1 R and det M, by elimination in fractions."""
    matrix, right, det = matrix.copy(), right.copy(), Fraction(1)
    for k in range(len(matrix)):
        pivot = next(i for i in range(k, len(matrix)) if matrix[i, k] != 0)
        if pivot != k:
            matrix[[k, pivot]], right[[k, pivot]], det = matrix[[pivot, k]], right[[pivot, k]], -det
        det *= matrix[k, k]
        right[k], matrix[k] = right[k] / matrix[k, k], matrix[k] / matrix[k, k]
        for i in range(len(matrix)):
            if i != k:
                right[i], matrix[i] = right[i] - matrix[i, k] * right[k], matrix[i] - matrix[i, k] * matrix[k]
    return right, det


def log(number):
    """The logarithm of a fraction of any size."""
    return math.log(number.numerator) - math.log(number.denominator)


def truth(q, b, precision, shift):
    """The covariance, the mean, the message's precision and the log integral, in fractions."""
    q, b, precision, shift = map(exact, (q, b, precision, shift))
    m = exact(np.eye(len(b))) + q @ precision
    found, det = eliminated(m, np.concatenate([q, b[:, None]], axis=1))
    covariance, pulled = found[:, :-1], found[:, -1]
    mean = covariance @ shift + pulled
    log_z = (shift @ covariance @ shift) / 2 + shift @ pulled - (b @ precision @ pulled) / 2
    back = precision @ (exact(np.eye(len(b))) - covariance @ precision)
    return covariance.astype(float), mean.astype(float), back.astype(float), float(log_z) - 0.5 * log(det)


def cases(size, number=24):
    """Roots of few bits, so that their squares are told without rounding; axes up to 1e15 apart."""
    for _ in range(number):
        rank = RNG.integers(1, size + 1)
        root = RNG.integers(-4, 5, size=(size, size)) * (np.arange(size) < rank) * 2.0 ** RNG.integers(-8, 16)
        width = RNG.integers(-3, 4, size=(size, size)) * 2.0 ** RNG.integers(-8, 12)
        q = width @ width.T + 2.0 ** RNG.integers(-20, 24) * np.eye(size)
        told = root @ RNG.integers(-3, 4, size=size)
        yield q, RNG.integers(-3, 4, size=size) * 1.0, root @ root.T, told


@pytest.mark.parametrize("size", [2, 5])
def test_an_element_given_what_is_known_is_told_to_rounding_where_precisions_are_singular(size):
    known = list(cases(size))
    with double_precision():
        found = jax.jit(conditioned)(*(jnp.asarray(np.stack(each, axis=-1)) for each in zip(*known, strict=True)))
    found = type(found)(*map(np.asarray, found))
    for lane, case in enumerate(known):
        covariance, mean, back, log_z = truth(*case)
        scale = np.sqrt(np.diag(covariance))
        np.testing.assert_allclose(
            found.covariance[..., lane] / np.outer(scale, scale), covariance / np.outer(scale, scale), atol=1e-7
        )
        np.testing.assert_allclose(found.mean[..., lane] / scale, mean / scale, rtol=1e-7, atol=1e-6)
        np.testing.assert_allclose(found.precision[..., lane], back, rtol=1e-7, atol=1e-9 * np.abs(back).max())
        along = np.abs(case[3]) @ np.abs(mean) + np.abs(log_z)
        np.testing.assert_allclose(found.log_z[lane], log_z, rtol=1e-7, atol=1e-13 * along + 1e-10)


def test_messages_that_are_no_squares_are_taken_as_they_are():
    with double_precision():
        q, b = jnp.eye(2)[..., None] * jnp.array([0.1, 1.0]), jnp.ones((2, 2))
        precision = jnp.array([[[-1.0, 2.0], [0.5, 1.0]], [[0.5, 1.0], [2.0, 1.0]]])
        shift = jnp.array([[0.3, 0.1], [0.2, 0.7]])
        for got, wanted in zip(*(jax.jit(f)(q, b, precision, shift) for f in (conditioned, plainly)), strict=True):
            np.testing.assert_allclose(got[..., 0], wanted[..., 0], rtol=1e-13)
            np.testing.assert_allclose(got[..., 1], wanted[..., 1], rtol=1e-13)


def test_the_derivative_in_a_singular_precision_is_that_of_the_integral():
    with double_precision():
        c, b, shift = jnp.array([1.0, -2.0]), jnp.array([[0.4], [0.1]]), jnp.array([[1.0], [-2.0]])
        q, precision = jnp.array([[2.0, 0.3], [0.3, 1.0]])[..., None], jnp.outer(c, c)[..., None]
        own = jax.jit(conditioned)(q, b, precision, shift)
        slope = jax.jit(jax.grad(lambda k: conditioned(q, b, k, shift).log_z[0]))(precision)
        second = own.covariance[..., 0] + jnp.outer(own.mean[:, 0], own.mean[:, 0])
        np.testing.assert_allclose(0.5 * (slope[..., 0] + slope[..., 0].T), -0.5 * second, rtol=1e-12)


def test_log_normaliser_and_expected_statistics_agree_where_axes_are_far_apart():
    """A = eta . t + H: in a belief that knows one direction 1e10 times as well as the other."""
    with double_precision():
        c, told = jnp.array([0.6, 0.8]), 1e6
        belief = VectorGaussian(told * c * 3.0, -0.5 * (told * jnp.outer(c, c) + 1e-4 * jnp.eye(2)))
        mean, square = belief.expected_stats()
        inner = jnp.sum(belief.precision_mean * mean) + jnp.sum(belief.negative_half_precision * square)
        gap = belief.log_partition() - belief.entropy() - inner
        assert float(inner) > 1e6  # of which nothing may be lost
        assert abs(float(gap)) < 1e-4
        np.testing.assert_allclose(jnp.dot(c, mean), 3.0, rtol=1e-9)


def filtered(a, q, first, c, noise, data):
    """The log evidence and the last mean, by Kalman's filter in fractions."""
    a, q, spread, c = map(exact, (a, q, first, c))
    mean, noise, log_z = exact(np.zeros(len(c))), Fraction(noise), 0.0
    for t, seen in enumerate(data):
        if t:
            mean, spread = a @ mean, a @ spread @ a.T + q
        if not np.isnan(seen):
            error, gain = Fraction(float(seen)) - c @ mean, spread @ c
            total = c @ gain + noise
            mean, spread = mean + gain * (error / total), spread - np.outer(gain, gain) / total
            log_z -= 0.5 * (math.log(2.0 * math.pi) + log(total) + float(error * error / total))
    return log_z, mean.astype(float)


def walk(size, noise, process, wide, latent=False):
    m = cv.Model("walk")
    t = m.plate("t")
    c = m.input("c", cv.vector(size))
    x = m.chain(
        "x",
        over=t,
        first=cv.vector_gaussian(np.zeros(size), covariance=wide * np.eye(size)),
        then=lambda previous: cv.vector_gaussian(previous, covariance=process * np.eye(size)),
    )
    seen = cv.dot(c, x)
    if latent:
        seen, noise = m.random("f", cv.gaussian(seen, variance=0.5 * noise)), 0.5 * noise
    m.random("y", cv.gaussian(seen, variance=noise))
    return m


@pytest.mark.parametrize("size", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_the_evidence_of_vectors_seen_through_a_projection(size):
    """A vague start, little noise and nearly none in the steps, with entries missing."""
    c, data = RNG.integers(-3, 4, size=size) + 0.5, np.round(RNG.normal(size=7), 2)
    data[[0, 3]] = np.nan
    noise, process, wide = 2.0**-20, 2.0**-20, 2.0**20
    posterior = cv.infer(walk(size, noise, process, wide), {"y": data, "c": c})
    log_z, mean = filtered(np.eye(size), process * np.eye(size), wide * np.eye(size), c, noise, data)
    np.testing.assert_allclose(posterior.log_evidence, log_z, rtol=1e-9, atol=1e-3)
    np.testing.assert_allclose(posterior["x"].mean[-1] @ c, mean @ c, rtol=1e-9)


def test_vmp_begins_where_all_that_a_chain_has_is_a_projection():
    """No belief of an element is proper before the messages of the chain are there; the mean is exact at the end."""
    c, data = np.array([1.3, -0.7]), np.round(RNG.normal(size=5), 2)
    posterior = cv.infer(walk(2, 1.0, 0.25, 4.0, latent=True), {"y": data, "c": c}, method="vmp")
    log_z, mean = filtered(np.eye(2), 0.25 * np.eye(2), 4.0 * np.eye(2), c, 1.0, data)
    assert posterior.converged
    assert posterior.log_evidence < log_z
    np.testing.assert_allclose(posterior["x"].mean[-1], mean, rtol=1e-6)

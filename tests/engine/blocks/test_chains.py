"""Chains of Gaussian states against dense algebra, unrolled twins and structured VMP written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import digamma, gammaln
from scipy.stats import multivariate_normal, norm

import cavity as cv

RNG = np.random.default_rng(3)


def dense_chain(first, links):
    """Mean and covariance of all elements of x_t = A x_{t-1} + b + N(0, Q); `links` lists (A, b, Q) for t = 1, ..."""
    mean, cov = [np.atleast_1d(first[0])], [[np.atleast_2d(first[1])]]
    for a, b, q in links:
        a, q = np.atleast_2d(a), np.atleast_2d(q)
        row = [a @ c for c in cov[-1]]
        for old, new in zip(cov, row, strict=True):
            old.append(new.T)
        cov.append([*row, row[-1] @ a.T + q])
        mean.append(a @ mean[-1] + b)
    return np.concatenate(mean), np.block(cov)


def conditioned(mean, cov, design, noise, data):
    """Posterior mean, covariance and log evidence of data = design x + N(0, noise)."""
    total = design @ cov @ design.T + noise
    gain = cov @ design.T @ np.linalg.inv(total)
    evidence = multivariate_normal(design @ mean, total).logpdf(data)
    return mean + gain @ (data - design @ mean), cov - gain @ design @ cov, evidence


def random_walk():
    m = cv.Model()
    t = m.plate("t")
    state = m.chain(
        "state",
        over=t,
        first=cv.gaussian(0.0, variance=100.0),
        then=lambda previous: cv.gaussian(previous, variance=1.0),
    )
    m.random("y", cv.gaussian(state, variance=2.0))
    return m


@pytest.mark.parametrize("method", ["auto", pytest.param("ep", marks=pytest.mark.slow), "vmp"])
def test_random_walk_of_the_language_with_missing_entries(method):
    data = RNG.normal(size=9) * 3
    data[[0, 4, 8]] = np.nan
    posterior = cv.infer(random_walk(), {"y": data}, method=method)
    seen = np.flatnonzero(~np.isnan(data))
    mean, cov = dense_chain((0.0, 100.0), [(1.0, 0.0, 1.0)] * 8)
    mean, cov, evidence = conditioned(mean, cov, np.eye(9)[seen], 2.0 * np.eye(6), data[seen])
    np.testing.assert_allclose(posterior["state"].mean, mean, rtol=1e-10)
    np.testing.assert_allclose(posterior["state"].variance, np.diag(cov), rtol=1e-10)
    np.testing.assert_allclose(posterior.log_evidence, evidence, rtol=1e-11)
    assert posterior.converged
    assert posterior.iterations <= 3


def test_a_single_element_is_its_prior_and_observation():
    posterior = cv.infer(random_walk(), {"y": [3.0]})
    np.testing.assert_allclose(posterior["state"].mean, [3.0 * 100 / 102], rtol=1e-12)
    np.testing.assert_allclose(posterior.log_evidence, norm(0, np.sqrt(102)).logpdf(3.0), rtol=1e-12)


@pytest.mark.parametrize("size", [1, 4, *(pytest.param(size, marks=pytest.mark.slow) for size in (2, 3, 5))])
def test_vector_states_with_inputs_and_matrices(size):
    steps, seen = 12, 2
    a = 0.9 * np.linalg.qr(RNG.normal(size=(size, size)))[0]
    b = RNG.normal(size=(seen, size))
    q = np.eye(size) * 0.3 + 0.1
    control, data = RNG.normal(size=(steps, size)), RNG.normal(size=(steps, seen))
    m = cv.Model()
    t = m.plate("t")
    u = m.input("u", cv.vector(size), plates=t)
    design = m.input("design", cv.matrix(seen, size))
    state = m.chain(
        "state",
        over=t,
        first=cv.vector_gaussian(np.ones(size), covariance=4.0 * np.eye(size)),
        then=lambda previous: cv.vector_gaussian(a @ previous + u, covariance=q),
    )
    m.random("y", cv.vector_gaussian(design @ state, covariance=0.5 * np.eye(seen)))
    posterior = cv.infer(m, {"y": data, "u": control, "design": b})
    mean, cov = dense_chain((np.ones(size), 4.0 * np.eye(size)), [(a, control[i], q) for i in range(1, steps)])
    mean, cov, evidence = conditioned(mean, cov, np.kron(np.eye(steps), b), 0.5 * np.eye(seen * steps), data.ravel())
    found = posterior["state"]
    np.testing.assert_allclose(found.mean, mean.reshape(steps, size), rtol=1e-9, atol=1e-11)
    blocks = [cov[i : i + size, i : i + size] for i in range(0, steps * size, size)]
    np.testing.assert_allclose(found.parameters["covariance"], blocks, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(posterior.log_evidence, evidence, rtol=1e-11)


def test_inputs_belong_to_the_element_that_is_generated():
    steps = 7
    width, slope = RNG.uniform(0.2, 2.0, steps), RNG.normal(size=steps)
    data = RNG.normal(size=steps)
    m = cv.Model()
    t = m.plate("t")
    gap = m.input("gap", cv.positive, plates=t)
    rate = m.input("rate", cv.real, plates=t)
    state = m.chain(
        "state",
        over=t,
        first=cv.gaussian(1.0, variance=2.0),
        then=lambda previous: cv.gaussian(rate * previous - 0.5, variance=gap),
    )
    m.random("y", cv.gaussian(2.0 * state + 1.0, variance=0.3))
    posterior = cv.infer(m, {"y": data, "gap": width, "rate": slope})
    mean, cov = dense_chain((1.0, 2.0), [(slope[i], -0.5, width[i]) for i in range(1, steps)])
    mean, cov, evidence = conditioned(mean, cov, 2.0 * np.eye(steps), 0.3 * np.eye(steps), data - 1.0)
    np.testing.assert_allclose(posterior["state"].mean, mean, rtol=1e-10)
    np.testing.assert_allclose(posterior["state"].variance, np.diag(cov), rtol=1e-10)
    np.testing.assert_allclose(posterior.log_evidence, evidence, rtol=1e-10)


def test_chains_side_by_side_are_independent():
    steps, count = 6, 3
    start, data = np.array([-1.0, 0.0, 2.0]), RNG.normal(size=(3, 6))
    m = cv.Model()
    n, t = m.plate("n"), m.plate("t")
    origin = m.input("origin", cv.real, plates=n)
    state = m.chain(
        "state",
        over=t,
        plates=n,
        first=cv.gaussian(origin, variance=1.0),
        then=lambda previous: cv.gaussian(0.8 * previous + 0.1 * origin, variance=0.4),
    )
    m.random("y", cv.gaussian(state, variance=0.5))
    posterior = cv.infer(m, {"y": data, "origin": start})
    assert posterior["state"].mean.shape == (count, steps)
    total = 0.0
    for i in range(count):
        mean, cov = dense_chain((start[i], 1.0), [(0.8, 0.1 * start[i], 0.4)] * (steps - 1))
        mean, _, evidence = conditioned(mean, cov, np.eye(steps), 0.5 * np.eye(steps), data[i])
        np.testing.assert_allclose(posterior["state"].mean[i], mean, rtol=1e-9, atol=1e-12)
        total += evidence
    np.testing.assert_allclose(posterior.log_evidence, total, rtol=1e-10)


@pytest.mark.slow
def test_ep_likelihoods_agree_with_the_chain_written_out():
    outcome = np.array([True, True, False, True])
    m = cv.Model()
    t = m.plate("t")
    state = m.chain(
        "state", over=t, first=cv.gaussian(0.0, variance=2.0), then=lambda previous: cv.gaussian(previous, variance=0.5)
    )
    m.random("y", cv.bernoulli(cv.probit(state)))
    posterior = cv.infer(m, {"y": outcome}, tolerance=1e-10)

    twin = cv.Model()
    elements = [twin.random("x0", cv.gaussian(0.0, variance=2.0))]
    for i in range(1, 4):
        elements.append(twin.random(f"x{i}", cv.gaussian(elements[-1], variance=0.5)))
    for i, element in enumerate(elements):
        twin.random(f"y{i}", cv.bernoulli(cv.probit(element)))
    expected = cv.infer(twin, {f"y{i}": bool(value) for i, value in enumerate(outcome)}, tolerance=1e-10, method="ep")
    np.testing.assert_allclose(posterior["state"].mean, [float(expected[f"x{i}"].mean) for i in range(4)], rtol=1e-7)
    np.testing.assert_allclose(
        posterior["state"].variance, [float(expected[f"x{i}"].variance) for i in range(4)], rtol=1e-7
    )
    np.testing.assert_allclose(posterior.log_evidence, expected.log_evidence, rtol=1e-7)


# random parameters: structured VMP ------------------------------------------------------------------------------------


def gamma_parts(shape, rate, shape0, rate0):
    """E log p - E log q of a Gamma(shape, rate) belief under a Gamma(shape0, rate0) prior."""
    mean, log = shape / rate, digamma(shape) - np.log(rate)
    prior = shape0 * np.log(rate0) - gammaln(shape0) + (shape0 - 1) * log - rate0 * mean
    return prior - (shape * np.log(rate) - gammaln(shape) + (shape - 1) * log - rate * mean)


def test_unknown_noises_against_structured_vmp_in_dense_algebra():
    steps = 15
    data = np.cumsum(RNG.normal(size=steps)) + RNG.normal(size=steps)
    m = cv.Model()
    t = m.plate("t")
    drift = m.random("drift", cv.gamma(2.0, 3.0))
    noise = m.random("noise", cv.gamma(1.5, 2.0))
    state = m.chain(
        "state",
        over=t,
        first=cv.gaussian(0.0, variance=9.0),
        then=lambda previous: cv.gaussian(previous, precision=drift),
    )
    m.random("y", cv.gaussian(state, precision=noise))
    posterior = cv.infer(m, {"y": data}, tolerance=1e-10, accuracy="fast")

    difference = np.diff(np.eye(steps), axis=0)
    a, b = (2.0, 3.0), (1.5, 2.0)
    for _ in range(2000):
        q, r = a[0] / a[1], b[0] / b[1]
        precision = q * difference.T @ difference + r * np.eye(steps)
        precision[0, 0] += 1 / 9
        cov = np.linalg.inv(precision)
        mean = cov @ (r * data)
        second = cov + np.outer(mean, mean)
        walk = np.trace(difference @ second @ difference.T)
        error = np.sum((data - mean) ** 2) + np.trace(cov)
        a, b = (2.0 + 0.5 * (steps - 1), 3.0 + 0.5 * walk), (1.5 + 0.5 * steps, 2.0 + 0.5 * error)
    logs = [digamma(shape) - np.log(rate) for shape, rate in (a, b)]
    half = 0.5 * np.log(2 * np.pi)
    bound = 0.5 * (steps - 1) * logs[0] - 0.5 * a[0] / a[1] * walk - (steps - 1) * half
    bound += -0.5 * second[0, 0] / 9 - 0.5 * np.log(9) - half
    bound += 0.5 * steps * logs[1] - 0.5 * b[0] / b[1] * error - steps * half
    bound += 0.5 * np.linalg.slogdet(cov)[1] + 0.5 * steps * (1 + np.log(2 * np.pi))
    bound += gamma_parts(*a, 2.0, 3.0) + gamma_parts(*b, 1.5, 2.0)
    np.testing.assert_allclose(posterior["drift"].mean, a[0] / a[1], rtol=1e-7)
    np.testing.assert_allclose(posterior["noise"].mean, b[0] / b[1], rtol=1e-7)
    np.testing.assert_allclose(posterior["state"].mean, mean, rtol=1e-6)
    np.testing.assert_allclose(posterior["state"].variance, np.diag(cov), rtol=1e-6)
    np.testing.assert_allclose(posterior.log_evidence, bound, rtol=1e-9)


def test_unknown_coefficient_and_start_against_structured_vmp():
    steps = 14
    data = RNG.normal(size=steps) + np.linspace(0, 2, steps)
    m = cv.Model()
    t = m.plate("t")
    phi = m.random("phi", cv.gaussian(0.5, variance=0.25))
    origin = m.random("origin", cv.gaussian(1.0, variance=4.0))
    state = m.chain(
        "state",
        over=t,
        first=cv.gaussian(origin, variance=0.5),
        then=lambda previous: cv.gaussian(phi * previous + 0.3, variance=0.4),
    )
    m.random("y", cv.gaussian(state, variance=0.7))
    posterior = cv.infer(m, {"y": data}, tolerance=1e-11, accuracy="fast")

    (f, fv), (o, ov) = (0.5, 0.25), (1.0, 4.0)
    for _ in range(2000):
        precision, shift = np.eye(steps) / 0.7, data / 0.7
        precision[0, 0] += 1 / 0.5
        shift[0] += o / 0.5
        for i in range(1, steps):
            precision[i, i] += 1 / 0.4
            precision[i - 1, i - 1] += (f * f + fv) / 0.4
            precision[i, i - 1] -= f / 0.4
            precision[i - 1, i] -= f / 0.4
            shift[i] += 0.3 / 0.4
            shift[i - 1] -= f * 0.3 / 0.4
        cov = np.linalg.inv(precision)
        mean = cov @ shift
        second = cov + np.outer(mean, mean)
        fv = 1 / (1 / 0.25 + np.trace(second[:-1, :-1]) / 0.4)
        f = fv * (0.5 / 0.25 + (np.sum(np.diag(second, 1)) - 0.3 * np.sum(mean[:-1])) / 0.4)
        ov = 1 / (1 / 4 + 1 / 0.5)
        o = ov * (1 / 4 + mean[0] / 0.5)

    def gauss(square, variance):
        return -0.5 * square / variance - 0.5 * np.log(2 * np.pi * variance)

    bound = sum(gauss((data[i] - mean[i]) ** 2 + cov[i, i], 0.7) for i in range(steps))
    bound += gauss((mean[0] - o) ** 2 + cov[0, 0] + ov, 0.5)
    for i in range(1, steps):
        square = second[i, i] + (f * f + fv) * second[i - 1, i - 1] + 0.09
        square += -2 * f * second[i, i - 1] - 2 * 0.3 * mean[i] + 2 * f * 0.3 * mean[i - 1]
        bound += gauss(square, 0.4)
    bound += gauss((f - 0.5) ** 2 + fv, 0.25) + gauss((o - 1) ** 2 + ov, 4.0)
    bound += 0.5 * np.log(2 * np.pi * np.e * fv) + 0.5 * np.log(2 * np.pi * np.e * ov)
    bound += 0.5 * np.linalg.slogdet(cov)[1] + 0.5 * steps * (1 + np.log(2 * np.pi))
    np.testing.assert_allclose([posterior["phi"].mean, posterior["phi"].variance], [f, fv], rtol=1e-7)
    np.testing.assert_allclose(posterior["origin"].mean, o, rtol=1e-7)
    np.testing.assert_allclose(posterior["state"].mean, mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(posterior.log_evidence, bound, rtol=1e-9)


def test_vector_states_with_an_unknown_precision_matrix():
    """One Wishart precision for all steps, against dense algebra; a scalar times the vector is the transition."""
    steps, size = 8, 2
    data = RNG.normal(size=(steps, size))
    m = cv.Model()
    t = m.plate("t")
    precision = m.random("precision", cv.wishart(dof=5.0, scale=np.eye(size) / 5.0))
    state = m.chain(
        "state",
        over=t,
        first=cv.vector_gaussian(np.zeros(size), covariance=np.eye(size)),
        then=lambda previous: cv.vector_gaussian(0.7 * previous, precision=precision),
    )
    m.random("y", cv.vector_gaussian(state, covariance=0.2 * np.eye(size)))
    posterior = cv.infer(m, {"y": data}, tolerance=1e-10, accuracy="fast")
    lag = np.eye(steps)[1:] - 0.7 * np.eye(steps)[:-1]
    w = np.eye(size)
    for _ in range(500):
        total = np.kron(lag.T @ lag, w) + np.eye(steps * size) / 0.2
        total[:size, :size] += np.eye(size)
        cov = np.linalg.inv(total)
        mean = cov @ (data.ravel() / 0.2)
        second = (cov + np.outer(mean, mean)).reshape(steps, size, steps, size)
        scatter = np.einsum("ia,ajbk,ib->jk", lag, second, lag)
        w = (5.0 + steps - 1) * np.linalg.inv(5.0 * np.eye(size) + scatter)
    np.testing.assert_allclose(posterior["precision"].mean, w, rtol=1e-7)
    np.testing.assert_allclose(posterior["state"].mean.ravel(), mean, rtol=1e-6, atol=1e-9)


def test_an_observed_chain_tells_of_its_parameters():
    """Autoregression: the states are data, the coefficient is exact conjugate regression."""
    data = np.cumsum(RNG.normal(size=30)) * 0.3
    m = cv.Model()
    t = m.plate("t")
    phi = m.random("phi", cv.gaussian(0.0, variance=1.0))
    m.chain(
        "x", over=t, first=cv.gaussian(0.0, variance=1.0), then=lambda previous: cv.gaussian(phi * previous, sd=0.5)
    )
    posterior = cv.infer(m, {"x": data}, accuracy="fast")
    precision = 1.0 + np.sum(data[:-1] ** 2) / 0.25
    mean = np.sum(data[:-1] * data[1:]) / 0.25 / precision
    np.testing.assert_allclose([posterior["phi"].mean, posterior["phi"].variance], [mean, 1 / precision], rtol=1e-9)
    cov = np.eye(29) * 0.25 + np.outer(data[:-1], data[:-1])
    evidence = norm(0, 1).logpdf(data[0]) + multivariate_normal(np.zeros(29), cov).logpdf(data[1:])
    np.testing.assert_allclose(posterior.log_evidence, evidence, rtol=1e-10)


# use ------------------------------------------------------------------------------------------------------------------


def test_prediction_is_for_a_new_sequence():
    posterior = cv.infer(random_walk(), {"y": RNG.normal(size=5)})
    found = posterior.predict({}, sizes={"t": 4})
    np.testing.assert_allclose(found["state"].variance, 100.0 + np.arange(4), rtol=1e-12)
    np.testing.assert_allclose(found["y"].variance, 102.0 + np.arange(4), rtol=1e-12)


def test_another_series_of_the_same_length_does_not_recompile():
    program = cv.compile(random_walk(), observed=["y"])
    program({"y": RNG.normal(size=8)})
    program({"y": RNG.normal(size=8)})
    assert program.traces == 1


def test_a_batch_of_series():
    datas = [{"y": RNG.normal(size=6)} for _ in range(3)]
    program = cv.compile(random_walk(), observed=["y"])
    for single, data in zip(program.batch(datas), datas, strict=True):
        np.testing.assert_allclose(single["state"].mean, program(data)["state"].mean, rtol=1e-9)


def _chain(then, first=None, **options):
    m = cv.Model()
    t = m.plate("t")
    return m, m.chain("state", over=t, first=first or cv.gaussian(0.0, variance=1.0), then=then, **options)


@pytest.mark.parametrize(
    "then",
    [
        lambda p: cv.gaussian(cv.exp(p) - 1.0, variance=1.0),
        lambda p: cv.gaussian(p * p, variance=1.0),
        lambda p: cv.gaussian(0.0, precision=cv.exp(p)),
    ],
)
def test_transitions_without_exact_messages_are_taken_by_quadrature(then):
    m, state = _chain(then)
    m.random("y", cv.gaussian(state, variance=1.0))
    posterior = cv.infer(m, {"y": [1.0, 2.0]})
    assert "message: quadrature" in posterior.explain()
    assert posterior.converged


def test_errors_of_the_language():
    with pytest.raises(cv.ModelError, match="then= generates boolean values"):
        _chain(lambda p: cv.bernoulli(0.5))
    with pytest.raises(cv.ModelError, match="must return one term"):
        _chain(lambda p: p + 1.0)
    with pytest.raises(cv.ModelError, match=r"returned a switch on .*depends on the element before"):
        _chain(lambda p: cv.switch(p > 0.0, cv.gaussian(p, variance=1.0), cv.gaussian(0.0, variance=1.0)))
    with pytest.raises(cv.ModelError, match="must be a function"):
        _chain(cv.gaussian(0.0, variance=1.0))
    with pytest.raises(cv.ModelError, match="real, vectors, booleans or categories"):
        _chain(lambda p: cv.gamma(1.0, 1.0), first=cv.gamma(1.0, 1.0))
    m = cv.Model()
    t = m.plate("t")
    u = m.input("u", cv.real, plates=t)
    with pytest.raises(cv.ModelError, match="elements without a parent only"):
        m.chain("state", over=t, first=cv.gaussian(u, variance=1.0), then=lambda p: cv.gaussian(p, variance=1.0))

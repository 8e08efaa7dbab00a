"""Chains against dense algebra, enumeration, unrolled twins and structured VMP written out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import digamma, gammaln, logsumexp
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


@pytest.mark.parametrize("method", ["auto", "ep", "vmp"])
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


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
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
    posterior = cv.infer(m, {"y": data}, tolerance=1e-10)

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
    posterior = cv.infer(m, {"y": data}, tolerance=1e-11)

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
    posterior = cv.infer(m, {"y": data}, tolerance=1e-10)
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
    posterior = cv.infer(m, {"x": data})
    precision = 1.0 + np.sum(data[:-1] ** 2) / 0.25
    mean = np.sum(data[:-1] * data[1:]) / 0.25 / precision
    np.testing.assert_allclose([posterior["phi"].mean, posterior["phi"].variance], [mean, 1 / precision], rtol=1e-9)
    cov = np.eye(29) * 0.25 + np.outer(data[:-1], data[:-1])
    evidence = norm(0, 1).logpdf(data[0]) + multivariate_normal(np.zeros(29), cov).logpdf(data[1:])
    np.testing.assert_allclose(posterior.log_evidence, evidence, rtol=1e-10)


# discrete states ------------------------------------------------------------------------------------------------------


def enumerated(first, table, node):
    """log Z, marginals and expected transition counts by summing over all paths; node is (time, states) in logs."""
    steps, states = node.shape
    paths = np.array(list(itertools.product(range(states), repeat=steps)))
    log = first[paths[:, 0]] + table[paths[:, :-1], paths[:, 1:]].sum(1) + node[np.arange(steps), paths].sum(1)
    log_z = logsumexp(log)
    weight = np.exp(log - log_z)
    marginals = np.array([[weight[paths[:, i] == k].sum() for k in range(states)] for i in range(steps)])
    counts = np.array(
        [
            [weight @ np.sum((paths[:, :-1] == i) & (paths[:, 1:] == j), axis=1) for j in range(states)]
            for i in range(states)
        ]
    )
    return log_z, marginals, counts


def hidden_markov(states, table, first, values, variance=0.7):
    m = cv.Model()
    t, k = m.plate("t"), m.plate("k", states)
    rows = m.input("rows", cv.simplex(states), plates=k)
    value = m.input("value", cv.real, plates=k)
    z = m.chain("z", over=t, first=cv.categorical(first), then=lambda previous: cv.categorical(rows[previous]))
    m.random("y", cv.gaussian(value[z], variance=variance))
    return m, {"rows": table, "value": values}


@pytest.mark.parametrize("method", ["auto", "ep", "vmp"])
def test_hidden_markov_model_against_enumeration(method):
    table, first, values = RNG.dirichlet(np.ones(3), size=3), np.array([0.2, 0.5, 0.3]), np.array([-1.0, 0.0, 2.0])
    data = RNG.normal(size=6)
    m, given = hidden_markov(3, table, first, values)
    posterior = cv.infer(m, {"y": data, **given}, method=method)
    node = norm(values, np.sqrt(0.7)).logpdf(data[:, None])
    log_z, marginals, _ = enumerated(np.log(first), np.log(table), node)
    np.testing.assert_allclose(posterior.log_evidence, log_z, rtol=1e-12)
    np.testing.assert_allclose(posterior["z"].mean, marginals, rtol=1e-10)


def test_an_outlier_in_a_state_that_must_be_passed():
    """Left to right, no way around: products of probabilities underflow, their logarithms do not."""
    table = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
    first, values = np.array([1.0, 0.0, 0.0]), np.array([0.0, 5.0, 10.0])
    data = np.array([0.0, 0.1, 200.0, -190.0, 10.0])
    m, given = hidden_markov(3, table, first, values, variance=0.1)
    posterior = cv.infer(m, {"y": data, **given})
    node = norm(values, np.sqrt(0.1)).logpdf(data[:, None])
    with np.errstate(divide="ignore"):
        log_z, marginals, _ = enumerated(np.log(first), np.log(table), node)
    assert log_z < -1e5
    np.testing.assert_allclose(posterior.log_evidence, log_z, rtol=1e-12)
    np.testing.assert_allclose(posterior["z"].mean, marginals, atol=1e-12)


def test_tables_that_vary_along_the_chain_and_between_chains():
    steps, count = 4, 2
    table = RNG.dirichlet(np.ones(2), size=(count, steps, 2))
    emission = RNG.dirichlet(np.ones(3), size=2)
    data = RNG.integers(0, 3, size=(count, steps))
    m = cv.Model()
    n, t, k = m.plate("n"), m.plate("t"), m.plate("k", 2)
    rows = m.input("rows", cv.simplex(2), plates=(n, t, k))
    shown = m.input("shown", cv.simplex(3), plates=k)
    z = m.chain(
        "z", over=t, plates=n, first=cv.categorical([0.4, 0.6]), then=lambda previous: cv.categorical(rows[previous])
    )
    m.random("y", cv.categorical(shown[z]))
    posterior = cv.infer(m, {"y": data, "rows": table, "shown": emission})
    total = 0.0
    for i in range(count):
        node = np.log(emission[:, data[i]]).T
        paths = np.array(list(itertools.product(range(2), repeat=steps)))
        log = np.log([0.4, 0.6])[paths[:, 0]] + node[np.arange(steps), paths].sum(1)
        log += sum(np.log(table[i, s])[paths[:, s - 1], paths[:, s]] for s in range(1, steps))
        weight = np.exp(log - logsumexp(log))
        marginals = np.array([[weight[paths[:, s] == j].sum() for j in range(2)] for s in range(steps)])
        np.testing.assert_allclose(posterior["z"].mean[i], marginals, rtol=1e-9)
        total += logsumexp(log)
    np.testing.assert_allclose(posterior.log_evidence, total, rtol=1e-11)


def test_a_boolean_chain_with_a_missing_observation():
    stay, begin = np.array([0.2, 0.9]), 0.3  # P(true | previous)
    shown = np.array([0.1, 0.7])
    m = cv.Model()
    t, b = m.plate("t"), m.plate("b", 2)
    rate = m.input("rate", cv.unit, plates=b)
    seen = m.input("seen", cv.unit, plates=b)
    wet = m.chain("wet", over=t, first=cv.bernoulli(begin), then=lambda previous: cv.bernoulli(rate[previous]))
    m.random("umbrella", cv.bernoulli(seen[wet]))
    data = np.ma.masked_array([True, True, False, True, False], mask=[0, 0, 1, 0, 0])
    posterior = cv.infer(m, {"umbrella": data, "rate": stay, "seen": shown})
    node = np.log(np.where(data.data[:, None], shown, 1 - shown))
    node[2] = 0.0
    table = np.log(np.stack([1 - stay, stay], axis=-1))
    log_z, marginals, _ = enumerated(np.log([1 - begin, begin]), table, node)
    np.testing.assert_allclose(posterior.log_evidence, log_z, rtol=1e-11)
    np.testing.assert_allclose(posterior["wet"].mean, marginals[:, 1], rtol=1e-10)


def dirichlet_parts(belief, prior):
    """E log p - E log q of a Dirichlet belief under a Dirichlet prior."""
    logs = digamma(belief) - digamma(belief.sum())
    norm_of = lambda a: gammaln(a.sum()) - gammaln(a).sum()  # noqa: E731
    return norm_of(prior) - norm_of(belief) + (prior - belief) @ logs


def test_unknown_transitions_and_emissions_against_structured_vmp():
    """Dirichlet rows and a random mean for each state: sums over all paths stand for the chain."""
    states, variance = 2, 0.5
    data = np.array([-1.2, -0.8, 2.1, 1.9, -1.0, 2.2, 1.7])
    m = cv.Model()
    t, k = m.plate("t"), m.plate("k", states)
    begin = m.random("begin", cv.dirichlet(np.array([1.0, 2.0])))
    rows = m.random("rows", cv.dirichlet(np.array([1.5, 1.0])), plates=k)
    value = m.random("value", cv.gaussian(0.5, variance=4.0), plates=k)
    z = m.chain("z", over=t, first=cv.categorical(begin), then=lambda previous: cv.categorical(rows[previous]))
    m.random("y", cv.gaussian(value[z], variance=variance))
    posterior = cv.infer(m, {"y": data}, tolerance=1e-11, restarts=6)

    # From means in the order that the run found, so that the two name the states alike.
    prior_mean = 0.5
    mean, spread = np.where(np.argsort(posterior["value"].mean) == 0, -1.0, 2.0), np.full(2, 0.1)
    alpha, gamma = np.tile([1.5, 1.0], (2, 1)), np.array([1.0, 2.0])
    for _ in range(3000):
        node = -0.5 * ((data[:, None] - mean) ** 2 + spread) / variance - 0.5 * np.log(2 * np.pi * variance)
        first = digamma(gamma) - digamma(gamma.sum())
        table = digamma(alpha) - digamma(alpha.sum(1, keepdims=True))
        log_z, marginals, counts = enumerated(first, table, node)
        bound = log_z + dirichlet_parts(gamma, np.array([1.0, 2.0]))
        bound += sum(dirichlet_parts(row, np.array([1.5, 1.0])) for row in alpha)
        bound += np.sum(-0.5 * ((mean - prior_mean) ** 2 + spread) / 4 - 0.5 * np.log(4) + 0.5 + 0.5 * np.log(spread))
        alpha, gamma = np.array([1.5, 1.0]) + counts, np.array([1.0, 2.0]) + marginals[0]
        spread = 1 / (1 / 4 + marginals.sum(0) / variance)
        mean = spread * (prior_mean / 4 + data @ marginals / variance)
    np.testing.assert_allclose(posterior["z"].mean, marginals, rtol=1e-6)
    np.testing.assert_allclose(posterior["rows"].parameters["concentration"], alpha, rtol=1e-6)
    np.testing.assert_allclose(posterior["begin"].parameters["concentration"], gamma, rtol=1e-6)
    np.testing.assert_allclose(posterior["value"].mean, mean, rtol=1e-6)
    np.testing.assert_allclose(posterior.log_evidence, bound, rtol=1e-9)


def test_an_observed_discrete_chain_counts_its_transitions():
    data = np.array([0, 1, 1, 2, 0, 1, 2, 2, 2])
    m = cv.Model()
    t, k = m.plate("t"), m.plate("k", 3)
    rows = m.random("rows", cv.dirichlet(np.ones(3)), plates=k)
    m.chain("z", over=t, first=cv.categorical([0.2, 0.3, 0.5]), then=lambda previous: cv.categorical(rows[previous]))
    posterior = cv.infer(m, {"z": data})
    counts = np.zeros((3, 3))
    np.add.at(counts, (data[:-1], data[1:]), 1)
    np.testing.assert_allclose(posterior["rows"].parameters["concentration"], 1 + counts, rtol=1e-10)
    evidence = np.log(0.2) + np.sum(gammaln(3) - gammaln(3 + counts.sum(1)) + gammaln(1 + counts).sum(1))
    np.testing.assert_allclose(posterior.log_evidence, evidence, rtol=1e-10)


# use ------------------------------------------------------------------------------------------------------------------


def test_prediction_is_for_a_new_sequence():
    """And the marginals of a chain that nothing observed depends on are those of its prior."""
    posterior = cv.infer(random_walk(), {"y": RNG.normal(size=5)})
    found = posterior.predict({}, sizes={"t": 4})
    np.testing.assert_allclose(found["state"].variance, 100.0 + np.arange(4), rtol=1e-12)
    np.testing.assert_allclose(found["y"].variance, 102.0 + np.arange(4), rtol=1e-12)
    m, given = hidden_markov(2, np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    m.random("other", cv.gaussian(0.0, variance=1.0))
    found = cv.infer(m, {"other": 0.3, **given}, sizes={"t": 4})["z"].mean
    power = np.array([1.0, 0.0])
    for row in found:
        np.testing.assert_allclose(row, power, atol=1e-12)
        power = power @ given["rows"]


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
    ("then", "error", "says"),
    [
        (
            lambda p: cv.gaussian(cv.exp(p) - 1.0, variance=1.0),
            cv.UnsupportedError,
            "not linear in the previous element",
        ),
        (lambda p: cv.gaussian(p * p, variance=1.0), cv.UnsupportedError, "not linear in the previous element"),
        (lambda p: cv.gaussian(0.0, precision=cv.exp(p)), cv.UnsupportedError, "not free of the previous element"),
    ],
)
def test_transitions_without_exact_messages_are_refused_with_the_reason(then, error, says):
    m, state = _chain(then)
    m.random("y", cv.gaussian(state, variance=1.0))
    with pytest.raises(error, match=says):
        cv.infer(m, {"y": [1.0, 2.0]})


def test_errors_of_the_language():
    with pytest.raises(cv.ModelError, match="then= generates boolean values"):
        _chain(lambda p: cv.bernoulli(0.5))
    with pytest.raises(cv.ModelError, match="must return a term"):
        _chain(lambda p: p + 1.0)
    with pytest.raises(cv.ModelError, match="must be a function"):
        _chain(cv.gaussian(0.0, variance=1.0))
    with pytest.raises(cv.ModelError, match="real, vectors, booleans or categories"):
        _chain(lambda p: cv.gamma(1.0, 1.0), first=cv.gamma(1.0, 1.0))
    m = cv.Model()
    t = m.plate("t")
    u = m.input("u", cv.real, plates=t)
    with pytest.raises(cv.ModelError, match="elements without a parent only"):
        m.chain("state", over=t, first=cv.gaussian(u, variance=1.0), then=lambda p: cv.gaussian(p, variance=1.0))


def test_an_observed_chain_with_missing_entries_is_refused():
    m, _ = _chain(lambda p: cv.gaussian(p, variance=1.0))
    with pytest.raises(cv.UnsupportedError, match="either all observed or all inferred"):
        cv.infer(m, {"state": [1.0, np.nan, 2.0]})

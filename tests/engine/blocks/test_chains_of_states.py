"""Chains of discrete states against enumeration of their paths."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import digamma, gammaln, logsumexp
from scipy.stats import norm

import cavity as cv

RNG = np.random.default_rng(3)


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


def test_a_chain_that_nothing_observed_depends_on_keeps_its_prior():
    m, given = hidden_markov(2, np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    m.random("other", cv.gaussian(0.0, variance=1.0))
    found = cv.infer(m, {"other": 0.3, **given}, sizes={"t": 4})["z"].mean
    power = np.array([1.0, 0.0])
    for row in found:
        np.testing.assert_allclose(row, power, atol=1e-12)
        power = power @ given["rows"]

"""Chains of states with random probabilities under EP and power EP, beside a projection by brute force.

There all paths of the chain are enumerated, and Dirichlet beliefs are found by solving for their expected logarithms.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import optimize, special

import cavity as cv

close = np.testing.assert_allclose


def log_beta(a):
    return np.sum(special.gammaln(a), -1) - special.gammaln(np.sum(a, -1))


def expected_logs(a):
    return special.digamma(a) - special.digamma(np.sum(a, -1, keepdims=True))


def dirichlet(stats):
    """The concentration with these expected logarithms: a root in the digamma function of its sum."""

    def inverse(y):
        x = np.where(y > -2.2, np.exp(y) + 0.5, -1.0 / (y + np.euler_gamma))
        for _ in range(8):
            x = x - (special.digamma(x) - y) / special.polygamma(1, x)
        return x

    found = optimize.brentq(lambda y: special.digamma(inverse(stats + y).sum()) - y, -20.0, 20.0, xtol=1e-15)
    return inverse(stats + found)


class Rows:
    """Dirichlet rows with a message from each use: the use says which outcomes may be, with which chances."""

    def __init__(self, prior, uses):
        self.prior = np.asarray(prior, float)
        self.messages = np.zeros((uses, *self.prior.shape))

    @property
    def belief(self):
        return self.prior + self.messages.sum(0)

    def cavities(self, power):
        return self.belief - power * self.messages

    def logs(self, power):
        """log Z / power of each outcome, by use and row."""
        cavity = self.cavities(power)[..., None, :]
        return (log_beta(cavity + power * np.eye(cavity.shape[-1])) - log_beta(cavity)) / power

    def receive(self, chances, power):
        """Projects the mixtures over outcomes; `chances` by use, row and outcome."""
        cavity = self.cavities(power)
        after = expected_logs(cavity[..., None, :] + power * np.eye(cavity.shape[-1]))
        mixed = (1.0 - chances.sum(-1))[..., None] * expected_logs(cavity) + np.einsum(
            "...j,...jk->...k", chances, after
        )
        for at in np.ndindex(mixed.shape[:-1]):
            self.messages[at] = (dirichlet(mixed[at]) - cavity[at]) / power

    def evidence(self, power):
        total = log_beta(self.belief).sum() - log_beta(self.prior).sum()
        return total + (log_beta(self.cavities(power)) - log_beta(self.belief)).sum() / power


def brute_force(start, transition, emission, y, power, sweeps=200):
    """The fixed point: log evidence, and beliefs about start, transitions and emissions; probabilities of states."""
    states, times = len(transition), len(y)
    first, then, out = Rows([start], 1), Rows(transition, times - 1), Rows(emission, times)
    paths = np.array(list(itertools.product(range(states), repeat=times)))
    one_hot = np.eye(states)[paths]  # path, time, state
    steps = np.arange(times)
    before = np.full_like(then.messages, np.inf)
    for _ in range(sweeps):
        logs = first.logs(power)[0, 0, paths[:, 0]] + out.logs(power)[steps, paths, y].sum(1)
        logs = logs + then.logs(power)[steps[:-1], paths[:, :-1], paths[:, 1:]].sum(1)
        weight = special.softmax(logs)
        total = special.logsumexp(logs) + sum(rows.evidence(power) for rows in (first, then, out))
        marginal = np.einsum("p,pti->ti", weight, one_hot)
        if np.max(np.abs(then.messages - before), initial=0.0) < 1e-11:
            break
        before = then.messages.copy()
        first.receive(marginal[:1, None], power)
        then.receive(np.einsum("p,pti,ptj->tij", weight, one_hot[:, :-1], one_hot[:, 1:]), power)
        out.receive(marginal[:, :, None] * np.eye(len(emission[0]))[y][:, None], power)
    return total, first.belief[0], then.belief, out.belief, marginal


def hidden_markov_model(start, transition, emission, times):
    m = cv.Model("hidden Markov model")
    t, k = m.plate("t", times), m.plate("state", len(start))
    first = m.random("start", cv.dirichlet(np.asarray(start)))
    rows = m.input("rows", cv.vector(len(start)), plates=k)
    then = m.random("transition", cv.dirichlet(rows), plates=k)
    symbols = m.input("symbols", cv.vector(len(emission[0])), plates=k)
    out = m.random("emission", cv.dirichlet(symbols), plates=k)
    z = m.chain("z", over=t, first=cv.categorical(first), then=lambda previous: cv.categorical(then[previous]))
    m.random("y", cv.categorical(out[z]), plates=t)
    return m


TWO = [2.0, 1.0], [[3.0, 1.0], [1.0, 2.0]], [[3.0, 1.0, 1.0], [1.0, 1.0, 2.5]]
THREE = [1.0, 1.5, 2.0], [[2.0, 1.0, 0.5], [1.0, 3.0, 1.0], [0.7, 1.0, 2.0]], [[4.0, 1.0], [1.0, 3.0], [1.0, 1.0]]


@pytest.mark.parametrize("power", [1.0, 0.5])
@pytest.mark.parametrize(
    ("prior", "y"), [(TWO, [0, 0, 1, 2, 2, 1]), (THREE, [0, 1, 1, 0]), (TWO, [0, 2])], ids=["two", "three", "short"]
)
def test_a_hidden_markov_model_is_what_brute_force_projects(prior, y, power):
    start, transition, emission = (np.array(a) for a in prior)
    expected = brute_force(start, transition, emission, np.array(y), power)
    model = hidden_markov_model(*prior, len(y))
    data = {"y": np.array(y), "rows": transition, "symbols": emission}
    method = "ep" if power == 1.0 else cv.power(power)
    posterior = cv.infer(model, data, method=method, tolerance=1e-11)
    assert posterior.converged
    close(posterior.log_evidence, expected[0], atol=1e-9)
    for name, belief in zip(("start", "transition", "emission"), expected[1:4], strict=True):
        close(posterior[name].mean, belief / belief.sum(-1, keepdims=True), atol=1e-8)
    close(posterior["z"].mean, expected[4], atol=1e-8)


def test_a_chain_of_booleans_with_beta_probabilities_is_that_of_two_categories():
    y = np.array([1, 1, 0, 1, 0, 0])
    start, transition, emission = np.array([2.0, 1.0]), np.array([[3.0, 1.0], [1.0, 2.0]]), [[3.0, 1.0], [1.0, 4.0]]
    expected = brute_force(start, transition, emission, y, 1.0)
    m = cv.Model()
    t, k = m.plate("t", len(y)), m.plate("state", 2)
    first = m.random("start", cv.beta(1.0, 2.0))
    on, off = m.input("on", cv.positive, plates=k), m.input("off", cv.positive, plates=k)
    then = m.random("transition", cv.beta(on, off), plates=k)
    emits = m.random(
        "emission", cv.beta(m.input("yes", cv.positive, plates=k), m.input("no", cv.positive, plates=k)), plates=k
    )
    number = m.chain(
        "z",
        over=t,
        first=cv.bernoulli(first),
        then=lambda previous: cv.bernoulli(then[previous]),
    )
    m.random("y", cv.bernoulli(emits[number]), plates=t)
    data = {"y": y == 1, "off": transition[:, 0], "on": transition[:, 1], "no": [3.0, 1.0], "yes": [1.0, 4.0]}
    posterior = cv.infer(m, data, method="ep", tolerance=1e-11)
    close(posterior.log_evidence, expected[0], atol=1e-9)
    close(posterior["transition"].mean, expected[2][:, 1] / expected[2].sum(-1), atol=1e-8)


def test_small_powers_are_variational_message_passing():
    model, y = hidden_markov_model(*TWO, 6), np.array([0, 0, 1, 2, 2, 1])
    data = {"y": y, "rows": np.array(TWO[1]), "symbols": np.array(TWO[2])}
    exact = cv.infer(model, data, method="vmp", tolerance=1e-10)
    found = cv.infer(model, data, method=cv.power(1e-4), tolerance=1e-10)
    close(found.log_evidence, exact.log_evidence, atol=2e-4)
    close(found["transition"].mean, exact["transition"].mean, atol=2e-4)


def test_ep_is_nearer_to_the_truth_than_variational_message_passing():
    start, transition, emission = (np.array(a) for a in TWO)
    y = np.array([0, 0, 1, 2, 2, 1])
    logs = []
    for path in itertools.product(range(2), repeat=len(y)):
        z = np.array(path)
        moves, seen = np.zeros((2, 2)), np.zeros((2, 3))
        np.add.at(moves, (z[:-1], z[1:]), 1.0)
        np.add.at(seen, (z, y), 1.0)
        log = log_beta(start + np.eye(2)[z[0]]) - log_beta(start)
        log += (log_beta(transition + moves) - log_beta(transition)).sum()
        logs.append(log + (log_beta(emission + seen) - log_beta(emission)).sum())
    truth = special.logsumexp(logs)
    model = hidden_markov_model(*TWO, len(y))
    data = {"y": y, "rows": transition, "symbols": emission}
    by_ep, by_vmp = (cv.infer(model, data, method=method).log_evidence for method in ("ep", "vmp"))
    assert abs(by_ep - truth) < 0.2 * abs(by_vmp - truth)


def test_independent_chains_and_probabilities_of_each_group():
    """Lanes, a step's own row by data, and a first element of each lane: each group is a model of its own."""
    y = np.array([[0, 0, 1, 2], [2, 2, 1, 0], [0, 1, 0, 0]])

    def model(groups):
        m = cv.Model()
        g, t, k = m.plate("g", groups), m.plate("t", 4), m.plate("state", 2)
        first = m.random("start", cv.dirichlet(np.array(TWO[0])), plates=g)
        then = m.random("transition", cv.dirichlet(m.input("rows", cv.vector(2), plates=k)), plates=(k, g))
        out = m.random("emission", cv.dirichlet(m.input("symbols", cv.vector(3), plates=k)), plates=(k, g))
        z = m.chain(
            "z",
            over=t,
            first=cv.categorical(first),
            then=lambda previous: cv.categorical(then[previous]),
            plates=g,
        )
        m.random("y", cv.categorical(out[z]), plates=(g, t))
        return m

    data = {"rows": np.array(TWO[1]), "symbols": np.array(TWO[2])}
    together = cv.infer(model(3), {**data, "y": y}, method="ep", tolerance=1e-10)
    alone = [brute_force(*(np.array(a) for a in TWO), row, 1.0) for row in y]
    close(together.log_evidence, sum(one[0] for one in alone), atol=1e-7)
    for group, one in enumerate(alone):
        close(together["transition"].mean[:, group], one[2] / one[2].sum(-1, keepdims=True), atol=1e-6)


def test_gaussian_emissions_with_a_joint_belief_of_mean_and_precision():
    """Old Faithful's form: states in time order, each with a mean and a precision of its own."""
    rng = np.random.default_rng(4)
    z = np.array([0, 0, 1, 1, 1, 0, 1, 0, 0, 1] * 4)
    y = np.where(z == 0, 2.0, 4.5) + 0.4 * rng.normal(size=len(z))
    m = cv.Model()
    t, k = m.plate("t", len(y)), m.plate("state", 2)
    then = m.random("transition", cv.dirichlet(np.ones(2)), plates=k)
    precision = m.random("precision", cv.gamma(2.0, 0.3), plates=k)
    mean = m.random("mean", cv.gaussian(3.0, precision=0.1 * precision), plates=k)
    state = m.chain(
        "z", over=t, first=cv.categorical(np.full(2, 0.5)), then=lambda previous: cv.categorical(then[previous])
    )
    m.random("y", cv.gaussian(mean[state], precision=precision[state]), plates=t)
    for method in ("ep", cv.power(0.5), "vmp"):
        posterior = cv.infer(m, {"y": y}, method=method, restarts=4)
        assert posterior.converged
        order = np.argsort(posterior["mean"].mean)
        close(posterior["mean"].mean[order], [2.0, 4.5], atol=0.3)
        close(np.argmax(posterior["z"].mean[:, order], -1), z)


def test_what_has_no_rows_that_are_elements_is_refused():
    m = cv.Model()
    t, k = m.plate("t", 4), m.plate("state", 2)
    then = m.random("transition", cv.beta(1.0, 1.0), plates=k)
    z = m.chain("z", over=t, first=cv.bernoulli(0.5), then=lambda previous: cv.bernoulli(1.0 - then[previous]))
    m.random("y", cv.switch(z, cv.bernoulli(0.9), cv.bernoulli(0.2)), plates=t)
    with pytest.raises(cv.UnsupportedError, match="transition"):
        cv.infer(m, {"y": np.array([True, False, True, True])}, method="ep")

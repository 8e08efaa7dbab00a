"""Discrete variables drawn jointly beyond what one table holds: chains with elements given, trees, and networks.

All states are enumerated outside of the engine. Where nothing else is random the draws are independent, so that the
frequency of every element, and of every pair of elements, is that of a binomial number.
"""

import itertools

import numpy as np
import pytest
from scipy.special import expit, softmax

import cavity as cv

RANDOM = np.random.default_rng(4)
STATES = np.array(list(itertools.product([0, 1], repeat=13)))  # 8,192: more than one table holds
STAYS = np.array([0.2, 0.85])  # the chance to be true after false, and after true
FAR = 4.5  # standard errors


def log_bernoulli(state, p):
    return np.where(state == 1, np.log(p), np.log1p(-p))


def moments(states, weights):
    """The mean of every element and of every product of two."""
    return np.einsum("sn,sm,s->nm", states, states, weights)


def distance(draws, log_joint):
    """How many standard errors the moments of independent draws are from those of all states, at most."""
    flat = draws.reshape(-1, 13).astype(float)
    wanted = moments(STATES.astype(float), softmax(log_joint))
    found = moments(flat, np.full(len(flat), 1.0 / len(flat)))
    return np.max(np.abs(found - wanted) / (np.sqrt(np.maximum(wanted * (1.0 - wanted), 0.0) / len(flat)) + 1e-9))


def seen(y):
    """log p(y | state), y ~ N(state, 1), up to a constant."""
    return -0.5 * np.sum((y - STATES) ** 2, axis=1)


def chain():
    m = cv.Model()
    stays = m.input("stays", cv.unit, plates=m.plate("before", 2))
    s = m.chain("s", over=m.plate("t", 13), first=cv.bernoulli(0.3), then=lambda one: cv.bernoulli(stays[one]))
    m.random("y", cv.gaussian(cv.where(s, 1.0, 0.0), sd=1.0))
    y = RANDOM.normal(size=13)
    steps = log_bernoulli(STATES[:, 1:], STAYS[STATES[:, :-1]]).sum(1)
    return m, {"stays": STAYS, "y": y}, log_bernoulli(STATES[:, 0], 0.3) + steps + seen(y)


PARENT = np.array([0, 0, 0, 1, 1, 2, 2, 7, 7, 8, 5, 10, 10])  # two trees, of the roots 0 and 7


def tree():
    m = cv.Model()
    t = m.plate("t", 13)
    stays = m.input("stays", cv.unit, plates=m.plate("before", 2))
    parent = m.input("parent", cv.index(t), plates=t)
    s = m.tree("s", over=t, parent=parent, root=cv.bernoulli(0.3), then=lambda one: cv.bernoulli(stays[one]))
    m.random("y", cv.gaussian(cv.where(s, 1.0, 0.0), sd=1.0))
    y, root = RANDOM.normal(size=13), np.arange(13) == PARENT
    own = np.where(root, log_bernoulli(STATES, 0.3), log_bernoulli(STATES, STAYS[STATES[:, PARENT]]))
    return m, {"stays": STAYS, "y": y, "parent": PARENT}, own.sum(1) + seen(y)


def network():
    """Alarms that several of thirteen faults set off, and a rule that ties some faults."""
    m = cv.Model()
    k, n = m.plate("k", 13), m.plate("n", 4)
    weight = m.input("weight", cv.real, plates=(n, k))
    fault = m.random("fault", cv.bernoulli(0.3), plates=k)
    causes = ((0, 1, 2), (2, 3, 4, 5), (6, 7, 8), (8, 9, 10, 11, 12))
    for number, cause in enumerate(causes):
        score = sum(cv.where(fault[i], weight[number, i], 0.0) for i in cause) - 1.0
        m.random(f"alarm {number}", cv.bernoulli(cv.logistic(score)))
    m.constrain(fault[0] | fault[12])
    weights = RANDOM.normal(1.0, 1.0, (4, 13))
    log_joint = log_bernoulli(STATES, 0.3).sum(1) + np.where(STATES[:, 0] | STATES[:, 12], 0.0, -np.inf)
    alarms = np.array([True, False, True, True])
    for number, cause in enumerate(causes):
        p = expit(STATES[:, cause] @ weights[number, list(cause)] - 1.0)
        log_joint = log_joint + log_bernoulli(alarms[number], p)
    return m, {"weight": weights, **{f"alarm {i}": alarms[i] for i in range(4)}}, log_joint


WAYS = {chain: ("s", "forward filtering"), tree: ("s", "tree jointly"), network: ("fault", "summed out one after")}


@pytest.mark.parametrize("case", WAYS)
def test_joint_draws_have_the_moments_of_all_states(case):
    name, way = WAYS[case]
    m, data, log_joint = case()
    samples = cv.sample(m, data, draws=4000, chains=2, progress=False)
    assert way in samples.explain()
    assert distance(samples[name], log_joint) < FAR
    assert distance(samples[name], 0.8 * log_joint) > FAR  # the control


@pytest.mark.parametrize("case", WAYS)
def test_elements_that_are_given_stay_and_the_others_know_them(case):
    name, way = WAYS[case]
    m, data, log_joint = case()
    given = np.full(13, np.nan)
    given[[2, 6, 9]] = 1.0, 0.0, 1.0
    samples = cv.sample(m, {**data, name: given}, draws=4000, chains=2, progress=False)
    there = ~np.isnan(given)
    assert way in samples.explain()
    assert (samples[name][..., there] == given[there]).all()
    log_joint = np.where((STATES[:, there] == given[there]).all(1), log_joint, -np.inf)
    assert distance(samples[name], log_joint) < FAR

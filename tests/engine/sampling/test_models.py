"""Models as users write them, with discrete variables: `cv.sample` against grids and enumeration."""

import itertools

import arviz
import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, gammaln, logsumexp, softmax

import cavity as cv

RANDOM = np.random.default_rng(7)
FAR = 4.5  # standard errors


def bernoulli(y, p):
    return np.where(y == 1, np.log(p), np.log1p(-p))


def grid_of(low, high, count=161):
    return np.linspace(low, high, count)


def latent_classes():
    """Two classes of rows with answers to three questions: classes are told apart by an order of the first chance."""
    m = cv.Model()
    n, j = m.plate("n"), m.plate("j", 3)
    chance = m.input("chance", cv.unit, plates=(j, m.plate("k", 2)))
    share = m.random("share", cv.beta(2.0, 3.0))
    z = m.random("z", cv.bernoulli(share), plates=n)
    m.random("y", cv.bernoulli(chance[z]), plates=(n, j))
    p = np.array([[0.2, 0.7], [0.4, 0.9], [0.5, 0.3]])
    y = RANDOM.random((6, 3)) < 0.5
    by_class = np.stack([bernoulli(y, p[:, c]).sum(1) for c in (0, 1)])  # (class, row)
    s = grid_of(0.001, 0.999, 999)
    rows = np.logaddexp(np.log1p(-s)[:, None] + by_class[0], np.log(s)[:, None] + by_class[1])
    law = softmax(stats.beta(2, 3).logpdf(s) + rows.sum(1))
    of_one = expit(np.log(s / (1 - s))[:, None] + by_class[1] - by_class[0])
    return m, {"chance": p, "y": y}, {"share": law @ s, "z": law @ of_one}


def change_point():
    """A series of counts whose rate changes at an unknown place."""
    m = cv.Model()
    t, k = m.plate("t", 12), m.plate("k", 2)
    rate = m.random("rate", cv.gamma(2.0, 0.5), plates=k)
    place = m.random("place", cv.discrete_uniform(12))
    late = m.input("late", cv.index(k), plates=(m.plate("step", 12), t))
    m.random("y", cv.poisson(rate[late[place]]))
    y = np.array([2, 3, 1, 2, 4, 2, 7, 6, 9, 5, 8, 7])
    before = np.arange(12)[:, None] > np.arange(12)
    weights, means = [], []
    for side in (before, ~before):
        total, count = side @ y, side.sum(1)
        weights.append(gammaln(2.0 + total) - (2.0 + total) * np.log(0.5 + count))
        means.append((2.0 + total) / (0.5 + count))
    law = softmax(sum(weights))
    return m, {"y": y, "late": (~before).astype(int)}, {"rate": np.array([law @ mean for mean in means])}


def zero_inflated():
    m = cv.Model()
    n = m.plate("n")
    idle, rate = m.random("idle", cv.beta(1.0, 1.0)), m.random("rate", cv.gamma(2.0, 0.5))
    z = m.random("z", cv.bernoulli(idle), plates=n)
    m.random("y", cv.poisson(cv.where(z, 1e-6, rate)))
    y = np.array([0, 0, 0, 3, 2, 0, 4, 1])
    p, r = np.meshgrid(grid_of(0.001, 0.999, 400), grid_of(0.01, 10.0, 600), indexing="ij")
    log_joint = stats.gamma(2, scale=2).logpdf(r)
    for count in y:
        log_joint += np.logaddexp(
            np.log(p) + stats.poisson.logpmf(count, 1e-6), np.log1p(-p) + stats.poisson.logpmf(count, r)
        )
    law = softmax(log_joint)
    return m, {"y": y}, {"idle": (law * p).sum(), "rate": (law * r).sum()}


def outliers():
    """A line through the origin with an indicator of outliers in each row."""
    m = cv.Model()
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    slope = m.random("slope", cv.gaussian(0.0, sd=2.0))
    out = m.random("out", cv.bernoulli(0.2), plates=n)
    m.random("y", cv.switch(out, cv.gaussian(slope * x, sd=5.0), cv.gaussian(slope * x, sd=0.5)))
    x = np.array([-2.0, -1.0, 0.5, 1.0, 2.0])
    y = np.array([-2.2, -0.7, 5.0, 1.2, 1.7])
    b = grid_of(-4.0, 4.0, 2001)[:, None]
    apart, near = (np.log(w) + stats.norm(b * x, sd).logpdf(y) for w, sd in ((0.2, 5.0), (0.8, 0.5)))
    law = softmax(stats.norm(0, 2).logpdf(b[:, 0]) + np.logaddexp(apart, near).sum(1))
    return m, {"x": x, "y": y}, {"slope": law @ b[:, 0], "out": law @ expit(apart - near)}


def counts_of_regression():
    m = cv.Model()
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    slope, dispersion = m.random("slope", cv.gaussian(0.0, sd=1.0)), m.random("dispersion", cv.gamma(3.0, 2.0))
    m.random("y", cv.negative_binomial(mean=cv.exp(0.7 + slope * x), dispersion=dispersion))
    x, y = np.array([-1.0, -0.5, 0.0, 0.5, 1.0, 1.5]), np.array([0, 3, 1, 2, 9, 4])
    b, r = np.meshgrid(grid_of(-3.0, 3.0, 400), grid_of(0.01, 10.0, 600), indexing="ij")
    log_joint = stats.norm(0, 1).logpdf(b) + stats.gamma(3, scale=0.5).logpdf(r)
    for one, count in zip(x, y, strict=True):
        log_joint += stats.nbinom.logpmf(count, r, r / (r + np.exp(0.7 + b * one)))
    law = softmax(log_joint)
    return m, {"x": x, "y": y}, {"slope": (law * b).sum(), "dispersion": (law * r).sum()}


def ordered(term, link):
    m = cv.Model()
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    slope = m.random("slope", cv.gaussian(0.0, sd=2.0))
    cut = m.random("cut", cv.ordered(cv.gaussian(0.0, sd=2.0), size=2))
    m.random("y", term(slope * x, cut))
    x, y = np.array([-1.0, -0.5, 0.0, 0.5, 1.0, 1.5]), np.array([0, 1, 0, 2, 1, 2])
    axis = grid_of(-6.0, 6.0, 121)
    b, low, gap = np.meshgrid(axis, axis, grid_of(0.02, 8.0, 121), indexing="ij")
    log_joint = stats.norm(0, 2).logpdf(b) + stats.norm(0, 2).logpdf(low) + stats.norm(0, 2).logpdf(low + gap)
    for one, level in zip(x, y, strict=True):
        edges = [0.0, link(low - b * one), link(low + gap - b * one), 1.0]
        log_joint += np.log(edges[level + 1] - edges[level] + 1e-300)
    law = softmax(log_joint)
    return m, {"x": x, "y": y}, {"slope": (law * b).sum(), "cut[0]": (law * low).sum()}


def ordered_probit():
    return ordered(cv.ordered_probit, stats.norm.cdf)


def ordered_logistic():
    return ordered(cv.ordered_logistic, expit)


def blocks_of_a_graph():
    """A stochastic block model of five nodes, whose two kinds differ in the chance of an edge."""
    m = cv.Model()
    edge, node = m.plate("edge"), m.plate("node", 5)
    one, two = (m.input(name, cv.index(node), plates=edge) for name in ("one", "two"))
    kind = m.random("kind", cv.bernoulli(0.4), plates=node)
    p = m.random("p", cv.beta(1.0, 1.0), plates=m.plate("k", 2))
    same = m.let("alike", kind[one] == kind[two])
    m.random("y", cv.bernoulli(p[same]))
    pairs = np.array(list(itertools.combinations(range(5), 2)))
    y = np.array([1, 1, 0, 0, 1, 0, 0, 0, 1, 1])
    states = np.array(list(itertools.product([0, 1], repeat=5)))
    log_joint, means = bernoulli(states, 0.4).sum(1), []
    same = states[:, pairs[:, 0]] == states[:, pairs[:, 1]]
    for group in (~same, same):
        yes, no = group @ y, group @ (1 - y)
        log_joint = log_joint + gammaln(1 + yes) + gammaln(1 + no) - gammaln(2 + yes + no)
        means.append((1 + yes) / (2 + yes + no))
    law = softmax(log_joint)
    data = {"one": pairs[:, 0], "two": pairs[:, 1], "y": y}
    return m, data, {"kind": law @ states, "p": np.array([law @ mean for mean in means])}


def items_with_classes():
    """Answers under two abilities, which of them a class of each person says."""
    m = cv.Model()
    n, j = m.plate("n", 4), m.plate("j", 3)
    hard = m.input("hard", cv.real, plates=j)
    able = m.random("able", cv.gaussian(0.0, sd=1.5), plates=m.plate("k", 2))
    z = m.random("z", cv.bernoulli(0.3), plates=n)
    m.random("y", cv.bernoulli(cv.logistic(able[z] - hard)), plates=(n, j))
    hard, y = np.array([-1.0, 0.0, 1.0]), np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1], [0, 0, 0]])
    axis = grid_of(-6.0, 6.0, 241)
    own = bernoulli(y[:, None, :], expit(axis[:, None] - hard)).sum(-1)  # (person, ability)
    prior = stats.norm(0, 1.5).logpdf(axis)
    log_joint = prior[:, None] + prior + np.logaddexp(np.log(0.7) + own[:, :, None], np.log(0.3) + own[:, None]).sum(0)
    law = np.exp(log_joint - logsumexp(log_joint))
    return m, {"hard": hard, "y": y}, {"able": np.array([law.sum(1) @ axis, law.sum(0) @ axis])}


QUICK = (ordered_probit, counts_of_regression, blocks_of_a_graph)
SLOW = (latent_classes, change_point, zero_inflated, outliers, ordered_logistic, items_with_classes)


def errors_off(draws, wanted):
    """How far the mean of draws (chains, draws, ...) is from the truth, in standard errors from effective sizes."""
    flat = draws.reshape(*draws.shape[:2], -1).astype(float)
    sizes = np.array([float(np.asarray(arviz.ess(flat[..., i]))) for i in range(flat.shape[-1])])
    spread = flat.std((0, 1)) / np.sqrt(np.nan_to_num(sizes, nan=1.0)) + 1e-4
    return np.max(np.abs(flat.mean((0, 1)) - np.ravel(wanted)) / spread)


@pytest.mark.parametrize("case", [*QUICK, *(pytest.param(case, marks=pytest.mark.slow) for case in SLOW)])
def test_means_are_those_of_grids_and_enumeration(case):
    m, data, wanted = case()
    samples = cv.sample(m, data, draws=2000, chains=4, progress=False)
    assert {name: errors_off(samples[name], mean) for name, mean in wanted.items()} == pytest.approx(
        dict.fromkeys(wanted, 0.0), abs=FAR
    )

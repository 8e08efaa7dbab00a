"""Expectation maximisation of mixtures: algorithm 9 of paquet2007thesis by hand, and the maxima that climbs find."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import nbinom, poisson

import cavity as cv
from cavity.engine.data.rules_of_arguments import bind_checked
from cavity.engine.evidence import em
from cavity.engine.options import key_of

RANDOM = np.random.default_rng(0)
CONCENTRATION, SHAPE, RATE = np.array([2.0, 3.0]), np.array([2.0, 6.0]), np.array([0.5, 0.4])
COUNTS = np.concatenate([RANDOM.poisson(3.0, 12), RANDOM.poisson(15.0, 12)])


def counts():
    """Two classes of counts that the priors tell apart, so that the first start has nothing random in it."""
    m = cv.Model()
    n, k = m.plate("n"), m.plate("k", 2)
    shape, rate = m.input("shape", cv.positive, plates=k), m.input("precision", cv.positive, plates=k)
    share = m.random("share", cv.dirichlet(CONCENTRATION))
    mean = m.random("mean", cv.gamma(shape, rate=rate), plates=k)
    z = m.random("z", cv.categorical(share), plates=n)
    m.random("y", cv.poisson(mean[z]), plates=n)
    return m, {"shape": SHAPE, "precision": RATE, "y": COUNTS}


def by_hand(passes):
    """Incremental EM, a row at a time in the order of the data."""

    def largest(r):
        share = CONCENTRATION - 1.0 + r.sum(0)
        return share / share.sum(), (SHAPE - 1.0 + r.T @ COUNTS) / (RATE + r.sum(0))

    def given(weights, log_likelihood):
        scores = np.log(weights) + log_likelihood
        return np.exp(scores - logsumexp(scores, axis=-1, keepdims=True))

    prior = nbinom.logpmf(COUNTS[:, None], SHAPE, RATE / (1.0 + RATE))
    r = given(CONCENTRATION / CONCENTRATION.sum(), prior)
    for _ in range(passes):
        for row in range(len(COUNTS)):
            share, mean = largest(r)
            r[row] = given(share, poisson.logpmf(COUNTS[row], mean))
    return largest(r)


@pytest.mark.parametrize("passes", [1, 3])
def test_passes_are_those_of_the_algorithm_by_hand(monkeypatch, passes):
    monkeypatch.setattr(em, "PASSES", passes)
    m, data = counts()
    (found,) = em.maximised(m, bind_checked(m, data), (), "in order", 1, key_of(0))
    share, mean = by_hand(passes)
    assert found.passes == passes
    np.testing.assert_allclose(found.values["share"], share, rtol=1e-7)
    np.testing.assert_allclose(found.values["mean"], mean, rtol=1e-7)


def gaussians(vector=False):
    m = cv.Model()
    n, k = m.plate("n"), m.plate("k", 2)
    share = m.random("share", cv.dirichlet([2.0, 2.0]))
    if vector:
        precision = m.random("precision", cv.wishart(5.0, scale=0.2 * np.eye(2)), plates=k)
        mean = m.random("mean", cv.vector_gaussian(np.zeros(2), precision=0.1 * precision), plates=k)
    else:
        precision = m.random("precision", cv.gamma(2.0, rate=1.0), plates=k)
        mean = m.random("mean", cv.gaussian(0.0, precision=0.1 * precision), plates=k)
    z = m.random("z", cv.categorical(share), plates=n)
    term = cv.vector_gaussian if vector else cv.gaussian
    m.random("y", term(mean[z], precision=precision[z]), plates=n)
    size = (40, 2) if vector else (40,)
    return m, {"y": RANDOM.normal(size=size) + np.where(np.arange(40) < 15, -3.0, 3.0).reshape(40, *(1,) * vector)}


def answers():
    m = cv.Model()
    n, k, item = m.plate("n"), m.plate("k", 2), m.plate("item", 4)
    share = m.random("share", cv.dirichlet([2.0, 2.0]))
    chance = m.random("chance", cv.beta(2.0, 2.0), plates=(k, item))
    z = m.random("z", cv.categorical(share), plates=n)
    m.random("y", cv.bernoulli(chance[z]), plates=(n, item))
    true = np.array([[0.9, 0.8, 0.1, 0.2], [0.2, 0.1, 0.7, 0.9]])
    return m, {"y": RANDOM.uniform(size=(60, 4)) < true[RANDOM.integers(0, 2, 60)]}


def outliers():
    m = cv.Model()
    n = m.plate("n")
    share, centre = m.random("share", cv.beta(2.0, 2.0)), m.random("centre", cv.gaussian(0.0, sd=3.0))
    good = m.random("good", cv.bernoulli(share), plates=n)
    m.random("y", cv.switch(good, cv.gaussian(centre, sd=1.0), cv.gaussian(0.0, sd=6.0)))
    return m, {"y": np.concatenate([RANDOM.normal(3.0, 1.0, 20), RANDOM.normal(0.0, 6.0, 10)])}


@pytest.mark.parametrize("schedule", ["sequential", "batches"])
@pytest.mark.parametrize("make", [counts, gaussians, answers, outliers])
def test_passes_come_to_the_maximum_that_climbs_find(make, schedule):
    m, data = make()
    climbed = cv.map(m, data)
    for found in em.maximised(m, bind_checked(m, data), (), schedule, 2, key_of(1)):
        density = cv.log_density(m, data)
        assert float(density(found.values)) == pytest.approx(climbed.log_density, abs=1e-6)


def test_map_by_passes_is_the_same_call():
    m, data = gaussians(vector=True)
    climbed, found = cv.map(m, data), cv.map(m, data, method="em")
    assert found.log_density == pytest.approx(climbed.log_density, abs=1e-9)
    assert found.converged
    flat = cv.map(m, data, method="em", flat=["share"])
    assert flat.log_density == pytest.approx(cv.map(m, data, flat=["share"]).log_density, abs=1e-9)


def test_a_component_left_with_one_row_is_told():
    m, _ = gaussians()
    with pytest.raises(cv.UnsupportedError, match=r"edge|no bound|not bounded"):
        cv.map(m, {"y": np.array([0.0, 0.0, 0.0, 0.0, 7.0])}, method="em", flat=["precision", "mean"])


def test_what_passes_are_not_for_is_refused():
    m, data = gaussians()
    for options, match in (
        ({"method": "newton"}, "'climb' or 'em'"),
        ({"method": "em", "jacobian": True}, "jacobian="),
        ({"method": "em", "start": {"share": [0.5, 0.5]}}, "start="),
        ({"schedule": "in order"}, "climb sees all"),
        ({"method": "em", "schedule": "backwards"}, "schedule="),
    ):
        with pytest.raises(cv.ModelError, match=match):
            cv.map(m, data, **options)
    line = cv.Model()
    slope = line.random("slope", cv.gaussian(0.0, sd=1.0))
    line.random("y", cv.gaussian(slope, sd=1.0), plates=line.plate("n"))
    with pytest.raises(cv.UnsupportedError, match="mixtures whose rows are independent"):
        cv.map(line, {"y": np.zeros(3)}, method="em")

"""Random starts and points of a grid by workers: the answers are those of one process."""

from __future__ import annotations

import numpy as np
import pytest

import cavity as cv
from cavity.engine.evidence.integrated import Integrated

POOLS = {
    "here": cv.workers.here(),
    "simulated 1": cv.workers.simulated(1, lost=0.05),
    "simulated 7": cv.workers.simulated(7, lost=0.05),
    "two": 2,
}


def clusters():
    """Classes of words, whose starts end in several fixed points."""
    random = np.random.default_rng(4)
    m = cv.Model("classes")
    person, item, group = m.plate("person"), m.plate("item", 4), m.plate("group", 3)
    weights = m.random("weights", cv.dirichlet(np.ones(3)))
    z = m.random("z", cv.categorical(weights), plates=person)
    p = m.random("p", cv.beta(1.0, 1.0), plates=[group, item])
    m.random("y", cv.bernoulli(p[z]), plates=[person, item])
    true = random.beta(0.5, 0.5, size=(3, 4))
    return m, {"y": random.random((40, 4)) < true[random.integers(3, size=40)]}


def groups():
    """Groups whose spread and noise are integrated over a grid."""
    random = np.random.default_rng(0)
    m = cv.Model("groups")
    group, row = m.plate("group", 6), m.plate("row")
    tau, noise = m.random("tau", cv.half_cauchy(1.0)), m.random("noise", cv.half_cauchy(1.0))
    effect = m.random("effect", cv.gaussian(0.0, sd=tau), plates=group)
    own = m.input("own", cv.index(group), plates=row)
    m.random("y", cv.gaussian(effect[own], sd=noise), plates=row)
    own = np.repeat(np.arange(6), 4)
    return m, {"own": own, "y": random.normal(size=6)[own] + random.normal(size=24)}


@pytest.fixture(scope="module")
def starts():
    model, data = clusters()
    asked = {"method": "vmp", "restarts": 5, "seed": 3}
    return model, data, asked, cv.infer(model, data, **asked)


@pytest.mark.parametrize("pool", POOLS)
def test_starts_are_those_of_one_process(starts, pool):
    model, data, asked, one = starts
    found = cv.infer(model, data, workers=POOLS[pool], **asked)
    assert len({round(value, 3) for value in one.restarts.by_start}) > 1
    np.testing.assert_allclose(found.restarts.by_start, one.restarts.by_start, rtol=1e-10)
    assert [record.starts for record in found.restarts] == [record.starts for record in one.restarts]
    assert found.log_evidence == pytest.approx(one.log_evidence, rel=1e-12)
    np.testing.assert_allclose(found["p"].mean, one["p"].mean, rtol=1e-8)
    assert len(found.all_modes()) == len(one.all_modes())


def test_starts_on_both_sides_of_a_sign():
    """Where the sign of a factor is hard to see each start has two sides, which one job makes."""
    random = np.random.default_rng(5)
    m = cv.Model("factor")
    row, column = m.plate("row"), m.plate("column", 3)
    loading = m.random("loading", cv.gaussian(0.0, variance=1.0), plates=column)
    score = m.random("score", cv.gaussian(0.0, variance=1.0), plates=row)
    m.random("y", cv.gaussian(loading * score, variance=0.3), plates=[row, column])
    data = {"y": random.normal(size=(12, 1)) * [1.0, -1.0, 0.5] + 0.3 * random.normal(size=(12, 3))}
    one = cv.infer(m, data, method="vmp", restarts=3)
    found = cv.infer(m, data, method="vmp", restarts=3, workers=cv.workers.here())
    np.testing.assert_allclose(found.restarts.by_start, one.restarts.by_start, rtol=1e-10)
    np.testing.assert_allclose(found["loading"].mean, one["loading"].mean, rtol=1e-7, atol=1e-10)


@pytest.fixture(scope="module")
def grid():
    model, data = groups()
    return model, data, cv.infer(model, data), cv.infer(model, data, workers=cv.workers.here())


@pytest.mark.parametrize("pool", POOLS)
def test_points_are_those_of_one_process(grid, pool):
    model, data, one, here = grid
    found = cv.infer(model, data, workers=POOLS[pool])
    assert type(found) is type(one) is Integrated
    assert found.log_evidence == pytest.approx(here.log_evidence, rel=1e-14)  # sums follow the cores of a worker
    assert found.log_evidence == pytest.approx(one.log_evidence, rel=1e-12)
    np.testing.assert_allclose(found["effect"].mean, one["effect"].mean, rtol=1e-9)
    np.testing.assert_allclose(found["tau"].sd, one["tau"].sd, rtol=1e-9)
    assert found.loo().total == pytest.approx(one.loo().total, rel=1e-8)


def test_what_is_named_is_integrated_by_workers(grid):
    model, data, _, _ = grid
    one, found = (cv.infer(model, data, integrate=["tau"], workers=pool) for pool in (None, cv.workers.here()))
    assert found.log_evidence == pytest.approx(one.log_evidence, rel=1e-12)


@pytest.mark.parametrize("asked", [{"checkpoint": "run"}, {"start": {}}, {"prior": {}}])
def test_a_single_run_has_nothing_to_deal(grid, asked):
    model, data, _, _ = grid
    with pytest.raises(cv.ModelError, match="are for a single run"):
        cv.infer(model, data, workers=2, **asked)


def test_what_is_no_pool_is_told_first(grid):
    model, data, _, _ = grid
    with pytest.raises(cv.ModelError, match="workers= is a number"):
        cv.infer(model, data, workers="many")


def test_one_pool_is_open_at_a_time():
    """The plain inference has starts of its own, which must not wait for the workers of the points."""
    opened = []

    def pool():
        made = cv.workers.here()()
        close = made.close
        opened.append("open")
        made.close = lambda: (opened.append("closed"), close())
        return made

    random = np.random.default_rng(1)
    m = cv.Model("switch")
    b, noise = m.random("b", cv.bernoulli(0.5)), m.random("noise", cv.half_cauchy(1.0))
    mean = m.random("mean", cv.gaussian(0.0, sd=2.0), plates=m.plate("kind", 2))
    m.random("y", cv.switch(b, cv.gaussian(mean[1], sd=noise), cv.gaussian(mean[0], sd=noise)), plates=m.plate("row"))
    data = {"y": random.normal(1.0, 0.5, size=12)}
    one, found = (cv.infer(m, data, integrate=["b", "noise"], restarts=2, workers=own) for own in (None, pool))
    assert opened == ["open", "closed"] * (len(opened) // 2)
    assert len(opened) >= 4
    assert found.log_evidence == pytest.approx(one.log_evidence, rel=1e-9)

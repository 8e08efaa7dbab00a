"""Schedules: the same fixed points in every order, orders that can be read and changed, and the double loop."""

import dataclasses

import numpy as np
import pytest

import cavity as cv
from cavity.compiler.plan import make_plan

SCHEDULES = ("batches", "sequential", "in order", "residual", "double loop")


def rows(number=25):
    """Two inputs of a regression and whether its outcome is one."""
    rng = np.random.default_rng(3)
    return rng.normal(size=(number, 2)), rng.uniform(size=number) < 0.6


def regression():
    m = cv.Model("probit regression")
    n = m.plate("n")
    x = m.input("x", cv.vector(2), plates=n)
    w = m.random("w", cv.vector_gaussian(np.zeros(2), precision=np.eye(2)))
    m.random("y", cv.bernoulli(cv.probit(cv.dot(w, x))), plates=n)
    x, y = rows()
    return m, {"x": x, "y": y}, "w"


def skills():
    m = cv.Model("skills")
    p, g = m.plate("player", 4), m.plate("game")
    winner, loser = m.input("winner", cv.index(p), plates=g), m.input("loser", cv.index(p), plates=g)
    skill = m.random("skill", cv.gaussian(0.0, variance=1.0), plates=p)
    m.random("won", cv.bernoulli(cv.probit(skill[winner] - skill[loser])), plates=g)
    pairs = np.array([[0, 1], [0, 2], [1, 2], [2, 3], [3, 1], [0, 3], [1, 0]])
    return m, {"winner": pairs[:, 0], "loser": pairs[:, 1], "won": np.ones(7, bool)}, "skill"


def states():
    """Tables of two binary causes, which meet in a loop."""
    m = cv.Model("tables")
    n = m.plate("n")
    a, b = m.random("a", cv.bernoulli(0.3)), m.random("b", cv.bernoulli(0.6))
    either, both = m.let("either", a | b), m.let("both", a & b)
    m.random("c", cv.switch(either, cv.bernoulli(0.8), cv.bernoulli(0.3)), plates=n)
    m.random("d", cv.switch(both, cv.bernoulli(0.9), cv.bernoulli(0.2)), plates=n)
    return m, {"c": np.array([1, 1, 0, 1], bool), "d": np.array([1, 0, 1, 1], bool)}, "a"


def counts():
    m = cv.Model("counts")
    n, k = m.plate("n"), m.plate("k", 2)
    share = m.random("share", cv.dirichlet([3.0, 2.0]))
    rate = m.random("rate", cv.gamma(np.array([2.0, 9.0]), 1.0), plates=k)
    z = m.random("z", cv.categorical(share), plates=n)
    m.random("y", cv.poisson(rate[z]))
    return m, {"y": np.array([0, 2, 3, 7, 9, 4, 1, 2])}, "rate"


MODELS = {"regression": regression, "skills": skills, "states": states, "counts": counts}


@pytest.mark.parametrize("name", MODELS)
def test_all_orders_have_the_same_fixed_point(name):
    same_fixed_point(name, [schedule for schedule in SCHEDULES if schedule != "double loop"])


@pytest.mark.parametrize(
    "name", [*(pytest.param(n, marks=pytest.mark.slow) for n in MODELS if n != "skills"), "skills"]
)
def test_a_double_loop_has_the_same_fixed_point(name):
    same_fixed_point(name, ["batches", "double loop"])


def same_fixed_point(name, schedules):
    model, data, what = MODELS[name]()
    found = [
        cv.infer(model, data, method="ep", accuracy="fast", schedule=schedule, tolerance=1e-8) for schedule in schedules
    ]
    for schedule, posterior in zip(schedules, found, strict=True):
        assert posterior.converged, schedule
        np.testing.assert_allclose(posterior.log_evidence, found[0].log_evidence, atol=1e-7, err_msg=schedule)
        np.testing.assert_allclose(posterior[what].mean, found[0][what].mean, atol=1e-6, err_msg=schedule)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.5, 0.8])
def test_a_double_loop_of_power_ep_has_its_fixed_point(alpha):
    model, data, what = counts()
    one, other = (
        cv.infer(model, data, method=cv.power(alpha), accuracy="fast", schedule=schedule, tolerance=1e-8)
        for schedule in ("batches", "double loop")
    )
    np.testing.assert_allclose(other.log_evidence, one.log_evidence, atol=1e-7)
    np.testing.assert_allclose(other[what].mean, one[what].mean, atol=1e-6)


def test_rows_in_order_are_one_pass_of_assumed_density_filtering():
    """One sweep, row after row in the order of the data, is that of a filter that sees each row once."""
    model, data, what = counts()
    with pytest.warns(cv.CavityWarning):
        one = cv.infer(
            model,
            data,
            method="ep",
            accuracy="fast",
            schedule="in order",
            max_iterations=1,
            acceleration=0,
            trace_evidence=False,
        )
    before = None
    for y in data["y"]:
        before = cv.infer(model, {"y": np.array([y])}, method="ep", accuracy="fast", prior=before)
    np.testing.assert_allclose(one[what].mean, before[what].mean, rtol=1e-6)
    np.testing.assert_allclose(one["share"].mean, before["share"].mean, rtol=1e-6)


def test_a_schedule_is_read_changed_and_run():
    m = cv.Model("two kinds of factors")
    w = m.random("w", cv.gaussian(0.0, variance=1.0))
    n = m.plate("n", 3)
    m.random("a", cv.bernoulli(cv.probit(w)), plates=n)
    m.random("b", cv.bernoulli(cv.logistic(w)), plates=n)
    data = {"a": np.array([1, 0, 1], bool), "b": np.array([1, 1, 0], bool)}
    plain = cv.infer(m, data, method="ep", accuracy="fast", tolerance=1e-9)
    assert plain.schedule.factors == ("a", "b", "a")
    assert "messages of a; messages of b; messages of a" in plain.explain()
    changed = dataclasses.replace(plain.schedule, factors=("b", "a"), rows="sequential")
    other = cv.infer(m, data, method="ep", accuracy="fast", schedule=changed, tolerance=1e-9)
    assert other.schedule == changed
    assert "messages of b; messages of a" in other.explain()
    assert "one after the other, in a random order" in other.explain()
    np.testing.assert_allclose(other["w"].mean, plain["w"].mean, atol=1e-8)


def test_the_order_of_beliefs_is_followed():
    m = cv.Model("mean and precision")
    mean, precision = m.random("mean", cv.gaussian(0.0, variance=1.0)), m.random("precision", cv.gamma(2.0, 1.0))
    m.random("y", cv.gaussian(mean, precision=precision), plates=m.plate("n", 4))
    data = {"y": np.array([0.3, 1.2, 0.7, 2.0])}
    plain = cv.infer(m, data, method="vmp", accuracy="fast", tolerance=1e-10)
    assert set(plain.schedule.variables) == {"mean", "precision"}
    other = cv.Schedule(variables=tuple(reversed(plain.schedule.variables)))
    turned = cv.infer(m, data, method="vmp", accuracy="fast", schedule=other, tolerance=1e-10)
    assert turned.schedule.variables == other.variables
    np.testing.assert_allclose(turned["mean"].mean, plain["mean"].mean, atol=1e-8)
    assert not np.allclose(turned.trace.evidence[1], plain.trace.evidence[1], rtol=1e-12)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("random", "schedule= is one of"),
        (3, "schedule= is one of"),
        (cv.Schedule(factors=("y",)), "leaves out 'x'"),
        (cv.Schedule(factors=("x", "y", "w")), "names 'w'"),
        (cv.Schedule(variables=("w",)), "names 'w'"),
    ],
)
def test_schedules_that_cannot_be_are_refused(asked, told):
    m = cv.Model("two outcomes")
    w = m.random("w", cv.gaussian(0.0, variance=1.0))
    m.random("x", cv.bernoulli(cv.probit(w)))
    m.random("y", cv.bernoulli(cv.probit(w)))
    with pytest.raises(cv.ModelError, match=told):
        cv.infer(m, {"x": True, "y": False}, method="ep", schedule=asked)


@pytest.mark.parametrize(("name", "value"), [("rows", "some"), ("loop", 3), ("factors", "y"), ("variables", 4)])
def test_a_schedule_checks_itself(name, value):
    with pytest.raises(cv.ModelError, match=f"Schedule\\({name}=\\)"):
        cv.Schedule(**{name: value})


def test_a_schedule_is_kept_in_a_file(tmp_path):
    model, data, _ = counts()
    posterior = cv.infer(model, data, method="ep", accuracy="fast", schedule="in order")
    posterior.save(tmp_path / "a.cavity")
    again = cv.load(tmp_path / "a.cavity", model)
    assert again.schedule == posterior.schedule
    assert again.request.options == posterior.request.options


def test_plans_of_other_schedules_are_others():
    model, _, _ = counts()
    plan = make_plan(model, frozenset({"y"}), method="ep", schedule=cv.Schedule(loop="double"))
    assert plan.schedule.loop == "double"
    assert str(plan.updates()).endswith("keeps)")

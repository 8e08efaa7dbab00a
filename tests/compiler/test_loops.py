"""Loops of messages, found on the graph of two elements of every plate."""

from __future__ import annotations

import pytest

import cavity as cv
from cavity.compiler.answers import in_words
from cavity.compiler.discrete.loops import loopy
from cavity.compiler.plan import make_plan


def loops(model, observed, method="ep"):
    return loopy(make_plan(model, frozenset(observed), frozenset(), method))


def test_a_random_scale_and_mean_shared_by_all():
    """Slots: two shared arguments of many instances are a loop; one is a star."""
    m = cv.Model()
    mean, precision = m.random("mean", cv.gaussian(0.0, variance=1.0)), m.random("precision", cv.gamma(2.0, 1.0))
    m.random("x", cv.gaussian(mean, precision=precision), plates=m.plate("n"))
    assert loops(m, ["x"]) == ["x"]
    m = cv.Model()
    m.random("x", cv.gaussian(0.0, precision=m.random("precision", cv.gamma(2.0, 1.0))), plates=m.plate("n"))
    assert loops(m, ["x"]) == []


def test_a_gate_and_its_mean():
    m = cv.Model()
    n = m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, variance=100.0))
    clean = m.random("clean", cv.bernoulli(0.5), plates=n)
    m.random("x", cv.switch(clean, cv.gaussian(mean, variance=1.0), cv.gaussian(0.0, variance=10.0)))
    assert loops(m, ["x"]) == []  # each instance has a gate of its own
    k = m.plate("k", 2)
    means = m.random("means", cv.gaussian(0.0, variance=100.0), plates=k)
    m.random("y", cv.gaussian(means[m.input("i", cv.index(k), plates=n)] * mean, variance=1.0))
    assert loops(m, ["x", "y"]) == ["y"]


def processes(number):
    m = cv.Model()
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    f = [m.random(f"f{i}", cv.gaussian_process(x, cv.kernels.squared_exponential(1.0))) for i in range(number)]
    m.random("y", cv.bernoulli(cv.probit(sum(f[1:], f[0]))))
    return m


def test_processes():
    """One process of many points and their sites are a tree; two that meet at every point are not."""
    assert loops(processes(1), ["y"]) == []
    assert set(loops(processes(2), ["y"])) >= {"f0", "f1"}


def test_chains():
    m = cv.Model()
    t = m.plate("t")
    start = cv.gaussian(0.0, variance=1.0)
    x = m.chain("x", over=t, first=start, then=lambda before: cv.gaussian(before, variance=1.0))
    m.random("y", cv.gaussian(x, variance=1.0))
    assert loops(m, ["y"]) == []
    m.random("z", cv.gaussian(x * m.random("a", cv.gaussian(0.0, variance=1.0)), variance=1.0))
    assert set(loops(m, ["y", "z"])) == {"x", "z"}


@pytest.mark.parametrize("joined", ["chain", "tree"])
def test_one_chain_or_tree_is_none_and_two_that_meet_are(joined):
    """Both join all their elements, whatever the way: two that meet at every element are a loop, and not exact."""

    def plan(number):
        m = cv.Model()
        n = m.plate("n", 4)
        start = cv.gaussian(0.0, variance=1.0)
        way = {"first": start} if joined == "chain" else {"root": start, "parent": m.input("p", cv.index(n), plates=n)}
        make = m.chain if joined == "chain" else m.tree
        x = [make(f"x{i}", over=n, then=lambda p: cv.gaussian(p, variance=1.0), **way) for i in range(number)]
        m.random("y", cv.gaussian(sum(x[1:], x[0]), variance=1.0))
        return make_plan(m, frozenset({"y"}))

    assert loopy(plan(1)) == []
    assert in_words(plan(1)).startswith("exact for x0")
    assert loopy(plan(2)) == ["x0", "x1", "y"]
    assert "exact for x0" not in in_words(plan(2))


def test_products_of_the_same_two():
    m = cv.Model()
    n = m.plate("n", 3)
    a, b = (m.random(name, cv.gamma(2.0, 1.0), plates=n) for name in "ab")
    m.let("p", a * b)
    m.let("q", a / b)
    assert loops(m, ["p"]) == []
    assert set(loops(m, ["p", "q"])) == {"p", "q"}

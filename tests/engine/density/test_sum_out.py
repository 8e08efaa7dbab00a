"""Discrete variables summed out of a joint log density: chains, trees and what hangs together, against all states."""

import itertools

import jax
import numpy as np
import pytest
from scipy.special import logsumexp

import cavity as cv

close = np.testing.assert_allclose
random = np.random.default_rng(3)


def simplices(*shape):
    return random.dirichlet(np.ones(shape[-1]), size=shape[:-1])


def enumerated(m, data, sizes, density, values):
    """The logarithm of the sum over all states, and the probabilities of the states of each variable."""
    shapes = {name: density.contents.states_shape(one.variable) for name, one in density.contents.states.items()}
    lengths = [shape[-1] for shape in shapes.values() for _ in range(int(np.prod(shape[:-1])))]
    everything = np.array(list(itertools.product(*map(range, lengths))), int)
    ends = np.cumsum([int(np.prod(shape[:-1])) for shape in shapes.values()])
    parts = dict(zip(shapes, np.split(everything, ends[:-1], axis=1), strict=True))
    given = {n: part.reshape((-1, *shapes[n][:-1])) for n, part in parts.items()}
    given = {n: a.astype(bool) if m.randoms[n].domain.is_boolean else a for n, a in given.items()}
    whole = cv.log_density(m, {**data, **{n: a[0] for n, a in given.items()}}, sizes)
    assert not whole.summed
    with jax.enable_x64(True):
        one = jax.vmap(
            lambda states, values, data: whole.terms.density(values, {**data, **states}), in_axes=(0, None, None)
        )
        logs = np.asarray(jax.jit(one)(given, values, whole.contents.data))
    total = logsumexp(logs)
    weights = np.exp(logs - total)
    return total, {n: np.tensordot(weights, np.eye(shapes[n][-1])[given[n].astype(int)], 1) for n in shapes}


def agrees(m, data, sizes=None):
    """The density, its gradient and the states given a point are what the sum over all states says."""
    density = cv.log_density(m, data, sizes)
    assert density.summed
    z = density.initial(1)
    values = density.constrain(z)
    total, states = enumerated(m, data, sizes, density, values)
    steps = 1e-5 * np.eye(len(z))

    def all_of_it(z, data):
        ends = [jax.vmap(lambda step, sign=sign: density.height(z + sign * step, data))(steps) for sign in (1, -1)]
        return (
            density.terms.density(density.coordinates.values(z, data), data),
            density.states_given(z, data),
            jax.grad(density.height)(z, data),
            (ends[0] - ends[1]) / 2e-5,
        )

    with jax.enable_x64(True):
        found, given, gradient, differences = jax.jit(all_of_it)(z, density.contents.data)
    close(found, total, rtol=1e-12)
    assert set(given) == set(states)
    for name, wanted in states.items():
        close(given[name], wanted, rtol=1e-9, atol=1e-12)
    close(gradient, differences, atol=1e-6)
    return density


def test_a_chain_in_many_lanes_with_unknown_tables():
    m = cv.Model("sensitised")
    child, age, before = m.plate("child"), m.plate("age"), m.plate("before", 2)
    first, stays = m.random("first", cv.beta(2.0, 1.0)), m.random("stays", cv.beta(1.0, 2.0), plates=before)
    positive = m.random("positive", cv.beta(1.0, 1.5), plates=before)
    state = m.chain(
        "state", over=age, plates=child, first=cv.bernoulli(first), then=lambda previous: cv.bernoulli(stays[previous])
    )
    m.random("test", cv.bernoulli(positive[state]))
    agrees(m, {"test": random.random((3, 4)) < 0.5})


@pytest.mark.slow
def test_gaussian_emissions_with_missing_ones_and_impossible_moves():
    m = cv.Model("left to right")
    t, k = m.plate("t"), m.plate("k", 3)
    mean = m.random("mean", cv.gaussian(0.0, variance=4.0), plates=k)
    precision = m.random("precision", cv.gamma(2.0, 1.0))
    table = m.input("table", cv.simplex(3), plates=k)
    state = m.chain(
        "state", over=t, first=cv.categorical([1.0, 0.0, 0.0]), then=lambda previous: cv.categorical(table[previous])
    )
    m.random("x", cv.gaussian(mean[state], precision=precision))
    data = {"table": [[0.5, 0.5, 0.0], [0.0, 0.7, 0.3], [0.0, 0.0, 1.0]], "x": [0.1, np.nan, -2.0, 5.0, 1.0]}
    density = agrees(m, data)
    with jax.enable_x64(True):
        hessian = jax.jit(jax.hessian(density.height))(density.initial(0), density.contents.data)
    assert np.isfinite(hessian).all()


def test_impossible_cases_of_unknown_probabilities():
    m = cv.Model("absorbing")
    t, k = m.plate("t"), m.plate("k", 2)
    on, level = m.input("on", cv.unit, plates=k), m.input("level", cv.real, plates=k)
    q = m.random("q", cv.beta(1.0, 1.0))
    state = m.chain("state", over=t, first=cv.bernoulli(0.5), then=lambda one: cv.bernoulli(on[one] * q))
    m.random("x", cv.gaussian(level[state], variance=1.0))
    agrees(m, {"on": [0.0, 1.0], "level": [0.0, 1.0], "x": random.normal(size=4)})


def test_chains_with_gaps():
    m = cv.Model("gaps")
    t = m.plate("t")
    stays = m.random("stays", cv.beta(1.0, 1.0), plates=m.plate("k", 2))
    m.chain("state", over=t, first=cv.bernoulli(0.5), then=lambda one: cv.bernoulli(stays[one]))
    density = cv.log_density(m, {"state": [1.0, np.nan, 0.0]})
    into = np.array([0.3, 0.8])
    wanted = np.log(0.5 * (into[1] * (1.0 - into[1]) + (1.0 - into[1]) * (1.0 - into[0])))
    np.testing.assert_allclose(density({"stays": into}), wanted, rtol=1e-12)


def test_chains_of_different_plates_that_meet_are_refused():
    m = cv.Model("shared")
    t, lane, k = m.plate("t"), m.plate("lane"), m.plate("k", 2)
    stays = m.random("stays", cv.beta(1.0, 1.0), plates=k)
    shared = m.chain("shared", over=t, first=cv.bernoulli(0.5), then=lambda one: cv.bernoulli(stays[one]))
    own = m.chain("own", over=t, plates=lane, first=cv.bernoulli(0.5), then=lambda one: cv.bernoulli(stays[one]))
    level = m.random("level", cv.gaussian(0.0, variance=1.0), plates=(k, m.plate("j", 2)))
    m.random("x", cv.gaussian(level[shared][own], variance=1.0))
    with pytest.raises(cv.UnsupportedError, match="'own' and 'shared' meet in one factor"):
        cv.log_density(m, {"x": np.zeros((3, 2))})


def test_moves_that_depend_on_time_and_lane():
    m = cv.Model("moves")
    t, lane = m.plate("t"), m.plate("lane")
    x = m.input("x", cv.real, plates=(t, lane))
    slope, bias = (m.random(name, cv.gaussian(0.0, variance=1.0)) for name in ("slope", "bias"))
    table = m.random("level", cv.gaussian(0.0, variance=1.0), plates=m.plate("s", 2))
    state = m.chain(
        "state",
        over=t,
        first=cv.bernoulli(cv.logistic(bias)),
        then=lambda previous: cv.bernoulli(cv.logistic(table[previous] + slope * x)),
    )
    m.random("y", cv.gaussian(table[state], variance=0.5))
    agrees(m, {"x": random.normal(size=(4, 3)), "y": random.normal(size=(4, 3))})


@pytest.mark.parametrize("parent", [[3, 3, 1, 3, 4, 4], [0, 0, 2, 2, 3, 0]])
def test_a_tree_and_several_roots(parent):
    m = cv.Model("tree")
    node, k = m.plate("node"), m.plate("k", 2)
    above = m.input("above", cv.index(node), plates=node)
    root, move = m.random("root", cv.dirichlet(np.ones(2))), m.random("move", cv.dirichlet(np.ones(2)), plates=k)
    weight = m.input("weight", cv.positive, plates=node)
    state = m.tree(
        "state", over=node, parent=above, root=cv.categorical(root), then=lambda one: cv.categorical(move[one])
    )
    level = m.random("level", cv.gaussian(0.0, variance=1.0), plates=k)
    m.random("y", cv.gaussian(level[state], precision=weight), plates=(node, m.plate("lane", 2)))
    data = {"above": parent, "weight": random.random(6) + 0.5, "y": random.normal(size=(6, 2))}
    agrees(m, data)


@pytest.mark.slow
def test_chains_that_meet():
    """A factorial chain: two of them seen together, one of which moves as the other is, and a regime of each step."""
    m = cv.Model("factorial")
    t, k = m.plate("t"), m.plate("k", 2)
    p = m.random("p", cv.beta(1.0, 1.0), plates=(k, m.plate("j", 2)))
    q = m.random("q", cv.beta(1.0, 1.0), plates=k)
    mode = m.random("mode", cv.bernoulli(0.3))
    a = m.chain("a", over=t, first=cv.bernoulli(0.4), then=lambda one: cv.bernoulli(q[one]))
    b = m.chain("b", over=t, first=cv.bernoulli(q[mode]), then=lambda one: cv.bernoulli(p[one][a]))
    mean = m.random("mean", cv.gaussian(0.0, variance=1.0), plates=(m.plate("of a", 2), m.plate("of b", 2)))
    m.random("x", cv.gaussian(mean[a][b], variance=0.5))
    agrees(m, {"x": random.normal(size=4)})


def test_moves_that_another_variable_chooses():
    m = cv.Model("regimes")
    t, lane, k, r = m.plate("t"), m.plate("lane"), m.plate("k", 2), m.plate("r", 2)
    move = m.random("move", cv.beta(1.0, 1.0), plates=(r, k))
    fast = m.random("fast", cv.bernoulli(0.3), plates=(t, lane))
    kind = m.random("kind", cv.bernoulli(0.6), plates=lane)
    state = m.chain(
        "state", over=t, first=cv.bernoulli(move[kind][kind]), then=lambda previous: cv.bernoulli(move[fast][previous])
    )
    level = m.random("level", cv.gaussian(0.0, variance=1.0), plates=(r, k))
    m.random("x", cv.gaussian(level[fast][state], variance=0.7))
    m.random("y", cv.gaussian(level[kind][state], variance=0.7))
    agrees(m, {"x": random.normal(size=(3, 2)), "y": random.normal(size=(3, 2))})


def test_a_chain_that_is_seen_at_some_times():
    m = cv.Model("seen at some times")
    t, k, n = m.plate("t", 5), m.plate("k", 2), m.plate("n")
    when = m.input("when", cv.index(t), plates=n)
    stay = m.random("stay", cv.dirichlet(np.ones(2)), plates=k)
    state = m.chain("state", over=t, first=cv.categorical([0.3, 0.7]), then=lambda one: cv.categorical(stay[one]))
    clean = m.random("clean", cv.bernoulli(0.8), plates=n)
    level = m.random("level", cv.gaussian(0.0, variance=1.0), plates=k)
    m.random("x", cv.switch(clean, cv.gaussian(level[state[when]], variance=0.5), cv.gaussian(0.0, variance=9.0)))
    agrees(m, {"when": [1, 1, 4, 3], "x": random.normal(size=4)})


def test_elements_that_index_data_join():
    """Neighbours on a ring, each like the next as often as is unknown."""
    m = cv.Model("ring")
    site, link = m.plate("site", 4), m.plate("link")
    left, right = (m.input(name, cv.index(site), plates=link) for name in ("left", "right"))
    alike = m.random("alike", cv.beta(2.0, 1.0), plates=m.plate("or not", 2))
    pixel = m.random("pixel", cv.bernoulli(0.4), plates=site)
    m.random("bond", cv.bernoulli(alike[m.let("same", pixel[left] == pixel[right])]))
    mean = m.random("mean", cv.gaussian(0.0, variance=1.0), plates=m.plate("two", 2))
    m.random("x", cv.gaussian(mean[pixel], variance=0.5))
    data = {"left": [0, 1, 2, 3], "right": [1, 2, 3, 0], "bond": np.ones(4, bool), "x": random.normal(size=4)}
    assert agrees(m, data).terms.groups[0].network is not None


@pytest.mark.slow
def test_elements_that_a_random_index_chooses():
    m = cv.Model("balls")
    number, ball, draw = m.plate("number", 3), m.plate("ball", 3), m.plate("draw")
    pick = m.input("pick", cv.simplex(3), plates=number)
    rate = m.random("rate", cv.beta(1.0, 1.0), plates=m.plate("colour", 2))
    count = m.random("count", cv.discrete_uniform(3))
    blue = m.random("blue", cv.bernoulli(0.4), plates=ball)
    picked = m.random("picked", cv.categorical(pick[count]), plates=draw)
    m.random("seen", cv.bernoulli(rate[blue[picked]]))
    pick = np.tril(np.ones((3, 3)))
    agrees(m, {"pick": pick / pick.sum(axis=1, keepdims=True), "seen": [True, False, True]})


def test_plates_that_meet_pair_by_pair():
    m = cv.Model("rows and columns")
    row, column = m.plate("row"), m.plate("column")
    a, b = m.random("a", cv.bernoulli(0.3), plates=row), m.random("b", cv.bernoulli(0.6), plates=column)
    mean = m.random("mean", cv.gaussian(0.0, variance=1.0), plates=(m.plate("of a", 2), m.plate("of b", 2)))
    m.random("x", cv.gaussian(mean[a][b], variance=0.5))
    agrees(m, {"x": random.normal(size=(3, 2))})


@pytest.mark.parametrize("of_all", [cv.any, cv.all])
def test_operations_on_a_plate(of_all):
    m = cv.Model("some")
    n = m.plate("n", 3)
    p = m.random("p", cv.beta(1.0, 2.0))
    z = m.random("z", cv.bernoulli(p), plates=n)
    rate = m.random("rate", cv.beta(1.0, 1.0), plates=m.plate("or not", 2))
    m.random("seen", cv.bernoulli(rate[m.let("found", of_all(z, over=n))]), plates=m.plate("time"))
    agrees(m, {"seen": [True, True, False]}, {"n": 3})


def test_a_sum_that_is_observed():
    m = cv.Model("dice")
    p = m.random("p", cv.dirichlet(np.ones(3)))
    one, two = (m.random(name, cv.categorical(p)) for name in ("one", "two"))
    m.let("total", one + two)
    agrees(m, {"total": 2})


def test_a_burglary_with_an_unknown_entry():
    m = cv.Model("burglary")
    p = m.random("p", cv.beta(1.0, 1.0), plates=(m.plate("calm or quake", 2), m.plate("no thief or one", 2)))
    quake, thief = m.random("quake", cv.bernoulli(0.1)), m.random("thief", cv.bernoulli(0.05))
    alarm = m.random("alarm", cv.bernoulli(p[quake][thief]))
    calls = m.random("calls", cv.beta(5.0, 1.0))
    for name in ("john", "mary"):
        m.random(name, cv.switch(alarm, cv.bernoulli(calls), cv.bernoulli(0.05)))
    agrees(m, {"john": True, "mary": False})

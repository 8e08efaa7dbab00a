"""The nodes of a graph: identity, what is data, dependency order, and how they print."""

import numpy as np
import pytest

from cavity.compiler.language.functions import exp, softmax
from cavity.compiler.language.model import Model, check_graph
from cavity.compiler.language.nodes import Let, Random, is_data, parents
from cavity.factors import domains
from cavity.factors.discrete.bernoulli import bernoulli
from cavity.factors.errors import ModelError
from cavity.factors.factor import switch
from cavity.factors.real.gaussian import gaussian


@pytest.fixture
def model():
    return Model("test")


@pytest.fixture
def real(model):
    return model.random("real", gaussian(0.0, variance=1.0))


@pytest.fixture
def other(model):
    return model.random("other", gaussian(0.0, variance=1.0))


def test_nodes_are_compared_by_identity_and_hashable(real, other):
    assert len({real, other, real}) == 2
    assert {real: 1}[real] == 1


def test_is_data(model, real):
    x = model.input("x", domains.real)
    assert is_data(exp(x) + 1.0)
    assert not is_data(x * real)
    assert is_data(model.let("half", x / 2))


def test_check_graph_lists_parents_first():
    m = Model()
    a = m.random("a", gaussian(0.0, variance=1.0))
    b = m.let("b", a + 1.0)
    c = m.random("c", gaussian(b * b, variance=1.0))
    m.constrain(c > a)
    order = list(check_graph(m))
    position = {node: i for i, node in enumerate(order)}
    assert all(position[parent] < position[node] for node in order for parent in parents(node))
    assert len(order) == len(set(order))


def test_long_chains_do_not_recurse():
    m = Model()
    node = m.random("x0", gaussian(0.0, variance=1.0))
    for i in range(1, 3000):
        node = node + m.random(f"x{i}", gaussian(0.0, variance=1.0))
    m.let("total", node)
    assert len(check_graph(m)) > 3000
    assert "..." in str(node)


def test_check_graph_names_a_cycle():
    m = Model()
    a = m.random("a", gaussian(0.0, variance=1.0))
    b = m.let("b", a + 1.0)
    a.term.args["mean"] = b
    with pytest.raises(ModelError, match=r"cycle: .*b -> .*a.*rebuild"):
        check_graph(m)


def test_repr_lists_the_declarations():
    m = Model("skills")
    player, game = m.plate("player", 3), m.plate("game")
    winner = m.input("winner", domains.index(player), plates=game)
    skill = m.random("skill", gaussian(0.0, variance=0.5), plates=player)
    edge = m.let("edge", skill[winner] - 1.0)
    m.constrain(edge > 0, name="won")
    assert repr(m).splitlines() == [
        'Model "skills"',
        "  plate player of size 3",
        "  plate game",
        "  input winner: index(player) over game",
        "  random skill: real over player ~ gaussian(mean=0, precision=2)",
        "  let edge: real over game = (skill[winner] - 1)",
        "  constrain won: (edge > 0) over game",
    ]


def test_node_representations(model, real):
    b = model.random("b", bernoulli(0.5))
    x = model.random("x", switch(b, gaussian(0.0, variance=1.0), gaussian(real, variance=1.0)))
    assert repr(real) == "Random(real: real)"
    assert str(~(b ^ True)) == "~(b ^ True)"
    assert str(softmax_text(model)) == "softmax(s, over=k)"
    assert "switch(b, gaussian(mean=0, precision=1), gaussian(mean=real, precision=1))" in repr(model)
    assert isinstance(x, Random)
    assert isinstance(model.let("square", real**2), Let)
    assert str(real**2) == "real ** 2"
    assert "array of shape (4,)" in str(
        model.random("v", gaussian(0.0, variance=1.0), plates=model.plate("p", 4)) + np.ones(4)
    )


def softmax_text(model):
    k = model.plate("k")
    return softmax(model.random("s", gaussian(0.0, variance=1.0), plates=k), over=k)

"""Which discrete factors are summed out jointly, in which order, and what is said where they are not."""

from __future__ import annotations

import numpy as np
import pytest

import cavity as cv
from cavity.compiler.blocks.energy import EnergyBlock
from cavity.compiler.blocks.table import ConditionalTableBlock, TableBlock, TruthTableBlock
from cavity.compiler.discrete.elimination import Elimination, Node, Tangled, elimination
from cavity.compiler.discrete.loops import loops_among, short_loops
from cavity.compiler.discrete.networks import NetworkBlock
from cavity.compiler.language.nodes import Plate


def kinds(model, observed, **options):
    """Block -> class of the plan."""
    return {block.name: type(block) for block in cv.compile(model, observed, **options).plan.blocks if block.latent}


# Elimination ---------------------------------------------------------------------------------------------------------


def test_a_ring_needs_tables_of_three_variables():
    nodes = [Node(f"x{i}", (), (), 3) for i in range(40)]
    tables = [(frozenset((nodes[i], nodes[(i + 1) % 40])), frozenset()) for i in range(40)]
    found = elimination(tables)
    assert isinstance(found, Elimination)
    assert found.largest == 27
    assert len(found.steps) == 40


def test_a_grid_is_eliminated_along_its_short_side():
    nodes = {(i, j): Node(f"x{i},{j}", (), (), 2) for i in range(4) for j in range(30)}
    pairs = [((i, j), other) for i, j in nodes for other in ((i + 1, j), (i, j + 1)) if other in nodes]
    found = elimination([(frozenset((nodes[a], nodes[b])), frozenset()) for a, b in pairs])
    assert isinstance(found, Elimination)
    assert found.largest <= 2**6


def test_local_variables_are_summed_out_before_their_plate():
    n = Plate("n")
    parent, child = Node("parent", (), (), 5), Node("child", (), (n,), 7)
    found = elimination([(frozenset((parent, child)), frozenset((n,))), (frozenset((parent,)), frozenset())])
    assert isinstance(found, Elimination)
    assert [(step.node, step.plates) for step in found.steps] == [(child, ()), (None, (n,)), (parent, ())]
    assert found.largest == 35


def test_plates_that_cross_are_tangled():
    i, j = Plate("i"), Plate("j")
    x, y = Node("x", (), (i,), 2), Node("y", (), (j,), 2)
    found = elimination([(frozenset((x, y)), frozenset((i, j)))])
    assert isinstance(found, Tangled)
    assert found.plates == {i, j}


# The pass ------------------------------------------------------------------------------------------------------------


def pairs(*links, size=3):
    """Booleans a, b, c, ... of which those linked tend to agree."""
    m = cv.Model()
    odds = m.input("odds", cv.unit, plates=m.plate("same", 2))
    x = [m.random("abcdefgh"[k], cv.bernoulli(0.3)) for k in range(size)]
    for i, j in links:
        same = m.let(f"same {i}{j}", x[i] == x[j])
        m.random(f"link {i}{j}", cv.bernoulli(odds[same]))
    return m, [f"link {i}{j}" for i, j in links]


TRIANGLE = pairs((0, 1), (1, 2), (0, 2))


def test_trees_stay_belief_propagation():
    assert set(kinds(*pairs((0, 1), (1, 2)), accuracy="best").values()) <= {
        EnergyBlock,
        TruthTableBlock,
        ConditionalTableBlock,
    }


@pytest.mark.parametrize(
    ("options", "joint"),
    [({}, True), ({"method": "ep"}, False), ({"method": cv.power(0.5)}, False)]
    + [({"method": method, "accuracy": "best"}, True) for method in ("auto", "ep")],
)
def test_loops_are_summed_out_unless_another_method_is_asked_for(options, joint):
    assert (NetworkBlock in kinds(*TRIANGLE, **options).values()) is joint


def test_short_loops_are_named():
    program = cv.compile(*TRIANGLE, method="ep")
    (loop,) = short_loops(program.plan)
    assert {"a", "b", "c"} <= set(loop)
    assert "short loops: " in program.explain()
    assert "accuracy='best'" in program.explain()
    assert "short loops" not in cv.compile(*TRIANGLE).explain()


def test_a_long_loop_is_not_short():
    ring = pairs(*((k, (k + 1) % 8) for k in range(8)), size=8)
    program = cv.compile(*ring, method="ep")
    tables = [block for block in program.plan.blocks if isinstance(block, TableBlock)]
    assert loops_among(tables)
    assert short_loops(program.plan) == []


def complete(size):
    """Every element of a plate of categories meets every element of another, so their joint table is huge."""
    m = cv.Model()
    i, j, k = m.plate("i", size), m.plate("j", size), m.plate("k", 9)
    x = m.random("x", cv.categorical(np.full(9, 1 / 9)), plates=i)
    y = m.random("y", cv.categorical(np.full(9, 1 / 9)), plates=j)
    m.random("seen", cv.bernoulli(m.input("t", cv.unit, plates=(k, m.plate("l", 9)))[x][y]))
    return m


def test_what_is_too_large_stays_loopy_and_says_so():
    assert kinds(complete(2), ["seen"])["seen"] is NetworkBlock
    program = cv.compile(complete(7), ["seen"])
    assert "loopy, and not summed out jointly" in program.explain()
    assert "accuracy='best' allows larger tables" in program.explain()


def test_a_choice_among_too_many_elements_is_refused():
    m = cv.Model()
    ball = m.plate("ball", 40)
    blue = m.random("blue", cv.bernoulli(0.5), plates=ball)
    drawn = m.random("drawn", cv.categorical(np.full(40, 1 / 40)))
    m.let("seen", blue[drawn])
    with pytest.raises(cv.UnsupportedError, match=r"'seen' reads .* jointly, and the table of 'seen' alone has"):
        cv.compile(m, ["seen"])


def test_many_tables_become_one():
    m = cv.Model()
    t = m.input("t", cv.unit, plates=m.plate("s", 2))
    last = m.random("x0", cv.bernoulli(0.3))
    for k in range(1, 10):
        last = m.random(f"x{k}", cv.bernoulli(t[last]))
    found = kinds(m, ["x9"])
    assert not any(issubclass(made, TableBlock) for made in found.values())
    assert NetworkBlock in found.values()


# Operators of classes ------------------------------------------------------------------------------------------------


def test_domains_of_class_arithmetic():
    m = cv.Model()
    a, b = m.random("a", cv.categorical(np.ones(3) / 3)), m.random("b", cv.categorical(np.ones(4) / 4))
    assert (a + b).domain.size == 6
    assert (a + 2).domain.size == 5
    assert (b - a).domain.size == 4
    assert (a > b).domain.kind == (a >= 1).domain.kind == "boolean"
    x = m.random("x", cv.bernoulli(0.5), plates=(n := m.plate("n", 5)))
    assert cv.sum(x, over=n).domain.size == 6
    assert cv.all(x, over=n).domain.kind == cv.any(x, over=n).domain.kind == "boolean"


def test_sums_of_booleans_need_a_declared_size():
    m = cv.Model()
    n = m.plate("n")
    x = m.random("x", cv.bernoulli(0.5), plates=n)
    with pytest.raises(cv.ModelError, match="declared size"):
        cv.sum(x, over=n)
    with pytest.raises(cv.ModelError, match="takes booleans"):
        cv.all(m.random("z", cv.gaussian(0.0, variance=1.0), plates=n), over=n)

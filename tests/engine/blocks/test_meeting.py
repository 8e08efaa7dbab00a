"""Two arguments of a factor that data make one element: EP over slots refuses them, and only them."""

from __future__ import annotations

import numpy as np
import pytest

import cavity as cv
from cavity.compiler.blocks.slots import SlotsBlock
from cavity.compiler.data.bind import bind
from cavity.compiler.data.same_element import check_apart
from cavity.compiler.plan import make_plan


def products():
    """Outcomes of products of two elements of one variable."""
    m = cv.Model()
    k, n = m.plate("k", 3), m.plate("n")
    x = m.random("x", cv.gaussian(0.0, variance=1.0), plates=k)
    left, right = (m.input(name, cv.index(k), plates=n) for name in ("left", "right"))
    m.random("y", cv.gaussian(x[left] * x[right], variance=1.0))
    return m


def check(model, data):
    binding = bind(model, data, {})
    plan = make_plan(model, frozenset(binding.observed), frozenset(), "ep", sizes=binding.sizes)
    for block in plan.blocks:
        if isinstance(block, SlotsBlock):
            check_apart(block, {**binding.observed, **binding.inputs}, binding.sizes)


def test_products_of_elements():
    check(products(), {"left": [0, 1], "right": [1, 2], "y": [1.0, 2.0]})
    data = {"left": [0, 1], "right": [1, 1], "y": [1.0, 2.0]}
    with pytest.raises(cv.DataError, match="the data make them the same element of 'x'"):
        cv.infer(products(), data, method="ep")


def test_neighbours():
    m = cv.Model()
    n = m.plate("n")
    x = m.random("x", cv.gaussian(0.0, variance=1.0), plates=n)
    m.random("y", cv.gaussian(x * x[m.input("next", cv.index(n), plates=n)], variance=1.0))
    check(m, {"next": [1, 2, 0], "y": np.ones(3)})
    with pytest.raises(cv.DataError, match="the same element"):
        check(m, {"next": [1, 1, 0], "y": np.ones(3)})


def test_two_random_indices_meet_in_some_state():
    m = cv.Model()
    k = m.plate("k", 3)
    x = m.random("x", cv.gaussian(0.0, variance=1.0), plates=k)
    z, w = (m.random(name, cv.categorical(np.ones(3) / 3)) for name in "zw")
    m.random("y", cv.gaussian(x[z] * x[w], variance=1.0))
    with pytest.raises(cv.DataError, match="state"):
        check(m, {"y": 1.0})


def test_two_axes():
    """Elements differ as soon as they differ on one axis."""
    m = cv.Model()
    k, d, n = m.plate("k", 2), m.plate("d", 2), m.plate("n")
    x = m.random("x", cv.gaussian(0.0, variance=1.0), plates=(k, d))
    i, j, g, h = (m.input(name, cv.index(axis), plates=n) for name, axis in (("i", k), ("j", k), ("g", d), ("h", d)))
    m.random("y", cv.gaussian(x[i][g] * x[j][h], variance=1.0))
    check(m, {"i": [0, 1], "j": [0, 0], "g": [0, 1], "h": [1, 1], "y": np.ones(2)})
    with pytest.raises(cv.DataError, match="the same element"):
        check(m, {"i": [0, 0], "j": [0, 0], "g": [0, 1], "h": [1, 1], "y": np.ones(2)})

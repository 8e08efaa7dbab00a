"""Long chains of sums and logical operations: as balanced trees, of the same operands in the same order."""

from __future__ import annotations

import collections

import numpy as np
import pytest

import cavity as cv
from cavity.compiler.algebra.known import Known
from cavity.compiler.language.balanced_sums import LONG, balanced
from cavity.compiler.language.nodes import Apply, Constant, parents


def depth(expr):
    level, deepest = [expr], 0
    while level:
        level = list({child for node in level if isinstance(node, Apply) for child in parents(node)})
        deepest += 1
    return deepest


def scalars(number, factor=lambda: cv.gaussian(0.0, variance=1.0)):
    m = cv.Model()
    return m, [m.random(f"x{i}", factor()) for i in range(number)]


def coefficients(expr):
    """How often each variable stands in a sum, as a user would count."""
    found, stack = collections.Counter(), [(expr, 1.0)]
    while stack:
        node, sign = stack.pop()
        if isinstance(node, Apply):
            stack += [(node.args[0], sign), (node.args[1], -sign if node.op == "subtract" else sign)]
        else:
            found[node.value.item() if isinstance(node, Constant) else node.name] += sign
    return found


def test_a_long_sum_is_as_deep_as_the_logarithm_of_its_length():
    _, x = scalars(1000)
    total = sum(x[1:], start=x[0])
    assert depth(balanced(total)) <= 12
    assert coefficients(balanced(total)) == coefficients(total)


@pytest.mark.parametrize("seed", range(5))
def test_sums_and_differences_nested_in_each_other_stay_what_they_were(seed):
    rng = np.random.default_rng(seed)
    _, x = scalars(8)
    parts = list(x)
    for _ in range(30 * LONG):
        i, j = rng.integers(len(parts)), rng.integers(max(0, len(parts) - 5), len(parts))
        parts.append(parts[j] + x[i % 8] if rng.random() < 0.5 else parts[j] - x[i % 8])
    nested = parts[-1] - (parts[-2] + 3.0)
    assert coefficients(balanced(nested)) == coefficients(nested)
    assert depth(balanced(nested)) < 0.5 * depth(nested)


@pytest.mark.parametrize("symbol", ["__and__", "__or__", "__xor__"])
def test_long_logical_chains_are_balanced_too(symbol):
    _, x = scalars(200, lambda: cv.bernoulli(0.5))
    chain = x[0]
    for boolean in x[1:]:
        chain = getattr(chain, symbol)(boolean)
    found, level = balanced(chain), [balanced(chain)]
    while isinstance(level[0], Apply):  # the leaves, in order
        level = [leaf for node in level for leaf in (parents(node) if isinstance(node, Apply) else (node,))]
    assert depth(found) <= 10
    assert [leaf.name for leaf in level] == [boolean.name for boolean in x]


def test_short_sums_stay_as_they_were_written():
    _, x = scalars(LONG)
    total = sum(x[1:], start=x[0])
    assert balanced(total) is total
    assert balanced(cv.exp(total)).args[0] is total


def test_what_is_known_is_seen_once_however_often_it_is_used():
    """Doubling thirty times: a walk that forgot what it saw would take a thousand million steps."""
    m = cv.Model()
    total = m.input("x", cv.real)
    for _ in range(30):
        total = total + total
    assert Known(frozenset(), {})(total)


def test_sums_of_a_thousand_terms_are_answered():
    """Linear in two dependent numbers: s = a'z with z ~ N(mean, covariance) by its closed form."""
    m = cv.Model()
    x, y = (m.random(name, cv.gaussian(0.0, variance=1.0)) for name in "xy")
    weights = np.random.default_rng(0).normal(size=(500, 2))
    total = 0.5 + x
    for a, b in weights:
        total = total + a * x - b * y
    m.let("total", total)
    m.random("seen", cv.gaussian(x, variance=1.0))
    posterior = cv.infer(m, {"seen": 3.0})
    a, b = 1.0 + weights[:, 0].sum(), -weights[:, 1].sum()
    assert posterior["total"].mean == pytest.approx(0.5 + 1.5 * a, rel=1e-10)
    assert posterior["total"].variance == pytest.approx(0.5 * a**2 + b**2, rel=1e-10)


def test_nesting_that_is_no_sum_is_refused_by_a_sentence():
    m, (x,) = scalars(1)
    total = x
    for _ in range(2000):
        total = 0.5 * total + 1.0
    m.random("y", cv.gaussian(total, variance=1.0))
    with pytest.raises(cv.ModelError, match="nested too deep"):
        cv.infer(m, {"y": 1.0})


@pytest.mark.slow
def test_a_thousand_inputs_in_one_sum():
    m = cv.Model()
    w, n = m.random("w", cv.gaussian(0.0, variance=1.0)), m.plate("n")
    total = w
    for i in range(1000):
        total = total + m.input(f"z{i}", cv.real, n)
    m.random("y", cv.gaussian(total, variance=1.0))
    rng = np.random.default_rng(1)
    data = {f"z{i}": rng.normal(size=3) for i in range(1000)} | {"y": rng.normal(size=3)}
    residual = data["y"] - sum(data[f"z{i}"] for i in range(1000))
    assert cv.infer(m, data)["w"].mean == pytest.approx(residual.sum() / 4.0, rel=1e-9)

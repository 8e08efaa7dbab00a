"""The distributions of discrete expressions whose parts share variables, or are seen together: against enumeration."""

from __future__ import annotations

import itertools
import types

import numpy as np
import pytest

import cavity as cv

close = np.testing.assert_allclose


def test_discrete_expressions_of_a_table_that_is_seen():
    """Functions of two booleans and of two categories, of which another function was seen: against enumeration."""
    m = cv.Model()
    a, b = m.random("a", cv.bernoulli(0.3)), m.random("b", cv.bernoulli(0.6))
    c, d = (m.random(name, cv.categorical(p)) for name, p in (("c", [0.2, 0.3, 0.5]), ("d", [0.1, 0.4, 0.5])))
    m.let("either", a | b)
    m.let("total", c + d)
    for name, expr in {"and": a & b, "xor": a ^ b, "less": c < d}.items():
        m.let(name, expr)
    m.let("equal", c == d)
    posterior = cv.infer(m, {"either": True, "total": 3})
    p = {(i, j): (0.3 if i else 0.7) * (0.6 if j else 0.4) for i, j in itertools.product((0, 1), repeat=2) if i | j}
    whole = sum(p.values())
    close(posterior["and"].mean, p[1, 1] / whole, rtol=1e-6)
    close(posterior["xor"].mean, (p[0, 1] + p[1, 0]) / whole, rtol=1e-6)
    first, second = [0.2, 0.3, 0.5], [0.1, 0.4, 0.5]
    q = {(i, j): first[i] * second[j] for i, j in itertools.product(range(3), repeat=2) if i + j == 3}
    close(posterior["less"].mean, sum(v for (i, j), v in q.items() if i < j) / sum(q.values()), rtol=1e-6)
    close(posterior["equal"].mean, 0.0, atol=1e-9)


DISCRETE = {
    "all of them and one": (lambda v: v.b & cv.all(v.b, over=v.k), lambda b, c, z, i: b & b.all()),
    "any of them or one": (lambda v: v.b | cv.any(v.b, over=v.k), lambda b, c, z, i: b | b.any()),
    "one and another": (lambda v: v.b ^ ~v.b[v.i], lambda b, c, z, i: b[:, None] ^ ~b[i]),
    "one that all share": (lambda v: cv.all(v.b | v.c, over=v.k), lambda b, c, z, i: (b | c).all()),
    "the sum and one": (lambda v: (cv.sum(v.b, over=v.k) > 1) & ~v.b[v.i], lambda b, c, z, i: (b.sum() > 1) & ~b[i]),
    "the sum": (lambda v: cv.sum(v.b, over=v.k) == 2, lambda b, c, z, i: b.sum() == 2),
    "a random one and each": (lambda v: v.b[v.z] & v.b, lambda b, c, z, i: b[z] & b),
    "a random one": (lambda v: v.b[v.z] | v.c, lambda b, c, z, i: b[z] | c),
    "elements that are the same": (lambda v: cv.any(v.b[v.i], over=v.n), lambda b, c, z, i: b[i].any()),
    "nothing in common": (lambda v: v.b & v.c, lambda b, c, z, i: b & c),
}


def test_parts_of_a_discrete_expression_that_share_variables():
    """The sum over all states; parts that read the same elements are not independent."""
    p, q, r, index = np.array([0.6, 0.3, 0.8]), 0.4, np.array([0.2, 0.5, 0.3]), np.array([0, 2, 2])
    m = cv.Model("discrete")
    k, n = m.plate("k", 3), m.plate("n")
    v = types.SimpleNamespace(k=k, n=n, i=m.input("i", cv.index(k), plates=n))
    v.b, v.c, v.z = (
        m.random("b", cv.bernoulli(p), plates=k), m.random("c", cv.bernoulli(q)), m.random("z", cv.categorical(r))
    )  # fmt: skip
    for name, (build, _) in DISCRETE.items():
        m.let(name, build(v))
    posterior = cv.infer(m, {"i": index})
    for name, (_, function) in DISCRETE.items():
        wanted = 0.0
        for *bits, c, z in itertools.product(*[[False, True]] * 4, range(3)):
            b = np.array(bits)
            weight = np.prod(np.where(b, p, 1 - p)) * (q if c else 1 - q) * r[z]
            wanted = wanted + weight * np.asarray(function(b, c, z, index), float)
        close(posterior[name].mean, wanted, rtol=1e-12, err_msg=name)


def test_parts_that_share_too_many_states_are_refused():
    """Independent parts would be a wrong answer without a word."""
    m = cv.Model("many")
    k = m.plate("k", 20)
    b = m.random("b", cv.bernoulli(0.9), plates=k)
    m.let("event", b & cv.all(b, over=k))
    posterior = cv.infer(m, {})
    with pytest.raises(cv.UnsupportedError, match="in several ways"):
        posterior["event"]

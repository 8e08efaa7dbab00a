"""The laws of VMP's averages, over expressions made of the whole vocabulary of operations.

Where the compiler finds a rule, the engine has moments, and elsewhere both refuse; and the moments are those of draws.
"""

from __future__ import annotations

import itertools
import operator
import random

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import digamma

import cavity as cv
from cavity.compiler.algebra.has_moments import no_moments
from cavity.compiler.language.nodes import Apply, Expr, Random, inside, parents
from cavity.engine.values.evaluate import value
from cavity.engine.values.moments import moments
from cavity.engine.values.scope import Scope
from cavity.factors import LINKS
from cavity.factors.moments import Boolean, Positive, Real, Sparse, Unit, Vector

DRAWS = 20_000
RNG = np.random.default_rng(0)
SIZES = {"k": 3, "n": 4}
DATA = {"index": np.array([0, 1, 2, 1]), "x": np.array([0.5, 1.0, -0.4, 2.0]), "u": np.array([1.0, 2.0])}

model = cv.Model("vocabulary")
k, n = model.plate("k", 3), model.plate("n", 4)
index = model.input("index", cv.index(k), plates=n)
x = model.input("x", cv.real, plates=n)


class Belief:
    """A random variable, the moments of its belief, and draws from it."""

    def __init__(self, name, term, moments, draws, plates=()):
        self.node = model.random(name, term, plates=plates)
        self.moments, self.draws = moments, draws


def real(name, mean, variance, plates=()):
    mean, variance = np.asarray(mean), np.asarray(variance)
    draws = mean + np.sqrt(variance) * RNG.normal(size=(DRAWS, *mean.shape))
    return Belief(name, cv.gaussian(0.0, variance=1.0), Real(mean, variance), draws, plates)


def positive(name, shape, rate, plates=()):
    shape, rate = np.asarray(shape), np.asarray(rate)
    draws = RNG.gamma(shape, 1.0 / rate, size=(DRAWS, *shape.shape))
    return Belief(name, cv.gamma(2.0, 1.0), Positive(shape / rate, digamma(shape) - np.log(rate)), draws, plates)


def vector(name, mean, plates=()):
    mean, root = np.asarray(mean), np.array([[0.5, 0.0], [0.2, 0.4]])
    draws = mean + RNG.normal(size=(DRAWS, *mean.shape)) @ root.T
    prior = cv.vector_gaussian(np.zeros(2), precision=np.eye(2))
    covariance = np.broadcast_to(root @ root.T, (*mean.shape, 2))
    return Belief(name, prior, Vector(mean, covariance), draws, plates)


def truth(name, p, plates=()):
    p = np.asarray(p)
    return Belief(name, cv.bernoulli(0.5), Boolean(p), RNG.uniform(size=(DRAWS, *p.shape)) < p, plates)


slab = np.array([0.5, 0.2, 0.5 * (0.1 + 0.4**2) - 0.2**2])  # active with probability 1/2, then N(0.4, 0.1)
BELIEFS = (
    real("s", 0.7, 0.1),
    real("t", -0.4, 0.2),
    positive("a", 20.0, 10.0),
    positive("b", 30.0, 40.0),
    Belief(
        "p",
        cv.beta(2.0, 1.0),
        Unit(digamma(8.0) - digamma(20.0), digamma(12.0) - digamma(20.0)),
        RNG.beta(8.0, 12.0, DRAWS),
    ),
    Belief(
        "z",
        cv.spike_and_slab(0.5, variance=1.0),
        Sparse(*slab),
        (RNG.uniform(size=DRAWS) < 0.5) * (0.4 + np.sqrt(0.1) * RNG.normal(size=DRAWS)),
    ),
    truth("yes", 0.3),
    truth("no", 0.6),
    vector("v", [0.3, 0.9]),
    vector("w", [-0.5, 0.4]),
    real("sk", [0.1, 0.8, -0.6], [0.1, 0.05, 0.2], k),
    positive("ak", [20.0, 30.0, 25.0], [10.0, 20.0, 30.0], k),
    truth("yk", [0.1, 0.5, 0.7], k),
    vector("vk", [[0.1, 0.2], [0.5, -0.6], [1.0, 0.3]], k),
)
NODES = [belief.node for belief in BELIEFS]
CHOSEN = next(node for node in NODES if node.name == "sk")[index]
KNOWN = [2.0, -0.5, x, model.input("u", cv.vector(2))]
SINGLES = (
    lambda e: -e,
    lambda e: ~e,
    lambda e: e**2,
    lambda e: e**3,
    lambda e: e**-1,
    lambda e: e**-2,
    cv.exp,
    cv.log,
    cv.logistic,
    cv.probit,
    lambda e: cv.element(e, 1),
    lambda e: np.array([[1.0, 2.0], [0.5, -1.0]]) @ e,
    lambda e: cv.sum(e, over=k),
    lambda e: cv.sum(e, over=n),
    lambda e: cv.all(e, over=k),
    lambda e: cv.any(e, over=k),
    lambda e: cv.stack(e, over=k),
    lambda e: cv.softmax(e, over=k),
    lambda e: cv.probit(e, over=k),
)
PAIRS = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.and_, operator.or_, operator.xor),
    *(operator.eq, operator.gt, cv.max, cv.min, cv.dot, cv.stack),
)


def built(function, *args):
    """The expression, or nothing where the language has none."""
    if not any(isinstance(arg, Expr) for arg in args):
        return []
    try:
        found = function(*args)
    except (cv.ModelError, TypeError):
        return []
    return [found] if isinstance(found, Expr) and not isinstance(found, Random) else []


def expressions(operands, deeper):
    """All of one operation, and as many as `deeper` of several, always the same."""
    found = [e for f in SINGLES for a in operands for e in built(f, a)]
    found += [e for f in PAIRS for a, b in itertools.product([*operands, *KNOWN], repeat=2) for e in built(f, a, b)]
    chooser, more = random.Random(0), []
    while len(more) < deeper:
        one, other = chooser.choice(found + more), chooser.choice([*operands, *KNOWN, *found])
        pair = (one, other) if chooser.random() < 0.5 else (other, one)
        more += built(chooser.choice(SINGLES), one) if chooser.random() < 0.4 else built(chooser.choice(PAIRS), *pair)
    return found, more


def known(expr):
    return not isinstance(expr, Random) and all(known(child) for child in parents(expr))


def scope(of):
    return Scope(SIZES, {name: jnp.asarray(value) for name, value in DATA.items()}, of)


def kinds(expr):
    return (expr.domain.kind, "real") if expr.domain.kind in ("positive", "unit") else (expr.domain.kind,)


def test_the_engine_has_moments_where_the_compiler_finds_a_rule():
    """And elsewhere both refuse, with a sentence."""
    answers, operations = set(), set()
    beliefs = {belief.node.name: jax.tree.map(np.asarray, belief.moments) for belief in BELIEFS}
    found, more = expressions([*NODES, CHOSEN], 100)
    found = random.Random(1).sample(found, 200)
    for expr in (*found, *more):
        for kind in kinds(expr):
            if kind == "category" or known(expr):
                continue
            silent = no_moments([(expr, kind)], known)
            try:
                with jax.enable_x64(True):
                    jax.eval_shape(lambda of, e=expr, as_=kind: moments(e, scope(of), as_).value, beliefs)
                problem = ""
            except cv.UnsupportedError as refusal:
                problem = str(refusal)
            assert (silent is None) == (problem == ""), f"'{expr}' as {kind}: '{silent}' in the compiler; {problem}"
            assert not problem or len(problem) > 40  # a sentence
            answers.add(problem == "")
            operations |= {node.op for node in inside([expr]) if isinstance(node, Apply)}
    assert answers == {True, False}
    assert len(operations) > 20


def test_moments_are_those_of_draws():
    """Of all expressions whose exponentials and maxima are of Gaussian numbers, as the rules take them to be."""
    beliefs = {belief.node.name: jax.tree.map(np.asarray, belief.moments) for belief in BELIEFS}
    found, more = expressions(NODES, 60)
    checked = 0
    for expr in (*random.Random(2).sample(found, 100), *more):
        kind = expr.domain.kind
        if kind not in ("real", "positive", "vector", "boolean") or known(expr) or not all(map(plain, inside([expr]))):
            continue
        if no_moments([(expr, kind)], known) is not None:
            continue
        names = {node.name for node in inside([expr]) if isinstance(node, Random)}
        draws = {belief.node.name: belief.draws for belief in BELIEFS if belief.node.name in names}
        with jax.enable_x64(True):
            got = moments(expr, scope(beliefs), kind)
            each = jax.vmap(lambda of, e=expr: value(e, scope({}).with_data(of)).value)(draws)
            order = [p.name for p in value(expr, scope({}).with_data({n: d[0] for n, d in draws.items()})).plates]
        assert [p.name for p in got.plates] == order
        for one, other in compared(got.value, np.asarray(each, float)):
            close(one, other, expr)
        checked += 1
    assert checked > 50


def plain(node):
    """Whether the rules are exact for a part of an expression: no bound, and no number taken for a Gaussian."""
    if not isinstance(node, Apply) or node.op not in {"max", *LINKS}:
        return True
    return node.op in ("exp", "max") and all(degree(arg) <= 1 for arg in node.args)


def degree(expr):
    if isinstance(expr, Random):
        return 1 if expr.domain.kind in ("real", "vector") else np.inf
    if known(expr):
        return 0
    return expr.operation.degree([degree(arg) for arg in expr.args]) if isinstance(expr, Apply) else np.inf


def compared(found, each):
    """Pairs of a moment, and draws of what it is the mean of."""
    match found:
        case Real():
            return [(found.mean, each), (found.variance, (each - each.mean(0)) ** 2)]
        case Positive():
            return [(found.mean, each), (found.log, np.log(each))]
        case Boolean():
            return [(found.probability, each)]
    centred = each - each.mean(0)
    return [(found.mean, each), (found.covariance, centred[..., :, None] * centred[..., None, :])]


def close(found, draws, expr):
    error = draws.std(0) / np.sqrt(DRAWS)
    np.testing.assert_array_less(np.abs(np.asarray(found) - draws.mean(0)), 6.0 * error + 1e-9, err_msg=str(expr))


def test_a_truth_value_with_itself_is_not_two_independent_ones():
    yes, no = (node for node in NODES if node.name in ("yes", "no"))
    for expr in (yes | yes, yes & (yes | no), yes ^ yes):
        assert no_moments([(expr, "boolean")], known) is not None
    assert no_moments([(yes & ~no, "boolean")], known) is None

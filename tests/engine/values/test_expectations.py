"""The compiler's table of what VMP can average, against the engine's rules themselves; and what `auto` makes of it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import gammaln

import cavity as cv
from cavity.compiler.algebra.has_moments import no_moments
from cavity.compiler.blocks.energy import EnergyBlock
from cavity.compiler.blocks.slots import SlotsBlock
from cavity.compiler.language.nodes import Random, parents
from cavity.compiler.plan import make_plan
from cavity.engine.values.moments import moments
from cavity.engine.values.scope import Scope
from cavity.factors.errors import UnsupportedError
from cavity.factors.moments import Boolean, Positive, Real, Unit, Vector

AT = {
    "s": Real(0.3, 1.2),
    "t": Real(-0.3, 0.7),
    "a": Positive(1.4, 0.2),
    "b": Positive(2.4, 0.6),
    "p": Unit(-0.4, -1.4),
    "yes": Boolean(0.3),
    "v": Vector(np.array([0.1, 0.4]), np.eye(2)),
    "w": Vector(np.array([0.5, 0.2]), 0.5 * np.eye(2)),
}


def variables(m):
    return {
        "s": m.random("s", cv.gaussian(0.0, variance=1.0)),
        "t": m.random("t", cv.gaussian(0.0, variance=1.0)),
        "a": m.random("a", cv.gamma(2.0, 1.0)),
        "b": m.random("b", cv.gamma(2.0, 1.0)),
        "p": m.random("p", cv.beta(2.0, 1.0)),
        "yes": m.random("yes", cv.bernoulli(0.3)),
        "v": m.random("v", cv.vector_gaussian(np.zeros(2), precision=np.eye(2))),
        "w": m.random("w", cv.vector_gaussian(np.zeros(2), precision=np.eye(2))),
    }


REAL = {
    "sum": lambda s, t, **_: 2.0 * s - t + 1.0,
    "product": lambda s, t, **_: s * t,
    "square": lambda s, **_: s**2,
    "cube": lambda s, **_: s**3,
    "quotient of a real": lambda s, t, **_: s / t,
    "quotient": lambda s, a, **_: s / a,
    "positive power": lambda s, a, **_: s * a**3,
    "positive as real": lambda a, s, **_: a + s,
    "unit as real": lambda p, s, **_: s * p,
    "power of a unit": lambda p, s, **_: s * p**2,
    "inverse of a unit": lambda p, s, **_: s / p,
    "log": lambda a, s, **_: cv.log(a) + s,
    "log of a product": lambda a, b, **_: cv.log(a * b),
    "log of a sum": lambda a, b, **_: cv.log(a + b),
    "log of a unit": lambda p, **_: cv.log(p),
    "exp": lambda s, t, **_: t * cv.exp(s),
    "exp of what it meets": lambda s, **_: s + cv.exp(s),
    "exp of a cube": lambda s, t, **_: t * cv.exp(s**3),
    "max": lambda s, t, **_: cv.max(s, t) + 1.0,
    "min of sums": lambda s, t, **_: cv.min(s + t, 2.0 * s),
    "max of a cube": lambda s, t, **_: cv.max(s**3, t),
    "max and its argument": lambda s, t, **_: s * cv.max(s, t),
    "dot": lambda v, w, **_: cv.dot(v, w),
    "dot with data": lambda v, s, **_: cv.dot(v, np.array([1.0, 2.0])) * s,
    "square of a projection": lambda v, **_: cv.dot(v, np.array([1.0, 2.0])) ** 2,
    "square of a dot": lambda v, w, **_: cv.dot(v, w) ** 2,
    "logistic as real": lambda s, t, **_: t * cv.logistic(s),
}
POSITIVE = {
    "product": lambda a, b, **_: a * b,
    "square": lambda a, **_: a**2,
    "own product": lambda a, **_: a * a,
    "quotient": lambda a, b, **_: a / b,
    "quotient by a product": lambda a, b, **_: 1.0 / (a * b),
    "own quotient": lambda a, **_: a / (2.0 * a),
    "sum": lambda a, b, **_: a + b,
    "exp": lambda s, a, **_: a * cv.exp(s),
    "exp of a cube": lambda s, **_: cv.exp(s**3),
    "power of a power": lambda a, **_: (a**2) ** 3,
    "quotient by a power": lambda a, b, **_: b / a**2,
    "power of a product": lambda a, b, **_: (a * b) ** 2,
}
UNIT = {
    "logistic": lambda s, **_: cv.logistic(s),
    "logistic of a cube": lambda s, **_: cv.logistic(s**3),
    "variable": lambda p, **_: p,
}
VECTOR = {
    "sum": lambda v, w, **_: v + w,
    "own sum": lambda v, **_: v + v,
    "multiple": lambda v, s, **_: v * s,
    "multiple by a cube": lambda v, s, **_: v * s**3,
    "over": lambda v, a, **_: v / a,
    "over a real": lambda v, s, **_: v / s,
    "negated": lambda v, **_: -v,
}
TABLE = [
    (kind, name, build)
    for kind, table in (("real", REAL), ("positive", POSITIVE), ("unit", UNIT), ("vector", VECTOR))
    for name, build in table.items()
]


@pytest.mark.parametrize(("kind", "name", "build"), TABLE, ids=[f"{kind}-{name}" for kind, name, _ in TABLE])
def test_the_table_agrees_with_the_rules(kind, name, build):
    expr = build(**variables(cv.Model()))
    with jax.enable_x64(True):
        scope = Scope({}, {}, {name: jax.tree.map(jnp.asarray, value) for name, value in AT.items()})
        try:
            moments(expr, scope, kind)
            averaged = True
        except UnsupportedError:
            averaged = False
    silent = no_moments([(expr, kind)], known)
    assert (silent is None) == averaged, f"'{expr}': the table says {silent}, the engine {averaged}"


def known(expr):
    return not isinstance(expr, Random) and all(known(child) for child in parents(expr))


def block(build, name="x", observed=("x",)):
    m = cv.Model()
    own = variables(m)
    m.random("x", build(m, **own))
    plan = make_plan(m, frozenset(observed))
    return next(block for block in plan.blocks if block.name == name)


AUTO = {
    "cube": (lambda m, s, **_: cv.gaussian(s**3, variance=1.0), SlotsBlock, "no moments of s ** 3"),
    "exp and itself": (lambda m, s, **_: cv.gaussian(s + cv.exp(s), variance=1.0), SlotsBlock, "no moments"),
    "max": (lambda m, s, t, **_: cv.gaussian(cv.max(s, t), variance=1.0), SlotsBlock, "has a kink"),
    "two maxima": (lambda m, s, t, a, **_: cv.gaussian(cv.max(cv.max(s, t), cv.log(a)), precision=a), EnergyBlock, ""),
    "quotient": (
        lambda m, a, b, **_: cv.gaussian(0.0, precision=a / b),
        SlotsBlock,
        "belief of b is small",
    ),
    "scale": (lambda m, a, **_: cv.gaussian(0.0, sd=a), SlotsBlock, "belief of a is small"),
    "one variable in two arguments": (lambda m, a, **_: cv.gamma(a, a), SlotsBlock, "two arguments use a"),
    "and in a product": (lambda m, a, b, **_: cv.gamma(a, a * b), SlotsBlock, "two arguments use a"),
    "different variables": (lambda m, a, b, **_: cv.gamma(a, b), EnergyBlock, ""),
    "square": (lambda m, s, t, **_: cv.gaussian(s**2 * t, variance=1.0), EnergyBlock, ""),
    "a cube in a gate": (
        lambda m, s, yes, **_: cv.switch(yes, cv.gaussian(s**3, variance=1.0), cv.gaussian(0.0, variance=1.0)),
        SlotsBlock,
        "no moments of s ** 3",
    ),
}


@pytest.mark.parametrize("case", AUTO)
def test_auto(case):
    build, kind, reason = AUTO[case]
    found = block(build)
    assert isinstance(found, kind)
    assert reason in found.choice.reason


def test_what_neither_serves_has_both_reasons():
    with pytest.raises(UnsupportedError, match=r"3 random numbers(.|\n)*Nor has VMP(.|\n)*no moments of"):
        block(lambda m, a, b, **_: cv.gaussian(0.0, precision=a * b + m.random("n", cv.poisson(2.0))))


def test_what_neither_serves_by_rule_is_averaged_over_its_numbers():
    found = block(lambda m, a, b, p, **_: cv.gaussian(0.0, precision=a * b + p))
    assert isinstance(found, EnergyBlock)
    assert [str(number) for number in found.composed.numbers] == ["a", "b", "p"]
    assert "averaged over a, b, p" in found.choice.reason


def test_one_variable_in_two_arguments():
    """Draws of mean one with an unknown shape, which is both arguments of the Gamma: against a dense grid."""
    x = np.random.default_rng(0).gamma(3.0, 1.0 / 3.0, 40)
    m = cv.Model("mean one")
    n = m.plate("n")
    shape = m.random("shape", cv.gamma(1.0, 1.0))
    m.random("x", cv.gamma(shape, shape), plates=n)
    found = cv.infer(m, {"x": x})
    s = np.linspace(1e-3, 15.0, 20_001)
    log_density = 40 * (s * np.log(s) - gammaln(s)) + (s - 1.0) * np.log(x).sum() - s * x.sum() - s
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    mean = weights @ s
    assert found.converged
    assert found["shape"].mean == pytest.approx(mean, rel=1e-3)
    assert found["shape"].sd == pytest.approx(np.sqrt(weights @ (s - mean) ** 2), rel=5e-3)


def test_components_with_scales():
    """Under EP both components got the same mean; under VMP 1 / scale^2 needs a start from which it is finite.

    The components are far apart: each is a Gaussian sample of its own, with its mean integrated out.
    """
    rng = np.random.default_rng(1)
    left, right = rng.normal(-4.0, 1.0, 120), rng.normal(4.0, 0.5, 80)
    m = cv.Model("two components")
    component, n = m.plate("component", 2), m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, sd=50.0), plates=component)
    scale = m.random("scale", cv.half_normal(2.0), plates=component)
    z = m.random("z", cv.categorical([0.5, 0.5]), plates=n)
    m.random("y", cv.gaussian(mean[z], sd=scale[z]))
    found = cv.infer(m, {"y": np.concatenate([left, right])})
    assert found.converged, found.diagnosis
    s = np.linspace(0.2, 3.0, 20_001)
    for k, y in zip(np.argsort(found["mean"].mean), (left, right), strict=True):
        log_density = -(len(y) - 1) * np.log(s) - 0.5 * len(y) * y.var() / s**2 - s**2 / 8.0
        weights = np.exp(log_density - log_density.max())
        weights /= weights.sum()
        sd = np.sqrt(weights @ s**2 - (weights @ s) ** 2)
        assert abs(found["scale"].mean[k] - weights @ s) < 0.1 * sd
        assert abs(found["mean"].mean[k] - y.mean()) < 0.01 * y.std() / np.sqrt(len(y))
        np.testing.assert_allclose(found["scale"].sd[k], sd, rtol=0.1)
        np.testing.assert_allclose(found["mean"].sd[k], y.std() / np.sqrt(len(y)), rtol=0.02)


def test_one_element_in_two_arguments():
    """The same element by the same index is one variable, as it is without the index."""
    found = []
    for indexed in (False, True):
        m = cv.Model("mean and precision of one variable")
        k, n = m.plate("k", 1), m.plate("n")
        index = m.input("index", cv.index(k), plates=n)
        x = m.random("x", cv.gaussian(0.0, variance=1.0), plates=k if indexed else ())
        own = x[index] if indexed else x
        m.random("y", cv.gaussian(own, precision=cv.exp(own)), plates=n)
        belief = cv.infer(m, {"index": [0, 0, 0], "y": [2.0, 1.0, 0.0]})["x"]
        found.append([float(np.squeeze(belief.mean)), float(np.squeeze(belief.variance))])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)

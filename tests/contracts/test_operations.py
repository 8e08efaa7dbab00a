"""The laws of operations: each is declared once, and every reading of expressions has a rule for it, or a sentence."""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
import pickle

import jax
import numpy as np
import pytest
from scipy.special import expit, ndtr, softmax

import cavity as cv
from cavity.compiler.algebra import averages, averaging, parity
from cavity.compiler.language import monomials, operators
from cavity.compiler.language.atoms import atom_key
from cavity.compiler.language.operations import OPERATIONS, Operation, Reach
from cavity.engine.values.operations import ALONG, EACH, PROBABILITIES, REPEATED, VALUELESS, VALUES, WHOLE
from cavity.factors import LINKS, domains
from cavity.factors.errors import ModelError

RNG = np.random.default_rng(0)
TABLES = {
    "monomials": monomials.MONOMIALS,
    "sums": monomials.SUBTRACTED,
    "reciprocals": monomials.RECIPROCALS,
    "logarithms": monomials.LOGARITHMS,
    "parity": parity.PARITY,
    "averages of positive expressions": averaging.POSITIVES,
    "averages of vectors": averaging.VECTORS,
    "averages of atoms": averaging.ATOMS,
    "values": VALUES,
    "values along a plate": ALONG,
    "values along a plate of equal elements": REPEATED,
    "probabilities": PROBABILITIES,
    "without a value": VALUELESS,
    "links": LINKS,
}


def correlations_of(one, two, between):
    """Of three effects: two correlations with the first, and the partial one of the others given it."""
    third = one * two + between * np.sqrt((1.0 - one**2) * (1.0 - two**2))
    return np.array([[1.0, one, two], [one, 1.0, third], [two, third, 1.0]])


ONE_STEP = {  # of one instance, by NumPy; operands are numbers where nothing else is said
    "add": np.add,
    "subtract": np.subtract,
    "negate": np.negative,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": lambda x: x**3,
    "max": np.maximum,
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
    "where": lambda c, a, b: a if c else b,
    "logistic": expit,
    "probit": ndtr,
    "dot": lambda a, b: np.sum(a * b),
    "matvec": lambda a, v: np.sum(a * v, axis=1),
    "stack": lambda *x: np.array(x),
    "covariance": lambda scales, partial: np.outer(scales, scales) * correlations_of(*partial),
    "inverse": lambda matrix: np.linalg.inv(matrix),
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "xor": lambda a, b: a != b,
    "not": lambda a: not a,
    "equal": lambda a, b: a == b,
    "greater": lambda a, b: a > b,
}
OVER = {
    "sum": np.sum,
    "all": lambda x: bool(np.prod(x)),
    "any": lambda x: bool(np.sum(x)),
    "stack": lambda x: x,
    "cumprod": np.cumprod,
    "softmax": softmax,
    "multinomial_probit": None,  # an integral: the laws of links
}
OPTIONS = {"power": {"exponent": 3}}
DOMAINS = {
    "real": domains.real,
    "sparse": domains.sparse,
    "positive": domains.positive,
    "unit": domains.unit,
    "count": domains.count,
    "boolean": domains.boolean,
    "category": domains.category(3),
    "vector": domains.vector(2),
    "matrix": domains.matrix(2, 2),
}
DRAWS = {
    "real": lambda: RNG.normal(0.0, 2.0),
    "sparse": lambda: RNG.normal() * RNG.integers(2),
    "positive": lambda: RNG.gamma(2.0) + 0.01,
    "unit": lambda: RNG.uniform(0.01, 0.99),
    "count": lambda: float(RNG.poisson(2.0)),
    "boolean": lambda: bool(RNG.integers(2)),
    "category": lambda: int(RNG.integers(3)),
    "vector": lambda: RNG.normal(size=2),
    "matrix": lambda: RNG.normal(size=(2, 2)),
}
# Of operands that belong together: their kinds, for draws, and their domains.
OF_MATRICES = {
    "covariance": (("scales", "correlations"), [domains.vector(3), domains.vector(3)]),
    "inverse": (("posdef",), [domains.posdef(2)]),
}
DRAWS |= {
    "scales": lambda: RNG.gamma(2.0, size=3) + 0.01,
    "correlations": lambda: RNG.uniform(-0.9, 0.9, 3),
    "posdef": lambda: np.cov(RNG.normal(size=(2, 9))),
}
LEGAL = {
    "posdef": lambda x: np.linalg.eigvalsh(x) > 0,
    "real": np.isfinite,
    "positive": lambda x: x > 0,
    "unit": lambda x: (x >= 0) & (x <= 1),
    "count": lambda x: (x >= 0) & (x == np.round(x)),
    "boolean": lambda x: (x == 0) | (x == 1),
    "category": lambda x: x == np.round(x),
    "vector": np.isfinite,
}


def arity(op):
    return ONE_STEP[op].nin if isinstance(ONE_STEP[op], np.ufunc) else ONE_STEP[op].__code__.co_argcount or 2


def accepted(op):
    """The domains of operands that an operation takes, and the domain that it gives."""
    if op in OF_MATRICES:
        kinds, operands = OF_MATRICES[op]
        yield kinds, OPERATIONS[op].domain(operands, refuse)
        return
    for kinds in itertools.product(DOMAINS, repeat=arity(op)):
        if op == "matvec" and kinds != ("matrix", "vector"):  # `@` chooses it
            continue
        with contextlib.suppress(ModelError):
            yield kinds, OPERATIONS[op].domain([DOMAINS[k] for k in kinds], refuse, **OPTIONS.get(op, {}))


def refuse(*reason):
    return ModelError(f"takes {' '.join(reason)}")


@pytest.mark.parametrize("table", TABLES)
def test_tables_speak_of_declared_operations(table):
    names = {key.name if isinstance(key, Operation) else key for key in TABLES[table]}
    assert names <= set(OPERATIONS)


def test_copies_of_expressions_share_their_operations():
    for operation in OPERATIONS.values():
        assert copy.deepcopy(operation) is operation
        assert pickle.loads(pickle.dumps(operation)) is operation


def test_every_operation_has_a_value_or_a_sentence():
    assert set(VALUES) | set(ALONG) | set(VALUELESS) == set(OPERATIONS)
    assert not (set(VALUES) | set(ALONG)) & set(VALUELESS)
    assert set(ONE_STEP) == set(VALUES), "give the new operation a reference"
    assert set(OVER) == set(ALONG), "give the new operation a reference"
    assert set(ALONG) <= {name for name, operation in OPERATIONS.items() if operation.reach is Reach.SEVERAL}


def test_every_rule_of_vmp_has_one_formula():
    def below(rule):
        return {rule}.union(*map(below, rule.__subclasses__()))

    assert set(EACH) | set(WHOLE) == below(averages.Average) - {averages.Average}
    assert not set(EACH) & set(WHOLE)


def test_every_logical_operation_has_a_probability():
    logical = {name for name, operation in OPERATIONS.items() if operation.logical}
    assert set(PROBABILITIES) == logical
    for op in logical:
        for p in itertools.product((0.0, 1.0), repeat=arity(op)):
            assert PROBABILITIES[op](*p) == ONE_STEP[op](*map(bool, p))


@pytest.mark.parametrize("op", ONE_STEP)
def test_values_are_those_of_numpy_and_in_the_declared_domain(op):
    """For all domains that the operation takes; the domain that it declares holds what it gives."""
    taken = list(accepted(op))
    assert taken
    for kinds, out in taken:
        for _ in range(2):
            operands = [DRAWS[kind]() for kind in kinds]
            if op == "divide" and not np.all(operands[1]):
                continue
            with jax.enable_x64(True):
                found = np.asarray(VALUES[op](*map(np.asarray, operands), **OPTIONS.get(op, {})))
            numbers = [int(x) if out.kind == "category" else x for x in operands]
            if out.kind != "category":  # truth values are added as numbers by `point_function`
                np.testing.assert_allclose(found, ONE_STEP[op](*numbers), rtol=1e-12)
            result = np.asarray(ONE_STEP[op](*numbers))
            if not (op == "subtract" and out.kind == "category"):  # classes may not be negative, which data show
                assert LEGAL[out.kind](result).all(), (op, kinds, out, result)


@pytest.mark.parametrize("op", sorted(op for op in OVER if OVER[op]))
def test_values_along_a_plate(op):
    x = RNG.normal(size=5) > 0 if op in ("all", "any") else RNG.normal(size=5)
    with jax.enable_x64(True):
        np.testing.assert_allclose(np.asarray(ALONG[op](x), float), np.asarray(OVER[op](x), float), rtol=1e-12)
        if op in REPEATED:
            same = np.full(5, x[0])
            np.testing.assert_allclose(
                np.asarray(REPEATED[op](x[0], 5), float), np.asarray(OVER[op](same), float), rtol=1e-12
            )


@pytest.mark.parametrize("op", sorted(set(ONE_STEP) - {"stack"}))
def test_degrees_are_those_of_the_values(op):
    """Along a line t, the operands being of degree 0 or 1 in t, differences of one order above the degree vanish."""
    for kinds, out in accepted(op):
        if set(kinds) - {"real", "positive", "vector", "matrix"} or out.kind not in ("real", "positive", "vector"):
            continue
        for degrees in itertools.product((0, 1), repeat=len(kinds)):
            start = [np.abs(DRAWS[kind]()) + 0.5 for kind in kinds]
            slope = [np.abs(DRAWS[kind]()) * degree for kind, degree in zip(kinds, degrees, strict=True)]
            values = np.array([ONE_STEP[op](*(a + t * b for a, b in zip(start, slope, strict=True))) for t in range(5)])
            degree = OPERATIONS[op].degree(degrees)
            if math.isfinite(degree):
                assert np.abs(np.diff(values, n=int(degree) + 1, axis=0)).max() < 1e-9 * np.abs(values).max()
            elif op != "max":  # that is one of its operands along most of a line
                assert np.abs(np.diff(values, n=2, axis=0)).max() > 1e-9


def test_what_is_written_is_what_was_meant():
    """The text of an expression, read as Python, is the expression; every operation of the language has one."""
    m = cv.Model()
    k = m.plate("k", 3)
    names = {
        "k": k,
        "x": m.random("x", cv.gaussian(0.0, variance=1.0)),
        "y": m.random("y", cv.gaussian(0.0, variance=1.0)),
        "p": m.random("p", cv.gamma(1.0, 1.0)),
        "b": m.random("b", cv.bernoulli(0.5)),
        "c": m.random("c", cv.bernoulli(0.5)),
        "v": m.random("v", cv.vector_gaussian(np.zeros(2), precision=np.eye(2))),
        "A": m.input("A", cv.matrix(2, 2)),
        "s": m.random("s", cv.gaussian(0.0, variance=1.0), plates=k),
        "d": m.random("d", cv.bernoulli(0.5), plates=k),
        "u": m.random("u", cv.beta(1.0, 1.0), plates=k),
    }
    x, y, p, b, c, v, s, d, u = (names[name] for name in "xypbcvsdu")
    exprs = [x + y, x - y, -x, x * y, x / y, x**3, cv.max(x, y), cv.exp(x), cv.log(p), cv.logistic(x), cv.probit(x)]
    exprs += [cv.tanh(x), cv.sin(x), cv.cos(x), cv.where(b, x, y), p**0.5]
    exprs += [cv.dot(v, v), names["A"] @ v, cv.stack(x, y), cv.stack(s, over=k), cv.sum(s, over=k)]
    exprs += [cv.softmax(s, over=k), cv.probit(s, over=k), b & c, b | c, b ^ c, ~b, b == c, x > y]
    exprs += [cv.all(d, over=k), cv.any(d, over=k), cv.covariance([p, p], x), cv.covariance([p, p * p], x) ** -1]
    exprs += [cv.cumprod(u, over=k)]
    simple = ("tanh", "sin", "cos", "where", "max", "exp", "log", "logistic", "probit", "dot", "stack")
    functions = {name: getattr(cv, name) for name in (*simple, "sum", "softmax", "cumprod", "all", "any", "covariance")}
    functions["matvec"] = operators.matmul
    assert {expr.op for expr in exprs} == set(OPERATIONS) - {"together"}  # which only the compiler makes
    for expr in exprs:
        assert atom_key(eval(str(expr), {**functions, **names})) == atom_key(expr), str(expr)

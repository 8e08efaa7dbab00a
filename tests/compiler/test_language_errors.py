"""Every error of the language: it names the variable, says what was found, and what to do."""

import dataclasses
import math
import re

import numpy as np
import pytest

from cavity.compiler.language.functions import exp, log, logistic, softmax
from cavity.compiler.language.functions import sum as total
from cavity.compiler.language.model import Model
from cavity.factors import domains
from cavity.factors.discrete.bernoulli import bernoulli
from cavity.factors.discrete.categorical import categorical
from cavity.factors.discrete.poisson import poisson
from cavity.factors.errors import ModelError
from cavity.factors.factor import Factor, Term, switch
from cavity.factors.positive.beta import beta
from cavity.factors.positive.gamma import gamma
from cavity.factors.real.gaussian import gaussian
from cavity.factors.vectors.dirichlet import dirichlet
from cavity.factors.vectors.vector_gaussian import vector_gaussian

STANDARD = {"mean": 0.0, "precision": 1.0}


def refused(action, *parts):
    """`action` raises a ModelError whose message contains all `parts`."""
    with pytest.raises(ModelError) as caught:
        action()
    message = str(caught.value)
    absent = [part for part in parts if part not in message]
    assert not absent, f"{absent} not in: {message}"


@pytest.fixture
def m():
    return Model("test")


@pytest.fixture
def n(m):
    return m.plate("n")


@pytest.fixture
def x(m):
    return m.random("x", gaussian(0.0, variance=1.0))


@pytest.fixture
def b(m):
    return m.random("b", bernoulli(0.5))


# Names and declarations


def test_name_taken(m, n, x):
    m.input("data", domains.real)
    m.let("twice", 2 * x)
    m.constrain(x > 0, name="positive")
    refused(lambda: m.plate("x"), "'x' of a plate", "this model's random variable", "another name")
    refused(lambda: m.input("n", domains.real), "'n' of a input", "this model's plate")
    refused(lambda: m.random("data", gaussian(0.0, variance=1.0)), "'data'", "this model's input")
    refused(lambda: m.let("x", 2 * x), "'x' of a let", "this model's random variable")
    refused(lambda: m.plate("twice"), "this model's let")
    refused(lambda: m.constrain(x > 1, name="positive"), "this model's constraint")


@pytest.mark.parametrize("name", ["", 3, None])
def test_name_is_no_string(m, name):
    refused(lambda: m.plate(name), repr(name), "non-empty string")


@pytest.mark.parametrize("size", [0, -1, 2.5, "three", True])
def test_plate_size(m, size):
    refused(lambda: m.plate("n", size), "'n'", repr(size), "positive integer", "leave it out")


def test_unknown_plates(m, x):
    stranger = Model("other").plate("n")
    refused(lambda: m.random("y", gaussian(0.0, variance=1.0), plates="n"), "'y'", "'n'", "not a plate", "m.plate")
    refused(lambda: m.input("y", domains.real, plates=3), "'y'", "3", "not a plate")
    refused(lambda: m.input("y", domains.real, plates=stranger), "'y'", "'n'", '"test"', "Declare it")
    refused(lambda: m.input("y", domains.index(stranger)), "'y'", "'n'", '"test"')


def test_plate_named_twice(m, n):
    refused(lambda: m.input("pairs", domains.real, plates=(n, n)), "'pairs'", "twice", "(n, n)", "two plates")


def test_input_domain(m):
    refused(lambda: m.input("y", float), "'y'", "float", "not a domain", "cv.real")
    refused(lambda: m.input("y", domains.vector(0)), "'y'", "0", "positive integer")


def test_random_without_a_term(m, x):
    refused(lambda: m.random("y", 2 * x), "'y'", "(2 * x)", "m.let")
    refused(lambda: m.random("y", 3.0), "'y'", "3.0", "Give a term", "cv.gaussian")
    refused(lambda: m.random("y", gaussian), "'y'", "Call it with its arguments")


def test_let_without_an_expression(m):
    refused(lambda: m.let("y", 3.0), "'y'", "3.0", "not an expression")
    refused(lambda: m.let("y", gaussian(0.0, variance=1.0)), "'y'", "m.random")


def test_constrain(m, x):
    data = m.input("data", domains.real)
    refused(lambda: m.constrain(x), "'constraint 1'", "'x', which is real", "m.constrain(a > b)")
    refused(lambda: m.constrain(True), "'constraint 1'", "True", "comparison")
    refused(lambda: m.constrain(data > 0), "'constraint 1'", "(data > 0)", "no random variable")


def test_nodes_of_another_model(m):
    stranger = Model("other").random("stranger", gaussian(0.0, variance=1.0))
    refused(lambda: m.random("y", gaussian(2 * stranger, variance=1.0)), "'y'", "'stranger'", "another model", '"test"')
    refused(lambda: m.let("y", 2 * stranger), "Let 'y'", "'stranger'", "another model")
    refused(lambda: m.constrain(stranger > 0), "'constraint 1'", "'stranger'")


def test_edited_nodes_are_strangers(m, x):
    refused(lambda: m.let("y", dataclasses.replace(x) + 1), "'y'", "'x'")


# Arguments


def test_precision_that_may_be_negative(m, x):
    refused(
        lambda: m.random("y", gaussian(0.0, precision=x)),
        "'y'",
        "`precision` of gaussian",
        "must be positive",
        "'x', which is real",
        "cv.exp",
    )


def test_probability_from_the_real_line(m, x):
    refused(
        lambda: m.random("y", bernoulli(x)),
        "'y'",
        "`probability` of bernoulli",
        "'x', which is real",
        "cv.logistic",
        "cv.probit",
    )
    refused(lambda: m.random("y", bernoulli(exp(x))), "'y'", "positive", "exceed one")


def test_probability_vector_from_the_real_line(m, x):
    refused(lambda: m.random("y", categorical(x)), "'y'", "simplex", "'x', which is real", "cv.softmax")


def test_mean_of_other_domains(m, b):
    scale = m.random("scale", gamma(1.0, 1.0))
    rate = m.random("rate", beta(1.0, 1.0))
    vector = m.random("vector", vector_gaussian(np.zeros(2), covariance=np.eye(2)))
    for number in (scale, rate):  # positive numbers and probabilities are real numbers
        assert m.random(f"real {number}", gaussian(number, variance=1.0)).term.args["mean"].domain.is_real
    refused(lambda: m.random("y", gaussian(b, variance=1.0)), "'y'", "'b', which is boolean", "cv.switch")
    refused(lambda: m.random("y", gaussian(vector, variance=1.0)), "'y'", "vector(2)", "cv.dot")
    refused(lambda: m.random("y", vector_gaussian(scale, covariance=np.eye(2))), "'y'", "must be vector", "'scale'")


def test_random_concentration(m):
    vector = m.random("vector", vector_gaussian(np.zeros(2), covariance=np.eye(2)))
    refused(lambda: m.random("y", dirichlet(vector)), "'y'", "`concentration`", "'vector'", "random")


def test_argument_is_a_term(m):
    def then(previous):
        return gaussian(previous, precision=gamma(1.0, 1.0))

    steps = m.plate("t", 4)
    chain = lambda: m.chain("y", over=steps, first=gaussian(0.0, variance=1.0), then=then)  # noqa: E731
    refused(chain, "'y'", "`precision`", "itself a term", "m.random")


@pytest.mark.parametrize("value", [None, "high", object()])
def test_argument_is_no_number(m, value):
    factor = gaussian(0.0, variance=1.0).factor
    refused(lambda: m.random("y", Term(factor, STANDARD | {"mean": value})), "'y'", "`mean` of gaussian", "Give")


def test_argument_is_text(m):
    factor = gaussian(0.0, variance=1.0).factor
    term = Term(factor, STANDARD | {"mean": np.array(["a"])})
    refused(lambda: m.random("y", term), "'y'", "`mean` of gaussian", "<U1", "not numbers", "encode")


def constant_problem(kind, value, *parts):
    factor = Factor("own", {"given": kind}, lambda d: domains.real, None, None, None)
    refused(lambda: Model().random("y", Term(factor, {"given": value})), "'y'", "`given` of own", *parts, "Give")


def test_values_of_constants():
    constant_problem("positive", -1.0, "must be positive", "found -1", "greater than zero")
    constant_problem("positive", 0.0, "must be positive", "found 0")
    constant_problem("positive", np.inf, "must be finite", "found inf")
    constant_problem("real", np.nan, "must be finite", "found nan")
    constant_problem("real", np.inf, "must be finite", "found inf")
    constant_problem("unit", 1.2, "between 0 and 1", "found 1.2")
    constant_problem("unit", -0.1, "between 0 and 1", "found -0.1")
    constant_problem("boolean", 2, "true or false", "found 2")
    constant_problem("count", 1.5, "whole numbers", "found 1.5")
    constant_problem("count", -1, "must not be negative", "found -1")
    constant_problem("simplex", [0.5, 0.6], "sum to one", "a sum of 1.1", "divide")
    constant_problem("simplex", [1.5, -0.5], "must not be negative", "found -0.5 at [1]")
    constant_problem("concentration", [1.0, 0.0], "must be positive", "found 0 at [1]")
    constant_problem("vector", [1.0, np.nan], "must be finite", "found nan at [1]")
    constant_problem("posdef", [[1.0, 2.0], [2.0, 1.0]], "positive definite", "smallest eigenvalue of -1")
    constant_problem("posdef", [[1.0, 0.5], [0.0, 1.0]], "must be symmetric")
    constant_problem("posdef", [[1.0, 0.5]], "(1, 2)", "square")
    constant_problem("posdef", 1.0, "shape ()", "single matrix")
    constant_problem("simplex", 0.5, "shape ()", "single vector")
    constant_problem("vector", [], "empty array")


def test_where_a_wrong_value_is(m):
    k = m.plate("k", 2)
    refused(
        lambda: m.random("y", bernoulli(np.array([0.1, 1.7])), plates=k), "'y'", "found 1.7 at [1]", "between 0 and 1"
    )


def test_array_that_does_not_line_up(m, n):
    k = m.plate("k", 4)
    refused(lambda: m.random("y", gaussian(np.zeros(3), variance=1.0)), "'y'", "`mean`", "(3,)", "declare plates=")
    refused(lambda: m.random("y", gaussian(np.zeros(3), variance=1.0), plates=(n, k)), "'y'", "(3,)", "(n, k)")
    refused(lambda: m.random("y", gaussian(np.zeros(3), variance=1.0), plates=k), "'y'", "found 3", "'k'", "size 4")
    refused(
        lambda: m.random("y", vector_gaussian(np.zeros((2, 3, 4)), covariance=np.eye(4)), plates=n), "'y'", "(2, 3, 4)"
    )


def test_arrays_that_contradict_each_other(m, n):
    m.random("first", gaussian(np.zeros(3), variance=1.0), plates=n)
    refused(
        lambda: m.random("second", gaussian(np.zeros(4), variance=1.0), plates=n),
        "'second'",
        "'n' of size 4",
        "random variable 'first'",
        "makes it 3",
    )
    m.random("second", gaussian(np.zeros(3), variance=1.0), plates=n)


# Switches


def test_switch_selector(m, x):
    terms = gaussian(0.0, variance=1.0), gaussian(0.0, variance=2.0)
    refused(lambda: m.random("y", switch(x, *terms)), "'y'", "selector", "'x' (real)", "cv.bernoulli")
    refused(lambda: m.random("y", switch(True, *terms)), "'y'", "selector", "True")


def test_switch_cases(m, b):
    term = gaussian(0.0, variance=1.0)
    z = m.random("z", categorical([0.2, 0.3, 0.5]))
    refused(lambda: m.random("y", switch(b, term)), "'y'", "'b' (boolean)", "1 cases", "needs 2", "cv.switch")
    refused(lambda: m.random("y", switch(z, term, term)), "'y'", "'z' (category(3))", "2 cases", "needs 3")
    refused(lambda: m.random("y", switch(b, term, gamma(1.0, 1.0))), "'y'", "case 1 (gamma)", "positive", "real")
    refused(lambda: m.random("y", switch(b, term, switch(b, term, term))), "'y'", "switch inside a switch")
    refused(lambda: m.random("y", switch(b, term, 3.0)), "'y'", "3.0", "not a term")
    refused(lambda: m.random("y", switch(b)), "'y'", "0 cases", "needs 2")


# Operators


def test_python_protocols(m, x):
    refused(lambda: bool(x > 0), "'(x > 0)'", "truth value", "& | ^ ~", "cv.switch")
    refused(lambda: 0 < x < 1, "truth value", "`a < b`")
    refused(lambda: list(x), "'x'", "iterated", "no plates")
    refused(lambda: len(x), "'x'", "length")
    refused(lambda: len(m.random("y", gaussian(0.0, variance=1.0), plates=m.plate("n"))), "'y'", "(n)")


def test_operands_of_the_wrong_domain(m, x, b):
    p = m.random("p", gamma(1.0, 1.0))
    vector = m.random("vector", vector_gaussian(np.zeros(2), covariance=np.eye(2)))
    longer = m.random("longer", vector_gaussian(np.zeros(3), covariance=np.eye(3)))
    refused(lambda: x + b, "`add`", "'x' (real)", "'b' (boolean)", "mean[z]")
    refused(lambda: x * True, "`multiply`", "'True' (boolean)")
    refused(lambda: -b, "`negate`", "'b' (boolean)", "`~x`")
    refused(lambda: x & b, "`and`", "'x' (real)", "comparing")
    refused(lambda: ~x, "`not`", "'x' (real)", "booleans")
    refused(lambda: vector + x, "`add`", "'vector' (vector(2))", "cv.dot")
    refused(lambda: vector * vector, "`multiply`", "cv.dot")
    refused(lambda: vector + longer, "`add`", "vector(3)", "one dimension")
    refused(lambda: vector @ longer, "`dot`", "vector(2)", "vector(3)")
    refused(lambda: x @ x, "`dot`", "'x' (real)", "two vectors")
    refused(lambda: exp(vector), "`exp`", "'vector'", "cv.dot")
    refused(lambda: log(x), "`log`", "'x' (real)", "positive")
    refused(lambda: b > x, "`greater`", "'b' (boolean)", "`==`")
    refused(lambda: x == 1.0, "`equal`", "'x' (real)", "probability zero")
    refused(lambda: x == p, "`equal`", "'p' (positive)")
    refused(lambda: total(m.random("c", bernoulli(0.5), plates=m.plate("n")), over=m.plates["n"]), "`sum`", "'c'")


def test_impossible_equality(m, b):
    z = m.random("z", categorical([0.2, 0.3, 0.5]))
    refused(lambda: z == 3, "'z' (category(3))", "3", "never equal")
    refused(lambda: b == 0.5, "'b'", "0.5")


def test_arithmetic_without_meaning(x):
    refused(lambda: x / 0, "'x'", "divided by zero")
    refused(lambda: x / np.array([1.0, 0.0]), "'x'", "divided by zero")
    refused(lambda: x**0.5, "'x'", "0.5", "may be negative", "cv.abs")
    refused(lambda: x**x, "'x'", "fixed number", "cv.exp")
    refused(lambda: x**0, "'x'", "not zero")
    refused(lambda: (-2) ** x, "'x'", "positive", "cv.exp")
    refused(lambda: x + "one", "'x'", "'one'", "number")
    refused(lambda: x + np.nan, "NaN", "'x'")
    refused(lambda: x + switch(x, *[gaussian(0.0, variance=1.0)] * 2), "switch", "m.random")
    refused(lambda: x + np.zeros(3), "(3,)", "'x'", "m.input")
    refused(lambda: exp(3.0), "cv.exp", "float", "NumPy")


def test_softmax_and_sum_over(m, x, n):
    score = m.random("score", gaussian(0.0, variance=1.0), plates=n)
    refused(lambda: softmax(x, over=n), "`softmax`", "'x'", "'n'", "()")
    refused(lambda: softmax(score, over="n"), "`softmax`", "'n'", "m.plate")
    refused(lambda: total(score, over=m.plate("k")), "`sum`", "'score'", "'k'", "('n',)")
    flag = m.random("flag", bernoulli(0.5), plates=n)
    refused(lambda: softmax(flag, over=n), "`softmax`", "'flag' (boolean)")


def test_two_plates_of_one_name(m, n):
    stranger = Model("other")
    y = stranger.random("y", gaussian(0.0, variance=1.0), plates=stranger.plate("n"))
    x = m.random("x", gaussian(0.0, variance=1.0), plates=n)
    refused(lambda: x + y, "'n'", "different plates", "once")


# Indexing


def test_index_of_another_plate(m):
    player, team, game = m.plate("player"), m.plate("team"), m.plate("game")
    winner = m.input("winner", domains.index(player), plates=game)
    skill = m.random("skill", gaussian(0.0, variance=1.0), plates=team)
    refused(lambda: skill[winner], "winner indexes plate 'player', but the plates of skill are ('team',)", "Declare")


def test_index_is_no_index(m, x, b):
    v = m.random("v", gaussian(0.0, variance=1.0), plates=m.plate("k", 2))
    for index in (0.5, None, True, "first", [0, 1], np.array([0, 1])):
        refused(lambda index=index: v[index], "'v'", repr(index), "whole number", "cv.index", "x[i, j]")
    refused(lambda: v[b, b], "'v'", "2 indices", "plate 'k'", "Leave some out")
    refused(lambda: v[x], "'v'", "'x', which is real", "discrete")
    refused(lambda: v[b & b], "'v'", "unnamed expression '(b & b)'", "m.let")


def test_gate_without_a_plate_of_its_size(m, b):
    v = m.random("v", gaussian(0.0, variance=1.0), plates=m.plate("k", 3))
    refused(lambda: v[b], "b chooses among 2", "v", "('k',)", "(3,)", "Declare")
    scalar = m.random("scalar", gaussian(0.0, variance=1.0))
    refused(lambda: scalar[b], "plates are ()")
    cls = m.plate("class")
    z = m.random("z", categorical(softmax(m.random("s", gaussian(0.0, variance=1.0), plates=cls), over=cls)))
    unsized = m.random("unsized", gaussian(0.0, variance=1.0), plates=m.plate("group"))
    refused(lambda: unsized[z], "z chooses among class classes", "unsized", "('group',)")


def test_gate_that_contradicts_a_size(m, b, n):
    v = m.random("v", gaussian(0.0, variance=1.0), plates=n)
    w = m.random("w", gaussian(0.0, variance=1.0), plates=n)
    z = m.random("z", categorical([0.2, 0.3, 0.5]))
    m.random("y", gaussian(v[b], variance=1.0))
    refused(lambda: m.let("u", w[z]), "Let 'u'", "w[z]", "'n' of size 3", "v[b]", "makes it 2")


def test_links_keep_probability_domains(m, x):
    refused(lambda: m.random("y", poisson(x)), "'y'", "`rate` of poisson", "cv.exp")
    refused(lambda: m.random("y", poisson(log(exp(x)))), "'y'", "cv.exp")
    exposure = m.input("exposure", domains.count)
    refused(lambda: m.random("y", poisson(exp(x) * exposure)), "'y'", "(exp(x) * exposure)", "cv.positive")
    m.random("y", bernoulli(1 - logistic(x)))


@pytest.mark.parametrize(
    ("use", "part"),
    [
        (lambda x: round(x, 2), "Round the answer"),
        (math.floor, "Round the answer"),
        (lambda x: x // 2, "`//`, `%` or divmod"),
        (lambda x: 2 % x, "`//`, `%` or divmod"),
        (lambda x: divmod(x, 2), "`//`, `%` or divmod"),
        (lambda x: 1 in x, "cv.any(x == value"),
        (int, "no number while the model is declared"),
        (complex, "no number while the model is declared"),
    ],
)
def test_python_on_expressions_is_answered(use, part):
    m = Model()
    x = m.random("x", gaussian(0.0, sd=1.0))
    with pytest.raises(ModelError, match=re.escape(part)):
        use(x)


def test_what_is_asked_of_an_expression_too_early():
    m = Model()
    x = m.random("x", gaussian(0.0, sd=1.0))
    with pytest.raises(AttributeError, match=re.escape("posterior['x'].mean")):
        _ = x.mean
    assert not hasattr(x, "__setstate__")

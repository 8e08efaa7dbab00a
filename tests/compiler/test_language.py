"""The language builds the graph it promises: nodes, plates, domains, foldings, in the programs of the manual and one
by one.
"""

import jax.numpy as jnp
import numpy as np
import pytest

from cavity.compiler.language.functions import dot, exp, log, logistic, probit, softmax
from cavity.compiler.language.functions import sum as total
from cavity.compiler.language.model import Model
from cavity.compiler.language.nodes import Apply, Constant, Gather, parents
from cavity.factors import domains
from cavity.factors.discrete.bernoulli import bernoulli
from cavity.factors.discrete.categorical import categorical
from cavity.factors.discrete.poisson import poisson
from cavity.factors.errors import ModelError
from cavity.factors.factor import Factor, Switch, Term, switch
from cavity.factors.positive.gamma import gamma
from cavity.factors.real.gaussian import gaussian
from cavity.factors.vectors.dirichlet import dirichlet
from cavity.factors.vectors.vector_gaussian import vector_gaussian
from cavity.factors.vectors.wishart import wishart


def names(plates):
    return tuple(plate.name for plate in plates)


@pytest.fixture
def model():
    return Model("test")


@pytest.fixture
def real(model):
    return model.random("real", gaussian(0.0, variance=1.0))


@pytest.fixture
def other(model):
    return model.random("other", gaussian(0.0, variance=1.0))


# The programs of the manual


def test_two_coins():
    m = Model("two coins")
    first = m.random("first", bernoulli(0.5))
    second = m.random("second", bernoulli(0.5))
    both = m.let("both", first & second)
    assert both.domain == domains.boolean
    assert both.expression.op == "and"
    assert parents(both.expression)[0] is first
    assert list(m.randoms) == ["first", "second"]
    assert m.lets["both"] is both


def test_mean_and_precision():
    m = Model()
    n = m.plate("n")
    mean = m.random("mean", gaussian(0.0, variance=100.0))
    precision = m.random("precision", gamma(shape=1.0, rate=1.0))
    x = m.random("x", gaussian(mean, precision=precision), plates=n)
    assert x.plates == (n,)
    assert x.term.args == {"mean": mean, "precision": precision}
    assert precision.domain == domains.positive


def test_player_skills():
    m = Model("skills")
    player, game = m.plate("player"), m.plate("game")
    winner = m.input("winner", domains.index(player), plates=game)
    loser = m.input("loser", domains.index(player), plates=game)
    skill = m.random("skill", gaussian(0.0, variance=0.5), plates=player)
    margin = m.random("margin", gaussian(skill[winner] - skill[loser], variance=1.0))
    m.constrain(margin > 0)
    gathered = margin.term.args["mean"].args[0]
    assert isinstance(gathered, Gather)
    assert (gathered.source, gathered.index, gathered.axis, gathered.plates) == (skill, winner, player, (game,))
    assert margin.plates == (game,)
    assert m.constraints["constraint 1"].op == "greater"


def test_clutter():
    m = Model("clutter")
    n = m.plate("n")
    mean = m.random("mean", gaussian(0.0, variance=100.0))
    clean = m.random("clean", bernoulli(0.5), plates=n)
    x = m.random("x", switch(clean, gaussian(mean, variance=1.0), gaussian(0.0, variance=10.0)))
    assert isinstance(x.term, Switch)
    assert x.plates == (n,)
    assert x.term.terms[1].args["precision"].value == 0.1
    assert parents(x)[:2] == (clean, mean)


def test_mixture():
    m = Model("mixture")
    k, n = m.plate("component", 6), m.plate("n")
    weights = m.random("weights", dirichlet(jnp.ones(6)))
    mean = m.random("mean", vector_gaussian(jnp.zeros(2), covariance=10.0 * jnp.eye(2)), plates=k)
    precision = m.random("precision", wishart(dof=4.0, scale=jnp.eye(2) / 4.0), plates=k)
    z = m.random("z", categorical(weights), plates=n)
    x = m.random("x", vector_gaussian(mean[z], precision=precision[z]))
    assert weights.domain == domains.simplex(6)
    assert z.domain == domains.category(6)
    assert (x.plates, x.domain) == ((n,), domains.vector(2))
    assert x.term.args["mean"].axis is k
    assert precision.domain == domains.posdef(2)


def test_softmax_regression():
    m = Model("softmax regression")
    row, cls = m.plate("row"), m.plate("class", 3)
    x = m.input("x", domains.vector(4), plates=row)
    weight = m.random("weight", vector_gaussian(jnp.zeros(4), covariance=jnp.eye(4)), plates=cls)
    bias = m.random("bias", gaussian(0.0, variance=1.0), plates=cls)
    score = m.let("score", dot(weight, x) + bias)
    y = m.random("y", categorical(softmax(score, over=cls)), plates=row)
    assert set(score.plates) == {row, cls}
    link = y.term.args["probability"]
    assert (link.op, link.domain, link.plates, link.option("over")) == ("softmax", domains.simplex(cls), (row,), cls)
    assert (y.domain, y.plates) == (domains.category(cls), (row,))


# Domains and plates of operations


@pytest.mark.parametrize(
    ("build", "op", "domain"),
    [
        (lambda a, p, u, c: a + a, "add", "real"),
        (lambda a, p, u, c: p + p, "add", "positive"),
        (lambda a, p, u, c: p + 1.0, "add", "positive"),
        (lambda a, p, u, c: p + 0.5 + a, "add", "real"),
        (lambda a, p, u, c: c + c, "add", "count"),
        (lambda a, p, u, c: p - p, "subtract", "real"),
        (lambda a, p, u, c: 1 - u, "subtract", "unit"),
        (lambda a, p, u, c: 2 - u, "subtract", "real"),
        (lambda a, p, u, c: u * u, "multiply", "unit"),
        (lambda a, p, u, c: 0.5 * u, "multiply", "unit"),
        (lambda a, p, u, c: 2 * u, "multiply", "positive"),
        (lambda a, p, u, c: u * p, "multiply", "positive"),
        (lambda a, p, u, c: -2 * p, "multiply", "real"),
        (lambda a, p, u, c: p / p, "divide", "positive"),
        (lambda a, p, u, c: 1 / p, "divide", "positive"),
        (lambda a, p, u, c: p**-1, "divide", "positive"),
        (lambda a, p, u, c: p**2, "power", "positive"),
        (lambda a, p, u, c: a**2, "power", "real"),
        (lambda a, p, u, c: -p, "negate", "real"),
        (lambda a, p, u, c: exp(a), "exp", "positive"),
        (lambda a, p, u, c: log(p), "log", "real"),
        (lambda a, p, u, c: logistic(a), "logistic", "unit"),
        (lambda a, p, u, c: probit(a), "probit", "unit"),
        (lambda a, p, u, c: a > p, "greater", "boolean"),
        (lambda a, p, u, c: a >= p, "greater", "boolean"),
        (lambda a, p, u, c: c >= c, "not", "boolean"),
        (lambda a, p, u, c: c == 3, "equal", "boolean"),
        (lambda a, p, u, c: c != 3, "not", "boolean"),
    ],
)
def test_scalar_operations(model, build, op, domain):
    a = model.random("a", gaussian(0.0, variance=1.0))
    p = model.random("p", gamma(1.0, 1.0))
    u = logistic(a)
    c = model.random("c", poisson(p))
    node = build(a, p, u, c)
    assert isinstance(node, Apply)
    assert (node.op, node.domain.kind) == (op, domain)


@pytest.mark.parametrize("build", [lambda a, b: a < b, lambda a, b: a <= b])
def test_less_is_greater_with_the_sides_exchanged(real, other, build):
    node = build(real, other)
    assert (node.op, node.args) == ("greater", (other, real))


def test_numbers_on_the_left_of_comparisons(real):
    node = 0 < real  # noqa: SIM300 - the number on the left is what is tested
    assert node.args[0] is real
    assert node.args[1].value == 0.0


def test_foldings(real, other):
    assert real - 0 is real
    assert real + 0.0 is real
    assert 1.0 * real is real
    assert real / 1 is real
    negated = -real
    assert -negated is real
    assert real**1 is real
    assert (0 - real).op == "negate"
    inverse = 1 / exp(real)
    assert inverse.op == "exp"
    assert inverse.args[0].op == "negate"
    assert inverse.args[0].args[0] is real
    assert (1 / inverse).args[0] is real
    assert (exp(real) ** -1).op == "exp"
    assert str(exp(real) ** 2) == "exp((2 * real))"
    assert str(exp(real) ** 0.5) == "exp((0.5 * real))"


def test_double_not_folds(model):
    b = model.random("b", bernoulli(0.5))
    assert ~~b is b


def test_logic_with_constants(model):
    b = model.random("b", bernoulli(0.5))
    assert [(b ^ True).op, (True | b).op, (False & b).op, (True ^ b).op] == ["xor", "or", "and", "xor"]
    assert (b == True).domain == domains.boolean  # noqa: E712
    assert (b == b).op == "equal"


def test_variance_from_a_log_scale(model, real):
    x = model.random("x", gaussian(0.0, variance=exp(real)))
    assert str(x.term.args["precision"]) == "exp(-real)"


def test_vectors(model):
    n = model.plate("n")
    w = model.random("w", vector_gaussian(np.zeros(3), covariance=np.eye(3)))
    x = model.input("x", domains.vector(3), plates=n)
    assert [(w @ x).op, (x @ w).op, dot(w, np.ones(3)).op, (np.ones(3) @ w).op] == ["dot"] * 4
    assert (w @ x).domain == domains.real
    assert names((w @ x).plates) == ("n",)
    assert (w + x).domain == (w - np.ones(3)).domain == (2.0 * w).domain == (w / 2).domain == (-w).domain == w.domain
    assert (w * (w @ x)).domain == w.domain
    assert total(x, over=n).plates == ()


def test_arrays_in_expressions_align_with_the_plates_of_the_other_operand(model):
    a, b = model.plate("a", 2), model.plate("b", 3)
    x = model.random("x", gaussian(0.0, variance=1.0), plates=(a, b))
    for node in (x + np.zeros((2, 3)), np.zeros((2, 3)) + x, jnp.zeros((2, 3)) + x):
        constant = next(arg for arg in node.args if isinstance(arg, Constant))
        assert constant.plates == (a, b)
        assert constant.value.dtype == np.float64
    assert (np.float64(2.0) * x).plates == (a, b)
    assert (x - np.array(3)).args[1].plates == ()


def test_plates_are_the_union_in_order_of_appearance(model):
    a, b, c = model.plate("a"), model.plate("b"), model.plate("c")
    x = model.random("x", gaussian(0.0, variance=1.0), plates=(a, b))
    y = model.random("y", gaussian(0.0, variance=1.0), plates=(c, b))
    assert names((x + y).plates) == ("a", "b", "c")
    assert names(model.random("z", gaussian(x + y, variance=1.0), plates=(c,)).plates) == ("c", "a", "b")
    assert total(x + y, over=b).plates == (a, c)


def test_boolean_data_is_an_indicator(model, real):
    treated = model.input("treated", domains.boolean, plates=model.plate("n"))
    assert (real * treated).domain == domains.real
    assert (treated & treated).domain == domains.boolean


# Gathers


def test_gather_replaces_the_axis_in_place(model):
    a, b, n = model.plate("a"), model.plate("b"), model.plate("n")
    x = model.random("x", gaussian(0.0, variance=1.0), plates=(a, b))
    index = model.input("index", domains.index(a), plates=n)
    assert names(x[index].plates) == ("n", "b")
    own = model.input("own", domains.index(a), plates=b)
    assert names(x[own].plates) == ("b",)
    parent = model.input("parent", domains.index(a), plates=a)
    assert names(x[parent].plates) == ("a", "b")


def test_index_of_an_index(model):
    team, player, game = model.plate("team"), model.plate("player"), model.plate("game")
    member = model.input("member", domains.index(team), plates=player)
    winner = model.input("winner", domains.index(player), plates=game)
    strength = model.random("strength", gaussian(0.0, variance=1.0), plates=team)
    node = strength[member[winner]]
    assert names(node.plates) == ("game",)
    assert node.axis is team


@pytest.mark.parametrize(("sizes", "axis"), [((3, 6), "b"), ((None, 6), "b"), ((None, None), "a"), ((3, None), "b")])
def test_gate_takes_the_first_plate_of_the_right_size(model, sizes, axis):
    a, b = model.plate("a", sizes[0]), model.plate("b", sizes[1])
    table = model.input("table", domains.real, plates=(a, b))
    z = model.random("z", categorical(np.full(6, 1 / 6)))
    assert table[z].axis.name == axis


def test_gate_by_a_boolean_and_conditional_tables(model):
    rain, sprinkler = model.plate("rain", 2), model.plate("sprinkler", 2)
    table = model.input("table", domains.unit, plates=(rain, sprinkler))
    rains = model.random("rains", bernoulli(0.2))
    sprinkles = model.random("sprinkles", bernoulli(0.1))
    wet = model.random("wet", bernoulli(table[rains][sprinkles]))
    assert wet.plates == ()
    assert wet.term.args["probability"].source.axis is rain


def test_gate_over_the_plate_of_a_softmax(model):
    cls = model.plate("class")
    score = model.random("score", gaussian(0.0, variance=1.0), plates=cls)
    z = model.random("z", categorical(softmax(score, over=cls)))
    assert score[z].axis is cls


# Arguments


def test_constant_arguments_are_laid_out_on_the_declared_plates(model):
    a, b = model.plate("a", 2), model.plate("b", 3)
    x = model.random("x", gaussian(np.zeros((2, 3)), variance=1.0), plates=(a, b))
    assert x.term.args["mean"].plates == (a, b)
    assert x.term.args["precision"].plates == ()
    v = model.random("v", vector_gaussian(np.zeros((2, 4)), covariance=np.eye(4)), plates=a)
    assert v.term.args["mean"].plates == (a,)
    assert v.term.args["mean"].domain == domains.vector(4)
    y = model.random("y", gaussian(x, variance=np.ones((2, 3))))
    assert y.term.args["precision"].plates == (a, b)


def test_constants_are_copies(model):
    mean = np.zeros(3)
    x = model.random("x", gaussian(mean, variance=1.0), plates=model.plate("n", 3))
    mean[0] = 7.0
    assert x.term.args["mean"].value[0] == 0.0


def test_constants_fix_plate_sizes(model):
    n = model.plate("n")
    model.random("x", gaussian(np.zeros(3), variance=1.0), plates=n)
    assert model.sizes["n"][0] == 3


def test_data_of_narrower_domains_are_real(model):
    n = model.plate("n")
    dose = model.input("dose", domains.positive, plates=n)
    events = model.input("events", domains.count, plates=n)
    x = model.random("x", gaussian(dose, variance=dose))
    assert x.term.args["mean"] is dose
    model.random("y", gaussian(events, variance=1.0))


def test_unknown_edge_kinds_are_lenient(model):
    factor = Factor("own", {"shape": "curve"}, lambda d: domains.real, None, None, None)
    x = model.random("x", Term(factor, {"shape": np.zeros((2, 3)), "extra": 3}))
    assert x.term.args["shape"].value.shape == (2, 3)


def test_bounds_may_be_infinite(model):
    arguments = {"low": "real", "high": "real"}
    factor = Factor("truncated", arguments, lambda d: domains.real, None, None, None, bounds=frozenset(arguments))
    x = model.random("x", Term(factor, {"low": 0.0, "high": np.inf}))
    assert x.term.args["high"].value == np.inf


def test_options_of_a_term_survive(model):
    factor = Factor("own", {}, lambda d: domains.real, None, None, None)
    assert model.random("x", Term(factor, {}, {"order": 3})).term.options == {"order": 3}


def test_differences_that_are_positive_by_their_form(model):
    gap = model.random("gap", gamma(shape=1.0, rate=1.0))
    named = model.let("left", exp(-gap))
    assert (exp(gap) - 1).domain.is_positive
    assert (exp(gap) - 0.5).domain.is_positive
    assert (1 - exp(-gap)).domain.is_unit
    assert (1 - named).domain.is_unit
    model.random("x", gaussian(0.0, variance=named * (exp(gap) - 1)))


def test_differences_that_may_be_negative_are_real(model):
    gap, x = model.random("gap", gamma(shape=1.0, rate=1.0)), model.random("x", gaussian(0.0, variance=1.0))
    for difference in (exp(x) - 1, 1 - exp(-x), exp(gap) - 1.5, 0.5 - exp(-gap), 1 - exp(gap), gap - 1):
        assert difference.domain.is_real
    with pytest.raises(ModelError, match="must be positive"):
        model.random("y", gaussian(0.0, variance=exp(x) - 1))

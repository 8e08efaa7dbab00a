"""Statements in which nothing random is left: by algebra when declared, by the data when they are given."""

import numpy as np
import pytest

import cavity as cv
from cavity.engine.data.rules_of_arguments import bind_checked


def two(term):
    m = cv.Model()
    return m, m.random("a", term), m.random("b", term), m.input("x", cv.real)


REAL, POSITIVE, COUNT = cv.gaussian(0.0, variance=1.0), cv.gamma(2.0, 1.0), cv.poisson(3.0)
CLASS = cv.categorical([0.2, 0.5, 0.3])
CONSTANT = [
    (REAL, lambda a, b, x: a > a),
    (REAL, lambda a, b, x: a >= a),
    (REAL, lambda a, b, x: a + 1.0 > a),
    (REAL, lambda a, b, x: 2.0 * a - x * b > a + a - b * x),
    (REAL, lambda a, b, x: (a + b) * (a - b) > a**2 - b**2),
    (REAL, lambda a, b, x: (a > b) & (b - a > b - a)),
    (REAL, lambda a, b, x: ~(cv.exp(a) > cv.exp(a))),
    (POSITIVE, lambda a, b, x: a / a > 0.5),
    (POSITIVE, lambda a, b, x: cv.log(a * b) > cv.log(a) + cv.log(b)),
    (COUNT, lambda a, b, x: a > a),
]
VARIES = [
    (REAL, lambda a, b, x: a > b),
    (REAL, lambda a, b, x: a > -a),
    (REAL, lambda a, b, x: 3.0 * a > a + a),
    (REAL, lambda a, b, x: a * x > a),
    (POSITIVE, lambda a, b, x: a / b > 0.5),
    (COUNT, lambda a, b, x: a > b),
    (CLASS, lambda a, b, x: a + b > 2),
    (CLASS, lambda a, b, x: a > a),  # false in every state of its table, by which it is told: a contradiction
]


@pytest.mark.parametrize(("term", "made"), CONSTANT)
def test_comparisons_whose_variables_cancel_are_refused_where_they_are_named(term, made):
    m, a, b, x = two(term)
    with pytest.raises(cv.ModelError, match=r"'never': the variables in .* cancel"):
        m.constrain(made(a, b, x), name="never")
    with pytest.raises(cv.ModelError, match=r"Let 'never': the variables in .* cancel"):
        m.let("never", made(a, b, x))
    assert not m.constraints
    assert not m.lets


@pytest.mark.parametrize(("term", "made"), VARIES)
def test_other_comparisons_are_not(term, made):
    m, a, b, x = two(term)
    m.constrain(made(a, b, x))
    m.let("c", made(a, b, x))


def test_numbers_whose_variables_cancel_are_known_and_cannot_be_observed():
    m, a, b, _ = two(REAL)
    m.let("zero", a - a)
    m.let("three", a * b - b * a + 3.0)
    posterior = cv.infer(m, {"x": 1.0})
    for name, number in (("zero", 0.0), ("three", 3.0)):
        assert float(posterior[name].mean) == number
        assert float(posterior[name].sd) < 1e-9
    with pytest.raises(cv.DataError, match="nothing random is left to observe"):
        cv.infer(m, {"zero": 1.0, "x": 1.0})


def players(statement, observed=None):
    """Games between three players; the third is of one against himself."""
    m = cv.Model()
    player, game = m.plate("player", 3), m.plate("game")
    first, second = (m.input(name, cv.index(player), plates=game) for name in ("first", "second"))
    skill = m.random("skill", cv.gaussian(0.0, variance=1.0), plates=player)
    statement(m, skill[first], skill[second])
    data = {"first": [0, 1, 2], "second": [1, 2, 2]}
    return lambda: bind_checked(m, data | ({} if observed is None else {"d": observed}))


@pytest.mark.parametrize(
    ("statement", "observed"),
    [
        (lambda m, s, t: m.constrain(s > t), None),
        (lambda m, s, t: m.constrain((s + 5.0 > t) & (s > t)), None),
        (lambda m, s, t: m.let("d", s > t), None),
        (lambda m, s, t: m.let("d", s > t), [True, True, True]),
        (lambda m, s, t: m.let("d", s + 1.0 > t), [True, True, False]),
        (lambda m, s, t: m.let("d", s - t), [0.2, 0.3, 0.0]),
    ],
)
def test_an_element_beside_itself_is_refused_with_the_row(statement, observed):
    with pytest.raises(cv.DataError, match=r" at \[2\]: the data make all variables cancel"):
        players(statement, observed)()


@pytest.mark.parametrize(
    ("statement", "observed"),
    [
        (lambda m, s, t: m.constrain(s + 1.0 > t), None),  # holds, whoever plays
        (lambda m, s, t: m.let("d", s > t), [True, True, False]),
        (lambda m, s, t: m.let("d", s + t), [0.2, 0.3, 0.0]),
        (lambda m, s, t: m.random("d", cv.gaussian(s - t, variance=1.0)), [0.2, 0.3, 0.0]),
    ],
)
def test_what_holds_or_has_noise_is_taken(statement, observed):
    players(statement, observed)()


def test_a_coefficient_of_zero_is_refused_with_the_row():
    m = cv.Model()
    n = m.plate("n")
    x = m.input("x", cv.vector(2), plates=n)
    w = m.random("w", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)))
    m.let("above", cv.dot(x, w) > 0)
    m.let("level", cv.dot(x, w))
    rows = np.array([[1.0, 2.0], [0.0, 0.0]])
    bind_checked(m, {"x": rows, "above": [True, False]})  # 0 > 0 is false
    for observed in ({"above": [True, True]}, {"level": [1.0, 0.0]}, {}):
        with pytest.raises(cv.DataError, match=r"at \[1\]: the data make all variables cancel"):
            bind_checked(m, {"x": rows, **observed})

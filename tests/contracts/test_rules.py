"""The rules of factors: legal values pass, those that break one are refused as constants and as data, with the row."""

import dataclasses
import re

import numpy as np
import pytest
from factor_arguments import domain_of, points_of

import cavity as cv
from cavity.compiler.language.argument_rules import check_rules
from cavity.compiler.language.nodes import Plate
from cavity.compiler.language.values import ValueProblem
from cavity.engine.data.rules_of_arguments import bind_checked
from cavity.factors import REGISTRY

RULED = sorted(name for name, factor in REGISTRY.items() if factor.rules)


@pytest.mark.parametrize("name", RULED)
def test_legal_values_keep_the_rules(name):
    rng = np.random.default_rng(0)
    points = [points_of(name, rng) for _ in range(20)]
    stacked = {edge: np.stack([np.asarray(point[edge], float) for point in points]) for edge in points[0]}
    row = Plate("row")
    check_rules(REGISTRY[name], {edge: (array, (row,)) for edge, array in stacked.items()}, domain_of(REGISTRY[name]))


# Each rule of each factor: its number, the domains of the inputs, their legal values and those that break the rule.
VECTOR, REAL, POSITIVE, COUNT, UNIT = cv.vector(2), cv.real, cv.positive, cv.count, cv.unit
TERMS = {
    "between": lambda m, **v: cv.between(m.random("value", cv.gaussian(0.0, variance=1.0)), v["low"], v["high"]),
    "binomial": lambda m, **v: cv.binomial(v["n"], 0.5),
    "beta_of_mean": lambda m, **v: cv.beta(mean=v["mean"], total=3.0),
    "dirichlet_of_mean": lambda m, **v: cv.dirichlet(mean=v["mean"], total=3.0),
    "multinomial": lambda m, **v: cv.multinomial(v["n"], [0.5, 0.5]),
    "negative_binomial_trials": lambda m, **v: cv.negative_binomial(successes=2.0, probability=v["probability"]),
    "ordered_logistic": lambda m, **v: cv.ordered_logistic(0.0, v["cutpoints"]),
    "ordered_probit": lambda m, **v: cv.ordered_probit(0.0, v["cutpoints"]),
    "truncated_gamma": lambda m, **v: cv.truncated_gamma(2.0, 1.0, v["low"], v["high"]),
    "truncated_gaussian": lambda m, **v: cv.truncated_gaussian(0.0, 1.0, v["low"], v["high"]),
    "uniform": lambda m, **v: cv.uniform(v["low"], v["high"]),
    "wishart": lambda m, **v: cv.wishart(v["dof"], np.eye(3)),
}
BOUNDS = ({"low": REAL, "high": REAL}, {"low": 1.0, "high": 2.0}, {"low": 2.0, "high": 1.0})
OUTSIDE = ({"low": REAL, "high": REAL}, {"out": 1.5, "low": 1.0, "high": 2.0}, {"out": 0.5, "low": 1.0, "high": 2.0})
CUTS = ({"cutpoints": VECTOR}, {"cutpoints": [-1.0, 1.0]}, {"cutpoints": [1.0, -1.0]})
BROKEN = {
    ("between", 0): BOUNDS,
    ("binomial", 0): ({"n": COUNT}, {"out": 3, "n": 5}, {"out": 7, "n": 5}),
    ("beta_of_mean", 0): ({"mean": UNIT}, {"mean": 0.5}, {"mean": 1.0}),
    ("dirichlet_of_mean", 0): ({"mean": cv.simplex(2)}, {"mean": [0.5, 0.5]}, {"mean": [1.0, 0.0]}),
    ("multinomial", 0): ({"n": COUNT}, {"out": [2, 3], "n": 5}, {"out": [2, 4], "n": 5}),
    ("negative_binomial_trials", 0): ({"probability": UNIT}, {"probability": 0.5}, {"probability": 0.0}),
    ("ordered_logistic", 0): CUTS,
    ("ordered_probit", 0): CUTS,
    ("truncated_gamma", 0): BOUNDS,
    ("truncated_gamma", 1): OUTSIDE,
    ("truncated_gamma", 2): ({"low": REAL, "high": REAL}, {"low": -1.0, "high": 1.0}, {"low": -2.0, "high": -1.0}),
    ("truncated_gaussian", 0): BOUNDS,
    ("truncated_gaussian", 1): OUTSIDE,
    ("uniform", 0): BOUNDS,
    ("uniform", 1): OUTSIDE,
    ("wishart", 0): ({"dof": POSITIVE}, {"dof": 3.0}, {"dof": 1.5}),
}
CASES = sorted(BROKEN)


@pytest.mark.parametrize("name", RULED)
def test_rules_refuse_what_breaks_them(name):
    """Each rule by itself: arguments of its domains, ten times as wide, of which it refuses some and says why."""
    factor, rng, row = REGISTRY[name], np.random.default_rng(1), Plate("row")
    domain = domain_of(factor)
    for rule in factor.rules:
        for _ in range(1000):
            point = points_of(name, rng)
            wide = {
                edge: np.asarray(point[edge] + 10.0 * rng.normal(size=np.shape(point[edge]))) for edge in rule.edges
            }
            if not np.all(rule.holds(domain, **wide)):
                break
        else:
            raise AssertionError(f"nothing breaks the rule of {name} that {rule.says}")
        alone = dataclasses.replace(factor, rules=(rule,))
        with pytest.raises(ValueProblem, match=re.escape(rule.says)):
            check_rules(alone, {edge: (value[None], (row,)) for edge, value in wide.items()}, domain)


def bound(name, domains, rows):
    """The model with inputs over a plate, and the given rows of values bound to it."""
    m = cv.Model()
    row = m.plate("row")
    inputs = {edge: m.input(edge, domain, plates=row) for edge, domain in domains.items()}
    m.random("y", TERMS[name](m, **inputs), plates=row)
    data = {"y" if edge == "out" else edge: np.array([row[edge] for row in rows], float) for edge in rows[0]}
    return bind_checked(m, data)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_data_that_break_a_rule_are_refused_with_the_row(case):
    domains, right, wrong = BROKEN[case]
    bound(case[0], domains, [right, right])
    with pytest.raises(cv.DataError, match=r"'y' \(.*; found .* at \[1\]\. "):
        bound(case[0], domains, [right, wrong, right])
    with pytest.raises(cv.DataError, match=r" at \[0\] and 1 more\. "):
        bound(case[0], domains, [wrong, right, wrong])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_constants_that_break_a_rule_are_refused_at_once(case):
    name, number = case
    _, right, wrong = BROKEN[case]
    m = cv.Model()
    if "out" in REGISTRY[name].rules[number].edges:
        m.random("y", TERMS[name](m, **{edge: value for edge, value in wrong.items() if edge != "out"}))
        bind_checked(m, {"y": right["out"]})
        with pytest.raises(cv.DataError, match=r"'y'.*found the observed"):
            bind_checked(m, {"y": wrong["out"]})
    else:
        with pytest.raises(cv.ModelError, match=r"variable 'y', .*; found "):
            m.random("y", TERMS[name](m, **wrong))
        m, two = cv.Model(), {edge: np.array([right[edge], wrong[edge]]) for edge in wrong}
        row, term = m.plate("row", 2), TERMS[name](m, **two)
        with pytest.raises(cv.ModelError, match=r"; found .* at \[1\]"):
            m.random("y", term, plates=row)

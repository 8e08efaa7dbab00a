"""The rules of factors: legal values pass, those that break one are refused as constants and as data, with the row."""

import dataclasses
import math
import re

import numpy as np
import pytest
from factor_arguments import domain_of, kind_of, points_of

import cavity as cv
from cavity.compiler.language.argument_rules import check_rules
from cavity.compiler.language.nodes import Plate
from cavity.compiler.language.values import ValueProblem
from cavity.engine.data.rules_of_arguments import bind_checked
from cavity.factors import REGISTRY

RULED = sorted(name for name, factor in REGISTRY.items() if factor.rules)


# Each rule of each factor: its number, the domains of the inputs, their legal values and those that break the rule.
VECTOR, REAL, POSITIVE, COUNT, UNIT = cv.vector(2), cv.real, cv.positive, cv.count, cv.unit
TERMS = {
    "between": lambda m, **v: cv.between(m.random("value", cv.gaussian(0.0, variance=1.0)), v["low"], v["high"]),
    "binomial": lambda m, **v: cv.binomial(v["n"], 0.5),
    "beta_of_mean": lambda m, **v: cv.beta(mean=v["mean"], total=3.0),
    "dirichlet_multinomial": lambda m, **v: cv.dirichlet_multinomial(v["n"], [1.0, 2.0]),
    "dirichlet_multinomial_of_mean": lambda m, **v: cv.dirichlet_multinomial(
        v.get("n", 5), mean=v.get("mean", [0.5, 0.5]), total=3.0
    ),
    "dirichlet_of_mean": lambda m, **v: cv.dirichlet(mean=v["mean"], total=3.0),
    "lkj": lambda m, **v: cv.lkj(v.get("concentration", 1.0)),
    "multinomial": lambda m, **v: cv.multinomial(v["n"], [0.5, 0.5]),
    "negative_binomial_trials": lambda m, **v: cv.negative_binomial(successes=2.0, probability=v["probability"]),
    "ordered_logistic": lambda m, **v: cv.ordered_logistic(0.0, v["cutpoints"]),
    "ordered_probit": lambda m, **v: cv.ordered_probit(0.0, v["cutpoints"]),
    "pareto": lambda m, **v: cv.pareto(2.0, v["scale"]),
    "truncated_gamma": lambda m, **v: cv.truncated_gamma(2.0, 1.0, v["low"], v["high"]),
    "truncated_gaussian": lambda m, **v: cv.truncated_gaussian(0.0, 1.0, v["low"], v["high"]),
    "uniform": lambda m, **v: cv.uniform(v["low"], v["high"]),
    "von_mises": lambda m, **v: cv.von_mises(0.0, v.get("concentration", 1.0)),
    "wishart": lambda m, **v: cv.wishart(v["dof"], np.eye(3)),
}
BOUNDS = ({"low": REAL, "high": REAL}, {"low": 1.0, "high": 2.0}, {"low": 2.0, "high": 1.0})
OUTSIDE = ({"low": REAL, "high": REAL}, {"out": 1.5, "low": 1.0, "high": 2.0}, {"out": 0.5, "low": 1.0, "high": 2.0})
COUNTED = ({"n": COUNT}, {"out": [2, 3], "n": 5}, {"out": [2, 4], "n": 5})
SHARES = ({"mean": cv.simplex(2)}, {"mean": [0.5, 0.5]}, {"mean": [1.0, 0.0]})
CUTS = ({"cutpoints": VECTOR}, {"cutpoints": [-1.0, 1.0]}, {"cutpoints": [1.0, -1.0]})
BROKEN = {
    ("between", 0): BOUNDS,
    ("binomial", 0): ({"n": COUNT}, {"out": 3, "n": 5}, {"out": 7, "n": 5}),
    ("beta_of_mean", 0): ({"mean": UNIT}, {"mean": 0.5}, {"mean": 1.0}),
    ("dirichlet_multinomial", 0): COUNTED,
    ("dirichlet_multinomial_of_mean", 0): COUNTED,
    ("dirichlet_multinomial_of_mean", 1): SHARES,
    ("dirichlet_of_mean", 0): SHARES,
    ("lkj", 0): (
        {"concentration": POSITIVE}, {"out": 0.9, "concentration": 1.0}, {"out": 1.0, "concentration": 1.0},
    ),
    ("multinomial", 0): COUNTED,
    ("negative_binomial_trials", 0): ({"probability": UNIT}, {"probability": 0.5}, {"probability": 0.0}),
    ("ordered_logistic", 0): CUTS,
    ("ordered_probit", 0): CUTS,
    ("pareto", 0): ({"scale": POSITIVE}, {"out": 1.5, "scale": 1.0}, {"out": 0.5, "scale": 1.0}),
    ("truncated_gamma", 0): BOUNDS,
    ("truncated_gamma", 1): OUTSIDE,
    ("truncated_gamma", 2): ({"low": REAL, "high": REAL}, {"low": -1.0, "high": 1.0}, {"low": -2.0, "high": -1.0}),
    ("truncated_gaussian", 0): BOUNDS,
    ("truncated_gaussian", 1): OUTSIDE,
    ("uniform", 0): BOUNDS,
    ("uniform", 1): OUTSIDE,
    # Of an angle the rule is about the outcome alone: the input beside it is any.
    ("von_mises", 0): (
        {"concentration": POSITIVE}, {"out": 3.1, "concentration": 1.0}, {"out": 3.2, "concentration": 1.0},
    ),
    ("wishart", 0): ({"dof": POSITIVE}, {"dof": 3.0}, {"dof": 1.5}),
}  # fmt: skip
CASES = sorted(BROKEN)


def ordered(low, high):
    return low < high


def within(out, low, high):
    return low <= out <= high


def whole_counts(out, n):
    return all(x >= 0 and float(x).is_integer() for x in out) and sum(out) == n


def shares(mean):
    return all(0.0 < x < 1.0 for x in mean)


# What each rule allows, of one instance, written apart from it.
ALLOWED = {
    ("between", 0): ordered,
    ("binomial", 0): lambda out, n: out <= n,
    ("beta_of_mean", 0): lambda mean: 0.0 < mean < 1.0,
    ("dirichlet_multinomial", 0): whole_counts,
    ("dirichlet_multinomial_of_mean", 0): whole_counts,
    ("dirichlet_multinomial_of_mean", 1): shares,
    ("dirichlet_of_mean", 0): shares,
    ("lkj", 0): lambda out: -1.0 < out < 1.0,
    ("multinomial", 0): whole_counts,
    ("negative_binomial_trials", 0): lambda probability: 0.0 < probability < 1.0,
    ("ordered_logistic", 0): lambda cutpoints: list(cutpoints) == sorted(set(cutpoints)),
    ("ordered_probit", 0): lambda cutpoints: list(cutpoints) == sorted(set(cutpoints)),
    ("pareto", 0): lambda out, scale: out >= scale,
    ("truncated_gamma", 0): ordered,
    ("truncated_gamma", 1): within,
    ("truncated_gamma", 2): lambda high: high > 0.0,
    ("truncated_gaussian", 0): ordered,
    ("truncated_gaussian", 1): within,
    ("uniform", 0): lambda low, high: low < high and math.isfinite(low) and math.isfinite(high),
    ("uniform", 1): within,
    ("von_mises", 0): lambda out: -math.pi < out <= math.pi,
    ("wishart", 0): lambda dof: dof > 2.0,  # matrices of three rows
}


def test_every_rule_has_its_cases():
    rules = {(name, number) for name in RULED for number in range(len(REGISTRY[name].rules))}
    assert set(BROKEN) == set(ALLOWED) == rules, "give the new rule what it allows, and values that break it"


CORNERS = (-math.pi, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, math.pi)
ENDLESS = (*CORNERS, math.inf, -math.inf)  # for real numbers: bounds may be none


def instances(name, rule, rng):
    """Legal points; the same with noise on the edges of the rule; and numbers at which rules change their mind."""
    for _ in range(100):
        point = {edge: np.asarray(value, float) for edge, value in points_of(name, rng).items()}
        yield {edge: point[edge] for edge in rule.edges}
        for width in (0.3, 10.0):
            yield {edge: point[edge] + width * rng.normal(size=point[edge].shape) for edge in rule.edges}
        corners = {edge: ENDLESS if kind_of(name, edge) == "real" else CORNERS for edge in rule.edges}
        yield {edge: rng.choice(corners[edge], size=point[edge].shape) for edge in rule.edges}
        yield {edge: np.round(point[edge] + rng.normal(size=point[edge].shape)) for edge in rule.edges}


@pytest.mark.parametrize("case", sorted(ALLOWED), ids=str)
def test_rules_allow_what_they_should_and_refuse_the_rest(case):
    """One instance at a time against the plain Python of the table, then all at once; refusals say what is asked."""
    name, number = case
    factor, row = REGISTRY[name], Plate("row")
    rule, domain, rng = factor.rules[number], domain_of(factor), np.random.default_rng(1)
    found = list(instances(name, rule, rng))
    wanted = [bool(ALLOWED[case](**{e: v.tolist() for e, v in instance.items()})) for instance in found]
    stacked = {edge: np.stack([instance[edge] for instance in found]) for edge in rule.edges}
    assert np.asarray(rule.holds(domain, **stacked)).tolist() == wanted
    assert 20 <= sum(wanted) <= len(wanted) - 20, "the instances try both sides"
    alone = dataclasses.replace(factor, rules=(rule,))
    for i in (wanted.index(True), wanted.index(False)):
        known = {edge: (values[i : i + 1], (row,)) for edge, values in stacked.items()}
        if wanted[i]:
            check_rules(alone, known, domain)
        else:
            with pytest.raises(ValueProblem, match=re.escape(rule.says)):
                check_rules(alone, known, domain)


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

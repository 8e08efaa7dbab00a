"""The judge itself: a right answer passes, and what is no number never does, whatever the oracle knows."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import verdicts
from small import Given, Named, Small, Variable, slim
from truths import Solver
from verdicts import Structure
from vocabulary import TERMS

from cavity.factors import REGISTRY

ONE = ("number", 1.0)
SMALL = Small(
    1,
    {},
    (Given("place", "real"),),
    (
        Variable("x", "real", ("gaussian", {"mean": ("ref", "place"), "variance": ONE})),
        Variable("b", "boolean", ("bernoulli", {"p": ("probit", ("ref", "x"))})),
        Variable("y", "real", ("gaussian", {"mean": ("ref", "x"), "variance": ONE}), observed=True),
        Named("square", "real", ("square", ("ref", "x"))),
        Variable("heavy", "positive", ("half_cauchy", {"scale": ("exp", ("ref", "x"))})),
    ),
)


@functools.cache
def posed():
    structure = Structure(1, SMALL)
    case = structure.case(0)
    return structure, case, Solver(structure.small, case.given, case.seen, case.missing).truth()


class Right:
    """A posterior that says what the oracle does."""

    code, iterations = "converged", 1

    def __init__(self, log_evidence):
        self.log_evidence = log_evidence

    def explain(self):
        return ""

    def __getitem__(self, name):
        return name


def verdict(monkeypatch, replaced=(), evidence=0.0, oracle=True):
    """Of the oracle's own answers, but for {(name, part): value} and what is added to the evidence."""
    structure, case, truth = posed()

    def answer(self, marginal, name):
        part = truth.parts[name]
        own = {key: slim(np.array(a, float), ()) for key, a in (("mean", part.mean), ("sd", part.sd))}
        return own | {key: np.asarray(value, float) for (whose, key), value in dict(replaced).items() if whose == name}

    monkeypatch.setattr(verdicts.cv, "infer", lambda model, data: Right(truth.evidence + evidence))
    monkeypatch.setattr(Structure, "answer", answer)
    if not oracle:
        monkeypatch.setattr(Solver, "truth", lambda self: None)
    return structure.judged(case)["kind"]


def test_a_right_answer_is_exact_and_what_is_endless_may_be_infinite(monkeypatch):
    _, _, truth = posed()
    assert np.isinf(truth.parts["heavy"].mean).all()
    assert verdict(monkeypatch, {("heavy", "sd"): np.inf}) == "exact"


def test_without_an_oracle_nothing_is_said_of_numbers(monkeypatch):
    finite = {("heavy", "mean"): 1.0, ("heavy", "sd"): 1.0}
    assert verdict(monkeypatch, finite, oracle=False) == "unsettled"


@pytest.mark.parametrize("oracle", [True, False], ids=["oracle", "no oracle"])
@pytest.mark.parametrize("part", ["mean", "sd", "quantile"])
@pytest.mark.parametrize("name", ["x", "b", "square", "heavy"])
def test_nan_never_passes(monkeypatch, name, part, oracle):
    assert verdict(monkeypatch, {(name, part): np.nan}, oracle=oracle) == "nan"


@pytest.mark.parametrize("oracle", [True, False], ids=["oracle", "no oracle"])
@pytest.mark.parametrize("part", ["mean", "sd"])
@pytest.mark.parametrize("name", ["x", "square"])
def test_what_is_finite_in_truth_is_not_infinite(monkeypatch, name, part, oracle):
    assert verdict(monkeypatch, {(name, part): np.inf}, oracle=oracle) == "nan"


@pytest.mark.parametrize("evidence", [np.nan, np.inf, -np.inf])
def test_the_evidence_is_a_number(monkeypatch, evidence):
    assert verdict(monkeypatch, evidence=evidence) == "nan"


@pytest.mark.parametrize("part", ["mean", "sd"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e3])
def test_gaps_of_what_is_no_number_are_wrong(part, value):
    structure, case, truth = posed()
    own = {
        key: slim(np.array(a, float), ()) for key, a in (("mean", truth.parts["x"].mean), ("sd", truth.parts["x"].sd))
    }
    assert not structure.gap(own, truth, "x", case).wrong
    assert structure.gap(own | {part: np.asarray(value)}, truth, "x", case).wrong
    assert structure.gap(own | {"quantile": np.full(3, np.nan)}, truth, "x", case).largest > verdicts.EXACT


def test_every_factor_is_in_the_vocabulary():
    drawn = {name for names in TERMS.values() for name in names}
    others = {name for name in REGISTRY if not any(name.startswith(term) for term in drawn)}
    # a vector_gaussian whose precision is a number, and those that are held to grids in tests/test_terms.py instead
    assert others == {"isotropic_gaussian", "flat", "flat_positive", "lkj", "pareto", "point"}

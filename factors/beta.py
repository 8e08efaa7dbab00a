"""The Beta factor Beta(out; a, b)."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from .domains import unit
from .factor import Factor, Term, register
from .families import Beta
from .moments import Positive, Unit
from .special import lgamma

_FIXED = "the normaliser of the Beta density has no closed-form expectation; give it as a number, an array or an input"


def _log_normaliser(a, b):
    return lgamma(a + b) - lgamma(a) - lgamma(b)


def _log_density(out, a, b):
    return (a - 1) * jnp.log(out) + (b - 1) * jnp.log1p(-out) + _log_normaliser(a, b)


def _expected_log(out: Unit, a: Positive, b: Positive):
    return (a.mean - 1) * out.log + (b.mean - 1) * out.log_complement + _log_normaliser(a.mean, b.mean)


def _predict(a: Positive, b: Positive) -> Beta:
    return Beta(a.mean - 1.0, b.mean - 1.0)


factor = register(
    Factor(
        name="beta",
        edges={"a": "positive", "b": "positive"},
        out=lambda domains: unit,
        log_density=_log_density,
        expected_log=_expected_log,
        predict=_predict,
        conjugate=frozenset({"out"}),
        unsupported={"a": _FIXED, "b": _FIXED},
        source="winn2005vmp",
    )
)


def beta(a: Any, b: Any) -> Term:
    """A Beta variable on (0, 1): density proportional to x^(a - 1) (1 - x)^(b - 1), with mean a / (a + b).

    `a`, `b` > 0: numbers or inputs (pseudo-counts of true and false). Returns a term for `Model.random`.
    """
    return Term(factor, {"a": a, "b": b})

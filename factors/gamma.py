"""The Gamma factor Gamma(out; shape, rate)."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from .domains import positive
from .factor import Factor, Term, register
from .families import Gamma
from .moments import Positive
from .special import lgamma


def _log_density(out, shape, rate):
    return shape * jnp.log(rate) - lgamma(shape) + (shape - 1) * jnp.log(out) - rate * out


def _expected_log(out: Positive, shape: Positive, rate: Positive):
    return shape.mean * rate.log - lgamma(shape.mean) + (shape.mean - 1) * out.log - rate.mean * out.mean


def _predict(shape: Positive, rate: Positive) -> Gamma:
    return Gamma(-rate.mean, shape.mean - 1.0)


factor = register(
    Factor(
        name="gamma",
        edges={"shape": "positive", "rate": "positive"},
        out=lambda domains: positive,
        log_density=_log_density,
        expected_log=_expected_log,
        predict=_predict,
        conjugate=frozenset({"out", "rate"}),
        unsupported={
            "shape": "E log Gamma(shape) has no closed form for a random shape; "
            "give the shape as a number, an array or an input"
        },
        source="winn2005vmp",
    )
)


def gamma(shape: Any, rate: Any) -> Term:
    """A Gamma variable: rate^shape x^(shape - 1) exp(-rate x) / Gamma(shape), with mean shape / rate.

    `shape` > 0: numbers or an input. `rate` > 0 (a rate, not a scale): numbers, an input, or a `gamma` variable.
    Returns a term for `Model.random`.
    """
    return Term(factor, {"shape": shape, "rate": rate})

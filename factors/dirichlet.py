"""The Dirichlet factor Dirichlet(out; concentration)."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from .domains import simplex
from .factor import Factor, Term, register
from .families import Dirichlet
from .moments import Simplex, Vector
from .special import lgamma


def _log_normaliser(concentration):
    return lgamma(concentration.sum(-1)) - lgamma(concentration).sum(-1)


def _log_density(out, concentration):
    return ((concentration - 1) * jnp.log(out)).sum(-1) + _log_normaliser(concentration)


def _expected_log(out: Simplex, concentration: Vector):
    return ((concentration.mean - 1) * out.log).sum(-1) + _log_normaliser(concentration.mean)


def _predict(concentration: Vector) -> Dirichlet:
    return Dirichlet(concentration.mean - 1.0)


factor = register(
    Factor(
        name="dirichlet",
        edges={"concentration": "concentration"},
        out=lambda domains: simplex(domains["concentration"].size),
        log_density=_log_density,
        expected_log=_expected_log,
        predict=_predict,
        conjugate=frozenset({"out"}),
        unsupported={
            "concentration": "the Dirichlet normaliser has no closed-form expectation; "
            "give the concentration as numbers or an input"
        },
        source="winn2005vmp",
    )
)


def dirichlet(concentration: Any) -> Term:
    """A Dirichlet variable: a probability vector with density proportional to prod_k x_k^(concentration_k - 1).

    `concentration` has shape (K,) and positive entries: numbers or an input. The mean is concentration /
    sum(concentration). Returns a term for `Model.random`.
    """
    return Term(factor, {"concentration": concentration})

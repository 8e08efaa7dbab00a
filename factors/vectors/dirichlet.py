"""The Dirichlet factor Dirichlet(out; concentration)."""

from __future__ import annotations

import jax.numpy as jnp

from ..arrays import Argument, Array
from ..domains import simplex
from ..errors import ModelError
from ..factor import Factor, Term, register, told_with_name
from ..families import Dirichlet
from ..moments import Moments, Simplex, Vector
from ..quadrature.derived import expectation_of, value_of
from ..quadrature.predictive import simplex_mean
from ..rules import inner
from ..special import lgamma


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
            "concentration": "a Gaussian belief about it would reach below zero; "
            "give it as mean= and total=, either of which may be random"
        },
        keeps={},
        source="winn2005vmp",
    )
)


def _linear(out: Simplex, mean, total):
    concentration = total * mean
    return ((concentration - 1) * out.log).sum(-1) + _log_normaliser(concentration)


def _with_random(random: frozenset[str]):
    """Linear in the moments of `out`, so that needs no points."""
    kinds = {edge: kind for edge, kind in _KINDS.items() if edge in random}
    if not kinds:
        return None
    expectation = expectation_of(lambda points, known: _linear(**{**known, **points}), kinds)

    def expected(out: Simplex, **arguments: Moments) -> Array:
        known = {edge: value_of(_KINDS[edge], m) for edge, m in arguments.items() if edge not in kinds}
        return expectation({edge: arguments[edge] for edge in kinds}, {"out": out, **known})

    return expected


_KINDS = {"mean": "simplex", "total": "positive"}
by_mean = register(
    Factor(
        name="dirichlet_of_mean",
        edges={"mean": "simplex", "total": "positive"},
        out=lambda domains: simplex(domains["mean"].size),
        log_density=lambda out, mean, total: _log_density(out, total * mean),
        expected_log=lambda out, mean, total: _linear(out, jnp.exp(mean.log), total.mean),
        predict=lambda mean, total: Dirichlet(total.mean * simplex_mean(mean) - 1.0),
        conjugate=frozenset({"out"}),
        with_random=_with_random,
        rules=(inner("mean", "simplex"),),
        keeps={},
        source="minka2000dirichlet",
    )
)


@told_with_name
def dirichlet(concentration: Argument = None, *, mean: Argument = None, total: Argument = None) -> Term:
    """A Dirichlet variable: a probability vector with density proportional to prod_k x_k^(concentration_k - 1).

    `concentration` has shape (K,) and positive entries: numbers or an input; the mean is concentration /
    sum(concentration). Or give `mean`, shape (K,), and `total` > 0 with concentration = total * mean, numbers or
    variables: `mean=np.full(K, 1 / K)` with a random `total` learns a symmetric concentration. Returns a term for
    `Model.random`, which raises ModelError for any other combination. Source: winn2005vmp; by mean and total
    minka2000dirichlet.
    """
    if concentration is not None and mean is None and total is None:
        return Term(factor, {"concentration": concentration})
    if concentration is None and mean is not None and total is not None:
        return Term(by_mean, {"mean": mean, "total": total})
    raise ModelError(
        "dirichlet() needs concentration=, or mean= and total=. Write for example cv.dirichlet(np.ones(3))."
    )

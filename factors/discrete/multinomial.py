"""The multinomial factor: how many of n independent trials fell into each class."""

from __future__ import annotations

from collections.abc import Mapping

import jax.numpy as jnp
from jax.scipy.special import xlogy

from ..arrays import Argument
from ..calls import call_checked
from ..closed import Closed, Formula
from ..domains import vector
from ..factor import Factor, Term, register
from ..families import Dirichlet, VectorGaussian
from ..families.matrices import outer
from ..moments import Count, Simplex, Vector
from ..quadrature.predictive import simplex_mean
from ..rules import COUNTS_OF_CLASSES
from ..special import lgamma

_RIDGE = 1e-6


def _log_ways(out, n):
    return lgamma(n + 1.0) - lgamma(out + 1.0).sum(-1)


def _log_density(out, n, probability):
    return _log_ways(out, n) + xlogy(out, probability).sum(-1)


def _expected_log(out: Vector, n: Count, probability: Simplex):
    # 0 * -inf = 0; the safe copy keeps the gradient of the unused branch finite.
    possible = out.mean > 0
    return _log_ways(out.mean, n.mean) + (out.mean * jnp.where(possible, probability.log, 0.0)).sum(-1)


def _predict(n: Count, probability: Simplex) -> VectorGaussian:
    p = simplex_mean(probability)
    covariance = n.mean * (jnp.diag(p) - outer(p, p))  # singular along the total: a ridge makes it a density
    return VectorGaussian.from_parameters(
        mean=n.mean * p, covariance=covariance + _RIDGE * (1.0 + n.mean) * jnp.eye(p.shape[-1])
    )


def _closed(arguments: Mapping[str, Formula]) -> Closed | None:
    """Dirichlet probabilities: the Polya distribution."""
    n, probability = arguments["n"], arguments["probability"].belief(Dirichlet)
    if probability is None or not n.known:
        return None
    return Closed("dirichlet_multinomial", {"n": n, "concentration": probability.given(lambda q: q.concentration)})


factor = register(
    Factor(
        name="multinomial",
        edges={"n": "count", "probability": "simplex"},
        out=lambda domains: vector(domains["probability"].size),
        log_density=_log_density,
        expected_log=_expected_log,
        predict=_predict,
        conjugate=frozenset({"probability"}),
        closed=_closed,
        unsupported={
            "out": "a vector of counts has no family of its own; observe it, or draw each trial with cv.categorical",
            "n": "the total of observed counts is known; give it as numbers or an input",
        },
        rules=(COUNTS_OF_CLASSES,),
        source="winn2005vmp",
    )
)


@call_checked
def multinomial(n: Argument, p: Argument) -> Term:
    """Counts of K classes in n trials: n! / prod_k x_k! prod_k p_k^x_k, a vector of whole numbers that sum to n.

    `n`: whole numbers or an input. `p` has shape (K,) and sums to one: numbers, an input, a `dirichlet` variable, or
    `softmax` of a real expression. Nothing observed may depend on unobserved ones. Returns a term for `Model.random`,
    which raises ModelError for numbers outside these domains; as data they are a DataError, and so are counts that do
    not sum to n. Source: winn2005vmp.
    """
    return Term(factor, {"n": n, "probability": p})

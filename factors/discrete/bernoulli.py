"""The Bernoulli factor: out is true with probability `probability`."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..arrays import Argument
from ..calls import call_checked
from ..domains import boolean
from ..factor import Factor, Term, register
from ..families import Bernoulli
from ..families.base import mean_of
from ..links.logistic import logistic_site
from ..links.probit import probit_site
from ..moments import Boolean, Unit
from ..roles import TruthTable
from ..special import log_chance, log_complement


def _weighted(weight, log):
    """weight * log with 0 * -inf = 0: an impossible case that has no weight costs nothing."""
    return jnp.where(weight == 0, 0.0, weight * log)


def _log_density(out, probability):
    return _weighted(out, log_chance(probability)) + _weighted(1.0 - out, log_complement(probability))


def _expected_log(out: Boolean, probability: Unit):
    return _weighted(out.probability, probability.log) + _weighted(1.0 - out.probability, probability.log_complement)


def _predict(probability: Unit) -> Bernoulli:
    return Bernoulli(probability.log - probability.log_complement)


def _log_chance(probability, out):
    return jnp.log(jnp.where(out, probability, 1.0 - probability))


def _belief(mean) -> Bernoulli:
    return Bernoulli(jnp.log(mean) - jnp.log1p(-mean))


factor = register(
    Factor(
        name="bernoulli",
        edges={"probability": "unit"},
        out=lambda domains: boolean,
        log_density=_log_density,
        expected_log=_expected_log,
        predict=_predict,
        conjugate=frozenset({"out", "probability"}),
        sites={"logistic": logistic_site, "probit": probit_site},
        closed_sites=frozenset({"probit"}),
        link_densities={
            "logistic": lambda out, s: jax.nn.log_sigmoid((2.0 * out - 1.0) * s),
            "probit": lambda out, s: jax.scipy.special.log_ndtr((2.0 * out - 1.0) * s),
        },
        log_predictive=lambda out, probability: _log_chance(mean_of(probability), out),
        role=TruthTable(_log_chance, _belief),
        source="winn2005vmp",
    )
)


@call_checked
def bernoulli(probability: Argument) -> Term:
    """A boolean variable that is true with the given probability.

    `probability` in [0, 1]: numbers, an input, a `beta` variable, `logistic` or `probit` of a real expression, or a
    table indexed by a random discrete variable. Returns a term for `Model.random`, which raises ModelError for numbers
    outside these domains; as data they are a DataError. Source: winn2005vmp (VMP), minka2001ep (EP).
    """
    return Term(factor, {"probability": probability})

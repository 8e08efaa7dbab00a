"""The categorical factor: out is class k with probability `probability[k]`."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..arrays import Argument
from ..calls import call_checked
from ..domains import category
from ..factor import Factor, Term, register
from ..families import Categorical
from ..families.base import mean_of
from ..links.multinomial_probit import log_choice
from ..moments import Category, Simplex
from ..roles import ClassTable
from ..special import log_chance


def _log_density(out, probability):
    return log_chance(probability[out])


def _expected_log(out: Category, probability: Simplex):
    # 0 * -inf = 0; the safe copy keeps the gradient of the unused branch finite.
    possible = out.probability > 0
    return jnp.where(possible, out.probability * jnp.where(possible, probability.log, 0.0), 0.0).sum(-1)


def _predict(probability: Simplex) -> Categorical:
    return Categorical(probability.log)


factor = register(
    Factor(
        name="categorical",
        edges={"probability": "simplex"},
        out=lambda domains: category(domains["probability"].size),
        log_density=_log_density,
        expected_log=_expected_log,
        predict=_predict,
        conjugate=frozenset({"out", "probability"}),
        link_densities={
            "softmax": lambda out, s: jax.nn.log_softmax(s)[out],
            "multinomial_probit": lambda out, s: log_choice(out, s, jnp.zeros_like(s)),
        },
        log_predictive=lambda out, probability: jnp.log(mean_of(probability)[out]),
        role=ClassTable(
            log_chance=lambda probability, out: jnp.log(probability[out]),
            belief=lambda mean: Categorical(jnp.log(mean)),
        ),
        source="winn2005vmp",
    )
)


@call_checked
def categorical(probability: Argument) -> Term:
    """A variable with values 0, ..., K - 1, value k having probability `probability[k]`.

    `probability` has shape (K,) and sums to one: numbers, an input, a `dirichlet` variable, `softmax` or `probit` of a
    real expression over a plate, or a table indexed by a random discrete variable. Returns a term for `Model.random`,
    which raises ModelError for numbers outside these domains; as data they are a DataError. Source: winn2005vmp.
    """
    return Term(factor, {"probability": probability})

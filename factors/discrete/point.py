"""The point factor: a count that is always the same, such as the zeros that never had a chance to be more."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..arrays import Argument
from ..calls import call_checked
from ..domains import count
from ..factor import Factor, Term, register
from ..families import Poisson
from ..moments import Count
from ..special import TINY

_HARD = "the density is zero at every other count, where its belief has mass; give the value as a number or an input"


def _log_density(out, value):
    return jnp.where(out == value, 0.0, -jnp.inf)


def _predict(value: Count) -> Poisson:
    return Poisson(jnp.log(jnp.maximum(value.mean, TINY)))


factor = register(
    Factor(
        name="point",
        edges={"value": "count"},
        out=lambda domains: count,
        log_density=_log_density,
        predict=_predict,
        conditional={
            "mean": lambda value: value,
            "variance": lambda value: jnp.zeros_like(value),
            "below": lambda x, value: jnp.where(x >= value, 1.0, 0.0),
            "draw": lambda key, value: value + 0.0 * jax.random.uniform(key),
        },
        unsupported={"out": _HARD, "value": _HARD},
        source="lambert1992zip",
    )
)


@call_checked
def point(value: Argument) -> Term:
    """A count that is `value` with probability one.

    A case of a `mixture`: zeros beyond those of a Poisson are `mixture(p, point(0), poisson(rate))`. `value`: a whole
    number or an input. Of real numbers, exactly zero or Gaussian, `spike_and_slab` is the prior. Returns a term for
    `Model.random`, which raises ModelError for any other value; as data it is a DataError. Source: lambert1992zip.
    """
    return Term(factor, {"value": value})

"""The interval factor: whether a real number lies between two bounds."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..arrays import Argument
from ..calls import call_checked
from ..domains import boolean
from ..factor import Factor, Site, Term, register
from ..families import Bernoulli
from ..links.probit import positive_site
from ..moments import Real
from ..quadrature.truncation import between as standard_between
from ..quadrature.truncation import interval_site
from ..rules import BOUNDS
from ..special import TINY

_SHARP = "the log of a sharp interval is minus infinity where any belief has mass; EP serves it"


def _log_density(out, value, low, high):
    inside = (value > low) & (value < high)
    return jnp.where(inside == (out > 0.5), 0.0, -jnp.inf)


def _predict(value: Real, low: Real, high: Real) -> Bernoulli:
    variance = value.variance + low.variance + high.variance
    sd = jnp.sqrt(jnp.maximum(variance, TINY))
    log_inside = standard_between((low.mean - value.mean) / sd, (high.mean - value.mean) / sd)[0]
    log_inside = jnp.minimum(log_inside, 0.0)
    return Bernoulli(log_inside - jnp.log(-jnp.expm1(log_inside)))


def _site(out, mean, variance, power=1.0, low=-jnp.inf, high=jnp.inf) -> Site:
    """Powers of an indicator are itself; outside is below or above."""
    inside = interval_site(low, high, mean, variance)
    below = positive_site(0.0, mean - low, variance)
    above = positive_site(1.0, mean - high, variance)
    log_below = jnp.where(jnp.isneginf(low), -jnp.inf, below.log_evidence)
    log_above = jnp.where(jnp.isposinf(high), -jnp.inf, above.log_evidence)
    total = jnp.logaddexp(log_below, log_above)
    p, q = jnp.exp(log_below - total), jnp.exp(log_above - total)
    down, up = (jnp.where(w > 0, site.score, 0.0) for w, site in ((p, below), (q, above)))
    kept = sum(jnp.where(w > 0, w * site.ratio, 0.0) for w, site in ((p, below), (q, above)))
    ratio = kept + p * q * variance * (up - down) ** 2
    outside = Site(total, p * down + q * up, (1.0 - ratio) / variance, ratio)
    return jax.tree.map(lambda a, b: jnp.where(out > 0.5, a, b), inside, outside)


factor = register(
    Factor(
        name="between",
        edges={"value": "real", "low": "real", "high": "real"},
        out=lambda domains: boolean,
        log_density=_log_density,
        predict=_predict,
        sites={"linear": _site},
        closed_sites=frozenset({"linear"}),
        site_edge="value",
        unsupported={"out": _SHARP, "value": _SHARP, "low": _SHARP, "high": _SHARP},
        bounds=frozenset({"low", "high"}),
        rules=(BOUNDS,),
        source="minka2001ep",
    )
)


@call_checked
def between(value: Argument, low: Argument, high: Argument) -> Term:
    """A boolean: whether low < value < high.

    Observed to be true it is an interval-censored measurement of `value`, a real expression: with `high` infinite a
    right-censored one. `low` < `high` are numbers or inputs, infinite ones allowed; reversed ones are a ModelError as
    numbers and a DataError as data. It needs EP. Returns a term for `Model.random`. Source: minka2001ep.
    """
    return Term(factor, {"value": value, "low": low, "high": high})

"""The logit-normal factor: a probability whose log odds are Gaussian."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..arrays import Argument
from ..calls import call_checked
from ..domains import unit
from ..factor import Factor, Term, register
from ..families import Beta
from ..moments import Positive, Real, Unit
from ..quadrature import HALF_LOG_2PI, gaussian_expectation
from ..real.gaussian import gaussian
from ..scalars import BetaNumber, number_of
from ..special import log_sigmoid, ndtr, trigamma


def _of_odds(square, out: Unit, precision: Positive):
    jacobian = out.log + out.log_complement
    return 0.5 * precision.log - HALF_LOG_2PI - 0.5 * precision.mean * square - jacobian


def _log_density(out, mean, precision):
    log, complement = jnp.log(out), jnp.log1p(-out)
    far = precision * (log - complement - mean) ** 2
    return 0.5 * jnp.log(precision) - HALF_LOG_2PI - 0.5 * far - log - complement


def _expected_log(out: Unit, mean: Real, precision: Positive):
    return _of_odds((out.log - out.log_complement - mean.mean) ** 2 + mean.variance, out, precision)


def _with_random_out(out: Unit, mean: Real, precision: Positive):
    """The log odds of a Beta number are a difference of the logarithms of two independent Gamma numbers."""
    belief = number_of(out)
    assert isinstance(belief, BetaNumber)
    spread = trigamma(belief.a) + trigamma(belief.b) + mean.variance
    return _of_odds((out.log - out.log_complement - mean.mean) ** 2 + spread, out, precision)


def _predict(mean: Real, precision: Positive) -> Beta:
    """Of equal mean log odds: of equal E log x and E log (1 - x)."""
    variance = mean.variance + jnp.exp(-precision.log)
    return Beta.from_stats(tuple(gaussian_expectation(f, mean.mean, variance) for f in (log_sigmoid, _log_not)))


def _log_not(s):
    return log_sigmoid(-s)


def _below(x, mean, precision):
    inside = jnp.clip(x, 1e-300, 1.0 - 1e-16)
    share = ndtr((jnp.log(inside) - jnp.log1p(-inside) - mean) * jnp.sqrt(precision))
    return jnp.where(x <= 0.0, 0.0, jnp.where(x >= 1.0, 1.0, share))


factor = register(
    Factor(
        name="logit_normal",
        joined="0.6.0",
        edges={"mean": "real", "precision": "positive"},
        out=lambda domains: unit,
        log_density=_log_density,
        expected_log=_expected_log,
        predict=_predict,
        with_random=lambda random: _with_random_out if "out" in random else None,
        conjugate=frozenset({"mean", "precision"}),
        conditional={
            "below": _below,
            "draw": lambda key, mean, precision: jax.nn.sigmoid(mean + jax.random.normal(key) / jnp.sqrt(precision)),
        },
        source="aitchison1980logistic",
    )
)


@call_checked
def logit_normal(mean: Argument, variance: Argument = None, *, precision: Argument = None, sd: Argument = None) -> Term:
    """A logit-normal variable on (0, 1): log(x / (1 - x)) ~ N(mean, variance).

    `mean` is real; give exactly one of `variance`, `precision`, `sd` (of the log odds), as for `gaussian`. A latent one
    with data below it has a Beta belief. Returns a term for `Model.random`, which raises ModelError as for `gaussian`;
    zeros and ones as data are a DataError. Source: aitchison1980logistic.
    """
    term = gaussian(mean, variance=variance, precision=precision, sd=sd)
    return Term(factor, term.args) if term.args else term

"""The log-normal factor: the logarithm is Gaussian."""

from __future__ import annotations

import jax.numpy as jnp

from ..arrays import Argument
from ..calls import call_checked
from ..domains import positive
from ..factor import Factor, Term, register
from ..families import Gamma
from ..moments import Positive, Real
from ..quadrature import HALF_LOG_2PI
from ..quadrature.derived import positive_expectation
from ..real.gaussian import gaussian
from ..special import log_ndtr


def _log_density(out, mean, precision):
    log = jnp.log(out)
    return 0.5 * jnp.log(precision) - HALF_LOG_2PI - 0.5 * precision * (log - mean) ** 2 - log


def _with_square(out: Positive, mean: Real, precision: Positive, square):
    spread = square - 2.0 * out.log * mean.mean + mean.mean**2 + mean.variance
    return 0.5 * precision.log - HALF_LOG_2PI - 0.5 * precision.mean * spread - out.log


def _expected_log(out: Positive, mean: Real, precision: Positive):
    return _with_square(out, mean, precision, out.log**2)


def _with_random_out(out: Positive, mean: Real, precision: Positive):
    return _with_square(out, mean, precision, positive_expectation(lambda x, log_x: log_x**2, out))


def _predict(mean: Real, precision: Positive) -> Gamma:
    variance = mean.variance + jnp.exp(-precision.log)
    return Gamma.from_stats((jnp.exp(mean.mean + 0.5 * variance), mean.mean))


factor = register(
    Factor(
        name="log_normal",
        edges={"mean": "real", "precision": "positive"},
        out=lambda domains: positive,
        log_density=_log_density,
        expected_log=_expected_log,
        predict=_predict,
        with_random=lambda random: _with_random_out if "out" in random else None,
        conjugate=frozenset({"mean", "precision"}),
        log_below=lambda x, mean, precision: log_ndtr((jnp.log(x) - mean) * jnp.sqrt(precision)),
        log_above=lambda x, mean, precision: log_ndtr((mean - jnp.log(x)) * jnp.sqrt(precision)),
        source="knowles2011ncvmp",
    )
)


@call_checked
def log_normal(mean: Argument, variance: Argument = None, *, precision: Argument = None, sd: Argument = None) -> Term:
    """A log-normal variable: log x ~ N(mean, variance).

    `mean` is real; give exactly one of `variance`, `precision`, `sd` (of the logarithm), as for `gaussian`. A latent
    one with data below it has a Gamma belief. Returns a term for `Model.random`, which raises ModelError as for
    `gaussian`. Source: knowles2011ncvmp.
    """
    term = gaussian(mean, variance=variance, precision=precision, sd=sd)
    return Term(factor, term.args) if term.args else term

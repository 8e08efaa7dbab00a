"""The truncated Gaussian factor: a Gaussian variable known to lie between two bounds."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ..arrays import Argument
from ..calls import call_checked
from ..domains import real
from ..factor import Factor, Site, Term, register
from ..families import Gaussian
from ..moments import Positive, Real
from ..quadrature import HALF_LOG_2PI
from ..quadrature.truncation import between, interval_site
from ..rules import BOUNDS, WITHIN
from .gaussian import gaussian

_HARD = "the density is zero beyond the bounds, where every Gaussian belief has mass; EP serves it"
_BOUND = "a random bound moves the normaliser and the support together; constrain the variable instead (m.constrain)"


def _standard(bound, mean, precision):
    return (bound - mean) * jnp.sqrt(precision)


def _log_mass(mean, precision, low, high):
    return between(_standard(low, mean, precision), _standard(high, mean, precision))[0]


def _log_density(out, mean, precision, low, high):
    inside = 0.5 * jnp.log(precision) - HALF_LOG_2PI - 0.5 * precision * (out - mean) ** 2
    inside = inside - _log_mass(mean, precision, low, high)
    return jnp.where((out >= low) & (out <= high), inside, -jnp.inf)


def _predict(mean: Real, precision: Positive, low: Real, high: Real) -> Gaussian:
    variance = mean.variance + jnp.exp(-precision.log)
    sd = jnp.sqrt(variance)
    _, centre, shrunk = between((low.mean - mean.mean) / sd, (high.mean - mean.mean) / sd)
    return Gaussian.from_parameters(mean=mean.mean + sd * centre, variance=variance * shrunk)


def _site(out, mean, variance, power=1.0, *, prior_mean, precision, low, high) -> Site:
    """The product of two Gaussians between the bounds."""
    noise = 1.0 / (power * precision)
    total = variance + noise
    gap = prior_mean - mean
    share = noise / total  # of the cavity's variance that the product keeps
    inner_mean, inner_variance = mean + (1.0 - share) * gap, variance * share
    cut = interval_site(low, high, inner_mean, inner_variance)
    overlap = -0.5 * gap**2 / total - 0.5 * jnp.log(total) - HALF_LOG_2PI
    # N^power = N of the variance over power, times a constant.
    constant = 0.5 * (1.0 - power) * (jnp.log(2.0 * np.pi) - jnp.log(precision)) - 0.5 * jnp.log(power)
    log_evidence = overlap + constant + cut.log_evidence - power * _log_mass(prior_mean, precision, low, high)
    ratio = share * cut.ratio
    return Site(log_evidence, gap / total + share * cut.score, (1.0 - ratio) / variance, ratio)


factor = register(
    Factor(
        name="truncated_gaussian",
        edges={"mean": "real", "precision": "positive", "low": "real", "high": "real"},
        out=lambda domains: real,
        log_density=_log_density,
        predict=_predict,
        sites={"out": lambda out, m, v, power=1.0, *, mean, **rest: _site(out, m, v, power, prior_mean=mean, **rest)},
        closed_sites=frozenset({"out"}),
        unsupported={"out": _HARD, "low": _BOUND, "high": _BOUND},
        bounds=frozenset({"low", "high"}),
        rules=(BOUNDS, WITHIN),
        support=("low", "high"),
        source="minka2001ep",
    )
)


@call_checked
def truncated_gaussian(
    mean: Argument,
    variance: Argument = None,
    low: Argument = -np.inf,
    high: Argument = np.inf,
    *,
    precision: Argument = None,
    sd: Argument = None,
) -> Term:
    """A Gaussian variable between `low` and `high`: N(x; mean, variance) over its mass there, zero elsewhere.

    `mean` is real; give exactly one of `variance`, `precision`, `sd`, as for `gaussian`. `low` < `high` are numbers or
    inputs, infinite ones allowed. A latent one needs EP. Bounds that are reversed, and observations beyond them, are a
    ModelError as numbers and a DataError as data. Returns a term for `Model.random`. Source: minka2001ep.
    """
    term = gaussian(mean, variance=variance, precision=precision, sd=sd)
    return Term(factor, {**term.args, "low": low, "high": high}) if term.args else term

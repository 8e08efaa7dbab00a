"""Student's t factor: a location family with heavy tails."""

from __future__ import annotations

from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np

from ..arrays import Argument
from ..calls import call_checked
from ..closed import Closed, Formula
from ..domains import real
from ..factor import Factor, Site, Term, register
from ..families import Gamma, Gaussian
from ..moments import Positive, Real
from ..quadrature.tilted_pair import pair_site
from ..special import lgamma
from .gaussian import about


def _log_density(out, dof, mean, scale):
    z = (out - mean) / scale
    constant = lgamma(0.5 * (dof + 1.0)) - lgamma(0.5 * dof) - 0.5 * jnp.log(np.pi * dof)
    return constant - jnp.log(scale) - 0.5 * (dof + 1.0) * jnp.log1p(z**2 / dof)


def _predict(dof: Positive, mean: Real, scale: Positive) -> Gaussian:
    freedom = jnp.where(dof.mean > 2.0, dof.mean, 3.0)
    noise = jnp.where(dof.mean > 2.0, jnp.exp(2.0 * scale.log) * freedom / (freedom - 2.0), jnp.inf)
    return Gaussian.from_parameters(mean=mean.mean, variance=mean.variance + noise)


def _site(out, mean, variance, power=1.0, dof=1.0, scale=1.0) -> Site:
    return pair_site(lambda s: power * _log_density(out, dof, s, scale), mean, variance, out, scale)


def _closed(arguments: Mapping[str, Formula]) -> Closed | None:
    """A Gaussian mean: a Gaussian whose precision is Gamma of shape and rate dof / 2, over the square of the scale."""
    dof, mean, scale = arguments["dof"], arguments["mean"], arguments["scale"]
    if mean.belief(Gaussian) is None or not mean.alone(dof, scale) or not dof.known:
        return None
    mixing = dof.random(lambda v: Gamma.from_parameters(shape=0.5 * v, rate=0.5 * v))
    return about({"mean": mean, "precision": mixing / scale**2})


factor = register(
    Factor(
        name="student_t",
        edges={"dof": "positive", "mean": "real", "scale": "positive"},
        out=lambda domains: real,
        log_density=_log_density,
        predict=_predict,
        sites={"linear": _site},
        site_edge="mean",
        closed=_closed,
        divides={"scale": 2},
        source="tipping2005student",
    )
)


@call_checked
def student_t(dof: Argument, mean: Argument, scale: Argument) -> Term:
    """A Student-t variable: density proportional to (1 + ((x - mean) / scale)^2 / dof)^(-(dof + 1) / 2).

    `dof` > 0 and `scale` > 0: numbers, inputs, or positive variables; `mean` is real. The variance is scale^2 dof /
    (dof - 2), infinite for `dof` <= 2. Returns a term for `Model.random`, which raises ModelError for numbers outside
    these domains; as data they are a DataError. Source: tipping2005student.
    """
    return Term(factor, {"dof": dof, "mean": mean, "scale": scale})

"""Student's t factor: a location family with heavy tails."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from .domains import real
from .factor import Factor, Site, Term, register
from .families import Gaussian
from .moments import Positive, Real
from .special import lgamma
from .tilted_pair import pair_site


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


factor = register(
    Factor(
        name="student_t",
        edges={"dof": "positive", "mean": "real", "scale": "positive"},
        out=lambda domains: real,
        log_density=_log_density,
        predict=_predict,
        sites={"linear": _site},
        site_edge="mean",
        source="tipping2005student",
    )
)


def student_t(dof: Any, mean: Any, scale: Any) -> Term:
    """A Student-t variable: density proportional to (1 + ((x - mean) / scale)^2 / dof)^(-(dof + 1) / 2).

    `dof` > 0 and `scale` > 0: numbers, inputs, or positive variables; `mean` is real. The variance is scale^2 dof /
    (dof - 2), infinite for `dof` <= 2: such predictions are flat. Returns a term for `Model.random`.
    """
    return Term(factor, {"dof": dof, "mean": mean, "scale": scale})

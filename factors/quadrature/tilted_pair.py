"""The EP site of a scalar factor that is not log-concave: the tilted density may have a mode at the cavity and one at
the factor.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from ..arrays import Array, Numeric
from ..factor import Site
from . import HALF_LOG_2PI

_T = np.linspace(-1.0, 1.0, 161)
_SHARPNESS = 6
_REACH = 13.0


def pair_site(
    log_factor: Callable[[Array], Array], mean: Numeric, variance: Numeric, place: Numeric, scale: Numeric
) -> Site:
    """The site of f(s) for s ~ N(mean, variance), where f varies on the scale `scale` around `place`.

    Two stretched trapezoid rules, one at the cavity and one at the factor, share the integrand by a smooth partition:
    each point belongs to the rule that is denser there. Measured for Student-t: 1e-8 at cavity sds from 1e-3 to 1e3
    scales and outcomes up to 100 cavity sds away.
    """
    mean, variance, place, scale = jnp.broadcast_arrays(mean, variance, place, scale)
    sd = jnp.sqrt(variance)
    shape = (-1,) + (1,) * mean.ndim
    t = jnp.asarray(_T).reshape(shape)
    reach = jnp.abs(place - mean) + _REACH * sd
    ends = (jnp.full_like(sd, np.arcsinh(_REACH)), jnp.arcsinh(reach / scale))
    steps = [end * (_T[1] - _T[0]) for end in ends]
    centres, widths = (mean, place), (sd, scale)
    x = jnp.concatenate([c + w * jnp.sinh(end * t) for c, w, end in zip(centres, widths, ends, strict=True)])
    spacing = [step * jnp.sqrt(w**2 + (x - c) ** 2) for c, w, step in zip(centres, widths, steps, strict=True)]
    ratio = (jnp.minimum(*spacing) / jnp.maximum(*spacing)) ** _SHARPNESS
    first = jnp.where(spacing[0] < spacing[1], 1.0, ratio) / (1.0 + ratio)
    number = len(_T)
    measure = jnp.concatenate(
        [
            (first * spacing[0])[:number],
            (jnp.where(spacing[0] < spacing[1], ratio, 1.0) / (1.0 + ratio) * spacing[1])[number:],
        ]
    )
    log_weight = log_factor(x) - 0.5 * (x - mean) ** 2 / variance
    top = jnp.max(log_weight, axis=0)
    weight = jnp.exp(log_weight - top) * measure
    total = weight.sum(0)
    centre = (weight * (x - mean)).sum(0) / total
    tilted = (weight * (x - mean - centre) ** 2).sum(0) / total
    log_evidence = top + jnp.log(total) - 0.5 * jnp.log(variance) - HALF_LOG_2PI
    return Site(log_evidence, centre / variance, (1.0 - tilted / variance) / variance, tilted / variance)

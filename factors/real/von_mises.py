"""The von Mises factor: angles about a direction, the normal distribution of the circle."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import i0e, i1e

from ..arrays import Argument
from ..calls import call_checked
from ..conditional import inverted
from ..domains import real
from ..factor import Factor, Term, register
from ..families import Gaussian
from ..moments import Positive, Real
from ..quadrature.derived import positive_expectation
from ..rules import Rule

_HARD = "an angle has no belief of its own beyond the circle, where every Gaussian has mass; EP serves it"
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(128)
_SPREADS = 12.0  # of 1 / sqrt(concentration) about the mean; beyond lies some 1e-14 of the mass at most
_ON_THE_CIRCLE = Rule(
    ("out",),
    lambda domain, out: (out > -math.pi) & (out <= math.pi),
    "an angle must lie in (-pi, pi]",
    "Give radians, wrapped for example by np.angle(np.exp(1j * x)).",
)


def _log_bessel(concentration):
    """log I_0, which grows like its argument."""
    return jnp.log(i0e(concentration)) + concentration


def _about(out, mean, concentration):
    """The log density without cancellation: cos(x) - 1 = -2 sin(x / 2)^2."""
    near = -2.0 * concentration * jnp.sin(0.5 * (out - mean)) ** 2
    return near - math.log(2.0 * math.pi) - jnp.log(i0e(concentration))


def _log_density(out, mean, concentration):
    return jnp.where(jnp.abs(out) <= math.pi, _about(out, mean, concentration), -jnp.inf)


def _cosine(out: Real, mean: Real):
    """E cos(out - mean) of Gaussian beliefs: the characteristic function of their difference."""
    return jnp.exp(-0.5 * (out.variance + mean.variance)) * jnp.cos(out.mean - mean.mean)


def _on_the_circle(out: Real, inside):
    """Nothing is beyond it; the outcome is a point."""
    return jnp.where(jnp.abs(out.mean) <= math.pi, inside, -jnp.inf)


def _expected_log(out: Real, mean: Real, concentration: Positive):
    level = _log_bessel(concentration.mean)
    return _on_the_circle(out, concentration.mean * _cosine(out, mean) - math.log(2.0 * math.pi) - level)


def _with_random_concentration(out: Real, mean: Real, concentration: Positive):
    level = positive_expectation(lambda x, log_x: _log_bessel(x), concentration)
    return _on_the_circle(out, concentration.mean * _cosine(out, mean) - math.log(2.0 * math.pi) - level)


def _widened(concentration, variance):
    """The concentration about the mean of an uncertain direction: the mean resultant lengths of both multiply.

    The length A = I_1 / I_0 is inverted by R (2 - R^2) / (1 - R^2) (Banerjee and others, 2005), within some percent; as
    a ratio, so that a known direction leaves the concentration as it is.
    """
    square = (i1e(concentration) / i0e(concentration)) ** 2
    lack = jnp.maximum(1.0 - square, 1.0 / (1.0 + concentration))  # which it exceeds, but for rounding
    kept = jnp.exp(-variance)
    ratio = (2.0 - square * kept) / (2.0 - square) * lack / (lack * kept - jnp.expm1(-variance))
    return concentration * jnp.sqrt(kept) * ratio


def _predict(mean: Real, concentration: Positive) -> Gaussian:
    """Of the density's mean and variance at the expected arguments; an uncertain direction widens it."""
    level = jnp.maximum(_widened(concentration.mean, mean.variance), 1e-6)
    return Gaussian.from_parameters(mean=_mean(mean.mean, level), variance=_variance(mean.mean, level))


def _wrapped(angle):
    return angle - 2.0 * math.pi * jnp.round(angle / (2.0 * math.pi))


def _reach(concentration):
    """How far from the mean there is mass: the whole circle, or the few spreads that a narrow density fills."""
    return jnp.minimum(math.pi, _SPREADS / jnp.sqrt(concentration))


def _between(low, high, concentration):
    """Distances from the mean between two of them, and their masses up to a common factor, along a last axis."""
    half = 0.5 * (high - low)[..., None]
    distance = low[..., None] + half * (jnp.asarray(_NODES, float) + 1.0)
    return distance, half * jnp.asarray(_WEIGHTS, float) * jnp.exp(-2.0 * concentration * jnp.sin(0.5 * distance) ** 2)


def _outcomes(mean, concentration):
    """Angles in (-pi, pi] with their masses; the rule is cut at the seam, where angles jump by a turn."""
    centre, reach = _wrapped(mean), _reach(concentration)
    seam = jnp.clip(jnp.where(centre < 0.0, -math.pi, math.pi) - centre, -reach, reach)
    distance, mass = _between(jnp.stack([-reach, seam]), jnp.stack([seam, reach]), concentration)
    return _wrapped(centre + distance), mass / mass.sum()


def _mean(mean, concentration):
    x, mass = _outcomes(mean, concentration)
    return jnp.sum(mass * x)


def _variance(mean, concentration):
    x, mass = _outcomes(mean, concentration)
    return jnp.sum(mass * (x - jnp.sum(mass * x)) ** 2)


def _turns(distance, concentration):
    """The mass from the mean to a distance of any size: each whole turn adds one."""
    reach = _reach(concentration)
    near = jnp.clip(_wrapped(distance), -reach, reach)
    inside, side = (_between(jnp.zeros_like(end), end, concentration)[1].sum(-1) for end in (near, reach))
    return jnp.round(distance / (2.0 * math.pi)) + 0.5 * inside / side


def _below(x, mean, concentration):
    centre = _wrapped(mean)
    inside = _turns(jnp.clip(x, -math.pi, math.pi) - centre, concentration)
    share = jnp.clip(inside - _turns(-math.pi - centre, concentration), 0.0, 1.0)
    return jnp.where(jnp.abs(x) < math.pi, share, jnp.where(x < 0.0, 0.0, 1.0))  # the ends are exact


def _draw(key, mean, concentration):
    level = jax.random.uniform(key)
    return jnp.clip(inverted(lambda x: _below(x, mean, concentration) < level, "real"), -math.pi, math.pi)


factor = register(
    Factor(
        name="von_mises",
        joined="0.6.0",
        edges={"mean": "real", "concentration": "positive"},
        out=lambda domains: real,
        log_density=_log_density,
        expected_log=_expected_log,
        predict=_predict,
        with_random=lambda random: _with_random_concentration if "concentration" in random else None,
        unsupported={"out": _HARD},
        rules=(_ON_THE_CIRCLE,),
        conditional={
            "mean": _mean,
            "variance": _variance,
            "below": _below,
            "draw": _draw,
        },
        support=(-math.pi, math.pi),
        source="mardia2000directional",
    )
)


@call_checked
def von_mises(mean: Argument, concentration: Argument) -> Term:
    """An angle in (-pi, pi]: exp(concentration cos(x - mean)) / (2 pi I_0(concentration)).

    `mean`, the direction, is real, in radians and periodic: a number, an input or a real expression; `concentration` >
    0: numbers, inputs or positive variables, near 1 / variance where it is large. Angles beyond the circle are a
    DataError as data. Returns a term for `Model.random`. Source: mardia2000directional.
    """
    return Term(factor, {"mean": mean, "concentration": concentration})

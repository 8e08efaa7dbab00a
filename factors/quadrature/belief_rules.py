"""Points and weights of scalar beliefs by family: rules that reach far into the tails."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from ..arrays import Array, Numeric
from ..families import Bernoulli, Beta, Categorical, Family, Gamma, Gaussian, Poisson, SpikeAndSlab
from .nodes import beta_points, gamma_points, scalar_rule

GAUSSIAN_REACH = 12.0
_FAR_LOG = 600.0  # how far a rule goes towards zero, as a logarithm
Points = tuple[Array, Array]


@functools.singledispatch
def belief_rule(family: Family, number: int) -> Points | None:
    """About `number` points and their weights, which sum to one; None for a distribution that has no rule here."""
    return None


@belief_rule.register(Gaussian)
def _(family: Gaussian, number: int) -> Points:
    return _gaussian(family.mean(), family.variance(), number)


@belief_rule.register(Gamma)
def _(family: Gamma, number: int) -> Points:
    # A small shape has so much of its mass near zero that E 1 / x may be infinite: the reach must show it.
    # Not so far that points are clipped, as the smallest would be told apart no more.
    far = jnp.maximum(_FAR_LOG * jnp.minimum(family.shape, 1.0), 20.0)
    v, weights = gamma_points(jnp.asarray(family.shape), jnp.where(family.shape < 4.0, far, 60.0), number)
    return jnp.exp(jnp.maximum(v + jnp.log(family.mean()), -700.0)), weights


@belief_rule.register(Beta)
def _(family: Beta, number: int) -> Points:
    small = jnp.minimum(family.a, family.b) < 4.0
    u, weights = beta_points(jnp.asarray(family.a), jnp.asarray(family.b), jnp.where(small, 600.0, 60.0), number)
    return jnp.clip(jax.nn.sigmoid(u), 1e-300, 1.0 - np.finfo(float).epsneg), weights


@belief_rule.register(SpikeAndSlab)
def _(family: SpikeAndSlab, number: int) -> Points:
    points, weights = _gaussian(family.slab_mean, family.slab_variance, number)
    p, half = family.probability, number // 2  # the zero between the others: the ends tell of infinite sums
    return jnp.insert(points, half, 0.0), jnp.insert(p * weights, half, 1.0 - p)


@belief_rule.register(Bernoulli)
@belief_rule.register(Categorical)
@belief_rule.register(Poisson)
def _(family: Bernoulli | Categorical | Poisson, number: int) -> Points:
    found = scalar_rule("x", family.kind, family.moments())
    return jnp.asarray(found.points["x"], float), found.weights


def _gaussian(mean: Numeric, variance: Numeric, number: int) -> Points:
    z = jnp.linspace(-GAUSSIAN_REACH, GAUSSIAN_REACH, number)
    weights = jnp.exp(-0.5 * z**2)
    return mean + jnp.sqrt(variance) * z, weights / weights.sum()

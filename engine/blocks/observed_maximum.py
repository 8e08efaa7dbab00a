"""The largest of several Gaussian numbers, observed exactly or with Gaussian noise: EP over which of them it is.

Where the largest is number k, at s, the others are below s: the tilted distribution is a mixture over k of N(s; m_k,
v_k) prod_j P(x_j < s), times the density of the observation given s, which is a point without noise. Under noise s is
integrated by Gauss-Hermite nodes of N(s; m_k, v_k) times the noise. The tilted means and variances of all numbers are
matched, as EP does. Source: clark1961greatest.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from ...compiler.blocks.whole import MaximumBlock
from ...factors.arrays import Array, Key
from ...factors.families.base import ExponentialFamily
from ...factors.moments import Real
from ...factors.quadrature import HALF_LOG_2PI
from ...factors.special import log_ndtr, truncated_mean, truncated_variance
from ..values.evaluate import value
from ..values.first_beliefs import family_of, uniform
from ..values.instances import count, flat, positions, root
from ..values.masks import present
from ..values.naturals import Naturals
from ..values.plated import Placed
from ..values.scope import Scope

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(61)


class PreparedMaximum(NamedTuple):
    """By instance the observed value, which is the largest of the numbers times the sign, and the variance of noise.

    `places` tells by number which element of its variable it is, `here` which instances count, None where all do.
    """

    observed: Float[Array, " instances"]
    noise: Float[Array, " instances"] | None
    places: tuple[Int[Array, " instances"] | None, ...]
    here: Float[Array, " instances"] | None
    initial: Naturals


def prepare(block: MaximumBlock, scope: Scope, key: Key, apart: bool = False) -> PreparedMaximum:
    """The data by instance; there is nothing random in it."""
    size = count(block, scope.sizes)

    def by_instance(placed: Placed) -> Float[Array, " instances"]:
        return jnp.broadcast_to(flat(placed, block, scope), (size,))

    noise = None if block.precision is None else 1.0 / by_instance(value(block.precision, scope))
    mask = present(block, scope)
    initial = {
        name: tuple(part.reshape((-1, *part.shape[len(variable.plates) :])) for part in uniform(variable, scope))
        for name, variable in block.variables.items()
    }
    places = tuple(positions(number, block, scope) for number in block.numbers)
    observed = block.sign * by_instance(value(block.out, scope))
    return PreparedMaximum(observed, noise, places, None if mask is None else by_instance(mask), initial)


class Numbers(NamedTuple):
    """Means and variances of the numbers under their cavities."""

    mean: Float[Array, "numbers instances"]
    variance: Float[Array, "numbers instances"]


def solve(
    block: MaximumBlock, prepared: PreparedMaximum, cavities: Naturals, scope: Scope
) -> tuple[Float[Array, ""], Naturals]:
    """log Z, summed over the instances, and the naturals of the matched marginals, by element as the cavities."""
    families = {name: family_of(variable) for name, variable in block.variables.items()}
    before = {name: families[name].from_naturals(cavities[name]).moments() for name in families}
    names = [variable.name for variable in map(root, block.numbers)]
    places = [jnp.zeros(1, int) if place is None else place for place in prepared.places]
    shape = prepared.observed.shape
    chosen = [
        [jnp.broadcast_to(jnp.asarray(part)[place], shape) for part in before[name]]
        for name, place in zip(names, places, strict=True)
    ]
    numbers = Numbers(block.sign * jnp.stack([mean for mean, _ in chosen]), jnp.stack([v for _, v in chosen]))
    log_z, mean, variance = tilted(numbers, prepared.observed, prepared.noise)
    if prepared.here is not None:
        here = prepared.here > 0
        log_z = jnp.where(here, log_z, 0.0)
        mean, variance = jnp.where(here, mean, numbers.mean), jnp.where(here, variance, numbers.variance)
    found = {name: list(moments) for name, moments in before.items()}
    for name, place, m, v in zip(names, places, block.sign * mean, variance, strict=True):
        found[name] = [jnp.asarray(old).at[place].set(new) for old, new in zip(found[name], (m, v), strict=True)]
    marginals = {name: families[name].from_moments(Real(*found[name])).naturals() for name in found}
    # What no instance reads keeps its cavity, with all of its mass.
    partition = sum(jnp.sum(families[name].from_naturals(cavities[name]).log_partition()) for name in families)
    return jnp.sum(log_z) + partition, marginals


def tilted(
    numbers: Numbers, observed: Float[Array, " instances"], noise: Float[Array, " instances"] | None
) -> tuple[Float[Array, " instances"], Float[Array, "numbers instances"], Float[Array, "numbers instances"]]:
    """By instance log p(observation), and by number the mean and the variance given the observation."""
    m, v = numbers
    if noise is None:
        at = jnp.broadcast_to(observed, m.shape)[None]
        log_density = -0.5 * (observed - m) ** 2 / v - 0.5 * jnp.log(v) - HALF_LOG_2PI
        weights = jnp.zeros(1)
    else:
        total = v + noise
        at = m + v / total * (observed - m) + jnp.sqrt(v * noise / total) * jnp.asarray(_NODES)[:, None, None]
        log_density = -0.5 * (observed - m) ** 2 / total - 0.5 * jnp.log(total) - HALF_LOG_2PI
        weights = jnp.asarray(np.log(_WEIGHTS / _WEIGHTS.sum()))
    score = (at[:, :, None] - m) / jnp.sqrt(v)  # nodes, who is largest, numbers, instances
    largest = jnp.eye(m.shape[0], dtype=bool)[:, :, None]
    below = jnp.sum(jnp.where(largest, 0.0, log_ndtr(score)), axis=2)
    logs = weights[:, None, None] + log_density + below
    log_z = jax.scipy.special.logsumexp(logs, axis=(0, 1))
    share = jnp.exp(logs - log_z)[:, :, None]
    mean = at[:, :, None] - jnp.where(largest, 0.0, jnp.sqrt(v) * truncated_mean(score))
    variance = jnp.where(largest, 0.0, v * truncated_variance(score))
    whole = jnp.sum(share * mean, axis=(0, 1))
    return log_z, whole, jnp.sum(share * (variance + (mean - whole) ** 2), axis=(0, 1))


def family(block: MaximumBlock, name: str) -> type[ExponentialFamily]:
    """The family of a variable that the numbers are elements of."""
    return family_of(block.variables[name])

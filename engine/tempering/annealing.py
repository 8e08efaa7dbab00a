"""Annealed importance sampling: particles from the reference are moved along the path and weighted on the way.

The temperatures lie evenly on the barrier that a short run of parallel tempering has measured, and the moves have the
steps that it has learned. Source: neal2001annealed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from ...factors.arrays import Key
from ...factors.errors import UnsupportedError
from ..sampling.choose import NOT_WARMING
from .estimators import Estimate
from .replicas import Ladder, Program, Replicas


class Annealed(NamedTuple):
    """The evidence, and the effective number of particles."""

    estimate: Estimate
    effective: float


def log_weights(
    prepared: Program,
    key: Key,
    ladder: Ladder,
    pilot: Replicas,
    rungs: Ladder,
    particles: int,
    show: Callable[[int], None],
) -> Float[np.ndarray, " particle"]:
    """Of particles along `ladder`; `pilot` are replicas on `rungs` whose moves have learned their steps."""
    path = prepared.path
    if not prepared.exact:
        raise UnsupportedError(
            "Annealing begins at independent draws from the reference, and some variable of this model has none. Ask "
            "for method='tempering', or give a posterior as the reference."
        )
    own = jax.random.split(key)
    drawn = jax.jit(lambda keys: jax.vmap(lambda k: path.drawn(k, path.arrays))(keys))
    values = jax.tree.map(lambda x: x[:, None], drawn(jax.random.split(own[0], particles)))
    ratio = jax.jit(jax.vmap(lambda x: path.log_ratio(x, path.arrays)))
    weights = np.zeros(particles)
    for number, (inverse, after) in enumerate(itertools.pairwise(ladder)):
        with np.errstate(invalid="ignore"):
            weights = weights + (after - inverse) * np.asarray(ratio(jax.tree.map(lambda x: x[:, 0], values)))
        if after < 1.0:
            learned = _learned_at(pilot, rungs, after, particles)
            keys = jax.random.split(jax.random.fold_in(own[1], number), (particles, 1))
            at = jnp.full((particles, 1), after)
            values, _ = prepared.sweep(keys, values, learned, at, path.arrays, NOT_WARMING)
        show(1)
    return weights


def _learned_at(pilot: Replicas, rungs: Ladder, inverse: float, particles: int) -> tuple:
    """What the moves of the nearest rung have learned, for every particle."""
    nearest = int(np.argmin(np.abs(rungs - inverse)))

    def everywhere(x: jax.Array) -> jax.Array:
        return jnp.broadcast_to(x[:1, nearest][:, None], (particles, 1, *x.shape[2:]))

    return jax.tree.map(everywhere, pilot.learned)


def weighed(log_weights: Float[np.ndarray, " particle"]) -> Annealed:
    """The logarithm of the mean weight, its standard error, and how many equal weights would have that error."""
    total, count = float(np.asarray(logsumexp(log_weights))), len(log_weights)
    effective = float(np.exp(2.0 * total - np.asarray(logsumexp(2.0 * log_weights))))
    return Annealed(Estimate(total - np.log(count), float(np.sqrt(max(1.0 / effective - 1.0 / count, 0.0)))), effective)

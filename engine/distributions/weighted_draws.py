"""A distribution that is known by weighted draws."""

from __future__ import annotations

from typing import final

import jax
import jax.numpy as jnp
import numpy as np

from ...factors.arrays import Array, Key, Numeric
from ...factors.errors import UnsupportedError
from ...factors.families import Family
from ...factors.families.base import Levels
from ...factors.quadrature import HALF_LOG_2PI
from ...factors.records import fixed
from .mixed_over_grid import FROM_REAL, LOG_SLOPE, TO_REAL


@final
class WeightedDraws(Family):
    """sum_s weights[s] delta(x - values[s]): `values` is shaped (S, plates, event), `weights` (S,).

    Mean, variance and quantiles are those of the draws; the density is that of a kernel around each, in unconstrained
    coordinates of the `kind` of domain, as wide as Silverman's rule says, the draws being pulled together so that the
    variance stays.
    """

    values: Array
    weights: Array
    kind: str = fixed()

    title = "Weighted draws"

    def mean(self) -> Array:
        return jnp.tensordot(self.weights, self.values, axes=1)

    def variance(self) -> Array:
        return jnp.tensordot(self.weights, (self.values - self.mean()) ** 2, axes=1)

    def parameters(self) -> dict[str, Array]:
        return {"mean": self.mean(), "variance": self.variance()}

    def covariance(self) -> Array:
        """Cov x of a vector, shaped plates + (D, D)."""
        gap = self.values - self.mean()
        return jnp.einsum("s,s...i,s...j->...ij", self.weights, gap, gap)

    def log_density(self, value: Numeric) -> Array:
        """The logarithm of the smoothed density at a value shaped plates (more leading axes allowed).

        Raises UnsupportedError for values that are no single numbers.
        """
        if self.kind not in LOG_SLOPE:
            raise UnsupportedError(
                "Weighted draws of a vector, a simplex or a matrix have no density; ask that of its belief: "
                "posterior.plain[name].log_density(x)."
            )
        u, x = TO_REAL[self.kind](self.values), TO_REAL[self.kind](jnp.asarray(value, float))
        mean = jnp.tensordot(self.weights, u, axes=1)
        variance = jnp.tensordot(self.weights, (u - mean) ** 2, axes=1)
        width = 1.06 * jnp.sqrt(variance) * jnp.sum(self.weights**2) ** 0.2
        pulled = mean + jnp.sqrt(1.0 - jnp.minimum(width**2 / variance, 1.0)) * (u - mean)
        gap = (x - jnp.reshape(pulled, (len(u), *(1,) * (x.ndim - mean.ndim), *mean.shape))) / width
        weights = jnp.reshape(self.weights, (-1, *(1,) * x.ndim))
        smooth = jax.scipy.special.logsumexp(-0.5 * gap**2, axis=0, b=weights)
        return smooth - HALF_LOG_2PI - jnp.log(width) - LOG_SLOPE[self.kind](x)

    def below(self, x: Array) -> Array:
        """The weight of the draws up to x, by element, at a value shaped as the mean (more leading axes allowed)."""
        x = jnp.asarray(x)[..., None]
        values = jnp.moveaxis(self.values, 0, -1)
        return jnp.sum(jnp.where(values <= x, self.weights, 0.0), axis=-1)

    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        """Of every number by itself, linear between the draws."""
        if self.kind not in FROM_REAL:
            raise UnsupportedError("Draws of a vector, a simplex or a matrix have no order, and so no quantiles.")
        level, values = np.asarray(level, float), np.asarray(self.values)
        flat = values.reshape(len(values), -1)
        found = np.empty((flat.shape[1], level.size))
        for i, column in enumerate(flat.T):
            order = np.argsort(column)
            weights = np.asarray(self.weights)[order]
            found[i] = np.interp(level.ravel(), np.cumsum(weights) - 0.5 * weights, column[order])
        return found.T.reshape(level.shape + values.shape[1:])

    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        """Draws of all elements together, each as often as its weight."""
        return self.values[jax.random.choice(key, len(self.weights), shape, p=self.weights)]

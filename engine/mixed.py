"""Families of an integrated posterior: mixtures of conditional marginals, and weighted grid values."""

from __future__ import annotations

from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from ..factors.errors import UnsupportedError
from ..factors.families import Beta, Family, Gamma, Gaussian

_BISECTIONS = 80


@final
class Mixture(Family):
    """sum_k weights[k] components[k]: the family `components` has one leading axis more than its plates."""

    components: Family
    weights: Any

    def _average(self, values: Any) -> Any:
        return jnp.tensordot(self.weights, values, axes=1)

    def mean(self) -> Any:
        return self._average(self.components.mean())

    def variance(self) -> Any:
        means = self.components.mean()
        return self._average(self.components.variance() + (means - self._average(means)) ** 2)

    def parameters(self) -> dict[str, Any]:
        return {"mean": self.mean(), "variance": self.variance()}

    def log_density(self, value: Any) -> Any:
        """The logarithm of the mixture's density at a value shaped plates + event."""
        parts = jax.vmap(lambda component: component.log_density(value))(self.components)
        return jax.scipy.special.logsumexp(parts, axis=0, b=jnp.reshape(self.weights, (-1,) + (1,) * (parts.ndim - 1)))

    def sample(self, key: Any, shape: tuple[int, ...] = ()) -> Any:
        """Draws of the components, chosen anew for every draw of the whole variable."""
        which, inner = jax.random.split(key)
        chosen = jax.random.choice(which, len(self.weights), shape, p=self.weights)
        draws = jax.vmap(lambda component: component.sample(inner, shape))(self.components)
        index = jnp.reshape(chosen, (1, *shape, *(1,) * (draws.ndim - 1 - len(shape))))
        return jnp.take_along_axis(draws, index, axis=0)[0]

    def quantile(self, level: Any) -> np.ndarray:
        """By bisection of the mixed distribution function; Gaussian, Gamma and Beta components."""
        level, weights = np.asarray(level, float), np.asarray(self.weights)
        with jax.enable_x64(True):
            mean, sd = (np.asarray(a) for a in (self.components.mean(), jnp.sqrt(self.components.variance())))
        target = level.reshape(level.shape + (1,) * (mean.ndim - 1))
        low, high = (mean - 40.0 * sd).min(0), (mean + 40.0 * sd).max(0)
        low, high = (np.broadcast_to(a, np.broadcast_shapes(target.shape, a.shape)) for a in (low, high))
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            below = np.tensordot(weights, self._distribution(middle), axes=1) < target
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return 0.5 * (low + high)

    def _distribution(self, x: np.ndarray) -> np.ndarray:
        """P(X <= x) under every component, components first."""
        import scipy.special

        own: Any = self.components
        fields = {name: np.asarray(array) for name, array in own.parameters().items()}
        leading = (slice(None),) + (None,) * (x.ndim - (next(iter(fields.values())).ndim - 1))
        fields = {name: array[leading] for name, array in fields.items()}
        if isinstance(own, Gaussian):
            return scipy.special.ndtr((x - fields["mean"]) / np.sqrt(fields["variance"]))
        if isinstance(own, Gamma):
            return scipy.special.gammainc(fields["shape"], fields["rate"] * np.maximum(x, 0.0))
        if isinstance(own, Beta):
            return scipy.special.betainc(fields["a"], fields["b"], np.clip(x, 0.0, 1.0))
        raise UnsupportedError(
            f"A mixture of {type(own).__name__} components has no quantiles here. Use its mean, or draw with .sample()."
        )


@final
class Weighted(Family):
    """A scalar known on a grid: `values` with probabilities `weights`, both of shape (K,)."""

    values: Any
    weights: Any

    def mean(self) -> Any:
        return jnp.dot(self.weights, self.values)

    def variance(self) -> Any:
        return jnp.dot(self.weights, (self.values - self.mean()) ** 2)

    def parameters(self) -> dict[str, Any]:
        return {"mean": self.mean(), "variance": self.variance()}

    def quantile(self, level: Any) -> np.ndarray:
        """By monotone interpolation of the cumulated weights."""
        from scipy.interpolate import PchipInterpolator

        values, inverse = np.unique(np.asarray(self.values), return_inverse=True)
        weights = np.bincount(inverse, np.asarray(self.weights))
        middle = np.cumsum(weights) - 0.5 * weights
        keep = np.concatenate([[True], np.diff(middle) > 1e-14])
        return PchipInterpolator(middle[keep], values[keep])(np.clip(level, middle[keep][0], middle[keep][-1]))

    def sample(self, key: Any, shape: tuple[int, ...] = ()) -> Any:
        return jnp.asarray(self.quantile(np.asarray(jax.random.uniform(key, shape))))

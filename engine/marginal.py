"""Marginals: what `posterior["v"]` is."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ..factors.errors import UnsupportedError
from ..factors.families import Family

# Compiled once for each family and shape: run operation by operation, an inverse costs a millisecond.
_mean = jax.jit(lambda family: family.mean())
_variance = jax.jit(lambda family: family.variance())


class Marginal:
    """The distribution of one variable, NumPy-shaped by its plates and then the axes of one value.

    Wraps a family; as an array it is its mean (the probabilities of a discrete variable).
    """

    def __init__(self, family: Family, name: str = "") -> None:
        with jax.enable_x64(True):
            self.family = jax.tree.map(np.asarray, family)
        self.name = name

    @property
    def mean(self) -> np.ndarray:
        """E x; P(True) of a boolean, the probability vector of a category."""
        return self._array(lambda: _mean(self.family))

    @property
    def variance(self) -> np.ndarray:
        """Var x, element by element."""
        return self._array(lambda: _variance(self.family))

    @property
    def sd(self) -> np.ndarray:
        """Standard deviation, element by element."""
        return np.sqrt(self.variance)

    @property
    def probability(self) -> np.ndarray:
        """P(x is true) of a boolean, the probabilities of a category, and P(x is not zero) of a spike and slab."""
        found = self._array(lambda: getattr(self.family, "probability", np.nan))
        if found.shape != self.mean.shape:
            raise UnsupportedError(
                f"{self.name!r} has a {type(self.family).__name__} marginal, which tells of no probability. Those of "
                "booleans, categories and spike-and-slab variables do."
            )
        return found

    @property
    def covariance(self) -> np.ndarray:
        """The covariance matrix of a vector, shaped plates + (D, D)."""
        return self._array(lambda: self.family.covariance())  # type: ignore[attr-defined]

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """The family's own parameters by name, such as shape and rate."""
        with jax.enable_x64(True):
            return {name: np.asarray(value) for name, value in self.family.parameters().items()}

    def quantile(self, q: Any) -> np.ndarray:
        """The value that x stays below with probability `q` in (0, 1); `q` may be an array, whose axes come first."""
        return np.asarray(self.family.quantile(q))

    def interval(self, probability: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The central interval of the given probability: lower and upper end."""
        if not 0 < probability < 1:
            raise ValueError(f"interval() takes a probability between 0 and 1; found {probability}.")
        tail = 0.5 * (1.0 - probability)
        return self.quantile(tail), self.quantile(1.0 - tail)

    def sample(self, key: Any, shape: tuple[int, ...] = ()) -> np.ndarray:
        """Independent draws, shaped `shape` + plates + event.

        `key` is a random key (`jax.random.key(0)`) or an integer seed.
        """
        key = jax.random.key(key) if isinstance(key, (int, np.integer)) else key
        return self._array(lambda: self.family.sample(key, tuple(np.atleast_1d(shape).tolist()) if shape != () else ()))

    def log_density(self, x: Any) -> np.ndarray:
        """log q(x), element by element over the plates; a class is given by its number.

        Raises UnsupportedError for an observed variable, whose distribution is a point.
        """
        if not hasattr(self.family, "log_density"):
            raise UnsupportedError(f"{self.name!r} is observed: a point has no density. Compare with its `.mean`.")
        return self._array(lambda: self.family.log_density(np.asarray(x)))  # type: ignore[attr-defined]

    @staticmethod
    def _array(function: Any) -> np.ndarray:
        with jax.enable_x64(True):
            return np.asarray(function())

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the mean."""
        return self.mean.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        mean = self.mean
        return mean if dtype is None else mean.astype(dtype)

    def __len__(self) -> int:
        return len(self.mean)

    def __getitem__(self, index: Any) -> np.ndarray:
        """An entry of the mean."""
        return self.mean[index]

    def __repr__(self) -> str:
        title = type(self.family).__name__
        if self.mean.size > 12:
            return f"<{title} marginal {self.name!r} of shape {self.shape}>"
        parts = ", ".join(f"{name}={np.array2string(value, precision=5)}" for name, value in self.parameters.items())
        return f"{title}({parts})"

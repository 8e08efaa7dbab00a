"""What a family is: a frozen pytree of parameters with leading plate axes and trailing event axes."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar, Self

import jax.numpy as jnp
import numpy as np

from ..records import Record

Array = Any
Naturals = tuple[Array, ...]


class Family(Record):
    """A distribution that a belief may have: what a user may ask of any of them."""

    @abc.abstractmethod
    def mean(self) -> Array:
        """E x, shaped plates + event (of a boolean P(True), of a category the probability vector)."""

    @abc.abstractmethod
    def variance(self) -> Array:
        """Var x by element, shaped as the mean."""

    @abc.abstractmethod
    def quantile(self, level: Any) -> np.ndarray:
        """The smallest x with P(X <= x) >= level, by element: NumPy, shaped levels + mean; not under jit.

        Raises UnsupportedError where the values have no order or the distribution function no closed form.
        """

    @abc.abstractmethod
    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Independent draws with the random key `key`, shaped shape + plates + event."""

    @abc.abstractmethod
    def parameters(self) -> dict[str, Array]:
        """The usual parameters by name."""


def mean_of(value: Any) -> Array:
    """The mean of a belief, and a known value itself."""
    return value.mean() if isinstance(value, Family) else value


class ExponentialFamily(Family):
    """q(x) = h(x) exp(sum_j <eta_j, t_j(x)> - A(eta)): a family of beliefs and messages.

    The fields are the natural parameters eta_j in the order of the sufficient statistics t_j, each shaped plates + its
    own event axes. Multiplying two messages adds their naturals, dividing subtracts them, zero naturals are the uniform
    message; a message may be improper, a belief may not. Nothing is checked and nothing branches on values, so all
    methods but `quantile` may be jitted, mapped and differentiated. `kind` is the kind of the domain, `natural_ndims`
    counts the event axes of each field. Every family also has `stats_of(value)` = t(x) and `moments_at(value)`, the
    moments of a point; those of a category need its number of classes as a second argument.
    """

    kind: ClassVar[str]
    natural_ndims: ClassVar[tuple[int, ...]]

    def naturals(self) -> Naturals:
        """The natural parameters, in the order of the sufficient statistics."""
        return tuple(getattr(self, field.name) for field in dataclasses.fields(self))

    @classmethod
    def from_naturals(cls, naturals: Naturals) -> Self:
        """The member with these natural parameters."""
        return cls(*naturals)

    @classmethod
    def uniform(cls, plates: tuple[int, ...] = (), event: int | None = None) -> Self:
        """The uniform message: zero naturals; `event` is the number of classes or the dimension, if any."""
        return cls(*(jnp.zeros((*plates, *(event,) * ndim)) for ndim in cls.natural_ndims))

    @property
    def plates(self) -> tuple[int, ...]:
        """The shape of the plates."""
        shapes = (jnp.shape(natural) for natural in self.naturals())
        return np.broadcast_shapes(*(s[: len(s) - n] for s, n in zip(shapes, self.natural_ndims, strict=True)))

    @classmethod
    @abc.abstractmethod
    def from_parameters(cls, **parameters: Array) -> Self:
        """The member with the usual parameters, named as `parameters()` names them."""

    @classmethod
    @abc.abstractmethod
    def from_stats(cls, stats: Naturals) -> Self:
        """The member with these expected statistics: the projection, least KL(p || q), of any p that has them."""

    @abc.abstractmethod
    def log_partition(self) -> Array:
        """A(eta), shaped plates."""

    @abc.abstractmethod
    def expected_stats(self) -> Naturals:
        """E t_j(x) = dA/d eta_j, shaped as the naturals."""

    @abc.abstractmethod
    def fisher_solve(self, tangent: Naturals) -> Naturals:
        """The change of naturals that moves the expected statistics by `tangent`: solves (d^2 A) u = tangent."""

    @classmethod
    @abc.abstractmethod
    def log_base(cls, value: Array) -> Array:
        """log h at a value shaped plates + event."""

    @abc.abstractmethod
    def log_density(self, value: Array) -> Array:
        """log q at a value shaped plates + event (more leading axes allowed)."""

    @abc.abstractmethod
    def entropy(self) -> Array:
        """-E log q, shaped plates."""

    @abc.abstractmethod
    def is_proper(self) -> Array:
        """Whether q can be normalised, shaped plates."""

    @abc.abstractmethod
    def moments(self) -> Any:
        """The moments of the domain (see `factors.moments`)."""

    @staticmethod
    @abc.abstractmethod
    def pull(moments: Any, gradient: Any) -> Naturals:
        """dS/dE[t_j] of a scalar S with this gradient in the moments: the natural message of VMP and NCVMP."""


def floating(value: Any) -> Array:
    """`value` as an array of floating numbers, in its own precision where it has one."""
    value = jnp.asarray(value)
    return value if jnp.issubdtype(value.dtype, jnp.floating) else value.astype(float)


def host(*values: Any) -> tuple[np.ndarray, ...]:
    """`values` as float64 NumPy arrays: outside the x64 context JAX would round float64 arithmetic to float32."""
    return tuple(np.asarray(value, np.float64) for value in values)


def levels(level: Any, ndim: int) -> np.ndarray:
    """Quantile levels with `ndim` unit axes appended, to broadcast against plates + event."""
    level = np.asarray(level, np.float64)
    return level.reshape(level.shape + (1,) * ndim)

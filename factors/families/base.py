"""What a family is: a frozen pytree of parameters with leading plate axes and trailing event axes."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, Self, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Num

from ..arrays import Array, Key, Numeric
from ..moments import Moments
from ..records import Record
from .bijections import Bijection

# Parameters without event axes may be Python's numbers; the plates of a family's parameters broadcast.
Number: TypeAlias = Array | np.number | float | int
Scalars: TypeAlias = Num[Number, "*#plates"]
Vectors: TypeAlias = Float[Array, "*#plates dim"]
Matrices: TypeAlias = Float[Array, "*#plates dim dim"]
Naturals: TypeAlias = tuple[Number, ...]
Arrays: TypeAlias = tuple[Array, ...]  # naturals or statistics with event axes
Levels: TypeAlias = Numeric | Sequence[float]


class Family(Record):
    """A distribution that a belief may have: what a user may ask of any of them."""

    @abc.abstractmethod
    def mean(self) -> Array:
        """E x, shaped plates + event (of a boolean P(True), of a category the probability vector)."""

    @abc.abstractmethod
    def variance(self) -> Array:
        """Var x by element, shaped as the mean."""

    @abc.abstractmethod
    def quantile(self, level: Levels) -> np.ndarray | np.floating:
        """The smallest x with P(X <= x) >= level, by element: NumPy, shaped levels + mean; not under jit.

        Raises UnsupportedError where the values have no order or the distribution function no closed form.
        """

    @abc.abstractmethod
    def sample(self, key: Key, shape: tuple[int, ...] = ()) -> Array:
        """Independent draws with the random key `key`, shaped shape + plates + event."""

    @abc.abstractmethod
    def parameters(self) -> dict[str, Numeric]:
        """The usual parameters by name."""


def mean_of(value: Family | Array) -> Array:
    """The mean of a belief, and a known value itself."""
    return value.mean() if isinstance(value, Family) else value


class ExponentialFamily(Family):
    """q(x) = h(x) exp(sum_j <eta_j, t_j(x)> - A(eta)): a family of beliefs and messages.

    The fields are the natural parameters eta_j in the order of the sufficient statistics t_j, each shaped plates + its
    own event axes. Multiplying two messages adds their naturals, dividing subtracts them, zero naturals are the uniform
    message; a message may be improper, a belief may not. Nothing is checked and nothing branches on values, so all
    methods but `quantile` may be jitted, mapped and differentiated. `kind` is the kind of the domain, `natural_ndims`
    counts the event axes of each field, and `event` is the number of classes or the dimension of a value, None where it
    has none.
    """

    kind: ClassVar[str]
    natural_ndims: ClassVar[tuple[int, ...]]

    # members ---------------------------------------------------------------------------------------------------------

    def naturals(self) -> Naturals:
        """The natural parameters, in the order of the sufficient statistics."""
        return tuple(getattr(self, field.name) for field in dataclasses.fields(self))

    @classmethod
    def from_naturals(cls, naturals: Naturals) -> Self:
        """The member with these natural parameters."""
        return cls(*naturals)

    @classmethod
    def uniform(cls, plates: tuple[int, ...] = (), event: int | None = None) -> Self:
        """The uniform message: zero naturals."""
        return cls(*(jnp.zeros((*plates, *(event,) * ndim)) for ndim in cls.natural_ndims))

    @property
    def plates(self) -> tuple[int, ...]:
        """The shape of the plates."""
        shapes = (jnp.shape(natural) for natural in self.naturals())
        return np.broadcast_shapes(*(s[: len(s) - n] for s, n in zip(shapes, self.natural_ndims, strict=True)))

    def over(self, plates: tuple[int, ...]) -> Self:
        """The same belief, which has no plates itself, for each of their elements."""
        return jax.tree.map(lambda natural: jnp.broadcast_to(natural, (*plates, *natural.shape)), self)

    @classmethod
    @abc.abstractmethod
    def from_parameters(cls, **parameters: Numeric) -> Self:
        """The member with the usual parameters, named as `parameters()` names them."""

    @classmethod
    @abc.abstractmethod
    def from_stats(cls, stats: Naturals) -> Self:
        """The member with these expected statistics: the projection, least KL(p || q), of any p that has them."""

    @classmethod
    @abc.abstractmethod
    def from_moments(cls, moments: Moments) -> Self:
        """The member with these moments: undoes `moments()`."""

    @classmethod
    def mixture(cls, parts: Sequence[Any], weights: Sequence[Array]) -> Self:
        """The member with the expected statistics of sum_k weights[k] q_k.

        Each of `parts` holds some of the q_k on its first axis, and has their expected statistics in this family; the
        weights, an array shaped cases for each part, sum to one. Of finitely many values it is the mixture itself.
        """
        stats = [part.expected_stats() for part in parts]
        total = jax.tree.map(
            lambda *each: sum(jnp.tensordot(w, one, axes=1) for w, one in zip(weights, each, strict=True)), *stats
        )
        return cls.from_stats(tuple(total))

    # where nothing is known ------------------------------------------------------------------------------------------

    @classmethod
    @abc.abstractmethod
    def anchor(cls, event: int | None = None) -> Self:
        """A proper belief that a run may begin from where the prior gives none, of one element."""

    @classmethod
    @abc.abstractmethod
    def placeholder(cls, event: int | None = None) -> Self:
        """A harmless proper belief for elements that are masked, of one: all that a factor may ask of it is finite."""

    @classmethod
    @abc.abstractmethod
    def first_moments(cls, event: int | None = None) -> Moments:
        """The moments of one element before it has a belief: what gradients start from that may not depend on them."""

    @classmethod
    @abc.abstractmethod
    def legal_value(cls, event: int | None = None) -> float | int | np.ndarray:
        """A value inside the support, for entries that are missing: zero, or what is nearest to it of such."""

    @classmethod
    @abc.abstractmethod
    def bijection(cls, event: int | None = None) -> Bijection | None:
        """Between one value and unconstrained numbers, with its log Jacobian; None where values have no neighbours."""

    # what a belief is asked ------------------------------------------------------------------------------------------

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
    def stats_of(cls, value: Numeric, *event: int) -> Naturals:
        """t(x) of a value shaped plates + event; those of a category need its number of classes."""

    @classmethod
    @abc.abstractmethod
    def moments_at(cls, value: Numeric, *event: int) -> Moments:
        """The moments of a point; those of a category need its number of classes."""

    @classmethod
    @abc.abstractmethod
    def log_base(cls, value: Numeric) -> Array:
        """log h at a value shaped plates + event."""

    @abc.abstractmethod
    def log_density(self, value: Numeric) -> Array:
        """log q at a value shaped plates + event (more leading axes allowed)."""

    @abc.abstractmethod
    def entropy(self) -> Array:
        """-E log q, shaped plates."""

    @abc.abstractmethod
    def is_proper(self) -> Array | np.bool_ | bool:
        """Whether q can be normalised, shaped plates."""

    @abc.abstractmethod
    def moments(self) -> Moments:
        """The moments of the domain (see `factors.moments`)."""

    @staticmethod
    @abc.abstractmethod
    def pull(moments: Moments, gradient: Moments) -> Naturals:
        """dS/dE[t_j] of a scalar S with this gradient in the moments: the natural message of VMP and NCVMP."""

    @abc.abstractmethod
    def sharpened(self, times: Numeric) -> Self:
        """The belief of the same mean and so many times the precision; that of a probability or a state as it is."""


def floating(value: Numeric) -> jax.Array:
    """`value` as an array of floating numbers, in its own precision where it has one."""
    value = jnp.asarray(value)
    return value if jnp.issubdtype(value.dtype, jnp.floating) else value.astype(float)


def host(*values: Numeric) -> tuple[np.ndarray, ...]:
    """`values` as float64 NumPy arrays: outside the x64 context JAX would round float64 arithmetic to float32."""
    return tuple(np.asarray(value, np.float64) for value in values)


def levels(level: Levels, ndim: int) -> np.ndarray:
    """Quantile levels with `ndim` unit axes appended, to broadcast against plates + event."""
    level = np.asarray(level, np.float64)
    return level.reshape(level.shape + (1,) * ndim)

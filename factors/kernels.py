"""Kernels: the covariance functions of Gaussian processes. Sums and products of kernels are kernels.

A kernel is a tree: leaves carry parameters, which are numbers or inputs of a model, and a function of two sets of
points. Points are rows. `same` says that both sets are one, element by element, which only white noise needs to know.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .arrays import Argument, Array, Numeric
from .calls import call_checked, methods_checked
from .errors import ModelError

Points: TypeAlias = Float[Array, "point dim"]
Others: TypeAlias = Float[Array, "other dim"]
Matrix: TypeAlias = Float[Array, "point other"]
DISTINCT = 1e-18  # the squared distance below which two points count as one: it keeps derivatives of roots finite


@methods_checked("kernel")
@dataclasses.dataclass(frozen=True, eq=False)
class Kernel:
    """k(x, y), with `parameters` by name; `covariance(x, y, same, **parameters)` gives the matrix of two point sets.

    `variance(x, **parameters)` gives the diagonal k(x, x). A sum or a product has two `parts` and the function that
    `joins` them instead. Kernels are made by `cv.kernels.squared_exponential(...)` and so on, and joined by `+` and
    `*`.
    """

    name: str
    parameters: dict[str, Argument] = dataclasses.field(default_factory=dict)
    covariance: Callable[..., Array] | None = None
    variance: Callable[..., Array] | None = None
    parts: tuple[Kernel, ...] = ()
    joins: Callable[[Array, Array], Array] | None = None

    def __add__(self, other: Argument) -> Kernel:
        return _joined("sum", operator.add, self, other)

    def __radd__(self, other: Argument) -> Kernel:
        return _joined("sum", operator.add, other, self)

    def __mul__(self, other: Argument) -> Kernel:
        return _joined("product", operator.mul, self, other)

    def __rmul__(self, other: Argument) -> Kernel:
        return _joined("product", operator.mul, other, self)

    def __str__(self) -> str:
        if self.parts:
            sign = " + " if self.name == "sum" else " * "
            return f"({sign.join(map(str, self.parts))})"
        return self.name


def _joined(name: str, joins: Callable[[Array, Array], Array], left: Argument, right: Argument) -> Kernel:
    for part in (left, right):
        if not isinstance(part, Kernel):
            raise ModelError(
                f"A kernel is combined with {part!r}. Sums and products are of kernels: for a number write "
                "cv.kernels.constant(variance)."
            )
    return Kernel(name, parts=(left, right), joins=joins)


def leaves(kernel: Kernel) -> list[Kernel]:
    """The kernels without parts, in the order in which they are written."""
    return [leaf for part in kernel.parts for leaf in leaves(part)] if kernel.parts else [kernel]


def named_parameters(kernel: Kernel) -> dict[str, Argument]:
    """All parameters by a name of their own: that of the parameter, numbered by leaf where there are several."""
    found = leaves(kernel)
    return {_name(number, name, len(found)): value for number, name, value in _numbered(found)}


def _numbered(found: list[Kernel]) -> Iterator[tuple[int, str, Argument]]:
    for number, leaf in enumerate(found):
        for name, value in leaf.parameters.items():
            yield number, name, value


def _name(number: int, name: str, count: int) -> str:
    return name if count == 1 else f"{name}_{number + 1}"


def covariance(kernel: Kernel, values: Mapping[str, Numeric], x: Points, y: Others, same: bool = False) -> Matrix:
    """The matrix k(x_i, y_j) for points in rows; `values` are the parameters by the names of `named_parameters`."""
    return _evaluated(kernel, _split(kernel, values), lambda leaf, own: leaf.covariance(x, y, same, **own))


def variance(kernel: Kernel, values: Mapping[str, Numeric], x: Points) -> Float[Array, " point"]:
    """The diagonal k(x_i, x_i)."""
    return _evaluated(kernel, _split(kernel, values), lambda leaf, own: leaf.variance(x, **own))


def _split(kernel: Kernel, values: Mapping[str, Numeric]) -> Iterator[dict[str, Numeric]]:
    found = leaves(kernel)
    for number, leaf in enumerate(found):
        yield {name: values[_name(number, name, len(found))] for name in leaf.parameters}


def _evaluated(kernel: Kernel, values: Iterator[dict[str, Numeric]], of_leaf: Callable[..., Array]) -> Array:
    if kernel.joins is not None:
        left, right = (_evaluated(part, values, of_leaf) for part in kernel.parts)
        return kernel.joins(left, right)
    return of_leaf(kernel, next(values))


# The kernels ----------------------------------------------------------------------------------------------------------


def _squares(x: Points, y: Others, scale: Numeric) -> Matrix:
    """Squared scaled distances by differences: expanding the square would lose the digits of close points."""
    gap = (x[:, None, :] - y[None, :, :]) / scale
    return jnp.sum(gap * gap, axis=-1)


def _distance(x: Points, y: Others, scale: Numeric) -> Matrix:
    squares = _squares(x, y, scale)
    near = squares < DISTINCT
    return jnp.where(near, 0.0, jnp.sqrt(jnp.where(near, 1.0, squares)))


def _flat(x: Points, variance: Numeric, **others: Numeric) -> Float[Array, " point"]:
    return jnp.broadcast_to(variance, x.shape[:1])


def _stationary(name: str, covariance: Callable[..., Array], **parameters: Argument) -> Kernel:
    return Kernel(name, {key: _checked(name, key, value) for key, value in parameters.items()}, covariance, _flat)


@call_checked
def squared_exponential(scale: Argument = 1.0, variance: Argument = 1.0) -> Kernel:
    """variance * exp(-r^2 / 2), r the distance of two points in units of `scale`: very smooth functions.

    `scale` > 0 is a number, an array or `cv.vector(d)` input with one for each coordinate (irrelevant coordinates get
    long ones), or a positive input; `variance` > 0 a number or a positive input, both without the plates of the points.
    Returns a kernel for `gaussian_process`. Raises ModelError for numbers that are not positive. Source:
    rasmussen2006gaussian, 4.9.
    """

    def matrix(x: Points, y: Others, same: bool, scale: Numeric, variance: Numeric) -> Matrix:
        return variance * jnp.exp(-0.5 * _squares(x, y, scale))

    return _stationary("squared_exponential", matrix, scale=scale, variance=variance)


@call_checked
def matern32(scale: Argument = 1.0, variance: Argument = 1.0) -> Kernel:
    """variance * (1 + a) exp(-a), a = sqrt(3) r: once differentiable functions.

    `scale` > 0 and `variance` > 0, what is returned, the ModelError and the source are as for `squared_exponential`
    (4.17 there).
    """

    def matrix(x: Points, y: Others, same: bool, scale: Numeric, variance: Numeric) -> Matrix:
        a = math.sqrt(3.0) * _distance(x, y, scale)
        return variance * (1.0 + a) * jnp.exp(-a)

    return _stationary("matern32", matrix, scale=scale, variance=variance)


@call_checked
def matern52(scale: Argument = 1.0, variance: Argument = 1.0) -> Kernel:
    """variance * (1 + a + a^2 / 3) exp(-a), a = sqrt(5) r: twice differentiable functions.

    `scale` > 0 and `variance` > 0, what is returned, the ModelError and the source are as for `squared_exponential`
    (4.17 there).
    """

    def matrix(x: Points, y: Others, same: bool, scale: Numeric, variance: Numeric) -> Matrix:
        a = math.sqrt(5.0) * _distance(x, y, scale)
        return variance * (1.0 + a + a * a / 3.0) * jnp.exp(-a)

    return _stationary("matern52", matrix, scale=scale, variance=variance)


@call_checked
def periodic(period: Argument = 1.0, scale: Argument = 1.0, variance: Argument = 1.0) -> Kernel:
    """variance * exp(-2 sum_i sin^2(pi (x_i - y_i) / period) / scale_i^2): functions that repeat.

    `period` > 0 is a number or a positive input; `scale` > 0 and `variance` > 0, what is returned, the ModelError and
    the source are as for `squared_exponential` (4.31 there).
    """

    def matrix(x: Points, y: Others, same: bool, period: Numeric, scale: Numeric, variance: Numeric) -> Matrix:
        wave = jnp.sin(jnp.pi * (x[:, None, :] - y[None, :, :]) / period) / scale
        return variance * jnp.exp(-2.0 * jnp.sum(wave * wave, axis=-1))

    return _stationary("periodic", matrix, period=period, scale=scale, variance=variance)


@call_checked
def linear(variance: Argument = 1.0, scale: Argument = 1.0) -> Kernel:
    """variance * sum_i x_i y_i / scale_i^2: linear functions through the origin (add `constant` for others).

    `scale` > 0 and `variance` > 0, what is returned, the ModelError and the source are as for `squared_exponential`
    (4.2.2 there).
    """

    def matrix(x: Points, y: Others, same: bool, variance: Numeric, scale: Numeric) -> Matrix:
        return variance * ((x / scale) @ (y / scale).T)

    def diagonal(x: Points, variance: Numeric, scale: Numeric) -> Float[Array, " point"]:
        return variance * jnp.sum((x / scale) ** 2, axis=-1)

    own = {"variance": _checked("linear", "variance", variance), "scale": _checked("linear", "scale", scale)}
    return Kernel("linear", own, matrix, diagonal)


@call_checked
def constant(variance: Argument = 1.0) -> Kernel:
    """variance: functions that are constant, N(0, variance).

    `variance` > 0, what is returned, the ModelError and the source are as for `squared_exponential` (4.2 there).
    """

    def matrix(x: Points, y: Others, same: bool, variance: Numeric) -> Matrix:
        return jnp.broadcast_to(variance, (x.shape[0], y.shape[0]))

    return _stationary("constant", matrix, variance=variance)


@call_checked
def white(variance: Argument = 1.0) -> Kernel:
    """variance where both points are one and the same element, else 0: independent noise that is part of the function.

    Two elements at one place have noise of their own. `variance` > 0, what is returned, the ModelError and the source
    are as for `squared_exponential` (2.20 there).
    """

    def matrix(x: Points, y: Others, same: bool, variance: Numeric) -> Matrix:
        return variance * jnp.eye(x.shape[0]) if same else jnp.zeros((x.shape[0], y.shape[0]))

    return _stationary("white", matrix, variance=variance)


def _checked(kernel: str, name: str, value: Argument) -> Argument:
    """Numbers are checked here, expressions by their domain where the kernel is used."""
    if hasattr(value, "domain"):
        return value
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"kernels.{kernel}: {name} is {value!r}. Give a positive number, an array or an input of the model."
        ) from error
    if array.ndim > 1 or not array.size or not np.all(np.isfinite(array)) or not np.all(array > 0):
        raise ModelError(f"kernels.{kernel}: {name} must be positive and finite; found {value!r}. Give {name} > 0.")
    if array.ndim == 1 and name != "scale":
        raise ModelError(
            f"kernels.{kernel}: {name} is one number; found {len(array)}. Only scale may differ by coordinate."
        )
    return array

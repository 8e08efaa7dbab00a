"""A few random numbers together, as a cloud: weighted cases, in each of which some are points and the rest Gaussian.

This is the one form in which an expression reads the joint distribution of what it is made of: the states and the
quadrature nodes of a tilted distribution are cases, what is Gaussian given these keeps its covariances, and a Gaussian
with all covariances is a single case. Numbers go by a key (see `parts.py`); arrays begin with an axis of instances.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import operator
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...factors.arrays import Array

NumberKey: TypeAlias = str  # of a scalar random number: the same for every way to write it
Weights: TypeAlias = Float[Array, "instances cases"]  # of cases or values of a number in these, or the logarithms
Means: TypeAlias = Float[Array, "instances cases k"]
Covariances: TypeAlias = Float[Array, "instances cases k k"]

_HERMITE = {0: 1, 1: 61, 2: 21, 3: 11}  # nodes by dimension; above these a rule of degree three
PAIRS, FEWEST_PAIRS, ALL_PAIRS = 2048, 128, 2**20  # of opposite points, in a case and in all of them
SCATTERED = 4181  # points of a lattice in two dimensions or more
_LATTICE = {0: 1, 1: 2001, 2: SCATTERED}  # points for what jumps, by dimension; the last serves all higher ones


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["log_weights", "points", "mean", "covariance"],
    meta_fields=["names"],
)
@dataclasses.dataclass(frozen=True)
class Cloud:
    """Cases with weights: in each a point for the numbers in `points`, and a Gaussian of the k numbers in `names`."""

    log_weights: Weights
    points: dict[NumberKey, Weights]
    names: tuple[NumberKey, ...]
    mean: Means
    covariance: Covariances

    @property
    def cases(self) -> int:
        """How many cases there are."""
        return self.log_weights.shape[1]


def of_points(points: dict[NumberKey, Weights], log_weights: Weights) -> Cloud:
    """A cloud of points alone; their arrays may lack what they do not vary over."""
    shape = log_weights.shape
    points = {key: jnp.broadcast_to(values, shape) for key, values in points.items()}
    return Cloud(log_weights, points, (), jnp.zeros((*shape, 0)), jnp.zeros((*shape, 0, 0)))


def of_gaussian(
    names: tuple[NumberKey, ...], mean: Float[Array, "instances k"], covariance: Float[Array, "instances k k"]
) -> Cloud:
    """One Gaussian over the k numbers `names`: a single case."""
    return Cloud(jnp.zeros((mean.shape[0], 1)), {}, names, mean[:, None], covariance[:, None])


def along_a_line(
    names: tuple[NumberKey, ...],
    mean: Float[Array, "instances k_and_last"],
    covariance: Float[Array, "instances k_and_last k_and_last"],
    line: Cloud,
) -> Cloud:
    """One Gaussian over `names` and a last number, which has the distribution of `line` in place of its own."""
    variance = covariance[:, -1, -1, None]
    gain = covariance[:, :-1, -1] / variance
    moved = gain[:, None] * (line.mean - mean[:, None, -1:])
    outer = gain[:, :, None] * gain[:, None, :]
    left = covariance[:, :-1, :-1] - variance[..., None] * outer
    return Cloud(
        line.log_weights, {}, names, mean[:, None, :-1] + moved, left[:, None] + line.covariance * outer[:, None]
    )


def product(first: Cloud, second: Cloud) -> Cloud:
    """Two clouds that are independent: all pairs of their cases."""
    instances, cases = max(first.log_weights.shape[0], second.log_weights.shape[0]), first.cases * second.cases

    def pair(a: Array, b: Array) -> tuple[Array, Array]:
        left = jnp.broadcast_to(a[:, :, None], (instances, first.cases, second.cases, *a.shape[2:]))
        right = jnp.broadcast_to(b[:, None], (instances, first.cases, second.cases, *b.shape[2:]))
        return left.reshape((instances, cases, *a.shape[2:])), right.reshape((instances, cases, *b.shape[2:]))

    points = {key: pair(values, second.log_weights)[0] for key, values in first.points.items()}
    points |= {key: pair(first.log_weights, values)[1] for key, values in second.points.items()}
    k, m = len(first.names), len(second.names)
    upper, lower = pair(first.covariance, second.covariance)
    covariance = jnp.zeros((instances, cases, k + m, k + m))
    covariance = covariance.at[..., :k, :k].set(upper).at[..., k:, k:].set(lower)
    return Cloud(
        operator.add(*pair(first.log_weights, second.log_weights)),
        points,
        (*first.names, *second.names),
        jnp.concatenate(pair(first.mean, second.mean), axis=-1),
        covariance,
    )


def joined(parts: list[Cloud]) -> Cloud:
    """The cases of several clouds of the same numbers, one after the other."""
    first = parts[0]
    return Cloud(
        jnp.concatenate([part.log_weights for part in parts], axis=1),
        {key: jnp.concatenate([part.points[key] for part in parts], axis=1) for key in first.points},
        first.names,
        jnp.concatenate([part.mean for part in parts], axis=1),
        jnp.concatenate([part.covariance for part in parts], axis=1),
    )


def gaussian_of(cloud: Cloud) -> tuple[Float[Array, "instances k"], Float[Array, "instances k k"]]:
    """Mean and covariance of a cloud without points over its cases."""
    weights = jax.nn.softmax(cloud.log_weights, axis=1)
    mean = jnp.einsum("nc,nci->ni", weights, cloud.mean)
    away = cloud.mean - mean[:, None]
    second = cloud.covariance + away[..., :, None] * away[..., None, :]
    return mean, jnp.einsum("nc,ncij->nij", weights, second)


def multiplied(cloud: Cloud, shift: Float[Array, "instances k"], precision: Float[Array, "instances k k"]) -> Cloud:
    """The cloud times exp(shift . x - x . precision . x / 2) of its Gaussian numbers; itself where that is improper."""
    k = len(cloud.names)
    inner = jnp.eye(k) + jnp.einsum("nij,ncjk->ncik", precision, cloud.covariance)
    sign, log_det = jnp.linalg.slogdet(inner)
    covariance = jnp.linalg.solve(jnp.swapaxes(inner, -1, -2), cloud.covariance)  # C (I + P C)^-1, both symmetric
    pull = shift[:, None] - jnp.einsum("nij,ncj->nci", precision, cloud.mean)
    moved = jnp.einsum("ncij,ncj->nci", covariance, pull)
    gain = jnp.sum(cloud.mean * (shift[:, None] + pull), axis=-1) + jnp.sum(pull * moved, axis=-1)
    sound = (jnp.all(sign > 0, axis=1) & jnp.all(jnp.isfinite(gain), axis=1))[:, None]
    return dataclasses.replace(
        cloud,
        log_weights=cloud.log_weights + jnp.where(sound, 0.5 * (gain - log_det), 0.0),
        mean=jnp.where(sound[..., None], cloud.mean + moved, cloud.mean),
        covariance=jnp.where(sound[..., None, None], covariance, cloud.covariance),
    )


class Values(NamedTuple):
    """Values of the numbers by key, and weights that sum to one for each instance; there are nodes within a case."""

    weights: Float[Array, "instances cases nodes"]
    at: dict[NumberKey, Float[Array, "instances cases nodes"]]


class Form(enum.Enum):
    """What is known of a function of the Gaussian numbers, which decides at which points of them it is evaluated."""

    LINEAR = "a polynomial of degree one, whose square a rule of degree three integrates"
    SMOOTH = "a smooth function"
    BENT = "one with kinks"
    JUMPS = "one with jumps"


def spread(cloud: Cloud, form: Form = Form.LINEAR) -> Values:
    """The cloud as points: the Gaussians at nodes that suit the form of the function."""
    nodes, inside = _nodes(len(cloud.names), cloud.cases, form)
    weights = jax.nn.softmax(cloud.log_weights, axis=1)[..., None] * inside
    moved = jnp.einsum("ncij,qj->ncqi", root_of(cloud.covariance), nodes)
    values = cloud.mean[:, :, None, :] + moved
    at = {key: values[:, :, None] for key, values in cloud.points.items()}
    return Values(weights, {**at, **{key: values[..., i] for i, key in enumerate(cloud.names)}})


def scattered(cloud: Cloud) -> Values:
    """The cloud as points of equal weight, as one case: a lattice over the cases, in their order, and the Gaussians."""
    nodes, shares = _lattice(1 + max(1, len(cloud.names)))
    ends = jnp.cumsum(jax.nn.softmax(cloud.log_weights, axis=1), axis=1)
    level = jax.scipy.special.ndtr(nodes[:, -1])
    case = jax.vmap(lambda end: jnp.searchsorted(end, level * end[-1]))(ends)
    case = jnp.minimum(case, cloud.cases - 1)

    def chosen(array: Array) -> Array:
        return jax.vmap(lambda cases, at: cases[at])(array, case)

    inside = nodes[:, : len(cloud.names)]
    values = chosen(cloud.mean) + jnp.einsum("nqij,qj->nqi", chosen(root_of(cloud.covariance)), inside)
    at = {key: chosen(points)[:, None] for key, points in cloud.points.items()}
    at |= {key: values[:, None, :, i] for i, key in enumerate(cloud.names)}
    return Values(jnp.broadcast_to(shares, (values.shape[0], 1, len(shares))), at)


def nodes_in(cloud: Cloud, form: Form) -> int:
    """How many nodes `spread` takes within a case."""
    return len(_nodes(len(cloud.names), cloud.cases, form)[1])


def _nodes(k: int, cases: int, form: Form) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (q, k) of k standard normal numbers, and weights."""
    if form is Form.JUMPS:
        return _lattice(k)
    if form is Form.LINEAR or (form is Form.SMOOTH and k in _HERMITE) or k < 3:
        return _hermite(k)
    return _even(k, max(FEWEST_PAIRS, min(PAIRS, ALL_PAIRS // cases)))


@functools.cache
def _even(k: int, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of a lattice and their opposites, of unit covariance: exact for polynomials of degree three, too."""
    points = _lattice(k, max(pairs, 8 * k))[0]
    points = np.concatenate([points, -points])
    points = points @ np.linalg.inv(np.linalg.cholesky(points.T @ points / len(points))).T
    return points, np.full(len(points), 1.0 / len(points))


def _hermite(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (q, k) and weights of standard normal numbers."""
    if k not in _HERMITE:  # exact for polynomials of degree three
        nodes = np.sqrt(k) * np.concatenate([np.eye(k), -np.eye(k)])
        return nodes, np.full(2 * k, 0.5 / k)
    x, w = np.polynomial.hermite_e.hermegauss(_HERMITE[k]) if k else (np.zeros(1), np.ones(1))
    grid = np.stack(np.meshgrid(*[x] * k, indexing="ij"), axis=-1).reshape(-1, k) if k else np.zeros((1, 0))
    weights = np.prod(np.stack(np.meshgrid(*[w] * k, indexing="ij")), axis=0).reshape(-1) if k else np.ones(1)
    return grid, weights / weights.sum()


def _lattice(k: int, number: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Points of equal weight: a lattice of good directions, at the quantiles of standard normal numbers."""
    from scipy.special import ndtri

    number = _LATTICE.get(k, _LATTICE[2]) if number is None else number
    places, ratio = np.arange(number)[:, None], _golden(max(k - 1, 0))
    steps = np.concatenate([[1.0 / number], ratio ** -np.arange(1.0, k)])[:k]
    shift = np.sqrt(2.0) * np.arange(1, k + 1) % 1.0 if k > 1 else np.full(k, 0.5 / number)
    inside = (places * steps + shift) % 1.0
    nodes = ndtri(np.clip(inside, 0.5 / number**2, 1.0 - 0.5 / number**2))
    return nodes, np.full(number, 1.0 / number)


def _golden(k: int) -> float:
    """The positive root of x^(k + 1) = x + 1: its inverse powers are steps that fill k dimensions evenly."""
    root = 2.0
    for _ in range(64):
        root = (1.0 + root) ** (1.0 / (k + 1))
    return root


def root_of(covariance: Float[Array, "... k k"]) -> Float[Array, "... k k"]:
    """A lower triangular root of covariances, of which some numbers may have none: they are what the others say."""
    k = covariance.shape[-1]
    scale = jnp.diagonal(covariance, axis1=-2, axis2=-1)
    columns: list[Array] = []
    left = covariance
    for i in range(k):
        pivot = left[..., i, i]
        sound = pivot > 1e-14 * scale[..., i]
        top = jnp.sqrt(jnp.where(sound, pivot, 1.0))
        below = jnp.where(jnp.arange(k) >= i, left[..., :, i] / top[..., None], 0.0)
        column = jnp.where(sound[..., None], below, 0.0)
        columns.append(column)
        left = left - column[..., :, None] * column[..., None, :]
    return jnp.stack(columns, axis=-1) if columns else covariance


def expectation(
    values: Values, function: Callable[[dict[NumberKey, Array]], Array]
) -> tuple[Float[Array, " instances"], Float[Array, " instances"]]:
    """Mean and variance of a function of the numbers, by instance."""
    image = jnp.broadcast_to(jnp.asarray(function(values.at), float), values.weights.shape)
    live = values.weights > 0.0
    image = jnp.where(live, image, 0.0)
    mean = jnp.sum(values.weights * image, axis=(1, 2))
    away = jnp.where(live, image - mean[:, None, None], 0.0)
    return mean, jnp.sum(values.weights * away**2, axis=(1, 2))

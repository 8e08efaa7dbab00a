"""Reference moments of a posterior, drawn from its joint log density: what beliefs are compared with.

A Student distribution around the beliefs, shaped by the curvature of the log density there and adapted to its own
weighted draws, is mixed with the product of the beliefs and weighted (see `psis`). Where that is too coarse the draws
are nested (see `nested`). Source: cornuet2012amis.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...factors.errors import UnsupportedError
from ..answers.marginal import Marginal
from ..density.log_density import LogDensity
from ..distributions.partly_observed import Completed
from ..support.asked_arguments import key_words
from ..support.compiled import Call, compiled
from .psis import GOOD_K, Smoothed, smoothed

LARGEST_DENSE = 200  # coordinates for which the Hessian is formed
ROUNDS = 4
DRAWS = 4000
DERIVED = 200  # points at once that derivatives are taken at
FEWEST = 200.0


Values = dict[str, np.ndarray]  # of the variables, by name, one for each point
Points = Callable[[np.ndarray], np.ndarray]  # of unconstrained vectors, as rows


class Draws(NamedTuple):
    """Draws of the beliefs: constrained values by name, unconstrained vectors, and log q of the latter.

    In `together`, other vectors, what shares a belief is drawn together; None where nothing does.
    """

    values: Values
    z: Float[np.ndarray, "draw coordinate"]
    log_q: Float[np.ndarray, " draw"]
    together: Float[np.ndarray, "draw coordinate"] | None = None


class Reference(NamedTuple):
    """Weighted draws of the posterior; usable when `weighted.k` < 0.7 and enough of them count.

    `log_total` is the logarithm of the integral of the density, as far as the weights tell, and `error` its standard
    error. `annealed` tells that the draws came along a path (see `annealed`): more of them would cost as much again.
    """

    z: Float[np.ndarray, "draw coordinate"]
    weighted: Smoothed
    log_total: float
    error: float
    annealed: bool = False

    @property
    def usable(self) -> bool:
        return self.weighted.k < GOOD_K and self.weighted.effective > FEWEST


class Functions(NamedTuple):
    """The functions of a log density, over many points; each is made ready when it is first called."""

    log_density: Points
    heights: Points
    constrain: Callable[[np.ndarray], Values]
    unconstrain: Callable[[Values], np.ndarray]
    log_jacobian: Points
    gradient: Points  # at one point, like the next two
    hessian: Points
    solve: Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
    curved: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]  # gradients, and rows of Hessians
    states: Callable[[np.ndarray], Values]  # probabilities of the states of discrete variables, given each point


def entries(density: LogDensity) -> int:
    """How many numbers the density is made of: a measure of what one evaluation costs."""
    found = sum(np.size(array) for array in density.contents.data.values()) + density.dimension + density.joint_entries
    return max(found, 1)


def _solver(times):
    """What solves -H x = right for each right-hand side by conjugate gradients; `times` gives H v at a point."""

    def solve(z, right, scale, d):
        def minus(v):
            return -times(z, v, d)

        def one(b):
            x, _ = jax.scipy.sparse.linalg.cg(minus, b, tol=1e-4, maxiter=400, M=lambda v: scale * v)
            return x, jnp.linalg.norm(minus(x) - b) / jnp.maximum(jnp.linalg.norm(b), 1e-300)

        return jax.vmap(one)(right)

    return solve


def functions(density: LogDensity) -> Functions:
    """The log density and its derivatives, with data as arguments."""
    data, size = density.contents.data, entries(density)

    def chunked(what, function):
        # Ten million numbers at a time: draws times entries of the data.
        batch = int(np.clip(1e7 // size, 1, DRAWS))
        call = density.function(what, (batch,), lambda x, d: jax.lax.map(lambda a: function(a, d), x, batch_size=batch))

        def chunk(x, start):
            return jax.tree.map(np.asarray, call(jax.tree.map(lambda a: a[start : start + DRAWS], x), data))

        def many(x):
            parts = [chunk(x, start) for start in range(0, jax.tree.leaves(x)[0].shape[0], DRAWS)]
            return jax.tree.map(lambda *p: np.concatenate(p), *parts)

        return many

    def single(what, function):
        call = density.function(what, (), function)
        return lambda *args: jax.tree.map(np.asarray, call(*args, data))

    def times(z, v, d):
        """The Hessian times a vector."""
        return jax.jvp(lambda x: jax.grad(density.height)(x, d), (z,), (v,))[1]

    def derivatives(z, rows, d):
        """Gradients at the points `z`, and the Hessians times the vectors that are the `rows` of a matrix."""

        def one(a):
            return jax.grad(density.height)(a, d), jax.vmap(lambda row: times(a, row, d))(rows)

        batch = int(np.clip(1e7 // (size * max(len(rows), 1)), 1, len(z)))
        return jax.lax.map(one, z, batch_size=batch)

    derived = density.function("derivatives", (size,), derivatives)

    def curved(z, rows):
        padded = np.concatenate([z, np.repeat(z[-1:], -len(z) % DERIVED, axis=0)])  # one shape: it is traced once
        parts = [derived(padded[at : at + DERIVED], rows, data) for at in range(0, len(padded), DERIVED)]
        return jax.tree.map(lambda *p: np.concatenate(p)[: len(z)], *parts)

    return Functions(
        chunked("densities", density.height),
        single("heights", lambda z, d: jax.vmap(lambda a: density.height(a, d))(z)),
        chunked("constrained", density.coordinates.values),
        chunked("unconstrained", density.coordinates.vector),
        chunked("jacobians", density.coordinates.log_jacobian),
        single("gradient of density", jax.grad(density.height)),
        single("hessian of density", jax.hessian(density.height)),
        single("solved", _solver(times)),
        curved,
        chunked("states", density.states_given),
    )


@functools.lru_cache(maxsize=16)
def _split(number: int) -> Call:
    """The words of so many keys from those of one."""

    def own(words: jax.Array) -> jax.Array:
        return jax.random.key_data(jax.random.split(jax.random.wrap_key_data(words), number))

    return compiled("split", (number,), own)


def belief_draws(
    density: LogDensity,
    call: Functions,
    marginals: Mapping[str, Marginal],
    seed: int,
    count: int = DRAWS,
    restricted: bool = True,
) -> Draws:
    """Draws from the product of the marginals of the latent variables.

    Those outside of the support are replaced where the beliefs are `restricted` to it; else they are refused, since
    `log_q` is that of beliefs as they are.
    """
    keys = np.asarray(_split(max(len(density.names), 1))(key_words(seed)))
    values = {n: marginals[n].sample(key, (count,)) for n, key in zip(density.names, keys, strict=False)}
    z = call.unconstrain(values)
    if not np.isfinite(z).all():
        if not restricted:
            raise UnsupportedError(
                "Some draws of the beliefs lie outside of the support of their variables (bounds that a Gaussian "
                "belief does not know), where no weight is. posterior.trust() compares within the support."
            )
        z = _inside(density, z, seed)
        values = call.constrain(z)
    log_q = np.zeros(count)
    for name, drawn in values.items():
        log_q += _log_belief(marginals[name], drawn).reshape(count, -1).sum(1)
    return Draws(values, z, log_q + call.log_jacobian(z))


def fresh_draws(
    density: LogDensity, call: Functions, marginals: Mapping[str, Marginal], seed: int, count: int = DRAWS
) -> Draws:
    """Draws from a standard Gaussian in unconstrained coordinates: where the beliefs have come to nothing."""
    z = np.random.default_rng(seed).normal(size=(count, density.dimension))
    return Draws(call.constrain(z), z, -0.5 * np.sum(z**2 + np.log(2.0 * np.pi), axis=1))


def _log_belief(marginal: Marginal, drawn: np.ndarray) -> np.ndarray:
    """The log density of a belief, of one that has missing entries only these."""
    family = marginal.family
    if isinstance(family, Completed):
        return np.where(family.missing, Marginal(family.predicted, marginal.name).log_density(drawn), 0.0)
    return marginal.log_density(drawn)


def _inside(density: LogDensity, z: np.ndarray, seed: int) -> np.ndarray:
    """Draws of the beliefs restricted to the support: an element outside is replaced by one of the others inside.

    A Gaussian belief of a variable between bounds has mass beyond them, where unconstrained coordinates are no numbers.
    """
    random, z = np.random.default_rng(seed), np.array(z)
    for name, part in density.slices.items():
        variable = density.model.randoms[name]
        count = int(np.prod(density.shapes[name][: len(variable.plates)]))
        elements = z[:, part].reshape(len(z), count, -1)
        fits: np.ndarray = np.all(np.isfinite(elements), axis=-1)
        for i in np.flatnonzero(~fits.all(0)):
            if not fits[:, i].any():
                raise UnsupportedError(
                    f"No draw of the belief of '{name}' lies inside its support, so there is nothing to compare. "
                    "Try another method, or reparametrise."
                )
            elements[~fits[:, i], i] = random.choice(elements[fits[:, i], i], int(np.sum(~fits[:, i])))
        z[:, part] = elements.reshape(len(z), -1)
    return z


def spread_of(
    precision: Float[np.ndarray, "coordinate coordinate"],
) -> tuple[Float[np.ndarray, "coordinate coordinate"], bool]:
    """The inverse of minus a Hessian, and whether that was positive definite; flat directions are kept finite."""
    if not np.isfinite(precision).all():
        raise UnsupportedError("The log density has no finite second derivatives at the means of the beliefs.")
    values, vectors = np.linalg.eigh(0.5 * (precision + precision.T))
    floor = 1e-10 * max(abs(values).max(), 1e-300)
    proper = bool(values.min() > floor)
    return (vectors / np.maximum(np.abs(values), floor)) @ vectors.T, proper


def centred(call: Functions, z: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " coordinate"]:
    """The point where the density is typical: where beliefs are far off, up the hill by damped Newton steps."""
    for _ in range(30):
        hessian = call.hessian(z)
        if not np.isfinite(hessian).all():
            return z
        covariance, proper = spread_of(-hessian)
        gradient = call.gradient(z)
        step = covariance @ gradient
        if not proper or not np.isfinite(step).all() or gradient @ step < len(z):
            return z
        ladder = z + np.append(0.0, 0.5 ** np.arange(12))[:, None] * step
        heights = call.heights(ladder)
        best = int(np.argmax(np.where(np.isfinite(heights), heights, -np.inf)))
        if best == 0:
            return z
        z = ladder[best]
    return z


def reference(
    call: Functions,
    draws: Draws,
    covariance: Float[np.ndarray, "coordinate coordinate"],
    mean: Float[np.ndarray, " coordinate"],
    seed: int,
    count: int = DRAWS,
) -> Reference:
    """Weighted draws of the posterior: adaptation, then a mixture of the adapted proposal and the beliefs.

    `count` are the draws of each round.
    """
    best, mean, covariance = adapted(call.log_density, covariance, mean, seed, count)
    if not best.usable:  # a mixture of both covers what either misses
        centre, shape = draws.z.mean(0), np.atleast_2d(np.cov(draws.z.T)) + 1e-12 * np.eye(len(mean))
        wide = student(np.random.default_rng((seed, 1)), centre, 1.5 * shape, 5.0, count)
        both = np.concatenate([best.z, wide])
        log_mix = np.logaddexp(
            log_student(both, mean, covariance, 5.0 + len(mean)), log_student(both, centre, 1.5 * shape, 5.0)
        ) - np.log(2.0)
        mixed = weighted(both, call.log_density(both) - log_mix)
        if mixed.weighted.k < best.weighted.k:
            best = mixed
    return best


def around(call: Functions, z: Float[np.ndarray, "draw coordinate"], seed: int, count: int) -> Reference:
    """Weighted draws of a Student distribution with mean and covariance of the points `z`, not adapted to anything.

    In dozens of dimensions adaptation to its own few weights makes a proposal worse that is good already.
    """
    mean, freedom = z.mean(0), 5.0 + z.shape[1]
    covariance = np.atleast_2d(np.cov(z.T)) + 1e-12 * np.eye(len(mean))
    drawn = student(np.random.default_rng(seed), mean, covariance, freedom, count)
    return weighted(drawn, call.log_density(drawn) - log_student(drawn, mean, covariance, freedom))


def adapted(
    log_density: Points,
    covariance: Float[np.ndarray, "coordinate coordinate"],
    mean: Float[np.ndarray, " coordinate"],
    seed: int,
    count: int,
) -> tuple[Reference, Float[np.ndarray, " coordinate"], Float[np.ndarray, "coordinate coordinate"]]:
    """Weighted draws of a Student distribution that was adapted to those before, its mean and its shape."""
    random, dimension = np.random.default_rng(seed), len(mean)
    freedom = 5.0 + dimension
    for _ in range(ROUNDS):
        z = student(random, mean, covariance, freedom, count)
        found = weighted(z, log_density(z) - log_student(z, mean, covariance, freedom)).weighted
        mean_new = found.weights @ z
        gap = z - mean_new
        rate = found.effective / (found.effective + 2.0 * dimension + 10.0)
        covariance = (1.0 - rate) * covariance + rate * (found.weights[:, None] * gap).T @ gap
        mean = (1.0 - rate) * mean + rate * mean_new
    z = student(random, mean, covariance, freedom, count)
    return weighted(z, log_density(z) - log_student(z, mean, covariance, freedom)), mean, covariance


def weighted(z: Float[np.ndarray, "draw coordinate"], log_weights: Float[np.ndarray, " draw"]) -> Reference:
    """Draws with their smoothed weights; a weight that is no number counts nothing."""
    finite = np.where(np.isnan(log_weights), -np.inf, log_weights)
    top = finite.max()
    with np.errstate(divide="ignore"):
        total = top + np.log(np.mean(np.exp(finite - top))) if np.isfinite(top) else -np.inf
    found = smoothed(finite)
    error = np.sqrt(max(1.0 / found.effective - 1.0 / len(z), 0.0)) if found.effective else np.inf
    return Reference(z, found, float(total), float(error))


def student(
    random: np.random.Generator, mean: np.ndarray, covariance: np.ndarray, freedom: float, count: int
) -> np.ndarray:
    """Draws of a Student distribution."""
    return mean + mirrored(random, count, freedom, len(mean)) @ _root(covariance).T


def mirrored(random: np.random.Generator, count: int, freedom: float, dimension: int) -> np.ndarray:
    """Standard draws, each with its mirror image in the second half, which makes means more exact."""
    half = (count + 1) // 2
    scale = np.sqrt(freedom / random.chisquare(freedom, half))
    drawn = scale[:, None] * random.normal(size=(half, dimension))
    return np.concatenate([drawn, -drawn])[:count]


def log_student(z: np.ndarray, mean: np.ndarray, covariance: np.ndarray, freedom: float) -> np.ndarray:
    """Its log density."""
    lower = _root(covariance)
    distance = np.sum(np.linalg.solve(lower, (z - mean).T) ** 2, axis=0)
    return student_height(distance, np.log(np.diagonal(lower)).sum(), freedom, len(mean))


def student_height(distance: np.ndarray, log_scale: np.ndarray | float, freedom: float, dimension: int) -> np.ndarray:
    """The log density at a squared `distance` in units of the scale, whose log determinant is 2 `log_scale`."""
    constant = (
        math.lgamma(0.5 * (freedom + dimension))
        - math.lgamma(0.5 * freedom)
        - 0.5 * dimension * np.log(freedom * np.pi)
    )
    return constant - log_scale - 0.5 * (freedom + dimension) * np.log1p(distance / freedom)


def _root(covariance: np.ndarray) -> np.ndarray:
    jitter = 1e-12 * np.diag(np.diagonal(covariance))
    return np.linalg.cholesky(0.5 * (covariance + covariance.T) + jitter)

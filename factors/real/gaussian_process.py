"""Gaussian processes: a function with a jointly Gaussian prior at all inputs, seen through Gaussian sites.

The prior is f ~ N(0, K). What all other factors say of it is one Gaussian message for each element, exp(h f - p f^2 /
2), whatever the link: this is the form of the solution under EP, and of the best Gaussian belief under VMP. So one
function of (h, p) gives the marginals and log Z, the logarithm of the integral of prior and messages. No covariance is
ever inverted: K may be singular (inputs may coincide), p may be zero, or slightly negative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, NoReturn, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Float, Int, Shaped

from ..arrays import Argument, Array, Key
from ..domains import real
from ..errors import ModelError
from ..factor import Factor, Term, told_with_name
from ..kernels import Kernel, named_parameters
from ..quadrature import HALF_LOG_2PI
from ..roles import Process

Elements: TypeAlias = Float[Array, " element"]
JITTER = 1e-10  # relative to K: added to the covariance of inducing inputs, and the noise of an observed function
LARGEST = 1e14  # of the sum of h^2 / p: beyond it log Z, a difference of such numbers, has no digits behind the point


class Solved(NamedTuple):
    """log Z, and mean and variance of every element."""

    log_z: Float[Array, ""]
    mean: Elements
    variance: Elements


class Dense(NamedTuple):
    """The exact prior: its covariance (n, n). Source rasmussen2006gaussian, algorithms 2.1 and 3.5."""

    covariance: Float[Array, "*plates element element"]

    def solve(self, h: Elements, p: Elements) -> Solved:
        """The posterior under the messages; O(n^3).

        Where a message says more than the prior, mean and variance are what it says less a small part, and not the
        prior's less nearly all of it: so digits are kept at any precision of the messages.
        """
        root, diagonal = _root(p), jnp.diagonal(self.covariance)
        factor = jnp.linalg.cholesky(jnp.eye(len(p)) + root[:, None] * self.covariance * root)
        inverse = solve_triangular(factor, jnp.eye(len(p)), lower=True)
        half = inverse @ (root[:, None] * self.covariance)
        firm = p * diagonal > 1.0
        precision = jnp.where(firm, p, 1.0)
        value, rest = jnp.where(firm, h / precision, 0.0), jnp.where(firm, 0.0, h)
        weight = rest + root * (inverse.T @ (inverse @ (root * (value - self.covariance @ rest))))
        mean = jnp.where(firm, value - weight / precision, self.covariance @ weight)
        loose = diagonal - jnp.sum(half * half, axis=0)
        tight = (1.0 - jnp.sum(inverse * inverse, axis=0)) / precision
        log_z = 0.5 * h @ mean - jnp.sum(jnp.log(jnp.diagonal(factor)))
        found = Solved(_told(log_z, h, value), mean, jnp.where(firm, tight, loose))
        # A message of negative precision takes away what another gave: a second step on what the first left.
        return jax.lax.cond(jnp.any(p < 0.0), lambda: self._less(found, half, h, p), lambda: found)

    def _less(self, found: Solved, half: Float[Array, "element element"], h: Elements, p: Elements) -> Solved:
        left = self.covariance - half.T @ half
        root = _root(-p)
        factor = jnp.linalg.cholesky(jnp.eye(len(p)) - root[:, None] * left * root)
        more = solve_triangular(factor, root[:, None] * left, lower=True)
        mean = found.mean + more.T @ (more @ h)
        log_z = found.log_z + 0.5 * h @ (mean - found.mean) - jnp.sum(jnp.log(jnp.diagonal(factor)))
        return Solved(log_z, mean, found.variance + jnp.sum(more * more, axis=0))

    def log_density(self, values: Elements, present: Shaped[Array, " element"]) -> Float[Array, ""]:
        """log density of observed values where `present`, with the jitter as noise; zero elsewhere."""
        there = present.astype(float)
        apart = self.noise() * there + (1.0 - there)
        factor = jnp.linalg.cholesky(there[:, None] * self.covariance * there + jnp.diag(apart))
        half = solve_triangular(factor, values, lower=True)
        return -0.5 * half @ half - jnp.sum(jnp.log(jnp.diagonal(factor))) - HALF_LOG_2PI * jnp.sum(there)

    def in_order(self, values: Elements) -> Elements:
        """log density of each value given those before it, with the jitter as noise: their sum is the joint one."""
        root = self._root_of_all()
        half = solve_triangular(root, values, lower=True)
        return -0.5 * half**2 - jnp.log(jnp.diagonal(root)) - HALF_LOG_2PI

    def draw(self, key: Key) -> Elements:
        """A function drawn from the prior, with the jitter as noise."""
        return self._root_of_all() @ jax.random.normal(key, self.covariance.shape[:1])

    def _root_of_all(self) -> Float[Array, "element element"]:
        return jnp.linalg.cholesky(self.covariance + self.noise() * jnp.eye(len(self.covariance)))

    def noise(self) -> Float[Array, "*plates"]:
        """The variance that an observed value is seen with: it keeps points that coincide consistent."""
        return JITTER * jnp.mean(jnp.diagonal(self.covariance, axis1=-2, axis2=-1), axis=-1)

    def predict(
        self, h: Elements, p: Elements, cross: Float[Array, "element new"], variance: Float[Array, " new"]
    ) -> tuple[Float[Array, " new"], Float[Array, " new"]]:
        """Mean and variance at new points with covariances `cross` (n, new) to the old ones and prior `variance`."""
        mixed = jnp.eye(len(p)) + p[:, None] * self.covariance
        solved = jnp.linalg.solve(mixed, jnp.concatenate([h[:, None], p[:, None] * cross], axis=1))
        return cross.T @ solved[:, 0], variance - jnp.sum(cross * solved[:, 1:], axis=0)


class Sparse(NamedTuple):
    """The prior with inducing inputs (FITC): f = factor v + e, v ~ N(0, I) of few dimensions, e independent.

    `factor` is K(x, z) L^-T with L L^T = K(z, z), `rest` the variance of e, so that all prior variances are exact. EP
    with this prior is EP with a sparse Gaussian process as approximating family. Source snelson2006sparse,
    qi2010sparse.
    """

    factor: Float[Array, "*plates element inducing"]
    rest: Float[Array, "*plates element"]

    def solve(self, h: Elements, p: Elements) -> Solved:
        """The posterior under the messages; O(n m^2) for m inducing inputs."""
        shrink = 1.0 / (1.0 + self.rest * p)  # what is left of a message seen through e
        lower, mean = self._inner(h * shrink, p * shrink)
        spread = solve_triangular(lower, self.factor.T, lower=True)
        outer = self.factor @ mean
        own = 0.5 * jnp.sum(self.rest * h * h * shrink + jnp.log(shrink))
        log_z = own + 0.5 * (h * shrink) @ outer - jnp.sum(jnp.log(jnp.diagonal(lower)))
        variance = self.rest * shrink + shrink**2 * jnp.sum(spread * spread, axis=0)
        firm = p * (self.rest + jnp.sum(self.factor**2, axis=-1)) > 1.0
        value = jnp.where(firm, h / jnp.where(firm, p, 1.0), 0.0)
        return Solved(_told(log_z, h, value), shrink * (outer + self.rest * h), variance)

    def _inner(self, h: Elements, p: Elements) -> tuple[Float[Array, "inducing inducing"], Float[Array, " inducing"]]:
        """The Cholesky factor of the posterior precision of v, and its mean."""
        precision = jnp.eye(self.factor.shape[1]) + self.factor.T @ (p[:, None] * self.factor)
        lower = jnp.linalg.cholesky(precision)
        half = solve_triangular(lower, self.factor.T @ h, lower=True)
        return lower, solve_triangular(lower.T, half, lower=False)

    def log_density(self, values: Elements, present: Shaped[Array, " element"]) -> Float[Array, ""]:
        """log density of observed values where `present`, with the jitter as noise; zero elsewhere."""
        noise = self.rest + self.noise()
        p = present / noise
        lower, mean = self._inner(values * p, p)
        residual = values - self.factor @ mean
        quadratic = jnp.sum(residual**2 * p) + mean @ mean
        own = jnp.sum(present * (0.5 * jnp.log(noise) + HALF_LOG_2PI))
        return -0.5 * quadratic - own - jnp.sum(jnp.log(jnp.diagonal(lower)))

    def in_order(self, values: Elements) -> Elements:
        """log density of each value given those before it, with the jitter as noise: their sum is the joint one."""

        def step(known: tuple[jax.Array, jax.Array], one: tuple[Array, Array, Array]) -> tuple[tuple, Array]:
            mean, covariance = known
            read, noise, x = one
            along = covariance @ read
            variance, residual = read @ along + noise, x - read @ mean
            gain = along / variance
            log_density = -0.5 * residual**2 / variance - 0.5 * jnp.log(variance) - HALF_LOG_2PI
            return (mean + gain * residual, covariance - jnp.outer(gain, along)), log_density

        size = self.factor.shape[-1]
        before = jnp.zeros(size), jnp.eye(size)
        return jax.lax.scan(step, before, (self.factor, self.rest + self.noise(), values))[1]

    def draw(self, key: Key) -> Elements:
        """A function drawn from the prior, with the jitter as noise."""
        keys = jax.random.split(key)
        common = self.factor @ jax.random.normal(keys[0], self.factor.shape[-1:])
        return common + jnp.sqrt(self.rest + self.noise()) * jax.random.normal(keys[1], self.rest.shape)

    def noise(self) -> Float[Array, "*plates"]:
        """The variance that an observed value is seen with: it keeps points that coincide consistent."""
        return JITTER * jnp.mean(self.rest + jnp.sum(self.factor**2, axis=-1), axis=-1)

    def predict(
        self, h: Elements, p: Elements, cross: Float[Array, "inducing new"], variance: Float[Array, " new"]
    ) -> tuple[Float[Array, " new"], Float[Array, " new"]]:
        """Mean and variance at new points, whose own factor is `cross` transposed."""
        shrink = 1.0 / (1.0 + self.rest * p)
        lower, mean = self._inner(h * shrink, p * shrink)
        spread = solve_triangular(lower, cross, lower=True)
        return cross.T @ mean, variance - jnp.sum(cross * cross, axis=0) + jnp.sum(spread * spread, axis=0)


def _told(log_z: Float[Array, ""], h: Elements, value: Elements) -> Float[Array, ""]:
    """log Z, not a number where nothing of it is known: it stands beside h^2 / p = h value, and loses their digits."""
    return jnp.where(h @ value > LARGEST, jnp.nan, log_z)


def _root(p: Elements) -> Elements:
    """The square root of what is positive, zero elsewhere; its derivative there too, instead of infinity."""
    return jnp.where(p > 0.0, jnp.sqrt(jnp.where(p > 0.0, p, 1.0)), 0.0)


def lower_factor(covariance: Float[Array, "inducing inducing"]) -> Float[Array, "inducing inducing"]:
    """L with L L^T = covariance of the inducing inputs, plus the jitter that lets them coincide."""
    size = len(covariance)
    return jnp.linalg.cholesky(covariance + JITTER * jnp.trace(covariance) / size * jnp.eye(size))


def half_cross(
    lower: Float[Array, "inducing inducing"], cross: Float[Array, "inducing new"]
) -> Float[Array, "inducing new"]:
    """L^-1 K(z, x): the transposed factor of `Sparse` at the points x."""
    return solve_triangular(lower, cross, lower=True)


def spread_out(variance: Elements, column: Callable[[Array], Elements], number: int) -> Int[Array, " number"]:
    """Positions of `number` points, each where the prior variance given those before is largest.

    This is Cholesky with pivots: `column(i)` gives the covariances of all points with point i.
    """

    def step(k, carry):
        left, factor, chosen = carry
        i = jnp.argmax(left)
        own = jnp.maximum(left[i], JITTER * variance[i])
        new = (column(i) - factor @ factor[i]) / jnp.sqrt(own)
        left = (left - new * new).at[i].set(-jnp.inf)
        return left, factor.at[:, k].set(new), chosen.at[k].set(i)

    start = (variance, jnp.zeros((len(variance), number)), jnp.zeros(number, int))
    return jax.lax.fori_loop(0, number, step, start)[2]


def _never(*args: object, **kwargs: object) -> NoReturn:
    raise AssertionError("a process is one block of its own")


_RANDOM = (
    "a Gaussian process needs its inputs and the parameters of its kernel as data; give them as inputs, and choose "
    "them by the gradient of the log evidence"
)


@told_with_name
def gaussian_process(inputs: Argument, kernel: Argument, *, mean: Argument = 0.0, inducing: Argument = None) -> Term:
    """A random function at `inputs`: f ~ N(mean, K), K_ij = kernel(inputs_i, inputs_j), over the plates of `inputs`.

    `inputs`: an input of domain cv.real or cv.vector(d) with at least one plate. `kernel`: one of `cv.kernels`, or sums
    and products of these. `mean`: a number or data. Without `inducing` the prior is exact, for up to about 2,000 points
    (3,000 are the limit: time grows with their cube). `inducing` makes it sparse: an array of inducing inputs, or how
    many of the inputs to use, which are then spread out greedily. Further plates of the variable are independent
    functions. Returns a term for `Model.random`, which raises ModelError for random inputs and anything that is not a
    kernel. Source: rasmussen2006gaussian, snelson2006sparse.
    """
    if not isinstance(kernel, Kernel):
        raise ModelError(
            f"gaussian_process() takes a kernel; found {kernel!r}. Give for example "
            "cv.kernels.squared_exponential(scale=1.0, variance=1.0)."
        )
    if not hasattr(inputs, "domain") and np.asarray(inputs, object).ndim == 0:
        raise ModelError(
            f"gaussian_process(): the inputs are {inputs!r}. Give data over a plate: m.input('x', cv.real, plates=n)."
        )
    values = named_parameters(kernel)
    edges = {"inputs": _kind(inputs, 2, "real"), "mean": "real"}
    edges |= {name: _kind(value, 1, "positive") for name, value in values.items()}
    factor = Factor(
        name="gaussian_process",
        edges=edges,
        out=lambda domains: real,
        log_density=_never,
        expected_log=_never,
        predict=_never,
        unsupported=dict.fromkeys(edges, _RANDOM),
        role=Process(),
        source="rasmussen2006gaussian",
    )
    args = {"inputs": inputs, "mean": mean, **values}
    return Term(factor, args, {"kernel": kernel, "inducing": _checked_inducing(inducing)})


def _kind(value: Argument, axes: int, scalar: str) -> str:
    """The kind of an argument that may be a number or a vector: told by its domain, or an array's number of axes."""
    if hasattr(value, "domain"):
        return "vector" if value.domain.kind == "vector" else scalar
    return "vector" if np.ndim(value) >= axes else scalar


def _checked_inducing(inducing: Argument) -> int | np.integer | np.ndarray | None:
    """None, how many, or an array with one point in each row."""
    if inducing is None or (isinstance(inducing, (int, np.integer)) and inducing > 0):
        return inducing
    try:
        array = np.asarray(inducing, float)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim not in (1, 2) or not array.size or not np.all(np.isfinite(array)):
        raise ModelError(
            f"gaussian_process(): inducing= is {inducing!r}. Give how many inputs to use, or an array of inducing "
            "inputs of shape (m,) or (m, d)."
        )
    return array.reshape(len(array), -1)

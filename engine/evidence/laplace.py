"""Posteriors by Laplace's approximation: a Gaussian about the mode, and weighted draws where it is near enough.

The Gaussian stands in coordinates in which posteriors are nearly Gaussian: a positive number by its cube root, of which
gamma variables, exponential ones among them, are Gaussian to third order. Chains and trees that `integrate` names are
integrated out exactly, so what is left are few numbers that many data tell of. A mode always exists to climb to, which
no scheme of messages promises. Source: tierney1986accurate, wilson1931chisquare.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from ...compiler.language.model import Model
from ...factors.arrays import Array
from ...factors.errors import DataError, UnsupportedError
from ..answers.marginal import Marginal
from ..checks.psis import Smoothed
from ..checks.reference import DRAWS, Reference, adapted, entries, spread_of, student, weighted
from ..density.expressions_at_draws import values_of_expressions
from ..density.log_density import LogDensity, log_density
from ..distributions.weighted_draws import WeightedDraws

CLIMBS, NEWTON = 2000, 60  # steps of the first climb, and of Newton's method after it
AT_ONCE = 16  # rows of a Hessian
ARRIVED = 1e-8  # what the next step of Newton's method would gain, in nats
PROBE, WORTH = 1000, 0.02  # draws that tell whether weights are any use, and the share of them that must count
NEAR = 1e6  # freedom of the Student distribution that is a Gaussian

Vector = Float[np.ndarray, " coordinate"]


@dataclasses.dataclass(frozen=True)
class LaplaceApproximation:
    """A posterior by Laplace's approximation.

    Attributes:
        draws: by name, (draws, plates, event), of all continuous variables that are not integrated out, and of the
            named expressions of them.
        weights: (draws,) their probabilities: equal where they are of the Gaussian itself.
        log_evidence: by the weights where they are usable, else by Laplace's formula.
        error: standard error of the former; NaN of the latter, which does not know its own.
        converged: whether the mode was reached.
        diagnosis: a sentence.
    """

    model: Model
    draws: dict[str, np.ndarray]
    weights: np.ndarray
    log_evidence: float
    error: float
    converged: bool
    diagnosis: str

    def __getitem__(self, name: str) -> Marginal:
        """The marginal of a variable or a named expression."""
        if name not in self.draws:
            raise DataError(f"There are no draws of '{name}'. There are: {', '.join(self.draws)}.")
        node = self.model.randoms.get(name, self.model.lets.get(name))
        assert node is not None
        return Marginal(WeightedDraws(self.draws[name], self.weights, node.domain.kind), name)

    def __repr__(self) -> str:
        return f"<Posterior of {self.model.name!r} by Laplace: {', '.join(self.draws)}; {self.diagnosis}>"


def laplace_approximation(
    model: Model,
    data: Mapping[str, Any],
    sizes: Mapping[str, int] | None = None,
    *,
    integrate: Sequence[str] = (),
    start: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> LaplaceApproximation:
    """The posterior of the continuous variables of a model: Gaussian about its mode, or weighted draws around it.

    Args:
        model: with at most some hundred numbers that are neither data nor integrated out.
        data, sizes, integrate: as of `log_density`: chains and trees of `integrate` are integrated out by messages.
        start: values of variables where the climb begins; by default one for positive ones, zero in unconstrained
            coordinates.
        seed: of the draws.

    Returns:
        `LaplaceApproximation`, also where the mode was not reached: `converged` and `diagnosis` say so.

    Raises:
        DataError, UnsupportedError: as `log_density`; a density that jumps, is not finite where the climb begins, or
            has no finite curvature where it ends, as improper ones.

    Source: tierney1986accurate.
    """
    density = log_density(model, data, sizes, integrate)
    if density.hard:
        raise UnsupportedError(
            f"The constraint '{density.hard[0]}' makes the density jump to zero, and a mode at such an edge has no "
            "Gaussian about it. Give what is compared some noise, or draw with cv.sample."
        )
    with jax.enable_x64(True):
        own = _functions(density)
        mode, arrived = _climbed(density, own, _start(density, start))
        covariance, proper = _spread(own, mode)
        found, is_weighted = _drawn(own, mode, covariance, seed)
        values = own.values(found.z)
        draws = {**values, **values_of_expressions(density, values)}
    converged = arrived and proper
    return LaplaceApproximation(
        model,
        draws,
        found.weighted.weights,
        found.log_total,
        found.error,
        converged,
        _told(converged, is_weighted, found, len(mode)),
    )


class _Functions(NamedTuple):
    """The log density in coordinates that are cube roots of positive numbers: at a point, its slope, at many points."""

    climb: Callable[[Vector], tuple[np.ndarray, np.ndarray]]  # in unconstrained coordinates, with the slope
    slope: Callable[[Vector], tuple[np.ndarray, np.ndarray]]
    hessian: Callable[[Vector], np.ndarray]
    many: Callable[[np.ndarray], np.ndarray]
    values: Callable[[np.ndarray], dict[str, np.ndarray]]
    rooted: Callable[[Vector], Vector]


def _functions(density: LogDensity) -> _Functions:
    roots = _are_roots(density)
    data = density._data

    def height(c: Array, data: Any) -> Array:
        away = jnp.where(roots, jnp.abs(c), 1.0)
        z = jnp.where(roots, 3.0 * jnp.log(away), c)
        found = density._unconstrained(z, data) + jnp.sum(jnp.where(roots, jnp.log(3.0 / away), 0.0))
        inside = jnp.all(jnp.where(roots, c > 0.0, True))
        return jnp.where(inside & jnp.isfinite(found), found, -jnp.inf)

    def hessian(c: Array, data: Any) -> Array:
        slope = jax.grad(height)
        return jax.lax.map(
            lambda v: jax.jvp(lambda x: slope(x, data), (c,), (v,))[1], jnp.eye(len(c)), batch_size=AT_ONCE
        )

    batch = int(np.clip(1e7 // entries(density), 1, DRAWS))
    climb = density.function("climbed", (), jax.value_and_grad(density._unconstrained))
    slope = density.function("laplace slope", (), jax.value_and_grad(height))
    curved = density.function("laplace hessian", (), hessian)
    many = density.function(
        "laplace heights", (batch,), lambda c, d: jax.lax.map(lambda a: height(a, d), c, batch_size=batch)
    )

    constrain = density.function("laplace values", (), jax.vmap(density._constrain, in_axes=(0, None)))

    def values(c: np.ndarray) -> dict[str, np.ndarray]:
        z = np.where(roots, 3.0 * np.log(np.maximum(np.abs(c), 1e-30)), c)  # few draws of a Gaussian are below zero
        return {name: np.asarray(array) for name, array in constrain(z, data).items()}

    return _Functions(
        lambda z: climb(z, data),
        lambda c: slope(c, data),
        lambda c: np.asarray(curved(c, data)),
        lambda c: np.asarray(many(c, data)),
        values,
        lambda z: np.where(roots, np.exp(z / 3.0), z),
    )


def _are_roots(density: LogDensity) -> np.ndarray:
    """(coordinates,) whether each is the logarithm of a positive number."""
    found = np.zeros(density.dimension, bool)
    for name, part in density.slices.items():
        found[part] = density.model.randoms[name].domain.is_positive
    return found


def _start(density: LogDensity, start: Mapping[str, Any] | None) -> Vector:
    z = np.zeros(density.dimension)
    if not start:
        return z
    if unknown := [name for name in start if name not in density.names]:
        raise DataError(f"start= names '{unknown[0]}', which is none of {', '.join(density.names)}.")
    values = {**density.constrain(z), **{name: np.asarray(array, float) for name, array in start.items()}}
    return np.asarray(density.unconstrain(values))


def _climbed(density: LogDensity, own: _Functions, start: Vector) -> tuple[Vector, bool]:
    """The mode, and whether it was reached: by quasi-Newton steps, then by Newton's method where it has curvature."""
    first, _ = own.climb(start)
    if not np.isfinite(first):
        raise UnsupportedError("The log density is not finite where the climb begins. Give start= values that fit.")

    def down(z: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = own.climb(z)
        if not (np.isfinite(value) and np.isfinite(slope).all()):
            return 1e300, np.zeros(len(z))
        return -float(value), -np.asarray(slope)

    z = minimize(down, start, jac=True, method="L-BFGS-B", options={"maxiter": CLIMBS}).x
    c = own.rooted(z)
    for _ in range(NEWTON):
        height, slope = (np.asarray(part) for part in own.slope(c))
        covariance, proper = _spread(own, c)
        step = covariance @ slope
        if proper and slope @ step < ARRIVED:
            return c + step, True
        for size in 0.5 ** np.arange(20):
            if own.slope(c + size * step)[0] > height + 1e-4 * size * (slope @ step):
                c = c + size * step
                break
        else:
            return c, bool(proper and slope @ step < 1e-4)
    return c, False


def _spread(own: _Functions, c: Vector) -> tuple[np.ndarray, bool]:
    """The inverse of minus the Hessian, and whether that was positive definite."""
    hessian = own.hessian(c)
    if not np.isfinite(hessian).all():
        raise UnsupportedError(
            "The climb came to where the log density has no finite curvature: the posterior may be improper, or have "
            "its mode at an edge. Give such variables a prior, or start= values near a mode."
        )
    return spread_of(-hessian)


def _drawn(own: _Functions, mode: Vector, covariance: np.ndarray, seed: int) -> tuple[Reference, bool]:
    """Weighted draws, and true; where the weights would be of no use, draws of the Gaussian and false."""
    random = np.random.default_rng(seed)
    z = student(random, mode, covariance, NEAR, PROBE)
    apart = (z - mode) @ np.linalg.inv(np.linalg.cholesky(covariance)).T
    log_q = -0.5 * np.sum(apart**2, axis=1)
    probe = weighted(z, own.many(z) - log_q).weighted
    if probe.effective > WORTH * PROBE:
        best, _, _ = adapted(own.many, covariance, mode, seed, DRAWS)
        if best.usable:
            return best, True
    z = student(random, mode, covariance, NEAR, DRAWS)
    equal = Smoothed(np.full(len(z), 1.0 / len(z)), -np.inf, float(len(z)))
    log_det = np.linalg.slogdet(2.0 * np.pi * covariance)[1]
    return Reference(z, equal, float(own.slope(mode)[0]) + 0.5 * float(log_det), float("nan")), False


def _told(converged: bool, is_weighted: bool, found: Reference, dimension: int) -> str:
    if not converged:
        return "The mode was not reached, or is none: the density may be improper, or begin elsewhere with start=."
    if is_weighted:
        worth = f"{len(found.z)} draws worth {found.weighted.effective:.0f} independent ones"
        return f"Weighted draws around the mode, {worth} (Pareto k {found.weighted.k:.2f})."
    return f"A Gaussian about the mode in {dimension} coordinates, too many for weights; its own error is not known."

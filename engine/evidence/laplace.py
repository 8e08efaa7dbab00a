"""Posteriors by Laplace's approximation: a Gaussian about the mode, and weighted draws where it is near enough.

The mode and its curvature are found in unconstrained coordinates, where a positive number is a logarithm: a scale and
what it scales then have their mode where the scale's own density is large. The Gaussian stands in coordinates in which
posteriors are more nearly Gaussian, cube roots of positive numbers: a gamma variable whose logarithm has its mode at z
with the variance s there has a cube root that is Gaussian to third order, with mean exp(z / 3) (1 - s / 9) and standard
deviation exp(z / 3) sqrt(s) / 3. Chains and trees that `integrate` names are integrated out exactly, so what is left
are few numbers that many data tell of. A mode always exists to climb to, which no scheme of messages promises. Source:
tierney1986accurate, wilson1931chisquare.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...compiler.language.model import Model
from ...factors.arrays import Array
from ...factors.calls import call_checked, methods_checked
from ...factors.errors import DataError, UnsupportedError
from ...factors.switches import double_precision
from ..answers.marginal import Marginal
from ..checks.psis import Smoothed
from ..checks.reference import DRAWS, ROUNDS, Reference, adapted, entries, student
from ..density.expressions_at_draws import values_of_expressions
from ..density.log_density import LogDensity, log_density
from ..distributions.weighted_draws import WeightedDraws
from ..options import seed_of
from .mode import climbed, first_place, slopes_of

NEARLY = 1e-4  # nats that another step of Newton's may gain at a mode, where rounding lets it gain none
MOST_WORK = 2e9  # numbers that draws may be weighted with
NO_PEAK = (
    "The climb came to where the log density is not curved like a mode: the posterior may be improper, or have its "
    "mode at an edge. Give such variables a prior, or start= values near a mode."
)
NEAR = 1e6  # freedom of the Student distribution that is a Gaussian

Vector = Float[np.ndarray, " coordinate"]


@methods_checked("approximation")
@dataclasses.dataclass(frozen=True)
class LaplaceApproximation:
    """A posterior by Laplace's approximation.

    Attributes:
        model: whose posterior it is.
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


@call_checked
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

    `cv.laplace(model, data, ...)` is the same; of a mean and a scale that is the Laplace distribution.

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
            is not curved like a mode where it ends, as improper ones.

    Source: tierney1986accurate.
    """
    seed, density = seed_of(seed), log_density(model, data, sizes, integrate)
    if density.hard:
        raise UnsupportedError(
            f"The constraint '{density.hard[0]}' makes the density jump to zero, and a mode at such an edge has no "
            "Gaussian about it. Give what is compared some noise, or draw with cv.sample."
        )
    with double_precision():
        own = _functions(density)
        peak = _peak(own, first_place(density, start))
        found, is_weighted = _drawn(own, peak, seed)
        values = own.values(found.z)
        draws = {**values, **values_of_expressions(density, values)}
    return LaplaceApproximation(
        model,
        draws,
        found.weighted.weights,
        found.log_total,
        found.error,
        peak.reached,
        _told(peak.reached, is_weighted, found, len(peak.mode)),
    )


class _Functions(NamedTuple):
    """The log density: in unconstrained coordinates with its slope and curvature, and in rooted ones at many points."""

    slope: Callable[[Vector], tuple[np.ndarray, np.ndarray]]
    hessian: Callable[[Vector], np.ndarray]
    roots: np.ndarray  # (coordinates,) which are cube roots of positive numbers
    many: Callable[[np.ndarray], np.ndarray]
    values: Callable[[np.ndarray], dict[str, np.ndarray]]
    work: float  # numbers that one evaluation is made of


def _functions(density: LogDensity) -> _Functions:
    roots = _are_roots(density)
    data, size = density.contents.data, float(entries(density))

    def height(c: Array, data: Any) -> Array:
        away = jnp.where(roots, jnp.abs(c), 1.0)
        z = jnp.where(roots, 3.0 * jnp.log(away), c)
        found = density.height(z, data) + jnp.sum(jnp.where(roots, jnp.log(3.0 / away), 0.0))
        inside = jnp.all(jnp.where(roots, c > 0.0, True))
        return jnp.where(inside & jnp.isfinite(found), found, -jnp.inf)

    batch = int(np.clip(1e7 // size, 1, DRAWS))
    slope, curved = slopes_of(density, "laplace's", density.height)
    many = density.function(
        "laplace heights", (batch,), lambda c, d: jax.lax.map(lambda a: height(a, d), c, batch_size=batch)
    )
    constrain = density.function("laplace values", (), jax.vmap(density.coordinates.values, in_axes=(0, None)))

    def values(c: np.ndarray) -> dict[str, np.ndarray]:
        z = np.where(roots, 3.0 * np.log(np.maximum(np.abs(c), 1e-30)), c)  # few draws of a Gaussian are below zero
        return {name: np.asarray(array) for name, array in constrain(z, data).items()}

    return _Functions(
        slope,
        curved,
        roots,
        lambda c: np.asarray(many(c, data)),
        values,
        size,
    )


def _are_roots(density: LogDensity) -> np.ndarray:
    """(coordinates,) whether each is the logarithm of a positive number."""
    found = np.zeros(density.dimension, bool)
    for name, part in density.slices.items():
        found[part] = density.model.randoms[name].domain.is_positive
    return found


class _Peak(NamedTuple):
    """The mode, or where the climb ended on the way, in unconstrained coordinates: the height and the spread."""

    mode: Vector
    height: float
    covariance: np.ndarray
    reached: bool

    def log_integral(self, roots: np.ndarray) -> float:
        """Laplace's formula, and for positive numbers what Stirling's formula lacks of their gamma functions."""
        gaussian = self.height + 0.5 * float(np.linalg.slogdet(2.0 * np.pi * self.covariance)[1])
        return gaussian + float(np.sum(np.diagonal(self.covariance)[roots])) / 12.0

    def rooted(self, roots: np.ndarray) -> tuple[Vector, np.ndarray]:
        """Mean and covariance of the Gaussian of cube roots."""
        root = np.exp(np.where(roots, self.mode, 0.0) / 3.0)
        mean = np.where(roots, root * (1.0 - np.diagonal(self.covariance) / 9.0), self.mode)
        scale = np.where(roots, root / 3.0, 1.0)
        return mean, self.covariance * np.outer(scale, scale)


def _peak(own: _Functions, start: Vector) -> _Peak:
    """Where the climb ends; UnsupportedError where nothing there is curved like a mode."""
    end = climbed(own.slope, own.hessian, start)
    if not end.proper:
        raise UnsupportedError(NO_PEAK)
    return _Peak(end.place, end.height, end.covariance, end.gain < NEARLY)


def _drawn(own: _Functions, peak: _Peak, seed: int) -> tuple[Reference, bool]:
    """Weighted draws, and true; where they would be of no use, draws of the Gaussian and false."""
    mean, covariance = peak.rooted(own.roots)
    if own.work * DRAWS * (ROUNDS + 1) <= MOST_WORK:
        best, _, _ = adapted(own.many, covariance, mean, seed, DRAWS)
        if best.usable:
            return best, True
    z = student(np.random.default_rng(seed), mean, covariance, NEAR, DRAWS)
    equal = Smoothed(np.full(len(z), 1.0 / len(z)), -np.inf, float(len(z)))
    return Reference(z, equal, peak.log_integral(own.roots), float("nan")), False


def _told(converged: bool, is_weighted: bool, found: Reference, dimension: int) -> str:
    if not converged:
        return "The mode was not reached, or is none: the density may be improper, or begin elsewhere with start=."
    if is_weighted:
        worth = f"{len(found.z)} draws worth {found.weighted.effective:.0f} independent ones"
        return f"Weighted draws around the mode, {worth} (Pareto k {found.weighted.k:.2f})."
    return f"A Gaussian about the mode in {dimension} coordinates, too many for weights; its own error is not known."

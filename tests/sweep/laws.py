"""Mean, variance and distribution function of every term given its arguments, in plain NumPy and SciPy.

What an unobserved child is predicted to be, averaged by the oracle over the posterior of its parents.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp
from densities import a_b, concentration_of, mass_of_gamma, shape_rate, wrapped
from scipy import stats


@dataclasses.dataclass(frozen=True)
class Law:
    """Of one term: element by element over the plates, then the axes of a value.

    The mean of a boolean is P(true), that of a category its probabilities; `cdf` is None where there is no order.
    """

    mean: np.ndarray
    variance: np.ndarray
    cdf: Callable[[np.ndarray], np.ndarray] | None = None


def _located(distribution: Any, mean: Any, scale: Any, variance: Any) -> Law:
    return Law(mean + 0.0 * scale, variance + 0.0 * mean, lambda q: distribution.cdf((q - mean) / scale))


def _gaussian(mean, variance=None, precision=None, sd=None) -> Law:
    variance = variance if variance is not None else 1.0 / precision if precision is not None else sd**2
    return _located(stats.norm, mean, np.sqrt(variance), variance)


def _truncated_gaussian(mean, variance, low, high) -> Law:
    sd = np.sqrt(variance)
    a, b = (low - mean) / sd, (high - mean) / sd
    upper = a > 0  # from whichever tail keeps the digits
    mass = np.where(upper, sp.ndtr(-a) - sp.ndtr(-b), sp.ndtr(b) - sp.ndtr(a))
    at_a, at_b = stats.norm.pdf(a) / mass, stats.norm.pdf(b) / mass
    edge_a, edge_b = (np.where(np.isfinite(e), e, 0.0) * d for e, d in ((a, at_a), (b, at_b)))
    shift = at_a - at_b

    def cdf(q):
        z = np.clip((q - mean) / sd, a, b)
        return np.where(upper, sp.ndtr(-a) - sp.ndtr(-z), sp.ndtr(z) - sp.ndtr(a)) / mass

    return Law(mean + sd * shift, variance * (1.0 + edge_a - edge_b - shift**2), cdf)


def _student_t(dof, mean, scale) -> Law:
    variance = np.where(dof > 2, scale**2 * dof / np.maximum(dof - 2, 1e-9), np.inf)
    return Law(mean + 0.0 * scale, variance + 0.0 * mean, lambda q: stats.t.cdf((q - mean) / scale, dof))


def _uniform(low, high) -> Law:
    return Law(0.5 * (low + high), (high - low) ** 2 / 12.0, lambda q: np.clip((q - low) / (high - low), 0.0, 1.0))


def _gamma(**args) -> Law:
    shape, rate = shape_rate(**args)
    return Law(shape / rate, shape / rate**2, lambda q: sp.gammainc(shape, rate * np.maximum(q, 0.0)))


def _truncated_gamma(shape, rate, low, high) -> Law:
    mass = mass_of_gamma(shape, rate, low, high)
    mean = shape / rate * mass_of_gamma(shape + 1, rate, low, high) / mass
    square = shape * (shape + 1) / rate**2 * mass_of_gamma(shape + 2, rate, low, high) / mass
    return Law(mean, square - mean**2, lambda q: mass_of_gamma(shape, rate, low, np.clip(q, low, high)) / mass)


def _log_normal(mean, variance) -> Law:
    centre = np.exp(mean + 0.5 * variance)
    spread = np.expm1(variance) * centre**2
    return Law(centre, spread, lambda q: sp.ndtr((np.log(np.maximum(q, 1e-300)) - mean) / np.sqrt(variance)))


def _half_cauchy(scale) -> Law:
    infinite = np.full_like(scale, np.inf)
    return Law(infinite, infinite, lambda q: 2.0 / np.pi * np.arctan(np.maximum(q, 0.0) / scale))


def _half_normal(scale) -> Law:
    root = np.sqrt(2.0 / np.pi)
    return Law(scale * root, scale**2 * (1.0 - 2.0 / np.pi), lambda q: sp.erf(np.maximum(q, 0.0) / scale / np.sqrt(2)))


def _beta(**args) -> Law:
    a, b = a_b(**args)
    total = a + b
    variance = a * b / total**2 / (total + 1.0)
    return Law(a / total, variance, lambda q: sp.betainc(a, b, np.clip(q, 0.0, 1.0)))


def _bernoulli(p) -> Law:
    return Law(p, p * (1.0 - p))


def _categorical(p) -> Law:
    return Law(p, p * (1.0 - p))


def _ordered(cdf):
    def law(score, cutpoints) -> Law:
        below = cdf(cutpoints - score[..., None])
        ends = np.zeros((*below.shape[:-1], 1))
        return _categorical(np.diff(np.concatenate([ends, below, ends + 1.0], -1), axis=-1))

    return law


def _dirichlet(**args) -> Law:
    c = concentration_of(**args)
    total = c.sum(-1, keepdims=True)
    return Law(c / total, c * (total - c) / total**2 / (total + 1.0))


def _vector_gaussian(mean, covariance=None, precision=None) -> Law:
    c = np.linalg.inv(precision) if covariance is None else covariance
    variance = np.diagonal(c, axis1=-2, axis2=-1)
    return Law(mean + 0.0 * variance, variance + 0.0 * mean)


def _negative_binomial(mean=None, dispersion=None, successes=None, probability=None) -> Law:
    if mean is None:
        mean, dispersion = successes * (1.0 - probability) / probability, successes
    return Law(mean, mean + mean**2 / dispersion)


def _multinomial(n, p) -> Law:
    return Law(n[..., None] * p, n[..., None] * p * (1.0 - p))


def _dirichlet_multinomial(n, **args) -> Law:
    law = _dirichlet(**args)
    total = concentration_of(**args).sum(-1, keepdims=True)
    n = n[..., None]
    return Law(n * law.mean, n * (n + total) * law.variance)


def _weibull(shape, scale) -> Law:
    first, second = (scale**k * sp.gamma(1.0 + k / shape) for k in (1, 2))
    return Law(first, second - first**2, lambda q: -np.expm1(-((np.maximum(q, 0.0) / scale) ** shape)))


def _cauchy(location, scale) -> Law:
    infinite = np.inf + 0.0 * location * scale
    return Law(np.nan * infinite, infinite, lambda q: stats.cauchy.cdf(q, location, scale))


def _skew_normal(location, scale, skew) -> Law:
    lean = np.sqrt(2.0 / np.pi) * skew / np.sqrt(1.0 + skew**2)
    law = location + scale * lean, scale**2 * (1.0 - lean**2) + 0.0 * location
    return Law(*law, lambda q: stats.skewnorm.cdf(q, skew, location, scale))


def _exponential(rate=None, mean=None) -> Law:
    mean = 1.0 / rate if mean is None else mean
    return Law(mean, mean**2, lambda q: -np.expm1(-np.maximum(q, 0.0) / mean))


def _inverse_gamma(shape, scale) -> Law:
    mean = scale / (shape - 1.0)
    return Law(mean, mean**2 / (shape - 2.0), lambda q: sp.gammaincc(shape, scale / np.maximum(q, 1e-300)))


def _inverse_gaussian(mean, shape) -> Law:
    return Law(mean + 0.0 * shape, mean**3 / shape, lambda q: stats.invgauss.cdf(q, mean / shape, scale=shape))


def _half_student_t(dof, scale) -> Law:
    mean = (
        2.0 * scale * np.sqrt(dof / np.pi) * np.exp(sp.gammaln(0.5 * dof + 0.5) - sp.gammaln(0.5 * dof)) / (dof - 1.0)
    )
    return Law(
        mean, scale**2 * dof / (dof - 2.0) - mean**2, lambda q: 2.0 * stats.t.cdf(np.maximum(q, 0.0) / scale, dof) - 1.0
    )


_SCORES, _SHARES = np.polynomial.hermite_e.hermegauss(80)


def _logit_normal(mean, variance=None, precision=None, sd=None) -> Law:
    sd = np.sqrt(variance) if variance is not None else 1.0 / np.sqrt(precision) if precision is not None else sd
    values = sp.expit(mean[..., None] + sd[..., None] * _SCORES)
    shares = _SHARES / _SHARES.sum()
    first = values @ shares
    inside = lambda q: np.clip(q, 1e-15, 1.0 - 1e-15)  # noqa: E731
    return Law(first, (values - first[..., None]) ** 2 @ shares, lambda q: sp.ndtr((sp.logit(inside(q)) - mean) / sd))


_ANGLES = np.pi * (2.0 * (np.arange(2000) + 0.5) / 2000 - 1.0)


def _von_mises(mean, concentration) -> Law:
    """In (-pi, pi], by the midpoint rule; its distribution function is SciPy's, which runs on beyond the circle."""
    centre, concentration = np.broadcast_arrays(wrapped(mean), concentration)

    def moments(c, k):
        mass = np.exp(k * (np.cos(_ANGLES - c) - 1.0))
        mass = mass / mass.sum()
        first = mass @ _ANGLES
        return first, mass @ (_ANGLES - first) ** 2

    first, second = np.array([moments(c, k) for c, k in zip(centre.flat, concentration.flat, strict=True)]).T
    start = stats.vonmises.cdf(-np.pi, concentration, loc=centre)

    def cdf(q):
        return stats.vonmises.cdf(np.clip(q, -np.pi, np.pi), concentration, loc=centre) - start

    return Law(first.reshape(centre.shape), second.reshape(centre.shape), cdf)


def _spike_and_slab(probability, **scale) -> Law:
    slab = _gaussian(0.0 * probability, **scale)
    assert slab.cdf is not None
    inside = slab.cdf
    return Law(
        0.0 * slab.variance,
        probability * slab.variance,
        lambda q: probability * inside(q) + (1.0 - probability) * np.where(q > 0, 1.0, np.where(q < 0, 0.0, 0.5)),
    )


def _wishart(dof, scale) -> Law:
    diagonal = np.diagonal(scale, axis1=-2, axis2=-1)
    n = dof[..., None, None]
    return Law(n * scale, n * (scale**2 + diagonal[..., :, None] * diagonal[..., None, :]))


def _discrete_uniform(size) -> Law:
    return _categorical(np.full((1, 1, 1, 1, int(size.ravel()[0])), 1.0 / float(size.ravel()[0])))


LAW: dict[str, Callable[..., Law]] = {
    "gaussian": _gaussian,
    "truncated_gaussian": _truncated_gaussian,
    "student_t": _student_t,
    "laplace": lambda mean, scale: _located(stats.laplace, mean, scale, 2.0 * scale**2),
    "uniform": _uniform,
    "gamma": _gamma,
    "truncated_gamma": _truncated_gamma,
    "log_normal": _log_normal,
    "half_cauchy": _half_cauchy,
    "half_normal": _half_normal,
    "beta": _beta,
    "bernoulli": _bernoulli,
    "categorical": _categorical,
    "discrete_uniform": _discrete_uniform,
    "dirichlet": _dirichlet,
    "vector_gaussian": _vector_gaussian,
    "poisson": lambda rate: Law(rate, rate),
    "binomial": lambda n, p: Law(n * p, n * p * (1.0 - p)),
    "negative_binomial": _negative_binomial,
    "multinomial": _multinomial,
    "dirichlet_multinomial": _dirichlet_multinomial,
    "von_mises": _von_mises,
    "weibull": _weibull,
    "cauchy": _cauchy,
    "skew_normal": _skew_normal,
    "exponential": _exponential,
    "inverse_gamma": _inverse_gamma,
    "inverse_gaussian": _inverse_gaussian,
    "half_student_t": _half_student_t,
    "logit_normal": _logit_normal,
    "wishart": _wishart,
    "ordered_probit": _ordered(sp.ndtr),
    "ordered_logistic": _ordered(sp.expit),
    "between": lambda value, low, high: _bernoulli(((value > low) & (value < high)).astype(float)),
    "spike_and_slab": _spike_and_slab,
    "own_logistic": lambda mean, scale: _located(stats.logistic, mean, scale, scale**2 * np.pi**2 / 3.0),
    "own_waiting": lambda rate: Law(1.0 / rate, 1.0 / rate**2, lambda q: -np.expm1(-rate * np.maximum(q, 0.0))),
    "own_agreement": lambda other: _bernoulli(np.where(other > 0.5, sp.expit(1.1), sp.expit(-1.1))),
}


def mixed(choice: np.ndarray, cases: list[Law]) -> Law:
    """The law of a switch whose case is known at every point."""

    def chosen(parts: list[Any]) -> np.ndarray:
        widest = max(np.ndim(part) for part in parts)
        index = choice if widest == np.ndim(choice) else choice[..., None]
        return sum(np.where(index == i, part, 0.0) for i, part in enumerate(parts))  # type: ignore[return-value]

    functions = [case.cdf for case in cases]
    cdf = None if any(f is None for f in functions) else lambda q: chosen([f(q) for f in functions])  # type: ignore[misc]
    return Law(chosen([case.mean for case in cases]), chosen([case.variance for case in cases]), cdf)

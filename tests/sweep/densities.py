"""Log densities and draws of the vocabulary in plain NumPy and SciPy, written apart from the engine."""

from __future__ import annotations

import numpy as np
import scipy.special as sp
from scipy import stats


def _variance(variance=None, precision=None, sd=None):
    return variance if variance is not None else 1.0 / precision if precision is not None else sd**2


def _gaussian(out, mean, **scale):
    return stats.norm.logpdf(out, mean, np.sqrt(_variance(**scale)))


def _truncated_gaussian(out, mean, variance, low, high):
    sd = np.sqrt(variance)
    a, b = (low - mean) / sd, (high - mean) / sd
    mass = np.where(a > 0, sp.ndtr(-a) - sp.ndtr(-b), sp.ndtr(b) - sp.ndtr(a))
    return np.where((out >= low) & (out <= high), stats.norm.logpdf(out, mean, sd) - np.log(mass), -np.inf)


def _vector_gaussian(out, mean, covariance):
    c = covariance.reshape(covariance.shape[-2:])
    gap = out - mean
    return -0.5 * np.einsum("...i,ij,...j", gap, np.linalg.inv(c), gap) - 0.5 * np.linalg.slogdet(2 * np.pi * c)[1]


def _pick(p, out):
    """p[..., out], plates lined up."""
    out = out.astype(int)
    shape = np.broadcast_shapes(p.shape[:-1], out.shape)
    return np.take_along_axis(np.broadcast_to(p, (*shape, p.shape[-1])), np.broadcast_to(out, shape)[..., None], -1)[
        ..., 0
    ]


def _bernoulli(out, p):
    with np.errstate(divide="ignore"):
        return np.where(out > 0.5, np.log(p), np.log1p(-p))


def _ordered(cdf):
    def log_density(out, score, cutpoints):
        below = cdf(cutpoints - score[..., None])
        edges = np.concatenate([np.zeros((*below.shape[:-1], 1)), below, np.ones((*below.shape[:-1], 1))], -1)
        return np.log(_pick(np.maximum(np.diff(edges, axis=-1), 1e-300), out))

    return log_density


def _draw_ordered(cdf):
    def draw(rng, shape, score, cutpoints):
        return (rng.random(shape)[..., None] > cdf(cutpoints - score[..., None])).sum(-1).astype(float)

    return draw


def _successes(mean=None, dispersion=None, successes=None, probability=None):
    return (dispersion, dispersion / (dispersion + mean)) if mean is not None else (successes, probability)


def _draw_category(rng, shape, p):
    return (rng.random(shape)[..., None] > np.cumsum(p, -1)[..., :-1]).sum(-1).astype(float)


def _draw_truncated(rng, shape, mean, variance, low, high):
    sd = np.sqrt(variance)
    a, b = sp.ndtr((low - mean) / sd), sp.ndtr((high - mean) / sd)
    return np.clip(mean + sd * sp.ndtri(a + (b - a) * rng.random(shape)), low, high)


def _draw_negative_binomial(rng, shape, **args):
    successes, probability = _successes(**args)
    rate = rng.gamma(successes, (1.0 - probability) / probability, shape)
    return rng.poisson(np.minimum(rate, 1e6), shape).astype(float)


LOG = {
    "gaussian": _gaussian,
    "truncated_gaussian": _truncated_gaussian,
    "student_t": lambda out, dof, mean, scale: stats.t.logpdf(out, dof, mean, scale),
    "laplace": lambda out, mean, scale: -np.abs(out - mean) / scale - np.log(2 * scale),
    "uniform": lambda out, low, high: np.where((out >= low) & (out <= high), -np.log(high - low), -np.inf),
    "gamma": lambda out, shape, rate: shape * np.log(rate) - sp.gammaln(shape) + (shape - 1) * np.log(out) - rate * out,
    "log_normal": lambda out, mean, variance: stats.norm.logpdf(np.log(out), mean, np.sqrt(variance)) - np.log(out),
    "half_cauchy": lambda out, scale: np.log(2 / np.pi / scale) - np.log1p((out / scale) ** 2),
    "beta": lambda out, a, b: (a - 1) * np.log(out) + (b - 1) * np.log1p(-out) - sp.betaln(a, b),
    "bernoulli": _bernoulli,
    "categorical": lambda out, p: np.log(_pick(p, out)),
    "dirichlet": lambda out, concentration: (
        ((concentration - 1) * np.log(out)).sum(-1)
        - sp.gammaln(concentration).sum(-1) + sp.gammaln(concentration.sum(-1))
    ),
    "vector_gaussian": _vector_gaussian,
    "poisson": lambda out, rate: out * np.log(rate) - rate - sp.gammaln(out + 1),
    "binomial": lambda out, n, p: (
        sp.gammaln(n + 1) - sp.gammaln(out + 1) - sp.gammaln(n - out + 1) + sp.xlogy(out, p) + sp.xlog1py(n - out, -p)
    ),
    "negative_binomial": lambda out, **args: stats.nbinom.logpmf(out, *_successes(**args)),
    "ordered_probit": _ordered(sp.ndtr),
    "ordered_logistic": _ordered(sp.expit),
    "between": lambda out, value, low, high: np.where(((value > low) & (value < high)) == (out > 0.5), 0.0, -np.inf),
}  # fmt: skip

DRAW = {
    "gaussian": lambda rng, shape, mean, **scale: rng.normal(mean, np.sqrt(_variance(**scale)), shape),
    "truncated_gaussian": _draw_truncated,
    "student_t": lambda rng, shape, dof, mean, scale: mean + scale * rng.standard_t(dof, shape),
    "laplace": lambda rng, shape, mean, scale: rng.laplace(mean, scale, shape),
    "uniform": lambda rng, shape, low, high: rng.uniform(low, high, shape),
    "gamma": lambda rng, shape_, shape, rate: np.maximum(rng.gamma(shape, 1 / rate, shape_), 1e-30),
    "log_normal": lambda rng, shape, mean, variance: np.exp(rng.normal(mean, np.sqrt(variance), shape)),
    "half_cauchy": lambda rng, shape, scale: scale * np.abs(rng.standard_cauchy(shape)),
    "beta": lambda rng, shape, a, b: np.clip(rng.beta(a, b, shape), 1e-12, 1 - 1e-12),
    "bernoulli": lambda rng, shape, p: (rng.random(shape) < p).astype(float),
    "categorical": _draw_category,
    "dirichlet": lambda rng, shape, concentration: _normalised(
        rng.gamma(concentration, 1.0, (*shape, concentration.shape[-1]))
    ),
    "vector_gaussian": lambda rng, shape, mean, covariance: (
        mean
        + rng.normal(size=(*shape, mean.shape[-1])) @ np.linalg.cholesky(covariance.reshape(covariance.shape[-2:])).T
    ),
    "poisson": lambda rng, shape, rate: rng.poisson(np.minimum(rate, 1e6), shape).astype(float),
    "binomial": lambda rng, shape, n, p: rng.binomial(n.astype(int), p, shape).astype(float),
    "negative_binomial": _draw_negative_binomial,
    "ordered_probit": _draw_ordered(sp.ndtr),
    "ordered_logistic": _draw_ordered(sp.expit),
    "between": lambda rng, shape, value, low, high: np.broadcast_to((value > low) & (value < high), shape).astype(
        float
    ),
}


def _normalised(x):
    x = np.maximum(x, 1e-30)
    return x / x.sum(-1, keepdims=True)

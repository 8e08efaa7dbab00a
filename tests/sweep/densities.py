"""Log densities and draws of the vocabulary in plain NumPy and SciPy, written apart from the engine."""

from __future__ import annotations

import numpy as np
import scipy.special as sp
from scipy import stats


def _variance(variance=None, precision=None, sd=None):
    return variance if variance is not None else 1.0 / precision if precision is not None else sd**2


def _rate(rate=None, mean=None):
    return rate if mean is None else 1.0 / mean


def _gaussian(out, mean, **scale):
    return stats.norm.logpdf(out, mean, np.sqrt(_variance(**scale)))


def _truncated_gaussian(out, mean, variance, low, high):
    sd = np.sqrt(variance)
    a, b = (low - mean) / sd, (high - mean) / sd
    mass = np.where(a > 0, sp.ndtr(-a) - sp.ndtr(-b), sp.ndtr(b) - sp.ndtr(a))
    return np.where((out >= low) & (out <= high), stats.norm.logpdf(out, mean, sd) - np.log(mass), -np.inf)


def _vector_gaussian(out, mean, covariance=None, precision=None):
    """`precision` may be random: (draws, 1, 1, 1, d, d)."""
    p = np.linalg.inv(covariance) if precision is None else precision
    gap = out - mean
    return -0.5 * np.einsum("...i,...ij,...j", gap, p, gap) + 0.5 * np.linalg.slogdet(p / (2 * np.pi))[1]


def _wishart(out, dof, scale):
    d = out.shape[-1]
    inside = 0.5 * (dof - d - 1) * np.linalg.slogdet(out)[1] - 0.5 * np.trace(np.linalg.inv(scale) @ out, 0, -2, -1)
    return (
        inside - 0.5 * dof * (d * np.log(2.0) + np.linalg.slogdet(scale)[1]) - sp.multigammaln(0.5 * dof.ravel()[0], d)
    )


def shape_rate(shape=None, rate=None, mean=None, variance=None):
    return (mean**2 / variance, mean / variance) if mean is not None else (shape, rate)


def _gamma(out, **args):
    shape, rate = shape_rate(**args)
    return shape * np.log(rate) - sp.gammaln(shape) + (shape - 1) * np.log(out) - rate * out


def mass_of_gamma(shape, rate, low, high):
    return sp.gammainc(shape, rate * np.maximum(high, 0.0)) - sp.gammainc(shape, rate * np.maximum(low, 0.0))


def _truncated_gamma(out, shape, rate, low, high):
    inside = _gamma(out, shape=shape, rate=rate) - np.log(mass_of_gamma(shape, rate, low, high))
    return np.where((out >= low) & (out <= high), inside, -np.inf)


def a_b(a=None, b=None, mean=None, total=None):
    return (mean * total, (1.0 - mean) * total) if mean is not None else (a, b)


def _beta(out, **args):
    a, b = a_b(**args)
    return (a - 1) * np.log(out) + (b - 1) * np.log1p(-out) - sp.betaln(a, b)


def concentration_of(concentration=None, mean=None, total=None):
    return mean * total[..., None] if mean is not None else concentration


def _dirichlet(out, **args):
    c = concentration_of(**args)
    return ((c - 1) * np.log(out)).sum(-1) - sp.gammaln(c).sum(-1) + sp.gammaln(c.sum(-1))


def _binomial(out, n, p):
    ways = sp.gammaln(n + 1) - sp.gammaln(out + 1) - sp.gammaln(np.maximum(n - out, 0.0) + 1)
    inside = ways + sp.xlogy(out, p) + sp.xlog1py(np.maximum(n - out, 0.0), -p)
    return np.where(out <= n, inside, -np.inf)


def _multinomial(out, n, p):
    return sp.gammaln(n + 1) - sp.gammaln(out + 1).sum(-1) + sp.xlogy(out, p).sum(-1)


def _dirichlet_multinomial(out, n, **args):
    c = concentration_of(**args)
    ways = sp.gammaln(n + 1) - sp.gammaln(out + 1).sum(-1)
    return ways + sp.gammaln(c.sum(-1)) - sp.gammaln(n + c.sum(-1)) + (sp.gammaln(out + c) - sp.gammaln(c)).sum(-1)


def _spike_and_slab(out, probability, **scale):
    slab = np.log(probability) + stats.norm.logpdf(out, 0.0, np.sqrt(_variance(**scale)))
    return np.where(out == 0.0, np.log1p(-probability), slab)


def covariance_of(kernel, inputs):
    """K between the points `inputs` (..., n) of one kernel: (name, length scale, variance)."""
    name, scale, variance = kernel
    r = np.abs(inputs[..., :, None] - inputs[..., None, :]) / scale
    a = np.sqrt(3.0) * r
    k = {"squared_exponential": np.exp(-0.5 * r * r), "matern32": (1.0 + a) * np.exp(-a)}[name]
    return variance * k + 1e-10 * np.eye(inputs.shape[-1])


def _gaussian_process(out, inputs, kernel):
    """The joint density, an equal share for each element."""
    k = covariance_of(kernel, inputs[0, :, 0, 0])
    f = out[:, :, 0, 0]
    total = -0.5 * np.einsum("gi,ij,gj->g", f, np.linalg.inv(k), f) - 0.5 * np.linalg.slogdet(2 * np.pi * k)[1]
    return np.broadcast_to((total / f.shape[1])[:, None, None, None], (*f.shape, 1, 1))


def _draw_process(rng, shape, inputs, kernel):
    root = np.linalg.cholesky(covariance_of(kernel, inputs[0, :, 0, 0]))
    return (rng.normal(size=shape[:2]) @ root.T)[..., None, None]


def _draw_wishart(rng, shape, dof, scale):
    one = stats.wishart.rvs(int(dof.ravel()[0]), scale.reshape(scale.shape[-2:]), size=shape[0], random_state=rng)
    return one.reshape(*shape, *scale.shape[-2:])


def _draw_vector(rng, shape, mean, covariance=None, precision=None):
    c = np.linalg.inv(precision) if covariance is None else covariance
    z = rng.normal(size=(*shape, mean.shape[-1]))
    return mean + np.einsum("...ij,...j->...i", np.linalg.cholesky(c), z)


def _draw_truncated_gamma(rng, shape_, shape, rate, low, high):
    a, b = sp.gammainc(shape, rate * low), sp.gammainc(shape, rate * high)
    return np.clip(sp.gammaincinv(shape, a + (b - a) * rng.random(shape_)) / rate, low, high)


def _draw_multinomial(rng, shape, n, p):
    p = np.broadcast_to(p, (*shape, p.shape[-1]))
    return rng.multinomial(int(n.ravel()[0]), p / p.sum(-1, keepdims=True)).astype(float)


def _draw_dirichlet_multinomial(rng, shape, n, **args):
    return _draw_multinomial(rng, shape, n, DRAW["dirichlet"](rng, shape, **args))


def _draw_spike(rng, shape, probability, **scale):
    return (rng.random(shape) < probability) * rng.normal(0.0, np.sqrt(_variance(**scale)), shape)


def wrapped(angle):
    return np.angle(np.exp(1j * angle))


def _von_mises(out, mean, concentration):
    inside = concentration * (np.cos(out - mean) - 1.0) - np.log(2 * np.pi * sp.i0e(concentration))
    return np.where(np.abs(out) <= np.pi, inside, -np.inf)


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
    "gamma": _gamma,
    "truncated_gamma": _truncated_gamma,
    "wishart": _wishart,
    "gaussian_process": _gaussian_process,
    "spike_and_slab": _spike_and_slab,
    "multinomial": _multinomial,
    "dirichlet_multinomial": _dirichlet_multinomial,
    "von_mises": _von_mises,
    "weibull": lambda out, shape, scale: stats.weibull_min.logpdf(out, shape, scale=scale),
    "cauchy": lambda out, location, scale: stats.cauchy.logpdf(out, location, scale),
    "skew_normal": lambda out, location, scale, skew: stats.skewnorm.logpdf(out, skew, location, scale),
    "exponential": lambda out, **args: np.log(_rate(**args)) - _rate(**args) * out,
    "inverse_gamma": lambda out, shape, scale: stats.invgamma.logpdf(out, shape, scale=scale),
    "inverse_gaussian": lambda out, mean, shape: (
        0.5 * np.log(shape / (2 * np.pi * out**3)) - 0.5 * shape * (out - mean) ** 2 / (mean**2 * out)
    ),
    "half_student_t": lambda out, dof, scale: np.log(2.0) + stats.t.logpdf(out, dof, 0.0, scale),
    "logit_normal": lambda out, mean, **scale: (
        stats.norm.logpdf(sp.logit(out), mean, np.sqrt(_variance(**scale))) - np.log(out) - np.log1p(-out)
    ),
    "discrete_uniform": lambda out, size: -np.log(size) + 0.0 * out,
    "half_normal": lambda out, scale: np.log(2.0) + stats.norm.logpdf(out, 0.0, scale),
    "own_logistic": lambda out, mean, scale: stats.logistic.logpdf(out, mean, scale),
    "own_waiting": lambda out, rate: np.log(rate) - rate * out,
    "own_agreement": lambda out, other: -np.log1p(np.exp(np.where((out > 0.5) == (other > 0.5), -1.1, 1.1))),
    "log_normal": lambda out, mean, variance: stats.norm.logpdf(np.log(out), mean, np.sqrt(variance)) - np.log(out),
    "half_cauchy": lambda out, scale: np.log(2 / np.pi / scale) - np.log1p((out / scale) ** 2),
    "beta": _beta,
    "bernoulli": _bernoulli,
    "categorical": lambda out, p: np.log(_pick(p, out)),
    "dirichlet": _dirichlet,
    "vector_gaussian": _vector_gaussian,
    "poisson": lambda out, rate: out * np.log(rate) - rate - sp.gammaln(out + 1),
    "binomial": _binomial,
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
    "gamma": lambda rng, shape_, **args: np.maximum(
        rng.gamma(shape_rate(**args)[0], 1 / shape_rate(**args)[1], shape_), 1e-30
    ),
    "truncated_gamma": _draw_truncated_gamma,
    "wishart": _draw_wishart,
    "gaussian_process": _draw_process,
    "spike_and_slab": _draw_spike,
    "multinomial": _draw_multinomial,
    "dirichlet_multinomial": _draw_dirichlet_multinomial,
    "von_mises": lambda rng, shape, mean, concentration: rng.vonmises(wrapped(mean), concentration, shape),
    "cauchy": lambda rng, shape, location, scale: location + scale * rng.standard_cauchy(shape),
    "skew_normal": lambda rng, shape, location, scale, skew: (
        location
        + scale
        * (
            skew / np.sqrt(1.0 + skew**2) * np.abs(rng.normal(size=shape))
            + rng.normal(size=shape) / np.sqrt(1.0 + skew**2)
        )
    ),
    "exponential": lambda rng, shape, **args: np.maximum(rng.exponential(1.0 / _rate(**args), shape), 1e-30),
    "inverse_gamma": lambda rng, shape_, shape, scale: scale / np.maximum(rng.gamma(shape, 1.0, shape_), 1e-30),
    "inverse_gaussian": lambda rng, shape_, mean, shape: rng.wald(mean, shape, shape_),
    "half_student_t": lambda rng, shape, dof, scale: scale * np.abs(rng.standard_t(dof, shape)),
    "logit_normal": lambda rng, shape, mean, **scale: np.clip(
        sp.expit(rng.normal(mean, np.sqrt(_variance(**scale)), shape)), 1e-12, 1 - 1e-12
    ),
    "weibull": lambda rng, shape_, shape, scale: np.maximum(scale * rng.weibull(shape, shape_), 1e-30),
    "discrete_uniform": lambda rng, shape, size: np.floor(size * rng.random(shape)),
    "half_normal": lambda rng, shape, scale: np.abs(rng.normal(0.0, scale, shape)),
    "own_logistic": lambda rng, shape, mean, scale: rng.logistic(mean, scale, shape),
    "own_waiting": lambda rng, shape, rate: rng.exponential(1.0 / rate, shape),
    "own_agreement": lambda rng, shape, other: (
        rng.random(shape) < np.where(other > 0.5, sp.expit(1.1), sp.expit(-1.1))
    ).astype(float),
    "log_normal": lambda rng, shape, mean, variance: np.exp(rng.normal(mean, np.sqrt(variance), shape)),
    "half_cauchy": lambda rng, shape, scale: scale * np.abs(rng.standard_cauchy(shape)),
    "beta": lambda rng, shape, **args: np.clip(
        rng.beta(*(np.maximum(x, 1e-9) for x in a_b(**args)), shape), 1e-12, 1 - 1e-12
    ),
    "bernoulli": lambda rng, shape, p: (rng.random(shape) < p).astype(float),
    "categorical": _draw_category,
    "dirichlet": lambda rng, shape, **args: _normalised(
        rng.gamma(concentration_of(**args), 1.0, (*shape, concentration_of(**args).shape[-1]))
    ),
    "vector_gaussian": _draw_vector,
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

"""Random members of all families, their SciPy references, and how they are compared: for the laws of this folder."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cavity.factors.domains import Domain
from cavity.factors.families import ALL, ExponentialFamily

EXPONENTIAL = [family for family in ALL if issubclass(family, ExponentialFamily)]
# One shape for most laws, as JAX compiles each operation once a shape; other ranks are compared with this one.
PLATES, SIZE = (4,), 3
laws = settings(max_examples=5, deadline=None, derandomize=True, database=None)
each_family = pytest.mark.parametrize("family", EXPONENTIAL, ids=lambda family: family.__name__)


class SpikeSlab:
    """SciPy's methods for a Gaussian number that is zero with some probability; densities are probabilities there."""

    def __init__(self, p, mean, variance):
        self.p, self.slab = p, scipy.stats.norm(mean, np.sqrt(variance))

    def logpdf(self, x):
        return np.where(x == 0.0, np.log1p(-self.p), np.log(self.p) + self.slab.logpdf(x))

    def entropy(self):
        return scipy.stats.bernoulli(self.p).entropy() + self.p * self.slab.entropy()

    def mean(self):
        return self.p * self.slab.mean()

    def var(self):
        return self.p * (self.slab.var() + self.slab.mean() ** 2) - self.mean() ** 2

    def cdf(self, x):
        return self.p * self.slab.cdf(x) + (1.0 - self.p) * (x >= 0.0)

    def ppf(self, levels):
        return np.array([self.quantile(level) for level in levels])

    def quantile(self, level):
        if self.cdf(-1e-12) < level <= self.cdf(0.0):
            return 0.0
        reach = np.abs(self.slab.mean()) + 40.0 * self.slab.std()
        return scipy.optimize.brentq(lambda x: self.cdf(x) - level, -reach, reach, xtol=1e-14, rtol=1e-14)


class WithPrecision:
    """SciPy's methods for x ~ N(mean, 1 / (multiple t)) and t: one array, of x and t along the last axis."""

    def __init__(self, mean, multiple, precision):
        self.centre, self.multiple, self.precision = np.atleast_1d(mean), multiple, precision
        self.size = len(self.centre)

    def logpdf(self, value):
        def one(own):
            x, t = (own[:1], own[1:, None]) if own.ndim == 1 else (own[:, 0], own[:, 1:])
            normal = scipy.stats.multivariate_normal(self.centre, np.linalg.inv(self.multiple * t))
            return normal.logpdf(x) + self.precision.logpdf(t[0, 0] if own.ndim == 1 else t)

        return np.array([one(np.asarray(own)) for own in value])

    def entropy(self):
        return self.precision.entropy() + self.expected_normal_entropy()

    def expected_normal_entropy(self):
        log = self.expected_log_det()
        return 0.5 * self.size * (1.0 + np.log(2.0 * np.pi) - np.log(self.multiple)) - 0.5 * log


class NormalGammaPair(WithPrecision):
    def __init__(self, mean, multiple, shape, rate):
        super().__init__(mean, multiple, scipy.stats.gamma(shape, scale=1.0 / rate))
        self.shape, self.rate = shape, rate

    def expected_log_det(self):
        return scipy.special.digamma(self.shape) - np.log(self.rate)

    def mean(self):
        return np.array([self.centre[0], self.precision.mean()])

    def var(self):
        spread = scipy.stats.t(2.0 * self.shape, scale=np.sqrt(self.rate / (self.shape * self.multiple))).var()
        return np.array([spread if self.shape > 1.0 else np.inf, self.precision.var()])


class NormalWishartPair(WithPrecision):
    def __init__(self, mean, multiple, dof, scale):
        super().__init__(mean, multiple, scipy.stats.wishart(dof, scale))
        self.dof, self.scale = dof, scale

    def expected_log_det(self):
        halves = scipy.special.digamma(0.5 * (self.dof - np.arange(self.size))).sum()
        return halves + self.size * np.log(2.0) + np.linalg.slogdet(self.scale)[1]

    def mean(self):
        return np.concatenate([self.centre[:, None], self.precision.mean()], axis=1)

    def var(self):
        excess = self.dof - self.size - 1.0
        spread = np.diagonal(np.linalg.inv(self.scale)) / (self.multiple * excess) if excess > 0 else np.inf
        own = np.broadcast_to(spread, self.size)
        return np.concatenate([own[:, None], self.precision.var()], axis=1)


# Random instances ----------------------------------------------------------------------------------------------------


def reals(shape, bound=3.0):
    # A grid: tiny and subnormal numbers test floating point rather than families.
    return hnp.arrays(np.float64, shape, elements=st.integers(-1000, 1000).map(lambda i: bound * i / 1000))


def positives(shape, decades=1.0):
    return reals(shape, decades).map(lambda x: 10.0**x)


def matrices(plates, size, decades=1.0):
    """Positive definite: L L' with a positive diagonal."""
    shape = (*plates, size, size)
    lower = reals(shape, 0.5).map(lambda x: np.tril(x, -1))
    diagonal = positives((*plates, size), decades / 2).map(lambda d: d[..., None] * np.eye(size))
    return st.tuples(lower, diagonal).map(
        lambda p: (p[1] @ (p[0] + np.eye(size))) @ np.swapaxes(p[1] @ (p[0] + np.eye(size)), -1, -2)
    )


def probabilities(shape, decades=1.0):
    return positives(shape, decades).map(lambda x: x / x.sum(axis=-1, keepdims=True))


# name -> (plates, event size, decades that positive parameters span to either side) -> strategy of the usual parameters
STRATEGIES = {
    "Gaussian": lambda p, k, w: {"mean": reals(p), "variance": positives(p, w)},
    "VectorGaussian": lambda p, k, w: {"mean": reals((*p, k)), "covariance": matrices(p, k, w)},
    "Gamma": lambda p, k, w: {"shape": positives(p, w), "rate": positives(p, w)},
    "Beta": lambda p, k, w: {"a": positives(p, w), "b": positives(p, w)},
    "Dirichlet": lambda p, k, w: {"concentration": positives((*p, k), w)},
    "Bernoulli": lambda p, k, w: {"probability": positives(p, w).map(lambda odds: odds / (1.0 + odds))},
    "Categorical": lambda p, k, w: {"probability": probabilities((*p, k), w)},
    "Wishart": lambda p, k, w: {"dof": positives(p, w).map(lambda x: x + k - 1.0), "scale": matrices(p, k, w)},
    "Poisson": lambda p, k, w: {"rate": positives(p, w)},
    "NormalGamma": lambda p, k, w: {
        "mean": reals(p),
        "multiple": positives(p, w),
        "shape": positives(p, w),
        "rate": positives(p, w),
    },
    "NormalWishart": lambda p, k, w: {
        "mean": reals((*p, k)),
        "multiple": positives(p, w),
        "dof": positives(p, w).map(lambda x: x + k + 1.0),
        "scale": matrices(p, k, w),
    },
    "SpikeAndSlab": lambda p, k, w: {
        "probability": positives(p, w).map(lambda odds: odds / (1.0 + odds)),
        "slab_mean": reals(p),
        "slab_variance": positives(p, w),
    },
}

# name -> usual parameters of one element -> the SciPy distribution
SCIPY = {
    "Gaussian": lambda mean, variance: scipy.stats.norm(mean, np.sqrt(variance)),
    "VectorGaussian": lambda mean, covariance: scipy.stats.multivariate_normal(mean, covariance),
    "Gamma": lambda shape, rate: scipy.stats.gamma(shape, scale=1.0 / rate),
    "Beta": lambda a, b: scipy.stats.beta(a, b),
    "Dirichlet": lambda concentration: scipy.stats.dirichlet(concentration),
    "Bernoulli": lambda probability: scipy.stats.bernoulli(probability),
    "Categorical": lambda probability: scipy.stats.multinomial(1, probability),
    "Wishart": lambda dof, scale: scipy.stats.wishart(dof, scale),
    "Poisson": lambda rate: scipy.stats.poisson(rate),
    "NormalGamma": NormalGammaPair,
    "NormalWishart": NormalWishartPair,
    "SpikeAndSlab": lambda probability, slab_mean, slab_variance: SpikeSlab(probability, slab_mean, slab_variance),
}


def instances(family, decades=1.0):
    """Random members of `family`."""
    return st.fixed_dictionaries(STRATEGIES[family.__name__](PLATES, SIZE, decades)).map(lambda p: member(family, p))


def member(family, parameters):
    return family.from_parameters(**{name: jnp.asarray(value) for name, value in parameters.items()})


def ordinary(family):
    """One member with ordinary parameters, for tests that sample."""
    ramp = np.linspace(0.8, 2.0, *PLATES)
    wide = ramp[:, None] * np.linspace(0.5, 1.5, SIZE)
    matrix = ramp[:, None, None] * (np.eye(SIZE) + 0.3)
    usual = {
        "mean": wide if family.kind in {"vector", "normal_wishart"} else ramp,
        "probability": wide / wide.sum(-1, keepdims=True) if family.kind == "category" else 0.4 * ramp,
        "concentration": wide,
        "dof": SIZE + 1.5 * ramp,
    }
    names = STRATEGIES[family.__name__](PLATES, SIZE, 1.0)
    default = {name: matrix if name in {"covariance", "scale"} else 1.3 * ramp for name in names}
    return member(family, {name: usual.get(name, default[name]) for name in names})


# What is compared ----------------------------------------------------------------------------------------------------


def numbers(q):
    """All that a family answers without data."""
    stats = q.expected_stats()
    return {
        "log_partition": q.log_partition(),
        "stats": stats,
        "mean": q.mean(),
        "variance": q.variance(),
        "entropy": q.entropy(),
        "moments": tuple(q.moments()),
        "parameters": q.parameters(),
        "projected": type(q).from_stats(stats).expected_stats(),
        "solved": q.fisher_solve(stats),
    }


def close(found, expected, rtol=1e-9, atol=1e-11):
    jax.tree.map(lambda f, e: np.testing.assert_allclose(f, e, rtol=rtol, atol=atol), found, expected)


def inner(a, b, ndims):
    """sum_j <a_j, b_j>, over the event axes."""
    return sum(jnp.sum(x * y, axis=tuple(range(-n, 0))) for x, y, n in zip(a, b, ndims, strict=True))


def draws(q):
    """Four values to evaluate at: always the same call, as each sampler compiles for a second."""
    return q.sample(jax.random.key(0), (4,))


def stats_of(q, value):
    return type(q).stats_of(value, *size(q))


def moments_at(q, value):
    return type(q).moments_at(value, *size(q))


def event_ndim(family):
    return Domain(family.kind).event_ndim


def size(q):
    return (q.logits.shape[-1],) if type(q).__name__ == "Categorical" else ()


def total_log_partition(family):
    return lambda naturals: jnp.sum(family.from_naturals(naturals).log_partition())


def elements(q):
    """Index of each plate element and the SciPy distribution there."""
    parameters = {name: np.asarray(value) for name, value in q.parameters().items()}
    for index in np.ndindex(*q.plates):
        yield index, SCIPY[type(q).__name__](**{name: value[index] for name, value in parameters.items()})


def scipy_log_density(q, distribution, value):
    value = np.asarray(value)
    if type(q).__name__ == "Categorical":
        return distribution.logpmf(np.eye(size(q)[0])[value])
    if type(q).__name__ == "Dirichlet":
        return np.array([distribution.logpdf(x / x.sum()) for x in value])
    if type(q).__name__ == "Wishart":
        return distribution.logpdf(np.moveaxis(value, 0, -1))
    return distribution.logpmf(value) if hasattr(distribution, "logpmf") else distribution.logpdf(value)


def well_posed(q, value):
    """Where two programs can agree to 1e-8: rounding a matrix alone moves its log determinant by condition x 1e-16."""
    if type(q).__name__ not in {"Wishart", "NormalWishart"}:
        return True
    return np.linalg.cond(np.asarray(value)[..., -SIZE:]) < 1e8

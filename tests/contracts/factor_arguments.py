"""Random arguments of the factors: points of all edges, and beliefs over those that may be random."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from cavity.factors import REGISTRY
from cavity.factors.derived import completed
from cavity.factors.families import (
    FOR_DOMAIN,
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Gamma,
    Gaussian,
    Poisson,
    SpikeAndSlab,
    VectorGaussian,
    Wishart,
)
from cavity.factors.moments import Category, Vector


def positive(rng):
    return float(np.exp(rng.normal()))


def matrix(rng, size=3):
    root = rng.normal(size=(size, size))
    return root @ root.T + 0.5 * np.eye(size)


def simplex(rng, size=3):
    return rng.dirichlet(np.full(size, 2.0))


CUTPOINTS = np.array([-1.0, 0.2, 1.5])

# factor -> points of out and of all edges
POINTS = {
    "beta": lambda r: {"out": r.uniform(0.1, 0.9), "a": positive(r), "b": positive(r)},
    "beta_of_mean": lambda r: {"out": r.uniform(0.1, 0.9), "mean": r.uniform(0.2, 0.8), "total": 1 + positive(r)},
    "between": lambda r: {"out": 1.0, "value": r.uniform(-0.9, 0.9), "low": -1.0, "high": 1.0},
    "binomial": lambda r: {
        "out": float(r.integers(4)),
        "n": float(r.integers(4, 9)),
        "probability": r.uniform(0.1, 0.9),
    },
    "bernoulli": lambda r: {"out": float(r.integers(2)), "probability": r.uniform(0.1, 0.9)},
    "categorical": lambda r: {"out": int(r.integers(3)), "probability": simplex(r)},
    "dirichlet": lambda r: {"out": simplex(r), "concentration": np.exp(r.normal(size=3))},
    "dirichlet_of_mean": lambda r: {"out": simplex(r), "mean": simplex(r), "total": 3 + positive(r)},
    "gamma": lambda r: {"out": positive(r), "shape": positive(r), "rate": positive(r)},
    "gaussian": lambda r: {"out": r.normal(), "mean": r.normal(), "precision": positive(r)},
    "half_cauchy": lambda r: {"out": positive(r), "scale": positive(r)},
    "half_normal": lambda r: {"out": positive(r), "scale": positive(r)},
    "isotropic_gaussian": lambda r: {"out": r.normal(size=3), "mean": r.normal(size=3), "precision": positive(r)},
    "laplace": lambda r: {"out": r.normal(), "mean": r.normal(), "scale": positive(r)},
    "log_normal": lambda r: {"out": positive(r), "mean": r.normal(), "precision": positive(r)},
    "multinomial": lambda r: {"out": np.array([2.0, 0.0, 3.0]), "n": 5.0, "probability": simplex(r)},
    "negative_binomial": lambda r: {"out": float(r.integers(6)), "mean": positive(r), "dispersion": positive(r)},
    "negative_binomial_trials": lambda r: {
        "out": float(r.integers(6)),
        "successes": positive(r),
        "probability": r.uniform(0.1, 0.9),
    },
    "ordered_logistic": lambda r: {"out": int(r.integers(4)), "score": r.normal(), "cutpoints": CUTPOINTS},
    "ordered_probit": lambda r: {"out": int(r.integers(4)), "score": r.normal(), "cutpoints": CUTPOINTS},
    "poisson": lambda r: {"out": float(r.integers(6)), "rate": positive(r)},
    "spike_and_slab": lambda r: {"out": r.normal(), "probability": r.uniform(0.1, 0.9), "precision": positive(r)},
    "student_t": lambda r: {"out": r.normal(), "dof": 3 + positive(r), "mean": r.normal(), "scale": positive(r)},
    "truncated_gamma": lambda r: {
        "out": r.uniform(0.6, 2.9),
        "shape": positive(r),
        "rate": positive(r),
        "low": 0.5,
        "high": 3.0,
    },
    "truncated_gaussian": lambda r: {
        "out": r.uniform(-0.9, 1.9),
        "mean": r.normal(),
        "precision": positive(r),
        "low": -1.0,
        "high": 2.0,
    },
    "uniform": lambda r: {"out": r.uniform(-0.9, 1.9), "low": -1.0, "high": 2.0},
    "vector_gaussian": lambda r: {"out": r.normal(size=3), "mean": r.normal(size=3), "precision": matrix(r)},
    "wishart": lambda r: {"out": matrix(r), "dof": 3.0 + positive(r), "rate": matrix(r)},
}


def gaussian(r):
    return Gaussian.from_parameters(mean=r.normal(), variance=positive(r))


def vector_gaussian(r):
    return VectorGaussian.from_parameters(mean=r.normal(size=3), covariance=matrix(r))


def gamma(r):
    return Gamma.from_parameters(shape=2.0 + positive(r), rate=positive(r))


def wishart(r):
    return Wishart.from_parameters(dof=4.0 + positive(r), scale=matrix(r) / 4.0)


def dirichlet(r):
    return Dirichlet.from_parameters(concentration=1.0 + np.exp(r.normal(size=3)))


def unit(r):
    return Beta.from_parameters(a=1 + positive(r), b=1 + positive(r))


def spike_and_slab(r):
    return SpikeAndSlab.from_parameters(
        probability=r.uniform(0.1, 0.9), slab_mean=r.normal(), slab_variance=positive(r)
    )


# factor -> beliefs over the edges in which it is conjugate; the others are fixed at a point
BELIEFS = {
    "beta": lambda r: {"out": unit(r)},
    "beta_of_mean": lambda r: {"out": unit(r)},
    "between": lambda r: {},
    "binomial": lambda r: {"probability": unit(r)},
    "bernoulli": lambda r: {
        "out": Bernoulli.from_parameters(probability=r.uniform(0.1, 0.9)),
        "probability": unit(r),
    },
    "categorical": lambda r: {"out": Categorical.from_parameters(probability=simplex(r)), "probability": dirichlet(r)},
    "dirichlet": lambda r: {"out": dirichlet(r)},
    "dirichlet_of_mean": lambda r: {"out": dirichlet(r)},
    "gamma": lambda r: {"out": gamma(r), "rate": gamma(r)},
    "gaussian": lambda r: {"out": gaussian(r), "mean": gaussian(r), "precision": gamma(r)},
    "half_cauchy": lambda r: {},
    "half_normal": lambda r: {},
    "isotropic_gaussian": lambda r: {"out": vector_gaussian(r), "mean": vector_gaussian(r), "precision": gamma(r)},
    "laplace": lambda r: {},
    "log_normal": lambda r: {"mean": gaussian(r), "precision": gamma(r)},
    "multinomial": lambda r: {"probability": dirichlet(r)},
    "negative_binomial": lambda r: {},
    "negative_binomial_trials": lambda r: {"probability": unit(r)},
    "ordered_logistic": lambda r: {},
    "ordered_probit": lambda r: {},
    "student_t": lambda r: {},
    "truncated_gamma": lambda r: {},
    "truncated_gaussian": lambda r: {},
    "uniform": lambda r: {},
    "poisson": lambda r: {"out": Poisson.from_parameters(rate=positive(r)), "rate": gamma(r)},
    "spike_and_slab": lambda r: {"out": spike_and_slab(r), "probability": unit(r), "precision": gamma(r)},
    "vector_gaussian": lambda r: {"out": vector_gaussian(r), "mean": vector_gaussian(r), "precision": wishart(r)},
    "wishart": lambda r: {"out": wishart(r), "rate": wishart(r)},
}


# factor -> beliefs over further edges, which NCVMP serves
BEYOND = {
    "beta": lambda r: {"a": gamma(r), "b": gamma(r)},
    "beta_of_mean": lambda r: {"mean": unit(r), "total": gamma(r)},
    "dirichlet_of_mean": lambda r: {"total": gamma(r)},
    "gamma": lambda r: {"shape": gamma(r)},
    "half_cauchy": lambda r: {"out": gamma(r), "scale": gamma(r)},
    # Near a shape of two 1 / scale^2 has a tail that no quadrature follows: its mean is about to be infinite.
    "half_normal": lambda r: {
        "out": gamma(r),
        "scale": Gamma.from_parameters(shape=6.0 + positive(r), rate=positive(r)),
    },
    "laplace": lambda r: {"out": gaussian(r), "mean": gaussian(r), "scale": gamma(r)},
    "log_normal": lambda r: {"out": gamma(r)},
    "negative_binomial": lambda r: {
        "out": Poisson.from_parameters(rate=positive(r)),
        "mean": gamma(r),
        "dispersion": gamma(r),
    },
    "negative_binomial_trials": lambda r: {"successes": gamma(r)},
    "ordered_logistic": lambda r: {"out": Categorical.from_parameters(probability=simplex(r, 4)), "score": gaussian(r)},
    "ordered_probit": lambda r: {"out": Categorical.from_parameters(probability=simplex(r, 4)), "score": gaussian(r)},
    "student_t": lambda r: {"mean": gaussian(r), "scale": gamma(r)},
    "truncated_gamma": lambda r: {"rate": gamma(r)},
    "truncated_gaussian": lambda r: {"mean": gaussian(r), "precision": gamma(r)},
}

KIND_OF_OUT = {
    "beta": "unit", "bernoulli": "boolean", "categorical": "category", "dirichlet": "simplex", "gamma": "positive",
    "gaussian": "real", "poisson": "count", "vector_gaussian": "vector", "wishart": "posdef", "beta_of_mean": "unit",
    "between": "boolean", "binomial": "count", "dirichlet_of_mean": "simplex", "half_cauchy": "positive",
    "half_normal": "positive", "laplace": "real", "log_normal": "positive", "multinomial": "vector",
    "negative_binomial": "count", "negative_binomial_trials": "count", "ordered_logistic": "category",
    "ordered_probit": "category", "isotropic_gaussian": "vector",
    "spike_and_slab": "sparse", "student_t": "real", "truncated_gamma": "positive", "truncated_gaussian": "real",
    "uniform": "real",
}  # fmt: skip


def beliefs_of(name, seed):
    """Beliefs over all edges that may be random."""
    rng = np.random.default_rng(seed)
    return BELIEFS[name](rng) | BEYOND.get(name, lambda r: {})(rng)


def whole(name, random=()):
    """The factor with all that it does not declare derived."""
    return completed(REGISTRY[name], random, KIND_OF_OUT[name])


def kind_of(name, edge):
    return KIND_OF_OUT[name] if edge == "out" else REGISTRY[name].edges[edge]


def moments_of_point(name, edge, value):
    kind = kind_of(name, edge)
    if kind == "concentration":
        return Vector(jnp.asarray(value), jnp.zeros((len(value), len(value))))
    if kind == "category":
        return Category(jax.nn.one_hot(value, 4 if name.startswith("ordered") else 3))
    return FOR_DOMAIN[kind].moments_at(jnp.asarray(value))

"""Conditionals of vectors, simplices and matrices: told element by element, but for draws and covariances."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.special import betainc, gammaln

from ..arrays import Array, Key
from ..conditional import Table
from ..discrete.binomial import binomial_below
from ..families import Dirichlet, Wishart
from ..quadrature import HALF_LOG_2PI
from ..special import ndtr
from .reals import student_below

VECTORS = Table()


def _diagonal(precision: Array) -> Array:
    return jnp.diagonal(jnp.linalg.inv(precision), axis1=-2, axis2=-1)


VECTORS.add(
    "vector_gaussian",
    "vector",
    mean=lambda mean, precision: mean,
    variance=lambda mean, precision: _diagonal(precision),
    below=lambda x, mean, precision: ndtr((x - mean) / jnp.sqrt(_diagonal(precision))),
    draw=lambda key, mean, precision: (
        mean + jnp.linalg.solve(jnp.linalg.cholesky(precision).T, jax.random.normal(key, (precision.shape[-1],)))
    ),
)
VECTORS.add(
    "isotropic_gaussian",
    "vector",
    mean=lambda mean, precision: mean,
    variance=lambda mean, precision: jnp.full_like(mean, 1.0) / precision,
    below=lambda x, mean, precision: ndtr((x - mean) * jnp.sqrt(precision)),
    draw=lambda key, mean, precision: mean + jax.random.normal(key, mean.shape) / jnp.sqrt(precision),
    covariance=lambda mean, precision: jnp.eye(mean.shape[-1]) / precision,
)


def _log_density_of_vector(out: Array, mean: Array, extra: Array, covariance: Array) -> Array:
    root = jnp.linalg.cholesky(extra + covariance)
    scaled = jax.scipy.linalg.solve_triangular(root, out - mean, lower=True)
    return -0.5 * scaled @ scaled - jnp.log(jnp.diagonal(root)).sum() - out.shape[-1] * HALF_LOG_2PI


VECTORS.add(  # a vector whose mean is Gaussian itself, with covariance `extra`
    "vector_gaussian_about",
    "vector",
    log_density=_log_density_of_vector,
    mean=lambda mean, extra, covariance: mean,
    variance=lambda mean, extra, covariance: jnp.diagonal(extra + covariance),
    below=lambda x, mean, extra, covariance: ndtr((x - mean) / jnp.sqrt(jnp.diagonal(extra + covariance))),
    draw=lambda key, mean, extra, covariance: (
        mean + jnp.linalg.cholesky(extra + covariance) @ jax.random.normal(key, mean.shape)
    ),
    covariance=lambda mean, extra, covariance: extra + covariance,
)


def _log_density_of_student(out: Array, dof: Array, mean: Array, square: Array) -> Array:
    root, size = jnp.linalg.cholesky(square), out.shape[-1]
    scaled = jax.scipy.linalg.solve_triangular(root, out - mean, lower=True)
    end = gammaln(0.5 * (dof + size)) - gammaln(0.5 * dof) - 0.5 * size * jnp.log(dof * jnp.pi)
    return end - jnp.log(jnp.diagonal(root)).sum() - 0.5 * (dof + size) * jnp.log1p(scaled @ scaled / dof)


def _draw_of_student(key: Key, dof: Array, mean: Array, square: Array) -> Array:
    of_mixing, of_vector = jax.random.split(key)
    mixing = jax.random.gamma(of_mixing, 0.5 * dof) / (0.5 * dof)
    return mean + jnp.linalg.cholesky(square) @ jax.random.normal(of_vector, mean.shape) / jnp.sqrt(mixing)


def _covariance_of_student(dof: Array, mean: Array, square: Array) -> Array:
    finite = square * dof / jnp.where(dof > 2.0, dof - 2.0, 1.0)
    return jnp.where(dof > 2.0, finite, jnp.where(dof > 1.0, jnp.inf, jnp.nan))


VECTORS.add(  # Student's t: a Gaussian of covariance `square`, divided by a Gamma variable of mean 1
    "vector_student_t",
    "vector",
    log_density=_log_density_of_student,
    mean=lambda dof, mean, square: jnp.where(dof > 1.0, mean, jnp.nan),
    variance=lambda dof, mean, square: jnp.diagonal(_covariance_of_student(dof, mean, square)),
    below=lambda x, dof, mean, square: student_below(x, dof, mean, jnp.sqrt(jnp.diagonal(square))),
    draw=_draw_of_student,
    covariance=_covariance_of_student,
)
VECTORS.add(
    "multinomial",
    "vector",
    mean=lambda n, probability: n * probability,
    variance=lambda n, probability: n * probability * (1.0 - probability),
    below=binomial_below,
    draw=lambda key, n, probability: jax.random.multinomial(key, n, probability).astype(float),
    whole=True,
    covariance=lambda n, probability: n * (jnp.diag(probability) - jnp.outer(probability, probability)),
)


VECTORS.add(
    "dirichlet",
    "simplex",
    mean=lambda concentration: Dirichlet(concentration - 1.0).mean(),
    variance=lambda concentration: Dirichlet(concentration - 1.0).variance(),
    below=lambda x, concentration: betainc(concentration, concentration.sum() - concentration, jnp.clip(x, 0.0, 1.0)),
    draw=lambda key, concentration: jax.random.dirichlet(key, concentration),
)
VECTORS.add(
    "dirichlet_of_mean",
    "simplex",
    mean=lambda mean, total: mean,
    variance=lambda mean, total: mean * (1.0 - mean) / (1.0 + total),
    below=lambda x, mean, total: betainc(total * mean, total * (1.0 - mean), jnp.clip(x, 0.0, 1.0)),
    draw=lambda key, mean, total: jax.random.dirichlet(key, total * mean),
)


def _wishart(dof: Array, rate: Array) -> Wishart:
    return Wishart(-0.5 * rate, 0.5 * (dof - rate.shape[-1] - 1))


VECTORS.add(
    "wishart",
    "posdef",
    mean=lambda dof, rate: _wishart(dof, rate).mean(),
    variance=lambda dof, rate: _wishart(dof, rate).variance(),
    draw=lambda key, dof, rate: _wishart(dof, rate).sample(key),
)

"""The multivariate Gaussian factor N(out; mean, inverse of precision), the precision a matrix or a multiple of I."""

from __future__ import annotations

from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np

from .. import roles
from ..arrays import Argument, Array
from ..closed import Closed, Formula
from ..domains import Domain, vector
from ..errors import ModelError
from ..factor import Factor, Term, register, told_with_name
from ..families import Gamma, VectorGaussian, Wishart
from ..families.matrices import inverse, log_det, outer
from ..moments import PosDef, Positive, Vector
from ..numbers import given_number
from ..quadrature import HALF_LOG_2PI


def _log_density(out, mean, precision):
    error = out - mean
    return 0.5 * log_det(precision) - out.shape[-1] * HALF_LOG_2PI - 0.5 * error @ precision @ error


def _expected_log(out: Vector, mean: Vector, precision: PosDef):
    # Inner products of parts that live on different plates, so that over plates they become matrix products and nothing
    # of size instances x cases x dimension^2 is ever formed.
    second_out = out.covariance + outer(out.mean, out.mean)
    second_mean = mean.covariance + outer(mean.mean, mean.mean)
    square = (
        jnp.vdot(precision.mean, second_out)
        - 2 * jnp.vdot(precision.mean @ mean.mean, out.mean)
        + jnp.vdot(precision.mean, second_mean)
    )
    return 0.5 * precision.log_det - out.mean.shape[-1] * HALF_LOG_2PI - 0.5 * square


def _predict(mean: Vector, precision: PosDef) -> VectorGaussian:
    return VectorGaussian.from_parameters(mean=mean.mean, covariance=mean.covariance + inverse(precision.mean))


def _out(domains: Mapping[str, Domain]) -> Domain:
    mean, precision = domains["mean"].size, domains["precision"].size
    if None not in (mean, precision) and mean != precision:
        raise ModelError(
            f"vector_gaussian(): the mean has {mean} coordinates, but the covariance or precision is {precision} x "
            f"{precision}. Give both the same dimension."
        )
    return vector(mean or precision)


def _about(arguments: Mapping[str, Formula]) -> tuple[Formula, Formula] | None:
    """Known means, and the covariances that a Gaussian belief adds; None for a mean of another kind."""
    mean = arguments["mean"]
    if mean.known:
        return mean, mean.given(lambda m: jnp.zeros((m.shape[-1], m.shape[-1])))
    if mean.belief(VectorGaussian) is None or not mean.alone(arguments["precision"]):
        return None
    return mean.given(lambda q: q.mean()), mean.given(lambda q: q.covariance())


def _closed(arguments: Mapping[str, Formula]) -> Closed | None:
    """A Gaussian mean adds its covariance; a Wishart precision is one Gamma variable over a matrix (Student's t)."""
    found, precision = _about(arguments), arguments["precision"]
    wishart = precision.belief(Wishart)
    if found is None or (wishart is None and not precision.known):
        return None
    if wishart is None:
        covariance = precision.given(jnp.linalg.inv)
    else:

        def freedom(q: Wishart) -> Array:
            return jnp.asarray(q.dof) - q.scale.shape[-1] + 1.0

        mixing = wishart.random(lambda q: Gamma.from_parameters(shape=0.5 * freedom(q), rate=0.5 * freedom(q)))
        covariance = wishart.given(lambda q: jnp.linalg.inv(q.scale) / freedom(q)) / mixing
    return Closed("vector_gaussian_about", {"mean": found[0], "extra": found[1], "covariance": covariance})


factor = register(
    Factor(
        name="vector_gaussian",
        edges={"mean": "vector", "precision": "posdef"},
        out=_out,
        log_density=_log_density,
        expected_log=_expected_log,
        predict=_predict,
        conjugate=frozenset({"out", "mean", "precision"}),
        keeps={"mean": VectorGaussian},
        closed=_closed,
        role=roles.VectorGaussian(),
        source="winn2005vmp",
    )
)


def _isotropic_log_density(out, mean, precision):
    size = out.shape[-1]
    return 0.5 * size * jnp.log(precision) - size * HALF_LOG_2PI - 0.5 * precision * jnp.sum((out - mean) ** 2)


def _isotropic_expected_log(out: Vector, mean: Vector, precision: Positive):
    size = out.mean.shape[-1]
    square = jnp.trace(out.covariance) + jnp.trace(mean.covariance) + jnp.sum((out.mean - mean.mean) ** 2)
    return 0.5 * size * precision.log - size * HALF_LOG_2PI - 0.5 * precision.mean * square


def _isotropic_predict(mean: Vector, precision: Positive) -> VectorGaussian:
    noise = jnp.eye(mean.mean.shape[-1]) / precision.mean
    return VectorGaussian.from_parameters(mean=mean.mean, covariance=mean.covariance + noise)


def _isotropic_closed(arguments: Mapping[str, Formula]) -> Closed | None:
    found = _about(arguments)
    if found is None:
        return None
    covariance = found[0].given(lambda m: jnp.eye(m.shape[-1])) / arguments["precision"]
    return Closed("vector_gaussian_about", {"mean": found[0], "extra": found[1], "covariance": covariance})


isotropic = register(
    Factor(
        name="isotropic_gaussian",
        edges={"mean": "vector", "precision": "positive"},
        out=lambda domains: vector(domains["mean"].size),
        log_density=_isotropic_log_density,
        expected_log=_isotropic_expected_log,
        predict=_isotropic_predict,
        conjugate=frozenset({"out", "mean", "precision"}),
        keeps={"mean": VectorGaussian},
        closed=_isotropic_closed,
        role=roles.IsotropicGaussian(),
        source="winn2005vmp",
    )
)


@told_with_name
def vector_gaussian(mean: Argument, *, covariance: Argument = None, precision: Argument = None) -> Term:
    """A multivariate Gaussian variable: N(x; mean, covariance).

    `mean` has shape (D,); give exactly one of `covariance` (D, D) (numbers, an input, or `cv.covariance(scales,
    correlations)`) and `precision` (D, D), its inverse (numbers, an input or a `wishart` variable). A positive number,
    variable or input as `precision`, such as a `gamma` one, stands for that multiple of the identity: one scale for all
    coordinates. Returns a term for `Model.random`, which raises ModelError when none or both were given, or for a
    matrix that is not symmetric positive definite. Source: winn2005vmp.
    """
    if (covariance is None) == (precision is None):
        raise ModelError(
            "vector_gaussian() needs exactly one of covariance= and precision=; "
            "write for example cv.vector_gaussian(zeros, covariance=eye)."
        )
    if covariance is None:
        precision = given_number("vector_gaussian", "precision", precision)
        scalar = (
            precision.domain.kind in ("real", "positive") if hasattr(precision, "domain") else np.ndim(precision) == 0
        )
        if scalar:
            return Term(isotropic, {"mean": mean, "precision": precision})
        return Term(factor, {"mean": mean, "precision": precision})
    if hasattr(covariance, "domain"):
        if covariance.domain.kind != "posdef":
            raise ModelError(
                f"vector_gaussian(): covariance= is '{covariance}', which is {covariance.domain}. Give numbers, an "
                "input of domain cv.posdef(d), or cv.covariance(scales, correlations). A cv.wishart variable is a "
                "precision."
            )
        return Term(factor, {"mean": mean, "precision": covariance**-1})
    return Term(factor, {"mean": mean, "precision": inverse_posdef(covariance, "vector_gaussian", "covariance")})


def inverse_posdef(matrix: Argument, factor_name: str, argument: str) -> np.ndarray:
    """The inverse of a symmetric positive definite `matrix` (..., D, D), exactly symmetric.

    Raises a ModelError that names the argument as the user wrote it, by `factor_name` and `argument`.
    """
    matrix = np.asarray(given_number(factor_name, argument, matrix))
    if not np.isfinite(matrix).all():
        raise ModelError(f"{factor_name}(): {argument} must be finite; found NaN or infinity in it. Replace it.")
    square = matrix.ndim >= 2 and matrix.shape[-1] == matrix.shape[-2] and matrix.size > 0
    if not square or not np.allclose(matrix, np.swapaxes(matrix, -1, -2)) or not np.all(np.linalg.eigvalsh(matrix) > 0):
        raise ModelError(
            f"{factor_name}(): {argument} must be a symmetric positive definite (D, D) matrix; "
            f"found shape {matrix.shape}"
            + (f" with smallest eigenvalue {np.linalg.eigvalsh(matrix).min():.3g}." if square else ".")
        )
    lower = np.linalg.inv(np.linalg.cholesky(matrix))
    return np.swapaxes(lower, -1, -2) @ lower  # symmetric to the last bit, where a general inverse is not

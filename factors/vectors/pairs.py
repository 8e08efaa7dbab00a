"""Gaussian densities of a mean and a precision that share one belief: internal, as no term of a model is written so.

N(x; mean, 1 / (multiple t)) is linear in the statistics t mean, t mean^2, t and log t of the pair, and so is a prior of
the precision alone. In a prior of the mean x stands for what that is centred on: the density is the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import jax.numpy as jnp
from jaxtyping import Float

from ..arrays import Array
from ..closed import Closed, Formula
from ..domains import Domain, real, vector
from ..factor import Factor
from ..families import NormalGamma, NormalWishart
from ..families.matrices import outer
from ..moments import PosDef, Positive, Real, RealWithPrecision, Vector, VectorWithPrecision
from ..quadrature import HALF_LOG_2PI


def _scalar(out: Real, pair: RealWithPrecision, multiple: Positive) -> Float[Array, ""]:
    second = out.mean**2 + out.variance
    square = pair.precision * second - 2.0 * out.mean * pair.shift + pair.square
    return 0.5 * (pair.log + multiple.log) - HALF_LOG_2PI - 0.5 * multiple.mean * square


def _vector(out: Vector, pair: VectorWithPrecision, multiple: Positive) -> Float[Array, ""]:
    size = out.mean.shape[-1]
    second = out.covariance + outer(out.mean, out.mean)
    square = jnp.vdot(pair.precision, second) - 2.0 * jnp.vdot(out.mean, pair.shift) + pair.square
    return 0.5 * (pair.log_det + size * multiple.log) - size * HALF_LOG_2PI - 0.5 * multiple.mean * square


def _at_points(expected: Callable[..., Array], kind: str) -> Callable[..., Array]:
    """The density where all is known, the pair as one array (see its family)."""
    from ..families import FOR_DOMAIN

    outcome = "real" if kind == "normal_gamma" else "vector"

    def log_density(out: Array, pair: Array, multiple: Array) -> Array:
        parts = ((outcome, out), (kind, pair), ("positive", multiple))
        return expected(*(FOR_DOMAIN[own].moments_at(value) for own, value in parts))

    return log_density


def _scalar_closed(arguments: Mapping[str, Formula]) -> Closed | None:
    """Student's t: given t, the mean and the outcome about it are Gaussian, each with a multiple of t."""
    pair, multiple = arguments["pair"].belief(NormalGamma), arguments["multiple"]
    if pair is None or not multiple.known:
        return None
    wider = pair.given(lambda own: 1.0 / own.multiple) + multiple.number(1.0) / multiple
    square = pair.given(lambda own: own.precision().rate / own.precision().shape) * wider
    dof = pair.given(lambda own: 2.0 * own.precision().shape)
    return Closed("student_t", {"dof": dof, "mean": pair.given(lambda own: own.centre()), "scale": square**0.5})


def _vector_closed(arguments: Mapping[str, Formula]) -> Closed | None:
    """The same of a vector."""
    pair, multiple = arguments["pair"].belief(NormalWishart), arguments["multiple"]
    if pair is None or not multiple.known:
        return None
    wider = pair.given(lambda own: 1.0 / own.multiple) + multiple.number(1.0) / multiple
    dof, mean, square = (
        pair.given(part) for part in (NormalWishart.freedom, NormalWishart.centre, NormalWishart.square)
    )
    return Closed("vector_student_t", {"dof": dof, "mean": mean, "square": square * wider})


NORMAL_PAIR = Factor(
    name="gaussian",
    edges={"pair": "normal_gamma", "multiple": "positive"},
    out=lambda domains: real,
    log_density=_at_points(_scalar, "normal_gamma"),
    expected_log=_scalar,
    conjugate=frozenset({"out", "pair"}),
    closed=_scalar_closed,
    source="paquet2007thesis",
)
VECTOR_PAIR = Factor(
    name="vector_gaussian",
    edges={"pair": "normal_wishart", "multiple": "positive"},
    out=lambda domains: vector(domains["pair"].size),
    log_density=_at_points(_vector, "normal_wishart"),
    expected_log=_vector,
    conjugate=frozenset({"out", "pair"}),
    closed=_vector_closed,
    source="paquet2007thesis",
)


def prior_of_precision(factor: Factor, kind: str) -> Factor:
    """The factor of a precision as one of the pair that it is in."""
    expected = factor.expected_log
    assert expected is not None

    def of_pair(out: RealWithPrecision | VectorWithPrecision, **arguments: Array) -> Array:
        own = PosDef(out.precision, out.log_det) if isinstance(out, VectorWithPrecision) else Positive(*out[2:])
        return expected(own, **arguments)

    return dataclasses.replace(
        factor, out=lambda domains: Domain(kind, domains[next(iter(domains))].size), expected_log=of_pair
    )

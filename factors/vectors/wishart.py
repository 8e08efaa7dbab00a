"""The Wishart factor Wishart(out; dof, scale)."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ..arrays import Argument
from ..domains import posdef
from ..errors import ModelError
from ..factor import Factor, Term, register, told_with_name
from ..families import Wishart, matrices
from ..moments import PosDef, Positive
from ..rules import Rule
from ..special import multivariate_lgamma
from .vector_gaussian import inverse_posdef


def _log_normaliser(dof, log_det_rate, dimension):
    return 0.5 * dof * log_det_rate - 0.5 * dof * dimension * np.log(2.0) - multivariate_lgamma(0.5 * dof, dimension)


def _log_density(out, dof, rate):
    dimension = out.shape[-1]
    log_det = matrices.log_det(out)
    return (
        0.5 * (dof - dimension - 1) * log_det
        - 0.5 * jnp.vdot(rate, out)
        + _log_normaliser(dof, jnp.linalg.slogdet(rate)[1], dimension)
    )


def _expected_log(out: PosDef, dof: Positive, rate: PosDef):
    dimension = out.mean.shape[-1]
    density = 0.5 * (dof.mean - dimension - 1) * out.log_det - 0.5 * jnp.vdot(rate.mean, out.mean)
    return density + _log_normaliser(dof.mean, rate.log_det, dimension)


def _predict(dof: Positive, rate: PosDef) -> Wishart:
    return Wishart(-0.5 * rate.mean, 0.5 * (dof.mean - rate.mean.shape[-1] - 1))


_DOF = Rule(
    ("dof",),
    lambda domain, dof: dof > domain.size - 1 if isinstance(domain.size, int) else dof > 0,
    "`dof` must exceed D - 1 for D x D matrices, or the density is not normalised",
    "dof = D is a vague prior.",
)


factor = register(
    Factor(
        name="wishart",
        edges={"dof": "positive", "rate": "posdef"},
        out=lambda domains: posdef(domains["rate"].size),
        log_density=_log_density,
        expected_log=_expected_log,
        predict=_predict,
        conjugate=frozenset({"out", "rate"}),
        unsupported={
            "dof": "the multivariate Gamma function has no closed-form expectation; "
            "give the degrees of freedom as a number"
        },
        rules=(_DOF,),
        keeps={},
        source="winn2005vmp",
    )
)


@told_with_name
def wishart(dof: Argument, scale: Argument = None, *, rate: Argument = None) -> Term:
    """A Wishart variable: density proportional to det(X)^((dof - D - 1) / 2) exp(-tr(inv(scale) X) / 2).

    The mean is dof * scale. `dof` > D - 1: a number or an input. Give exactly one of `scale`, a symmetric positive
    definite (D, D) matrix of numbers, and `rate`, its inverse: numbers, an input or another `wishart` variable. Returns
    a term for `Model.random`, which raises ModelError for a scale that is not positive definite or too few degrees of
    freedom (as data they are a DataError). Source: winn2005vmp.
    """
    if (scale is None) == (rate is None):
        raise ModelError(
            "wishart() needs exactly one of scale= and rate= (its inverse). Write for example "
            "cv.wishart(dof=3.0, scale=np.eye(2))."
        )
    if hasattr(scale, "domain"):
        raise ModelError(
            "wishart(): scale= takes numbers; a random or input matrix enters as rate=, the inverse of the scale."
        )
    if rate is None:
        rate = inverse_posdef(scale, "wishart", "scale")
    return Term(factor, {"dof": dof, "rate": rate})

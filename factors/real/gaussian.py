"""The Gaussian factor N(out; mean, 1/precision)."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from ..arrays import Argument
from ..closed import Closed, Formula
from ..domains import real
from ..errors import ModelError
from ..factor import Factor, Site, Term, register, told_with_name
from ..families import Gamma, Gaussian
from ..moments import Positive, Real
from ..numbers import given_number
from ..quadrature import HALF_LOG_2PI
from ..roles import ScalarGaussian
from ..special import log_ndtr


def _log_density(out, mean, precision):
    return 0.5 * jnp.log(precision) - HALF_LOG_2PI - 0.5 * precision * (out - mean) ** 2


def _expected_log(out: Real, mean: Real, precision: Positive):
    square = (out.mean - mean.mean) ** 2 + out.variance + mean.variance
    return 0.5 * precision.log - HALF_LOG_2PI - 0.5 * precision.mean * square


def _predict(mean: Real, precision: Positive) -> Gaussian:
    # E[1/precision] does not follow from (E x, E log x); exp of minus the mean logarithm is exact for a known
    # precision.
    return Gaussian.from_parameters(mean=mean.mean, variance=mean.variance + jnp.exp(-precision.log))


def gaussian_site(out, mean, variance, power=1.0) -> Site:
    """The site of an exact observation `out` of s ~ N(mean, variance): the noise is already part of the variance."""
    residual = out - mean
    log_evidence = -0.5 * residual**2 / variance - 0.5 * jnp.log(variance) - HALF_LOG_2PI
    return Site(log_evidence, residual / variance, 1.0 / variance, jnp.zeros_like(variance))


def about(arguments: Mapping[str, Formula]) -> Closed | None:
    """A Gaussian mean adds its variance."""
    mean = arguments["mean"].belief(Gaussian)
    if mean is None or not mean.alone(arguments["precision"]):
        return None
    centre, extra = mean.given(lambda q: q.mean()), mean.given(lambda q: q.variance())
    return Closed("gaussian_about", {"mean": centre, "extra": extra, "precision": arguments["precision"]})


_LOG_PRECISIONS = np.linspace(-14.0, 14.0, 281)  # in sds of the logarithm of a Gamma precision


def _log_predictive(out, mean: Real, precision):
    """N(out; m, v + 1 / precision), averaged over a Gamma precision on a grid of its logarithm."""

    def normal(t):
        variance = mean.variance + 1.0 / t
        return -HALF_LOG_2PI - 0.5 * jnp.log(variance) - 0.5 * (out - mean.mean) ** 2 / variance

    if not isinstance(precision, Gamma):
        return normal(precision)
    a, b = precision.shape, precision.rate
    width = jnp.sqrt(jax.scipy.special.polygamma(1, a))
    u = jnp.log(a / b) + width * _LOG_PRECISIONS
    log_weight = a * (u + jnp.log(b)) - b * jnp.exp(u) - jax.lax.lgamma(a)
    step = width * (_LOG_PRECISIONS[1] - _LOG_PRECISIONS[0])
    return jax.nn.logsumexp(log_weight + normal(jnp.exp(u))) + jnp.log(step)


factor = register(
    Factor(
        name="gaussian",
        edges={"mean": "real", "precision": "positive"},
        out=lambda domains: real,
        log_density=_log_density,
        expected_log=_expected_log,
        predict=_predict,
        conjugate=frozenset({"out", "mean", "precision"}),
        sites={"identity": gaussian_site},
        log_predictive=_log_predictive,
        keeps={"mean": Gaussian},
        closed=about,
        role=ScalarGaussian(),
        log_below=lambda x, mean, precision: log_ndtr((x - mean) * jnp.sqrt(precision)),
        log_above=lambda x, mean, precision: log_ndtr((mean - x) * jnp.sqrt(precision)),
        source="minka2001ep, winn2005vmp",
    )
)


@told_with_name
def gaussian(mean: Argument, *, variance: Argument = None, precision: Argument = None, sd: Argument = None) -> Term:
    """A Gaussian variable: N(x; mean, variance) = exp(-(x - mean)^2 / (2 variance)) / sqrt(2 pi variance).

    `mean` is real; give exactly one of `variance`, `precision` = 1 / variance, `sd` = sqrt(variance), each positive: a
    number, an array, an input, or an expression. A random precision is a `gamma` variable or `exp` of a real one;
    `variance=exp(g)` is read as `precision=exp(-g)`. Returns a term for `Model.random`, which raises ModelError when
    none or several of the three are given, and for numbers that are not positive. Source: minka2001ep (EP), winn2005vmp
    (VMP).
    """
    return Term(factor, {"mean": mean, "precision": given_precision("gaussian", variance, precision, sd)})


def given_precision(builder: str, variance: Argument, precision: Argument, sd: Argument) -> Argument:
    """The precision of a term, from the one of these three that was given."""
    given = {
        name: value
        for name, value in (("variance", variance), ("precision", precision), ("sd", sd))
        if value is not None
    }
    if len(given) != 1:
        found = ", ".join(given) or "none of them"
        raise ModelError(
            f"{builder}() needs exactly one of variance=, precision=, sd=; found {found}. "
            f"Write for example cv.{builder}(0.0, variance=1.0)."
        )
    ((name, value),) = given.items()
    value = checked_positive(builder, name, given_number(builder, name, value))
    if name == "precision":
        return value
    value = np.float64(value) if isinstance(value, float) else value
    with np.errstate(over="ignore", divide="ignore"):  # what overflows is refused as a precision
        return 1.0 / (value if name == "variance" else value**2)


def checked_positive(builder: str, name: str, value: Argument) -> Argument:
    """Checks numbers here, before they are inverted, so that the error names what the user wrote."""
    if isinstance(value, (float, np.ndarray)):
        wrong = ~((np.asarray(value) > 0) & np.isfinite(value))
        if np.any(wrong):
            bad = np.asarray(value)[wrong].ravel()[0]
            raise ModelError(f"{builder}(): {name} must be positive and finite, found {bad:g}. Give {name} > 0.")
    return value

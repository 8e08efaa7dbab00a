"""The Gaussian factor N(out; mean, 1/precision)."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from .domains import real
from .errors import ModelError
from .factor import Factor, Site, Term, register, told_with_name
from .families import Gaussian
from .moments import Positive, Real
from .quadrature import HALF_LOG_2PI


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
        source="minka2001ep, winn2005vmp",
    )
)


@told_with_name
def gaussian(mean: Any, *, variance: Any = None, precision: Any = None, sd: Any = None) -> Term:
    """A Gaussian variable: N(x; mean, variance) = exp(-(x - mean)^2 / (2 variance)) / sqrt(2 pi variance).

    `mean` is real; give exactly one of `variance`, `precision` = 1 / variance, `sd` = sqrt(variance), each positive: a
    number, an array, an input, or an expression. A random precision is a `gamma` variable or `exp` of a real one;
    `variance=exp(g)` is read as `precision=exp(-g)`. Returns a term for `Model.random`, which raises ModelError when
    none or several of the three are given.
    """
    return Term(factor, {"mean": mean, "precision": given_precision("gaussian", variance, precision, sd)})


def given_precision(builder: str, variance: Any, precision: Any, sd: Any) -> Any:
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
    value = _checked_positive(builder, name, value)
    return value if name == "precision" else 1.0 / (value if name == "variance" else value**2)


def _checked_positive(builder: str, name: str, value: Any) -> Any:
    """Checks numbers here, before they are inverted, so that the error speaks of what the user wrote."""
    import numpy as np

    if (
        isinstance(value, (int, float, np.ndarray))
        or hasattr(value, "__jax_array__")
        or type(value).__module__.startswith("jax")
    ):
        array = np.asarray(value, dtype=float)
        if not np.all(array > 0) or not np.all(np.isfinite(array)):
            bad = array.ravel()[~((array.ravel() > 0) & np.isfinite(array.ravel()))][0]
            raise ModelError(f"{builder}(): {name} must be positive and finite, found {bad:g}. Give {name} > 0.")
        return array if array.ndim else float(array)
    return value

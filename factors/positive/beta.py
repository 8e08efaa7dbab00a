"""The Beta factor Beta(out; a, b)."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ..arrays import Argument, Array
from ..domains import unit
from ..errors import ModelError
from ..factor import Factor, Term, register, told_with_name
from ..families import Beta
from ..moments import Moments, Positive, Unit
from ..numbers import given_number
from ..quadrature.derived import expectation_of, value_of
from ..quadrature.predictive import unit_mean
from ..rules import inner
from ..special import lgamma

_KINDS = {"a": "positive", "b": "positive", "mean": "unit", "total": "positive"}


def _log_normaliser(a, b):
    return lgamma(a + b) - lgamma(a) - lgamma(b)


def _linear(out: Unit, a, b):
    """The log density as a function of log x and log(1 - x)."""
    return (a - 1) * out.log + (b - 1) * out.log_complement + _log_normaliser(a, b)


def _log_density(out, a, b):
    return _linear(Unit(jnp.log(out), jnp.log1p(-out)), a, b)


def _expected_log(out: Unit, a: Positive, b: Positive):
    return _linear(out, a.mean, b.mean)


def _with_random(density, random: frozenset[str]):
    """The expected log density with these arguments random: linear in the moments of `out`, so that needs no points."""
    if not random - {"out"}:
        return None
    kinds = {edge: kind for edge, kind in _KINDS.items() if edge in random}
    expectation = expectation_of(
        lambda points, known: density(known["out"], **points, **{e: v for e, v in known.items() if e != "out"}), kinds
    )

    def expected(out: Unit, **arguments: Moments) -> Array:
        known = {edge: value_of(_KINDS[edge], m) for edge, m in arguments.items() if edge not in random}
        return expectation({edge: arguments[edge] for edge in kinds}, {"out": out, **known})

    return expected


def _predict(a: Positive, b: Positive) -> Beta:
    return Beta(a.mean - 1.0, b.mean - 1.0)


factor = register(
    Factor(
        name="beta",
        edges={"a": "positive", "b": "positive"},
        out=lambda domains: unit,
        log_density=_log_density,
        expected_log=_expected_log,
        predict=_predict,
        conjugate=frozenset({"out"}),
        with_random=lambda random: _with_random(_linear, random),
        keeps={},
        source="winn2005vmp",
    )
)


def _linear_of_mean(out: Unit, mean, total):
    return _linear(out, total * mean, total * (1.0 - mean))


def _log_density_of_mean(out, mean, total):
    return _log_density(out, total * mean, total * (1.0 - mean))


def _predict_of_mean(mean: Unit, total: Positive) -> Beta:
    centre = unit_mean(mean)
    return Beta(total.mean * centre - 1.0, total.mean * (1.0 - centre) - 1.0)


by_mean = register(
    Factor(
        name="beta_of_mean",
        edges={"mean": "unit", "total": "positive"},
        out=lambda domains: unit,
        log_density=_log_density_of_mean,
        expected_log=lambda out, mean, total: _linear_of_mean(out, value_of("unit", mean), total.mean),
        conjugate=frozenset({"out"}),
        with_random=lambda random: _with_random(_linear_of_mean, random),
        predict=_predict_of_mean,
        rules=(inner("mean"),),
        keeps={},
        source="knowles2011ncvmp",
    )
)


@told_with_name
def beta(
    a: Argument = None, b: Argument = None, *, mean: Argument = None, total: Argument = None, variance: Argument = None
) -> Term:
    """A Beta variable on (0, 1): density proportional to x^(a - 1) (1 - x)^(b - 1), with mean a / (a + b).

    `a`, `b` > 0 (pseudo-counts of true and false): numbers, inputs, or positive variables, which NCVMP learns. Or give
    `mean` in (0, 1) and `total` = a + b, also random ones, or `mean` and `variance` < mean (1 - mean), numbers only.
    Returns a term for `Model.random`, which raises ModelError for any other combination. Source: winn2005vmp; by mean
    and total knowles2011ncvmp.
    """
    given = tuple(name for name, value in _named(a, b, mean, total, variance) if value is not None)
    if given == ("a", "b"):
        return Term(factor, {"a": a, "b": b})
    if given == ("mean", "total"):
        return Term(by_mean, {"mean": mean, "total": total})
    if given == ("mean", "variance"):
        mean, variance = given_number("beta", "mean", mean), given_number("beta", "variance", variance)
        if any(hasattr(value, "domain") or hasattr(value, "factor") for value in (mean, variance)):
            raise ModelError("beta(): mean= and variance= take numbers. Give mean= and total= for variables and data.")
        if not np.all((variance > 0.0) & (variance < mean * (1.0 - mean))):
            raise ModelError(
                f"beta(): variance must lie between 0 and mean (1 - mean); found mean {mean} and variance {variance}. "
                "Give a smaller variance, or mean= and total=."
            )
        total = mean * (1.0 - mean) / variance - 1.0
        return Term(factor, {"a": mean * total, "b": (1.0 - mean) * total})
    raise ModelError(
        f"beta() needs a= and b=, or mean= and one of total= and variance=; found {', '.join(given) or 'nothing'}. "
        "Write for example cv.beta(1.0, 1.0)."
    )


def _named(a, b, mean, total, variance):
    return ("a", a), ("b", b), ("mean", mean), ("total", total), ("variance", variance)

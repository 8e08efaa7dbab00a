"""The ordered factors: into which of K + 1 ordered classes a noisy score falls, between K cutpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import jax.numpy as jnp

from ..arrays import Argument, Array
from ..calls import call_checked
from ..domains import Domain, category
from ..factor import Factor, Site, Term, register
from ..families import Categorical
from ..moments import Real, Vector
from ..quadrature import tilted_site
from ..quadrature.nodes import scalar_rule
from ..quadrature.truncation import between, interval_site
from ..rules import INCREASING
from ..special import log_sigmoid


def bounds(out, cutpoints):
    """The cutpoints below and above class `out`; infinite at the ends."""
    index = jnp.asarray(out).astype(jnp.int32)
    edge = jnp.full((*cutpoints.shape[:-1], 1), jnp.inf)
    padded = jnp.concatenate([-edge, cutpoints, edge], axis=-1)
    if padded.ndim == 1:
        return padded[index], padded[index + 1]
    return tuple(jnp.take_along_axis(padded, (index + i)[..., None], axis=-1)[..., 0] for i in (0, 1))


def _log_probit(low, high, score):
    return between(low - score, high - score)[0]


def _log_logistic(low, high, score):
    """log(sigma(high - s) - sigma(low - s)) = log sigma(high - s) + log sigma(s - low) + log(1 - exp(low - high))."""
    gap = jnp.where(jnp.isinf(high - low), 1.0, high - low)
    return (
        _end(high, high - score)
        + _end(low, score - low)
        + jnp.where(jnp.isinf(high - low), 0.0, jnp.log(-jnp.expm1(-gap)))
    )


def _end(bound, argument):
    finite = jnp.isfinite(bound)
    return jnp.where(finite, log_sigmoid(jnp.where(finite, argument, 0.0)), 0.0)


def _density(log_probability):
    def log_density(out, score, cutpoints):
        return log_probability(*bounds(out, cutpoints), score)

    return log_density


def _prediction(log_probability):
    def predict(score: Real, cutpoints: Vector) -> Categorical:
        """The class probabilities averaged over the score."""
        classes = jnp.arange(cutpoints.mean.shape[-1] + 1)
        low, high = bounds(classes, cutpoints.mean[None, :] + jnp.zeros((classes.shape[0], 1)))
        rule = scalar_rule("score", "real", score)
        table = jnp.exp(log_probability(low[:, None], high[:, None], rule.points["score"][None, :]))
        return Categorical(jnp.log(table @ rule.weights))

    return predict


def _probit_site(out, mean, variance, power=1.0, *, cutpoints) -> Site:
    low, high = bounds(out, cutpoints)
    if power != 1.0:
        return tilted_site(lambda s: power * _log_probit(low, high, s), mean, variance)
    return interval_site(low, high, mean, variance, 1.0)


def _logistic_site(out, mean, variance, power=1.0, *, cutpoints) -> Site:
    low, high = bounds(out, cutpoints)
    return tilted_site(lambda s: power * _log_logistic(low, high, s), mean, variance)


def _classes(domains: Mapping[str, Domain]) -> Domain:
    size = domains["cutpoints"].size
    return category(None if size is None else size + 1)


def _ordered(name: str, log_probability: Callable[[Array, Array, Array], Array], site: Callable[..., Site]) -> Factor:
    return register(
        Factor(
            name=name,
            edges={"score": "real", "cutpoints": "vector"},
            out=_classes,
            log_density=_density(log_probability),
            predict=_prediction(log_probability),
            sites={"linear": site},
            site_edge="score",
            closed_sites=frozenset({"linear"} if site is _probit_site else ()),
            unsupported={
                "cutpoints": "random cutpoints must keep their order: declare them as "
                "m.random('cutpoints', cv.ordered(cv.gaussian(0.0, sd=5.0), size=4)), or give them as data"
            },
            rules=(INCREASING,),
            source="mccullagh1980ordinal",
        )
    )


probit = _ordered("ordered_probit", _log_probit, _probit_site)
logistic = _ordered("ordered_logistic", _log_logistic, _logistic_site)


@call_checked
def ordered_probit(score: Argument, cutpoints: Argument) -> Term:
    """An ordered class 0, ..., K: Phi(c_k - score) - Phi(c_(k-1) - score) for class k, c_(-1) = -inf, c_K = inf.

    `score` is a real expression; `cutpoints` are K increasing numbers, shape (K,), an input, or random as
    cv.ordered(...); those that do not increase are a ModelError as numbers and a DataError as data. Returns a term for
    `Model.random`. Source: mccullagh1980ordinal.
    """
    return Term(probit, {"score": score, "cutpoints": cutpoints})


@call_checked
def ordered_logistic(score: Argument, cutpoints: Argument) -> Term:
    """An ordered class 0, ..., K: sigma(c_k - score) - sigma(c_(k-1) - score) for class k, sigma(x) = 1 / (1 + e^-x).

    `score` is a real expression; `cutpoints` are K increasing numbers, shape (K,), an input, or random as
    cv.ordered(...); those that do not increase are a ModelError as numbers and a DataError as data. Returns a term for
    `Model.random`. Source: mccullagh1980ordinal.
    """
    return Term(logistic, {"score": score, "cutpoints": cutpoints})

"""The Dirichlet-multinomial factors: counts of classes that vary more than those of a multinomial do."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from ..arrays import Argument, Array
from ..discrete.binomial import binomial_below
from ..domains import vector
from ..errors import ModelError
from ..factor import Factor, Term, register, told_with_name
from ..families import VectorGaussian
from ..moments import Count, Positive, Simplex, Vector
from ..quadrature.nodes import beta_points
from ..quadrature.predictive import simplex_mean
from ..rules import COUNTS_OF_CLASSES, inner
from ..special import lgamma

_RIDGE = 1e-6
_UNSUPPORTED = {
    "out": "a vector of counts has no family of its own; observe it, or draw each trial with cv.categorical",
    "n": "the total of observed counts is known; give it as numbers or an input",
}


def _log_density(out, n, concentration):
    total = concentration.sum(-1)
    ways = lgamma(n + 1.0) - lgamma(out + 1.0).sum(-1) + lgamma(total) - lgamma(n + total)
    return ways + (lgamma(out + concentration) - lgamma(concentration)).sum(-1)


def _covariance(n, concentration):
    total = concentration.sum()
    p = concentration / total
    return n * (n + total) / (1.0 + total) * (jnp.diag(p) - jnp.outer(p, p))


def _below(x, n, concentration):
    def one(x, a, b):
        u, weights = beta_points(a, b)
        return weights @ binomial_below(x, n, jax.nn.sigmoid(u))

    return jax.vmap(one)(x, concentration, concentration.sum() - concentration)


def _draw(key, n, concentration):
    one, other = jax.random.split(key)
    return jax.random.multinomial(other, n, jax.random.dirichlet(one, concentration)).astype(float)


_KNOWN: dict[str, Callable[..., Array]] = {
    "mean": lambda n, concentration: n * concentration / concentration.sum(),
    "variance": lambda n, concentration: jnp.diagonal(_covariance(n, concentration)),
    "below": _below,
    "draw": _draw,
    "covariance": _covariance,
}


def _of_mean(function: Callable[..., Array]) -> Callable[..., Array]:
    """The same with concentration = total * mean."""
    return lambda *args, mean, total, **others: function(*args, concentration=total * mean, **others)


def _predict(n: Count, concentration: Vector) -> VectorGaussian:
    return _matched(n.mean, concentration.mean)


def _predict_of_mean(n: Count, mean: Simplex, total: Positive) -> VectorGaussian:
    return _matched(n.mean, total.mean * simplex_mean(mean))


def _matched(n, concentration) -> VectorGaussian:
    """Of equal mean and covariance, which is singular along the total: a ridge makes it a density."""
    ridge = _RIDGE * (1.0 + n) * jnp.eye(concentration.shape[-1])
    mean = _KNOWN["mean"](n, concentration)
    return VectorGaussian.from_parameters(mean=mean, covariance=_covariance(n, concentration) + ridge)


factor = register(
    Factor(
        name="dirichlet_multinomial",
        joined="0.6.0",
        edges={"n": "count", "concentration": "concentration"},
        out=lambda domains: vector(domains["concentration"].size),
        log_density=_log_density,
        predict=_predict,
        unsupported={
            **_UNSUPPORTED,
            "concentration": "a Gaussian belief about it would reach below zero; "
            "give it as mean= and total=, of which the total may be random",
        },
        rules=(COUNTS_OF_CLASSES,),
        conditional={**_KNOWN, "whole": True},
        source="minka2000dirichlet",
    )
)
by_mean = register(
    Factor(
        name="dirichlet_multinomial_of_mean",
        joined="0.6.0",
        edges={"n": "count", "mean": "simplex", "total": "positive"},
        out=lambda domains: vector(domains["mean"].size),
        log_density=_of_mean(_log_density),
        predict=_predict_of_mean,
        unsupported={
            **_UNSUPPORTED,
            "mean": "no belief keeps a random mean and its total together; give the mean as numbers or an input, or "
            "draw the probabilities, cv.dirichlet(mean=, total=), and the counts from them, cv.multinomial",
        },
        rules=(COUNTS_OF_CLASSES, inner("mean", "simplex")),
        conditional={**{part: _of_mean(function) for part, function in _KNOWN.items()}, "whole": True},
        source="minka2000dirichlet",
    )
)


@told_with_name
def dirichlet_multinomial(
    n: Argument, concentration: Argument = None, *, mean: Argument = None, total: Argument = None
) -> Term:
    """Counts of K classes in n trials whose probabilities are Dirichlet(concentration), drawn anew for every vector.

    Its density is n! / prod_k x_k! B(concentration + x) / B(concentration), with B the multivariate Beta function.
    `n`: whole numbers or an input. `concentration` has shape (K,) and positive entries: numbers or an input; or give
    `mean`, shape (K,), numbers or an input, and `total` > 0, which may be a variable, with concentration = total *
    mean: the larger the total, the nearer to a multinomial. Counts that do not sum to n are a DataError. Returns a term
    for `Model.random`, which raises ModelError for any other combination. Source: minka2000dirichlet.
    """
    if concentration is not None and mean is None and total is None:
        return Term(factor, {"n": n, "concentration": concentration})
    if concentration is None and mean is not None and total is not None:
        return Term(by_mean, {"n": n, "mean": mean, "total": total})
    raise ModelError(
        "dirichlet_multinomial() needs concentration=, or mean= and total=. Write for example "
        "cv.dirichlet_multinomial(10, np.ones(3))."
    )

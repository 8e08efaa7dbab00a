"""The factor of a belief that is given as a prior: its natural parameters are data."""

from __future__ import annotations

import functools
from typing import NoReturn

import jax.numpy as jnp

from .arrays import Array
from .factor import Factor
from .families import FOR_DOMAIN
from .families.matrices import outer
from .moments import Count, Moments, Real, Vector
from .quadrature import HALF_LOG_2PI


@functools.cache
def given(kind: str) -> Factor:
    """The density q(x) = h(x) exp(sum_j <eta_j, t_j(x)> - A(eta)) of a domain's family, with arguments eta_j.

    `kind` is the kind of the domain. The arguments are called `natural_0`, `natural_1`, ... in the order of the
    family's statistics. Returns a factor for the compiler; it is no part of the vocabulary.
    """
    family = FOR_DOMAIN[kind]
    names = tuple(f"natural_{j}" for j in range(len(family.natural_ndims)))

    def expected_log(out: Moments, **arguments: Array) -> Array:
        naturals = tuple(arguments[name] for name in names)
        if isinstance(out, Real):  # eta t - A loses all digits when |mean| is many standard deviations
            precision = -2.0 * naturals[1]
            spread = (out.mean - naturals[0] / precision) ** 2 + out.variance
            return 0.5 * (jnp.log(precision) - precision * spread) - HALF_LOG_2PI
        total = sum(jnp.sum(eta * stat) for eta, stat in zip(naturals, _stats(out), strict=True))
        base = -out.log_factorial if isinstance(out, Count) else 0.0
        return total - family.from_naturals(naturals).log_partition() + base

    def log_density(out: Array, **arguments: Array) -> Array:
        return family.from_naturals(tuple(arguments[name] for name in names)).log_density(out)

    return Factor(
        name="given belief",
        edges=dict.fromkeys(names, "natural"),
        out=_never,
        log_density=log_density,
        expected_log=expected_log,
        predict=_never,
        conjugate=frozenset({"out"}),
    )


def _stats(moments: Moments) -> tuple[Array, ...]:
    """The expected statistics: the same numbers, except that Gaussians keep variances."""
    if isinstance(moments, Vector):
        return moments.mean, moments.covariance + outer(moments.mean, moments.mean)
    return (moments.mean,) if isinstance(moments, Count) else tuple(moments)


def _never(*args: object, **kwargs: object) -> NoReturn:
    raise AssertionError("a given belief is made by the compiler, not by a model")

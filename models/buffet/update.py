"""Posterior draws of a prior's own parameters given a matrix; data enter through the matrix alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from ...engine.mcmc.keys import generator
from ...engine.mcmc.slice_sampling import slice_draw
from .checks import counts_of, positive, whole
from .prior import BetaBernoulli, IndianBuffet, harmonic


def draw_mass(
    prior: IndianBuffet, features: int, rows: int, key: Any, shape: float = 1.0, rate: float = 1.0
) -> IndianBuffet:
    """The prior with a mass drawn given the matrix: `mass | Z ~ Gamma(shape + K, rate + H_n(concentration))`.

    Args:
        prior: the prior; its mass is not used.
        features: K, the number of columns that are not empty.
        rows: n, the number of rows.
        key: a key of `jax.random`.
        shape: of the mass's own prior, Gamma(shape, rate).
        rate: of the mass's own prior.

    Returns:
        The prior with the new mass, an independent draw.

    Source: ghahramani2007bayesian, knowles2011nonparametric.
    """
    shape, rate = positive("shape", shape), positive("rate", rate)
    total = rate + harmonic(whole("rows", rows), prior.concentration)
    found = generator(key).gamma(shape + whole("features", features, least=0)) / total
    return dataclasses.replace(prior, mass=max(found, np.finfo(np.float64).tiny))


def draw_concentration(
    prior: IndianBuffet, counts: Any, rows: int, key: Any, shape: float = 1.0, rate: float = 1.0
) -> IndianBuffet:
    """The prior with its concentration moved by one transition of a slice sampler in its logarithm.

    Args:
        prior: the prior.
        counts: (features,) ones in the columns that are not empty.
        rows: the number of rows.
        key: a key of `jax.random`.
        shape: of the concentration's own prior, Gamma(shape, rate).
        rate: of the concentration's own prior.

    Returns:
        The prior with the new concentration; the transition leaves its posterior as it is.

    Source: neal2003slice, knowles2011nonparametric.
    """
    rows = whole("rows", rows)
    counts = counts_of(counts, rows, least=1)
    found = _slice(
        lambda value: dataclasses.replace(prior, concentration=value).log_columns(counts, rows),
        prior.concentration,
        (positive("shape", shape), positive("rate", rate)),
        generator(key),
    )
    return dataclasses.replace(prior, concentration=found)


def draw_finite_mass(
    prior: BetaBernoulli, counts: Any, rows: int, key: Any, shape: float = 1.0, rate: float = 1.0
) -> BetaBernoulli:
    """The finite prior with its mass moved by one transition of a slice sampler in its logarithm, given no weights.

    Args:
        prior: the prior.
        counts: (columns,) ones in at most `prior.features` columns; those left out have none.
        rows: the number of rows.
        key: a key of `jax.random`.
        shape: of the mass's own prior, Gamma(shape, rate).
        rate: of the mass's own prior.

    Returns:
        The prior with the new mass; the transition leaves its posterior as it is.

    Source: neal2003slice.
    """
    rows = whole("rows", rows)
    counts = counts_of(counts, rows)
    found = _slice(
        lambda value: dataclasses.replace(prior, mass=value).log_columns(counts, rows),
        prior.mass,
        (positive("shape", shape), positive("rate", rate)),
        generator(key),
    )
    return dataclasses.replace(prior, mass=found)


def _slice(
    log_likelihood: Callable[[float], float], start: float, gamma: tuple[float, float], random: np.random.Generator
) -> float:
    """One transition for a positive number of prior Gamma(shape, rate), in its logarithm."""
    shape, rate = gamma

    def log_density(log_value: np.ndarray) -> np.ndarray:
        value = float(np.exp(log_value[0]))
        return log_likelihood(value) + shape * log_value - rate * value

    return float(np.exp(slice_draw(log_density, np.log([start]), random)[0]))

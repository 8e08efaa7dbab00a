"""Draws of binary matrices from their priors, by each of the constructions; all are exact unless truncated."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...engine.mcmc.keys import generator
from ...factors.errors import DataError, UnsupportedError
from .checks import binary, whole
from .prior import BetaBernoulli, IndianBuffet, harmonic


class Draw(NamedTuple):
    """A matrix and the weights that it was drawn with.

    Attributes:
        matrix: (rows, features) booleans; column k has ones with probability `weights[k]`, independently, unless a
            construction leaves out empty columns, and then given that it is not empty.
        weights: (features,) probabilities.
        missed: the expected number of features that the rows have beyond these, given the weights: 0 unless the
            construction was truncated.
    """

    matrix: np.ndarray
    weights: np.ndarray
    missed: float


def sample_restaurant(prior: IndianBuffet, rows: int, key: Any, given: Any = None) -> np.ndarray:
    """A matrix row by row: each takes features in proportion to how many rows before it have them, and new ones.

    Args:
        prior: the prior.
        rows: how many rows to draw.
        key: a key of `jax.random`.
        given: (earlier rows, features), the rows that came before; none by default. The draw is then their predictive
            distribution, `Z_{n+1} | Z_1 .. Z_n` of the beta-Bernoulli process.

    Returns:
        (rows, features) booleans, without the rows given: first their features, then new ones as they appeared, none
        of which is empty.

    Raises:
        DataError: `given` has other entries than 0 and 1, or `rows` is no whole number above zero.

    Source: griffiths2011indian, ghahramani2007bayesian.
    """
    rows, random = whole("rows", rows), generator(key)
    earlier = np.zeros((0, 0), dtype=bool) if given is None else binary(given)
    before, known = earlier.shape
    total = prior.concentration + before + np.arange(rows)
    first = np.cumsum(random.poisson(prior.mass * prior.concentration / total)) + known
    matrix = np.zeros((rows, first[-1]), dtype=bool)
    counts = np.append(earlier.sum(axis=0), np.zeros(first[-1] - known))
    had = known
    for row, all_now, denominator in zip(matrix, first, total, strict=True):
        row[:had] = random.random(had) * denominator < counts[:had]
        row[had:all_now] = True
        counts += row
        had = all_now
    return matrix


def sample_beta_process(prior: IndianBuffet, rows: int, key: Any) -> Draw:
    """The weights of the beta process that some row has, and the rows, Bernoulli processes given the weights.

    Weights are a Poisson process on (0, 1) of intensity `mass c x^-1 (1 - x)^(c - 1)` with c the concentration. Those
    that some of n rows have number Poisson(`mass H_n(c)`), and each is a mixture: with probability proportional to
    `1 / (c + j - 1)` row j is the first to have it, and the weight is Beta(1, c + j - 1). The infinitely many others
    give empty columns. Nothing is truncated.

    Args:
        prior: the prior.
        rows: how many rows.
        key: a key of `jax.random`.

    Returns:
        The draw, its features in no order, none of them empty.

    Source: thibaux2007hierarchical.
    """
    rows, random, c = whole("rows", rows), generator(key), prior.concentration
    features = random.poisson(prior.mass * harmonic(rows, c))
    below = np.cumsum(1.0 / (c + np.arange(rows)))
    first = np.minimum(np.searchsorted(below, below[-1] * random.random(features), side="right"), rows - 1)
    weights = random.beta(1.0, c + first)
    return Draw(_with_first(first, weights, rows, random), weights, 0.0)


def sample_stick_breaking(
    prior: IndianBuffet, rows: int, key: Any, features: int | None = None, threshold: float = 0.01
) -> Draw:
    """Weights in decreasing order, `weight_k = stick_1 .. stick_k` with `stick ~ Beta(mass, 1)`, and the rows.

    Without `features` the draw is exact: sticks are broken until a weight is below the threshold, and of the infinitely
    many below it, a Poisson process of intensity `mass / x`, those that some row has are drawn as in
    `sample_beta_process`. With `features` so many sticks are broken, and `missed` states what that leaves out.

    Args:
        prior: the prior, of concentration 1.
        rows: how many rows.
        key: a key of `jax.random`.
        features: None, or the number of sticks.
        threshold: in (0, 1); where the exact draw passes from all weights to those that some row has.

    Returns:
        The draw, weights decreasing. Features above the threshold, or all of `features`, may be empty.

    Raises:
        UnsupportedError: a concentration other than 1.
        DataError: a number of rows or features below 1, or a threshold outside (0, 1).

    Source: teh2007stick.
    """
    rows, random = whole("rows", rows), generator(key)
    if prior.concentration != 1.0:
        raise UnsupportedError(
            f"The sticks of the two-parameter process, here of concentration {prior.concentration:.6g}, are not "
            "independent beta variables; sample_beta_process draws its weights, exactly."
        )
    if not 0.0 < threshold < 1.0:
        raise DataError(f"The threshold of weights lies between 0 and 1; found {threshold!r}.")
    if features is not None:
        weights = np.exp(-np.cumsum(random.standard_exponential(whole("features", features)) / prior.mass))
        missed = float(prior.mass * _expected_below(weights[-1], rows).sum())
        return Draw(random.random((rows, len(weights))) < weights, weights, missed)
    # Minus the logs of the weights are a Poisson process of rate `mass` on the positive numbers.
    level = -np.log(threshold)
    above = np.exp(-np.sort(random.random(random.poisson(prior.mass * level)) * level))
    expected = _expected_below(threshold, rows)
    below = np.cumsum(expected)
    count = random.poisson(prior.mass * below[-1])
    first = np.minimum(np.searchsorted(below, below[-1] * random.random(count), side="right"), rows - 1)
    # Of the density proportional to (1 - x)^first on (0, threshold), by inversion.
    inside = -np.expm1((first + 1.0) * np.log1p(-threshold))
    small = -np.expm1(np.log1p(-random.random(count) * inside) / (first + 1.0))
    matrix = np.concatenate(
        [random.random((rows, len(above))) < above, _with_first(first, small, rows, random)], axis=1
    )
    weights = np.concatenate([above, small])
    order = np.argsort(-weights, kind="stable")
    return Draw(matrix[:, order], weights[order], 0.0)


def sample_finite(prior: BetaBernoulli, rows: int, key: Any) -> Draw:
    """`weight_k ~ Beta(mass / features, 1)` and `z_nk ~ Bernoulli(weight_k)`.

    Args:
        prior: the prior.
        rows: how many rows.
        key: a key of `jax.random`.

    Returns:
        The draw, all columns, also the empty ones.

    Source: griffiths2011indian.
    """
    rows, random = whole("rows", rows), generator(key)
    weights = np.exp(-random.standard_exponential(prior.features) / prior.shape)
    return Draw(random.random((rows, prior.features)) < weights, weights, 0.0)


def _expected_below(threshold: float, rows: int) -> np.ndarray:
    """(rows,) integrals of `(1 - x)^(j - 1)` from 0 to the threshold: times the mass, the expected number of features
    of a weight below it that row j is the first to have."""
    j = np.arange(1, rows + 1)
    return -np.expm1(j * np.log1p(-threshold)) / j


def _with_first(first: np.ndarray, weights: np.ndarray, rows: int, random: np.random.Generator) -> np.ndarray:
    """Rows given the weights and the first row that has each feature."""
    matrix = random.random((rows, len(weights))) < weights
    row = np.arange(rows)[:, None]
    return (matrix & (row > first)) | (row == first)

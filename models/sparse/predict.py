"""Other samples given drawn loadings and noise: their factors, density and missing entries, by exact Gaussians."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ...engine.mcmc.keys import generator
from ...engine.support.user_numbers import numbers
from ...factors.errors import DataError, UnsupportedError


class Draw(NamedTuple):
    """A point of the posterior.

    Attributes:
        loading: (rows, K).
        noise: (rows,) precisions.
        factor: (K, samples) of the data's own samples, or None; new samples do not depend on them.
        score_mass: None for independent normal scores; or the mass of the Dirichlet process that the scores of each
            factor come from: then new samples take those of the data's own ones.
    """

    loading: np.ndarray
    noise: np.ndarray
    factor: np.ndarray | None = None
    score_mass: float | None = None


class Factors(NamedTuple):
    """Factors of samples given what is observed of them: independent Gaussians.

    Attributes:
        mean: (K, samples).
        covariance: (patterns, K, K), one for each pattern of missing entries.
        pattern: (samples,) which of them is a sample's.
    """

    mean: np.ndarray
    covariance: np.ndarray
    pattern: np.ndarray


class _Weights(NamedTuple):
    """Of samples given a draw: (patterns, K, K) Cholesky roots of the precisions of factors, the pattern of a sample,
    (K, samples) `root^-1 G^T noise y`, (rows, samples) y with 0 where missing, and what is not missing."""

    root: np.ndarray
    pattern: np.ndarray
    whitened: np.ndarray
    values: np.ndarray
    seen: np.ndarray


def factors_given(draw: Draw, samples: Any) -> Factors:
    """Factors given samples, `x | y ~ N(A^-1 G^T noise y, A^-1)`, `A = I + G^T noise G` over observed rows.

    Factors of different draws have no common order, sign or number: align draws before averaging these means.

    Args:
        draw: loadings and noise.
        samples: (rows, samples) in the units of the data and about the same centre; NaN or masked where missing.

    Returns:
        The Gaussians; a sample without any entry has N(0, I).

    Raises:
        DataError: other rows than the draw has, no samples, or infinite entries.
    """
    found = _weights(draw, samples)
    inverse = np.linalg.inv(found.root)
    covariance = np.swapaxes(inverse, 1, 2) @ inverse
    return Factors(_unwhitened(found, found.whitened), covariance, found.pattern)


def draw_factors(draw: Draw, samples: Any, key: Any) -> np.ndarray:
    """(K, samples) one draw of the factors given samples; arguments as of `factors_given`."""
    found = _weights(draw, samples)
    return _unwhitened(found, found.whitened + generator(key).standard_normal(found.whitened.shape))


def log_density(draws: Draw | Iterable[Draw], samples: Any) -> np.ndarray:
    """Log density of new samples, each by itself, `log mean over draws of N(y; 0, G G^T + 1 / noise)`.

    Args:
        draws: one draw or several; they are gone through once.
        samples: as for `factors_given`; missing entries are marginalised.

    Returns:
        (samples,) natural logarithms.

    Raises:
        DataError: as `factors_given`, or no draw.
    """
    total, count = None, 0
    for draw in _several(draws):
        one = _log_density(draw, samples)
        total, count = one if total is None else np.logaddexp(total, one), count + 1
    if total is None:
        raise DataError("A mean over draws needs one at least; found none.")
    return total - np.log(count)


def reconstruct(draws: Draw | Iterable[Draw], samples: Any) -> np.ndarray:
    """(rows, samples) means over draws of `E[G x | y]`: new samples without noise, with their missing entries.

    Arguments and errors as of `log_density`.
    """
    total, count = None, 0
    for draw in _several(draws):
        found = _weights(draw, samples)
        one = draw.loading @ _unwhitened(found, found.whitened)
        total, count = one if total is None else total + one, count + 1
    if total is None:
        raise DataError("A mean over draws needs one at least; found none.")
    return total / count


def sample_predictive(draws: Draw | Iterable[Draw], samples: int, key: Any) -> np.ndarray:
    """(rows, samples) new samples from the posterior predictive distribution, each from a draw chosen at random.

    Args:
        draws: one draw or several.
        samples: how many.
        key: a key of `jax.random`.

    Raises:
        DataError: a number of samples below 1, or no draw.
    """
    if isinstance(samples, bool) or not isinstance(samples, (int, np.integer)) or samples < 1:
        raise DataError(f"samples= is a whole number of at least 1; found {samples!r}.")
    given, random = list(_several(draws)), generator(key)
    if not given:
        raise DataError("Samples are predicted from draws; found none.")
    found = np.empty((len(given[0].noise), samples))
    chosen = random.integers(len(given), size=samples)
    for place in np.unique(chosen):
        loading, noise = given[place].loading, given[place].noise
        mine = np.flatnonzero(chosen == place)
        factor = _new_scores(given[place], len(mine), random)
        error = random.standard_normal((len(noise), len(mine)))
        found[:, mine] = loading @ factor + error / np.sqrt(noise)[:, None]
    return found


def _new_scores(draw: Draw, number: int, random: np.random.Generator) -> np.ndarray:
    """(K, number) scores of new samples that nothing is known of."""
    fresh = random.standard_normal((draw.loading.shape[1], number))
    if draw.score_mass is None or draw.factor is None:
        return fresh
    samples = draw.factor.shape[1]
    own = np.take_along_axis(draw.factor, random.integers(samples, size=fresh.shape), axis=1)
    return np.where(random.random(fresh.shape) * (draw.score_mass + samples) < samples, own, fresh)


def _several(draws: Draw | Iterable[Draw]) -> Iterable[Draw]:
    return [draws] if isinstance(draws, Draw) else draws


def _weights(draw: Draw, samples: Any) -> _Weights:
    if draw.score_mass is not None:
        raise UnsupportedError(
            "Scores from a Dirichlet process are not Gaussian given a new sample, so that it has no closed density, "
            "factors or reconstruction. Put the samples into the data with nan where they are to be predicted, and "
            "read the chains' reconstruction; or take scores='gaussian'."
        )
    values, seen = _checked(samples, len(draw.noise))
    count = draw.loading.shape[1]
    weighted = draw.loading * draw.noise[:, None]
    patterns, pattern = np.unique(seen, axis=1, return_inverse=True)
    pattern = pattern.ravel()
    precision = np.stack([(weighted * rows[:, None]).T @ draw.loading for rows in patterns.T])
    root = np.linalg.cholesky(precision + np.eye(count))
    score = weighted.T @ values
    whitened = np.empty_like(score)
    for place, one in enumerate(root):
        mine = pattern == place
        whitened[:, mine] = np.linalg.solve(one, score[:, mine])
    return _Weights(root, pattern, whitened, values, seen)


def _unwhitened(found: _Weights, whitened: np.ndarray) -> np.ndarray:
    """`root^-T` times whitened vectors."""
    result = np.empty_like(whitened)
    for place, one in enumerate(found.root):
        mine = found.pattern == place
        result[:, mine] = np.linalg.solve(one.T, whitened[:, mine])
    return result


def _log_density(draw: Draw, samples: Any) -> np.ndarray:
    found = _weights(draw, samples)
    log_noise = np.log(draw.noise / (2.0 * np.pi)) @ found.seen
    log_root = np.log(np.diagonal(found.root, axis1=1, axis2=2)).sum(axis=1)[found.pattern]
    square = draw.noise @ found.values**2 - (found.whitened**2).sum(axis=0)
    return 0.5 * log_noise - log_root - 0.5 * square


def _checked(samples: Any, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The samples with 0 where missing, and what is there."""
    found = numbers(samples, "Samples are")
    if found.ndim != 2 or len(found) != rows or not found.shape[1]:
        raise DataError(
            f"Samples are a table (rows, samples) with the {rows} rows of the loadings and a sample at least; found "
            f"shape {found.shape}." + (" Give one sample as values[:, None]." if found.ndim == 1 else "")
        )
    seen = ~np.isnan(found)
    if np.isinf(found[seen]).any():
        raise DataError("An entry of the samples is infinite. Give finite numbers, and NaN for missing entries.")
    return np.where(seen, found, 0.0), seen

"""Factor analysis by maximum likelihood, a noise variance for each row, entries missing anywhere.

The gradient is that of the expected complete log likelihood (Fisher's identity): sums of an E step, taken once for each
pattern of missing entries, give it, and L-BFGS climbs with them what EM climbs in many more steps.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from ...engine.support.asked_arguments import check_counts
from ...engine.support.user_numbers import number
from ...factors.calls import call_checked
from ...factors.errors import DataError, ModelError

LEAST_NOISE = 1e-6  # of a row's variance: below it a factor is that row (Heywood's case), and the likelihood unbounded


@dataclasses.dataclass(frozen=True, eq=False)
class FactorAnalysis:
    """What `factor_analysis` found: `y_n = mean + loading x_n + noise`, `x_n ~ N(0, I)`.

    Attributes:
        loading: (rows, factors); `loading^T noise^-1 loading` is diagonal, the largest first, the largest entry of each
            column is positive.
        mean: (rows,).
        noise_variance: (rows,).
        log_likelihood: of all observed entries together.
        iterations: of the search.
        converged: whether it came to its end.
    """

    loading: np.ndarray
    mean: np.ndarray
    noise_variance: np.ndarray
    log_likelihood: float
    iterations: int
    converged: bool

    def log_density(self, values: Any) -> np.ndarray:
        """(samples,) log density of the observed entries of each sample of `values` (rows, samples).

        Raises:
            DataError: another number of rows, or infinite values.
        """
        patterns = _patterns(self._checked(values))
        return _expected(patterns, self.loading, self.mean, self.noise_variance).log_density

    def scores(self, values: Any) -> np.ndarray:
        """(factors, samples) means of the factors given the observed entries of `values` (rows, samples).

        Raises:
            DataError: another number of rows, or infinite values.
        """
        patterns = _patterns(self._checked(values))
        return _expected(patterns, self.loading, self.mean, self.noise_variance).mean.T

    def _checked(self, values: Any) -> np.ndarray:
        found = _table(values)
        if len(found) != len(self.mean):
            raise DataError(f"Samples of {len(self.mean)} rows were learned from; found {len(found)} rows.")
        return found


@call_checked
def factor_analysis(
    values: Any, factors: int, *, max_iterations: int = 2000, tolerance: float = 1e-11
) -> FactorAnalysis:
    """The most likely loadings, means and noise variances of `y_n = mean + G x_n + noise`, `x_n ~ N(0, I)`.

    The noise of each row has a variance of its own, `y_n ~ N(mean, G G^T + diag(noise_variance))`, and the density of
    the observed entries alone is maximised. The search starts from the principal components.

    Args:
        values: (rows, samples) numbers, nan where missing; each row has two different ones at least.
        factors: how many, fewer than rows.
        max_iterations: of L-BFGS.
        tolerance: the relative change of the log likelihood at which it ends.

    Returns:
        A `FactorAnalysis`. Noise variances are at least 1e-6 of their rows' variances.

    Raises:
        DataError: values that are no table of numbers, infinite, or a row without two different ones.
        ModelError: a number of factors that is no whole number from 1 to one less than the rows; or iterations or a
            tolerance out of range.

    Source: rubin1982algorithms.
    """
    table = _table(values)
    rows = len(table)
    if isinstance(factors, bool) or not isinstance(factors, (int, np.integer)) or not 1 <= factors < rows:
        raise ModelError(f"factors= is a whole number from 1 to {rows - 1}, for {rows} rows; found {factors!r}.")
    check_counts("factor_analysis", max_iterations=max_iterations)
    if not 0.0 <= number(tolerance) < np.inf:
        raise ModelError(f"tolerance= is a number of at least 0; found {tolerance!r}.")
    centre, width = _centre_and_width(table)
    patterns = _patterns((table - centre[:, None]) / width[:, None])
    start = np.concatenate([part.ravel() for part in _principal(patterns, int(factors))])
    least = np.log(LEAST_NOISE)
    bounds = [(None, None)] * (rows * (factors + 1)) + [(least, np.log(1e3))] * rows

    def loss(point: np.ndarray) -> tuple[float, np.ndarray]:
        loading, mean, log_noise = _parts(point, rows)
        found = _expected(patterns, loading, mean, np.exp(log_noise))
        return -found.log_density.sum(), -_gradient(patterns, found, loading, mean, np.exp(log_noise))

    asked = {"maxiter": int(max_iterations), "maxfun": 4 * int(max_iterations), "maxcor": 30, "gtol": 1e-7}
    best = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=asked | {"ftol": number(tolerance)}
    )
    loading, mean, log_noise = _parts(best.x, rows)
    noise = np.exp(log_noise)
    likelihood = -float(best.fun) - float((~np.isnan(table)).sum(axis=1) @ np.log(width))
    loading = _turned(loading, noise) * width[:, None]
    # Where a noise variance is at its least, rounding may end the last line search: that is no failure.
    stuck = np.concatenate([np.zeros(best.x.size - rows, bool), log_noise <= least]) & (best.jac > 0.0)
    flat = np.abs(np.where(stuck, 0.0, best.jac)).max() < 1e-4 * table.shape[1]
    done = bool(best.success or (best.nit < max_iterations and flat))
    return FactorAnalysis(loading, centre + width * mean, noise * width**2, likelihood, int(best.nit), done)


class _Patterns(NamedTuple):
    """Samples by which of their entries are observed.

    Attributes:
        filled: (samples, rows), 0 where missing.
        seen: (samples, rows) booleans, as numbers.
        kinds: (kinds, rows) different rows of `seen`.
        which: (samples,) the kind of each.
        members: (kinds,) how many samples.
    """

    filled: np.ndarray
    seen: np.ndarray
    kinds: np.ndarray
    which: np.ndarray
    members: np.ndarray


class _Expected(NamedTuple):
    """Of an E step: (samples,) log densities, (samples, K) means and (kinds, K, K) covariances of the factors."""

    log_density: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray


def _patterns(table: np.ndarray) -> _Patterns:
    seen = ~np.isnan(table.T)
    kinds, which, members = np.unique(seen, axis=0, return_inverse=True, return_counts=True)
    filled = np.where(seen, table.T, 0.0)
    return _Patterns(filled, seen.astype(float), kinds.astype(float), which.reshape(-1), members.astype(float))


def _expected(patterns: _Patterns, loading: np.ndarray, mean: np.ndarray, noise: np.ndarray) -> _Expected:
    """Log densities of samples, and their factors, by the precision `I + G^T noise^-1 G` of each kind of sample."""
    rows, factors = loading.shape
    squares = (loading[:, :, None] * loading[:, None, :] / noise[:, None, None]).reshape(rows, -1)
    precision = np.eye(factors) + (patterns.kinds @ squares).reshape(-1, factors, factors)
    covariance = np.linalg.inv(precision)
    residual = (patterns.filled - mean) * patterns.seen
    height = residual @ (loading / noise[:, None])
    of_factors = np.einsum("nij,nj->ni", covariance[patterns.which], height)
    fixed = patterns.kinds @ np.log(2.0 * np.pi * noise) + np.linalg.slogdet(precision)[1]
    left = residual - (of_factors @ loading.T) * patterns.seen  # squares of what is left lose no digits to small noise
    energy = left**2 @ (1.0 / noise) + (of_factors**2).sum(axis=1)
    return _Expected(-0.5 * (fixed[patterns.which] + energy), of_factors, covariance)


def _gradient(
    patterns: _Patterns, found: _Expected, loading: np.ndarray, mean: np.ndarray, noise: np.ndarray
) -> np.ndarray:
    """Of the log likelihood, by loadings, means and logarithms of noise variances, one after the other."""
    rows, factors = loading.shape
    second = patterns.members[:, None, None] * found.covariance
    outer = (found.mean[:, :, None] * found.mean[:, None, :]).reshape(len(found.mean), -1)
    squares = (patterns.kinds.T @ second.reshape(len(second), -1) + patterns.seen.T @ outer).reshape(rows, factors, -1)
    residual = (patterns.filled - mean) * patterns.seen
    cross = residual.T @ found.mean
    fitted = np.einsum("dij,dj->di", squares, loading)
    by_loading = (cross - fitted) / noise[:, None]
    by_mean = (residual.sum(axis=0) - (loading * (patterns.seen.T @ found.mean)).sum(axis=1)) / noise
    energy = (residual**2).sum(axis=0) + (loading * (fitted - 2.0 * cross)).sum(axis=1)
    by_noise = 0.5 * (energy / noise - patterns.seen.sum(axis=0))
    return np.concatenate([by_loading.ravel(), by_mean, by_noise])


def _parts(point: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Loadings, means and logarithms of noise variances."""
    return point[: -2 * rows].reshape(rows, -1), point[-2 * rows : -rows], point[-rows:]


def _principal(patterns: _Patterns, factors: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Loadings, means and log noise variances of the principal components, missing entries at their rows' means."""
    power, vectors = np.linalg.eigh(patterns.filled.T @ patterns.filled / len(patterns.filled))
    power, vectors = power[::-1], vectors[:, ::-1]
    left = power[factors:].mean()
    loading = vectors[:, :factors] * np.sqrt(np.maximum(power[:factors] - left, 1e-3))
    noise = np.clip(1.0 - (loading**2).sum(axis=1), 0.05, 1.0)
    return loading, np.zeros(len(loading)), np.log(noise)


def _turned(loading: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The same model with factors that are independent given a sample, the best told first."""
    vectors = np.linalg.eigh(loading.T @ (loading / noise[:, None]))[1][:, ::-1]
    turned = loading @ vectors
    largest = np.take_along_axis(turned, np.abs(turned).argmax(axis=0)[None], axis=0)
    return turned * np.where(largest < 0.0, -1.0, 1.0)


def _table(values: Any) -> np.ndarray:
    try:
        found = np.asarray(np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan))
    except (TypeError, ValueError) as problem:
        raise DataError(f"Values are a table (rows, samples) of numbers, nan where missing: {problem}.") from None
    if found.ndim != 2 or min(found.shape) < 1:
        raise DataError(f"Values are a table (rows, samples); found shape {found.shape}.")
    if np.isinf(found).any():
        raise DataError(f"{np.isinf(found).sum()} of {found.size} values are infinite. Missing ones are nan.")
    return found


def _centre_and_width(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rows,) means and standard deviations of what is observed."""
    seen = ~np.isnan(table)
    count = np.maximum(seen.sum(axis=1), 1)
    centre = np.where(seen, table, 0.0).sum(axis=1) / count
    width = np.sqrt((np.where(seen, table - centre[:, None], 0.0) ** 2).sum(axis=1) / count)
    if (constant := width <= 1e-12 * np.maximum(np.abs(centre), 1e-300)).any():
        bad = int(np.argmax(constant))
        raise DataError(
            f"Row {bad} has no two different observed values, so that its noise has no variance. Leave it out."
        )
    return centre, width

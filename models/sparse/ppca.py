"""The evidence for the number of probabilistic principal components."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from ...factors.errors import DataError

_NOTHING = 1e-12  # eigenvalues below this share of the largest are rounding


class DimensionEvidence(NamedTuple):
    """Attributes:
    log_evidence: (most + 1,) for 0, 1, ..., most factors.
    probability: (most + 1,) of each number, where all are equally probable before.
    best: the number of the largest evidence.
    """

    log_evidence: np.ndarray
    probability: np.ndarray
    best: int


def ppca_evidence(values: Any) -> DimensionEvidence:
    """Evidence of every number of principal components, by Laplace's method.

    The covariance is `U L U' + v (I - U U')`: U (D, k) orthonormal, uniform over all such matrices; the logarithms of
    `L_1 > ... > L_k > v` and the mean have improper uniform densities, of height one. With `n = N - 1`, the scatter's
    eigenvalues divided by n, `e`, and `v` the mean of those left over, the log evidence is

        - D/2 log N - n D/2 log(2 pi e) - n/2 (sum over i <= k of log e_i + (D - k) log v)
        + sum over i <= k of log [Gamma((D - i + 1)/2) pi^-((D - i + 1)/2)]      (1 / area, times 2^k modes of sign)
        + 1/2 sum over i <= k, j > i of log(2 pi / a_ij)                         (directions)
        + k/2 log(4 pi / n) + 1/2 log(4 pi / (n (D - k)))                        (logarithms of variances)

    with `a_ij = n (e_i - e_j) (1 / f_j - 1 / e_i)`, f_j = e_j where j <= k and v beyond. This is Minka's criterion with
    the terms that his last simplification and scikit-learn's `PCA("mle")` leave out: the 2^k modes and the curvature of
    the variances. Laplace's method fails where eigenvalues nearly agree: there no direction counts for more than its
    whole range, `sqrt(2 pi / a) <= pi`. It also holds for fewer samples than rows.

    Args:
        values: (D, N) rows by samples, nothing missing.

    Returns:
        The evidence of 0 up to one less than the rank of the centred values, at most min(D, N - 1) - 1.

    Raises:
        DataError: missing or infinite values, fewer than two samples or rows, or all samples equal.

    Source: minka2000automatic, knowles2012thesis.
    """
    values = _complete(values)
    rows, samples = values.shape
    n = samples - 1
    spread = np.linalg.svd(values - values.mean(axis=1, keepdims=True), compute_uv=False) ** 2 / n
    rank = _rank(spread)
    if not rank:
        raise DataError(f"All {samples} samples are equal, so that they have no covariance to speak of.")
    found = _log_evidences(spread[:rank], rows, n) - 0.5 * rows * np.log(samples)
    share = np.exp(found - found.max())
    return DimensionEvidence(found, share / share.sum(), int(found.argmax()))


def _log_evidences(variance: np.ndarray, rows: int, n: int) -> np.ndarray:
    """The formula above but for its first term, for each number of factors, from the eigenvalues that are not zero."""
    rank = len(variance)
    left = np.append(np.cumsum(variance[::-1])[::-1], 0.0)
    found = np.empty(rank)
    area = directions = 0.0  # of the first k, which further ones leave as they are
    for k in range(rank):
        kept, noise = variance[:k], left[k] / (rows - k)
        at_best = -0.5 * n * (rows * np.log(2.0 * np.pi * np.e) + np.log(kept).sum() + (rows - k) * np.log(noise))
        steep = n * (1.0 / noise - 1.0 / kept)
        towards_noise = _direction((kept[:, None] - variance[k:]) * steep[:, None]).sum()
        towards_nothing = (rows - rank) * _direction(kept * steep).sum()
        scales = 0.5 * k * np.log(4.0 * np.pi / n) + 0.5 * np.log(4.0 * np.pi / (n * (rows - k)))
        found[k] = at_best + area + directions + towards_noise + towards_nothing + scales
        half = 0.5 * (rows - k)
        area += gammaln(half) - half * np.log(np.pi)
        directions += _direction(n * (kept - variance[k]) * (1.0 / variance[k] - 1.0 / kept)).sum()
    return found


def _direction(curvature: np.ndarray) -> np.ndarray:
    """Log width of a peak of this curvature, at most that of all directions."""
    return -0.5 * np.log(np.maximum(curvature / (2.0 * np.pi), np.pi**-2))


def _rank(power: np.ndarray) -> int:
    return int(np.sum(power > _NOTHING * power.max())) if power.max() > 0.0 else 0


def _complete(values: Any) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or min(values.shape) < 2:
        raise DataError(f"Values are (rows, samples), two of each at least; found shape {values.shape}.")
    if not np.isfinite(values).all():
        raise DataError(
            f"{np.sum(~np.isfinite(values))} of {values.size} values are missing or infinite, and the closed form of "
            "principal components needs all. Leave out their rows or samples, impute them, or fit a factor model "
            "without sparsity by MCMC, which takes missing entries."
        )
    return values

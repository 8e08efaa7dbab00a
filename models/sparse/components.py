"""Principal components as starting loadings: as many as are evident, rotated to be sparse, known factors first."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import svds

from .data import Data
from .ppca import ppca_evidence
from .settings import Settings

MOST = 64  # components to start from, where the number of factors is not given
SURPLUS = 1.5  # components for each one that the evidence asks for, then


class Components(NamedTuple):
    """Where to start.

    Attributes:
        loading: (factors, rows).
        noise: (rows,) precisions.
    """

    loading: np.ndarray
    noise: np.ndarray


def components(data: Data, settings: Settings) -> Components:
    """Loadings and noise to start from.

    Rows are taken in units of their standard deviations. Where the number of factors is not given it is 1.5 times that
    of the largest evidence for principal components: chains lose factors much faster than they find them. Sparse
    loadings are rotated by varimax, and those within `sqrt(2 log rows)` standard errors of 0 are left out, which the
    largest of so many normal numbers hardly exceeds. Known factors are the first components of the rows that probably
    have them.

    Args:
        data, settings: the problem.

    Returns:
        The loadings, known factors first, and noise of the variance that they leave.

    Source: minka2000automatic, kaiser1958varimax, donoho1994ideal.
    """
    seen = data.seen
    number = np.maximum(seen.sum(axis=1), 1)
    sd = np.sqrt(np.maximum((data.filled**2).sum(axis=1) / number, 1e-12))
    unit = data.filled / sd[:, None]
    known, fitted = _known(unit, seen, settings)
    left = np.where(seen, unit - fitted, 0.0)
    if settings.factors is None:
        evident = ppca_evidence(left).best if min(left.shape) > 2 and np.ptp(left, axis=1).any() else 0
        free = min(MOST, int(np.ceil(SURPLUS * evident)))
    else:
        free = settings.factors - len(known)
    loading = np.zeros((free, data.shape[0]))
    factor = np.zeros((free, data.shape[1]))
    some = min(free, *left.shape)
    for _ in range(3 if not seen.all() else 1):
        side, power, other = _leading(left, some)
        loading[:some], factor[:some] = (side * power).T / np.sqrt(data.shape[1]), other * np.sqrt(data.shape[1])
        left = np.where(seen, left, loading.T @ factor)
    rest = ((left - loading.T @ factor) ** 2 * seen).sum(axis=1) / number
    noise = 1.0 / np.maximum(rest, 1e-3)
    if settings.sparsity != "none" and some:
        loading[:some] = _varimax(loading[:some])
        least = np.sqrt(2.0 * np.log(len(left)))
        loading = np.where(np.abs(loading) * np.sqrt(number * noise) > least, loading, 0.0)
    if settings.factors is None:
        loading = loading[(loading != 0.0).any(axis=1)]
    return Components(np.concatenate([known, loading]) * sd, noise / sd**2)


def _known(values: np.ndarray, seen: np.ndarray, settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """(known, rows) loadings of known factors, one after the other from what the ones before leave; and their fit."""
    fitted = np.zeros_like(values)
    known = np.zeros((len(values), 0)) if settings.known is None else settings.known
    found = np.zeros(known.T.shape)
    for loading, probability in zip(found, known.T, strict=True):
        rows = np.flatnonzero(probability >= 0.5)
        if rows.size:
            left = np.where(seen[rows], values[rows] - fitted[rows], 0.0)
            side, power, other = _leading(left, 1)
            loading[rows] = side[:, 0] * power[0] / np.sqrt(values.shape[1])
            fitted[rows] += np.outer(loading[rows], other[0] * np.sqrt(values.shape[1]))
    return found, fitted


def _leading(values: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The largest singular values with their vectors: (rows, number), (number,), (number, samples)."""
    rows, samples = values.shape
    if min(rows, samples) > 1000 and number < min(rows, samples):
        found: Any = svds(values, number, v0=np.ones(min(rows, samples)))
        return found[0][:, ::-1], found[1][::-1], found[2][::-1]
    wide = rows <= samples
    square, vectors = np.linalg.eigh(values @ values.T if wide else values.T @ values)
    power = np.sqrt(np.maximum(square[::-1][:number], 0.0))
    vectors = vectors[:, ::-1][:, :number]
    inverse = np.divide(1.0, power, out=np.zeros_like(power), where=power > 1e-9 * max(power, default=1.0))
    if wide:
        return vectors, power, (values.T @ vectors * inverse).T
    return values @ vectors * inverse, power, vectors.T


def _varimax(loading: np.ndarray, rounds: int = 50) -> np.ndarray:
    """(factors, rows) loadings after the rotation in which the squares of each factor vary most."""
    turn, before = np.eye(len(loading)), 0.0
    for _ in range(rounds):
        now = turn @ loading
        target = (now**3 - now * (now**2).mean(axis=1, keepdims=True)) @ loading.T
        left, size, right = np.linalg.svd(target)
        turn = left @ right
        if size.sum() < before * (1.0 + 1e-6):
            break
        before = size.sum()
    return turn @ loading

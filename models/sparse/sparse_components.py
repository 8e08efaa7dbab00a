"""Sparse principal components: loadings with exact zeros, and a penalty for each component.

Principal components are a regression of the data on themselves through few directions; a penalty on the absolute
loadings of each direction makes many of them zero. Penalties are given, or found so that each component explains the
same share of what its ordinary counterpart does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...engine.support.asked_arguments import check_counts
from ...engine.support.user_numbers import number
from ...factors.calls import call_checked
from ...factors.errors import DataError, ModelError

HALVINGS = 16  # of the interval of a penalty
SWEEPS = 200  # of coordinate descent at most; the alternation goes on from where they end


class SparseComponents(NamedTuple):
    """What `sparse_components` found.

    Attributes:
        loading: (rows, components) of length one each, or zero where a penalty leaves nothing; most entries are zero.
        scores: (components, samples), by which `mean + loading scores` is nearest to the data.
        mean: (rows,).
        penalty: (components,).
        explained: (components,) share of the total variance that each adds to those before it: of the data's projection
            onto the span of their loadings.
        ordinary: (components,) the same of ordinary principal components.
        objective: (iterations,) at these penalties, never rising.
    """

    loading: np.ndarray
    scores: np.ndarray
    mean: np.ndarray
    penalty: np.ndarray
    explained: np.ndarray
    ordinary: np.ndarray
    objective: np.ndarray


@call_checked
def sparse_components(
    values: Any,
    components: int,
    *,
    penalty: Any = None,
    share: float = 0.95,
    ridge: float = np.inf,
    max_iterations: int = 500,
    tolerance: float = 1e-10,
) -> SparseComponents:
    """Sparse principal components, by alternating regressions and rotations.

    The least of `sum_n |y_n - A B^T y_n|^2 + ridge sum_k |b_k|^2 + sum_k penalty_k |b_k|_1` with `A^T A = I`, over A
    and B: given A each column of B is an elastic net, given B the best A is a rotation. With an infinite ridge, made
    for more rows than samples, the elastic net is a soft threshold of `Y Y^T a_k` at half the penalty.

    Args:
        values: (rows, samples), nothing missing.
        components: how many, at most the rank of the centred values.
        penalty: one for each component, or one for all; None: found by `share`, one component after the other.
        share: each component explains at least this share of its ordinary counterpart, if it can.
        ridge: infinite, or a positive number.
        max_iterations: of the alternation, at given penalties, and as many in which they are sought.
        tolerance: the relative change of the objective at which it ends.

    Returns:
        A `SparseComponents`.

    Raises:
        DataError: missing or infinite values, or no table of them.
        ModelError: an argument out of range.

    Source: zou2006sparse.
    """
    table = _complete(values)
    count = _check_arguments(table, components, share, ridge)
    check_counts("sparse_components", max_iterations=max_iterations)
    if not 0.0 <= number(tolerance) < np.inf:
        raise ModelError(f"tolerance= is a number of at least 0; found {tolerance!r}.")
    mean = table.mean(axis=1)
    centred = table - mean[:, None]
    left, size, _ = np.linalg.svd(centred, full_matrices=False)
    if (size[:count] <= 1e-10 * max(size[0], 1e-300)).any():
        raise ModelError(f"The centred values have rank {(size > 1e-10 * size[0]).sum()}; asked: {count} components.")
    total = (size**2).sum()
    problem = _Problem(centred, float(ridge), None if np.isinf(ridge) else centred @ centred.T)
    turn = left[:, :count]
    if penalty is None:
        penalties, turn, weights = _sought(problem, turn, share * size[:count] ** 2, max_iterations)
    else:
        # Without a penalty this is the end.
        shrunk = 1.0 if np.isinf(ridge) else size[:count] ** 2 + float(ridge)
        penalties, weights = _penalties(penalty, count), turn * size[:count] ** 2 / shrunk
    weights, objective = _alternated(problem, turn, weights, penalties, int(max_iterations), number(tolerance))
    length = np.linalg.norm(weights, axis=0)
    loading = weights / np.where(length > 0.0, length, 1.0)
    explained = np.array(_added(centred, loading)) / total
    return SparseComponents(
        loading, np.linalg.pinv(loading) @ centred, mean, penalties, explained, size[:count] ** 2 / total, objective
    )


class _Problem(NamedTuple):
    """(rows, samples) centred values, the ridge, and their (rows, rows) products, None where the ridge is infinite."""

    centred: np.ndarray
    ridge: float
    gram: np.ndarray | None


def _regressed(problem: _Problem, target: np.ndarray, penalty: np.ndarray, start: np.ndarray) -> np.ndarray:
    """(rows, K) the columns b of least `b^T M b - 2 target^T b + penalty |b|_1`, M = gram + ridge, or I."""
    half = 0.5 * penalty
    if problem.gram is None:
        return np.sign(target) * np.maximum(np.abs(target) - half, 0.0)
    found, gram = start.copy(), problem.gram
    curvature = gram.diagonal() + problem.ridge
    left = target - gram @ found
    for _ in range(SWEEPS):
        most = 0.0
        for j in range(len(gram)):
            old = found[j].copy()
            height = left[j] + gram[j, j] * old
            found[j] = np.sign(height) * np.maximum(np.abs(height) - half, 0.0) / curvature[j]
            change = found[j] - old
            if change.any():
                left -= gram[:, j, None] * change
                most = max(most, float(np.abs(change).max()))
        if most <= 1e-10 * max(float(np.abs(found).max()), 1e-300):
            break
    return found


def _rotation(problem: _Problem, weights: np.ndarray, before: np.ndarray) -> np.ndarray:
    """(rows, K) the best A given B; what it was where B is zero."""
    image = problem.centred @ (problem.centred.T @ weights)
    if not image.any():
        return before
    left, _, right = np.linalg.svd(image, full_matrices=False)
    return left @ right


def _target(problem: _Problem, turn: np.ndarray) -> np.ndarray:
    return problem.centred @ (problem.centred.T @ turn)


def _alternated(
    problem: _Problem, turn: np.ndarray, weights: np.ndarray, penalties: np.ndarray, most: int, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """The weights at given penalties, and the objective of each iteration but for what does not depend on them."""
    objective: list[float] = []
    for _ in range(most):
        target = _target(problem, turn)
        weights = _regressed(problem, target, penalties, weights)
        if problem.gram is None:
            square = (weights**2).sum()
        else:
            square = (weights * (problem.gram @ weights)).sum() + problem.ridge * (weights**2).sum()
        objective.append(float(square - 2.0 * (target * weights).sum() + np.abs(weights).sum(axis=0) @ penalties))
        if len(objective) > 1 and objective[-2] - objective[-1] <= tolerance * abs(objective[-1]):
            break
        turn = _rotation(problem, weights, turn)
    return weights, np.array(objective)


def _sought(
    problem: _Problem, turn: np.ndarray, wanted: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Penalties, each the largest with which its component adds what is wanted, and where the alternation is then."""
    penalties, weights = np.zeros(len(wanted)), turn * 0.0
    for _ in range(min(most, 60)):
        before, target = penalties.copy(), _target(problem, turn)
        basis = np.zeros((len(turn), 0))
        for k, gain in enumerate(wanted):
            penalties[k], weights[:, k] = _largest(problem, target[:, [k]], weights[:, [k]], basis, gain)
            basis = _longer(basis, weights[:, k])
        turn = _rotation(problem, weights, turn)
        if np.abs(penalties - before).max() <= 1e-3 * penalties.max():
            break
    return penalties, turn, weights


def _largest(
    problem: _Problem, target: np.ndarray, start: np.ndarray, basis: np.ndarray, gain: float
) -> tuple[float, np.ndarray]:
    """The largest penalty with which a component adds so much to the span of others, and its weights; or 0."""
    low, high = 0.0, 2.0 * float(np.abs(target).max())
    best = _regressed(problem, target, np.zeros(1), start)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        found = _regressed(problem, target, np.full(1, middle), best)
        if _gain(problem.centred, basis, found[:, 0]) >= gain:
            low, best = middle, found
        else:
            high = middle
    return low, best[:, 0]


def _gain(centred: np.ndarray, basis: np.ndarray, direction: np.ndarray) -> float:
    """The sum of squares that a direction adds to a projection onto a span."""
    longer = _longer(basis, direction)
    return 0.0 if longer.shape == basis.shape else float(((centred.T @ longer[:, -1]) ** 2).sum())


def _longer(basis: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """An orthonormal basis with one more direction, unless that is in its span."""
    size = np.linalg.norm(direction)
    for _ in range(2):  # once more for the digits that the first time loses
        direction = direction - basis @ (basis.T @ direction)
    left = np.linalg.norm(direction)
    return basis if left <= 1e-10 * size or not size else np.column_stack([basis, direction / left])


def _added(centred: np.ndarray, loading: np.ndarray) -> list[float]:
    """What each column adds to those before it."""
    basis, found = np.zeros((len(loading), 0)), []
    for column in loading.T:
        found.append(_gain(centred, basis, column))
        basis = _longer(basis, column)
    return found


def _penalties(penalty: Any, count: int) -> np.ndarray:
    try:
        found = np.broadcast_to(np.asarray(penalty, dtype=np.float64), (count,)).copy()
    except (TypeError, ValueError):
        found = np.full(count, np.nan)
    if not ((found >= 0.0) & (found < np.inf)).all():
        raise ModelError(f"penalty= is a number of at least 0, or {count} of them; found {penalty!r}.")
    return found


def _check_arguments(table: np.ndarray, components: Any, share: Any, ridge: Any) -> int:
    most = min(len(table), table.shape[1] - 1)
    if isinstance(components, bool) or not isinstance(components, (int, np.integer)) or not 1 <= components <= most:
        raise ModelError(
            f"components= is a whole number from 1 to {most}, for {len(table)} rows and {table.shape[1]} samples; "
            f"found {components!r}."
        )
    if not 0.0 < number(share) <= 1.0:
        raise ModelError(f"share= is above 0 and at most 1; found {share!r}.")
    if not number(ridge) > 0.0:
        raise ModelError(f"ridge= is a positive number or infinite; found {ridge!r}.")
    return int(components)


def _complete(values: Any) -> np.ndarray:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise DataError(f"Values are a table (rows, samples) of numbers: {problem}.") from None
    if found.ndim != 2 or min(found.shape) < 2:
        raise DataError(f"Values are (rows, samples), two of each at least; found shape {found.shape}.")
    if not np.isfinite(found).all():
        raise DataError(
            f"{(~np.isfinite(found)).sum()} of {found.size} values are missing or infinite, which the regression "
            "of the data on themselves cannot leave out. Impute them, or fit cavity.models.NSFA, which takes any."
        )
    return found

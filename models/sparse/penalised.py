"""Ridge, LASSO and least angle regression: the most probable weights of a linear regression under two priors.

With `y ~ N(X w, 1 / noise)` a Gaussian prior of the weights gives ridge regression and a Laplace prior the LASSO: what
others call a penalty is the ratio of the prior's and the noise's precisions. The whole path of LASSO solutions, one for
each penalty, is piecewise linear, and least angle regression goes along it from corner to corner.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ...engine.support.user_numbers import number
from ...factors.calls import call_checked, methods_checked
from ...factors.errors import DataError, ModelError

NOTHING = 1e-12  # of the largest correlation: below it nothing is left to explain
TIED = 1e-10  # of the largest outcome: moves of outcomes that part features which join or leave at one penalty
EXACT, WRONG = 1e-9, 1e-6  # of the largest correlation: how far a path is from the optimum, and what is none any more


@methods_checked("path")
class Path(NamedTuple):
    """Corners of the path of `lars`, from the largest penalty to the least.

    Attributes:
        penalty: (corners,) decreasing; at the first all weights are zero.
        weights: (corners, features); between two corners they are linear in the penalty.
    """

    penalty: np.ndarray
    weights: np.ndarray

    def at(self, penalty: Any) -> np.ndarray:
        """(..., features) weights at a penalty, or at several; beyond the corners those of the nearest.

        Raises:
            ModelError: a penalty below zero, or what is no number.
        """
        try:
            asked = np.asarray(penalty, dtype=np.float64)
        except (TypeError, ValueError):
            asked = np.full((), np.nan)
        if not (asked >= 0.0).all():
            raise ModelError(f"A penalty is a number of at least 0, or an array of such; found {penalty!r}.")
        one = [np.interp(asked, self.penalty[::-1], column) for column in self.weights[::-1].T]
        return np.stack(one, axis=-1)


@call_checked
def ridge(features: Any, outcomes: Any, *, prior_precision: float = 1.0, noise_precision: float = 1.0) -> np.ndarray:
    """The most probable weights, which are their posterior mean, of `y ~ N(X w, 1 / noise)`, `w ~ N(0, I / prior)`.

    `w = (X^T X + (prior / noise) I)^-1 X^T y`. No intercept: centre both first.

    Args:
        features: (samples, features) X.
        outcomes: (samples,) y.
        prior_precision: of each weight.
        noise_precision: of each outcome.

    Returns:
        (features,) weights.

    Raises:
        DataError: shapes that do not fit, or numbers that are not finite.
        ModelError: a precision that is not positive.

    Source: hoerl1970ridge.
    """
    x, y = _checked(features, outcomes)
    penalty = _positive("prior_precision", prior_precision) / _positive("noise_precision", noise_precision)
    few, many = x.shape
    if many <= few:
        return cho_solve(cho_factor(x.T @ x + penalty * np.eye(many)), x.T @ y)
    return x.T @ cho_solve(cho_factor(x @ x.T + penalty * np.eye(few)), y)


@call_checked
def lasso(features: Any, outcomes: Any, *, prior_scale: float = 1.0, noise_precision: float = 1.0) -> np.ndarray:
    """The most probable weights of `y ~ N(X w, 1 / noise)` with `w_j ~ Laplace(prior_scale)` each.

    The least of `|y - X w|^2 / 2 + penalty sum |w_j|`, `penalty = 1 / (noise prior_scale)`, by the path of `lars`. Many
    weights are exactly zero. No intercept: centre both first.

    Args:
        features: (samples, features) X.
        outcomes: (samples,) y.
        prior_scale: of the density `exp(-|w| / prior_scale) / (2 prior_scale)`.
        noise_precision: of each outcome.

    Returns:
        (features,) weights.

    Raises:
        DataError: shapes that do not fit, or numbers that are not finite.
        ModelError: a scale or a precision that is not positive.

    Source: tibshirani1996regression, park2008bayesian.
    """
    x, y = _checked(features, outcomes)
    penalty = 1.0 / (_positive("prior_scale", prior_scale) * _positive("noise_precision", noise_precision))
    return _optimal(x, y, penalty).at(penalty)


@call_checked
def lars(features: Any, outcomes: Any, *, least: float = 0.0, drop: bool = True) -> Path:
    """All LASSO solutions, the least of `|y - X w|^2 / 2 + penalty sum |w_j|` for each penalty from the largest down.

    The features that are active keep equal correlations with what is left, in size the penalty; another joins when its
    correlation is as large, and one whose weight comes to zero leaves (without that it is least angle regression).
    Where several join or leave at one penalty outcomes are moved by 1e-10 of the largest, if that is what it takes.

    Args:
        features: (samples, features) X, of any rank.
        outcomes: (samples,) y.
        least: the penalty at which the path ends.
        drop: False for plain least angle regression, whose weights may change sign.

    Returns:
        A `Path`.

    Raises:
        DataError: shapes that do not fit, numbers that are not finite, or features of which rounding hides who joins.
        ModelError: a penalty below zero, or a `drop` that is neither True nor False.

    Source: efron2004least.
    """
    x, y = _checked(features, outcomes)
    if not 0.0 <= number(least) < np.inf:
        raise ModelError(f"least= is a penalty of at least 0; found {least!r}.")
    if not isinstance(drop, (bool, np.bool_)):
        raise ModelError(f"drop= is True for the LASSO or False for least angle regression; found {drop!r}.")
    return _optimal(x, y, float(least)) if drop else _corners(x, y, float(least), False)


def _optimal(x: np.ndarray, y: np.ndarray, least: float) -> Path:
    """The path of the LASSO, each corner checked: of features that tie one after the other may be the wrong one."""
    found = best = _corners(x, y, least, True)
    size = float(np.abs(y).max(initial=0.0))
    for seed in range(5):
        if _off(x, y, found, least) <= EXACT:
            return found
        best = min(best, found, key=lambda path: _off(x, y, path, least))
        moved = y + TIED * size * np.random.default_rng(seed).uniform(-1.0, 1.0, len(y))
        found = _corners(x, moved, least, True)
    if (off := _off(x, y, best, least)) > WRONG:
        raise DataError(
            f"The path of the LASSO is off its optimum by {off:.1g} of the largest correlation: features are so nearly "
            "the same that rounding decides which one joins. Leave out features that others make up, or scale them."
        )
    return best


def _off(x: np.ndarray, y: np.ndarray, path: Path, least: float) -> float:
    """How far the path is from an optimum's conditions, over the largest correlation; infinite where it ends early.

    At corners and between them: near no penalty a weight of the wrong sign shows between them alone.
    """
    largest = float(path.penalty[0])
    if path.penalty[-1] > max(least, 1.01 * NOTHING * largest) and largest > least:
        return np.inf
    weights, penalty = (
        np.concatenate([each, 0.5 * (each[1:] + each[:-1])]) for each in (path.weights, path.penalty[:, None])
    )
    correlation = (y - weights @ x.T) @ x
    off = np.abs(correlation - penalty * np.sign(weights))
    off = np.where(weights != 0.0, off, np.abs(correlation) - penalty)
    return float(off.max(initial=0.0)) / max(largest, 1e-300)


def _corners(x: np.ndarray, y: np.ndarray, least: float, drop: bool) -> Path:
    """The corners of the path down to a penalty."""
    correlation, weights = x.T @ y, np.zeros(x.shape[1])
    penalty = float(np.abs(correlation).max(initial=0.0))
    floor = max(least, NOTHING * penalty)
    active = np.zeros(len(weights), bool)
    barred = np.zeros(len(weights), bool)  # what depends on active features
    penalties, found = [penalty], [weights]
    sign, length = np.sign(correlation), np.linalg.norm(x, axis=0)
    joins = int(np.argmax(np.abs(correlation))) if len(weights) else -1
    for _ in range(8 * (len(weights) + 8)):
        if penalty <= floor or joins < 0:
            break
        if joins < len(weights):
            active[joins], sign[joins] = True, np.sign(correlation[joins])
            if np.linalg.matrix_rank(x[:, active]) < active.sum():
                active[joins], barred[joins] = False, True
        toward = np.zeros(len(weights))
        toward[active] = np.linalg.solve(x[:, active].T @ x[:, active], sign[active])
        moves = np.abs(toward) * length
        toward[moves <= 1e-13 * moves.max()] = 0.0  # what rounding leaves is no weight
        slope = x.T @ (x @ toward)
        step, joins, leaves = _next(penalty - floor, penalty, correlation, slope, weights, toward, active, barred, drop)
        weights, penalty = weights + step * toward, penalty - step
        correlation = x.T @ (y - x @ weights)
        if leaves >= 0:  # what has left moves away from the penalty, and what depended on it may join again
            weights[leaves], active[leaves], barred[:] = 0.0, False, False
            joins = len(weights)
        penalties.append(penalty)
        found.append(weights)
    return Path(np.array(penalties), np.array(found))


def _next(
    most: float, penalty: float, correlation: np.ndarray, slope: np.ndarray, weights: np.ndarray, toward: np.ndarray,
    active: np.ndarray, barred: np.ndarray, drop: bool,
) -> tuple[float, int, int]:  # fmt: skip
    """How far until something changes; which feature joins (-1: none), and which leaves (-1: none)."""
    step, joins, leaves = most, -1, -1
    for j in np.flatnonzero(~active & ~barred):
        for side in (1.0, -1.0):
            speed = 1.0 - side * slope[j]
            if speed > 1e-12:
                when = max((penalty - side * correlation[j]) / speed, 0.0)
                if when < step:
                    step, joins = when, int(j)
    if drop:
        for j in np.flatnonzero(active & (weights * toward < 0.0)):
            when = -weights[j] / toward[j]
            if when < step:
                step, joins, leaves = when, -1, int(j)
    return step, joins, leaves


def _positive(name: str, value: Any) -> float:
    if not 0.0 < number(value) < np.inf:
        raise ModelError(f"{name}= is a positive number; found {value!r}.")
    return float(value)


def _checked(features: Any, outcomes: Any) -> tuple[np.ndarray, np.ndarray]:
    try:
        x, y = np.asarray(features, dtype=np.float64), np.asarray(outcomes, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise DataError(f"Features and outcomes are arrays of numbers: {problem}.") from None
    if x.ndim != 2 or y.shape != x.shape[:1]:
        raise DataError(
            f"Features are (samples, features) and outcomes (samples,); found shapes {x.shape} and {y.shape}."
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise DataError("Features and outcomes are finite numbers: leave out samples with missing or infinite ones.")
    return x, y

"""Loadings that differ by order, sign and scale of their factors: errors, alignment of draws, a canonical order.

A factor model is the same when a column of the loadings and the row of its factor are both negated, exchanged with
another pair, or rescaled against each other. All matrices of loadings here are (rows, factors).
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from ...factors.errors import DataError

_ROUNDS = 20  # of aligning with the mean of what was aligned; a handful are enough in practice


class Factorisation(NamedTuple):
    """Loadings (rows, factors) and factors (factors, samples), of which either may be None."""

    loading: np.ndarray
    factor: np.ndarray | None = None


class Match(NamedTuple):
    """Which factor of an estimate is each factor of a reference: fields are (factors of the reference,).

    Attributes:
        index: the column of the estimate, or -1 where it has no such factor.
        sign: 1.0 or -1.0, by which that column is multiplied; 0.0 where there is none.
        correlation: absolute cosine of the two columns, in [0, 1]; 0.0 where there is none.
    """

    index: np.ndarray
    sign: np.ndarray
    correlation: np.ndarray


class LoadingSummary(NamedTuple):
    """Loadings over draws, aligned with one another.

    Attributes:
        mean: (rows, factors) posterior mean; a factor that a draw lacks counts as zero there.
        deviation: (rows, factors) posterior standard deviation, likewise.
        activity: (rows, factors) share of the draws in which the loading is not zero.
        presence: (factors,) share of the draws that have the factor.
        unmatched: mean over draws of the number of factors that belong to none of these.
        matches: one for each draw.
    """

    mean: np.ndarray
    deviation: np.ndarray
    activity: np.ndarray
    presence: np.ndarray
    unmatched: float
    matches: tuple[Match, ...]


class SupportScores(NamedTuple):
    """How well the active loadings were found: all in [0, 1], nan where there is nothing to divide by."""

    precision: float
    recall: float
    f1: float


def reconstruction_error(truth: Any, estimate: Any, *, scale: str = "given", one_to_one: bool = False) -> float:
    """Mean squared error of loadings over factors in whatever order and with whatever sign.

    `1 / (D K) sum over k of min over j and c of sum over d of (truth[d, k] - c estimate[d, j])^2`, where c is 1 or -1.
    Factors of the estimate that are nobody's best are not punished. An estimate without factors counts as zeros.

    Args:
        truth: (D, K) loadings.
        estimate: (D, J) loadings, with any number of factors.
        scale: "given" leaves c to be 1 or -1, as the priors of factors have unit variance: where they had not, give
            `unit_factors(loading, factor).loading` of both. "best" lets c be any number, so that only the direction of
            a column counts and each term is `|truth_k|^2 (1 - cosine^2)`.
        one_to_one: whether a factor of the estimate may stand for one factor of the truth only, by the assignment of
            the least sum; true factors beyond their number count as missing, with c = 0. The papers take the best for
            each true factor, with repetition.

    Returns:
        The error, a number of 0 or more in squared units of the truth.

    Raises:
        DataError: other shapes, numbers that are not finite, a truth without factors, or another scale.

    Source: knowles2011nonparametric.
    """
    truth, estimate = _loading(truth, "The truth"), _loading(estimate, "The estimate")
    _same_rows(truth, estimate)
    if not truth.size:
        raise DataError(f"The error is a mean over the true loadings, of which there are none; found {truth.shape}.")
    if scale not in ("given", "best"):
        raise DataError(f'The scale is "given" (signs alone are free) or "best" (any factor); found {scale!r}.')
    whole, product = np.sum(truth**2, axis=0)[:, None], np.abs(truth.T @ estimate)
    power = np.sum(estimate**2, axis=0)
    if scale == "best":
        cost = whole - np.divide(product**2, power, out=np.zeros_like(product), where=power > 0.0)
    else:
        cost = whole - 2.0 * product + power
    cost = np.maximum(cost, 0.0)  # rounding
    if not estimate.shape[1]:
        least = whole[:, 0]
    elif one_to_one:
        least = whole[:, 0].copy()
        rows, columns = linear_sum_assignment(cost - whole)
        least[rows] = cost[rows, columns]
    else:
        least = cost.min(axis=1)
    return float(least.sum() / truth.size)


def unit_factors(loading: Any, factor: Any) -> Factorisation:
    """The same product, rescaled so that every factor has a mean square of one over the samples.

    Args:
        loading: (rows, factors).
        factor: (factors, samples).

    Returns:
        `loading * s` and `factor / s`, where s is (factors,) the root mean square; a factor of zeros stays, and its
        loadings become zeros as they explain nothing.

    Raises:
        DataError: shapes that do not fit.
    """
    loading, factor = _pair(loading, factor)
    size = np.sqrt(np.mean(factor**2, axis=1))
    return Factorisation(loading * size, factor / np.where(size > 0.0, size, 1.0)[:, None])


def explained(loading: Any, factor: Any = None) -> np.ndarray:
    """(factors,) of what each contributes to the mean over samples of the sum of squares over rows.

    `sum over d of G[d, k]^2 mean over n of X[k, n]^2`; without factors their prior variance, one, is taken.
    """
    loading, factor = _pair(loading, factor)
    power = np.sum(loading**2, axis=0)
    return power if factor is None else power * np.mean(factor**2, axis=1)


def canonical(loading: Any, factor: Any = None) -> Factorisation:
    """The same product in the order and with the signs that pictures and tables have.

    Factors stand by what they explain (see `explained`), the most first, each with the sign that makes its largest
    loading positive.

    Args:
        loading: (rows, factors).
        factor: (factors, samples), optional.

    Raises:
        DataError: shapes that do not fit.
    """
    loading, factor = _pair(loading, factor)
    order = np.argsort(-explained(loading, factor), kind="stable")
    loading = loading[:, order]
    largest = np.take_along_axis(loading, np.abs(loading).argmax(axis=0)[None], axis=0)[0]
    sign = np.where(largest < 0.0, -1.0, 1.0)
    return Factorisation(loading * sign, None if factor is None else factor[order] * sign[:, None])


def match_factors(reference: Any, loading: Any, *, least: float = 0.0, known: int = 0) -> Match:
    """Each factor of a reference with at most one of an estimate: the pairs of the largest sum of absolute cosines.

    Args:
        reference: (rows, K) loadings.
        loading: (rows, J) loadings.
        least: in [0, 1); pairs whose absolute cosine is not above it are no pairs. Columns of zeros are never matched.
        known: how many columns, the first ones of both, are the same factors whatever their cosines.

    Raises:
        DataError: different numbers of rows, or a `least` outside its range.
    """
    reference, loading = _loading(reference, "The reference"), _loading(loading, "The loading")
    _same_rows(reference, loading)
    if not 0.0 <= least < 1.0:
        raise DataError(f"The least cosine of a pair is in [0, 1); found {least!r}.")
    cosine = _unit(reference).T @ _unit(loading)
    rows, columns = linear_sum_assignment(-np.abs(cosine[known:, known:]))
    rows, columns = (np.concatenate([np.arange(known), known + each]) for each in (rows, columns))
    found = np.abs(cosine[rows, columns]) > np.where(rows < known, 0.0, least)
    rows, columns = rows[found], columns[found]
    index = np.full(reference.shape[1], -1)
    sign, correlation = np.zeros(len(index)), np.zeros(len(index))
    index[rows], sign[rows] = columns, np.sign(cosine[rows, columns])
    correlation[rows] = np.minimum(np.abs(cosine[rows, columns]), 1.0)
    return Match(index, sign, correlation)


def aligned(match: Match, loading: Any, factor: Any = None) -> Factorisation:
    """Loadings, and factors where given, in the order and with the signs of a reference; what is missing is zero.

    Args:
        match: what `match_factors` found.
        loading: (rows, J) that was matched.
        factor: (J, samples), optional.

    Returns:
        (rows, K) and (K, samples), for the K factors of the reference.

    Raises:
        DataError: shapes that do not fit, or fewer factors than were matched.
    """
    loading, factor = _pair(loading, factor)
    if match.index.max(initial=-1) >= loading.shape[1]:
        raise DataError(f"The match is of a loading with more factors than this one, which has {loading.shape[1]}.")
    found = match.index >= 0
    moved = np.zeros((len(loading), len(found)))
    moved[:, found] = loading[:, match.index[found]] * match.sign[found]
    if factor is None:
        return Factorisation(moved)
    rows = np.zeros((len(found), factor.shape[1]))
    rows[found] = factor[match.index[found]] * match.sign[found, None]
    return Factorisation(moved, rows)


def summarise_loadings(
    draws: Sequence[Any], reference: Any = None, *, least: float = 0.3, known: int = 0
) -> LoadingSummary:
    """The posterior of loadings over draws of different numbers of factors, each in any order and with any signs.

    Every draw is aligned with the reference by `match_factors`. Without a reference, the last draw of the most frequent
    number of factors is the first one, and the mean of what is aligned with it replaces it until no match changes.

    Args:
        draws: loadings (rows, factors of the draw), at least one; exact zeros are inactive. Their scale is taken as it
            is: where it drifts against that of the factors, give `unit_factors(loading, factor).loading`.
        reference: (rows, K) loadings, such as the truth of synthetic data. Its order and signs are kept; without one
            the result is in canonical order.
        least: a factor of a draw is one of the reference where the absolute cosine of their columns is above this.
        known: how many columns, the first ones of every draw, are the same factors; they stay the first ones.

    Raises:
        DataError: no draws, shapes that do not fit, numbers that are not finite.
    """
    draws = [_loading(draw, f"Draw {i}") for i, draw in enumerate(draws)]
    if not draws:
        raise DataError("A summary of loadings takes one draw at least; found none. Keep draws after the warm-up.")
    if reference is not None:
        return _summary(draws, [match_factors(reference, draw, least=least, known=known) for draw in draws])
    often = Counter(draw.shape[1] for draw in draws).most_common(1)[0][0]
    mean = _ordered(next(draw for draw in reversed(draws) if draw.shape[1] == often), known)
    before = None
    for _ in range(_ROUNDS):
        matches = [match_factors(mean, draw, least=least, known=known) for draw in draws]
        places = [tuple(match.index * match.sign) for match in matches]
        if places == before:
            break
        before = places
        mean = _ordered(sum(aligned(match, draw).loading for match, draw in zip(matches, draws, strict=True)), known)
    return _summary(draws, [match_factors(mean, draw, least=least, known=known) for draw in draws])


def support_scores(truth: Any, estimate: Any, threshold: float = 0.5) -> SupportScores:
    """Precision and recall of the active loadings against a truth, with factors in whatever order.

    Factors are paired one to one so that as many active loadings as possible are shared. What is active in a factor
    that has no partner is wrong (of the estimate) or missed (of the truth).

    Args:
        truth: (rows, K) active where not zero.
        estimate: (rows, J) 0 and 1, or probabilities; active where above the threshold.
        threshold: in [0, 1).

    Returns:
        `shared / active in the estimate`, `shared / active in the truth`, and their harmonic mean.

    Raises:
        DataError: different numbers of rows, an estimate outside [0, 1], or a threshold outside its range.
    """
    truth, estimate = _loading(truth, "The truth") != 0.0, _loading(estimate, "The estimate")
    _same_rows(truth, estimate)
    if ((estimate < 0.0) | (estimate > 1.0)).any() or not 0.0 <= threshold < 1.0:
        raise DataError(
            "The estimate is 0 and 1 or probabilities, and the threshold is in [0, 1); found values in "
            f"[{estimate.min():.3g}, {estimate.max():.3g}] and {threshold!r}. Of loadings, give `loading != 0`."
        )
    active = estimate > threshold
    both = truth.T.astype(np.float64) @ active
    shared = both[linear_sum_assignment(-both)].sum()
    found, there = active.sum(), truth.sum()
    precision = float(shared / found) if found else np.nan
    recall = float(shared / there) if there else np.nan
    return SupportScores(precision, recall, float(2.0 * shared / (found + there)) if found + there else np.nan)


def fraction_of_zeros(loading: Any) -> float:
    """The share of the D K loadings that are exactly zero, nan where there are no factors.

    Source: knowles2011nonparametric.
    """
    loading = _loading(loading, "The loading")
    return float(np.mean(loading == 0.0)) if loading.size else np.nan


def block_order(loading: Any, activity: Any = None) -> np.ndarray:
    """(rows,) an order in which rows of the same factor stand together, as in pictures and lists of genes.

    A row belongs to the factor of its largest `|loading| activity`. Factors come in their order, within each its rows
    from the largest positive to the largest negative loading, and rows of no factor last.

    Args:
        loading: (rows, factors).
        activity: (rows, factors) probabilities that weigh the loadings, by default all one.

    Raises:
        DataError: shapes that do not fit.
    """
    loading = _loading(loading, "The loading")
    activity = np.ones(loading.shape) if activity is None else _loading(activity, "The activity")
    if activity.shape != loading.shape:
        raise DataError(f"Activity has the shape of the loading, {loading.shape}; found {activity.shape}.")
    signed = loading * activity
    if not loading.shape[1]:
        return np.arange(len(loading))
    owner = np.abs(signed).argmax(axis=1)
    own = signed[np.arange(len(signed)), owner]
    return np.lexsort((-own, np.where(own != 0.0, owner, loading.shape[1])))


def _summary(draws: list[np.ndarray], matches: list[Match]) -> LoadingSummary:
    # Aligned anew for each sum: all draws of a large model at once are many gigabytes.
    def total(function: Any) -> np.ndarray:
        parts = (function(aligned(match, draw).loading) for match, draw in zip(matches, draws, strict=True))
        return functools.reduce(np.add, parts)

    n = len(draws)
    mean = total(np.asarray) / n
    found = [match.index >= 0 for match in matches]
    return LoadingSummary(
        mean=mean,
        deviation=np.sqrt(total(lambda one: (one - mean) ** 2) / n),
        activity=total(lambda one: (one != 0.0).astype(np.float64)) / n,
        presence=np.mean(found, axis=0),
        unmatched=float(np.mean([draw.shape[1] - one.sum() for draw, one in zip(draws, found, strict=True)])),
        matches=tuple(matches),
    )


def _ordered(loading: Any, known: int) -> np.ndarray:
    """Loadings in canonical order and with canonical signs, known factors in their own order before all."""
    parts = [*(loading[:, [k]] for k in range(known)), loading[:, known:]]
    return np.concatenate([canonical(part).loading for part in parts], axis=1)


def _unit(loading: np.ndarray) -> np.ndarray:
    size = np.linalg.norm(loading, axis=0)
    return loading / np.where(size > 0.0, size, 1.0)


def _loading(loading: Any, what: str) -> np.ndarray:
    loading = np.asarray(loading, dtype=np.float64)
    if loading.ndim != 2 or not len(loading) or not np.isfinite(loading).all():
        raise DataError(
            f"{what} is a (rows, factors) matrix of finite numbers with a row at least; found shape {loading.shape}"
            + ("." if np.isfinite(loading).all() else " with numbers that are not finite.")
        )
    return loading


def _pair(loading: Any, factor: Any) -> tuple[np.ndarray, Any]:
    loading = _loading(loading, "The loading")
    if factor is None:
        return loading, None
    factor = np.asarray(factor, dtype=np.float64)
    if factor.ndim != 2 or len(factor) != loading.shape[1] or not factor.shape[1]:
        raise DataError(
            f"Factors are (factors, samples) with a row for each of the {loading.shape[1]} columns of the loading; "
            f"found shape {factor.shape}."
        )
    return loading, factor


def _same_rows(first: np.ndarray, second: np.ndarray) -> None:
    if len(first) != len(second):
        raise DataError(
            f"Both matrices of loadings have a line for each row of the data; found shapes {first.shape} and "
            f"{second.shape}. Transpose them if they are (factors, rows)."
        )

"""The accelerated pass over rows as one loop of machine code: the numbers of the JAX pass, to rounding.

It is called from within compiled sweeps, with the beliefs that the JAX pass begins with and the same random numbers, so
that both draw the same matrix. Only places up to the last that was ever used are gone over, and what did not change is
not renewed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numba import njit

from ....factors.arrays import Array
from ..likelihoods.contract import Active, Numbers
from ..likelihoods.linear_gaussian import sums_of
from ..samplers.beliefs import TOLERANCE, beliefs_of
from ..samplers.passes import MOST, Chances, Gaps, Pass, Tables

# Reordering and contraction, but not "no infinities, no NaN": log odds are infinite where nothing is drawn.
FAST = {"reassoc", "contract", "arcp", "nsz"}
_OPTIONS: Any = {"cache": True, "fastmath": FAST, "error_model": "numpy"}
_kernel: Any = njit(**_OPTIONS)
_inner: Any = njit(**(_OPTIONS | {"_nrt": False, "forceinline": True}))  # neither allocates nor counts references


def accelerated_pass(
    active: Active, full: Array, numbers: Numbers, tables: Tables, chances: Chances, gaps: Gaps | None = None
) -> Pass:
    """The rows one after the other, from beliefs computed anew."""
    rows, places = active.shape
    beliefs = beliefs_of(sums_of(full, active), numbers)
    both = jnp.stack([numbers["noise_precision"], numbers["value_precision"]])
    none = jnp.zeros((0, full.shape[1]))
    unseen = (none, none) if gaps is None else (gaps.seen, gaps.normal)
    given = full, both, *tables, *chances, *unseen, *beliefs.sums, beliefs.covariance, beliefs.mean
    shapes = tuple(each.shape for each in given)
    results = (rows, places), (rows, MOST + 1), (2,), none.shape if gaps is None else full.shape
    words = jax.ShapeDtypeStruct((sum(math.prod(shape) for shape in results), 2), np.uint32)
    flags = jax.ShapeDtypeStruct((rows, places), bool)
    called = functools.partial(_called, shapes)
    active, found = jax.pure_callback(called, (flags, words), active, _packed(given), vmap_method="sequential")
    found = jax.lax.bitcast_convert_type(found, jnp.float64)
    odds, births, (drift, fits), made = _parts(found, results)
    return Pass(active, fits > 0.0, odds, births, drift, None if gaps is None else made)


def _packed(given: Sequence[Array]) -> jax.Array:
    """All numbers in one array, as each argument of a call costs time, and as pairs of words, as JAX rounds numbers of
    calls to single precision where double precision is switched on for one thread only."""
    numbers = jnp.concatenate([jnp.ravel(each).astype(jnp.float64) for each in given])
    return jax.lax.bitcast_convert_type(numbers, jnp.uint32)


def _parts(numbers: Any, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """Arrays of these shapes that follow each other."""
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    return [numbers[end - math.prod(shape) : end].reshape(shape) for end, shape in zip(ends, shapes, strict=True)]


def _called(shapes: tuple[tuple[int, ...], ...], active: Array, words: Array) -> tuple[np.ndarray, np.ndarray]:
    """The pass in NumPy arrays."""
    full, both, odds, births, logistic, gumbel, seen, normal, *beliefs = _parts(_numbers(words), shapes)
    active, beliefs = np.array(active), [each.copy() for each in beliefs]
    made = seen.shape  # which entries are drawn anew: all of the data or none
    found = np.empty(active.size + len(active) * (MOST + 1) + 2 + math.prod(made))
    log_odds, weights, end, entries = _parts(found, (active.shape, (len(active), MOST + 1), (2,), made))
    log_odds.fill(-np.inf)
    weights.fill(0.0)
    full = full.copy()
    given = both[0], both[1], odds, births, logistic, gumbel, seen, normal, *beliefs
    end[::-1] = over_rows(active, full, *given, log_odds, weights)
    entries[:] = full[: len(entries)]
    return active, found[:, None].view(np.uint32)


def _numbers(words: Array) -> np.ndarray:
    return np.asarray(words).view(np.float64)[..., 0]


@_kernel
def over_rows(
    active, full, noise, own, prior, births, logistic, gumbel, seen, normal,
    gram, cross, covariance, mean, odds, weights,
):  # fmt: skip
    """Changes `active`, what of `full` is not seen, and the four arrays of beliefs; fills log odds and log weights;
    returns (fits, drift)."""
    (rows, places), dimensions = active.shape, full.shape[1]
    fits, drift = True, 0.0
    top = _top(gram) if len(births) else places  # places from here on are empty
    left, v, others, alone = np.empty(dimensions), np.empty(places), np.empty(places), np.empty(places, np.bool_)
    some, part, short = np.empty(dimensions, np.int64), np.empty(places * dimensions), np.empty(dimensions)
    for n in range(rows):
        has, value, singles = active[n], full[n], 0
        for k in range(top):
            others[k] = gram[k, k] - has[k]
            alone[k] = has[k] and others[k] == 0.0
            singles += alone[k]
        _take_out(has, alone, singles, value, noise, own, top, gram, cross, covariance, mean, v, left)
        _product(has, top, covariance, v)
        error = _error(has, noise, own, top, gram, v)
        drift = max(drift, error)
        if error > TOLERANCE:
            _renew(noise, own, top, gram, cross, covariance, mean)
            _product(has, top, covariance, v)
        told, rest, lacks = value, mean, left  # the columns in which the row is seen
        if len(seen):
            count = _which(seen[n], some)
            told, rest, lacks = short[:count], part[: places * count].reshape((places, count)), left[:count]
            _gather(some[:count], value, top, mean, told, rest)
        variance = _begin(has, told, noise, top, rest, v, lacks)
        variance = _draw_entries(has, prior, others, logistic[n], top, covariance, rest, v, lacks, variance, odds[n])
        if len(births):
            number = _draw_number(singles, births, gumbel[n], own, variance, lacks, weights[n])
            top, fitted = _place(has, alone, others, number, own, top, v)
            fits = fits and fitted
            variance += (number - singles) / own
        if len(seen):
            _fill(has, seen[n], normal[n], variance, top, mean, value, left)
        _put_back(has, value, variance, top, gram, cross, covariance, mean, v, left)
    return fits, drift


@_inner
def _which(seen, some):
    """Fills the columns in which a row is seen; returns how many."""
    count = 0
    for d in range(len(seen)):
        some[count] = d
        count += seen[d] != 0.0
    return count


@_inner
def _gather(some, value, top, mean, told, rest):
    """Of a row and of all means only these columns."""
    for d in range(len(some)):
        told[d] = value[some[d]]
    for j in range(top):
        for d in range(len(some)):
            rest[j, d] = mean[j, some[d]]


@_inner
def _fill(has, seen, normal, variance, top, mean, value, left):
    """The entries of a row that are not seen, given its features; left = what its entries then lack of their mean."""
    _clear(left, len(left))
    for j in range(top):
        if has[j]:
            _plus(left, 1.0, mean[j], len(left))
    for d in range(len(left)):
        if seen[d] == 0.0:
            value[d] = left[d] + math.sqrt(variance) * normal[d]
        left[d] = value[d] - left[d]


@_inner
def _plus(target, scale, source, count):
    """`target += scale source`, of so many numbers."""
    for k in range(count):
        target[k] += scale * source[k]


@_inner
def _clear(target, count):
    for k in range(count):
        target[k] = 0.0


@_inner
def _copy(target, source):
    for k in range(len(target)):
        target[k] = source[k]


@_kernel
def _top(gram):
    """One more than the last place that a row has."""
    top = len(gram)
    while top > 0 and gram[top - 1, top - 1] == 0.0:
        top -= 1
    return top


@_inner
def _add(has, value, sign, top, gram, cross):
    """A row to the sums, or with -1 from them."""
    for j in range(top):
        if has[j]:
            _plus(gram[j], sign, has, top)
            _plus(cross[j], sign, value, len(value))


@_inner
def _take_out(has, alone, singles, value, noise, own, top, gram, cross, covariance, mean, v, left):
    """A row from all beliefs, its own features integrated out before."""
    _add(has, value, -1.0, top, gram, cross)
    _clear(v, top)
    _copy(left, value)
    for j in range(top):
        if has[j] and not alone[j]:
            _plus(v, 1.0, covariance[j], top)
            _plus(left, -1.0, mean[j], len(left))
    spare = 1.0 / noise + singles / own
    for j in range(top):
        if has[j] and not alone[j]:
            spare -= v[j]
    for j in range(top):
        _plus(covariance[j], v[j] / spare, v, top)
        _plus(mean[j], -v[j] / spare, left, len(left))
    if singles:
        for j in range(top):
            if alone[j]:
                _clear(covariance[j], top)
                _clear(covariance[:, j], top)
                _clear(mean[j], len(left))
                covariance[j, j] = 1.0 / own


@_inner
def _product(has, top, covariance, v):
    """v = covariance z."""
    _clear(v, top)
    for j in range(top):
        if has[j]:
            _plus(v, 1.0, covariance[j], top)


@_inner
def _error(has, noise, own, top, gram, v):
    """The largest of `|precision v - z|`, infinite where one is no number."""
    error = 0.0
    for j in range(top):
        inner = 0.0
        for k in range(top):
            inner += gram[j, k] * v[k]
        found = abs(noise * inner + own * v[j] - has[j])
        if found != found:
            return math.inf
        error = max(error, found)
    return error


@_kernel
def _renew(noise, own, top, gram, cross, covariance, mean):
    """Covariance and mean from the sums."""
    inverse = np.linalg.inv(noise * gram[:top, :top] + own * np.eye(top))
    covariance[:top, :top] = 0.5 * (inverse + inverse.T)
    mean[:top] = inverse @ (noise * cross[:top])


@_inner
def _begin(has, value, noise, top, mean, v, left):
    """left = what the entries lack of their mean; returns their variance."""
    _copy(left, value)
    variance = 1.0 / noise
    for j in range(top):
        if has[j]:
            _plus(left, -1.0, mean[j], len(left))
            variance += v[j]
    return variance


@_inner
def _squares(left):
    found = 0.0
    for d in range(len(left)):
        found += left[d] * left[d]
    return found


@_inner
def _draw_entries(has, prior, others, logistic, top, covariance, mean, v, left, variance, odds):
    """The entries of features that the prior lets the row share; returns the variance."""
    now, dimensions = _squares(left), len(left)
    for k in range(top):
        before = prior[int(others[k])]
        if before == -math.inf:
            continue
        sign = -1.0 if has[k] else 1.0
        after = 0.0
        for d in range(dimensions):
            lacking = left[d] - sign * mean[k, d]
            after += lacking * lacking
        other = variance + 2.0 * sign * v[k] + covariance[k, k]
        gain = 0.5 * (dimensions * math.log(variance / other) + now / variance - after / other)
        odds[k] = before + sign * gain
        if (logistic[k] < odds[k]) != has[k]:
            has[k] = not has[k]
            _plus(v, sign, covariance[k], top)
            _plus(left, -sign, mean[k], dimensions)
            now, variance = after, other
    return variance


@_inner
def _draw_number(singles, births, gumbel, own, variance, left, weights):
    """Of features that the row has alone; fills the log weights of each number."""
    square, best, found = _squares(left), -math.inf, 0
    for number in range(len(births)):
        s = variance + (number - singles) / own
        weights[number] = births[number] - 0.5 * (len(left) * math.log(s) + square / s)
        if weights[number] + gumbel[number] > best:
            best, found = weights[number] + gumbel[number], number
    none = weights[0]
    for number in range(len(births)):
        weights[number] -= none
    return singles if singles >= len(births) else found


@_inner
def _place(has, alone, others, number, own, top, v):
    """So many features in the first places without other rows; returns (top, whether there were so many)."""
    for k in range(len(has)):
        if k >= top:
            if number == 0:
                break
            top, v[k], alone[k], others[k] = k + 1, 0.0, False, 0.0
        if others[k] == 0.0:
            has[k] = number > 0
            v[k] += (int(has[k]) - int(alone[k])) / own
            number -= has[k]
    return top, number == 0


@_inner
def _put_back(has, value, variance, top, gram, cross, covariance, mean, v, left):
    """A row into all beliefs."""
    _add(has, value, 1.0, top, gram, cross)
    for j in range(top):
        _plus(covariance[j], -v[j] / variance, v, top)
        _plus(mean[j], v[j] / variance, left, len(left))

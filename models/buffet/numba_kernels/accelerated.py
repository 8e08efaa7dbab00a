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
from ..samplers.passes import MOST, Chances, Pass, Tables

# Reordering and contraction, but not "no infinities, no NaN": log odds are infinite where nothing is drawn.
FAST = {"reassoc", "contract", "arcp", "nsz"}
_OPTIONS: Any = {"cache": True, "fastmath": FAST, "error_model": "numpy"}
_kernel: Any = njit(**_OPTIONS)
_inner: Any = njit(**(_OPTIONS | {"_nrt": False, "forceinline": True}))  # neither allocates nor counts references


def accelerated_pass(active: Active, full: Array, numbers: Numbers, tables: Tables, chances: Chances) -> Pass:
    """The rows one after the other, from beliefs computed anew."""
    rows, places = active.shape
    beliefs = beliefs_of(sums_of(full, active), numbers)
    both = jnp.stack([numbers["noise_precision"], numbers["value_precision"]])
    given = full, both, *tables, *chances, *beliefs.sums, beliefs.covariance, beliefs.mean
    shapes = tuple(each.shape for each in given)
    results = (rows, places), (rows, MOST + 1), (2,)
    words = jax.ShapeDtypeStruct((sum(math.prod(shape) for shape in results), 2), np.uint32)
    flags = jax.ShapeDtypeStruct((rows, places), bool)
    called = functools.partial(_called, shapes)
    active, found = jax.pure_callback(called, (flags, words), active, _packed(given), vmap_method="sequential")
    found = jax.lax.bitcast_convert_type(found, jnp.float64)
    odds, births, (drift, fits) = _parts(found, results)
    return Pass(active, fits > 0.0, odds, births, drift)


def _packed(given: Sequence[Array]) -> jax.Array:
    """All numbers in one array, as each argument of a call costs time, and as pairs of words, as JAX rounds numbers of
    calls to single precision where double precision is switched on for one thread only."""
    return jax.lax.bitcast_convert_type(jnp.concatenate([jnp.ravel(each) for each in given]), jnp.uint32)


def _parts(numbers: Any, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """Arrays of these shapes that follow each other."""
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    return [numbers[end - math.prod(shape) : end].reshape(shape) for end, shape in zip(ends, shapes, strict=True)]


def _called(shapes: tuple[tuple[int, ...], ...], active: Array, words: Array) -> tuple[np.ndarray, np.ndarray]:
    """The pass in NumPy arrays."""
    full, both, odds, births, logistic, gumbel, *beliefs = _parts(_numbers(words), shapes)
    active, beliefs = np.array(active), [each.copy() for each in beliefs]
    found = np.empty(active.size + len(active) * (MOST + 1) + 2)
    log_odds, weights, end = _parts(found, (active.shape, (len(active), MOST + 1), (2,)))
    log_odds.fill(-np.inf)
    weights.fill(0.0)
    fits, drift = over_rows(active, full, both[0], both[1], odds, births, logistic, gumbel, *beliefs, log_odds, weights)
    end[:] = drift, fits
    return active, found[:, None].view(np.uint32)


def _numbers(words: Array) -> np.ndarray:
    return np.asarray(words).view(np.float64)[..., 0]


@_kernel
def over_rows(active, full, noise, own, prior, births, logistic, gumbel, gram, cross, covariance, mean, odds, weights):
    """Changes `active` and the four arrays of beliefs, fills log odds and log weights; returns (fits, drift)."""
    rows, places = active.shape
    fits, drift = True, 0.0
    top = _top(gram) if len(births) else places  # places from here on are empty
    left, v, others, alone = np.empty(full.shape[1]), np.empty(places), np.empty(places), np.empty(places, np.bool_)
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
        variance = _begin(has, value, noise, top, mean, v, left)
        variance = _draw_entries(has, prior, others, logistic[n], top, covariance, mean, v, left, variance, odds[n])
        if len(births):
            number = _draw_number(singles, births, gumbel[n], own, variance, left, weights[n])
            top, fitted = _place(has, alone, others, number, own, top, v)
            fits = fits and fitted
            variance += (number - singles) / own
        _put_back(has, value, variance, top, gram, cross, covariance, mean, v, left)
    return fits, drift


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

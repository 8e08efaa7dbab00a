"""Steps given values for a noisy-or of booleans, in machine code, that look at the ones of the data alone.

The log probability of a zero is linear in its reasons, `log quiet + t log attenuation`: all zeros of a row together
need one count for each feature, how many of the columns that it calls for are ones or missing. So a step costs what the
row has of ones. Random numbers are those of `factors.draws` from the same seeds, so that the draws are those of the
general sweep.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

_OPTIONS: Any = {"cache": True, "error_model": "numpy"}
_kernel: Any = njit(**_OPTIONS)
_inner: Any = njit(**(_OPTIONS | {"_nrt": False, "forceinline": True}))  # neither allocates nor counts references
_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
_PARITY = np.uint32(0x1BD11BDA)


@_inner
def _turned(word, places):
    return np.uint32((word << np.uint32(places)) | (word >> np.uint32(32 - places)))


@_inner
def uniform_at(seed, place):
    """Number `place` of `factors.draws.uniform` of this seed."""
    one, two = seed[0], seed[1]
    three = np.uint32(one ^ two ^ _PARITY)
    high, low = one, np.uint32(np.uint32(place) + two)
    for group in range(5):
        for turn in range(4):
            high = np.uint32(high + low)
            low = np.uint32(high ^ _turned(low, _ROTATIONS[4 * (group % 2) + turn]))
        after, last = (group + 1) % 3, (group + 2) % 3
        high = np.uint32(high + (one if after == 0 else two if after == 1 else three))
        low = np.uint32(low + (one if last == 0 else two if last == 1 else three) + np.uint32(group + 1))
    return ((high >> np.uint32(6)) * 67108864.0 + (low >> np.uint32(6)) + 0.5) * 2.0**-52


@_kernel
def count_at_ones(active, calls, starts, columns, reasons):
    """Fills how many reasons each one has, (ones,)."""
    for n in range(len(active)):
        _count_row(active[n], calls, columns[starts[n] : starts[n + 1]], reasons[starts[n] : starts[n + 1]])


@_inner
def _count_row(has, calls, ones, reasons):
    for i in range(len(ones)):
        reasons[i] = 0
    for k in range(len(has)):
        if has[k]:
            for i in range(len(ones)):
                reasons[i] += calls[k, ones[i]]


@_inner
def _hits(called, some):
    """How many of these columns a feature calls for."""
    found = 0
    for i in range(len(some)):
        found += called[some[i]]
    return found


@_kernel
def over_rows(active, calls, counts, ones, gaps, odds, log_one, log_attenuation, births, birth, seeds):
    """Entries of all rows and births; changes `active`, `calls` and `counts`; returns (fits, proposed, accepted).

    `ones` and `gaps` are (starts, columns) of what is one and what is missing; `log_one[t]` the log probability of a
    one with t reasons; `birth` (whether births look at the row, share, rate), `births` log weights of the numbers of
    features of a row alone, empty where there are no births; `seeds` (rows, kinds, 2).
    """
    rows, places = active.shape
    sizes, others = np.empty(places, np.int64), np.empty(places, np.int64)
    for k in range(places):
        sizes[k] = _total(calls[k])
    widest = 0
    for n in range(rows):
        widest = max(widest, ones[0][n + 1] - ones[0][n])
    space, spare = np.empty(widest, np.int64), np.empty(widest, np.int64)
    proposed, accepted = 0, 0
    for n in range(rows):
        has, own = active[n], ones[1][ones[0][n] : ones[0][n + 1]]
        missing, t = gaps[1][gaps[0][n] : gaps[0][n + 1]], space[: len(own)]
        _count_row(has, calls, own, t)
        for k in range(places):
            others[k] = counts[k] - has[k]
        _draw_entries(has, calls, sizes, others, own, missing, t, odds, log_one, log_attenuation, seeds[n, 0])
        if len(births):
            given = has, calls, sizes, others, own, missing, t, spare[: len(own)], log_one, log_attenuation
            if birth[0] > 0.0:
                fits, tried, taken = _births_of_row(given, birth[1], birth[2], seeds[n])
            else:
                fits, tried, taken = _births_of_prior(given, births, birth[1], seeds[n])
            proposed, accepted = proposed + tried, accepted + taken
            if not fits:
                return False, proposed, accepted
        for k in range(places):
            counts[k] = others[k] + has[k]
    return True, proposed, accepted


@_inner
def _total(called):
    found = 0
    for d in range(len(called)):
        found += called[d]
    return found


@_inner
def _draw_entries(has, calls, sizes, others, own, missing, t, odds, log_one, log_attenuation, seed):
    for k in range(len(has)):
        before = odds[others[k]]
        if before == -math.inf:
            continue
        called, now, hits, gain = calls[k], np.int64(has[k]), 0, 0.0
        for i in range(len(own)):
            if called[own[i]]:
                hits += 1
                gain += log_one[t[i] - now + 1] - log_one[t[i] - now]
        gain += (sizes[k] - hits - _hits(called, missing)) * log_attenuation
        u = uniform_at(seed, k)
        drawn = math.log(u) - math.log1p(-u) < before + gain
        if drawn != has[k]:
            has[k] = drawn
            step = 1 if drawn else -1
            for i in range(len(own)):
                t[i] += step * called[own[i]]


@_inner
def _births_of_prior(given, births, share, seeds):
    """The features that the row has alone replaced by a draw of the prior, accepted by the likelihood."""
    has, calls, sizes, others, own, missing, t, then, log_one, log_attenuation = given
    number, before, rooms = _state_at(uniform_at(seeds[1], 0), births), 0, 0
    for k in range(len(has)):
        rooms += others[k] == 0
        before += has[k] and others[k] == 0
    if number == 0 and before == 0:
        return True, 0, 0
    if before >= len(births):
        return True, 0, 0
    dimensions, zeros = calls.shape[1], 0
    for i in range(len(own)):
        then[i] = t[i]
    for k in range(len(has)):
        if has[k] and others[k] == 0:
            zeros -= sizes[k] - _hits(calls[k], own) - _hits(calls[k], missing)
            for i in range(len(own)):
                then[i] -= calls[k, own[i]]
    for new in range(number):
        for d in range(dimensions):
            zeros += uniform_at(seeds[2], new * dimensions + d) < share
        for i in range(len(missing)):
            zeros -= uniform_at(seeds[2], new * dimensions + missing[i]) < share
        for i in range(len(own)):
            called = uniform_at(seeds[2], new * dimensions + own[i]) < share
            zeros -= called
            then[i] += called
    gain = zeros * log_attenuation
    for i in range(len(own)):
        gain += log_one[then[i]] - log_one[t[i]]
    if not math.log(uniform_at(seeds[3], 0)) < gain:
        return True, 1, 0
    if number > rooms:
        return False, 1, 1
    new = 0
    for k in range(len(has)):
        if others[k] == 0:
            has[k] = new < number
            if has[k]:
                for d in range(dimensions):
                    calls[k, d] = uniform_at(seeds[2], new * dimensions + d) < share
                sizes[k] = _total(calls[k])
                new += 1
    return True, 1, 1


@_inner
def _state_at(number, logits):
    """As `factors.draws.state_at`."""
    most = -math.inf
    for state in range(len(logits)):
        most = max(most, logits[state])
    total = 0.0
    for state in range(len(logits)):
        total += math.exp(logits[state] - most)
    found, below = 0, 0.0
    for state in range(len(logits) - 1):
        below += math.exp(logits[state] - most)
        found += number * total >= below
    return found


@_inner
def _births_of_row(given, share, rate, seeds):
    """Births and deaths of one feature that the row has alone, its values by what the row shows.

    What is proposed from the posterior of values given the row is accepted by its evidence, `sum_d log(1 - share +
    share gain_d)`, whatever the values are; so they are drawn where a birth is accepted.
    """
    has, calls, sizes, others, own, missing, t, then, log_one, log_attenuation = given
    proposed, accepted, zeros = 0, 0, calls.shape[1] - len(own) - len(missing)
    of_zero = math.log(1.0 - share + share * math.exp(log_attenuation))
    for again in range((len(seeds) - 1) // 4):
        seed = seeds[1 + 4 * again : 5 + 4 * again]
        number, room = 0, -1
        for k in range(len(has)):
            number += has[k] and others[k] == 0
            if room < 0 and not has[k] and others[k] == 0:
                room = k
        birth, dying = uniform_at(seed[0], 0) < 0.5, -1
        if not birth and number == 0:
            continue
        proposed += 1
        if not birth:
            rank = min(int(uniform_at(seed[1], 0) * number), number - 1)
            for k in range(len(has)):
                if has[k] and others[k] == 0:
                    rank -= 1
                    if rank == -1:
                        dying = k
        ratio = math.log(rate / (number + 1.0 if birth else number)) + zeros * of_zero
        for i in range(len(own)):
            then[i] = t[i] if birth else t[i] - calls[dying, own[i]]
            gain = log_one[then[i] + 1] - log_one[then[i]]
            ratio += math.log(1.0 - share + share * math.exp(gain))
        if not math.log(uniform_at(seed[3], 0)) < (ratio if birth else -ratio):
            continue
        accepted += 1
        if birth and room < 0:
            return False, proposed, accepted
        if birth:
            _give(calls[room], own, missing, then, share, log_one, log_attenuation, seed[2])
            has[room], sizes[room] = True, _total(calls[room])
            for i in range(len(own)):
                t[i] += calls[room, own[i]]
        else:
            has[dying] = False
            for i in range(len(own)):
                t[i] = then[i]
    return True, proposed, accepted


@_inner
def _give(called, own, missing, without, share, log_one, log_attenuation, seed):
    """What a new feature calls for, given the row."""
    before = math.log(share) - math.log1p(-share)
    of_zero = 1.0 / (1.0 + math.exp(-before - log_attenuation))
    for d in range(len(called)):
        called[d] = uniform_at(seed, d) < of_zero
    for i in range(len(missing)):
        called[missing[i]] = uniform_at(seed, missing[i]) < 1.0 / (1.0 + math.exp(-before))
    for i in range(len(own)):
        gain = log_one[without[i] + 1] - log_one[without[i]]
        called[own[i]] = uniform_at(seed, own[i]) < 1.0 / (1.0 + math.exp(-before - gain))


@_kernel
def over_values(active, calls, reasons, ones, gaps, thresholds, before, log_one, log_attenuation):
    """What features call for, one feature after the other, all columns at once; changes `calls` and `reasons`."""
    rows, places = active.shape
    dimensions = calls.shape[1]
    gain, zeros = np.empty(dimensions), np.empty(dimensions, np.int64)
    for k in range(places):
        owners = 0
        for d in range(dimensions):
            gain[d], zeros[d] = 0.0, 0
        for n in range(rows):
            if not active[n, k]:
                continue
            owners += 1
            for i in range(gaps[0][n], gaps[0][n + 1]):
                zeros[gaps[1][i]] -= 1
            for i in range(ones[0][n], ones[0][n + 1]):
                d = ones[1][i]
                reasons[i] -= calls[k, d]
                zeros[d] -= 1
                gain[d] += log_one[reasons[i] + 1] - log_one[reasons[i]]
        for d in range(dimensions):
            calls[k, d] = thresholds[k, d] < before + gain[d] + (owners + zeros[d]) * log_attenuation
        for n in range(rows):
            if active[n, k]:
                for i in range(ones[0][n], ones[0][n + 1]):
                    reasons[i] += calls[k, ones[1][i]]

"""Kingman's coalescent and the fragmentation of a diffusion tree: two processes on partitions that undo each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from imbalance import log_split

from cavity.engine.mcmc.keys import generator
from cavity.factors.errors import DataError


def sample_partition(n: int, concentration: float, key: Any) -> np.ndarray:
    """(n,) labels of the blocks of a Chinese restaurant process: `p ~ concentration^K prod_k (n_k - 1)!`."""
    if n < 1 or not concentration > 0.0:
        raise DataError(
            f"A partition takes at least one point and a concentration > 0; found {n!r} and {concentration!r}."
        )
    random = generator(key)
    labels = np.zeros(n, dtype=np.int64)
    for point in range(1, n):
        if random.random() * (point + concentration) < concentration:
            labels[point] = labels[:point].max() + 1
        else:
            labels[point] = labels[random.integers(point)]
    return labels


def coalesced(labels: Any, duration: float, key: Any, rate: float = 1.0) -> np.ndarray:
    """(n,) labels after Kingman's coalescent: every pair of blocks merges at a rate, for a duration.

    Source: kingman1982coalescent.
    """
    random, labels = generator(key), np.array(labels)
    left = _positive("duration", duration)
    while (blocks := np.unique(labels)).size > 1:
        left -= random.exponential(2.0 / (_positive("rate", rate) * blocks.size * (blocks.size - 1)))
        if left < 0.0:
            break
        first, second = random.choice(blocks, 2, replace=False)
        labels[labels == max(first, second)] = min(first, second)
    return _renumbered(labels)


def fragmented(labels: Any, duration: float, key: Any, rate: float) -> np.ndarray:
    """(n,) labels after each block was run down a Dirichlet diffusion tree with the constant divergence function `rate`
    for a duration.

    A block of m points parts at `rate (1 + 1/2 + ... + 1/(m - 1))`, into two given sets of l and r of them at
    `rate (l - 1)! (r - 1)! / (m - 1)!`. In a partition from a Chinese restaurant process of some concentration, the
    probability of the two sets as blocks is `concentration (l - 1)! (r - 1)! / (m - 1)!` times that of their union as
    one; so with `rate = concentration * (rate of the coalescent)` the two processes are in detailed balance. Running
    both leaves the Chinese restaurant process as it is; running one after the other, each for dt, does so up to dt^2.

    Source: knowles2012thesis.
    """
    random, labels = generator(key), np.array(labels)
    waiting = [(np.flatnonzero(labels == block), _positive("duration", duration)) for block in np.unique(labels)]
    pace, next_label = _positive("rate", rate), int(labels.max()) + 1
    while waiting:
        block, left = waiting.pop()
        m = block.size
        if m == 1:
            continue
        left -= random.exponential(1.0 / (pace * (1.0 / np.arange(1, m)).sum()))
        if left < 0.0:
            continue
        size = 1 + int(random.choice(m - 1, p=np.exp(log_split(0.0, m))))
        block = random.permutation(block)
        labels[block[:size]] = next_label
        next_label += 1
        waiting += [(block[:size], left), (block[size:], left)]
    return _renumbered(labels)


def _positive(name: str, value: float) -> float:
    if not 0.0 < value < np.inf:
        raise DataError(f"The {name} is a positive number; found {value!r}.")
    return float(value)


def _renumbered(labels: np.ndarray) -> np.ndarray:
    """Numbered by first appearance."""
    _, first, place = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[place]

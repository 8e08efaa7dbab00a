"""Random keys and bits, equal to JAX's: threefry of two words and twenty rounds.

An array of keys is an array of whole numbers of 64 bits: the key's first word is the high half. Source:
salmon2011parallel.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .equation import Equation, Function, Shape, Unknown

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = np.uint32(0x1BD11BDA)
HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)


def packed(words: Any) -> Any:
    """Keys from their two words, which are along the last axis."""
    words = np.asarray(words).astype(np.uint64)
    return (words[..., 0] << HALF) | words[..., 1]


def words(keys: Any) -> tuple[Any, Any]:
    """The two words of keys."""
    keys = np.asarray(keys)
    return (keys >> HALF).astype(np.uint32), (keys & LOW).astype(np.uint32)


def threefry(keys: Any, high: Any, low: Any) -> tuple[Any, Any]:
    """Two words scrambled by keys."""
    first, second = words(keys)
    schedule = (first, second, first ^ second ^ PARITY)
    high, low = high + first, low + second
    for turn in range(5):
        for by in ROTATIONS[turn % 2]:
            high = high + low
            low = ((low << np.uint32(by)) | (low >> np.uint32(32 - by))) ^ high
        high, low = high + schedule[(turn + 1) % 3], low + schedule[(turn + 2) % 3] + np.uint32(turn + 1)
    return high, low


def scrambled(keys: Any, shape: Shape) -> tuple[Any, Any]:
    """Two words for every element of an array of this shape, for every key."""
    count = np.arange(int(np.prod(shape)), dtype=np.uint64).reshape(shape)
    keys = np.asarray(keys)
    high, low = words(count)
    return threefry(keys.reshape(keys.shape + (1,) * len(shape)), high, low)


def partitionable() -> None:
    """Unknown where JAX is set to draw other numbers."""
    if not jax.config.jax_threefry_partitionable:  # type: ignore[attr-defined]  # made by JAX when it is imported
        raise Unknown("random numbers that are not of the partitionable kind")


def wrap(equation: Equation) -> Function:
    """Keys from their words."""
    return packed


def unwrap(equation: Equation) -> Function:
    """The words of keys."""
    return lambda keys: np.stack(words(keys), -1)


def split(equation: Equation) -> Function:
    """New keys from one."""
    partitionable()
    shape = tuple(equation.params["shape"])

    def apart(keys: Any) -> Any:
        high, low = scrambled(keys, shape)
        return (high.astype(np.uint64) << HALF) | low

    return apart


def fold_in(equation: Equation) -> Function:
    """A new key from one and a number."""

    def folded(keys: Any, number: Any) -> Any:
        high, low = threefry(keys, np.uint32(0), np.asarray(number, np.uint32))
        return ((high.astype(np.uint64) << HALF) | low)[()]

    return folded


def seed(equation: Equation) -> Function:
    """Keys from seeds: their bits."""
    bits = np.dtype(f"u{equation.type.itemsize}")
    return lambda seeds: seeds.view(bits).astype(np.uint64)


def bits(equation: Equation) -> Function:
    """Random bits."""
    partitionable()
    width, shape, type = equation.params["bit_width"], tuple(equation.params["shape"]), equation.out_type

    def drawn(keys: Any) -> Any:
        high, low = scrambled(keys, shape)
        if width == 64:
            return ((high.astype(type) << HALF) | low)[()]
        return (high ^ low).astype(type)[()]

    return drawn

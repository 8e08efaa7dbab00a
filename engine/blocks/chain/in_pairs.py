"""Whether the steps of a chain follow one another, or are put together in a tree of pairs."""

from __future__ import annotations

import jax

ROOM = 1 << 27  # numbers that the pairs of a chain may hold


def in_pairs(numbers: int) -> bool:
    """Whether a chain is put together in pairs that hold so many numbers: on accelerators, where a step costs as much
    as many that do not wait for each other."""
    return jax.default_backend() != "cpu" and numbers <= ROOM

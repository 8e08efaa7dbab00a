"""A few sizes for many: what has nearly as many rows, or entries, needs no other program."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...compiler.language.nodes import Plate

SMALLEST = 16  # which all that are fewer are padded to


def padded_size(number: int) -> int:
    """The next of 16, 20, 24, 28, 32, 40, ...: four steps to the double, so that less than a fifth is padding."""
    return max(SMALLEST, -(-number // _step(number)) * _step(number))


def fewest(size: int) -> int:
    """The least number that is padded to this size."""
    return 1 if size == SMALLEST else size - _step(size) + 1


def _step(number: int) -> int:
    return 2 ** max(2, math.frexp(max(number, 1) - 1)[1] - 3)


def padded_sizes(plates: tuple[Plate, ...], sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes of plates, with those of these plates padded."""
    return {**sizes, **{plate.name: padded_size(sizes[plate.name]) for plate in plates}}

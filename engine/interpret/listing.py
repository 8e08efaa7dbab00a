"""What is written of a jaxpr: steps on numbered slots, as plain data, which another process may read.

`writing` makes it, and `actions` functions of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .equation import Equation


class Part(NamedTuple):
    """Steps on slots: the first hold the inputs, the others begin as `rest`."""

    work: float
    equations: tuple[Equation, ...]  # equal ones once
    steps: tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]  # place of the equation, slots read, slots written
    rest: tuple[Any, ...]
    outputs: tuple[int, ...]


class Listing(NamedTuple):
    """A jaxpr that is run many times, its first inputs staying as they are."""

    once: Part  # of those
    turn: Part  # of what `once` gives, and the other inputs


class Program(NamedTuple):
    """A jaxpr as a whole: the types of its inputs and outputs, and its steps."""

    ins: tuple[np.dtype, ...]
    listing: Listing
    outs: tuple[np.dtype, ...]

"""A run in chunks of sweeps: between two of them Python has its say, so that an interrupt stops a long run.

One compiled function does "at most so many sweeps, from here": it is the same for every chunk, so that the answer does
not depend, to the last bit, on where a run was cut. No callback inside the compiled loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import jax
import numpy as np
from jaxtyping import Bool, Int, PyTree

from ...factors.arrays import Array, Numeric
from .control.result_codes import CONVERGED, RUNNING

SECONDS = 0.5  # of a chunk, and so about how long an interrupt waits
FEWEST = 4  # sweeps, so that what every chunk prepares anew stays a small part
FIRST = 64  # sweeps: a small problem is done before the first cut
WORK = 2**21  # numbers in the data times sweeps of the first chunk, where that is less


@runtime_checkable
class Watched(Protocol):
    """What is seen of a carry between two chunks; of several runs side by side these are arrays."""

    @property
    def code(self) -> Numeric: ...
    @property
    def iteration(self) -> Numeric: ...
    @property
    def residual(self) -> Numeric: ...


class Done(NamedTuple):
    """The carry of a run that one pass ends."""

    code: Numeric = CONVERGED
    iteration: Numeric = 1
    residual: Numeric = 0.0


DONE = Done()

_Carry = TypeVar("_Carry", bound=Watched)
_Out = TypeVar("_Out")  # a pytree of arrays
Advance = Callable[[_Carry, Bool[Array, ""], Int[Array, ""]], tuple[_Carry, _Out]]


def in_chunks(
    advance: Advance[_Carry, _Out],
    carry: _Carry,
    numbers: int,
    watch: Callable[[Watched], None],
    steady: bool = False,
    agreed: Callable[[int], int] = int,
    begun: int | None = None,
) -> _Out:
    """The outputs of a run.

    `advance(carry, fresh, limit)` returns the next carry and the outputs so far, and starts anew where `fresh`;
    `numbers` is how many there are in the data; `watch` sees every carry. The chunks of a `steady` run are all of one
    length, those of others last about as long as an interrupt may wait; `agreed` makes that the same in all processes.
    A run that goes on has `begun` so many sweeps, which `carry` is after.
    """
    sweeps, limit, fresh = first_chunk(numbers), begun or 0, begun is None
    while True:
        began, limit = time.monotonic(), limit + sweeps
        carry, outputs = advance(carry, np.asarray(fresh), np.asarray(limit, np.int32))
        fresh = False
        running = np.any(np.asarray(carry.code) == RUNNING)  # waits for the chunk
        watch(carry)
        if not running:
            return jax.block_until_ready(outputs)
        if not steady:
            sweeps = agreed(next_chunk(sweeps, time.monotonic() - began))


def first_chunk(numbers: int) -> int:
    """Sweeps before the first cut."""
    return int(np.clip(WORK // max(numbers, 1), FEWEST, FIRST))


def next_chunk(sweeps: int, seconds: float) -> int:
    """Sweeps before the next cut, where so many took so long."""
    return int(np.clip(sweeps * SECONDS / max(seconds, 1e-6), FEWEST, 2**20))


def strong(tree: PyTree) -> PyTree[jax.Array]:
    """The same arrays with types that do not give way, as those from outside have: one compilation for both."""
    return jax.tree.map(lambda a: jax.lax.convert_element_type(a, a.dtype), tree)

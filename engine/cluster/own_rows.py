"""What each process has of the data: all of it, as the others, or rows of its own, of which nobody else knows.

Processes compare the sizes of their plates, which variables have missing entries, and checksums of arrays; no data.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.experimental import multihost_utils

from ...compiler.data.bind import Binding
from ...compiler.data.sparse_matrices import is_sparse, is_streamed
from ...compiler.graph import Plan
from ...compiler.sharding import dealt_plates, numbers_by_plate
from ...factors.errors import DataError


class OwnRows(NamedTuple):
    """The number of rows of every process, by plate, and the data of this one with what others say is missing."""

    counts: dict[str, tuple[int, ...]]
    binding: Binding

    def sizes(self) -> dict[str, int]:
        """The sizes of plates, all rows together."""
        return {**self.binding.sizes, **{plate: sum(own) for plate, own in self.counts.items()}}

    def first(self, plate: str) -> int:
        """The number of rows before those of this process."""
        return sum(self.counts[plate][: jax.process_index()])


def own_rows(binding: Binding, plan: Plan, devices: int, marked: bool) -> OwnRows | None:
    """The rows of each process; None where every process has all of the data, or there is but one.

    They are its own where processes differ, or this is `marked`. Raises DataError, in every process, where they differ
    in what belongs to no rows that could be dealt.
    """
    if jax.process_count() == 1:
        return None
    arrays = {**binding.inputs, **binding.observed}
    names, plates = sorted(arrays), sorted(binding.sizes)
    told = [marked, *(binding.sizes[p] for p in plates), *(n in binding.missing for n in names)]
    told += [_checksum(arrays[name]) for name in names]
    every = np.asarray(multihost_utils.process_allgather(np.asarray(told, np.int64)))
    if not every[:, 0].any() and (every == every[0]).all():
        return None
    sizes = every[:, 1 : 1 + len(plates)]
    missing = np.any(every[:, 1 + len(plates) : 1 + len(plates) + len(names)], axis=0).tolist()
    sums = every[:, 1 + len(plates) + len(names) :]
    total = dict(zip(plates, sizes.sum(axis=0).tolist(), strict=True))
    dealt = dealt_plates(plan, {**binding.sizes, **total}, numbers_by_plate(plan, arrays), devices)
    own = {plate.name for plate in dealt}
    _check_alike(plan, [(p, sizes[:, i]) for i, p in enumerate(plates) if p not in own], names, sums, own)
    counts = {p: tuple(sizes[:, i].tolist()) for i, p in enumerate(plates) if p in own}
    absent = {name for name, some in zip(names, missing, strict=True) if some} - set(binding.missing)
    more = {name: np.zeros(arrays[name].shape[: len(_plates(plan, name))], bool) for name in absent}
    return OwnRows(counts, dataclasses.replace(binding, missing={**binding.missing, **more}))


def _check_alike(
    plan: Plan, sizes: Iterable[tuple[str, np.ndarray]], names: list[str], sums: np.ndarray, own: set[str]
) -> None:
    for plate, found in sizes:
        if (found != found[0]).any():
            raise DataError(
                f"Every process gave data of its own, in which plate '{plate}' has {', '.join(map(str, found))} "
                "elements. Rows of this plate cannot be dealt to processes (explain() says why), so all of them have "
                "the same ones. Give its size, sizes={...}, or all of its data in every process."
            )
    for i, name in enumerate(names):
        if not {plate.name for plate in _plates(plan, name)} & own and (sums[:, i] != sums[0, i]).any():
            raise DataError(
                f"Every process gave data of its own, and '{name}', which has no row of {', '.join(own) or 'any'}, "
                "differs between them. What all rows share must be the same in every process."
            )


def _plates(plan: Plan, name: str) -> tuple[Any, ...]:
    model = plan.model
    return {**model.inputs, **model.randoms, **model.lets}[name].plates


def _checksum(array: Any) -> int:
    if is_streamed(array):
        return 0
    parts = (array.data, array.indices) if is_sparse(array) else (array,)
    return sum(zlib.crc32(np.ascontiguousarray(part).data) for part in parts)


def even(array: np.ndarray, axis: int, counts: tuple[int, ...]) -> np.ndarray:
    """All rows of all processes, from those of each: for rows that were dealt unevenly."""
    rows = np.moveaxis(np.asarray(array), axis, 0)
    padded = np.zeros((max(counts), *rows.shape[1:]), rows.dtype)
    padded[: len(rows)] = rows
    every = np.asarray(multihost_utils.process_allgather(padded))
    return np.moveaxis(np.concatenate([own[:n] for own, n in zip(every, counts, strict=True)]), 0, axis)

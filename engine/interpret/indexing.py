"""Gather and scatter: windows of an array at places that other arrays tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from .equation import Equation, Function, Shape, Unknown

Mode = jax.lax.GatherScatterMode


class Windows(NamedTuple):
    """Where windows lie in an array."""

    sizes: tuple[int, ...]  # of a window, by axis of the array
    moved: tuple[int, ...]  # the axes along which the places tell where a window begins, in the order of the places
    along: dict[int, int]  # axes of the array that go along with an axis of the places
    room: np.ndarray  # the last place at which a window fits, by axis in `moved`

    def indices(self, starts: Any, axes: Sequence[int]) -> tuple[Any, ...]:
        """For every axis of the array an array of indices; its axes are those of the places, then `axes`, windows'."""
        places = starts.shape[:-1]
        found = []
        for axis, size in enumerate(self.sizes):
            index: Any = np.zeros((1,) * (len(places) + len(axes)), np.intp)
            if axis in self.moved:
                index = index + starts[..., self.moved.index(axis)].reshape(places + (1,) * len(axes))
            if axis in self.along:
                own = self.along[axis]
                shape = [1] * (len(places) + len(axes))
                shape[own] = places[own]
                index = index + np.arange(places[own]).reshape(shape)
            if axis in axes and size != 1:
                shape = [1] * (len(places) + len(axes))
                shape[len(places) + axes.index(axis)] = size
                index = index + np.arange(size).reshape(shape)
            found.append(index)
        return tuple(found)


def gather(equation: Equation) -> Function:
    """Windows at the given places; where one would stick out it is moved back, or holds a value to fill with."""
    numbers, mode = equation.params["dimension_numbers"], equation.params["mode"]
    shape = equation.ins[0].shape
    sizes = tuple(map(int, equation.params["slice_sizes"]))
    moved = tuple(map(int, numbers.start_index_map))
    room = np.asarray([shape[axis] - sizes[axis] for axis in moved], np.int64)
    offsets = tuple(map(int, numbers.offset_dims))
    batching = tuple(map(int, numbers.operand_batching_dims))
    gone = {*map(int, numbers.collapsed_slice_dims), *batching}
    kept = [axis for axis in range(len(shape)) if axis not in gone]
    along = dict(zip(batching, _places_axes(numbers.start_indices_batching_dims), strict=True))
    rank = len(equation.outs[0].shape)
    order = _order(rank, offsets)
    fill = _fill(equation) if mode == Mode.FILL_OR_DROP else None
    rows = _rows(shape, sizes, moved, kept, along, offsets, rank)
    windows = Windows(sizes, moved, along, room)

    def find(x: Any, starts: Any) -> Any:
        starts = starts.astype(np.int64, copy=False)
        held = np.minimum(np.maximum(starts, 0), room)
        if rows:
            found = x[held[..., 0]]
        else:
            found = x[windows.indices(held, kept)]
            if order is not None:
                found = found.transpose(order)
        if fill is not None:
            inside = np.all(held == starts, axis=-1)
            if not np.all(inside):
                axes = [axis for axis in range(rank) if axis in offsets]
                found = np.where(np.expand_dims(inside, axes), found, fill)
        return found if rank else np.asarray(found)[()]

    return find


def _places_axes(axes: Any) -> tuple[int, ...]:
    """Axes of the places; the last one, of coordinates, is not counted."""
    return tuple(map(int, axes))


def _order(rank: int, offsets: tuple[int, ...]) -> tuple[int, ...] | None:
    """How axes of places, then of windows, are put where they belong."""
    places = [axis for axis in range(rank) if axis not in offsets]
    found = [*places, *offsets]
    order = tuple(found.index(axis) for axis in range(rank))
    return None if order == tuple(range(rank)) else order


def _rows(
    shape: Shape, sizes: Shape, moved: Any, kept: list[int], along: Any, offsets: tuple[int, ...], rank: int
) -> bool:
    """Whether the windows are whole rows: elements of the first axis."""
    whole = sizes[1:] == shape[1:] and kept == list(range(1, len(shape)))
    return moved == (0,) and not along and whole and offsets == tuple(range(rank - len(offsets), rank))


def _fill(equation: Equation) -> Any:
    """What stands for elements outside."""
    value, type = equation.params["fill_value"], equation.out_type
    if value is None:
        value = np.nan if type.kind == "f" else np.iinfo(type).min if type.kind == "i" else True
        value = np.iinfo(type).max if type.kind == "u" else value
    return np.asarray(value, type)


def scatter(combine: np.ufunc | None) -> Any:
    """The rule of a scatter that combines what is there with what comes, or replaces it."""

    def rule(equation: Equation) -> Function:
        numbers, mode = equation.params["dimension_numbers"], equation.params["mode"]
        shape, updates = equation.ins[0].shape, equation.ins[2].shape
        window = tuple(map(int, numbers.update_window_dims))
        batching = tuple(map(int, numbers.operand_batching_dims))
        gone = {*map(int, numbers.inserted_window_dims), *batching}
        kept = [axis for axis in range(len(shape)) if axis not in gone]
        extent = dict(zip(kept, (updates[axis] for axis in window), strict=True))
        sizes = tuple(extent.get(axis, 1) for axis in range(len(shape)))
        moved = tuple(map(int, numbers.scatter_dims_to_operand_dims))
        room = np.asarray([shape[axis] - sizes[axis] for axis in moved], np.int64)
        along = dict(zip(batching, _places_axes(numbers.scatter_indices_batching_dims), strict=True))
        if mode not in (Mode.CLIP, Mode.FILL_OR_DROP, Mode.PROMISE_IN_BOUNDS):
            raise Unknown(f"{equation.name} in mode {mode}")
        clip = mode == Mode.CLIP
        windows = Windows(sizes, moved, along, room)
        order = tuple([axis for axis in range(len(updates)) if axis not in window] + list(window))

        def put(x: Any, starts: Any, new: Any) -> Any:
            starts = starts.astype(np.int64, copy=False)
            held = np.minimum(np.maximum(starts, 0), room)
            indices = windows.indices(held, kept)
            out, new = np.array(x), np.asarray(new).transpose(order)
            if not clip:
                inside = np.all(held == starts, axis=-1)
                if not np.all(inside):
                    inside = np.broadcast_to(np.expand_dims(inside, tuple(range(inside.ndim, new.ndim))), new.shape)
                    indices = tuple(np.broadcast_to(index, new.shape)[inside] for index in indices)
                    new = new[inside]
            if combine is None:
                out[indices] = new
            else:
                combine.at(out, indices, new)
            return out if out.ndim else out[()]

        return put

    return rule

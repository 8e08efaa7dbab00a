"""Arrays moved about: views where there can be one."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from .equation import Equation, Function, Unknown, pick

SMALL = 4096  # elements up to which a copy is made faster than a view that repeats


def spread(equation: Equation) -> Function:
    """An array repeated until it has the shape of what comes out."""
    shape, type = equation.outs[0]
    if math.prod(shape) > SMALL:
        return lambda x: np.broadcast_to(x, shape)

    def filled(x: Any) -> Any:
        out = np.empty(shape, type)
        out[...] = x
        return out

    return filled


def reshaped(equation: Equation) -> Function:
    """The same elements in another shape: for `reshape`, `squeeze`, `expand_dims` and `pick`."""
    if equation.params.get("dimensions") is not None and equation.name == "reshape":
        raise Unknown("reshape of permuted dimensions")
    return pick(equation.ins[0].shape, equation.outs[0].shape) or (lambda x: x)


def transposed(equation: Equation) -> Function:
    """Axes in another order."""
    permutation = tuple(map(int, equation.params["permutation"]))
    if permutation == tuple(range(len(permutation))):
        return lambda x: x
    return lambda x: x.transpose(permutation)


def reversed_(equation: Equation) -> Function:
    """Some axes backwards."""
    axes = equation.params["dimensions"]
    index = tuple(slice(None, None, -1) if axis in axes else slice(None) for axis in range(len(equation.ins[0].shape)))
    return lambda x: x[index]


def sliced(equation: Equation) -> Function:
    """A part, at a fixed place."""
    strides = equation.params["strides"] or (1,) * len(equation.ins[0].shape)
    limits = zip(equation.params["start_indices"], equation.params["limit_indices"], strides, strict=True)
    index = tuple(slice(int(start), int(stop), int(stride)) for start, stop, stride in limits)
    return lambda x: x[index]


def concatenated(equation: Equation) -> Function:
    """Arrays one after the other."""
    axis = int(equation.params["dimension"])
    return lambda *arrays: np.concatenate(arrays, axis)


def stacked(equation: Equation) -> Function:
    """Arrays side by side, along a new axis."""
    axis, shape, type = int(equation.params["axis"]), equation.outs[0].shape, equation.out_type
    if len(shape) == 1:
        return lambda *numbers: np.array(numbers, type)
    return lambda *arrays: np.stack(arrays, axis)


def unstacked(equation: Equation) -> Function:
    """The slices along an axis."""
    axis = int(equation.params["axis"])
    before = (slice(None),) * axis
    places = [(*before, i) for i in range(equation.ins[0].shape[axis])]
    return lambda x: tuple(x[place] for place in places)


def split(equation: Equation) -> Function:
    """Parts of given sizes along an axis."""
    before, ends = (slice(None),) * int(equation.params["axis"]), np.cumsum([0, *map(int, equation.params["sizes"])])
    places = [(*before, slice(int(start), int(stop))) for start, stop in itertools.pairwise(ends)]
    return lambda x: tuple(x[place] for place in places)


def padded(equation: Equation) -> Function:
    """An array with padding before, behind and between its elements; negative padding cuts off."""
    shape, type = equation.outs[0].shape, equation.out_type
    target, source = [], []
    for axis, size, room in zip(equation.params["padding_config"], equation.ins[0].shape, shape, strict=True):
        low, _, inner = map(int, axis)
        step = inner + 1
        first = max(0, -(low // step)) if low < 0 else 0  # the first element that is not cut off
        stop = max(first, min(size, (room - low + step - 1) // step))
        source.append(slice(first, stop))
        begin = low + first * step
        target.append(slice(begin, begin + (stop - first) * step, step))
    there, here = tuple(target), tuple(source)

    def pad(x: Any, value: Any) -> Any:
        out = np.full(shape, value, type)
        out[there] = x[here]
        return out

    return pad


def counted(equation: Equation) -> Function:
    """0, 1, 2, ... along an axis."""
    shape, axis = equation.outs[0].shape, int(equation.params["dimension"])
    line = np.arange(shape[axis], dtype=equation.out_type).reshape([-1] + [1] * (len(shape) - axis - 1))
    return lambda: np.broadcast_to(line, shape)


def zeros(equation: Equation) -> Function:
    """An array whose elements nobody reads."""
    shape, type = equation.outs[0].shape, equation.out_type
    return lambda: np.zeros(shape, type)[()]


def dynamic_slice(equation: Equation) -> Function:
    """A part of fixed size; where it would stick out it is moved back."""
    sizes = tuple(map(int, equation.params["slice_sizes"]))
    limits = [full - size for full, size in zip(equation.ins[0].shape, sizes, strict=True)]
    one = next((axis for axis, limit in enumerate(limits) if limit), None)
    if sum(limit > 0 for limit in limits) <= 1 and one is not None:
        before, limit, size = (slice(None),) * one, limits[one], sizes[one]

        def along(x: Any, *starts: Any) -> Any:
            start = min(max(int(starts[one]), 0), limit)
            return x[(*before, slice(start, start + size))]

        return along
    return lambda x, *starts: x[_window(starts, limits, sizes)]


def dynamic_update(equation: Equation) -> Function:
    """A copy with a part replaced; where that would stick out it is moved back."""
    sizes = equation.ins[1].shape
    limits = [full - size for full, size in zip(equation.ins[0].shape, sizes, strict=True)]

    def update(x: Any, part: Any, *starts: Any) -> Any:
        out = np.array(x)
        out[_window(starts, limits, sizes)] = part
        return out if limits else out[()]

    return update


def _window(starts: Any, limits: Any, sizes: Any) -> tuple[slice, ...]:
    places = [min(max(int(start), 0), limit) for start, limit in zip(starts, limits, strict=True)]
    return tuple(slice(place, place + size) for place, size in zip(places, sizes, strict=True))

"""Whether two arguments of a factor's instance are the same element of a variable, which EP would integrate as two."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ...factors.errors import DataError
from ..blocks.slots import SlotsBlock
from ..language.atoms import atom_key
from ..language.indexing import positions
from ..language.nodes import Apply, Constant, Expr, Plate, Position, gathers_of


class Lookup(NamedTuple):
    """What index data are: arrays by name, and the sizes of plates."""

    arrays: Mapping[str, np.ndarray]
    sizes: Mapping[str, int]


def check_apart(block: SlotsBlock, data: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> None:
    """Raises DataError where index data choose one element of a variable for two edges of an instance.

    `data` are inputs and observed indices by name. An index that is not among them is random, and may have any value.
    `sizes` are those of the plates.
    """
    lookup = Lookup(data, sizes)
    for first, second in itertools.combinations(block.edges, 2):
        if first.variable is second.variable and first.variable.plates and _meet(first.element, second.element, lookup):
            raise DataError(
                f"'{block.name}' uses '{first.element}' and '{second.element}', and the data make them the same "
                f"element of '{first.variable.name}' in one instance or state at least. EP takes them for two "
                "independent numbers. Leave such instances out, or write a factor of their own for them with the "
                "element named once."
            )


def _meet(first: Expr, second: Expr, data: Lookup) -> bool:
    """Whether two elements may coincide: on every axis their positions do, in one instance."""
    own, other = _indices(first), _indices(second)
    # An index made by arithmetic is data, too, but nothing here evaluates it: it is given the benefit of the doubt.
    if any(isinstance(index, Apply) for index in (*own.values(), *other.values())):
        return False
    together: np.ndarray = np.array(True)
    for axis in {**own, **other}:
        pair = own.get(axis), other.get(axis)
        if pair[0] is not None and pair[1] is not None and atom_key(pair[0]) == atom_key(pair[1]):
            continue
        left, right = (_value(index, axis, beside, data) for index, beside in (pair, pair[::-1]))
        if left is None or right is None:
            continue
        aligned = left.shape == right.shape or not (left.ndim and right.ndim)
        equal = np.asarray(left == right) if aligned else np.isin(left, right).any()
        fits = np.shape(equal) == np.shape(together) or not (np.ndim(equal) and np.ndim(together))
        together = np.logical_and(together, equal) if fits else np.array(np.any(together) and np.any(equal))
    return bool(np.any(together))


def _indices(element: Expr) -> dict:
    """The index expression of an element on each axis that it picks from."""
    return {gather.axis: gather.index for gather in gathers_of(element)}


def _value(index: Expr | None, axis: Plate, beside: Expr | None, data: Lookup) -> np.ndarray | None:
    """The positions that an index names, None where it is random; without an index, each instance has its own."""
    if index is None:
        other = None if beside is None else _value(beside, axis, None, data)
        along = beside is not None and beside.plates == (axis,)
        return None if other is None else np.arange(len(other)) if along else np.full(np.shape(other), -1)
    if isinstance(index, Constant):
        return np.asarray(index.value)
    if isinstance(index, Position):
        return positions(index, data.sizes)
    name = getattr(index, "name", None)
    return np.asarray(data.arrays[name]) if name is not None and name in data.arrays else None

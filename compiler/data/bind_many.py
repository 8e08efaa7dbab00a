"""Binding many data sets of equal shapes at once: stacked, and checked in one pass."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from ...factors.errors import DataError
from ..language.model import Model
from ..language.nodes import Places
from ..language.values import UserValue
from .acyclic import check_trees
from .bind import Binding, bind, places_of, stacked_values
from .labels import Names, columns_of, names_pointed_at, placed, resolved
from .sparse_matrices import is_paged, is_streamed


@dataclasses.dataclass(frozen=True)
class Bindings:
    """Stacked arrays of several data sets; `one(i)` is the binding of the i-th."""

    first: Binding
    inputs: dict[str, np.ndarray]
    observed: dict[str, np.ndarray]
    missing: dict[str, np.ndarray]
    number: int

    def one(self, i: int) -> Binding:
        """The binding of data set i."""
        inputs, observed, missing = (
            {name: array[i] for name, array in group.items()} for group in (self.inputs, self.observed, self.missing)
        )
        return Binding(self.first.sizes, inputs, observed, missing, self.first.names)


def bind_many(
    model: Model, datas: Sequence[Mapping[str, UserValue]], sizes: Mapping[str, int] | None = None
) -> Bindings:
    """Checks data sets of equal shapes and stacks them.

    Arguments as for `bind`, with a list of data sets. Raises DataError for no data sets, for the first that differs in
    names or shapes from data set 0, and for any value outside its domain.
    """
    if isinstance(datas, (str, Mapping)) or not isinstance(datas, Sequence):
        raise DataError(f"Data sets are given as a list of dictionaries; found {type(datas).__name__}.")
    if not datas:
        raise DataError("No data sets were given. Give a list with at least one.")
    datas, names = _in_positions(model, datas)
    sizes = {**(sizes or {}), **_places(model, datas)}
    first = bind(model, placed(model, datas[0], names), sizes)
    if paged := [name for name, array in first.inputs.items() if is_paged(array)]:
        what = "rows of files" if is_streamed(first.inputs[paged[0]]) else "a sparse matrix"
        raise DataError(
            f"Input '{paged[0]}': found {what} in a batch, which runs its data sets side by side as one "
            "dense array. Call the program for each data set, or give dense arrays."
        )
    if first.missing:
        return _one_by_one(model, datas, sizes, names)
    stacks: dict[str, np.ndarray] = {}
    for name in datas[0]:
        try:
            stacks[name] = np.stack([data[name] for data in datas])
        except (KeyError, ValueError):
            return _one_by_one(model, datas, sizes, names)
    if any(len(data) != len(stacks) for data in datas) or any(
        array.dtype.kind == "f" and np.isnan(array).any() for array in stacks.values()
    ):
        return _one_by_one(model, datas, sizes, names)
    checked = {name: stacked_values(model, name, array, first.sizes) for name, array in stacks.items()}
    inputs = {name: checked[name] for name in first.inputs}
    for i in range(len(datas)):
        check_trees(model.randoms.values(), {name: array[i] for name, array in inputs.items()})
    return Bindings(first, inputs, {name: checked[name] for name in first.observed}, {}, len(datas))


def _places(model: Model, datas: Sequence[Mapping[str, UserValue]]) -> dict[str, int]:
    """The sizes of the largest groups in any of the data sets."""
    plates = [plate for plate in model.plates.values() if isinstance(plate, Places)]
    given = {plate.name: [np.asarray(data[plate.by]) for data in datas if plate.by in data] for plate in plates}
    return {name: max(map(places_of, arrays)) for name, arrays in given.items() if arrays}


def _in_positions(model: Model, datas: Sequence[Mapping[str, UserValue]]) -> tuple[list[dict[str, UserValue]], Names]:
    """The data sets with positions in the place of labels, and the names, which are those of data set 0."""
    found, names = [], {}
    for i, data in enumerate(datas):
        columns = columns_of(model, data)
        if not isinstance(columns, Mapping):
            raise DataError(f"Data set {i} is no dictionary of arrays by name; found {type(data).__name__}.")
        try:
            plain, own = resolved(model, columns, names if i else None)
            own = names_pointed_at(model, own)
        except DataError as error:
            raise DataError(f"Data set {i}: {error}") from None
        if i and set(own) - set(names):
            raise DataError(
                f"Data set {i} has names for {', '.join(sorted(set(own) - set(names)))}, and those before have none: "
                "which is which is not known. Give labels in all data sets, or declare m.plate(name, names=[...])."
            )
        names = own if i == 0 else names
        found.append(plain)
    return found, names


def _one_by_one(
    model: Model, datas: Sequence[Mapping[str, UserValue]], sizes: Mapping[str, int] | None, names: Names
) -> Bindings:
    """The slow way, which knows which data set is at fault."""
    bindings = []
    for i, data in enumerate(datas):
        try:
            bindings.append(bind(model, placed(model, data, names), sizes))
        except DataError as error:
            raise DataError(f"Data set {i}: {error}") from None
    first = bindings[0]
    for i, binding in enumerate(bindings):
        if (
            binding.sizes != first.sizes
            or binding.observed.keys() != first.observed.keys()
            or binding.missing.keys() != first.missing.keys()
        ):
            raise DataError(
                f"Data set {i} has plate sizes {binding.sizes} and observes {sorted(binding.observed)}, but data set 0 "
                f"has {first.sizes} and {sorted(first.observed)}. "
                "All data sets of a batch need the same shapes (and missing entries in the same variables): "
                "group them and call batch for each group."
            )

    def stacked(group: str) -> dict[str, np.ndarray]:
        return {
            name: np.stack([getattr(binding, group)[name] for binding in bindings]) for name in getattr(first, group)
        }

    return Bindings(first, stacked("inputs"), stacked("observed"), stacked("missing"), len(bindings))

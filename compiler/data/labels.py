"""Data with names: labels become the positions that programs compute with, and the names of plates are kept.

Text, dates and categories in the data of an index or a class are labels. What they stand for is told by the declaration
of the plate, by the run before, or else by the data: categories in their own order, other labels sorted. Series, frames
and arrays of xarray bring the names of their rows with them, and are put in the order of the plate.
"""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...factors.errors import DataError
from ...factors.factor import all_terms
from ...factors.rules import INCREASING
from ..element_names import Label, in_order, label_of, labels_of
from ..language.model import Model
from ..language.nodes import Input, Let, Plate, Random

Names: TypeAlias = dict[str, tuple[Label, ...]]  # of the elements of a plate, or of the classes of a variable
Named: TypeAlias = Input | Random | Let


class Labelled(NamedTuple):
    """An array whose axes may have names of their own, and of their places."""

    values: Any
    dims: tuple[str | None, ...] = ()
    labels: tuple[tuple[Label, ...] | None, ...] = ()
    categories: tuple[Label, ...] | None = None  # what its values may be, in their order
    placed: bool = False  # whether its values are positions already


class Resolved(NamedTuple):
    """Data in positions, and the names of plates and classes."""

    data: dict[str, Any]
    names: Names


def resolved(model: Model, data: Mapping[str, Any], before: Mapping[str, tuple[Label, ...]] | None = None) -> Resolved:
    """The data with positions in the place of labels; `before` are names that a run before has found.

    Raises DataError for a label that is not among the names of its plate, for rows whose names are others than those of
    their plate, and for labels where numbers are needed.
    """
    nodes: dict[str, Named] = {**model.randoms, **model.lets, **model.inputs}
    given = {name: labelled(value) for name, value in data.items() if name in nodes}
    names: Names = {**model.names, **(before or {})}
    fixed = frozenset(names)
    for name, one in given.items():
        _note_rows(nodes[name], one, names)
    _note_values(nodes, given, names, fixed)
    found = dict(data)
    for name, one in given.items():
        found[name] = _positions(nodes[name], _in_order(nodes[name], one, names), names, fixed)
    return Resolved(found, names)


def placed(model: Model, arrays: Mapping[str, Any], names: Names) -> dict[str, Any]:
    """Arrays of positions as data that bring the names of their plates and classes with them."""
    nodes: dict[str, Named] = {**model.randoms, **model.lets, **model.inputs}
    found = {}
    for name, array in arrays.items():
        node = nodes[name]
        rows = tuple(names.get(plate.name) for plate in node.plates)
        rows += (names.get(node.name),) if node.domain.is_vector else ()
        own = names.get(_key(node) or "")
        found[name] = Labelled(array, (None,) * len(rows), rows, own, True) if names else array
    return found


def names_pointed_at(model: Model, names: Names) -> Names:
    """The names that indices or classes point at, and declared ones: those of rows are each data set's own."""
    nodes: list[Named] = [*model.randoms.values(), *model.lets.values(), *model.inputs.values()]
    keys = {_key(node) for node in nodes} | set(model.names) | set(model.inputs)
    return {name: labels for name, labels in names.items() if name in keys}


def names_of_rows(model: Model, data: Mapping[str, Any]) -> Names:
    """The names that the rows of data bring for their plates."""
    names: Names = {}
    nodes: dict[str, Named] = {**model.randoms, **model.lets, **model.inputs}
    for name, value in data.items():
        if name in nodes:
            _note_rows(nodes[name], labelled(value), names)
    return names


def unknown_labels(model: Model, data: Mapping[str, Any], names: Names) -> dict[str, list[Label]]:
    """By plate the labels of indices that are none of its names, in the order of the data."""
    nodes: dict[str, Named] = {**model.randoms, **model.lets, **model.inputs}
    found: dict[str, list[Label]] = {}
    for name, value in data.items():
        key = _key(nodes[name]) if name in nodes else None
        one = labelled(value)
        if key in names and not one.placed and (one.categories or _is_text(one.values) or _are_numbers(names[key])):
            fresh = [label for label in flat_labels(one.values) if label is not None and label not in names[key]]
            found[key] = list(dict.fromkeys([*found.get(key, ()), *fresh]))
    return {key: labels for key, labels in found.items() if labels}


def columns_of(model: Model, data: Any) -> Any:
    """Of a frame the columns that the model declares, by name, and so of annotated matrices; all else as it is."""
    if isinstance(data, Mapping) or not is_frame(data):
        return data
    declared = {*model.inputs, *model.randoms, *model.lets}
    if is_annotated(data):
        from .annotated import columns_of_annotated  # few data are

        return columns_of_annotated(data, sorted(declared))
    return {str(name): data[name] for name in data.columns if name in declared}


def is_frame(data: Any) -> bool:
    """Whether it is a table with named columns, of pandas or polars, or an annotated matrix."""
    columns = hasattr(data, "columns") and hasattr(data, "__getitem__") and hasattr(data, "shape")
    return columns or is_annotated(data)


def is_annotated(data: Any) -> bool:
    """Whether it is a matrix with annotated rows and columns, such as AnnData, or several of the same rows."""
    return all(hasattr(data, part) for part in ("obs", "var", "obsm", "obs_names", "var_names"))


# What data bring ------------------------------------------------------------------------------------------------------


def labelled(value: Any) -> Labelled:
    """The array in it with the names that it brings: of a Series or a frame, an array of xarray, a categorical."""
    if isinstance(value, Labelled):
        return value
    if hasattr(value, "coords") and hasattr(value, "dims"):  # xarray
        dims = tuple(map(str, value.dims))
        rows = [labels_of(value.coords[dim].values) if dim in value.coords else None for dim in dims]
        return Labelled(np.asarray(value.values), dims, tuple(rows))
    if hasattr(value, "iloc") and hasattr(value, "index"):  # pandas
        rows = _names_of_rows(value.index)
        if hasattr(value, "columns"):
            return Labelled(_table(value), (None, None), (rows, _names_of_rows(value.columns)))
        categories = labels_of(value.cat.categories) if hasattr(value, "cat") else None
        return Labelled(np.asarray(value, dtype=object) if categories else _array(value), (None,), (rows,), categories)
    if hasattr(value, "categories") and hasattr(value, "codes"):  # a Categorical of pandas
        return Labelled(np.asarray(value, dtype=object), (None,), (None,), labels_of(value.categories))
    if hasattr(value, "to_numpy") and hasattr(value, "cat") and hasattr(value, "dtype"):  # polars
        kinds = getattr(value.dtype, "categories", None) if str(value.dtype).startswith("Enum") else None
        text = kinds is not None or str(value.dtype).startswith(("String", "Utf8", "Categorical"))
        array = np.asarray(value.to_list(), dtype=object) if text else value.to_numpy()
        return Labelled(array, (None,), (None,), None if kinds is None else tuple(kinds))
    if isinstance(value, np.ndarray) and value.dtype.kind == "O" and not isinstance(value, np.ma.MaskedArray):
        return Labelled(_without_missing(value))
    return Labelled(value)


def _array(series: Any) -> Any:
    """The values of a Series; text of any of its types as objects, and what is not available as None."""
    if str(series.dtype) in ("string", "str"):
        return np.asarray(series, dtype=object)
    return _without_missing(series.to_numpy(dtype=object)) if series.hasnans and _may_lack(series.dtype) else series


def _table(frame: Any) -> Any:
    """The values of a frame, what is not available as None."""
    array = frame.to_numpy()
    return _without_missing(array) if array.dtype.kind == "O" else array


def _may_lack(dtype: Any) -> bool:
    """Whether an array of this type may hold pandas' NA, which is no number."""
    return not isinstance(dtype, np.dtype) or dtype.kind == "O"


def _without_missing(array: Any) -> Any:
    """An array of objects with None for what is missing in any of its ways."""
    flat = [None if _is_missing(item) else item for item in np.ravel(array)]
    found = np.empty(len(flat), dtype=object)
    found[:] = flat
    return found.reshape(np.shape(array))


def _names_of_rows(index: Any) -> tuple[Label, ...] | None:
    """The names in an index of pandas; none where it only counts rows or names some of them twice."""
    counts = type(index).__name__ == "RangeIndex"
    levels = index.codes if getattr(index, "nlevels", 1) > 1 else None
    lacks = index.hasnans if levels is None else any((codes < 0).any() for codes in levels)
    if counts or lacks or not index.is_unique:
        return None
    labels = labels_of(index)
    return labels if len(set(labels)) == len(labels) else None  # of several levels whose texts have commas


def _is_text(values: Any) -> bool:
    """Whether an array holds labels: text, dates, or text among objects."""
    if isinstance(values, np.ma.MaskedArray):
        values = values.compressed()
    if not isinstance(values, (np.ndarray, list, tuple)):
        values = np.asarray(values) if isinstance(values, str) else getattr(values, "values", values)
    if isinstance(values, (list, tuple)):
        if not any(isinstance(item, (str, datetime.date)) for item in _flat(values)):
            return False
        values = np.array(values, dtype=object)
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    if kind in "UM" and kind:
        return True
    return kind == "O" and any(isinstance(item, (str, datetime.date)) for item in np.ravel(values))


def _flat(values: Sequence[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        else:
            yield value


# What the names are ---------------------------------------------------------------------------------------------------


def _note_rows(node: Named, one: Labelled, names: Names) -> None:
    """The names that rows bring for plates of which none are known, and columns for the coordinates of vectors."""
    if (columns := _columns(node, one)) is not None:
        names.setdefault(node.name, columns)
    for plate, labels in zip(node.plates, _by_plate(node, one), strict=False):
        if labels is not None:
            names.setdefault(plate.name, labels)


def _columns(node: Named, one: Labelled) -> tuple[Label, ...] | None:
    """The names of the coordinates of vectors, in the last axis."""
    own = one.labels[-1] if len(one.labels) == len(node.plates) + 1 and node.domain.is_vector else None
    return own if own is not None and all(isinstance(label, str) for label in own) else None


def _by_plate(node: Named, one: Labelled) -> list[tuple[Label, ...] | None]:
    """The names of the places of each plate, of axes that are called as the plates or else in their order."""
    if _is_called(node, one):
        return [one.labels[one.dims.index(plate.name)] for plate in node.plates]
    return list(one.labels[: len(node.plates)])


def _is_called(node: Named, one: Labelled) -> bool:
    """Whether the axes are called as the plates; DataError where some are, and others are not."""
    plates, dims = {plate.name for plate in node.plates}, set(one.dims) - {None}
    if dims & plates and not plates <= dims:
        raise DataError(
            f"'{node.name}' is over {', '.join(sorted(plates))}, the data are over {', '.join(map(str, one.dims))}: "
            f"which axis is '{sorted(plates - dims)[0]}'? Rename it, or give a plain array."
        )
    return bool(plates) and plates <= dims


def _key(node: Named) -> str | None:
    """What the values of a variable are positions of: the name of a plate, or its own, of classes."""
    domain = node.domain
    if domain.is_index:
        return domain.plate.name
    if domain.is_category:
        return domain.size.name if isinstance(domain.size, Plate) else node.name
    return None


def _note_values(
    nodes: Mapping[str, Named], given: Mapping[str, Labelled], names: Names, fixed: frozenset[str]
) -> None:
    """The names that the values of indices and classes bring, where no declaration or run before has them."""
    ordered: dict[str, list[Label]] = {}
    loose: dict[str, set[Label]] = {}
    for name, one in given.items():
        key = _key(nodes[name])
        if key is None or key in fixed:
            continue
        if one.categories is not None:
            ordered.setdefault(key, []).extend(one.categories)
        elif not one.placed and _is_text(one.values):
            loose.setdefault(key, set()).update(label for label in flat_labels(one.values) if label is not None)
    for key in {**ordered, **loose}:
        first = list(dict.fromkeys([*names.get(key, ()), *ordered.get(key, [])]))
        names[key] = (*first, *in_order(loose.get(key, set()) - set(first)))


def flat_labels(values: Any) -> list[Label | None]:
    """The labels of an array, None where one is missing."""
    hidden = np.ravel(np.ma.getmaskarray(values)) if isinstance(values, np.ma.MaskedArray) else None
    of_dates = getattr(getattr(values, "dtype", None), "kind", "") == "M"  # as objects nanoseconds would be numbers
    flat = list(np.ravel(np.asarray(values))) if of_dates else np.ravel(np.asarray(values, dtype=object))
    found = [None if _is_missing(item) else label_of(item) for item in flat]
    return found if hidden is None else [None if gone else item for item, gone in zip(found, hidden, strict=True)]


def _is_missing(item: Any) -> bool:
    if item is None or (isinstance(item, np.datetime64) and np.isnat(item)):
        return True
    try:
        return bool(item != item)
    except (TypeError, ValueError):  # pandas' NA is neither equal to itself nor different
        return str(item) == "<NA>"


# Labels as positions --------------------------------------------------------------------------------------------------


def _in_order(node: Named, one: Labelled, names: Names) -> Labelled:
    """The array with its axes in the order of the plates, and their places in the order of the names."""
    values = one.values
    if _is_called(node, one):
        others = [dim for dim in one.dims if dim not in {plate.name for plate in node.plates}]
        order = [one.dims.index(plate.name) for plate in node.plates] + [one.dims.index(dim) for dim in others]
        values = np.transpose(values, order)
    for axis, (plate, labels) in enumerate(zip(node.plates, _by_plate(node, one), strict=False)):
        known = names.get(plate.name)
        if labels is None or known is None or labels == known:
            continue
        values = np.take(np.asarray(values), _places(node, labels, known, "its rows"), axis=axis)
    if (columns := _columns(node, one)) is not None and columns != names[node.name]:
        values = np.take(np.asarray(values), _places(node, columns, names[node.name], "its columns"), axis=-1)
    return one._replace(values=values)


def _places(node: Named, labels: tuple[Label, ...], known: tuple[Label, ...], what: str) -> list[int]:
    """Where each known name is among the labels; DataError where these are others."""
    if set(labels) != set(known) or len(labels) != len(known):
        odd = next((label for label in labels if label not in set(known)), None)
        told = f"{odd!r} is none of them" if odd is not None else "some of them are lacking"
        raise DataError(
            f"'{node.name}': {what} have names, and others are known: {told}. Give those of before, or drop the names "
            "(`.to_numpy()`): rows and columns are then taken in their order."
        )
    place = {label: i for i, label in enumerate(labels)}
    return [place[label] for label in known]


def _positions(node: Named, one: Labelled, names: Names, fixed: frozenset[str]) -> Any:
    """The values, labels by their positions; as they are where they are none."""
    key = _key(node)
    if one.placed:
        return one.values
    if key is None or not (one.categories or _is_text(one.values) or _are_numbers(names.get(key))):
        _check_no_text(node, one)
        _check_no_digits(node, one, key, names)
        return one.values
    flat, place = flat_labels(one.values), {label: i for i, label in enumerate(names[key])}
    _check_one_kind(node, flat)
    if one.categories is None and key not in fixed and _is_ordered(node):
        raise DataError(
            f"'{node.name}' has classes in an order, and text has none (sorted, 'high' is below 'low'). Give a "
            "categorical, whose categories are in their order, or numbers from 0."
        )
    for number, label in enumerate(flat):
        if label is not None and label not in place:
            raise DataError(_unknown(node, label, key, number, names[key]))
    shape = np.shape(np.asarray(one.values, dtype=object))
    absent = np.array([label is None for label in flat]).reshape(shape)
    codes = np.array([place.get(label, 0) for label in flat], dtype=np.int64).reshape(shape)  # type: ignore[arg-type]
    return np.ma.array(codes, mask=absent) if absent.any() else codes


def _are_numbers(names: tuple[Label, ...] | None) -> bool:
    """Whether names are numbers that are no positions: then numbers in the data are labels."""
    if names is None or not all(isinstance(label, (int, float)) for label in names):
        return False
    return names != tuple(range(len(names)))


def _is_ordered(node: Named) -> bool:
    """Whether its classes lie between increasing cutpoints."""
    terms = all_terms(node.term) if isinstance(node, Random) else ()
    return any(INCREASING in term.factor.rules for term in terms)


def _check_one_kind(node: Named, flat: Sequence[Label | None]) -> None:
    """Text beside numbers: one of them is a slip."""
    texts = [number for number, label in enumerate(flat) if isinstance(label, str)]
    others = [number for number, label in enumerate(flat) if label is not None and not isinstance(label, str)]
    if texts and others:
        few = min(texts, others, key=len)[0]
        raise DataError(
            f"'{node.name}': found text and numbers, {flat[few]!r} in place {few}, unlike the others. "
            "Give labels of one kind, or positions."
        )


def _check_no_digits(node: Named, one: Labelled, key: str | None, names: Names) -> None:
    """Names such as "1" and "2" and numbers in the data: whether these are names or positions is not known."""
    known = names.get(key or "", ())
    if known and all(isinstance(label, str) and label.lstrip("-").isdigit() for label in known):
        raise DataError(
            f"'{node.name}': the data are numbers, and the names of '{key}' are numbers as text, such as {known[0]!r}. "
            "Give text (`.astype(str)`), or declare the names as numbers."
        )


def _check_no_text(node: Named, one: Labelled) -> None:
    if node.domain.is_boolean and (one.categories is not None or _is_text(one.values)):
        some = sorted({str(label) for label in flat_labels(one.values) if label is not None})[:3]
        shown = " and ".join(map(repr, some))
        raise DataError(
            f"'{node.name}' is true or false, and the data have {shown}: which is true is not known. Compare, such as "
            f"data['{node.name}'] == {some[0]!r}."
        )


def _unknown(node: Named, label: Label, key: str, number: int, names: Sequence[Label]) -> str:
    near = difflib.get_close_matches(str(label), [str(name) for name in names], n=1)
    told = f" Is it {near[0]!r}?" if near else ""
    whose = f"plate '{key}'" if key != node.name else "its classes"
    shown = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
    return (
        f"'{node.name}': {label!r}, in place {number}, is no name of {whose}, which has {len(names)}: {shown}.{told} "
        "Correct it, or declare the names that there may be: m.plate(name, names=[...])."
    )

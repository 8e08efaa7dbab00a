"""Binding: data given by name become checked arrays of known plate sizes. All data errors are raised here."""

from __future__ import annotations

import dataclasses
import difflib
import operator
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ...factors.domains import Domain
from ...factors.errors import DataError, ModelError, capital
from ...factors.families import FOR_DOMAIN
from ...factors.numbers import ValueProblem, numeric_array
from ..language.model import Model
from ..language.nodes import Input, Let, Places, Plate, PlatePart, Random
from ..language.values import UserValue, check, convert, is_finite
from .acyclic import check_trees
from .infinite_bounds import bounds_alone
from .labels import Names, columns_of, resolved
from .sparse_matrices import is_narrow, is_paged, is_sparse, is_streamed, sparse_rows, streamed_rows

Named = Input | Random | Let


@dataclasses.dataclass(frozen=True)
class Binding:
    """Data that fit a model: arrays of float64, int32 (classes, indices) or bool, laid out plates + event.

    An input of vectors may also be a matrix of scipy.sparse in compressed rows.

    `sizes` gives every plate's size. `missing` has an entry for each observed variable with missing values: true where
    missing, shaped as its plates; `observed` holds an arbitrary legal value there. `names` are those of the elements of
    plates, and of the classes of variables, as far as declarations or data have some.
    """

    sizes: dict[str, int]
    inputs: dict[str, np.ndarray]
    observed: dict[str, np.ndarray]
    missing: dict[str, np.ndarray]
    names: Names = dataclasses.field(default_factory=dict)

    def masked(self) -> dict[str, np.ndarray]:
        """What was observed as a user would give it: missing entries masked."""
        found = dict(self.observed)
        for name, absent in self.missing.items():
            spread = absent.reshape(absent.shape + (1,) * (found[name].ndim - absent.ndim))
            found[name] = np.ma.array(found[name], mask=np.broadcast_to(spread, found[name].shape))
        return found


class _Given(NamedTuple):
    """One array as given: its declaration, its values, and the mask of a masked array."""

    node: Named
    array: np.ndarray
    mask: np.ndarray | None

    @property
    def place(self) -> str:
        return f"{'Input' if isinstance(self.node, Input) else 'Observed'} '{self.node.name}'"


def bind(model: Model, data: Mapping[str, UserValue], sizes: Mapping[str, int] | None = None) -> Binding:
    """Checks `data` against the declarations of `model` and returns them as a Binding.

    `data` maps names of inputs (all of them), random variables and lets (any of them) to arrays: one axis for each
    plate in the order of the variable's plates, then the axes of one value; vectors of inputs may be the rows of a
    matrix of scipy.sparse. NaN or a mask marks missing entries of observed variables. Inputs that are nothing but
    bounds may be infinite. `sizes` gives sizes of plates that neither the model nor the data fix. A frame gives its
    columns. Labels in the data of indices and classes are positions among the names of their plate (see `labels.py`).
    Raises DataError for an unknown name, a missing input, a shape or a
    size that contradicts another, a plate of unknown size, and any value outside its domain.
    """
    known = _sizes_before_data(model, plate_sizes(sizes))
    data, names = resolved(model, dict(_items(columns_of(model, data))))
    _note_names(model, known, names)
    given = [_read(_declaration(model, name), value) for name, value in _items(data)]
    _check_complete(model, given)
    for item in given:
        _note_shape(item, known)
    all_sizes = _sizes_of_all(model, known, given)
    inputs: dict[str, np.ndarray] = {}
    observed: dict[str, np.ndarray] = {}
    missing: dict[str, np.ndarray] = {}
    unbounded = bounds_alone(model)
    for item in given:
        name = item.node.name
        if isinstance(item.node, Input):
            inputs[name] = _values(item, all_sizes, infinite=name in unbounded)
        else:
            observed[name], absent = _observed_values(item, all_sizes)
            if absent is not None:
                missing[name] = absent
    check_trees(model.randoms.values(), inputs)
    return Binding(all_sizes, inputs, observed, missing, names)


def _note_names(model: Model, known: dict[str, tuple[int, str]], names: Names) -> None:
    """The sizes of plates that have names."""
    nodes = {**model.randoms, **model.lets, **model.inputs}
    for name, labels in names.items():
        size = nodes[name].domain.size if name in nodes and nodes[name].domain.is_category else None
        if isinstance(size, int) and size != len(labels):
            raise DataError(
                f"'{name}' has {size} classes, and the data name {len(labels)}: {', '.join(map(repr, labels[:5]))}. "
                "Give a categorical, whose categories are all of them in their order, or numbers from 0."
            )
        if name in model.plates:
            before, reason = known.setdefault(name, (len(labels), "the names in the data"))
            if before != len(labels):
                raise DataError(
                    f"Plate '{name}' has {before} elements by {reason}, but the data have {len(labels)} names. "
                    f"Declare the names: m.plate('{name}', names=[...])."
                )


def sizes_of(model: Model, data: Mapping[str, UserValue], sizes: Mapping[str, int] | None = None) -> dict[str, int]:
    """The sizes of plates that are known before all inputs are given; DataError where data contradict each other."""
    known = _sizes_before_data(model, plate_sizes(sizes))
    data, names = resolved(model, dict(_items(columns_of(model, data))))
    _note_names(model, known, names)
    given = [_read(_declaration(model, name), value) for name, value in _items(data)]
    for item in given:
        _note_shape(item, known)
    _note_parts(model, known)
    return {name: size for name, (size, _) in known.items()}


def _items(data: UserValue) -> list[tuple[str, UserValue]]:
    if not isinstance(data, Mapping):
        raise DataError(f"Data are given by name, as a dictionary such as {{'x': array}}; found {type(data).__name__}.")
    return list(data.items())


def _declaration(model: Model, name: UserValue) -> Named:
    for group in (model.inputs, model.randoms, model.lets):
        if name in group:
            return group[name]
    if name in model.plates:
        raise DataError(f"'{name}' is a plate, not a variable. Give its size: sizes={{'{name}': ...}}.")
    names = [*model.inputs, *model.randoms, *model.lets]
    near = difflib.get_close_matches(str(name), names, n=3)
    nearest = f"The nearest names are {', '.join(near)}." if near else f"The names are {', '.join(names) or '(none)'}."
    raise DataError(
        f"Data are given for '{name}', which model \"{model.name}\" does not declare. {nearest} Correct or remove it."
    )


def _check_complete(model: Model, given: list[_Given]) -> None:
    absent = model.inputs.keys() - {item.node.name for item in given}
    if absent:
        lines = [
            f"'{name}', {node.domain}, shape {_shape_text(node)}"
            for name, node in model.inputs.items()
            if name in absent
        ]
        raise DataError(f"Inputs are always given, but the data lack {'; '.join(lines)}. Add them to the data.")


def _read(node: Named, value: UserValue) -> _Given:
    masked = isinstance(value, np.ma.MaskedArray)
    place = _Given(node, np.empty(0), None).place
    if value is None:
        raise DataError(
            f"{place}: found None. Leave the name out of the data to have a variable inferred; inputs need values."
        )
    try:
        if is_streamed(value):
            array = streamed_rows(node, value)
        else:
            array = sparse_rows(node, value) if is_sparse(value) else numeric_array(value.data if masked else value)
    except ValueProblem as problem:
        raise DataError(f"{place}: {problem}") from None
    return _Given(node, array, np.ma.getmaskarray(value) if masked else None)


# Shapes and sizes


def _axes(node: Named) -> list[Plate | int | None]:
    """What each array axis runs over: a plate, or the coordinates of one value (a number, or None when any number
    will do).
    """
    domain = node.domain
    sizes = domain.size if domain.is_matrix else [domain.size] * domain.event_ndim
    return [*node.plates, *sizes]


def _shape_text(node: Named, known: Mapping[str, tuple[int, str]] | None = None) -> str:
    def axis_text(axis: Plate | int | None) -> str:
        size = (known or {}).get(axis.name, (axis.size,))[0] if isinstance(axis, Plate) else axis
        return f"{axis.name}: {size or '?'}" if isinstance(axis, Plate) else str(size or "?")

    texts = [axis_text(axis) for axis in _axes(node)]
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def _sizes_before_data(model: Model, sizes: Mapping[str, int]) -> dict[str, tuple[int, str]]:
    known = dict(model.sizes)
    for name, size in sizes.items():
        if name not in model.plates:
            names = ", ".join(model.plates) or "(none)"
            raise DataError(
                f"sizes= names '{name}', which is not a plate of model \"{model.name}\". Its plates are {names}."
            )
        _note_size(known, name, size, "sizes=", "sizes=")
    return known


def plate_sizes(sizes: UserValue) -> dict[str, int]:
    """The sizes that a user gives, by plate; ModelError for what is no dictionary, DataError for what is no size."""
    if sizes is None:
        return {}
    if not isinstance(sizes, Mapping):
        raise ModelError(f"sizes= is a dictionary of plate sizes, such as {{'n': 100}}; found {sizes!r}.")
    names = ((name.name if isinstance(name, Plate) else name, size) for name, size in sizes.items())
    return {name: _whole_size(name, size) for name, size in names}


def _whole_size(name: str, size: UserValue) -> int:
    try:
        whole = operator.index(size)
    except TypeError:
        whole = 0
    if whole < 1 or isinstance(size, bool):
        raise DataError(f"sizes= gives plate '{name}' the size {size!r}. Give a positive integer.")
    return whole


def _note_size(known: dict[str, tuple[int, str]], plate: str, size: int, place: str, origin: str) -> None:
    before, reason = known.setdefault(plate, (size, origin))
    if before != size:
        raise DataError(
            f"{place} gives plate '{plate}' {size} elements, but {reason} gives it {before}. "
            "All arrays over one plate have the same length: correct one of them."
        )


def _note_shape(item: _Given, known: dict[str, tuple[int, str]]) -> None:
    axes, shape = _axes(item.node), item.array.shape
    if len(axes) != len(shape):
        raise DataError(
            f"{item.place}: found shape {shape}, but {item.node.domain} values"
            f"{' over plates' if item.node.plates else ' without plates'} need {len(axes)} axes: "
            f"{_shape_text(item.node, known)}. "
            f"Give one axis for each plate in this order, then the axes of one value."
        )
    if 0 in shape:
        raise DataError(
            f"{item.place}: found no values (shape {shape}). Give at least one, or leave the variable out of the data."
        )
    for axis, size in zip(axes, shape, strict=True):
        if isinstance(axis, Plate):
            _note_size(known, axis.name, size, item.place, f"the array of '{item.node.name}'")
        elif axis is not None and axis != size:
            raise DataError(
                f"{item.place}: found values of {size} coordinates (shape {shape}), but {item.node.domain} has {axis}. "
                f"Give the shape {_shape_text(item.node, known)}."
            )


def _note_parts(model: Model, known: dict[str, tuple[int, str]]) -> None:
    """The sizes of plates from those of their parts, and of parts from those of the wholes; all positions are there."""
    parts = [plate for plate in model.plates.values() if isinstance(plate, PlatePart) and plate.length <= 0]
    for part in reversed(parts):
        if part.name in known and part.whole.name not in known:
            known[part.whole.name] = (known[part.name][0] - part.length, known[part.name][1])
    for name, (least, where) in model.least_sizes.items():
        if name in known and known[name][0] < least:
            raise DataError(
                f"Plate '{name}' has {known[name][0]} elements by {known[name][1]}, but {where} needs {least} at "
                "least. Correct the index or the data."
            )
    for part in parts:
        if part.whole.name in known:
            size, origin = known[part.whole.name]
            _note_size(known, part.name, size + part.length, capital(origin), origin)


def _note_places(model: Model, known: dict[str, tuple[int, str]], given: list[_Given]) -> None:
    """The sizes of the largest groups; more places than these do no harm."""
    arrays = {item.node.name: item.array for item in given}
    for name, plate in model.plates.items():
        if isinstance(plate, Places):
            needed = places_of(arrays[plate.by])
            size, origin = known.setdefault(name, (needed, f"the array of '{plate.by}'"))
            if size < needed:
                raise DataError(f"Plate '{name}' has {size} elements by {origin}, but a group has {needed} members.")


def places_of(groups: np.ndarray) -> int:
    """How many members the largest group has; one where the data are no indices, which is told elsewhere."""
    if groups.dtype.kind not in "biuf" or not np.all(groups >= 0):
        return 1
    return int(np.unique(groups, return_counts=True)[1].max())


def _sizes_of_all(model: Model, known: dict[str, tuple[int, str]], given: list[_Given]) -> dict[str, int]:
    _note_parts(model, known)
    _note_places(model, known, given)
    unknown = next((name for name in model.plates if name not in known), None)
    if unknown is None:
        return {name: known[name][0] for name in model.plates}
    pointers = [item for item in given if item.node.domain.is_index and item.node.domain.plate.name == unknown]
    least = "".join(f" (the largest index in '{item.node.name}' is {item.array.max():g})" for item in pointers)
    raise DataError(
        f"The size of plate '{unknown}' is not known: neither its declaration nor the data fix it{least}. "
        f'Give sizes={{"{unknown}": ...}}.'
    )


# Values


def _observed_values(item: _Given, sizes: Mapping[str, int]) -> tuple[np.ndarray, np.ndarray | None]:
    """The values, and which are missing (None when none is)."""
    absent = _absent(item)
    if absent is None:
        return _values(item, sizes), None
    event = item.array.shape[absent.ndim :]
    spread = absent.reshape(absent.shape + (1,) * len(event))
    filled = np.where(spread, FOR_DOMAIN[item.node.domain.kind].legal_value(event[-1] if event else None), item.array)
    return _values(item._replace(array=filled, mask=None), sizes), absent


def _absent(item: _Given) -> np.ndarray | None:
    array = item.array
    absent = item.mask
    if array.dtype.kind == "f" and not is_finite(array):
        nan = np.isnan(array)
        absent = nan if absent is None else nan | absent
    if absent is None or not absent.any():
        return None
    event = tuple(range(len(item.node.plates), array.ndim))
    whole = np.asarray(absent.all(event))
    if event and not np.array_equal(whole, absent.any(event)):
        first = [int(i) for i in np.argwhere(absent.any(event) & ~whole)[0]]
        raise DataError(
            f"{item.place}: the value at {first} is missing in some coordinates and given in others. A "
            f"{item.node.domain.kind} is observed as "
            "a whole: mark all its coordinates missing, or model the coordinates as variables of their own."
        )
    return whole


def _values(item: _Given, sizes: Mapping[str, int], *, infinite: bool = False) -> np.ndarray:
    """The array in the dtype of its domain; DataError when a value lies outside, `infinite` ones where not allowed."""
    domain = item.node.domain
    if is_paged(item.array):
        return item.array
    if item.mask is not None and item.mask.any():
        raise DataError(
            f"{item.place}: some values are masked. Inputs are always given: fill them in, or make the variable random."
        )
    try:
        check(item.array, domain.kind, infinite=infinite)
        _check_range(item.array, domain, sizes)
        if not isinstance(item.node, Input):
            _check_interior(item.array, domain)
    except ValueProblem as problem:
        raise DataError(f"{item.place}{_domain_text(domain, sizes)}: {problem}") from None
    return convert(item.array, domain.kind, narrow=is_narrow(item.node, item.array))


def _top(domain: Domain, sizes: Mapping[str, int]) -> int | None:
    """One more than the largest legal index or class, where there is one."""
    if not (domain.is_index or domain.is_category):
        return None
    size = domain.plate if domain.is_index else domain.size
    return sizes[size.name] if isinstance(size, Plate) else size


def _domain_text(domain: Domain, sizes: Mapping[str, int]) -> str:
    top = _top(domain, sizes)
    if top is None:
        return f" ({domain})"
    return f" (positions in plate '{domain.plate.name}' of size {top})" if domain.is_index else f" ({top} classes)"


def _check_range(array: np.ndarray, domain: Domain, sizes: Mapping[str, int]) -> None:
    top = _top(domain, sizes)
    if top is None or array.max() < top:
        return
    place = [int(i) for i in np.unravel_index(np.argmax(array), array.shape)]
    shifted = " They seem to be numbered from 1: subtract 1." if array.max() == top and array.min() >= 1 else ""
    more = f" or a larger sizes={{'{domain.plate.name}': ...}}" if domain.is_index else ""
    raise ValueProblem(
        f"must lie in 0 ... {top - 1}; found {array.max():g}{f' at {place}' if place else ''}. Correct "
        f"it{more}.{shifted}"
    )


def _check_interior(array: np.ndarray, domain: Domain) -> None:
    """Observed probabilities of exactly 0 or 1 have an infinite or zero density."""
    if ((domain.is_unit or domain.is_simplex) and array.min() <= 0) or (domain.is_unit and array.max() >= 1):
        raise ValueProblem(
            "must lie strictly between 0 and 1 to be observed; found 0 or 1. Shrink the values a little towards the "
            "middle."
        )


def stacked_values(model: Model, name: str, array: np.ndarray, sizes: Mapping[str, int]) -> np.ndarray:
    """Checked values of one declaration for many data sets, stacked along a first axis; DataError as `bind`."""
    infinite = name in bounds_alone(model)
    return _values(_read(_declaration(model, name), array), sizes, infinite=infinite)

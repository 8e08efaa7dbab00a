"""What `x[...]` means: elements of plates, coordinates of vectors, and rows of constants.

Index data and random discrete variables choose along a plate and leave their own plates in its place. Whole numbers and
slices are read as in NumPy: an entry for each plate in order, then for the coordinate; they count from the end where
they are negative. Sums over groups of any size, `cv.sum(skill[member], by=team)`, are sums over the places of the
largest group, of which index data tell which row takes which.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ...factors import domains
from ...factors.errors import ModelError, capital
from .nodes import (
    BUILDERS,
    Apply,
    Expr,
    Gather,
    Input,
    Let,
    Member,
    Places,
    Plate,
    PlatePart,
    Position,
    is_data,
    union_plates,
)
from .operators import coordinate, matmul
from .values import UserValue

_OF_PROBABILITIES = (
    " The probability of one class is that of a comparison: z = m.random('z', cv.categorical(p)), and z == 0 is true "
    "with probability p[0]."
)
Axis = Plate | None  # None is that of the coordinates of a vector


def index(source: Expr, key: UserValue) -> Expr:
    """source[key]: elements along plates and coordinates.

    A single expression chooses along the plate that fits it (`gather`). In x[i, j] index data choose along their own
    plates, and the other entries along the plates that are left, in order, then along the coordinate of a vector.
    ModelError for an entry that is no index, or out of range, and for more entries than axes.
    """
    if isinstance(key, Expr):
        return gather(source, key)
    entries = list(key) if isinstance(key, tuple) else [key]
    for entry in entries:
        _check_entry(source, entry)
    own = [entry for entry in entries if isinstance(entry, Expr) and entry.domain.is_index]
    claimed = {entry.domain.plate for entry in own}
    axes: list[Axis] = [plate for plate in source.plates if plate not in claimed]
    axes += [None] if source.domain.is_vector else []
    rest = _for_each_axis(source, [entry for entry in entries if not any(entry is found for found in own)], axes)
    along = [(entry.domain.plate, entry) for entry in own]
    along += [(axis, entry) for axis, entry in zip(axes, rest, strict=False) if not _is_all(entry)]
    found = source
    for axis, entry in _in_turn(source, along):
        found = _along(found, axis, entry)
    return found


def _is_all(entry: UserValue) -> bool:
    return isinstance(entry, slice) and not entry.start and entry.stop is None


def _in_turn(source: Expr, along: list[tuple[Axis, UserValue]]) -> Iterator[tuple[Axis, UserValue]]:
    """The entries in an order in which none leaves a plate that a later one chooses along."""
    left = list(along)
    while left:
        for here in left:
            plates = here[1].plates if isinstance(here[1], Expr) else ()
            if not any(axis in plates for axis, _ in left if axis is not here[0]):
                break
        else:
            names = ", ".join(f"'{entry}'" for _, entry in left)
            raise ModelError(
                f"'{source}' is indexed by {names}, and the plates of each are chosen along by another. Give these "
                "indices plates of their own."
            )
        left.remove(here)
        yield here


def _check_entry(source: Expr, entry: UserValue) -> None:
    whole = isinstance(entry, (int, np.integer)) and not isinstance(entry, bool)
    if whole or entry is Ellipsis or isinstance(entry, Expr):
        return
    if isinstance(entry, slice):
        _check_slice(f"'{source}'", entry)
        return
    raise ModelError(
        f"'{source}' is indexed by {entry!r}. Index it with a whole number or a slice, with index data, declared as "
        "m.input(name, cv.index(plate), plates=...), or with a discrete random variable; several plates at once as in "
        "x[i, j]."
    )


def _check_slice(what: str, entry: slice) -> None:
    if entry.step not in (None, 1):
        raise ModelError(
            f"{capital(what)}: a slice with the step {entry.step!r}. Take every element, as in x[1:], or give the "
            "positions as data: m.input(name, cv.index(plate), plates=...)."
        )
    for end in (entry.start, entry.stop):
        if end is not None and (isinstance(end, bool) or not isinstance(end, (int, np.integer))):
            raise ModelError(f"{capital(what)}: a slice from or to {end!r}. Give whole numbers: x[1:], x[:-1].")


def _for_each_axis(source: Expr, entries: list, axes: Sequence[Axis]) -> list:
    """The entries with the dots written out."""
    dots = [i for i, entry in enumerate(entries) if entry is Ellipsis]
    if len(dots) > 1:
        raise ModelError(f"'{source}' is indexed with two `...`. Write one.")
    if entries and not axes:
        raise ModelError(
            f"'{source}' ({source.domain}) is indexed, but has no {'other ' if source.plates else ''}plates and is no "
            f"vector.{_OF_PROBABILITIES if source.domain.is_simplex else ' Leave the index out.'}"
        )
    if len(entries) - len(dots) > len(axes):
        names = ", ".join("its coordinates" if axis is None else f"plate '{axis.name}'" for axis in axes)
        raise ModelError(
            f"'{source}' ({source.domain}) is indexed by {len(entries) - len(dots)} indices, but they can choose along "
            f"{names or 'nothing'}: it has no other plates or coordinates. Leave some out."
        )
    if dots:
        entries[dots[0] : dots[0] + 1] = [slice(None)] * (len(axes) - len(entries) + 1)
    return entries


def _along(source: Expr, axis: Axis, entry: UserValue) -> Expr:
    """What one entry chooses along one axis."""
    if axis is None:
        return _coordinates(source, entry)
    if isinstance(entry, Expr):
        return gather(source, entry) if entry.domain.is_index else _gated(source, entry, axis)
    if isinstance(entry, slice):
        return pushed(source, _positions(source, axis, entry), axis)
    return pushed(source, _position(source, axis, int(entry)), axis)


def _coordinates(source: Expr, entry: UserValue) -> Expr:
    size = source.domain.size
    if isinstance(entry, Expr) or not isinstance(size, int):
        raise ModelError(
            f"The coordinates of '{source}' ({source.domain}) are indexed by '{entry}'. They are chosen by whole "
            "numbers and slices, from a vector of fixed dimension: put the numbers on a plate to choose by a variable."
        )
    if isinstance(entry, slice):
        start, stop = _ends(entry, size, f"the coordinates of '{source}'")
        return matmul(np.eye(size)[start:stop], source)
    _check_range(int(entry), size, f"the coordinates of '{source}'")
    return coordinate(source, int(entry) % size)


def _check_range(number: int, size: int, what: str) -> None:
    if not -size <= number < size:
        raise ModelError(
            f"{capital(what)} are indexed by {number}, but there are {size}. Give a number from 0 to "
            f"{size - 1}, or from -{size} to -1, counted from the end."
        )


def _position(source: Expr, axis: Plate, number: int) -> Position:
    """One element of a plate; of unknown size, its range is checked when that is known."""
    if axis.size is not None:
        _check_range(number, axis.size, f"the elements of '{source}' along plate '{axis.name}'")
        number %= axis.size
    return Position(number, (), domains.index(axis), str(number))


def _positions(source: Expr, axis: Plate, entry: slice) -> Position:
    """The elements of a slice, on the part of the plate that it is."""
    part = part_of(axis, entry, f"the elements of '{source}' along plate '{axis.name}'")
    start = int(entry.start or 0)
    return Position(start if axis.size is None else start % axis.size, (part,), domains.index(axis), _written(entry))


def part_of(plate: Plate, entry: slice, what: str = "") -> Plate:
    """The plate of the elements of a slice: one for all slices of as many elements, so that these line up."""
    what = what or f"the elements of plate '{plate.name}'"
    if not isinstance(entry, slice):
        raise ModelError(f"Plate '{plate.name}' is indexed by {entry!r}. Give a slice, such as {plate.name}[1:].")
    _check_slice(what, entry)
    length = _length(plate, entry, what)
    if length == (plate.size or 0):
        return plate
    parts = plate.__dict__.setdefault("parts", {})
    size = length if length > 0 else None
    return parts.setdefault(length, PlatePart(f"{plate.name}[{_written(entry)}]", size, plate, length))


def least_size(position: Position) -> int:
    """How many elements a plate has at least for a position in it, or the positions of a part, to be there."""
    start, part = position.start, next(iter(position.plates), None)
    if part is None:
        return start + 1 if start >= 0 else -start
    if not isinstance(part, PlatePart):  # all positions of the plate
        return 1
    if part.length <= 0:
        return 1 - part.length
    return start + part.length if start >= 0 else -start


def positions(position: Position, sizes: Mapping[str, int]) -> np.ndarray:
    """The places in a plate of this size: of all elements of its part, or of one."""
    start = np.int32(position.start % sizes[position.domain.plate.name])
    if not position.plates:
        return np.asarray(start)
    return start + np.arange(sizes[position.plates[0].name], dtype=np.int32)


def _length(plate: Plate, entry: slice, what: str) -> int:
    """How many elements a slice has; where that depends on the size, how many more than the plate has."""
    if plate.size is not None:
        start, stop = _ends(entry, plate.size, what)
        return stop - start
    start, stop = entry.start or 0, entry.stop or 0
    from_end = entry.stop is None or stop < 0
    if start < 0 and not from_end:
        raise ModelError(
            f"{capital(what)} are sliced by [{_written(entry)}], of which the size of the plate decides the number. "
            f"Give the plate a size: m.plate('{plate.name}', 8)."
        )
    length = stop - start
    if length <= 0 and (start < 0) == from_end:
        raise _no_elements(what, entry)
    return length


def _ends(entry: slice, size: int, what: str) -> tuple[int, int]:
    """The first element of a slice and the one behind the last."""
    start, stop = entry.start or 0, size if entry.stop is None else entry.stop
    if not (-size <= start <= size and -size <= stop <= size):
        raise ModelError(
            f"{capital(what)} are sliced by [{_written(entry)}], but there are {size}. Give a slice within these."
        )
    start, stop = start + size * (start < 0), stop + size * (stop < 0)
    if start >= stop:
        raise _no_elements(what, entry)
    return start, stop


def _no_elements(what: str, entry: slice) -> ModelError:
    return ModelError(f"{capital(what)} are sliced by [{_written(entry)}], which has no elements. Give at least one.")


def _written(entry: slice) -> str:
    return f"{'' if entry.start is None else entry.start}:{'' if entry.stop is None else entry.stop}"


def pushed(source: Expr, position: Expr, axis: Plate) -> Expr:
    """The elements of an expression at places that no random variable chooses, as the expression of the elements."""
    if axis not in set(source.plates):
        return source
    if not isinstance(source, (Apply, Gather)) or (isinstance(source, Apply) and source.over is axis):
        return gathered(source, position, axis)
    where = source.plates.index(axis)
    plates = union_plates(source.plates[:where], position.plates, source.plates[where + 1 :])
    if isinstance(source, Apply):
        args = tuple(pushed(arg, position, axis) for arg in source.args)
        return dataclasses.replace(source, args=args, plates=plates)
    inner = source.source if source.axis is axis else pushed(source.source, position, axis)
    return dataclasses.replace(source, source=inner, index=pushed(source.index, position, axis), plates=plates)


def gather(source: Expr, index: Expr) -> Gather:
    """source[index]: elements of one plate of `source`, chosen by index data or by a discrete variable (a gate).

    `index` is an expression of domain index(plate), category or boolean. Index data points into its own plate; a
    discrete variable picks from the first plate of source that has as many elements as the variable has classes; index
    data may themselves be chosen by one, x[index[z]]. The plate that is indexed is replaced by the plates of `index`.
    ModelError when index is anything else or no
    plate of source fits.
    """
    check_named(source, index)
    chosen = _chosen_among_indices(index)
    if chosen is None:
        return gathered(source, index, _gather_axis(source, index))
    if chosen.axis in source.plates:
        raise ModelError(
            f"'{source}' is indexed by '{index}', which '{chosen.index}' chooses along the plate '{chosen.axis.name}', "
            f"and '{source}' has that plate itself. Give the index data a plate of its own."
        )
    return gathered(gather(source, chosen.source), chosen.index, chosen.axis)


def check_named(source: object, index: Expr) -> None:
    """Raises ModelError for a random expression without a name, which has no belief."""
    if isinstance(index, Apply) and not is_data(index):
        raise ModelError(
            f"'{source}' is indexed by the unnamed expression '{index}'. Name it first: m.let(name, {index})."
        )


def _chosen_among_indices(index: Expr) -> Gather | None:
    """An element of index data that a random variable chooses: x[index[z]] is read as x[index][z], a gate."""
    while isinstance(index, Let):
        index = index.expression
    return index if isinstance(index, Gather) and index.domain.is_index and not is_data(index) else None


def gathered(source: Expr, index: Expr, axis: Plate) -> Gather:
    """The elements along one plate: what is indexed is replaced by the plates of the index."""
    position = source.plates.index(axis)
    plates = union_plates(source.plates[:position], index.plates, source.plates[position + 1 :])
    return Gather(source, index, plates, source.domain, axis)


def _gather_axis(source: Expr, index: Expr) -> Plate:
    names = tuple(plate.name for plate in source.plates)
    if index.domain.is_index:
        if index.domain.plate in source.plates:
            return index.domain.plate
        raise ModelError(
            f"{index} indexes plate '{index.domain.plate.name}', but the plates of {source} are {names}. "
            f"Declare {source} with that plate, or {index} with the domain cv.index(...) of a plate that {source} has."
        )
    return _gate_axis(source, index, names)


def _gated(source: Expr, index: Expr, axis: Plate) -> Gather:
    """The elements that a discrete expression chooses along one plate."""
    check_named(source, index)
    classes = classes_of(source, index)
    fits = classes is axis or size_of(classes) == axis.size or (axis.size is None and not isinstance(classes, Plate))
    if not fits:
        raise ModelError(
            f"'{source}' is indexed by '{index}' ({index.domain}) along plate '{axis.name}', which has "
            f"{axis.size or 'another number of'} elements. Indices stand in the order of the plates "
            f"({', '.join(plate.name for plate in source.plates)})."
        )
    return gathered(source, index, axis)


def classes_of(source: object, index: Expr) -> Plate | int | None:
    """The classes of a discrete index: a plate, or their number."""
    if not index.domain.is_discrete:
        raise ModelError(
            f"'{source}' is indexed by '{index}', which is {index.domain}. Indices are whole numbers and slices, data "
            "of domain cv.index(plate), or discrete variables (boolean or categorical)."
        )
    return 2 if index.domain.is_boolean else index.domain.size


def size_of(classes: Plate | int | None) -> int | None:
    """The number of classes, where it is known."""
    return classes.size if isinstance(classes, Plate) else classes


def _gate_axis(source: Expr, index: Expr, names: tuple[str, ...]) -> Plate:
    classes = classes_of(source, index)
    if isinstance(classes, Plate):
        if classes in source.plates:
            return classes
        classes, unknown = classes.size, ()  # two plates of unknown size need not correspond
    else:
        unknown = tuple(plate for plate in source.plates if plate.size is None)
    same = tuple(plate for plate in source.plates if plate.size is not None and plate.size == classes)
    if same or unknown:
        return (*same, *unknown)[0]
    raise ModelError(
        f"{index} chooses among {index.domain.size or classes} classes, but no plate of {source} has as many elements: "
        "its plates are "
        f"{names} of sizes {tuple(plate.size for plate in source.plates)}. Declare {source} with a plate of that size."
    )


BUILDERS |= {"index": index, "part": part_of}


def at_places(value: Expr, by: UserValue) -> tuple[Expr, Places]:
    """What `value` is at each place of each group, zero where a place is empty, and the plate of the places.

    ModelError where `by` is no index input over a single plate that `value` has.
    """
    if not isinstance(by, Input) or not by.domain.is_index or len(by.plates) != 1:
        raise ModelError(
            f"`sum` of '{value}' by {by!r}: give the group of each row as index data over one plate, declared as "
            "m.input(name, cv.index(groups), plates=rows)."
        )
    (rows,), groups = by.plates, by.domain.plate
    if rows not in value.plates or groups in value.plates:
        names = ", ".join(f"'{plate.name}'" for plate in value.plates) or "none"
        raise ModelError(
            f"`sum` of '{value}' by '{by}': that tells the groups ('{groups.name}') of plate '{rows.name}', but the "
            f"plates of '{value}' are {names}. Sum what has a value for each element of '{rows.name}'."
        )
    if value.domain.is_discrete and not is_data(value):
        raise ModelError(
            f"`sum` of '{value}' ({value.domain}) by '{by}' takes numbers and vectors. For a count give them a real "
            "variable."
        )
    places = by.__dict__.setdefault("places", Places(f"place in {groups.name} by {by}", None, rows, groups, by.name))
    plates = (groups, places)
    chosen = pushed(value, Member(by, False, plates, domains.index(rows)), rows)
    return chosen * Member(by, True, plates, domains.unit), places

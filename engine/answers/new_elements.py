"""Which plates have new elements in a prediction, so that what was learned of the old ones does not hold for them.

A learned variable is carried wherever its elements stay the same. New inputs say of each of their plates either "other
elements" (new rows) or "the same elements, seen elsewhere" (the features of new rows): the outcomes tell which.

1. `new=` names the plates with new elements, and nothing else is asked.
2. A plate without learned variables has nothing to lose: it is new where inputs are given on it.
3. An input with rows, plates on which outcomes were observed or constraints imposed, is about new rows; its other
   plates are kept.
4. Where it has several such plates, outcomes by person and item, say, the new ones are those without learned variables,
   else the one whose size has changed. Where neither decides, the question is given back.
5. An input without rows makes its plate new where the prior of a learned variable there depends on it, as it then
   describes other elements.
6. A plate in `sizes=` is new where it has rows.

Whatever these rules say, a learned variable on a plate that is kept must fit: another size is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from ...compiler.data.bind import Binding
from ...compiler.data.sparse_matrices import is_paged
from ...compiler.language.model import Model
from ...compiler.language.nodes import Derived, Expr, Input, Random, inside, parents
from ...compiler.passes.roles import below
from ...factors.errors import DataError
from ..support.asked_arguments import UserData, list_of_names


def fresh_plates(
    model: Model,
    old: Binding,
    learned: Iterable[str],
    data: UserData,
    sizes: Mapping[str, int],
    new: Collection[str] | None,
) -> frozenset[str]:
    """The names of the plates whose elements are new when `data` and `sizes` take the place of those of `old`.

    `learned` are the names of the random variables with beliefs. Raises DataError for a plate that the model lacks,
    and, with the plate's and the variables' names, where learned variables can neither be carried nor dropped.
    """
    new = new if new is None else list_of_names([new] if isinstance(new, str) else new, "new=")
    for name in (*sizes, *(new or ())):
        if name not in model.plates:
            raise DataError(
                f"predict() is told of a plate '{name}', which the model does not have. It has: "
                f"{', '.join(model.plates) or 'none'}."
            )
    case = _Case(model, old, [model.randoms[name] for name in learned], data, sizes)
    fresh = set(new) if new is not None else case.decided()
    for plate in model.plates.values():  # after those that it is made of
        if isinstance(plate, Derived) and fresh & {source.name for source in plate.sources}:
            fresh.add(plate.name)
    for plate in model.plates:
        if plate not in fresh and case.held(plate) and case.size(plate) != old.sizes[plate]:
            raise DataError(
                f"predict() is given {case.size(plate)} elements of plate '{plate}', but {case.told(plate)} was "
                f"learned for its {old.sizes[plate]}, and cannot be carried over. Give data for these "
                f"{old.sizes[plate]}; or, if all are other ones, of which the prior alone is known, say "
                f"so: new=['{plate}']."
            )
    return frozenset(fresh)


class _Case:
    """One prediction: the model, its data, what was learned, and what is given now."""

    def __init__(
        self, model: Model, old: Binding, learned: list[Random], data: UserData, sizes: Mapping[str, int]
    ) -> None:
        self._model, self._old, self._learned, self._data, self._sizes = model, old, learned, data, sizes
        named = {**model.randoms, **model.lets}
        outcomes: list[Expr] = [*(named[name] for name in old.observed), *model.constraints.values()]
        shared = [_names(node) for node in outcomes]
        self._rows = {name for names in shared for name in names}
        self._own_rows = {name for names in shared if len(names) == 1 for name in names}

    def held(self, plate: str) -> list[str]:
        """The learned variables on a plate."""
        return [node.name for node in self._learned if plate in _names(node)]

    def told(self, *plates: str) -> str:
        """The learned variables on these plates, for a sentence."""
        return ", ".join(f"'{name}'" for name in dict.fromkeys(name for plate in plates for name in self.held(plate)))

    def size(self, plate: str) -> int:
        """The size that follows from what is given, else that of before."""
        found = [
            length
            for name, value in self._data.items()
            for own, length in zip(self._model.inputs[name].plates, _shape(value), strict=False)
            if own.name == plate
        ]
        return int(self._sizes.get(plate, found[0] if found else self._old.sizes[plate]))

    def decided(self) -> set[str]:
        """The new plates by the rules of this module."""
        fresh = {plate for plate in self._sizes if plate in self._rows or not self.held(plate)}
        for name in self._data:
            node = self._model.inputs[name]
            plates = _names(node)
            fresh |= {plate for plate in plates if plate not in self._rows and self._is_free(plate)}
            fresh |= self._of_rows(node) if self._rows & set(plates) else self._described(node)
        return fresh

    def _is_free(self, plate: str) -> bool:
        """Nothing was learned on a plate, and all inputs on it are given anew, or fit no more."""
        others = (name for name, node in self._model.inputs.items() if plate in _names(node) and name not in self._data)
        return not self.held(plate) and (self.size(plate) != self._old.sizes[plate] or not any(others))

    def _of_rows(self, node: Input) -> set[str]:
        """The new plates of an input that has rows."""
        rows = [plate for plate in _names(node) if plate in self._own_rows]
        if len(rows) == 1:
            return set(rows)
        rows = rows or [plate for plate in _names(node) if plate in self._rows]
        free = {plate for plate in rows if not self.held(plate)}
        moved = [plate for plate in rows if self.size(plate) != self._old.sizes[plate]]
        if free or len(moved) == 1:
            return free or set(moved)
        if moved or self._same(node.name):  # what has moved is refused, whoever it is
            return set()
        both = " and ".join(f"plate '{plate}'" for plate in rows)
        raise DataError(
            f"predict() is given new values of '{node.name}', and outcomes were observed on {both}, where "
            f"{self.told(*rows)} was learned: whether these are the same elements decides what is known of them. Name "
            f"the plates whose elements are new, new=['{rows[0]}'], or none, new=[]."
        )

    def _described(self, node: Input) -> set[str]:
        """The plates of an input without rows that have other elements now, as what defines these has changed."""
        if self._same(node.name):
            return set()
        defined = [own for own in self._learned if any(part is node for part in below([own]))]
        return {plate for own in defined for plate in _names(own) if plate in _names(node)}

    def _same(self, name: str) -> bool:
        old, new = self._old.inputs[name], self._data[name]
        if is_paged(old) or is_paged(new):
            return False
        return np.array_equal(np.asarray(old), np.asarray(new))


def changed_variables(
    model: Model, names: Iterable[str], fresh: Collection[str], data: Collection[str], kept: Collection[str]
) -> list[str]:
    """Which of the named variables a prediction tells: those on plates with new elements, and what depends on them.

    `data` are the inputs given anew, `kept` the variables whose beliefs are carried.
    """
    named: dict[str, Expr] = {**model.inputs, **model.randoms, **model.lets}
    changed = set(data)
    for name, node in named.items():  # a random variable is declared after those that it depends on
        if name in kept or name in model.inputs:
            continue
        parts = {part.name for part in inside(parents(node)) if isinstance(part, (Input, Random))}
        if set(fresh) & set(_names(node)) or parts & changed:
            changed.add(name)
    return [name for name in names if name in changed]


def _names(node: Expr) -> tuple[str, ...]:
    return tuple(plate.name for plate in node.plates)


def _shape(value: object) -> tuple[int, ...]:
    return tuple(value.shape) if hasattr(value, "shape") else np.shape(value)  # type: ignore[arg-type]

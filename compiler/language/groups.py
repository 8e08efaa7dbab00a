"""Sums over the members of groups of any size, `cv.sum(skill[member], by=team)`.

Index data tell the group of each row. The rows of a group take its places, of which there are as many as the largest
group has members, so that the sum is one over a plate: of elements at these places, times one where there is one.
"""

from __future__ import annotations

from ...factors.domains import index, unit
from ...factors.errors import ModelError
from .indexing import pushed
from .nodes import Expr, Input, Member, Places, is_data
from .values import UserValue


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
    chosen = pushed(value, Member(by, False, plates, index(rows)), rows)
    return chosen * Member(by, True, plates, unit), places

"""Names of the elements of a plate: text, numbers, and dates as ISO text."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from ..factors.errors import ModelError

Label: TypeAlias = str | int | float | bool


def labels_of(values: Iterable[Any]) -> tuple[Label, ...]:
    """Labels as Python's own text and numbers; dates as ISO text."""
    return tuple(map(label_of, values))


def in_order(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Different labels, sorted; by their text where text stands beside numbers."""
    different = set(labels)
    try:
        return tuple(sorted(different))  # type: ignore[type-var]
    except TypeError:
        return tuple(sorted(different, key=str))


def label_of(value: Any) -> Label:
    """One of them; of an index of several levels their texts, with commas between them."""
    if isinstance(value, tuple) and value:
        return ", ".join(str(label_of(part)) for part in value)
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time() and value.tzinfo is None
        return value.date().isoformat() if midnight else value.isoformat()
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, (str, int, float, bool)) else str(value)


def different_names(plate: str, names: Any) -> tuple[Label, ...]:
    """The names that a plate is declared with; ModelError for what is no list of different names."""
    if isinstance(names, (str, bytes, set, frozenset)) or not isinstance(names, Iterable):
        raise ModelError(f"Plate '{plate}': names={names!r} is a list of names, such as ['York', 'Leeds'].")
    names = list(names)
    odd = [name for name in names if _is_none(name)]
    if odd:
        raise ModelError(f"Plate '{plate}': {odd[0]!r} is no name. Give text, numbers or dates, one for each element.")
    labels = labels_of(names)
    if not labels or len(set(labels)) < len(labels):
        twice = next((label for label in labels if labels.count(label) > 1), None)
        told = f"{twice!r} is there twice" if labels else "there are none"
        raise ModelError(f"Plate '{plate}': names are one for each element, all different; {told}.")
    return labels


def _is_none(name: Any) -> bool:
    """Whether a value names nothing: a missing one, which differs from itself or is called so, or several in a list."""
    if name is None or isinstance(name, tuple):
        return name is None
    missing = type(name).__name__ in ("NAType", "NaTType")
    return missing or isinstance(name, (list, dict, set)) or np.ndim(name) > 0 or bool(name != name)

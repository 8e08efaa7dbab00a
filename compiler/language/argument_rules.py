"""The rules of factors, checked on the known arguments of their terms and on what is observed of their variables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...factors.domains import Domain
from ...factors.factor import Factor
from ...factors.numbers import ValueProblem
from .nodes import Plate

Laid = tuple[np.ndarray, tuple[Plate, ...]]  # an array, and the plates of its leading axes


def check_rules(factor: Factor, known: Mapping[str, Laid], domain: Domain) -> None:
    """Raises ValueProblem for the first rule that known values break, with the place and the values there.

    `known` has values by edge, "out" for the outcome of this `domain`; rules about others are left out. Where a
    value is NaN, nothing is known of it.
    """
    for rule in factor.rules:
        if not all(edge in known for edge in rule.edges):
            continue
        plates = tuple(dict.fromkeys(plate for edge in rule.edges for plate in known[edge][1]))
        values = {edge: _aligned(*known[edge], plates) for edge in rule.edges}
        with np.errstate(invalid="ignore"):
            holds = np.asarray(rule.holds(domain, **values))
        wrong = ~holds & ~_unknown(list(values.values()), holds.ndim)
        if wrong.any():
            raise ValueProblem(f"{rule.says}; found {_found(values, wrong)}. {rule.fix}")


def _aligned(array: np.ndarray, own: tuple[Plate, ...], plates: tuple[Plate, ...]) -> np.ndarray:
    """The array with one axis for each of `plates`, of length 1 along those that it does not have."""
    order = [own.index(plate) for plate in plates if plate in set(own)]
    event = array.shape[len(own) :]
    moved = np.transpose(array, [*order, *range(len(own), array.ndim)])
    sizes = iter(moved.shape)
    return moved.reshape(tuple(next(sizes) if plate in set(own) else 1 for plate in plates) + event)


def _unknown(values: list[np.ndarray], instances: int) -> np.ndarray:
    """Instances of which some value is missing."""
    found = np.zeros((1,) * instances, bool)
    for value in values:
        if value.dtype.kind == "f":
            found = found | np.isnan(value).any(tuple(range(instances, value.ndim)))
    return found


def _found(values: Mapping[str, np.ndarray], wrong: np.ndarray) -> str:
    place = tuple(int(i) for i in np.unravel_index(np.argmax(wrong), wrong.shape))
    texts = []
    for edge, value in values.items():
        here = value[tuple(min(i, size - 1) for i, size in zip(place, value.shape, strict=False))]
        texts.append(f"{'the observed' if edge == 'out' else edge} {_text(here)}")
    more = int(wrong.sum()) - 1
    where = f" at [{', '.join(map(str, place))}]" + (f" and {more} more" if more else "") if place else ""
    return " with ".join(filter(None, (texts[0], ", ".join(texts[1:])))) + where


def _text(value: np.ndarray) -> str:
    return f"{value:g}" if np.ndim(value) == 0 else np.array2string(value, threshold=8, precision=6)

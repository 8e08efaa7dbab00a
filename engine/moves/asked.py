"""What moves are asked for, looked at before anything runs."""

from __future__ import annotations

import math

import numpy as np

from ...factors.errors import ModelError
from ..mcmc.structure import Place


def check_times(call: str, times: object) -> int:
    """A whole number of proposals above zero; ModelError for any other."""
    if not isinstance(times, (int, np.integer)) or isinstance(times, bool) or times < 1:
        raise ModelError(f"{call}(times={times!r}): give a whole number of proposals in a sweep, 1 or more.")
    return int(times)


def check_number(call: str, value: object, most: float = math.inf) -> float:
    """A number above zero and below `most`; ModelError for any other."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0.0 < value < most:
        ends = "a positive number" if most == math.inf else f"a number between 0 and {most:g}"
        raise ModelError(f"{call}: give {ends}; found {value!r}.")
    return float(value)


def only(places: tuple[Place, ...], call: str, prior: object = None, of: str = "") -> Place:
    """The one array that a move yields; ModelError where several are asked of it, or the prior does not fit.

    A variable has the model's prior and takes no other; `of` is what the prior is to be of.
    """
    if len(places) != 1:
        names = ", ".join(f"'{place.name}'" for place in places)
        raise ModelError(f"moves= asks {call} for {names} together: these are moves of one array. Give a name each.")
    place = places[0]
    if prior is not None and place.has_prior:
        raise ModelError(f"'{place.name}' is a variable, whose prior the model has: leave prior= out of {call}.")
    if prior is not None and (theirs := getattr(prior, "of", None)) != of:
        raise ModelError(f"{call} of '{place.name}' takes a prior of {of}; found {prior!r}, of {theirs}.")
    return place

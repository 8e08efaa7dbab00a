"""The names under which a program's arrays hold what is made of data: all of them, in one place."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable


def given_values(name: str) -> str:
    """The values of a partly observed variable: its own name would say that all of it is known."""
    return f"{name} given"


def is_given(name: str) -> str:
    """Where an entry of a partly observed variable is given."""
    return f"{name} is given"


def is_missing(name: str) -> str:
    """One where an entry of a partly observed variable is missing, zero elsewhere."""
    return f"{name} is missing"


def is_present(name: str) -> str:
    """One where an entry of an observed variable on which nothing depends is given, zero where it is missing."""
    return f"{name} present"


def prior_part(names: tuple[str, ...], number: int) -> str:
    """One of the natural parameters of a belief that is given as a prior."""
    return f"{', '.join(names)} prior {number}"


def joint_belief(names: Iterable[str]) -> str:
    """The belief that several Gaussian variables share."""
    return f"joint of {', '.join(names)}"


def learned_process(name: str) -> str:
    """What is known of a Gaussian process where its function is evaluated at new points."""
    return f"{name} process"


def number_in(plate: str) -> str:
    """How many rows of a padded plate count."""
    return f"number in {plate}"


STARTS = "(beliefs to start from)"  # the beliefs that a run begins at, where these are given
ONE_START = "(number of the only start)"  # of the random starts of a run, where another process makes the others


_OF_ONE = (given_values, is_given, is_missing, is_present, learned_process)
_OF_SEVERAL = (re.compile(r"(.+) prior \d+"), re.compile("joint of (.+)"))


def clash(names: Collection[str], plates: Collection[str] = ()) -> tuple[str, str] | None:
    """One of these names that is the key of what belongs to another, or to a plate, and the name of that, or None."""
    own = {part(name): name for name in names for part in _OF_ONE} | {number_in(name): name for name in plates}
    for name in names:
        if name in own:
            return name, own[name]
        for found in (pattern.fullmatch(name) for pattern in _OF_SEVERAL):
            if found and set(found[1].split(", ")) <= set(names):
                return name, found[1]
    return None

"""Names that will go: what is deprecated still works, and warns with the version that ends it and what to write then.

The policy is docs/stability.md. A test refuses a release that still has what was to be removed by then.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import NamedTuple, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Deprecation(NamedTuple):
    """What goes: its name as users write it, the release that said so, the one without it, and what to write then."""

    name: str
    since: str
    removed: str
    instead: str

    def sentence(self) -> str:
        """The warning."""
        return f"`{self.name}` is deprecated since {self.since} and goes in {self.removed}: use `{self.instead}`."


DEPRECATIONS: list[Deprecation] = []
"""All that is deprecated, in the order of import."""


def numbered(version: str) -> tuple[int, ...]:
    """The numbers of a version, "0.10.1" as (0, 10, 1), to be compared. ValueError where there is something else."""
    return tuple(int(part) for part in version.split("."))


def announce(name: str, *, since: str, removed: str, instead: str) -> Deprecation:
    """Enters a deprecation in the list.

    Args:
        name: as users write it, such as "cv.old" or "cv.infer(sweeps=)".
        since: the release that deprecates it, such as "0.7.0".
        removed: the first release without it: at least two minor releases later, or the next major one.
        instead: what to write, such as "cv.new(...)".

    Returns:
        The deprecation.

    Raises:
        ValueError: it would go sooner than the policy promises.
    """
    begins, ends = numbered(since), numbered(removed)
    if (ends[0] == begins[0] and ends[1] < begins[1] + 2) or ends[0] < begins[0]:
        raise ValueError(f"`{name}` is deprecated in {since}; removed in {removed} it would go sooner than promised.")
    deprecation = Deprecation(name, since, removed, instead)
    DEPRECATIONS.append(deprecation)
    return deprecation


def deprecated(
    name: str, *, since: str, removed: str, instead: str
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """A decorator of a public function that will go: each call warns, at the line of the caller, and works as before.

    Args:
        name: as users write it, such as "cv.old".
        since: the release that deprecates it.
        removed: the first release without it.
        instead: what to write.

    Returns:
        The decorator. What it returns has the name, docstring and signature of the function, and `__deprecated__`, the
        warning, for tools that look for it.

    Raises:
        ValueError: it would go sooner than the policy promises.
    """
    sentence = announce(name, since=since, removed=removed, instead=instead).sentence()

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        @functools.wraps(function)
        def call(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
            warnings.warn(sentence, DeprecationWarning, stacklevel=2)
            return function(*arguments, **named)

        vars(call)["__deprecated__"] = sentence
        return call

    return decorate


def deprecated_value(deprecation: Deprecation, stacklevel: int = 3) -> None:
    """Warns that an argument, or a value of one, will go: for a function that goes on living.

    Args:
        deprecation: what `announce` returned when the module was imported.
        stacklevel: whose line is told; 3 is the caller of the function that calls this.
    """
    warnings.warn(deprecation.sentence(), DeprecationWarning, stacklevel=stacklevel)

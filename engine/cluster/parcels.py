"""What many jobs have in common, such as a model with its data: it goes to each worker once.

A job is sent with the name of its parcel alone. A worker that does not have it says so, and the job is sent once more,
with the content.
"""

from __future__ import annotations

import contextlib
import contextvars
import hashlib
from collections.abc import Iterator
from typing import Any

from ...compiler.portable import packed, unpacked


class Missing(Exception):
    """A worker was sent the name of a parcel whose content it does not have."""


class Parcel:
    """A function with its arguments as bytes, that every worker calls once, whatever the number of its jobs.

    Sent as part of a job it is its `name`, but for `in_full`. Raises ModelError, with `what` it is, where it cannot go
    to another process.
    """

    def __init__(self, thing: Any, what: str) -> None:
        self.content: bytes | None = packed(thing, what)
        self.name = hashlib.sha256(self.content).hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (self.name, self.content if _IN_FULL.get() else None)

    def made(self) -> Any:
        """What `function(*arguments)` gave, which this process keeps. Raises Missing where it has neither."""
        if (kept := _MADE.get(self.name)) is not None:
            return kept
        if self.content is None:
            raise Missing(self.name)
        function, arguments = unpacked(self.content)
        made = function(*arguments)
        _MADE.clear()
        _MADE[self.name] = made
        return made


@contextlib.contextmanager
def in_full() -> Iterator[None]:
    """While it lasts, parcels are sent with their content."""
    before = _IN_FULL.set(True)
    try:
        yield
    finally:
        _IN_FULL.reset(before)


def _received(name: str, content: bytes | None) -> Parcel:
    found = Parcel.__new__(Parcel)
    found.name, found.content = name, content
    return found


_IN_FULL: contextvars.ContextVar[bool] = contextvars.ContextVar("in full", default=False)
_MADE: dict[str, Any] = {}  # of the last list of jobs alone

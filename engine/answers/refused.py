"""Methods that a kind of posterior cannot offer: each raises UnsupportedError with the reason, not AttributeError."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from ...factors.errors import UnsupportedError


def refused(call: str, why: str) -> Callable[..., NoReturn]:
    """A method that raises UnsupportedError: `call` says what was asked for, `why` the reason and what to do."""

    def method(self: object, *args: object, **kwargs: object) -> NoReturn:
        raise UnsupportedError(f"{call} {why}")

    method.__doc__ = f"Raises UnsupportedError: {call} {why}"
    return method


def refused_property(name: str, why: str) -> property:
    """A property that raises UnsupportedError, as `refused`."""
    return property(refused(name, why))

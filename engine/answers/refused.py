"""Methods that a kind of posterior cannot offer: each raises UnsupportedError with the reason, not AttributeError."""

from __future__ import annotations

from typing import Any, NoReturn

from ...factors.errors import UnsupportedError


def refused(call: str, why: str) -> Any:
    """A method that raises UnsupportedError: `call` says what was asked for, `why` the reason and what to do."""

    def method(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(f"{call} {why}")

    method.__doc__ = f"Raises UnsupportedError: {call} {why}"
    return method


def refused_property(name: str, why: str) -> Any:
    """A property that raises UnsupportedError, as `refused`."""
    return property(refused(name, why))

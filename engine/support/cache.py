"""A bounded cache of compiled things, by key: those that were used least lately fall out of it and are freed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

Made = TypeVar("Made")


class Recent(Generic[Made]):
    """At most `most` things; the one that was asked for the longest ago goes first. Threads may share it."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._kept: dict[Hashable, Made] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What is kept under `key`, or else what `make` makes."""
        with self._lock:
            if key in self._kept:
                self._kept[key] = self._kept.pop(key)  # now the latest
                return self._kept[key]
        made = make()  # without the lock: it may compile for a minute, and ask for other keys
        with self._lock:
            made = self._kept.setdefault(key, made)
            while len(self._kept) > self.most:
                del self._kept[next(iter(self._kept))]
        return made

    def clear(self) -> None:
        """Forgets all."""
        with self._lock:
            self._kept.clear()

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Made]:
        return iter(list(self._kept.values()))

"""Many posteriors of one program in a row, each made when it is asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import SupportsIndex, overload

from .posterior import Posterior


class Posteriors(Sequence[Posterior]):
    """Posteriors by number or by slice; each is made once."""

    def __init__(self) -> None:
        self._made: dict[int, Posterior] = {}

    @abstractmethod
    def _one(self, k: int) -> Posterior:
        """The posterior of number `k`, counted from zero."""

    @overload
    def __getitem__(self, index: SupportsIndex) -> Posterior: ...
    @overload
    def __getitem__(self, index: slice) -> list[Posterior]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Posterior | list[Posterior]:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        k = range(len(self))[index]
        if k not in self._made:
            self._made[k] = self._one(k)
        return self._made[k]

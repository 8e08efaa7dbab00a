"""What differs between places of a run, and what a file of it does: the default device is in `runner.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
from jaxtyping import PyTree

from ..result import Outputs

Arrays = Mapping[str, Any]  # data of a run, by name


class Shardings(NamedTuple):
    """Where arrays are that a program takes and gives: arguments, carries, and what all devices have."""

    given: tuple[PyTree, PyTree, PyTree]
    carry: PyTree
    whole: Any


@runtime_checkable
class Keeping(Protocol):
    """The file that a run is written to (`files/checkpoint.py`); `found` is what it goes on from, after `sweeps`."""

    found: Any
    sweeps: int

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        ...

    def write(self, told: PyTree, sweeps: int) -> None:
        """Writes what a carry tells after so many sweeps."""
        ...

    def told(self, form: PyTree[jax.ShapeDtypeStruct]) -> Any:
        """What the file has, nested as `form`."""
        ...

    def last_words(self) -> str:
        """Where a run that was lost goes on."""
        ...


@runtime_checkable
class Place(Protocol):
    """What differs between places of a run. Of another `mesh` a program is another one, and none is kept on disk."""

    @property
    def mesh(self) -> jax.sharding.Mesh | None: ...

    def shardings(self, given: tuple[Any, ...], form: PyTree) -> Shardings | None:
        """Where the arguments `given` of a program are, and carries of this form; None on the default device."""
        ...

    def agreed(self, number: int) -> int:
        """A number that all processes have alike."""
        ...

    def blank(self, form: PyTree[jax.ShapeDtypeStruct]) -> PyTree:
        """Zeros of this form, for the place of a carry that is not there yet."""
        ...

    def placed(self, data: Arrays) -> Arrays:
        """The data, where the run reads them."""
        ...

    def inside(self, data: Arrays) -> Arrays:
        """The data inside of the program."""
        ...

    def outputs(self, outputs: Outputs) -> Outputs:
        """What a run leaves, as it is elsewhere."""
        ...

    def told(self, found: Any) -> Any:
        """What a checkpoint has of a carry, as it is elsewhere."""
        ...

    def together(self, last_words: Callable[[], str]) -> AbstractContextManager[None]:
        """Around what all processes do: LostError, ending in these words, where another is gone."""
        ...

"""What is known of a function once it was traced; kept on disk, the next process need not trace it where NumPy runs it.

NumPy's steps are plain data: see `interpret/listing.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax

from ..interpret.equation import Unknown
from ..interpret.work import Expected, Meter
from . import on_disk

if TYPE_CHECKING:
    from ..interpret.interpreter import ByNumpy
    from ..interpret.listing import Program


class Known(NamedTuple):
    """A function that was traced, here or in an earlier process."""

    expected: Expected
    form: Any  # what its maker wants to know
    nesting: Any  # of its outputs
    program: Program | None = None  # what NumPy runs, where that was written down


def read(name: str | None) -> Known | None:
    """What is kept under this name; None where there is nothing that can be read."""
    return None if name is None else on_disk.read(name, lambda things: Known(*things))


def by_numpy(known: Known, traced: jax.stages.Traced | None, meter: Meter, name: str | None) -> ByNumpy | None:
    """The function, run by NumPy: what was read, or what was traced, which is kept. None where NumPy cannot run it."""
    from ..interpret.interpreter import ByNumpy  # here: what is compiled needs nothing of this

    program = known.program
    try:
        if traced is not None:
            from ..interpret.writing import written

            program = written(traced.jaxpr)
        assert program is not None
        found = ByNumpy(program, known.nesting, meter)
    except Unknown:
        return None
    if traced is not None and name is not None:
        on_disk.write(name, lambda: tuple(known._replace(program=program)))
    return found

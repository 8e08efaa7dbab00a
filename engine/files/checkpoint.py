"""The file of a run that is under way: what it was asked for, and everything that it carries to the next sweep."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import time
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from ...compiler.language.model import Model
from ...factors.errors import DataError, ModelError
from ..cluster.launch import NOTE
from ..options import Request
from ..support.warn import warn
from .archive import DAMAGED, check_folder, opened, write_archive
from .paths import text_of
from .save import digest_of_constants, program_entry

FORMAT, VERSION = "cavity inference", 1
WRITTEN: dict[str, tuple[Model, Mapping[str, Any]]] = {}  # by this process: models and data by path
MOST = 8  # of them that are kept


def keeping(
    path: object, every: object, request: Request, data: Mapping[str, Any], seed: int, found: Any = None
) -> Keeping:
    """What `checkpoint=` and `every=` ask for. Raises ModelError, or DataError for a folder that is not there."""
    if not isinstance(path, (str, os.PathLike)):
        raise ModelError(f"checkpoint= is the path of a file that the run is written to; found {path!r}.")
    if isinstance(every, bool) or not isinstance(every, (int, float)) or not every >= 0:
        raise ModelError(f"every= is how many seconds are between two checkpoints, at least 0; found {every!r}.")
    check_folder(path)
    place = os.path.abspath(os.fspath(path))
    WRITTEN.pop(place, None)
    WRITTEN[place] = request.model, data
    while len(WRITTEN) > MOST:
        del WRITTEN[next(iter(WRITTEN))]
    asked = {
        "model": repr(request.model),
        "constants": digest_of_constants(request.model),
        "program": program_entry(request),
        "seed": int(seed),
    }
    kept = Keeping(place, float(every), asked)
    if found is not None:
        _, kept.found, kept.sweeps = found
    return kept


@dataclasses.dataclass
class Keeping:
    """A file that a run is written to, `every` so many seconds; `asked` is what the run was asked for.

    `found` is what the file has where the run goes on from it.
    """

    path: str
    every: float
    asked: dict[str, Any]
    found: list[np.ndarray] | None = None
    last: float = dataclasses.field(default_factory=time.monotonic)
    sweeps: int = 0  # of the state that was written last

    def last_words(self) -> str:
        """Where a run that was lost goes on."""
        if not self.sweeps:
            return f"Nothing was written to the checkpoint '{self.path}' yet: start it again."
        return (
            f"The last checkpoint is '{self.path}', of sweep {self.sweeps}: start as many processes as there are, and "
            "call cv.resume(path, model, data, mesh=mesh) there."
        )

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() - self.last >= self.every

    def write(self, told: PyTree, sweeps: int) -> None:
        """Replaces the file, as a whole or not at all; by the first process alone."""
        if jax.process_index() == 0:
            arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(told)]
            meta = {"format": FORMAT, "version": VERSION, "asked": self.asked, "sweeps": sweeps, "arrays": len(arrays)}
            try:
                write_archive(self.path, json.dumps(meta), arrays)
            except OSError as problem:
                before = f"That of sweep {self.sweeps} is still there" if self.sweeps else "There is none before"
                warn(
                    f"The checkpoint '{self.path}' could not be written after sweep {sweeps} ({problem}). {before}. "
                    f"The run goes on, and tries again in {self.every:g} s: make room there."
                )
                self.last = time.monotonic()
                return
            _tell_launcher(f"'{self.path}', of sweep {sweeps}")
        self.last, self.sweeps = time.monotonic(), sweeps

    def told(self, form: PyTree[jax.ShapeDtypeStruct]) -> Any:
        """What the file has, nested as `form`. Raises DataError where it has other arrays."""
        leaves, nesting = jax.tree.flatten(form)
        assert self.found is not None
        wanted = [(leaf.shape, leaf.dtype) for leaf in leaves]
        if [(own.shape, own.dtype) for own in self.found] != wanted:
            raise DataError(
                f"The checkpoint '{self.path}' holds a run of another form than this model and these data have. Give "
                "those that it was written with."
            )
        return jax.tree.unflatten(nesting, self.found)


def _tell_launcher(checkpoint: str) -> None:
    """Writes down the last checkpoint for who started the processes, who can name it when they are gone."""
    if place := os.environ.get(NOTE):
        with contextlib.suppress(OSError), open(place, "w", encoding="utf-8") as note:
            note.write(checkpoint)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[np.ndarray], int]:
    """What the run of a checkpoint was asked for, its arrays and its sweeps. Raises DataError where it is none."""
    where = f"The checkpoint '{text_of(path)}'"
    try:
        with opened(path) as archive:
            meta = archive.meta
            if not isinstance(meta, dict) or meta.get("format") != FORMAT or meta.get("version") != VERSION:
                raise DataError(
                    f"{where} is none of an inference that this cavity reads. Give the path of another file."
                )
            archive.verify()
            return dict(meta["asked"]), [archive.array(i) for i in range(int(meta["arrays"]))], int(meta["sweeps"])
    except DataError:
        raise
    except DAMAGED as problem:
        raise DataError(
            f"{where} is damaged or is none ({type(problem).__name__}: {problem}). Run the inference anew."
        ) from None

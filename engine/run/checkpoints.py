"""Checkpoints of inference: everything that a run carries from one sweep to the next, in a file.

A file has no order of devices in it: the points that are accelerated are written as naturals and messages, so that a
run goes on, to the same answer, with other devices and processes than it began with.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ...factors.errors import DataError
from ..cluster.launch import NOTE
from ..files.archive import DAMAGED, opened, write_archive
from ..support.warn import warn
from ..values.naturals import State
from .control.carry import Carry, Good, History, Sound
from .dealt_state import dealt_messages, shown
from .in_sweeps import Sweeping

FORMAT, VERSION = "cavity inference", 1


class Told(NamedTuple):
    """A carry without its points, and these one after the other, as outputs of a run are."""

    rest: Carry
    points: dict[str, PyTree]


def told(task: Sweeping, carry: Carry) -> Told:
    """What a file has of a carry, inside of a program."""
    _, _, join = task.split(task.state)
    history = carry.history
    points = [carry.x, carry.base, carry.good.y, carry.sound.x, history.last_x, history.last_r]
    for differences in (history.differences_x, history.differences_r):
        points += [jax.tree.map(lambda leaf, i=i: leaf[i], differences) for i in range(_depth(differences))]
    states = [join(point, carry.sound.rest) for point in points]
    stacked: State = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    one = jax.vmap(lambda moving, messages: shown(task.machine, task.fixed, moving, messages))
    found = {"places": {}, **one(stacked.moving, stacked.messages), "code": jnp.zeros(len(points), jnp.int32)}
    return Told(_without(carry), found)


def carried(task: Sweeping, told: Told) -> Carry:
    """The carry that a file tells of, inside of a program."""
    moving, messages = told.points["beliefs"], told.points["messages"]

    def point(i: int) -> tuple[Any, Any]:
        own = {number: jax.tree.map(lambda leaf: leaf[i], parts) for number, parts in messages.items()}
        own = dealt_messages(task.machine, task.fixed, own)
        return task.split(State(jax.tree.map(lambda leaf: leaf[i], moving), own))[:2]

    number = told.points["code"].shape[0]
    points = [point(i) for i in range(number)]
    x, base, y, sound, last_x, last_r = (own for own, _ in points[:6])
    depth = (number - 6) // 2

    def stacked(first: int) -> Any:
        rows = [own for own, _ in points[first : first + depth]]
        if not rows:
            return jax.tree.map(lambda leaf: jnp.zeros((0, *leaf.shape), leaf.dtype), x)
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)

    rest = told.rest
    return rest._replace(
        x=x,
        base=base,
        good=Good(y, *rest.good[1:]),
        sound=Sound(sound, points[3][1], *rest.sound[2:]),
        history=History(stacked(6), stacked(6 + depth), last_x, last_r, *rest.history[4:]),
    )


def _depth(differences: PyTree) -> int:
    return jax.tree.leaves(differences)[0].shape[0]


def _without(carry: Carry) -> Carry:
    """The carry with nothing where points are."""
    nothing = jnp.zeros(0)
    return carry._replace(
        x=nothing,
        base=nothing,
        good=carry.good._replace(y=nothing),
        sound=carry.sound._replace(x=nothing, rest=nothing),
        history=carry.history._replace(differences_x=nothing, differences_r=nothing, last_x=nothing, last_r=nothing),
    )


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

    def write(self, told: Told, sweeps: int) -> None:
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
    where = f"The checkpoint '{os.fspath(path)}'"
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

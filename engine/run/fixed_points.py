"""The fixed points that several starts of one run met: a record of each, and its state, once where several met it.

Two starts met the same one where their evidence agrees and so do the natural parameters of every variable, sorted:
beliefs with classes, factors or rows in another order are the same beliefs. Only the states of distinct fixed points
are kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, overload

import jax
import numpy as np
from jaxtyping import Float, PyTree

from .control.result_codes import CONVERGED, RANKS, UNSOUND

OTHERS = "others"  # among the outputs of a run with several starts: what each of them left
SAME = 0.01  # nats by which the evidence of one fixed point may differ between runs that ended there
ALIKE = 0.01  # of the largest natural parameter: by so much the sorted ones may differ


@dataclasses.dataclass(frozen=True)
class Restart:
    """A fixed point that starts of a run met.

    Attributes:
        log_evidence: by the beliefs there.
        converged: whether the run converged; one that did not is a point of its own.
        sweeps: of the first start that met it.
        starts: how many met it.
    """

    log_evidence: float
    converged: bool
    sweeps: int
    starts: int


@dataclasses.dataclass(frozen=True, eq=False)
class Restarts(Sequence[Restart]):
    """The distinct fixed points of a run, best first, as `Restart`.

    As an array it is the log evidence of every start, in their order: minus infinity of one that led to no sound state.
    """

    points: tuple[Restart, ...]
    by_start: Float[np.ndarray, " start"]

    @overload
    def __getitem__(self, place: int) -> Restart: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Restart, ...]: ...
    def __getitem__(self, place: int | slice) -> Restart | tuple[Restart, ...]:
        return self.points[place]

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[Restart]:
        return iter(self.points)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.by_start, dtype=dtype)

    def table(self) -> Float[np.ndarray, "point 4"]:
        """The records as rows of numbers, as files have them."""
        return np.array([dataclasses.astuple(point) for point in self.points], float)

    def __repr__(self) -> str:
        return f"Restarts({', '.join(map(repr, self.points))})"


def without_others(outputs: PyTree) -> tuple[Any, PyTree | None]:
    """The outputs of the best start, and those of all, where the run kept them."""
    return {name: own for name, own in outputs.items() if name != OTHERS}, outputs.get(OTHERS)


class Mode(NamedTuple):
    """A fixed point, and what the first start that met it left."""

    record: Restart
    outputs: Any


def from_table(table: np.ndarray, by_start: np.ndarray) -> Restarts:
    """The records of a file; ValueError where it has none."""
    whole = table.ndim == 2 and table.shape[1] == 4 and np.isfinite(table[:, 1:]).all() and by_start.ndim == 1
    if not whole or not np.all(table[:, 1:] >= [0.0, 0.0, 1.0]):
        raise ValueError("its fixed points are no rows of evidence, convergence, sweeps and starts")
    rows = (Restart(float(e), bool(c), int(sweeps), int(starts)) for e, c, sweeps, starts in table)
    return Restarts(tuple(rows), by_start)


def single(log_evidence: float, converged: bool, sweeps: int) -> Restarts:
    """Those of an answer that had one start."""
    return Restarts((Restart(log_evidence, converged, sweeps, 1),), np.array([log_evidence]))


def modes_of(outputs: Any, others: PyTree, monotone: bool) -> tuple[Mode, ...]:
    """The distinct fixed points of a run with several starts, best first.

    `outputs` are those of the best, `others` what every start left, stacked, with its key.
    """
    others = jax.tree.map(np.asarray, others)
    ranks = np.where(others["found"], np.asarray(RANKS[monotone])[others["code"]], UNSOUND)
    best = int(np.asarray(outputs["restart"]))
    order = [best, *(int(i) for i in np.lexsort((-others["evidence"], ranks)) if i != best)]
    groups: list[list[int]] = []
    for i in (i for i in order if others["found"][i]):
        met = next((group for group in groups if _same(others, group[0], i)), None)
        if met is None:
            groups.append([i])
        else:
            met.append(i)
    return tuple(_mode(outputs, others, group) for group in groups)


def _mode(outputs: Any, others: PyTree, group: list[int]) -> Mode:
    own = jax.tree.map(lambda leaf: np.array(leaf[group[0]]), others)
    record = Restart(float(own["evidence"]), bool(own["code"] == CONVERGED), int(own["iteration"]), len(group))
    state = {**own, "restart": np.asarray(group[0], np.asarray(outputs["restart"]).dtype)}
    return Mode(record, {**state, "all_evidence": np.asarray(outputs["all_evidence"])})


def _same(others: PyTree, i: int, j: int) -> bool:
    """Whether two starts converged to one fixed point, up to the order of elements."""
    if not all(others["code"][k] == CONVERGED for k in (i, j)):
        return False
    if abs(others["evidence"][i] - others["evidence"][j]) > SAME:
        return False
    return all(_alike(np.ravel(leaf[i]), np.ravel(leaf[j])) for leaf in jax.tree.leaves(others["beliefs"]))


def _alike(one: np.ndarray, other: np.ndarray) -> bool:
    one, other = np.sort(one), np.sort(other)
    return bool(np.all(np.abs(one - other) <= ALIKE * max(np.abs(one).max(initial=0.0), 1e-300)))

"""Markov chains: a driver for any kernel, with several chains, thinning, checkpoints and ArviZ.

A kernel is two pure functions of a random key and a state. Draw i of chain c uses the key folded with c and then i and
nothing else, so that a chain that stopped goes on to the same draws, and a longer run starts with those of a shorter
one.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import time
import zipfile
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from ..factors.errors import DataError, ModelError
from .archive import write_archive
from .bar import progress_bar
from .to_arviz import as_arviz

FORMAT, VERSION = "cavity chains", 1


class Kernel(NamedTuple):
    """A Markov chain.

    Attributes:
        init: `init(key) -> state`, a state to start from. States are pytrees of arrays whose shapes stay.
        step: `step(key, state) -> state`, one transition; everything random comes from the key.
        record: `record(state) -> {name: array}`, what is kept of a state.
    """

    init: Callable[[Any], Any]
    step: Callable[[Any, Any], Any]
    record: Callable[[Any], dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Chains:
    """The draws of several chains.

    Attributes:
        draws: {name: (chains, draws, ...)}.
        states: the last state of each chain.
        seconds: (chains, draws) CPU seconds that each chain had used by each draw, without the other chains.
    """

    draws: dict[str, np.ndarray]
    states: tuple[Any, ...]
    seconds: np.ndarray

    def __getitem__(self, name: str) -> np.ndarray:
        return self.draws[name]

    def to_arviz(self) -> Any:
        """An ArviZ DataTree or, before ArviZ 1, InferenceData: R-hat, effective sizes and plots are ArviZ's.

        Raises:
            UnsupportedError: ArviZ is not installed.
        """
        return as_arviz({"posterior": self.draws}, {}, "Markov chain Monte Carlo")


def run(
    kernel: Kernel,
    key: Any,
    draws: int,
    *,
    chains: int = 4,
    warmup: int = 0,
    thin: int = 1,
    progress: bool | Callable[[int, int], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = 60.0,
) -> Chains:
    """Run chains, one after the other a draw at a time.

    Args:
        kernel: what to run.
        key: a key of `jax.random`; the same key gives the same draws.
        draws: how many to keep of each chain.
        chains: how many, from independent starts.
        warmup: transitions before the first kept one.
        thin: transitions per kept draw.
        progress: True shows a bar (of tqdm or rich where installed), False none, None one on a terminal; or a function
            that is called with the number of rounds done and their total.
        checkpoint: a file that is written now and then, and that a run with the same key, chains, warmup and thin
            goes on from; `draws` may be larger than when it was written. It holds arrays, nothing that runs.
        every: seconds between two checkpoints.

    Returns:
        The draws of all chains.

    Raises:
        ModelError: a count out of range.
        DataError: a checkpoint of another run.
    """
    for name, value, least in (("draws", draws, 1), ("chains", chains, 1), ("warmup", warmup, 0), ("thin", thin, 1)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ModelError(f"{name}= is a whole number of at least {least}; found {value!r}.")
    plan = {
        "key": np.asarray(jax.random.key_data(key)).tolist(),
        "chains": int(chains),
        "warmup": int(warmup),
        "thin": int(thin),
    }
    # Keys 0 are for the starts; transition i has key i + 1.
    keys = [jax.random.fold_in(key, chain) for chain in range(chains)]
    progressed = _Run(0, [kernel.init(jax.random.fold_in(chain, 0)) for chain in keys], [[] for _ in keys], [])
    if checkpoint is not None and os.path.exists(checkpoint):
        progressed = _read(checkpoint, plan, progressed.states, kernel)
    done, states, kept, seconds = progressed
    total, saved, used = warmup + thin * draws, time.monotonic(), np.zeros(chains)
    used += seconds[-1] if seconds else 0.0
    with progress_bar(progress, "round") as show:
        for start in range(done, total, 256):
            stop = min(start + 256, total)
            folded = [_fold(chain, np.arange(start + 1, stop + 1)) for chain in keys]
            for i in range(start, stop):
                for chain in range(chains):
                    clock = time.process_time()
                    states[chain] = kernel.step(folded[chain][i - start], states[chain])
                    used[chain] += time.process_time() - clock
                if i >= warmup and (i - warmup + 1) % thin == 0:
                    seconds.append(used.copy())
                    for chain in range(chains):
                        recorded = kernel.record(states[chain])
                        kept[chain].append({name: np.asarray(value) for name, value in recorded.items()})
                show(i + 1, total)
                if checkpoint is not None and (time.monotonic() - saved > every or i + 1 == total):
                    _write(checkpoint, plan, _Run(i + 1, states, kept, seconds))
                    saved = time.monotonic()
    found = {name: np.stack([[d[name] for d in chain[:draws]] for chain in kept]) for name in kept[0][0]}
    return Chains(found, tuple(states), np.array(seconds[:draws]).T)


class _Run(NamedTuple):
    """How far a run is: transitions done, the states, the draws kept of each chain, CPU seconds at each draw."""

    done: int
    states: list[Any]
    kept: list[list[dict[str, np.ndarray]]]
    seconds: list[np.ndarray]


def _fold(key: Any, numbers: np.ndarray) -> list[Any]:
    return list(jax.vmap(lambda number: jax.random.fold_in(key, number))(numbers))


# checkpoints ----------------------------------------------------------------------------------------------------------


def _write(path: str | os.PathLike[str], plan: dict[str, Any], state: _Run) -> None:
    """The file is replaced as a whole or not at all."""
    arrays = {}
    for chain, (now, kept) in enumerate(zip(state.states, state.kept, strict=True)):
        arrays |= {f"state/{chain}/{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(now))}
        if kept:
            arrays |= {f"draws/{chain}/{name}": np.stack([d[name] for d in kept]) for name in kept[0]}
    if state.seconds:
        arrays["seconds"] = np.array(state.seconds)
    meta = {"format": FORMAT, "version": VERSION, "plan": plan, "done": state.done, "arrays": list(arrays)}
    write_archive(path, json.dumps(meta), arrays.values())


def _read(path: str | os.PathLike[str], plan: dict[str, Any], states: list[Any], kernel: Kernel) -> _Run:
    where = f"The checkpoint '{os.fspath(path)}'"
    try:
        with zipfile.ZipFile(path) as archive:
            meta = json.loads(archive.read("meta.json"))
            if meta.get("format") != FORMAT or meta.get("version") != VERSION:
                raise DataError(f"{where} is no file of chains that this cavity reads. Give the path of another file.")
            found = {
                name: np.load(io.BytesIO(archive.read(f"{number}.npy")), allow_pickle=False)
                for number, name in enumerate(meta["arrays"])
            }
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError, OSError) as problem:
        if isinstance(problem, DataError):
            raise
        raise DataError(
            f"{where} is damaged or is none ({type(problem).__name__}: {problem}). Remove it to start again."
        ) from None
    if meta["plan"] != plan:
        other = [name for name in plan if plan[name] != meta["plan"].get(name)]
        raise DataError(
            f"{where} is of a run with another {' and '.join(other)}: going on from it would not give the draws asked "
            "for. Remove the file, name another one, or ask for what it was made with."
        )
    restored = []
    for chain, state in enumerate(states):
        leaves, form = jax.tree.flatten(state)
        ours = [np.asarray(leaf) for leaf in leaves]
        theirs = [found.get(f"state/{chain}/{i}") for i in range(len(ours) + 1)]
        fits = theirs[-1] is None and all(
            t is not None and t.shape == o.shape and t.dtype == o.dtype for t, o in zip(theirs, ours, strict=False)
        )
        if not fits:
            raise DataError(
                f"{where} holds states of another form than this kernel's: it is of another model or of data of "
                "another shape. Remove the file or name another one."
            )
        restored.append(jax.tree.unflatten(form, theirs[:-1]))
    names = list(kernel.record(restored[0]))
    kept = []
    for chain in range(len(states)):
        columns = {name: found.get(f"draws/{chain}/{name}", np.zeros(0)) for name in names}
        length = min(len(column) for column in columns.values())
        kept.append([{name: column[i] for name, column in columns.items()} for i in range(length)])
    return _Run(int(meta["done"]), restored, kept, list(found.get("seconds", [])))

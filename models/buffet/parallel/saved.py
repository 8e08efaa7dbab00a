"""A file from which turns of shards go on: what shards are, what each was told, what the root drew.

The data are not in it, but their fingerprint. What was on its way to a shard has arrived when a run goes on, and turns
that were under way are begun again: where all wait for each other none is, and the draws are those of a run that never
stopped.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ....engine.files.archive import DAMAGED, opened, write_archive
from ....factors.arrays import Key
from ....factors.errors import DataError
from ....factors.switches import double_precision
from .site import Known, Plan, Site
from .telling import Told

FORMAT, VERSION = "cavity turns", 1
CHANGING = ("active", "names", "full", "log_held", "made", "kept")  # of a shard


class Saved(NamedTuple):
    """What a file holds.

    Attributes:
        sites, known, told, others: of each shard.
        mail: of each shard what each neighbour told it.
        turns: (shards,) how many each has done.
        records: (draws,) by name.
        waiting: shards in the order in which they go on.
        rounds, lost: of the root, and turns lost.
        clock: seconds so far.
    """

    sites: list[Site]
    known: list[Known]
    told: list[Told]
    others: list[Told]
    mail: list[dict[int, Told]]
    turns: np.ndarray
    records: dict[str, np.ndarray]
    waiting: list[int]
    rounds: int
    lost: int
    clock: float


def identity_of(plan: Plan, sites: Sequence[Site], key: Key, warmup: int, window: float | None) -> str:
    """A fingerprint of data, model, start and key."""
    with double_precision():
        words = np.asarray(jax.random.key_data(key)).tolist()
    parts = [repr((plan.gaussian, plan.law, plan.inner, plan.total, plan.every, words, warmup, window)).encode()]
    for site in sites:
        parts += [np.ascontiguousarray(each).tobytes() for each in (site.values, site.seen, site.held, site.active)]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def write(path: str | os.PathLike[str], identity: str, saved: Saved) -> None:
    """The file is replaced as a whole or not at all."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(_changing(saved))]
    meta = {
        "format": FORMAT,
        "version": VERSION,
        "identity": identity,
        "records": list(saved.records),
        "waiting": [int(shard) for shard in saved.waiting],
        "rounds": saved.rounds,
        "lost": saved.lost,
        "clock": saved.clock,
    }
    write_archive(path, json.dumps(meta), [*leaves, *saved.records.values()])


def read(path: str | os.PathLike[str], identity: str, begin: Saved) -> Saved:
    """What the file holds, of the form of a run that has just begun.

    Raises:
        DataError: a file that is damaged, or of another run.
    """
    where = f"The checkpoint '{os.fspath(path)}'"
    leaves, form = jax.tree.flatten(_changing(begin))
    try:
        with opened(path) as archive:
            meta: Any = archive.meta
            if not isinstance(meta, dict) or meta.get("format") != FORMAT or meta.get("version") != VERSION:
                raise DataError(f"{where} is no file of turns that this cavity reads. Give the path of another file.")
            archive.verify()
            names = [str(name) for name in meta["records"]]
            found = [archive.array(number) for number in range(len(leaves) + len(names))]
    except DAMAGED as problem:
        raise DataError(
            f"{where} is damaged or is none ({type(problem).__name__}: {problem}). Remove it to start again."
        ) from None
    if meta["identity"] != identity:
        raise DataError(
            f"{where} is of a run with other data, another model, start or key: going on from it would not give the "
            "draws asked for. Remove the file, or name another one."
        )
    for like, array in zip(leaves, found, strict=False):
        if np.asarray(like).ndim != array.ndim or np.asarray(like).dtype != array.dtype:
            raise DataError(f"{where} holds shards of another form. Remove the file to start again.")
    changed = jax.tree.unflatten(form, found[: len(leaves)])
    sites = [
        site._replace(**dict(zip(CHANGING[:4], each, strict=False)), made=int(each[4]), kept=int(each[5]))
        for site, each in zip(begin.sites, changed["sites"], strict=True)
    ]
    told = {name: [_told(each) for each in changed[name]] for name in ("told", "others")}
    mail = [{sender: _told(each) for sender, each in box.items()} for box in changed["mail"]]
    records = dict(zip(names, found[len(leaves) :], strict=True))
    ends = meta["waiting"], meta["rounds"], meta["lost"], meta["clock"]
    return Saved(sites, changed["known"], told["told"], told["others"], mail, changed["turns"], records, *ends)


def _changing(saved: Saved) -> dict[str, Any]:
    """All arrays and numbers of which a run that has just begun has as many."""
    sites = [tuple(np.asarray(getattr(site, name)) for name in CHANGING) for site in saved.sites]
    return {
        "sites": sites,
        "known": saved.known,
        "told": saved.told,
        "others": saved.others,
        "mail": saved.mail,
        "turns": saved.turns,
    }


def _told(told: Told) -> Told:
    return told._replace(square=float(told.square))

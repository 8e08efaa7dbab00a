"""Skills in files: arrays and JSON in one archive, without pickle."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

import cavity as cv  # pyright: ignore[reportMissingImports]

from ...engine.files.archive import DAMAGED, opened, write_archive
from .games import Name
from .layout import Beliefs

KIND = "skills of cavity, 1"


def write(
    path: Any, settings: dict[str, Any], told: dict[str, Any], beliefs: Beliefs, history: dict[Name, np.ndarray],
    played: dict[Name, int],
) -> None:  # fmt: skip
    """Writes what was learned: names and numbers of games as JSON, beliefs and curves as arrays."""
    players = beliefs.players
    meta = {"kind": KIND, "settings": settings, "told": told, "players": players}
    meta["joint"] = beliefs.covariance is not None
    arrays = [
        beliefs.mean,
        beliefs.variance,
        beliefs.time,
        np.array([played.get(player, 0) for player in players]),
        np.array([len(history[player]) for player in players]),
        np.concatenate([history[player] for player in players]),
    ]
    if beliefs.covariance is not None:
        arrays.append(beliefs.covariance)
    write_archive(path, json.dumps(meta), arrays)


def read(path: Any) -> tuple[dict[str, Any], dict[str, Any], Beliefs, dict[Name, np.ndarray], dict[Name, int]]:
    """What `write` wrote. Raises DataError for another file, or a damaged one."""
    try:
        with opened(path) as archive:
            archive.verify()
            meta = archive.meta
            if not isinstance(meta, dict) or meta.get("kind") != KIND:
                raise ValueError("it was not written by Skills.save")
            mean, variance, time, games, lengths, rows = (archive.array(n) for n in range(6))
            covariance = archive.array(6) if meta["joint"] else None
            players: list[Name] = meta["players"]
            number = len(players)
            whole = mean.shape == variance.shape == (number + 1,) and time.shape == games.shape == (number,)
            if not whole or rows.shape != (lengths.sum(), 3) or not (variance > 0).all() or not np.isfinite(mean).all():
                raise ValueError("its numbers are not those of its players")
            curves = np.split(rows, np.cumsum(lengths)[:-1])
    except cv.CavityError:
        raise
    except DAMAGED as problem:
        raise cv.DataError(f"{path!r} cannot be read as skills: {problem}. Write it anew with Skills.save.") from None
    history = dict(zip(players, curves, strict=True))
    beliefs = Beliefs(players, mean, variance, time, covariance)
    return meta["settings"], meta["told"], beliefs, history, dict(zip(players, games.tolist(), strict=True))

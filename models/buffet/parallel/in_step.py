"""One chain that several processes run in step: each has a file of its own, and they go on from one transition."""

from __future__ import annotations

import os

import jax
import numpy as np

from ....engine.files.archive import DAMAGED, opened
from ....engine.mcmc.run import Agree, before
from ....factors.errors import DataError
from .shards import gathered

NONE = -1  # transitions of a file that is not there, or cannot be read


def agree(due: bool, over: bool) -> tuple[bool, bool]:
    """What the first process finds, in all."""
    due, over = gathered(np.array([[due, over]], float))[0] > 0.0
    return bool(due), bool(over)


def agreed(checkpoint: str | os.PathLike[str] | None) -> Agree | None:
    """How processes agree, if there are several; the file of each is then of the latest transition that all have.

    A process that was lost may have written once less often than others, so each has its last file but one too.

    Raises:
        DataError: there is no such transition.
    """
    if jax.process_count() == 1:
        return None
    if checkpoint is None:
        return agree
    path = os.fspath(checkpoint)
    own = [_done(path), _done(before(path))]
    told = gathered(np.array([own], float)).astype(int)
    common = set.intersection(*(set(each) for each in told.tolist())) - {NONE}
    if common and own[0] != max(common):
        os.replace(before(path), path)
    elif not common and (told != NONE).any():
        raise DataError(
            f"The checkpoint '{path}' and those of the other processes are of no common transition: found "
            f"{'; '.join(str(sorted(set(each) - {NONE})) for each in told.tolist())}. One of them is gone, damaged or "
            "of another run, and shards that went on from different transitions would not be those of one chain. "
            "Remove all of them to start again."
        )
    return agree


def _done(path: str) -> int:
    """How many transitions a file has."""
    if not os.path.exists(path):
        return NONE
    try:
        with opened(path) as archive:
            return int(archive.meta["done"])
    except (*DAMAGED, TypeError):
        return NONE

"""Runs that go on from a checkpoint: the file has what they were asked for, model and data are given again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from jax.sharding import Mesh

from ..compiler.language.model import Model
from ..factors.calls import call_checked
from ..factors.errors import DataError
from .files.checkpoint import WRITTEN, keeping, read
from .files.save import digest_of_constants
from .load import program_of
from .posterior import Posterior
from .support.warn import warn


@call_checked
def resume(
    path: str | os.PathLike[str],
    model: Model | None = None,
    data: Mapping[str, Any] | None = None,
    *,
    mesh: Mesh | None = None,
    progress: bool | None = None,
    every: float = 60.0,
) -> Posterior:
    """Goes on with the inference whose checkpoint is at `path`, to the answer that it would have had.

    `model` and `data` are those of the run; in the process that began it they are known, and may be left out. All else
    that was asked for is in the file. `mesh` may have another number of devices, in another number of processes, or be
    None. The checkpoint is written on, `every` so many seconds; `progress` as of `infer`.

    Returns the posterior, as `infer`. Raises DataError for a file that is no checkpoint of this model and these data.
    """
    found = asked, _, _ = read(path)
    if model is None or data is None:
        known = WRITTEN.get(os.path.abspath(os.fspath(path)))
        if known is None:
            raise DataError(
                f"The checkpoint '{os.fspath(path)}' was begun by another process. It holds neither model nor data: "
                "give them again, cv.resume(path, model, data)."
            )
        model, data = (known[0] if model is None else model), (known[1] if data is None else data)
    if asked["model"] != repr(model) or asked["constants"] != digest_of_constants(model):
        raise DataError(
            f"The checkpoint '{os.fspath(path)}' is of another model than the one given: going on from it would mean "
            f"nothing. It was written by\n{asked['model']}"
        )
    program = program_of(asked["program"], model, progress=progress, mesh=mesh)
    kept = keeping(path, every, program.request, data, asked["seed"], found)
    posterior = program.run(data, seed=asked["seed"], keeping=kept)
    if not posterior.converged:
        warn(posterior.diagnosis)
    return posterior

"""Runs that go on from a checkpoint: the file has what they were asked for, model and data are given again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from jax.sharding import Mesh

from ...compiler.language.model import Model
from ...compiler.schedules import Schedule
from ...factors.errors import DataError, ModelError
from ..files.save import digest_of_constants, method_entry, options_of
from ..load import read_method
from ..options import Options, Request
from ..posterior import Posterior
from ..program import Program
from ..run.checkpoints import Keeping, read
from ..support.warn import warn

_WRITTEN: dict[str, tuple[Model, Mapping[str, Any]]] = {}  # by this process: models and data by path
MOST = 8  # of them that are kept


def keeping(
    path: object, every: object, request: Request, data: Mapping[str, Any], seed: int, found: Any = None
) -> Keeping:
    """What `checkpoint=` and `every=` ask for. Raises ModelError, or DataError for a folder that is not there."""
    if not isinstance(path, (str, os.PathLike)):
        raise ModelError(f"checkpoint= is the path of a file that the run is written to; found {path!r}.")
    if isinstance(every, bool) or not isinstance(every, (int, float)) or not every >= 0:
        raise ModelError(f"every= is how many seconds are between two checkpoints, at least 0; found {every!r}.")
    place = os.path.abspath(os.fspath(path))
    if not os.path.isdir(os.path.dirname(place)):
        raise DataError(
            f"The checkpoint goes to '{os.fspath(path)}', but there is no folder '{os.path.dirname(place)}'. Make it "
            "first."
        )
    _WRITTEN.pop(place, None)
    _WRITTEN[place] = request.model, data
    while len(_WRITTEN) > MOST:
        del _WRITTEN[next(iter(_WRITTEN))]
    asked = {
        "model": repr(request.model),
        "constants": digest_of_constants(request.model),
        "observed": sorted(request.observed),
        "method": method_entry(request.method),
        "sizes": {str(getattr(plate, "name", plate)): int(size) for plate, size in request.sizes.items()},
        "options": options_of(request.options),
        "seed": int(seed),
    }
    kept = Keeping(place, float(every), asked)
    if found is not None:
        _, kept.found, kept.sweeps = found
    return kept


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
        known = _WRITTEN.get(os.path.abspath(os.fspath(path)))
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
    schedule = Schedule(**asked["options"].get("schedule", {}))
    options = Options(**{**asked["options"], "schedule": schedule, "progress": progress, "mesh": mesh})
    program = Program(model, asked["observed"], read_method(asked["method"]), asked["sizes"], options)
    kept = keeping(path, every, program.request, data, asked["seed"], found)
    posterior = program.run(data, seed=asked["seed"], keeping=kept)
    if not posterior.converged:
        warn(posterior.diagnosis)
    return posterior

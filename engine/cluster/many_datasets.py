"""Many data sets by workers: a program goes to each of them once for each job, and what its runs left comes back."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...compiler.language.model import Model
from ..options import Asked, Options
from ..posterior import Posterior
from ..posteriors import Posteriors
from ..run.result import Result
from ..support.cache import Recent
from ..support.warn import warn
from .portable import packed, unpacked
from .workers import RETRIES, Workers, folder, gathered, pool_of

if TYPE_CHECKING:
    from ..program import Program


class Recipe(NamedTuple):
    """What a program is made of."""

    model: Model
    observed: tuple[str, ...]
    method: Asked
    sizes: dict[str, int]
    options: Options


_MADE: Recent[Any] = Recent(4)  # programs that this worker has, by their recipe as bytes


def run_of(recipe: bytes, data: Mapping[str, Any], seed: int, checkpoint: str, every: float) -> Result:
    """What a worker does: one run, from the checkpoint of a worker before it where there is one."""
    from ..program import Program
    from ..run.checkpoints import read
    from .resume import keeping

    def make() -> Program:
        made: Recipe = unpacked(recipe)
        return Program(made.model, made.observed, made.method, made.sizes, made.options)

    program: Program = _MADE.get(recipe, make)
    found = read(checkpoint) if os.path.exists(checkpoint) else None
    kept = keeping(checkpoint, every, program.request, data, seed, found)
    return program.result_of(data, seed=seed, keeping=kept)


class Mapped(Posteriors):
    """The posteriors of many data sets; each is made when it is asked for."""

    def __init__(self, program: Program, datas: Sequence[Mapping[str, Any]], results: Sequence[Result]) -> None:
        super().__init__()
        self._program, self._datas, self._results = program, list(datas), list(results)

    def __len__(self) -> int:
        return len(self._results)

    def _one(self, k: int) -> Posterior:
        return self._program.posterior_of(self._datas[k], self._results[k])


def over_datasets(
    program: Program,
    datas: Sequence[Mapping[str, Any]],
    seed: int,
    workers: Workers,
    retries: int = RETRIES,
    every: float = 60.0,
) -> Mapped:
    """See `Program.map`."""
    request = program.request
    sizes = {str(getattr(plate, "name", plate)): size for plate, size in request.sizes.items()}
    recipe = Recipe(request.model, tuple(sorted(request.observed)), request.method, sizes, request.options)
    sent = packed(recipe, f"The model {recipe.model.name!r}")
    for number, data in enumerate(datas):
        try:
            program.bind(data)
        except Exception as problem:
            problem.add_note(f"in data set {number}")
            raise
    with folder() as place:
        jobs = [
            (run_of, (sent, dict(data), seed, os.path.join(place, f"{number}"), every))
            for number, data in enumerate(datas)
        ]
        results = gathered(jobs, pool_of(workers, len(jobs)), retries)
    found = Mapped(program, datas, results)
    if left := [k for k in range(len(found)) if not found[k].converged]:
        warn(
            f"{len(left)} of {len(found)} inferences did not converge, the first at position {left[0]}: see `diagnosis`."
        )
    return found

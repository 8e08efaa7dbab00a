"""Many data sets by workers: a program goes to each of them once for each job, and what its runs left comes back."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ..compiler.data.labels import columns_of
from ..compiler.language.model import Model
from ..compiler.portable import packed
from ..factors.calls import methods_checked
from .cluster.workers import RETRIES, Workers, gathered, pool_of
from .options import Asked, Options, Request, seed_of
from .posterior import Posterior
from .posteriors import Posteriors
from .run.result import Result
from .support.warn import warn


class Recipe(NamedTuple):
    """What a program is made of."""

    model: Model
    observed: tuple[str, ...]
    method: Asked
    sizes: dict[str, int]
    options: Options


def recipe_of(request: Request) -> Recipe:
    """How another process makes the program of a request."""
    sizes = {str(getattr(plate, "name", plate)): size for plate, size in request.sizes.items()}
    return Recipe(request.model, tuple(sorted(request.observed)), request.method, sizes, request.options)


class Asks(Protocol):
    """A program, as far as its data sets need it."""

    request: Request

    def bind(self, data: Mapping[str, Any]) -> Any:
        """Checked data."""
        ...

    def posterior_of(self, data: Mapping[str, Any], result: Result) -> Posterior:
        """The posterior of a run that was made elsewhere."""
        ...


@methods_checked("mapped")
class Mapped(Posteriors):
    """The posteriors of many data sets; each is made when it is asked for."""

    def __init__(self, program: Asks, datas: Sequence[Mapping[str, Any]], results: Sequence[Result]) -> None:
        super().__init__()
        self._program, self._datas, self._results = program, list(datas), list(results)

    def __len__(self) -> int:
        return len(self._results)

    def _one(self, k: int) -> Posterior:
        return self._program.posterior_of(self._datas[k], self._results[k])


def over_datasets(
    program: Asks,
    run: Callable[..., Result],
    datas: Sequence[Mapping[str, Any]],
    seed: int,
    workers: Workers,
    retries: int = RETRIES,
    every: float = 60.0,
) -> Mapped:
    """See `Program.map`; `run(recipe, data, seed, checkpoint, every)` is what a worker does."""
    recipe, seed = recipe_of(program.request), seed_of(seed)
    datas = [columns_of(recipe.model, data) for data in datas]
    sent = packed(recipe, f"The model {recipe.model.name!r}")
    for number, data in enumerate(datas):
        try:
            program.bind(data)
        except Exception as problem:
            problem.add_note(f"in data set {number}")
            raise
    with tempfile.TemporaryDirectory(prefix="cavity-") as place:  # of checkpoints: all workers of this machine see it
        jobs = [
            (run, (sent, dict(data), seed, os.path.join(place, f"{number}"), every))
            for number, data in enumerate(datas)
        ]
        results = gathered(jobs, pool_of(workers, len(jobs)), retries)
    found = Mapped(program, datas, results)
    if left := [k for k in range(len(found)) if not found[k].converged]:
        many = f"{len(left)} of {len(found)} inferences"
        warn(f"{many} did not converge, the first at position {left[0]}: see its `diagnosis`.")
    return found

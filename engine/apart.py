"""Starts of a run, and points of a grid, by workers: jobs of one program, which each worker makes once for all of them.

Machine code runs the sweeps of a job, whatever else its worker has done, and every job has points of one number: so
answers depend on the workers no more than sums do on the cores that a worker has, by rounding.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from ..factors.errors import ModelError
from ..factors.switches import double_precision
from .cluster.parcels import Parcel
from .cluster.workers import Job, Lasting, Workers, check_workers, gathered, pool_of
from .data.missing_and_sparse import arrays_of
from .mapped import Recipe, recipe_of
from .mcmc.bar import progress_bar
from .options import key_of
from .posterior import Posterior
from .program import Program
from .run.result import Outputs
from .run.runner import Runner

POINTS = 2  # of a grid, in one job: of more all wait for the slowest, one alone costs half as much again
MOST = 128  # processes that have something to do
CALLS = 10**6  # as of very many: machine code runs them
WHAT = "A model with its data"


def check_apart(workers: Workers, one_run: bool) -> None:
    """ModelError for what is no pool, and for a call that has but one run to make, where there are workers."""
    check_workers(workers)
    if one_run:
        raise ModelError(
            "workers= deals random starts and points of a grid to processes, and prior=, start=, checkpoint= and mesh= "
            "are for a single run, as are rows that are streamed from files. Leave one of them out."
        )


def run_by(program: Program, data: Mapping[str, Any], seed: int, workers: Workers) -> Posterior:
    """`program.run(data, seed=seed)` by workers, where it has several starts: each is a job."""
    number = program.options.starts
    if number == 1:
        return program.run(data, seed=seed)
    here = _Starts(program, data, seed)
    sent = Parcel((_starts_of, (recipe_of(program.request), data, seed)), WHAT)
    with progress_bar(program.options.progress, "start") as show:
        found = gathered([_job(sent, k) for k in range(number)], pool_of(workers, number), show=show)
    return here.posterior(found)


class _Starts:
    """The starts of a run, each by itself, and the posterior of the best."""

    def __init__(self, program: Program, data: Mapping[str, Any], seed: int) -> None:
        key_of(seed)  # says what is wrong with it
        self.program, self.seed, self.binding = program, seed, program.bind(data)
        with double_precision():
            self.machine, _ = program.machine_and_runner(self.binding, self.binding.inputs)
            self.arrays = arrays_of(self.binding, self.machine.graph)
        self.runner = Runner(self.machine, program.options, lambda: None)

    def __call__(self, number: int) -> Any:
        """What the start of this number leaves."""
        return self.runner.start(self.arrays, self.seed, number)

    def posterior(self, found: list[Any]) -> Posterior:
        """That of the best of all starts. Raises UnsupportedError where none met a sound state."""
        result = self.runner.best_of(found)
        result.demand_sound(self.program.model.name)
        return self.program.posterior(self.machine, self.arrays, self.binding, result)


def _starts_of(recipe: Recipe, data: Mapping[str, Any], seed: int) -> _Starts:
    """What a worker makes for all starts."""
    return _Starts(Program(*_compiled(recipe)), data, seed)


class PointsApart:
    """Inferences that differ in some values, which are stacked, by a pool that lasts for several calls."""

    def __init__(self, program: Program, data: Mapping[str, Any], seed: int, workers: Workers) -> None:
        key_of(seed)
        self.sent = Parcel((_of_points, (recipe_of(program.request), data, seed)), WHAT)
        self.workers = workers
        self.pool: Lasting | None = None

    def __call__(self, values: dict[str, np.ndarray]) -> Outputs:
        """What inference finds at each point, stacked."""
        number = len(next(iter(values.values())))
        places = np.minimum(np.arange(-(-number // POINTS) * POINTS), number - 1).reshape(-1, POINTS)
        jobs = [_job(self.sent, {name: own[part] for name, own in values.items()}) for part in places]
        self.pool = self.pool or Lasting(pool_of(self.workers, MOST))
        found = gathered(jobs, self.pool)
        return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:number], *found)

    def close(self) -> None:
        """Ends the workers, until there are points again: nobody may wait for cores that they have."""
        if self.pool is not None:
            self.pool.end()
        self.pool = None


def _of_points(recipe: Recipe, data: Mapping[str, Any], seed: int) -> Callable[[dict[str, np.ndarray]], Outputs]:
    """What a worker makes for all points: inferences given values of them."""
    program = Program(*_compiled(recipe))
    binding = program.bind(data)
    machine, runner = program.machine_and_runner(binding, binding.inputs)
    arrays = arrays_of(binding, machine.graph)
    return lambda values: runner.many_values(arrays, values, seed, CALLS)


def _compiled(recipe: Recipe) -> Recipe:
    """The same program, run by machine code from the first sweep on: when NumPy gives way depends on other calls."""
    execution = "compile" if recipe.options.execution == "auto" else recipe.options.execution
    return recipe._replace(options=dataclasses.replace(recipe.options, execution=execution, progress=False))


def _job(sent: Parcel, argument: Any) -> Job:
    return _done, (sent, argument)


def _done(sent: Parcel, argument: Any) -> Any:
    """What a worker does."""
    with double_precision():
        return sent.made()(argument)

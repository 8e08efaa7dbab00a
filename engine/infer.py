"""The front door of the engine: infer, compile, explain."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from jax.sharding import Mesh

from ..compiler.data.bind import plate_sizes, sizes_of
from ..compiler.data.labels import columns_of
from ..compiler.data.sparse_matrices import is_rows
from ..compiler.explain import explain_plan
from ..compiler.language.model import Model
from ..compiler.methods import AUTO, checked_method
from ..compiler.plan import make_plan
from ..compiler.schedules import Schedule
from ..factors.calls import call_checked
from ..factors.errors import ModelError
from .answers.verdict import is_serious
from .checks.flat_priors import Proper, of_flat_priors
from .data.rules_of_arguments import bind_checked
from .evidence.integrate import explained, within
from .evidence.integrate import integrate as integrate_over
from .options import Asked, Options, checked_effort, seed_of
from .posterior import Posterior, Prior, Start
from .program import PROGRAMS, Program, arrays_given
from .support.asked_arguments import named, the_model
from .support.cache import Recent
from .support.warn import warn

if TYPE_CHECKING:
    from .cluster.workers import Workers
    from .files.checkpoint import Keeping

OF_BEST = 10.0  # seconds that accuracy="best" may spend on draws, whatever effort= says


@call_checked
def infer(
    model: Model,
    data: Mapping[str, Any],
    *,
    method: Asked = "auto",
    sizes: Mapping[str, int] | None = None,
    prior: Prior | None = None,
    seed: int = 0,
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
    restarts: int | None = None,
    acceleration: int = 10,
    trace_evidence: bool = True,
    progress: bool | None = None,
    accuracy: str = "default",
    effort: float = 1.0,
    integrate: Sequence[str] | str = (),
    execution: str = "auto",
    damping: float = 0.0,
    schedule: str | Schedule = "batches",
    start: Start | None = None,
    mesh: Mesh | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = 60.0,
    workers: Workers = None,
) -> Posterior:
    """The posterior of `model` given `data`.

    `data` maps names to arrays, or is a frame: all inputs, and any random variable or let that is observed (NaN:
    missing). `method` is "auto", "ep", "vmp", "ncvmp", `cv.power(alpha)`, `cv.ncvmp(bound=...)`, or a dictionary of
    these by variable. `sizes` gives plate sizes that nothing else tells. `prior` is what earlier data taught: a
    posterior of the same model, whose beliefs about variables on plates without data (`posterior.carried`) stand for
    its priors; or a dictionary of marginals by name. `tolerance` is the estimated distance from the fixed point, in
    posterior sds, at which a run has converged; `max_iterations` the most sweeps. `restarts` starts from several random
    beliefs and keeps the best evidence: by default from one, and up to five where classes or factors are alike by their
    priors and neither a method nor "fast" was asked for; `seed` decides all random choices. `acceleration` is the depth
    of Anderson acceleration (0 is none; at most 256 MiB). `trace_evidence=False` saves the evidence of every sweep
    where only EP runs. `progress` shows a line for runs over a second. `accuracy` says what is spent on what factorised
    beliefs get wrong. "fast" is one inference. "default" integrates up to twelve scalars given which the rest is exact
    or nearer to it, over a grid or, from four on, a design (the posterior is then a mixture), where that takes at most
    `effort` seconds (counted, not timed) and no method was asked for. "best" does so at any price, with more points,
    whatever method was asked for, and treats jointly linear-Gaussian parts and small discrete parts. Beliefs still off
    are replaced by weighted draws where these are usable. `integrate` names such scalars, at most twelve continuous;
    "auto" takes the fewest that leave the rest exact. `execution` says who runs the sweeps: "interpret" is NumPy;
    "compile" makes machine code; "auto" has NumPy run what takes it less time than compiling, until all calls together
    have taken as long. What was compiled is kept (`cv.cache`). `damping` is the share of the old that every step keeps,
    from 0 to below 1: fewer runs oscillate, fixed points stay. `schedule` is the order of the updates: "batches",
    "sequential", "in order", "residual", "double loop" (which converges where EP oscillates), or a `cv.Schedule`.
    `start` is where the run begins: a posterior of the same model, or a dictionary of marginals by name. `mesh` is a
    `jax.sharding.Mesh`, to whose devices the rows of the data are dealt. `checkpoint` is a file that the run, then one
    inference, is written to `every` so many seconds, from which `cv.resume` goes on. `workers` (see `program.map`) do
    random starts and points of a grid.

    Raises DataError for data that do not fit, ModelError for a model without meaning, and UnsupportedError for a factor
    that the method cannot serve or a run that met no sound state. Warns of a run that did not converge.
    """
    seed, of_sweeps = seed_of(seed), (tolerance, max_iterations, restarts, acceleration, trace_evidence, progress)
    program = _program(model, data, method, sizes, Options(*of_sweeps, accuracy, execution, damping, schedule, mesh))
    keeping = program.keeping_in(checkpoint, every, data, seed)
    return _inferred(program, data, seed, prior, start, integrate, checked_effort(effort), keeping, workers)


def infer_with(model: Model, data: Mapping[str, Any], arguments: Mapping[str, Any]) -> Posterior:
    """`infer` for what stands below it and knows it by name."""
    return infer(model, data, **arguments)


def _inferred(
    program: Program,
    data: Mapping[str, Any],
    seed: int,
    prior: Prior | None,
    start: Start | None,
    integrate: Sequence[str] | str,
    effort: float,
    keeping: Keeping | None,
    workers: Workers,
) -> Posterior:
    """The posterior by a program: over scalars where they are named or that is right by default, else a single run."""
    data = columns_of(program.request.model, data)
    options, method = program.request.options, program.request.method
    with of_flat_priors(program.request.model, program.observed, prior) as proper:
        bound = program.bound(data) if options.mesh is not None or any(map(is_rows, data.values())) else None
        apart = bound is not None and bound.apart
        single = apart or prior is not None or start is not None or keeping is not None
        if workers is not None:
            from .apart import check_apart, run_by

            check_apart(workers, single or options.mesh is not None)
        if integrate:
            _check_all_there(apart)
            _check_no_start(start)
            over = partial(integrate_over, program, data, integrate, seed, workers)
            return _over_scalars(program, data, seed, proper, over)
        if workers is not None and not _integrates(options.accuracy, method):
            return _warned(proper(run_by(program, data, seed, workers)))
        if single or not _integrates(options.accuracy, method):
            found = program.run(data, seed=seed, prior=prior, start=start, keeping=keeping, bound=bound)
            return _warned(proper(found))
        found = _over_scalars(program, data, seed, proper, partial(within, program, data, seed, effort, workers))
    return _warned(_right_by_default(found, seed, options.accuracy, effort))


def _check_all_there(apart: bool) -> None:
    if apart:
        raise ModelError(
            "integrate= makes a run at every point of a grid, for which every process needs all the data; here each "
            "has rows of its own, or they are streamed from files. Leave integrate= out, or give all the data."
        )


def _check_no_start(start: Start | None) -> None:
    if start is not None:
        raise ModelError(
            "start= gives the beliefs that one run begins with, and integrate= makes a run at every point of a grid. "
            "Leave one of them out."
        )


def _warned(posterior: Any) -> Any:
    """The posterior, with a warning where it did not converge."""
    if not posterior.converged:
        warn(posterior.diagnosis)
    return posterior


def _over_scalars(
    program: Program, data: Mapping[str, Any], seed: int, proper: Proper, integrated: Callable[[], Any]
) -> Any:
    """What an integration gives, where a single inference has not shown before that the posterior is improper."""
    proper.look(lambda: program.run(data, seed=seed))
    return proper(integrated())


def _right_by_default(posterior: Any, seed: int, accuracy: str, effort: float) -> Any:
    """What has its scalars integrated; where that leaves beliefs that are off, weighted draws."""
    of_draws = max(effort, OF_BEST) if accuracy == "best" else effort
    posterior._may_spend(of_draws)
    if not of_draws or not is_serious(posterior):
        return posterior
    from .evidence.reweighted import corrected  # it loads much, which few answers need

    return corrected(posterior, seed, of_draws)


def _program(
    model: Model, data: Mapping[str, Any], method: Asked, sizes: Mapping[str, int] | None, options: Options
) -> Program:
    """The program for what is asked: that of an earlier call, unless the model has grown since."""
    observed = _observed(model, data)
    declared = len(model.randoms), len(model.lets), len(model.constraints)
    key = frozenset(observed), _hashable(checked_method(method)), _hashable(plate_sizes(sizes)), options, declared

    def make() -> Program:
        bind_checked(model, arrays_given(data, options.mesh), sizes)
        return Program(model, observed, method, sizes, options)

    return programs_of(model).get(key, make)


def programs_of(model: Model) -> Recent[Program]:
    """The programs that `infer` has made for a model and still keeps."""
    return model.compiled.setdefault("programs", Recent(PROGRAMS))


def _observed(model: Model, data: Mapping[str, Any]) -> list[str]:
    """The names in the data that are not inputs."""
    the_model(model)
    named(data, " Give an empty dictionary to infer the prior.")
    return [name for name in columns_of(model, data) if name in model.randoms or name in model.lets]


def _hashable(value: Hashable | Mapping[str, Hashable]) -> Hashable:
    """A dictionary as its items."""
    return tuple(value.items()) if isinstance(value, Mapping) else value


@call_checked
def compile(
    model: Model,
    observed: Sequence[str] = (),
    *,
    method: Asked = "auto",
    sizes: Mapping[str, int] | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
    restarts: int = 1,
    acceleration: int = 10,
    trace_evidence: bool = True,
    progress: bool | None = None,
    accuracy: str = "default",
    execution: str = "compile",
    damping: float = 0.0,
    schedule: str | Schedule = "batches",
    mesh: Mesh | None = None,
) -> Program:
    """A program for `model` with the variables named in `observed` given.

    `program(data)` infers and never recompiles while shapes stay the same. `method`, `sizes`, `tolerance`,
    `max_iterations`, `restarts`, `acceleration`, `trace_evidence`, `progress`, `accuracy`, `execution`, `damping`,
    `schedule` and `mesh` are those of `infer`, but that the first data are enough to compile it where nothing else is
    asked for. Returns a `Program`. Raises DataError for an unknown name in `observed`, ModelError and UnsupportedError
    as `infer`.
    """
    return Program(
        the_model(model),
        observed,
        method,
        sizes,
        Options(
            tolerance,
            max_iterations,
            restarts,
            acceleration,
            trace_evidence,
            progress,
            accuracy,
            execution,
            damping,
            schedule,
            mesh,
        ),
    )


@call_checked
def explain(
    model: Model,
    data: Mapping[str, Any] | None = None,
    *,
    method: Asked = "auto",
    sizes: Mapping[str, int] | None = None,
    accuracy: str = "default",
    effort: float = 1.0,
) -> str:
    """What the compiler would choose, factor by factor, and why; nothing is compiled or run.

    `model`, `data`, `method`, `sizes`, `accuracy` and `effort` are those of `infer`, with its errors; without data the
    model's prior is explained. Where scalars would be integrated, the plan is that of every point, and it says which
    scalars and why. Prints the text and returns it.
    """
    options, effort = Options(accuracy=accuracy), checked_effort(effort)
    data = columns_of(the_model(model), data)
    if data:
        program = _program(model, data, method, sizes, options)
        text = explained(program, program.bind(data), effort if _integrates(accuracy, method) else 0.0)
    else:
        _observed(model, {})
        sizes_so_far = sizes_of(model, {}, sizes)
        text = explain_plan(make_plan(model, frozenset(), method=method, sizes=sizes_so_far, accuracy=options.of_plan))
    print(text)
    return text


def _integrates(accuracy: str, method: Asked) -> bool:
    """Whether scalars may be integrated that nobody named."""
    return accuracy == "best" or (accuracy == "default" and checked_method(method) == AUTO)

"""`cv.evidence`: the log evidence of a model by tempering or annealing."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ...compiler.data.bind import Binding
from ...compiler.language.model import Model
from ...compiler.symmetry import Choice, interchangeable
from ...factors.arrays import Key
from ...factors.calls import call_checked
from ...factors.errors import ModelError, UnsupportedError
from ...factors.switches import double_precision
from ..answers.inferred import Inferred
from ..answers.marginal import Marginal
from ..cluster.workers import Workers, check_workers
from ..data.rules_of_arguments import bind_checked
from ..mcmc.bar import progress_bar
from ..options import seed_of
from ..sampling.joint import Joint
from ..sampling.references import beliefs_of, known_of
from ..sampling.sample import plan
from ..support.asked_arguments import check_counts, check_seconds, list_of_names, the_model
from ..support.forked import check_not_forked
from ..support.warn import warn
from .annealing import log_weights, weighed
from .apart import by_workers
from .estimators import Estimate, estimates
from .found import Evidence
from .ladder import equalised, first_ladder, gap_of, rejections, rungs_for
from .orders import Orders, orders_of, shares_of
from .path import Path, summed
from .replicas import BLOCK, LEAST, Ladder, Program, Replicas, Trace, begun, program, resized, round_trips, run

METHODS, SWAPS = ("tempering", "annealing"), ("even-odd", "one")
SWEEPS, PARTICLES, TEMPERATURES = 1024, 256, 256
PILOT, LONGEST_PILOT = 12, 64  # rungs, and sweeps until their number is decided
FEW = 128  # sweeps, of which one replica at least is expected to go up and down
OF_COPIES = 2**30  # of a key, for copies that are made apart

Show = Callable[[int], None]


@call_checked
def evidence(
    model: Model,
    data: Mapping[str, Any],
    reference: str | Mapping[str, Marginal] = "prior",
    method: str = "tempering",
    *,
    sweeps: int | None = None,
    replicas: int | None = None,
    copies: int = 4,
    swaps: str = "even-odd",
    ladder: Sequence[float] | None = None,
    wider: float = 1.0,
    collapse: Sequence[str] = (),
    sum_out: bool = False,
    seed: int = 0,
    sizes: Mapping[str, int] | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
    max_seconds: float | None = None,
    workers: Workers = None,
) -> Evidence:
    """log p(data) of `model`, by chains on a path from a reference to the posterior.

    On the path log p_b(x) = b log p(x, data) + (1 - b) log r(x) the evidence is the ratio of the normalisers at inverse
    temperatures b = 1 and 0. The sweeps are those of `sample`. All modes count: J! of a mixture of J components alike.

    Args:
        model: the model; `data` and `sizes` as of `infer`.
        reference: "prior" tempers the likelihood given the latent variables; a posterior of `infer`, of this model or
            of it given a few rows, is the reference itself, which shortens the path, but must reach all modes.
        method: "tempering" has replicas at all temperatures, which exchange their states; "annealing" moves particles
            along the path once and weights them.
        sweeps: that are kept (1,024), after as many that adapt the ladder; of annealing, temperatures (256).
        replicas: temperatures of a ladder (12 and up, as its barrier asks for); of annealing, particles (256).
        copies: of the ladder, side by side, which tell what the answer is worth; `seed` decides all random choices.
        swaps: "even-odd" tries the exchanges of even and odd neighbours in turn, "one" that of one pair at random.
        ladder: inverse temperatures from 0 up to 1 that tempering is to keep to, in the place of `replicas`.
        wider: beliefs of the reference are taken to the power 1 / wider: of a Gaussian, times so much the variance.
        collapse: as of `sample`: variables integrated out of the moves of the others, at every temperature.
        sum_out: whether the likelihood is tempered with all discrete variables summed out, instead of given these.
        progress: True shows a bar, False none, None one on a terminal; a function is told sweeps (copies) done and all.
        max_seconds: of wall clock, of tempering: at most half adapt the ladder, sweeps after that (32 or more) count.
        workers: how many processes have a copy each at a time, or a pool as of `program.map`: copies adapt apart then.

    Returns:
        An `Evidence`: the log evidence, its standard error, and how the path went.

    Raises:
        DataError: data that do not fit.
        ModelError: arguments out of range.
        UnsupportedError: a model without a joint density, with a flat prior, or a part that no move reaches.
    """
    begin = time.monotonic()
    _check(reference, method, swaps, wider, replicas)
    _check_numbers(method, max_seconds, workers, sweeps=sweeps, replicas=replicas, copies=copies)
    rungs = _rungs(ladder, method, replicas)
    binding = bind_checked(the_model(model), data, sizes)
    marginals = reference if isinstance(reference, Inferred) else None
    limit, names = _limit(begin, max_seconds), tuple(list_of_names(collapse, "collapse="))
    asked = Asked(method, sweeps, replicas, copies, swaps == "one", wider, seed_of(seed), limit, rungs, names, sum_out)
    return _found(model, data, sizes, binding, marginals, asked, max_seconds, workers, progress)


def _check_numbers(method: str, max_seconds: float | None, workers: Workers, **counts: int | None) -> None:
    check_counts("evidence", **{name: count for name, count in counts.items() if count is not None})
    check_seconds("evidence", max_seconds)
    check_workers(workers)
    if max_seconds is not None and method == "annealing":
        raise ModelError(
            "evidence(max_seconds=, method='annealing'): particles go along the whole path or tell nothing. "
            "Set sweeps= and replicas=, or ask for method='tempering'."
        )
    if workers is not None and method == "annealing":
        raise ModelError(
            "evidence(workers=, method='annealing'): each worker has a copy of the ladder of tempering, and particles "
            "have none. Leave workers= out, or ask for method='tempering'."
        )


class Limit(NamedTuple):
    """When the ladder is adapted at the latest, and when all ends, on the clock of `time.monotonic`."""

    adapted: float = math.inf
    end: float = math.inf


def _limit(begin: float, max_seconds: float | None) -> Limit:
    return Limit() if max_seconds is None else Limit(begin + 0.5 * max_seconds, begin + max_seconds)


class Asked(NamedTuple):
    """The options of `evidence`."""

    method: str = "tempering"
    sweeps: int | None = None
    replicas: int | None = None
    copies: int = 4
    one_pair: bool = False
    wider: float = 1.0
    seed: int = 0
    limit: Limit = Limit()
    ladder: Ladder | None = None
    collapse: tuple[str, ...] = ()
    sum_out: bool = False
    or_prior: bool = False  # whether the prior is the reference where beliefs cannot count the orders of components
    copy: int | None = None  # the number of the only copy, where others are made elsewhere

    @property
    def key(self) -> Key:
        """From which all that is random comes."""
        key = jax.random.key(self.seed)
        return key if self.copy is None else jax.random.fold_in(key, OF_COPIES + self.copy)


def path_of(model: Model, binding: Binding, marginals: Mapping[str, Marginal] | None, wider: float) -> Path:
    """The path from beliefs, or from the prior where there are no `marginals`."""
    beliefs = {} if marginals is None else beliefs_of(Joint(model, binding), marginals, wider)
    return Path(model, binding, beliefs)


def evidence_of(
    model: Model,
    binding: Binding,
    marginals: Mapping[str, Marginal] | None,
    asked: Asked,
    progress: bool | Callable[[int, int], None] | None = None,
) -> Evidence:
    """The evidence of data that were checked; `marginals` are the reference, or None for the prior."""
    return _run(_ready(model, binding, marginals, alike_of(marginals), asked), asked, progress)


def alike_of(marginals: Mapping[str, Marginal] | None) -> tuple[Choice, ...]:
    """What the model of a posterior cannot tell apart."""
    return tuple(interchangeable(marginals.graph)) if isinstance(marginals, Inferred) else ()


class _Ready(NamedTuple):
    """The program on the path, and the orders of components that it names."""

    program: Program
    orders: Orders


def _ready(
    model: Model,
    binding: Binding,
    marginals: Mapping[str, Marginal] | None,
    alike: Sequence[Choice],
    asked: Asked,
) -> _Ready:
    """What is to be run; UnsupportedError where nothing is latent."""
    with double_precision():
        path = path_of(model, binding, marginals, asked.wider)
        path = summed(path) if asked.sum_out else path
        if not path.variables:
            raise UnsupportedError(
                "Nothing observed depends on a latent variable, so there is nothing to integrate: the evidence is "
                "cv.infer(...).log_evidence, in closed form."
            )
        orders = orders_of(path, alike)
        if orders.components and orders.named is None and asked.or_prior:
            path, orders = path_of(model, binding, None, asked.wider), Orders()
        named = orders.named if asked.method == "tempering" else None
        if orders.components and named is None:
            warn(
                f"The reference names the components {orders.components} in one order, and how many others the path "
                "meets is not known: up to log J! may be missing. reference='prior' counts all of them."
            )
        moves = plan(path, asked.seed, asked.collapse)
        return _Ready(program(path, moves, asked.one_pair, named), orders._replace(named=named))


def _run(ready: _Ready, asked: Asked, progress: bool | Callable[[int, int], None] | None) -> Evidence:
    run_of = _annealing if asked.method == "annealing" else _tempering
    with double_precision(), progress_bar(progress, "sweep") as show:
        found = run_of(ready.program, asked, _Counter(show))
    named = ready.orders.named
    return found if named is None else dataclasses.replace(found, ordered=ready.orders.components)


def _found(
    model: Model,
    data: Mapping[str, Any],
    sizes: Mapping[str, int] | None,
    binding: Binding,
    marginals: Mapping[str, Marginal] | None,
    asked: Asked,
    max_seconds: float | None,
    workers: Workers,
    progress: bool | Callable[[int, int], None] | None,
) -> Evidence:
    """By this process, or each copy by a worker; what is wrong is found here, before one is started."""
    if workers is None:
        return evidence_of(model, binding, marginals, asked, progress)
    marginals = getattr(marginals, "plain", marginals)
    alike = alike_of(marginals)
    ready = _ready(model, binding, marginals, alike, asked)
    known = None if marginals is None else known_of(marginals, model.randoms.keys() - binding.observed.keys())
    sent = model, data, sizes, known, alike, asked._replace(limit=Limit())
    found = by_workers(_of_copies, sent, _copy, asked.copies, max_seconds, workers, progress)
    return dataclasses.replace(found, moves=ready.program.moves)


def _of_copies(
    model: Model,
    data: Mapping[str, Any],
    sizes: Mapping[str, int] | None,
    marginals: Mapping[str, Marginal] | None,
    alike: Sequence[Choice],
    asked: Asked,
) -> tuple[_Ready, Asked]:
    """What a worker prepares for all copies."""
    return _ready(model, bind_checked(model, data, sizes), marginals, alike, asked), asked


def _copy(made: tuple[_Ready, Asked], number: int, seconds: float | None) -> Evidence:
    """One copy, by itself."""
    ready, asked = made
    return _run(ready, asked._replace(copies=1, copy=number, limit=_limit(time.monotonic(), seconds)), False)


class _Counter:
    """Counts the sweeps that are done, of those that are planned."""

    def __init__(self, show: Callable[..., None]) -> None:
        self.done, self.total, self._show = 0, 1, show

    def __call__(self, sweeps: int) -> None:
        self.done += sweeps
        self._show(self.done, max(self.total, self.done))


class _Adapted(NamedTuple):
    """A ladder that was adapted, and the replicas on it."""

    ladder: Ladder
    replicas: Replicas
    rejected: np.ndarray
    done: int  # sweeps


def _tempering(prepared: Program, asked: Asked, counter: _Counter) -> Evidence:
    sweeps = SWEEPS if asked.sweeps is None else asked.sweeps
    sweeps = BLOCK * -(-sweeps // BLOCK)
    counter.total = 2 * sweeps
    key = asked.key
    end, given = asked.limit.adapted, asked.ladder
    found = _adapted(prepared, key, asked.copies, asked.replicas, sweeps=sweeps, counter=counter, end=end, given=given)
    end = asked.limit.end
    _, trace = run(prepared, key, found.replicas, found.ladder, sweeps, found.done, (False, False), counter, end)
    told, orders = _estimated(trace, found.ladder)
    rejected = rejections(trace.log_ratio, found.ladder)
    trips, made = round_trips(trace.label), len(trace.label)
    _tell_gaps(rejected, found.ladder, trips, made)
    own = _evidence(prepared, asked, told, found.ladder, rejected, trips, made, asked.copies, np.nan, sweeps)
    with np.errstate(invalid="ignore"):  # of the reference some states may be impossible
        means, sds = trace.log_ratio.mean((0, 1)), trace.log_ratio.std((0, 1))
    return dataclasses.replace(own, log_ratio_means=means, log_ratio_sds=sds, orders=orders)


def _estimated(trace: Trace, ladder: Ladder) -> tuple[dict[str, Estimate], float]:
    """By estimator; over all orders of components, where they have names, and what these add on the last rung."""
    if trace.named is None:
        return estimates(trace.log_ratio, ladder), 0.0
    told = shares_of(trace.named)
    found = estimates(trace.log_ratio, ladder, told.weights)
    return {
        name: Estimate(one.value + told.orders[0], math.hypot(one.error, told.error)) for name, one in found.items()
    }, float(told.orders[-1])


def _tell_gaps(rejected: np.ndarray, ladder: Ladder, trips: int, sweeps: int) -> None:
    """A warning where neighbours have hardly a state in common, or no replica has gone all the way and back.

    No estimate, nor its error, knows of what lies between, or of a phase that no replica has met.
    """
    gap = gap_of(rejected, ladder)
    if gap is not None:
        warn(f"{gap} Leave ladder= out, or give more rungs there, replicas= or sweeps=.")
    elif not trips and sweeps >= FEW:
        warn(
            f"No replica went from the reference to the posterior and back in {sweeps} sweeps over {len(ladder)} "
            "inverse temperatures, so most of the posterior may not have been met, and the log evidence be off by far "
            "more than its standard error says. Give reference= a posterior of cv.infer, which shortens the path, or "
            "more sweeps=."
        )


def _annealing(prepared: Program, asked: Asked, counter: _Counter) -> Evidence:
    temperatures = TEMPERATURES if asked.sweeps is None else asked.sweeps
    particles = PARTICLES if asked.replicas is None else asked.replicas
    counter.total = 4 * LONGEST_PILOT + temperatures
    key = asked.key
    pilot = _adapted(prepared, key, 1, None, sweeps=2 * LONGEST_PILOT, counter=counter)
    ladder = equalised(pilot.ladder, pilot.rejected, temperatures + 1)
    own = jax.random.fold_in(key, pilot.done)
    weights = log_weights(prepared, own, ladder, pilot.replicas, pilot.ladder, particles, counter)
    found = weighed(weights)
    told = {"annealed importance sampling": found.estimate}
    return _evidence(prepared, asked, told, ladder, pilot.rejected, 0, temperatures, particles, found.effective)


def _adapted(
    prepared: Program,
    key: Key,
    copies: int,
    rungs: int | None,
    *,
    sweeps: int,
    counter: _Counter,
    end: float = math.inf,
    given: Ladder | None = None,
) -> _Adapted:
    """Rounds that double up to half of `sweeps` or until `end`, each on the ladder that the one before asks for.

    All on the ladder that is `given`, where one is.
    """
    rungs = rungs if given is None else len(given)
    count = PILOT if rungs is None else rungs
    now = begun(prepared, jax.random.fold_in(key, 0), copies, count)
    ladder = first_ladder(_first_ratios(prepared, now), count) if given is None else given
    done, rejected, length = 1, np.zeros(count - 1), BLOCK
    last = False
    while not last:
        over = time.monotonic() >= end
        last = over or 4 * length > max(sweeps, 2 * BLOCK)
        length = min(length, LEAST * BLOCK) if over else length
        now, trace = run(prepared, key, now, ladder, length, done, (True, last), counter, math.inf if last else end)
        done += length
        rejected = rejections(trace.log_ratio, ladder)
        if rungs is None and (length == LONGEST_PILOT or last):
            count = rungs_for(rejected, PILOT)
            now = resized(now, count) if count != len(ladder) else now
        ladder = equalised(ladder, rejected, count) if given is None else given
        length *= 2
    return _Adapted(ladder, now, rejected, done)


def _first_ratios(prepared: Program, now: Replicas) -> np.ndarray:
    path = prepared.path
    ratio = jax.jit(jax.vmap(jax.vmap(lambda x: path.log_ratio(x, path.arrays))))
    return np.asarray(ratio(now.values)).ravel()


def _evidence(
    prepared: Program,
    asked: Asked,
    told: dict[str, Estimate],
    ladder: Ladder,
    rejected: np.ndarray,
    trips: int,
    sweeps: int,
    copies: int,
    effective: float,
    wanted: int | None = None,
) -> Evidence:
    best = next(iter(told.values()))
    return Evidence(
        best.value,
        best.error,
        asked.method,
        told,
        ladder,
        rejected,
        trips,
        float(rejected.sum()),
        sweeps,
        copies,
        effective,
        prepared.moves,
        tuple(prepared.path.beliefs),
        sweeps if wanted is None else wanted,
    )


def _rungs(ladder: Sequence[float] | None, method: str, replicas: int | None) -> Ladder | None:
    """A ladder that was given, as an array; ModelError for what is none."""
    if ladder is None:
        return None
    rungs = np.asarray(ladder, float)
    rising = rungs.ndim == 1 and rungs.size > 1 and bool(np.all(np.diff(rungs) > 0.0))
    if not rising or rungs[0] != 0.0 or rungs[-1] != 1.0:
        raise ModelError(
            f"evidence(ladder={ladder!r}): inverse temperatures rise from 0, the reference, to 1, the posterior, as in "
            "[0.0, *np.geomspace(0.001, 1.0, 20)]."
        )
    if method == "annealing" or replicas not in (None, rungs.size):
        raise ModelError(
            f"evidence(ladder=, method={method!r}, replicas={replicas!r}): a ladder is that of tempering, with a "
            "replica at each of its inverse temperatures. Leave the others out."
        )
    return rungs


def _check(reference: object, method: object, swaps: object, wider: object, replicas: object) -> None:
    check_not_forked("A path of densities")
    if replicas == 1:
        raise ModelError("evidence(replicas=1): the path has two ends; give 2 temperatures or more, or 2 particles.")
    if not isinstance(reference, Inferred) and not (isinstance(reference, str) and reference == "prior"):
        raise ModelError(
            f"evidence(reference={reference!r}): the reference is 'prior', or a posterior of this model from cv.infer."
        )
    for name, asked, known in (("method", method, METHODS), ("swaps", swaps, SWAPS)):
        if not isinstance(asked, str) or asked not in known:
            raise ModelError(f"evidence({name}={asked!r}): it is {' or '.join(map(repr, known))}.")
    if isinstance(wider, bool) or not isinstance(wider, (int, float, np.number)) or not 0.0 < wider < np.inf:
        raise ModelError(f"evidence(wider={wider!r}): it is a positive number; 2.0 doubles the variance of a Gaussian.")

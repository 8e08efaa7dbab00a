"""`cv.sample`: Markov chains of a model, compiled from its graph."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ...compiler.language.model import Model
from ...compiler.structure import LARGEST, digest
from ...factors.arrays import Key
from ...factors.calls import call_checked
from ...factors.errors import ModelError, UnsupportedError
from ...factors.switches import double_precision
from ..cluster.workers import Workers, check_workers
from ..data.rules_of_arguments import bind_checked
from ..mcmc.apart import run_apart
from ..mcmc.kernel import Kernel, Together
from ..mcmc.run import Chains, run
from ..mcmc.structure import Asked, begun, structures_of
from ..options import seed_of
from ..support.asked_arguments import check_counts, check_seconds, list_of_names, named, the_model
from ..support.cache import Recent
from ..support.forked import check_not_forked
from .choose import Drawn, in_each_state, moves_of, starter
from .choose import start as anywhere
from .collapse import collapsed
from .conditionals.nuts import has_blackjax
from .draws import Samples
from .forward import predicted
from .given_starts import starts_of
from .joint import Joint, Values
from .move import Move, Stage, swept
from .restructure import acceptance, structure_move
from .variational import LOG_WEIGHT, VariationalKernel, shares_taken, variational_moves
from .windows import windows

TRIED = 3  # points at which conditionals are tried
PREDICTED = 2**31  # of the seed, for what is drawn from the model itself
BLOCK = 50  # transitions between two looks at the clock
MOST = 200_000  # numbers that a block keeps
MOST_KEPT = 2**26  # bytes of data that are kept with what was compiled for them


@call_checked
def sample(
    model: Model,
    data: Mapping[str, Any],
    draws: int = 1000,
    chains: int = 4,
    seed: int = 0,
    *,
    warmup: int | None = None,
    kernel: str | VariationalKernel = "gibbs",
    collapse: Sequence[str] = (),
    moves: Asked | None = None,
    start: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    max_seconds: float | None = None,
    workers: Workers = None,
) -> Samples:
    """Draws from the posterior of `model` given `data` by Gibbs sampling that is compiled from the graph.

    Each variable is drawn from its conditional given all others where that is known: of its own family, from the table
    of its states, linear-Gaussian parts and chains jointly, logistic, probit, Student-t and Laplace factors by an
    auxiliary variable; the rest by slice sampling or NUTS (BlackJAX, extra `mcmc`). `Samples.explain()` says which.

    Args:
        model: the model; `data` and `sizes` as of `infer`.
        draws: kept of each of so many `chains`, after `warmup` transitions (half as many, at least 200, by default).
        seed: decides all random choices.
        kernel: "gibbs", or "variational": proposals by steps of variational message passing (`VariationalKernel`).
        collapse: names of variables with a conditional of their own family, integrated out of the others, drawn last.
        moves: by the name of an input or a discrete variable, how it is drawn too: a move of `cv.moves` or a list of
            them, whose first has its prior. Under several names, as a tuple, what changes together.
        start: a posterior of `infer`, from whose beliefs each chain draws where it begins, or values or marginals by
            name; the rest begins at random, where components of a mixture may stay empty for long.
        progress: True shows a bar, False none, None one on a terminal; a function is told blocks (chains) done and all.
        checkpoint: a file from which the same call goes on; written each minute, in the end, and at Ctrl-C.
        max_seconds: of wall clock, compiling among them: chains end at the next look at the clock, each 50 sweeps, with
            the first draws of a run without it that has the same `seed` and `warmup`.
        workers: how many processes have a chain each at a time, or a pool as of `program.map`; see `run_apart`.

    Returns:
        `Samples`: draws by name of all variables but data, and of named expressions, predictions among them.

    Raises:
        DataError: data that do not fit, or a checkpoint of another run.
        ModelError: counts out of range, names of what is not there, or `max_seconds` that end within the warm-up.
        UnsupportedError: a model without a joint density, or a part of it that no move reaches.
    """
    begin, warmup = time.monotonic(), _warmup(draws, chains, warmup, max_seconds, workers)
    seed, names = seed_of(seed), list_of_names(collapse, "collapse=")
    call = _Call(model, data, sizes, {} if moves is None else moves, seed, warmup, names, kernel, start)
    with double_precision():
        joint, ready = _prepared(call)
        found = _Found({}, {}, (), 0.0)
        if ready is not None:
            left = None if max_seconds is None else max(1e-3, max_seconds - (time.monotonic() - begin))
            asked = {"chains": chains, "progress": progress, "checkpoint": checkpoint, "max_seconds": left}
            found = _chains(joint, ready, draws, seed, warmup, partial(call.runner(joint, ready, workers), **asked))
            _check_warm(found, warmup, max_seconds, checkpoint)
        return _samples(joint, found, (chains, draws), seed, warmup)


class _Call(NamedTuple):
    """What a sampler is made of, here or by a worker: arguments of `sample`."""

    model: Model
    data: Mapping[str, Any]
    sizes: Mapping[str, int] | None
    moves: Asked
    seed: int
    warmup: int
    collapse: Sequence[str]
    kernel: str | VariationalKernel
    start: Mapping[str, Any] | None

    def runner(self, joint: Joint, ready: _Ready, workers: Workers) -> Callable[..., Chains]:
        """What runs chains, here or by workers; of a posterior only the marginals go to these."""
        if workers is None:
            return partial(run, ready.kernel)
        known = None if self.start is None else {n: self.start[n] for n in joint.variables if n in self.start}
        return partial(run_apart, _made, (self._replace(start=known),), workers=workers)


def _prepared(call: _Call) -> tuple[Joint, _Ready | None]:
    """The joint density and its sampler; None where nothing is latent that data depend on."""
    variational = kernel_of(call.kernel, call.moves)
    joint = joint_of(call.model, call.data, call.sizes, call.moves, call.seed)
    joint = joint.bare() if variational else joint
    if not joint.variables and not joint.structures:
        return joint, None
    return joint, _started(_kept(joint, call.seed, call.warmup, call.collapse, variational), joint, call.start)


def _made(call: _Call) -> Callable[[float | None], Kernel]:
    """The kernel of a worker, however many seconds it has."""
    ready = _prepared(call)[1]
    assert ready is not None  # who asks has looked
    return lambda seconds: ready.kernel


def _warmup(draws: int, chains: int, warmup: int | None, max_seconds: float | None, workers: Workers) -> int:
    """The transitions of the warm-up, by default a share of the draws; ModelError for counts that are none."""
    check_counts("sample", draws=draws, chains=chains, warmup=1 if warmup is None else warmup)
    check_seconds("sample", max_seconds)
    check_workers(workers)
    return max(200, draws // 2) if warmup is None else warmup


def _samples(joint: Joint, found: _Found, asked: tuple[int, int], seed: int, warmup: int) -> Samples:
    """The draws with what the model itself predicts, the warm-up apart; `asked` for so many chains and draws."""
    chains, draws = asked
    shape = chains, min((array.shape[1] for array in found.draws.values()), default=warmup + draws)
    key = jax.random.fold_in(jax.random.key(seed), PREDICTED)
    flat = found.draws | predicted(joint, found.draws, shape, key)
    kept = {name: array[:, warmup:] for name, array in flat.items()}
    before = {name: array[:, :warmup] for name, array in flat.items()}
    told = {name: array[:, warmup:] for name, array in found.told.items()}
    taken = acceptance(joint, told) | shares_taken(found.moves, told)
    names = joint.density.binding.names
    return Samples(kept, before, found.moves, found.seconds, joint.dims(), taken, draws, told.get(LOG_WEIGHT), names)


def _check_warm(found: _Found, warmup: int, max_seconds: float | None, checkpoint: object) -> None:
    """ModelError where time was over before the first draw that counts."""
    made = min(array.shape[1] for array in found.draws.values())
    if made <= warmup:
        further = "" if checkpoint is None else " The checkpoint has what was made: the same call goes on from there."
        raise ModelError(
            f"sample(max_seconds={max_seconds}): time was over after {made} of the {warmup} sweeps of the warm-up, so "
            f"that there is no draw yet. Give more seconds, or a smaller warmup=.{further}"
        )


def joint_of(model: Model, data: Mapping[str, Any], sizes: Mapping[str, int] | None, moves: Asked, seed: int) -> Joint:
    """The joint density of a model, and of the structures that moves change."""
    check_not_forked("A sampler")
    named(data)
    with double_precision():
        structures = structures_of(the_model(model), data, sizes, moves)
        data = begun(data, structures, seed) if structures else data
    return Joint(model, bind_checked(model, data, sizes), structures=structures)


class _Found(NamedTuple):
    """All draws of chains by name, the warm-up first, and what moves of structures proposed; moves, CPU seconds."""

    draws: dict[str, np.ndarray]
    told: dict[str, np.ndarray]
    moves: tuple[Move, ...]
    seconds: float


def chains_of(joint: Joint, draws: int, chains: int, seed: int, warmup: int) -> _Found:
    """Markov chains of the latent variables of a joint density, the warm-up first; see `sample`."""
    ready = _ready(joint, seed, warmup, ())
    return _chains(joint, ready, draws, seed, warmup, partial(run, ready.kernel, chains=chains))


def _chains(joint: Joint, ready: _Ready, draws: int, seed: int, warmup: int, runner: Callable[..., Chains]) -> _Found:
    """Chains of what is ready, by `runner(key, blocks)`."""
    found = runner(jax.random.key(seed), -(-(warmup + draws) // ready.block))
    chains = len(found.states)
    flat = {n: a.reshape(chains, -1, *a.shape[3:])[:, : warmup + draws] for n, a in found.draws.items()}
    records = [one.told for one in joint.structures] + [name for move in ready.moves for name in move.records]
    told = {name: flat.pop(name) for name in dict.fromkeys(records)}
    return _Found(flat, told, ready.moves, float(found.seconds[:, -1].sum()))


class _Ready(NamedTuple):
    """The moves of a sweep, and the chain that they make, in blocks of so many transitions; what begins it anywhere."""

    moves: tuple[Move, ...]
    kernel: Kernel
    block: int
    begin: Callable[..., Any]


def _started(ready: _Ready, joint: Joint, start: Mapping[str, Any] | None) -> _Ready:
    """The same, its chains begun at what `start` has."""
    if start is None:
        return ready
    return ready._replace(kernel=ready.kernel._replace(init=partial(ready.begin, drawn=starts_of(joint, start))))


PLANS: Recent[tuple[Move, ...]] = Recent(8)  # those used last
KEPT: Recent[tuple[Kernel, int, Callable[..., Any]]] = Recent(8)


def kernel_of(asked: str | VariationalKernel, moves: Asked | None) -> VariationalKernel | None:
    """The kernel that `kernel=` asks for, None for Gibbs sampling; ModelError for what is none."""
    if isinstance(asked, str) and asked == "gibbs":
        return None
    found = VariationalKernel() if isinstance(asked, str) and asked == "variational" else asked
    if not isinstance(found, VariationalKernel):
        raise ModelError(f"sample(kernel={asked!r}): it is 'gibbs', 'variational' or a cv.VariationalKernel.")
    if moves:
        raise UnsupportedError(
            f"sample(kernel={asked!r}, moves=...): structures are moved beside Gibbs sampling alone. Leave kernel= out."
        )
    return found


def _kept(
    joint: Joint, seed: int, warmup: int, collapse: Sequence[str], variational: VariationalKernel | None
) -> _Ready:
    """What is ready, kept between calls with the same model and the same data.

    Values of data decide which moves there are, and are constants in some: a chain never serves other data. Structures
    bring functions of their users, which cannot be compared. Large data are not kept alive for another call.
    """
    size = sum(getattr(own, "nbytes", 0) for own in joint.contents.data.values())
    identity = "" if joint.structures or size > MOST_KEPT else _identity(joint, warmup, collapse, variational)
    if not identity:
        return _ready(joint, seed, warmup, collapse, variational)
    moves = PLANS.get((identity, seed, has_blackjax()), lambda: plan(joint, seed, collapse, variational))
    told = tuple((move.names, move.how, move.exact) for move in moves)
    return _Ready(moves, *KEPT.get((identity, told), lambda: _kernel(joint, moves, warmup, identity)))


def _ready(
    joint: Joint, seed: int, warmup: int, collapse: Sequence[str], variational: VariationalKernel | None = None
) -> _Ready:
    moves = plan(joint, seed, collapse, variational)
    return _Ready(moves, *_kernel(joint, moves, warmup, _identity(joint, warmup, collapse, variational)))


def _identity(joint: Joint, warmup: int, collapse: Sequence[str], variational: VariationalKernel | None) -> str:
    kernel = () if variational is None else (variational.identity,)
    return identity_of(joint, "sample", warmup, list(collapse), *kernel)


def plan(
    joint: Joint, seed: int = 0, collapse: Sequence[str] = (), variational: VariationalKernel | None = None
) -> tuple[Move, ...]:
    """The moves of a sweep."""
    if variational is not None:
        return variational_moves(joint, variational, seed, collapse)
    left, others = plan_around(joint, seed, collapse)
    return (*(structure_move(left, one) for one in joint.structures), *others)


def plan_around(joint: Joint, seed: int = 0, collapse: Sequence[str] = ()) -> tuple[Joint, tuple[Move, ...]]:
    """The joint density of what is not collapsed, and all moves of a sweep but those of structures."""
    key = jax.random.key(seed)
    starts = [anywhere(joint, jax.random.fold_in(key, i)) for i in range(TRIED)]
    starts += in_each_state(joint, starts[0], key)
    if collapse:  # an integral over variables given an auxiliary one cannot sum that out
        joint = joint.unaugmented()
    left, last = collapsed(joint, collapse, starts, key)
    return left.unaugmented(), (*moves_of(left, starts, key), *last)


class _Chain(NamedTuple):
    """The state of a chain: values, what its moves have learned, transitions done, and the draws of the last block."""

    values: Values
    learned: tuple[PyTree, ...]
    done: Any
    kept: Values


def _kernel(
    joint: Joint, moves: tuple[Move, ...], warmup: int, identity: str
) -> tuple[Kernel, int, Callable[..., Any]]:
    """A transition is a block of sweeps; its record are the draws of all of them."""
    places = [place for one in joint.structures for place in one.places]
    records = dict.fromkeys(name for move in moves for name in move.records)
    kept_names = (
        *joint.variables,
        *(place.name for place in places),
        *(one.told for one in joint.structures),
        *records,
    )
    total = sum(int(np.prod(joint.contents.shape(variable))) for variable in joint.variables.values())
    total += sum(int(np.prod(place.shape)) for place in places)
    block = max(1, min(BLOCK, MOST // max(total, 1)))
    schedule = windows(warmup)
    given = joint.arrays

    def sweep(key: Key, values: Values, learned: tuple, at: Any, data: Any) -> tuple[Values, tuple]:
        row = jnp.minimum(at, warmup - 1)
        stage = Stage(at < warmup, schedule.slow[row], schedule.closes[row], at == warmup - 1)
        return swept(key, moves, values, learned, data, stage)

    def one(key: Key, chain: _Chain, data: Any) -> _Chain:
        def again(now: tuple, i: Any) -> tuple[tuple, Values]:
            values, learned, done = now
            values, learned = sweep(jax.random.fold_in(key, i), values, learned, done, data)
            return (values, learned, done + 1), {name: values[name] for name in kept_names}

        now, kept = jax.lax.scan(again, chain[:3], jnp.arange(block))
        return _Chain(*now, kept)

    start_of = starter(joint, moves)
    together = jax.jit(jax.vmap(one, in_axes=(0, 0, None)))
    single = jax.jit(one)

    def init(key: Key, drawn: Drawn | None = None) -> _Chain:
        values = {**start_of(key, drawn), **{name: jnp.zeros(()) for name in records}}
        learned = tuple(move.init(values, given) for move in moves)
        kept: Values = {name: jnp.zeros((block, *jnp.shape(values[name])), values[name].dtype) for name in kept_names}
        return _Chain(values, learned, jnp.zeros((), int), kept)

    def split(batch: _Chain) -> list[_Chain]:
        arrays = jax.device_get(batch)
        return [jax.tree.map(lambda a, c=c: a[c], arrays) for c in range(len(arrays.done))]

    kernel = Kernel(
        init,
        lambda key, chain: single(key, chain, given),
        lambda chain: chain.kept,
        together=Together(
            lambda chains: jax.tree.map(lambda *each: jnp.stack(each), *chains),
            lambda keys, batch: together(keys, batch, given),
            split,
        ),
        identity=identity,
    )
    return kernel, block, init


def identity_of(joint: Joint, call: str, *asked: Any) -> str:
    """Of what was asked of a call on a joint density with its data and moves; empty where it cannot be told."""
    own = joint.contents
    given = {name: _content(array) for name, array in own.data.items()}, own.holes, own.given
    moved = [(one.names, repr(one.moves)) for one in joint.structures]
    found = digest(call, own.model, joint.sizes, *given, *asked, *moved)
    return "" if found is None else found.hex()


def _content(value: Any) -> Any:
    """What large arrays are told by, whatever their size; `digest` reads all else."""
    if getattr(value, "nbytes", 0) <= LARGEST or not hasattr(value, "dtype"):
        return value
    array = np.ascontiguousarray(value)
    return "array", array.dtype.str, array.shape, hashlib.sha256(array.data.cast("B")).hexdigest()

"""The jitted functions of one machine: its inferences from several starts, and the best of them.

What is compiled does at most so many sweeps from a carry: see `chunks`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Int, PyTree, UInt32

from ...compiler.data.keys import ONE_START
from ...factors.arrays import Array
from ...factors.switches import double_precision
from ..options import Options, key_of
from ..support.cache import Recent
from ..support.compiled import Function, function, types_of
from .bound_plan import Data
from .chunks import DONE, Done, Watched, in_chunks, strong
from .control.carry import Carry, Settings
from .control.result_codes import RUNNING, preferred
from .fixed_points import OTHERS, modes_of, without_others
from .given_start import given_start
from .in_sweeps import Sweeping
from .machine import Machine
from .one_pass import direct
from .progress import Progress, Timing
from .result import Ended, Outputs, Result
from .start import Lane

if TYPE_CHECKING:
    from .places.carried_over import Told
    from .places.place import Arrays, Keeping, Place

RECORDED = 2**17  # sweeps of which a trace is kept, the first ones of a run that has more
BATCHES = 8  # sizes of batches, and layouts of sparse data, that are kept for each set of shapes

Carries: TypeAlias = Carry | Done  # of all restarts, with one more axis in front
KeyWords: TypeAlias = UInt32[Array, " 2"]  # of `options.key_of`
Given: TypeAlias = tuple[Data, Data, KeyWords]  # stacked data, common data, key
Chunk: TypeAlias = Callable[..., tuple[Carries, Outputs]]


class Made(NamedTuple):
    """The chunk for data of given shapes, and how many numbers the data have."""

    function: Function
    numbers: int


def _no_checkpoint() -> str:
    return "Nothing was kept of the run: checkpoint='file' writes it down, every=60 seconds."


class OneProcess:
    """What places of a run have in common that no other process shares."""

    def agreed(self, number: int) -> int:
        """There is but one process."""
        return number

    def placed(self, data: Arrays) -> Arrays:
        """The data, where the run reads them."""
        return data

    def inside(self, data: Arrays) -> Arrays:
        """The data inside of the program."""
        return data

    def outputs(self, outputs: Outputs) -> Outputs:
        """What a run leaves, as it is elsewhere."""
        return outputs

    def told(self, found: Any) -> Any:
        """What a checkpoint has of a carry, as it is elsewhere."""
        points = {name: own for name, own in found.points.items() if name != "places"}
        return jax.tree.map(np.asarray, found._replace(points=points))

    def together(self, last_words: Callable[[], str]) -> AbstractContextManager[None]:
        """There is no other process."""
        return nullcontext()


class Here(OneProcess):
    """On the default device."""

    mesh = None

    def shardings(self, given: tuple[Any, ...], form: PyTree) -> None:
        """There is but one device."""
        return

    def blank(self, form: PyTree[jax.ShapeDtypeStruct]) -> PyTree[np.ndarray]:
        """Zeros of this form, for the place of a carry that is not there yet."""
        return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), form)


class _Kept:
    """Watches a run, and writes it to a file when that is due, in all processes at once."""

    def __init__(self, watcher: Progress, keeping: Keeping, told: Callable[[Carries], Told], place: Place) -> None:
        self.watcher, self.keeping, self.told, self.place = watcher, keeping, told, place

    def __call__(self, carry: Watched) -> None:
        self.watcher(carry)
        running = np.any(np.asarray(carry.code) == RUNNING)
        if running and isinstance(carry, Carry) and self.place.agreed(int(self.keeping.due)):
            self.keeping.write(self.place.told(self.told(carry)), int(np.max(np.asarray(carry.iteration))))


class Runner:
    """The jitted functions of one machine."""

    def __init__(
        self, machine: Machine, options: Options, on_trace: Callable[[], None], place: Place | None = None
    ) -> None:
        self.machine, self.options, self.place = machine, options, place or Here()
        monotone = not machine.ep_blocks
        self.settings = Settings(
            options.tolerance,
            options.max_iterations,
            0 if options.updates.loop == "double" else options.acceleration,  # it has conjugate gradients of its own
            monotone,
            machine.climbs,
            options.trace_evidence or machine.climbs,
            min(options.max_iterations, RECORDED),
            float(options.damping),
        )
        self.on_trace = on_trace
        self._made: Recent[Made] = Recent(BATCHES)

    def __call__(
        self,
        data: Data,
        seed: object,
        progress: bool | None,
        planning: float = 0.0,
        keeping: Keeping | None = None,
    ) -> Result:
        """One inference, the plan of which took so many seconds, with a file to be kept in or none.

        Raises ModelError for a seed out of range.
        """
        with Progress(progress, max(self.machine.sizes.values(), default=0)) as watcher:
            kept: dict[str, Any] = {} if keeping is None else {"keeping": keeping}
            outputs, interpreted = self._run(({}, data, key_of(seed)), watcher, many=False, **kept)
        return self._result(outputs, watcher.timing(interpreted, planning))

    def _result(self, outputs: PyTree, timing: Timing | None) -> Result:
        """The best start of a run, with the distinct fixed points of all."""
        outputs, others = without_others(outputs)
        modes = () if others is None else modes_of(outputs, others, self.settings.monotone)
        return Result(outputs, self.settings, timing, modes=modes)

    def start(self, data: Data, seed: object, number: int) -> PyTree:
        """What one of the starts leaves, stacked: on both sides where a sign is hard to see. See `best_of`."""
        given = {}, {**data, ONE_START: np.asarray(number, np.int32)}, key_of(seed)
        outputs, others = without_others(self._run(given, Progress(False), many=False)[0])
        if others is None:
            left = {name: own for name, own in outputs.items() if name not in ("restart", "all_evidence")}
            others = jax.tree.map(lambda leaf: np.asarray(leaf)[None], left)
        return jax.tree.map(np.asarray, others)

    def best_of(self, starts: Sequence[PyTree]) -> Result:
        """The result of all starts, from what each of them left, in order."""
        every = jax.tree.map(lambda *leaves: np.concatenate(leaves), *starts)
        with double_precision():
            return self._result(self._best(every, every["key"], keep=True), None)

    def many(self, data: Data, seed: object) -> Outputs:
        """Inferences with stacked data: the outputs, stacked."""
        return self.many_values({}, data, seed)

    def many_values(
        self, data: Data, values: Data, seed: object, calls: int = 1, watcher: Progress | None = None
    ) -> Outputs:
        """Inferences that differ in `values` alone, which are stacked: the outputs, stacked.

        About so many `calls` will be made for one answer, which decides who runs them; `watcher` watches several of
        them and shows what it is wanted to.
        """
        watcher = Progress(False) if watcher is None else watcher
        with watcher.sweeping():
            outputs, watcher.interpreted = self._run((values, data, key_of(seed)), watcher, many=True, calls=calls)
        return jax.tree.map(np.asarray, outputs)

    def form(self, data: Data) -> PyTree[jax.ShapeDtypeStruct]:
        """Shapes and types of the outputs of one inference."""
        given = {}, data, key_of(0)
        return without_others(jax.eval_shape(self._chunk, *given, jax.eval_shape(self._begin, *given), True, 0)[1])[0]

    def _run(
        self, given: Given, watcher: Progress, many: bool, calls: int = 1, keeping: Keeping | None = None
    ) -> tuple[Outputs, bool]:
        """The outputs, stacked where there are many, and whether NumPy computed them."""
        with self.place.together(_no_checkpoint if keeping is None else keeping.last_words):
            return self._run_there(given, watcher, many, calls, keeping)

    def _run_there(
        self, given: Given, watcher: Progress, many: bool, calls: int, keeping: Keeping | None
    ) -> tuple[Outputs, bool]:
        given = given[0], dict(self.place.placed(given[1])), given[2]
        made = self._made.get((many, calls, types_of(given)), lambda: self._make(given, watcher, many, calls))

        def task(chunk: Chunk) -> Outputs:
            # What is counted to choose who runs it must not depend on a clock.
            steady = made.function.interpreted
            carry, begun, watch = self.place.blank(made.function.form), None, watcher  # a carry that nobody reads
            if keeping is not None:
                watch = _Kept(watcher, keeping, self._told(given, made.function.form), self.place)
                if keeping.found is not None:
                    carry, begun = self._carried(given, made.function.form, keeping), keeping.sweeps
            advance = partial(chunk, *given)
            return in_chunks(advance, carry, made.numbers, watch, steady, self.place.agreed, begun)

        trace = partial(self._traced, given, many)
        return self.place.outputs(made.function.run(task, trace, watcher.stage)), made.function.interpreted

    def _make(self, given: Given, watcher: Progress, many: bool, calls: int) -> Made:
        """The chunk for arguments of these shapes."""
        structure = self.machine, self.settings, self.options.starts, many, self.place.mesh
        trace, execution = partial(self._traced, given, many), self.options.execution_of_sweeps
        made = function("run", structure, given, trace, execution, watcher.stage, calls)
        numbers = sum(np.size(array) for array in jax.tree.leaves(given))
        return Made(made, numbers)

    def _traced(self, given: Given, many: bool) -> tuple[jax.stages.Traced, PyTree[jax.ShapeDtypeStruct]]:
        """The chunk, traced, and the form of a carry."""
        begin, chunk = partial(self._begin, trace=1 if many else None), partial(self._chunk, trace=1 if many else None)
        if many:
            begin, chunk = jax.vmap(begin, (0, None, None)), jax.vmap(chunk, (0, None, None, 0, None, None))
        form = jax.eval_shape(begin, *given)
        # Each carry goes into the next: it may be a quarter of a gigabyte.
        if (on := self.place.shardings(given, form)) is None:
            chunk = jax.jit(chunk, donate_argnums=3)
        else:
            inside = *on.given, on.carry, on.whole, on.whole
            chunk = jax.jit(chunk, donate_argnums=3, in_shardings=inside, out_shardings=(on.carry, None))
        return chunk.trace(*given, self.place.blank(form), np.asarray(True), np.asarray(0, np.int32)), form

    def _told(self, given: Given, form: PyTree) -> Callable[[Carries], Told]:
        """What a checkpoint has of carries of this form."""
        on = self.place.shardings(given, form)
        where: Any = {} if on is None else {"in_shardings": (*on.given, on.carry)}
        jitted = jax.jit(self._as_told, **where)
        return lambda carry: jitted(*given, carry)

    def _carried(self, given: Given, form: PyTree, keeping: Keeping) -> Carries:
        """The carry that a checkpoint has. Raises DataError where it has that of another run."""
        here = Runner(dataclasses.replace(self.machine, dealt=None), self.options, lambda: None)
        data = {name: self._whole_form(name, own) for name, own in given[1].items()}
        wanted = jax.eval_shape(
            here._as_told, given[0], data, given[2], jax.eval_shape(here._begin, given[0], data, given[2])
        )
        points = {name: own for name, own in wanted.points.items() if name != "places"}
        found = keeping.told(wanted._replace(points=points))
        on = self.place.shardings(given, form)
        where: Any = {} if on is None else {"in_shardings": (*on.given, on.whole), "out_shardings": on.carry}
        return jax.jit(self._as_carried, **where)(*given, found)

    def _whole_form(self, name: str, array: Any) -> Any:
        """The form of data without the padding of devices."""
        dealt = self.machine.dealt
        if dealt is None or name not in dealt.lengths or not hasattr(array, "shape"):
            return array
        axis, shape = dealt.axes[name], array.shape
        shape = (*shape[:axis], dealt.lengths[name], *shape[axis + 1 :])
        return jax.ShapeDtypeStruct(shape, array.dtype)

    # traced functions: keys are per restart, data are arguments and never closures ------------------------------------

    def _lanes(self, key: KeyWords, data: Data) -> Lane:
        """The starts, side by side: as many as asked for, each on both sides where a sign is hard to see.

        One, where the data say at which beliefs to begin.
        """
        if (given := given_start(data)) is not None:
            words = key if given.key is None else given.key
            own = jax.random.wrap_key_data(jnp.asarray(words))
            return Lane(own[None], None, jnp.ones(1))
        restarts, sides = self.options.starts, 2 if self.machine.mirrored else 1
        index = jnp.arange(restarts * sides)
        if (number := data.get(ONE_START)) is not None:
            index = number * sides + jnp.arange(sides)
        keys = jax.random.split(jax.random.wrap_key_data(jnp.asarray(key)), restarts)[index // sides]
        return Lane(keys, index >= sides if restarts > 1 else None, 1.0 - 2.0 * (index % sides))

    def _settings(self, trace: int | None) -> Settings:
        return self.settings if trace is None else self.settings._replace(trace=trace)

    def _begin(self, values: Data, data: Data, key: KeyWords, trace: int | None = None) -> Carries:
        """The carries of all restarts before their first sweep: only their form is ever asked for."""

        def one(lane: Lane) -> Carries:
            if self.machine.direct:
                return DONE
            inside = dict(self.place.inside({**data, **values}))
            return Sweeping(self.machine, self._settings(trace), inside, lane, True).begin()

        return self._over_restarts(one, self._lanes(key, data))

    def _chunk(
        self,
        values: Data,
        data: Data,
        key: KeyWords,
        carry: Carries,
        fresh: Bool[Array, ""],
        limit: Int[Array, ""],
        trace: int | None = None,
    ) -> tuple[Carries, Outputs]:
        """Sweeps up to number `limit`, from the start or from the carry: the next carry, and the outputs so far."""
        self.on_trace()
        inside = dict(self.place.inside({**data, **values}))

        def one(lane: Lane, carry: Carries) -> tuple[Carries, Ended]:
            if self.machine.direct:
                return DONE, direct(self.machine, self._settings(trace), inside, lane.key)
            assert isinstance(carry, Carry)
            # A run that has not got away from its start may begin again from a narrower one, in a later chunk too.
            young = fresh | (carry.tally.accepted <= 1)
            task = Sweeping(self.machine, self._settings(trace), inside, lane, young)
            carry = task.advance(jax.lax.cond(fresh, task.begin, lambda: carry), limit)
            return carry, task.finish(carry)

        lanes = self._lanes(key, data)
        carries, outputs = self._over_restarts(one, lanes, carry)
        return strong(carries), self._best(
            outputs, jax.random.key_data(lanes.key), keep=trace is None and len(lanes.side) > 1
        )

    def _as_told(self, values: Data, data: Data, key: KeyWords, carry: Carries) -> Told:
        """What a checkpoint has of the carries of all restarts."""
        from .places.carried_over import told  # few runs are kept in files

        inside = dict(self.place.inside({**data, **values}))

        def one(lane: Lane, carry: Carries) -> Told:
            assert isinstance(carry, Carry)
            return told(Sweeping(self.machine, self.settings, inside, lane, False), carry)

        return self._over_restarts(one, self._lanes(key, data), carry)

    def _as_carried(self, values: Data, data: Data, key: KeyWords, found: Told) -> Carries:
        """The carries of all restarts that a checkpoint has."""
        from .places.carried_over import carried

        inside = dict(self.place.inside({**data, **values}))

        def one(lane: Lane, found: Told) -> Carries:
            return carried(Sweeping(self.machine, self.settings, inside, lane, False), found)

        return self._over_restarts(one, self._lanes(key, data), found)

    def _over_restarts(self, function: Callable[..., PyTree], *stacked: PyTree) -> PyTree:
        """Restarts side by side; a single one without the cost of mapping.

        A mapped loop computes both sides of every choice.
        """
        if len(jax.tree.leaves(stacked)[0]) == 1:
            return jax.tree.map(lambda a: jnp.asarray(a)[None], function(*jax.tree.map(lambda a: a[0], stacked)))
        if jax.default_backend() == "cpu":  # one after the other compiles faster, and none waits for the slowest
            return jax.lax.map(lambda arguments: function(*arguments), stacked)
        return jax.vmap(function)(*stacked)

    def _best(self, outputs: Ended, keys: UInt32[Array | np.ndarray, "restart 2"], keep: bool) -> Outputs:
        """The restart with the best evidence among those that ended best; one without a sound state has none.

        With those of all starts beside it, where they are to be kept.
        """
        evidence = jnp.where(outputs["found"], outputs["evidence"], -jnp.inf)
        best = preferred(outputs["code"], outputs["found"], evidence, self.settings.monotone)
        chosen: Ended = jax.tree.map(lambda a: a[best], outputs)
        found = {
            **chosen,
            **({OTHERS: {**outputs, "evidence": evidence, "key": keys}} if keep else {}),
            "restart": best,
            "evidence": evidence[best],
            "all_evidence": evidence,
            "key": keys[best],
        }
        return cast(Outputs, found)

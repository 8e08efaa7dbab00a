"""Workers with messages: many jobs that do not need each other, done by processes, by Ray, or in a simulation.

A pool takes jobs and tells which ended, or was lost with its worker; `gathered` gives out what waits, once more what
was lost, and what is late to who is idle. A job is a pure function of its arguments, so answers do not depend on how
many workers there are, which of them did what, or how often.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import selectors
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from ...compiler.portable import packed, unpacked
from ...factors.calls import call_checked
from ...factors.errors import LostError, ModelError
from . import parcels
from .parcels import Missing

RETRIES = 3  # times that a job is given out again whose worker was lost
Job: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]


class Ended(NamedTuple):
    """A job that ended: by its number, what it returned or what it raised; or that its worker was `lost`, and how."""

    number: int
    answer: Any = None
    problem: BaseException | None = None
    lost: str = ""


@runtime_checkable
class Pool(Protocol):
    """What gives jobs to workers. `submit` gives one out, `wait` says which ended next, of those under way."""

    workers: int

    def submit(self, number: int, job: bytes) -> None:
        """Gives out a job, as bytes, under a number."""
        ...

    def wait(self) -> Ended:
        """Waits for the next to end."""
        ...

    def close(self) -> None:
        """Ends the workers."""
        ...


Workers: TypeAlias = "int | Callable[[], Pool] | None"  # as users give them


def mapped(
    function: Callable[..., Any], items: Sequence[Any], *, workers: Workers = None, retries: int = RETRIES
) -> list[Any]:
    """`function` of each of `items`, in their order, by workers.

    `workers` is a number of processes of this machine (by default one for each core), or what makes a pool:
    `cv.workers.ray(8)`, `cv.workers.simulated(seed)`, `cv.workers.here()`. `function` and `items` go to other
    processes, so what they hold must be found by its name in a module, or cloudpickle be installed. A job whose worker
    is lost is given out again, up to `retries` times. Raises what a job raised, that of the first in order; LostError,
    with the place, for a job that was lost more often; ModelError for what cannot be sent.
    """
    return gathered([(function, (item,)) for item in items], pool_of(workers, len(items)), retries)


def check_workers(workers: object) -> None:
    """ModelError for what is neither a number of processes nor what makes a pool; None is left to the caller."""
    if workers is None or callable(workers):
        return
    if isinstance(workers, Pool):
        raise ModelError(
            f"workers= makes a pool for each call and closes it after it; found one that was made, {workers!r}. Give "
            "the number, or what makes it: workers=cv.workers.ray(8) as it stands, not what calling that returns."
        )
    if isinstance(workers, bool) or not (isinstance(workers, (int, np.integer)) and workers >= 1):
        raise ModelError(
            f"workers= is a number of processes, at least 1, or a pool such as cv.workers.ray(8); found {workers!r}."
        )


def pool_of(workers: Workers, jobs: int) -> Pool:
    """The pool that users ask for. Raises ModelError for what is none."""
    check_workers(workers)
    if workers is None:
        workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not callable(workers):
        return Processes(max(1, min(int(workers), jobs)))
    try:
        pool = workers()
    except TypeError as problem:
        raise ModelError(
            f"workers={workers!r} makes no pool ({problem}). Give a number, or one such as cv.workers.ray(8)."
        ) from problem
    if not isinstance(pool, Pool):
        raise ModelError(f"workers= makes {pool!r}, which is no pool. Give a number, or one such as cv.workers.ray(8).")
    return pool


def gathered(
    jobs: Sequence[Job], pool: Pool, retries: int = RETRIES, show: Callable[[int, int], None] = lambda done, total: None
) -> list[Any]:
    """What the jobs return, in their order; see `mapped`. `show` is told how many are done, and of how many."""
    answers: dict[int, Ended] = {}
    lost = [0] * len(jobs)
    running: dict[int, int] = {}  # how many workers are at a job
    waiting = list(reversed(range(len(jobs))))
    in_full: set[int] = set()  # jobs that go with the content of their parcels
    try:
        while len(answers) < len(jobs):
            _give_out(jobs, pool, waiting, running, answers, in_full)
            ended = pool.wait()
            number = ended.number
            running[number] = running.get(number, 1) - 1
            if number in answers:
                continue  # another worker was faster
            if ended.lost:
                lost[number] += 1
                if lost[number] > retries:
                    raise LostError(
                        f"Job {number} of {len(jobs)} was lost {lost[number]} times with its worker, the last time as "
                        f"{ended.lost}. Nothing else is lost: {len(answers)} are done. Give it more memory or time, or "
                        "call its function here to see why."
                    )
                if not running[number]:
                    waiting.append(number)
                continue
            if isinstance(ended.problem, Missing):
                in_full.add(number)
                waiting.append(number)
                continue
            answers[number] = ended
            show(len(answers), len(jobs))
            if ended.problem is not None and all(i in answers for i in range(number)):
                break
    finally:
        pool.close()
    for number in range(len(jobs)):
        if number in answers and (problem := answers[number].problem) is not None:
            problem.add_note(f"in job {number} of {len(jobs)}")
            raise problem
    return [answers[number].answer for number in range(len(jobs))]


class Lasting:
    """A pool for several lists of jobs, one after the other, until its `end`.

    Jobs of an earlier list may be under way, where a faster worker had done them already.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool, self.workers = pool, pool.workers
        self.under_way = self.stale = 0

    def submit(self, number: int, job: bytes) -> None:
        """Gives out a job, as bytes, under a number."""
        while self.stale:
            self.wait()
            self.stale -= 1
        self.under_way += 1
        self.pool.submit(number, job)

    def wait(self) -> Ended:
        """Waits for the next to end."""
        ended = self.pool.wait()
        self.under_way -= 1
        return ended

    def close(self) -> None:
        """This list of jobs is over."""
        self.stale = self.under_way

    def end(self) -> None:
        """Ends the workers."""
        self.pool.close()


def _give_out(
    jobs: Sequence[Job],
    pool: Pool,
    waiting: list[int],
    running: dict[int, int],
    answers: dict[int, Ended],
    in_full: set[int],
) -> None:
    """Gives the idle what waits; where nothing does, once more what has been under way the longest."""
    while sum(running.values()) < pool.workers:
        late = [number for number, own in running.items() if own == 1 and number not in answers]
        if waiting:
            number = waiting.pop()
        elif late:
            number = late[0]
        else:
            return
        running[number] = running.pop(number, 0) + 1  # the latest at the end
        with parcels.in_full() if number in in_full else contextlib.nullcontext():
            job = packed(jobs[number], "A job")  # of many jobs those under way alone are held as bytes
        in_full.discard(number)
        pool.submit(number, job)


def done(job: bytes) -> tuple[Any, BaseException | None]:
    """What a job returns, or what it raises."""
    function, arguments = unpacked(job)
    try:
        return function(*arguments), None
    except Exception as problem:
        return None, problem


# processes ------------------------------------------------------------------------------------------------------------


class Processes:
    """A pool of processes of this machine, each with cores of its own; one that ends is replaced."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._idle = list(reversed(range(workers)))
        self._at: dict[int, int] = {}  # the job of each worker
        self._selector = selectors.DefaultSelector()
        self._processes = {place: self._started(place) for place in range(workers)}

    def _started(self, place: int) -> subprocess.Popen:
        command = [sys.executable, "-m", "cavity", "worker", str(place), str(self.workers)]
        folder = os.path.dirname(os.path.abspath(sys.argv[0] or ".")) if sys.argv else os.getcwd()
        path = os.pathsep.join([p for p in (*sys.path, folder) if p])
        environment = {**os.environ, "PYTHONPATH": path}
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        assert process.stdout is not None
        self._selector.register(process.stdout, selectors.EVENT_READ, place)
        return process

    def submit(self, number: int, job: bytes) -> None:
        """Gives out a job, as bytes, under a number."""
        place = self._idle.pop()
        self._at[place] = number
        stream = self._processes[place].stdin
        assert stream is not None
        with contextlib.suppress(BrokenPipeError):  # it is lost, which `wait` will tell
            write_frame(stream, job)

    def wait(self) -> Ended:
        """Waits for the next to end."""
        while True:
            for key, _ in self._selector.select():
                if (ended := self._heard(key.data)) is not None:
                    return ended

    def _heard(self, place: int) -> Ended | None:
        process = self._processes[place]
        frame = read_frame(process.stdout)
        if frame is not None:
            self._idle.append(place)
            answer, problem = unpacked(frame)
            return Ended(self._at.pop(place), answer, problem)
        self._selector.unregister(process.stdout)  # pyright: ignore
        status = process.wait()
        _close(process)
        how = f"process {process.pid} was killed by signal {-status}" if status < 0 else f"process {process.pid} ended"
        self._processes[place] = self._started(place)
        self._idle.append(place)
        return Ended(self._at.pop(place), lost=how) if place in self._at else None

    def close(self) -> None:
        """Ends the workers."""
        for process in self._processes.values():
            process.kill()
            process.wait()
            _close(process)
        self._selector.close()


def _close(process: subprocess.Popen) -> None:
    """Closes the pipes of a process that has ended, whatever is left in them."""
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            stream.close()  # pyright: ignore


def write_frame(stream: Any, data: bytes) -> None:
    """Bytes with their number before them."""
    stream.write(struct.pack("<Q", len(data)))
    stream.write(data)
    stream.flush()


def read_frame(stream: Any) -> bytes | None:
    """The next bytes; None at the end."""
    head = stream.read(8)
    if len(head) < 8:
        return None
    size = struct.unpack("<Q", head)[0]
    data = stream.read(size)
    return data if len(data) == size else None


def work(place: int, workers: int) -> None:
    """What a process of a pool does: jobs, one after the other, until nobody is there any more."""
    from .launch import own_cores

    own_cores(place, workers)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what jobs print goes where errors go
    while (job := read_frame(sys.stdin.buffer)) is not None:
        write_frame(answers, _told(*done(job)))


def _told(answer: Any, problem: BaseException | None) -> bytes:
    try:
        return packed((answer, problem), "An answer")
    except ModelError as found:
        kept = found if problem is None else ModelError(f"{type(problem).__name__}: {problem}")
        return packed((None, kept), "An answer")


# Ray ------------------------------------------------------------------------------------------------------------------


@call_checked
def ray(workers: int, **options: Any) -> Callable[[], Pool]:
    """A pool of actors of Ray, on the cluster that `ray.init` has joined, or on this machine.

    `workers` is how many, `options` are those of an actor, such as num_cpus=, num_gpus= or memory=. Raises ImportError
    without Ray (the extra `ray`).
    """
    return lambda: _Ray(workers, options)


class _Ray:
    def __init__(self, workers: int, options: dict[str, Any]) -> None:
        try:
            import ray as library  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise ImportError("cv.workers.ray needs Ray, which is not installed: pip install 'cavity[ray]'.") from None
        self.ray, self.workers = library, workers
        if not library.is_initialized():
            library.init(ignore_reinit_error=True, log_to_driver=False)

        class Worker:
            def do(self, job: bytes) -> bytes:
                return _told(*done(job))

        self._make = library.remote(**{"num_cpus": 1, **options})(Worker).remote
        self._actors = [self._make() for _ in range(workers)]
        self._idle = list(reversed(range(workers)))
        self._at: dict[Any, tuple[int, int]] = {}

    def submit(self, number: int, job: bytes) -> None:
        """Gives out a job, as bytes, under a number."""
        place = self._idle.pop()
        self._at[self._actors[place].do.remote(job)] = place, number

    def wait(self) -> Ended:
        """Waits for the next to end."""
        (ready,), _ = self.ray.wait(list(self._at), num_returns=1)
        place, number = self._at.pop(ready)
        self._idle.append(place)
        try:
            return Ended(number, *unpacked(self.ray.get(ready)))
        except self.ray.exceptions.RayError as problem:
            self._actors[place] = self._make()
            return Ended(number, lost=f"an actor of Ray: {type(problem).__name__}")

    def close(self) -> None:
        """Ends the workers."""
        for actor in self._actors:
            self.ray.kill(actor)


# here -----------------------------------------------------------------------------------------------------------------


def here() -> Callable[[], Pool]:
    """A pool that does every job in this process, in order: what all others are compared with."""
    return lambda: _Simulated(None, 1, 0.0, 0.0)


def simulated(seed: int, *, workers: int = 7, delay: float = 1.0, lost: float = 0.2) -> Callable[[], Pool]:
    """A pool in this process in which messages are late and workers are lost, as `seed` has it.

    `workers` is how many there seem to be, `delay` the mean time of a message, in times of a job, and `lost` the
    probability that a worker is lost before its answer arrives; its job was done in vain, as far as it had got.
    """
    return lambda: _Simulated(seed, workers, delay, lost)


class _Simulated:
    def __init__(self, seed: int | None, workers: int, delay: float, lost: float) -> None:
        self.workers, self._delay, self._lost = workers, delay, lost
        self._random = None if seed is None else np.random.default_rng(seed)
        self._count, self._now = itertools.count(), 0.0
        self._events: list[tuple[float, int, int, bytes]] = []

    def submit(self, number: int, job: bytes) -> None:
        """Gives out a job, as bytes, under a number."""
        late = 0.0 if self._random is None else self._random.exponential(self._delay) + self._random.exponential(1.0)
        heapq.heappush(self._events, (self._now + late, next(self._count), number, job))

    def wait(self) -> Ended:
        """Waits for the next to end."""
        self._now, _, number, job = heapq.heappop(self._events)
        if self._random is not None and self._random.random() < self._lost:
            if self._random.random() < 0.5:
                done(job)  # the work was done, and its answer never came
            return Ended(number, lost="a worker of the simulation")
        return Ended(number, *unpacked(_told(*done(job))))

    def close(self) -> None:
        """Forgets what is under way."""
        self._events.clear()

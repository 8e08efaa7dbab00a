"""Functions of nested arrays, run by NumPy while that is cheap and as machine code from then on; kept for all models.

A function belongs to a structure (`compiler/structure.py`) and to the shapes of its arguments, so that a model that is
declared again traces and compiles nothing. The plan and the model that it was made of are not kept with it.

Who runs it is decided by counting (`interpret/work.py`), never by a clock: the same calls, in the same order, are run
by the same on every machine. A function that NumPy is expected to run for longer than compiling takes is compiled at
once; others when all their calls together have cost as much.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import jax
import numpy as np

from ...compiler.structure import digest
from ..interpret.work import Meter, Spent, expected
from . import executables, on_disk
from .cache import Recent
from .compiler_options import machine_code
from .concrete import is_traced
from .forked import check_not_forked
from .known import Known, by_numpy, read

if TYPE_CHECKING:
    from ..interpret.interpreter import ByNumpy

COMPILING = 1000.0  # microseconds that one equation takes to compile
READ_EARLY = {"interpret": 0, "auto": 1, "compile": 2}  # of the two names on disk, those looked for before tracing
SHAPES = 16  # of arguments, that one function is kept for

Call = Callable[..., Any]
Trace = Callable[[], tuple[jax.stages.Traced, Any]]
Out = TypeVar("Out")
Stage = Callable[[str], AbstractContextManager[Any]]  # around what goes by a name: "tracing", "compiling"


class Function:
    """A function of arrays of given shapes; `form` is what its maker wants to know without tracing it again.

    `by_numpy` runs it until it has worked enough; `compile` makes what runs it then, or from the start without that.
    What traces it holds a model, and is not kept: each call brings its own.
    """

    def __init__(self, form: Any, by_numpy: ByNumpy | None, compile: Callable[[Trace], Call], trace: Trace) -> None:
        self.form, self._by_numpy = form, by_numpy
        self._compile: Callable[[Trace], Call] | None = compile
        self._call: Call | None = None
        self._lock = threading.Lock()
        if by_numpy is None:
            self._compiled(trace)

    @property
    def interpreted(self) -> bool:
        """Whether NumPy runs it."""
        return self._by_numpy is not None

    def _compiled(self, trace: Trace) -> Call:
        """The function as machine code, which is made at the first call."""
        with self._lock:
            if self._compile is not None:
                self._call, self._compile = self._compile(trace), None  # what was traced is no longer needed
        assert self._call is not None
        return self._call

    def run(self, task: Callable[[Call], Out], trace: Trace, stage: Stage = nullcontext) -> Out:
        """What `task` makes of the function: where NumPy has worked enough, all of it once more."""
        by_numpy = self._by_numpy
        if by_numpy is not None:
            try:
                return task(by_numpy)
            except Spent:
                check_not_forked()
                self._by_numpy = None
                with stage("compiling"):
                    self._compiled(trace)
        check_not_forked()
        return task(self._compiled(trace))


KEPT: Recent[Function] = Recent(64)  # those used last, each up to some megabytes of machine code


def function(
    what: str,
    structure: tuple[Any, ...],
    arguments: Any,
    trace: Trace,
    execution: str = "auto",
    stage: Stage = nullcontext,
    calls: int = 1,
) -> Function:
    """What `trace` traces, made once for all of equal structure and shapes of arguments.

    `what` says which function of the structure it is. What cannot be compared by structure is made each time.
    `execution` is "interpret" (compiled only where NumPy cannot run it), "compile" or "auto"; `stage` is told what is
    being done. So many `calls` are expected of who asks first: what NumPy is expected to run for longer than compiling
    takes, in all of them, is compiled at once.
    """
    types = types_of(arguments)
    # What runs first depends on the number of calls: what is kept of one must not be found by another.
    found = digest(what if calls == 1 else (what, calls), _made_of(types[0]), *structure)
    if found is None:
        return _made(None, trace, execution, stage, calls)
    key = execution, found, types, on_disk.settings()
    return KEPT.get(key, lambda: _made(on_disk.name_of(found, types), trace, execution, stage, calls))


def _made(name: str | None, trace: Trace, execution: str, stage: Stage, calls: int) -> Function:
    """A function that is kept on disk under this name where it is compiled.

    There the small ones, which "auto" has NumPy run first, go by another name: what runs first must not depend on what
    earlier processes compiled. What NumPy runs goes by a third.
    """
    names = () if name is None else (name, f"{name}-small")
    early = names[: READ_EARLY[execution]]
    for own in early:
        found = _read(own, lambda: _code(trace()[0]))
        if found is not None:
            return Function(found.form, None, lambda _, found=found: found.call, trace)
    listing = None if name is None or execution == "compile" else f"{name}-listing"
    known, traced = read(listing), None
    if known is None:
        with stage("tracing"):
            traced, form = trace()
        known = Known(expected(traced.jaxpr), form, traced.out_tree)
    form = known.form
    price = COMPILING * max(known.expected.equations, 1)  # one that returns its arguments is not worth compiling
    small = calls * known.expected.work < price
    own = names[small] if names else None

    def compile(trace: Trace) -> Call:
        def code() -> Call:
            return _code(traced or trace()[0])

        found = None if own in early else _read(own, code)
        if found is not None:
            return found.call
        call = code()
        if own is not None:
            executables.write(own, call, form)
        return call

    most = {"interpret": math.inf, "auto": price if small else 0.0, "compile": 0.0}[execution]
    with stage("compiling"):
        return Function(form, by_numpy(known, traced, Meter(most), listing) if most else None, compile, trace)


class _Found(NamedTuple):
    """What is on disk: a compiled function, and its form."""

    call: Call
    form: Any


def _read(name: str | None, compile: Callable[[], Call]) -> _Found | None:
    """What is on disk under this name. Where its first call fails it is forgotten there, and compiled after all."""
    kept = None if name is None else executables.read(name)
    if name is None or kept is None:
        return None
    call, form = kept
    ready, untried = [call], [compile]  # once it has run, what could compile it need not be kept, nor its plan

    def tried(*arguments: Any) -> Any:
        if not (other := list(untried)):
            return ready[0](*arguments)
        try:
            outputs = jax.block_until_ready(call(*arguments))
        except jax.errors.JaxRuntimeError:
            on_disk.forget(name)
            ready[0] = other[0]()
            outputs = ready[0](*arguments)
        untried.clear()
        return outputs

    return _Found(tried, form)


def compiled(what: str, structure: tuple[Any, ...], own: Call) -> Call:
    """`own`, a function of nested arrays, made ready at its first call with arguments of new shapes: see `function`.

    Within what JAX traces or maps it becomes a part of that.
    """
    kept: Recent[Function] = Recent(SHAPES)

    mapped = jax.jit(own)

    def call(*arguments: Any) -> Any:
        if is_traced(arguments):
            return mapped(*arguments)

        def trace() -> tuple[jax.stages.Traced, None]:
            return mapped.trace(*arguments), None

        made = kept.get(types_of(arguments), lambda: function(what, structure, arguments, trace))
        return made.run(lambda run: run(*arguments), trace)

    return call


def for_now(own: Call) -> Call:
    """`own`, a function of nested arrays, as `compiled`, but kept by who holds it alone: for what is tried and left."""
    return compiled("for now", (object(),), own)


def types_of(arguments: Any) -> tuple[Any, ...]:
    """The shapes and types of nested arrays, and how they are nested."""
    leaves, nesting = jax.tree.flatten(arguments)
    return nesting, *((np.shape(leaf), _type(leaf), getattr(leaf, "weak_type", False)) for leaf in leaves)


def _made_of(nesting: Any) -> tuple[Any, ...]:
    """How arrays are nested, with what containers hold beside them: two may be written alike and not be alike."""
    return nesting.node_data(), *map(_made_of, nesting.children())


def _type(leaf: Any) -> Any:
    return leaf.dtype if hasattr(leaf, "dtype") else np.result_type(leaf)


def _code(traced: jax.stages.Traced) -> Call:
    return _in_a_thread(partial(machine_code, traced, traced.lower().compile))


def _in_a_thread(compile: Callable[[], Call]) -> Call:
    """Compiles in a thread that the interpreter waits for when it ends.

    An interrupt leaves the compiler behind, at work; an interpreter that ends meanwhile would crash.
    """
    check_not_forked()
    pool = ThreadPoolExecutor(1)
    waiting = pool.submit(compile)
    pool.shutdown(wait=False)
    return waiting.result()

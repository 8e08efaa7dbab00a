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
from ..interpret.equation import Unknown
from ..interpret.work import Meter, Spent, expected
from . import on_disk
from .cache import Recent
from .compiler_options import machine_code
from .concrete import is_traced

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
    """

    def __init__(self, form: Any, by_numpy: ByNumpy | None, compile: Callable[[], Call]) -> None:
        self.form, self._by_numpy = form, by_numpy
        self._compile: Callable[[], Call] | None = compile
        self._call: Call | None = None
        self._lock = threading.Lock()
        if by_numpy is None:
            self.compiled()

    @property
    def interpreted(self) -> bool:
        """Whether NumPy runs it."""
        return self._by_numpy is not None

    def compiled(self) -> Call:
        """The function as machine code, which is made at the first call."""
        with self._lock:
            if self._compile is not None:
                self._call, self._compile = self._compile(), None  # what was traced is no longer needed
        assert self._call is not None
        return self._call

    def run(self, task: Callable[[Call], Out], stage: Stage = nullcontext) -> Out:
        """What `task` makes of the function: where NumPy has worked enough, all of it once more."""
        by_numpy = self._by_numpy
        if by_numpy is not None:
            try:
                return task(by_numpy)
            except Spent:
                self._by_numpy = None
                with stage("compiling"):
                    self.compiled()
        return task(self.compiled())


KEPT: Recent[Function] = Recent(64)  # those used last, each up to some megabytes of machine code


def function(
    what: str,
    structure: tuple[Any, ...],
    arguments: Any,
    trace: Trace,
    execution: str = "auto",
    stage: Stage = nullcontext,
) -> Function:
    """What `trace` traces, made once for all of equal structure and shapes of arguments.

    `what` says which function of the structure it is. What cannot be compared by structure is made each time.
    `execution` is "interpret" (compiled only where NumPy cannot run it), "compile" or "auto"; `stage` is told what is
    being done.
    """
    types = types_of(arguments)
    found = digest(what, _made_of(types[0]), *structure)
    if found is None:
        return _made(None, trace, execution, stage)
    key = execution, found, types, on_disk.settings()
    return KEPT.get(key, lambda: _made(on_disk.name_of(found, types), trace, execution, stage))


def _made(name: str | None, trace: Trace, execution: str, stage: Stage) -> Function:
    """A function that is kept on disk under this name where it is compiled.

    There the small ones, which "auto" has NumPy run first, go by another name: what runs first must not depend on what
    earlier processes compiled.
    """
    names = () if name is None else (name, f"{name}-small")
    early = names[: READ_EARLY[execution]]
    for own in early:
        found = _read(own, lambda: _code(trace()[0]))
        if found is not None:
            return Function(found.form, None, lambda found=found: found.call)
    with stage("tracing"):
        traced, form = trace()
    equations, work = expected(traced.jaxpr)
    price = COMPILING * equations
    small = work < price
    own = names[small] if names else None

    def compile() -> Call:
        found = None if own in early else _read(own, partial(_code, traced))
        if found is not None:
            return found.call
        call = _code(traced)
        if own is not None:
            on_disk.write(own, call, form)
        return call

    most = {"interpret": math.inf, "auto": price if small else 0.0, "compile": 0.0}[execution]
    with stage("compiling"):
        return Function(form, _by_numpy(traced, Meter(most)) if most else None, compile)


def _by_numpy(traced: jax.stages.Traced, meter: Meter) -> ByNumpy | None:
    """None where NumPy cannot run it."""
    from ..interpret.interpreter import ByNumpy  # here: it loads much of SciPy

    try:
        return ByNumpy(traced, meter)
    except Unknown:
        return None


class _Found(NamedTuple):
    """What is on disk: a compiled function, and its form."""

    call: Call
    form: Any


def _read(name: str | None, compile: Callable[[], Call]) -> _Found | None:
    """What is on disk under this name. Where its first call fails it is forgotten there, and compiled after all."""
    kept = None if name is None else on_disk.read(name)
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

        def make() -> Function:
            return function(what, structure, arguments, lambda: (jax.jit(own).trace(*arguments), None))

        return kept.get(types_of(arguments), make).run(lambda run: run(*arguments))

    return call


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
    pool = ThreadPoolExecutor(1)
    waiting = pool.submit(compile)
    pool.shutdown(wait=False)
    return waiting.result()

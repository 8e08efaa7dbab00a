"""What was compiled, kept for all models of the process, and on disk for the next: see `on_disk`.

A program belongs to a structure (`compiler/structure.py`) and to the shapes of its arguments, so that a model that is
declared again compiles nothing. The plan and the model that it was made of are not kept with it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from ...compiler.structure import digest
from ..interpret.interpreter import run_by_numpy
from . import on_disk
from .cache import Recent
from .compiler_options import machine_code

KEPT: Recent[Program] = Recent(64)  # those used last, each some megabytes of machine code
SHAPES = 16  # of arguments, that one function is kept for


class Program(NamedTuple):
    """A compiled function, and the form of what its maker wants to know without tracing it again."""

    call: Callable[..., Any]
    form: Any = None


def program(
    what: str,
    structure: tuple[Any, ...],
    arguments: Any,
    make: Callable[[], tuple[jax.stages.Traced, Any]],
    interpret: bool = False,
) -> Program:
    """What `make` traces, and the form beside it, compiled once for all of equal structure and shapes of arguments.

    `what` says which function of the structure it is. What cannot be compared by structure is compiled each time. To
    `interpret` has NumPy run it where it can, and compiles nothing.
    """

    def compile() -> Program:
        traced, form = make()
        by_numpy = run_by_numpy(traced) if interpret else None
        return Program(by_numpy or _in_a_thread(partial(machine_code, traced, traced.lower().compile)), form)

    found = digest(what, interpret, *structure)
    if found is None:
        return compile()
    key = on_disk.name_of(found, types_of(arguments))

    def read_or_compile() -> Program:
        kept = None if interpret else on_disk.read(key)
        if kept is not None:
            return Program(_tried(kept[0], key, compile), kept[1])
        made = compile()
        if not interpret:
            on_disk.write(key, made.call, made.form)
        return made

    return KEPT.get(key, read_or_compile)


def _tried(call: Callable[..., Any], key: str, compile: Callable[[], Program]) -> Callable[..., Any]:
    """A function read from disk; where its first call fails it is forgotten there, and compiled after all."""
    sound: list[Callable[..., Any]] = []

    def first(*arguments: Any) -> Any:
        if not sound:
            try:
                outputs = jax.block_until_ready(call(*arguments))
                sound.append(call)
                return outputs
            except jax.errors.JaxRuntimeError:
                on_disk.forget(key)
                sound.append(compile().call)
        return sound[0](*arguments)

    return first


def compiled(what: str, structure: tuple[Any, ...], function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of nested arrays, compiled at its first call with arguments of new shapes (see `program`)."""
    kept: Recent[Program] = Recent(SHAPES)

    def call(*arguments: Any) -> Any:
        def make() -> Program:
            return program(what, structure, arguments, lambda: (jax.jit(function).trace(*arguments), None))

        return kept.get(types_of(arguments), make).call(*arguments)

    return call


def types_of(arguments: Any) -> tuple[Any, ...]:
    """The shapes and types of nested arrays, and how they are nested."""
    leaves, nesting = jax.tree.flatten(arguments)
    return nesting, *((np.shape(leaf), _type(leaf), getattr(leaf, "weak_type", False)) for leaf in leaves)


def _type(leaf: Any) -> str:
    return str(leaf.dtype if hasattr(leaf, "dtype") else np.result_type(leaf))


def _in_a_thread(compile: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """Compiles in a thread that the interpreter waits for when it ends.

    An interrupt leaves the compiler behind, at work; an interpreter that ends meanwhile would crash.
    """
    pool = ThreadPoolExecutor(1)
    waiting = pool.submit(compile)
    pool.shutdown(wait=False)
    return waiting.result()

"""Kernels, which count their compilations, and their inner loops: each is one function of machine code."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

import jax
import numpy as np
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import Literal, jaxpr_as_fun
from jaxtyping import PyTree

from ...factors.arrays import Array, Numeric
from ...factors.switches import double_precision
from .forked import check_not_forked
from .warn import warn

# XLA's CPU compiler runs a loop's body as a list of small functions, at up to a microsecond each, and copies large
# buffers between them. Calls that carry this mark are compiled whole, as C would be: loops over tree nodes become
# several times faster (benchmarks/trees/marks.py). The mark is no documented part of XLA. It is set for releases of JAX
# that it was tested with, those of the extra `kernels` in pyproject.toml; others compile the plain loops, which give
# the same numbers, later.
TESTED = ("0.10",)
MARKED = jax.__version__.startswith(tuple(f"{release}." for release in TESTED))
_WHOLE = {"xla_cpu_small_call": "true", "inlineable": "false"}
# Sums over some thousand columns would go to a library, which such calls cannot use.
OPTIONS = {"xla_cpu_experimental_ynn_fusion_type": ""} if MARKED else None


Tree = TypeVar("Tree")
Made = TypeVar("Made")


class Kernel:
    """A function of arrays, compiled for double precision on the CPU: NumPy arrays in, NumPy arrays out.

    It compiles once for each set of shapes; `traces` counts.
    """

    def __init__(self, function: Callable[..., PyTree]) -> None:
        functools.update_wrapper(self, function)
        self.traces = 0

        def counted(*arguments: PyTree) -> PyTree:
            self.traces += 1
            return function(*arguments)

        self._compiled = jax.jit(counted, compiler_options=OPTIONS)

    def __call__(self, *arguments: PyTree) -> PyTree:
        check_not_forked()
        with double_precision(), jax.default_device(_processor()):
            return jax.tree.map(np.asarray, self._compiled(*arguments))


def resident(arrays: Tree) -> Tree:
    """The same arrays where kernels run, so that calls that share them move nothing."""
    with double_precision():
        return jax.tree.map(lambda array: jax.device_put(array, _processor()), arrays)


def native(function: Callable[..., Made]) -> Callable[..., Made]:
    """The same function of arrays, compiled whole where a compiled function calls it.

    For loops over rows with `row` and `put`, which the rest of the loop's body must not overtake: one write to a buffer
    in each step, computed from all that the step reads of it, lest XLA copy the buffer. The number of steps must be
    data: a loop that XLA unrolls may leave an argument unread, and of such calls XLA cannot make code. Inside there are
    no sorts, no scatters and no matrix products. Mapped, it is compiled as any function. The first that cannot be
    marked warns, before it runs.
    """

    @functools.wraps(function)
    def call(*arguments: PyTree) -> Made:
        if not MARKED:
            _tell_unmarked()
            return function(*arguments)
        values, inputs = jax.tree.flatten(arguments)
        traced, shape = jax.make_jaxpr(lambda *flat: function(*inputs.unflatten(flat)), return_shape=True)(*values)
        read = {name for step in traced.jaxpr.eqns for name in step.invars if not isinstance(name, Literal)}
        results, own = traced.jaxpr.outvars, list(traced.jaxpr.invars)
        needed = [place for place, name in enumerate(own) if name in read]
        made = [place for place, name in enumerate(results) if isinstance(name, Literal) or name not in own]

        def inner(
            *some: Array,
        ) -> list[Array]:  # neither unread arguments nor results that are arguments cross the call
            every = dict(zip(needed, some, strict=True))
            out = jaxpr_as_fun(traced)(*(every.get(place) for place in range(len(own))))
            return [out[place] for place in made]

        inner.__name__ = function.__name__
        out = _whole(inner)(*(values[place] for place in needed))
        new = dict(zip(made, out, strict=True))
        every = [new[place] if place in new else values[own.index(name)] for place, name in enumerate(results)]
        return jax.tree.unflatten(jax.tree.structure(shape), every)

    return call


def _whole(function: Callable[..., list[Array]]) -> Callable[..., list[Array]]:
    """The marked call; mapped it is the plain function, whose rows are then read by gathers and written by scatters."""

    @jax.custom_batching.custom_vmap
    def marked(*arguments: Array) -> list[Array]:
        out = jax.jit(function)(*arguments)
        out[0] = set_xla_metadata(out[0], **_WHOLE)  # marks the call, by one of its results
        return out

    @marked.def_vmap
    def mapped(_: int, batched: list[bool], *arguments: Array) -> tuple[list[Array], list[bool]]:
        out = jax.vmap(function, [0 if each else None for each in batched])(*arguments)
        return out, [True] * len(out)

    return marked


def row(array: Array, index: Numeric) -> jax.Array:
    """`array[index]` for a traced index that is not negative."""
    return lax.dynamic_index_in_dim(array, index, keepdims=False, allow_negative_indices=False)


def put(array: Array, index: Numeric, value: Numeric) -> jax.Array:
    """The array with `array[index] = value`, in place."""
    return lax.dynamic_update_index_in_dim(
        array, jax.numpy.asarray(value, array.dtype), index, 0, allow_negative_indices=False
    )


@functools.cache
def _tell_unmarked() -> None:
    """Once in a process: a `CavityWarning`."""
    warn(
        f"JAX {jax.__version__} is none of the releases that the kernels of diffusion trees and of sparse factors were "
        f"tested with ({', '.join(f'{release}.*' for release in TESTED)}), so their loops are compiled without the "
        "marks by which XLA makes one function of a loop. The numbers are the same, and take several times as long. "
        "Install a tested release, pip install 'cavity[kernels]'; diffusion trees also run with backend='numba'."
    )


@functools.cache
def _processor():
    return jax.local_devices(backend="cpu")[0]

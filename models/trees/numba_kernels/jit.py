"""How kernels are compiled, a logarithm that LLVM can vectorise, and random numbers from an explicit state."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

# Stands for an infinite variance inside the kernels: sums, products and quotients of two of them stay finite.
HUGE = 1e150
FLAT = 1e100  # variances from here on are those of uniform messages, which count 1 in evidences
LOG_2PI = math.log(2.0 * math.pi)

_SOURCES = sorted(Path(__file__).parent.glob("*.py"))
_STAMP = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()


def kernel(function: Callable, **options: Any) -> Any:
    """Compile a function on its first call, and keep the machine code on disk for later processes.

    Without `fastmath`: every kernel has its own copies of those that it calls, and which copy runs depends on what a
    process has compiled or loaded before. Only where no copy may reorder a sum do all of them give the same numbers.
    """
    compiled: Any = njit(cache=True, error_model="numpy", **options)(function)
    # numba compares a function's own file only; kernels call one another across files, so all files count.
    compiled._cache._cache_file._source_stamp = _STAMP
    return compiled


def called(function: Callable) -> Any:
    """`kernel` for functions that kernels call, and that neither allocate nor return arrays.

    They do not count references: with tuples of a dozen arrays, counting takes longer than most of them.
    """
    return kernel(function, _nrt=False)


def inner(function: Callable) -> Any:
    """`called` for functions of inner loops: inlined, as passing tuples of a dozen arrays takes time too.

    What is called once for a path or a tree is not inlined: that would only multiply the time of compilation.
    """
    return kernel(function, _nrt=False, forceinline=True)


@intrinsic
def _bits_intrinsic(context, number):
    def build(_, builder, signature, values):
        return builder.bitcast(values[0], ir.IntType(64))

    return types.int64(types.float64), build


@intrinsic
def _number_intrinsic(context, bits):
    def build(_, builder, signature, values):
        return builder.bitcast(values[0], ir.DoubleType())

    return types.float64(types.int64), build


_bits: Any = _bits_intrinsic
_number: Any = _number_intrinsic


@inner
def log(x: Any) -> Any:
    """Natural logarithm of a positive normal number, without branches: loops over it become vector code.

    x = 2^k m with m in [sqrt(1/2), sqrt(2)); log m = 2 artanh(s), s = (m - 1) / (m + 1), by the minimax polynomial of
    fdlibm. The error is a few units in the last place.
    """
    bits = _bits(x)
    shifted = bits - 0x3FE6A09E667F3BCD
    k = shifted >> 52
    f = _number(bits - (k << 52)) - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01))
    odd = z * (
        6.666666666666735130e-01
        + w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01))
    )
    half = 0.5 * f * f
    return k * 0.6931471805599453 + (f - (half - s * (half + even + odd)))


@inner
def uniform(random: Any) -> Any:
    """A number in (0, 1), never 0 or 1; `random` is the (1,) uint64 state of a SplitMix64 generator."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (np.float64(z >> np.uint64(11)) + 0.5) * 1.1102230246251565e-16


@inner
def flat_or(variance: Any, value: Any) -> Any:
    """A term of an evidence, 0 where the variance is that of a uniform message."""
    return value if variance < FLAT else 0.0

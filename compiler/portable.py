"""Models and jobs as bytes: what stands in a module of the package is written by its name, all else by its content."""

from __future__ import annotations

import functools
import importlib
import io
import pickle
import sys
import types
from typing import Any

import jax
import numpy as np

from ..factors.errors import ModelError

PACKAGE = __name__.split(".")[0]
PLAIN = (str, int, float, bool, type(None), tuple, list, dict, type, types.ModuleType)


def packed(thing: Any, what: str) -> bytes:
    """`thing` as bytes, for `unpacked` in another process. Raises ModelError, with `what` it is, where it cannot."""
    try:
        stream = io.BytesIO()
        _Pickler(stream, protocol=pickle.HIGHEST_PROTOCOL).dump(thing)
        return stream.getvalue()
    except (pickle.PicklingError, AttributeError, TypeError) as problem:
        return _by_content(thing, what, problem)


def unpacked(data: bytes) -> Any:
    """What `packed` has made bytes of."""
    return pickle.loads(data)


def called(module: str, name: str, *arguments: Any) -> Any:
    """A function of the package by its name, called: what is above who asks for it."""
    return _found(f"{PACKAGE}.{module}", name)(*arguments)


def _by_content(thing: Any, what: str, problem: Exception) -> bytes:
    """Functions of the user's own, where a package writes these by their code."""
    try:
        cloudpickle = importlib.import_module("cloudpickle")
    except ImportError:
        raise ModelError(
            f"{what} goes to other processes, and part of it cannot be written down ({problem}). Define your own "
            "functions in a module that can be imported, or install cloudpickle."
        ) from None

    class Pickler(cloudpickle.Pickler):  # pyright: ignore
        def reducer_override(self, obj: Any) -> Any:
            return _written(obj) or super().reducer_override(obj)

    stream = io.BytesIO()
    try:
        Pickler(stream).dump(thing)
    except Exception as again:
        raise ModelError(f"{what} goes to other processes, and part of it cannot be written down: {again}.") from again
    return stream.getvalue()


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        """How an object is written."""
        return _written(obj) or NotImplemented


def _written(obj: Any) -> tuple[Any, ...] | None:
    """What stands in a module of the package, by its name there, and a model by its parts; None for all else.

    Arrays of JAX as those of NumPy: who reads them without 64 bits switched on would get half of their digits.
    """
    if isinstance(obj, jax.Array) and not jax.numpy.issubdtype(obj.dtype, jax.dtypes.prng_key):
        return tuple(np.asarray(obj).__reduce_ex__(pickle.HIGHEST_PROTOCOL))
    if (by_parts := getattr(type(obj), "by_parts", None)) is not None:
        return by_parts(obj)
    found = _known().get(id(obj))
    return (_found, found) if found else None


def _known() -> dict[int, tuple[str, str]]:
    """Everything that stands in a module of the package, by identity."""
    return _of_modules(sum(name.startswith(PACKAGE) for name in sys.modules))


@functools.lru_cache(maxsize=1)
def _of_modules(loaded: int) -> dict[int, tuple[str, str]]:
    found: dict[int, tuple[str, str]] = {}
    for module in [m for name, m in sorted(sys.modules.items()) if name.startswith(f"{PACKAGE}.")]:
        for name, thing in list(vars(module).items()):
            named = isinstance(thing, types.FunctionType) and thing.__name__ != "<lambda>"  # pickle knows these
            if not named and not isinstance(thing, PLAIN) and not name.startswith("__"):
                found.setdefault(id(thing), (module.__name__, name))
    return found


def _found(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)

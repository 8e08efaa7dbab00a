"""A digest of structure: plans with equal digests are one program, declared twice.

Nodes of a graph are compared by identity everywhere else. Here they are compared by what they are made of, numbers of
constants included, so that a cell of a notebook that is run again, or a function called in a loop, finds what it has
compiled. What cannot be compared has no digest, and is compiled anew.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import importlib
import types
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from .language.model import Model

OURS = ("cavity", "jax", "jaxlib", "numpy", "scipy", "math", "operator", "functools", "builtins")
DERIVED = (jax.custom_jvp, jax.custom_vjp)
LARGEST = 2**20  # bytes of a constant that is compared, and kept with what was compiled
PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))


def digest(*things: Any) -> bytes | None:
    """The digest of these things, in order; None where one of them holds something that is known by identity alone."""
    reader = _Reader()
    try:
        for thing in things:
            reader.read(thing)
    except _Unknown:
        return None
    return reader.hash.digest()


class _Unknown(Exception):
    """Something that cannot be compared by what it is made of."""


class _Reader:
    """Reads things into a hash; what is met again is told by the number that it had."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.numbers: dict[int, int] = {}
        self.kept: list[Any] = []  # so that no address is used twice

    def put(self, *words: Any) -> None:
        self.hash.update("\x1f".join(map(str, words)).encode() + b"\x1e")

    def again(self, thing: Any) -> bool:
        """Whether it was met before, which is then written down."""
        number = self.numbers.setdefault(id(thing), len(self.numbers))
        if number < len(self.kept):
            self.put("again", number)
            return True
        self.kept.append(thing)
        return False

    def read(self, thing: Any) -> None:
        if isinstance(thing, PLAIN) and type(thing) in PLAIN:
            self.put(type(thing).__name__, repr(thing))
            return
        for kinds, reading in READINGS:
            if isinstance(thing, kinds):
                reading(self, thing)
                return
        if callable(thing) and _home(thing) is not None:  # jitted functions and ufuncs of the libraries
            self.put("named", _home(thing))
        elif isinstance(thing, DERIVED) or (hasattr(thing, "lower") and hasattr(thing, "__wrapped__")):
            _of_functions(self, thing)
        elif dataclasses.is_dataclass(thing) and type(thing).__module__.split(".")[0] in OURS:
            _dataclass(self, thing)
        else:
            raise _Unknown(type(thing))


def _array(reader: _Reader, array: Any) -> None:
    array = np.asarray(array)
    if array.dtype.hasobject or array.nbytes > LARGEST:
        raise _Unknown(array.dtype)
    reader.put("array", array.dtype.str, array.shape)
    reader.hash.update(np.ascontiguousarray(array).tobytes())


def _sequence(reader: _Reader, sequence: Any) -> None:
    reader.put(type(sequence).__name__, len(sequence))
    for item in sequence:
        reader.read(item)


def _set(reader: _Reader, items: Any) -> None:
    found = [digest(item) for item in items]
    if None in found:
        raise _Unknown(type(items))
    reader.put("set", *sorted(item.hex() for item in found if item is not None))


def _mapping(reader: _Reader, mapping: Mapping[Any, Any]) -> None:
    if reader.again(mapping):
        return
    reader.put("mapping", len(mapping))
    for key, value in mapping.items():
        reader.read(key)
        reader.read(value)


def _dataclass(reader: _Reader, thing: Any) -> None:
    if reader.again(thing):
        return
    kind = type(thing)
    reader.put("record", kind.__module__, kind.__qualname__)
    for field in dataclasses.fields(thing):
        reader.put(field.name)
        reader.read(getattr(thing, field.name))


def _model(reader: _Reader, model: Model) -> None:
    """What is declared; the name is for printing only."""
    if not reader.again(model):
        for part in (model.plates, model.inputs, model.randoms, model.lets, model.constraints, model.sizes):
            reader.read(part)


def _type(reader: _Reader, kind: type) -> None:
    home = "builtins:NoneType" if kind is types.NoneType else _home(kind)  # that of None has no name there
    if home is None:
        raise _Unknown(kind)
    reader.put("type", home)


def _function(reader: _Reader, function: types.FunctionType) -> None:
    """By its name where it is a library's; else by its code, and by what this reads of its surroundings."""
    home = _home(function)
    if home is not None:
        reader.put("function", home)
        return
    if reader.again(function):
        return
    reader.put("code", function.__module__)
    _code(reader, function.__code__)
    for given in (function.__defaults__, function.__kwdefaults__):
        reader.read(given)
    for cell in function.__closure__ or ():
        reader.read(cell.cell_contents)
    for name in sorted(_names(function.__code__) & set(function.__globals__)):
        reader.put(name)
        reader.read(function.__globals__[name])


def _code(reader: _Reader, code: types.CodeType) -> None:
    reader.put(
        code.co_names, code.co_varnames, code.co_freevars, code.co_argcount, code.co_kwonlyargcount, code.co_flags
    )
    reader.hash.update(code.co_code)
    for constant in code.co_consts:
        _code(reader, constant) if isinstance(constant, types.CodeType) else reader.read(constant)


def _names(code: types.CodeType) -> set[str]:
    """The global names that a function's code may read, and that of the functions inside it."""
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*inner)


def _of_functions(reader: _Reader, thing: Any) -> None:
    """A function of JAX that is made of others: jitted, or with a derivative of its own."""
    if not reader.again(thing):
        reader.put(type(thing).__module__, type(thing).__qualname__)
        for part in ("__wrapped__", "nondiff_argnums", "jvp", "fwd", "bwd"):
            reader.read(getattr(thing, part, None))


def _partial(reader: _Reader, partial: functools.partial[Any]) -> None:
    reader.put("partial")
    for part in (partial.func, partial.args, partial.keywords):
        reader.read(part)


def _method(reader: _Reader, method: types.MethodType) -> None:
    reader.put("method")
    reader.read(method.__func__)
    reader.read(method.__self__)


def _home(thing: Any) -> str | None:
    """Where a library keeps this very thing: its module and name there."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", getattr(thing, "__name__", None))
    if not isinstance(module, str) or module.split(".")[0] not in OURS or not isinstance(name, str):
        return None
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}:{name}" if found is thing else None


READINGS: tuple[tuple[Any, Callable[[_Reader, Any], None]], ...] = (
    ((np.ndarray, np.generic), _array),
    (enum.Enum, lambda reader, item: reader.put("enum", type(item).__qualname__, item.name)),
    ((tuple, list), _sequence),
    ((frozenset, set), _set),
    (Mapping, _mapping),
    (Model, _model),
    (type, _type),
    (types.ModuleType, lambda reader, module: reader.put("module", module.__name__)),
    (types.FunctionType, _function),
    (types.MethodType, _method),
    (functools.partial, _partial),
)

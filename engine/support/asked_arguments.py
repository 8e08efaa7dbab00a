"""Arguments of the engine's calls, looked at before anything is computed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ...compiler.data.labels import is_frame
from ...compiler.language.model import Model
from ...factors.errors import DataError, ModelError
from ...factors.numbers import ValueProblem, numeric_array

MOST = 10**9  # draws, sweeps and what else is counted: more are a slip, and the memory would end first
UserData: TypeAlias = Mapping[str, Any]  # as users give them: numbers, lists, arrays, tables, sparse matrices


def the_model(model: object) -> Model:
    """`model`, which must be one."""
    if not isinstance(model, Model):
        raise ModelError(f"The first argument must be a cv.Model; found {type(model).__name__}.")
    return model


def named(data: object, hint: str = "") -> UserData:
    """`data`, which must map names to arrays, or be a frame."""
    if not isinstance(data, Mapping) and not is_frame(data):
        raise DataError(
            f"Data are given by name, as a dictionary such as {{'x': array}}; found {type(data).__name__}.{hint}"
        )
    return data  # type: ignore[return-value]


def list_of_names(names: object, what: str) -> list[str]:
    """Several names of variables, in a list, a tuple or a set; a single name is not taken for its letters."""
    if isinstance(names, (str, bytes)) or not isinstance(names, (list, tuple, set, frozenset, Mapping)):
        raise ModelError(f"{what} takes a list of names, such as ['x']; found {names!r}.")
    if strange := [name for name in names if not isinstance(name, str)]:
        raise ModelError(f"{what} takes a list of names, such as ['x']; found {strange[0]!r} among them.")
    return list(names)


def known_name(name: object, known: Iterable[str]) -> str:
    """`name`, one of those that are `known`. KeyError, as of a dictionary, for another, and for what is no name."""
    if not isinstance(name, str) or name not in known:
        raise KeyError(f"There is no {name!r} here. There are: {', '.join(known)}.")
    return name


def values_by_name(values: object, what: str) -> Mapping[str, Any] | None:
    """`values`, which must map names to arrays of numbers, or be None; DataError for anything else."""
    if values is None:
        return None
    if not isinstance(values, Mapping) or not all(isinstance(name, str) for name in values):
        raise DataError(f"{what} takes values by name, such as {{'x': 1.0}}; found {values!r}.")
    return {name: numbers(value, f"{what} {name!r}") for name, value in values.items()}


def levels(q: object, what: str) -> np.ndarray:
    """Probabilities between 0 and 1, of any shape."""
    found = numbers(q, what)
    if not np.all((found >= 0.0) & (found <= 1.0)):
        raise DataError(f"{what} takes probabilities between 0 and 1; found {q!r}.")
    return found


def numbers(value: object, what: str) -> np.ndarray:
    """An array of real numbers."""
    try:
        if value is None:
            raise ValueProblem("found None. Give a number or an array.")
        return numeric_array(value)
    except ValueProblem as problem:
        raise DataError(f"{what}: {problem}") from None


def key_words(key: object) -> np.ndarray:
    """The words of a key of jax.random, from itself or from a seed."""
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        if not -(2**63) <= key < 2**63:
            raise ModelError(f"A random key is a whole number of 64 bits or jax.random.key(number); found {key!r}.")
        if 0 <= key < 2**31:  # as they are: making a key of others takes a compilation
            return np.array([0, key], np.uint32)
        key = jax.random.key(key)
    if not isinstance(key, (jax.Array, np.ndarray)) or not (
        jnp.issubdtype(key.dtype, jax.dtypes.prng_key) or (key.dtype == np.uint32 and key.shape == (2,))
    ):
        raise ModelError(f"A random key is a whole number or jax.random.key(number); found {key!r}.")
    return np.asarray(key if isinstance(key, np.ndarray) else jax.random.key_data(key))


def shape_of_draws(shape: object) -> tuple[int, ...]:
    """How many draws along each axis: a number or several."""
    sizes = np.zeros(())
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        sizes = np.atleast_1d(np.asarray(shape if np.size(np.asarray(shape, object)) else np.zeros(0, int)))
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 0).any():
        raise ModelError(f"The shape of draws is a whole number or several; found {shape!r}.")
    return tuple(int(size) for size in sizes)


def check_counts(call: str, **counts: object) -> None:
    """ModelError for a named argument of `call` that is no whole number above zero."""
    for name, number in counts.items():
        if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or not 1 <= number <= MOST:
            raise ModelError(f"{call}({name}={number!r}): give a whole number of at least 1, and at most {MOST:,}.")


def number_above_zero(call: str, **given: object) -> None:
    """ModelError for a named argument of `call` that is no positive, finite number."""
    for name, number in given.items():
        if isinstance(number, bool) or not isinstance(number, (int, float, np.number)) or not 0.0 < number < np.inf:
            raise ModelError(f"{call}({name}={number!r}): give a positive number.")


def check_seconds(call: str, max_seconds: object) -> None:
    """ModelError for a time that is no positive number of seconds; None is no limit."""
    if max_seconds is None:
        return
    if isinstance(max_seconds, bool) or not isinstance(max_seconds, (int, float, np.number)) or not max_seconds > 0.0:
        raise ModelError(f"{call}(max_seconds={max_seconds!r}): give a positive number of seconds.")

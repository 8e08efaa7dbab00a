"""Compiled functions on disk: executables as JAX serialises them, and how their arguments and results are nested."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import serialize_executable

from . import on_disk


def read(name: str) -> tuple[Callable[..., Any], Any] | None:
    """The compiled function kept under this name and the form beside it; None where there is none that can be read."""
    return on_disk.read(name, _loaded)


def write(name: str, compiled: Any, form: Any) -> None:
    """Keeps a compiled function and the form beside it; nothing where that cannot be done."""
    on_disk.write(name, lambda: (*serialize_executable.serialize(compiled), form))


def _loaded(things: Any) -> tuple[Callable[..., Any], Any]:
    executable, inside, outside, form = things
    _register_routines()
    return serialize_executable.deserialize_and_load(executable, inside, outside), form


@functools.cache
def _register_routines() -> None:
    """Lets JAX name the routines of LAPACK to XLA, which it does when it lowers one: a program read back calls them."""
    jax.jit(jnp.linalg.cholesky).lower(jax.ShapeDtypeStruct((1, 1), float))

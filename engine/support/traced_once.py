"""Functions that are traced once for all functions that call them, rather than once for each place of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax

_Out = TypeVar("_Out")  # a pytree of arrays and of what is known while tracing


def traced_once(function: Callable[..., _Out]) -> Callable[..., _Out]:
    """The same function of nested arrays, traced once for each form of its arguments.

    What it takes or returns that is no array of JAX is known while tracing, and stays so; what it returns of that kind
    must not depend on an array.
    """

    @jax.jit
    def arrays(*arguments: Any) -> Any:
        return _wrapped(function(*_unwrapped(arguments)))

    def call(*arguments: Any) -> _Out:
        return _unwrapped(arrays(*_wrapped(arguments)))

    return call


@jax.tree_util.register_static
class _Known:
    """What is no array of JAX, on its way into a compiled function or out of it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and self.value is other.value


def _wrapped(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf if isinstance(leaf, jax.Array) else _Known(leaf), tree)


def _unwrapped(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf.value if _is_known(leaf) else leaf, tree, is_leaf=_is_known)


def _is_known(leaf: object) -> bool:
    return isinstance(leaf, _Known)

"""Where a run is: on the default device. `on_devices.py` has the same functions for all devices of a mesh."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import jax
import numpy as np
from jaxtyping import PyTree

from .result import Outputs

Arrays = Mapping[str, Any]  # data of a run, by name


class Place(Protocol):
    """What differs between places of a run."""

    def jitted(self, chunk: Callable[..., Any], given: tuple[Any, ...], form: PyTree) -> Any:
        """The chunk as a jitted function, for the arguments `given` and carries of this form."""
        ...

    def blank(self, form: PyTree[jax.ShapeDtypeStruct]) -> PyTree:
        """Zeros of this form, for the place of a carry that is not there yet."""
        ...

    def placed(self, data: Arrays) -> Arrays:
        """The data, where the run reads them."""
        ...

    def inside(self, data: Arrays) -> Arrays:
        """The data inside of the program."""
        ...

    def outputs(self, outputs: Outputs) -> Outputs:
        """What a run leaves, as it is elsewhere."""
        ...


class Here:
    """On the default device."""

    def jitted(self, chunk: Callable[..., Any], given: tuple[Any, ...], form: PyTree) -> Any:
        """The chunk as a jitted function; each carry goes into the next: it may be a quarter of a gigabyte."""
        return jax.jit(chunk, donate_argnums=3)

    def blank(self, form: PyTree[jax.ShapeDtypeStruct]) -> PyTree[np.ndarray]:
        """Zeros of this form, for the place of a carry that is not there yet."""
        return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), form)

    def placed(self, data: Arrays) -> Arrays:
        """The data, where the run reads them."""
        return data

    def inside(self, data: Arrays) -> Arrays:
        """The data inside of the program."""
        return data

    def outputs(self, outputs: Outputs) -> Outputs:
        """What a run leaves, as it is elsewhere."""
        return outputs

"""Which kernels do the sequential work: JAX by default, numba where it is asked for.

`Kernels` is what both implement; their messages are those that `messages.sweep` defines.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any, Protocol, cast

import numpy as np

from ...factors.errors import DataError, UnsupportedError
from .prior import Tables
from .shapes.arrays import Arrays, Leaves, Messages, Subtree

NAMES = ("jax", "numba")


class Kernels(Protocol):
    """What every back end offers, one function each; arrays are NumPy outside, whatever they are inside.

    All take trees as `Arrays` and leaves in units where the diffusion variance is 1. Densities of divergence times are
    with respect to depth. A new tree, prior or data set of the same shape compiles nothing.
    """

    def sweep(self, arrays: Arrays, leaves: Leaves) -> Messages:
        """Upward and downward messages, and the log evidence."""
        ...

    def joint_gradient(self, arrays: Arrays, leaves: Leaves, tables: Tables) -> tuple[float, np.ndarray, np.ndarray]:
        """Log joint density; its derivatives in depths (2N,) and in the logs of the columns' scales (D,)."""
        ...

    def score(
        self, arrays: Arrays, messages: Messages, subtree: Subtree, tables: Tables, fractions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gains in log joint of attaching a subtree: on every branch (2N, F), and at every branch point (2N,)."""
        ...

    def build(self, leaves: Leaves, tables: Tables, order: np.ndarray, seed: int) -> tuple[Arrays, float]:
        """A tree to which leaves are added in a given order, each at its best place, and its log joint density."""
        ...

    def search(
        self, arrays: Arrays, leaves: Leaves, tables: Tables, seed: int, steps: int
    ) -> tuple[Arrays, float, np.ndarray]:
        """Detach a random subtree and attach it at its best place, again and again; the log joint after each step."""
        ...

    def subtree_moves(
        self, arrays: Arrays, leaves: Leaves, tables: Tables, seed: int, steps: int, share_scored: float
    ) -> tuple[Arrays, np.ndarray, np.ndarray]:
        """Metropolis-Hastings moves of subtrees: how many were accepted and proposed, (prior, scored) each."""
        ...

    def depth_moves(self, arrays: Arrays, leaves: Leaves, tables: Tables, seed: int) -> Arrays:
        """A slice-sampling update of every divergence time."""
        ...


def kernels(name: str = "jax") -> Kernels:
    """The back end of a name: "jax", which is always there, or "numba", several times faster, an extra.

    Both compute the same numbers to rounding; draws of a sampler differ between them.
    """
    if name not in NAMES:
        raise DataError(f"The back ends of diffusion trees are {', '.join(NAMES)}; asked: {name!r}.")
    if name == "numba" and importlib.util.find_spec("numba") is None:
        raise UnsupportedError(
            "The numba back end needs numba, which was not found. Install the extra, pip install 'cavity[numba]', or "
            "use backend='jax', which computes the same numbers."
        )
    return cast(Any, importlib.import_module(f"{__package__}.{name}_kernels"))

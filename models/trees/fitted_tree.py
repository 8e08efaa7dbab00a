"""A tree with what its leaves say of every location: what the density of new rows is computed from."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from ...factors.errors import DataError
from .backend import Kernels, kernels
from .prior import TreePrior
from .shapes.arrays import Arrays, Leaves, Messages, pack, unpack
from .shapes.branches import Branches, bridge, of_tree
from .tree import Tree


@dataclasses.dataclass(frozen=True, eq=False)
class FittedTree:
    """A tree with what its leaves say of every location: all that prediction needs.

    Args:
        arrays: the tree.
        messages: of one sweep over it, in units where the diffusion variance is 1.
        prior: of the tree.
        scale: standard deviation of the diffusion, a number or (D,): locations are data divided by it.
        noise: variance that a new row has about its location, a number or (D,), in the units of the messages (data
            divided by `scale`).
        binary: (D,) whether a column holds 0 and 1 with `P(1 | x) = Phi(x)`, x the location times `scale`. Such a
            column has a probability where others have a density. None: no column is binary.

    Raises:
        DataError: shapes that do not fit the columns of the messages, or values out of range.
    """

    arrays: Arrays
    messages: Messages
    prior: TreePrior
    scale: Any = 1.0
    noise: Any = 0.0
    binary: Any = None

    def __post_init__(self) -> None:
        for name in ("scale", "noise"):
            value = np.asarray(getattr(self, name), dtype=np.float64)
            if value.shape not in ((), (self.columns,)) or not np.isfinite(value).all() or (value < 0.0).any():
                raise DataError(
                    f"{name} is one non-negative number, or one for each of the {self.columns} columns; found {value}."
                )
            object.__setattr__(self, name, value)
        if (self.scale == 0.0).any():
            raise DataError("The scale, a standard deviation of the diffusion, is positive; found 0.")
        binary = np.zeros(self.columns, bool) if self.binary is None else np.asarray(self.binary)
        if binary.shape != (self.columns,) or binary.dtype != bool:
            raise DataError(
                f"binary holds True or False for each of the {self.columns} columns; found {binary.dtype} of shape "
                f"{binary.shape}."
            )
        object.__setattr__(self, "binary", binary)

    def _repr_html_(self) -> str:
        """The tree, in a notebook."""
        from ...engine.html.trees import Nodes, html_of_tree

        tree = unpack(self.arrays)
        told = f"Tree of {tree.n_leaves} rows and {self.columns} columns"
        return html_of_tree(Nodes(tree.children, tree.count, tree.time, tree.names, tree.top), told)

    @property
    def columns(self) -> int:
        """How many columns."""
        return np.shape(self.messages.up_mean)[1]

    @property
    def shared(self) -> bool:
        """Whether the columns of a new row all have the same variance."""
        return self.noise.ndim == 0 and np.shape(self.messages.up_variance)[1] == 1 and not self.binary.any()

    @functools.cached_property
    def branches(self) -> Branches:
        """Where a new path may leave the tree."""
        return of_tree(self.arrays, self.messages, self.prior)

    @property
    def locations(self) -> np.ndarray:
        """(nodes, D) posterior means of the locations, numbered as in `unpack(arrays)`, times `scale`."""
        branches = self.branches
        weight = bridge(branches, branches.last[:, None])[0][:, 0]
        return self.scale * (weight * branches.low_mean + (1.0 - weight) * branches.high_mean)


def fit_tree(
    tree: Tree | Arrays,
    leaves: Leaves,
    prior: TreePrior,
    *,
    scale: Any = 1.0,
    noise: Any = 0.0,
    binary: Any = None,
    backend: str | Kernels = "jax",
) -> FittedTree:
    """A tree ready to predict from: one upward and downward sweep over it; the arguments are those of `FittedTree`."""
    arrays = pack(tree) if isinstance(tree, Tree) else tree
    engine = kernels(backend) if isinstance(backend, str) else backend
    return FittedTree(arrays, engine.sweep(arrays, leaves), prior, scale, noise, binary)

"""All divergence times of a tree at once: the maximum of the log joint density, by L-BFGS-B."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, sparse

from ....factors.errors import DataError
from ..backend import Kernels, kernels
from ..prior import MEASURES, Tables
from ..shapes.arrays import GAP, Arrays, Leaves, check_rows, nodes

DEEPEST = 500.0  # exp(-depth) stays a normal number


class Times(NamedTuple):
    """What `optimise_times` found.

    Attributes:
        arrays: the tree with its new depths.
        log_joint: log joint density in the measure asked for.
        evaluations: upward and downward sweeps spent.
        converged: whether the optimiser stopped by its tolerance.
    """

    arrays: Arrays
    log_joint: float
    evaluations: int
    converged: bool


def optimise_times(
    arrays: Arrays,
    leaves: Leaves,
    tables: Tables,
    *,
    backend: str | Kernels = "jax",
    measure: str = "depth",
    tolerance: float = 1e-3,
    evaluations: int = 500,
) -> Times:
    """Maximise the log joint density over all divergence times, the structure being fixed.

    The variables are the increments of depth from each branch point's parent to itself, bounded below by zero:
    optimal trees have branches of no length, which a logarithm of the increments would send to minus infinity. The
    gradient is exact and comes from one upward and one downward sweep.

    Args:
        arrays: the tree, its depths being the start.
        leaves: in units where the diffusion variance is 1.
        tables: of the prior.
        backend: "jax", "numba", or a module with the functions of `Kernels`.
        measure: "depth" maximises the density with respect to depths, `-log(1 - t)`. "time" maximises that with
            respect to times, which is larger by `-log(1 - t)` for each branch point: where leaves are noisy or binary
            it has no maximum, all times run to 1. It is there to reproduce papers.
        tolerance: stop when an iteration gains less than about so many nats.
        evaluations: stop after so many sweeps.

    Returns:
        The tree with its best depths; never worse than the start.

    Raises:
        DataError: another measure; a tree, leaves and tables of different sizes.

    Source: knowles2011trees.
    """
    _check(arrays, leaves, tables, measure)
    engine = kernels(backend) if isinstance(backend, str) else backend
    points = branch_points(arrays)
    start = np.asarray(arrays.depth, dtype=np.float64).copy()
    extra = 1.0 if measure == "time" else 0.0

    def value(depth: np.ndarray) -> tuple[float, np.ndarray]:
        log_joint, gradient, _ = engine.joint_gradient(arrays._replace(depth=depth), leaves, tables)
        return float(log_joint) + extra * depth[points].sum(), gradient[points] + extra

    if not len(points):
        return Times(arrays, value(start)[0], 1, True)
    path = paths(arrays, points)
    increment = np.maximum(start[points] - start[np.asarray(arrays.parent)[points]] - GAP, 0.0)
    best = _Best(value, start, points, path)
    scale = max(1.0, abs(best.first))
    result = optimize.minimize(
        best,
        increment,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * len(points),
        options={"maxfun": evaluations, "maxiter": evaluations, "ftol": tolerance / scale, "gtol": 0.0, "maxcor": 20},
    )
    return Times(arrays._replace(depth=best.depth), best.log_joint, best.calls, bool(result.success))


def _check(arrays: Arrays, leaves: Leaves, tables: Tables, measure: str) -> None:
    """DataError for an unknown measure, and for a tree, leaves and tables of different sizes."""
    if measure not in MEASURES:
        raise DataError(f"The measure of the times is one of {', '.join(MEASURES)}; found {measure!r}.")
    check_rows(arrays, leaves)
    if len(tables.harmonic) <= len(leaves.mean):
        raise DataError(
            f"The tables are those of {len(tables.harmonic) - 1} leaves, and the tree has {len(leaves.mean)}: make "
            f"them with tables(prior, {len(leaves.mean)})."
        )


def branch_points(arrays: Arrays) -> np.ndarray:
    """Rows that hold branch points."""
    used = nodes(arrays)
    return used[used >= len(arrays.parent) // 2]


def paths(arrays: Arrays, points: np.ndarray) -> Any:
    """(points, points) sparse: whether the second is on the path from the origin to the first, itself included."""
    parent = np.asarray(arrays.parent)
    place = np.full(len(parent), -1)
    place[points] = np.arange(len(points))
    above = place[parent[points]]
    row = column = np.arange(len(points))
    rows, columns = [row], [column]
    while len(row):
        column = above[column]
        row, column = row[column >= 0], column[column >= 0]
        rows.append(row)
        columns.append(column)
    row, column = np.concatenate(rows), np.concatenate(columns)
    return sparse.csr_array((np.ones(len(row)), (row, column)), shape=(len(points), len(points)))


class _Best:
    """The function to minimise, in increments; remembers the best point, since a last step may be a failed one."""

    def __init__(self, value: Callable, start: np.ndarray, points: np.ndarray, path: Any) -> None:
        self.value, self.points, self.path, self.back = value, points, path, path.T.tocsr()
        self.depth, self.calls = start, 1
        self.first = self.log_joint = value(start)[0]

    def __call__(self, increment: np.ndarray) -> tuple[float, np.ndarray]:
        depth = self.depth.copy()
        depth[self.points] = self.path @ (increment + GAP)
        self.calls += 1
        if depth[self.points].max() > DEEPEST:
            return np.inf, np.zeros_like(increment)
        log_joint, gradient = self.value(depth)
        if not np.isfinite(log_joint):
            return np.inf, np.zeros_like(increment)
        if log_joint > self.log_joint:
            self.depth, self.log_joint = depth, log_joint
        return -log_joint, -(self.back @ gradient)

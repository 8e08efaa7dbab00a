"""Building a tree leaf by leaf, and greedy search: the best of all places, again and again."""

from __future__ import annotations

import numpy as np

from ....engine.support.machine_code import resident
from ..prior import Tables
from ..shapes.arrays import FREE, Arrays, Leaves
from .edit import attach, detach
from .gradient import joint_gradient
from .place import FRACTIONS, best
from .score import scored


def build(leaves: Leaves, tables: Tables, order: np.ndarray, seed: int = 0) -> tuple[Arrays, float]:
    """A tree to which leaves are added one by one, each at its best place.

    Args:
        leaves: in units where the diffusion variance is 1.
        tables: of the prior, for at least as many leaves.
        order: (N,) the leaves in the order in which they are added.
        seed: not used: building draws nothing.

    Returns:
        the tree, and its log joint density.

    Source: knowles2015pitman.
    """
    number, given, binary = len(order), resident((leaves, tables)), _binary(tables)
    rows = np.arange(2 * number)
    is_leaf, origin = rows < number, rows == 2 * number - 1
    parent = np.where(origin, -1, FREE).astype(np.int32)
    parent[order[0]] = 2 * number - 1
    depth = np.where(is_leaf, np.inf, np.where(origin, 0.0, -1.0))
    arrays = Arrays(parent, depth, (is_leaf | origin).astype(np.int32), origin.astype(np.int32))
    for leaf in np.asarray(order, np.int32)[1:]:
        places = scored(arrays, given[0], leaf, given[1], FRACTIONS)
        arrays = attach(arrays, leaf, best(places, arrays, leaf, None, binary)[0])
    return arrays, float(joint_gradient(arrays, leaves, tables)[0])


def search(arrays: Arrays, leaves: Leaves, tables: Tables, seed: int, steps: int) -> tuple[Arrays, float, np.ndarray]:
    """Greedy search: takes out a random subtree and puts it to its best place, again and again.

    With a prior of binary trees no step decreases the joint density. With others the place, a branch or a branch
    point, is decided by the integral of the density over depth, since joint densities of trees with different numbers
    of divergence times do not compare.

    Args:
        arrays, leaves, tables: the tree, its leaves, and the tables of the prior.
        seed: of the draws of subtrees.
        steps: how many.

    Returns:
        the tree, its log joint density, and (steps,) that after each step.

    Source: knowles2015pitman.
    """
    random, given, binary, gains = np.random.default_rng(seed), resident((leaves, tables)), _binary(tables), []
    for _ in range(steps):
        if not len(movable := subtrees(arrays)):
            break
        root = movable[random.integers(len(movable))]
        rest, old = detach(arrays, root)
        place, gain = best(scored(rest, given[0], root, given[1], FRACTIONS), rest, root, old, binary)
        arrays = attach(rest, root, place)
        gains.append(gain)
    log_joint = float(joint_gradient(arrays, leaves, tables)[0])
    after = np.zeros(steps)
    after[: len(gains)] = np.cumsum(gains[::-1])[::-1] - gains
    return arrays, log_joint, log_joint - after


def subtrees(arrays: Arrays) -> np.ndarray:
    """Rows that can be taken out: all nodes but the top."""
    return np.flatnonzero((arrays.parent >= 0) & (arrays.parent < len(arrays.parent) - 1)).astype(np.int32)


def _binary(tables: Tables) -> bool:
    return bool(np.isneginf(tables.log_new[min(3, len(tables.log_new) - 1)]))

"""Building a tree leaf by leaf, and greedy search: everything within one compiled function."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ....engine.support.machine_code import Kernel, native, row
from ..shapes.arrays import FREE, Arrays, Leaves, Messages, Subtree
from .edit import Place, attach_, detach_
from .gradient import joint_gradient
from .place import best_
from .plan import links_, queue_, top_
from .sweep import Upward, down_, split, start_, still_, up_

CHUNK = 100  # search steps in one call of the compiled function


def improve_(
    rest: Arrays, node: Any, old: Place, tables: Any, upward: Upward, downward: Any
) -> tuple[Arrays, Any, Upward, Any]:
    """Attaches the row `node` to the rest of a tree at its best place.

    Messages are written where the last ones were: a step allocates nothing.

    Returns:
        the tree, the gain over the old place, and the messages' rows.
    """
    links = links_(rest)
    upward = up_(links, queue_(links, node), upward)
    mean, variance, _, _ = split(row(upward.packed, node), upward.columns, upward.entries)
    subtree = Subtree(mean, variance, rest.depth[node], rest.count[node])
    queue = queue_(links, top_(links))
    upward = up_(links, queue, upward)
    downward = down_(links, queue, upward, downward)
    _, up_variance, _, _ = upward.unpacked()
    down_variance = downward[:, upward.columns :]
    messages = Messages(upward.packed, up_variance, downward, down_variance, jnp.zeros(()))
    place, gain = best_(links, queue, rest, messages, subtree, tables, old)
    return attach_(rest, node, place), gain, upward, downward


def steps_(
    arrays: Arrays, leaves: Leaves, tables: Any, order: Any, seed: Any, done: Any, steps: Any
) -> tuple[Arrays, Any]:
    """Building and searching, as one compiled function.

    Where `done` is not negative: some greedy steps, CHUNK at most, of a search that has made `done` steps before.
    Where it is: the leaves are added in `order` from its second one on.

    Returns:
        the tree, and (CHUNK,) what each step gained.
    """
    building = done < 0
    draws = jax.random.uniform(jax.random.fold_in(jax.random.key(seed), done.astype(jnp.uint32)), (CHUNK,))
    nowhere = Place(jnp.asarray(-1, jnp.int32), jnp.zeros(()), jnp.asarray(False))

    def taken(step: Any, arrays: Arrays) -> Any:
        eligible = (arrays.parent >= 0) & (arrays.parent < arrays.parent.shape[0] - 1)
        return nth_(eligible, (draws[step] * eligible.sum()).astype(jnp.int32))

    def body(step: Any, carry: Any) -> Any:
        arrays, gains, upward, downward = carry
        node = lax.cond(building, lambda: order[step + 1], lambda: taken(step, arrays))
        rest, old = lax.cond(building, lambda: (arrays, nowhere), lambda: detach_(arrays, node))
        arrays, gain, upward, downward = improve_(rest, node, old, tables, upward, downward)
        return arrays, gains.at[step].set(gain), upward, downward  # a build's further gains are dropped

    upward = start_(leaves)
    start = Arrays(*arrays), jnp.zeros(CHUNK), upward, still_(upward)
    return lax.fori_loop(0, steps, body, start)[:2]


@native
def nth_(mask: Any, n: Any) -> Any:
    """The row of the n-th true entry, counted from 0."""

    def body(carry: Any) -> Any:
        at, left = carry
        return at + 1, left - row(mask, at).astype(jnp.int32)

    def going(carry: Any) -> Any:
        return (carry[1] > 0) | ~row(mask, carry[0])

    return lax.while_loop(going, body, (jnp.asarray(0, jnp.int32), n))[0]


_steps = Kernel(steps_)


def build(leaves: Leaves, tables: Any, order: Any, seed: int = 0) -> tuple[Arrays, float]:
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
    order = np.asarray(order, np.int32)
    rows = 2 * len(order)
    parent, depth = np.full(rows, FREE, np.int32), np.where(np.arange(rows) < len(order), np.inf, -1.0)
    parent[order[0]], parent[-1], depth[-1] = rows - 1, -1, 0.0
    count = np.where((np.arange(rows) < len(order)) | (np.arange(rows) == rows - 1), 1, 0).astype(np.int32)
    degree = (np.arange(rows) == rows - 1).astype(np.int32)
    first = Arrays(parent, depth, count, degree)
    arrays, _ = _steps(first, leaves, tables, order, np.uint32(0), np.int32(-1), np.int32(len(order) - 1))
    return arrays, float(joint_gradient(arrays, leaves, tables)[0])


def search(arrays: Arrays, leaves: Leaves, tables: Any, seed: int, steps: int) -> tuple[Arrays, float, np.ndarray]:
    """Greedy search: takes out a random subtree and puts it to its best place, again and again.

    With a prior of binary trees no step decreases the joint density. With others the place, a branch or a branch
    point, is decided by the integral of the density over depth, since joint densities of trees with different numbers
    of divergence times do not compare.

    Args:
        arrays, leaves, tables: the tree, its leaves, and the tables of the prior.
        seed: of the draws of subtrees.
        steps: how many; their number recompiles nothing.

    Returns:
        the tree, its log joint density, and (steps,) that after each step.

    Source: knowles2015pitman.
    """
    gains, leaf_count = [np.zeros(0)], leaves.mean.shape[0]
    if leaf_count > 1:  # there is a subtree to take out
        order = np.zeros(leaf_count, np.int32)
        for done in range(0, steps, CHUNK):
            some = np.int32(min(CHUNK, steps - done))
            arrays, gained = _steps(arrays, leaves, tables, order, np.uint32(seed), np.int32(done), some)
            gains.append(gained[:some])
    log_joint = float(joint_gradient(arrays, leaves, tables)[0])
    after = np.cumsum(np.concatenate([*gains, np.zeros(steps if leaf_count == 1 else 0)])[::-1])[::-1]
    return arrays, log_joint, log_joint - np.append(after, 0.0)[1:]

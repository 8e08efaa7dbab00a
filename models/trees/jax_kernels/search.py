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
from .gradient import joint_, joint_gradient
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


def build_(leaves: Leaves, tables: Any, order: Any) -> tuple[Arrays, Any]:
    """`build` for use inside a compiled function."""
    first = leaves.mean.shape[0]
    every = jnp.arange(2 * first)
    origin = every == 2 * first - 1
    arrays = Arrays(
        parent=jnp.where(origin, -1, jnp.where(every == order[0], 2 * first - 1, FREE)).astype(jnp.int32),
        depth=jnp.where(origin, 0.0, jnp.where(every < first, jnp.inf, -1.0)),
        count=(origin | (every < first)).astype(jnp.int32),
        degree=origin.astype(jnp.int32),
    )
    nowhere = Place(jnp.asarray(-1, jnp.int32), jnp.zeros(()), jnp.asarray(False))

    def body(turn: Any, carry: Any) -> Any:
        arrays, upward, downward = carry
        arrays, _, upward, downward = improve_(arrays, order[turn], nowhere, tables, upward, downward)
        return arrays, upward, downward

    upward = start_(leaves)
    arrays = lax.fori_loop(1, first, body, (arrays, upward, still_(upward)))[0]
    return arrays, joint_(arrays, leaves, tables)


def search_(arrays: Arrays, leaves: Leaves, tables: Any, seed: Any, done: Any, steps: Any) -> tuple[Arrays, Any, Any]:
    """Some greedy steps, CHUNK at most, `done` steps having been made before."""
    draws = jax.random.uniform(jax.random.fold_in(jax.random.key(seed), done), (CHUNK,))

    def body(step: Any, carry: Any) -> Any:
        arrays, log_joint, trace, upward, downward = carry
        eligible = (arrays.parent >= 0) & (arrays.parent < arrays.parent.shape[0] - 1)
        node = nth_(eligible, (draws[step] * eligible.sum()).astype(jnp.int32))
        rest, old = detach_(arrays, node)
        arrays, gain, upward, downward = improve_(rest, node, old, tables, upward, downward)
        log_joint = log_joint + gain
        return arrays, log_joint, trace.at[step].set(log_joint), upward, downward

    upward = start_(leaves)
    start = arrays, joint_(arrays, leaves, tables), jnp.zeros(CHUNK), upward, still_(upward)
    arrays, _, trace, _, _ = lax.fori_loop(0, steps, body, start)
    return arrays, joint_(arrays, leaves, tables), trace


@native
def nth_(mask: Any, n: Any) -> Any:
    """The row of the n-th true entry, counted from 0."""

    def body(carry: Any) -> Any:
        at, left = carry
        return at + 1, left - row(mask, at).astype(jnp.int32)

    def going(carry: Any) -> Any:
        return (carry[1] > 0) | ~row(mask, carry[0])

    return lax.while_loop(going, body, (jnp.asarray(0, jnp.int32), n))[0]


_build, _search = Kernel(build_), Kernel(search_)


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
    arrays, log_joint = _build(leaves, tables, np.asarray(order, np.int32))
    return arrays, float(log_joint)


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
    if leaves.mean.shape[0] == 1 or steps == 0:  # no subtree to take out, or no wish to
        log_joint = float(joint_gradient(arrays, leaves, tables)[0])
        return arrays, log_joint, np.full(steps, log_joint)
    traces, log_joint = [], np.nan
    for done in range(0, steps, CHUNK):
        some = min(CHUNK, steps - done)
        arrays, log_joint, trace = _search(arrays, leaves, tables, np.uint32(seed), np.uint32(done), np.int32(some))
        traces.append(trace[:some])
    return arrays, float(log_joint), np.concatenate(traces)

"""Exact messages about locations: one sweep up, one down, whatever the arity; the rules are those of `messages`."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ....engine.support.machine_code import Kernel, native, put, row
from ..messages import log_normal, meet, squared
from ..shapes.arrays import Messages
from .plan import Links, Queue, links_, queue_, top_


@functools.partial(jax.tree_util.register_dataclass, data_fields=["packed"], meta_fields=["columns"])
@dataclasses.dataclass(frozen=True)
class Upward:
    """Upward messages, and for each meeting of two the squared distance of their means and the sum of their variances:
    of these the evidence is made.

    They share one buffer, which every step of a loop writes to once, after all it reads: with two writes, XLA copies
    the buffer in each step.

    Attributes:
        packed: (2N, D + 3 P): mean, variance, distance, and the sum of variances, infinite where no messages met.
        columns: D.
    """

    packed: Any
    columns: int

    @property
    def entries(self) -> int:
        """P."""
        return (self.packed.shape[1] - self.columns) // 3

    def unpacked(self) -> tuple[Any, Any, Any, Any]:
        """(2N, D) mean; (2N, P) variance, distance and total."""
        return split(self.packed, self.columns, self.entries)


def split(packed: Any, columns: int, entries: int) -> tuple[Any, ...]:
    """Parts of the last axis: first `columns` of it, then parts of `entries`."""
    ends = range(columns, packed.shape[-1], entries)
    return packed[..., :columns], *(packed[..., end : end + entries] for end in ends)


def start_(leaves: Any) -> Upward:
    """Upward messages before any meeting: those of the leaves."""
    first, columns = leaves.mean.shape
    entries = leaves.variance.shape[1]
    none = jnp.full((first, entries), jnp.inf)
    own = jnp.concatenate([leaves.mean, leaves.variance, jnp.zeros((first, entries)), none], 1)
    empty = jnp.concatenate([jnp.zeros((first, columns + 2 * entries)), none], 1)
    return Upward(jnp.concatenate([own, empty]), columns)


@native
def up_(links: Links, queue: Queue, upward: Upward) -> Upward:
    """Upward messages of the meetings in a queue, those of its leaves being there."""
    first, columns, entries = links.left.shape[0], upward.columns, upward.entries

    def body(step: Any, packed: Any) -> Any:
        above = row(queue.slot, queue.size - 1 - step)
        one, two = row(links.left, above - first), row(links.right, above - first)
        own, other = (split(row(packed, below), columns, entries) for below in (one, two))
        variance, other_variance = own[1] + row(links.length, one), other[1] + row(links.length, two)
        met = *meet(own[0], variance, other[0], other_variance), squared(own[0] - other[0], entries)
        return put(packed, above, jnp.concatenate([*met, variance + other_variance]))

    return Upward(lax.fori_loop(0, queue.size, body, upward.packed), columns)


@native
def down_(links: Links, queue: Queue, upward: Upward, packed: Any) -> Any:
    """Downward means and variances of all rows below the meetings of a queue that starts with the top, written into
    the (2N, D + P) rows `packed`."""
    first, columns, entries = links.left.shape[0], upward.columns, upward.entries
    width = columns + entries

    def body(step: Any, packed: Any) -> Any:
        above = row(queue.slot, step // 2)
        one, two = row(links.left, above - first), row(links.right, above - first)
        own, other = jnp.where(step % 2 == 0, one, two), jnp.where(step % 2 == 0, two, one)
        mean, variance = split(row(packed, above), columns, entries)
        other_mean, other_variance = split(row(upward.packed, other)[:width], columns, entries)
        met = meet(mean, variance + row(links.length, above), other_mean, other_variance + row(links.length, other))
        return put(packed, own, jnp.concatenate(met))

    top = row(queue.slot, 0)  # nothing is known above it but that the origin is at 0
    return lax.fori_loop(0, 2 * queue.size, body, put(packed, top, jnp.zeros(width)))


def still_(upward: Upward) -> Any:
    """Downward messages before any: zeros."""
    return jnp.zeros((upward.packed.shape[0], upward.columns + upward.entries))


def evidence_(links: Links, upward: Upward) -> Any:
    """Log evidence, where only the tree's own meetings are in the messages: every meeting's, and that with the origin,
    whose location is 0."""
    _, _, distance, total = upward.unpacked()
    top = top_(links)
    mean, variance, _, _ = split(row(upward.packed, top), upward.columns, upward.entries)
    origin = log_normal(squared(mean, upward.entries), variance + row(links.length, top), upward.columns)
    return log_normal(distance, total, upward.columns).sum() + origin


def sweep_on(links: Links, queue: Queue, upward: Upward) -> Messages:
    """Both sweeps on given links and queue."""
    upward = up_(links, queue, upward)
    down_mean, down_variance = split(down_(links, queue, upward, still_(upward)), upward.columns, upward.entries)
    mean, variance, _, _ = upward.unpacked()
    return Messages(mean, variance, down_mean, down_variance, evidence_(links, upward))


def sweep_(arrays: Any, leaves: Any) -> Messages:
    """`sweep` for use inside a compiled function."""
    links = links_(arrays)
    return sweep_on(links, queue_(links, top_(links)), start_(leaves))


sweep = Kernel(sweep_)
sweep.__doc__ = """Messages of both sweeps, and the evidence: `sweep(arrays, leaves) -> Messages`.

Source: knowles2015pitman.
"""

"""Natural parameters by variable, the state that a sweep moves, and sums and differences of natural parameters."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from ...factors.arrays import Array, Numeric

Parts = tuple[PyTree, ...]  # the natural parameters of a belief
Naturals = dict[str, tuple[PyTree, ...]]


class State(NamedTuple):
    """What a sweep maps to its successor."""

    moving: Naturals
    messages: dict[str, PyTree]


class Fixed(NamedTuple):
    """What stays during a run: the constant messages and the EP blocks' data in schedule order."""

    constant: Naturals
    prepared: dict[str, PyTree]


class Sweep(NamedTuple):
    """One sweep's result.

    In order: the new state, the residual in standard deviations, the evidence by factor of the state it began from
    (with its transient variables brought up to date), whether all beliefs of that state are proper, whether those of
    the new one are too, and how many cavities were floored by block.
    """

    state: State
    residual: Array
    evidence: dict[str, PyTree]
    sound: Array
    proper: Array
    floored: dict[str, PyTree]


def spread(rate: Numeric, array: Array) -> Numeric:
    """A rate by element against naturals with event axes."""
    return jnp.reshape(rate, jnp.shape(rate) + (1,) * (jnp.ndim(array) - jnp.ndim(rate))) if jnp.ndim(rate) else rate


def add(a: Parts, b: Parts) -> Parts:
    """The naturals of a product."""
    return jax.tree.map(jnp.add, tuple(a), tuple(b))


def subtract(a: Parts, b: Parts) -> Parts:
    """The naturals of a quotient."""
    return jax.tree.map(jnp.subtract, tuple(a), tuple(b))

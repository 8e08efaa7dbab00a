"""The step of a sweep that changes a structure: proposals, accepted by the rule of Metropolis and Hastings.

Source: hastings1970monte.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from ...compiler.language.nodes import inside
from ...factors.arrays import Array, Key
from ..mcmc.structure import Score, Structure, Structured, StructureMove
from .joint import Data, Joint, Values
from .move import Move, stateless


def score_of(
    joint: Joint, structured: Structured, values: Values, data: Data, factors: Sequence[str] | None = None
) -> Score:
    """The log joint density of a structure given these values of all else; of the factors that read it, or of these."""
    factors = touching(joint, structured.names) if factors is None else factors

    def score(structure: Structure) -> Array:
        found = joint.total(factors, structured.put(values, structure), data) + structured.log_prior(structure)
        return jnp.where(jnp.isnan(found), -jnp.inf, found)

    return score


def moved(
    joint: Joint, structured: Structured, key: Key, values: Values, data: Data, temperature: Array | float = 1.0
) -> Values:
    """The values after the proposals of a sweep, at a temperature where it is a search."""
    score = score_of(joint, structured, values, data)

    def again(move: StructureMove, i: Array, now: tuple[Structure, Array]) -> tuple[Structure, Array]:
        structure, height = now
        keys = jax.random.split(jax.random.fold_in(key, i))
        other, ratio = move.propose(keys[0], structure, score)
        there = score(other)
        gain = jnp.where(jnp.isneginf(height), jnp.inf, (there - height) / temperature + ratio)
        taken = (jnp.log(jax.random.uniform(keys[1])) < gain) & (there > -jnp.inf)
        return jax.tree.map(lambda new, old: jnp.where(taken, new, old), other, structure), jnp.where(
            taken, there, height
        )

    now, begin = (values[structured.own], score(values[structured.own])), 0
    for move in structured.moves:
        now = jax.lax.fori_loop(begin, begin + move.times, lambda i, now, move=move: again(move, i, now), now)
        begin += move.times
    return structured.put(values, now[0])


def structure_move(joint: Joint, structured: Structured) -> Move:
    """The step of a sweep that proposes another structure."""
    kinds = ", ".join(type(move).__name__.lower() for move in structured.moves)
    return stateless(
        structured.names,
        f"by proposals of another structure ({kinds})",
        lambda key, values, data: moved(joint, structured, key, values, data),
        exact=False,
    )


def touching(joint: Joint, names: Sequence[str]) -> tuple[str, ...]:
    """The factors that read any of these data, or whose outcome they are; integrals may read all."""
    wanted = set(names)

    def reads(name: str) -> bool:
        if name in wanted or name in joint.integrals:
            return True
        return any(getattr(node, "name", None) in wanted for node in inside(joint.factors[name].roots))

    return tuple(name for name in joint.factors if reads(name))

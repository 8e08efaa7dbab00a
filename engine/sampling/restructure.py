"""The step of a sweep that changes a structure: proposals, accepted by the rule of Metropolis and Hastings.

Source: hastings1970monte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ...compiler.language.nodes import inside
from ...factors import draws
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
    """The values after the proposals of a sweep, at a temperature where it is a search.

    Proposals that change nothing, such as a birth where no place is free, are not counted.
    """
    score = score_of(joint, structured, values, data)

    def again(move: StructureMove, i: Array, now: tuple[Structure, Array, Array]) -> tuple[Structure, Array, Array]:
        structure, height, counts = now
        keys = jax.random.split(jax.random.fold_in(key, i))
        other, ratio = move.propose(keys[0], structure, score)
        there = score(other)
        gain = jnp.where(jnp.isneginf(height), jnp.inf, (there - height) / temperature + ratio)
        taken = (-draws.exponential(keys[1]) < gain) & (there > -jnp.inf)
        new = _differ(other, structure)
        kept = jax.tree.map(lambda one, two: jnp.where(taken, one, two), other, structure)
        return kept, jnp.where(taken, there, height), counts + jnp.stack([new, new & taken])

    structure, begin, counts = values[structured.own], 0, []
    height = score(structure)
    for move in structured.moves:
        now = (structure, height, jnp.zeros(2, int))
        structure, height, count = jax.lax.fori_loop(
            begin, begin + move.times, lambda i, now, move=move: again(move, i, now), now
        )
        begin += move.times
        counts.append(count)
    return {**structured.put(values, structure), structured.told: jnp.stack(counts)}


def _differ(one: Structure, other: Structure) -> Array:
    """Whether two structures are not the same."""
    leaves = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return jnp.any(jnp.stack([jnp.any(a != b) for a, b in leaves]))


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


def acceptance(joint: Joint, told: Mapping[str, np.ndarray]) -> dict[str, dict[str, float]]:
    """By structure and move the share of proposals of something new that were taken; NaN where there were none.

    `told`: by `Structured.told`, (chains, sweeps, moves, 2).
    """
    found: dict[str, dict[str, float]] = {}
    for one in joint.structures:
        counts: dict[str, np.ndarray] = {}
        for move, count in zip(one.moves, told[one.told].sum((0, 1)), strict=True):
            kind = type(move).__name__.lower()
            counts[kind] = counts.get(kind, 0) + count
        found[", ".join(one.names)] = {
            kind: float(taken / new) if new else float("nan") for kind, (new, taken) in counts.items()
        }
    return found

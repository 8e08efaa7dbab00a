"""How a run ended: its result code, and its rank among several."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from ....factors.arrays import Array
from .carry import Carry, Settings
from .judging import Judgement

CONVERGED, SLOW, OSCILLATING, DIVERGED, RUNNING, CONTRADICTION = 0, 1, 2, 3, 4, 5
# By code, the rank of a run among several: where the evidence is a bound, it is one before convergence too.
RANKS = {False: (0, 1, 1, 2, 1, 3), True: (0, 0, 0, 1, 0, 3)}
UNSOUND = 4  # the rank of a run that met no sound state
EQUAL = 1e-8  # of the evidence, relative: so far apart are runs that ended at one fixed point


def code_after(carry: Carry, judged: Judgement, spent: Bool[Array, ""], settings: Settings) -> Int[Array, ""]:
    """The code after a sweep; `spent` tells that no smaller step and no narrower start is left."""
    last = carry.iteration + 1 >= settings.max_iterations
    unfinished = jnp.where(last, _out_of_sweeps(carry, judged.residual), RUNNING)
    ended = jnp.where(spent | judged.done, DIVERGED, unfinished)
    return jnp.where(judged.done & judged.whole, CONVERGED, ended).astype(jnp.int32)


def _out_of_sweeps(carry: Carry, residual: Float[Array, ""]) -> Int[Array, ""]:
    """Oscillating when damping was needed again and again, else slow."""
    return jnp.where((carry.tally.damped > 3) & (residual > 10.0 * carry.best.residual), OSCILLATING, SLOW)


def preferred(
    code: Int[Array, " run"], found: Bool[Array, " run"], evidence: Float[Array, " run"], monotone: bool
) -> Int[Array, ""]:
    """The position of the best of several runs: the best evidence among those of the best rank.

    Without convergence the evidence of EP means little, and that of a run that diverged nothing. Of runs that differ by
    no more than runs to one fixed point do it is the first that converged: rounding must not decide which order
    components have.
    """
    rank = jnp.where(found, jnp.asarray(RANKS[monotone])[code], UNSOUND)
    highest = evidence[jnp.lexsort((-evidence, rank))[0]]
    as_high = evidence >= highest - EQUAL * (1.0 + jnp.abs(highest))
    alike = (rank == jnp.min(rank)) & (as_high | (evidence == highest))
    return jnp.argmax(jnp.where(alike, 1 + (code == CONVERGED), 0))

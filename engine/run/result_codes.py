"""How a run ended: its result code, its rank among several, and the diagnosis, a sentence on what to do."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from ...factors.arrays import Array
from .carry import Carry, Settings
from .judging import Judgement
from .result import Result

CONVERGED, SLOW, OSCILLATING, DIVERGED, RUNNING, CONTRADICTION = 0, 1, 2, 3, 4, 5
# By code, the rank of a run among several: where the evidence is a bound, it is one before convergence too.
RANKS = {False: (0, 1, 1, 2, 1, 3), True: (0, 0, 0, 1, 0, 3)}
UNSOUND = 4  # the rank of a run that met no sound state


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

    Without convergence the evidence of EP means little, and that of a run that diverged nothing.
    """
    rank = jnp.where(found, jnp.asarray(RANKS[monotone])[code], UNSOUND)
    return jnp.lexsort((-evidence, rank))[0]


def diagnosis(result: Result, code: str) -> str:
    """How a run with this result code ended and what to do."""
    sweeps = int(result.number("iteration"))
    error, step = float(result.number("error")), float(result.number("step"))
    damped, rejected = int(result.number("damped")), int(result.number("rejected"))
    care = f"{rejected} extrapolations dropped, {damped} times damped, final step {step:.2g}"
    if code == "converged" and error == 0.0 and sweeps == 1:
        return "Exact in one pass."
    if code == "converged":
        return f"Converged in {sweeps} sweeps: estimated distance from the fixed point {error:.1e} sd ({care})."
    if code == "contradiction":
        return (
            "Observations and constraints contradict each other: together they have probability zero, and the "
            "marginals mean nothing. `posterior.evidence` shows the factors at fault with minus infinity."
        )
    if code == "diverged":
        return (
            f"Diverged after {sweeps} sweeps: even small steps from the last sound state make a belief improper, an "
            f"energy infinite, or lose evidence ({care}). The marginals are those of the last sound state, and may be "
            "far from the answer. Try method='vmp' for the loopy part, stronger priors, or check the data for outliers "
            "on a huge scale."
        )
    if code == "oscillating":
        return (
            f"Oscillating after {sweeps} sweeps ({care}): strong loops pull in turns. "
            "Try method='vmp' or cv.power(0.5) for the factors involved, or more sweeps (max_iterations=)."
        )
    return (
        f"Stopped after {sweeps} sweeps, {error:.1e} sd from the fixed point by estimate ({care}). "
        "Give more sweeps (max_iterations=) or a larger tolerance=."
    )

"""How a run ended, in a sentence, and what to do."""

from __future__ import annotations

from .result import Result


def diagnosis(result: Result, code: str) -> str:
    """How a run with this result code ended and what to do."""
    sweeps = int(result.number("iteration"))
    error, step = float(result.number("error")), float(result.number("step"))
    damped, rejected = int(result.number("damped")), int(result.number("rejected"))
    care = f"{rejected} extrapolations dropped, {damped} times damped, final step {step:.2g}"
    if code == "converged" and error == 0.0 and sweeps == 1:
        return "Done in one pass: no message waits for another."
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

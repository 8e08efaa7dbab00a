"""How a run ended, in a sentence, and what to do."""

from __future__ import annotations

import numpy as np

from .fixed_points import SAME
from .result import Result

SHOWN = 4  # fixed points that are listed


def diagnosis(result: Result, code: str) -> str:
    """How a run with this result code ended and what to do, and where others of its starts ended."""
    several = on_starts(np.asarray(result.outputs["all_evidence"]), float(result.number("evidence")))
    if result.position:
        several = f"Of the fixed points that several starts met this is number {result.position + 1}, from the best."
    return how_it_ended(result, code) + (f" {several}" if several else "")


def fixed_points(evidence: np.ndarray, best: float) -> list[tuple[float, int]]:
    """Where several starts ended: the log evidence of each fixed point, from the `best` down, and how many met it.

    What lies above the best is no evidence, but that of a run which did not end well.
    """
    left = np.sort(evidence[np.isfinite(evidence) & (evidence <= best + SAME)])[::-1]
    found: list[tuple[float, int]] = []
    for value in left:
        if found and found[-1][0] - value <= SAME:
            found[-1] = found[-1][0], found[-1][1] + 1
        else:
            found.append((float(value), 1))
    return found


def on_starts(evidence: np.ndarray, best: float) -> str:
    """Where the starts of a run ended, in a sentence; nothing of a single one."""
    if len(evidence) == 1 or not (found := fixed_points(evidence, best)):
        return ""
    if len(found) == 1 and found[0][1] == len(evidence):
        return f"All of {len(evidence)} starts met the same log evidence."
    many = "; ".join(f"{value:.7g} ({counted(number, 'start')})" for value, number in found[:SHOWN])
    more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    lost = len(evidence) - sum(number for _, number in found)
    failed = f"; {counted(lost, 'start')} did not end well" if lost else ""
    points = counted(len(found), "fixed point")
    return f"The best of {len(evidence)} starts, by log evidence of {points}: {many}{more}{failed}."


def counted(number: int, noun: str) -> str:
    """So many of a noun, whose plural has an s: "1 sweep", "12 sweeps"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def how_it_ended(result: Result, code: str) -> str:
    """How a run with this result code ended and what to do."""
    sweeps = int(result.number("iteration"))
    made = counted(sweeps, "sweep")
    error, step = float(result.number("error")), float(result.number("step"))
    damped, rejected = int(result.number("damped")), int(result.number("rejected"))
    care = f"{rejected} extrapolations dropped, {damped} times damped, final step {step:.2g}"
    if code == "converged" and error == 0.0 and sweeps == 1:
        return "Done in one pass: no message waits for another."
    if code == "converged":
        return f"Converged in {made}: estimated distance from the fixed point {error:.1e} sd ({care})."
    if code == "contradiction":
        return (
            "Observations and constraints contradict each other: together they have probability zero, and the "
            "marginals mean nothing. `posterior.evidence` shows the factors at fault with minus infinity."
        )
    if code == "diverged":
        return (
            f"Diverged after {made}: even small steps from the last sound state make a belief improper, an "
            f"energy infinite, or lose evidence ({care}). The marginals are those of the last sound state, and may be "
            "far from the answer. Try method='vmp' for the loopy part, stronger priors, or check the data for outliers "
            "on a huge scale."
        )
    if code == "oscillating":
        return (
            f"Oscillating after {made} ({care}): strong loops pull in turns. "
            "Try method='vmp' or cv.power(0.5) for the factors involved, or more sweeps (max_iterations=)."
        )
    if improper := int(result.number("improper")):
        return (
            f"Stopped after {made} in a state that is no fixed point ({care}): without the message of "
            f"{counted(improper, 'instance')} a belief would be no distribution, so less of it was "
            "taken out. The log evidence means little here. Give restarts= or another seed=, stronger priors, fewer "
            "components, or method=cv.power(0.5) or 'vmp', whose messages keep beliefs proper more often."
        )
    return (
        f"Stopped after {made}, {error:.1e} sd from the fixed point by estimate ({care}). "
        "Give more sweeps (max_iterations=) or a larger tolerance=."
    )

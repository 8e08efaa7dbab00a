"""What the controller is given, what it carries from one sweep to the next, and what it holds before the first."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int, PyTree

from ....factors.arrays import Array

SMALLEST_RIDGE = 1e-12

Parts: TypeAlias = dict[str, Float[Array, ""]]  # the evidence by factor
Counts: TypeAlias = dict[str, Int[Array, ""]]  # how many cavities were floored, by block


# What is accelerated: a vector, or several arrays of numbers where some are those of one device each.
Point: TypeAlias = PyTree[Float[jax.Array, "..."]]


class Settings(NamedTuple):
    """How the controller works; `monotone` is true when every sweep must raise the evidence (pure VMP and NCVMP).

    `climbs` is true when sweeps head for more evidence, also those of structured VMP, which may lose a little of it.
    """

    tolerance: float = 1e-6
    max_iterations: int = 1000
    depth: int = 5
    monotone: bool = False
    climbs: bool = False
    with_evidence: bool = True
    trace: int = 1000  # sweeps recorded; writes beyond are dropped
    damping: float = 0.0  # the share of the old that every step keeps at least
    seeded: bool = False  # the first sweep sees selectors as they are seeded, and its evidence means nothing

    @property
    def longest(self) -> float:
        """The largest step that a sweep makes."""
        return 1.0 - self.damping


class Swept(NamedTuple):
    """What a sweep makes of a state x."""

    y: Point
    rest: PyTree
    residual: Float[Array, ""]  # largest change of a belief, in its standard deviations
    parts: Parts  # of x
    begun: Bool[Array, ""]  # whether the beliefs of x are proper
    proper: Bool[Array, ""]  # whether those of y are too
    floored: Counts


# sweep(x, rest, step, whether it is the first), and the start made narrower so many times
Sweeper: TypeAlias = Callable[[Point, PyTree, Float[Array, ""], Bool[Array, ""]], Swept]
Starter: TypeAlias = Callable[[Int[Array, ""]], Point]


class Good(NamedTuple):
    """The last sweep that did not fail."""

    y: Point  # what it made of its start
    residual: Float[Array, ""]
    older_residual: Float[Array, ""]  # of the one before it
    evidence: Float[Array, ""]


class Best(NamedTuple):
    """The smallest residual so far, and the sweep that it was seen at."""

    residual: Float[Array, ""]
    at: Int[Array, ""]


class Pace(NamedTuple):
    """How far a sweep goes towards its targets (`damping.py`)."""

    step: Float[Array, ""]  # from 0 to 1
    ceiling: Float[Array, ""]  # a step above this failed: growth slows down


class History(NamedTuple):
    """What Anderson's extrapolation knows of the map (`next_start.py`)."""

    differences_x: Point  # of starts of sweeps, stacked along a first axis
    differences_r: Point  # of what an undamped sweep would add
    last_x: Point
    last_r: Point
    ridge: Float[Array, ""]  # of its least squares: large after failures, when it is nearly a plain sweep
    used: Int[Array, ""]  # how many differences are in use


class Sound(NamedTuple):
    """The last start that was found sound: what a run returns."""

    x: Point
    rest: PyTree  # parts of the state that no sweep reads
    parts: Parts
    found: Bool[Array, ""]  # whether there was one


class Tally(NamedTuple):
    """How many sweeps there were of each kind."""

    iteration: Int[Array, ""]
    accepted: Int[Array, ""]  # that succeeded since the start
    rejected: Int[Array, ""]  # extrapolations dropped
    damped: Int[Array, ""]
    narrowed: Int[Array, ""]  # times that the start was made narrower
    floored: Counts


class Carry(NamedTuple):
    """The controller's state between two sweeps."""

    x: Point  # what the next sweep starts from
    base: Point  # the last start that turned out sound
    accelerated: Bool[Array, ""]  # whether x is an extrapolation
    closing: Bool[Array, ""]  # converged; the last sweep only evaluates the evidence of the answer
    code: Int[Array, ""]
    error: Float[Array, ""]  # estimated distance from the fixed point, in standard deviations
    good: Good
    best: Best
    pace: Pace
    history: History
    sound: Sound
    tally: Tally
    residuals: Float[jax.Array, " trace"]
    evidences: Float[jax.Array, " trace"]

    @property
    def iteration(self) -> Int[Array, "..."]:
        """Number of sweeps."""
        return self.tally.iteration

    @property
    def residual(self) -> Float[Array, "..."]:
        """That of the last sweep that did not fail."""
        return self.good.residual


def begin(x: Point, rest: PyTree, floored: Counts, parts: Parts, settings: Settings, code: int) -> Carry:
    """The carry before the first sweep, with the result code of a run that goes on."""
    inf, zero, false = jnp.asarray(jnp.inf), jnp.zeros((), jnp.int32), jnp.asarray(False)
    empty = jax.tree.map(lambda own: jnp.zeros((settings.depth, *own.shape), own.dtype), x)
    trace = jnp.full(settings.trace, jnp.nan)
    return Carry(
        x=x,
        base=x,
        accelerated=false,
        closing=false,
        code=jnp.asarray(code, jnp.int32),
        error=inf,
        good=Good(x, inf, inf, -inf),
        best=Best(inf, zero),
        pace=Pace(step=jnp.asarray(settings.longest), ceiling=jnp.asarray(settings.longest)),
        history=History(empty, empty, x, jax.tree.map(jnp.zeros_like, x), jnp.asarray(SMALLEST_RIDGE), zero),
        sound=Sound(x, rest, parts, false),
        tally=Tally(zero, zero, zero, zero, zero, floored),
        residuals=trace,
        evidences=trace,
    )

"""What `cv.evidence` returns."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

from ...factors.calls import methods_checked
from ..sampling.move import Move
from .estimators import Estimate


@methods_checked("evidence")
@dataclasses.dataclass(frozen=True, repr=False)
class Evidence:
    """The log evidence of a model by tempering or annealing.

    Attributes:
        log_evidence: log p(data).
        standard_error: of it, from the correlations of the chains and the differences between copies of the ladder.
        method: "tempering" or "annealing".
        estimates: (value, error) by estimator; the first is `log_evidence`.
        ladder: inverse temperatures, from zero (the reference) to one (the posterior).
        rejections: how often exchanges of neighbours were rejected, by pair.
        round_trips: how often a replica went from the reference to the posterior and back, in all copies together.
        barrier: the sum of the rejections: how far the reference is from the posterior.
        sweeps: that were kept, after as many that adapted the ladder.
        copies: of the ladder, side by side.
        effective: of annealing, how many particles of equal weight would tell as much; else nan.
        moves: the steps of a sweep.
        reference: the names of the variables whose reference is a belief; of the others it is the prior.
        asked: sweeps that were asked for; `max_seconds` may have ended them before.
        log_ratio_means: the mean of log p(x, data) - log r(x), r being the reference, at each inverse temperature: with
            the prior as the reference that of the log likelihood, whose integral is the evidence. None of annealing.
        log_ratio_sds: its standard deviation there.
        orders: the logarithm of how many orders of the components `ordered`, which the model cannot tell apart, there
            are for each that the chains met; `log_evidence` has them all.
    """

    log_evidence: float
    standard_error: float
    method: str
    estimates: dict[str, Estimate]
    ladder: Float[np.ndarray, " rung"]
    rejections: Float[np.ndarray, " pair"]
    round_trips: int
    barrier: float
    sweeps: int
    copies: int
    effective: float
    moves: tuple[Move, ...]
    reference: tuple[str, ...]
    asked: int | None = None
    log_ratio_means: Float[np.ndarray, " rung"] | None = None
    log_ratio_sds: Float[np.ndarray, " rung"] | None = None
    orders: float = 0.0
    ordered: str = ""

    def explain(self) -> str:
        """How it was found: estimators, path, exchanges and the steps of a sweep."""
        lines = [f"{name}: {found.value:.3f} +- {found.error:.3f}" for name, found in self.estimates.items()]
        start = f"beliefs about {', '.join(self.reference)}" if self.reference else "the prior"
        lines.append(f"path: from {start} to the posterior over {len(self.ladder)} inverse temperatures")
        if self.method == "annealing":
            lines.append(f"particles: {self.copies}, of which {self.effective:.0f} count; barrier {self.barrier:.1f}")
        else:
            worst = int(np.argmax(self.rejections))
            lines.append(
                f"exchanges: {self.rejections.mean():.0%} rejected (at most {self.rejections[worst]:.0%}, from inverse "
                f"temperature {self.ladder[worst]:.2g} on); barrier {self.barrier:.1f}; {self.round_trips} round trips "
                f"in {self.sweeps} sweeps of {self.copies} copies"
            )
        if self.ordered:
            lacking = max(self.orders, 0.0)  # below zero by rounding alone, where beliefs hold all orders
            lines.append(f"all orders of {self.ordered} count; those that no chain has met add {lacking:.2f}")
        if self.asked is not None and self.sweeps < self.asked:
            lines.append(f"max_seconds ended the sweeps after {self.sweeps:,} of {self.asked:,}")
        lines.append("Of a sweep each step draws, given all others,")
        return "\n".join([*lines, *(f"  {', '.join(move.names)}: {move.how}" for move in self.moves)])

    def __repr__(self) -> str:
        return f"<log evidence {self.log_evidence:.3f} +- {self.standard_error:.3f} by {self.method}>"

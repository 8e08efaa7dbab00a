"""How far the log evidence of a posterior is from the truth, in one line."""

from __future__ import annotations

import dataclasses
import warnings

from ...compiler.symmetry import interchangeable
from ...factors.errors import CavityError, CavityWarning, ModelError, UnsupportedError
from ..answers.inferred import Inferred
from ..checks.corrected_evidence import corrected_evidence
from ..checks.trust import trust
from ..density.log_density import density_of
from ..options import seed_of
from ..support.asked_arguments import check_counts
from .estimators import Estimate
from .evidence import Asked, evidence_of
from .path import check_proper

WAYS = ("auto", "series", "draws", "tempering")
FEW = 50  # numbers of which draws are weighted in seconds
DRAWS = 2000  # weighted, of a round
WIDER, COPIES = 1.5, 4
CERTAIN = 2.0  # standard errors
SERIES, SMALL = "the series for what EP lacks", 0.1  # nats


@dataclasses.dataclass(frozen=True)
class EvidenceCheck:
    """The log evidence of a posterior beside another estimate; `print` it.

    `claimed` is that of the posterior, `log_evidence` the estimate, `standard_error` that of the estimate, and `by` how
    it was found. Of a series the error is the size of what it adds: about as much may be left, and not by chance.
    `orders` is what all orders of components that are alike add to the estimate; beliefs know one.
    """

    claimed: float
    log_evidence: float
    standard_error: float
    by: str
    orders: float = 0.0

    @property
    def difference(self) -> float:
        """The claimed log evidence minus the estimate."""
        return self.claimed - self.log_evidence

    @property
    def agrees(self) -> bool:
        """Whether two standard errors explain the difference; by a series, whether all that it knows of is small."""
        if self.by == SERIES:
            return abs(self.difference) + self.standard_error <= SMALL
        return abs(self.difference) <= CERTAIN * self.standard_error

    def __str__(self) -> str:
        side = "above" if self.difference > 0.0 else "below"
        told = ", which chance explains" if self.agrees else ""
        if self.by == SERIES:
            told = ", which is little" if self.agrees else "; by='tempering' measures it"
        return (
            f"log evidence {self.claimed:.2f} is {abs(self.difference):.2f} {side} {self.log_evidence:.2f} "
            f"+- {self.standard_error:.2f} by {self.by}{told}."
        )

    __repr__ = __str__


def check_evidence(posterior: Inferred, *, sweeps: int = 256, seed: int = 0, by: str = "auto") -> EvidenceCheck:
    """See `Posterior.check_evidence`."""
    check_counts("check_evidence", sweeps=sweeps)
    seed = seed_of(seed)
    if not isinstance(by, str) or by not in WAYS:
        raise ModelError(f"check_evidence(by={by!r}): the ways are {', '.join(map(repr, WAYS))}.")
    density = density_of(posterior)  # says why where there is none
    check_proper(v for name, v in posterior.model.randoms.items() if name not in posterior.binding.observed)
    claimed = float(posterior.log_evidence)
    is_long = not density.summed and density.dimension > FEW and not hasattr(posterior, "plain")
    try_series, try_draws = by == "series" or (by == "auto" and is_long), by in ("auto", "draws") and not density.summed
    if try_series and (found := _by_series(posterior, by == "series")) is not None:
        return EvidenceCheck(claimed, *found, SERIES)
    if try_draws and (found := _by_weighted_draws(posterior, seed)) is not None:
        return EvidenceCheck(claimed, *found, "weighted draws of the joint density")
    if by == "draws":
        raise UnsupportedError(
            "check_evidence(by='draws'): weighted draws are of no use here: too many numbers, weights that say too "
            "little, or discrete variables. by='tempering' takes chains on a path from these beliefs."
        )
    asked = Asked(sweeps=sweeps, copies=COPIES, wider=WIDER, seed=seed, or_prior=True)
    found = evidence_of(posterior.model, posterior.binding, posterior, asked)
    by, alike = "tempering from these beliefs", interchangeable(posterior.graph)
    if found.ordered:
        by += f", over all orders of {found.ordered}, of which {found.orders:.2f}"
    elif alike:
        by = f"tempering from the prior, over all orders of {', '.join(alike[0].components)}"
    return EvidenceCheck(claimed, found.log_evidence, found.standard_error, by, found.orders)


def _by_series(posterior: Inferred, asked: bool) -> Estimate | None:
    """EP's evidence with what pairs of factors add, which is also what is told as its error; None where it is off.

    In nine models of probit regression and skills whose evidence is known, .05 to 1.5 of that was left, .9 rms.

    What was `asked` for is refused with the reason.
    """
    if asked and (alike := interchangeable(posterior.graph)):
        raise UnsupportedError(
            f"check_evidence(by='series'): the components {alike[0].components} are alike, and the series knows one of "
            "their orders. by='tempering' counts all."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", CavityWarning)
            found = corrected_evidence(posterior)
    except (CavityError, CavityWarning) as reason:
        if asked:
            raise UnsupportedError(f"check_evidence(by='series'): {reason}") from None
        return None
    return Estimate(float(found), found.size)


def _by_weighted_draws(posterior: Inferred, seed: int) -> Estimate | None:
    """From the mean weight, where the weights are usable."""
    beliefs = getattr(posterior, "plain", posterior)  # of one whose answer is weighted draws itself
    try:
        witness = trust(beliefs, None, seed=seed + 1, count=DRAWS).witness  # others than those of such an answer
    except CavityError:
        return None
    return None if witness is None else Estimate(witness.found.log_total, witness.found.error)

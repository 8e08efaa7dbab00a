"""What the evidence of EP lacks, to second order: the log of R, where the evidence itself is that of EP times R.

With q the beliefs and q_n the tilted distribution of factor n, both normalised, R = E_q prod_n q_n / q. Written as
prod_n (1 + e_n), each e_n has the mean zero, so that the first terms are those of pairs: R is about
1 + sum_{m < n} E_q e_m e_n. Source: opper2013perturbative, paquet2007thesis.
"""

from __future__ import annotations

from typing import Any

from ...compiler.blocks.mixture import MixtureBlock
from ...compiler.blocks.site import SiteBlock
from ...compiler.blocks.whole import ProcessBlock
from ...factors.errors import UnsupportedError
from ..answers.inferred import Inferred
from ..answers.outcome import Outcome
from ..support.warn import warn
from .gaussian_pairs import gaussian_pairs
from .mixture_pairs import mixture_pairs

LARGEST = 0.5  # nats that all pairs together may add, their signs aside, for what follows them to be small beside it


class CorrectedEvidence(float):
    """log p(data), by EP with the correction of second order: a number, that of EP alone where there is no correction.

    Attributes:
        plain: what EP says.
        correction: what was added to it.
        size: the sum over pairs of factors of what they add, their signs aside.
        trusted: whether the correction is small enough to be one.
        warning: why it cannot be trusted; empty where it can.
    """

    plain: float
    correction: float
    size: float
    warning: str

    def __new__(cls, plain: float, correction: float, size: float, warning: str) -> CorrectedEvidence:
        """`plain` + `correction`."""
        found = super().__new__(cls, plain + correction)
        found.plain, found.correction, found.size, found.warning = plain, correction, size, warning
        return found

    @property
    def trusted(self) -> bool:
        """Whether the correction is small enough to be one."""
        return not self.warning

    def __repr__(self) -> str:
        told = f": {self.warning}" if self.warning else ""
        return f"{float(self):.6g} (EP {self.plain:.6g}, correction {self.correction:+.3g}){told}"

    __str__ = __repr__


def corrected_evidence(posterior: Inferred) -> CorrectedEvidence:
    """The evidence of `posterior` with the correction of second order: see `Posterior.corrected_evidence`."""
    outcome = checked(posterior)
    mixtures = [number for number, block in outcome.machine.ep_blocks.items() if isinstance(block, MixtureBlock)]
    found = mixture_pairs(outcome, mixtures[0]) if mixtures else gaussian_pairs(outcome)
    correction, size, problem = found
    if not problem and size > LARGEST:
        problem = (
            f"Pairs of factors add {size:.2g} nats, their signs aside: so much that those of three and more are "
            "not small beside it, and the series says little."
        )
    if problem:
        problem += " posterior.check_evidence() measures the evidence."
        warn(f"posterior.corrected_evidence cannot be trusted. {problem}")
    return CorrectedEvidence(outcome.log_evidence, correction, size, problem)


def checked(posterior: Inferred) -> Outcome:
    """The run that a posterior is of, before any draws or grid, at whose fixed point there is a correction."""
    found: Any = posterior
    while not isinstance(found, Outcome):
        found = found.plain
    _check(found)
    return found


def _check(posterior: Outcome) -> None:
    """UnsupportedError where the evidence is not that of EP over factors whose tilted distributions are known."""
    machine, head = posterior.machine, "posterior.corrected_evidence and corrected_marginals correct what EP says, "
    if not posterior.converged:
        raise UnsupportedError(
            f"{head}at a fixed point, and this run is {posterior.code}. Infer with damping=, "
            "schedule='double loop' or more sweeps (max_iterations=) until it has converged."
        )
    if machine.energies:
        (block, *_) = machine.energies
        raise UnsupportedError(
            f"{head}and '{block.name}' is updated by {block.method.name}, whose evidence is a bound: nothing is "
            "known of what its beliefs leave out. posterior.check_evidence() measures the evidence of any model."
        )
    kinds = {type(block) for block in machine.ep_blocks.values()}
    for block in machine.ep_blocks.values():
        if type(block) not in (SiteBlock, ProcessBlock, MixtureBlock) or (MixtureBlock in kinds and len(kinds) > 1):
            raise UnsupportedError(
                f"{head}which is known for factors of linear forms of Gaussians alone and for mixtures alone, and "
                f"'{block.name}' is neither, or both are there. posterior.check_evidence() measures the evidence of "
                "any model."
            )
        if block.method.alpha != 1.0:
            raise UnsupportedError(
                f"{head}which is known for EP itself, and '{block.name}' is updated by EP of power "
                f"{block.method.alpha:g}. Infer with method='ep'."
            )

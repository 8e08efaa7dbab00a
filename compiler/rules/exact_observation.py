"""Exact observations of linear forms of one Gaussian belief.

Where all that a form is made of shares one belief, its exact value would be a message of infinite precision. It is a
measurement whose precision is finite and so large that the answers do not show it:
`engine/values/exact_observations.py` computes how large.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ...factors.domains import positive
from ...factors.factor import Term
from ...factors.real.gaussian import factor as gaussian
from ...factors.roles import ScalarGaussian
from ..algebra.known import known_in
from ..blocks.base import Choice
from ..blocks.energy import EnergyBlock
from ..blocks.site import SiteBlock
from ..graph import Draft
from ..language.nodes import Input, Let, Random
from ..methods import EXACT


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Certainty(Input):
    """The precision that stands for an exact observation; the engine computes it from the other data."""


def exact_observation(block: SiteBlock, node: Let) -> EnergyBlock:
    """The block of an exact observation of `node`, all in one belief."""
    certainty = Certainty(f"certainty of {node.name}", node.plates, positive)
    role = gaussian.role
    assert isinstance(role, ScalarGaussian)
    reason = "an exact linear observation of variables that share one belief: conditioning on it"
    return block.remade(
        EnergyBlock,
        choice=Choice(EXACT, "gaussian closed form, of a precision that leaves 1e-8 of the variance", "exact", reason),
        out=node,
        factor=gaussian,
        args={role.mean: node.expression, role.precision: certainty},
        constant=True,
    )


def known_scales(draft: Draft, variables: Iterable[Random]) -> bool:
    """Whether the priors of Gaussian variables are proper before anything is inferred: only their means are random."""
    known = known_in(draft)
    terms = [variable.term for variable in variables]
    return all(
        isinstance(term, Term)
        and all(known(arg) for name, arg in term.args.items() if name != getattr(term.factor.role, "mean", None))
        for term in terms
    )

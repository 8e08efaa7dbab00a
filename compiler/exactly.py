"""Exact observations of linear forms of one Gaussian belief.

Where all that a form is made of shares one belief, its exact value would be a message of infinite precision. It is a
measurement whose precision is finite and so large that the answers do not tell: `engine/exactly.py` says how large.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ..factors.domains import positive
from ..factors.factor import Term
from ..factors.gaussian import factor as gaussian
from .expressions import Input, Let, Random
from .graph import Block, Graph
from .known import known_in
from .methods import EXACT


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Certainty(Input):
    """The precision that stands for an exact observation; the engine computes it from the other data."""


def exact_observation(block: Block, node: Let) -> Block:
    """The block of an exact observation of `node`, all in one belief."""
    certainty = Certainty(f"certainty of {node.name}", node.plates, positive)
    return dataclasses.replace(
        block,
        kind="energy",
        method=EXACT,
        operator="gaussian closed form, of a precision that leaves 1e-8 of the variance",
        accuracy="exact",
        reason="an exact linear observation of variables that share one belief: conditioning on it",
        factor=gaussian,
        args={"mean": node.expression, "precision": certainty},
        form=None,
        out=node,
        constant=True,
    )


def known_scales(graph: Graph, variables: Iterable[Random]) -> bool:
    """Whether the priors of Gaussian variables are proper before anything is inferred: only their means are random."""
    known = known_in(graph)
    terms = [variable.term for variable in variables]
    return all(
        isinstance(term, Term) and all(known(arg) for name, arg in term.args.items() if name != "mean")
        for term in terms
    )

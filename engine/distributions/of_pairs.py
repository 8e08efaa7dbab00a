"""The marginals of a mean and a precision that share a belief: Student's t, and Gamma or Wishart.

Source: paquet2007thesis.
"""

from __future__ import annotations

from ...compiler.graph import NormalPair
from ...factors.conditionals import conditional_named
from ...factors.families.base import ExponentialFamily
from ...factors.families.capabilities import PairFamily
from .compound import Compound
from .shown import Belief


def pair_members(pair: NormalPair, family: ExponentialFamily) -> dict[str, Belief]:
    """The marginals of both, by name. That of the mean stands in messages for a Gaussian of its mean and variance."""
    assert isinstance(family, PairFamily)
    found = family.of_mean()
    mean = Compound(found.sources, found.known, found.stand_in, conditional_named(found.conditional), found.formulas)
    return {pair.mean.name: mean, pair.precision.name: family.precision()}

"""Rule: EP for an observed category whose probabilities are a link of a plate of scores, where these are independent.

Given independent Gaussian scores the moments of such a factor may be a single integral, as those of the multinomial
probit are. Independent they are where every random term of a score is an element of its own: one that the scores of
several classes shared would join them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...factors import LINKS
from ...factors.roles import ClassTable
from ..algebra.linear import linear_form
from ..blocks.base import Choice
from ..blocks.energy import EnergyBlock
from ..blocks.site import LinearTerm, SiteBlock
from ..language.nodes import Apply, IsData, Plate, gathers_of
from ..methods import Method
from .logic import ep_or_power


def separate(terms: Sequence[LinearTerm], over: Plate) -> bool:
    """Whether every term is a different element for different elements of the plate; an index may name one twice."""
    chosen = {gather.axis for term in terms for gather in gathers_of(term.element)}
    return over not in chosen and all(over in set(term.variable.plates) for term in terms)


def coupled_site(block: EnergyBlock, argument: Apply, method: Method, known: IsData) -> SiteBlock | None:
    """The site of a category with probabilities `argument`, or None where it has no such operator."""
    over = argument.option("over")
    one = isinstance(block.factor.role, ClassTable) and method.alpha == 1.0 and known(block.out)
    if not one or LINKS[argument.op].site is None or over in set(block.plates):
        return None
    form = linear_form(argument.args[0], known)
    if form is None or not separate(form.terms, over):
        return None
    operator = f"{block.factor.name}({argument.op}) site, 1-D quadrature over the largest"
    reason = "the scores are independent Gaussians, and EP is one integral then: the most accurate"
    return block.remade(
        SiteBlock,
        plates=(*block.plates, over),
        choice=Choice(ep_or_power(method), operator, "quadrature", reason),
        factor=block.factor,
        link=argument.op,
        form=form,
        over=over,
    )

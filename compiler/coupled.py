"""Rule: EP for an observed category whose probabilities are a link of a plate of scores, where these are independent.

Given independent Gaussian scores the moments of such a factor may be a single integral, as those of the multinomial
probit are. Independent they are where every random term of a score is an element of its own: one that the scores of
several classes shared would join them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from ..factors import LINKS
from .expressions import Apply, Expr, Gather, Plate
from .graph import Block, LinearTerm
from .linear import linear_form
from .logic import ep_or_power
from .methods import Method


def separate(terms: Iterable[LinearTerm], over: Plate) -> bool:
    """Whether every term is a different element for different elements of the plate."""
    return all(over in set(term.variable.plates) and not _chosen(term.element, over) for term in terms)


def _chosen(element: Expr, over: Plate) -> bool:
    """Whether an index says which elements of the plate are meant: it may name one twice."""
    while isinstance(element, Gather):
        if element.axis is over:
            return True
        element = element.source
    return False


def coupled_site(block: Block, argument: Apply, method: Method, known: Callable[[Expr], bool]) -> Block | None:
    """The site of a category with probabilities `argument`, or None where it has no such operator."""
    over = argument.option("over")
    one = block.factor.name == "categorical" and method.alpha == 1.0 and known(block.out)
    if not one or LINKS[argument.op].site is None or over in set(block.plates):
        return None
    form = linear_form(argument.args[0], known)
    if form is None or not separate(form.terms, over):
        return None
    return dataclasses.replace(
        block,
        kind="site",
        method=ep_or_power(method),
        operator=f"{block.factor.name}({argument.op}) site, 1-D quadrature over the largest",
        accuracy="quadrature",
        reason="the scores are independent Gaussians, and EP is one integral then: the most accurate",
        plates=(*block.plates, over),
        link=argument.op,
        form=form,
        over=over,
    )

"""Rule: EP of a chain of states whose probabilities are random elements, of Dirichlet or beta variables.

Given a pair of states that follow one another, the row of probabilities that led from one to the other is again of its
family; so what EP projects is a finite mixture, weighted by the probabilities of the pairs, which are exact sums.
"""

from __future__ import annotations

from typing import NamedTuple

from ...factors.factor import Chain, Switch, Term
from ...factors.roles import Table
from ..algebra.known import Known, known_in, latent_names
from ..blocks.base import Choice
from ..blocks.whole import LearnedChainBlock
from ..graph import Draft
from ..language.nodes import Expr, IsData, Random, gathers_of, source_of


class Probabilities(NamedTuple):
    """The random element that a term takes for its probabilities, None where these are known."""

    element: Expr | None


def learned_chain(draft: Draft, node: Random) -> LearnedChainBlock | None:
    """The block of a chain that is asked for under EP or power EP, where one of its terms has random probabilities."""
    chain, method = node.term, draft.method_of(node.name)
    assert isinstance(chain, Chain)
    outside = node.name in draft.observed or node.name in draft.partly or node.name in draft.missing
    if method.name not in ("ep", "power") or chain.parent is not None or outside:
        return None
    facts = known_in(draft)
    first = _probabilities(chain.first, facts)
    then = _probabilities(chain.then, Known(facts.observed | {chain.previous.name}, facts.sizes))
    if first is None or then is None or (first.element is None and then.element is None):
        return None
    elements = [found.element for found in (first, then) if found.element is not None]
    names = {node.name, *latent_names(draft, elements)}
    random = ", ".join(name for name in draft.latent if name in names and name != node.name)
    return LearnedChainBlock(
        name=node.name,
        plates=node.plates,
        latent=tuple(name for name in draft.latent if name in names),
        choice=Choice(
            method,
            f"chain, sum-product forward-backward; moment-matched mixtures of conjugate posteriors of {random}",
            "exact moments",
            f"the elements jointly; given a pair of states that follow one another, {random} stays in its family",
        ),
        out=node,
        chain=chain,
        first=first.element,
        then=then.element,
    )


def _probabilities(term: Term | Switch, known: IsData) -> Probabilities | None:
    """What a term takes for its probabilities; None where that is neither known nor a random element."""
    if not isinstance(term, Term) or not isinstance(term.factor.role, Table):
        return None
    random = [(edge, arg) for edge, arg in term.args.items() if not known(arg)]
    if not random:
        return Probabilities(None)
    (edge, arg), *others = random
    if others or edge not in term.factor.conjugate or not isinstance(source_of(arg), Random):
        return None
    return Probabilities(arg) if all(known(gather.index) for gather in gathers_of(arg)) else None

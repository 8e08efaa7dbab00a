"""Whether a log density may be of the family of one of its variables: VMP's test, on the structure.

A conditional is tried at a few points, which proves nothing for a density that jumps or bends between them. So the
variable must enter every factor through an argument in which the factor is conjugate, and by smooth operations alone.
"""

from __future__ import annotations

from ....compiler.language.nodes import Apply, Expr, Gather, Let, Random, applies, inside, parents
from ....compiler.language.operations import MAX
from ....factors.factor import Chain, Switch, Term, all_terms
from ....factors.positive import inverse_gamma
from ....factors.roles import Process
from ..joint import Joint

OF_THEIR_OWN = (inverse_gamma.factor,)  # beside those that are conjugate in their outcome


def is_conjugate(joint: Joint, name: str) -> bool:
    """Whether no factor stands against a conditional of the variable's own family."""
    return all(_allows(joint, factor, joint.variables[name]) for factor in joint.touching([name]))


def moves_an_end(joint: Joint, name: str) -> bool:
    """Whether the variable is an end of the interval that another may lie in: its density jumps there."""
    variable = joint.variables[name]
    nodes = [
        joint.density.model.randoms[factor]
        for factor in joint.touching([name])
        if factor in joint.density.model.randoms
    ]
    return any(
        _holds(joint, term.args[side], variable)
        for node in nodes
        for term in all_terms(node.term)
        for side in term.factor.support or ()
        if isinstance(side, str)
    )


def _allows(joint: Joint, factor: str, variable: Random) -> bool:
    node = joint.density.model.randoms.get(factor)
    if node is None or factor in joint.contents.comparisons:
        return False
    if any(_holds(joint, switch.selector, variable) for switch in _switches(node)):
        return False
    return all(_term_allows(joint, factor, term, node, variable) for term in all_terms(node.term))


def _switches(node: Random) -> list[Switch]:
    """The gates among what generates a variable."""
    parts = (node.term.first, node.term.then) if isinstance(node.term, Chain) else (node.term,)
    return [part for part in parts if isinstance(part, Switch)]


def _term_allows(joint: Joint, factor: str, term: Term, node: Random, variable: Random) -> bool:
    if node is variable and (term.factor.support is not None or not _own(joint, factor, term)):
        return False
    for edge, argument in term.args.items():
        if _holds(joint, argument, variable):
            fits = factor in joint.augmented or edge in term.factor.conjugate
            if not fits or not _is_smooth(joint, argument, variable):
                return False
    return True


def _own(joint: Joint, factor: str, term: Term) -> bool:
    """Whether the density of an outcome is of its own family."""
    if isinstance(term.factor.role, Process):
        return True
    return factor in joint.augmented or "out" in term.factor.conjugate or term.factor in OF_THEIR_OWN


def _holds(joint: Joint, expr: Expr, variable: Random) -> bool:
    return any(_is_it(node, variable) for node in inside([expr]))


def _is_it(node: Expr, variable: Random) -> bool:
    """Whether a node stands for the variable, or in a chain for the element before."""
    return node is variable or (isinstance(variable.term, Chain) and node is variable.term.previous)


def _is_smooth(joint: Joint, expr: Expr, variable: Random) -> bool:
    """Whether the variable enters by operations without a jump or a bend."""
    if _is_it(expr, variable) or not _holds(joint, expr, variable):
        return True
    if isinstance(expr, Random) or applies(expr, MAX):
        return isinstance(expr, Random) and expr.name in joint.data
    if isinstance(expr, Apply) and expr.domain.is_discrete:
        return False
    if isinstance(expr, Gather):
        return not _holds(joint, expr.index, variable) and _is_smooth(joint, expr.source, variable)
    if isinstance(expr, Let) and expr.name in joint.data:
        return True
    return all(_is_smooth(joint, child, variable) for child in parents(expr))

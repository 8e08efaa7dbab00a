"""Rule: EP of a mixture, where every term that a discrete variable gates is conjugate given its state.

The factor of one element of the selector is the sum over its states of p(state) prod f(data | state). Under cavities of
conjugate families each summand is a member of them, so the tilted distribution is a finite mixture, whose statistics
are known in closed form.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ...factors.factor import Chain, Switch, Term
from ...factors.quadrature.derived import completed
from ...factors.roles import Table
from ..algebra.known import known_in, latent_names
from ..algebra.told import untold
from ..blocks.base import Choice, Gate
from ..blocks.energy import EnergyBlock
from ..blocks.mixture import MixtureBlock, Parent
from ..graph import Draft
from ..language.atoms import atom_key
from ..language.nodes import (
    Apply,
    Expr,
    Gather,
    IsData,
    Let,
    Plate,
    Random,
    gathers_of,
    inside,
    parents,
    source_of,
    union_plates,
)
from ..methods import EP, Method
from .pairs import paired

OPEN = Choice(EP, "", "", "")  # of a term inside the block, which says how for all of them


def mixtures(draft: Draft) -> tuple[MixtureBlock, ...]:
    """The blocks of all selectors that are asked for under EP or power EP and gate conjugate terms alone."""
    if draft.partly:  # whose factors are split by what is given
        return ()
    found = (_mixture(draft, node) for node in draft.latent.values() if isinstance(node, Random))
    return tuple(block for block in found if block is not None)


def _mixture(draft: Draft, selector: Random) -> MixtureBlock | None:
    method, known = draft.method_of(selector.name), known_in(draft)
    if method.name not in ("ep", "power") or not selector.domain.is_discrete or selector.name in draft.given:
        return None
    kept = isinstance(selector.term, Chain)
    if not kept and not (isinstance(selector.term, Term) and isinstance(selector.term.factor.role, Table)):
        return None
    users = _users(draft, selector)
    if not users or not all(_may_be_gated(draft, user, selector, method) for user in users):
        return None
    own = [] if kept else [_own(draft, selector)]
    terms = [*own, *(term for user in users for term in _terms(draft, user, selector))]
    random = [_random(term, selector, known) for term in terms]
    parts = [part for part in random if part is not None]
    members = _parents(terms, parts, selector) if len(parts) == len(terms) else None
    if not members or not any(random[len(own) :]):
        return None
    axes = tuple(next(iter(_axes(term, selector)), None) for term in terms)
    names = ", ".join(user.name for user in users)
    kinds = ", ".join(dict.fromkeys(term.factor.name for term in terms[len(own) :]))
    chosen = [parent for parent in members if parent.chosen]
    plates = {plate for plate in axes if plate is not None}
    return MixtureBlock(
        name=users[0].name,
        plates=selector.plates,
        latent=tuple(
            name
            for name in draft.latent
            if name in {parent.variable.name for parent in members} or (kept and name == selector.name)
        ),
        choice=Choice(
            method,
            f"moment-matched mixture of conjugate posteriors: {kinds} of {names}, summed over the states of "
            f"{selector.name}; closed form",
            "exact moments",
            f"given {selector.name} all is conjugate: what EP projects is a finite mixture of known posteriors",
        ),
        out=users[0],
        selector=selector,
        terms=tuple(_opened_term(term, selector) for term in terms),
        axes=axes,
        parents=members,
        kept=kept,
        alike=bool(selector.plates and chosen and plates)
        and all(untold(draft, [parent.variable for parent in chosen], plate) for plate in plates),
    )


def _opened_term(term: EnergyBlock, selector: Random) -> EnergyBlock:
    return dataclasses.replace(term, args={edge: opened(arg, selector) for edge, arg in term.args.items()})


def _users(draft: Draft, selector: Random) -> list[Random] | None:
    """The variables whose terms read the selector; None where anything else does."""
    model = draft.model
    users = [
        node
        for name, node in model.randoms.items()
        if node is not selector and (name in draft.needed) and _reads(parents(node), selector)
    ]
    others = [let for name, let in model.lets.items() if name in draft.observed and _reads([let], selector)]
    constraints = [e for e in model.constraints.values() if _reads([e], selector)]
    return None if others or constraints else users


def _reads(exprs: Iterator[Expr] | list[Expr] | tuple[Expr, ...], selector: Random) -> bool:
    return any(node is selector for node in inside(exprs))


def _may_be_gated(draft: Draft, user: Random, selector: Random, method: Method) -> bool:
    observed = user.name in draft.observed and draft.method_of(user.name) == method
    return observed and isinstance(user.term, (Term, Switch)) and set(selector.plates) <= set(user.plates)


def _own(draft: Draft, selector: Random) -> EnergyBlock:
    assert isinstance(selector.term, Term)
    return _block(draft, selector, selector.term, ())


def _terms(draft: Draft, user: Random, selector: Random) -> Iterator[EnergyBlock]:
    """The terms of a variable that the selector gates, by its index or, of a switch, by the number of a state."""
    if isinstance(user.term, Term):
        yield _block(draft, user, user.term, ())
        return
    switch = user.term
    assert isinstance(switch, Switch)
    cases = len(switch.terms)
    for number, term in enumerate(switch.terms):
        # The cases of a boolean are written true first; as a number true is 1.
        state = cases - 1 - number if switch.selector.domain.is_boolean else number
        yield _block(draft, user, term, (Gate(switch.selector, case=state),))


def _block(draft: Draft, node: Random, term: Term, gates: tuple[Gate, ...]) -> EnergyBlock:
    known = known_in(draft)
    _, term = paired(draft, node, term)
    exprs = {"out": node, **term.args}
    factor = completed(term.factor, [edge for edge, expr in exprs.items() if not known(expr)], node.domain.kind)
    return EnergyBlock(
        name=node.name,
        plates=node.plates,
        latent=latent_names(draft, list(term.args.values())),
        choice=OPEN,
        out=node,
        factor=factor,
        args=term.args,
        gates=gates,
    )


def _axes(term: EnergyBlock, selector: Random) -> list[Plate]:
    """The plates that the selector chooses from in the arguments of a term."""
    chosen = (node for node in inside(term.args.values()) if isinstance(node, Gather) and node.index is selector)
    return list(dict.fromkeys(node.axis for node in chosen))


def _random(term: EnergyBlock, selector: Random, known: IsData) -> list[tuple[str, Expr]] | None:
    """The one random argument of a term, or none; None where the term is not conjugate given the state.

    It is an element of a variable, chosen by the selector and by data on the selector's own plates.
    """
    axes = _axes(term, selector)
    if len(axes) > 1 or set(axes) & {*term.plates, *selector.plates}:
        return None
    if any(gate.selector is not selector for gate in term.gates):
        return None
    if any(node is selector for arg in term.args.values() for node in inside([opened(arg, selector)])):
        return None
    found = [(edge, arg) for edge, arg in term.args.items() if not known(opened(arg, selector))]
    plain = all(_is_element(arg, selector, known) and edge in term.factor.conjugate for edge, arg in found)
    return found if plain and len(found) <= 1 else None


def _is_element(arg: Expr, selector: Random, known: IsData) -> bool:
    others = [gather.index for gather in gathers_of(arg) if gather.index is not selector]
    return isinstance(source_of(arg), Random) and all(
        known(index) and set(index.plates) <= set(selector.plates) for index in others
    )


def opened(expr: Expr, selector: Random) -> Expr:
    """The expression at all states of the selector: what that chooses from a plate stays on this plate."""
    if isinstance(expr, Gather) and expr.index is selector:
        return opened(expr.source, selector)
    if isinstance(expr, Let):
        return opened(expr.expression, selector) if _reads([expr.expression], selector) else expr
    if isinstance(expr, Gather):
        source = opened(expr.source, selector)
        plates = (plate for plate in union_plates(source.plates, expr.index.plates) if plate is not expr.axis)
        return dataclasses.replace(expr, source=source, plates=tuple(plates))
    if isinstance(expr, Apply):
        args = tuple(opened(arg, selector) for arg in expr.args)
        own = dict.fromkeys((*expr.plates, *(plate for arg in args for plate in _axes_in(arg, expr.args))))
        return dataclasses.replace(expr, args=args, plates=tuple(own))
    return expr


def _axes_in(opened_arg: Expr, args: tuple[Expr, ...]) -> list[Plate]:
    """The plates that an argument has since it was opened."""
    before = {plate for arg in args for plate in arg.plates}
    return [plate for plate in opened_arg.plates if plate not in before]


def _parents(
    terms: list[EnergyBlock], random: list[list[tuple[str, Expr]]], selector: Random
) -> tuple[Parent, ...] | None:
    """The random elements of all terms, each once; None where one variable is met as two of them."""
    found: dict[tuple, Parent] = {}
    for number, part in enumerate(random):
        for edge, element in part:
            root = source_of(element)
            assert isinstance(root, Random)
            chosen = any(gather.index is selector for gather in gathers_of(element))
            own = Parent(root, element, opened(element, selector), ((number, edge),), chosen)
            before = found.get(atom_key(element))
            found[atom_key(element)] = own if before is None else own.with_uses_of(before)
    variables = [parent.variable for parent in found.values()]
    return tuple(found.values()) if len(set(variables)) == len(variables) else None

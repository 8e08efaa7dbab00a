"""Chains and trees: variables whose parent is another element of the same plate."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ...factors.domains import Domain
from ...factors.errors import ModelError
from ...factors.factor import Chain, Nameless, Switch, Term, arguments_of
from ...factors.numbers import brief
from . import operators
from .arguments import Owner, admit
from .nodes import (
    Expr,
    Input,
    Let,
    Plate,
    Position,
    Previous,
    Random,
    applies,
    gathers_of,
    inside,
    parents,
    source_of,
    union_plates,
    unnamed,
    with_parents,
)
from .operations import SUBTRACT, WHERE
from .values import UserValue


def declare(
    name: str, over: Plate, first: UserValue, then: UserValue, parent: UserValue, declared: tuple[Plate, ...]
) -> Random:
    """The variable of `Model.chain` and `Model.tree`; its plates still in the order in which they were found."""
    if not callable(then):
        raise ModelError(
            f"'{name}': then= must be a function from the previous element to a term; found {then!r}. Write for "
            "example then=lambda previous: cv.gaussian(previous, variance=1.0)."
        )
    edge = "first" if parent is None else "root"
    if isinstance(first, Nameless) and not isinstance(first, Switch):
        raise ModelError(f"'{name}': {edge}= is {first}. Give a single term, or a cv.switch of terms.")
    if parent is not None:
        _check_parent(name, over, parent)
    others = tuple(plate for plate in declared if plate is not over)
    first, plates, domain = admit(first, Owner(name, others))
    if over in plates:
        raise ModelError(
            f"'{name}': {edge}= has arguments over the plate '{over.name}', but it generates elements without a parent "
            "only. Give it arguments without that plate."
        )
    if not (domain.is_gaussian or domain.is_discrete):
        raise ModelError(
            f"'{name}': {edge}= generates {domain} values. The elements of a chain or a tree are real, vectors, "
            "booleans or categories."
        )
    plates = (over, *plates) if over not in declared else union_plates(declared, plates)
    while True:
        chain, found, generated = _with_previous(name, over, first, then, parent, plates, domain)
        if set(found) == set(plates):
            break
        plates = found
    if generated != domain:
        raise ModelError(
            f"'{name}': {edge}= generates {domain} values, but then= generates {generated} values. Both generate "
            "elements of one variable: give them one domain."
        )
    return Random(name, chain, plates, domain)


def _with_previous(
    name: str,
    over: Plate,
    first: Term | Switch,
    then: Callable[[Expr], UserValue],
    parent: UserValue,
    plates: tuple[Plate, ...],
    domain: Domain,
) -> tuple[Chain, tuple[Plate, ...], Domain]:
    previous = Previous(f"previous {name}", first, plates, domain)
    term = then(previous)
    if not isinstance(term, (Term, Switch)):
        raise ModelError(
            f"'{name}': then= must return one term, such as cv.gaussian(previous, variance=1.0), or a cv.switch or "
            f"cv.mixture of terms; it returned {brief(term)}."
        )
    if isinstance(parent, Input):
        term = _but_at_roots(term, parent, over)
    admitted, found, generated = admit(term, Owner(name, plates))
    if (
        isinstance(admitted, Switch)
        and domain.is_gaussian
        and any(node is previous for node in inside([admitted.selector]))
    ):
        raise ModelError(
            f"'{name}': then= returned a switch on '{admitted.selector}', which depends on the element before, and "
            f"that is {domain}: the states given each other are then no Gaussians. A switch may be on a discrete "
            "variable; where the element before chooses, it is a boolean or a category."
        )
    return Chain(first, admitted, previous, over, parent), found, generated


def _check_parent(name: str, over: Plate, parent: UserValue) -> None:
    fits = isinstance(parent, Input) and parent.domain.is_index and parent.domain.plate is over
    if not fits or parent.plates != (over,):
        raise ModelError(
            f"'{name}': parent= must be an input of domain cv.index({over.name}) over the plate '{over.name}' alone; "
            f'found {parent!r}. Declare it as m.input("parent", cv.index({over.name}), plates={over.name}).'
        )


def _but_at_roots(term: Term | Switch, parent: Input, over: Plate) -> Term | Switch:
    """The same with one for `t - t[parent]` at roots, where it is zero: a term of others is no zero or infinity there.

    Such a difference is positive after a constraint; what the term has of a root counts for nothing.
    """
    parts = [arg for arg in arguments_of(term) if isinstance(arg, Expr)]
    lengths = [node for node in inside(parts) if _is_length(node, parent)]
    if not lengths:
        return term
    root = operators.equal(parent, Position(0, (over,), parent.domain, "itself"))
    new: dict[Expr, Expr] = {
        node: dataclasses.replace(operators.apply(WHERE, root, 1.0, node), domain=node.domain) for node in lengths
    }

    def rewritten(expr: Expr) -> Expr:
        if expr not in new:
            below = () if isinstance(expr, Random) else parents(expr)
            changed = [parent for parent in below if rewritten(parent) is not parent]
            new[expr] = new[expr.expression] if isinstance(expr, Let) and changed else with_parents(expr, new)
        return new[expr]

    def of(case: Term) -> Term:
        args = {name: rewritten(arg) if isinstance(arg, Expr) else arg for name, arg in case.args.items()}
        return dataclasses.replace(case, args=args)

    return Switch(term.selector, tuple(map(of, term.terms))) if isinstance(term, Switch) else of(term)


def _is_length(node: Expr, parent: Input) -> bool:
    """Whether this is how far an element is above the same variable's of its parent, which a constraint says it is."""
    if not applies(node, SUBTRACT) or not node.domain.is_bounded:
        return False
    larger, smaller = node.args
    chosen = gathers_of(smaller)
    return unnamed(larger) is source_of(smaller) and len(chosen) == 1 and chosen[0].index is parent

"""Terms inside terms and expressions: their variables are named after what they are part of, "y.probability"."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ...factors.factor import AS_VARIABLE, Mixture, Switch, Term
from .arguments import Owner, admit
from .nodes import Apply, Expr, Gather, Random, Unnamed, parents, with_parents
from .values import UserValue

Declare = Callable[[str, Term], Random]
"""Declares the variable of a term under a name."""


def unnamed(term: Term) -> Unnamed:
    """The variable that a term generates, to be computed with: its plates are those of its arguments."""
    args = {name: unnamed(arg.as_argument(name)) if isinstance(arg, Term) else arg for name, arg in term.args.items()}
    name = term.options.get("argument", term.factor.name)
    whole = dataclasses.replace(term, args=args)
    _, plates, domain = admit(whole, Owner(name, ()))
    return Unnamed(name, whole, plates, domain)


def named_in_term(owner: str, term: UserValue, declare: Declare) -> UserValue:
    """The same without terms as arguments: the variables of these are declared, "owner.argument"."""
    if isinstance(term, Switch):
        selector = term.selector
        selector = declare(f"{owner}.selector", selector) if isinstance(selector, Term) else selector
        cases = (named_in_term(f"{owner}.{number}", case, declare) for number, case in enumerate(term.terms))
        return Switch(selector, tuple(cases))
    if isinstance(term, Mixture):
        weights = term.weights
        weights = declare(f"{owner}.weights", weights) if isinstance(weights, Term) else weights
        cases = (named_in_term(f"{owner}.{number}", case, declare) for number, case in enumerate(term.terms))
        return Mixture(weights, tuple(cases))
    if not isinstance(term, Term):
        return term
    args = {name: _named(owner, name, arg, declare) for name, arg in term.args.items()}
    return dataclasses.replace(term, args=args)


def _named(owner: str, name: str, arg: UserValue, declare: Declare) -> UserValue:
    if isinstance(arg, Term):
        return declare(f"{owner}.{arg.options.get('argument', name)}", arg)
    return named_in(owner, arg, declare) if isinstance(arg, Expr) else arg


def named_in(owner: str, expr: Expr, declare: Declare) -> Expr:
    """An expression in which the variables of terms are declared, "owner.argument"."""
    new: dict[Expr, Expr] = {}
    stack = [expr]
    while stack:
        node = stack[-1]
        if isinstance(node, Unnamed) and node not in new:
            assert isinstance(node.term, Term)
            new[node] = declare(f"{owner}.{node.name}", node.term)
        missing = [parent for parent in _below(node) if parent not in new]
        stack.extend(missing)
        if not missing:
            new.setdefault(node, with_parents(node, new))
            stack.pop()
    return new[expr]


def _below(node: Expr) -> tuple[Expr, ...]:
    return parents(node) if isinstance(node, (Apply, Gather)) else ()


AS_VARIABLE["unnamed"] = unnamed

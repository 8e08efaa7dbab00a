"""Chains and trees: variables whose parent is another element of the same plate, and the blocks made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..factors.domains import Domain
from ..factors.errors import DataError, ModelError, UnsupportedError
from ..factors.factor import Chain, Switch, Term
from .expressions import (
    Apply,
    Constant,
    Expr,
    Gather,
    Input,
    Let,
    Plate,
    Previous,
    Random,
    inside,
    parents,
    union_plates,
)
from .graph import Block, Graph
from .known import known_in, latent_names
from .methods import EP
from .terms import Owner, admit

STATES = ("real", "vector", "boolean", "category")
TRANSITIONS = {"real": "gaussian", "vector": "vector_gaussian", "boolean": "bernoulli", "category": "categorical"}


# the language ---------------------------------------------------------------------------------------------------------


def declare(name: str, over: Plate, first: Any, then: Any, parent: Any, declared: tuple[Plate, ...]) -> Random:
    """The variable of `Model.chain` and `Model.tree`; its plates still in the order in which they were found."""
    if not callable(then):
        raise ModelError(
            f"'{name}': then= must be a function from the previous element to a term; found {then!r}. Write for "
            "example then=lambda previous: cv.gaussian(previous, variance=1.0)."
        )
    edge = "first" if parent is None else "root"
    if isinstance(first, Switch):
        raise ModelError(f"'{name}': {edge}= is a switch. Give a single term.")
    if parent is not None:
        _check_parent(name, over, parent)
    others = tuple(plate for plate in declared if plate is not over)
    first, plates, domain = admit(first, Owner(name, others))
    if over in plates:
        raise ModelError(
            f"'{name}': {edge}= has arguments over the plate '{over.name}', but it generates elements without a parent "
            "only. Give it arguments without that plate."
        )
    if domain.kind not in STATES:
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


def _with_previous(name, over, first, then, parent, plates, domain) -> tuple[Chain, tuple[Plate, ...], Domain]:
    previous = Previous(f"previous {name}", first, plates, domain)
    term = then(previous)
    if not isinstance(term, Term):
        raise ModelError(
            f"'{name}': then= must return a term, such as cv.gaussian(previous, variance=1.0); it returned {term!r}."
        )
    admitted, found, generated = admit(term, Owner(name, plates))
    assert isinstance(admitted, Term)
    return Chain(first, admitted, previous, over, parent), found, generated


def _check_parent(name: str, over: Plate, parent: Any) -> None:
    fits = isinstance(parent, Input) and parent.domain.kind == "index" and parent.domain.plate is over
    if not fits or parent.plates != (over,):
        raise ModelError(
            f"'{name}': parent= must be an input of domain cv.index({over.name}) over the plate '{over.name}' alone; "
            f'found {parent!r}. Declare it as m.input("parent", cv.index({over.name}), plates={over.name}).'
        )


def terms_of(chain: Chain) -> tuple[Term, Term]:
    """Both terms."""
    return chain.first, chain.then


# data -----------------------------------------------------------------------------------------------------------------


def check_trees(randoms: Iterable[Random], inputs: dict[str, np.ndarray]) -> None:
    """Raises DataError where the parents given for a tree have a cycle; several roots are several trees."""
    for node in randoms:
        if isinstance(node.term, Chain) and node.term.parent is not None and node.term.parent.name in inputs:
            _check_acyclic(node, inputs[node.term.parent.name])


def _check_acyclic(node: Random, parent: np.ndarray) -> None:
    """Following parents twice as far each time leads every element to a root."""
    assert isinstance(node.term, Chain)
    above = parent
    for _ in range(max(1, len(parent)).bit_length()):
        above = above[above]
    lost = np.flatnonzero(parent[above] != above)
    if len(lost):
        cycle, here = [], int(above[lost[0]])
        while here not in cycle:
            cycle.append(here)
            here = int(parent[here])
        shown = " -> ".join(str(i) for i in [*cycle[:8], *(["..."] if len(cycle) > 8 else []), here])
        raise DataError(
            f"Input '{node.term.parent.name}' gives the tree '{node.name}' a cycle: {shown}; {len(lost)} elements "
            "never reach a root. Each element points to its parent and a root points to itself: correct the array."
        )


# the plan -------------------------------------------------------------------------------------------------------------


def chain_block(graph: Graph, node: Random) -> Block:
    """The block of a chain or a tree: all its elements jointly and exactly, its random parameters through VMP."""
    chain = node.term
    assert isinstance(chain, Chain)
    known = known_in(graph)
    method = graph.method_of(node.name)
    observed = node.name in graph.observed
    what = "chain" if chain.parent is None else "tree"
    args = {
        f"{place}.{edge}": arg
        for place, term in zip(("first", "then"), terms_of(chain), strict=True)
        for edge, arg in term.args.items()
    }
    parameters = latent_names(graph, list(args.values()))
    _check_missing(graph, node, what)
    _check_terms(node, chain, what, known)
    if parameters and method.name in ("ep", "power"):
        raise UnsupportedError(
            f"'{node.name}' was asked to run under EP, but its parameters {', '.join(parameters)} are random: their "
            "product with the states has no exact integral. Use method='auto', where the states stay exact given the "
            "parameters' moments, or fix the parameters."
        )
    inside = "forward-backward" if chain.parent is None else "up-down"
    reason = (
        "the elements jointly and exactly, given the messages of all other factors"
        if not observed
        else ("all elements are observed: each factor is known but for its parameters")
    )
    if parameters:
        reason += f"; {', '.join(parameters)} through their moments (structured VMP)"
    states = {"real": "Gaussian", "vector": "Gaussian"}.get(node.domain.kind, "sum-product")
    return Block(
        name=node.name,
        kind=what,
        method=EP,
        operator=f"{what}, {states} {inside}",
        accuracy="exact",
        reason=reason,
        plates=node.plates,
        latent=parameters if observed else tuple(n for n in graph.model.randoms if n in {node.name, *parameters}),
        out=node,
        factor=chain.then.factor,
        args=args,
        parameters=parameters,
        details=chain,
    )


def _check_missing(graph: Graph, node: Random, what: str) -> None:
    if node.name in graph.missing:
        raise UnsupportedError(
            f"'{node.name}' is a {what} that is observed with missing entries (NaN), and its elements are either all "
            "observed or all inferred. Observe a noisy copy of it, e.g. y = m.random('y', cv.gaussian(state, "
            "variance=1e-6)), whose entries may be missing."
        )


def _check_terms(node: Random, chain: Chain, what: str, known: Callable[[Expr], bool]) -> None:
    wanted = TRANSITIONS[node.domain.kind]
    for term in terms_of(chain):
        if term.factor.name != wanted:
            raise UnsupportedError(
                f"'{node.name}' is a {what} of {node.domain} values generated by {term.factor.name}. The exact "
                f"messages along a {what} of them need {wanted} terms."
            )
        for edge, arg in term.args.items():
            gates = [
                g
                for g in inside([arg])
                if isinstance(g, Gather) and not known(g.index) and g.index is not chain.previous
            ]
            if gates:
                raise UnsupportedError(
                    f"'{node.name}': the argument {edge}='{arg}' of its {term.factor.name} is chosen by the random "
                    f"'{gates[0].index}'. A {what} whose transitions are gated by another random variable has no "
                    "operator yet. Observe that variable, or write the cases out in one larger discrete state."
                )
    if node.domain.kind in ("real", "vector"):
        for edge, arg in chain.then.args.items():
            degree = degree_in(arg, chain.previous)
            if degree is None or degree > (edge == "mean"):
                raise UnsupportedError(
                    f"'{node.name}': the {edge} '{arg}' of then= is not "
                    + ("linear in the previous element" if edge == "mean" else "free of the previous element")
                    + ", so the states given each other are not Gaussian and their messages not exact. Write the mean "
                    "as a sum of products of the previous element with data or parameters (a matrix as "
                    "matrix @ previous), and the precision without it."
                )


def degree_in(expr: Expr, variable: Expr) -> int | None:
    """0 where `expr` does not hold `variable`, 1 where it is linear in it, element by element; None otherwise."""
    if expr is variable:
        return 1
    if isinstance(expr, (Constant, Input, Random)):
        return 0
    if isinstance(expr, Let):
        return degree_in(expr.expression, variable)
    degrees = [degree_in(child, variable) for child in parents(expr)]
    if not any(degree != 0 for degree in degrees):
        return 0
    found = [degree for degree in degrees if degree is not None]
    if len(found) < len(degrees) or not isinstance(expr, Apply):
        return None
    if expr.op in ("add", "subtract", "negate"):
        return 1
    product = expr.op in ("multiply", "dot", "matvec") and sum(found) == 1
    return 1 if product or (expr.op == "divide" and found[1] == 0) else None

"""Rules: conditional probability tables, and switches over them, whose states belief propagation sums."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ..factors.factor import Switch, Term
from .atoms import discrete_key
from .expressions import Expr, Gather, Random
from .graph import Block, Graph
from .known import known_in, latent_names, ungathered
from .logic import discrete_atoms, ep_or_power
from .methods import Method


def table(graph: Graph, block: Block, method: Method, known) -> Block | None:
    """A conditional probability table: data indexed by random discrete variables."""
    if method.name in ("vmp", "ncvmp") or any(gate.axis is None for gate in block.gates):
        return None
    indices = _indices(Term(block.factor, dict(block.args)), known)
    return _as_table(block, indices, method, known) if indices else None


def switch_table(graph: Graph, node: Random, switch: Switch, method: Method) -> Block | None:
    """A switch over tables is one more table, in which the selector is one more index."""
    known = known_in(graph)
    if method.name in ("vmp", "ncvmp") or (known(switch.selector) and known(node)):
        return None
    indices = [_indices(term, known) for term in switch.terms]
    if any(own is None for own in indices) or len({term.factor.name for term in switch.terms}) > 1:
        return None
    in_order = switch.terms[::-1] if switch.selector.domain.kind == "boolean" else switch.terms  # true is written first
    args = {f"case {state}": next(iter(term.args.values())) for state, term in enumerate(in_order)}
    latent = latent_names(graph, [node, switch.selector, *args.values()])
    base = Block(node.name, "table", method, "", "", "", node.plates, latent, node, switch.terms[0].factor, args)
    found = [switch.selector, *(index for own in indices for index in own or ())]
    return dataclasses.replace(_as_table(base, found, method, known), details=switch.selector)


def _indices(term: Term, known: Callable[[Expr], bool]) -> list[Expr] | None:
    """The random indices into the known probabilities of a discrete term, None where it is no such table."""
    if term.factor.name not in ("bernoulli", "categorical"):
        return None
    indices, node = [], next(iter(term.args.values()))
    while isinstance(node, Gather):
        if not known(node.index):
            indices.append(node.index)
        node = node.source
    return indices if known(node) else None


def _as_table(block: Block, indices: list[Expr], method: Method, known) -> Block:
    found: dict[tuple, Expr] = {}
    for atom in (atom for index in indices for atom in discrete_atoms(index, known)):
        found.setdefault(discrete_key(atom), atom)
    atoms = (*found.values(), *(() if known(block.out) else (block.out,)))
    touched = {getattr(ungathered(atom), "name", "") for atom in atoms}  # what is below a named one is its block's
    return dataclasses.replace(
        block,
        kind="table",
        latent=tuple(name for name in block.latent if name in touched),
        method=ep_or_power(method),
        operator="sum-product over states",
        accuracy="exact",
        reason="discrete states: EP is belief propagation",
        atoms=atoms,
        gates=(),
        plates=block.out.plates,
    )

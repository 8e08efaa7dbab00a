"""Rules: conditional probability tables, and switches over them, whose states belief propagation sums."""

from __future__ import annotations

from ...factors.factor import Switch, Term
from ...factors.roles import Table
from ..algebra.known import known_in, latent_names, ungathered
from ..blocks.base import Choice
from ..blocks.energy import EnergyBlock
from ..blocks.table import ConditionalTableBlock
from ..graph import Draft
from ..language.nodes import Expr, Gather, IsData, Random
from ..methods import Method
from .logic import discrete_atoms, ep_or_power
from .slot_finder import discrete_key


def table(draft: Draft, block: EnergyBlock, method: Method, known: IsData) -> ConditionalTableBlock | None:
    """A conditional probability table: data indexed by random discrete variables."""
    if method.name in ("vmp", "ncvmp") or any(gate.axis is None for gate in block.gates):
        return None
    term = Term(block.factor, dict(block.args))
    indices = _indices(term, known)
    return _table(block.name, block.out, term, block.latent, indices, method, known) if indices else None


def switch_table(draft: Draft, node: Random, switch: Switch, method: Method) -> ConditionalTableBlock | None:
    """A switch over tables is one more table, in which the selector is one more index."""
    known = known_in(draft)
    if method.name in ("vmp", "ncvmp") or (known(switch.selector) and known(node)):
        return None
    indices = [_indices(term, known) for term in switch.terms]
    if any(own is None for own in indices) or len({term.factor.name for term in switch.terms}) > 1:
        return None
    in_order = switch.terms[::-1] if switch.selector.domain.is_boolean else switch.terms  # true is written first
    args = {f"case {state}": next(iter(term.args.values())) for state, term in enumerate(in_order)}
    latent = latent_names(draft, [node, switch.selector, *args.values()])
    found = [switch.selector, *(index for own in indices for index in own or ())]
    term = Term(switch.terms[0].factor, args)
    return _table(node.name, node, term, latent, found, method, known, switch.selector)


def _indices(term: Term, known: IsData) -> list[Expr] | None:
    """The random indices into the known probabilities of a discrete term, None where it is no such table."""
    if not isinstance(term.factor.role, Table):
        return None
    indices, node = [], next(iter(term.args.values()))
    while isinstance(node, Gather):
        if not known(node.index):
            indices.append(node.index)
        node = node.source
    return indices if known(node) else None


def _table(
    name: str,
    out: Expr,
    term: Term,
    latent: tuple[str, ...],
    indices: list[Expr],
    method: Method,
    known: IsData,
    selector: Expr | None = None,
) -> ConditionalTableBlock:
    found: dict[tuple, Expr] = {}
    for atom in (atom for index in indices for atom in discrete_atoms(index, known)):
        found.setdefault(discrete_key(atom), atom)
    atoms = (*found.values(), *(() if known(out) else (out,)))
    touched = {getattr(ungathered(atom), "name", "") for atom in atoms}  # what is below a named one is its block's
    reason = "discrete states: EP is belief propagation"
    return ConditionalTableBlock(
        name=name,
        plates=out.plates,
        latent=tuple(name for name in latent if name in touched),
        choice=Choice(ep_or_power(method), "sum-product over states", "exact", reason),
        out=out,
        atoms=atoms,
        factor=term.factor,
        args=term.args,
        selector=selector,
    )

"""Marginals of chains with gates that nothing observed depends on: what `predict` and variables without data read."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from ....compiler.blocks.base import Choice
from ....compiler.blocks.whole import GatedBlock
from ....compiler.language.nodes import Expr, Gather, Random, inside
from ....compiler.methods import EXACT
from ....factors.factor import Chain, Switch, arguments_of
from ...values.first_beliefs import event_size, family_of
from ...values.instances import count
from ...values.naturals import Naturals, subtract
from ...values.plated import Placed
from ...values.scope import Scope
from .chains import log_mean
from .chains import prior as chain_prior
from .gated import classes_of, marginals_of, solved
from .gates import layout_of, parts_of
from .transitions import chain_of


def is_gated(node: Random, scope: Scope) -> bool:
    """Whether what chooses the transitions of a chain is not known."""
    return bool(_gates_of(node, scope))


def _gates_of(node: Random, scope: Scope) -> list[Random]:
    """The discrete variables that choose the transitions of a chain, and of the chains among these, in turn."""
    found: dict[Random, None] = {}
    stack = [node]
    while stack:
        chain = chain_of(stack.pop())
        terms = chain.first, chain.then
        roots = [term.selector for term in terms if isinstance(term, Switch)]
        for part in inside(arg for term in terms for arg in arguments_of(term)):
            roots += [part.index] if isinstance(part, Gather) else []
        for part in inside(roots):
            if not isinstance(part, Random) or part is chain.previous or part.name in scope.data:
                continue
            if part.domain.is_discrete and part not in found:
                found[part] = None
                stack += [part] if isinstance(part.term, Chain) else []
    return list(found)


def prior(node: Random, scope: Scope, probability: Callable[[Expr, Scope], Placed]) -> Placed:
    """The marginals of a chain that nothing observed depends on, under the moments of its parameters and its gates.

    Gates that are chains are taken with all their transitions where nothing was inferred of them; else their elements
    are as independent as their marginals tell.
    """
    chain, gates = chain_of(node), _gates_of(node, scope)
    moving = [gate for gate in gates if chain.over in gate.plates]
    beside = [gate for gate in moving if isinstance(gate.term, Chain) and gate.term.over is chain.over]
    discrete = node.domain.is_discrete
    block = GatedBlock(
        name=node.name,
        plates=node.plates,
        latent=(),
        choice=Choice(EXACT, "", "", ""),
        out=node,
        chain=chain,
        states=(*beside, *([node] if discrete else [])),
        gaussian=None if discrete else node,
        observed_chains=(),
        regimes=tuple(gate for gate in moving if gate not in set(beside)),
        classes=tuple(gate for gate in gates if chain.over not in gate.plates),
        lanes=tuple(plate for plate in node.plates if plate is not chain.over),
        gating=frozenset(),
        chooses=(),
    )
    layout, evaluate = layout_of(block, scope), log_mean(probability)
    cavities: Naturals = {gate.name: _told(gate, scope) for gate in gates}
    for gate in beside:
        if not is_gated(gate, scope):
            alone = chain_prior(gate, scope, probability).value.naturals()
            flat = tuple(a.reshape((-1, *a.shape[len(gate.plates) :])) for a in alone)
            cavities[gate.name] = subtract(cavities[gate.name], flat)
        else:
            cavities[gate.name] = jax.tree.map(jnp.zeros_like, cavities[gate.name])
    zero = family_of(node).uniform((count(node, scope.sizes),), event_size(node, scope)).naturals()
    cavities[node.name] = zero
    found = solved(block, layout, parts_of(block, layout, scope, evaluate), cavities)
    shares = classes_of(block, layout, found.log_z, cavities)[1]
    naturals = marginals_of(block, layout, found, shares, cavities)[node.name]
    shape = [scope.sizes[plate.name] for plate in node.plates]
    full = tuple(a.reshape((*shape, *a.shape[1:])) for a in naturals)
    return Placed(family_of(node).from_naturals(full), node.plates)


def _told(gate: Random, scope: Scope) -> tuple[jax.Array, ...]:
    """The naturals of a gate's marginals."""
    p = scope.moments[gate.name].probability
    p = p.reshape((count(gate, scope.sizes), *p.shape[len(gate.plates) :]))
    log = jnp.log(jnp.maximum(p, 1e-300))
    return (log - jnp.log(jnp.maximum(1.0 - p, 1e-300)) if gate.domain.is_boolean else log,)

"""Pass: which variables need a belief, and which follow from the others.

A random variable that no observation and no constraint depends on adds nothing: its factor integrates to one. It leaves
the inference and its marginal is computed forward afterwards, which is exact under EP and better than a belief of its
own under VMP.
"""

from __future__ import annotations

import dataclasses

from ..factors.errors import UnsupportedError
from .expressions import Expr, Let, Random, parents
from .graph import Graph


def roles(graph: Graph) -> Graph:
    """Finds the needed nodes, the latent random variables and those to be computed forward."""
    model = graph.model
    named = {**model.randoms, **model.lets}
    roots: list[Expr] = [named[name] for name in graph.observed] + list(model.constraints.values())
    needed = {node.name for node in _ancestors(roots) if isinstance(node, (Random, Let))}
    latent = {name: node for name, node in model.randoms.items() if name in needed and name not in graph.observed}
    forward = tuple(name for name in named if name not in needed)
    _check_missing(graph, named)
    return dataclasses.replace(graph, needed=frozenset(needed), latent=latent, forward=forward)


def _ancestors(roots: list[Expr]) -> list[Expr]:
    seen: dict[int, Expr] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            stack.extend(parents(node))
    return list(seen.values())


def _check_missing(graph: Graph, named: dict) -> None:
    """An entry that is missing is integrated out with its factor, which needs that nothing else depends on it."""
    for name in graph.missing:
        users = [
            other.name
            for other in named.values()
            if other.name != name and any(node is named[name] for node in _ancestors(list(parents(other))))
        ]
        if users or isinstance(named[name], Let):
            derived = isinstance(named[name], Let)
            why = "is a deterministic expression" if derived else "other variables depend on it: " + ", ".join(users)
            raise UnsupportedError(
                f"'{name}' has missing entries (NaN) and {why}. "
                "Only entries of variables without descendants can be missing so far. "
                "Leave the whole variable out of the data, or fill the entries."
            )

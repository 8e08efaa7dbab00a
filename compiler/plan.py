"""From a model to a plan: the passes, in order."""

from __future__ import annotations

from typing import Any

from .absorb import absorb
from .choose import choose
from .graph import Graph
from .language import Model, check_graph
from .methods import resolve
from .roles import roles
from .schedule import schedule


def check(graph: Graph) -> Graph:
    """Refuses graphs without meaning, such as cyclic definitions."""
    check_graph(graph.model)
    return graph


PASSES = (check, roles, choose, absorb, schedule)


def make_plan(
    model: Model, observed: frozenset[str], missing: frozenset[str] = frozenset(), method: Any = "auto"
) -> Graph:
    """The plan of `model` given the names of what is observed: the graph after all passes.

    `missing` names observed variables with missing entries; `method` is a name, a `Method`, or a dictionary of these.
    Raises ModelError and UnsupportedError before anything is compiled.
    """
    default, methods = resolve(method, {**model.randoms, **model.lets, **model.constraints})
    graph = Graph(model, observed, missing, methods, default)
    for step in PASSES:
        graph = step(graph)
    return graph

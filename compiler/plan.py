"""From a model to a plan: the passes, in order."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from .absorb import absorb
from .choose import choose
from .given import Part
from .given import given as given_priors
from .graph import Graph
from .intervals import intervals
from .join import join
from .language import Model, check_graph
from .methods import resolve
from .networks import networks
from .roles import roles
from .schedule import schedule


def check(graph: Graph) -> Graph:
    """Refuses graphs without meaning, such as cyclic definitions."""
    check_graph(graph.model)
    return graph


PASSES = (check, roles, choose, given_priors, intervals, absorb, join, networks, schedule)


def make_plan(
    model: Model,
    observed: frozenset[str],
    missing: frozenset[str] = frozenset(),
    method: Any = "auto",
    given: frozenset[Part] = frozenset(),
    sizes: Mapping[str, int] | None = None,
    accuracy: str = "default",
) -> Graph:
    """The plan of `model` given the names of what is observed: the graph after all passes.

    `missing` names observed variables with missing entries; `method` is a name, a `Method`, or a dictionary of these;
    `given` names the variables whose prior is a belief among the data, `Part` by part; `sizes` are those of the plates,
    where they are known; `accuracy` is "default" or "best". Raises ModelError and UnsupportedError before anything is
    compiled.
    """
    default, methods = resolve(method, {**model.randoms, **model.lets, **model.constraints})
    graph = Graph(model, observed, missing, methods, default, sizes=sizes, accuracy=accuracy)
    names = frozenset(name for part in given for name in part.members)
    graph = dataclasses.replace(graph, given=names, given_parts=tuple(sorted(given)))
    for step in PASSES:
        graph = step(graph)
    return graph

"""Pass: beliefs given as priors take the place of the factors that generated these variables.

The new factors are data like any other, so the next batch of the same shapes finds the program compiled.
"""

from __future__ import annotations

import dataclasses

from ..factors.domains import Domain
from ..factors.families import FOR_DOMAIN
from ..factors.given import given as belief
from .expressions import Expr, Input, Let, Random, parents
from .graph import Block, Graph
from .known import latent_names
from .methods import EXACT


def given(graph: Graph) -> Graph:
    """Replaces the prior of every variable in `graph.given`.

    A constraint without data between such variables is part of what they were given, and is not imposed again.
    """
    if not graph.given:
        return graph
    gone = graph.given | {name for name, expr in graph.model.constraints.items() if _inherited(graph, expr)}
    blocks = [_prior(graph.model.randoms[name]) for name in graph.model.randoms if name in graph.given]
    blocks += [block for block in graph.blocks if block.name.split(" (case ")[0] not in gone]
    randoms = {n: v for n, v in graph.model.randoms.items() if n in graph.given or n in graph.latent}
    return dataclasses.replace(
        graph,
        blocks=tuple(blocks),
        latent={**randoms, **{name: node for name, node in graph.latent.items() if name not in randoms}},
        needed=graph.needed | graph.given,
        forward=tuple(name for name in graph.forward if name not in graph.given),
    )


def names(variable: Random) -> tuple[str, ...]:
    """What the natural parameters of a given belief are called among the data."""
    return tuple(f"{variable.name} prior {j}" for j in range(len(FOR_DOMAIN[variable.domain.kind].natural_ndims)))


def _prior(variable: Random) -> Block:
    factor = belief(variable.domain.kind)
    naturals = [Input(name, variable.plates, Domain("natural")) for name in names(variable)]
    return Block(
        variable.name,
        "energy",
        EXACT,
        "belief given with prior=",
        "exact",
        "it takes the place of the factor that the model declares; correlations between variables are not carried",
        variable.plates,
        (variable.name,),
        variable,
        factor,
        dict(zip(factor.edges, naturals, strict=True)),
        constant=True,
    )


def _inherited(graph: Graph, constraint: Expr) -> bool:
    """Whether a constraint holds given variables together and no data."""
    nodes, stack = [], [constraint]
    while stack:
        nodes.append(node := stack.pop())
        if not isinstance(node, Random):
            stack.extend(parents(node))
    data = any(isinstance(n, Input) or (isinstance(n, (Random, Let)) and n.name in graph.observed) for n in nodes)
    return not data and set(latent_names(graph, [constraint])) <= graph.given

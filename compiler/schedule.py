"""Pass: the order of the updates in a sweep."""

from __future__ import annotations

import dataclasses

from .graph import Graph


def schedule(graph: Graph) -> Graph:
    """EP blocks in declaration order and back; variables touched by energies from the last declared to the first.

    The last declared are the most local. Local variables come first so that what a sweep starts from are only the
    beliefs of the global ones.
    """
    forward = [i for i, block in enumerate(graph.blocks) if block.kind != "energy"]
    ep_order = tuple(forward + forward[-2::-1])
    energies = {name for block in graph.blocks if block.kind == "energy" for name in block.latent}
    parameters = {name for block in graph.blocks for name in block.parameters}
    order = tuple(name for name in reversed(list(graph.latent)) if name in energies | parameters)
    return dataclasses.replace(graph, order=order, ep_order=ep_order)

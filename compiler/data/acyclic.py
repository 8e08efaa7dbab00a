"""Checks that the parents which data give the elements of a tree form no cycle."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...factors.errors import DataError
from ...factors.factor import Chain
from ..language.nodes import Random


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

"""How precise an exact observation is taken to be: the square root of what double precision can resolve."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ..compiler.exactly import Certainty
from ..compiler.graph import Block, Graph
from .beliefs import family_of
from .evaluate import Scope, moments
from .placed import Placed, mapped

# Relative to the variance of what is observed, given all else: the answers are off by 1e-8, and rounding by as much.
RATIO = 1e8
SMALLEST_VARIANCE = 1e-200


def exact_blocks(graph: Graph) -> tuple[Block, ...]:
    """The blocks of exact observations in one belief."""
    return tuple(block for block in graph.blocks if isinstance(block.args.get("precision"), Certainty))


def certainty_of(block: Block) -> Certainty:
    """The precision of an exact observation."""
    precision = block.args["precision"]
    assert isinstance(precision, Certainty)
    return precision


def certainties(blocks: tuple[Block, ...], constant: dict[str, Any], graph: Graph, scope: Scope) -> dict[str, Placed]:
    """The precisions of exact observations by name, given the constant messages of all other blocks."""
    around = {name: family_of(graph.latent[name]).from_naturals(own).moments() for name, own in constant.items()}
    found = {}
    for block in blocks:
        form = moments(block.args["mean"], scope.with_moments(around), "real")
        certainty = certainty_of(block)
        found[certainty.name] = mapped(
            lambda own: RATIO / jnp.maximum(own.variance, SMALLEST_VARIANCE), form, order=certainty.plates
        )
    return found

"""How precise an exact observation is taken to be: the square root of what double precision can resolve."""

from __future__ import annotations

import jax.numpy as jnp

from ...compiler.blocks.energy import EnergyBlock
from ...compiler.graph import Plan
from ...compiler.rules.exact_observation import Certainty
from ...factors.moments import POINT_VARIANCE
from ...factors.roles import gaussian_arguments
from .first_beliefs import family_of
from .moments import moments
from .naturals import Naturals
from .plated import Placed, mapped
from .scope import Scope

# Relative to the variance of what is observed, given all else: the answers are off by 1e-8, and rounding by as much.
RATIO = 1e8


def exact_blocks(graph: Plan) -> tuple[EnergyBlock, ...]:
    """The blocks of exact observations in one belief."""
    energies = (block for block in graph.blocks if isinstance(block, EnergyBlock))
    return tuple(block for block in energies if any(isinstance(arg, Certainty) for arg in block.args.values()))


def certainty_of(block: EnergyBlock) -> Certainty:
    """The precision of an exact observation."""
    _, precision = gaussian_arguments(block)
    assert isinstance(precision, Certainty)
    return precision


def certainties(blocks: tuple[EnergyBlock, ...], constant: Naturals, graph: Plan, scope: Scope) -> dict[str, Placed]:
    """The precisions of exact observations by name, given the constant messages of all other blocks."""
    around = {name: family_of(graph.latent[name]).from_naturals(own).moments() for name, own in constant.items()}
    found = {}
    for block in blocks:
        form = moments(gaussian_arguments(block)[0], scope.with_moments(around), "real")
        certainty = certainty_of(block)
        found[certainty.name] = mapped(
            lambda own: RATIO / jnp.maximum(own.variance, POINT_VARIANCE), form, order=certainty.plates
        )
    return found

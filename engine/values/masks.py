"""Masks: which instances of a factor are in force.

Not those whose outcome is missing, nor those of another case of the factor, nor those that another block of rows has,
nor what pads a plate.
"""

from __future__ import annotations

import jax.numpy as jnp

from ...compiler.blocks.base import Block
from ...compiler.data.keys import is_present
from ...factors.arrays import Array
from .evaluate import value
from .padding import counts, padded_plates
from .plated import Placed, mapped
from .scope import Scope


def present(block: Block, scope: Scope) -> Placed | None:
    """One where an instance counts, zero where it does not; None where all do."""
    mask = scope.data.get(is_present(getattr(block.out, "name", "")))
    masks = [] if mask is None else [scope.seen(mask, block.out.plates)]
    masks += [value(condition, scope) for condition in block.where]
    if scope.window is not None and (counted := scope.window.counted) is not None:
        masks.append(counted)
    masks += [counts(plate, scope) for plate in padded_plates(block, scope)]
    if not masks:
        return None
    return mapped(_all, *masks)


def _all(*masks: Array) -> Array:
    total = jnp.ones(())
    for mask in masks:
        total = total * jnp.asarray(mask, float)
    return total

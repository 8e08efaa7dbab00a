"""Joint draws of an integrated posterior: a point of the grid, then what inference found there.

Given the point, the members of a joint belief are drawn together and everything else independently.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np

from ...factors.arrays import Key
from ...factors.errors import UnsupportedError
from ...factors.families import Point
from ...factors.switches import double_precision
from ..answers.arviz import drawn_members, hash_of
from ..answers.inferred import Inferred
from ..distributions.mixed_over_grid import GridMixture, OnGrid
from ..values.first_beliefs import family_of
from .at_points import Mixture

NOTE = "joint draws of an integrated posterior: of a point of the grid, then of the beliefs there"


def joint_draws(
    mixture: Mixture, mixture_of: Callable[[str], GridMixture], posterior: Inferred, draws: int, seed: int
) -> dict[str, np.ndarray]:
    """Draws by name, shaped (draws,) + plates + event, of all that is not wholly observed and has a family.

    `mixture` is what the integration of `posterior` found, and `mixture_of` gives the marginals at all points by name.
    The same position of all arrays belongs to the same point. `seed` decides them all.
    """
    with double_precision():
        key = jax.random.key(seed)
        chosen = np.asarray(jax.random.choice(key, len(mixture.weights), (draws,), p=mixture.weights))
        found = {**_of_scalars(mixture, chosen, key), **_of_joints(posterior, mixture, chosen, key)}
        for name in posterior:
            try:
                if name in found or isinstance(posterior[name].family, Point):
                    continue
            except UnsupportedError:  # an expression without a family, such as a probability
                continue
            found[name] = np.asarray(mixture_of(name).draws_at(chosen, _own(key, name)))
        return {name: found[name] for name in posterior if name in found}


def _own(key: Key, name: str) -> Key:
    return jax.random.fold_in(key, hash_of(name))


def _of_scalars(mixture: Mixture, chosen: np.ndarray, key: Key) -> dict[str, np.ndarray]:
    """What was integrated: states as they are at the points, continuous scalars in the cells around them."""
    return {
        name: np.asarray(family.draws_at(chosen, _own(key, name)))
        if isinstance(family, OnGrid)
        else mixture.values[name][chosen]
        for name, family in mixture.families.items()
    }


def _of_joints(posterior: Inferred, mixture: Mixture, chosen: np.ndarray, key: Key) -> dict[str, np.ndarray]:
    """Draws of the members of joint beliefs that are wholly latent."""
    found = {}
    for joint in posterior.graph.joints:
        name = joint.variable.name
        stacked = family_of(joint.variable).from_naturals(mixture.outputs["beliefs"][name])
        values = GridMixture(stacked, mixture.weights).draws_at(chosen, _own(key, name))
        found |= drawn_members(posterior, joint, values)
    return found

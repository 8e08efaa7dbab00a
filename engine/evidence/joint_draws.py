"""Joint draws of an integrated posterior: a point of the grid, then what inference found there.

Given the point, the members of a joint belief are drawn together and everything else independently.
"""

from __future__ import annotations

import jax
import numpy as np

from ...factors.arrays import Key
from ...factors.errors import UnsupportedError
from ...factors.families import Point
from ..answers.arviz import hash_of
from ..distributions.mixed_over_grid import GridMixture, OnGrid
from ..values.first_beliefs import family_of
from ..values.joint_beliefs import member_values
from .integrated import Integrated

NOTE = "joint draws of an integrated posterior: of a point of the grid, then of the beliefs there"


def joint_draws(posterior: Integrated, draws: int, seed: int) -> dict[str, np.ndarray]:
    """Draws by name, shaped (draws,) + plates + event, of all that is not wholly observed and has a family.

    The same position of all arrays belongs to the same point. `seed` decides them all.
    """
    with jax.enable_x64(True):
        key = jax.random.key(seed)
        chosen = np.asarray(jax.random.choice(key, len(posterior.weights), (draws,), p=posterior.weights))
        found = _of_joints(posterior, chosen, key)
        for name in posterior:
            try:
                if name in found or isinstance(posterior[name].family, Point):
                    continue
            except UnsupportedError:  # an expression without a family, such as a probability
                continue
            found[name] = _of_one(posterior, name, chosen, jax.random.fold_in(key, hash_of(name)))
        return {name: found[name] for name in posterior if name in found}


def _of_one(posterior: Integrated, name: str, chosen: np.ndarray, key: Key) -> np.ndarray:
    if name not in posterior.points:
        return np.asarray(posterior.mixture_of(name).draws_at(chosen, key))
    family = posterior[name].family
    return np.asarray(family.draws_at(chosen, key) if isinstance(family, OnGrid) else posterior.points[name][chosen])


def _of_joints(posterior: Integrated, chosen: np.ndarray, key: Key) -> dict[str, np.ndarray]:
    """Draws of the members of joint beliefs that are wholly latent."""
    found = {}
    for joint in posterior.graph.joints:
        name = joint.variable.name
        stacked = family_of(joint.variable).from_naturals(posterior.mixture.outputs["beliefs"][name])
        own = jax.random.fold_in(key, hash_of(name))
        values = GridMixture(stacked, posterior.weights).draws_at(chosen, own)
        for member in joint.members:
            if member.name not in posterior.graph.partly:
                found[member.name] = np.asarray(member_values(member, joint, values, posterior.machine.sizes))
    return found

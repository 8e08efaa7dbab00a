"""What the samplers of a binary matrix work on: arrays only, padded in the number of features."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Bool, Float

from ....factors.arrays import Array
from ..likelihoods.contract import Active, Numbers, Point, Values, Weights


class State(NamedTuple):
    """One point of a chain, padded to P places for features, in any of which a feature may be.

    A place that no row has is empty under the Indian buffet process: its values are zeros. Under the finite prior all
    places are features.

    Attributes:
        active: (rows, P) booleans.
        values: (P, dimensions) of features.
        weights: (rows, P), or (0, 0) where the likelihood has none.
        numbers: of the likelihood.
        mass, concentration: () of the prior.
    """

    active: Active
    values: Values
    weights: Weights
    numbers: Numbers
    mass: Float[Array, ""]
    concentration: Float[Array, ""]

    @property
    def point(self) -> Point:
        """What likelihoods are given."""
        return Point(self.active, self.values, self.weights, self.numbers)


class Outcome(NamedTuple):
    """A sweep's result.

    Attributes:
        state: the new state; meaningless where the sweep did not fit.
        fits: () whether P sufficed. Where not, the caller repeats the sweep from the OLD state with more places and the
            same key: draws belong to features and not to P, so that no outcome is favoured.
        proposed, accepted: () moves that change something, or would, where a sampler has such.
    """

    state: State
    fits: Bool[Array, ""]
    proposed: Array
    accepted: Array


def cleared(state: State) -> State:
    """With zeros in all places that no row has."""
    used = jnp.any(state.active, axis=0)
    weights = jnp.where(used, state.weights, 0.0) if state.weights.size else state.weights
    return state._replace(values=jnp.where(used[:, None], state.values, 0.0), weights=weights)

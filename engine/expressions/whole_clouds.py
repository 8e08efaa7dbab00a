"""The joint distribution of a few elements of a block that treats all of its variables jointly, as a cloud.

Such a block gives log Z and all marginals from the messages of the others. So the probability of some states together
is log Z with these states made certain, and the covariance of two Gaussian elements is how the mean of one moves with
the natural parameter of the other.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from ...compiler.blocks.base import Block
from ...factors.arrays import Array
from ..blocks.kinds import KINDS
from ..values.naturals import Naturals, subtract
from ..values.scope import Scope
from . import clouds
from .clouds import Cloud, NumberKey

SURE = 2e5  # log odds that make a state certain, beyond those that a belief may have
MOST = 4096  # solutions of a block for one expression


Places = Int[Array, "instances elements"]  # the position of each element in its variable


def affordable(kinds: list[int], elements: int) -> bool:
    """Whether as many solutions may be made: `kinds` are the numbers of states, one for a Gaussian."""
    return elements * math.prod(kinds) * len(kinds) <= MOST


class WholeBlock:
    """A block that is solved as a whole, with the messages of all others.

    `prepared` is what its kind knows of the data; `naturals` and `messages` are by variable, all plates in one axis.
    """

    def __init__(self, block: Block, prepared: Any, naturals: Naturals, messages: Naturals, scope: Scope) -> None:
        solve = KINDS[type(block)].solve
        assert solve is not None, f"{block.name} is not solved as a whole"
        self.outside = {name: subtract(naturals[name], messages[name]) for name in messages}
        self.solve = lambda outside: solve(block, prepared, outside, scope)

    def states(self, names: list[str], sizes: list[int], keys: list[NumberKey], places: Places) -> Cloud:
        """The elements at `places` of these discrete variables, in all of their states: so many are `sizes`."""
        grids = jnp.stack([g.reshape(-1) for g in jnp.meshgrid(*map(jnp.arange, sizes), indexing="ij")], axis=-1)

        def log_probability(place: Int[Array, " elements"], state: Int[Array, " elements"]) -> Float[Array, ""]:
            outside, offset = dict(self.outside), 0.0
            for i, name in enumerate(names):
                (natural,) = outside[name]
                if natural.ndim == 1:  # the log odds of true
                    outside[name] = (natural.at[place[i]].add(jnp.where(state[i] == 1, SURE, -SURE)),)
                    offset = offset + jnp.where(state[i] == 1, SURE, 0.0)
                else:
                    outside[name] = (natural.at[place[i], state[i]].add(SURE),)
                    offset = offset + SURE
            return self.solve(outside)[0] - offset

        logs = jax.lax.map(lambda place: jax.vmap(lambda state: log_probability(place, state))(grids), places)
        return clouds.of_points({key: grids[None, :, i] for i, key in enumerate(keys)}, logs)

    def gaussians(self, names: list[str], keys: list[NumberKey], places: Places) -> Cloud:
        """The elements at `places` of these real variables, as one Gaussian."""

        def means(shifts: dict[str, Array], place: Int[Array, " elements"]) -> Float[Array, " elements"]:
            outside = {**self.outside, **{n: (shift, *self.outside[n][1:]) for n, shift in shifts.items()}}
            _, marginals = self.solve(outside)
            return jnp.stack([(marginals[n][0] / (-2.0 * marginals[n][1]))[place[i]] for i, n in enumerate(names)])

        def moments(
            place: Int[Array, " elements"],
        ) -> tuple[Float[Array, " elements"], Float[Array, "elements elements"]]:
            shifts = {name: self.outside[name][0] for name in names}
            rows = []
            for i, name in enumerate(names):
                change = {n: jnp.zeros_like(shift) for n, shift in shifts.items()}
                change[name] = change[name].at[place[i]].set(1.0)
                mean, moved = jax.jvp(lambda s: means(s, place), (shifts,), (change,))
                rows.append(moved)
            covariance = jnp.stack(rows)
            return mean, 0.5 * (covariance + covariance.T)

        mean, covariance = jax.lax.map(moments, places)
        return clouds.of_gaussian(tuple(keys), mean, covariance)

"""The posterior of features that run in families, for every likelihood: an entry given all others is a ratio of rates.

How likely a column is depends on which rows have it and not on how many alone. So the odds of an entry are the rate of
its column with it over that without, each an integral over the feature's weight of one pass up the tree; and a row has
as many features alone as the rate of that column says. Everything else is what sweeps given values of features do.
"""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from ....factors.arrays import Array, Key
from ....factors.errors import DataError, ModelError
from ...trees.tree import ORIGIN, Tree
from ..likelihoods.learned import Gamma, check_gamma, draw_gamma, first_gamma, gamma_given
from ..samplers.births import given_rows
from ..samplers.law import OfRow
from ..samplers.semi_collapsed import semi_collapsed
from ..samplers.state import State
from ..samplers.sweeps import Sweep
from ..samplers.uncollapsed import uncollapsed
from .phylogenetic import PhylogeneticBuffet

ODDS = np.arange(-45.0, 45.25, 0.5)  # log odds of weights: the trapezoidal rule, exact to rounding at this step


@dataclasses.dataclass(frozen=True)
class PhylogeneticLaw:
    """`PhylogeneticBuffet` as sweeps use it: `uncollapsed`, `given_rows` and `semi_collapsed`.

    Args:
        tree: whose leaves are the rows, in their order.
        mass: a positive number, or (shape, rate) of the gamma prior under which it is learned.

    Raises:
        ModelError: numbers that are not positive, or what is no tree.

    Source: miller2008phylogenetic.
    """

    tree: Tree
    mass: Gamma = (1.0, 1.0)

    def __post_init__(self) -> None:
        if not isinstance(self.tree, Tree):
            raise ModelError(f"PhylogeneticLaw(tree=) is a cavity.models.trees.tree.Tree; found {self.tree!r}.")
        check_gamma("PhylogeneticLaw(mass=)", self.mass)

    @property
    def features(self) -> None:
        """Without end."""
        return None

    @property
    def sweeps(self) -> tuple[Sweep, ...]:
        """Those given values of features."""
        return uncollapsed, given_rows, semi_collapsed

    def draw(self, key: Key) -> tuple[Array, Array]:
        """The mass from its prior, and a concentration, which this law does not have: 1."""
        return draw_gamma(key, self.mass), jnp.ones(())

    def first(self) -> tuple[Array, Array]:
        """Where chains begin: the mass given or the mean of its prior, and 1."""
        return first_gamma(self.mass), jnp.ones(())

    def update(self, key: Key, state: State) -> State:
        """The mass drawn given the matrix: `mass | Z ~ Gamma(shape + K, rate + H(L))`."""
        number = jnp.sum(jnp.any(state.active, axis=0))
        return state._replace(mass=gamma_given(key, self.mass, number, self._of_unit_mass.expected_features()))

    def of_row(self, row: Array, active: Array, state: State) -> OfRow:
        """Odds of the entries of a row given all others, and the rate of features that it has alone."""
        has, has_not = (jnp.asarray(active).at[row].set(value) for value in (True, False))
        with_it, without = jnp.split(self.log_rates(jnp.concatenate([has, has_not], axis=1)), 2)
        others = jnp.any(has_not, axis=0)
        odds = jnp.where(others, with_it - jnp.where(others, without, 0.0), -jnp.inf)
        return OfRow(odds, state.mass * jnp.asarray(self._alone)[row])

    def log_rates(self, columns: Array) -> Array:
        """(features,) log rates of (rows, features) columns at a mass of 1, as `PhylogeneticBuffet.log_rates`.

        Raises:
            DataError: another number of rows than leaves.
        """
        tree, count = self.tree, columns.shape[1]
        if len(columns) != tree.n_leaves:
            raise DataError(
                f"The tree has {tree.n_leaves} leaves, and the data have {len(columns)} rows. Give a tree whose "
                "leaves are the rows, in their order."
            )
        rows, above = tree.n_leaves, jnp.asarray(np.where(tree.parent == ORIGIN, tree.n_nodes, tree.parent))
        log_off = -jnp.logaddexp(0.0, jnp.asarray(ODDS))
        log_stay = jnp.asarray(tree.length)[:, None] * log_off
        log_appear = jnp.log(-jnp.expm1(log_stay))
        on = jnp.zeros((tree.n_nodes + 1, count)).at[:rows].set(jnp.where(columns, 0.0, -jnp.inf))
        off = jnp.zeros((tree.n_nodes + 1, count, len(ODDS)))
        off = off.at[:rows].set(jnp.where(columns, -jnp.inf, 0.0)[:, :, None])

        def up(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            on, off = carry
            node = jnp.asarray(tree.order)[i]
            absent = jnp.logaddexp(log_stay[node] + off[node], log_appear[node] + on[node][:, None])
            return jnp.asarray(on).at[above[node]].add(on[node]), jnp.asarray(off).at[above[node]].add(absent)

        _, off = jax.lax.fori_loop(0, tree.n_nodes, up, (on, off))
        # As dw / w is (1 - w) d log odds.
        return jax.scipy.special.logsumexp(off[-1] + log_off, axis=1) + np.log(ODDS[1] - ODDS[0])

    def log_of_draw(self, matrix: np.ndarray, weights: np.ndarray, mass: float) -> float:
        """Log probability of a matrix whose columns no row may have, up to their order."""
        return PhylogeneticBuffet(self.tree, mass).log_probability(matrix)

    @functools.cached_property
    def _of_unit_mass(self) -> PhylogeneticBuffet:
        return PhylogeneticBuffet(self.tree, 1.0)

    @functools.cached_property
    def _alone(self) -> np.ndarray:
        """(rows,) rates of features that each row has alone."""
        return np.exp(self._of_unit_mass.log_rates(np.eye(self.tree.n_leaves, dtype=bool)))

"""Draws of correlated features: chains that begin where chains of independent features came to.

From a draw of the prior a category seldom finds its menu: all of its features must come together. So chains go over the
rows by the Indian buffet process first. What they find is a state of the other laws too: rows of the same features are
of one category, or each feature is a category of its own.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from ....engine.mcmc.run import Chains, run
from ....engine.support.user_numbers import table
from ....factors.arrays import Key
from ....factors.errors import ModelError
from ..likelihoods.contract import Likelihood, Numbers, Rows
from ..samplers.law import Law
from ..samplers.sampler import Sampler, Start, bucket
from ..samplers.state import State as Features
from ..samplers.sweeps import Sweep
from .dp_ibp import Partition
from .framework import Framework, doubles
from .ibp_ibp import IbpIbp
from .sampler import Correlated, padded
from .state import State

BULKY = ("choice", "menu", "active", "values")
COUNTS = ("number_of_features", "number_of_categories", "number_of_menus")


class CorrelatedDraw(NamedTuple):
    """One draw without padding.

    Attributes:
        active: (rows, K) booleans, features of rows.
        values: (K, dimensions) of features.
        numbers: of the likelihood and of the prior.
        choice: (rows, L) booleans, categories of rows.
        menu: (L, K) booleans, features of categories.
    """

    active: np.ndarray
    values: np.ndarray
    numbers: Numbers
    choice: np.ndarray
    menu: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class CorrelatedChains:
    """Draws of categories and their features.

    Attributes:
        chains: draws by name, (chains, draws, ...) each: number_of_features, number_of_categories, number_of_menus
            (how many of the categories differ), log_likelihood, the numbers of likelihood and prior; choice (rows, L),
            menu (L, K), active (rows, K) and values (K, dimensions), with zeros where a draw has fewer than the
            largest.
        names: of the numbers of the likelihood and the prior.
    """

    chains: Chains
    names: tuple[str, ...]

    def __getitem__(self, name: str) -> np.ndarray:
        return self.chains[name]

    @property
    def shape(self) -> tuple[int, int]:
        """Chains and draws."""
        chains, draws = self["number_of_features"].shape
        return chains, draws

    def draw(self, chain: int, draw: int) -> CorrelatedDraw:
        """One draw."""
        choice, menu, active, values = (self[name][chain, draw] for name in BULKY)
        categories, features = choice.any(axis=0), menu.any(axis=0)
        numbers = {name: self[name][chain, draw] for name in self.names}
        menu = menu[np.ix_(categories, features)] > 0
        return CorrelatedDraw(active[:, features] > 0, values[features], numbers, choice[:, categories] > 0, menu)

    def draws(self, every: int = 1) -> Iterator[CorrelatedDraw]:
        """Draws of all chains, of each every so many."""
        chains, draws = self.shape
        return (self.draw(chain, draw) for chain in range(chains) for draw in range(0, draws, every))

    @functools.cached_property
    def number_of_features(self) -> np.ndarray:
        """Posterior probabilities of 0, 1, 2, ... features that some category has."""
        counts = self["number_of_features"].astype(int).ravel()
        return np.bincount(counts) / counts.size

    def to_arviz(self) -> Any:
        """For ArviZ: numbers of features and categories, the log likelihood, all numbers of likelihood and prior."""
        kept = {name: draws for name, draws in self.chains.draws.items() if name not in BULKY}
        kept |= {name: kept[name].astype(float) for name in COUNTS}
        kept["log_likelihood_of_data"] = kept.pop("log_likelihood")
        return dataclasses.replace(self.chains, draws=kept).to_arviz()


@functools.singledispatch
def categories_of(law: Framework, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Choice (rows, L) and menu (L, K) under this law, with which rows have these features (rows, K)."""
    raise ModelError(f"Chains of {type(law).__name__} do not begin at features of rows. Use DpIbp or IbpIbp.")


@categories_of.register
def _(law: Partition, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    menu, which = np.unique(active, axis=0, return_inverse=True)
    return np.eye(len(menu), dtype=bool)[which.ravel()], menu


@categories_of.register
def _(law: IbpIbp, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return active, np.eye(active.shape[1], dtype=bool)


def from_features(features: Features, law: Framework) -> State:
    """A state of samplers of independent features as one of correlated features."""
    used = np.asarray(features.active).any(axis=0)
    active = np.asarray(features.active)[:, used]
    choice, menu = categories_of(law, active)
    values, numbers = np.asarray(features.values)[used], dict(features.numbers)
    state = State(choice, menu, choice[:, :, None] & menu, values, doubles(numbers), doubles(law.first()))
    return padded(state, *(bucket(size) for size in menu.shape))


def sample_correlated(
    data: Any,
    key: Key,
    draws: int,
    likelihood: Likelihood,
    law: Framework,
    *,
    sweep: Sweep,
    before: int = 100,
    chains: int = 4,
    warmup: int = 0,
    thin: int = 1,
    start: Start | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
) -> CorrelatedChains:
    """Draws from the posterior of which rows have which categories, and these which features.

    Args:
        data: (rows, dimensions) numbers, NaN where missing.
        key: a key of `jax.random`.
        draws: kept, of each chain.
        likelihood: what rows show of their features, of `cavity.models.buffet.likelihoods`.
        law: `DpIbp` or `IbpIbp`.
        sweep: of the samplers of independent features, by which each chain begins.
        before: how many of those sweeps there are, after those of `sample_features` for a given noise.
        chains, warmup, thin, progress: as in `cavity.engine.mcmc.run.run`.
        start: what `fit_variational` gave, where those begin.

    Returns:
        The draws.

    Raises:
        ModelError: an argument out of range, or another law.
        DataError: entries that the likelihood does not give, a row or column without any.

    Source: doshivelez2009correlated.
    """
    values = table(data, "row", "dimension")
    seen = ~np.isnan(values)
    rows = Rows(np.where(seen, values, 0.0), seen)
    model = Correlated(rows, likelihood, law, keep=BULKY)
    apart = Sampler(rows, likelihood, Law(), sweep, (), start=start)

    def init(key: Key) -> State:
        keys = jax.random.split(key, before + 1)
        state = apart.init(keys[0])
        for own in keys[1:]:
            state = apart.step(own, state)
        return from_features(state, law)

    kernel = model.kernel()._replace(init=init)
    found = run(kernel, key, draws, chains=chains, warmup=warmup, thin=thin, progress=progress)
    return CorrelatedChains(found, (*found.states[0].numbers, *law.first()))

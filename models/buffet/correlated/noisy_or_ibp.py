"""Several categories for each row, which may keep features from it: a noisy-or of categories.

`P(z_nk = 0) = withheld^(c_n . m_k)` where each category that offers a feature passes it on by itself with probability
`1 - withheld`, and the row has what at least one passes on. Who passes on what is part of the state. So no two
conditionals contradict each other: a row takes a category together with what this passes on, proposed one feature after
the other given the data, and no feature is left without a category that passes it on.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from ....engine.mcmc.keys import generator
from ....factors.arrays import Array, Key
from ..likelihoods.contract import Likelihood, Numbers
from ..likelihoods.learned import Beta, beta_given, check_beta, draw_beta, first_beta
from .ibp_ibp import Answer, IbpIbp, Offer
from .menus import fire
from .state import Row, State, put


@dataclasses.dataclass(frozen=True)
class NoisyOrIbp(IbpIbp):
    """`z_nk ~ Bernoulli(1 - withheld^(number of categories of row n that have feature k))`.

    As `withheld` goes to zero this becomes `IbpIbp`.

    Args:
        category_mass: the expected number of categories of a row; a positive number, or (shape, rate) of the gamma
            prior to learn it under.
        mass: the expected number of features of a category; the same.
        withheld: the probability that a category keeps a feature from a row; a number between 0 and 1, or the two
            parameters of the beta prior to learn it under.

    Raises:
        ModelError: numbers out of range.

    Source: doshivelez2009correlated.
    """

    withheld: Beta = (1.0, 9.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_beta("NoisyOrIbp(withheld=)", self.withheld)

    def draw(self, key: Key) -> Numbers:
        keys = jax.random.split(key)
        return super().draw(keys[0]) | {"withheld": draw_beta(keys[1], self.withheld)}

    def first(self) -> Numbers:
        return super().first() | {"withheld": first_beta(self.withheld)}

    def generate(self, key: Key, prior: Numbers, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        keys = jax.random.split(key)
        choice, menu, offered = super().generate(keys[0], prior, rows)
        return choice, menu, offered & (generator(keys[1]).random(offered.shape) >= prior["withheld"])

    def taken_over(self, start: State) -> State:
        return super().taken_over(start)._replace(fired=start.fired)

    def withheld_of(self, state: State) -> Array:
        return state.prior["withheld"]

    def answer(self, offer: Offer, row: Row, state: State, likelihood: Likelihood) -> Answer:
        """What an offered category passes on.

        Features of other menus one after the other, given those before: their ratio is what `fire` sums out. Those of
        this menu alone have no order, so they come last and all at once, from the prior: theirs is the ratio of
        densities.
        """
        withheld = self.withheld_of(state)

        def density(total: Array) -> Array:
            return row.log_density(total, state.numbers, likelihood)

        def one(k: Array, now: Answer) -> Answer:
            offered = offer.menu[k] & ~offer.own[k]
            with_it = jnp.where(offer.on[k], now.total, now.total + offer.values[k])
            ratio, fires = fire(offer.u[k], density(with_it) - density(now.total), withheld)
            fires = offered & jnp.where(offer.kept, offer.now[k], fires)
            total = jnp.where(fires, with_it, now.total)
            return Answer(now.ratio + jnp.where(offered, ratio, 0.0), put(now.fired, k, fires), total)

        begin = Answer(jnp.zeros(()), jnp.zeros_like(offer.menu), offer.total)
        shared = jax.lax.fori_loop(0, len(offer.menu), one, begin)
        own = offer.own & jnp.where(offer.kept, offer.now, offer.u >= withheld)
        total = shared.total + own @ offer.values
        return Answer(shared.ratio + density(total) - density(shared.total), shared.fired | own, total)

    def update(self, key: Key, state: State) -> Numbers:
        keys = jax.random.split(key)
        fired = jnp.sum(state.fired)
        offered = jnp.sum(state.choice[:, :, None] & state.menu)
        withheld = beta_given(keys[1], self.withheld, offered - fired, fired)
        return super().update(keys[0], state) | {"withheld": withheld}

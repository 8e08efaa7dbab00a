"""Mean field of the noisy-or: every value is a boolean by itself, and all expectations are exact.

A cell has S reasons, each with a probability of its own: its total under the beliefs. A zero asks for the mean of S. A
one asks for `E log(1 - quiet attenuation^S) = -sum_r quiet^r / r E[attenuation^(r S)]`, where each expectation is a
product over features, `prod_k (1 - p_k (1 - attenuation^r))`. For large r it is the probability of no reason, so that
the rest of the series is known but for `(quiet attenuation)^r`: some ten terms are exact to the last digits, and
leaving one feature out divides by its factor.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from ....factors import draws
from ....factors.arrays import Array, Key
from ....factors.errors import UnsupportedError
from ..likelihoods.contract import Numbers, Rows, Values
from ..likelihoods.noisy_or import NoisyOr
from .beliefs import Share, entropy, probability, share
from .contract import Field, Probabilities, some_rows

EXACT = 1e-13  # of what is left of the series


class NoisyOrBelief(NamedTuple):
    """About values and their share.

    Attributes:
        mean: (places, dimensions), probabilities that a feature is a reason for an entry.
        share: of the prior probability.
    """

    mean: Values
    share: Share


@dataclasses.dataclass(frozen=True)
class NoisyOrField(Field):
    """For `NoisyOr` with a quiet and an attenuation that are given; a learned share has a beta belief.

    Raises:
        UnsupportedError: a quiet or attenuation that is learned.

    Source: wood2006nonparametric.
    """

    likelihood: NoisyOr

    def __post_init__(self) -> None:
        for name in ("quiet", "attenuation"):
            given = getattr(self.likelihood, name)
            if isinstance(given, tuple):
                raise UnsupportedError(
                    f"Mean field of NoisyOr takes {name}= as a number; found the prior {given}. "
                    "Give its value, or run a sampler, which learns it."
                )

    @property
    def given(self) -> tuple[float, float]:
        """Quiet and attenuation."""
        return cast("float", self.likelihood.quiet), cast("float", self.likelihood.attenuation)

    @property
    def series(self) -> tuple[np.ndarray, np.ndarray]:
        """(terms,) factors and (terms,) bases with `log(1 - quiet attenuation^s) = -sum factor base^s`."""
        quiet, attenuation = self.given
        terms = max(1, math.ceil(math.log(EXACT) / math.log(quiet * attenuation)))
        r = np.arange(1, terms + 1)
        factor = quiet**r / r
        rest = -math.log1p(-quiet) - math.fsum(factor)
        return np.append(factor, max(rest, 0.0)), np.append(attenuation**r, 0.0)

    def start(self, key: Key, rows: Rows, places: int, numbers: Numbers) -> NoisyOrBelief:
        keys = jax.random.split(key)
        u = draws.uniform(keys[0], (places, rows.values.shape[1]))
        mean = 0.1 + 0.3 * u + 0.3 * some_rows(keys[1], rows, places)
        return self._shared(NoisyOrBelief(mean, share(self.likelihood.share, jnp.zeros(()), jnp.zeros(()))))

    def entries(
        self, rows: Rows, probabilities: Probabilities, belief: NoisyOrBelief, odds: Array, power: Array, places: Array
    ) -> Probabilities:
        def one(i: Array, carry: tuple[Probabilities, Array]) -> tuple[Probabilities, Array]:
            k, (now, every) = places[i], carry
            without = every / self._factor(now[:, k], belief.mean[k])
            gain = jnp.sum(self._reason(rows, without) * belief.mean[k], axis=1)
            own = probability(odds[k] + power * gain)
            return jnp.asarray(now).at[:, k].set(own), without * self._factor(own, belief.mean[k])

        return jax.lax.fori_loop(0, len(places), one, (probabilities, self._products(probabilities, belief.mean)))[0]

    def values(
        self, rows: Rows, probabilities: Probabilities, belief: NoisyOrBelief, power: Array, places: Array
    ) -> NoisyOrBelief:
        odds = belief.share.log_on - belief.share.log_off

        def one(i: Array, carry: tuple[Values, Array]) -> tuple[Values, Array]:
            k, (now, every) = places[i], carry
            without = every / self._factor(probabilities[:, k], now[k])
            gain = jnp.sum(self._reason(rows, without) * probabilities[:, k, None], axis=0)
            own = probability(odds + power * gain)
            return jnp.asarray(now).at[k].set(own), without * self._factor(probabilities[:, k], own)

        start = belief.mean, self._products(probabilities, belief.mean)
        return belief._replace(mean=jax.lax.fori_loop(0, len(places), one, start)[0])

    def numbers(self, rows: Rows, probabilities: Probabilities, belief: NoisyOrBelief, power: Array) -> NoisyOrBelief:
        return self._shared(belief)

    def fit(self, rows: Rows, probabilities: Probabilities, belief: NoisyOrBelief) -> Array:
        quiet, attenuation = self.given
        zero = jnp.log(quiet) + probabilities @ belief.mean * jnp.log(attenuation)
        one = -jnp.tensordot(self.series[0], self._products(probabilities, belief.mean), 1)
        return jnp.sum(jnp.where(rows.values > 0.5, one, zero), where=rows.seen)

    def divergence(self, belief: NoisyOrBelief) -> Array:
        mean, prior = belief.mean, belief.share
        return prior.divergence - entropy(mean) - jnp.sum(mean * prior.log_on + (1.0 - mean) * prior.log_off)

    def reordered(self, belief: NoisyOrBelief, order: Array) -> NoisyOrBelief:
        return belief._replace(mean=belief.mean[order])

    def moments(self, belief: NoisyOrBelief) -> tuple[Values, Values]:
        return belief.mean, jnp.sqrt(belief.mean * (1.0 - belief.mean))

    def draw(self, key: Key, belief: NoisyOrBelief) -> tuple[Values, Numbers]:
        given = dict(zip(("quiet", "attenuation"), map(jnp.asarray, self.given), strict=True))
        values = (draws.uniform(key, belief.mean.shape) < belief.mean).astype(float)
        return values, {**given, "share": belief.share.mean}

    def expected(self, probabilities: Probabilities, belief: NoisyOrBelief) -> Array:
        return 1.0 - self.given[0] * self._products(probabilities, belief.mean)[0]

    def _shared(self, belief: NoisyOrBelief) -> NoisyOrBelief:
        """With the share given the values."""
        return belief._replace(share=share(self.likelihood.share, jnp.sum(belief.mean), jnp.sum(1.0 - belief.mean)))

    def _factor(self, has: Array, values: Array) -> Array:
        """(terms, rows, dimensions), `E[base^(z a)]` of one feature: of (rows,) and (dimensions,) probabilities."""
        p = has[:, None] * values
        return 1.0 - p * (1.0 - jnp.asarray(self.series[1]))[:, None, None]

    def _products(self, probabilities: Probabilities, mean: Values) -> Array:
        """(terms, rows, dimensions), of all features."""
        start = jnp.ones((len(self.series[1]), probabilities.shape[0], mean.shape[1]))
        times = lambda k, now: now * self._factor(probabilities[:, k], mean[k])  # noqa: E731
        return jax.lax.fori_loop(0, mean.shape[0], times, start)

    def _reason(self, rows: Rows, without: Array) -> Array:
        """(rows, dimensions), what one more reason adds to the log likelihood; zero where not seen."""
        factor, base = self.series
        one = jnp.tensordot(jnp.asarray(factor * (1.0 - base)), without, 1)
        gain = jnp.where(rows.values > 0.5, one, jnp.log(self.given[1]))
        return jnp.where(rows.seen, gain, 0.0)

"""Births and deaths that look at the row: the values of a new feature are proposed by what the row shows without it.

A birth from the prior fits a row of many entries hardly ever. Where one new feature's values have a posterior given one
row, all dimensions apart, they are drawn from it; accepted is then by the row's evidence with the feature and without.
The feature that dies is one of those that the row has alone, each alike.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp

from ....engine.sampling.augmented import normal_above
from ....factors import draws
from ....factors.arrays import Array, Key
from ....factors.errors import UnsupportedError
from ....factors.special import TINY, lgamma
from ..likelihoods.contract import Likelihood, Rows
from ..likelihoods.detection import Detection
from ..likelihoods.exponential_gaussian import ExponentialGaussian
from ..likelihoods.gaussian_noise import LOG_2PI
from ..likelihoods.noisy_or import NoisyOr
from ..likelihoods.poisson_gamma import PoissonGamma
from .law import Law, RowPrior
from .state import Outcome, State
from .uncollapsed import Births, Row, log_density, placed, sweep_with

TIMES = 2  # births or deaths that a row tries in a sweep


class Proposal(Protocol):
    """How the values of one feature are proposed, given the row and its total of all others."""

    def draw(self, key: Key, row: Row, total: Array, state: State) -> Array:
        """(dimensions,) values."""
        ...

    def log_over_prior(self, values: Array, row: Row, total: Array, state: State) -> Array:
        """Log density of these values under the proposal over that under the prior."""
        ...


class OfPrior(NamedTuple):
    """Values from their prior, whatever the row shows."""

    likelihood: Likelihood

    def draw(self, key: Key, row: Row, total: Array, state: State) -> Array:
        return self.likelihood.draw_values(key, state.numbers, 1, total.shape[0])[0]

    def log_over_prior(self, values: Array, row: Row, total: Array, state: State) -> Array:
        return jnp.zeros(())


class OfBinaryRow(NamedTuple):
    """Values that are 0 or 1 from their posterior given the row."""

    likelihood: Likelihood

    def draw(self, key: Key, row: Row, total: Array, state: State) -> Array:
        share = state.numbers["share"]
        log_odds = jnp.log(share) - jnp.log1p(-share) + self._gain(row, total, state)
        return (draws.uniform(key, total.shape) < jax.nn.sigmoid(log_odds)).astype(float)

    def log_over_prior(self, values: Array, row: Row, total: Array, state: State) -> Array:
        share, gain = state.numbers["share"], self._gain(row, total, state)
        evidence = jnp.logaddexp(jnp.log1p(-share), jnp.log(share) + gain)
        return jnp.sum(values * gain - evidence)

    def _gain(self, row: Row, total: Array, state: State) -> Array:
        with_one = self.likelihood.log_entry(row.value, total + 1.0, state.numbers)
        return jnp.where(row.seen, with_one - self.likelihood.log_entry(row.value, total, state.numbers), 0.0)


class OfExponentialRow(NamedTuple):
    """Values that are not negative from their posterior given the row, a normal law cut off below zero."""

    likelihood: ExponentialGaussian

    def draw(self, key: Key, row: Row, total: Array, state: State) -> Array:
        keys = jax.random.split(key)
        mean, sd = self._law(row, total, state)
        found = jnp.maximum(mean + sd * normal_above(keys[0], -mean / sd), 0.0)
        return jnp.where(row.seen, found, self.likelihood.draw_values(keys[1], state.numbers, 1, len(total))[0])

    def log_over_prior(self, values: Array, row: Row, total: Array, state: State) -> Array:
        mean, sd = self._law(row, total, state)
        rate, z = state.numbers["rate"], (values - mean) / sd
        proposed = -0.5 * (z**2 + LOG_2PI) - jnp.log(sd) - jax.scipy.special.log_ndtr(mean / sd)
        return jnp.sum(proposed - jnp.log(rate) + rate * values, where=row.seen)

    def _law(self, row: Row, total: Array, state: State) -> tuple[Array, Array]:
        noise = state.numbers["noise_precision"]
        return row.value - total - state.numbers["rate"] / noise, 1.0 / jnp.sqrt(noise)


class OfCounts(NamedTuple):
    """Values of rates from a gamma law that has the share of the counts that they are expected to explain."""

    likelihood: PoissonGamma

    def draw(self, key: Key, row: Row, total: Array, state: State) -> Array:
        shape, rate = self._law(row, total, state)
        return jnp.exp(draws.log_gamma(key, shape)) / rate

    def log_over_prior(self, values: Array, row: Row, total: Array, state: State) -> Array:
        prior, prior_rate = self.likelihood.shape, state.numbers["rate"]
        shape, rate = self._law(row, total, state)
        proposed = shape * jnp.log(rate) - lgamma(shape)
        given = prior * jnp.log(prior_rate) - math.lgamma(prior)
        powers = (shape - prior) * jnp.log(jnp.maximum(values, TINY)) - (rate - prior_rate) * values
        return jnp.sum(proposed - given + powers)

    def _law(self, row: Row, total: Array, state: State) -> tuple[Array, Array]:
        expected = self.likelihood.shape / state.numbers["rate"]
        share = expected / (expected + self.likelihood.mean_entry(total, state.numbers))
        shape = self.likelihood.shape + jnp.where(row.seen, row.value * share, 0.0)
        return shape, state.numbers["rate"] + row.seen


@functools.singledispatch
def proposal_of(likelihood: Likelihood) -> Proposal:
    """The best that is known for a likelihood: the prior where nothing is."""
    return OfPrior(likelihood)


@proposal_of.register(NoisyOr)
@proposal_of.register(Detection)
def _(likelihood: Likelihood) -> Proposal:
    return OfBinaryRow(likelihood)


@proposal_of.register
def _(likelihood: ExponentialGaussian) -> Proposal:
    return OfExponentialRow(likelihood)


@proposal_of.register
def _(likelihood: PoissonGamma) -> Proposal:
    return OfCounts(likelihood)


def births_of_row(key: Key, row: Row, state: State, likelihood: Likelihood, law: RowPrior) -> Births:
    """A few births or deaths of one feature that the row has alone.

    With rate r of features alone, k of them now and L the likelihood of the row, a birth is accepted at `r / (k + 1)
    prior(a) / proposal(a) L(with a) / L(without)`, and a death at the inverse for what is left.
    """
    rate, proposal = law.rate_alone(state.active.shape[0], state), proposal_of(likelihood)

    def one(i: Array, now: Births) -> Births:
        row = now.row
        keys = jax.random.split(jax.random.fold_in(key, i), 4)
        alone = row.active & (row.others == 0)
        number = jnp.sum(alone)
        birth = draws.uniform(keys[0]) < 0.5
        # By its rank among those alone, so that places in which nothing is change no draw.
        rank = jnp.minimum((draws.uniform(keys[1]) * number).astype(int), number - 1)
        dying = jnp.argmax(alone & (jnp.cumsum(alone) - 1 == rank))
        without = jnp.where(birth, row.total, row.total - row.values[dying])
        values = jnp.where(birth, proposal.draw(keys[2], row, without, state), row.values[dying])
        gain = log_density(row, without + values, state, likelihood) - log_density(row, without, state, likelihood)
        least = jnp.where(birth, number, number - 1)
        log_ratio = jnp.log(rate / (least + 1.0)) + gain - proposal.log_over_prior(values, row, without, state)
        possible = birth | (number > 0)
        accepted = possible & (jnp.log(draws.uniform(keys[3])) < jnp.where(birth, log_ratio, -log_ratio))
        no_one = jnp.zeros_like(alone)
        born, fits = placed(
            row._replace(others=jnp.where(alone, 1, row.others)), no_one, jnp.ones(1, bool), values[None], jnp.ones(1),
            without + values,
        )  # fmt: skip
        born = born._replace(others=row.others)
        died = row._replace(active=row.active & ~(alone & (jnp.arange(len(alone)) == dying)), total=without)
        after = jax.tree.map(lambda new, old: jnp.where(birth, new, old), born, died)
        row = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), after, row)
        return Births(row, now.fits & (fits | ~(birth & accepted)), now.proposed + possible, now.accepted + accepted)

    none = jnp.zeros((), int)
    return jax.lax.fori_loop(0, TIMES, one, Births(row, jnp.bool_(True), none, none))


def given_rows(key: Key, rows: Rows, state: State, likelihood: Likelihood, law: Law) -> Outcome:
    """One sweep as `uncollapsed`, with births that look at the row.

    Raises:
        UnsupportedError: a likelihood with weights of rows, for which nothing is proposed.
    """
    if likelihood.weighted:
        raise UnsupportedError(
            f"given_rows proposes values of new features, and no weights, which {type(likelihood).__name__} has. Use "
            "the sweep uncollapsed, which is for every likelihood."
        )
    return sweep_with(births_of_row, key, rows, state, likelihood, law)

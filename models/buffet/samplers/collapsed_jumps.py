"""Splits, merges, births and deaths with the Gaussian values of features integrated out.

Where values have many dimensions one drawn from the prior fits no rows. So rows are dealt out one after the other, each
by the density of what it shows beyond its other features given the rows dealt out before, the values of the two
features integrated out; and the move is accepted by the density of all data with all values integrated out, which then
are drawn anew. The other features' values as they are now only guide the dealing. Those of the way back are the ones
drawn anew, so that the ratio is exact.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ....factors import draws
from ....factors.arrays import Array, Key
from ..likelihoods.contract import Likelihood, Numbers, Rows
from ..likelihoods.linear_gaussian import log_marginal_given, of_values_given, sums_of
from .law import Law
from .passes import required
from .split_merge import Pair, check_moves, choose, log_columns
from .state import Outcome, State, cleared
from .sweeps import Sweep, name_of

OPTIONS = ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0))  # of a row whose feature is split: the first, the second, both


class Dealt(NamedTuple):
    """Which rows have which of two features, and the log probability that they were dealt out so."""

    first: Array
    second: Array
    log_choice: Array


@dataclasses.dataclass(frozen=True, repr=False)
class WithCollapsedSplitMerge:
    """See `with_collapsed_split_merge`; a value, so that it travels to workers."""

    sweep: Sweep
    moves: int

    def __repr__(self) -> str:
        return f"with_collapsed_split_merge({name_of(self.sweep)}, {self.moves})"

    def __call__(self, key: Key, rows: Rows, state: State, likelihood: Likelihood, law: Law) -> Outcome:
        gaussian = required(likelihood)
        keys = jax.random.split(key, 3)
        before = self.sweep(keys[0], rows, state, likelihood, law)
        full = gaussian.filled(keys[1], rows, before.state.point)
        columns = log_columns(before.state, law)

        def move(i: Array, now: Outcome) -> Outcome:
            return jump(jax.random.fold_in(keys[2], i), full, now, columns, law)

        after = jax.lax.fori_loop(0, self.moves, move, before)
        return after._replace(state=cleared(after.state)) if law.features is None else after


def with_collapsed_split_merge(sweep: Sweep, moves: int = 4) -> Sweep:
    """The sweep followed by moves that split, merge, create or destroy a feature, values of features integrated out.

    Each is accepted with the probability `p(Z', x) q(Z | Z') / (p(Z, x) q(Z' | Z))`, at most 1, and values are then
    drawn from `p(A | Z', x)`.

    Args:
        sweep: one that leaves the posterior of all that a state holds as it is.
        moves: how many follow each sweep, a whole number of at least 1.

    Returns:
        A sweep, for `LinearGaussian`; `proposed` and `accepted` count these moves too.

    Raises:
        ModelError: a number of moves that is none. UnsupportedError: another likelihood, in the sweep.

    Source: green1995reversible, jain2004split.
    """
    check_moves("with_collapsed_split_merge", moves)
    return WithCollapsedSplitMerge(sweep, moves)


def jump(key: Key, full: Array, now: Outcome, columns: Array, law: Law) -> Outcome:
    """One move; the ratio is that of `split_merge.jump`, with the data's own evidence in place of their density."""
    keys = jax.random.split(key, 4)
    state, numbers = now.state, now.state.numbers
    pair = choose(keys[0], state, law)
    active = jnp.asarray(state.active)
    has_one, has_two = pair.creates | active[:, pair.first], ~pair.apart & active[:, pair.second]
    whole = has_one | has_two
    forward = deal(keys[1], full, pair, whole, has_one, has_two, pair.apart, state)
    one = jnp.where(pair.creates, active[:, pair.first], jnp.where(pair.apart, forward.first, whole))
    proposed = active.at[:, pair.first].set(one).at[:, pair.second].set(pair.apart & forward.second)
    values = of_values_given(sums_of(full, proposed), numbers).draw(keys[2])
    found = state._replace(active=proposed, values=values)
    after = evidence_of(full, proposed, numbers, values[0, 0])
    gain = after - evidence_of(full, active, numbers, after)
    back = jax.lax.cond(
        pair.apart, lambda: forward, lambda: deal(keys[1], full, pair, whole, has_one, has_two, pair.apart, found)
    )
    number = jnp.sum(jnp.any(active, axis=0)) + pair.apart
    factor = -jnp.log(number)
    if law.features is not None:
        factor += jnp.log(jnp.maximum(law.features - number + 1, 1))
    m = [columns[jnp.sum(each)] for each in (forward.first, forward.second, whole)]
    prior = m[0] + m[1] - m[2] + factor
    ratio = jnp.where(pair.apart, prior - forward.log_choice, back.log_choice - prior) + gain
    possible = pair.possible & jnp.any(forward.first) & jnp.any(forward.second)
    accepted = possible & (jnp.log(draws.uniform(keys[3])) < ratio)
    state = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), found, state)
    fits = now.fits & (pair.fits | ~pair.possible)
    return Outcome(state, fits, now.proposed + possible, now.accepted + accepted)


def evidence_of(full: Array, active: Array, numbers: Numbers, done: Array) -> Array:
    """Log density of the data given the matrix, computed after a number that is done: of two factorisations at once
    some XLA never returns."""
    sums = jax.tree.map(lambda each: each + 0.0 * done, sums_of(full, active))
    return log_marginal_given(sums, jnp.sum(full**2), len(full), numbers)


def deal(
    key: Key, full: Array, pair: Pair, whole: Array, has_one: Array, has_two: Array, drawn: Array, state: State
) -> Dealt:
    """Rows dealt out in an order at random, by a draw where `drawn`, else as they are; given values of other features.

    What a row shows beyond other features is `e a + noise`, e the option and a the values of the two features, Gaussian
    given the rows before: of precision P, the same in all dimensions, and mean `P^-1 h`.
    """
    keys = jax.random.split(key)
    others = jnp.asarray(state.active).at[:, pair.first].set(False).at[:, pair.second].set(False)
    # A feature that is created is split from one without effect: the first stays among the others.
    others = others.at[:, pair.first].set(jnp.where(pair.creates, state.active[:, pair.first], False))
    rest = full - others.astype(full.dtype) @ state.values
    u = draws.uniform(keys[0], (len(full), 2))
    order, noise = jnp.argsort(u[:, 0]), state.numbers["noise_precision"]
    own, dimensions = state.numbers["value_precision"], full.shape[1]
    created = jnp.array([[0.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    options = jnp.where(pair.creates, created, jnp.array(OPTIONS))
    closed = jnp.where(pair.creates, jnp.array([0.0, -jnp.inf, 0.0]), 0.0)  # KEEP and BOTH, that is without and with
    given = jnp.where(has_two, jnp.where(has_one, 2, 1), 0)

    def one(i: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        precision, shift, chosen, log_choice = carry
        n = order[i]
        covariance = _inverse(precision)
        spread = 1.0 / noise + jnp.sum((options @ covariance) * options, axis=1)
        left = rest[n] - options @ (covariance @ shift)
        logits = closed - 0.5 * (dimensions * jnp.log(spread) + jnp.sum(left**2, axis=1) / spread)
        logits = jax.nn.log_softmax(logits)
        option = jnp.where(drawn, draws.state_at(u[n, 1], logits), given[n])
        e = jnp.where(whole[n], options[option], 0.0)
        chosen = jnp.asarray(chosen).at[n].set(option)
        log_choice = log_choice + jnp.where(whole[n], logits[option], 0.0)
        return precision + noise * jnp.outer(e, e), shift + noise * jnp.outer(e, rest[n]), chosen, log_choice

    start = own * jnp.eye(2), jnp.zeros((2, dimensions)), given, jnp.zeros(())
    _, _, chosen, log_choice = jax.lax.fori_loop(0, len(full), one, start)
    return Dealt(whole & (chosen != 1), whole & (chosen != 0), log_choice)


def _inverse(matrix: Array) -> Array:
    """Of two rows and columns."""
    (a, b), (c, d) = matrix
    return jnp.array([[d, -b], [-c, a]]) / (a * d - b * c)

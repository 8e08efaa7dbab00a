"""Births and deaths of factors that several rows share, proposed from what the other factors leave of the data.

A row alone seldom wants a large factor of its own, which is its noise by another name, so that `births` finds a factor
of many rows only by way of a small one. Here a whole factor is proposed at once. A row is chosen; rows that correlate
with it tell where the factor's scores are (`aim`), which are drawn there; given them rows are independent, and each
takes part or not, with a loading, as it would of a Gibbs step (`guess`). Noise precisions of rows and slab precisions
of factors are integrated out: the sweep draws both anew before it reads them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.special import betaln, gammaln

from ....engine.support.machine_code import put, row
from ..state import Numbers, State, Switches
from .bits import normals, uniforms
from .factors import used

LEAST, MOST = 0.3, 0.95  # correlations of a row with the factor it is the first of, between which they are taken
ROUNDS = 3  # of expectation and maximisation, by which rows tell where a factor's scores are


class Aim(NamedTuple):
    """Where scores of a factor are proposed: N(mean, variance I), and the log odds of rows to take part in it."""

    mean: Any
    variance: Any
    odds: Any


class Guess(NamedTuple):
    """What each of D rows proposes given the scores.

    Attributes:
        log_in, log_out: (D,) of the probabilities to take part, and not to.
        mean, precision: (D,) of the loading, where it does.
        none: (D,) sums of squares of what is left.
        cross: (D,) sums of products of it with the scores.
        power: () sum of squares of the scores.
    """

    log_in: Any
    log_out: Any
    mean: Any
    precision: Any
    none: Any
    cross: Any
    power: Any


class Walk(NamedTuple):
    """State, (D, N) residuals of it, whether places sufficed, and how many moves were accepted."""

    state: State
    rest: Any
    fits: Any
    accepted: Any


def born_and_died(seed: Any, state: State, values: Any, numbers: Numbers, switches: Switches) -> tuple[State, Any, Any]:
    """The state after `switches.shared` moves, each a birth or a death with probability 1/2.

    The law that stays is that of loadings, factors and all that is no noise or slab precision; both of these are stale
    in what is returned, and must be drawn next.

    Args:
        seed: (2,) from `bits.seed_of`.
        state: a point of a chain.
        values: (D, N) complete data.
        numbers, switches: of the model, whose slab is Gaussian.

    Returns:
        The state, whether places for factors sufficed, and how many moves were accepted.

    Source: green1995reversible, knowles2011nonparametric.
    """

    def body(move: Any, walk: Walk) -> Walk:
        return _moved(seed, move, walk, numbers, switches)

    start = Walk(state, values - state.loading.T @ state.factor, jnp.bool_(True), jnp.int64(0))
    state, _, fits, accepted = lax.fori_loop(0, switches.shared, body, start)
    return state, fits, accepted


def aim(rest: Any, first: Any) -> Aim:
    """Where the scores are of a factor that one row certainly has: those of others are told by their correlations.

    With rows in units of their root mean squares a factor with correlations a leaves 1 - a^2 to the noise, and its
    scores are Gaussian with precision `1 + sum a^2 / (1 - a^2)`.

    Args:
        rest: (D, N) what the other factors leave of the data.
        first: () the row.
    """
    rows, samples = rest.shape
    unit = rest * lax.rsqrt(jnp.maximum((rest * rest).mean(1, keepdims=True), 1e-300))
    own = jnp.arange(rows) == first
    least = jnp.sqrt(2.0 * jnp.log(rows + 1.0) / samples)  # the largest of so many correlations by chance

    def taking_part(a: Any, size: Any) -> Any:
        others = jnp.where(jnp.abs(a) > least, jnp.clip(a, -MOST, MOST), 0.0)
        return jnp.where(own, jnp.clip(size, LEAST, MOST), others)

    def scores(a: Any) -> tuple[Any, Any]:
        weight = a / (1.0 - a * a)
        variance = 1.0 / (1.0 + (a * weight).sum())
        return variance * (weight @ unit), variance

    def again(_: Any, a: Any) -> Any:
        mean, variance = scores(a)
        new = (unit @ mean) / (mean @ mean + samples * variance)
        return taking_part(new, row(new, first))

    alike = unit @ row(unit, first) / samples
    size = jnp.clip(jnp.sqrt(jnp.where(own, 0.0, jnp.abs(alike)).max()), LEAST, MOST)
    a = lax.fori_loop(0, ROUNDS, again, taking_part(jnp.where(jnp.abs(alike) > least, alike / size, 0.0), size))
    several = (a != 0.0).sum()
    return Aim(*scores(a), jnp.log(several / (rows - several + 1.0)))


def guess(
    rest: Any, scores: Any, odds: Any, first: Any, state: State, numbers: Numbers, switches: Switches
) -> Guess:  # fmt: skip
    """What rows propose given the scores: Laplace approximations of each row's posterior, which `worth` corrects."""
    none, cross, power = (rest * rest).sum(1), rest @ scores, scores @ scores
    noise, slab = state.noise, numbers.precision_prior[0] / numbers.precision_prior[1]
    if switches.noise == "row":
        best = jnp.maximum(none - cross * cross / power, 0.0)
        noise = (numbers.noise_prior[0] + 0.5 * rest.shape[1]) / (state.noise_rate + 0.5 * best)
    precision = noise * power + slab
    mean = noise * cross / precision
    gain = _log_likelihood(none - mean * (2.0 * cross - mean * power), rest.shape[1], state, numbers, switches)
    gain = gain - _log_likelihood(none, rest.shape[1], state, numbers, switches)
    log_odds = gain + 0.5 * (jnp.log(slab / precision) - slab * mean * mean) + odds
    own = jnp.arange(rest.shape[0]) == first
    log_in = jnp.where(own, 0.0, jax.nn.log_sigmoid(log_odds))
    return Guess(log_in, jnp.where(own, -jnp.inf, jax.nn.log_sigmoid(-log_odds)), mean, precision, none, cross, power)


def worth(
    scores: Any, loading: Any, aimed: Aim, guessed: Guess, state: State, numbers: Numbers, switches: Switches
) -> Any:  # fmt: skip
    """Log density of one factor more, over that of proposing it from a row that has it.

    The prior is the intensity of a Poisson process of factors, `mass c B(m, D - m + c)` for each pattern of m rows; the
    row is one of D, and there are two signs of a factor.

    Args:
        scores, loading: (N,) and (D,) of the factor, positive in the row that it is proposed from.
        aimed, guessed: from `aim` and `guess`, for this row and these scores.
        state: without the factor, or with it; its noise (unless of rows), rates, mass and concentration are read.
        numbers, switches: of the model.
    """
    on, samples = loading != 0.0, scores.shape[0]
    number, power = on.sum().astype(jnp.float64), (loading * loading).sum()
    moved = scores - aimed.mean
    found = 0.5 * (moved @ moved / aimed.variance + samples * jnp.log(aimed.variance) - guessed.power)
    energy = guessed.none - loading * (2.0 * guessed.cross - loading * guessed.power)
    each = _log_likelihood(energy, samples, state, numbers, switches)
    each = each - _log_likelihood(guessed.none, samples, state, numbers, switches) - guessed.log_in
    each = each - 0.5 * (jnp.log(guessed.precision) - guessed.precision * (loading - guessed.mean) ** 2)
    rows, c = loading.shape[0], state.concentration
    prior = jnp.log(state.mass * c) + betaln(number, rows - number + c) + jnp.log(2.0 * rows / number)
    slab = _log_slab(number, power, state, numbers, switches)
    return found + jnp.where(on, each, -guessed.log_out).sum() + slab + prior


def _log_likelihood(energy: Any, samples: int, state: State, numbers: Numbers, switches: Switches) -> Any:
    """(D,) up to a constant, of sums of squared residuals: noise precisions of rows integrated out, others given."""
    if switches.noise == "row":
        return -(numbers.noise_prior[0] + 0.5 * samples) * jnp.log(state.noise_rate + 0.5 * energy)
    return -0.5 * state.noise * energy


def _log_slab(number: Any, power: Any, state: State, numbers: Numbers, switches: Switches) -> Any:
    """Log density of loadings with this sum of squares, but for `(2 pi)^(-number/2)`, the factor's precision
    integrated out where it has one."""
    if switches.precision != "factor":
        precision = _slab_of(state, numbers, switches)
        return 0.5 * (number * jnp.log(precision) - precision * power)
    shape, rate = numbers.precision_prior[0], state.precision_rate
    total = shape + 0.5 * number
    return shape * jnp.log(rate) - gammaln(shape) + gammaln(total) - total * jnp.log(rate + 0.5 * power)


def _slab_of(state: State, numbers: Numbers, switches: Switches) -> Any:
    """The slab precision of a new factor; 1 where it has its own, which is drawn next."""
    if switches.precision == "shared":
        return state.precision[0]
    return numbers.precision_prior[0] / numbers.precision_prior[1] if switches.precision == "fixed" else 1.0


def _one_of(uniform: Any, weight: Any) -> Any:
    """A place, with probability in proportion to its weight."""
    below = jnp.cumsum(weight)
    return jnp.minimum((below <= uniform * below[-1]).sum(), weight.shape[0] - 1)


def _moved(seed: Any, move: Any, walk: Walk, numbers: Numbers, switches: Switches) -> Walk:
    """One move: factors with fewer rows are likelier to be asked whether they go, by the inverse of their number."""
    state, rest = walk.state, walk.rest
    (rows, samples), places = rest.shape, state.loading.shape[0]
    u = uniforms(seed, "shared", move, jnp.arange(5))
    birth = u[0] < 0.5
    free = used(state) & (jnp.arange(places) >= switches.known)
    weight = jnp.where(free, 1.0 / jnp.maximum((state.loading != 0.0).sum(1), 1), 0.0)
    k = _one_of(u[1], weight)
    old, old_scores = row(state.loading, k), row(state.factor, k)
    first = jnp.where(birth, (u[2] * rows).astype(jnp.int64), _one_of(u[2], (old != 0.0).astype(jnp.float64)))
    sign = jnp.where(birth, jnp.where(u[3] < 0.5, -1.0, 1.0), jnp.sign(row(old, first)))
    without = jnp.where(birth, rest, rest + old[:, None] * old_scores)

    aimed = aim(without, first)
    new_scores = aimed.mean + jnp.sqrt(aimed.variance) * normals(seed, "shared score", move, jnp.arange(samples))
    scores = jnp.where(birth, new_scores, sign * old_scores)
    guessed = guess(without, scores, aimed.odds, first, state, numbers, switches)
    every = jnp.arange(rows)
    new = guessed.mean + normals(seed, "shared loading", move, every) / jnp.sqrt(guessed.precision)
    new = jnp.where(jnp.log(uniforms(seed, "shared row", move, every)) < guessed.log_in, new, 0.0)
    loading = jnp.where(birth, new, sign * old)

    own = 1.0 / (loading != 0.0).sum()
    log_dies = jnp.log(own) - jnp.log(weight.sum() + jnp.where(birth, own, 0.0))
    gain = worth(scores, loading, aimed, guessed, state, numbers, switches) + log_dies
    possible = jnp.where(birth, row(loading, first) > 0.0, free.any())
    accept = possible & (jnp.log(u[4]) < jnp.where(birth, gain, -gain))
    room = state.count < places
    place = jnp.where(birth, state.count, k)
    last = jnp.maximum(state.count - 1, 0)
    coming = sign * loading, sign * scores, _slab_of(state, numbers, switches)

    def arranged(array: Any, comes: Any, empty: Any) -> Any:
        """With the new factor last, or with the last one in the place of that which dies."""
        born = put(array, jnp.minimum(place, places - 1), comes)
        died = put(put(array, k, row(array, last)), last, jnp.broadcast_to(empty, array.shape[1:]))
        return jnp.where(accept, jnp.where(birth, jnp.where(room, born, array), died), array)

    empty = 1.0 if switches.precision == "factor" else _slab_of(state, numbers, switches)
    changed = state._replace(
        loading=arranged(state.loading, coming[0], 0.0),
        factor=arranged(state.factor, coming[1], 0.0),
        precision=arranged(state.precision, coming[2], empty),
        count=state.count + jnp.where(accept & (~birth | room), jnp.where(birth, 1, -1), 0).astype(state.count.dtype),
    )
    left = jnp.where(accept, jnp.where(birth, rest - coming[0][:, None] * coming[1], without), rest)
    return Walk(changed, left, walk.fits & (room | ~(birth & accept)), walk.accepted + accept)

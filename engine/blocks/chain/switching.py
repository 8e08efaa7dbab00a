"""Switching linear systems: Gaussian states whose transitions a discrete state chooses, by histories of that state.

Given all discrete states the others are Gaussian, a mixture of as many components as there are histories. Of these the
last few steps are kept apart and what is older is merged: a component for each history of some states, with mean and
covariance of the mixture over the state that drops out. Up in time this is a filter. Down, what later elements say of
a history is the Gaussian of all data over that of the data so far (expectation propagation), which goes to each older
state through the linear transition. Exact where there are no more steps than are kept apart. Arrays have lanes last,
and histories, the oldest state first, before these. Source: zoeter2005change, murphy1998switching.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Float

from .discrete_chain import LogMessages, Probabilities, Transitions
from .gaussian_chain import LinearTransitions, Matrices, Vectors, given_parent
from .small_matrices import applied, eye, inverse, product, symmetric, transposed

logsumexp = jax.scipy.special.logsumexp
NEVER = -1e30  # the logarithm of what is impossible: finite, so that differences are numbers
COMPONENTS = 32  # histories kept apart
ROOM = 2**22  # such of all elements


class Mixture(NamedTuple):
    """Gaussians with the logarithms of their probabilities: (histories..., lanes), after the axes of an event."""

    log: Float[jax.Array, "*histories lanes"]
    mean: Float[jax.Array, "D *histories lanes"]
    covariance: Float[jax.Array, "D D *histories lanes"]


class SmoothedSwitches(NamedTuple):
    """What is found: log Z by lane, log probabilities of the states, expected pairs, and Gaussians given the states.

    `own` and `parent` have means and covariances by element, state of the element and lane, the last two in one axis;
    `cross` is their covariance.
    """

    log_z: Float[jax.Array, " lanes"]
    log_states: LogMessages
    pairs: Transitions
    own: tuple[Vectors, Matrices]
    parent: tuple[Vectors, Matrices]
    cross: Matrices


class Element(NamedTuple):
    """What the scans read of an element: all by state and lane."""

    move: Float[jax.Array, "states states lanes"]
    log: Float[jax.Array, "states lanes"]  # messages to the states, and what the terms weigh
    link: LinearTransitions
    precision: Float[jax.Array, "D D lanes"]  # the message of the other factors
    shift: Float[jax.Array, "D lanes"]


class Pairs(NamedTuple):
    """Histories and the next state, (oldest, rest, next, lanes) in one last axis: the parent, and what it predicts."""

    log: Float[jax.Array, " lanes"]
    mean: Float[jax.Array, "D lanes"]
    covariance: Float[jax.Array, "D D lanes"]
    predicted: Float[jax.Array, "D lanes"]
    spread: Float[jax.Array, "D D lanes"]
    link: LinearTransitions


Shape: TypeAlias = tuple[int, int, int, int]  # oldest, rest, next, lanes


def history(states: int, elements: int) -> int:
    """How many steps are kept apart."""
    length, most = 1, min(COMPONENTS, ROOM // elements)
    while 1 < states ** (length + 1) <= most:
        length += 1
    return length


def smooth(
    first: Probabilities,
    moves: Transitions,
    log: LogMessages,
    links: LinearTransitions,
    precision: Matrices,
    shift: Vectors,
) -> SmoothedSwitches:
    """Forward and back, from log p(first), log p(next | state), the log messages to the states, and the Gaussians.

    `links` has the states and lanes of each element in one last axis, those of the first element with a = 0; `moves`
    is that of all elements but the first, or of all of them.
    """
    times, states, lanes = log.shape
    length = min(history(states, times * lanes), times)
    shape = states, states ** (length - 1), states, lanes
    moves = jnp.maximum(jnp.broadcast_to(moves, (times - 1, states, states, lanes)), NEVER)
    log = jnp.maximum(log, NEVER)
    later = Element(moves, log[1:], jax.tree.map(lambda array: array[1:], links), precision[1:], shift[1:])
    begun, begin = _begun(first, log[0], jax.tree.map(lambda array: array[0], links), precision[0], shift[0], shape)

    def up(before: Mixture, element: Element) -> tuple[Mixture, tuple[Mixture, jax.Array]]:
        found, log_z = _normalised(_filtered(before, element, shape))
        return found, (before, log_z)

    last, (filtered, log_z) = jax.lax.scan(up, begun, later)

    def down(after: Mixture, read: tuple[Mixture, Element]) -> tuple[Mixture, tuple[jax.Array, ...]]:
        return _back(after, *read, shape)

    start, (log_states, pairs, mean, covariance) = jax.lax.scan(down, last, (filtered, later), reverse=True)
    own = _by_state(start, shape)
    size = own.mean.shape[0]
    zeros = jnp.zeros((1, 2 * size, 2 * size, states, lanes))
    mean = jnp.concatenate([zeros[:, 0].at[:, :size].set(own.mean), mean])
    covariance = jnp.concatenate([zeros.at[:, :size, :size].set(own.covariance), covariance])
    mean, covariance = _flat(mean, 2), _flat(covariance, 3)
    return SmoothedSwitches(
        begin + jnp.sum(log_z, axis=0),
        jnp.concatenate([own.log[None], log_states]),
        pairs,
        (mean[:, :size], covariance[:, :size, :size]),
        (mean[:, size:], covariance[:, size:, size:]),
        covariance[:, :size, size:],
    )


def _flat(array: jax.Array, axes: int) -> jax.Array:
    """All axes from this one on in one."""
    return array.reshape((*array.shape[:axes], -1))


def _begun(
    first: Probabilities,
    log: Probabilities,
    link: LinearTransitions,
    precision: Float[jax.Array, "D D lanes"],
    shift: Float[jax.Array, "D lanes"],
    shape: Shape,
) -> tuple[Mixture, jax.Array]:
    """The first element: of the states before it only one history is possible."""
    states, rest, _, lanes = shape
    above, log_z = _seen(link.b, link.q, jnp.tile(precision, states), jnp.tile(shift, states))
    total = jnp.maximum(first + log, NEVER) + log_z.reshape((states, lanes))
    log = jnp.full((rest, states, lanes), NEVER).at[0].set(total)
    size = link.b.shape[0]
    mean = jnp.broadcast_to(above[0].reshape((size, 1, states, lanes)), (size, rest, states, lanes))
    covariance = jnp.broadcast_to(above[1].reshape((size, size, 1, states, lanes)), (size, size, rest, states, lanes))
    return _normalised(Mixture(_joined(log, 0), _joined(mean, 1), _joined(covariance, 2)))


def _joined(array: jax.Array, axis: int) -> jax.Array:
    """The axes of the rest of a history and of its last state in one."""
    return array.reshape((*array.shape[:axis], -1, array.shape[-1]))


def _normalised(mixture: Mixture) -> tuple[Mixture, jax.Array]:
    total = logsumexp(mixture.log, axis=0)
    return mixture._replace(log=jnp.maximum(mixture.log - total, NEVER)), total


def _seen(
    mean: Float[jax.Array, "D lanes"],
    covariance: Float[jax.Array, "D D lanes"],
    precision: Float[jax.Array, "D D lanes"],
    shift: Float[jax.Array, "D lanes"],
) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
    """Gaussians times exp(shift' x - x' precision x / 2): mean and covariance, and log of the integral."""
    link = LinearTransitions(jnp.zeros_like(covariance), mean, covariance, covariance, mean)
    above, log_z = given_parent(link, precision, shift)
    return (above.shift, above.covariance), log_z


def _pairs(before: Mixture, element: Element, shape: Shape) -> Pairs:
    """Every history with every next state."""
    states, rest, _, lanes = shape
    size = before.mean.shape[0]
    full = (states * rest, states, lanes)
    log = before.log.reshape((rest, states, 1, lanes)) + element.move + element.log
    log = jnp.maximum(log, NEVER).reshape(full)

    def by_next(array: jax.Array) -> jax.Array:
        event = array.shape[:-1]
        return jnp.broadcast_to(array.reshape((*event, 1, states, lanes)), (*event, *full)).reshape((*event, -1))

    link = jax.tree.map(by_next, element.link)
    mean = jnp.broadcast_to(before.mean[..., None, :], (size, *full)).reshape((size, -1))
    covariance = jnp.broadcast_to(before.covariance[..., None, :], (size, size, *full)).reshape((size, size, -1))
    (mean, covariance), log_z = _seen(mean, covariance, link.e_matrix, link.e)
    predicted = applied(link.a, mean) + link.b
    spread = symmetric(product(product(link.a, covariance), transposed(link.a))) + link.q
    return Pairs(log.ravel() + log_z, mean, covariance, predicted, spread, link)


def _filtered(before: Mixture, element: Element, shape: Shape) -> Mixture:
    """The histories that end with this element, with what is known of it."""
    pairs = _pairs(before, element, shape)
    copies = pairs.log.shape[0] // shape[-1]
    precision, shift = jnp.tile(element.precision, copies), jnp.tile(element.shift, copies)
    (mean, covariance), log_z = _seen(pairs.predicted, pairs.spread, precision, shift)
    return _merged(_shaped(pairs.log + log_z, mean, covariance, (shape[0], shape[1] * shape[2], shape[3])))


def _shaped(log: jax.Array, mean: jax.Array, covariance: jax.Array, shape: tuple[int, ...]) -> Mixture:
    size = mean.shape[0]
    return Mixture(log.reshape(shape), mean.reshape((size, *shape)), covariance.reshape((size, size, *shape)))


def _merged(mixture: Mixture) -> Mixture:
    """One Gaussian for those along the first axis: means and covariances of their mixture."""
    log = logsumexp(mixture.log, axis=0)
    weight = jnp.exp(mixture.log - log)
    mean = jnp.sum(weight * mixture.mean, axis=1)
    apart = mixture.mean - mean[:, None]
    covariance = jnp.sum(weight * (mixture.covariance + apart[:, None] * apart[None]), axis=2)
    return Mixture(log, mean, covariance)


def _back(
    after: Mixture, before: Mixture, element: Element, shape: Shape
) -> tuple[Mixture, tuple[jax.Array, jax.Array, jax.Array, jax.Array]]:
    """What is known of the histories before an element from those that end with it.

    Returns that, and of the element the log probabilities of its states, the expected pairs, and means and covariances
    of it and its parent by its state.
    """
    states, rest, _, lanes = shape
    size = after.mean.shape[0]
    pairs = _pairs(before, element, shape)

    mean, covariance, log = _known(after, pairs, element, shape)
    error = mean - pairs.predicted
    certainty = inverse(pairs.spread)
    gain = product(product(pairs.covariance, transposed(pairs.link.a)), certainty)
    rest_of = eye(size) - product(gain, pairs.link.a)
    own = product(product(rest_of, pairs.covariance), transposed(rest_of))
    own = own + product(product(gain, pairs.link.q), transposed(gain))
    parent = pairs.mean + applied(gain, error)
    cross = product(covariance, transposed(gain))
    parent_covariance = symmetric(own + product(gain, cross))
    whole = (states * rest, states, lanes)
    known = _shaped(log, parent, parent_covariance, whole)
    histories = _merged(Mixture(*(jnp.moveaxis(a, -2, a.ndim - 3) for a in known)))
    both = _shaped(log, jnp.concatenate([mean, parent]), _block(covariance, cross, parent_covariance), whole)
    by_state = _merged(both)
    expected = jnp.sum(jnp.exp(log).reshape((rest, states, states, lanes)), axis=0)
    return histories, (by_state.log, expected, by_state.mean, by_state.covariance)


def _known(after: Mixture, pairs: Pairs, element: Element, shape: Shape) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Each history with the next state, from all data: mean and covariance of the element, and log probability.

    What later elements say is the Gaussian of all data over that of the data so far, the same for all oldest states.
    Where it makes one improper, that keeps the Gaussian of all data.
    """
    full = shape[0], shape[1] * shape[2], shape[3]
    copies = pairs.log.shape[0] // shape[-1]
    precision, shift = jnp.tile(element.precision, copies), jnp.tile(element.shift, copies)
    (mean, covariance), log_z = _seen(pairs.predicted, pairs.spread, precision, shift)
    before = _merged(_shaped(pairs.log + log_z, mean, covariance, full))

    def of_oldest(array: jax.Array) -> jax.Array:
        event = array.shape[:-2]
        return jnp.broadcast_to(array[..., None, :, :], (*event, *full)).reshape((*event, -1))

    flat = [_flat(array, 2) for array in (after.covariance, before.covariance)]
    certain, less = (inverse(array) for array in flat)
    more = (certain - less).reshape(after.covariance.shape)
    pull = applied(certain, _flat(after.mean, 1)) - applied(less, _flat(before.mean, 1))
    (new_mean, new_covariance), gained = _seen(
        mean, covariance, of_oldest(more), of_oldest(pull.reshape(after.mean.shape))
    )
    proper = _positive(new_covariance) & jnp.isfinite(gained)
    new_mean = jnp.where(proper, new_mean, of_oldest(after.mean))
    new_covariance = jnp.where(proper, new_covariance, of_oldest(after.covariance))
    log = (pairs.log + log_z + jnp.where(proper, gained, 0.0)).reshape(full)
    return new_mean, new_covariance, after.log + log - logsumexp(log, axis=0)


def _positive(a: jax.Array) -> jax.Array:
    """Whether matrices are positive definite: what is left of the diagonal, row by row."""
    rest, found = a, a[0, 0] > 0.0
    for _ in range(a.shape[0] - 1):
        rest = rest[1:, 1:] - rest[1:, :1] * rest[:1, 1:] / rest[0, 0]
        found = found & (rest[0, 0] > 0.0)
    return found


def _block(own: jax.Array, cross: jax.Array, parent: jax.Array) -> jax.Array:
    """The covariance of an element and its parent."""
    upper = jnp.concatenate([own, cross], axis=1)
    return jnp.concatenate([upper, jnp.concatenate([transposed(cross), parent], axis=1)], axis=0)


def _by_state(mixture: Mixture, shape: Shape) -> Mixture:
    """Histories merged to their last state."""
    _, rest, states, lanes = shape
    return _merged(_shaped(mixture.log, mixture.mean, mixture.covariance, (rest, states, lanes)))

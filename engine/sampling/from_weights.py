"""Joint draws of a posterior: weighted draws of its density, each as often as its weight says, and all else given them.

Discrete variables, which the density sums out, are drawn given the continuous ones.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from ...factors.arrays import Array, Key
from ...factors.errors import CavityError, UnsupportedError
from ...factors.switches import double_precision
from ..answers.arviz import independent_draws, joint_belief_draws
from ..answers.inferred import Inferred
from ..checks.reference import Functions, functions
from ..checks.trust import Trust
from ..density.drawn_states import MOST, draw_states
from ..density.log_density import LogDensity, density_of
from ..density.probit_noise import Comparison
from ..support.warn import warn
from .forward import at_draws, drawn_from_the_model
from .joint import Joint

Draws = dict[str, np.ndarray]


def of_beliefs(
    posterior: Inferred, compared: Callable[[], Trust], apart: Callable[[], Draws], n: int, seed: int
) -> Draws:
    """Joint draws of a posterior of beliefs; `compared()` has weighted draws of its density where these are usable.

    Else they are those of `apart()`, draws of what has beliefs, with all else given these.
    """
    try:
        density = density_of(posterior)
    except CavityError as problem:
        return _of_marginals(posterior, apart(), n, seed, str(problem))
    if density.dimension == 0:
        return resampled(posterior, density, functions(density), np.zeros((1, 0)), np.ones(1), n, seed)
    found = compared()
    if (witness := found.witness) is None:
        return _of_marginals(posterior, apart(), n, seed, found.reason)
    drawn = witness.found
    return resampled(posterior, witness.density, witness.call, drawn.z, drawn.weighted.weights, n, seed)


def resampled(
    posterior: Inferred, density: LogDensity, call: Functions, z: np.ndarray, weights: np.ndarray, n: int, seed: int
) -> Draws:
    """Draws by name, (n, plates, event), of all that is not wholly observed; the same position belongs together."""
    with double_precision():
        keys = jax.random.split(jax.random.key(seed))
        z = z[_chosen(weights, n, np.random.default_rng(seed))]
        found = {name: np.asarray(array) for name, array in call.constrain(z).items()}
        if density.summed:
            found |= _states(posterior, density, z, keys[0])
        return completed(posterior, found, n, keys[1])


def completed(posterior: Inferred, draws: Draws, n: int, key: Key) -> Draws:
    """These draws of what has beliefs, with all else of the model at each: expressions, and what is only predicted."""
    with double_precision():
        joint = Joint(posterior.model, posterior.binding)
        events = tuple(event for event in joint.contents.comparisons.values() if not _has_noise(event, draws))
        found = {**draws, **drawn_from_the_model(joint, draws, {*joint.data, *draws}, n, key, events)}
        found |= _filled(posterior, found, n, jax.random.fold_in(key, n))  # beside those of n draws
    names = (*posterior.model.randoms, *posterior.model.lets)
    return {name: found[name] for name in names if name in found}


def _filled(posterior: Inferred, draws: Draws, n: int, key: Key) -> Draws:
    """Observed variables with missing entries, these drawn given all else."""
    binding = posterior.binding
    left = {name: absent for name, absent in binding.missing.items() if name not in draws}
    if not left:
        return {}
    joint = Joint(posterior.model, dataclasses.replace(binding, observed={}, missing={}))
    kept = {name: array for name, array in draws.items() if name in posterior.model.randoms}
    drawn, found = drawn_from_the_model(joint, kept, {*joint.data, *kept}, n, key), {}
    for name, absent in left.items():
        if name in drawn:
            spread = absent.reshape(absent.shape + (1,) * (drawn[name].ndim - 1 - absent.ndim))
            found[name] = np.where(spread, drawn[name], binding.observed[name])
    return found


def _has_noise(event: Comparison, draws: Mapping[str, np.ndarray]) -> bool:
    return all(noise.name in draws for noise in event.noise)


def of_marginals(posterior: Inferred, n: int, seed: int) -> Draws:
    """Draws of each variable that has a belief, by itself but for members of one belief."""
    found = {**independent_draws(posterior, n, seed), **joint_belief_draws(posterior, n, seed)}
    return {name: array for name, array in found.items() if name in posterior.families}


def _of_marginals(posterior: Inferred, apart: Draws, n: int, seed: int, reason: str) -> Draws:
    partly = posterior.graph.partly
    shared = [[own.name for own in joint.members if own.name not in partly] for joint in posterior.graph.joints]
    groups = "; ".join(", ".join(names) for names in shared if names)
    alone = f"belief by itself (together: {groups})" if groups else "marginal by itself"
    warn(
        f"These draws are of each {alone}: no weighted draws of the joint density were usable ({reason}). "
        "cv.sample(model, data) draws variables together."
    )
    with double_precision():
        try:
            return completed(posterior, apart, n, jax.random.key(seed))
        except UnsupportedError:  # a model without a density
            return apart


def _chosen(weights: np.ndarray, n: int, random: np.random.Generator) -> np.ndarray:
    """Positions, each as often as its weight says but for less than one, in a random order."""
    levels = (np.arange(n) + random.random()) / n
    found = np.minimum(np.searchsorted(np.cumsum(weights) / np.sum(weights), levels), len(weights) - 1)
    return random.permutation(found)


def _states(posterior: Inferred, density: LogDensity, z: np.ndarray, key: Key) -> Draws:
    """States of discrete variables given the others of the same position."""
    tied = _tied(posterior, density)

    def one(z: Array, words: Array, data: Mapping[str, Array]) -> dict[str, Array]:
        return draw_states(density, tied, z, jax.random.wrap_key_data(jnp.asarray(words)), data)

    found = at_draws(density, "drawn states", (tied,), one, z, len(z), key, density.contents.data)
    return {n: a > 0 if posterior.model.randoms[n].domain.is_boolean else a for n, a in found.items()}


def _tied(posterior: Inferred, density: LogDensity) -> tuple[str, ...]:
    """Discrete variables whose elements, or which among them, depend on each other given all continuous ones.

    Warns where these are too many to be drawn one after the other.
    """
    joint = Joint(posterior.model, posterior.binding)
    discrete = set(density.summed)

    def apart(name: str) -> bool:
        others = {n for factor in joint.touching([name]) for n in discrete if factor in joint.touching([n])}
        return others == {name} and joint.gathers(name) is not None

    tied = tuple(name for name in sorted(discrete) if not apart(name))
    elements = sum(math.prod(density.contents.states_shape(posterior.model.randoms[name])[:-1]) for name in tied)
    if elements > MOST:
        warn(
            f"The draws of {', '.join(tied)} are right element by element, given all continuous variables, but taken "
            f"as independent of each other: {elements:,} are more than the {MOST:,} that are drawn one after the other "
            "here. cv.sample(model, data) draws them jointly."
        )
        return ()
    return tied

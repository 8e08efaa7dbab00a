"""The move of all continuous variables that no other move serves: a transition of NUTS, by BlackJAX.

Its step size and the diagonal of its mass matrix are learned while chains warm up, in Stan's windows; they belong to
the conditional of its variables, which moves with the others. Source: hoffman2014nuts, cabezas2024blackjax.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ....factors.arrays import Array, Key
from ....factors.errors import UnsupportedError
from ....factors.families.bijections import Bijection
from ..joint import Data, Joint, Values
from ..move import Move, Stage

ACCEPTED = 0.8


class Learned(NamedTuple):
    """What the windows of warming up have found."""

    step: Any  # BlackJAX's dual averaging
    spread: Any  # and its estimate of the mass matrix
    step_size: Array
    inverse_mass: Array


def has_blackjax() -> bool:
    """Whether BlackJAX is installed."""
    return importlib.util.find_spec("blackjax") is not None


def blackjax(what: str) -> Any:
    """A module of BlackJAX; UnsupportedError where it is not installed."""
    try:
        return importlib.import_module(f"blackjax.{what}")
    except ImportError as problem:
        raise UnsupportedError(
            f"Some variables of this model have no conditional of their own and are drawn by NUTS, which is BlackJAX's "
            f"and not installed here ({problem}). Install the extra: pip install 'cavity[mcmc]'."
        ) from problem


def nuts_move(joint: Joint, names: tuple[str, ...], bijections: dict[str, Bijection]) -> Move:
    """These variables jointly, in unconstrained coordinates, given all others."""
    nuts = blackjax("mcmc.nuts")
    mass = blackjax("adaptation.mass_matrix").mass_matrix_adaptation(True)
    size = blackjax("adaptation.step_size").dual_averaging_adaptation(ACCEPTED)
    kernel, factors = nuts.build_kernel(), joint.touching(names)

    def unconstrained(values: Values) -> Array:
        return jnp.concatenate([bijections[name].backward(values[name]) for name in names])

    def parts(z: Array) -> dict[str, Array]:
        found, begin = {}, 0
        for name in names:
            found[name] = z[begin : begin + bijections[name].size]
            begin += bijections[name].size
        return found

    def back(z: Array) -> Values:
        shapes = {name: joint.contents.shape(joint.variables[name]) for name in names}
        return {name: bijections[name].forward(part).reshape(shapes[name]) for name, part in parts(z).items()}

    def init(values: Values, data: Data) -> Learned:
        z = unconstrained(values)
        return Learned(size[0](jnp.asarray(0.1)), mass[0](len(z)), jnp.asarray(0.1), jnp.ones(len(z)))

    def step(key: Key, values: Values, now: Learned, data: Data, stage: Stage) -> tuple[Values, Learned]:
        def log_density(z: Array) -> Array:
            jacobian = sum(bijections[name].log_jacobian(part) for name, part in parts(z).items())
            return joint.total(factors, {**values, **back(z)}, data) + jacobian

        state = nuts.init(unconstrained(values), log_density)
        state, told = kernel(key, state, log_density, now.step_size, now.inverse_mass)
        learned = _learn(now, mass, size, state.position, told.acceptance_rate, stage)
        now = jax.tree.map(lambda new, old: jnp.where(stage.warming, new, old), learned, now)
        return {**values, **back(state.position)}, now

    return Move(names, "jointly by NUTS: of no family, and factors read several of these numbers", False, init, step)


def _learn(now: Learned, mass: Any, size: Any, position: Array, accepted: Array, stage: Stage) -> Learned:
    """The windows' rules: the step size always, the spread in slow windows, which start both anew where they close."""
    step = size[1](now.step, accepted)
    spread = jax.tree.map(lambda new, old: jnp.where(stage.slow, new, old), mass[1](now.spread, position), now.spread)
    closed = mass[2](spread)
    anew = size[0](size[2](step))

    def choose(new: Any, old: Any) -> Any:
        return jax.tree.map(lambda a, b: jnp.where(stage.closes, a, b), new, old)

    step, spread = choose(anew, step), choose(closed, spread)
    inverse_mass = jnp.where(stage.closes, closed.inverse_mass_matrix, now.inverse_mass)
    log_size = jnp.where(stage.ends, step.log_step_size_avg, step.log_step_size)
    return Learned(step, spread, jnp.exp(log_size), inverse_mass)

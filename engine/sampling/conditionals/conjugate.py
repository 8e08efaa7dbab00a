"""Moves of variables whose full conditional is of their own family.

The natural parameters of the conditional are read off the derivative of the log density at a few points, so that there
is one formula for each family and none for each factor. A further point tells whether the conditional is of the family.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ....factors.arrays import Array, Key
from ....factors.families.slopes import FITS, Fit, Slope
from ...support.compiled import for_now
from ..joint import Data, Gathers, Joint, Values
from ..move import Move, stateless
from .smooth import is_conjugate

TINY = 1e-12
NEAR = 1e-6  # of the derivative, by which a conditional of the family may be missed


def slope_of(joint: Joint, name: str, values: Values, data: Data, factors: tuple[str, ...]) -> Slope:
    """The derivative of the log density in the elements of a variable, which are independent given all others."""
    slope = jax.grad(lambda x: joint.total(factors, {**values, name: x}, data))
    if joint.variables[name].domain.kind != "posdef":
        return slope

    def symmetric(x: Array) -> Array:
        found = slope(x)
        return 0.5 * (found + jnp.swapaxes(found, -1, -2))

    return symmetric


def misfit(fit: Fit, joint: Joint, name: str, values: Values, data: Data) -> Array:
    """How far the derivative of any factor is from one that the family has, at another point, over its size.

    Each factor is tried alone: a sharp one would hide what another adds.
    """
    worst = jnp.zeros(())
    for factor in joint.touching([name]):
        slope = slope_of(joint, name, values, data, (factor,))
        found, at = fit.read(slope, values[name]), fit.elsewhere(values[name])
        wanted = slope(at)
        off = jnp.abs(fit.slope(found, at) - wanted) / (TINY + jnp.abs(wanted) + jnp.abs(slope(values[name])))
        worst = jnp.maximum(worst, jnp.max(off, initial=0.0))
    return worst


def fitting(joint: Joint, name: str, starts: list[Values]) -> Fit | None:
    """The family that the conditional of a variable is of, tried at several points; None where it is of none."""
    for fit in FITS.get(joint.variables[name].domain.kind, ()) if is_conjugate(joint, name) else ():
        tried = for_now(lambda values, data, fit=fit: misfit(fit, joint, name, values, data))
        if max(float(tried(values, joint.arrays)) for values in starts) < NEAR:
            return fit
    return None


def conjugate(joint: Joint, name: str, gathers: Gathers, fit: Fit) -> Move:
    """Each element from its conditional, of this family."""
    factors = tuple(gathers)

    def draw(key: Key, values: Values, data: Data) -> Values:
        return {name: fit.draw(key, fit.read(slope_of(joint, name, values, data, factors), values[name]))}

    return stateless((name,), f"each element from its {fit.name} conditional", draw)

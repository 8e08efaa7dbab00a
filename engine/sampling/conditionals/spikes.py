"""Moves of numbers that may be exactly zero: whether each is, its slab integrated out, and then its value.

What other factors say of the elements that meet is one Gaussian form in precision and shift, read off derivatives; the
elements are drawn one after the other, those of different lanes at once. Source: mitchell1988bayesian,
george1993variable.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ....compiler.language.nodes import Expr
from ....factors import draws
from ....factors.arrays import Array, Key
from ....factors.errors import UnsupportedError
from ....factors.factor import Term
from ....factors.roles import Spike
from ...values.evaluate import value
from ...values.plated import Placed, spread
from ..joint import Data, Joint, Values, set_in_order
from ..move import Move, stateless
from .gaussian import is_quadratic, precision_by_lane
from .lanes import lanes_of
from .smooth import is_conjugate


def spike_move(joint: Joint, name: str, starts: list[Values], key: Key) -> Move:
    """Each element of a spike-and-slab variable; UnsupportedError where other factors are not Gaussian in it."""
    variable, lanes = joint.variables[name], lanes_of(joint, name)
    factors, term = set_in_order(joint.touching([name]), (name,)), variable.term
    if not (isinstance(term, Term) and isinstance(term.factor.role, Spike) and is_conjugate(joint, name)):
        raise UnsupportedError(_refused(name, "its distribution, or a factor that reads it, is not linear in it"))
    if factors and not is_quadratic(joint, (name,), starts, joint.arrays, key, factors):
        raise UnsupportedError(_refused(name, "the log density of what reads it is no quadratic form in it"))
    odds_of, slab_of = term.args[term.factor.role.probability], term.args[term.factor.role.precision]

    def draw(key: Key, values: Values, data: Data) -> Values:
        scope = joint.scope(values, data)

        def rows(expr: Expr) -> jax.Array:
            found = value(expr, scope)
            placed = Placed(jnp.asarray(found.value, float), found.plates)
            return lanes.rows(spread(placed, variable.plates, joint.sizes))

        def log_density(x: Array) -> Array:
            return joint.finite(factors, {**values, name: lanes.back(x)}, data)

        probability, slab, x = rows(odds_of), rows(slab_of), lanes.rows(values[name])
        slope, precision = jax.grad(log_density)(x), precision_by_lane(joint, name, lanes, factors, values, data)
        log_odds = jnp.log(probability) - jnp.log1p(-probability)
        keys = jax.random.split(key)
        uniform, normal = draws.uniform(keys[0], x.shape), draws.normal(keys[1], x.shape)

        def visit(i: Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            x, slope = now
            power, old = precision[:, i, i], x[:, i]
            total, shift = power + slab[:, i], slope[:, i] + power * old
            gain = log_odds[:, i] + 0.5 * (jnp.log(slab[:, i] / total) + shift**2 / total)
            active = uniform[:, i] < jax.nn.sigmoid(gain)
            new = jnp.where(active, shift / total + normal[:, i] / jnp.sqrt(total), 0.0)
            return x.at[:, i].set(new), slope - precision[:, :, i] * (new - old)[:, None]

        drawn, _ = jax.lax.fori_loop(0, x.shape[1], visit, (x, slope))
        return {name: lanes.back(drawn)}

    how = "one element after the other: whether it is zero, its slab integrated out, then its value"
    return stateless((name,), how, draw, exact=False)


def _refused(name: str, why: str) -> str:
    return (
        f"'{name}' may be exactly zero (spike_and_slab), and {why}: there are no draws of it here. Let Gaussian, "
        "logistic, probit, Student-t or Laplace outcomes read it linearly, or write it as a product of a boolean and "
        "a number."
    )

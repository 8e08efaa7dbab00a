"""The precision of a Gaussian conditional from linear predictors: sums of outer products of coefficients.

Where a variable enters the mean of a Gaussian number linearly, with coefficients c and the precision w of that number,
the number adds w c c' to the precision of the variable. Coefficients and w carry only the plates that they vary over:
a Gram matrix that all rows share is computed once, where derivatives would compute it for each row.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from ....compiler.language.nodes import Expr, Gather, Let, Plate, Random, inside, parents
from ....factors.arrays import Array
from ....factors.factor import Term
from ....factors.roles import ScalarGaussian
from ...values.evaluate import value
from ...values.plated import Placed, spread
from ...values.scope import Scope
from ..joint import Data, Joint, Values
from .lanes import Lanes


def through_predictors(joint: Joint, name: str, factors: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the factors that are Gaussian numbers in whose mean alone the variable is."""
    if joint.varying:  # factors have powers then
        return ()
    return tuple(factor for factor in factors if _is_predictor(joint, joint.variables[name], factor))


def _is_predictor(joint: Joint, variable: Random, factor: str) -> bool:
    node = joint.density.model.randoms.get(factor)
    if node is None or node is variable or factor in joint.augmented or factor in joint.contents.comparisons:
        return False
    if not isinstance(node.term, Term) or not isinstance(node.term.factor.role, ScalarGaussian):
        return False
    role = node.term.factor.role
    others = [argument for edge, argument in node.term.args.items() if edge != role.mean]
    if any(one is variable for one in inside(others)):
        return False
    return not _is_gathered(joint, node.term.args[role.mean], variable)


def _is_gathered(joint: Joint, expr: Expr, variable: Random) -> bool:
    """Whether an instance reads another element than its own."""
    if isinstance(expr, Random) or (isinstance(expr, Let) and expr.name in joint.data):
        return False
    if isinstance(expr, Gather) and any(one is variable for one in inside([expr])):
        return True
    return any(_is_gathered(joint, child, variable) for child in parents(expr))


def precision_of_predictors(
    joint: Joint, name: str, lanes: Lanes, factors: tuple[str, ...], values: Values, data: Data
) -> jax.Array:
    """What these factors add to the precision of each lane, (count, n, n)."""
    zero = jnp.zeros((lanes.count, lanes.size, lanes.size))
    scope = joint.scope(values, data)
    return zero + sum((_added(joint, name, lanes, factor, scope) for factor in factors), jnp.zeros(()))


def _added(joint: Joint, name: str, lanes: Lanes, factor: str, scope: Scope) -> Array:
    node, variable = joint.density.model.randoms[factor], joint.variables[name]
    assert isinstance(node.term, Term)
    role = node.term.factor.role
    assert isinstance(role, ScalarGaussian)
    weights = joint.contents.where_given(factor, value(node.term.args[role.precision], scope), node.plates)
    mean, rest = node.term.args[role.mean], tuple(plate for plate in variable.plates if plate not in lanes.plates)

    def of(row: Array) -> Placed:
        """The mean where every lane is this row."""
        return value(mean, scope.with_data({name: Placed(lanes.one(row), rest)}))

    base = of(jnp.zeros(lanes.size))
    coefficients = jax.vmap(lambda row: of(row).value - base.value, out_axes=-1)(jnp.eye(lanes.size))
    letter = {plate: chr(ord("A") + i) for i, plate in enumerate(node.plates)}

    def letters(plates: tuple[Plate, ...]) -> str:
        return "".join(letter[plate] for plate in plates)

    seen = {*weights.plates, *base.plates}
    kept = tuple(plate for plate in lanes.plates if plate in seen)
    own = letters(base.plates)
    summed = jnp.einsum(
        f"{letters(weights.plates)},{own}x,{own}y->{letters(kept)}xy", weights.value, coefficients, coefficients
    )
    lost = math.prod(scope.sizes[plate.name] for plate in node.plates if plate not in {*seen, *lanes.plates})
    return lost * spread(Placed(summed, kept), lanes.plates, scope.sizes).reshape((lanes.count, lanes.size, lanes.size))

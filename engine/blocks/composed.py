"""E log f of a factor whose arguments are functions of a few numbers: averaged over these, instance by instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...compiler.blocks.energy import Composition, EnergyBlock
from ...compiler.language.atoms import atom_key
from ...compiler.language.nodes import Apply, Expr, Let
from ...factors.arrays import Array
from ...factors.quadrature.derived import expectation_of
from ..values.evaluate import value
from ..values.moments import moments
from ..values.operations import point_function
from ..values.plated import Placed, mapped
from ..values.scope import Scope


def composed_density(block: EnergyBlock, composed: Composition, scope: Scope) -> Placed:
    """The average of each instance, with the message rule of quadrature as its derivative."""
    names = [f"number {i}" for i in range(len(composed.numbers))]
    keys = [atom_key(expr) for expr in (*composed.numbers, *composed.data)]
    own = {name: number.domain.kind for name, number in zip(names, composed.numbers, strict=True)}

    def log_density(points: Mapping[str, Array], known: Mapping[str, Array]) -> Array:
        at = dict(zip(keys, [*(points[name] for name in names), *known.values()], strict=True))
        args = {edge: _value_at(arg, at) for edge, arg in block.args.items()}
        return block.factor.log_density(_value_at(block.out, at), **args)

    expectation = expectation_of(log_density, own)

    def each(*found: Any) -> Array:
        count = len(names)
        data = {f"{i:06}": array for i, array in enumerate(found[count:])}  # in this order when they are flattened
        return expectation(dict(zip(names, found[:count], strict=True)), data)

    beliefs = [moments(number, scope) for number in composed.numbers]
    return mapped(each, *beliefs, *(value(expr, scope) for expr in composed.data), order=block.plates)


def _value_at(expr: Expr, at: Mapping[tuple, Array]) -> Array:
    """The value of an expression at those of what it is composed of, by the keys of these."""
    if (found := at.get(atom_key(expr))) is not None:
        return found
    if isinstance(expr, Let):
        return _value_at(expr.expression, at)
    assert isinstance(expr, Apply)
    return point_function(expr)(*(_value_at(arg, at) for arg in expr.args))

"""Values of expressions of data, outside a trace, by the rule that decides who runs a function."""

from __future__ import annotations

import numpy as np

from ...compiler.language.nodes import Expr, Input, Let, Random, inside
from ...factors.arrays import Array
from ...factors.switches import double_precision
from ..support.compiled import compiled
from ..values.evaluate import value
from ..values.plated import spread
from ..values.scope import Scope


def value_of_data(expr: Expr, scope: Scope) -> np.ndarray:
    """The value of an expression of data over all of its plates, outside a trace."""
    nodes = list(inside([expr]))
    names = {node.name for node in nodes if isinstance(node, (Input, Random, Let))}
    data = {name: scope.data[name] for name in names if name in scope.data}
    sizes = {plate.name: scope.sizes[plate.name] for node in nodes for plate in node.plates}

    def own(data: dict[str, Array]) -> Array:
        return spread(value(expr, Scope(scope.sizes, data, {})), expr.plates, scope.sizes)

    with double_precision():
        return np.asarray(compiled("value of data", (expr, sizes), own)(data))

"""Named expressions of continuous variables: their values at draws of these."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import numpy as np
from jaxtyping import PyTree

from ...factors.arrays import Array
from ..values.evaluate import value
from ..values.plated import spread
from .coordinates import is_known
from .log_density import LogDensity

Arrays = dict[str, np.ndarray]


def values_of_expressions(density: LogDensity, draws: Arrays) -> Arrays:
    """The values of the named expressions that are numbers or vectors, at draws of the variables of `density`.

    An expression may be wrong where its variables are right: their beliefs are apart, the variables need not be.
    """
    data = density.contents.data
    lets = {
        name: node
        for name, node in density.model.lets.items()
        if node.domain.kind in ("real", "positive", "unit", "vector")
        and name not in data
        and is_known(node, {*data, *density.names})
        and not is_known(node, set(data))
    }

    def one(values: dict[str, Array], data: Mapping[str, PyTree]) -> dict[str, Array]:
        scope = density.contents.scope(values, data)
        return {name: spread(value(node, scope), node.plates, density.contents.sizes) for name, node in lets.items()}

    call = density.function("expressions", (), jax.vmap(one, in_axes=(0, None)))
    found = call(draws, data) if lets else {}
    return {name: np.asarray(array) for name, array in found.items()}

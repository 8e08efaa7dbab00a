"""What is computed of data before a run: by NumPy, since for one look at the data nothing should be compiled."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

import jax
import numpy as np
from jaxtyping import PyTree

from ...compiler.language.nodes import Expr, inside
from ..interpret.equation import Unknown
from ..values.scope import Scope


def computed(what: Callable[[Scope], PyTree], expressions: Iterable[Expr], scope: Scope) -> PyTree:
    """The arrays that `what` makes of the values of expressions of data; by JAX what NumPy does not know."""
    from ..interpret.interpreter import Interpreter  # here: many models need none of it
    from ..interpret.writing import written

    read = {getattr(node, "name", None) for node in inside(expressions)}
    data = {name: array for name, array in scope.data.items() if name in read and isinstance(array, np.ndarray)}

    def of(data: dict[str, np.ndarray]) -> PyTree:
        return what(dataclasses.replace(scope, data={**scope.data, **data}))

    with jax.enable_x64(True):
        jaxpr, form = jax.make_jaxpr(of, return_shape=True)(data)
        try:
            run = Interpreter(written(jaxpr))
        except Unknown:
            return jax.tree.map(np.asarray, of(data))
        return jax.tree.unflatten(jax.tree.structure(form), run(*jax.tree.leaves(data)))

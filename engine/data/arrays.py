"""The arrays that enter a jitted program: data by name, with masks for what is missing and sparse inputs in pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...compiler.data.bind import Binding
from ...compiler.data.bind_many import Bindings
from ...compiler.data.keys import is_present
from ...compiler.data.sparse_matrices import is_sparse
from ...compiler.graph import Plan
from ..values.joint_beliefs import joint_sizes
from ..values.row_blocks import Rows, rows_of
from ..values.sparse_rows import paged


def arrays_of(binding: Binding | Bindings, graph: Plan) -> dict[str, Any]:
    """The arrays that enter the jitted program."""
    arrays: dict[str, Any] = {**binding.inputs, **binding.observed}
    if isinstance(binding, Binding):
        rows = rows_of(graph, {**binding.sizes, **joint_sizes(graph)})
        arrays |= in_blocks(binding, graph, rows.values())
    for name, missing in binding.missing.items():
        if name not in graph.partly:
            arrays[is_present(name)] = np.asarray(~missing, float)
            continue
        data = graph.partly[name]
        arrays |= {data.values.name: arrays.pop(name), data.given.name: ~missing}
        arrays[data.missing.name] = np.asarray(missing, float)
    return arrays


def in_blocks(binding: Binding, graph: Plan, cut: Iterable[Rows]) -> dict[str, Any]:
    """The inputs, with those that are sparse laid out in these blocks of rows."""
    found: dict[str, Any] = dict(binding.inputs)
    by_plate = {rows.plate: rows for rows in cut}
    for name, array in binding.inputs.items():
        if is_sparse(array):
            (plate,) = graph.model.inputs[name].plates
            found[name] = paged(name, array, by_plate.get(plate, Rows(plate, *array.shape[:1] * 2)))
    return found

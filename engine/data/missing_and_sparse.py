"""The arrays that enter a jitted program: data by name, with masks for what is missing and sparse inputs in pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from ...compiler.data.bind import Binding
from ...compiler.data.bind_many import Bindings
from ...compiler.data.keys import is_present
from ...compiler.data.sparse_matrices import is_sparse, is_streamed
from ...compiler.graph import Plan
from ..values.joint_beliefs import joint_sizes
from ..values.row_blocks import Rows, rows_of
from ..values.sparse_rows import paged

Arrays: TypeAlias = dict[str, Any]  # what enters a program, by name: arrays, sparse pages, rows of files


def arrays_of(binding: Binding | Bindings, graph: Plan) -> Arrays:
    """The arrays that enter the jitted program."""
    arrays: Arrays = {**binding.inputs, **binding.observed}
    if isinstance(binding, Binding):
        streamed = frozenset(name for name, array in binding.inputs.items() if is_streamed(array))
        rows = rows_of(graph, {**binding.sizes, **joint_sizes(graph)}, streamed)
        arrays |= in_blocks(binding, graph, rows.values())
    for name, missing in binding.missing.items():
        if name not in graph.partly:
            arrays[is_present(name)] = np.asarray(~missing, float)
            continue
        data = graph.partly[name]
        arrays |= {data.values.name: arrays.pop(name), data.given.name: ~missing}
        arrays[data.missing.name] = np.asarray(missing, float)
    return arrays


def in_blocks(binding: Binding, graph: Plan, cut: Iterable[Rows]) -> Arrays:
    """The inputs, with those that are sparse laid out in these blocks of rows."""
    found: Arrays = dict(binding.inputs)
    by_plate = {rows.plate: rows for rows in cut}
    for name, array in binding.inputs.items():
        if is_streamed(array):
            from ..values.streamed_rows import StreamedRows  # few data are streamed

            found[name] = StreamedRows(np.zeros((), np.int32), array)
        if is_sparse(array):
            (plate,) = graph.model.inputs[name].plates
            found[name] = paged(name, array, by_plate.get(plate, Rows(plate, *array.shape[:1] * 2)))
    return found

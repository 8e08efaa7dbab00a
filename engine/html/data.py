"""The data of an inference as a table: what each input and observation is called, its shape, and what is in it."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from ...compiler.data.bind import Binding
from .escape import Markup, joined, tag
from .tables import ROWS, short, table

SUMMED = 10_000_000  # numbers of one array that are looked at; of larger ones the shape alone is told


def data(binding: Binding) -> Markup:
    """Sizes of plates, then a row for each input and observation."""
    if not binding.inputs and not binding.observed:
        return tag("p", "No data were given: these are answers about the prior.")
    sizes = ", ".join(f"{name} {size:,}" for name, size in islice(binding.sizes.items(), ROWS))
    rows = [[name, "input", *_told(array, None)] for name, array in binding.inputs.items()]
    rows += [[name, "observed", *_told(array, binding.missing.get(name))] for name, array in binding.observed.items()]
    heads = ["name", "is", "shape", "missing", "lowest", "mean", "highest"]
    return joined(tag("p", f"Sizes of plates: {sizes}." if sizes else "No plates."), table("Data", heads, rows))


def _told(array: Any, missing: np.ndarray | None) -> list[object]:
    """Shape, missing entries, and the lowest, mean and highest value of the others."""
    shape = " x ".join(f"{length:,}" for length in getattr(array, "shape", ())) or "one value"
    if not isinstance(array, np.ndarray) or array.size > SUMMED or not array.size:
        return [shape, "", "", "", ""]
    values, absent = present(array, missing), 0 if missing is None else int(np.sum(missing))
    if not values.size:
        return [shape, f"{absent:,}", "", "", ""]
    return [shape, f"{absent:,}", *(short(float(found)) for found in (values.min(), values.mean(), values.max()))]


def present(array: np.ndarray, missing: np.ndarray | None) -> np.ndarray:
    """The values that were given, as numbers in a row."""
    values = np.asarray(array)
    return np.ravel(values if missing is None else values[~np.asarray(missing, bool)]).astype(float)

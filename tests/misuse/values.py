"""Values that users give by mistake, and which of them are legal where: told from the domain's definition alone."""

from __future__ import annotations

import decimal

import numpy as np

WRONG = {
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "-1": -1.0,
    "0": 0.0,
    "half": 0.5,
    "1": 1.0,
    "1.5": 1.5,
    "3": 3,
    "true": True,
    "numpy true": np.True_,
    "int8": np.int8(2),
    "float32": np.float32(0.25),
    "complex": 1.0 + 2.0j,
    "text": "a",
    "number as text": "0.5",
    "bytes": b"1",
    "None": None,
    "object": object(),
    "dictionary": {"a": 1.0},
    "set": {1.0},
    "function": abs,
    "date": np.datetime64("2020-01-01"),
    "array of text": np.array(["a", "b"]),
    "array of objects": np.array([1.0, None], object),
    "complex array": np.array([1.0, 1.0j]),
    "empty": [],
    "ragged": [[1.0, 2.0], [3.0]],
    "nan among numbers": np.array([1.0, np.nan]),
    "three": np.array([0.2, 0.3, 0.5]),
    "too many axes": np.full((2, 2, 2), 0.5),
    "masked": np.ma.array([0.5, 0.5], mask=[True, False]),
    "decimal": decimal.Decimal("0.5"),
    "huge": 1e308,
    "large integer": 10**400,
}
KINDS = ("real", "positive", "unit", "count", "boolean")


def number_of(name):
    """The real number that a value stands for, or None: NaN, text, arrays and the rest do not."""
    value = WRONG[name]
    if isinstance(value, (bool, np.bool_, int, float, np.integer, np.floating, decimal.Decimal)):
        return None if name == "large integer" else float(value)
    return None


def legal(name, kind, infinite=False):
    """Whether a value is a member of a domain of numbers."""
    number = number_of(name)
    if number is None or np.isnan(number) or (np.isinf(number) and not infinite):
        return False
    match kind:
        case "positive":
            return number > 0
        case "unit":
            return 0 <= number <= 1
        case "inner":
            return 0 < number < 1
        case "count":
            return 0 <= number <= 2**53 and number == int(number)
        case "boolean":
            return number in (0, 1)
    return True

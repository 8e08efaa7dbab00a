"""Numbers from what users write: arrays of booleans, integers or floats, and nothing else that NumPy would take."""

from __future__ import annotations

import decimal
import numbers

import numpy as np

from .arrays import Argument
from .errors import ModelError

_ENCODE = "Give numbers, all rows equally long; encode categories as 0, 1, 2, ... (pandas: `.cat.codes`)."
_NUMBER = (numbers.Real, decimal.Decimal, np.bool_)


class ValueProblem(Exception):
    """A value outside its domain; the message says what was found, where, and what to give. The caller adds whose
    value it is.
    """


def numeric_array(value: Argument) -> np.ndarray:
    """`value` as an array of booleans, integers or floats (no copy if it is one); ValueProblem for anything else.

    None among numbers is NaN, as it is in tables; text and dates are no numbers, even where NumPy would convert them.
    """
    parts = value if isinstance(value, (list, tuple)) else [value]  # NumPy drops the masks of arrays in a list
    if any(isinstance(part, np.ma.MaskedArray) and np.ma.getmaskarray(part).any() for part in parts):
        raise ValueProblem(
            "some values are masked. Give numbers; missing entries of an observed variable are a masked array or NaN."
        )
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O":
            strange = [item for item in array.ravel() if item is not None and not isinstance(item, _NUMBER)]
            if strange:
                raise TypeError(f"{brief(strange[0])} is none")
            array = np.asarray(value, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueProblem(f"found {brief(value)}, which is not an array of numbers ({error}). {_ENCODE}") from error
    if array.dtype.kind not in "biuf":
        raise ValueProblem(f"found values of type {array.dtype}, which are not numbers. {_ENCODE}")
    return array


def given_number(builder: str, name: str, value: Argument) -> Argument:
    """What a builder is to compute with: numbers as a float or an array of floats, expressions and terms as they are.

    ModelError, which names the argument as the user wrote it, for anything else.
    """
    if hasattr(value, "domain") or hasattr(value, "factor"):
        return value
    try:
        if value is None:
            raise ValueProblem("found None. Give a number, an array or an expression.")
        array = np.asarray(numeric_array(value), np.float64)
    except ValueProblem as problem:
        raise ModelError(f"{builder}(): {name}: {problem}") from None
    return array if array.ndim else float(array)


def brief(value: Argument) -> str:
    """The value in forty characters."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # an integer of thousands of digits
        text = f"a number of type {type(value).__name__}"
    return text if len(text) <= 40 else f"{text[:37]}..."

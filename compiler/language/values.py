"""Values of a domain: conversion to the engine's dtypes and vectorised checks, shared by the language (constants) and
by bind (data).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from ...factors.domains import Domain
from ...factors.numbers import ValueProblem

UserValue: TypeAlias = Any  # what a user wrote, before it is checked

EVENT_NDIM = {"vector": 1, "simplex": 1, "concentration": 1, "posdef": 2, "matrix": 2}
DTYPE = {"boolean": np.bool_, "category": np.int32, "index": np.int32}
_FIX = {
    "real": "Give a finite number.",
    "vector": "Give finite numbers.",
    "positive": "Give a number greater than zero.",
    "concentration": "Give numbers greater than zero.",
    "unit": "Give a probability between 0 and 1.",
    "boolean": "Give True and False, or 1 and 0.",
    "count": "Give a whole number 0, 1, 2, ...",
    "category": "Classes are numbered 0, 1, 2, ...",
    "index": "Positions are numbered 0, 1, 2, ...",
    "simplex": "Give numbers >= 0 whose sum along the last axis is 1; divide them by their sum.",
    "posdef": "Give a symmetric matrix whose eigenvalues are all positive; if rounding made it singular, add a small "
    "multiple of the identity.",
}
_SUM_TOLERANCE = 1e-5  # wide enough for float32 probabilities of some thousand classes
_SYMMETRY_TOLERANCE = 1e-6
_EXACT = 2**53  # a larger whole number may be stored as its neighbour
_ROUNDING = float(np.finfo(np.float64).eps)  # a smaller pivot, relative to the diagonal, is rounding


def convert(array: np.ndarray, kind: str, narrow: bool = False) -> np.ndarray:
    """The array in the engine's dtype for `kind`: float64, int32 (category, index) or bool; the values are checked
    already. One that is `narrow` stays as it is, and is float64 where it is read.

    An array object of our own, on the same memory where the dtype allows: JAX remembers by object what it read in
    32 bits, so that the very array of a user who did so could not be read in 64 any more.
    """
    return (array if narrow else np.asarray(array, DTYPE.get(kind, np.float64))).view()


def check(array: np.ndarray, kind: str, *, infinite: bool = False) -> None:
    """Raises ValueProblem when a value of `array` (plates + event) lies outside the domain `kind`; `infinite` lets
    +-inf pass.
    """
    if array.size == 0:
        return
    if array.dtype.kind == "f":
        _check_finite(array, kind, infinite)
    _CHECKS.get(kind, _anything)(array, kind)


def is_finite(array: np.ndarray) -> bool:
    """True when all values are finite; one pass over the array, without a temporary, when they are."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum()
    return bool(np.isfinite(total)) or bool(np.isfinite(array).all())


def _check_finite(array: np.ndarray, kind: str, infinite: bool) -> None:
    if not is_finite(array):
        _refuse(np.isnan(array) if infinite else ~np.isfinite(array), array, kind, "must be finite")


def _anything(array: np.ndarray, kind: str) -> None:
    """Nothing to check beyond finite numbers."""


def _positive(array: np.ndarray, kind: str) -> None:
    if not array.min() > 0:
        _refuse(array <= 0, array, kind, "must be positive")


def _unit(array: np.ndarray, kind: str) -> None:
    if array.min() < 0 or array.max() > 1:
        _refuse((array < 0) | (array > 1), array, kind, "must lie between 0 and 1")


def _boolean(array: np.ndarray, kind: str) -> None:
    if array.dtype.kind != "b":
        wrong = (array != 0) & (array != 1)
        if wrong.any():
            _refuse(wrong, array, kind, "must be true or false")


def _whole(array: np.ndarray, kind: str) -> None:
    if array.dtype.kind == "f":
        fractional = array != np.rint(array)
        if fractional.any():
            _refuse(fractional, array, kind, "must be whole numbers")
    if array.min() < 0:
        _refuse(array < 0, array, kind, "must not be negative")
    if array.max() > _EXACT:
        _refuse(array > _EXACT, array, kind, "must be at most 2^53, beyond which numbers are no longer exact")


def _simplex(array: np.ndarray, kind: str) -> None:
    if array.min() < 0:
        _refuse(array < 0, array, kind, "must not be negative")
    total = array.sum(-1)
    wrong = np.abs(total - 1.0) > _SUM_TOLERANCE
    if wrong.any():
        _refuse(wrong, total, kind, "must sum to one along the last axis", "a sum of ")


def _posdef(array: np.ndarray, kind: str) -> None:
    scale = np.abs(array).max((-2, -1), keepdims=True)
    wrong = (np.abs(array - array.swapaxes(-1, -2)) > _SYMMETRY_TOLERANCE * scale).any((-2, -1))
    if wrong.any():
        raise ValueProblem(f"must be symmetric; found a matrix that is not{_where(wrong)}. {_FIX[kind]}")
    try:
        pivots = np.diagonal(np.linalg.cholesky(array), axis1=-2, axis2=-1)
        singular = bool((pivots**2 <= array.shape[-1] * _ROUNDING * np.diagonal(array, axis1=-2, axis2=-1)).any())
    except np.linalg.LinAlgError:
        singular = True
    if singular:
        smallest = np.linalg.eigvalsh(array)[..., 0]
        _refuse(smallest == smallest.min(), smallest, kind, "must be positive definite", "a smallest eigenvalue of ")


_CHECKS = {
    "positive": _positive,
    "concentration": _positive,
    "unit": _unit,
    "boolean": _boolean,
    "count": _whole,
    "category": _whole,
    "index": _whole,
    "simplex": _simplex,
    "posdef": _posdef,
}


def _refuse(wrong: np.ndarray, values: np.ndarray, kind: str, rule: str, what: str = "") -> None:
    if wrong.any():
        first = values[np.unravel_index(np.argmax(wrong), wrong.shape)]
        raise ValueProblem(f"{rule}; found {what}{first:g}{_where(wrong)}. {_FIX.get(kind, _FIX['real'])}")


def _where(wrong: np.ndarray) -> str:
    if wrong.ndim == 0:
        return ""
    position = ", ".join(str(int(i)) for i in np.unravel_index(np.argmax(wrong), wrong.shape))
    count = int(wrong.sum())
    return f" at [{position}]" + (f" and {count - 1} more" if count > 1 else "")


def event_ndim(domain: Domain) -> int:
    """Number of event axes of a domain, also of the kinds that only arguments have (concentration, matrix)."""
    return EVENT_NDIM.get(domain.kind, 0)

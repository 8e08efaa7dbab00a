"""Sums, products and extremes along axes, running ones, places of extremes, and sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from .equation import Equation, Function, Rule, Unknown


def along(ufunc: np.ufunc) -> Rule:
    """The rule of a reduction."""

    def rule(equation: Equation) -> Function:
        axes, type = tuple(map(int, equation.params["axes"])), equation.out_type
        if not axes:
            return lambda x: x
        axis: Any = axes[0] if len(axes) == 1 else axes
        if type.kind == "b" or (equation.ins[0].shape[axes[0]] and ufunc in (np.maximum, np.minimum)):
            return lambda x: ufunc.reduce(x, axis)
        if ufunc in (np.maximum, np.minimum):
            raise Unknown(f"{equation.name} of nothing")
        return lambda x: ufunc.reduce(x, axis, type)

    return rule


def logical(bits: np.ufunc, truth: np.ufunc) -> Rule:
    """The rule of a reduction of bits, or of truth values."""
    return lambda equation: along(truth if equation.type.kind == "b" else bits)(equation)


def extreme_place(function: Function) -> Rule:
    """The rule of argmax or argmin: the first place, what is no number before all others."""

    def rule(equation: Equation) -> Function:
        (axis,), type = equation.params["axes"], equation.out_type
        return lambda x: function(x, axis=int(axis)).astype(type)

    return rule


def running(ufunc: np.ufunc) -> Rule:
    """The rule of a reduction that is told at every place."""

    def rule(equation: Equation) -> Function:
        axis, type = int(equation.params["axis"]), equation.out_type
        if not equation.params["reverse"]:
            return lambda x: ufunc.accumulate(x, axis, type)
        return lambda x: np.flip(ufunc.accumulate(np.flip(x, axis), axis, type), axis)

    return rule


def sort(equation: Equation) -> Function:
    """Arrays in the order of the first ones: what is no number comes last, equal elements stay in their order."""
    axis, keys = int(equation.params["dimension"]), equation.params["num_keys"]
    if len(equation.ins) == 1:
        return lambda x: (np.sort(x, axis, kind="stable"),)

    def ordered(*arrays: Any) -> tuple[Any, ...]:
        if keys == 1:
            order = np.argsort(arrays[0], axis, kind="stable")
        else:
            order = np.lexsort(arrays[keys - 1 :: -1], axis)
        return tuple(np.take_along_axis(array, order, axis) for array in arrays)

    return ordered

"""The table of primitives: what NumPy does for each."""

from __future__ import annotations

import numpy as np

from . import algebra, control, indexing, random, reductions, shapes
from .elementwise import ELEMENTWISE
from .equation import Equation, Function, Rule

__all__ = ["ARRAYS", "CONTROL", "ELEMENTWISE", "MOVES", "SAME", "function_of"]

# What does nothing to numbers.
SAME = {"stop_gradient", "copy", "copy_p", "optimization_barrier", "pvary"}
# What only moves elements of its first input.
MOVES = {"reshape", "squeeze", "transpose", "rev", "slice", "split", "unstack", "expand_dims"}

CONTROL: dict[str, control.Control] = {
    "while": control.WHILE,
    "scan": control.SCAN,
    "cond": control.CHOICE,
}

ARRAYS: dict[str, Rule] = {
    "spread": shapes.spread,  # this and the next are no primitives: see `graph`
    "pick": shapes.reshaped,
    "reshape": shapes.reshaped,
    "squeeze": shapes.reshaped,
    "expand_dims": shapes.reshaped,
    "transpose": shapes.transposed,
    "rev": shapes.reversed_,
    "slice": shapes.sliced,
    "concatenate": shapes.concatenated,
    "stack": shapes.stacked,
    "unstack": shapes.unstacked,
    "split": shapes.split,
    "pad": shapes.padded,
    "iota": shapes.counted,
    "empty": shapes.zeros,
    "empty2": shapes.zeros,
    "dynamic_slice": shapes.dynamic_slice,
    "dynamic_update_slice": shapes.dynamic_update,
    "platform_index": control.platform,
    "gather": indexing.gather,
    "scatter": indexing.scatter(None),
    "scatter-add": indexing.scatter(np.add),
    "scatter-sub": indexing.scatter(np.subtract),
    "scatter-mul": indexing.scatter(np.multiply),
    "scatter-min": indexing.scatter(np.minimum),
    "scatter-max": indexing.scatter(np.maximum),
    "reduce_sum": reductions.along(np.add),
    "reduce_prod": reductions.along(np.multiply),
    "reduce_max": reductions.along(np.maximum),
    "reduce_min": reductions.along(np.minimum),
    "reduce_and": reductions.logical(np.bitwise_and, np.logical_and),
    "reduce_or": reductions.logical(np.bitwise_or, np.logical_or),
    "reduce_xor": reductions.logical(np.bitwise_xor, np.logical_xor),
    "argmax": reductions.extreme_place(np.argmax),
    "argmin": reductions.extreme_place(np.argmin),
    "cumsum": reductions.running(np.add),
    "cumprod": reductions.running(np.multiply),
    "cummax": reductions.running(np.maximum),
    "cummin": reductions.running(np.minimum),
    "cumlogsumexp": reductions.running(np.logaddexp),
    "sort": reductions.sort,
    "dot_general": algebra.product,
    "cholesky": algebra.cholesky,
    "triangular_solve": algebra.triangular_solve,
    "lu": algebra.lu,
    "eigh": algebra.eigh,
    "svd": algebra.svd,
    "qr": algebra.qr,
    "random_wrap": random.wrap,
    "random_unwrap": random.unwrap,
    "random_split": random.split,
    "random_fold_in": random.fold_in,
    "random_seed": random.seed,
    "random_bits": random.bits,
}


def function_of(equation: Equation, program: control.Program) -> Function:
    """What computes an equation. Raises Unknown."""
    return CONTROL[equation.name].rule(equation, program) if equation.name in CONTROL else simple(equation)


def simple(equation: Equation) -> Function:
    """What computes an equation without others inside it. Raises Unknown."""
    return (ELEMENTWISE if equation.name in ELEMENTWISE else ARRAYS)[equation.name](equation)

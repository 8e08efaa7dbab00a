"""What was written of a jaxpr, as a function of arrays that NumPy computes."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .actions import Body
from .equation import Unknown
from .listing import Program
from .work import Meter


class Interpreter:
    """A function of arrays, run by NumPy. Raises Unknown, which says why, where it cannot be run.

    A call raises Spent where it would do more work than `meter` allows.
    """

    def __init__(self, program: Program, meter: Meter | None = None) -> None:
        self._types, listing, self._outs = program
        self.body = Body(meter or Meter(), listing)
        self._run = self.body.bind(())

    def __call__(self, *arrays: Any) -> list[np.ndarray]:
        """The outputs: arrays of their own, that share nothing with the inputs."""
        inputs = [np.asarray(array, type)[()] for array, type in zip(arrays, self._types, strict=True)]
        with np.errstate(all="ignore"):
            outputs = self._run(inputs)
        return [np.array(value, type) for value, type in zip(outputs, self._outs, strict=True)]


class ByNumpy:
    """A function of nested arrays, which gives what JAX would give back compiled. Raises as `Interpreter`."""

    def __init__(self, program: Program, nesting: Any, meter: Meter) -> None:
        self.meter = meter
        self._run, self._nesting = Interpreter(program, meter), nesting

    def __call__(self, *arguments: Any) -> Any:
        return jax.tree.unflatten(self._nesting, jax.device_put(self._run(*jax.tree.leaves(arguments))))


def can_interpret(closed: Any) -> str | None:
    """None where NumPy can run a closed jaxpr as XLA would; otherwise why not. Nothing is run."""
    from .writing import written

    try:
        Interpreter(written(closed))
    except Unknown as problem:
        return str(problem)
    return None

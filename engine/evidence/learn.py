"""Hyperparameters by maximum evidence: inputs of a model are moved along the gradient of the log evidence.

Every step is one inference by the same compiled program and one gradient at its fixed point; nothing is compiled
between steps. Positive inputs move by their logarithm, probabilities by their log odds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...compiler.data.sparse_matrices import is_sparse
from ...factors.calls import call_checked, methods_checked
from ...factors.errors import DataError, ModelError
from ..posterior import Posterior
from ..program import Program, the_program
from ..support.asked_arguments import MOST, list_of_names, named, number_above_zero


@methods_checked("learned")
@dataclasses.dataclass(frozen=True)
class Learned:
    """Inputs of largest evidence: `values` by name, the `posterior` there, and how they were found.

    `trace` has the log evidence of every inference, in order; `slope` the largest derivative that is left, in units of
    log evidence for a change of the logarithm of a positive input by one (of the log odds of a probability, of a real
    number). `bounded` names the inputs that ended at the end of their reach, a factor of exp(10) from the start: the
    data do not limit these. `converged` tells whether `slope` is below the tolerance.
    """

    values: dict[str, np.ndarray]
    posterior: Posterior
    trace: np.ndarray
    slope: float
    bounded: tuple[str, ...]
    converged: bool

    def __repr__(self) -> str:
        found = ", ".join(f"{name} {np.array2string(value, precision=4)}" for name, value in self.values.items())
        end = "converged" if self.converged else f"stopped at slope {self.slope:.1e}"
        end += f", at the end of its reach: {', '.join(self.bounded)}" if self.bounded else ""
        evidence = self.posterior.log_evidence
        return f"Learned({found}; log evidence {evidence:.6g} after {len(self.trace)} inferences, {end})"


@call_checked
def learn(
    program: Program,
    data: Mapping[str, Any],
    wrt: Sequence[str] | str,
    *,
    tolerance: float = 1e-3,
    max_steps: int = 100,
    seed: int = 0,
) -> Learned:
    """The values of the inputs named in `wrt` of largest log evidence, from those in `data` on.

    `program` is a compiled program (`cv.compile`); compile it with a small `tolerance` (1e-8), since a gradient holds
    at the fixed point. `wrt` names inputs that are real, vectors, positive or probabilities; all others stay as they
    are. The maximum is a local one: where the evidence has several, start from several points. `tolerance` is the
    largest slope at which it stops (see `Learned`), `max_steps` the largest number of steps of L-BFGS-B, `seed` decides
    what is random in each inference. A trial point at which inference does not converge is stepped back from. Returns
    `Learned`. Raises DataError for names that are no continuous inputs, ModelError for less than one step,
    UnsupportedError where inference does not converge at the start. Source: minka2005divergence.
    """
    the_program(program)
    names = tuple(dict.fromkeys(list_of_names([wrt] if isinstance(wrt, str) else wrt, "learn(wrt=)")))
    number_above_zero("learn", tolerance=tolerance)
    named(data)
    if not names:
        raise DataError(
            "learn() was given no name of an input to learn. Name at least one: cv.learn(program, data, ['scale'])."
        )
    if not isinstance(max_steps, (int, np.integer)) or isinstance(max_steps, bool) or not 1 <= max_steps <= MOST:
        raise ModelError(
            f"max_steps= must be at least 1, a whole number; found {max_steps!r}. To infer without learning call the "
            "program."
        )
    if sparse := [name for name in names if is_sparse(data.get(name))]:
        raise DataError(
            f"The input '{sparse[0]}' is sparse, and cannot be learned: its zeros have no gradient. Give a dense array."
        )
    from .climb import Climb  # here: SciPy's optimisers take a third of a second to import

    climb = Climb(program, data, names, seed)
    climb.to_the_top(max_steps, tolerance)
    values, posterior, slope, bounded = climb.top()
    return Learned(values, posterior, np.array(climb.trace), slope, bounded, slope <= tolerance)

"""The log evidence of data and its gradient in the inputs of a model, by one run of its program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...factors.calls import call_checked
from ..answers.evidence_gradient import gradient
from ..program import Program, the_program
from ..support.asked_arguments import list_of_names


@call_checked
def evidence_gradient(
    program: Program, data: Mapping[str, Any], wrt: Sequence[str], *, seed: int = 0
) -> tuple[float, dict[str, np.ndarray]]:
    """The log evidence of `data` and its gradient in the inputs named in `wrt`, of the same shapes as these inputs.

    `program` is a compiled program (`cv.compile`); compile it with a small `tolerance` (1e-9): the gradient holds at
    the fixed point. `seed` decides what is random in the inference. Returns the log evidence and the gradient by name.
    Errors as in `Posterior.evidence_gradient`. Source: minka2005divergence, seeger2005expectation.
    """
    the_program(program)
    names = list_of_names([wrt] if isinstance(wrt, str) else wrt, "evidence_gradient(wrt=)")
    posterior = program.run(data, seed=seed)
    return posterior.log_evidence, gradient(posterior, tuple(names))

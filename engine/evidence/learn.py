"""Hyperparameters by maximum evidence: inputs of a model are moved along the gradient of the log evidence.

Every step is one inference by the same compiled program and one gradient at its fixed point; nothing is compiled
between steps. Positive inputs move by their logarithm, probabilities by their log odds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from ...compiler.data.sparse_matrices import is_sparse
from ...factors.errors import DataError, ModelError, UnsupportedError
from ..answers.evidence_gradient import hyperparameter
from ..posterior import Posterior
from ..program import Program

REACH = 10.0  # logarithms and log odds move at most so far: an input that the data do not limit stops there


class Way(NamedTuple):
    """Coordinates in which an input is free: there, back, the slope of the way back, and how far to go at most."""

    free: Callable[[Any], Any]
    back: Callable[[Any], Any]
    slope: Callable[[Any], Any]
    reach: float


_IDENTITY = Way(np.asarray, np.asarray, np.ones_like, np.inf)
WAYS = {
    "real": _IDENTITY,
    "vector": _IDENTITY,
    "positive": Way(np.log, np.exp, np.exp, REACH),
    "unit": Way(logit, expit, lambda u: expit(u) * expit(-u), REACH),
}


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
    names = (wrt,) if isinstance(wrt, str) else tuple(dict.fromkeys(wrt))
    if not names:
        raise DataError(
            "learn() was given no name of an input to learn. Name at least one: cv.learn(program, data, ['scale'])."
        )
    if max_steps < 1:
        raise ModelError(
            f"max_steps= must be at least 1; found {max_steps!r}. To infer without learning call the program."
        )
    if sparse := [name for name in names if is_sparse(data.get(name))]:
        raise DataError(
            f"The input '{sparse[0]}' is sparse, and cannot be learned: its zeros have no gradient. Give a dense array."
        )
    ways = {name: _way(program, data, name) for name in names}
    first = {name: np.asarray(data[name], float) for name in names}
    start = {name: ways[name].free(first[name]) for name in names}
    ends = np.cumsum([array.size for array in start.values()])[:-1]
    trace: list[float] = []
    best: list[tuple[float, Posterior, np.ndarray]] = []

    def split(u: np.ndarray) -> dict[str, np.ndarray]:
        return {name: part.reshape(first[name].shape) for name, part in zip(names, np.split(u, ends), strict=True)}

    def loss(u: np.ndarray) -> tuple[float, np.ndarray]:
        free = split(u)
        posterior = program.run({**data, **{name: ways[name].back(free[name]) for name in names}}, seed=seed)
        if trace and not posterior.converged:  # worse than anything seen: the line search comes closer
            return 1.0 - min(trace), np.zeros_like(u)
        found = posterior.evidence_gradient(*names)
        gradient = np.concatenate([np.ravel(found[name] * ways[name].slope(free[name])) for name in names])
        trace.append(posterior.log_evidence)
        if not best or trace[-1] > best[0][0]:
            best[:] = [(trace[-1], posterior, gradient)]
        return -trace[-1], -gradient

    origin = np.concatenate([np.ravel(start[name]) for name in names])
    begin = loss(origin)  # where the minimisation begins too
    steepness = max(1.0, float(np.linalg.norm(begin[1])))  # the first step is the scaled slope: one at most
    reach = np.concatenate([np.full(first[name].size, ways[name].reach) for name in names])
    bounds = list(zip(origin - reach, origin + reach, strict=True))
    limits = {"maxiter": max_steps, "gtol": tolerance / steepness, "ftol": 1e-12}

    def scaled(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = begin if np.array_equal(u, origin) else loss(u)
        return value / steepness, slope / steepness

    minimize(scaled, origin, jac=True, method="L-BFGS-B", bounds=bounds, options=limits)
    _, posterior, gradient = best[0]
    values = {name: np.asarray(posterior.arrays[name], float) for name in names}
    moved = np.concatenate([np.ravel(ways[name].free(values[name])) for name in names]) - origin
    outward = (np.abs(moved) > 0.999 * reach) & (gradient * moved > 0.0)
    slope = float(np.max(np.abs(np.where(outward, 0.0, gradient))))
    bounded = tuple(name for name, part in split(outward).items() if part.any())
    return Learned(values, posterior, np.array(trace), slope, bounded, slope <= tolerance)


def _way(program: Program, data: Mapping[str, Any], name: str) -> Way:
    """The coordinates of an input, which `data` must start."""
    node = hyperparameter(program.model, name, "learn")
    if name not in data:
        raise DataError(f"learn: the data lack {name!r}. Give the value to start from, data[{name!r}].")
    if node.domain.kind not in WAYS:
        raise UnsupportedError(
            f"learn: input {name!r} is {node.domain}, which has no free coordinates here. Real, vector, positive and "
            "unit inputs can be learned; write others as a function of these."
        )
    return WAYS[node.domain.kind]

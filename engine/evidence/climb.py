"""The climb of `learn`: inputs in free coordinates, and L-BFGS-B along the gradient of the log evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize
from scipy.special import expit, logit

from ...factors.errors import DataError, UnsupportedError
from ..answers.evidence_gradient import hyperparameter
from ..posterior import Posterior
from ..program import Program

REACH = 10.0  # logarithms and log odds move at most so far: an input that the data do not limit stops there


class Way(NamedTuple):
    """Coordinates in which an input is free: there, back, the slope of the way back, and how far to go at most."""

    free: Callable[[np.ndarray], np.ndarray]
    back: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]
    reach: float


_IDENTITY = Way(np.asarray, np.asarray, np.ones_like, np.inf)
WAYS = {
    "real": _IDENTITY,
    "vector": _IDENTITY,
    "positive": Way(np.log, np.exp, np.exp, REACH),
    "unit": Way(logit, expit, lambda u: expit(u) * expit(-u), REACH),
}


class Climb:
    """Inputs as one vector of free coordinates, and the best of what was inferred at its points."""

    def __init__(self, program: Program, data: Mapping[str, Any], names: tuple[str, ...], seed: int) -> None:
        self.program, self.data, self.names, self.seed = program, data, names, seed
        self.ways = {name: _way(program, data, name) for name in names}
        self.first = {name: np.asarray(data[name], float) for name in names}
        self.origin = self._joined({name: self.ways[name].free(self.first[name]) for name in names})
        self.reach = self._joined({name: np.full(self.first[name].shape, self.ways[name].reach) for name in names})
        self.trace: list[float] = []
        self.best: tuple[float, Posterior, np.ndarray] | None = None

    def _joined(self, parts: Mapping[str, np.ndarray]) -> Float[np.ndarray, " size"]:
        return np.concatenate([np.ravel(parts[name]) for name in self.names])

    def _split(self, u: Float[np.ndarray, " size"]) -> dict[str, np.ndarray]:
        ends = np.cumsum([self.first[name].size for name in self.names])[:-1]
        parts = zip(self.names, np.split(u, ends), strict=True)
        return {name: part.reshape(self.first[name].shape) for name, part in parts}

    def loss(self, u: Float[np.ndarray, " size"]) -> tuple[float, Float[np.ndarray, " size"]]:
        """Minus the log evidence at a point, and its gradient."""
        free = self._split(u)
        values = {name: self.ways[name].back(free[name]) for name in self.names}
        posterior = self.program.run({**self.data, **values}, seed=self.seed)
        if self.trace and not posterior.converged:  # worse than anything seen: the line search comes closer
            return 1.0 - min(self.trace), np.zeros_like(u)
        found = posterior.evidence_gradient(*self.names)
        gradient = self._joined({name: found[name] * self.ways[name].slope(free[name]) for name in self.names})
        self.trace.append(posterior.log_evidence)
        if self.best is None or self.trace[-1] > self.best[0]:
            self.best = self.trace[-1], posterior, gradient
        return -self.trace[-1], -gradient

    def to_the_top(self, max_steps: int, tolerance: float) -> None:
        """L-BFGS-B from the origin within reach, with the loss scaled so that its first step is at most one."""
        begin = self.loss(self.origin)  # where the minimisation begins too
        steepness = max(1.0, float(np.linalg.norm(begin[1])))

        def scaled(u: Float[np.ndarray, " size"]) -> tuple[float, Float[np.ndarray, " size"]]:
            value, slope = begin if np.array_equal(u, self.origin) else self.loss(u)
            return value / steepness, slope / steepness

        bounds = list(zip(self.origin - self.reach, self.origin + self.reach, strict=True))
        limits = {"maxiter": max_steps, "gtol": tolerance / steepness, "ftol": 1e-12}
        minimize(scaled, self.origin, jac=True, method="L-BFGS-B", bounds=bounds, options=limits)

    def top(self) -> tuple[dict[str, np.ndarray], Posterior, float, tuple[str, ...]]:
        """The best point, its posterior and slope, and which inputs end at their reach while the evidence rises."""
        assert self.best is not None
        _, posterior, gradient = self.best
        values = {name: np.asarray(posterior.arrays[name], float) for name in self.names}
        moved = self._joined({name: self.ways[name].free(values[name]) for name in self.names}) - self.origin
        outward = (np.abs(moved) > 0.999 * self.reach) & (gradient * moved > 0.0)
        slope = float(np.max(np.abs(np.where(outward, 0.0, gradient))))
        return values, posterior, slope, tuple(name for name, part in self._split(outward).items() if part.any())


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

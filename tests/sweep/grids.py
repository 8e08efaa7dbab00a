"""Posterior moments and evidence of a small model by brute force: states enumerated, the rest on a dense grid.

The grid is a tensor of trapezoids in unconstrained coordinates, whitened by the posterior's covariance and stretched
by sinh towards the tails, where the rule converges faster than any power of the step for smooth densities. A second
grid of another step gives the error.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
from scipy.special import expit, logsumexp
from small import Named, Small, Variable, evaluate, log_terms, satisfied, simulate

STRETCH = 0.35
POINTS = {1: 601, 2: 101, 3: 33, 4: 19}
REACH = {1: 11.0, 2: 10.0, 3: 8.0, 4: 6.5}  # of the stretched coordinate


@dataclasses.dataclass(frozen=True)
class Truth:
    """Means and sds by name, shaped (n, k, t, ...); class probabilities of discrete variables; and their error."""

    evidence: float
    mean: dict[str, np.ndarray]
    sd: dict[str, np.ndarray]
    error: float  # of the means in sds, of the sds' logarithms, and of the evidence


class Oracle:
    """The posterior of `small` given inputs, observed values and which of these are missing, shaped (1, n, k, t)."""

    def __init__(self, small: Small, given: dict[str, Any], seen: dict[str, Any], missing: dict[str, Any]) -> None:
        self.small, self.given, self.seen, self.missing = small, given, seen, missing
        latent = [v for v in small.variables if v.name not in seen]
        self.discrete = [v for v in latent if v.kind in ("boolean", "category")]
        self.continuous = [v for v in latent if v.kind not in ("boolean", "category")]
        self.dimension = sum(_coordinates(v, small) for v in self.continuous)

    def combinations(self) -> list[dict[str, np.ndarray]]:
        """All joint states of the discrete variables."""
        shapes = [self.small.shape(v) for v in self.discrete]
        options = [
            range(v.size or 2) for v, shape in zip(self.discrete, shapes, strict=True) for _ in range(_size(shape))
        ]
        found = []
        for flat in itertools.product(*options):
            values, start = {}, 0
            for v, shape in zip(self.discrete, shapes, strict=True):
                part = flat[start : start + _size(shape)]
                values[v.name] = np.asarray(part, float).reshape(1, *shape)
                start += len(part)
            found.append(values)
        return found

    def values(self, z: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Values of the continuous variables at unconstrained points, and the log Jacobian."""
        found, start, jacobian = {}, 0, np.zeros(len(z))
        for v in self.continuous:
            count = _coordinates(v, self.small)
            value, change = _forward(v, z[:, start : start + count], self.small)
            found[v.name], jacobian, start = value, jacobian + change, start + count
        return found, jacobian

    def joint(self, z: np.ndarray) -> np.ndarray:
        """log density at the points z, one column for each joint state."""
        values, jacobian = self.values(z)
        with np.errstate(all="ignore"):
            columns = [
                log_terms(self.small, {**self.given, **self.seen, **values, **states}, self.missing)
                for states in self.combinations()
            ]
        table = np.stack([np.broadcast_to(c, len(z)) for c in columns], 1) + jacobian[:, None]
        return np.where(np.isnan(table), -np.inf, table)

    def start(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """A rough mean and covariance: draws of the prior, weighted."""
        draws = simulate(self.small, self.given, rng, 3000)
        z = np.concatenate([_backward(v, draws[v.name], self.small) for v in self.continuous], 1)
        log = logsumexp(self.joint(z), 1) - self._prior_proxy(z)
        return _moments(z, log)

    def _prior_proxy(self, z: np.ndarray) -> np.ndarray:
        """The draws' own density, by a Gaussian in unconstrained coordinates: only a start."""
        centre, spread = np.median(z, 0), np.cov(z.T).reshape(z.shape[1], z.shape[1]) + 1e-6 * np.eye(z.shape[1])
        gap = z - centre
        return -0.5 * np.einsum("gi,ij,gj->g", gap, np.linalg.inv(spread), gap)

    def place(self, seed: int, points: int, rounds: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Mean and covariance of the posterior in unconstrained coordinates, as so many coarse grids find them."""
        mean, covariance = self.start(np.random.default_rng(seed))
        covariance = 2.0 * covariance
        for _ in range(rounds):
            if not np.all(np.isfinite(covariance)) or np.linalg.eigvalsh(covariance)[0] <= 0:
                return None
            z, weights = _grid(mean, covariance, max(points, 15), REACH[self.dimension])
            table = self.joint(z)
            if not np.isfinite(table).any():
                return None
            fresh, wider = _moments(z, logsumexp(table, 1) + weights)
            moved = np.abs(fresh - mean) / np.sqrt(np.diag(wider))
            growth = np.diag(wider) / np.diag(covariance)
            mean, covariance = fresh, wider
            if moved.max() < 0.05 and np.abs(np.log(growth)).max() < 0.1:
                break
        return mean, covariance

    def solve(self, seed: int = 0) -> Truth | None:
        """The truth; None where the grid does not settle."""
        if not self.dimension:
            table = self.joint(np.zeros((1, 0)))
            return self._truth(np.zeros((1, 0)), table, np.zeros(1), 0.0)
        points = POINTS[self.dimension]
        place = self.place(seed, points // 2, 8)
        if place is None:
            return None
        grids = [_grid(*place, n, REACH[self.dimension]) for n in (points, points - points // 5)]
        fine, coarse = (self._truth(z, self.joint(z), weights, 0.0) for z, weights in grids)
        error = abs(fine.evidence - coarse.evidence)
        for name in fine.mean:
            sd = np.maximum(fine.sd[name], 1e-12)
            error = max(error, float(np.max(np.abs(fine.mean[name] - coarse.mean[name]) / sd)))
            error = max(error, float(np.max(np.abs(np.log(sd / np.maximum(coarse.sd[name], 1e-12))))))
        return dataclasses.replace(fine, error=error) if np.isfinite(error) else None

    def _truth(self, z: np.ndarray, table: np.ndarray, weights: np.ndarray, error: float) -> Truth:
        log = table + weights[:, None]
        evidence = float(logsumexp(log))
        p = np.exp(log - evidence)
        values, _ = self.values(z)
        total = p.sum(1)
        mean, sd = {}, {}
        for name, value in values.items():
            mean[name], sd[name] = _mean_sd(value, total)
        combinations = self.combinations()
        columns = p.sum(0)
        for v in self.discrete:
            states = np.stack([c[v.name][0] for c in combinations])
            classes = np.arange(v.size or 2)
            probability = np.einsum("c,c...s->...s", columns, states[..., None] == classes)
            mean[v.name] = probability[..., 1] if v.kind == "boolean" else probability
            sd[v.name] = np.ones_like(mean[v.name])
        for s in self.small.statements:
            if isinstance(s, Named) and not s.observed:
                parts = [evaluate(s.expression, {**self.given, **self.seen, **values, **c}) for c in combinations]
                parts = [np.broadcast_to(x, (len(z), *x.shape[1:])).astype(float) for x in parts]
                first = sum(np.einsum("g,g...->...", p[:, i], x) for i, x in enumerate(parts))
                second = sum(np.einsum("g,g...->...", p[:, i], (x - first) ** 2) for i, x in enumerate(parts))
                mean[s.name] = first
                sd[s.name] = np.ones_like(first) if s.kind == "boolean" else np.sqrt(second)
        return Truth(evidence, mean, sd, error)


def accepted(small: Small, given: dict[str, Any], rng: np.random.Generator, tries: int = 200) -> dict[str, Any] | None:
    """One draw of everything that satisfies the constraints, shaped (1, n, k, t); None where none was found."""
    draws = simulate(small, given, rng, tries)
    kept = np.flatnonzero(np.broadcast_to(satisfied(small, draws), tries))
    if not len(kept):
        return None
    return {name: a[kept[0] : kept[0] + 1] if len(a) == tries else a for name, a in draws.items()}


def _mean_sd(value: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = np.einsum("g,g...->...", weights, value)
    return mean, np.sqrt(np.einsum("g,g...->...", weights, (value - mean) ** 2))


def _moments(z: np.ndarray, log: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    w = np.exp(log - logsumexp(log))
    mean = w @ z
    gap = z - mean
    return mean, (w[:, None] * gap).T @ gap + 1e-10 * np.eye(z.shape[1])


def _grid(
    mean: np.ndarray, covariance: np.ndarray, points: int, reach: float, turned: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Points, and log weights; of a turned grid no two points share a coordinate, so that marginals are resolved."""
    u = np.linspace(-reach, reach, points)
    white, slope = np.sinh(STRETCH * u) / STRETCH, np.log(np.cosh(STRETCH * u)) + np.log(u[1] - u[0])
    d = len(mean)
    mesh = np.stack([m.ravel() for m in np.meshgrid(*[white] * d, indexing="ij")], 1)
    weights = sum(m.ravel() for m in np.meshgrid(*[slope] * d, indexing="ij"))
    root = np.linalg.cholesky(covariance)
    weights = np.asarray(weights) + np.log(np.diag(root)).sum()
    if turned:
        root = root @ np.linalg.qr(np.random.default_rng(5).normal(size=(d, d)))[0]
    return mean + mesh @ root.T, weights


# Unconstrained coordinates --------------------------------------------------------------------------------------------


def _size(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape))


def _coordinates(v: Variable, small: Small) -> int:
    shape = small.shape(v)
    each = {"simplex": v.size - 1, "vector": v.size, "posdef": v.size * (v.size + 1) // 2}
    return _size(shape[:3]) * each.get(v.kind, 1)


def _interval(v: Variable) -> tuple[float, float]:
    """The support: of the kind, or bounds that are numbers."""
    args = v.term[1] if isinstance(v.term[1], dict) else {}
    if "low" in args and args["low"][0] == args["high"][0] == "number":
        return float(args["low"][1]), float(args["high"][1])
    if v.term[0] == "von_mises":
        return -np.pi, np.pi
    return {"positive": (0.0, np.inf), "unit": (0.0, 1.0)}.get(v.kind, (-np.inf, np.inf))


def _forward(v: Variable, z: np.ndarray, small: Small) -> tuple[np.ndarray, np.ndarray]:
    shape = small.shape(v)
    if v.kind == "simplex":
        return _sticks(z.reshape(len(z), *shape[:3], v.size - 1))
    if v.kind == "posdef":
        return _cholesky(z, shape)
    low, high = _interval(v)
    if np.isinf(low) and np.isinf(high):
        return z.reshape(-1, *shape), np.zeros(len(z))
    if np.isinf(high):
        return (low + np.exp(z)).reshape(-1, *shape), z.sum(1)
    if np.isinf(low):
        return (high - np.exp(z)).reshape(-1, *shape), z.sum(1)
    slope = -np.logaddexp(0.0, z) - np.logaddexp(0.0, -z) + np.log(high - low)
    inside = np.clip(expit(z), 1e-15, 1.0 - 1e-15)
    return (low + (high - low) * inside).reshape(-1, *shape), slope.sum(1)


def _cholesky(z: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """A single 2 x 2 matrix of its Cholesky root [[exp(a), 0], [c, exp(b)]]."""
    a, c, b = z.T
    root = np.stack([np.exp(a), 0.0 * a, c, np.exp(b)], 1).reshape(-1, 2, 2)
    return (root @ root.swapaxes(1, 2)).reshape(-1, *shape), 3.0 * a + 2.0 * b + 2.0 * np.log(2.0)


def _sticks(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    left, parts, log = np.ones(z.shape[:-1]), [], np.zeros(len(z))
    for i in range(z.shape[-1]):
        share = expit(z[..., i])
        log += (np.log(left) - np.logaddexp(0.0, z[..., i]) - np.logaddexp(0.0, -z[..., i])).reshape(len(z), -1).sum(1)
        parts.append(left * share)
        left = np.maximum(left * expit(-z[..., i]), 1e-300)
    return np.maximum(np.stack([*parts, left], -1), 1e-300), log


def _backward(v: Variable, x: np.ndarray, small: Small) -> np.ndarray:
    x = np.broadcast_to(x, (len(x), *small.shape(v)))
    flat = x.reshape(len(x), -1)
    if v.kind == "posdef":
        root = np.linalg.cholesky(x.reshape(len(x), 2, 2))
        return np.stack([np.log(root[:, 0, 0]), root[:, 1, 0], np.log(root[:, 1, 1])], 1)
    if v.kind == "simplex":
        left, parts = np.ones(x.shape[:-1]), []
        for i in range(v.size - 1):
            share = np.clip(x[..., i] / np.maximum(left, 1e-300), 1e-9, 1 - 1e-9)
            parts.append(np.log(share) - np.log1p(-share))
            left = np.maximum(left - x[..., i], 1e-12)
        return np.stack(parts, -1).reshape(len(x), -1)
    low, high = _interval(v)
    if np.isinf(low) and np.isinf(high):
        return flat
    if np.isinf(high):
        return np.log(np.maximum(flat - low, 1e-30))
    if np.isinf(low):
        return np.log(np.maximum(high - flat, 1e-30))
    share = np.clip((flat - low) / (high - low), 1e-9, 1 - 1e-9)
    return np.log(share) - np.log1p(-share)

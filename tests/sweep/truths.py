"""The posterior of a small model, of its named expressions and of what it predicts, by enumeration and adaptive grids.

Discrete variables and counts are enumerated (counts up to a bound that the posterior must not reach), the other
variables that something depends on lie on grids in unconstrained coordinates (`grids`), refined until two grids of
different step and reach agree. A variable that nothing depends on, and a missing entry, are not integrated over: the
law of their term (`laws`) is averaged over the posterior of its arguments, which is exact. Nothing here is of the
engine.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from grids import REACH, Oracle, _coordinates, _grid
from laws import LAW, Law, mixed
from scipy.special import logsumexp
from small import LINKED, Named, Small, Variable, _is_boolean, evaluate, log_terms, simulate

DISCRETE = ("boolean", "category", "count")
LEVELS = {0: (1,), 1: (301, 1001, 4001), 2: (61, 97, 161, 281), 3: (25, 35, 49), 4: (15, 19)}  # points of each axis
NARROWER = 0.87  # the reach of every other grid, so that an infinite moment does not settle
ROWS = 400_000  # grid points times joint states
BLOCK = 60_000
SETTLED = 2e-3  # refined until two grids differ by less
JOINT = (*LINKED, "gaussian_process")  # elements depend on each other
TOP = 1e-7  # mass at the largest count that is enumerated


@dataclasses.dataclass(frozen=True)
class Part:
    """The posterior of one name: weighted values, or a law averaged with weights."""

    mean: np.ndarray
    sd: np.ndarray
    weights: np.ndarray
    values: np.ndarray | None = None
    law: Law | None = None

    def cdf(self, q: np.ndarray) -> np.ndarray | None:
        """P(x <= q), element by element of an array (n, k, t); None where there is no order or an atom."""
        if self.law is not None:
            if self.law.cdf is None:
                return None
            return np.einsum(
                "r,r...->...", self.weights, np.broadcast_to(self.law.cdf(q), (len(self.weights), *q.shape))
            )
        assert self.values is not None
        found = np.empty(q.shape)
        values = np.broadcast_to(self.values, (len(self.weights), *q.shape))
        for at in np.ndindex(q.shape):
            points, index = np.unique(_rounded(values[(slice(None), *at)]), return_inverse=True)
            mass = np.bincount(index, self.weights)
            found[at] = np.interp(q[at], points, np.cumsum(mass) - 0.5 * mass)
        return found

    def atom(self) -> float:
        """The largest mass of a single value: small and shrinking with the grid where there is a density."""
        assert self.values is not None
        flat = np.broadcast_to(self.values, (len(self.weights), *self.values.shape[1:])).reshape(len(self.weights), -1)
        index = [np.unique(_rounded(column), return_inverse=True)[1] for column in flat.T]
        return max(float(np.bincount(i, self.weights).max()) for i in index)


@dataclasses.dataclass(frozen=True)
class Truth:
    """Evidence and the parts by name, and what they were on a coarser grid."""

    evidence: float
    parts: dict[str, Part]
    coarse: Truth | None = None
    doubt: str = ""

    def error(self, name: str) -> float:
        """Of the mean, in sds, and of the sd's logarithm."""
        fine = self.parts[name]
        if not np.all(np.isfinite(fine.mean) & np.isfinite(fine.sd)):
            return np.inf
        if self.coarse is None:
            return 0.0
        rough = self.coarse.parts[name]
        with np.errstate(all="ignore"):
            shift = np.max(np.abs(fine.mean - rough.mean) / np.maximum(fine.sd, 1e-12))
            ratio = np.max(np.abs(np.log(np.maximum(fine.sd, 1e-12) / np.maximum(rough.sd, 1e-12))))
        return float(np.max([shift, ratio])) if np.isfinite(shift + ratio) else np.inf

    def endless(self, name: str, doubt: float) -> bool:
        """Whether a moment is infinite: of its law, or growing with the grid although the quantiles stay."""
        part = self.parts[name]
        if part.law is not None and not np.all(np.isfinite(part.law.mean) & np.isfinite(part.law.variance)):
            return True
        if self.error(name) <= doubt or self.coarse is None:
            return False
        found = self.cdf(name, _middle(part))
        return found is not None and found[1] <= doubt

    def evidence_error(self) -> float:
        return abs(self.evidence - self.coarse.evidence) if self.coarse else 0.0

    def cdf(self, name: str, q: np.ndarray) -> tuple[np.ndarray, float] | None:
        """P(x <= q) and its error; None where it has no meaning."""
        part = self.parts[name]
        found = part.cdf(q)
        if found is None or self.coarse is None:
            return None if found is None or part.law is None else (found, 0.0)
        rough = self.coarse.parts[name]
        if part.law is None and part.atom() > 0.02 and part.atom() > 0.93 * rough.atom():
            return None
        return found, float(np.max(np.abs(found - rough.cdf(q))))  # type: ignore[operator]


class Solver(Oracle):
    """The posterior of `small` given inputs, observed values and which of these are missing, shaped (1, n, k, t)."""

    def __init__(self, small: Small, given: dict[str, Any], seen: dict[str, Any], missing: dict[str, Any]) -> None:
        self.whole = small
        unseen = [v for v in small.variables if v.name not in seen]
        used = set(_references(small))
        self.leaves = [v for v in unseen if v.name not in used and v.term[0] not in JOINT]
        self.late = [*self.leaves, *(v for v in small.variables if v.name in missing)]
        left = [s for s in small.statements if s not in self.leaves]
        core = dataclasses.replace(small, statements=tuple(t for s in left for t in _without_spike(s, seen)))
        self.small, self.given, self.seen, self.missing = core, given, seen, missing
        latent = [v for v in core.variables if v.name not in seen]
        self.discrete = [v for v in latent if v.kind in DISCRETE]
        self.continuous = [v for v in latent if v.kind not in DISCRETE]
        self.dimension = sum(_coordinates(v, core) for v in self.continuous)
        self.sizes = self._sizes() if given or not small.givens else {}

    def _sizes(self) -> dict[str, int]:
        """How many values each discrete variable has; of unbounded counts those that prior draws reach, and more."""
        found = {v.name: v.size or 2 for v in self.discrete if v.kind != "count"}
        counts = [v for v in self.discrete if v.kind == "count"]
        if counts:
            with np.errstate(all="ignore"):
                draws = simulate(self.small, self.given, np.random.default_rng(0), 2000)
            for v in counts:
                bound = v.term[1]["n"] if v.term[0] == "binomial" and v.term[1]["n"][0] == "number" else None
                highest = float(np.max(draws[v.name]))
                found[v.name] = int(bound[1]) + 1 if bound else int(min(12 + 1.6 * highest, 140))
        return found

    def states(self) -> dict[str, np.ndarray]:
        """All joint states, by name, shaped (states, n, k, t)."""
        shapes = {v.name: self.small.shape(v) for v in self.discrete}
        ranges = [np.arange(self.sizes[n]) for n, shape in shapes.items() for _ in range(int(np.prod(shape)))]
        table = np.stack([g.ravel() for g in np.meshgrid(*ranges, indexing="ij")], 1) if ranges else np.zeros((1, 0))
        found, start = {}, 0
        for name, shape in shapes.items():
            width = int(np.prod(shape))
            found[name] = table[:, start : start + width].reshape(-1, *shape).astype(float)
            start += width
        return found

    def count(self) -> int:
        """Of joint states, without making them."""
        return int(np.prod([float(self.sizes[v.name]) ** np.prod(self.small.shape(v)) for v in self.discrete]))

    def joint(self, z: np.ndarray) -> np.ndarray:
        """log density at the points z, one column for each joint state."""
        values, jacobian = self.values(z)
        states, total, g = self.states(), self.count(), len(z)
        columns = []
        for block in _blocks(total, max(BLOCK // g, 1)):
            env = {n: np.tile(v, (len(block), *[1] * (v.ndim - 1))) for n, v in values.items()}
            env |= {n: np.repeat(s[block], g, 0) for n, s in states.items()}
            with np.errstate(all="ignore"):
                log = log_terms(self.small, {**self.given, **self.seen, **env}, self.missing)
            columns.append(np.broadcast_to(log, len(block) * g).reshape(len(block), g))
        table = np.concatenate(columns).T + jacobian[:, None]
        return np.where(np.isnan(table), -np.inf, table)

    def truth(self, seed: int = 0) -> Truth | None:
        """None where no grid settles, or the model is larger than what is tried."""
        total = self.count()
        if self.dimension not in LEVELS or total * LEVELS[self.dimension][0] ** self.dimension > ROWS:
            return None
        if not self.dimension:
            return self._of(np.zeros((1, 0)), np.zeros(1), None)
        with np.errstate(all="ignore"):
            place = self.place(seed, LEVELS[self.dimension][0] * 2 // 3, 10)
        if place is None:
            return None
        found: Truth | None = None
        for level, points in enumerate(LEVELS[self.dimension]):
            if total * points**self.dimension > ROWS:
                break
            reach = REACH[self.dimension] * (NARROWER if level % 2 else 1.0)
            finer = self._of(*_grid(*place, points, reach, turned=True), found)
            if finer is None:
                return None
            found = dataclasses.replace(finer, coarse=found and dataclasses.replace(found, coarse=None))
            if level and found.evidence_error() < 1e-4 and max(map(found.error, found.parts)) < SETTLED:
                break
        return found if found and found.coarse else None

    def _of(self, z: np.ndarray, weights: np.ndarray, coarse: Truth | None) -> Truth | None:
        table = (self.joint(z) + weights[:, None]).T
        evidence = float(logsumexp(table))
        if not np.isfinite(evidence):
            return None
        p = np.exp(table - evidence)
        state, point = np.nonzero(p > 1e-15)
        kept = p[state, point]
        kept = kept / kept.sum()
        continuous, _ = self.values(z)
        env: dict[str, Any] = {n: v[point] for n, v in continuous.items()}
        env |= {n: s[state] for n, s in self.states().items()}
        scope = {**self.given, **self.seen, **env}
        parts = {}
        with np.errstate(all="ignore"):
            for s in self.small.statements:
                if isinstance(s, Named):
                    scope[s.name] = np.asarray(evaluate(s.expression, scope), float)
                    if not s.observed:
                        parts[s.name] = _part(scope[s.name], kept, s.kind, s.size)
                elif isinstance(s, Variable) and s.name in env:
                    parts[s.name] = _part(env[s.name], kept, s.kind, s.size)
            for v in self.late:
                parts[v.name] = _averaged(law_of(v.term, scope, self.whole), kept, v.kind)
        top = [n for n in self.sizes if self._unbounded(n) and kept[_first(env[n]) == self.sizes[n] - 1].sum() > TOP]
        return Truth(evidence, parts, coarse, f"{top[0]} may be larger than {self.sizes[top[0]]}" if top else "")

    def _unbounded(self, name: str) -> bool:
        v = next(v for v in self.discrete if v.name == name)
        return v.kind == "count" and not (v.term[0] == "binomial" and v.term[1]["n"][0] == "number")


def law_of(term: Any, env: dict[str, Any], small: Small) -> Law:
    """The law of a term at arrays of values by name."""
    if term[0] == "switch":
        cases = [law_of(t, env, small) for t in term[2]]
        boolean = len(cases) == 2 and _is_boolean(term[1], small)
        return mixed(evaluate(term[1], env).astype(int), cases[::-1] if boolean else cases)
    return LAW[term[0]](**{edge: evaluate(e, env) for edge, e in term[1].items()})


def _part(value: np.ndarray, weights: np.ndarray, kind: str, size: int) -> Part:
    if kind == "category":
        value = (value[..., None] == np.arange(size)).astype(float)
    mean = _expected(weights, value)
    spread = _expected(weights, (value - mean) ** 2)
    discrete = kind in ("boolean", "category")
    return Part(mean, np.ones_like(mean) if discrete else np.sqrt(spread), weights, value)


def _averaged(law: Law, weights: np.ndarray, kind: str) -> Part:
    each, variance = np.broadcast_arrays(law.mean, law.variance)
    mean = _expected(weights, each)
    if kind in ("boolean", "category"):
        return Part(mean, np.ones_like(mean), weights, law=law)
    spread = _expected(weights, variance) + _expected(weights, (each - mean) ** 2)
    return Part(mean, np.sqrt(spread), weights, law=law)


def _expected(weights: np.ndarray, value: np.ndarray) -> np.ndarray:
    return np.einsum("r,r...->...", weights, np.broadcast_to(value, (len(weights), *value.shape[1:])))


def _middle(part: Part) -> np.ndarray:
    """The medians, element by element; of a law those of its means."""
    each = part.values if part.law is None else part.law.mean
    assert each is not None
    values = np.broadcast_to(each, (len(part.weights), *each.shape[1:]))
    found = np.empty(values.shape[1:])
    for at in np.ndindex(found.shape):
        order = np.argsort(values[(slice(None), *at)])
        index = np.searchsorted(np.cumsum(part.weights[order]), 0.5)
        found[at] = values[(order[min(index, len(order) - 1)], *at)]
    return found


def _rounded(x: np.ndarray) -> np.ndarray:
    """Without the last digits, so that points of a grid that agree are one."""
    unit = 1e-9 * max(float(np.ptp(x)), 1e-300)
    return np.round(x / unit) * unit


def _first(value: np.ndarray) -> np.ndarray:
    return value.reshape(len(value), -1)[:, 0]


def _blocks(total: int, size: int) -> Iterator[np.ndarray]:
    for start in range(0, total, size):
        yield np.arange(start, min(start + size, total))


def _references(small: Small) -> Iterator[str]:
    for s in small.statements:
        yield from _names(s.term if isinstance(s, Variable) else s.expression)


def _names(e: Any) -> Iterator[str]:
    if isinstance(e, tuple) and len(e) == 2 and e[0] == "ref":
        yield e[1]
    elif isinstance(e, tuple | list):
        for part in e:
            yield from _names(part)
    elif isinstance(e, dict):
        for part in e.values():
            yield from _names(part)


def _without_spike(s: Any, seen: dict[str, Any]) -> list[Any]:
    """A latent spike and slab as the product of a boolean and a Gaussian."""
    if not isinstance(s, Variable) or s.term[0] != "spike_and_slab" or s.name in seen:
        return [s]
    args = dict(s.term[1])
    active = Variable(f"{s.name}_on", "boolean", ("bernoulli", {"p": args.pop("probability")}), s.plates)
    slab = Variable(f"{s.name}_slab", "real", ("gaussian", {"mean": ("number", 0.0), **args}), s.plates)
    return [active, slab, Named(s.name, "real", ("mul", ("ref", active.name), ("ref", slab.name)))]

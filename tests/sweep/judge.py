"""The laws that every small model must obey, and one function that tries them on one data set."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
from generator import draw_givens, small_model
from grids import POINTS, Oracle, Truth, accepted
from small import Named, Small, Variable, build, completed, slim, wide

import cavity as cv
from cavity.compiler.blocks.energy import EnergyBlock
from cavity.compiler.explain import loopy

METHODS = {"auto": "auto", "ep": "ep", "vmp": "vmp", "power": cv.power(0.5)}
CODES = {"converged", "slow", "oscillating", "diverged", "contradiction"}
EXACT = 1e-6  # where explain promises exactness
BOUND = 1e-6  # how far a bound may exceed what it bounds
LARGEST = 600_000  # grid points times joint states
SETTLED = 0.05  # a grid whose error is larger is no oracle
SHIFT, RATIO, PROBABILITY = 0.5, 2.0, 0.25  # beyond these an answer is off


@dataclasses.dataclass(frozen=True)
class Case:
    """One data set of one structure: the data as the model takes them, and as NumPy does."""

    data: dict[str, np.ndarray]
    given: dict[str, np.ndarray]
    seen: dict[str, np.ndarray]
    missing: dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What came of one inference: `kind` is fine, refused, off (and told), unsure, or a broken law."""

    kind: str
    text: str = ""
    shift: float = 0.0
    ratio: float = 1.0

    @property
    def broken(self) -> bool:
        return self.kind not in ("fine", "refused", "told", "unsure", "unfinished")


def structure(seed: int) -> tuple[Small, cv.Model] | None:
    """The structure of a seed and its model; None where it is larger than the oracle."""
    small = small_model(seed)
    model = build(small)
    small = completed(small, model)
    empty = Oracle(small, {}, dict.fromkeys(small.observed), {})
    states = np.prod([(v.size or 2) ** np.prod(small.shape(v)) for v in empty.discrete])
    work = POINTS.get(empty.dimension, 10**9) ** max(empty.dimension, 1) * states if empty.dimension else states
    return (small, model) if work <= LARGEST else None


def draw(small: Small, seed: int) -> Case | None:
    """A data set: mostly drawn from the model itself, at times with outliers or missing entries."""
    rng = np.random.default_rng([small.seed, seed])
    givens = draw_givens(small, rng)
    given = {g.name: wide(givens[g.name], g.plates) for g in small.givens}
    drawn = accepted(small, given, rng)
    if drawn is None:
        return None
    style = rng.random()
    data, seen, missing = dict(givens), {}, {}
    for s in small.statements:
        if not getattr(s, "observed", False):
            continue
        value = np.array(drawn[s.name], float)
        if not np.all(np.isfinite(value)) or np.abs(value).max() > 1e5:
            return None
        if isinstance(s, Variable) and s.kind == "real" and style < 0.12:
            value = value + rng.normal(0.0, 4.0, value.shape)
        if s.kind == "positive":
            value = np.maximum(value, 1e-8)
        seen[s.name] = value
        if isinstance(s, Named):
            plates: tuple[str, ...] = ()
        else:
            plates = s.plates
        data[s.name] = slim(value[0], plates) if isinstance(s, Variable) else value
    return Case(data, given, seen, missing)


def oracle(small: Small, case: Case) -> Truth | None:
    return Oracle(small, case.given, case.seen, case.missing).solve()


class Structure:
    """One structure under one method: compiled once, tried on many data sets."""

    def __init__(self, seed: int, method: str) -> None:
        found = structure(seed)
        self.seed, self.method, self.small = seed, method, None
        if found is None:
            return
        self.small, self.model = found
        self.plates = {n: tuple(p.name for p in e.plates) for n, e in {**self.model.randoms, **self.model.lets}.items()}
        self.program: Any = None

    def case(self, number: int) -> Case | None:
        assert self.small is not None
        case = draw(self.small, number)
        if case is None:
            return None
        for s in self.small.statements:
            if isinstance(s, Named) and s.observed:
                wanted = (1, *(self.small.sizes.get(p, 1) if p in self.plates[s.name] else 1 for p in ("n", "k", "t")))
                full = np.broadcast_to(case.seen[s.name], wanted)
                case.data[s.name] = slim(full[0], self.plates[s.name])
        data = {
            n: a > 0.5 if self._boolean(n) else a.astype(int) if self._whole(n) else a for n, a in case.data.items()
        }
        return dataclasses.replace(case, data=data)

    def _kind(self, name: str) -> str:
        assert self.small is not None
        return next((s.kind for s in self.small.statements if getattr(s, "name", "") == name), "")

    def _boolean(self, name: str) -> bool:
        return self._kind(name) == "boolean"

    def _whole(self, name: str) -> bool:
        return self._kind(name) in ("category", "count")

    def try_one(self, number: int, trust: bool = True) -> Verdict | None:
        """Infers and judges; None where no data set was drawn."""
        case = self.case(number)
        if case is None or self.small is None:
            return None
        try:
            if self.program is None:
                self.program = self._compiled()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                posterior = self.program(case.data)
        except cv.CavityError as error:
            return Verdict("refused", f"{type(error).__name__}: {error}")
        except Exception as error:  # any other is a broken law, and reported with the seed
            return Verdict("crash", f"{type(error).__name__}: {str(error)[:300]}")
        return self.judge(posterior, case, trust)

    def _compiled(self) -> Any:
        """Under the method asked for; where it has no operator, under auto."""
        assert self.small is not None
        try:
            return cv.compile(self.model, self.small.observed, method=METHODS[self.method], tolerance=1e-8)
        except cv.UnsupportedError:
            if self.method == "auto":
                raise
            self.method = "auto"
            return self._compiled()

    def judge(self, posterior: Any, case: Case, trust: bool) -> Verdict:
        names = [s.name for s in self.small.statements if getattr(s, "name", "") and s.name not in case.seen]
        try:
            means = {name: np.asarray(posterior[name].mean) for name in names}
            sds = {name: np.asarray(posterior[name].sd) for name in names}
        except cv.CavityError as error:
            return Verdict("refused", f"marginal: {type(error).__name__}: {error}")
        except Exception as error:
            return Verdict("crash", f"marginal: {type(error).__name__}: {str(error)[:300]}")
        if posterior.code not in CODES:
            return Verdict("code", posterior.code)
        if posterior.code == "contradiction":
            truth = oracle(self.small, case)
            possible = truth is not None and truth.error < SETTLED and np.isfinite(truth.evidence)
            return Verdict("contradiction" if possible else "fine", f"evidence {truth and truth.evidence}")
        numbers = [*means.values(), *sds.values(), np.asarray(posterior.log_evidence)]
        if not all(np.all(np.isfinite(a)) for a in numbers):
            bad = [n for n in names if not np.all(np.isfinite(means[n]) & np.isfinite(sds[n]))]
            return Verdict("nan", f"{bad or 'evidence'} with code {posterior.code}")
        truth = oracle(self.small, case)
        if truth is None or truth.error > SETTLED:
            return Verdict("unsure", f"grid error {truth and truth.error}")
        return self.compare(posterior, means, sds, truth, trust)

    def compare(self, posterior: Any, means: dict[str, Any], sds: dict[str, Any], truth: Truth, trust: bool) -> Verdict:
        shift, ratio, probability, predicted_off, where = 0.0, 1.0, 0.0, 0.0, ""
        # What nothing observed depends on is predicted in a family that matches some moments only: its mean counts.
        predicted = set(self.program.plan.forward)
        for name in means:
            wanted, spread = self._shaped(truth, name)
            gap = np.max(np.abs(means[name] - wanted) / np.maximum(spread, 1e-12))
            if self._kind(name) in ("boolean", "category"):
                if gap > probability:
                    probability, where = float(gap), where or name
                continue
            if name in predicted:
                predicted_off = max(predicted_off, float(gap))
                continue
            found = np.maximum(sds[name], 1e-300) / np.maximum(spread, 1e-300)
            off = float(np.exp(np.max(np.abs(np.log(found)))))
            if gap > shift or off > ratio:
                where = name if gap > SHIFT or off > RATIO else where
            shift, ratio = max(shift, float(gap)), max(ratio, off)
        evidence = posterior.log_evidence - truth.evidence
        text = f"shift {shift:.3g} sd, ratio {ratio:.3g}, probability {probability:.3g}, evidence {evidence:+.3g}"
        text += f" ({where}) grid {truth.error:.1g}, {posterior.code} in {posterior.iterations}"
        if posterior.code != "converged":
            return Verdict("unfinished", text, shift, ratio)
        tolerance = EXACT + 10.0 * truth.error
        if self.exact() and max(shift, np.log(ratio), probability, abs(evidence)) > tolerance:
            return Verdict("inexact", text, shift, ratio)
        if self.bound() and evidence > BOUND + 10.0 * truth.error:
            return Verdict("bound", text, shift, ratio)
        if predicted_off > SHIFT and shift < 0.1 and ratio < 1.2:
            return Verdict("prediction", f"{text} predicted means off by {predicted_off:.3g} sd", shift, ratio)
        if shift > SHIFT or ratio > RATIO or probability > PROBABILITY:
            if not trust:
                return Verdict("told", text, shift, ratio)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    level = posterior.trust().level
            except Exception as error:
                return Verdict("crash", f"trust: {type(error).__name__}: {str(error)[:300]}")
            return Verdict("silent" if level == "good" else "told", f"{text}; trust: {level}", shift, ratio)
        return Verdict("fine", text, shift, ratio)

    def _shaped(self, truth: Truth, name: str) -> tuple[np.ndarray, np.ndarray]:
        return tuple(slim(self._filled(a, name), self.plates[name]) for a in (truth.mean[name], truth.sd[name]))  # type: ignore[return-value]

    def _filled(self, a: np.ndarray, name: str) -> np.ndarray:
        sizes = [self.small.sizes.get(p, 1) if p in self.plates[name] else 1 for p in ("n", "k", "t")]
        return np.broadcast_to(a, (*sizes, *a.shape[3:]))

    def exact(self) -> bool:
        """Whether the plan promises an exact answer: exact operators on a tree, and no mean field."""
        plan = self.program.plan
        tree = not loopy(plan) and not any(
            isinstance(b, EnergyBlock) and b.method.name in ("vmp", "ncvmp") for b in plan.blocks
        )
        exact = all(b.choice.accuracy == "exact" and b.method.name in ("exact", "ep") for b in plan.blocks)
        return tree and exact

    def bound(self) -> bool:
        """Whether the evidence is promised to be a lower bound."""
        plan = self.program.plan
        return all(
            b.method.name in ("exact", "vmp", "ncvmp") and set(b.choice.accuracy.split(", ")) <= {"exact", "bound"}
            for b in plan.blocks
        )

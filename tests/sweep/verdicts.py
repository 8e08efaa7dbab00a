"""The default call `cv.infer(model, data)` of a random model, judged against the oracle of `truths`."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import warnings
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from grids import accepted
from small import Constraint, Named, Small, Variable, build, completed, slim, wide
from truths import Solver, Truth
from vocabulary import WITHOUT_MEAN, focus_of
from whole import whole_model

import cavity as cv

SHIFT, RATIO, PROBABILITY = 0.25, 1.25, 0.1  # beyond these a latent variable is wrong: in sds, of sds, of probabilities
EXACT = 0.01  # beliefs this near the truth are exact; what is made of them must be as near
LEVELS = np.array([0.1, 0.5, 0.9])  # quantiles that are looked at
DOUBT = 0.01  # errors of the oracle beyond which nothing is judged
LARGE = 1e3  # larger data are drawn anew: nobody would not rescale them


@dataclasses.dataclass(frozen=True)
class Case:
    """One data set: as the model takes it, and as NumPy does."""

    data: dict[str, Any]
    given: dict[str, np.ndarray]
    seen: dict[str, np.ndarray]
    missing: dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Gap:
    """How far one marginal is off: mean in sds, sd as a ratio, probabilities, and the distribution function."""

    shift: float = 0.0
    ratio: float = 1.0
    probability: float = 0.0
    cdf: float = 0.0

    @property
    def wrong(self) -> bool:
        return self.shift > SHIFT or self.ratio > RATIO or self.probability > PROBABILITY

    @property
    def moments(self) -> float:
        return max(self.shift, self.ratio - 1.0, self.probability)

    @property
    def largest(self) -> float:
        return max(self.moments, self.cdf)

    def more_than_promised(self, word: str) -> bool:
        """Whether explain() calls exact what is off by more than 1 %."""
        return (word == "exact" and self.largest > EXACT) or (word == "moments" and self.moments > EXACT)

    def __str__(self) -> str:
        return (
            f"shift {self.shift:.3g} sd, sd x{self.ratio:.3g}, probability {self.probability:.3g}, cdf {self.cdf:.3g}"
        )


class Structure:
    """One structure: its model, and data sets by number. It is the seed's, unless one is given."""

    def __init__(self, seed: int, small: Small | None = None) -> None:
        self.seed = seed
        rough = small or whole_model(seed)
        self.model = build(rough)
        self.small = completed(rough, self.model)
        self.plates = {n: tuple(p.name for p in e.plates) for n, e in {**self.model.randoms, **self.model.lets}.items()}
        self.features = features(rough)
        self.absent = self._absent()

    def _absent(self) -> str:
        """The observed variable some of whose entries are missing: one that has a plate, at times."""
        rng = np.random.default_rng([self.seed, 1])
        wanted = rng.random() < 0.2 or focus_of(self.seed)[2] == "missing"
        found = [v.name for v in self.small.variables if v.observed and "n" in v.plates and not v.size]
        return found[0] if found and wanted else ""

    def case(self, number: int) -> Case | None:
        """None where no data of an ordinary size were drawn."""
        rng = np.random.default_rng([self.seed, 2, number])
        for _ in range(20):
            givens = draw_whole(self.small, rng)
            given = {g.name: wide(givens[g.name], g.plates) for g in self.small.givens}
            with np.errstate(all="ignore"):
                drawn = accepted(self.small, given, rng)
            if drawn is not None and all(np.all(np.abs(drawn[n]) < LARGE) for n in self.small.observed):
                return self._case(givens, given, drawn, rng)
        return None

    def _case(self, givens: Any, given: Any, drawn: Any, rng: np.random.Generator) -> Case:
        data: dict[str, Any] = {
            g.name: _typed(givens[g.name], "category" if g.to else g.kind) for g in self.small.givens
        }
        seen, missing = {}, {}
        surprising = rng.random() < 0.12
        for s in self.small.statements:
            if not getattr(s, "observed", False):
                continue
            value = np.array(drawn[s.name], float)
            if isinstance(s, Variable) and s.kind == "real" and surprising and not bounded(s.term):
                value = value + rng.normal(0.0, 3.0, value.shape) * (value != 0)
            seen[s.name] = value = self._filled(value[0], s.name)[None]
            found = _typed(slim(value[0], self.plates[s.name]), s.kind)
            if s.name == self.absent:
                gone = rng.random(value.shape) < 0.4
                missing[s.name] = gone
                holes = slim(gone[0], self.plates[s.name])
                found = (
                    np.ma.masked_array(found, holes)
                    if s.kind in ("boolean", "category", "count")
                    else np.where(holes, np.nan, found)
                )
            data[s.name] = found
        return Case(data, given, seen, missing)

    def _filled(self, a: np.ndarray, name: str) -> np.ndarray:
        sizes = [self.small.sizes.get(p, 1) if p in self.plates[name] else 1 for p in ("n", "k", "t")]
        return np.broadcast_to(a, (*sizes, *a.shape[3:]))

    def kind(self, name: str) -> str:
        return next(s.kind for s in self.small.statements if getattr(s, "name", "") == name)

    def rows(self, draws: int) -> Iterator[dict[str, Any]]:
        """What came of each data set."""
        for number in range(draws):
            case = self.case(number)
            if case is None:
                yield {"seed": self.seed, "draw": number, "kind": "no data"}
                continue
            row = {"seed": self.seed, "draw": number, "focus": "/".join(focus_of(self.seed)), **self.judged(case)}
            yield row
            if row["kind"] == "refused":
                return

    def judged(self, case: Case) -> dict[str, Any]:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                posterior = cv.infer(self.model, case.data)
            except cv.CavityError as error:
                return {"kind": "refused", "text": f"{type(error).__name__}: {error}"}
            except Exception as error:  # any other is a fault, and reported with the seed
                return {"kind": "crashed", "text": f"{type(error).__name__}: {str(error)[:300]}"}
        told = [str(w.message)[:200] for w in said if issubclass(w.category, cv.CavityWarning)]
        answers: dict[str, dict[str, np.ndarray]] = {}
        refused: list[str] = []
        for name in self.asked(case):
            try:
                answers[name] = self.answer(posterior[name], name)
            except cv.CavityError as error:
                refused.append(f"marginal of {name}: {error}")
            except Exception as error:
                return {"kind": "crashed", "text": f"marginal of {name}: {type(error).__name__}: {str(error)[:300]}"}
        row = {
            "code": posterior.code,
            "sweeps": int(np.max(posterior.iterations)),
            "warned": told,
            "refused_marginals": refused,
        }
        bad = [n for n, a in answers.items() if any(np.any(np.isnan(x)) for x in self.with_a_moment(n, a))]
        if not np.isfinite(posterior.log_evidence):
            bad.append("evidence")
        if bad:  # whatever the oracle knows of it
            return {**row, "kind": "nan", "text": f"{bad} with code {posterior.code}"}
        endless = [n for n, a in answers.items() if not all(np.all(np.isfinite(x)) for x in self.with_a_moment(n, a))]
        solver = Solver(self.small, case.given, case.seen, case.missing)
        try:
            truth = solver.truth()
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            truth, failed = None, f"the oracle failed: {error!r}"
        else:
            failed = "no grid"
        if not self.infinite(endless, truth):
            return {**row, "kind": "nan", "text": f"{endless} infinite with code {posterior.code}"}
        if truth is None or truth.doubt:
            return {**row, "kind": "unsettled", "text": truth.doubt if truth else failed}
        pushed = {*self.model.lets, *(v.name for v in solver.late)}
        return {**row, **self.compared(posterior, answers, truth, case, pushed, bool(told))}

    def with_a_moment(self, name: str, answer: dict[str, np.ndarray]) -> list[np.ndarray]:
        """The parts of an answer that are numbers in truth: some terms have quantiles alone."""
        terms = {v.name: v.term[0] for v in self.small.variables}
        return [a for part, a in answer.items() if terms.get(name) not in WITHOUT_MEAN or part == "quantile"]

    def asked(self, case: Case) -> list[str]:
        names = [s.name for s in self.small.statements if getattr(s, "name", "")]
        return [n for n in names if n not in case.seen or n in case.missing]

    def answer(self, marginal: Any, name: str) -> dict[str, np.ndarray]:
        found = {"mean": np.asarray(marginal.mean), "sd": np.asarray(marginal.sd)}
        if self.kind(name) in ("real", "positive", "unit"):
            with contextlib.suppress(cv.UnsupportedError):
                found["quantile"] = np.stack([np.asarray(marginal.quantile(float(q))) for q in LEVELS])
        return found

    def infinite(self, names: list[str], truth: Truth | None) -> bool:
        """Whether what is infinite is so in truth: the mean of a half-Cauchy variable, say. In doubt it is not."""
        return not names or (truth is not None and all(n in truth.parts and truth.endless(n, DOUBT) for n in names))

    def compared(
        self, posterior: Any, answers: Any, truth: Truth, case: Case, forward: set[str], told: bool
    ) -> dict[str, Any]:
        """`forward` names what is made of beliefs: named expressions, missing entries, what nothing depends on."""
        gaps = {n: self.gap(a, truth, n, case) for n, a in answers.items()}
        known = {n: g for n, g in gaps.items() if g is not None}
        beliefs = {n: g for n, g in known.items() if n not in forward}
        pushed = {n: g for n, g in known.items() if n in forward}
        settled = truth.evidence_error() < DOUBT and all(gaps[n] is not None for n in gaps if n not in forward)
        evidence = float(posterior.log_evidence - truth.evidence)
        worst = max((g.largest for g in beliefs.values()), default=0.0)
        words = promises(posterior.explain())
        broken = [n for n, g in beliefs.items() if g.more_than_promised(words.get(n, ""))]
        found = {
            "promised": broken if settled else [],
            "evidence": evidence,
            "beliefs": worst,
            "gaps": {n: str(g) for n, g in known.items() if g.largest > EXACT},
        }
        if not settled and not any(g.wrong for g in known.values()):
            return {**found, "kind": "unsettled", "text": f"evidence to {truth.evidence_error():.2g}"}
        if posterior.code != "converged":
            return {**found, "kind": "not converged", "text": posterior.code}
        off = [n for n, g in pushed.items() if g.largest > EXACT + 2.0 * worst]
        if worst <= EXACT and settled and off:
            moments = any(pushed[n].moments > EXACT + 2.0 * worst for n in off)
            kind = "pushed" if moments else "pushed, shape"
            return {**found, "kind": kind, "text": "; ".join(f"{n}: {pushed[n]}" for n in off)}
        wrong = [n for n, g in known.items() if g.wrong]
        if wrong:
            doubted = [n for n in wrong if words.get(n) == "approximate" or n in forward]
            kind = "wrong, told" if told or (doubted and "approximate" in words.values()) else "wrong, silent"
            text = "; ".join(f"{n}: {known[n]}" for n in wrong)
            return {**found, "kind": kind, "text": text, "only_forward": all(n in forward for n in wrong)}
        return {**found, "kind": "exact" if worst <= EXACT and settled else "near", "text": ""}

    def gap(self, answer: dict[str, np.ndarray], truth: Truth, name: str, case: Case) -> Gap | None:
        """None where the oracle is not sure."""
        if name not in truth.parts:
            return None
        part, error, kind = truth.parts[name], truth.error(name), self.kind(name)
        cdf = self.cdf_gap(answer, truth, name, case)
        if not error <= DOUBT:  # an infinite mean, say: quantiles may still be sure
            return Gap(cdf=cdf) if cdf is not None else None
        entries = slim(case.missing[name][0], self.plates[name]) if name in case.missing else ...
        mean, sd = (slim(self._filled(a, name), self.plates[name]) for a in (part.mean, part.sd))
        if answer["mean"].shape != mean.shape:
            return Gap(shift=np.inf)
        distance = np.abs(answer["mean"] - mean)[entries]
        if kind in ("boolean", "category"):
            far = float(np.max(distance, initial=0.0))
            return Gap(probability=far if np.isfinite(far) else np.inf)
        scale = np.maximum(sd, 1e-6 * (1.0 + np.abs(mean)))[entries]  # what is certain in truth need not be so exactly
        if not all(np.all(np.isfinite(answer[part][entries])) for part in ("mean", "sd")):
            return Gap(shift=np.inf, ratio=np.inf)
        shift = float(np.max(distance / scale, initial=0.0))
        both = np.clip(answer["sd"][entries], 1e-300, 1e300) / scale
        ratio = float(np.exp(np.max(np.abs(np.log(both)), initial=0.0))) if np.any(sd > 1e-6) else 1.0
        return Gap(shift, ratio, 0.0, cdf or 0.0)

    def cdf_gap(self, answer: dict[str, np.ndarray], truth: Truth, name: str, case: Case) -> float | None:
        if "quantile" not in answer or name in case.missing:
            return None
        plates = self.plates[name]
        worst = None
        for level, q in zip(LEVELS, answer["quantile"], strict=True):
            spread = wide(q, plates)[0]
            found = truth.cdf(name, spread)
            if found is None or found[1] > DOUBT:
                continue
            far = float(np.max(np.abs(found[0] - level)))
            worst = max(worst or 0.0, 1.0 if np.isnan(far) else far)
        return worst


def promises(explained: str) -> dict[str, str]:
    """What explain() promises of each variable: exact, in mean and variance or other statistics, or approximate."""
    line = next((x for x in explained.splitlines() if x.startswith("answers")), "")
    found: dict[str, str] = {}
    for word, phrase in (
        ("exact", "exact for"),
        ("moments", "exact in mean and variance for"),
        ("statistics", "exact in E log x and E log\\(1 - x\\) for"),
        ("statistics", "exact in E x and E log x for"),
        ("statistics", "exact in the mean for"),
        ("approximate", "approximate for"),
    ):
        for names in re.findall(rf"(?:^|[ .]){phrase} ([\w, ]+)", line):
            found |= dict.fromkeys(names.split(", "), word)
    return found


def bounded(term: Any) -> bool:
    """Whether a value beyond what was drawn may be impossible."""
    return (
        any(map(bounded, term[2])) if term[0] == "switch" else term[0] in ("uniform", "truncated_gaussian", "von_mises")
    )


def draw_whole(small: Small, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Values of the inputs, shaped by their plates."""
    found = {}
    for g in small.givens:
        shape = tuple(small.sizes[p] for p in g.plates)
        draw = {
            "real": lambda s: rng.normal(0.0, 1.2, s),
            "positive": lambda s: np.exp(rng.uniform(-1.2, 1.0, s)),
            "sharp": lambda s: np.exp(rng.uniform(-9.0, -4.0, s)),
            "unit": lambda s: rng.uniform(0.05, 0.95, s),
            "boolean": lambda s: (rng.random(s) < 0.5).astype(float),
            "vector": lambda s: rng.normal(0.0, 1.0, (*s, 2)),
            "index": lambda s, g=g: rng.integers(small.sizes[g.to], size=s),
            "parent": lambda s: np.array([0, 0, *(rng.integers(i) for i in range(2, s[0]))])[: s[0]],
        }[g.kind]
        found[g.name] = np.asarray(draw(shape))
    return found


def _typed(value: np.ndarray, kind: str) -> np.ndarray:
    return value > 0.5 if kind == "boolean" else value.astype(int) if kind in ("category", "count") else value


def features(small: Small) -> list[str]:
    """What a structure is made of, for the table of what was drawn and what failed."""
    found: list[str] = []
    for s in small.statements:
        if isinstance(s, Variable):
            role = "observed" if s.observed else "predicted" if s.name.startswith("pre") else "prior"
            found += [f"{role}:{s.term[0]}", *_operations(s.term[1:])]
            found += [f"{role} on {p}" for p in s.plates]
        elif isinstance(s, Named):
            found += [f"{'event' if s.observed else 'let'}:{s.expression[0]}", *_operations(s.expression[1:])]
        elif isinstance(s, Constraint):
            found += [f"constraint:{s.expression[0]}", *_operations(s.expression[1:])]
    return sorted(set(found))


def _operations(e: Any) -> Iterator[str]:
    if isinstance(e, dict):
        for edge, part in e.items():
            if edge in ("variance", "precision", "sd", "n", "dof") and part[0] != "number":
                yield f"{edge}="
            yield from _operations(part)
    elif isinstance(e, tuple | list) and e and isinstance(e[0], str) and e[0] not in ("ref", "number", "kernel"):
        yield f"in:{e[0]}"
        for part in e[1:]:
            yield from _operations(part)
    elif isinstance(e, tuple | list) and not (e and isinstance(e[0], str)):
        for part in e:
            yield from _operations(part)


def clear() -> None:
    """What the structures before have compiled."""
    jax.clear_caches()

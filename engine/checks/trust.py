"""How far to trust a posterior: its beliefs against weighted draws of the model's own joint density.

Three witnesses. Weighted draws of the posterior (see `reference`), where their Pareto k allows, give means and standard
deviations to compare with. Where it does not, the curvature of the log density at the beliefs gives standard
deviations. The skewness of the tilted distributions tells which EP factors are far from Gaussian.
"""

from __future__ import annotations

import dataclasses
import time
from typing import NamedTuple

import numpy as np

from ...factors.calls import methods_checked
from ...factors.errors import CavityError, UnsupportedError
from ...factors.switches import double_precision
from ..answers.arviz import joint_belief_draws
from ..answers.inferred import Inferred
from ..answers.outcome import Outcome
from ..answers.verdict import LEVELS
from ..density.expressions_at_draws import values_of_expressions
from ..density.log_density import LogDensity, density_of
from ..options import seed_of
from .nested import draws_of
from .psis import smoothed
from .reference import (
    DRAWS,
    LARGEST_DENSE,
    Draws,
    Functions,
    Reference,
    belief_draws,
    centred,
    fresh_draws,
    functions,
    spread_of,
)
from .remedies import remedy
from .skewness import Shape, tilted_shapes

SHIFT = (0.1, 0.5)  # of a mean, in standard deviations of the reference: doubtful, poor
RATIO = (1.1, 1.5)  # of standard deviations, either way
PROBABILITY = (0.05, 0.2)  # of a state
SERIOUS = (0.2, 1.2, 0.1)  # a mean, an sd, a probability off by that much is warned of
CURVATURE_RATIO = (1.25, 2.0)  # the same against curvature, which is no exact reference
CURVATURE_SHIFT = (0.5, 2.0)
FAILED = ("diverged", "contradiction")  # codes of runs that came to nothing
JUMPS = "The density jumps to zero, which curvature cannot follow, and the weighted draws are too few."
HANGS = 0.1  # of a variance, on one draw
PROBED = 40  # coordinates whose curvature is solved for where the Hessian is too large


@dataclasses.dataclass(frozen=True)
class Finding:
    """One variable: its worst element's mean shift in standard deviations, and sd over that of the reference.

    Of a discrete one `shift` is the error of a probability. `beyond` tells whether the error is past the limits of
    `SERIOUS`, errors of the reference allowed for.
    """

    name: str
    level: str
    witness: str
    shift: float
    ratio: float
    partner: str = ""
    correlation: float = 0.0
    discrete: bool = False
    beyond: bool = False

    @property
    def sentence(self) -> str:
        """What is wrong with it."""
        if self.discrete:
            return f"'{self.name}' (probabilities off by up to {self.shift:.2g})"
        wrong = []
        if self.ratio < 1.0:
            wrong.append(f"sds {self.ratio:.2g} times what they should be (too narrow)")
        elif self.ratio > 1.0:
            wrong.append(f"sds {self.ratio:.2g} times what they should be (too wide)")
        wrong.append(f"means off by up to {self.shift:.2g} sd")
        tied = f"; correlated {self.correlation:.2f} with '{self.partner}'" if self.partner else ""
        return f"'{self.name}' ({', '.join(wrong)}{tied})"


class Witness(NamedTuple):
    """Weighted draws that were usable, and what they were made from: more can be had."""

    density: LogDensity
    call: Functions
    start: Draws
    jumps: bool
    most: float
    found: Reference

    def more(self, seed: int, count: int, times: float) -> Reference:
        """Others, of which a round has `count`, for so many times the work."""
        with double_precision():
            return draws_of(self.density, self.call, self.start, seed, count, times * self.most, self.jumps)


@methods_checked("trust")
@dataclasses.dataclass(frozen=True)
class Trust:
    """A verdict on a posterior. `print` it, or read `level`: good, doubtful, poor or unchecked.

    `findings` has one entry for each latent variable that was compared; `pareto_k` is the shape of the importance
    weights of draws from the product of the beliefs (below 0.7 these draws can be reweighted to the posterior; it says
    little about marginals of a strongly correlated posterior, which may be right although their product is not),
    `reference_k` that of the reference, and `effective` the number of draws that it is worth; `tilted` has skewness and
    excess kurtosis by EP factor; `notes` tell what could not be checked, `remedy` what may help, `seconds` how long it
    took; `witness` has the weighted draws, where these were usable. `ok` is true when the level is good.
    """

    level: str
    findings: tuple[Finding, ...]
    pareto_k: float
    reference_k: float
    effective: float
    tilted: dict[str, Shape]
    notes: tuple[str, ...]
    seconds: float
    remedy: str = ""
    witness: Witness | None = dataclasses.field(default=None, repr=False, compare=False)

    @staticmethod
    def unchecked(*notes: str, level: str = "unchecked", tilted: dict[str, Shape] | None = None) -> Trust:
        """A verdict of this `level` without comparison: `notes` are the reasons, `tilted` is as of a comparison."""
        nan = float("nan")
        return Trust(level, (), nan, nan, 0.0, tilted or {}, notes, 0.0)

    @property
    def ok(self) -> bool:
        """Whether nothing was found against the posterior."""
        return self.level == "good"

    @property
    def serious(self) -> bool:
        """Whether a mean is off by .25 sd, an sd by 25 % or a probability by .1, as far as the draws can tell."""
        return any(finding.beyond for finding in self.findings)

    @property
    def verdict(self) -> str:
        """One sentence: the level, the variables and what to do."""
        return f"{self.level}: {self.reason}"

    @property
    def reason(self) -> str:
        """The variables and what to do."""
        bad = sorted((f for f in self.findings if f.level in LEVELS[2:]), key=lambda f: -LEVELS.index(f.level))
        if not bad:
            return " ".join(self.notes) or "means and sds agree with the model's joint density."
        named = "; ".join(f.sentence for f in bad[:3]) + (f"; and {len(bad) - 3} more" if len(bad) > 3 else "")
        doubts = " ".join(self.notes) if any(f.witness == "curvature" for f in bad) else ""  # of the witness itself
        advice = [part for part in (doubts, self.remedy) if part]
        return " ".join([f"{named}.", *advice, "posterior.check() runs NUTS beside it."])

    def __str__(self) -> str:
        lines = [f"{'variable':<16}{'verdict':<11}{'mean shift':>11}{'sd ratio':>10}  against"]
        lines += [f"{f.name:<16}{f.level:<11}{f.shift:>11.3f}{f.ratio:>10.3f}  {f.witness}" for f in self.findings]
        lines += [
            f"factor {name}: tilted skewness up to {s.skewness:.2f}, excess kurtosis {s.kurtosis:.2f}"
            for name, s in self.tilted.items()
        ]
        lines.append(f"Pareto k of the beliefs {self.pareto_k:.2f}, of the reference {self.reference_k:.2f}")
        lines += [note for note in self.notes if note not in self.verdict]
        return "\n".join([*lines, f"Verdict: {self.verdict}"])

    __repr__ = __str__


def trust(
    posterior: Inferred,
    factors_of: Outcome | None,
    *,
    seed: int = 0,
    count: int = DRAWS,
    most: float = np.inf,
    start: Inferred | None = None,
) -> Trust:
    """Compares the beliefs of `posterior` with the model's own joint log density; see `Trust`.

    `factors_of` is the run whose EP factors are looked at, if any: `posterior` itself, but for an integration, which
    has no single cavity of each. `seed` decides the draws, `count` how many a round has (none: curvature alone), and
    `most` bounds the numbers that nested draws may work on; the draws begin at the beliefs of `start`, which are those
    of `posterior` where none is given. It costs a few seconds, most of them to trace and compile,
    and some twenty thousand evaluations of the log density. A posterior whose model has no joint log density, or whose
    run met a contradiction, is "unchecked", with the reason.
    Source: vehtari2024psis, yao2018yes.
    """
    began, seed = time.perf_counter(), seed_of(seed)
    if posterior.code == "contradiction":
        return Trust.unchecked(posterior.diagnosis)
    tilted = {} if factors_of is None else tilted_shapes(factors_of)
    notes = [] if posterior.converged else [posterior.diagnosis]
    try:
        density = density_of(posterior)
        with double_precision():
            call = functions(density)
            draws = None
            if density.names:
                begun = fresh_draws if posterior.code == "diverged" else belief_draws
                draws = begun(density, call, start or posterior, seed, count or DRAWS)
                draws = _with_joint_beliefs(density, call, start or posterior, seed, draws)
            findings, numbers, more, found = _compare(posterior, density, call, draws, seed, count, most)
    except (CavityError, np.linalg.LinAlgError) as reason:
        level = "unchecked" if posterior.converged else "doubtful"
        return Trust.unchecked(*notes, str(reason), level=level, tilted=tilted)
    level = max((f.level for f in findings), key=LEVELS.index)
    if notes and level == "good":
        level = "poor" if posterior.code in FAILED else "doubtful"
    seconds, advice = time.perf_counter() - began, "" if level in LEVELS[:2] else remedy(posterior)
    return Trust(level, tuple(findings), *numbers, tilted, (*notes, *more), seconds, advice, found)


def _with_joint_beliefs(density: LogDensity, call: Functions, posterior: Inferred, seed: int, draws: Draws) -> Draws:
    """The draws of beliefs, with others in which what shares a belief is drawn together, where something does."""
    found = joint_belief_draws(posterior, len(draws.z), seed)
    if not set(found) & set(density.names):
        return draws
    return draws._replace(
        together=call.unconstrain({name: found.get(name, draws.values[name]) for name in density.names})
    )


# The findings; k of the beliefs' draws, k and effective number of the reference's; notes; the weighted draws.
Comparison = tuple[list[Finding], tuple[float, float, float], list[str], Witness | None]


def _compare(
    posterior: Inferred,
    density: LogDensity,
    call: Functions,
    draws: Draws | None,
    seed: int,
    count: int,
    most: float,
) -> Comparison:
    if draws is None:
        return _by_enumeration(density, call, posterior)
    nan = float("nan")
    if not count and not density.hard:
        return _by_curvature(density, call, draws.z, True), (nan, nan, 0.0), [], None
    height = call.log_density(draws.z)
    product = smoothed(np.nan_to_num(height - draws.log_q, nan=-np.inf))
    jumps = bool(density.hard) or bool(np.any(np.isneginf(height)))
    if density.dimension > LARGEST_DENSE:
        if jumps:
            raise UnsupportedError(JUMPS)
        note = (
            f"{density.dimension} coordinates are too many for weighted draws: curvature at the beliefs was solved "
            f"for {PROBED} of them."
        )
        findings = _by_probes(density, call, draws)
        return findings, (product.k, nan, product.effective), [note], None
    found = draws_of(density, call, draws, seed, count, most, jumps)
    numbers = product.k, found.weighted.k, found.weighted.effective
    if found.usable:
        findings = [*_by_draws(density, call, posterior, found), *_states_by_draws(density, call, posterior, found)]
        return findings, numbers, [], Witness(density, call, draws, jumps, most, found)
    if jumps:
        raise UnsupportedError(JUMPS)
    mean = centred(call, draws.z.mean(0))
    _, proper = spread_of(-call.hessian(mean))
    note = "The posterior is too far from Gaussian for weighted draws: sds are compared with curvature."
    if density.summed:  # several states are several modes, of which curvature knows one
        note += f" The states of {', '.join(density.summed)} may add modes that curvature does not know."
    return _by_curvature(density, call, draws.z, proper and not density.summed), numbers, [note], None


def _by_enumeration(density: LogDensity, call: Functions, posterior: Inferred) -> Comparison:
    """Probabilities where nothing is continuous: the sum over all states is exact."""
    exact = call.states(np.zeros((1, 0)))
    findings = [_of_states(posterior, name, p[0], 0.0, "enumeration") for name, p in exact.items()]
    if not findings:
        raise UnsupportedError("No latent variable is left to compare: nothing observed depends on one.")
    return findings, (float("nan"), float("nan"), 0.0), [], None


def _states_by_draws(density: LogDensity, call: Functions, posterior: Inferred, found: Reference) -> list[Finding]:
    """Probabilities of the states that were summed out, averaged over weighted draws of the others."""
    if not density.summed:
        return []
    weights = found.weighted.weights
    findings = []
    for name, given in call.states(found.z).items():
        mean = np.tensordot(weights, given, 1)
        error = 2.0 * np.sqrt(np.max(np.tensordot(weights**2, (given - mean) ** 2, 1)))
        findings.append(_of_states(posterior, name, mean, float(error), "weighted draws"))
    return findings


def _of_states(posterior: Inferred, name: str, exact: np.ndarray, error: float, witness: str) -> Finding:
    """The worst probability of a discrete variable."""
    mean = np.asarray(posterior[name].mean)
    off = float(np.max(np.abs(mean - (exact[..., 1] if mean.ndim < exact.ndim else exact)), initial=0.0))
    level = LEVELS[1 + sum(not off <= limit + error for limit in PROBABILITY)]
    return Finding(name, level, witness, off, 1.0, discrete=True, beyond=not off <= SERIOUS[2] + error)


def _by_draws(density: LogDensity, call: Functions, posterior: Inferred, found: Reference) -> list[Finding]:
    """Means and sds of variables and named expressions against weighted draws, whose errors are allowed for twice."""
    values, weights = call.constrain(found.z), found.weighted.weights
    values |= values_of_expressions(density, values)
    error = 2.0 / np.sqrt(found.weighted.effective)  # of a mean in sds; of the logarithm of an sd it is smaller
    centred_z = found.z - weights @ found.z
    scale = np.sqrt(weights @ centred_z**2)
    correlation = (weights[:, None] * centred_z).T @ centred_z / np.outer(scale, scale)
    findings = []
    for name, drawn in values.items():
        flat = drawn.reshape(len(weights), -1)
        mean = weights @ flat
        spread = weights[:, None] * (flat - mean) ** 2
        variance = spread.sum(0)
        # Where the tail is so heavy that the variance hangs on single draws nothing is compared.
        sd = np.where(spread.max(0) > HANGS * variance, np.nan, np.sqrt(variance))
        with np.errstate(divide="ignore", invalid="ignore"):  # what is given among missing entries has no sd
            shift, ratio = (posterior[name].mean.ravel() - mean) / sd, posterior[name].sd.ravel() / sd
        findings.append(_finding(name, "weighted draws", shift, ratio, SHIFT, RATIO, error, correlation, density))
    return findings


def _by_curvature(density: LogDensity, call: Functions, z: np.ndarray, proper: bool) -> list[Finding]:
    """Unconstrained means and sds against a Newton step from the beliefs' mean, and the curvature there."""
    mean, sd = z.mean(0), z.std(0)
    covariance, here = spread_of(-call.hessian(mean))
    laplace = np.sqrt(np.diagonal(covariance))
    shift, ratio = covariance @ call.gradient(mean) / laplace, sd / laplace
    correlation = covariance / np.outer(laplace, laplace)
    findings = []
    for name, part in density.slices.items():
        finding = _finding(
            name, "curvature", shift[part], ratio[part], CURVATURE_SHIFT, CURVATURE_RATIO, 0.0, correlation, density
        )
        # What could not be verified is not good: neither the draws nor a proper curvature vouch for it.
        findings.append(finding if here and proper else _not_verified(finding))
    return findings


def _not_verified(finding: Finding) -> Finding:
    """Doubtful, whatever was found: a curvature that may not hold neither vouches for beliefs nor condemns them."""
    return dataclasses.replace(finding, level="doubtful", beyond=False)


def _by_probes(density: LogDensity, call: Functions, draws: Draws) -> list[Finding]:
    """The same for some coordinates of many, each solved for by conjugate gradients; global variables come first."""
    mean, sd = draws.z.mean(0), draws.z.std(0)
    chosen, left = {}, PROBED
    for name, part in sorted(density.slices.items(), key=lambda item: item[1].stop - item[1].start):
        coordinates = np.arange(part.start, part.stop)
        random = np.random.default_rng(0)
        chosen[name] = random.choice(coordinates, min(len(coordinates), max(left, 4)), replace=False)
        left -= len(chosen[name])
    probes = np.concatenate(list(chosen.values()))
    right = np.concatenate([call.gradient(mean)[None], np.eye(density.dimension)[probes]])
    solved, residuals = call.solve(mean, right, sd**2)
    step, variance, start = solved[0], solved[np.arange(1, len(right)), probes], 0
    findings = []
    for name, mine in chosen.items():
        own = slice(start, start + len(mine))
        start += len(mine)
        laplace = np.sqrt(np.abs(variance[own]))
        finding = _finding(
            name, "curvature", step[mine] / laplace, sd[mine] / laplace, CURVATURE_SHIFT, CURVATURE_RATIO, 0.0
        )
        proper = np.all(variance[own] > 0) and residuals.max() < 0.01
        findings.append(finding if proper else _not_verified(finding))
    return findings


def _finding(
    name: str,
    witness: str,
    shift: np.ndarray,
    ratio: np.ndarray,
    shifts: tuple[float, float],
    ratios: tuple[float, float],
    error: float,
    correlation: np.ndarray | None = None,
    density: LogDensity | None = None,
) -> Finding:
    """The worst element of a variable; coordinates without spread (a corner of a matrix) are left out."""
    spread = np.isfinite(ratio) & (ratio > 0)
    moved = float(np.max(np.abs(shift[spread]), initial=0.0))
    logs = np.log(ratio[spread]) if spread.any() else np.zeros(1)
    off = float(logs[np.argmax(np.abs(logs))])
    levels = [  # written so that what is no number is poor
        1 + sum(not moved <= limit + error for limit in shifts),
        1 + sum(not abs(off) <= np.log(limit) + 0.7 * error for limit in ratios),
    ]
    level = LEVELS[max(levels)]
    limits = (max(SERIOUS[0], shifts[0]), max(SERIOUS[1], ratios[0]))
    beyond = not (moved <= limits[0] + error and abs(off) <= np.log(limits[1]) + 0.7 * error)
    partner, size = "", 0.0
    if level != "good" and correlation is not None and density is not None and name in density.slices:
        mine = density.slices[name]
        others = {
            other: float(correlation[mine, part].ravel()[np.argmax(np.abs(correlation[mine, part]))])
            for other, part in density.slices.items()
            if other != name
        }
        block = np.tril(correlation[mine, mine], -1)
        others[name] = float(block.ravel()[np.argmax(np.abs(block))])
        partner, size = max(others.items(), key=lambda item: abs(item[1]))
        partner = partner if abs(size) > 0.3 else ""
    return Finding(name, level, witness, moved, float(np.exp(off)), partner, size, beyond=beyond)

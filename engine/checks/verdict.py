"""The verdict on a posterior, unasked: from its structure where that is enough, else from a few draws of its density.

What a plan makes exact needs no check. The rest is compared with some thousand weighted draws where these are expected
to be affordable (counted, never timed).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...compiler.answers import SERIOUS, Exactness, Kind, answers
from ...compiler.symmetry import exchangeable
from ...factors.errors import CavityError
from ..answers.inferred import Inferred
from ..answers.verdict import LEVELS, Verdict, is_serious
from ..density.log_density import density_of
from ..expressions.marginal_of import taken_apart
from .edges import at_zero, in_tails
from .other_modes import all_alike, in_one_class, one_class, other_modes
from .reference import LARGEST_DENSE, entries
from .trust import FAILED, Trust, trust

COUNTS = (4000, 1000)  # draws of each round: the first that take a small part of the effort, or the last
PART = 0.1
EVALUATED = 1e-8  # seconds of each number that a log density is made of, of machine code on a common processor
DERIVED = 3e-8  # of each number of a derivative
ALIKE = 1e-6  # probabilities that differ by less are the same
ROUGH = 0.05  # nats that the log evidence of an integration may be off by
WHOLE = {"real", "vector", "boolean", "category"}  # of whose beliefs a projection keeps what a summary shows


def is_exact(answer: Exactness) -> bool:
    """Whether the moments that are shown of these variables are exact."""
    return not answer.reasons and (not answer.moments or set(answer.kinds) <= WHOLE)


def settled(posterior: Inferred) -> Verdict | None:
    """The verdict of structure alone; None where a comparison is needed."""
    if posterior.code in FAILED:
        return Verdict("poor", posterior.diagnosis)
    return None if _off_by(posterior) > ROUGH else _exact(posterior)


def _exact(posterior: Inferred) -> Verdict | None:
    """The verdict where the plan is exact, or that of every point of an integration; else None."""
    if not posterior.converged or not all(is_exact(answer) for answer in answers(posterior.graph)):
        return None
    gridded, error = sorted(posterior.graph.observed - posterior.request.observed), _off_by(posterior)
    rough = f", whose log evidence may be off by {error:.1g}" if error > ROUGH else ""
    exact = f"exact at every point of a grid over {', '.join(gridded)}{rough}." if gridded else "exact."
    apart = list(_expressions_apart(posterior))
    return Verdict("doubtful" if apart else "good", _joined(exact, *apart, in_tails(posterior)))


def _expressions_apart(posterior: Inferred) -> Iterator[str]:
    """Expressions of predicted variables whose joint distribution is not known, only their marginals."""
    for name, node in posterior.model.lets.items():
        if name in posterior.graph.forward and (found := taken_apart(posterior.graph, node)):
            yield (
                f"But not '{name}': it takes {', '.join(found)}, which nothing observed depends on, as independent. "
                "Read the marginals of these, or draw from the model."
            )


def _off_by(posterior: Inferred) -> float:
    """The estimated error of an integration, whose design may be coarse."""
    return getattr(posterior, "error", 0.0)


def verdict_on(posterior: Inferred, found: Trust) -> Verdict:
    """The verdict on a posterior from what a comparison has found, and from what is seen of the beliefs."""
    if found.witness is None and (exact := _exact(posterior)) is not None:
        return exact  # curvature does not know better than points that are exact
    groups, level, reason = answers(posterior.graph), found.level, found.reason
    if found.level == "unchecked" and is_serious(posterior):
        level = "doubtful"
        reason = f"{_apart(groups) or posterior.diagnosis} No comparison was possible: {found.reason}"
    seen = list(_signs(posterior)) if found.level != "good" else []
    level = max([level, *(own for own, _ in seen)], key=LEVELS.index)
    remarks = [in_tails(posterior), *(remark for _, remark in seen)]
    if level in LEVELS[2:]:
        remarks += [at_zero(posterior), _loops(groups)]
    return beside_modes(Verdict(level, _joined(reason, *remarks)), posterior)


def beside_modes(verdict: Verdict, posterior: Inferred) -> Verdict:
    """A verdict that knows one mode alone, with what is seen of others beside this posterior."""
    seen = list(other_modes(posterior))
    level = max([verdict.level, *(own for own, _ in seen)], key=LEVELS.index)
    return Verdict(level, _joined(verdict.reason, *(remark for _, remark in seen)))


def _joined(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


def compared(posterior: Inferred, effort: float = 1.0, seed: int = 0) -> Trust:
    """A comparison with weighted draws that is expected to take at most `effort` seconds, else the reason why not."""
    try:
        density = density_of(posterior)
        size = float(entries(density))
    except CavityError as reason:
        return Trust.unchecked(str(reason))
    each = 6 * size * EVALUATED
    if COUNTS[-1] * each > effort:
        if min(density.dimension, LARGEST_DENSE) * 5 * size * DERIVED > effort or density.hard or density.summed:
            return Trust.unchecked(
                f"{int(size)} numbers are too many for an unasked comparison; posterior.trust() makes one."
            )
        return trust(posterior, None, seed=seed, count=0)
    count = next((count for count in COUNTS if count * each <= PART * effort), COUNTS[-1])
    return trust(posterior, None, seed=seed, count=count, most=effort / DERIVED)


def _apart(groups: list[Exactness]) -> str:
    """Which variables are approximate in a way that mostly makes sds too narrow."""
    names = [name for answer in groups if answer.of(SERIOUS) for name in answer.names]
    shown = f"{', '.join(names[:4])}{', ...' if len(names) > 4 else ''}"
    kept = "are taken apart or the nearest of their family, which mostly makes sds too narrow"
    return f"the beliefs of {shown} {kept}." if names else ""


def _loops(groups: list[Exactness]) -> str:
    """Where messages come back."""
    names = sorted({name for answer in groups for name, kind in answer.causes if kind in (Kind.LOOP, Kind.ECHO)})
    return f"Messages come back through {', '.join(names[:3])}{', ...' if len(names) > 3 else ''}." if names else ""


def _signs(posterior: Inferred) -> Iterator[tuple[str, str]]:
    """What is seen of beliefs that mostly comes of a wrong fixed point, and how bad that is."""
    seen = {choice.selector.name for choice in exchangeable(posterior.graph)}  # by `other_modes`
    for name, node in posterior.model.randoms.items():
        if not node.domain.is_category or not node.plates or name in posterior.observed:
            continue
        if name not in posterior.graph.latent or name in seen:
            continue
        rows = np.asarray(posterior[name].mean).reshape(-1, np.shape(posterior[name].mean)[-1])
        if len(rows) > 1 and np.ptp(rows) < ALIKE and rows.shape[1] > 1:
            yield "poor", all_alike(name)
        elif in_one_class(posterior, name):
            yield "doubtful", one_class(name)

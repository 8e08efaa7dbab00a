"""From a model to a plan: the passes, in order."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import NamedTuple

from .discrete.networks import networks
from .graph import Draft, Part, Plan
from .language.model import Model, check_graph
from .language.values import UserValue
from .methods import resolve
from .passes.absorb import absorb
from .passes.choose_operators import choose
from .passes.given import given as given_priors
from .passes.intervals import intervals
from .passes.join import join, sums_apart
from .passes.roles import roles
from .passes.schedule import schedule as in_order
from .rules.pairs import with_pairs
from .schedules import PLAIN, Schedule


def check(draft: Draft) -> Draft:
    """Refuses graphs without meaning, such as cyclic definitions."""
    check_graph(draft.model)
    return draft


class Pass(NamedTuple):
    """One decision about a plan: a function of a draft that makes the next one, and changes nothing else."""

    name: str
    step: Callable[[Draft], Draft]

    def __str__(self) -> str:
        return self.name


PASSES = (
    Pass("check", check),
    Pass("roles", roles),
    Pass("pairs", with_pairs),
    Pass("choose", choose),
    Pass("given", given_priors),
    Pass("intervals", intervals),
    Pass("absorb", absorb),
    Pass("join", join),
    Pass("networks", networks),
)


def make_plan(
    model: Model,
    observed: frozenset[str],
    missing: frozenset[str] = frozenset(),
    method: UserValue = "auto",
    given: frozenset[Part] = frozenset(),
    sizes: Mapping[str, int] | None = None,
    accuracy: str = "default",
    schedule: Schedule = PLAIN,
) -> Plan:
    """The plan of `model` given the names of what is observed: the draft after all `PASSES`, with an order of updates.

    `missing` names observed variables with missing entries; `method` is a name, a `Method`, or a dictionary of these;
    `given` names the variables whose prior is a belief among the data, `Part` by part; `sizes` are those of the plates,
    where they are known; `accuracy` is "default" or "best"; `schedule` the order of updates asked for. Raises
    ModelError and UnsupportedError before anything is compiled.
    """
    default, methods = resolve(method, {**model.randoms, **model.lets, **model.constraints})
    draft = Draft(
        model,
        observed,
        missing,
        default,
        sizes=sizes,
        accuracy=accuracy,
        given=frozenset(name for part in given for name in part.members),
        given_parts=tuple(sorted(given)),
        methods=methods,
    )
    joint = sizes is not None and (default.name == "auto" or accuracy == "best")
    found = _passed(dataclasses.replace(draft, sums=joint))
    return in_order(_passed(draft) if sums_apart(found) else found, schedule)


def _passed(draft: Draft) -> Draft:
    for each in PASSES:
        draft = each.step(draft)
    return dataclasses.replace(draft, sums=False)

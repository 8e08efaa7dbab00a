"""Schedules: in which order a sweep updates messages and beliefs, as the user asks for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TypeAlias

from ..factors.calls import methods_checked
from ..factors.errors import ModelError

ROWS = {
    "batches": "rows in random batches, 8 to 32 of them where rows share a variable",
    "sequential": "rows one after the other, in a random order",
    "in order": "rows one after the other, in the order of the data",
}
LOOPS = {
    "single": "each sweep once through the factors",
    "residual": "each sweep once through the factors, then as many updates of those whose beliefs changed most",
    "double": "double loop: an inner problem, which is convex, at the beliefs that an outer loop keeps",
}


@methods_checked("schedule")
@dataclasses.dataclass(frozen=True)
class Schedule:
    """The order of the updates in a sweep.

    `factors` names the factors whose messages EP updates, one after the other, each at least once; empty is forward in
    the order of their declaration, and back. `variables` names those whose beliefs VMP updates, each once; empty is the
    compiler's choice. `rows` is how the rows of an EP factor take turns: "batches" (random batches; 8 to 32 where rows
    share a variable), "sequential" (one by one in random order) or "in order" (one by one in the order of the data).
    `loop` is "single", "residual" (after one pass the factors are updated whose beliefs have changed most since their
    last update) or "double" (messages solve an inner problem, which is convex, with the cavities of a belief that an
    outer loop moves: it converges where EP oscillates, more slowly). Fixed points are the same under all of them.

    `posterior.schedule` is the one of a run, with all names: change it with `dataclasses.replace`, and give it to
    `infer(..., schedule=)`. Raises ModelError for another `rows` or `loop`.
    Source: heskes2002double, sutton2007residual.
    """

    factors: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    rows: str = "batches"
    loop: str = "single"

    def __post_init__(self) -> None:
        for name, known in (("rows", ROWS), ("loop", LOOPS)):
            if not isinstance(getattr(self, name), str) or getattr(self, name) not in known:
                raise ModelError(
                    f"Schedule({name}=) is one of {', '.join(map(repr, known))}; found {getattr(self, name)!r}."
                )
        for name in ("factors", "variables"):
            found = getattr(self, name)
            if isinstance(found, str) or not isinstance(found, Iterable) or not all(isinstance(n, str) for n in found):
                raise ModelError(f"Schedule({name}=) is a tuple of names; found {found!r}.")
            object.__setattr__(self, name, tuple(found))

    def __str__(self) -> str:
        parts = [f"messages of {name}" for name in self.factors] + [f"belief of {name}" for name in self.variables]
        order = "; ".join(parts) or "nothing moves: one sweep is enough"
        told = [ROWS[self.rows]] if self.rows != "batches" else []
        told += [LOOPS[self.loop]] if self.loop != "single" else []
        return order + "".join(f" ({text})" for text in told)


Asked: TypeAlias = str | Schedule

PLAIN = Schedule()

NAMED = {
    "batches": PLAIN,
    "sequential": Schedule(rows="sequential"),
    "in order": Schedule(rows="in order"),
    "residual": Schedule(loop="residual"),
    "double loop": Schedule(loop="double"),
}


def checked_schedule(asked: object) -> Schedule:
    """The schedule that a name stands for; ModelError for what is none."""
    if isinstance(asked, Schedule):
        return asked
    if isinstance(asked, str) and asked in NAMED:
        return NAMED[asked]
    raise ModelError(
        f"schedule= is one of {', '.join(map(repr, NAMED))} or a cv.Schedule; found {asked!r}. A run that oscillates "
        "may need 'double loop'; posterior.schedule is what a run did, to be changed with dataclasses.replace."
    )

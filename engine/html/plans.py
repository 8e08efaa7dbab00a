"""A plan in a page: for each factor its method and operator, how exact its message is, and why."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from ...compiler.explain import explain_plan
from ...compiler.graph import Plan
from .escape import Markup, joined, tag
from .styles import part
from .tables import ROWS, folded, table, text_block


def html_of_plan(plan: Plan) -> str:
    """A plan in a notebook."""
    return part(tag("p", f"Plan of {plan.model.name}", class_="name"), factors(plan), printed(explain_plan(plan)))


def factors(plan: Plan, floored: Mapping[str, int] | None = None) -> Markup:
    """A row for each factor, with the cavities of a run that were floored, where there are some."""
    some = {name: count for name, count in (floored or {}).items() if count}
    heads = ["factor", "plates", "method", "operator", "message", "because", *(["floored"] if some else [])]
    rows = [
        [
            block.name,
            ", ".join(plate.name for plate in block.plates),
            str(block.method),
            block.choice.operator,
            block.choice.accuracy,
            block.choice.reason,
            *([some.get(block.name, 0)] if some else []),
        ]
        for block in islice(plan.blocks, ROWS + 1)
    ]
    if not rows:
        return tag("p", "There is nothing to infer: no factor sends a message.")
    return table("What was chosen for each factor", heads, rows, len(plan.blocks))


def printed(text: str) -> Markup:
    """All that `explain` prints, folded."""
    return folded("All that explain() prints", joined(text_block(text, "What explain() prints")))

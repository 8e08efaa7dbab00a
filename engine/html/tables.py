"""Tables whose heads say which way they go, cut where they are long, and said so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

from .escape import Markup, tag

ROWS = 40  # of a table; of longer ones the first


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[object]], total: int | None = None) -> Markup:
    """A table whose first column names its rows.

    Numbers are set to the right. Of many rows the first 40 are shown, and the caption tells of how many; `total` is
    their number where `rows` are not all of them.
    """
    rows = list(islice(rows, ROWS + 1)) if total is not None else list(rows)
    total, shown = len(rows) if total is None else total, rows[:ROWS]
    told = caption if len(shown) == total else f"{caption} (the first {len(shown)} of {total:,})"
    numeric = [
        bool(shown) and all(isinstance(row[i], (int, float, np.number)) for row in shown) for i in range(len(heads))
    ]
    kinds = ["number" if is_number else None for is_number in numeric]
    head = tag("tr", *(tag("th", text, scope="col", class_=kind) for text, kind in zip(heads, kinds, strict=True)))
    body = [
        tag("tr", tag("th", _cell(first), scope="row", class_=kinds[0]), *map(_data, others, kinds[1:]))
        for first, *others in shown
    ]
    drawn = tag("table", tag("caption", told), tag("thead", head), tag("tbody", *body))
    return tag("div", drawn, class_="wide", tabindex="0", role="region", aria_label=told)


def text_block(text: str, told: str) -> Markup:
    """Text as it is printed, which can be moved where it is wide."""
    return tag("div", tag("pre", text), class_="wide", tabindex="0", role="region", aria_label=told)


def folded(summary: str, *content: object) -> Markup:
    """What is seen when its summary is opened."""
    return tag("details", tag("summary", summary), *content)


def short(value: object) -> str:
    """A number with five digits."""
    if isinstance(value, (bool, np.bool_)):
        return str(value).lower()
    return f"{value:.5g}" if isinstance(value, (float, np.floating)) else f"{value:,}"


def _data(value: object, kind: str | None) -> Markup:
    return tag("td", _cell(value), class_=kind)


def _cell(value: object) -> object:
    return short(value) if isinstance(value, (int, float, np.number)) else value

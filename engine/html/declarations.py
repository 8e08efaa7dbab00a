"""A model in a page: its picture, and its declarations as a table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import islice

from ...compiler.language.model import Model, term_text
from ...compiler.language.nodes import Expr, Input, Let, Random
from ..plots.graph_layout import variables
from .escape import Markup, joined, tag
from .graph import graph
from .styles import part
from .tables import ROWS, table

LONGEST = 160  # letters of a term


def html_of_model(model: Model) -> str:
    """A model in a notebook."""
    sizes = {name: size for name, (size, _) in model.sizes.items()}
    return part(tag("p", model.name, class_="name"), picture_and_table(model, (), sizes))


def picture_and_table(model: Model, observed: Collection[str], sizes: Mapping[str, int]) -> Markup:
    """The factor graph and below it all declarations, one a row."""
    if not variables(model):
        return tag("p", "Nothing is declared yet.")
    return joined(graph(model, observed, sizes), declarations(model, observed))


def declarations(model: Model, observed: Collection[str]) -> Markup:
    """What each variable is, over which plates and from what."""
    named = variables(model)
    rows = [
        [name, _kind(node, name in observed), str(node.domain), _plates(node), _made_from(node)]
        for name, node in islice(named.items(), ROWS + 1)
    ]
    rows += [
        [name, "constraint", "", _plates(expression), _short(str(expression))]
        for name, expression in islice(model.constraints.items(), ROWS + 1)
    ]
    total = len(named) + len(model.constraints)
    return table("Declarations", ["name", "is", "values", "plates", "from"], rows, total)


def _plates(node: Expr) -> str:
    return ", ".join(plate.name for plate in node.plates)


def _kind(node: Input | Random | Let, observed: bool) -> str:
    kind = "input" if isinstance(node, Input) else "computed" if isinstance(node, Let) else "random"
    return f"{kind}, observed" if observed and kind != "input" else kind


def _made_from(node: Input | Random | Let) -> str:
    """The term of a random variable or the expression of a computed one, as its user would write it."""
    if isinstance(node, Input):
        return ""
    return _short(term_text(node.term) if isinstance(node, Random) else str(node.expression))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"

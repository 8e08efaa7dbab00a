"""Formulas of mixed regressions: `y ~ a + b + (1 | group) + (a | group)`, read without any evaluation."""

from __future__ import annotations

import dataclasses
import re

import cavity as cv  # pyright: ignore[reportMissingImports]

NAME = re.compile(r"[^\W\d][\w.]*")
ALLOWED = (
    "A formula is 'y ~ a + b + (1 | g) + (a | g)': columns with + between them, 1 or 0 with or without an intercept, "
    "and effects by group in parentheses, || where an intercept and a slope are independent."
)


@dataclasses.dataclass(frozen=True)
class Effects:
    """What varies by a group: the intercept, columns with slopes, and whether these are correlated."""

    group: str
    intercept: bool
    slopes: tuple[str, ...]
    correlated: bool


@dataclasses.dataclass(frozen=True)
class Formula:
    """A regression of `target` on columns, with or without an intercept, and with effects of groups."""

    target: str
    intercept: bool
    columns: tuple[str, ...]
    effects: tuple[Effects, ...]


def parsed(text: str) -> Formula:
    """The formula that a text is. Raises ModelError with the part that is none."""
    left, tilde, right = text.partition("~")
    target = left.strip()
    if not tilde or not NAME.fullmatch(target) or not right.strip():
        raise cv.ModelError(f"{text!r} is no formula: it needs a column, ~, and what it depends on. {ALLOWED}")
    effects: list[Effects] = []

    def taken(match: re.Match[str]) -> str:
        effects.append(_effects(match.group(1), text))
        return ""

    plain = re.sub(r"\(([^()]*)\)", taken, right)
    parts = [part.strip() for part in plain.split("+")]
    intercept, columns = _terms([part for part in parts if part], text)
    if len(parts) - sum(bool(part) for part in parts) > len(effects):
        raise cv.ModelError(f"{text!r} has a + with nothing beside it. {ALLOWED}")
    groups = [effect.group for effect in effects]
    if len(set(groups)) < len(groups):
        raise cv.ModelError(f"{text!r} has two sets of effects of one group; write them as one, (1 + x | g). {ALLOWED}")
    if target in columns or target in groups:
        raise cv.ModelError(f"{text!r} has {target!r} on both sides.")
    return Formula(target, intercept, columns, tuple(effects))


def _effects(inside: str, whole: str) -> Effects:
    terms, bar, group = inside.partition("||" if "||" in inside else "|")
    if not bar or not NAME.fullmatch(group.strip()):
        raise cv.ModelError(f"({inside}) of {whole!r} names no group behind a bar. {ALLOWED}")
    intercept, slopes = _terms([part.strip() for part in terms.split("+")], whole)
    if not intercept and not slopes:
        raise cv.ModelError(f"({inside}) of {whole!r} has nothing that varies by the group. {ALLOWED}")
    correlated = bar == "|" and len(slopes) + intercept > 1
    if correlated and len(slopes) + intercept > 2:
        raise cv.ModelError(
            f"({inside}) of {whole!r} has correlations of more than two effects, which this command does not have. "
            "Write || for independent ones, or declare the model in Python."
        )
    return Effects(group.strip(), intercept, slopes, correlated)


def _terms(parts: list[str], whole: str) -> tuple[bool, tuple[str, ...]]:
    """Whether there is an intercept, and the columns."""
    intercept, columns = True, []
    for part in parts:
        if part in ("0", "1"):
            intercept = part == "1"
        elif NAME.fullmatch(part):
            columns.append(part)
        else:
            raise cv.ModelError(
                f"{part!r} of {whole!r} is no column. Products and functions of columns are columns of their own, made "
                f"before. {ALLOWED}"
            )
    return intercept, tuple(dict.fromkeys(columns))

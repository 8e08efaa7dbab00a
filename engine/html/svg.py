"""Pictures as SVG inside a page: shapes, axes with ticks, and the words that stand for a picture.

Lengths are in pixels and colours are classes of the style sheet. Nothing has an identifier, so that several pictures
fit on one page.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from .escape import Markup, tag

LETTER = 6.6  # width of a letter of the common size


def number(value: float) -> str:
    """A coordinate with two digits after its point, without needless zeros."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if np.isfinite(value) else "0"


def shape(name: str, class_: str | None = None, *content: object, **attributes: object) -> Markup:
    """An element of SVG: numbers among the attributes are coordinates."""
    told = {key: number(value) if isinstance(value, float) else value for key, value in attributes.items()}
    return tag(name, *content, class_=class_, **told)


def words(x: float, y: float, text: object, class_: str | None = None, anchor: str = "start") -> Markup:
    """Text whose middle line is at `y`."""
    return shape("text", class_, text, x=float(x), y=float(y) + 4.0, text_anchor=anchor)


def polyline(x: np.ndarray, y: np.ndarray, class_: str, width: float = 1.5, **more: object) -> Markup:
    """A line through points, which have to be finite."""
    points = " ".join(f"{number(a)},{number(b)}" for a, b in zip(x, y, strict=True))
    return shape("polyline", class_, points=points, stroke_width=width, **more)


def segment(x0: float, y0: float, x1: float, y1: float, class_: str, width: float = 1.0, **more: object) -> Markup:
    """A line between two points."""
    return shape("line", class_, x1=float(x0), y1=float(y0), x2=float(x1), y2=float(y1), stroke_width=width, **more)


def picture(width: float, height: float, told: str, *shapes: object) -> Markup:
    """A picture of this size; `told` is what it shows, in words, for those who do not see it."""
    size = {"width": number(width), "height": number(height), "viewBox": f"0 0 {number(width)} {number(height)}"}
    return tag("svg", tag("title", told), *shapes, role="img", aria_label=told, **size)


def figure(drawn: Markup, caption: object = "") -> Markup:
    """A picture with what is below it; where it is wider than the page it is moved inside its frame, by keys too."""
    below = tag("figcaption", caption) if caption else ""
    return tag("figure", tag("div", drawn, class_="wide", tabindex="0", role="group", aria_label="Picture"), below)


@dataclasses.dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` at pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Where values are, in pixels; those outside at its ends."""
        share = (np.asarray(values, float) - self.low) / (self.high - self.low)
        return self.start + np.clip(share, 0.0, 1.0) * (self.end - self.start)

    def at(self, value: float) -> float:
        """Where one value is."""
        return float(self(np.asarray(value)))

    @staticmethod
    def of(values: np.ndarray, start: float, end: float) -> Scale:
        """One that holds all finite values, and one unit where they are all the same."""
        finite = np.asarray(values, float)[np.isfinite(values)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        if not high - low > 1e-12 * max(abs(low), abs(high)):
            low, high = low - 0.5 * max(abs(low), 1.0), high + 0.5 * max(abs(high), 1.0)
        return Scale(low, high, start, end)

    def ticks(self, about: int = 4) -> np.ndarray:
        """Round values inside it."""
        step = (self.high - self.low) / max(about, 1)
        power = 10.0 ** np.floor(np.log10(step))
        step = power * min((1.0, 2.0, 5.0, 10.0), key=lambda times: abs(times * power - step))
        first = np.ceil(self.low / step - 1e-9)
        return step * np.arange(first, np.floor(self.high / step + 1e-9) + 1.0)


def tick_labels(values: np.ndarray) -> list[str]:
    """Ticks as they are written: all the digits that tell neighbours apart."""
    spacing = float(np.diff(values).min()) if len(values) > 1 else 1.0
    digits = int(np.clip(np.ceil(np.log10(max(np.abs(values).max(initial=1.0), 1e-300) / spacing)) + 1, 3, 9))
    return [f"{value + 0.0:.{digits}g}" for value in np.where(np.abs(values) < 1e-9 * spacing, 0.0, values)]


def axis_below(scale: Scale, y: float, label: str = "", labels: Sequence[str] | None = None) -> list[Markup]:
    """A horizontal axis at `y`, which takes 32 pixels below it, and 16 more for its label."""
    ticks = scale.ticks(max(2, int(abs(scale.end - scale.start) / 75.0)))
    shapes = [segment(scale.start, y, scale.end, y, "frame")]
    for place, text in zip(scale(ticks), labels or tick_labels(ticks), strict=True):
        shapes += [segment(place, y, place, y + 4.0, "frame"), words(place, y + 13.0, text, "small", "middle")]
    if label:
        shapes.append(words(0.5 * (scale.start + scale.end), y + 29.0, label, "small quiet", "middle"))
    return shapes


def axis_beside(scale: Scale, x: float, label: str = "", power: bool = False) -> list[Markup]:
    """A vertical axis at `x`, with its numbers at the left and its label above; `power`: of powers of ten."""
    ticks = scale.ticks(4)
    ticks = np.unique(np.round(ticks)) if power else ticks
    texts = [f"1e{int(tick)}" for tick in ticks] if power else tick_labels(ticks)
    shapes = [segment(x, scale.start, x, scale.end, "frame")]
    for place, text in zip(scale(ticks), texts, strict=True):
        shapes += [segment(x - 4.0, place, x, place, "frame"), words(x - 7.0, place, text, "small", "end")]
    if label:
        shapes.append(words(4.0, min(scale.start, scale.end) - 14.0, label, "small quiet"))
    return shapes

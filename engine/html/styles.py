"""Colours and the style sheet: dark or light as the reader's system, or the notebook around it, asks for.

Colours of text have a contrast of 4.5 or more with the paper behind them, those of lines and marks one of 3, in both.
"""

from __future__ import annotations

from types import MappingProxyType

from .escape import Markup, tag

LIGHT = MappingProxyType(
    {
        "paper": "#ffffff", "panel": "#f3f5f7", "ink": "#1c1f24", "quiet": "#555a63", "line": "#7d838c",
        "shade": "#d5dae1", "link": "#1f5582", "good": "#2f6b2f", "doubtful": "#7a5300", "poor": "#a32e12",
        "c0": "#33658a", "c1": "#b84a26", "c2": "#4b7a3a", "c3": "#7b5e9e", "c4": "#8a6414", "c5": "#2b7a79",
    }
)  # fmt: skip
DARK = MappingProxyType(
    {
        "paper": "#16181c", "panel": "#22262c", "ink": "#eceef1", "quiet": "#b3b9c2", "line": "#8a919b",
        "shade": "#434a54", "link": "#8cc1ec", "good": "#8fce8f", "doubtful": "#e5bd62", "poor": "#f79a80",
        "c0": "#7db4dc", "c1": "#f0916e", "c2": "#94c881", "c3": "#bda3dd", "c4": "#dcb45c", "c5": "#6fc4c2",
    }
)  # fmt: skip
SERIES = 6  # colours c0, c1, ... of curves
TEXT = ("ink", "quiet", "link", "good", "doubtful", "poor", "c0", "c1")  # colours that text is written in
MARKS = ("line", *(f"c{i}" for i in range(SERIES)))

_RULES = """
.cavity{background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
.cavity *{box-sizing:border-box}
.cavity.part{padding:.6em .8em;border:1px solid var(--line);border-radius:6px;max-width:60em}
.cavity :is(h1,h2,h3){line-height:1.25;margin:1.2em 0 .4em;color:var(--ink)}
.cavity .name{font-weight:600;margin:0 0 .3em}
.cavity p{margin:.4em 0;max-width:46em}
.cavity .quiet,.cavity figcaption,.cavity caption{color:var(--quiet)}
.cavity :is(.good,.doubtful,.poor){font-weight:600}
.cavity .good{color:var(--good)} .cavity .doubtful{color:var(--doubtful)} .cavity .poor{color:var(--poor)}
.cavity a{color:var(--link)}
.cavity :is(a,summary,.wide):focus-visible{outline:3px solid var(--c1);outline-offset:2px}
.cavity .wide{overflow-x:auto;max-width:100%}
.cavity table{border-collapse:collapse;margin:.4em 0;font-variant-numeric:tabular-nums;background:none;color:inherit}
.cavity caption{text-align:left;padding:.2em 0;font-size:.93em;caption-side:top}
.cavity :is(th,td){text-align:left;vertical-align:top;padding:.2em .7em .2em 0;background:none;color:inherit;
  border-bottom:1px solid var(--shade);overflow-wrap:normal;white-space:normal}
.cavity thead th{border-bottom:1px solid var(--line)} .cavity th{font-weight:600} .cavity .number{text-align:right}
.cavity pre{background:var(--panel);color:var(--ink);padding:.7em;font:13px/1.45 ui-monospace,monospace;margin:.4em 0;
  white-space:pre;overflow-wrap:normal}
.cavity details{margin:.5em 0} .cavity summary{cursor:pointer}
.cavity figure{margin:.6em 0} .cavity figcaption{font-size:.93em;max-width:46em}
.cavity .row{display:flex;flex-wrap:wrap;gap:.4em 1.6em;align-items:flex-start}
.cavity .row>*{min-width:0;max-width:100%}
.cavity svg{display:block;max-width:none} .cavity svg text{font:12px system-ui,sans-serif;fill:var(--ink)}
.cavity svg .small{font-size:10.5px} .cavity svg .quiet{fill:var(--quiet)}
.cavity svg .stroke{fill:none;stroke:var(--ink)} .cavity svg .frame{fill:none;stroke:var(--line)}
"""
_SERIES = "".join(
    f".cavity svg .l{i}{{fill:none;stroke:var(--c{i})}}.cavity svg .f{i}{{fill:var(--c{i})}}"
    f".cavity svg text.t{i}{{fill:var(--c{i})}}"
    for i in range(SERIES)
)


def style_sheet(dark: str = "") -> str:
    """The rules of a page or of a part of one; `dark` are more selectors of places that are dark."""
    light, night = (
        "".join(f"--{name}:{colour};" for name, colour in palette.items()) + f"color-scheme:{scheme};"
        for palette, scheme in ((LIGHT, "light"), (DARK, "dark"))
    )
    asked = f"{dark}{{{night}}}" if dark else ""
    return f".cavity{{{light}}}@media(prefers-color-scheme:dark){{.cavity{{{night}}}}}{asked}{_RULES}{_SERIES}"


_DARK_NOTEBOOK = '[data-jp-theme-light="false"] .cavity,.vscode-dark .cavity,html[theme="dark"] .cavity'


def part(*content: object) -> str:
    """A piece of a notebook's page, with the style sheet that it needs; no more than text, as Jupyter takes it."""
    style = tag("style", Markup(style_sheet(_DARK_NOTEBOOK)))
    return str(tag("div", style, *content, class_="cavity part"))

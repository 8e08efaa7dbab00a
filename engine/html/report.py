"""A posterior as one page: the model, its data, what was chosen, how it went, what was found and how far to trust it.

The page holds all that it needs, runs nothing, and is read as well without its pictures: each is told in words and has
its numbers beside it.
"""

from __future__ import annotations

import dataclasses
import importlib
import platform
import sys
from collections.abc import Callable, Iterator

import jax
import numpy as np
import scipy

from ...compiler.portable import PACKAGE
from ...factors.errors import CavityError
from ..answers.inferred import Inferred
from ..answers.verdict import Verdict
from .answers import headline, inferred_names, overview
from .convergence import convergence
from .data import data
from .declarations import picture_and_table
from .escape import Markup, joined, tag
from .evidence import evidence
from .marginals import section
from .plans import factors, printed
from .predictive_checks import Draws, predictive_checks
from .styles import style_sheet
from .tables import table, text_block

VARIABLES = 24  # whose marginals are drawn; a table has more
_MEANING = {
    "good": "Means and standard deviations may be used as they are.",
    "doubtful": "Read the reason before you use the numbers; a sampler beside it, posterior.check(), would tell more.",
    "poor": "Do not use the numbers as they are: the reason says what to change.",
    "unchecked": "Nothing was compared: drawing from the joint density would take longer than is spent unasked.",
}
_LAYOUT = (
    "html{background:var(--paper)}body{margin:0}"
    ".page{max-width:70rem;margin:0 auto;padding:1rem clamp(.8rem,3vw,2rem) 3rem}"
    ".skip{position:absolute;left:-999px}.skip:focus{position:static}"
    ".cavity nav ul{display:flex;flex-wrap:wrap;gap:.2em 1.2em;padding:0;list-style:none}"
    ".cavity section{border-top:1px solid var(--shade)}@media print{.cavity nav{display:none}}"
)


@dataclasses.dataclass(frozen=True)
class Findings:
    """What a report is made of beside the posterior: its verdict and the comparison behind it, and data sets to draw.

    `drawn` draws as many as it is asked for, and `draws` is how many the user wants.
    """

    verdict: Verdict
    compared: str
    drawn: Callable[[int], Draws]
    draws: int


def report(posterior: Inferred, findings: Findings) -> str:
    """The page, as text."""
    sections = list(_sections(posterior, findings))
    entries = [tag("li", tag("a", title, href=f"#{place}")) for place, title, _ in sections]
    name = posterior.model.name
    head = joined(
        Markup('<meta charset="utf-8">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup(
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        ),
        tag("title", f"{name}: report of a posterior"),
        tag("style", Markup(style_sheet() + _LAYOUT)),
    )
    body = joined(
        tag("a", "Skip to the report", class_="skip", href="#report"),
        tag("header", tag("h1", name), headline(posterior, findings.verdict)),
        tag("nav", tag("ul", *entries), aria_label="Sections"),
        tag("main", *(_section(*parts) for parts in sections), id="report"),
    )
    page = tag("body", tag("div", body, class_="page"), class_="cavity")
    return f'<!DOCTYPE html>\n<html lang="en" class="cavity">\n<head>\n{head}\n</head>\n{page}\n</html>\n'


def _section(place: str, title: str, content: Markup) -> Markup:
    return tag("section", tag("h2", title, id=place), content, aria_labelledby=place)


def _sections(posterior: Inferred, findings: Findings) -> Iterator[tuple[str, str, Markup]]:
    """Place, title and content of each section."""
    binding = posterior.binding
    yield "model", "Model", picture_and_table(posterior.model, binding.observed, binding.sizes)
    yield "data", "Data", data(binding)
    yield "plan", "Plan", joined(factors(posterior.graph, posterior.floored), printed(posterior.explain()))
    yield "convergence", "Convergence", convergence(posterior)
    yield "marginals", "Marginals", _marginals(posterior)
    yield "checks", "Predictive checks", predictive_checks(posterior, findings.drawn, findings.draws)
    yield "evidence", "Evidence by factor", evidence(posterior)
    yield "trust", "Trust", _trust(findings)
    yield "versions", "Versions", _versions(posterior)


def _marginals(posterior: Inferred) -> Markup:
    """All in a table, then each with its picture."""
    names = inferred_names(posterior)
    shown = [joined(tag("h3", name), _of(posterior, name)) for name in names[:VARIABLES]]
    if len(names) > VARIABLES:
        shown.append(tag("p", f"The first {VARIABLES} of {len(names)} variables are drawn."))
    return joined(overview(posterior), *shown)


def _of(posterior: Inferred, name: str) -> Markup:
    try:
        return section(name, posterior[name])
    except CavityError as reason:
        return tag("p", str(reason))


def _trust(findings: Findings) -> Markup:
    verdict = findings.verdict
    level = tag("span", verdict.level, class_=verdict.level)
    told = tag("p", level, f": {verdict.reason}")
    more = text_block(findings.compared, "Comparison with weighted draws") if findings.compared else ""
    return joined(told, tag("p", _MEANING[verdict.level]), more)


def _versions(posterior: Inferred) -> Markup:
    """What made the numbers."""
    options = posterior.request.options
    rows = [
        [PACKAGE, importlib.import_module(PACKAGE).__version__],
        ["Python", platform.python_version()],
        ["JAX", f"{jax.__version__} on {jax.default_backend()}"],
        ["NumPy", np.__version__],
        ["SciPy", scipy.__version__],
        ["system", f"{platform.system()} {platform.machine()}, {sys.byteorder} endian"],
        ["accuracy", str(options.accuracy)],
        ["tolerance", f"{options.tolerance:g}"],
    ]
    return table("What this was computed with", ["part", "version or setting"], rows)

"""A posterior in a notebook: its verdict, its marginals in a table, and what it was made by, folded."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import numpy as np

from ...factors.errors import CavityError
from ...factors.families import Point
from ..answers.inferred import Inferred
from ..answers.marginal import Marginal
from ..answers.verdict import Verdict
from ..distributions.cases import title
from ..distributions.partly_observed import Completed
from ..run.diagnosis import counted
from .convergence import convergence
from .declarations import picture_and_table
from .escape import Markup, tag
from .plans import factors, printed
from .styles import part
from .tables import ROWS, folded, table

ELEMENTS = 4


def html_of_posterior(posterior: Inferred, verdict: Verdict) -> str:
    """A posterior in a notebook."""
    model, binding = posterior.model, posterior.binding
    return part(
        tag("p", f"Posterior of {model.name}", class_="name"),
        headline(posterior, verdict),
        overview(posterior),
        folded("How it converged", convergence(posterior)),
        folded("The model", picture_and_table(model, binding.observed, binding.sizes)),
        folded("The plan", factors(posterior.graph, posterior.floored), printed(posterior.explain())),
    )


def headline(posterior: Inferred, verdict: Verdict) -> Markup:
    """Verdict, evidence and how the run ended, in one line."""
    level = tag("span", verdict.level, class_=verdict.level)
    ended = f"{posterior.code} in {counted(posterior.iterations, 'sweep')}"
    return tag("p", level, f": {verdict.reason} Log evidence {posterior.log_evidence:.6g}; {ended}.")


def overview(posterior: Inferred) -> Markup:
    """A row for each marginal that inference gave a belief."""
    names = inferred_names(posterior)
    heads = ["variable", "family", "shape", "mean ± sd"]
    rows = [in_short(name, lambda name=name: posterior[name]) for name in islice(names, ROWS + 1)]
    return table("Marginals", heads, rows, len(names)) if rows else tag("p", "All variables are observed.")


def inferred_names(posterior: Inferred) -> list[str]:
    """Names of variables and expressions that were not observed as a whole."""
    observed, missing = posterior.binding.observed, posterior.binding.missing
    return [name for name in posterior if name not in observed or name in missing]


def in_short(name: str, asked: Callable[[], Marginal]) -> list[object]:
    """A row of a marginal as it is `asked` for: family, shape and first elements, or why there is none."""
    try:
        marginal = asked()
        return [name, title(marginal.distribution), " x ".join(map(str, marginal.shape)) or "scalar", _first(marginal)]
    except CavityError as reason:
        return [name, "", "", str(reason)]


def _first(marginal: Marginal) -> str:
    """Mean and sd of the first elements."""
    if isinstance(marginal.family, Point):
        return "observed"
    if isinstance(marginal.family, Completed):
        return "in part observed"
    mean, sd = np.ravel(marginal.mean), np.ravel(marginal.sd)
    pairs = zip(mean[:ELEMENTS], sd[:ELEMENTS], strict=True)
    told = ", ".join(f"{m:.4g} ± {s:.2g}" for m, s in pairs) + (", ..." if mean.size > ELEMENTS else "")
    return f"{told} ({marginal.note})" if marginal.note else told

"""How a run went: residual and evidence over its sweeps, and the fixed points that its starts met."""

from __future__ import annotations

import numpy as np

from ..answers.inferred import Inferred
from ..run.diagnosis import counted
from . import charts
from .escape import Markup, joined, tag
from .svg import figure
from .tables import table


def convergence(posterior: Inferred) -> Markup:
    """The diagnosis in words, pictures of the trace, and a table of the restarts where there were several."""
    kind = "good" if posterior.converged else "poor"
    code = tag("span", posterior.code, class_=kind)
    told = tag("p", code, f" in {counted(posterior.iterations, 'sweep')}. {posterior.diagnosis}")
    timing = tag("p", str(posterior.timing), class_="quiet") if posterior.timing is not None else ""
    return joined(told, timing, tag("div", *_traces(posterior), class_="row"), _restarts(posterior))


def _traces(posterior: Inferred) -> list[Markup]:
    residual, evidence = posterior.trace.residual, posterior.trace.evidence
    tolerance, shapes = posterior.request.options.tolerance, []
    seen = residual[np.isfinite(residual) & (residual > 0)]
    if seen.size:
        told = f"Residual over {counted(residual.size, 'sweep')}, from {seen[0]:.2g} to {seen[-1]:.2g}; "
        told += f"tolerance {tolerance:.2g}"
        line = np.where(np.isfinite(residual), residual, np.nan)
        chart = charts.over_sweeps([line], told, "residual, in posterior sds", power=True, mark=tolerance)
        shapes.append(figure(chart, "Dashed: the tolerance."))
    known = evidence[np.isfinite(evidence)]
    if known.size:
        told = f"Log evidence over {counted(evidence.size, 'sweep')}, from {known[0]:.5g} to {known[-1]:.5g}"
        shapes.append(figure(charts.over_sweeps([evidence], told, "log evidence"), "Recorded at each sweep."))
    return shapes or [tag("p", "The sweeps of this inference were not recorded.")]


def _restarts(posterior: Inferred) -> Markup:
    points = list(posterior.restarts)
    if len(points) < 2:
        return Markup("")
    rows = [[i + 1, p.log_evidence, "yes" if p.converged else "no", p.sweeps, p.starts] for i, p in enumerate(points)]
    heads = ["place", "log evidence", "converged", "sweeps", "starts that met it"]
    return table("Fixed points that the starts met, best first", heads, rows)

"""The log evidence by factor: parts that sum to the total, as bars and a table."""

from __future__ import annotations

import numpy as np

from ..answers.inferred import Inferred
from . import charts
from .escape import Markup, joined, tag
from .svg import figure
from .tables import ROWS, table


def evidence(posterior: Inferred) -> Markup:
    """The total, then the largest parts by their size."""
    parts = sorted(posterior.evidence.items(), key=lambda part: -abs(part[1]))
    total = tag("p", f"log p(data) = {posterior.log_evidence:.8g}, of which each factor has a part.")
    if not parts:
        return total
    names, values = [name for name, _ in parts[:ROWS]], np.array([value for _, value in parts[:ROWS]])
    told = "Log evidence by factor: " + ", ".join(f"{name} {value:.4g}" for name, value in parts[:6])
    chart = figure(charts.bars(values, names, told, "log evidence"), "The largest first, by their size.")
    rows = [[name, float(value)] for name, value in parts[:ROWS]]
    return joined(
        total, tag("div", chart, table("Log evidence by factor", ["factor", "nats"], rows, len(parts)), class_="row")
    )

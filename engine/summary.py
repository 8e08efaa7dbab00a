"""The summary table of a posterior."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..factors.families import Point
from .completed import Completed

if TYPE_CHECKING:
    from .posterior import Posterior
    from .saved import Saved


def summary(posterior: Posterior | Saved, elements: int = 4) -> str:
    """Name, family, shape, and mean +- sd of the first elements of every marginal that inference gave a belief."""
    rows = []
    for name in posterior:
        marginal = posterior[name]
        if isinstance(marginal.family, (Point, Completed)):
            continue
        mean, sd = np.ravel(marginal.mean), np.ravel(marginal.sd)
        shown = ", ".join(f"{m:.4g} ± {s:.2g}" for m, s in zip(mean[:elements], sd[:elements], strict=True))
        more = ", ..." if mean.size > elements else ""
        rows.append(
            (name, type(marginal.family).__name__, "x".join(map(str, marginal.shape)) or "scalar", shown + more)
        )
    widths = [max(len(row[i]) for row in [*rows, ("variable", "family", "shape", "")]) for i in range(3)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(("variable", "family", "shape"), widths, strict=True))
        + "  mean ± sd"
    ]
    lines += [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)) + "  " + row[3] for row in rows
    ]
    lines.append(f"log evidence {posterior.log_evidence:.8g}; {posterior.diagnosis}")
    if posterior._verdict is not None:
        lines.append(f"Trust: {posterior._verdict.verdict}")
    return "\n".join(lines)

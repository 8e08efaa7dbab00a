"""The summary table of a posterior."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...factors.families import Point
from ..distributions.cases import title
from ..distributions.partly_observed import Completed
from .marginal import Marginal


def summary(marginals: Mapping[str, Marginal], log_evidence: float, *remarks: object, elements: int = 4) -> str:
    """Name, family, shape, and mean +- sd of the first elements of every marginal that inference gave a belief.

    The log evidence and the first of the `remarks` stand in the line below the table, the others below that, but for
    those that are None.
    """
    rows = []
    for name, marginal in marginals.items():
        if isinstance(marginal.family, (Point, Completed)):
            continue
        mean, sd = np.ravel(marginal.mean), np.ravel(marginal.sd)
        called = [f"{label}: " for label in marginal.elements[:elements]] if marginal.has_names else [""] * elements
        shown = ", ".join(f"{c}{m:.4g} ± {s:.2g}" for c, m, s in zip(called, mean[:elements], sd, strict=False))
        more = (", ..." if mean.size > elements else "") + (f"  ({marginal.note})" if marginal.note else "")
        rows.append((name, title(marginal.distribution), "x".join(map(str, marginal.shape)) or "scalar", shown + more))
    widths = [max(len(row[i]) for row in [*rows, ("variable", "family", "shape", "")]) for i in range(3)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(("variable", "family", "shape"), widths, strict=True))
        + "  mean ± sd"
    ]
    lines += [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)) + "  " + row[3] for row in rows
    ]
    diagnosis, *others = remarks
    more = [str(remark) for remark in others if remark is not None]
    return "\n".join([*lines, f"log evidence {log_evidence:.8g}; {diagnosis}", *more])

"""Programs, batches, and posteriors read without their model, in a notebook."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Protocol

import numpy as np

from ...compiler.graph import Plan
from ...compiler.language.model import Model
from ..answers.marginal import Marginal
from ..answers.verdict import Verdict
from ..run.diagnosis import counted
from .answers import in_short
from .declarations import picture_and_table
from .escape import tag
from .plans import factors, printed
from .styles import part
from .tables import ROWS, folded, table, text_block


class Read(Protocol):
    """What a posterior tells that has no model."""

    name: str
    code: str
    iterations: int
    log_evidence: float
    explanation: str
    without_family: Mapping[str, str]

    @property
    def verdict(self) -> Verdict:
        """How far to rely on it."""
        ...


def html_of_program(model: Model, observed: Collection[str], plan: Plan, explained: str) -> str:
    """A program: what it is given, its model, and its plan, which `explained` tells in words."""
    sizes = {name: size for name, (size, _) in model.sizes.items()}
    return part(
        tag("p", f"Program of {model.name}", class_="name"),
        tag("p", f"Compiled for observations of {', '.join(sorted(observed)) or 'nothing'}: program(data) infers."),
        factors(plan),
        folded("The model", picture_and_table(model, observed, sizes)),
        printed(explained),
    )


def html_of_batch(evidence: np.ndarray, converged: np.ndarray, names: Sequence[str]) -> str:
    """The inferences of many data sets: a row for each, with its log evidence and whether it converged.

    `names` are those of the variables, whose marginals in all of them are asked for by name.
    """
    number, well = len(evidence), int(np.sum(converged))
    rows = [
        [k, float(value), "yes" if end else "no"]
        for k, (value, end) in enumerate(islice(zip(evidence, converged, strict=True), ROWS + 1))
    ]
    told = f"{well} of {counted(number, 'inference')} converged. batch[0] is the posterior of the first data set, and "
    return part(
        tag("p", f"Posteriors of {counted(number, 'data set')}", class_="name"),
        tag("p", told, f"batch[{names[0]!r}] the marginal in all of them." if names else "so on."),
        table("Data sets", ["data set", "log evidence", "converged"], rows, number),
    )


def html_of_saved(saved: Read, marginals: Mapping[str, Marginal]) -> str:
    """A posterior that was read without its model: verdict, `marginals` in a table, and what explained it."""
    level = tag("span", saved.verdict.level, class_=saved.verdict.level)
    ended = f"{saved.code} in {counted(saved.iterations, 'sweep')}"
    heads = ["variable", "family", "shape", "mean ± sd"]
    rows = [in_short(name, lambda name=name: marginals[name]) for name in islice(marginals, ROWS + 1)]
    lost = ", ".join(saved.without_family)
    return part(
        tag("p", f"Saved posterior of {saved.name}", class_="name"),
        tag("p", level, f": {saved.verdict.reason} Log evidence {saved.log_evidence:.6g}; {ended}."),
        table("Marginals", heads, rows, len(marginals)),
        tag("p", f"Without a marginal in the file: {lost}.", class_="quiet") if lost else "",
        tag("p", "What needs the model asks for it: cv.load(path, model).", class_="quiet"),
        folded("The plan", text_block(saved.explanation, "What explain() prints")),
    )

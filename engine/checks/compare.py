"""Posteriors of the same data by several models, side by side: log evidence, and leave-one-out with errors."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...factors.calls import call_checked, methods_checked
from ...factors.errors import CavityError, DataError, ModelError
from ..answers.inferred import Inferred, axes_of

Table = Any  # a pandas DataFrame


@methods_checked("comparison")
@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """Models beside each other, the one of the highest log evidence first: `print(comparison)`.

    Attributes:
        names: of the models.
        log_evidence: (models,), and `evidence_error` its estimated error where the posterior tells one, else NaN.
        loo: (models,) sums of log p(y_i | all others); NaN where a model has none, for the reason in `notes`.
        loo_difference: (models,) from the first model, and `loo_error` its standard error over observations.
        notes: what could not be compared, by name.
    """

    names: tuple[str, ...]
    log_evidence: np.ndarray
    evidence_error: np.ndarray
    loo: np.ndarray
    loo_difference: np.ndarray
    loo_error: np.ndarray
    notes: dict[str, str]

    def to_frame(self) -> Table:
        """The table as a pandas DataFrame; ImportError without pandas."""
        import pandas  # pyright: ignore[reportMissingImports]

        columns = ("log_evidence", "evidence_error", "loo", "loo_difference", "loo_error")
        return pandas.DataFrame({name: getattr(self, name) for name in columns}, index=pandas.Index(self.names))

    def __str__(self) -> str:
        width = max(len(name) for name in (*self.names, "model"))
        head = ("log evidence", "error", "log Bayes factor", "loo", "difference", "se")
        lines = [f"{'model':<{width}}" + "".join(f"{title:>{_wide(title)}}" for title in head)]
        factors = self.log_evidence - self.log_evidence[0]
        columns = (self.log_evidence, self.evidence_error, factors, self.loo, self.loo_difference, self.loo_error)
        for i, name in enumerate(self.names):
            cells = (f"{column[i]:.5g}" if column[i] == column[i] else "-" for column in columns)
            lines.append(f"{name:<{width}}" + "".join(f"{c:>{_wide(t)}}" for c, t in zip(cells, head, strict=True)))
        lines += [f"{name}: {note}" for name, note in self.notes.items()]
        return "\n".join(lines)

    __repr__ = __str__


def _wide(title: str) -> int:
    return max(len(title), 9) + 3


@call_checked
def compare(posteriors: Sequence[Any] | Mapping[str, Any]) -> Comparison:
    """Posteriors of the same data by several models, by log evidence and by leave-one-out: `print(cv.compare([...]))`.

    `posteriors` is a list, or a dictionary with a name for each; in a list they are called as their models, with a
    number where two have one name. Leave-one-out differences have the standard error of the sum over observations.
    Returns a `Comparison`. Raises ModelError for less than two posteriors, DataError where they observe different data.
    Source: vehtari2016loo.
    """
    named = _named(posteriors)
    _check_data(named)
    order = sorted(named, key=lambda name: -named[name].log_evidence)
    notes, pointwise = {}, {}
    for name in order:
        try:
            found = named[name].loo()
            if found.unavailable:
                notes[name] = "; ".join(found.unavailable.values())
            else:
                pointwise[name] = np.concatenate([np.ravel(found[key]) for key in sorted(found)])
        except CavityError as problem:
            notes[name] = str(problem)
    first = pointwise.get(order[0])
    gaps = {name: own - first for name, own in pointwise.items() if first is not None}

    def column(value: Any) -> np.ndarray:
        return np.array([value(name) for name in order], float)

    return Comparison(
        tuple(order),
        column(lambda name: named[name].log_evidence),
        column(lambda name: getattr(named[name], "error", np.nan)),
        column(lambda name: np.nansum(pointwise[name]) if name in pointwise else np.nan),
        column(lambda name: np.nansum(gaps[name]) if name in gaps else np.nan),
        column(lambda name: _error(gaps[name]) if name in gaps else np.nan),
        notes,
    )


def _error(gaps: np.ndarray) -> float:
    """Of a sum of differences."""
    known = gaps[np.isfinite(gaps)]
    return float(np.sqrt(len(known)) * np.std(known, ddof=1)) if len(known) > 1 else np.nan


def _named(posteriors: Any) -> dict[str, Any]:
    if isinstance(posteriors, Inferred) or not isinstance(posteriors, (Mapping, Sequence)) or len(posteriors) < 2:
        raise ModelError("compare() takes two posteriors or more: cv.compare([first, second]), or a dictionary.")
    values = list(posteriors.values() if isinstance(posteriors, Mapping) else posteriors)
    for one in values:
        if not isinstance(one, Inferred):
            raise ModelError(f"compare() takes posteriors, of cv.infer(model, data); found {type(one).__name__}.")
    if isinstance(posteriors, Mapping):
        return dict(zip(map(str, posteriors), values, strict=True))
    found: dict[str, Any] = {}
    for one in values:
        name, number = one.model.name, 2
        while name in found:
            name, number = f"{one.model.name} {number}", number + 1
        found[name] = one
    return found


def _same_values(one: Any, other: Any, key: str) -> bool:
    """Whether both observe the same values under this name: missing ones too, and the labels that classes stand for."""
    left, right = one.observed.get(key), other.observed.get(key)
    if left is None or right is None or np.shape(left) != np.shape(right):
        return False
    gone, absent = (of.binding.missing.get(key, np.zeros(np.shape(left), bool)) for of in (one, other))
    if not np.array_equal(gone, absent):
        return False
    spread = gone.reshape(gone.shape + (1,) * (np.ndim(left) - gone.ndim))
    return bool(np.all(spread | (np.asarray(left) == np.asarray(right)))) and _classes(one, key) == _classes(other, key)


def _classes(posterior: Any, key: str) -> Any:
    axes = axes_of(posterior.model, key, posterior.binding.names)
    return next((axis.labels for axis in axes if axis.is_class), None)


def _check_data(named: Mapping[str, Inferred]) -> None:
    """DataError where two posteriors observe different values: their evidence has nothing to do with each other."""
    (first, one), *others = named.items()
    for name, other in others:
        for key in sorted({*one.observed, *other.observed}):
            if not _same_values(one, other, key):
                raise DataError(
                    f"compare(): '{first}' and '{name}' observe different values of '{key}'. Evidence and leave-one-"
                    "out compare models of the same observations, under the same names: condition both on these."
                )

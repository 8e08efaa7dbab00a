"""scikit-learn's names for all estimators, or an error that says how to get it; what those of unlabelled rows share."""

from __future__ import annotations

from numbers import Integral
from typing import Any, TypeAlias

import jax
import numpy as np

from ..factors.arrays import Key
from ..factors.calls import methods_checked

try:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        ClassNamePrefixFeaturesOutMixin,
        ClusterMixin,
        DensityMixin,
        RegressorMixin,
        TransformerMixin,
    )
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils import Tags, check_random_state
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as problem:
    raise ImportError(
        "The estimators of cavity.models are those of scikit-learn 1.6 or later, which was not found. "
        "Install it with the extra: pip install 'cavity[sklearn]'."
    ) from problem

__all__ = [
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "ClassifierMixin",
    "ClusterMixin",
    "ConvergenceWarning",
    "DensityMixin",
    "RegressorMixin",
    "Table",
    "Tags",
    "TransformerMixin",
    "Unlabelled",
    "as_table",
    "check_classification_targets",
    "check_counts",
    "check_is_fitted",
    "names_of_rows",
    "read_named",
    "second_half",
    "type_of_target",
    "validate_data",
]

Table: TypeAlias = Any  # what scikit-learn takes for X and y: arrays, lists, data frames, sparse matrices


@methods_checked("estimator")
class Unlabelled:
    """Rows without outcomes, whose entries may be missing, and a density of new ones; stands before other mixins."""

    random_state: int | np.random.RandomState | None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        return tags

    def score_samples(self, X: Table) -> np.ndarray:
        """(rows,) log predictive density of each row of `X` (rows, columns)."""
        raise NotImplementedError

    def score(self, X: Table, y: Table = None) -> float:
        """Mean log predictive density of the rows of `X` (rows, columns); `y` is ignored."""
        return float(np.mean(self.score_samples(X)))

    def _key(self) -> Key:
        return jax.random.key(check_random_state(self.random_state).randint(2**31 - 1))


def as_table(X: Table) -> Table:
    """Of an annotated matrix (AnnData), also where it is sparse, its frame; anything else as it is."""
    return X.to_df() if all(hasattr(X, name) for name in ("obs_names", "var_names", "to_df")) else X


def read_named(model: BaseEstimator, X: Table, reset: bool) -> np.ndarray:
    """(rows, columns) of any table, nan where missing; names of columns are kept, and compared where not `reset`.

    With `reset` the names of the rows become `sample_names_`, None where the table has none.
    """
    X = as_table(X)
    least = 2 if reset else 1
    values: Any = validate_data(
        model, X, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_samples=least, reset=reset
    )
    if reset:
        names = names_of_rows(X)
        model.sample_names_ = None if names is None else np.array(names, dtype=object)  # type: ignore[attr-defined]
    return values


def check_counts(model: BaseEstimator, **least: int) -> None:
    """ValueError where an argument is no whole number of at least so many."""
    for name, smallest in least.items():
        value = getattr(model, name)
        if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < smallest:
            raise ValueError(f"{name}= is a whole number of at least {smallest}; found {value!r}.")


def names_of_rows(X: Table) -> tuple[str, ...] | None:
    """Names of the rows of a table that has an index, as pandas has; None of others."""
    return tuple(str(name) for name in X.index) if hasattr(X, "columns") and hasattr(X, "index") else None


def second_half(n_sweeps: int, draws: int, name: str) -> tuple[int, int]:
    """`warmup` and `thin` of chains whose draws are spread over the second half of their sweeps.

    Raises:
        ValueError: fewer sweeps in that half than draws; `name` is that of their number.
    """
    if n_sweeps < 2 * draws:
        raise ValueError(
            f"Chains of n_sweeps={n_sweeps} sweeps, of which the first half is left out, have no {draws} draws to "
            f"keep. Take n_sweeps={2 * draws} or more, or fewer {name}."
        )
    thin = max(1, n_sweeps // 2 // max(draws, 1))
    return max(n_sweeps - thin * draws, 0), thin

"""What the estimators share: one program for data of similar sizes, the fit, predictions, and pickling."""

from __future__ import annotations

import functools
import os
import tempfile
import warnings
from collections.abc import Callable, Hashable
from typing import Any, Self, TypeAlias

import numpy as np
from scipy import sparse

import cavity as cv  # pyright: ignore[reportMissingImports]

from ..factors.arrays import Numeric
from ..factors.calls import methods_checked
from .scikit import (
    BaseEstimator,
    ConvergenceWarning,
    RegressorMixin,
    Table,
    Tags,
    as_table,
    check_is_fitted,
    validate_data,
)

Features: TypeAlias = Any  # as `validate_data` gives them: an array, or a matrix of scipy.sparse in compressed rows
Definition = tuple[Callable[..., cv.Model], tuple[Hashable, ...]]  # what makes a model, and its arguments
TIGHT = 1e-8  # tolerance of inferences whose evidence is followed uphill


@functools.lru_cache(maxsize=32)
def program(
    definition: Definition, observed: tuple[str, ...], tolerance: float, max_iter: int, method: Any = "auto"
) -> cv.Program:
    """One program for all fits with equal settings; small data are run by NumPy, as those of `cv.infer`."""
    build, arguments = definition
    options = {"tolerance": tolerance, "max_iterations": max_iter, "execution": "auto"}
    return cv.compile(build(*arguments), observed, method=method, **options)


# The engine pads the rows of dense data where they meet in sums alone (`engine/run/padded.py`). The two functions below
# are for the rest: sparse data, which the engine lays out for their number of rows, and rows that have a belief each,
# which it never pads. A row without features and with a missing outcome changes nothing there.


def padded(array: Features) -> Features:
    """With at least one row of zeros below: up to a multiple of 64, or of an eighth to a sixteenth of a large size."""
    rows = array.shape[0]
    step = max(64, 2 ** (rows.bit_length() - 4))
    more = (rows // step + 1) * step - rows
    if sparse.issparse(array):
        ends = np.concatenate([array.indptr, np.full(more, array.indptr[-1])])
        return sparse.csr_array((array.data, array.indices, ends), shape=(len(ends) - 1, array.shape[1]))
    return np.concatenate([array, np.zeros((more, *array.shape[1:]), array.dtype)])


def partly(array: np.ndarray) -> np.ma.MaskedArray:
    """Outcomes, one for each row, padded with unobserved ones."""
    whole = padded(array)
    return np.ma.masked_array(whole, np.arange(len(whole)) >= len(array))


def location_and_scale(array: Features) -> tuple[np.ndarray | float, np.ndarray]:
    """Mean and standard deviation of each column; one for a constant column.

    Zero and the root mean square for a sparse matrix: subtracting means would fill it.
    """
    if sparse.issparse(array):
        square = np.asarray(array.multiply(array).mean(axis=0)).ravel()
        return 0.0, np.where(square > 0.0, np.sqrt(square), 1.0)
    sd = array.std(axis=0)
    return array.mean(axis=0), np.where(sd > 1e-12 * np.abs(array).max(axis=0), sd, 1.0)


class KeepsPosterior(BaseEstimator):
    """An estimator whose `posterior_` was inferred by the model that the definition `_made_by` makes."""

    def __getstate__(self) -> dict[str, object]:
        """The posterior as the bytes of its file: compiled programs do not travel."""
        state: dict[str, Any] = {**super().__getstate__()}  # type: ignore[dict-item]
        if "posterior_" in state:
            with tempfile.TemporaryDirectory() as folder:
                state["posterior_"].save(path := os.path.join(folder, "posterior"))
                with open(path, "rb") as file:
                    state["posterior_"] = file.read()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(state.get("posterior_"), bytes):
            build, arguments = state["_made_by"]
            with tempfile.TemporaryDirectory() as folder:
                with open(path := os.path.join(folder, "posterior"), "wb") as file:
                    file.write(state["posterior_"])
                state = {**state, "posterior_": cv.load(path, build(*arguments))}
        super().__setstate__(state)


@methods_checked("estimator")
class Estimator(KeepsPosterior):
    """What all estimators share. A subclass tells its model, how outcomes are coded, and which inputs are learned."""

    _accepts: str | bool = "csr"  # what `validate_data` makes of sparse features; False refuses them
    _with_beliefs = False  # whether rows have a belief each

    def __init__(self, *, standardize: bool = True, tolerance: float = 1e-6, max_iter: int = 1000) -> None:
        self.standardize = standardize
        self.tolerance = tolerance
        self.max_iter = max_iter

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = bool(self._accepts)
        return tags

    def _definition(self, features: int) -> Definition:
        raise NotImplementedError

    def _coded(self, y: np.ndarray) -> np.ndarray:
        """The outcomes as the model reads them."""
        return y

    def _start(self) -> dict[str, Numeric]:
        """Starting values of the inputs that are learned by the gradient of the evidence."""
        return {}

    def fit(self, X: Table, y: Table) -> Self:
        """Infers the posterior given features `X` (rows, features; dense or sparse) and outcomes `y` (rows). Returns
        itself.

        Sets `posterior_`, `log_evidence_`, `n_iter_` (sweeps), `converged_`, `hyperparameters_` (inputs that were
        learned by the gradient of the evidence) and, where scores are linear, `coef_` and `intercept_`, posterior
        means in the units of X. Warns where the inference did not converge. Raises ValueError for data that do not fit.
        """
        numeric = isinstance(self, RegressorMixin)
        X, y = validate_data(
            self, as_table(X), y, accept_sparse=self._accepts, dtype=np.float64, ensure_min_samples=2, y_numeric=numeric
        )
        outcome = self._coded(y)
        self._centre, self._width = location_and_scale(X) if self.standardize else (0.0, np.ones(X.shape[1]))
        inputs = self._inputs(X)
        if inputs.shape[0] > len(outcome):
            outcome = partly(outcome)
        self._infer(self._definition(X.shape[1]), {"x": inputs, "y": outcome}, "y", self._start())
        self._describe()
        return self

    def _inputs(self, X: Features) -> Features:
        """Features, standardised, and padded where the engine does not. Sparse ones stay so unless they are centred."""
        if sparse.issparse(X) and not np.any(self._centre):
            return padded(sparse.csr_array(X.multiply(1.0 / self._width)))
        dense = ((X.toarray() if sparse.issparse(X) else X) - self._centre) / self._width
        return padded(dense) if self._with_beliefs else dense

    def _infer(
        self,
        definition: Definition,
        data: dict[str, Features],
        observed: str,
        start: dict[str, Numeric],
    ) -> None:
        tolerance = min(self.tolerance, TIGHT) if start else self.tolerance
        compiled = program(definition, (observed,), tolerance, self.max_iter)
        self._made_by = definition
        self.posterior_, self.hyperparameters_ = compiled.run({**data, **start}), start
        if start and self.posterior_.converged:  # elsewhere the evidence has no gradient
            learned = cv.learn(compiled, {**data, **start}, tuple(start))
            self.posterior_, self.hyperparameters_ = learned.posterior, learned.values
        self.log_evidence_, self.n_iter_ = self.posterior_.log_evidence, self.posterior_.iterations
        self.converged_ = self.posterior_.converged
        if not self.converged_:
            warnings.warn(self.posterior_.diagnosis, ConvergenceWarning, stacklevel=3)

    def _describe(self) -> None:
        """Sets attributes in the units of the data."""
        self.coef_, self.intercept_ = self._form("weight", "bias")

    def _form(self, weight: str, bias: str) -> tuple[np.ndarray, np.ndarray]:
        """Mean weights and bias of a linear score, in the units of X."""
        coefficient = self.posterior_[weight].mean / self._width
        return coefficient, self.posterior_[bias].mean - np.sum(coefficient * self._centre, axis=-1)

    def _predictive(self, X: Table) -> Callable[[str, str], np.ndarray]:
        """A moment of the predictive marginal of a variable at the rows of `X`."""
        check_is_fitted(self)
        X = validate_data(self, as_table(X), accept_sparse=self._accepts, dtype=np.float64, reset=False)
        found = self.posterior_.predict({"x": self._inputs(X)})
        return lambda name, moment="mean": getattr(found[name], moment)[: X.shape[0]]

"""`GaussianMixture`, an estimator of scikit-learn."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from scipy.special import gammaln, logsumexp
from sklearn.cluster import KMeans

import cavity as cv  # pyright: ignore[reportMissingImports]

from ...factors.calls import methods_checked
from ..fitting import Definition, KeepsPosterior, location_and_scale, program
from ..gaussian_mixture import COVARIANCES, gaussian_mixture
from ..scikit import (
    ConvergenceWarning,
    DensityMixin,
    Table,
    as_table,
    check_is_fitted,
    check_random_state,
    validate_data,
)
from .density import components, draws, log_densities
from .units import Units, units_of

PATIENCE = 2  # numbers of components in a row that make the evidence no better, after which no more are tried


@methods_checked("estimator")
class GaussianMixture(DensityMixin, KeepsPosterior):
    """A Bayesian mixture of Gaussians, whose number of components the evidence chooses: see `gaussian_mixture`.

    `n_components` is their number; None tries 1, 2 and so on up to `max_components`, until two in a row have made the
    evidence no better, and keeps the best. `covariance_type` is "full", "diag", "spherical" or "tied". `inference` is
    "vmp", "ep" or "power" (power EP with `power`), which need "full" or "diag"; both begin at the beliefs of VMP, which
    begins at `n_init` clusterings by k-means, and keeps the best. `concentration`, `mean_precision`, `freedom` and
    `spread` are the priors of `gaussian_mixture`, of data that `standardize` makes of unit covariance (of unit
    variances where it is diagonal or spherical). Fitted attributes:
    `n_components_`, `weights_` (k), `means_` (k, d), `covariances_` (posterior means, shaped as in scikit-learn),
    `labels_` (rows), `log_evidence_` of X, of all orders of the components together, `log_evidences_` (by number of
    components), `posterior_`, `converged_`, `n_iter_`. Source: attias2000variational, paquet2007thesis.
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        covariance_type: str = "full",
        inference: str = "vmp",
        power: float = 0.5,
        max_components: int = 10,
        n_init: int = 5,
        concentration: float = 1.0,
        mean_precision: float = 0.01,
        freedom: float | None = None,
        spread: float | None = None,
        standardize: bool = True,
        tolerance: float = 1e-4,
        max_iter: int = 1000,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.inference = inference
        self.power = power
        self.max_components = max_components
        self.n_init = n_init
        self.concentration = concentration
        self.mean_precision = mean_precision
        self.freedom = freedom
        self.spread = spread
        self.standardize = standardize
        self.tolerance = tolerance
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Table, y: Table = None) -> Self:
        """Infers the posterior given `X` (rows, d); `y` is ignored. Returns itself.

        Warns where the inference did not converge. Raises ValueError for data or settings that do not fit.
        """
        X = validate_data(self, as_table(X), dtype=np.float64, ensure_min_samples=2)
        self._check(X)
        size, random = X.shape[1], check_random_state(self.random_state)
        as_it_is = Units(np.zeros(size), np.eye(size))
        self._units = units_of(X, self.covariance_type) if self.standardize else as_it_is
        inputs, (centre, width) = self._units.inputs(X), location_and_scale(X)
        views = inputs, (X - centre) / width
        best, self.log_evidences_ = None, {}
        for number in self._numbers(len(X)):
            definition, found = self._inferred(inputs, views, number, random)
            evidence = found.log_evidence + gammaln(number + 1.0) - len(X) * self._units.log_volume
            if best is None or evidence > self.log_evidences_[best[0]]:
                best = number, definition, found
            self.log_evidences_[number] = float(evidence)
            if number - best[0] >= PATIENCE:
                break
        assert best is not None
        self.n_components_, self._made_by, self.posterior_ = best
        self._describe(inputs)
        return self

    def _check(self, X: np.ndarray) -> None:
        if self.covariance_type not in COVARIANCES:
            raise ValueError(f"covariance_type= is one of {', '.join(COVARIANCES)}; found {self.covariance_type!r}.")
        if self.inference not in ("vmp", "ep", "power"):
            raise ValueError(f"inference= is 'vmp', 'ep' or 'power'; found {self.inference!r}.")
        if self.inference != "vmp" and self.covariance_type in ("spherical", "tied"):
            raise ValueError(
                f"inference={self.inference!r} needs a conjugate prior of each mean and its precision, which "
                f"covariance_type={self.covariance_type!r} does not have. Take 'full' or 'diag', or inference='vmp'."
            )
        numbers = ("n_components", 1 if self.n_components is None else self.n_components), ("n_init", self.n_init)
        for name, value in (*numbers, ("max_components", self.max_components)):
            if value < 1 or value != int(value):
                raise ValueError(f"{name}= is a whole number of at least 1; found {value!r}.")
        if (self.n_components or 1) > len(X):
            raise ValueError(
                f"n_components={self.n_components} is more than n_samples = {len(X)}: each component begins with a row."
            )
        if self.freedom is not None and self.freedom <= X.shape[1] + 1:
            raise ValueError(
                f"freedom= is above {X.shape[1] + 1}, one more than the columns, so that covariances have a mean; "
                f"found {self.freedom}."
            )

    def _numbers(self, rows: int) -> list[int]:
        """The numbers of components that are tried."""
        return list(range(1, min(self.max_components, rows) + 1)) if self.n_components is None else [self.n_components]

    def _inferred(
        self, inputs: np.ndarray, views: tuple[np.ndarray, ...], number: int, random: np.random.RandomState
    ) -> tuple[Definition, Any]:
        """The posterior with so many components, and what made its model; clusterings begin in these views by turns."""
        priors = self.concentration, self.mean_precision, self.freedom, self.spread
        definition = (gaussian_mixture, (number, inputs.shape[1], self.covariance_type, *priors))
        settings = self.tolerance, self.max_iter
        given, free = (program(definition, names, *settings, "vmp") for names in (("x", "z"), ("x",)))
        found = []
        for i in range(self.n_init if number > 1 else 1):
            clustering = KMeans(number, n_init=1, random_state=random.randint(2**31 - 1))  # type: ignore[arg-type]
            labels = clustering.fit_predict(views[i % len(views)])
            start = given.run({"x": inputs, "z": labels})
            found.append(free.run({"x": inputs}, start=start))
        best = max(found, key=lambda posterior: posterior.log_evidence)
        if self.inference == "vmp":
            return definition, best
        method = "ep" if self.inference == "ep" else cv.power(self.power)
        return definition, program(definition, ("x",), *settings, method).run({"x": inputs}, start=best)

    def _describe(self, inputs: np.ndarray) -> None:
        """Sets attributes in the units of the data."""
        found = components(self.posterior_, self.covariance_type)
        self._components = found
        self.weights_, self.means_ = found.weight, self._units.back(found.centre)
        self.covariances_ = self._units.covariances(found.spread, self.covariance_type)
        self.log_evidence_, self.n_iter_ = self.log_evidences_[self.n_components_], self.posterior_.iterations
        self.converged_ = self.posterior_.converged
        self.labels_ = log_densities(found, inputs).argmax(axis=1)
        if not self.converged_:
            warnings.warn(self.posterior_.diagnosis, ConvergenceWarning, stacklevel=3)

    def _by_component(self, X: Table) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, as_table(X), dtype=np.float64, reset=False)
        return log_densities(self._components, self._units.inputs(X)) - self._units.log_volume

    def score_samples(self, X: Table) -> np.ndarray:
        """The log posterior predictive density (rows) of each row of `X` (rows, d)."""
        return np.asarray(logsumexp(self._by_component(X), axis=1))

    def score(self, X: Table, y: Table = None) -> float:
        """The mean of `score_samples` over the rows of `X` (rows, d); `y` is ignored."""
        return float(np.mean(self.score_samples(X)))

    def predict_proba(self, X: Table) -> np.ndarray:
        """The probability (rows, k) of each component, given each row of `X` (rows, d)."""
        logs = self._by_component(X)
        return np.exp(logs - logsumexp(logs, axis=1, keepdims=True))

    def predict(self, X: Table) -> np.ndarray:
        """The most probable component (rows) of each row of `X` (rows, d)."""
        return self._by_component(X).argmax(axis=1)

    def fit_predict(self, X: Table, y: Table = None) -> np.ndarray:
        """`fit`, and the most probable component (rows) of each row of `X` (rows, d); `y` is ignored."""
        return self.fit(X).labels_

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Rows (n_samples, d) from the posterior predictive distribution, and the component of each."""
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"n_samples= is at least 1; found {n_samples!r}.")
        rows, labels = draws(self._components, n_samples, check_random_state(self.random_state))
        return self._units.back(rows), labels

"""Diffusion trees as an estimator of scikit-learn: a hierarchy of the rows, their density, and clusters at a cut."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import jax
import numpy as np
from scipy.special import log_ndtr

from ...engine.support.user_numbers import number
from ...factors.calls import methods_checked
from ..scikit import (
    BaseEstimator,
    ClusterMixin,
    DensityMixin,
    Unlabelled,
    as_table,
    check_is_fitted,
    names_of_rows,
    second_half,
    validate_data,
)
from .chains.settings import Settings
from .divergence import Divergence
from .fitted_tree import FittedTree
from .likelihoods.mass import log_intervals
from .likelihoods.table import Data
from .mcmc import sample_posterior
from .predict import Mixture, log_predictive, predictive_mixture, sample_predictive
from .prior import TreePrior, tables
from .search import predictor, search_trees

STEPS = 5  # of a search, for each row


@methods_checked("estimator")
class DiffusionTree(Unlabelled, DensityMixin, ClusterMixin, BaseEstimator):
    """Hierarchical clustering and density estimation by Dirichlet and Pitman-Yor diffusion trees.

    The rows are leaves of a tree; each moves from the origin by Brownian motion, together with others up to where
    their paths part. The tree, its divergence times and its hyperparameters are found by search, or drawn from their
    posterior; `score_samples` is the predictive density of new rows, averaged over trees: the draws, or after a search
    those of a short chain around the best tree.

    Args:
        concentration: 0 for binary trees, larger for branch points with many children; "learn".
        discount: below 1, see `TreePrior`; "learn".
        rate: of the divergence function a(t) = rate / (1 - t): early divergence when large; "learn".
        variance: diffusion variance: "columns" learns one for each column, "shared" one for all; or fixed, a number or
            one for each column, in units of the standardised columns.
        noise: variance of Gaussian noise about the leaves of continuous columns, in the same units; "learn". Rows that
            are equal need noise.
        binary: which columns hold 0 and 1, with a probit likelihood: True, False, one boolean for each column, or
            "auto": those with no other values.
        n_clusters: cut the tree at the earliest time with at least so many clusters; None: the children of the first
            branch point.
        inference: "search", the best trees; or "mcmc", draws from the posterior, which give better densities and say
            how sure the tree is.
        n_trees: how many trees of different structure, or how many draws, to keep; and how many to average over.
        n_steps: of a search: subtrees to move; None: 5 for each row. `search_.diagnosis` says what more may bring.
        max_seconds: of a search: go on for so many seconds instead.
        restarts: of a search: builds from different orders of the rows.
        n_sweeps: of a chain: sweeps over all rows, of which the first half is left out; at least 2 `n_trees`.
        standardize: whether continuous columns are scaled to mean 0 and variance 1 first.
        backend: "jax", or "numba" (an extra), several times faster.
        random_state: an integer, for the same trees each time; a RandomState, or None.
        verbose: show progress.

    Attributes:
        tree_: the best tree, a `Tree`, or the draw of largest density, depths integrated out. trees_: all trees kept,
            best or earliest first.
        labels_: (rows,) clusters. log_joint_: of the best tree. search_ or chains_: the whole result, with its trace,
            and the hyperparameters of each tree.

    Source: knowles2015pitman.
    """

    def __init__(
        self,
        concentration: Any = 0.0,
        discount: Any = 0.0,
        rate: Any = "learn",
        variance: Any = "columns",
        noise: Any = "learn",
        *,
        binary: Any = "auto",
        n_clusters: int | None = None,
        inference: str = "search",
        n_trees: int = 10,
        n_steps: int | None = None,
        max_seconds: float | None = None,
        restarts: int = 1,
        n_sweeps: int = 200,
        standardize: bool = True,
        backend: str = "jax",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.concentration = concentration
        self.discount = discount
        self.rate = rate
        self.variance = variance
        self.noise = noise
        self.binary = binary
        self.n_clusters = n_clusters
        self.inference = inference
        self.n_trees = n_trees
        self.n_steps = n_steps
        self.max_seconds = max_seconds
        self.restarts = restarts
        self.n_sweeps = n_sweeps
        self.standardize = standardize
        self.backend = backend
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> DiffusionTree:
        """Searches for trees of the rows of `X` (rows, columns; NaN where missing); `y` is ignored. Returns itself.

        Raises:
            ValueError: data or settings that have no meaning; the message says which.
        """
        names = names_of_rows(X) or ()
        X = validate_data(self, as_table(X), dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_samples=2)
        _check_settings(self, len(X))
        self.binary_ = _binary(self.binary, X)
        self._centre, self._width = _location_and_scale(X, self.binary_, self.standardize)
        learn = {name for name in ("concentration", "discount", "rate", "noise") if _learns(getattr(self, name))}
        if isinstance(self.variance, str):
            learn.add("variance")
        if self.binary_.all():
            learn.discard("noise")
        data = Data((X - self._centre) / self._width, self.binary_)
        key = self._key()
        if self.inference == "search":
            self._search(data, key, learn, names)
        elif self.inference == "mcmc":
            self._sample(data, key, learn, names)
        else:
            raise ValueError(f"inference= is 'search' or 'mcmc'; found {self.inference!r}.")
        self.labels_ = self.labels()
        return self

    def _search(self, data: Data, key: Any, learn: set[str], names: tuple[str, ...]) -> None:
        self.search_ = search_trees(
            data,
            self._prior(),
            key=key,
            steps=self._steps(len(data.values)),
            seconds=self.max_seconds,
            restarts=self.restarts,
            keep=self.n_trees,
            variance=_variance(self.variance, data.shape[1]),
            noise=self._noise(),
            learn=learn,
            backend=self.backend,
            names=names,
            progress=bool(self.verbose),
        )
        found = self.search_.trees
        self.trees_ = tuple(each.tree for each in found)
        self.tree_, self.log_joint_ = found[0].tree, found[0].log_joint
        self._best = predictor(self.search_.problem, self.search_.best.state)
        self._fitted = self.search_.draws(self.n_trees, jax.random.fold_in(key, 1))
        self._log_weights = np.zeros(len(self._fitted))

    def _sample(self, data: Data, key: Any, learn: set[str], names: tuple[str, ...]) -> None:
        if np.ndim(self.variance) > 0:
            raise ValueError("inference='mcmc' takes variance='columns', 'shared' or one number for all columns.")
        settings = Settings(
            learn=frozenset(learn),
            prior=self._prior(),
            variance=float(np.mean(_variance(self.variance, data.shape[1]))),
            noise=self._noise(),
            per_column=isinstance(self.variance, str) and self.variance == "columns",
        )
        warmup, thin = second_half(self.n_sweeps, self.n_trees, "n_trees")
        self.chains_ = sample_posterior(
            data,
            key,
            self.n_trees,
            settings,
            chains=1,
            warmup=warmup,
            thin=thin,
            backend=self.backend,
            progress=bool(self.verbose),
        )
        self.trees_ = tuple(self.chains_.tree(0, draw).renamed(names) for draw in range(self.n_trees))
        self._fitted = [self.chains_.fitted(0, draw) for draw in range(self.n_trees)]
        log_joint = self.chains_.chains["log_joint"][0]
        best = int(np.argmax(log_joint + [_log_room(fitted) for fitted in self._fitted]))
        self.tree_, self.log_joint_ = self.trees_[best], float(log_joint[best])
        self._best = self._fitted[best]
        self._log_weights = np.zeros(self.n_trees)

    def labels(self, *, n_clusters: int | None = None, time: float | None = None) -> np.ndarray:
        """(rows,) clusters of the best tree at another cut: into `n_clusters` at least, or at a divergence `time`."""
        check_is_fitted(self)
        if time is not None:
            return self.tree_.labels(time=time, clusters=n_clusters)
        children = len(self.tree_.children[self.tree_.top])
        return self.tree_.labels(
            clusters=next(k for k in (n_clusters, self.n_clusters, max(children, 1)) if k is not None)
        )

    def score_samples(self, X: Any) -> np.ndarray:
        """(rows,) log predictive density of new rows `X`, averaged over the trees; probabilities for binary columns."""
        check_is_fitted(self)
        X = validate_data(self, as_table(X), dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        seen = ~np.isnan(X) & ~self.binary_
        scaled = (X - self._centre) / self._width
        return log_predictive(self._fitted, scaled, self._log_weights) - seen @ np.log(self._width)

    def sample(self, n_samples: int = 1) -> np.ndarray:
        """(n_samples, columns) draws from the predictive distribution."""
        check_is_fitted(self)
        return sample_predictive(self._fitted, n_samples, self._key(), self._log_weights) * self._width + self._centre

    def predict(self, X: Any) -> np.ndarray:
        """(rows,) the cluster of `labels_` whose branches of the best tree give each row of `X` most density."""
        check_is_fitted(self)
        X = validate_data(self, as_table(X), dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        return _nearest(self._best, self.labels_, (X - self._centre) / self._width)

    def _steps(self, rows: int) -> int | None:
        if self.max_seconds is not None:
            return None
        return STEPS * rows if self.n_steps is None else self.n_steps

    def _prior(self) -> TreePrior:
        concentration, discount = _start(self.concentration, 1.0), _start(self.discount, 0.1)
        return TreePrior(concentration, discount, Divergence(rate=_start(self.rate, 1.0)))

    def _noise(self) -> float:
        return 0.0 if self.binary_.all() else _start(self.noise, 0.01)


def _nearest(fitted: FittedTree, labels: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The cluster with most of the predictive density at each row; a branch belongs to the first leaf below it."""
    mixture = predictive_mixture(fitted)
    first = _first_leaves(fitted)
    cluster = labels[first[mixture.node]]
    clusters = np.arange(labels.max() + 1)
    found = np.empty(len(rows), dtype=labels.dtype)
    for i, row in enumerate(rows):
        with np.errstate(divide="ignore"):
            joint = np.log(mixture.weight) + _log_density(mixture, row, fitted.binary)
        total = [np.logaddexp.reduce(joint[cluster == c]) for c in clusters]  # minus infinity where there is none
        found[i] = np.argmax(total)
    return found


def _first_leaves(fitted: FittedTree) -> np.ndarray:
    """(rows,) a leaf below each node."""
    parent = np.asarray(fitted.arrays.parent)
    leaf = np.arange(len(parent))
    for node in np.argsort(-np.asarray(fitted.arrays.depth), kind="stable"):
        if parent[node] >= 0:
            leaf[parent[node]] = leaf[node]
    return leaf


def _log_density(mixture: Mixture, row: np.ndarray, binary: np.ndarray) -> np.ndarray:
    """(components,) log density of the entries of a row that are there."""
    number, yes = ~np.isnan(row) & ~binary, ~np.isnan(row) & binary
    mean, variance = mixture.mean[:, number], mixture.variance[:, number]
    total = -0.5 * (np.log(2.0 * np.pi * variance) + (row[number] - mean) ** 2 / variance).sum(axis=1)
    mean, variance = mixture.mean[:, yes], mixture.variance[:, yes]
    return total + log_ndtr((2.0 * row[yes] - 1.0) * mean / np.sqrt(1.0 + variance)).sum(axis=1)


def _binary(wanted: Any, X: np.ndarray) -> np.ndarray:
    """(columns,) which columns are binary, after a check of the data in the units that they came in."""
    if isinstance(wanted, str) and wanted == "auto":
        wanted = np.array([set(np.unique(column[~np.isnan(column)])) == {0.0, 1.0} for column in X.T])
    return np.broadcast_to(Data(X, wanted).binary, X.shape[1:])


def _location_and_scale(X: np.ndarray, binary: np.ndarray, standardize: bool) -> tuple[np.ndarray, np.ndarray]:
    centre, width = np.zeros(X.shape[1]), np.ones(X.shape[1])
    if standardize:
        with np.errstate(invalid="ignore"):
            centre, sd = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        width = np.where(sd > 1e-12 * np.nanmax(np.abs(X), axis=0), sd, 1.0)
    return np.where(binary, 0.0, centre), np.where(binary, 1.0, width)


def _log_room(fitted: FittedTree) -> float:
    """What turns the log density of a tree into its mass, which is what trees of different sizes are compared by."""
    leaves = len(fitted.arrays.parent) // 2
    return float(log_intervals(fitted.arrays, fitted.messages, tables(fitted.prior, leaves)).sum())


def _check_settings(model: DiffusionTree, rows: int) -> None:
    """Numbers among the settings, before a search that would end in vain."""
    counts = (("n_trees", 0, None), ("n_steps", 0, None), ("restarts", 0, None), ("n_sweeps", 1, None))
    for name, least, most in (*counts, ("n_clusters", 1, rows)):
        value = getattr(model, name)
        if value is None and name in ("n_steps", "n_clusters"):
            continue
        if not isinstance(value, Integral) or not least <= int(value) <= (most or np.inf):
            limit = f"{least} or more" if most is None else f"from {least} to the number of rows, {most}"
            raise ValueError(f"{name}= is a whole number, {limit}; found {value!r}.")
    if model.max_seconds is not None and not number(model.max_seconds) > 0.0:
        raise ValueError(f"max_seconds= is a positive number, or None; found {model.max_seconds!r}.")
    if model.inference == "mcmc":
        second_half(model.n_sweeps, model.n_trees, "n_trees")


def _learns(value: Any) -> bool:
    if value != "learn" if isinstance(value, str) else np.isnan(number(value)):
        raise ValueError(f"A hyperparameter is a number or 'learn'; found {value!r}.")
    return isinstance(value, str)


def _start(value: Any, start: float) -> float:
    return start if _learns(value) else float(value)


def _variance(value: Any, columns: int) -> Any:
    if isinstance(value, str):
        if value not in ("columns", "shared"):
            raise ValueError(f"variance= is 'columns', 'shared', a number, or one for each column; found {value!r}.")
        return np.ones(columns) if value == "columns" else 1.0
    return value

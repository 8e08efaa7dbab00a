"""Diffusion trees as an estimator of scikit-learn: a hierarchy of the rows, their density, and clusters at a cut."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from scipy.special import log_ndtr, logsumexp

from .arrays import pack
from .backend import kernels
from .divergence import Divergence
from .leaves import Data
from .predict import FittedTree, Mixture, log_predictive, predictive_mixture, sample_predictive
from .prior import TreePrior
from .search import Fitted, search_trees
from .tree import Tree

try:
    from sklearn.base import BaseEstimator, ClusterMixin, DensityMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as problem:
    raise ImportError(
        "cavity.models.DiffusionTree is an estimator of scikit-learn 1.6 or later, which was not found. "
        "Install it with the extra: pip install 'cavity[sklearn]'."
    ) from problem


class DiffusionTree(DensityMixin, ClusterMixin, BaseEstimator):
    """Hierarchical clustering and density estimation by Dirichlet and Pitman-Yor diffusion trees.

    The rows are leaves of a tree; each moves from the origin by Brownian motion, together with others up to where
    their paths part. The tree, its divergence times and its hyperparameters are found by search; `score_samples` is
    the predictive density of new rows, averaged over the best trees.

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
        n_trees: how many trees of different structure to keep and average over.
        n_steps: subtrees to move; None: 10 for each row.
        max_seconds: search for so many seconds instead.
        restarts: builds from different orders of the rows.
        standardize: whether continuous columns are scaled to mean 0 and variance 1 first.
        backend: "jax", or "numba" (an extra), several times faster.
        random_state: an integer, for the same trees each time; a RandomState, or None.
        verbose: show progress.

    Attributes:
        tree_: the best tree, a `Tree`. trees_: the best ones, each a `Fitted` with its weight and hyperparameters.
        labels_: (rows,) clusters. search_: the whole result, with its trace. log_joint_: of the best tree.

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
        n_trees: int = 10,
        n_steps: int | None = None,
        max_seconds: float | None = None,
        restarts: int = 1,
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
        self.n_trees = n_trees
        self.n_steps = n_steps
        self.max_seconds = max_seconds
        self.restarts = restarts
        self.standardize = standardize
        self.backend = backend
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any = None) -> DiffusionTree:
        """Searches for trees of the rows of `X` (rows, columns; NaN where missing). Returns itself.

        Raises:
            ValueError: data or settings that have no meaning; the message says which.
        """
        names = tuple(str(name) for name in getattr(X, "index", ()))
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_samples=2)
        self.binary_ = _binary(self.binary, X)
        self._centre, self._width = _location_and_scale(X, self.binary_, self.standardize)
        learn = {name for name in ("concentration", "discount", "rate", "noise") if _learns(getattr(self, name))}
        if isinstance(self.variance, str):
            learn.add("variance")
        if self.binary_.all():
            learn.discard("noise")
        random = check_random_state(self.random_state)
        self.search_ = search_trees(
            Data((X - self._centre) / self._width, self.binary_),
            self._prior(),
            key=jax.random.key(random.randint(2**31 - 1)),
            steps=self.n_steps if self.max_seconds is None else None,
            seconds=self.max_seconds,
            restarts=self.restarts,
            keep=self.n_trees,
            variance=_variance(self.variance, X.shape[1]),
            noise=0.0 if self.binary_.all() else _start(self.noise, 0.01),
            learn=learn,
            backend=self.backend,
            names=names,
            progress=bool(self.verbose),
        )
        self.trees_ = self.search_.trees
        self.tree_, self.log_joint_ = self.search_.best.tree, self.search_.best.log_joint
        self.labels_ = self.labels()
        return self

    def labels(self, *, n_clusters: int | None = None, time: float | None = None) -> np.ndarray:
        """(rows,) clusters of the best tree at another cut: by number of clusters, or by divergence time."""
        check_is_fitted(self)
        if time is not None:
            return self.tree_.labels(time=time)
        children = len(self.tree_.children[self.tree_.top])
        return self.tree_.labels(clusters=n_clusters or self.n_clusters or max(children, 1))

    def score_samples(self, X: Any) -> np.ndarray:
        """(rows,) log predictive density of new rows, averaged over the trees; probabilities for binary columns."""
        fitted, log_weights = self._fitted_trees()
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        seen = ~np.isnan(X) & ~self.binary_
        return log_predictive(fitted, (X - self._centre) / self._width, log_weights) - seen @ np.log(self._width)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log predictive density of new rows."""
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1) -> np.ndarray:
        """(n_samples, columns) draws from the predictive distribution."""
        fitted, log_weights = self._fitted_trees()
        random = check_random_state(self.random_state)
        key = jax.random.key(random.randint(2**31 - 1))
        return sample_predictive(fitted, n_samples, key, log_weights) * self._width + self._centre

    def predict(self, X: Any) -> np.ndarray:
        """(rows,) the cluster of `labels_` whose branches of the best tree give each new row most density."""
        fitted, _ = self._fitted_trees()
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        return _nearest(fitted[0], self.tree_, self.labels_, (X - self._centre) / self._width)

    def _prior(self) -> TreePrior:
        concentration, discount = _start(self.concentration, 1.0), _start(self.discount, 0.1)
        return TreePrior(concentration, discount, Divergence(rate=_start(self.rate, 1.0)))

    def _fitted_trees(self) -> tuple[list[FittedTree], np.ndarray]:
        check_is_fitted(self)
        return [fitted_tree(each, self.backend, self.binary_) for each in self.trees_], np.log(
            np.maximum([each.weight for each in self.trees_], 1e-300)
        )


def fitted_tree(found: Fitted, backend: str, binary: np.ndarray) -> FittedTree:
    """A tree of a search, ready for predictions."""
    arrays, hyper = pack(found.tree), found.hyper
    messages = kernels(backend).sweep(arrays, found.state.leaves)
    shared = found.state.leaves.variance.shape[1] == 1
    noise = hyper.noise / hyper.variance
    return FittedTree(
        arrays, messages, hyper.prior, np.sqrt(hyper.variance), noise[0] if shared else noise, np.asarray(binary)
    )


def _nearest(fitted: FittedTree, tree: Tree, labels: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The cluster with most of the predictive density at each row; a branch belongs to the first leaf below it."""
    mixture = predictive_mixture(fitted)
    cluster = labels[tree.members[mixture.node].argmax(axis=1)]
    clusters = np.arange(labels.max() + 1)
    found = np.empty(len(rows), dtype=labels.dtype)
    for i, row in enumerate(rows):
        with np.errstate(divide="ignore"):
            joint = np.log(mixture.weight) + _log_density(mixture, row, fitted.binary)
        found[i] = np.argmax([logsumexp(joint[cluster == c]) if (cluster == c).any() else -np.inf for c in clusters])
    return found


def _log_density(mixture: Mixture, row: np.ndarray, binary: np.ndarray) -> np.ndarray:
    """(components,) log density of the entries of a row that are there."""
    number, yes = ~np.isnan(row) & ~binary, ~np.isnan(row) & binary
    mean, variance = mixture.mean[:, number], mixture.variance[:, number]
    total = -0.5 * (np.log(2.0 * np.pi * variance) + (row[number] - mean) ** 2 / variance).sum(axis=1)
    mean, variance = mixture.mean[:, yes], mixture.variance[:, yes]
    return total + log_ndtr((2.0 * row[yes] - 1.0) * mean / np.sqrt(1.0 + variance)).sum(axis=1)


def _binary(wanted: Any, X: np.ndarray) -> np.ndarray:
    """(columns,) which columns are binary."""
    if isinstance(wanted, str) and wanted == "auto":
        return np.array([set(np.unique(column[~np.isnan(column)])) == {0.0, 1.0} for column in X.T])
    return np.broadcast_to(Data(X, wanted).binary, X.shape[1:])


def _location_and_scale(X: np.ndarray, binary: np.ndarray, standardize: bool) -> tuple[np.ndarray, np.ndarray]:
    centre, width = np.zeros(X.shape[1]), np.ones(X.shape[1])
    if standardize:
        with np.errstate(invalid="ignore"):
            centre, sd = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        width = np.where(sd > 1e-12 * np.nanmax(np.abs(X), axis=0), sd, 1.0)
    return np.where(binary, 0.0, centre), np.where(binary, 1.0, width)


def _learns(value: Any) -> bool:
    if isinstance(value, str) and value != "learn":
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

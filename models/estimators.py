"""The shipped models as estimators of scikit-learn: `fit`, `predict`, `predict_proba`, `score`. Needs the extra
`sklearn`; import it by its own name.

An estimator infers the posterior of its model, keeps it as `posterior_`, and predicts by averaging over it. Features
are standardised first, since the models' priors ask for it. Data sets of similar sizes, such as the folds of a
cross-validation, share one program, which NumPy runs where that takes less time than compiling. Features of the models
with linear scores may be sparse, and are then scaled but not centred.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

import numpy as np
from scipy.special import gammaln, logsumexp
from scipy.stats import norm

import cavity as cv  # pyright: ignore[reportMissingImports]

from ..engine.evidence.integrated import Integrated
from ..factors.arrays import Numeric
from ..factors.calls import methods_checked
from .fitting import Definition, Estimator, location_and_scale
from .gamma_estimation import gamma_estimation
from .heteroskedastic_gp import KERNEL, heteroskedastic_gp
from .heteroskedastic_regression import heteroskedastic_regression
from .logistic_regression import logistic_regression
from .multinomial_probit import multinomial_probit
from .ordinal_regression import gaps, ordinal_regression
from .poisson_regression import poisson_regression
from .probit_regression import probit_regression
from .scikit import (
    BaseEstimator,
    ClassifierMixin,
    DensityMixin,
    RegressorMixin,
    Table,
    Tags,
    as_table,
    check_classification_targets,
    check_is_fitted,
    type_of_target,
    validate_data,
)
from .softmax_regression import softmax_regression

__all__ = [
    "GammaEstimation",
    "HeteroskedasticGP",
    "HeteroskedasticRegression",
    "LogisticRegression",
    "MultinomialProbit",
    "OrdinalRegression",
    "PoissonRegression",
    "ProbitRegression",
    "SoftmaxRegression",
]


@methods_checked("estimator")
class _Classifier(ClassifierMixin, Estimator):
    """Outcomes are labels of any kind, coded by their place in `classes_`."""

    def _coded(self, y: np.ndarray) -> np.ndarray:
        check_classification_targets(y)
        self.classes_, code = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"{type(self).__name__} tells classes apart; y has a single class, {self.classes_[0]}.")
        return code

    def predict_proba(self, X: Table) -> np.ndarray:
        """Posterior predictive probabilities (rows, classes) at `X` (rows, features), in the order of `classes_`."""
        return self._predictive(X)("y", "mean")

    def predict(self, X: Table) -> np.ndarray:
        """The most probable class (rows) of each row of `X` (rows, features)."""
        place = self.predict_proba(X).argmax(axis=1)
        return self.classes_[place]


@methods_checked("estimator")
class _Weighted(Estimator):
    """Weights and biases with Gaussian priors; the variance of the weights is learned unless it is given."""

    def __init__(
        self,
        prior_variance: float | str = "shared",
        bias_variance: float = 10.0,
        *,
        standardize: bool = True,
        tolerance: float = 1e-6,
        max_iter: int = 1000,
    ) -> None:
        super().__init__(standardize=standardize, tolerance=tolerance, max_iter=max_iter)
        self.prior_variance = prior_variance
        self.bias_variance = bias_variance


@methods_checked("estimator")
class _Binary(_Weighted, _Classifier):
    """Two classes: the second one of `classes_` is the event."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _coded(self, y: np.ndarray) -> np.ndarray:
        if (kind := type_of_target(y, input_name="y", raise_unknown=True)) not in ("binary", "continuous"):
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}. "
                "SoftmaxRegression and MultinomialProbit take more classes."
            )
        return super()._coded(y) == 1

    def _describe(self) -> None:
        super()._describe()
        self.coef_, self.intercept_ = self.coef_[None], self.intercept_[None]

    def predict_proba(self, X: Table) -> np.ndarray:
        """Posterior predictive probabilities (rows, 2) at `X` (rows, features), in the order of `classes_`."""
        event = super().predict_proba(X)
        return np.stack([1.0 - event, event], axis=1)


class LogisticRegression(_Binary):
    """Two classes by the logistic function of a linear score: see `logistic_regression`.

    `prior_variance` of the weights is learned ("shared", the default: N(0, I / precision), precision ~ Gamma(1, 0.1)),
    or a number, which is taken as it is. `bias_variance` is that of the model. `standardize` scales the features first;
    `tolerance` and `max_iter`, a number of sweeps, end the inference.
    """

    def _definition(self, features: int) -> Definition:
        return logistic_regression, (features, self.prior_variance, self.bias_variance)


class ProbitRegression(_Binary):
    """Two classes by the sign of a linear score with Gaussian noise: see `probit_regression`.

    `prior_variance` of the weights is learned ("shared", the default: N(0, I / precision), precision ~ Gamma(1, 0.1)),
    or a number, which is taken as it is. `bias_variance` is that of the model. `standardize` scales the features first;
    `tolerance` and `max_iter`, a number of sweeps, end the inference.
    """

    def _definition(self, features: int) -> Definition:
        return probit_regression, (features, self.prior_variance, self.bias_variance)


@methods_checked("estimator")
class _Classes(_Weighted, _Classifier):
    """Several classes, each with a score.

    What all scores have in common changes no prediction and settles slowly: the tolerance is coarser than elsewhere.
    """

    def __init__(
        self,
        prior_variance: float | str = "shared",
        bias_variance: float = 10.0,
        *,
        standardize: bool = True,
        tolerance: float = 1e-2,
        max_iter: int = 1000,
    ) -> None:
        super().__init__(prior_variance, bias_variance, standardize=standardize, tolerance=tolerance, max_iter=max_iter)


class SoftmaxRegression(_Classes):
    """Classes by the softmax of linear scores: see `softmax_regression`.

    `prior_variance` of the weights is learned ("shared", the default: N(0, I / precision), precision ~ Gamma(1, 0.1);
    "per class": a precision for each class), or a number, which is taken as it is. `bias_variance` is that of the
    model. `standardize` scales the features first; `tolerance` and `max_iter`, a number of sweeps, end the inference.
    """

    def _definition(self, features: int) -> Definition:
        return softmax_regression, (features, len(self.classes_), self.prior_variance, self.bias_variance)


class MultinomialProbit(_Classes):
    """Classes by the largest of linear scores with Gaussian noise: see `multinomial_probit`.

    `prior_variance` of the weights is learned ("shared", the default: N(0, I / precision), precision ~ Gamma(1, 0.1);
    "per class": a precision for each class), or a number, which is taken as it is. `bias_variance` is that of the
    model. `standardize` scales the features first; `tolerance` and `max_iter`, a number of sweeps, end the inference.
    """

    def _definition(self, features: int) -> Definition:
        return multinomial_probit, (features, len(self.classes_), self.prior_variance, self.bias_variance)


@methods_checked("estimator")
class OrdinalRegression(_Classifier):
    """Ordered classes between learned cutpoints: see `ordinal_regression`. The order is that of `classes_`, sorted.

    `cutpoints_` are in the units of `X @ coef_`.
    `standardize` scales the features first; `tolerance` and `max_iter`, a number of sweeps, end the inference.
    """

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on classes without an order
        return tags

    def _definition(self, features: int) -> Definition:
        return ordinal_regression, (features, len(self.classes_))

    def _coded(self, y: np.ndarray) -> np.ndarray:
        code = super()._coded(y)
        below = np.cumsum(np.bincount(code))[:-1] / len(code)
        self._gaps = np.sqrt(2.0) * np.diff(norm.ppf(below))  # of a score of variance one and noise of variance one
        return code

    def _start(self) -> dict[str, Numeric]:
        return {"precision": 1.0, **dict(zip(gaps(len(self.classes_)), self._gaps, strict=True))}

    def _describe(self) -> None:
        self.coef_, intercept = self._form("weight", "bias")
        distances = [float(self.hyperparameters_[name]) for name in gaps(len(self.classes_))]
        self.cutpoints_ = np.cumsum([0.0, *distances]) - intercept


@methods_checked("estimator")
class _Regressor(RegressorMixin, Estimator):
    """Outcomes are numbers."""

    def predict(self, X: Table, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Posterior predictive means (rows) at `X` (rows, features).

        With `return_std` also the standard deviations (rows) of new outcomes.
        """
        mean, variance = self._outcome(self._predictive(X))
        return (mean, np.sqrt(variance)) if return_std else mean

    def _outcome(self, of: Callable[..., np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of an outcome."""
        raise NotImplementedError


class PoissonRegression(_Weighted, _Regressor):
    """Counts whose logarithmic rate is linear: see `poisson_regression`.

    `y` are counts; other numbers that are not negative are rounded to the nearest one, with a warning.
    `prior_variance` of the weights is learned ("shared", the default: N(0, I / precision), precision ~ Gamma(1, 0.1)),
    or a number, which is taken as it is. `bias_variance` is that of the model. `standardize` scales the features first;
    `tolerance` and `max_iter`, a number of sweeps, end the inference.
    """

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _definition(self, features: int) -> Definition:
        return poisson_regression, (features, self.prior_variance, self.bias_variance)

    def _coded(self, y: np.ndarray) -> np.ndarray:
        if y.min() < 0:
            raise ValueError(f"PoissonRegression takes counts; y has the negative value {y.min():g}.")
        counts = np.rint(y)
        if not np.array_equal(counts, y):
            warnings.warn("y has values that are no counts; they were rounded.", UserWarning, stacklevel=3)
        return counts

    def _outcome(self, of: Callable[..., np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        mean = of("y")
        return mean, mean + mean**2 * np.expm1(of("score", "variance"))


class _Heteroskedastic(_Regressor):
    """A mean and a logarithmic precision that both depend on the features; outcomes are standardised."""

    _mean = "mean"

    def _coded(self, y: np.ndarray) -> np.ndarray:
        self._level, self._unit = location_and_scale(y) if self.standardize else (0.0, 1.0)
        self._rows = len(y)
        return (y - self._level) / self._unit

    def _describe(self) -> None:
        self.log_evidence_ -= self._rows * np.log(self._unit)  # the density of y in its own units

    def _outcome(self, of: Callable[..., np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        noise = np.exp(-of("log_precision") + 0.5 * of("log_precision", "variance"))
        return self._level + self._unit * of(self._mean), self._unit**2 * (of(self._mean, "variance") + noise)


@methods_checked("estimator")
class HeteroskedasticRegression(_Heteroskedastic):
    """A linear mean and a linear logarithmic precision of the noise: see `heteroskedastic_regression`.

    `coef_` and `intercept_` are of the mean, `precision_coef_` and `precision_intercept_` of the logarithm of the
    precision, all in the units of X and y.
    `prior_variance` of the weights is learned ("shared", the default: N(0, I / precision), precision ~ Gamma(1, 0.1),
    one for the mean and one for the noise), or a number, which is taken as it is. `standardize` scales features and
    outcomes first; `tolerance` and `max_iter`, a number of sweeps, end the inference.
    """

    def __init__(
        self,
        prior_variance: float | str = "shared",
        *,
        standardize: bool = True,
        tolerance: float = 1e-6,
        max_iter: int = 1000,
    ) -> None:
        super().__init__(standardize=standardize, tolerance=tolerance, max_iter=max_iter)
        self.prior_variance = prior_variance

    def _definition(self, features: int) -> Definition:
        return heteroskedastic_regression, (features, self.prior_variance)

    def _describe(self) -> None:
        super()._describe()
        slope, level = self._form("weight", "bias")
        self.coef_, self.intercept_ = self._unit * slope, self._level + self._unit * level
        self.precision_coef_, level = self._form("precision_weight", "precision_bias")
        self.precision_intercept_ = level - 2.0 * np.log(self._unit)


@methods_checked("estimator")
class HeteroskedasticGP(_Heteroskedastic):
    """Mean and logarithmic precision of the noise are Gaussian processes: see `heteroskedastic_gp`.

    The scales and variances of both kernels are learned from their values at the start, `scale` in standard deviations
    of the features; `hyperparameters_` has the result. The time grows with the cube of the number of rows.
    `standardize` scales features and outcomes first; `tolerance` and `max_iter`, a number of sweeps, end the inference.
    """

    _mean = "f"
    _accepts = False
    _with_beliefs = True

    def __init__(
        self, scale: float = 1.0, *, standardize: bool = True, tolerance: float = 1e-6, max_iter: int = 1000
    ) -> None:
        super().__init__(standardize=standardize, tolerance=tolerance, max_iter=max_iter)
        self.scale = scale

    def _definition(self, features: int) -> Definition:
        return heteroskedastic_gp, (features,)

    def _start(self) -> dict[str, Numeric]:
        return dict(zip(KERNEL, (self.scale, 1.0, self.scale, 1.0), strict=True))


@functools.lru_cache(maxsize=8)
def _gamma_model(shape: tuple[float, float], rate: tuple[float, float]) -> cv.Model:
    return gamma_estimation(shape, rate)


@methods_checked("estimator")
class GammaEstimation(DensityMixin, BaseEstimator):
    """Gamma densities of unknown shape and rate, one for each column: see `gamma_estimation`.

    Columns are divided by their means first (`standardize`), as the Gamma priors of shape and rate ask for, whose own
    shapes and rates are `shape` and `rate`. A Gamma density at zero is zero
    or infinite: numbers below `resolution` times the mean count as that. Fitted attributes: `shape_`, `rate_` (columns;
    posterior means, in the units of X), `log_evidence_`, and `posterior_`, a list with the posterior of each column.
    """

    def __init__(
        self,
        shape: tuple[float, float] = (1.0, 1.0),
        rate: tuple[float, float] = (1.0, 1.0),
        *,
        standardize: bool = True,
        resolution: float = 1e-6,
    ) -> None:
        self.shape = shape
        self.rate = rate
        self.standardize = standardize
        self.resolution = resolution

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def fit(self, X: Table, y: Table = None) -> GammaEstimation:
        """Infers shape and rate of each column of `X` (rows, columns), not negative; `y` is ignored. Returns itself."""
        X = validate_data(self, as_table(X), dtype=np.float64, ensure_min_samples=2, ensure_non_negative=True)
        self._mean = np.where(X.any(axis=0), X.mean(axis=0), 1.0)
        self._unit = self._mean if self.standardize else np.ones(X.shape[1])
        self._columns = list(self._resolved(X).T)
        self.__dict__.pop("posterior_", None)
        found = self.posterior_
        self.shape_ = np.array([posterior["shape"].mean for posterior in found])
        self.rate_ = np.array([posterior["rate"].mean for posterior in found]) / self._unit
        self.log_evidence_ = sum(posterior.log_evidence for posterior in found) - len(X) * np.log(self._unit).sum()
        self._grid = [(posterior.points["shape"], posterior.weights) for posterior in found]
        return self

    def _resolved(self, X: np.ndarray) -> np.ndarray:
        return np.maximum(X, self.resolution * self._mean) / self._unit

    @functools.cached_property
    def posterior_(self) -> list[Integrated]:
        """The posterior of each column."""
        model = _gamma_model(tuple(self.shape), tuple(self.rate))
        # With the best accuracy the shape is integrated, so that these are no plain posteriors.
        return [cv.infer(model, {"x": x}, accuracy="best") for x in self._columns]  # type: ignore[misc]

    def score_samples(self, X: Table) -> np.ndarray:
        """The log posterior predictive density (rows) of each row of `X` (rows, columns), not negative.

        It is exact given the grid of the shape, since the rate is Gamma given the shape.
        """
        check_is_fitted(self)
        X = validate_data(self, as_table(X), dtype=np.float64, reset=False, ensure_non_negative=True)
        total = -np.log(self._unit).sum() * np.ones(len(X))
        for x, old, (s, weight) in zip(self._resolved(X).T, self._columns, self._grid, strict=True):
            a, b = self.rate[0] + len(old) * s, self.rate[1] + old.sum()
            log_ratio = gammaln(a + s) - gammaln(a) - gammaln(s) + a * np.log(b)
            x = x[:, None]
            total += logsumexp((s - 1.0) * np.log(x) - (a + s) * np.log(b + x) + log_ratio, axis=1, b=weight)
        return total

    def score(self, X: Table, y: Table = None) -> float:
        """The mean of `score_samples` over the rows of `X` (rows, columns); `y` is ignored."""
        return float(np.mean(self.score_samples(X)))

    def __getstate__(self) -> dict[str, object]:
        """Without the posteriors, which hold compiled programs: they are inferred again when asked for."""
        state: dict[str, object] = {**super().__getstate__()}  # type: ignore[dict-item]
        state.pop("posterior_", None)
        return state

"""Binary features as an estimator of scikit-learn: which features there are, which rows have them, what they show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ...engine.mcmc.keys import generator
from ...factors.calls import methods_checked
from ...factors.errors import DataError
from ...factors.switches import double_precision
from ..scikit import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    Unlabelled,
    check_counts,
    check_is_fitted,
    read_named,
    second_half,
)
from .chains import Draw, sample_features
from .choices import choices_of
from .correlated import DpIbp, Framework, IbpIbp
from .correlated.chains import sample_correlated
from .kinds import WORDS, Kind, Word, kind_of
from .likelihoods.contract import Likelihood, Numbers, Rows
from .likelihoods.learned import Gamma
from .matching import matched
from .predict import average, of_new_rows
from .samplers.law import Law
from .variational import Fitted, fit_variational

FEW = 4, 20  # draws that answers about new rows average over, at least and at most
WORK = 100_000_000  # entries times features times draws that answers about the rows of the data are made of
RESTARTS = 4, 40  # of mean field, at least and at most: data of few features end in several optima
TEMPERED = 10  # iterations
HASTY = {"iterations": 100, "tolerance": 1e-4}  # of mean field where chains begin, which need no optimum
BEFORE = 100  # sweeps by independent features, before those by correlated ones
PLACES = 20  # features that mean field has beliefs about, where it is not said


@methods_checked("estimator")
class BinaryFeatures(Unlabelled, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Which features explain these rows: as many as the data ask for, each of which a row has or has not.

    A row shows what its features show together: their sum and noise ("gaussian", or with values that are not negative
    "exponential"), a one for any of several reasons ("bernoulli"), counts of a rate that they add to ("poisson"). Which
    rows have which features has the Indian buffet process as its prior, so that their number is learned. Unlike
    clusters features overlap; unlike components they are there or not. Entries that are nan are missing, and are filled
    in by `reconstruct`. Tables of pandas, polars and AnnData keep their names.

    Args:
        likelihood: "gaussian", "exponential", "bernoulli" or "poisson"; or a `Likelihood` of
            `cavity.models.buffet.likelihoods` for data as they are.
        prior: "ibp", the Indian buffet process, or "finite" with `n_components` features; "dp-ibp", where rows are of
            one category each, and features those of categories; "ibp-ibp", of any number of categories.
        n_components: how many features there are with prior="finite"; with inference="variational" at most how many
            (None: 20), to be raised where all of them are found.
        mass: expected number of features of a row, or of a category; None to learn it.
        inference: "mcmc", draws from the posterior; or "variational", independent beliefs, for "gaussian" and for
            "bernoulli" with a probability of .05 of a one without a reason, and .8 of one for each reason.
        n_sweeps: of each chain, of which the first half is left out.
        n_draws: kept of each chain, spread over its second half.
        n_chains: chains from independent starts.
        center: whether column means are removed first, with likelihood="gaussian".
        random_state: an integer, for the same result each time; a RandomState, or None.
        verbose: show progress.

    Attributes:
        components_: (features, columns) posterior means of what features show, those that most rows have first, in the
            units of the data for real numbers. components_sd_: standard deviations. presence_: (features,) share of the
            draws that have each feature. prevalence_: (features,) share of the rows that have it.
        features_: (rows, features) posterior probabilities of the rows that were fitted.
        n_components_: how many. n_components_probability_: posterior of 0, 1, ... features.
        mean_, scale_: (columns,) and a number, of the data. sample_names_: names of rows, where the data had any.
        chains_: draws, for ArviZ and more. fitted_: what `fit_variational` gave.

    Source: griffiths2011indian.
    """

    def __init__(
        self,
        likelihood: Any = "gaussian",
        prior: str = "ibp",
        n_components: int | None = None,
        *,
        mass: float | None = None,
        inference: str = "mcmc",
        n_sweeps: int = 500,
        n_draws: int = 50,
        n_chains: int = 2,
        center: bool = True,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.likelihood = likelihood
        self.prior = prior
        self.n_components = n_components
        self.mass = mass
        self.inference = inference
        self.n_sweeps = n_sweeps
        self.n_draws = n_draws
        self.n_chains = n_chains
        self.center = center
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> BinaryFeatures:
        """Learns from `X` (rows, columns); nan where missing. `y` is ignored. Returns itself.

        Raises:
            ValueError: data or settings that have no meaning; the message says which.
        """
        X = read_named(self, X, reset=True)
        word, law = _checked(self, X)
        seen = ~np.isnan(X)
        self.mean_ = np.zeros(X.shape[1])
        if self.center and word.centred:
            self.mean_ = np.sum(X, axis=0, where=seen) / np.maximum(seen.sum(axis=0), 1)
        left = (X - self.mean_)[seen]
        self.scale_ = float(np.sqrt(np.mean(left**2))) if word.scaled and left.any() else 1.0
        if self.inference == "mcmc":
            self._sample(self._inside(X), word.likelihood, law)
        else:
            assert isinstance(law, Law)
            self._believe(self._inside(X), kind_of(word.likelihood), law)
        self.prevalence_ = self.features_.mean(axis=0)
        self.n_components_ = self._n_features_out = self.components_.shape[0]
        self._seed = int(generator(self._key()).integers(2**31))
        return self

    def _sample(self, values: np.ndarray, likelihood: Likelihood, law: Law | Framework) -> None:
        """By chains; features of draws are the same where the same rows have them."""
        warmup, thin = second_half(self.n_sweeps, self.n_draws, "n_draws")
        kind = kind_of(likelihood)
        asked: dict[str, Any] = {"sweep": kind.sweep, "chains": self.n_chains, "warmup": warmup, "thin": thin}
        asked["progress"] = bool(self.verbose)
        if kind.begins:
            asked["start"] = self._fitted(values, kind, law if isinstance(law, Law) else Law(), hasty=True)
        if isinstance(law, Law):
            self.chains_ = sample_features(values, self._key(), self.n_draws, likelihood, law, **asked)
        else:
            asked["before"] = min(BEFORE, self.n_sweeps)
            self.chains_ = sample_correlated(values, self._key(), self.n_draws, likelihood, law, **asked)
        self._model = likelihood, law
        draws: list[Any] = list(self.chains_.draws())
        best = int(np.argmax(self.chains_["log_likelihood"]))
        found = matched(draws, best)
        kept = np.flatnonzero(found.presence >= 0.5)  # of a feature that most draws lack, the mean has no meaning
        kept = kept[np.argsort(-found.probability[:, kept].sum(axis=0), kind="stable")]
        self.components_, self.components_sd_ = found.values[kept] * self.scale_, found.deviation[kept] * self.scale_
        self.presence_, self.features_ = found.presence[kept], found.probability[:, kept]
        self.n_components_probability_ = self.chains_.number_of_features
        few = int(np.clip(WORK // (values.size * max(len(draws[best].values), 1)), *FEW))
        every = -(-len(draws) // few)
        self._draws, self._places = draws[::every], [at[kept] for at in found.places[::every]]

    def _believe(self, values: np.ndarray, kind: Kind, law: Law) -> None:
        """By mean field; beliefs name their features, and draws from them stand for those of chains."""
        assert kind.field is not None
        fitted = self._fitted(values, kind, law)
        owners = fitted.probabilities.sum(axis=0)
        kept = np.flatnonzero(owners > 0.5)
        kept = kept[np.argsort(-owners[kept], kind="stable")]
        mean, sd = fitted.values
        self.components_, self.components_sd_ = mean[kept] * self.scale_, sd[kept] * self.scale_
        self.features_, self.presence_ = fitted.probabilities[:, kept], np.ones(len(kept))
        self.fitted_, self._model = fitted, (kind.field, law)
        self._draws = []
        for key in jax.random.split(self._key(), FEW[1]):
            active, values, numbers = fitted.draw(key)
            self._draws.append(Draw(active[:, kept], values[kept], numbers, fitted.mass, 1.0))
        counts = [int(draw.active.any(axis=0).sum()) for draw in self._draws]
        self.n_components_probability_ = np.bincount(counts) / len(counts)
        self._places = [np.arange(len(kept))] * len(counts)

    def _fitted(self, values: np.ndarray, kind: Kind, law: Law, *, hasty: bool = False) -> Fitted:
        """Mean field, from fewer starts for larger data: an answer, or in haste where chains begin."""
        assert kind.field is not None
        rows = Rows(np.nan_to_num(values), ~np.isnan(values))
        places = None if law.features is not None else self.n_components or PLACES
        starts = int(np.clip(kind.entries // values.size, *RESTARTS))
        asked: dict[str, Any] = {"places": places, "restarts": starts, "tempered": TEMPERED} | (HASTY if hasty else {})
        return fit_variational(rows, kind.field, law, self._key(), **asked)

    def transform(self, X: Any) -> np.ndarray:
        """(rows, features) posterior probabilities that rows of `X` (rows, columns) have each feature."""
        found = self._found(X)
        total = np.zeros((len(found[0].mean), self.n_components_))
        for each, at in zip(found, self._places, strict=True):
            total[:, at >= 0] += each.probability[:, at[at >= 0]]
        return total / len(found)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """(rows, columns) what rows with the features `X` (rows, features) show on average.

        Raises:
            ValueError: another number of features than was found.
        """
        check_is_fitted(self)
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self.n_components_:
            raise ValueError(f"Features are (rows, {self.n_components_}); found the shape {X.shape}.")
        numbers: Numbers = {
            name: np.asarray(np.mean([draw.numbers[name] for draw in self._draws])) for name in self._draws[0].numbers
        }
        with double_precision():
            mean = self._model[0].mean_entry(X @ (self.components_ / self.scale_), numbers)
        return np.asarray(mean) * self.scale_ + self.mean_

    def reconstruct(self, X: Any) -> np.ndarray:
        """(rows, columns) posterior means of `X` (rows, columns) without noise, missing entries among them."""
        return average(self._found(X))[0] * self.scale_ + self.mean_

    def score_samples(self, X: Any) -> np.ndarray:
        """(rows,) log density of `X` (rows, columns), averaged over draws; missing entries are marginalised.

        It is given that rows have no features that no row had before.
        """
        X = read_named(self, X, reset=False)
        return average(self._found(X))[1] - (~np.isnan(X)).sum(axis=1) * np.log(self.scale_)

    def sample(self, n_samples: int = 1) -> np.ndarray:
        """(n_samples, columns) draws from the predictive distribution, without features that no row had before."""
        check_is_fitted(self)
        key, (likelihood, law) = self._key(), self._model
        random = generator(key)
        which = random.integers(len(self._draws), size=n_samples)
        found = np.zeros((n_samples, len(self.mean_)))
        for number in np.unique(which):
            draw, rows = self._draws[number], np.flatnonzero(which == number)
            active = choices_of(law, draw).draw(random, len(rows))
            with double_precision():
                total = np.asarray(active @ draw.values)
                found[rows] = likelihood.draw_entry(jax.random.fold_in(key, number), total, draw.numbers)
        return found * self.scale_ + self.mean_

    def _found(self, X: Any) -> list[Any]:
        check_is_fitted(self)
        X = self._inside(read_named(self, X, reset=False))
        likelihood, law = self._model
        if problem := _refused(likelihood, X):
            raise ValueError(problem)
        keys = jax.random.split(jax.random.key(self._seed), len(self._draws))
        return [of_new_rows(draw, X, likelihood, law, key) for draw, key in zip(self._draws, keys, strict=True)]

    def _inside(self, X: np.ndarray) -> np.ndarray:
        return (X - self.mean_) / self.scale_


def _refused(likelihood: Likelihood, X: np.ndarray) -> str:
    """Why a likelihood does not take these data, or nothing."""
    try:
        likelihood.check(np.nan_to_num(X), ~np.isnan(X))
    except DataError as problem:
        return str(problem)
    return ""


PRIORS: dict[str, Callable[[Gamma, int | None], Law | Framework]] = {
    "ibp": lambda mass, features: Law(mass),
    "finite": lambda mass, features: Law(mass, features=features),
    "dp-ibp": lambda mass, features: DpIbp(mass=mass),
    "ibp-ibp": lambda mass, features: IbpIbp(mass=mass),
}


def _checked(model: BinaryFeatures, X: np.ndarray) -> tuple[Word, Law | Framework]:
    """The likelihood and the prior; ValueError where these or the data have no meaning."""
    word = _word(model.likelihood)
    for name, known in (("prior", PRIORS), ("inference", ("mcmc", "variational"))):
        if getattr(model, name) not in known:
            words = ", ".join(repr(each) for each in known)
            raise ValueError(f"{name}= is one of {words}; found {getattr(model, name)!r}.")
    if model.inference == "variational":
        _check_field(model, word)
    finite = model.prior == "finite"
    if (model.n_components is None) == finite and (finite or model.inference == "mcmc"):
        raise ValueError(
            "n_components= is the number of features of prior='finite', and of inference='variational' the largest; "
            f"found n_components={model.n_components!r} with prior={model.prior!r}, inference={model.inference!r}."
        )
    check_counts(model, n_sweeps=2, n_draws=1, n_chains=1)
    if model.n_components is not None:
        check_counts(model, n_components=1)
    if problem := _refused(word.likelihood, X):
        raise ValueError(problem)
    if not (~np.isnan(X)).any():
        raise ValueError("All entries are missing: nothing is left to learn from.")
    mass = (1.0, 1.0) if model.mass is None else model.mass
    return word, PRIORS[model.prior](mass, None if model.n_components is None else int(model.n_components))


def _word(likelihood: Any) -> Word:
    """What is meant by a word, or a likelihood for data as they are."""
    if isinstance(likelihood, Likelihood):
        if likelihood.weighted:
            raise ValueError(
                f"{type(likelihood).__name__} gives each row its own weights, which features of new rows have not. Run "
                "cavity.models.buffet.chains.sample_features for its draws."
            )
        return Word(likelihood)
    if not isinstance(likelihood, str) or likelihood not in WORDS:
        words = ", ".join(repr(word) for word in WORDS)
        raise ValueError(f"likelihood= is one of {words}, or a Likelihood; found {likelihood!r}.")
    return WORDS[likelihood]


def _check_field(model: BinaryFeatures, word: Word) -> None:
    """ValueError where there is no mean field."""
    if kind_of(word.likelihood).field is None:
        words = ", ".join(repr(name) for name, each in WORDS.items() if kind_of(each.likelihood).field is not None)
        raise ValueError(f"inference='variational' is for likelihood= {words}; found {model.likelihood!r}.")
    if model.prior not in ("ibp", "finite"):
        raise ValueError(f"inference='variational' is for prior= 'ibp', 'finite'; found {model.prior!r}. Use 'mcmc'.")

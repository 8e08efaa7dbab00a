"""Sparse factor models as an estimator of scikit-learn: which factors there are, and what each acts on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...engine.answers.loadings import aligned, explained, match_factors, summarise_loadings
from ...factors.calls import methods_checked
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
from .chains import sample_posterior
from .data import sizes
from .messages import fit_by_messages
from .predict import Draw, factors_given, log_density, reconstruct, sample_predictive
from .settings import family

_ALIGNED = 50  # draws that a transformation averages over at most


@methods_checked("estimator")
class NSFA(Unlabelled, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Nonparametric sparse factor analysis: as many factors as the data ask for, each acting on some features only.

    y = mean + G x + noise with x ~ N(0, I) for every sample; most loadings G are exactly zero, by an Indian buffet
    process over features, so that the number of factors is learned too. Finite and dense relatives are a word away.
    Entries that are nan are missing, and are filled in by `reconstruct`. Tables of pandas, polars and AnnData keep
    their names.

    Args:
        model: "nsfa", "nsfa_shared_noise", "sfa" (finite sparse), "fa", "afa" (a precision for each factor), "ppca",
            "fokoue" (Student-t loadings), "bfrm": see `cavity.models.sparse.family`.
        n_factors: how many, for models with a fixed number; with inference="messages" at most how many
            (None: 20), to be raised when all of them are found in use.
        settings: {name: value} of `cavity.models.sparse.Settings` in place of the model's own, for chains.
        known: (features, factors) prior probabilities of loadings of known factors, 0 and 1 allowed, which come first.
        inference: "mcmc", draws from the posterior; or "messages", a variational posterior in a fraction of the time.
        n_sweeps: of each chain, of which the first half is left out.
        n_draws: kept of each chain, spread over its second half.
        n_chains: chains, run at once; they start from the same loadings with different factors.
        center: whether the features' means are removed first; without, data are taken about zero.
        scale: "none", "overall" (all divided by one number) or "feature" (each by its own), roots of mean squares about
            what was removed: priors are for data of about unit size.
        random_state: an integer, for the same result each time; a RandomState, or None.
        verbose: show progress.

    Attributes:
        components_: (factors, features) posterior mean loadings of the scaled data, the largest first, for chains
            after the known factors in their order; of draws after alignment of their order and signs. components_sd_
            and activity_: standard deviations, and probabilities of not being zero. n_factors_: how many components.
        presence_: (factors,) share of the draws that have each factor. n_factors_probability_: posterior of 0, 1, ...
            factors, of chains.
        factors_: (samples, factors) of the data that were fitted. mean_, scale_: (features,) of the data.
            noise_variance_: (features,) of the scaled data.
        sample_names_: names of samples, where the data had any. chains_: draws, for ArviZ and more. posterior_: what
            `cavity.infer` gave.

    Source: knowles2011nonparametric.
    """

    def __init__(
        self,
        model: str = "nsfa",
        n_factors: int | None = None,
        *,
        settings: dict[str, Any] | None = None,
        known: Any = None,
        inference: str = "mcmc",
        n_sweeps: int = 1000,
        n_draws: int = 100,
        n_chains: int = 2,
        center: bool = True,
        scale: str = "overall",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.model = model
        self.n_factors = n_factors
        self.settings = settings
        self.known = known
        self.inference = inference
        self.n_sweeps = n_sweeps
        self.n_draws = n_draws
        self.n_chains = n_chains
        self.center = center
        self.scale = scale
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> NSFA:
        """Learns from `X` (samples, features); nan where missing. `y` is ignored. Returns itself.

        Raises:
            ValueError: data or settings that have no meaning; the message says which.
        """
        X = read_named(self, X, reset=True)
        _check_settings(self)
        _check_features(X, getattr(self, "feature_names_in_", None))
        self._centre(X)
        key = self._key()
        values = ((X - self.mean_) / self.scale_).T
        if self.inference == "mcmc":
            self._sample(values, key)
        else:
            self._pass_messages(values, key)
        self.n_factors_ = len(self.components_)
        self._n_features_out = self.n_factors_
        self.factors_ = self._factors(values)
        return self

    def _centre(self, X: np.ndarray) -> None:
        self.mean_ = np.nanmean(X, axis=0) if self.center else np.zeros(X.shape[1])
        self.scale_ = sizes((X - self.mean_).T, {"feature": "row"}.get(self.scale, self.scale))

    def _sample(self, values: np.ndarray, key: Any) -> None:
        changes = {} if self.settings is None else dict(self.settings)
        if self.known is not None:
            changes["known"] = self.known
        settings = family(self.model, self.n_factors, **changes)
        warmup, thin = second_half(self.n_sweeps, self.n_draws, "n_draws")
        self.chains_ = sample_posterior(
            values,
            key,
            self.n_draws,
            settings,
            chains=self.n_chains,
            warmup=warmup,
            thin=thin,
            progress=bool(self.verbose),
        )
        self.n_factors_probability_ = self.chains_.summary.number_of_factors
        self.noise_variance_ = 1.0 / self.chains_.summary.noise
        draws = list(self.chains_.draws())
        known = self.chains_.sampler.switches.known
        found = summarise_loadings([draw.loading for draw in draws], known=known)
        self._describe(draws, found.mean, found.deviation, found.activity, found.presence, known)

    def _pass_messages(self, values: np.ndarray, key: Any) -> None:
        found = fit_by_messages(values, key, self.model, self.n_factors, self.known)
        self.posterior_, self.noise_variance_ = found.posterior, found.noise_variance
        everywhere = np.ones(found.mean.shape[1])
        known = 0 if self.known is None else len(everywhere)
        self._describe(found.draws, found.mean, found.deviation, found.activity, everywhere, known)

    def _describe(
        self, draws: list[Draw], mean: Any, deviation: Any, activity: Any, presence: Any, known: int = 0
    ) -> None:
        kept = presence >= 0.5  # of a factor that most draws lack, the mean has no meaning
        order = known + np.argsort(-explained(mean)[known:], kind="stable")
        order = np.concatenate([np.arange(known), order[kept[order]]])
        self.components_ = mean[:, order].T
        self.components_sd_, self.activity_, self.presence_ = (
            deviation[:, order].T,
            activity[:, order].T,
            presence[order],
        )
        self._draws, self._known = draws, known
        self._few = draws[:: max(1, -(-len(draws) // _ALIGNED))]

    def transform(self, X: Any) -> np.ndarray:
        """(samples, factors) posterior means of the factors of `X` (samples, features), averaged over draws."""
        check_is_fitted(self)
        X = read_named(self, X, reset=False)
        return self._factors(((X - self.mean_) / self.scale_).T)

    def _factors(self, values: np.ndarray) -> np.ndarray:
        total = np.zeros((self.n_factors_, values.shape[1]))
        for draw in self._few:
            match = match_factors(self.components_.T, draw.loading, least=0.3, known=self._known)
            moved = aligned(match, draw.loading, factors_given(draw, values).mean).factor
            total += 0.0 if moved is None else moved
        return total.T / len(self._few)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """(samples, features) what factors `X` (samples, factors) mean for the features, without noise.

        Raises:
            ValueError: another number of factors than was found.
        """
        check_is_fitted(self)
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self.n_factors_:
            raise ValueError(f"Factors are (samples, {self.n_factors_}); found the shape {X.shape}.")
        return X @ self.components_ * self.scale_ + self.mean_

    def reconstruct(self, X: Any) -> np.ndarray:
        """(samples, features) posterior means of `X` (samples, features) without noise, missing entries among them."""
        check_is_fitted(self)
        X = read_named(self, X, reset=False)
        return reconstruct(self._few, ((X - self.mean_) / self.scale_).T).T * self.scale_ + self.mean_

    def score_samples(self, X: Any) -> np.ndarray:
        """(samples,) log density of `X` (samples, features), averaged over draws; missing entries are marginalised."""
        check_is_fitted(self)
        X = read_named(self, X, reset=False)
        found = log_density(self._few, ((X - self.mean_) / self.scale_).T)
        return found - ~np.isnan(X) @ np.log(self.scale_)

    def sample(self, n_samples: int = 1) -> np.ndarray:
        """(n_samples, features) draws from the predictive distribution."""
        check_is_fitted(self)
        return sample_predictive(self._draws, n_samples, self._key()).T * self.scale_ + self.mean_


def _check_features(X: np.ndarray, names: Any) -> None:
    """Columns and rows that the model could not use, by the names that the user knows."""
    seen = ~np.isnan(X)
    if (empty := np.flatnonzero(~seen.any(axis=1))).size:
        raise ValueError(f"Sample {empty[0]} has no entry that is not missing: it says nothing. Leave it out.")
    for i, (column, there) in enumerate(zip(X.T, seen.T, strict=True)):
        name = i if names is None else repr(str(names[i]))
        if not there.any():
            raise ValueError(f"Feature {name} has no entry that is not missing. Leave it out.")
        if there.sum() > 1 and np.ptp(column[there]) == 0.0:
            raise ValueError(f"All entries of feature {name} are {column[there][0]:.6g}: there is nothing to explain.")


def _check_settings(model: NSFA) -> None:
    if model.inference not in ("mcmc", "messages"):
        raise ValueError(f"inference= is 'mcmc' or 'messages'; found {model.inference!r}.")
    if model.scale not in ("none", "overall", "feature"):
        raise ValueError(f"scale= is 'none', 'overall' or 'feature'; found {model.scale!r}.")
    settings = {} if model.settings is None else model.settings
    if not isinstance(settings, Mapping):
        raise ValueError(f"settings= is {{name: value}} of cavity.models.sparse.Settings; found {settings!r}.")
    if settings and model.inference == "messages":
        raise ValueError(
            f"settings= are of chains; inference='messages' would not use {', '.join(map(str, settings))}. Leave them "
            "out, or take inference='mcmc'."
        )
    if "factors" in settings:
        raise ValueError(f"settings= holds factors, here n_factors=; found factors={settings['factors']!r}.")
    check_counts(model, n_sweeps=2, n_draws=1, n_chains=1)
    second_half(model.n_sweeps, model.n_draws, "n_draws")

"""Sparse factor models by messages: the variational posterior of `cavity.models.nsfa`, as the estimator uses it."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import numpy as np

from ...engine.infer import compile
from ...engine.mcmc.keys import generator
from ...engine.posterior import Posterior
from ...engine.program import Program
from ...factors.errors import ModelError
from ..nsfa import nsfa
from .predict import Draw

# sparsity, slab and noise of `cavity.models.nsfa`
SWITCHES = {
    "nsfa": ("spike", "per factor", "per row"),
    "sfa": ("spike", "per factor", "per row"),
    "fa": ("none", "shared", "per row"),
    "afa": ("none", "per factor", "per row"),
    "ppca": ("none", "shared", "shared"),
    "fokoue": ("none", "element", "per row"),
}
_DRAWS = 50  # of loadings, for predictions that average over them
_MOST = 20  # factors, where their number is not given
_SWEEPS = 100  # beyond which predictions hardly change, though the bound may still grow
_IN_USE = 0.5  # expected rows that a factor acts on, below which it is not needed


class Messages(NamedTuple):
    """Attributes:
    posterior: what `cavity.infer` gave.
    mean, deviation, activity: (rows, factors) of the loadings, factors that are not needed left out.
    noise_variance: (rows,).
    draws: loadings from their posterior, with the posterior mean of the noise precisions.
    """

    posterior: Posterior
    mean: np.ndarray
    deviation: np.ndarray
    activity: np.ndarray
    noise_variance: np.ndarray
    draws: list[Draw]


def fit_by_messages(values: np.ndarray, key: Any, model: str, factors: int | None, known: Any = None) -> Messages:
    """The variational posterior of a model of the family, factors that it has switched off left out.

    Args:
        values: (rows, samples), NaN where missing, rows about 0.
        key: a key of `jax.random`, for draws of the loadings.
        model: a name of `family` with a model by messages.
        factors: how many at most; None: 20, or as many as the data allow.
        known: (rows, factors) prior probabilities of all loadings, or None.

    Raises:
        ModelError: a model without messages, or probabilities of another number of factors.
    """
    if model not in SWITCHES:
        raise ModelError(
            f"By messages there are {', '.join(SWITCHES)}; asked: {model!r}. Take inference='mcmc' for others."
        )
    (sparsity, slab, noises), data = SWITCHES[model], {"y": values}
    if known is not None:
        prior = _prior(known, len(values), factors)
        sparsity, data["prior"], factors = "known", prior, prior.shape[1]
    factors = min(_MOST, *values.shape) if factors is None else factors
    posterior = _program(factors, sparsity, slab, noises).run(data)  # a budget of sweeps, not convergence
    loading, noise = posterior["loading"], np.broadcast_to(posterior["noise"].mean, len(values))
    mean, deviation = np.asarray(loading.mean), np.asarray(loading.sd)
    activity = np.asarray(loading.probability) if sparsity != "none" else np.ones(mean.shape)
    used = np.array(activity.sum(axis=0) >= _IN_USE) | (known is not None)  # known factors stay, in their order
    seed = int(generator(key).integers(2**31 - 1))
    draws = np.asarray(loading.sample(jax.random.key(seed), (_DRAWS,)))[:, :, used]
    return Messages(
        posterior,
        mean[:, used],
        deviation[:, used],
        activity[:, used],
        1.0 / noise,
        [Draw(each, noise) for each in draws],
    )


@functools.lru_cache(maxsize=4)
def _program(factors: int, sparsity: str, slab: str, noise: str) -> Program:
    """What was compiled for one fit serves the next ones of that shape, such as the folds of a cross-validation."""
    return compile(nsfa(factors, sparsity, slab, noise), ["y"], method="vmp", max_iterations=_SWEEPS)


def _prior(known: Any, rows: int, factors: int | None) -> np.ndarray:
    prior = np.asarray(known, dtype=np.float64)
    if prior.ndim != 2 or len(prior) != rows or factors not in (None, prior.shape[1]):
        raise ModelError(
            f"By messages, known= has a probability for each of the {rows} rows and every factor"
            + ("" if factors is None else f", {factors} of them")
            + f"; found shape {prior.shape}. With inference='mcmc' other factors may join those that are known."
        )
    return prior

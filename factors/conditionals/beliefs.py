"""Distribution functions of beliefs, which are those of the conditionals with the same parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..arrays import Array
from ..conditional import Table
from ..errors import UnsupportedError
from ..families import Beta, Dirichlet, Family, Gamma, Gaussian, Poisson, SpikeAndSlab, VectorGaussian
from .counts import COUNTS
from .positives import POSITIVES
from .reals import REALS
from .vectors import VECTORS


def below(family: Family, x: Array) -> Array:
    """P(X <= x) under a belief, by element; x is shaped plates + event, with more leading axes allowed."""
    own_below = getattr(family, "below", None)  # of a mixture, which is no family of the vocabulary
    if own_below is not None:
        return own_below(x)
    for own, (function, arguments) in _BELOW.items():
        if isinstance(family, own):
            return function(x, **arguments(family))
    raise UnsupportedError(
        f"A mixture of {type(family).__name__} components has no quantiles here. Use its mean, or draw with .sample()."
    )


def _function(table: Table, name: str) -> Callable[..., Array]:
    found = table[name].get("below")
    assert found is not None, f"{name} has no distribution function"
    return found


_BELOW: dict[type[Family], tuple[Callable[..., Array], Callable[[Any], dict[str, Array]]]] = {
    Gaussian: (_function(REALS, "gaussian"), lambda q: {"mean": q.mean(), "precision": q.precision}),
    VectorGaussian: (
        _function(VECTORS, "isotropic_gaussian"),
        lambda q: {"mean": q.mean(), "precision": 1.0 / q.variance()},
    ),
    Gamma: (_function(POSITIVES, "gamma"), lambda q: {"shape": q.shape, "rate": q.rate}),
    Beta: (_function(POSITIVES, "beta"), lambda q: {"a": q.a, "b": q.b}),
    Dirichlet: (
        _function(POSITIVES, "beta_of_mean"),
        lambda q: {"mean": q.mean(), "total": q.concentration.sum(-1, keepdims=True)},
    ),
    Poisson: (_function(COUNTS, "poisson"), lambda q: {"rate": q.rate}),
    SpikeAndSlab: (
        _function(REALS, "spike_and_slab_about"),
        lambda q: {"probability": q.probability, "mean": q.slab_mean, "precision": q.precision},
    ),
}

"""`cv.laplace`: the Laplace distribution of a mean and a scale, or Laplace's approximation of a model and its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from .compiler.language.model import Model
from .factors.arrays import Argument
from .factors.calls import call_checked
from .factors.factor import Term
from .factors.real.laplace import laplace as _distribution

if TYPE_CHECKING:
    from .engine.evidence.laplace import LaplaceApproximation


@call_checked
@overload
def laplace(mean: Argument, scale: Argument) -> Term: ...
@overload
def laplace(
    mean: Model,
    scale: Mapping[str, Any],
    sizes: Mapping[str, int] | None = None,
    *,
    integrate: Sequence[str] = (),
    start: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> LaplaceApproximation: ...
def laplace(mean: Any, scale: Any, *more: Any, **options: Any) -> Any:
    """A Laplace variable, or, of a model and data, the Gaussian about the mode of its posterior.

    `cv.laplace(mean, scale)` is a term for `Model.random` with the density exp(-|x - mean| / scale) / (2 scale) and
    variance 2 scale^2; `mean` is real, `scale` > 0: numbers, an input, or a positive variable. ModelError for numbers
    outside these domains; as data they are a DataError. `cv.laplace(model, data, ...)`, told by its first argument, is
    `cv.laplace_approximation(model, data, ...)`, with its answer and its errors: `more` and `options` are its further
    arguments. Source: seeger2008sparse, tierney1986accurate.
    """
    if not isinstance(mean, Model):
        return _distribution(mean, scale, *more, **options)
    from .engine.evidence.laplace import laplace_approximation

    return laplace_approximation(mean, scale, *more, **options)

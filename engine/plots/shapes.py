"""What is drawn of a marginal, as numbers: densities, intervals and the names of elements. It needs no matplotlib."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import scipy.special

from ...factors.errors import UnsupportedError
from ..answers.marginal import Axis, Marginal

CURVES = 6  # up to so many elements have their densities drawn, more are intervals
ROWS = 40  # up to so many have a line or a bar and a name of their own, more are a band over their places
MOST = 1000  # elements of one variable that are drawn


def has_quantiles(marginal: Marginal) -> bool:
    """Whether its values have an order and a distribution function."""
    try:
        marginal.quantile(0.5)
    except UnsupportedError:
        return False
    return True


def density_curves(marginal: Marginal) -> tuple[np.ndarray, np.ndarray]:
    """Points and the density there by differences of the distribution function: quantiles are all it needs.

    Both are shaped (200, elements), from 4 sds of a normal below its mean to 4 above.
    """
    levels = scipy.special.ndtr(np.linspace(-4.0, 4.0, 201))
    points = marginal.quantile(levels).reshape(levels.size, -1)
    density = np.diff(levels)[:, None] / np.maximum(np.diff(points, axis=0), 1e-300)
    return 0.5 * (points[1:] + points[:-1]), density


def intervals(marginal: Marginal, interval: float) -> tuple[np.ndarray, np.ndarray]:
    """The ends of central intervals of all elements; those of a Gaussian where a family has no quantiles."""
    if has_quantiles(marginal):
        low, high = marginal.interval(interval)
        return np.ravel(low), np.ravel(high)
    half = scipy.special.ndtri(0.5 + 0.5 * interval) * np.ravel(marginal.sd)
    return np.ravel(marginal.mean) - half, np.ravel(marginal.mean) + half


def class_probabilities(marginal: Marginal, boolean: bool) -> tuple[np.ndarray, tuple[str, ...]]:
    """A row of probabilities for each element of a discrete variable, and the names of its values."""
    mean = np.asarray(marginal.mean)
    table = np.stack([1.0 - mean, mean], axis=-1) if boolean else mean
    axis = marginal.axes[-1] if not boolean and marginal.axes else Axis("")
    values = ("false", "true") if boolean else tuple(str(axis.label(k)) for k in range(table.shape[-1]))
    return table.reshape(-1, table.shape[-1]), values


def chosen(total: int, most: int = MOST) -> np.ndarray:
    """The places of the elements that are drawn: all, or so many at even distances."""
    return np.unique(np.linspace(0, total - 1, min(total, most)).astype(int))


def told(shown: int, total: int) -> str:
    """What to say where not all are drawn."""
    return "" if shown == total else f"{shown:,} of {total:,}, evenly spaced"


def element_names(marginal: Marginal, shape: tuple[int, ...], places: Iterable[int]) -> list[str]:
    """What the elements at these places of an array of this shape are called: their names, or "2" or "0, 1"."""
    axes = [*marginal.axes, *[Axis("")] * len(shape)][: len(shape)]
    indices = [np.unravel_index(int(place), shape) for place in places]
    return [", ".join(str(a.label(int(i))) for a, i in zip(axes, index, strict=True)) for index in indices]

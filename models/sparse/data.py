"""Data of sparse factor models: rows by samples, with gaps and entries that are held out; what kernels know of it."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np

from ...engine.mcmc.keys import generator
from ...engine.support.user_numbers import table
from ...factors.errors import DataError, ModelError
from .settings import Settings
from .state import Numbers, Observed, Switches

SCALES = ("none", "overall", "row")


@dataclasses.dataclass(frozen=True, eq=False)
class Data:
    """`y = G x + noise`, checked. There is no intercept: rows are taken about 0, see `centred`.

    Args:
        values: (rows, samples) numbers; missing ones are NaN, or masked.
        held_out: (rows, samples) booleans, entries that the sampler must not see and that it predicts; or None. Rows
            and samples may be held out as a whole.

    Raises:
        DataError: no table; infinite entries; a row or sample without any entry; a row whose
            entries (two or more) are all equal, which has no variation to explain; entries held out that are missing,
            or all of them.
    """

    values: np.ndarray
    held_out: Any = None

    def __post_init__(self) -> None:
        values = table(self.values, "row", "sample")
        _check(values)
        object.__setattr__(self, "values", values)
        held_out = np.zeros(values.shape, bool) if self.held_out is None else np.asarray(self.held_out)
        if held_out.dtype != bool or held_out.shape != values.shape:
            raise DataError(
                f"held_out= holds True or False for every entry of the data, shape {values.shape}; found "
                f"{held_out.dtype} of shape {held_out.shape}. See held_out_mask."
            )
        if (held_out & np.isnan(values)).any():
            row, sample = np.argwhere(held_out & np.isnan(values))[0]
            raise DataError(
                f"Row {row}, sample {sample} is held out but missing: there is nothing to compare a prediction with. "
                "Use held_out & ~numpy.isnan(values)."
            )
        object.__setattr__(self, "held_out", held_out)
        if not self.seen.any():
            raise DataError("All entries are held out: nothing is left to learn from.")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and samples."""
        return self.values.shape[0], self.values.shape[1]

    @functools.cached_property
    def seen(self) -> np.ndarray:
        """(rows, samples) which entries the sampler sees."""
        return ~np.isnan(self.values) & ~self.held_out

    @functools.cached_property
    def filled(self) -> np.ndarray:
        """(rows, samples) the values that are seen, 0 elsewhere."""
        return np.where(self.seen, self.values, 0.0)


class Centred(NamedTuple):
    """Data about their rows' means, in units of a scale.

    Attributes:
        values: (rows, samples), NaN where missing; `mean[:, None] + scale[:, None] * values` are the data.
        mean, scale: (rows,).
    """

    values: np.ndarray
    mean: np.ndarray
    scale: np.ndarray


def centred(values: Any, scale: str = "none", held_out: Any = None) -> Centred:
    """Data with each row's mean removed, which is what a factor model without intercept describes.

    Args:
        values: (rows, samples), NaN or masked where missing.
        scale: "none"; "overall": all are divided by the root mean square of what is left; "row": each row by its own.
        held_out: (rows, samples) booleans: entries that means and scales must not see, for an honest prediction of
            them, or None.

    Raises:
        DataError: as of `Data`; a row that is held out as a whole, whose mean is unknown then.
        ModelError: another scale.
    """
    if scale not in SCALES:
        raise ModelError(f"scale= is one of {', '.join(SCALES)}; found {scale!r}.")
    found = Data(values, held_out)
    if (unseen := np.flatnonzero(~found.seen.any(axis=1))).size:
        raise DataError(f"Row {unseen[0]} is held out as a whole: nothing is left to take its mean from.")
    seen = np.where(found.seen, found.values, np.nan)
    mean = np.nanmean(seen, axis=1)
    size = sizes(seen - mean[:, None], scale)
    return Centred((found.values - mean[:, None]) / size[:, None], mean, size)


def sizes(values: np.ndarray, scale: str) -> np.ndarray:
    """(rows,) what `centred` divides by: roots of mean squares, 1 where these are 0, as of a row with one entry."""
    square = np.nanmean(values**2, axis=1 if scale == "row" else None) if scale != "none" else np.ones(())
    size = np.sqrt(np.broadcast_to(square, len(values)))
    return np.where(size > 0.0, size, 1.0)


def held_out_mask(shape: tuple[int, int], share: float, key: Any) -> np.ndarray:
    """Entries to hold out: the nearest whole number to `share` of all, chosen at random.

    Args:
        shape: (rows, samples) of the data.
        share: between 0 and 1.
        key: a key of `jax.random`.

    Returns:
        (rows, samples) booleans, True where held out.

    Raises:
        ModelError: a share that leaves nothing on one side.
    """
    cells = int(np.prod(shape))
    number = round(share * cells) if 0.0 < share < 1.0 else 0
    if not 0 < number < cells:
        raise ModelError(
            f"A share between 0 and 1 is held out, some of the {cells} entries but not all; found share={share!r}."
        )
    mask = np.zeros(cells, bool)
    mask[generator(key).choice(cells, number, replace=False)] = True
    return mask.reshape(shape)


# for the kernels ------------------------------------------------------------------------------------------------------


def switches_of(settings: Settings, data: Data | int) -> Switches:
    """What decides which code is compiled, for these data or so many rows.

    Raises:
        ModelError: known factors that do not fit the data or the number of factors.
    """
    rows = data if isinstance(data, int) else data.shape[0]
    known = 0 if settings.known is None else settings.known.shape[1]
    if settings.known is not None and settings.known.shape[0] != rows:
        raise ModelError(
            f"known= holds a probability for each of the {rows} rows of the data, in this order; found "
            f"{settings.known.shape[0]} rows."
        )
    if settings.factors is not None and known > settings.factors:
        raise ModelError(f"known= describes {known} factors, and the model has {settings.factors}: raise factors=.")
    births = 256 if settings.births is None else int(settings.births)
    return Switches(
        sparsity=settings.sparsity,
        slab=settings.slab,
        precision=settings.precision if isinstance(settings.precision, str) else "fixed",
        noise=settings.noise if isinstance(settings.noise, str) else "fixed",
        learn=tuple(sorted(settings.learn)),
        known=known,
        rows=min(births, rows),
        most=int(settings.most),
        scores=settings.scores,
        shared=int(settings.shared),
    )


def numbers_of(settings: Settings, rows: int) -> Numbers:
    """Numbers that no compilation depends on."""
    priors, a = settings.priors, np.array
    # A slab precision that is kept is the mean of its prior: births take it from there.
    precision = priors.precision if isinstance(settings.precision, str) else (settings.precision, 1.0)
    hierarchy = settings.hierarchy or (10.0, 0.75, float(rows), min(5.0 / rows, 0.5))
    return Numbers(
        mass_prior=a(priors.mass), concentration_prior=a(priors.concentration), precision_prior=a(precision),
        precision_rate_prior=a(priors.precision_rate), noise_prior=a(priors.noise),
        noise_rate_prior=a(priors.noise_rate), element=a(settings.element), hierarchy=a(hierarchy),
        multiplier=np.array(float(settings.multiplier)), spike=np.array(float(settings.spike)),
        score_mass=np.array(settings.score_mass),
    )  # fmt: skip


def observed_of(data: Data, settings: Settings) -> Observed:
    """The data as kernels take them."""
    row, sample = np.nonzero(~data.seen)
    known = np.zeros((data.shape[0], 0)) if settings.known is None else settings.known
    with np.errstate(divide="ignore"):
        log_odds = np.log(known.T) - np.log1p(-known.T)
    return Observed(data.filled, row, sample, np.ascontiguousarray(log_odds))


def _check(values: np.ndarray) -> None:
    seen = ~np.isnan(values)
    low, high = np.min(values, axis=1, initial=np.inf, where=seen), np.max(values, axis=1, initial=-np.inf, where=seen)
    if (flat := np.flatnonzero((low == high) & (seen.sum(axis=1) > 1))).size:
        raise DataError(
            f"All entries of row {flat[0]} are {low[flat[0]]:.6g}: it has no variation that factors could explain. "
            "Leave it out."
        )

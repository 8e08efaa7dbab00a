"""What all draws say together: sums that a chain takes as it goes, so that no draw need be kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from .data import Data

BULKY = ("loading", "factor", "noise", "precision")  # what a draw has that is not one number


class HeldOut(NamedTuple):
    """How well held-out entries are predicted; draws are of loadings, factors of the samples, and noise.

    Attributes:
        row, sample: (entries,) which they are.
        log_density: (entries,) `log mean over draws of N(y; g x, 1 / noise)`, the density under the posterior
            predictive distribution; in nats, of data in the units of `Data`.
        mean_log_density: (entries,) the mean over draws of the log densities, which is never larger.
        mean: (entries,) predictions, the posterior means.
    """

    row: np.ndarray
    sample: np.ndarray
    log_density: np.ndarray
    mean_log_density: np.ndarray
    mean: np.ndarray

    @property
    def score(self) -> float:
        """Mean of `log_density` over the entries."""
        return float(self.log_density.mean())


class Summary(NamedTuple):
    """Of all draws of all chains.

    Attributes:
        number_of_factors: (most + 1,) posterior probabilities of 0, 1, 2, ... factors in use.
        reconstruction: (rows, samples) posterior mean of G X, the data without noise.
        factors_per_row: (rows,) posterior mean of the number of factors that act on a row.
        noise: (rows,) posterior mean of the noise precisions.
        known_activity: (rows, known) posterior probabilities that known factors act on rows.
        held_out: predictions of held-out entries, or None where there are none.
    """

    number_of_factors: np.ndarray
    reconstruction: np.ndarray
    factors_per_row: np.ndarray
    noise: np.ndarray
    known_activity: np.ndarray
    held_out: HeldOut | None


def gather(
    data: Data, totals: dict[str, np.ndarray] | None, recorded: dict[str, Any], known: int = 0, keep: str = "all"
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Adds a draw to a chain's totals.

    Args:
        data: the data, with the held-out entries.
        totals: before, or None.
        recorded: of `Sampler.record`.
        known: how many factors are known, and so the same ones in all draws.
        keep: "all" or "summaries".

    Returns:
        The totals, and what is kept of the draw itself.
    """
    fit, noise, active = recorded["fit"], recorded["noise"], recorded["loading"] != 0.0
    row, sample = np.nonzero(data.held_out)
    error = data.values[row, sample] - fit[row, sample]
    log_density = 0.5 * (np.log(noise[row] / (2.0 * np.pi)) - noise[row] * error**2)
    new = {
        "draws": np.array(1.0), "fit": fit, "noise": noise, "active": active.sum(axis=0).astype(float),
        "known": active[:known].astype(float), "log_density": log_density,
    }  # fmt: skip
    if totals is None:
        totals = new | {"log_sum": log_density}
    else:
        log_sum = np.logaddexp(totals["log_sum"], log_density)
        totals = {name: totals[name] + value for name, value in new.items()} | {"log_sum": log_sum}
    left_out = ("fit", *BULKY) if keep == "summaries" else ("fit",)
    return totals, {name: value for name, value in recorded.items() if name not in left_out}


def summarise(data: Data, totals: Sequence[dict[str, np.ndarray]], counts: np.ndarray) -> Summary:
    """What chains say together, every draw with the same weight.

    Args:
        data: the data.
        totals: of each chain.
        counts: numbers of factors of all draws.
    """
    total = {name: np.sum([chain[name] for chain in totals], axis=0) for name in totals[0] if name != "log_sum"}
    draws = float(total["draws"])
    mean = {name: value / draws for name, value in total.items()}
    row, sample = np.nonzero(data.held_out)
    held_out = None
    if row.size:
        log_mean = logsumexp([chain["log_sum"] for chain in totals], axis=0) - np.log(draws)
        held_out = HeldOut(row, sample, log_mean, mean["log_density"], mean["fit"][row, sample])
    return Summary(
        number_of_factors=np.bincount(counts.ravel().astype(int)) / counts.size,
        reconstruction=mean["fit"],
        factors_per_row=mean["active"],
        noise=mean["noise"],
        known_activity=mean["known"].T,
        held_out=held_out,
    )

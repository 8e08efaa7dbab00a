"""The data of the experiments on sparse factor models: real ones, prepared as the papers say, and generated ones."""

import json
from typing import NamedTuple

import common
import numpy as np
import reference_runs

from cavity.models.sparse.data import centred


class Problem(NamedTuple):
    """Generated data: values (rows, samples), the loadings (rows, K) and factors (K, samples) behind them."""

    values: np.ndarray
    loading: np.ndarray
    factor: np.ndarray


def connectivity(arguments):
    """(100, 16) booleans: which transcription factor of E. coli regulates which gene (Kao et al. 2004)."""
    path = common.folder(arguments, "ecoli_kao2004", "connectivity_100x16.csv")
    return np.loadtxt(path, delimiter=",", skiprows=1, usecols=range(1, 17)) != 0.0


def regulated(active, random, samples=100, ratio=10.0, ones=False):
    """Normal loadings (or ones) where active, normal factors and white noise, `var(G X) / var(noise)` the ratio."""
    loading = active * (1.0 if ones else random.standard_normal(active.shape))
    factor = random.standard_normal((active.shape[1], samples))
    signal = loading @ factor
    return Problem(signal + np.sqrt(signal.var() / ratio) * random.standard_normal(signal.shape), loading, factor)


def ecoli(arguments):
    """(100, 23) expression over time (Kao et al. 2004; the papers say 24 arrays, the public data have 23): genes about
    their means, all divided by the overall standard deviation."""
    path = common.folder(arguments, "ecoli_kao2004", "expression_100x23.csv")
    return centred(np.loadtxt(path, delimiter=",", skiprows=1, usecols=range(1, 24)), "overall").values


def breast(arguments):
    """(226, 251) log expression in breast cancer (West 2007): genes about their means, as the reference program had."""
    return centred(np.loadtxt(common.folder(arguments, "nsfa_breast_cancer", "Y_226x251.csv"), delimiter=",")).values


def prostate(random, rows=12557, samples=171, factors=12):
    """Data of the size of Yu et al. (2004), a draw of the model: most genes are noise only.

    Three genes of ten take part. Factor k acts on such a gene with probability 0.8^(k + 1), so that the first is nearly
    dense among them and the last acts on some 250. Slab and noise standard deviations are log-normal.
    """
    active = random.random((rows, factors)) < 0.8 ** np.arange(1, factors + 1)
    active &= (random.random(rows) < 0.3)[:, None]
    loading = active * random.standard_normal((rows, factors)) * np.exp(0.3 * random.standard_normal(factors))
    factor = random.standard_normal((factors, samples))
    noise = np.exp(0.3 * random.standard_normal((rows, 1))) * random.standard_normal((rows, samples))
    return Problem(loading @ factor + noise, loading, factor)


class Reference(NamedTuple):
    """A run of the authors' program: the entries held out (rows, samples), its held-out score, its mean K."""

    held_out: np.ndarray
    score: float
    factors: float


def references(name):
    """The runs of the authors' program on "breast" or "ecoli", by their masks; none where there is no copy of them."""
    found = []
    for number in range(3):
        mask = reference_runs.path("nsfa", f"{name}_mask{number}.csv")
        summary = reference_runs.path("nsfa", f"{name}_mask{number}_summary.json")
        if mask is not None and summary is not None:
            kept = json.loads(summary.read_text())
            seen = np.loadtxt(mask, delimiter=",") == 1
            found.append(Reference(~seen, kept["heldout_logdens_per_cell_averaged"], kept["K_mean"]))
    return found

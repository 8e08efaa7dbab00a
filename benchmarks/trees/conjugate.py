"""Gaussians whose mean and precision are integrated out: what infinite mixtures and merges of clusters weigh.

`mean ~ N(0, (strength precision)^-1)`, `precision ~ Wishart(freedom, scale^-1)`, of which only the sufficient
statistics of a cluster matter: how many rows, their sum, the sum of their outer products. With `columns=True` columns
are independent, each with a normal-gamma prior of its own, which is the same in one dimension.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, multigammaln


class Law(NamedTuple):
    """The prior: strength and freedom, scale, of all columns alike, and whether columns are independent."""

    strength: float
    freedom: float
    scale: float
    columns: bool = False


class Sums(NamedTuple):
    """Of clusters: (...,) numbers of rows, (..., D) sums, (..., D, D) sums of outer products or (..., D) of squares."""

    number: np.ndarray
    total: np.ndarray
    square: np.ndarray

    def __add__(self, other):
        return Sums(*(one + two for one, two in zip(self, other, strict=True)))

    def __getitem__(self, which):
        return Sums(*(part[which] for part in (self.number, self.total, self.square)))


def sums_of(rows, law):
    """Each row a cluster of its own."""
    square = rows**2 if law.columns else rows[:, :, None] * rows[:, None, :]
    return Sums(np.ones(len(rows)), rows.copy(), square)


def posterior(sums, law):
    """Strength, freedom, mean and scale given clusters."""
    strength, freedom = law.strength + sums.number, law.freedom + sums.number
    mean = sums.total / strength[..., None]
    if law.columns:
        return strength, freedom, mean, law.scale + sums.square - strength[..., None] * mean**2
    outer = mean[..., :, None] * mean[..., None, :]
    own = law.scale * np.eye(mean.shape[-1])
    return strength, freedom, mean, own + sums.square - strength[..., None, None] * outer


def log_marginal(sums, law):
    """(...,) log density of the rows of clusters, `pi^(-n D / 2) Z(posterior) / Z(prior)`."""
    strength, freedom, mean, scale = posterior(sums, law)
    width = mean.shape[-1]
    found = -0.5 * sums.number * width * np.log(np.pi) + 0.5 * width * np.log(law.strength / strength)
    if law.columns:
        one = gammaln(0.5 * freedom) - gammaln(0.5 * law.freedom) + 0.5 * law.freedom * np.log(law.scale)
        return found + width * one - 0.5 * freedom * np.log(scale).sum(axis=-1)
    sizes, place = np.unique(freedom, return_inverse=True)
    gammas = multigammaln(0.5 * sizes, width)[place].reshape(np.shape(freedom))
    found += gammas - multigammaln(0.5 * law.freedom, width) + 0.5 * law.freedom * width * np.log(law.scale)
    return found - 0.5 * freedom * np.linalg.slogdet(scale)[1]


def log_predictive(rows, sums, law):
    """(rows, clusters) log density of one more row in each of (clusters,) clusters: Student's t."""
    strength, freedom, mean, scale = posterior(sums, law)
    width, away = mean.shape[-1], rows[:, None, :] - mean
    wide = (1.0 + 1.0 / strength)[:, None]
    if law.columns:
        distance = away**2 / (scale * wide)
        one = gammaln(0.5 * (freedom + 1.0)) - gammaln(0.5 * freedom) - 0.5 * np.log(np.pi)
        logs = np.log(scale * wide) + (freedom[:, None] + 1.0) * np.log1p(distance)
        return width * one - 0.5 * logs.sum(axis=2)
    v = freedom - width + 1.0
    root = np.linalg.inv(np.linalg.cholesky(scale * wide[:, :, None]))
    distance = (np.einsum("kij,nkj->nki", root, away) ** 2).sum(axis=2)
    half = -np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    constant = gammaln(0.5 * (v + width)) - gammaln(0.5 * v) - 0.5 * width * np.log(np.pi) - half
    return constant - 0.5 * (v + width) * np.log1p(distance)


def laws(width, columns=False):
    """Priors that data in units of standard deviations may have: a grid over strength and scale."""
    freedom = 2.0 if columns else width + 2.0
    return [
        Law(strength, freedom, scale, columns)
        for strength in (0.01, 0.03, 0.1, 0.3, 1.0)
        for scale in (0.03, 0.1, 0.3, 1.0, 3.0)
    ]

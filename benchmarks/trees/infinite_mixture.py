"""An infinite mixture of Gaussians by Gibbs sampling: cluster of a row given those of all others, all else integrated.

The Dirichlet process's mass has a Gamma(1, 1) prior, the Gaussians' prior is drawn from a grid. This is what the papers
compare trees with, by a program that draws means and variances; here they are integrated out (Neal 2000, algorithm 3).
"""

from typing import NamedTuple

import numpy as np
from conjugate import Law, Sums, laws, log_marginal, log_predictive, posterior, sums_of
from scipy.cluster.vq import kmeans2
from scipy.special import gammaln, logsumexp


class Draw(NamedTuple):
    """A state: (rows,) clusters from 0 on, the mass of the process, and the prior of Gaussians."""

    cluster: np.ndarray
    mass: float
    law: Law


class Clusters:
    """Clusters of rows, with what their predictive densities need, one place for each and one that is empty."""

    def __init__(self, rows, cluster, law):
        self.rows, self.law, self.own = rows, law, sums_of(rows, law)
        self.cluster = cluster.copy()
        self.freedoms = law.freedom + np.arange(len(rows) + 2.0)
        width = rows.shape[1]
        v = self.freedoms if law.columns else self.freedoms - width + 1.0
        if law.columns:
            self.constant = width * (gammaln(0.5 * (v + 1.0)) - gammaln(0.5 * v) - 0.5 * np.log(np.pi))
        else:
            self.constant = gammaln(0.5 * (v + width)) - gammaln(0.5 * v) - 0.5 * width * np.log(np.pi)
        self.sums = [self._sum(np.flatnonzero(cluster == k)) for k in range(cluster.max() + 1)]
        self.parts = [self._part(each) for each in self.sums]
        self.empty = self._part(self._sum(np.array([], int)))

    def _sum(self, which):
        return Sums(*(part[which].sum(axis=0) for part in (self.own.number, self.own.total, self.own.square)))

    def _part(self, sums):
        """Mean, inverse root of the predictive's scale, and its constants."""
        strength, freedom, mean, scale = posterior(sums, self.law)
        wide, number = 1.0 + 1.0 / strength, round(float(sums.number))
        if self.law.columns:
            variance = scale * wide
            return mean, variance**-0.5, self.constant[number] - 0.5 * np.log(variance).sum(), freedom + 1.0
        root = np.linalg.inv(np.linalg.cholesky(scale * wide))
        constant = self.constant[number] + np.log(np.diagonal(root)).sum()
        return mean, root, constant, freedom + 1.0

    def _log_density(self, row, part):
        mean, root, constant, power = part
        away = row - mean
        if self.law.columns:
            return constant - 0.5 * power * np.log1p((away * root) ** 2).sum()
        away = root @ away
        return constant - 0.5 * power * np.log1p(away @ away)

    def sweep(self, mass, random):
        """Every row's cluster, given those of all others."""
        for n, row in enumerate(self.rows):
            self._change(self.cluster[n], n, -1.0)
            parts = [*self.parts, self.empty]
            weight = np.log([*(max(float(each.number), 0.5) for each in self.sums), mass])
            weight += [self._log_density(row, part) for part in parts]
            weight = np.exp(weight - weight.max())
            self.cluster[n] = np.searchsorted(np.cumsum(weight), random.random() * weight.sum())
            self._change(self.cluster[n], n, 1.0)

    def _change(self, k, n, sign):
        """Row n joins or leaves cluster k, which is made or vanishes."""
        if k == len(self.sums):
            self.sums.append(self.own[n])
            self.parts.append(self._part(self.own[n]))
            return
        one = self.sums[k]
        self.sums[k] = Sums(*(a + sign * b for a, b in zip(one, self.own[n], strict=True)))
        if self.sums[k].number > 0.5:
            self.parts[k] = self._part(self.sums[k])
            return
        del self.sums[k], self.parts[k]
        self.cluster[self.cluster > k] -= 1


def stacked(sums):
    """Clusters in one `Sums`, their axis first."""
    return Sums(*(np.stack([getattr(each, name) for each in sums]) for name in Sums._fields))


def sample(rows, sweeps, seed=0, columns=False, keep=2, grid=None):
    """Draws of clusters, every `keep`-th of the second half of the sweeps."""
    random, found, mass = np.random.default_rng(seed), [], 1.0
    grid = laws(rows.shape[1], columns) if grid is None else grid
    # Clusters die sooner than they split: chains start with more of them than there may be.
    label = kmeans2(rows, rows[random.permutation(len(rows))[: max(1, min(20, len(rows) // 4))]], minit="matrix")[1]
    law, cluster = grid[len(grid) // 2], np.unique(label, return_inverse=True)[1]
    for sweep in range(sweeps):
        clusters = Clusters(rows, cluster, law)
        clusters.sweep(mass, random)
        cluster = clusters.cluster
        sums = stacked(clusters.sums)
        logs = np.array([log_marginal(sums, each).sum() for each in grid])
        law = grid[random.choice(len(grid), p=np.exp(logs - logsumexp(logs)))]
        mass = drawn_mass(mass, len(sums.number), len(rows), random)
        if sweep >= sweeps // 2 and (sweep - sweeps // 2) % keep == 0:
            found.append(Draw(cluster.copy(), mass, law))
    return found


def drawn_mass(mass, clusters, rows, random, shape=1.0, rate=1.0):
    """Of a Dirichlet process given the number of clusters (Escobar and West 1995)."""
    log_share = np.log(random.beta(mass + 1.0, rows))
    odds = (shape + clusters - 1.0) / (rows * (rate - log_share))
    more = clusters if random.random() * (1.0 + odds) < odds else clusters - 1.0
    return random.gamma(shape + more) / (rate - log_share)


def log_density(rows, draws, test):
    """(tests,) log density of new rows, averaged over draws."""
    found = []
    for draw in draws:
        own = sums_of(rows, draw.law)
        parts = [own[draw.cluster == k] for k in range(draw.cluster.max() + 1)]
        sums = stacked([Sums(*(part.sum(axis=0) for part in each)) for each in parts] + [_nothing(own)])
        weight = np.append(sums.number[:-1], draw.mass) / (len(rows) + draw.mass)
        found.append(logsumexp(log_predictive(test, sums, draw.law) + np.log(weight), axis=1))
    return logsumexp(found, axis=0) - np.log(len(found))


def _nothing(own):
    return Sums(*(np.zeros(np.shape(part)[1:]) for part in (own.number, own.total, own.square)))


def infinite_mixture(train, test, seed=0, sweeps=200):
    """Log densities of new rows, as `baselines` has others."""
    return log_density(train, sample(train, sweeps, seed), test)

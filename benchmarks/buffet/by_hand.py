"""The collapsed sampler as the literature counts its cost, in NumPy: every entry by a density of all rows.

`log p(X | Z)` has the exponent `tr X^T (I - Z M^-1 Z^T) X` with `M = Z^T Z + I noise / value`, M^-1 and its determinant
by two rank-one steps (Griffiths and Ghahramani 2005), and the products with `rows x rows` numbers: `O(rows^2 (K + D))`
an entry, `O(rows^3 (K^2 + K D))` a sweep.
"""

import time

import numpy as np


class Collapsed:
    """Data X (rows, columns), a matrix Z (rows, K) of zeros and ones, the ratio of variances of noise and values."""

    def __init__(self, values, active, noise, own, seed=0):
        self.values, self.z = np.asarray(values, float), np.asarray(active, float)
        self.noise, self.own, self.random = noise, own, np.random.default_rng(seed)
        m = self.z.T @ self.z + np.eye(self.z.shape[1]) * noise / own
        self.inverse, self.log_det = np.linalg.inv(m), np.linalg.slogdet(m)[1]

    def log_marginal(self, z, inverse, log_det):
        """Log density of all rows."""
        (rows, count), dimensions = z.shape, self.values.shape[1]
        projection = np.eye(rows) - z @ inverse @ z.T
        exponent = np.sum(self.values * (projection @ self.values)) / (2.0 * self.noise)
        volume = 0.5 * dimensions * ((rows - count) * np.log(self.noise) + count * np.log(self.own) + log_det)
        return -0.5 * rows * dimensions * np.log(2.0 * np.pi) - volume - exponent

    def flipped(self, n, k):
        """Z, M^-1 and log |M| with one entry changed: row n is taken out of M and put back."""
        z = self.z.copy()
        z[n, k] = 1.0 - z[n, k]
        inverse, log_det = self.inverse, self.log_det
        for row, sign in ((self.z[n], -1.0), (z[n], 1.0)):
            v = inverse @ row
            scale = 1.0 + sign * row @ v
            inverse, log_det = inverse - sign * np.outer(v, v) / scale, log_det + np.log(scale)
        return z, inverse, log_det

    def entry(self, n, k):
        """One entry drawn given all others; a feature that the row has alone stays."""
        others = self.z[:, k].sum() - self.z[n, k]
        if others == 0:
            return
        now = self.log_marginal(self.z, self.inverse, self.log_det)
        other = self.flipped(n, k)
        then = self.log_marginal(*other)
        odds = np.log(others) - np.log(len(self.z) - others) + (then - now) * (1.0 - 2.0 * self.z[n, k])
        if (self.random.logistic() < odds) != (self.z[n, k] > 0.5):
            self.z, self.inverse, self.log_det = other

    def seconds(self, entries):
        """CPU seconds of a sweep over all entries of Z, from so many of them; births cost as much again as a few."""
        rows, count = self.z.shape
        chosen = [(int(self.random.integers(rows)), int(self.random.integers(count))) for _ in range(entries)]
        began = time.process_time()
        for n, k in chosen:
            self.entry(n, k)
        return (time.process_time() - began) / entries * rows * count

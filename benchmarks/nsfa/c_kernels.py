"""The comparator: sites in C, compiled to a temporary folder and called through ctypes, and the rest in NumPy."""

import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from scipy.linalg import blas, lapack

FLAGS = ["-O3", "-march=native", "-ffast-math", "-mprefer-vector-width=512"]
DOUBLES = np.ctypeslib.ndpointer(np.float64, flags="C")
WORDS = np.ctypeslib.ndpointer(np.uint64, flags="C")


def compiled():
    """The library; needs gcc."""
    target = Path(tempfile.mkdtemp(prefix="cavity-nsfa-")) / "kernels.so"
    source = Path(__file__).with_name("kernels.c")
    subprocess.run(["gcc", *FLAGS, "-shared", "-fPIC", "-o", target, source, "-lm"], check=True)
    library = ctypes.CDLL(str(target))
    n = ctypes.c_int64
    library.sites.restype = None
    library.sites.argtypes = (n, n, DOUBLES, DOUBLES, DOUBLES, DOUBLES, DOUBLES, DOUBLES, WORDS)
    return library


class Sampler:
    """The row-parallel sweep at a fixed number of factors, as a careful author would write it in C and NumPy.

    Args:
        library: from `compiled`.
        values: (D, N) with zeros where missing.
        row, sample: places of the missing entries.
        loading, factor: (D, K), (K, N) to start from.
        births: rows that propose births; proposals are weighed as the sampler weighs them, and none is carried out, so
            that the number of factors stays what it is.
    """

    def __init__(self, library, values, row, sample, loading, factor, births, seed=0):
        self.library, self.random = library, np.random.default_rng(seed)
        self.words = self.random.integers(1, 2**63, 4).astype(np.uint64)
        self.values, self.row, self.sample, self.births = values.copy(), row, sample, births
        self.loading, self.factor = np.ascontiguousarray(loading), np.ascontiguousarray(factor)
        self.noise, self.mass = np.full(len(values), 4.0), 2.0
        self.kept = np.einsum("dn,dn->d", values, values)  # of what is observed, once
        self.missing = np.zeros(len(row))

    def sites(self, cross, gram, precision, log_odds):
        """All loadings; a factor that would be left without any keeps them."""
        old = self.loading.copy()
        rows, factors = old.shape
        self.library.sites(rows, factors, self.loading, cross, gram, self.noise, precision, log_odds, self.words)
        lost = ~self.loading.any(0)
        self.loading[:, lost] = old[:, lost]

    def sweep(self):
        random, (rows, factors) = self.random, self.loading.shape
        samples = self.values.shape[1]
        cross = self.values @ self.factor.T
        gram = self.factor @ self.factor.T
        square = self.kept
        if len(self.row):
            square = square + np.bincount(self.row, self.missing**2, rows)
        fitted = np.einsum("dk,dk->d", self.loading, self.loading @ gram - 2.0 * cross)
        energy = np.maximum(square + fitted, 0.0)
        ones = (self.loading != 0.0).sum(0)
        activity = random.beta(ones, rows - ones + 1.0)
        self.mass = random.gamma(1.0 + factors) / (1.0 + (1.0 / np.arange(1.0, rows + 1.0)).sum())
        precision = random.gamma(1.0 + 0.5 * ones) / (1.0 + 0.5 * np.einsum("dk,dk->k", self.loading, self.loading))
        self.noise = random.standard_gamma(1.0 + 0.5 * samples, rows) / (1.0 + 0.5 * energy)
        self.sites(cross, gram, precision, np.log(activity) - np.log1p(-activity))
        self.weigh_births(cross, gram, square)
        weighted = self.loading * self.noise[:, None]
        root, _ = lapack.dpotrf(np.eye(factors) + weighted.T @ self.loading, lower=True)
        whitened = blas.dtrsm(1.0, root, weighted.T @ self.values, lower=True)
        whitened += random.standard_normal((factors, samples))
        self.factor = np.ascontiguousarray(blas.dtrsm(1.0, root, whitened, lower=True, trans_a=True))
        if len(self.row):
            mean = np.einsum("mk,mk->m", self.loading[self.row], self.factor.T[self.sample])
            self.missing = mean + random.standard_normal(len(self.row)) / np.sqrt(self.noise[self.row])
            self.values[self.row, self.sample] = self.missing

    def weigh_births(self, cross, gram, square):
        random, (rows, samples) = self.random, self.values.shape
        some = random.permutation(rows)[: self.births]
        loading, noise = self.loading[some], self.noise[some]
        own = ((self.loading != 0.0).sum(0) == 1) & (loading != 0.0)
        shared = np.where(own, 0.0, loading)
        energy = square[some] + np.einsum("dk,dk->d", shared, shared @ gram - 2.0 * cross[some])
        number = random.poisson(self.mass / rows, len(some))
        size = random.standard_normal((len(some), 3)) / np.sqrt(random.standard_gamma(1.0, (len(some), 3)))
        worth = []
        for each in (loading - shared, np.where(np.arange(3) < number[:, None], size, 0.0)):
            gain = noise * np.einsum("dk,dk->d", each, each)
            worth.append(-0.5 * samples * np.log1p(gain) + 0.5 * noise * gain * energy / (1.0 + gain))
        return np.log(random.random(len(some))) < worth[1] - worth[0]

"""The comparator: the pass over rows in C, compiled to a temporary folder and called by ctypes, the rest in NumPy."""

import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from scipy.linalg import blas, lapack

FLAGS = ["-O3", "-march=native", "-ffast-math", "-mprefer-vector-width=512"]
DOUBLES = np.ctypeslib.ndpointer(np.float64, flags="C")
BYTES = np.ctypeslib.ndpointer(np.uint8, flags="C")
WORDS = np.ctypeslib.ndpointer(np.uint64, flags="C")


def compiled():
    """The library; needs gcc."""
    target = Path(tempfile.mkdtemp(prefix="cavity-buffet-")) / "kernels.so"
    source = Path(__file__).with_name("kernels.c")
    subprocess.run(["gcc", *FLAGS, "-shared", "-fPIC", "-o", target, source, "-lm"], check=True)
    library = ctypes.CDLL(str(target))
    n, one = ctypes.c_int64, ctypes.c_double
    library.chances.restype = None
    library.chances.argtypes = (n, n, DOUBLES, DOUBLES, WORDS)
    library.over_rows.restype = n
    library.over_rows.argtypes = (n, n, n, BYTES, DOUBLES, one, one, *[DOUBLES] * 8)
    return library


def beliefs(full, active, noise, own):
    """Sums, covariance and mean of values given all rows."""
    z = active.astype(float)
    gram, cross = z.T @ z, z.T @ full
    covariance = np.linalg.inv(noise * gram + own * np.eye(len(gram)))
    return gram, cross, covariance, covariance @ (noise * cross)


def over_rows(library, active, full, noise, own, prior, births, logistic, gumbel):
    """The matrix after one pass with these random numbers; whether it had places for all features."""
    active = active.astype(np.uint8)
    known = beliefs(full, active, noise, own)
    fits = library.over_rows(
        *active.shape, full.shape[1], active, full, noise, own, prior, births, logistic, gumbel, *known
    )
    return active, bool(fits)


class Sampler:
    """One sweep with all entries seen, the mass learned and the concentration 1, as a careful author would write it."""

    def __init__(self, library, full, seed=0):
        self.library, self.full, self.random = library, full, np.random.default_rng(seed)
        self.words = self.random.integers(1, 2**63, 4).astype(np.uint64)

    def sweep(self, active, noise, own, mass, number_of_births=7):
        random, (rows, places) = self.random, active.shape
        logistic, gumbel = np.empty((rows, places)), np.empty((rows, number_of_births))
        self.library.chances(rows, places, logistic, gumbel, self.words)
        count = np.arange(rows)
        with np.errstate(divide="ignore"):
            prior = np.log(count) - np.log(rows - count)
        each = np.arange(number_of_births)
        births = each * np.log(mass / rows) - np.log(np.maximum(each, 1)).cumsum()
        active, fits = over_rows(self.library, active, self.full, noise, own, prior, births, logistic, gumbel)
        z = active.astype(float)
        root, _ = lapack.dpotrf(noise * (z.T @ z) + own * np.eye(places), lower=True)
        white = blas.dtrsm(1.0, root, noise * (z.T @ self.full), lower=True)
        white += random.standard_normal(white.shape)
        values = blas.dtrsm(1.0, root, white, lower=True, trans_a=True)
        used = active.any(axis=0)
        squares = np.einsum("nd,nd->", *[self.full - z @ values] * 2), np.einsum("kd,kd->", *[values[used]] * 2)
        noise = random.gamma(1.0 + 0.5 * self.full.size) / (1.0 + 0.5 * squares[0])
        own = random.gamma(1.0 + 0.5 * used.sum() * self.full.shape[1]) / (1.0 + 0.5 * squares[1])
        mass = random.gamma(1.0 + used.sum()) / (1.0 + (1.0 / np.arange(1.0, rows + 1.0)).sum())
        assert fits
        return active, noise, own, mass

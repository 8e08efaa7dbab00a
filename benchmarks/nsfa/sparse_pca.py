"""Sparse principal components of scikit-learn, the outside baseline of the papers, with its penalty set as they do.

They choose penalties so that each sparse component explains roughly what the ordinary one does: the package's own
`cavity.models.sparse_components` does so, and stands beside it. scikit-learn has one penalty for all components: the
largest is taken whose components together explain `share` of what as many ordinary ones explain. What components
explain is the variance of the data's projection onto the span of their loadings, which does not count twice what
correlated ones share (the adjusted variance of Shen and Huang 2008).

    python benchmarks/nsfa/sparse_pca.py
"""

import sys
import warnings
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import experiments
import harness  # noqa: F401  (pins the threads of BLAS)

# isort: split
import numpy as np

from cavity.engine.answers.loadings import reconstruction_error, unit_factors
from cavity.models import sparse_components as own_components


class SparseComponents(NamedTuple):
    """Loadings (rows, K) with exact zeros, factors (K, samples) of mean square one, the mean (rows,), the penalty, and
    the shares (K,) of the total variance that the sparse and the ordinary components explain, decreasing."""

    loading: np.ndarray
    factor: np.ndarray
    mean: np.ndarray
    penalty: float
    explained: np.ndarray
    ordinary: np.ndarray


def sparse_components(values, factors, share=0.95, seed=0, steps=8, iterations=200):
    """Sparse principal components of (rows, samples) values, nothing missing, with a penalty found by bisection."""
    from sklearn.decomposition import SparsePCA
    from sklearn.exceptions import ConvergenceWarning

    values = np.asarray(values, dtype=np.float64)
    centred = values - values.mean(axis=1, keepdims=True)
    total = np.sum(centred**2)
    ordinary = np.linalg.svd(centred, compute_uv=False)[:factors] ** 2 / total

    def fitted(penalty):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = SparsePCA(
                factors, alpha=penalty, ridge_alpha=1e-6, method="cd", max_iter=iterations, tol=1e-6, random_state=seed
            ).fit(centred.T)
        loading = model.components_.T
        return loading, model.transform(centred.T), explained_by(loading, centred) / total

    # A penalty above the largest correlation of a row with a unit factor leaves nothing.
    low, high = 1e-4, float(np.linalg.norm(centred, axis=1).max())
    best = (low, *fitted(low))
    for _ in range(steps):
        middle = np.sqrt(low * high)
        found = fitted(middle)
        if found[2].sum() >= share * ordinary.sum():
            low, best = middle, (middle, *found)
        else:
            high = middle
    penalty, loading, scores, explained = best
    loading, factor = unit_factors(loading, scores.T)
    return SparseComponents(loading, factor, values.mean(axis=1), float(penalty), explained, ordinary)


def explained_by(loading, centred):
    """(K,) sums of squares of the data (rows, samples) that each column of the loading adds, the largest first."""
    left, parts = np.array(loading), np.zeros(loading.shape[1])
    alive = 1e-12 * max(np.sum(loading**2, axis=0).max(), 1e-300)
    for k in range(len(parts)):
        size = np.sum(left**2, axis=0)
        gain = np.sum((centred.T @ left) ** 2, axis=0) / np.where(size > alive, size, np.inf)
        j = gain.argmax()
        if size[j] <= alive:
            break
        parts[k] = gain[j]
        left = left - np.outer(left[:, j], left[:, j] @ left) / size[j]
    return parts


def main():
    arguments = experiments.options(__doc__).parse_args()
    rows, samples, factors = (40, 60, 4) if arguments.quick else (100, 100, 8)
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(rows, factors)) * (rng.random((rows, factors)) < 0.15)
    signal = truth @ rng.normal(size=(factors, samples))
    values = signal + np.sqrt(signal.var() / 10.0) * rng.normal(size=signal.shape)
    found = sparse_components(values, factors)
    centred = values - values.mean(axis=1, keepdims=True)
    left, size, _ = np.linalg.svd(centred, full_matrices=False)
    plain = left[:, :factors] * size[:factors] / np.sqrt(samples)
    print(f"{rows} x {samples}, {factors} factors: penalty {found.penalty:.3g}")
    print("explained, ordinary: " + " ".join(f"{one:.3f}" for one in found.ordinary))
    print("explained, sparse:   " + " ".join(f"{one:.3f}" for one in found.explained))
    print(f"zeros: {np.mean(found.loading == 0.0):.3f} (truth {np.mean(truth == 0.0):.3f})")
    own = own_components(values, factors)
    print("explained, own:      " + " ".join(f"{one:.3f}" for one in own.explained))
    print("penalties, own:      " + " ".join(f"{one:.3g}" for one in own.penalty))
    print(f"zeros, own: {np.mean(own.loading == 0.0):.3f}")
    three = plain, found.loading, unit_factors(own.loading, own.scores)[0]
    for scale in ("given", "best"):
        errors = [reconstruction_error(truth, one, scale=scale) for one in three]
        told = "ordinary {:.4f}, sparse {:.4f}, own {:.4f}".format(*errors)
        print(f"reconstruction error, scale {scale}: {told}")


if __name__ == "__main__":
    main()

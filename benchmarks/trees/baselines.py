"""Densities that diffusion trees are compared with: kernels, finite mixtures, and mixtures with a Dirichlet process.

The papers compare with a kernel estimate whose bandwidths are chosen by cross-validation (npudens of R) and with an
infinite mixture of Gaussians by MCMC (Neal's programs), which is `infinite_mixture` here; beside it are the truncated
variational mixture of scikit-learn and Bayesian hierarchical clustering (`merges`). Each function returns the log
densities of the new rows.
"""

import warnings

import infinite_mixture
import merges
import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp


def kernel_density(train, test):
    """Product Gaussian kernels, a bandwidth for each column, chosen by the leave-one-out likelihood."""
    n, columns = train.shape
    squares = (train[:, None] - train[None]) ** 2

    def log_density(squared, log_width, omit):
        exponent = -0.5 * squared @ np.exp(-2.0 * log_width)
        if omit:
            np.fill_diagonal(exponent, -np.inf)
        norm = log_width.sum() + 0.5 * columns * np.log(2.0 * np.pi) + np.log(n - omit)
        return logsumexp(exponent, axis=1) - norm, exponent

    def loss(log_width):
        found, exponent = log_density(squares, log_width, True)
        share = np.exp(exponent - logsumexp(exponent, axis=1)[:, None])
        moved = np.einsum("ij,ijd->d", share, squares) * np.exp(-2.0 * log_width)
        return -found.sum(), n - moved

    rule = np.log(np.maximum(train.std(axis=0), 1e-12)) - np.log(n) / (columns + 4.0)
    best = minimize(loss, rule, jac=True, method="L-BFGS-B", bounds=[(one - 6.0, one + 4.0) for one in rule])
    return log_density((test[:, None] - train[None]) ** 2, best.x, False)[0]


def gaussian_mixture(train, test, seed=0, most=12):
    """Full covariances, the number of components by five-fold cross-validation."""
    from sklearn.mixture import GaussianMixture
    from sklearn.model_selection import KFold

    folds = list(KFold(5, shuffle=True, random_state=seed).split(train))

    def fitted(rows, components):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return GaussianMixture(components, n_init=3, reg_covar=1e-4, random_state=seed).fit(rows)

    def score(components):
        return np.mean([fitted(train[one], components).score(train[other]) for one, other in folds])

    most = min(most, len(train) // 5)
    best = max(range(1, most + 1), key=score)
    return fitted(train, best).score_samples(test)


def dirichlet_process_mixture(train, test, seed=0, most=30, starts=5):
    """Full covariances and a truncated Dirichlet process by variational Bayes, the best bound of several starts."""
    from sklearn.mixture import BayesianGaussianMixture

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = BayesianGaussianMixture(
            n_components=min(most, len(train) // 2),
            n_init=starts,
            max_iter=2000,
            weight_concentration_prior_type="dirichlet_process",
            random_state=seed,
        ).fit(train)
    return found.score_samples(test)


BASELINES = {
    "kernel density": kernel_density,
    "Gaussian mixture": gaussian_mixture,
    "Dirichlet process mixture": dirichlet_process_mixture,
    "infinite mixture by Gibbs": infinite_mixture.infinite_mixture,
    "Bayesian hierarchical clustering": merges.hierarchical,
}

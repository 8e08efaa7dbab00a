"""Held-out log density of `GaussianMixture`, beside scikit-learn's BayesianGaussianMixture, on six sets of real data.

Five folds, in random order, in the units of the data; both get columns of unit variance. scikit-learn's mixture is
told the largest number of components and empties those that it does not need (both of its priors of the weights;
`n_init=5`); cavity's takes the number of largest evidence, up to the same.
"""

import common

# isort: split
import time
import warnings

import numpy as np
from sklearn.mixture import BayesianGaussianMixture
from sklearn.model_selection import KFold

from cavity.models import GaussianMixture

LARGEST = 8
PRIORS = {"Dirichlet": "dirichlet_distribution", "stick-breaking": "dirichlet_process"}


def ours(inference):
    def fit(x):
        found = GaussianMixture(inference=inference, max_components=LARGEST, random_state=0).fit(x)
        return found, found.n_components_

    return fit


def theirs(prior):
    def fit(x):
        found = BayesianGaussianMixture(
            n_components=LARGEST, weight_concentration_prior_type=PRIORS[prior], n_init=5, max_iter=1000, random_state=0
        ).fit(x)
        return found, int((found.weights_ > 1.0 / len(x)).sum())

    return fit


CONTESTANTS = {
    "GaussianMixture": ours("vmp"),
    "GaussianMixture, EP": ours("ep"),
    "scikit-learn, Dirichlet": theirs("Dirichlet"),
    "scikit-learn, stick-breaking": theirs("stick-breaking"),
}


def scores(fit, x, folds):
    """Mean held-out log density, its standard error over rows, the components of each fold, and seconds of a fit."""
    density, numbers, spent = np.empty(len(x)), [], []
    for kept, left in KFold(folds, shuffle=True, random_state=0).split(x):
        centre, width = x[kept].mean(axis=0), x[kept].std(axis=0)
        before = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, number = fit((x[kept] - centre) / width)
        spent.append(time.perf_counter() - before)
        numbers.append(number)
        density[left] = found.score_samples((x[left] - centre) / width) - np.log(width).sum()
    return density, numbers, spent


def main():
    arguments = common.options(__doc__).parse_args()
    folds, names = (2, list(common.SETS)[:2]) if arguments.quick else (5, list(common.SETS))
    results = {}
    for name in names:
        x = common.real(arguments, name)
        found = {who: scores(fit, x, folds) for who, fit in CONTESTANTS.items()}
        reference = found["scikit-learn, Dirichlet"][0]
        results[name] = {
            who: {
                "log density": density.mean(),
                "difference": (density - reference).mean(),
                "its standard error": (density - reference).std() / np.sqrt(len(x)),
                "components": numbers,
                "seconds of a fit": [spent[0], float(np.median(spent[1:]))],
            }
            for who, (density, numbers, spent) in found.items()
        }
        rows = [
            [who, own["log density"], own["difference"], own["its standard error"], str(own["components"])]
            + own["seconds of a fit"]
            for who, own in results[name].items()
        ]
        titles = ["", "log density", "less the third", "s.e.", "components of each fold", "first s", "later s"]
        common.table(name, titles, rows)
    common.save("estimator", results=results)


if __name__ == "__main__":
    main()

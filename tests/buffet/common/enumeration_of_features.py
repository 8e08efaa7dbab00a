"""The posterior over binary matrices of a few rows by going through all of them, up to the order of columns.

A class of matrices is a multiset of histories, the columns that are not empty read as numbers with the first row the
most significant bit. Classes of more than `most` columns are left out: choose the mass so that these hold nothing.
"""

import functools
import itertools
from typing import NamedTuple

import jax
import numpy as np
from geweke_of_features import prior_states
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from cavity.models.buffet import BetaBernoulli, IndianBuffet
from cavity.models.buffet.likelihoods import LinearGaussian, NoisyOr
from cavity.models.buffet.likelihoods.contract import Rows


class Exact(NamedTuple):
    """What enumeration found: probabilities by class, and the log probability of the data."""

    classes: dict
    log_evidence: float


def class_of(matrix):
    """The class of a matrix: its histories that are not zero, decreasing."""
    codes = 2 ** np.arange(len(matrix))[::-1] @ np.asarray(matrix, int)
    return tuple(sorted((int(code) for code in codes if code), reverse=True))


def matrix_of(histories, rows):
    """(rows, features) booleans, left-ordered."""
    bits = (np.array(histories, int)[None, :] >> np.arange(rows)[::-1, None]) & 1
    return bits.astype(bool).reshape(rows, len(histories))


def classes_of(rows, most):
    """All classes of so many rows with at most `most` columns."""
    histories = range(2**rows - 1, 0, -1)
    return [c for k in range(most + 1) for c in itertools.combinations_with_replacement(histories, k)]


def gaussian_evidence(values, seen, matrix, numbers):
    """log p(X | Z) of `LinearGaussian`, the values integrated out: dimensions are independent."""
    z = matrix.astype(float)
    noise, prior = float(numbers["noise_precision"]), float(numbers["value_precision"])
    covariance = np.eye(len(z)) / noise + z @ z.T / prior
    total = 0.0
    for x, own in zip(values.T, seen.T, strict=True):
        if own.any():
            total += multivariate_normal.logpdf(x[own], np.zeros(own.sum()), covariance[np.ix_(own, own)])
    return total


def noisy_or_evidence(values, seen, matrix, numbers):
    """log p(X | Z) of `NoisyOr`: dimensions are independent, and each has `2^K` assignments of values."""
    count = matrix.shape[1]
    assignments = (np.arange(2**count) >> np.arange(count)[:, None]) & 1
    zero = float(numbers["quiet"]) * float(numbers["attenuation"]) ** (matrix.astype(float) @ assignments)
    share = float(numbers["share"])
    ones = assignments.sum(axis=0)
    weight = ones * np.log(share) + (count - ones) * np.log1p(-share)
    total = 0.0
    for x, own in zip(values.T, seen.T, strict=True):
        entries = np.where(x[:, None] > 0.5, np.log1p(-zero), np.log(zero))
        total += logsumexp(weight + entries[own].sum(axis=0))
    return total


EVIDENCE = {LinearGaussian: gaussian_evidence, NoisyOr: noisy_or_evidence}


def prior_of(law):
    """The prior of a law of fixed numbers, as the package's other half states it."""
    if law.features is None:
        return IndianBuffet(law.mass, law.concentration)
    return BetaBernoulli(law.mass, law.features)


def enumerate_features(values, likelihood, law, numbers, most=7, seen=None):
    """The exact posterior over classes, for a likelihood and a law whose numbers are all given."""
    values = np.asarray(values, float)
    seen = np.ones(values.shape, bool) if seen is None else np.asarray(seen, bool)
    prior, evidence = prior_of(law), EVIDENCE[type(likelihood)]
    most = most if law.features is None else law.features
    found = {}
    for each in classes_of(len(values), most):
        matrix = matrix_of(each, len(values))
        found[each] = prior.log_probability(matrix) + evidence(values, seen, matrix, numbers)
    log_evidence = logsumexp(list(found.values()))
    return Exact({each: float(np.exp(log - log_evidence)) for each, log in found.items()}, float(log_evidence))


def distance(exact, frequencies):
    """Half the sum of absolute differences of two distributions over classes: 0 where alike, 1 where disjoint."""
    both = set(exact) | set(frequencies)
    return 0.5 * sum(abs(exact.get(each, 0.0) - frequencies.get(each, 0.0)) for each in both)


def frequencies_of(matrices, weights=None):
    """How often each class occurs among matrices (draws, rows, places)."""
    matrices = np.asarray(matrices, int)
    weights = np.full(len(matrices), 1.0 / len(matrices)) if weights is None else np.asarray(weights)
    codes = -np.sort(-np.tensordot(matrices, 2 ** np.arange(matrices.shape[1])[::-1], axes=(1, 0)), axis=1)
    distinct, which = np.unique(codes, axis=0, return_inverse=True)
    total = np.bincount(which.ravel(), weights=weights, minlength=len(distinct))
    return {tuple(int(code) for code in row if code): float(each) for row, each in zip(distinct, total, strict=True)}


@functools.partial(jax.jit, static_argnames=("sweep", "likelihood", "law", "steps"))
def drawn_matrices(key, rows, states, sweep, likelihood, law, steps):
    def one(key, state):
        def step(state, key):
            outcome = sweep(key, rows, state, likelihood, law)
            same = jax.tree.map(lambda new, old: new.astype(old.dtype), outcome.state, state)
            return same, (same.active, outcome.fits)

        return jax.lax.scan(step, state, jax.random.split(key, steps))[1]

    return jax.vmap(one)(jax.random.split(key, states.mass.shape[0]), states)


def scores_of_sweep(sweep, likelihood, law, exact, values, chains=200, steps=60, places=16, seed=0):
    """z scores of how often the likelier classes occur, and "other", the rest of them.

    Chains start from the prior, and the first third of each is left out. They are independent, so that standard errors
    are those of means over chains, whatever a chain remembers.
    """
    values = np.asarray(values, float)
    states = prior_states(likelihood, law, len(values), values.shape[1], chains, law.features or places, seed)
    rows = Rows(values, np.ones(values.shape, bool))
    with jax.enable_x64(True):
        active, fits = drawn_matrices(jax.random.key(seed), rows, states, sweep, likelihood, law, steps)
    assert np.all(fits), "more features than places: give more places, or a smaller mass"
    found = [frequencies_of(each) for each in np.asarray(active)[:, steps // 3 :]]
    likely = [each for each, probability in exact.classes.items() if probability > 0.02]
    table = {each: np.array([one.get(each, 0.0) for one in found]) for each in likely}
    table["other"] = 1.0 - sum(table.values())
    probabilities = {each: exact.classes[each] for each in likely}
    probabilities["other"] = 1.0 - sum(probabilities.values())
    return {
        each: float((table[each].mean() - p) / (table[each].std() / np.sqrt(chains)))
        for each, p in probabilities.items()
    }

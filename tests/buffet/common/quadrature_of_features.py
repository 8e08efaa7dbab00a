"""The posterior over matrices of a finite number of features by going through all of them, values and weights summed
out on the nodes of a quadrature rule; and how often chains are in each.

A matrix is named by its columns, read as binary numbers and sorted: their order means nothing.
"""

import functools
import itertools

import jax
import numpy as np
from geweke_of_features import prior_states
from scipy.special import betaln, logsumexp

from cavity.models.buffet.likelihoods.contract import Rows


def names_of(matrices):
    """(..., features) sorted column numbers of matrices (..., rows, features)."""
    rows = matrices.shape[-2]
    return np.sort(np.tensordot(np.asarray(matrices, int), 2 ** np.arange(rows), axes=(-2, 0)), axis=-1)


def combinations(rule, count):
    """(nodes^count, count) points and their weights, of a rule (nodes, weights) for one number."""
    nodes, weights = rule
    points = np.array(list(itertools.product(nodes, repeat=count)))
    return points, np.prod(list(itertools.product(weights, repeat=count)), axis=1)


def exact_posterior(values, seen, law, log_density, value_rule, weight_rule=((1.0,), (1.0,))):
    """{name: probability}, of a law of given mass; `log_density(x, total)` of an entry.

    Weights are shared by the dimensions of a row: with a rule for them there must be one dimension.
    """
    rows, dimensions = values.shape
    features = law.features
    a, of_a = combinations(value_rule, features)
    s, of_s = combinations(weight_rule, features)
    assert len(s) == 1 or dimensions == 1, "weights are summed out for one dimension alone"
    prior = law.mass / features
    own = {}  # of a row with its features: (dimension, point of values)
    for n, z in itertools.product(range(rows), itertools.product((0, 1), repeat=features)):
        total = (np.array(z) * s) @ a.T
        logs = [np.where(seen[n, d], log_density(values[n, d], total), 0.0) for d in range(dimensions)]
        own[n, z] = logsumexp(logs, axis=1, b=of_s[:, None])
    found = {}
    for matrix in itertools.product(itertools.product((0, 1), repeat=features), repeat=rows):
        owners = np.sum(matrix, axis=0)
        log = np.sum(np.log(prior) + betaln(owners + prior, rows - owners + 1.0))
        log += np.sum(logsumexp(sum(own[n, z] for n, z in enumerate(matrix)), axis=1, b=of_a))
        name = tuple(names_of(np.array(matrix)))
        found[name] = np.logaddexp(found.get(name, -np.inf), log)
    whole = logsumexp(list(found.values()))
    return {name: float(np.exp(log - whole)) for name, log in found.items()}


@functools.partial(jax.jit, static_argnames=("sweep", "likelihood", "law", "steps"))
def _chains(key, rows, states, sweep, likelihood, law, steps):
    def one(key, state):
        def step(state, key):
            new = sweep(key, rows, state, likelihood, law).state
            same = jax.tree.map(lambda new, old: new.astype(old.dtype), new, state)
            return same, same.active

        return jax.lax.scan(step, state, jax.random.split(key, steps))[1]

    return jax.vmap(one)(jax.random.split(key, states.mass.shape[0]), states)


def frequencies_of(sweep, likelihood, law, values, seen, chains=400, steps=150, seed=0):
    """{name: (chains,) frequencies}, the first third of each chain left out."""
    states = prior_states(likelihood, law, *values.shape, chains, law.features, seed)
    with jax.enable_x64(True):
        active = _chains(jax.random.key(seed), Rows(values, seen), states, sweep, likelihood, law, steps)
    names = names_of(np.asarray(active)[:, steps // 3 :])
    distinct = np.unique(names.reshape(-1, law.features), axis=0)
    return {tuple(each): np.mean(np.all(names == each, axis=-1), axis=1) for each in distinct}


def scores(frequencies, exact):
    """z scores of the frequencies of classes that are not rare: chains are independent."""
    found = {}
    for name, probability in exact.items():
        each = frequencies.get(name, np.zeros(1))
        if probability > 0.01:
            found[name] = float((each.mean() - probability) / max(each.std() / np.sqrt(len(each)), 1e-12))
    return found

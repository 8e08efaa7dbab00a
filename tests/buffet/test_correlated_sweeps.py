"""Sweeps of correlated features: Geweke's test, enumeration of all structures of tiny data."""

import functools
import itertools

import jax
import numpy as np
import pytest
from correlated_prior import geweke
from scipy.special import gammaln
from scipy.stats import poisson

from cavity.models.buffet import IndianBuffet, harmonic
from cavity.models.buffet.correlated import DpIbp, IbpIbp, NoisyOrIbp, Partition
from cavity.models.buffet.correlated.framework import sweep
from cavity.models.buffet.correlated.sampler import compiled, padded
from cavity.models.buffet.correlated.state import State
from cavity.models.buffet.likelihoods import LinearGaussian, NoisyOr
from cavity.models.buffet.likelihoods.contract import Rows

LAWS = {
    "partition": Partition((6.0, 6.0)),
    "dp": DpIbp((6.0, 6.0), (8.0, 8.0)),
    "buffets": IbpIbp((8.0, 14.0), (8.0, 14.0)),
    "noisy": NoisyOrIbp((8.0, 14.0), (8.0, 14.0), (3.0, 3.0)),
}
LIKELIHOODS = {
    "gaussian": LinearGaussian(noise_precision=(4.0, 2.0), value_precision=(4.0, 4.0)),
    "noisy-or": NoisyOr(quiet=(4.0, 2.0), attenuation=(2.0, 3.0), share=(3.0, 3.0)),
}
QUICK = {("noisy", "noisy-or")}
CASES = [
    pytest.param(*both, marks=() if both in QUICK else pytest.mark.slow)
    for both in itertools.product(LAWS, LIKELIHOODS)
]
joint_test = functools.partial(geweke, sweep, places=(12, 24), missing=[(0, 1)])


@pytest.mark.parametrize(("law", "likelihood"), CASES)
def test_sweeps_leave_the_law_of_model_and_data_as_it_is(law, likelihood):
    quick = (law, likelihood) in QUICK
    chains, steps = (300, 20) if quick else (1000, 30)
    scores = joint_test(LIKELIHOODS[likelihood], LAWS[law], chains=chains, steps=steps)
    assert max(abs(score) for score in scores.values()) < 4.0, scores


def partitions(rows):
    """All partitions, as tuples of labels in the order of appearance."""
    found = [(0,)]
    for _ in range(1, rows):
        found = [(*labels, new) for labels in found for new in range(max(labels) + 2)]
    return found


def enumerated(rows, law, likelihood, most):
    """Posterior probabilities of (partition, number of features) of DpIbp with values integrated out, and a bound of
    what is left out by menus of more than `most` features."""
    n, dimensions = rows.values.shape
    concentration, noise, value = law.concentration, likelihood.noise_precision, likelihood.value_precision
    found = {}
    for labels in partitions(n):
        sizes = np.bincount(labels)
        log_partition = len(sizes) * np.log(concentration) + gammaln(sizes).sum()
        log_partition -= np.log(concentration + np.arange(n)).sum()
        histories = [h for h in itertools.product([0, 1], repeat=len(sizes)) if any(h)]
        for features in range(most + 1):
            total = 0.0
            for columns in itertools.combinations_with_replacement(histories, features):
                menu = np.array(columns, int).reshape(features, len(sizes)).T
                z = menu[list(labels)]
                covariance = np.eye(n) / noise + z @ z.T / value
                fit = np.sum(rows.values * np.linalg.solve(covariance, rows.values))
                log_likelihood = -0.5 * (fit + dimensions * np.linalg.slogdet(2.0 * np.pi * covariance)[1])
                total += np.exp(log_partition + IndianBuffet(law.mass).log_probability(menu) + log_likelihood)
            found[labels, features] = total
    evidence = sum(found.values())
    largest = (noise / (2.0 * np.pi)) ** (0.5 * n * dimensions)
    left_out = poisson.sf(most, law.mass * harmonic(n)) * largest / evidence
    return {key: value / evidence for key, value in found.items()}, left_out


def test_one_category_for_each_row_agrees_with_the_enumeration_of_all_partitions_and_menus():
    law, likelihood = DpIbp(1.0, 0.6), LinearGaussian(noise_precision=0.5, value_precision=0.4)
    rows = Rows(np.array([[1.5], [1.2], [-1.0]]), np.ones((3, 1), bool))
    expected, left_out = enumerated(rows, law, likelihood, 7)
    assert left_out < 1e-3
    choice = np.eye(3, dtype=bool)
    menu = np.zeros((3, 1), bool)
    prior = {"concentration": np.array(1.0), "mass": np.array(0.6)}
    numbers = {"noise_precision": np.array(0.5), "value_precision": np.array(0.4)}
    start = State(choice, menu, choice[:, :, None] & menu, np.zeros((1, 1)), numbers, prior)
    state, one, every = padded(start, 8, 16), compiled(likelihood, law), 8000
    keys, counts = jax.random.split(jax.random.key(0), every), []
    for key in keys:
        step = one(key, rows, state)
        assert step.fits
        state = step.state
        _, order = np.unique(np.argmax(state.choice, axis=1), return_index=True)
        places = list(np.argmax(state.choice, axis=1)[np.sort(order)])
        labels = tuple(places.index(place) for place in np.argmax(state.choice, axis=1))
        counts.append((labels, int(state.menu.any(axis=0).sum())))
    for of in (lambda key: key[0], lambda key: key[1], lambda key: (max(key[0]), min(key[1], 3))):
        for kind in {of(key) for key in expected}:
            share = sum(value for key, value in expected.items() if of(key) == kind)
            blocks = np.array([of(key) == kind for key in counts], float).reshape(40, -1).mean(axis=1)
            spread = max(blocks.std(ddof=1), np.sqrt(share / every)) / np.sqrt(len(blocks))
            assert abs(blocks.mean() - share) < 4.0 * spread + left_out, (kind, blocks.mean(), share)

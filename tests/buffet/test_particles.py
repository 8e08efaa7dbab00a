"""The particle filter: unbiased for the evidence and for each matrix, against all matrices of small data."""

import jax
import numpy as np
import pytest
from enumeration_of_features import enumerate_features, frequencies_of

from cavity.factors.errors import DataError, ModelError
from cavity.models.buffet.likelihoods import LinearGaussian, NoisyOr, Rows
from cavity.models.buffet.samplers import particles as module
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.samplers.particles import particle_filter

GAUSSIAN = LinearGaussian(4.0, 1.0)
NOISY_OR = NoisyOr(0.9, 0.2, 0.5)
NUMBERS = {
    LinearGaussian: {"noise_precision": 4.0, "value_precision": 1.0},
    NoisyOr: {"quiet": 0.9, "attenuation": 0.2, "share": 0.5},
}
REALS = np.array([[1.2, 0.3], [0.1, -0.8], [1.0, 0.2]])
BITS = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
PARTLY = np.array([[True, False], [True, True], [False, True]])
ALL = np.ones((3, 2), bool)


def exact_of(likelihood, values, seen, law):
    return enumerate_features(values, likelihood, law, NUMBERS[type(likelihood)], most=5, seen=seen)


def scores(likelihood, values, seen, law, threshold, filters=250, particles=20):
    """z scores of the evidence and of likely matrices: the weight of each, times the evidence, has no bias."""
    exact = exact_of(likelihood, values, seen, law)
    likely = [each for each, probability in exact.classes.items() if probability > 0.03]
    found = []
    for key in jax.random.split(jax.random.key(3), filters):
        cloud = particle_filter(key, Rows(values, seen), likelihood, law, particles, threshold=threshold)
        frequencies = frequencies_of(cloud.states.active, cloud.weights)
        evidence = np.exp(cloud.log_evidence - exact.log_evidence)
        found.append([evidence] + [evidence * frequencies.get(each, 0.0) for each in likely])
    found, expected = np.array(found), np.array([1.0] + [exact.classes[each] for each in likely])
    return (found.mean(axis=0) - expected) / (found.std(axis=0) / np.sqrt(filters))


@pytest.mark.parametrize(
    ("likelihood", "values", "seen", "law", "threshold"),
    [
        pytest.param(GAUSSIAN, REALS, ALL, Law(0.7), 1.0, marks=pytest.mark.slow),
        (GAUSSIAN, REALS, PARTLY, Law(0.8, 2.0), 0.5),
        pytest.param(NOISY_OR, BITS, PARTLY, Law(0.7), 1.0, marks=pytest.mark.slow),
        (NOISY_OR, BITS, ALL, Law(0.8, features=3), 0.5),
    ],
)
def test_evidence_and_matrices_have_no_bias(likelihood, values, seen, law, threshold):
    assert np.abs(scores(likelihood, values, seen, law, threshold)).max() < 4.0


def errors(cloud, exact):
    """The greatest error of a matrix's probability."""
    frequencies = frequencies_of(cloud.states.active, cloud.weights)
    return max(abs(frequencies.get(each, 0.0) - probability) for each, probability in exact.classes.items())


def test_weights_by_all_rows_so_far_are_found_out(monkeypatch):
    """`P(x_1 .. x_n | Z)` as the weight after particles were drawn anew counts the first rows more than once."""
    exact, rows, right = exact_of(GAUSSIAN, REALS, ALL, Law(0.7)), Rows(REALS, ALL), module.INTEGRATED
    cloud = particle_filter(jax.random.key(0), rows, GAUSSIAN, Law(0.7), 8000, threshold=1.0)
    assert errors(cloud, exact) < 0.02

    def observe(belief, *row):
        inner, before = belief
        inner, now = right.observe(inner, *row)
        return (inner, before + now), before + now

    def begin(state, groups):
        return right.begin(state, groups), 0.0

    def values(belief, state):
        return right.values(belief[0], state)

    monkeypatch.setitem(module.BELIEFS, LinearGaussian, module.Beliefs(begin, observe, values))
    cloud = particle_filter(jax.random.key(0), rows, GAUSSIAN, Law(0.7), 8001, threshold=1.0)
    assert errors(cloud, exact) > 0.06


def test_beliefs_of_values_are_those_of_all_rows_at_once():
    """Means by rank-one updates against the normal equations, with entries that are not seen."""
    cloud = particle_filter(jax.random.key(1), Rows(REALS, PARTLY), GAUSSIAN, Law(1.5), 8)
    for active, values in zip(cloud.states.active, cloud.states.values, strict=True):
        for d in range(2):
            z = active[PARTLY[:, d]].astype(float)
            exact = np.linalg.solve(4.0 * z.T @ z + np.eye(z.shape[1]), 4.0 * z.T @ REALS[PARTLY[:, d], d])
            assert np.allclose(values[:, d], exact, rtol=0, atol=1e-12)


def test_numbers_that_are_learned_are_of_each_particle_unless_given():
    learned, rows = LinearGaussian((2.0, 1.0), (2.0, 1.0)), Rows(REALS, ALL)
    law = Law(mass=(2.0, 2.0))
    cloud = particle_filter(jax.random.key(1), rows, learned, law, 8, {"noise_precision": 4.0}, threshold=0.0)
    assert (cloud.states.numbers["noise_precision"] == 4.0).all()
    assert len(set(cloud.states.numbers["value_precision"])) == len(set(cloud.states.mass)) == 8
    again = particle_filter(jax.random.key(1), rows, learned, law, 8, {"noise_precision": 4.0}, threshold=0.0)
    assert cloud.log_evidence == again.log_evidence
    assert np.isclose(cloud.weights.sum(), 1.0)


def test_bad_requests_are_refused():
    rows = Rows(REALS, ALL)
    for particles in (0, 2.5, True):
        with pytest.raises(ModelError, match="whole number of at least 1"):
            particle_filter(jax.random.key(0), rows, GAUSSIAN, Law(), particles)
    with pytest.raises(ModelError, match="between 0 and 1"):
        particle_filter(jax.random.key(0), rows, GAUSSIAN, Law(), threshold=1.5)
    with pytest.raises(ModelError, match=r"LinearGaussian has .*noise_precision"):
        particle_filter(jax.random.key(0), rows, GAUSSIAN, Law(), numbers={"noise": 1.0})
    with pytest.raises(DataError, match="at least one row"):
        particle_filter(jax.random.key(0), Rows(REALS[:0], ALL[:0]), GAUSSIAN, Law())
    with pytest.raises(DataError, match="finite values"):
        particle_filter(jax.random.key(0), Rows(np.full((3, 2), np.nan), ALL), GAUSSIAN, Law())
    with pytest.raises(DataError, match="entries 0 and 1"):
        particle_filter(jax.random.key(0), rows, NOISY_OR, Law())

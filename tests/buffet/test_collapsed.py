"""Steps with values integrated out: the marginal density, single conditionals, all matrices of three rows, Geweke."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from enumeration_of_features import distance, enumerate_features, frequencies_of, gaussian_evidence
from geweke_of_features import geweke
from passes_of_features import BUFFET, FINITE, passed, problem, with_gaps
from scipy.special import gammaln

from cavity.factors.errors import UnsupportedError
from cavity.models.buffet.likelihoods import LinearGaussian, NoisyOr, Rows
from cavity.models.buffet.likelihoods.linear_gaussian import log_marginal
from cavity.models.buffet.samplers.accelerated import accelerated, accelerated_in_jax
from cavity.models.buffet.samplers.collapsed import collapsed, collapsed_pass
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.samplers.passes import MOST
from cavity.models.buffet.samplers.semi_collapsed import semi_collapsed
from cavity.models.buffet.samplers.state import State
from cavity.models.buffet.samplers.windows import windowed

SWEEPS = {
    "collapsed": collapsed,
    "semi_collapsed": semi_collapsed,
    "accelerated": accelerated_in_jax,
    "windowed": windowed(2),
}
LEARNED = LinearGaussian(noise_precision=(4.0, 2.0), value_precision=(4.0, 4.0))
ALL_LEARNED = {
    "buffet": Law(mass=(8.0, 8.0), concentration=(8.0, 4.0)),
    "finite": Law(mass=(8.0, 4.0), features=3),
}
GIVEN = LinearGaussian(noise_precision=3.0, value_precision=0.8)
VALUES = np.array([[1.3, 0.2], [1.1, -0.9], [-0.4, -1.0]])


@pytest.mark.parametrize("law", [BUFFET, FINITE], ids=["buffet", "finite"])
def test_log_marginal_is_a_normal_density_of_every_column(law):
    active, full, numbers, *_ = problem(law, 0)
    found = float(passed(log_marginal, full, active, numbers))
    expected = gaussian_evidence(full, np.ones(full.shape, bool), np.asarray(active), numbers)
    assert found == pytest.approx(expected, abs=1e-10)


def test_the_printed_exponent_without_a_trace_is_another_density():
    """The formula with the sum of all entries of the matrix in place of its trace, which agree in one dimension."""
    active, full, numbers, *_ = problem(BUFFET, 0)
    z = np.asarray(active, float)
    inner = np.linalg.inv(z.T @ z + float(numbers["value_precision"] / numbers["noise_precision"]) * np.eye(z.shape[1]))
    matrix = full.T @ (np.eye(len(z)) - z @ inner @ z.T) @ full
    difference = 0.5 * float(numbers["noise_precision"]) * (matrix.sum() - np.trace(matrix))
    assert abs(difference) > 0.1


@pytest.mark.parametrize("gaps", [False, True], ids=["all seen", "some missing"])
def test_conditionals_of_the_first_row_are_ratios_of_joint_probabilities(gaps):
    """Prior odds times the ratio of evidences, for the first entry; Poisson times evidences, for births. What is not
    seen of the row itself is in none of them, what is drawn for others is data."""
    given = problem(BUFFET, 3)
    given = with_gaps(given, 4) if gaps else given
    active, full, numbers, *_ = given
    seen = np.ones(full.shape, bool)
    if gaps:
        seen[0] = given.gaps.seen[0] = [True, False]
    found = passed(collapsed_pass, *given)
    matrix = np.asarray(active)
    others = matrix[1:, 0].sum()
    assert others > 0
    with_one, without = matrix.copy(), matrix.copy()
    with_one[0, 0], without[0, 0] = True, False
    gain = gaussian_evidence(full, seen, with_one, numbers) - gaussian_evidence(full, seen, without, numbers)
    rows = len(full)
    expected = np.log(others) - np.log(rows - 1 - others + BUFFET.concentration) + gain
    assert found.odds[0, 0] == pytest.approx(expected, abs=1e-9)

    matrix[0] = found.active[0] & (matrix[1:].sum(axis=0) > 0)
    rate = BUFFET.mass * BUFFET.concentration / (BUFFET.concentration + rows - 1)
    logs = []
    for number in range(MOST + 1):
        more = np.zeros((rows, number), bool)
        more[0] = True
        evidence = gaussian_evidence(full, seen, np.concatenate([matrix, more], axis=1), numbers)
        logs.append(number * np.log(rate) - gammaln(number + 1) + evidence)
    np.testing.assert_allclose(found.births[0], np.array(logs) - logs[0], atol=1e-9)


@functools.cache
def chain_frequencies(sweep, law, missing, chains=256, steps=300):
    """How often chains are in each class of matrices, all numbers given, the first fifth of each left out."""
    seen = np.ones(VALUES.shape, bool)
    if missing:
        seen[missing] = False
    rows = Rows(jnp.where(seen, VALUES, 0.0), jnp.asarray(seen))
    places = 12 if law.features is None else law.features

    def chain(key):
        numbers = {name: jnp.asarray(getattr(GIVEN, name)) for name in ("noise_precision", "value_precision")}
        mass, concentration = law.first()
        active = jnp.zeros((len(VALUES), places), bool).at[:, 0].set(True)
        start = State(active, jnp.zeros((places, 2)), jnp.zeros((0, 0)), numbers, mass, concentration)

        def step(state, key):
            outcome = sweep(key, rows, state, GIVEN, law)
            state = jax.tree.map(lambda new, old: new.astype(old.dtype), outcome.state, state)
            return state, (state.active, outcome.fits)

        return jax.lax.scan(step, start, jax.random.split(key, steps))[1]

    with jax.enable_x64(True):
        active, fits = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(1), chains))
    assert np.all(fits)
    return frequencies_of(np.asarray(active)[:, steps // 5 :].reshape(-1, len(VALUES), places))


@functools.cache
def exact(law, missing):
    seen = np.ones(VALUES.shape, bool)
    if missing:
        seen[missing] = False
    numbers = {"noise_precision": GIVEN.noise_precision, "value_precision": GIVEN.value_precision}
    return enumerate_features(VALUES, GIVEN, law, numbers, most=6, seen=seen).classes


SMALL = Law(mass=0.6, concentration=1.3)


@pytest.mark.parametrize("name", ["semi_collapsed", "accelerated"])
def test_chains_are_in_each_matrix_as_often_as_enumeration_says(name):
    assert distance(exact(SMALL, (1, 0)), chain_frequencies(SWEEPS[name], SMALL, (1, 0))) < 0.02
    assert distance(exact(SMALL, ()), chain_frequencies(SWEEPS[name], SMALL, (1, 0))) > 0.06  # one entry more


@pytest.mark.slow
@pytest.mark.parametrize("law", [SMALL, Law(mass=0.9, features=3)], ids=["buffet", "finite"])
@pytest.mark.parametrize("missing", [(), (1, 0)], ids=["all seen", "one missing"])
@pytest.mark.parametrize("name", SWEEPS)
def test_every_sampler_is_in_each_matrix_as_often_as_enumeration_says(name, law, missing):
    assert distance(exact(law, missing), chain_frequencies(SWEEPS[name], law, missing)) < 0.02


def assert_keeps_the_law(name, law, chains, steps, places=16):
    places = places if law.features is None else law.features
    scores = geweke(SWEEPS[name], LEARNED, law, places=places, missing=[(0, 1)], chains=chains, steps=steps)
    assert max(abs(score) for score in scores.values()) < 4.0, scores


@pytest.mark.parametrize("name", ["semi_collapsed", "accelerated"])
def test_sweeps_leave_the_law_of_model_and_data_as_it_is(name):
    few = Law(mass=(16.0, 32.0), concentration=(8.0, 4.0))
    assert_keeps_the_law(name, few, chains=500, steps=10, places=10)


@pytest.mark.slow
@pytest.mark.parametrize("law", ALL_LEARNED)
@pytest.mark.parametrize("name", SWEEPS)
def test_every_sampler_leaves_the_law_of_model_and_data_as_it_is(name, law):
    assert_keeps_the_law(name, ALL_LEARNED[law], chains=2000, steps=40)


@pytest.mark.parametrize("sweep", [collapsed, semi_collapsed, accelerated, windowed(2)])
def test_other_likelihoods_are_refused_with_what_to_use_instead(sweep):
    active, full, numbers, *_ = problem(BUFFET, 0)
    rows = Rows(full, np.ones(full.shape, bool))
    empty = np.zeros((0, 0))
    state = State(active, np.zeros((active.shape[1], full.shape[1])), empty, numbers, jnp.ones(()), jnp.ones(()))
    with pytest.raises(UnsupportedError, match="found NoisyOr"):
        sweep(jax.random.key(0), rows, state, NoisyOr(), BUFFET)

"""The accelerated pass: the conditionals of the collapsed sampler for every window, in JAX and numba, and its drift."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from passes_of_features import BUFFET, FINITE, assert_alike, passed, problem, with_gaps
from scipy.special import betaln

from cavity.factors.errors import ModelError
from cavity.models.buffet.likelihoods import LinearGaussian, Rows
from cavity.models.buffet.likelihoods.linear_gaussian import log_marginal, sums_of
from cavity.models.buffet.samplers.accelerated import (
    accelerated,
    accelerated_in_jax,
    accelerated_pass,
    greedy,
    pass_from,
    without_row,
)
from cavity.models.buffet.samplers.beliefs import TOLERANCE, Beliefs, beliefs_of
from cavity.models.buffet.samplers.collapsed import collapsed_pass
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.samplers.passes import MOST, Chances
from cavity.models.buffet.samplers.sampler import Sampler
from cavity.models.buffet.samplers.state import State
from cavity.models.buffet.samplers.windows import pass_of_windows, windowed

LAWS = pytest.mark.parametrize("law", [BUFFET, FINITE], ids=["buffet", "finite"])
ROWS = 5


def in_numba():
    pytest.importorskip("numba")
    from cavity.models.buffet.numba_kernels import accelerated_pass as compiled

    return compiled


def alike_for_seeds(over_rows, law):
    for seed in range(6):
        for arguments in (problem(law, seed), with_gaps(problem(law, seed), seed)):
            assert_alike(passed(over_rows, *arguments), passed(collapsed_pass, *arguments))


@LAWS
def test_conditionals_are_those_of_the_collapsed_sampler(law):
    alike_for_seeds(accelerated_pass, law)


@pytest.mark.parametrize(("law", "window"), [*((BUFFET, window) for window in (1, 2, 3, ROWS)), (FINITE, 2)])
def test_conditionals_are_those_of_the_collapsed_sampler_for_every_window(law, window):
    alike_for_seeds(pass_of_windows(window), law)


@LAWS
def test_numba_has_the_conditionals_of_the_collapsed_sampler(law):
    alike_for_seeds(in_numba(), law)


@LAWS
def test_numba_draws_the_matrix_that_jax_draws(law):
    for seed in range(4):
        whole = problem(law, seed, rows=120, dimensions=7, places=16, noise=1.0 + 50.0 * (seed % 2))
        for arguments in (whole, with_gaps(whole, seed)):
            assert_alike(passed(in_numba(), *arguments), passed(accelerated_pass, *arguments))


@LAWS
def test_chains_of_both_are_the_same_with_missing_entries(law):
    in_numba()
    random = np.random.default_rng(0)
    _, full, *_ = problem(law, 1, rows=30, dimensions=4)
    rows, likelihood = Rows(full, random.random(full.shape) < 0.8), LinearGaussian()
    chains = [Sampler(rows, likelihood, law, sweep) for sweep in (accelerated, accelerated_in_jax)]
    states = [chain.init(jax.random.key(0)) for chain in chains]
    for number in range(20):
        states = [chain.step(jax.random.key(number), state) for chain, state in zip(chains, states, strict=True)]
        np.testing.assert_array_equal(states[0].active, states[1].active)
    np.testing.assert_allclose(states[0].values, states[1].values, atol=1e-7)


def passes():
    found = {"collapsed": collapsed_pass, "jax": accelerated_pass, "window": pass_of_windows(2)}
    return found | {"numba": None}


@pytest.mark.parametrize("name", passes())
def test_births_for_which_there_is_no_place_do_not_fit(name):
    over_rows = passes()[name] or in_numba()
    crowded = problem(BUFFET, 0, places=4)
    gumbel = np.zeros((ROWS, MOST + 1))
    gumbel[2, MOST] = 1e6  # row 2 has as many as can be
    assert not passed(over_rows, *crowded._replace(chances=Chances(crowded.chances.logistic, gumbel))).fits
    roomy = problem(BUFFET, 0)
    found = passed(over_rows, *roomy._replace(chances=Chances(roomy.chances.logistic, gumbel)))
    others = found.active.sum(axis=0)
    assert found.fits
    assert np.sum(found.active[2] & (others == 1)) >= 1


@pytest.mark.parametrize("name", passes())
def test_a_row_with_more_features_of_its_own_than_can_be_drawn_keeps_them(name):
    over_rows = passes()[name] or in_numba()
    given = problem(BUFFET, 0)
    active = np.zeros((ROWS, 12), bool)
    active[1, : MOST + 1] = True
    gumbel = np.zeros((ROWS, MOST + 1))
    gumbel[:, 0] = 1e6
    found = passed(over_rows, *given._replace(active=active, chances=Chances(given.chances.logistic, gumbel)))
    assert found.active[1].sum() == MOST + 1
    assert found.active.sum() == MOST + 1 + found.active[2:].sum()


def test_beliefs_without_a_row_are_those_of_the_other_rows():
    """With and without features that the row has alone; the mean as printed in the source is another."""
    for seed in range(5):
        active, full, numbers, *_ = problem(BUFFET, seed)
        with jax.enable_x64(True):
            whole = beliefs_of(sums_of(full, active), numbers)
            others = active.sum(axis=0) - active[0]
            rest, error = without_row(whole, active[0], active[0] & (others == 0), full[0], numbers)
            expected = jax.tree.map(np.asarray, beliefs_of(sums_of(full[1:], active[1:]), numbers))
        for found, right in zip(jax.tree.leaves(rest), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(np.asarray(found), right, atol=1e-10)
        assert float(error) < 1e-10


def test_the_printed_mean_without_a_row_is_wrong():
    active, full, numbers, *_ = problem(BUFFET, 2)
    noise = 1.0 / float(numbers["noise_precision"])
    with jax.enable_x64(True):
        whole = beliefs_of(sums_of(full, active), numbers)
        right = np.asarray(beliefs_of(sums_of(full[1:], active[1:]), numbers).mean)
    z, covariance, mean = np.asarray(active[:1], float), np.asarray(whole.covariance), np.asarray(whole.mean)
    share = covariance @ z.T @ np.linalg.inv(z @ covariance @ z.T + noise * np.eye(1))
    printed = np.linalg.inv(np.eye(len(mean)) - share @ z) @ (mean - share @ full[:1])
    gain = covariance @ z.T / noise
    corrected = np.linalg.inv(np.eye(len(mean)) - gain @ z) @ (mean - gain @ full[:1])
    np.testing.assert_allclose(corrected, right, atol=1e-10)
    assert np.abs(printed - right).max() > 0.1


def test_drift_of_a_thousand_sweeps_without_computing_anew_is_rounding():
    """Beliefs carried from pass to pass, beside those of the matrix that they have arrived at."""
    _, full, numbers, tables, *_ = given = problem(BUFFET, 0, rows=20, dimensions=4, places=32, noise=1.0)

    def many(keys, active):
        def one(carry, key):
            active, beliefs = carry
            keys = jax.random.split(key)
            logistic = jax.random.logistic(keys[0], active.shape)
            chances = Chances(logistic, jax.random.gumbel(keys[1], (len(active), MOST + 1)))
            beliefs, found = pass_from(beliefs, active, full, numbers, tables, chances)
            return (found.active, beliefs), (found.drift, found.fits, jnp.sum(active != found.active))

        return jax.lax.scan(one, (active, beliefs_of(sums_of(full, active), numbers)), keys)

    with jax.enable_x64(True):
        full = jnp.asarray(full)
        keys = jax.random.split(jax.random.key(0), 1000)
        (active, beliefs), (drift, fits, changes) = jax.tree.map(np.asarray, jax.jit(many)(keys, given.active))
        anew = jax.tree.map(np.asarray, beliefs_of(sums_of(full, active), numbers))
    assert np.all(fits)
    assert np.sum(changes) > 1000
    assert np.max(drift) < TOLERANCE  # so nothing was computed anew on the way
    np.testing.assert_allclose(beliefs.covariance, anew.covariance, atol=1e-9)
    np.testing.assert_allclose(beliefs.mean, anew.mean, atol=1e-9)


def drifted(given):
    """Beliefs with an error of the size that rank-one steps may leave."""
    with jax.enable_x64(True):
        right = beliefs_of(sums_of(given.full, given.active), given.numbers)
        used = given.active.any(axis=0)[:, None]
        covariance = jnp.where(used & used.T, right.covariance * (1.0 + 1e-4), right.covariance)
        return Beliefs(right.sums, covariance, right.mean * (1.0 - 1e-4))


@pytest.mark.parametrize("gaps", [False, True], ids=["all seen", "some missing"])
def test_drift_that_matters_is_found_and_mended(gaps):
    given = with_gaps(problem(BUFFET, 1), 2) if gaps else problem(BUFFET, 1)
    _, found = passed(pass_from, drifted(given), *given[:5], None, given.gaps)
    assert found.drift > 1e-6
    assert_alike(found, passed(collapsed_pass, *given))


@pytest.mark.parametrize("gaps", [False, True], ids=["all seen", "some missing"])
def test_numba_mends_drift_that_matters(gaps):
    in_numba()
    from cavity.models.buffet.numba_kernels.accelerated import over_rows

    given = with_gaps(problem(BUFFET, 1), 2) if gaps else problem(BUFFET, 1)
    beliefs = [np.array(leaf) for leaf in jax.tree.leaves(drifted(given))]
    active, odds, births = np.array(given.active), np.full(given.active.shape, -np.inf), np.zeros((ROWS, MOST + 1))
    both = (float(given.numbers[name]) for name in ("noise_precision", "value_precision"))
    tables, chances = (tuple(np.ascontiguousarray(each) for each in some) for some in given[3:5])
    none = np.zeros((0, given.full.shape[1]))
    unseen = (given.gaps.seen.astype(float), given.gaps.normal) if gaps else (none, none)
    full = np.array(given.full)
    fits, drift = over_rows(active, full, *both, *tables, *chances, *unseen, *beliefs, odds, births)
    expected = passed(collapsed_pass, *given)
    assert fits
    assert drift > 1e-6
    np.testing.assert_array_equal(active, expected.active)
    np.testing.assert_allclose(odds, expected.odds, atol=1e-9)
    if gaps:
        np.testing.assert_allclose(full, expected.full, atol=1e-9)


def test_greedy_passes_climb_to_a_matrix_that_no_single_entry_betters():
    """Under the finite prior, of which each step climbs the joint density of matrix and data."""
    given = problem(FINITE, 5, rows=12, dimensions=3)
    likeliest = given._replace(chances=jax.tree.map(np.zeros_like, given.chances))

    def joint(active):
        owners, a = active.sum(axis=0), FINITE.mass / FINITE.features
        prior = np.sum(np.log(a) + betaln(owners + a, len(active) - owners + 1.0))
        return prior + float(passed(log_marginal, given.full, active, given.numbers))

    scores = [joint(given.active)]
    for _ in range(20):
        found = passed(accelerated_pass, *likeliest)
        scores.append(joint(found.active))
        likeliest = likeliest._replace(active=found.active)
    assert scores[-1] > scores[0] + 0.1
    assert np.min(np.diff(scores)) > -1e-9
    np.testing.assert_array_equal(found.active, found.odds > 0.0)


def test_a_greedy_sweep_takes_the_likelier_entries():
    _, full, *_ = problem(FINITE, 5, rows=12, dimensions=3)
    likelihood = LinearGaussian(noise_precision=3.0, value_precision=0.7)
    sampler = Sampler(Rows(full, np.ones(full.shape, bool)), likelihood, FINITE, greedy)
    state = sampler.init(jax.random.key(0))
    states = [sampler.step(jax.random.key(seed), state) for seed in (1, 2)]
    np.testing.assert_array_equal(states[0].active, states[1].active)  # whatever the key


@pytest.mark.parametrize("window", [0, -1, 1.5, True])
def test_a_window_is_a_positive_number_of_rows(window):
    with pytest.raises(ModelError, match="1 or more"):
        windowed(window)


def test_what_is_filled_in_at_first_is_soon_forgotten():
    """Eight features in forty rows, a tenth of the entries hidden, from the right matrix and values that are zero: the
    first sweep is told that hidden entries are zeros. A row that reads its own ones takes features to explain them, 35
    in all, and keeps them for a thousand sweeps."""
    random = np.random.default_rng(3)
    active = random.random((40, 8)) < 0.4
    own = 2.0 * random.normal(size=(8, 10))
    values = active @ own + 0.2 * random.normal(size=(40, 10))
    seen = random.random(values.shape) < 0.9
    likelihood, law = LinearGaussian(noise_precision=25.0, value_precision=0.25), Law(mass=2.0)
    numbers = {"noise_precision": np.array(25.0), "value_precision": np.array(0.25)}
    for sweep in (accelerated, accelerated_in_jax):
        sampler = Sampler(Rows(np.where(seen, values, 0.0), seen), likelihood, law, sweep, keep=("active", "fit"))
        found, off = [], []
        pad = [(0, 0), (0, 8)]
        state = State(np.pad(active, pad), np.zeros((16, 10)), np.zeros((0, 0)), numbers, np.array(2.0), np.ones(()))
        for number in range(30):
            state = sampler.step(jax.random.key(number), state)
            draw = sampler.record(state)
            found.append(int(draw["number_of_features"]))
            off.append(np.mean((draw["fit"] - active @ own)[~seen] ** 2))
        assert max(found[-10:]) <= 10
        assert np.mean(off[-10:]) < 0.5

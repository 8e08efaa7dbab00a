"""The row-parallel sweep: padding and batching change nothing, and its steps have the laws that enumeration gives."""

import itertools

import jax
import numpy as np
import pytest
from jax import lax
from scipy import integrate, stats

from cavity.engine.support.machine_code import Kernel
from cavity.models.sparse.kernels import parallel
from cavity.models.sparse.kernels.bits import seed_of
from cavity.models.sparse.kernels.columns import draw_columns
from cavity.models.sparse.kernels.factors import sums_of
from cavity.models.sparse.state import Numbers, Observed, State, Switches


def numbers(**changes):
    pair = (2.0, 2.0)
    given = {
        "mass_prior": pair, "concentration_prior": pair, "precision_prior": pair, "precision_rate_prior": pair,
        "noise_prior": pair, "noise_rate_prior": pair, "element": (2.0, 1.5), "hierarchy": (10.0, 0.75, 4.0, 0.3),
        "multiplier": 1.0, "spike": 0.0,
    }  # fmt: skip
    return Numbers(**{name: np.asarray(value, float) for name, value in (given | changes).items()})


def empty(places, rows, samples, missing=0, **changes):
    state = State(
        loading=np.zeros((places, rows)), factor=np.zeros((places, samples)), count=np.array(0),
        precision=np.ones(places), element=np.zeros((0, 0)), openness=np.zeros(0), noise=np.ones(rows),
        mass=np.array(2.0), concentration=np.array(1.0), precision_rate=np.array(2.0), noise_rate=np.array(2.0),
        missing=np.zeros(missing),
    )  # fmt: skip
    return state._replace(**changes)


def data(values, row=(), sample=(), log_odds=None):
    log_odds = np.zeros((0, len(values))) if log_odds is None else log_odds
    return Observed(np.asarray(values), np.asarray(row, np.int64), np.asarray(sample, np.int64), log_odds)


def sweep(switches):
    return Kernel(lambda key, state, observed, numbers, bound: parallel(key, state, observed, numbers, bound, switches))


def stacked(states):
    return jax.tree.map(lambda *parts: np.stack(parts), *states)


# one big model: everything sampled, one factor known, entries missing -------------------------------------------------

ALL = Switches(
    slab="student_t", learn=("concentration", "mass", "noise_rate", "precision_rate"), known=1, rows=5, most=2
)
ROWS, SAMPLES, FACTORS = 7, 9, 4


@pytest.fixture(scope="module")
def big():
    """A state with four factors in eight places, its data, and the sweep."""
    random = np.random.default_rng(0)
    loading, factor = np.zeros((8, ROWS)), np.zeros((8, SAMPLES))
    loading[:FACTORS] = random.normal(size=(FACTORS, ROWS)) * (random.random((FACTORS, ROWS)) < 0.6)
    loading[3] = 0.0
    loading[3, 2] = 0.7  # a factor that one row has alone
    factor[:FACTORS] = random.normal(size=(FACTORS, SAMPLES))
    values = loading.T @ factor + 0.3 * random.normal(size=(ROWS, SAMPLES))
    row, sample = np.array([0, 0, 3, 6]), np.array([1, 4, 0, 8])
    missing = values[row, sample].copy()
    values[row, sample] = 0.0
    given = data(values, row, sample, np.array([[np.inf, -np.inf, 0.0, 1.0, -1.0, 0.5, 0.0]]))
    element = np.where(np.arange(8)[:, None] < FACTORS, random.gamma(2.0, 1.0, (8, ROWS)), 1.0)
    state = empty(8, ROWS, SAMPLES, loading=loading, factor=factor, count=np.array(FACTORS), element=element)
    return state._replace(missing=missing, noise=np.full(ROWS, 8.0)), given, sweep(ALL)


def padded(state, places):
    more = places - state.loading.shape[0]
    return state._replace(
        loading=np.pad(state.loading, ((0, more), (0, 0))), factor=np.pad(state.factor, ((0, more), (0, 0))),
        precision=np.pad(state.precision, (0, more), constant_values=1.0),
        element=np.pad(state.element, ((0, more), (0, 0)), constant_values=1.0),
    )  # fmt: skip


def test_padding_changes_nothing_but_rounding(big):
    state, given, step = big
    wide = padded(state, 16)
    changed, accepted = set(), 0
    for number in range(30):
        key = jax.random.key(number)
        small = step(key, state, given, numbers(), FACTORS)
        large = step(key, wide, given, numbers(), 12)
        assert small.fits == (large.state.count <= 8)
        if not small.fits:
            continue
        found, wanted = small.state, large.state
        assert found.count == wanted.count
        places = int(found.count)
        for name in ("loading", "factor", "precision", "element"):
            one, other = getattr(found, name), getattr(wanted, name)
            np.testing.assert_allclose(one[:places], other[:places], rtol=1e-7, atol=1e-9)
            if name in ("loading", "factor"):
                assert not one[places:].any()
                assert not other[places:].any()
        for name in ("noise", "mass", "concentration", "precision_rate", "noise_rate", "missing"):
            np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-7, atol=1e-9)
        assert small.accepted == large.accepted
        assert ((found.loading != 0.0).sum(1)[ALL.known : places] > 0).all()
        assert found.loading[0, 0] != 0.0, "a loading that is known to be there"
        assert found.loading[0, 1] == 0.0, "a loading that is known not to be there"
        changed.add(places)
        accepted += small.accepted
    assert len(changed) > 1
    assert accepted > 0
    assert step.traces == 2


def test_a_state_that_does_not_fit_says_so(big):
    """Eight factors in eight places, and many proposed: where there is no room, the same key on more places has it."""
    state, given, step = big
    wide = padded(state, 16)
    eager = numbers(multiplier=4.0, spike=0.5)
    loading, factor = state.loading.copy(), state.factor.copy()
    loading[4:], factor[4:] = loading[1], factor[1]
    full = state._replace(loading=loading, factor=factor, count=np.array(8))
    wide = padded(full, 16)
    fits = []
    for number in range(20):
        key = jax.random.key(number)
        small, large = (step(key, each, given, eager, 8) for each in (full, wide))
        assert large.fits
        assert bool(small.fits) == (large.state.count <= 8)
        fits.append(bool(small.fits))
    assert 0 < sum(fits) < len(fits)


def test_chains_together_are_chains_alone(big):
    state, given, step = big
    other = step(jax.random.key(100), state, given, numbers(), FACTORS).state
    states = [state, other, step(jax.random.key(101), other, given, numbers(), 8).state]
    keys = jax.random.split(jax.random.key(5), 3)

    def together(keys, states, given, numbers, bound):
        return jax.vmap(lambda key, state: parallel(key, state, given, numbers, bound, ALL))(keys, states)

    batched = Kernel(together)(keys, stacked(states), given, numbers(), 8)
    alone = stacked([step(key, each, given, numbers(), 8) for key, each in zip(keys, states, strict=True)])
    np.testing.assert_array_equal(batched.fits, alone.fits)
    np.testing.assert_array_equal(batched.state.count, alone.state.count)
    for name in State._fields:
        one, wanted = getattr(batched.state, name), getattr(alone.state, name)
        if name == "element":  # those of unused places have no meaning
            used = np.arange(8) < alone.state.count[:, None]
            one, wanted = one[used], wanted[used]
        np.testing.assert_allclose(one, wanted, rtol=1e-7, atol=1e-9, err_msg=name)


# laws of single steps -------------------------------------------------------------------------------------------------


def test_columns_have_the_law_of_enumeration():
    """Two factors of four rows: the first given, then the second, restricted to columns that are not empty.

    The second is proposed from its conditional and stays where the proposal is empty, so that the law of one step is
    that conditional with the probability of the empty column added to the column that was there.
    """
    random = np.random.default_rng(3)
    rows, samples, several = 4, 6, 20_000
    factor = np.zeros((2, samples))
    factor[1] = random.normal(size=samples)
    values = 0.3 * random.normal(size=(rows, samples)) + 0.15 * factor[1]
    old = np.array([[0.4, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, -1.0]])
    noise, precision, log_odds = np.array([3.0, 1.0, 2.0, 4.0]), 2.0, np.array([0.0, -1.5])
    state = empty(2, rows, samples, loading=old, factor=factor, noise=noise, count=np.array(2))
    state = state._replace(precision=np.full(2, precision))

    def many(keys, state, given, log_odds):
        sums = sums_of(given.values, state.factor)

        def one(key):
            return draw_columns(seed_of(key), state, sums, log_odds, given, 2, Switches())[1]

        return jax.vmap(one)(keys)

    found = Kernel(many)(jax.random.split(jax.random.key(0), several), state, data(values), log_odds)
    on = np.empty(rows)
    prior = 1.0 / (1.0 + np.exp(1.5))
    for row in range(rows):
        plain = np.eye(samples) / noise[row]
        wide = plain + np.outer(factor[1], factor[1]) / precision
        densities = [stats.multivariate_normal(np.zeros(samples), each).pdf(values[row]) for each in (wide, plain)]
        on[row] = prior * densities[0] / (prior * densities[0] + (1.0 - prior) * densities[1])
    patterns = np.array(list(itertools.product([False, True], repeat=rows)))
    law = np.where(patterns, on, 1.0 - on).prod(1)
    assert law[0] > 0.1, "an empty column is not rare here"
    stays = (patterns == (old[1] != 0.0)).all(1)
    law = np.where(stays, law + law[0], law)
    law[0] = 0.0
    frequency = np.array([(found.astype(bool) == pattern).all(1).mean() for pattern in patterns])
    assert (np.abs(frequency - law) <= 4.0 * np.sqrt(law * (1.0 - law) / several)).all()
    assert frequency[0] == 0.0
    kept = (found == old[1]).all(1)
    for row in range(rows):
        value = found[~kept & (found[:, row] != 0.0), row]
        given = noise[row] * factor[1] @ factor[1] + precision
        mean = noise[row] * factor[1] @ values[row] / given
        assert stats.kstest((value - mean) * np.sqrt(given), "norm").pvalue > 1e-3


@pytest.fixture(scope="module")
def own():
    """Chains of sweeps for one row with 20 samples; the posterior of its number of factors, by quadrature."""
    mass, noise, samples = 0.6, 2.0, 20
    values = np.where(np.arange(samples) % 2, 1.0, -1.0)[None]
    switches = Switches(precision="fixed", noise="fixed", learn=(), rows=1, most=3)
    state = empty(8, 1, samples, mass=np.array(mass), noise=np.full(1, noise))
    chains, sweeps = 64, 400
    states = jax.tree.map(lambda part: np.broadcast_to(part, (chains, *np.shape(part))), state)

    def run(key, states, given, numbers):
        def body(states, key):
            keys = jax.random.split(key, chains)
            out = jax.vmap(lambda key, state: parallel(key, state, given, numbers, 8, switches))(keys, states)
            return out.state, (out.state.count, out.fits, out.accepted)

        return lax.scan(body, states, jax.random.split(key, sweeps))[1]

    def density(kappa):
        """Of the data and this number, over the density of the data without factors."""

        def at(root):  # of the sum of squared loadings
            gain = 1.0 + noise * root**2
            ratio = 0.5 * noise * (values**2).sum() * (1.0 - 1.0 / gain) - 0.5 * samples * np.log(gain)
            return np.exp(ratio) * stats.chi2(kappa).pdf(root**2) * 2.0 * root

        return (integrate.quad(at, 0.0, 12.0, limit=200)[0] if kappa else 1.0) * stats.poisson(mass).pmf(kappa)

    posterior = np.array([density(kappa) for kappa in range(4)])
    return Kernel(run), states, data(values), posterior / posterior.sum()


@pytest.mark.parametrize(("multiplier", "spike"), [(1.0, 0.0), (1.0, 0.3), (8.0, 0.0), (3.0, 0.5)])
def test_births_have_the_posterior_of_quadrature(own, multiplier, spike):
    run, states, given, posterior = own
    assert posterior.min() > 0.02, "all numbers occur"
    changed = numbers(precision_prior=(1.0, 1.0), multiplier=multiplier, spike=spike)
    count, fits, accepted = run(jax.random.key(int(10 * multiplier + spike)), states, given, changed)
    assert fits.all()
    assert accepted.sum() > 1000
    kept = count[150:]
    for kappa in range(4):
        by_chain = (kept == kappa).mean(0)
        error = by_chain.std(ddof=1) / np.sqrt(len(by_chain))
        assert abs(by_chain.mean() - posterior[kappa]) < 4.0 * error + 2e-3, (kappa, by_chain.mean(), posterior)
    assert run.traces == 1


# the prior ------------------------------------------------------------------------------------------------------------


def _prior_only(chains, sweeps):
    """Numbers of factors and of ones of chains without data: 10 rows, mass 2."""
    switches = Switches(precision="fixed", noise="fixed", learn=(), rows=10)
    states = jax.tree.map(lambda part: np.broadcast_to(part, (chains, *np.shape(part))), empty(32, 10, 0))

    def run(key, states, given, numbers):
        def body(states, key):
            keys = jax.random.split(key, chains)
            bound = states.count.max()
            out = jax.vmap(lambda key, state: parallel(key, state, given, numbers, bound, switches))(keys, states)
            return out.state, (out.state.count, (out.state.loading != 0.0).sum((1, 2)), out.fits)

        return lax.scan(body, states, jax.random.split(key, sweeps))[1]

    count, ones, fits = Kernel(run)(jax.random.key(1), states, data(np.zeros((10, 0))), numbers())
    assert fits.all()
    return count, ones


def _check_prior(count, ones, skip):
    for found, wanted in ((count, 2.0 * (1.0 / np.arange(1, 11)).sum()), (ones, 20.0)):
        by_chain = found[skip:].mean(0)
        error = by_chain.std(ddof=1) / np.sqrt(by_chain.size)
        assert abs(by_chain.mean() - wanted) < 3.0 * error
        assert error < 0.05 * wanted


def test_without_data_a_chain_has_the_prior():
    """E K = mass H_10 = 5.858 and E ones = 10 mass, as many draws as tell 5 percent."""
    count, ones = _prior_only(128, 300)
    _check_prior(count, ones, 100)


@pytest.mark.slow
def test_without_data_a_long_chain_has_the_prior():
    count, ones = _prior_only(128, 1000)
    _check_prior(count, ones, 100)
    assert abs(count[100:].var() - count[100:].mean()) < 0.2, "a Poisson number"

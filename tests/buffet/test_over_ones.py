"""Sweeps over the ones of the data: the draws of the general sweeps, whatever is missing, given or learned."""

import jax
import numpy as np
import pytest

pytest.importorskip("numba", reason="sweeps over ones are compiled by numba")

from cavity.models.buffet.likelihoods import LinearGaussian, NoisyOr
from cavity.models.buffet.likelihoods.contract import Rows
from cavity.models.buffet.samplers.births import given_rows
from cavity.models.buffet.samplers.law import Law
from cavity.models.buffet.samplers.over_ones import LEAST, over_ones
from cavity.models.buffet.samplers.sampler import Sampler, compiled, padded
from cavity.models.buffet.samplers.split_merge import with_split_merge
from cavity.models.buffet.samplers.uncollapsed import uncollapsed

LEARNED = NoisyOr(quiet=(9.0, 1.0), attenuation=(2.0, 4.0), share=(1.0, 3.0))
BUFFET = Law((4.0, 1.0), (2.0, 2.0))
# Places at the beginning: few of them grow, and each growth compiles anew.
CASES = [
    pytest.param(given_rows, LEARNED, BUFFET, 64, id="births that look at the row"),
    pytest.param(with_split_merge(given_rows), LEARNED, BUFFET, 8, id="split and merge", marks=pytest.mark.slow),
    pytest.param(uncollapsed, LEARNED, BUFFET, 8, id="births from the prior", marks=pytest.mark.slow),
    pytest.param(uncollapsed, NoisyOr(0.9, 0.2, 0.2), Law(features=5), 5, id="finite", marks=pytest.mark.slow),
]


def tags(rows=40, columns=30, seed=0):
    """Booleans of four features, one in ten missing."""
    random = np.random.default_rng(seed)
    reasons = (random.random((rows, 4)) < 0.4) @ (random.random((4, columns)) < 0.2).astype(float)
    seen = random.random((rows, columns)) < 0.9
    return Rows(np.where(seen, random.random((rows, columns)) < 1.0 - 0.9 * 0.2**reasons, 0.0), seen)


@pytest.mark.parametrize(("sweep", "likelihood", "law", "places"), CASES)
def test_draws_are_those_of_the_general_sweep(sweep, likelihood, law, places):
    rows, general = tags(), compiled(sweep, likelihood, law)
    sampler, fast = Sampler(rows, likelihood, law, sweep), over_ones(rows, likelihood, law, sweep, least=0)
    assert fast is not None
    state, accepted, grown = padded(sampler.init(jax.random.key(3)), places), 0, 0
    for number in range(40):
        key = jax.random.key(number)
        one, other = general(key, rows, state), fast(key, rows, state)
        assert bool(one.fits) == bool(other.fits)
        if not one.fits:  # both say so, and meaningless states are not compared
            state, grown = padded(state, 2 * len(state.values)), grown + 1
            continue
        np.testing.assert_array_equal(one.state.active, other.state.active)
        np.testing.assert_array_equal(one.state.values, other.state.values)
        for name, value in one.state.numbers.items():
            np.testing.assert_allclose(other.state.numbers[name], value, rtol=1e-9)
        np.testing.assert_allclose(other.state.mass, one.state.mass, rtol=1e-9)
        np.testing.assert_allclose(other.state.concentration, one.state.concentration, rtol=1e-9)
        assert (one.proposed, one.accepted) == (other.proposed, other.accepted)
        state, accepted = one.state, accepted + int(other.accepted)
    recorded = sampler.record(state)
    np.testing.assert_allclose(fast.log_likelihood(state), recorded["log_likelihood"], rtol=1e-10)
    assert accepted > 10 or law.features is not None


def test_small_data_and_other_models_are_left_to_the_general_sweep():
    rows = tags()
    assert rows.values.size < LEAST
    assert over_ones(rows, LEARNED, BUFFET, uncollapsed) is None
    assert over_ones(rows, LinearGaussian(), BUFFET, uncollapsed, least=0) is None
    assert over_ones(rows, LEARNED, BUFFET, with_split_merge(lambda *all: None), least=0) is None


def test_a_chain_of_large_data_goes_over_ones():
    random = np.random.default_rng(1)
    rows = Rows((random.random((400, 250)) < 0.1).astype(float), np.ones((400, 250), bool))
    sampler = Sampler(rows, NoisyOr(0.9, 0.2, 0.05), Law(1.0, features=3), uncollapsed, keep=())
    before = sampler.init(jax.random.key(0))
    fast = over_ones(rows, sampler.likelihood, sampler.law, uncollapsed)
    after, key = sampler.step(jax.random.key(1), before), jax.random.key(1)
    np.testing.assert_array_equal(after.active, fast(key, rows, before).state.active)
    assert compiled(uncollapsed, sampler.likelihood, sampler.law).traces == 0
    recorded = sampler.record(after)
    assert set(recorded) & {"fit", "entries", "active", "values"} == set()
    sampler = Sampler(rows, sampler.likelihood, sampler.law, uncollapsed, keep=("fit",))
    np.testing.assert_allclose(sampler.record(after)["log_likelihood"], recorded["log_likelihood"], rtol=1e-10)

"""Random numbers of sweeps: known answers, laws of the distributions, and what has no distribution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from cavity.factors import draws

MANY = 40_000


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def test_threefry_has_the_published_answers():
    """Of 20 rounds: the known answers that come with the generator (salmon2011parallel)."""
    cases = [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ]
    for key, counter, wanted in cases:
        found = draws.threefry(*(jnp.uint32(x) for x in (*key, *counter)))
        assert tuple(int(x) for x in found) == wanted


LAWS = {
    "uniform": (lambda key: draws.uniform(key, (MANY,)), scipy.stats.uniform()),
    "normal": (lambda key: draws.normal(key, (MANY,)), scipy.stats.norm()),
    "exponential": (lambda key: draws.exponential(key, (MANY,)), scipy.stats.expon()),
    "inverse Gaussian": (
        lambda key: draws.inverse_gaussian(key, jnp.full(MANY, 1.0 / 3.0)),
        scipy.stats.invgauss(3.0),
    ),
} | {
    f"gamma {a}": (lambda key, a=a: jnp.exp(draws.log_gamma(key, jnp.full(MANY, a))), scipy.stats.gamma(a))
    for a in (0.1, 0.9, 1.0, 2.5, 300.0)
}


@pytest.mark.parametrize("name", LAWS)
def test_laws(name):
    draw, law = LAWS[name]
    found = np.asarray(draw(jax.random.key(11)))
    assert scipy.stats.kstest(found, law.cdf).pvalue > 1e-3
    assert scipy.stats.pearsonr(found[1:], found[:-1]).pvalue > 1e-3


def test_a_wrong_law_fails():
    found = np.exp(np.asarray(draws.log_gamma(jax.random.key(11), jnp.full(MANY, 2.5))))
    assert scipy.stats.kstest(found, scipy.stats.gamma(2.56).cdf).pvalue < 1e-3


def test_small_gammas_do_not_underflow():
    found = np.asarray(draws.log_gamma(jax.random.key(0), jnp.full(1000, 1e-4)))
    assert np.isfinite(found).all()
    assert found.min() < -1000.0


def test_gammas_without_a_law():
    found = draws.log_gamma(jax.random.key(0), jnp.array([0.0, -1.0, jnp.nan, jnp.inf, 2.0]))
    assert found[0] == -jnp.inf
    assert bool(jnp.isnan(found[1:3]).all())
    assert found[3] == jnp.inf
    assert bool(jnp.isfinite(found[4]))


@pytest.mark.parametrize("states", [2, 3, 40])
def test_categorical(states):
    random = np.random.default_rng(states)
    logits = random.normal(size=states) - 500.0
    logits[1] = -np.inf
    found = np.asarray(draws.categorical(jax.random.key(5), jnp.broadcast_to(jnp.asarray(logits), (MANY, states))))
    chance = np.exp(logits - logits.max())
    chance /= chance.sum()
    counts = np.bincount(found, minlength=states)
    assert counts[1] == 0
    seen = chance > 0
    assert seen.sum() == 1 or scipy.stats.chisquare(counts[seen], MANY * chance[seen]).pvalue > 1e-3


@given(shape=st.lists(st.integers(0, 4), max_size=3).map(tuple), seed=st.integers(0, 10))
@settings(max_examples=20, deadline=None)
def test_shapes_and_ends(shape, seed):
    key = jax.random.key(seed)
    u = draws.uniform(key, shape)
    assert u.shape == draws.normal(key, shape).shape == draws.log_gamma(key, jnp.ones(shape)).shape == shape
    assert bool(jnp.all((u > 0.0) & (u < 1.0)))
    assert draws.categorical(key, jnp.zeros((*shape, 3))).shape == shape
    np.testing.assert_array_equal(u, draws.uniform(key, shape))


def test_the_same_under_vmap():
    keys = jax.random.split(jax.random.key(1), 3)
    together = jax.vmap(lambda key: draws.log_gamma(key, jnp.array([0.3, 4.0])))(keys)
    alone = jnp.stack([draws.log_gamma(key, jnp.array([0.3, 4.0])) for key in keys])
    np.testing.assert_allclose(together, alone, rtol=1e-12)

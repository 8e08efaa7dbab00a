"""Random numbers with addresses, and the one loop that draws all gamma variables of a sweep, against scipy."""

import jax
import numpy as np
import pytest
from scipy import special, stats

from cavity.engine.support.machine_code import Kernel
from cavity.models.sparse.kernels.bits import STREAMS, normals, seed_of, uniforms
from cavity.models.sparse.kernels.gamma import log_gammas

SHAPES = np.array([0.01, 0.1, 0.5, 0.999, 1.0, 1.5, 3.0, 20.0, 1e3, 1e6])
NUMBER = 4001  # odd: the padding to whole vectors is part of what is tested


def _draws(key, shapes, noise):
    return log_gammas(seed_of(key), {"element": shapes, "noise": noise})


DRAWS = Kernel(_draws)


@pytest.fixture(scope="module")
def drawn():
    shapes = np.broadcast_to(SHAPES[:, None], (SHAPES.size, NUMBER))
    return DRAWS(jax.random.key(0), shapes, np.full(3, 2.0))["element"]


@pytest.mark.parametrize("place", range(SHAPES.size), ids=[f"{shape:g}" for shape in SHAPES])
def test_gamma_variables_have_their_law(drawn, place):
    shape, found = SHAPES[place], drawn[place]
    assert stats.kstest(found, stats.loggamma(shape).cdf).pvalue > 1e-3
    spread = np.sqrt(special.polygamma(1, shape))
    assert abs(found.mean() - special.digamma(shape)) < 4.0 * spread / np.sqrt(NUMBER)
    kurtosis = special.polygamma(3, shape) / spread**4
    assert abs(found.var() / spread**2 - 1.0) < 4.0 * np.sqrt((kurtosis + 2.0) / NUMBER)
    if shape >= 1.0:
        value = np.exp(found)
        assert abs(value.mean() - shape) < 4.0 * np.sqrt(shape / NUMBER)


def test_gamma_variables_belong_to_their_place(drawn):
    """More places, and other streams with other numbers of them, change none that was there."""
    shapes = np.ones((SHAPES.size + 3, NUMBER + 2))
    shapes[: SHAPES.size, :NUMBER] = SHAPES[:, None]
    more = DRAWS(jax.random.key(0), shapes, np.full(7, 2.0))["element"]
    np.testing.assert_allclose(more[: SHAPES.size, :NUMBER], drawn, rtol=1e-14, atol=1e-14)


def test_gamma_variables_are_not_correlated(drawn):
    ranks = stats.rankdata(drawn, axis=1) / NUMBER
    correlations = np.corrcoef(ranks)[np.triu_indices(SHAPES.size, 1)]
    assert np.abs(correlations).max() < 4.5 / np.sqrt(NUMBER)
    neighbours = [np.corrcoef(row[1:], row[:-1])[0, 1] for row in ranks]
    assert np.abs(neighbours).max() < 4.0 / np.sqrt(NUMBER)


def test_uniform_and_normal_numbers():
    number = 50_000

    def draw(key):
        seed, index = seed_of(key), np.arange(number)
        places = np.arange(2)[:, None]
        return uniforms(seed, "switch", places, index), normals(seed, "loading", 0, index)

    kernel = Kernel(draw)
    uniform, normal = kernel(jax.random.key(1))
    assert uniform.min() > 0.0
    assert uniform.max() < 1.0
    assert stats.kstest(uniform.ravel(), "uniform").pvalue > 1e-3
    assert stats.kstest(normal, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(uniform)[0, 1]) < 4.0 / np.sqrt(number)
    assert abs(np.corrcoef(uniform[0], normal)[0, 1]) < 4.0 / np.sqrt(number)
    bits = (uniform[0] * 2.0**16).astype(np.int64)
    for bit in range(16):
        assert abs(((bits >> bit) & 1).mean() - 0.5) < 4.5 * 0.5 / np.sqrt(number)
    other, _ = kernel(jax.random.key(2))
    assert abs(np.corrcoef(uniform[0], other[0])[0, 1]) < 4.0 / np.sqrt(number)


def test_streams_fit_into_their_addresses():
    assert len(set(STREAMS)) == len(STREAMS) <= 64

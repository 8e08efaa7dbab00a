"""Slice sampling keeps the distributions it is given, also with poor widths and for many numbers at once."""

import numpy as np
import pytest
from scipy import stats

from cavity.engine.mcmc.slice_sampling import slice_draw


@pytest.mark.parametrize("width", [0.1, 1.0, 50.0])
def test_stationary_distributions(width):
    random = np.random.default_rng(0)
    laws = [stats.loggamma(2.0), stats.norm(3.0, 0.4), stats.gumbel_r(0.0, 1.0), stats.t(5.0)]

    # Start in the distribution, move a little, and be in it still: many independent short chains.
    chains = 1500
    x = np.concatenate([law.rvs(chains, random_state=random) for law in laws])
    start = x.copy()

    def together(x):
        return np.concatenate([law.logpdf(part) for law, part in zip(laws, np.split(x, len(laws)), strict=True)])

    for _ in range(3):
        x = slice_draw(together, x, random, width)
    assert (x != start).mean() > 0.99
    for law, part in zip(laws, np.split(x, len(laws)), strict=True):
        assert stats.kstest(part, law.cdf).pvalue > 1e-3


def test_from_a_start_in_the_tail():
    random, x, kept = np.random.default_rng(1), np.array([40.0, -40.0]), []
    for _ in range(4000):
        x = slice_draw(lambda x: -0.5 * x * x, x, random, 1.0)
        kept.append(x)
    kept = np.array(kept[100:])
    assert np.abs(kept.mean(axis=0)).max() < 0.1
    np.testing.assert_allclose(kept.std(axis=0), 1.0, atol=0.05)


def test_bounds_are_where_the_density_ends():
    random, x, kept = np.random.default_rng(2), np.array([0.5]), []
    for _ in range(4000):
        x = slice_draw(lambda x: np.where((x > 0.0) & (x < 1.0), 0.0, -np.inf), x, random, 3.0)
        kept.append(x[0])
    assert stats.kstest(kept[::5], stats.uniform.cdf).pvalue > 1e-3

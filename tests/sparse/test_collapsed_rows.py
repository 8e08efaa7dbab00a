"""The sweep with loadings integrated out: its conditionals are those of dense Gaussians, for every pattern of zeros."""

import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from cavity.engine.support.machine_code import Kernel
from cavity.models.sparse.kernels.rows import Given, gain_of, rows_of, with_factor, without

ROWS, PLACES, SAMPLES = 3, 4, 6
PATTERNS = np.array(list(itertools.product((False, True), repeat=PLACES)))


def problem():
    random = np.random.default_rng(0)
    factor, values = random.normal(size=(PLACES, SAMPLES)), 2.0 * random.normal(size=(ROWS, SAMPLES))
    noise, slab = random.gamma(2.0, size=ROWS), random.gamma(2.0, size=(ROWS, PLACES))
    given = Given(noise, slab, noise[:, None] * (values @ factor.T), factor @ factor.T)
    return factor, values, given


def evidence(factor, value, noise, slab, active):
    """Log density of a row with the loadings of its active factors integrated out."""
    x = factor[active]
    return multivariate_normal(np.zeros(SAMPLES), np.eye(SAMPLES) / noise + x.T @ (x / slab[active, None])).logpdf(
        value
    )


def on(pattern: np.ndarray) -> np.ndarray:
    """The pattern in every row."""
    return np.broadcast_to(pattern, (ROWS, PLACES)).copy()


@pytest.fixture(scope="module")
def kernels() -> dict[str, Any]:
    return {
        "rows": Kernel(rows_of),
        "gain": Kernel(lambda given, rows, k: gain_of(given, without(rows, k), k)),
        "with": Kernel(
            lambda given, rows, k: with_factor(
                without(rows, k), k, jnp.ones(ROWS, bool), *gain_of(given, without(rows, k), k)[1:]
            )
        ),
        "without": Kernel(without),
    }


@pytest.mark.parametrize("k", range(PLACES))
def test_what_a_factor_adds_is_the_difference_of_two_evidences(kernels, k):
    factor, values, given = problem()
    for pattern in PATTERNS:
        gain = kernels["gain"](given, kernels["rows"](given, on(pattern)), np.array(k))[0]
        some = pattern.copy()
        some[k] = False
        more = some.copy()
        more[k] = True
        for d in range(ROWS):
            exact = [evidence(factor, values[d], given.noise[d], given.slab[d], each) for each in (more, some)]
            assert gain[d] == pytest.approx(exact[0] - exact[1], abs=1e-10)


@pytest.mark.parametrize("k", range(PLACES))
def test_changes_of_rank_one_are_what_a_fresh_inverse_is(kernels, k):
    given = problem()[2]
    for pattern in PATTERNS:
        rows = kernels["rows"](given, on(pattern))
        for name, value in (("with", True), ("without", False)):
            other = pattern.copy()
            other[k] = value
            found = kernels["with"](given, rows, np.array(k)) if value else kernels["without"](rows, np.array(k))
            fresh = kernels["rows"](given, on(other))
            assert np.array_equal(found.active, fresh.active), name
            np.testing.assert_allclose(found.inverse, fresh.inverse, atol=1e-12)
            np.testing.assert_allclose(found.mean, fresh.mean, atol=1e-12)


def test_the_inverse_and_the_mean_are_those_of_the_loadings(kernels):
    factor, values, given = problem()
    for pattern in PATTERNS:
        rows = kernels["rows"](given, on(pattern))
        x = factor[pattern]
        for d in range(ROWS):
            precision = given.noise[d] * x @ x.T + np.diag(given.slab[d, pattern])
            mean = np.linalg.solve(precision, given.noise[d] * x @ values[d])
            np.testing.assert_allclose(rows.inverse[d][np.ix_(pattern, pattern)], np.linalg.inv(precision), atol=1e-12)
            np.testing.assert_allclose(rows.mean[d, pattern], mean, atol=1e-12)
            assert not rows.mean[d, ~pattern].any()

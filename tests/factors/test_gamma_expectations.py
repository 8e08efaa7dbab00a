"""E log gamma(s), s ~ Gamma(a, rate b), and its gradient, of which the NCVMP message to a random shape is made."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cavity.factors.families import Gamma
from cavity.factors.positive.gamma import expected_lgamma

ROWS = json.loads(Path(__file__).with_name("gamma_expectations.json").read_text())
A, B = (np.array([float.fromhex(row[i]) for row in ROWS]) for i in (0, 1))
VALUE, IN_A, IN_B = (np.array([row[i] for row in ROWS], float) for i in (2, 3, 4))
PUBLISHED = np.isin(A, [0.1, 1.0, 10.0])  # nine cells, each with two derivatives


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def expectation(a, b):
    return expected_lgamma(Gamma.from_parameters(shape=a, rate=b).moments())


@pytest.fixture(scope="module")
def found():
    with jax.enable_x64(True):
        value, slopes = jax.jit(jax.vmap(jax.value_and_grad(expectation, (0, 1))))(jnp.asarray(A), jnp.asarray(B))
        return np.asarray(value), *map(np.asarray, slopes)


def test_value_and_gradient_match_fifty_digits_from_narrow_to_wide_beliefs(found):
    for got, wanted in zip(found, (VALUE, IN_A, IN_B), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=0.0)


def test_the_published_cells_are_closer_than_published(found):
    """Table 6.2 of knowles2012thesis: its errors are 1e-15 to 8e-13 in these eighteen cells."""
    _, in_a, in_b = found
    assert PUBLISHED.sum() == 9
    for got, wanted in ((in_a, IN_A), (in_b, IN_B)):
        np.testing.assert_allclose(got[PUBLISHED], wanted[PUBLISHED], rtol=2e-14, atol=0.0)


def test_beliefs_that_are_nearly_points_give_the_value_at_the_point():
    shape, mean = 1e9, 3.7
    near = jax.jit(expectation)(jnp.asarray(shape), jnp.asarray(shape / mean))
    assert float(near) == pytest.approx(float(jax.scipy.special.gammaln(mean)), rel=1e-8)

"""Chains put together in a tree of pairs, as accelerators do it, against the steps one after the other."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cavity.engine.blocks.chain import discrete_chain, gaussian_chain
from cavity.engine.blocks.chain.in_pairs import in_pairs


def spread_matrices(rng, *shape):
    """Positive definite matrices, (time, D, D, lanes)."""
    time, dimension, lanes = shape
    root = rng.normal(size=(time, dimension, dimension, lanes))
    return np.einsum("tikn,tjkn->tijn", root, root) + 0.1 * np.eye(dimension)[:, :, None]


def links(rng, time, dimension, lanes):
    a = rng.normal(size=(time, dimension, dimension, lanes)) / np.sqrt(dimension)
    a[0] = 0.0
    vectors = rng.normal(size=(2, time, dimension, lanes))
    q, e_matrix = spread_matrices(rng, time, dimension, lanes), 0.1 * spread_matrices(rng, time, dimension, lanes)
    e_matrix[0], vectors[1, 0] = 0.0, 0.0
    return gaussian_chain.LinearTransitions(*map(jnp.asarray, (a, vectors[0], q, e_matrix, vectors[1])))


@pytest.mark.parametrize("dimension", [1, 2, 5])
@pytest.mark.parametrize("time", [1, 2, 11])
def test_gaussian_chains(time, dimension):
    rng = np.random.default_rng(time + dimension)
    with jax.enable_x64(True):
        given = links(rng, time, dimension, 3)
        own = jnp.asarray(spread_matrices(rng, time, dimension, 3)), jnp.asarray(rng.normal(size=(time, dimension, 3)))
        one_by_one = jax.jit(gaussian_chain.chain_messages)(given, *own)
        for found, expected in zip(jax.jit(gaussian_chain.messages_in_pairs)(given, *own), one_by_one, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
        above, _ = gaussian_chain.given_parent(given, *one_by_one)
        marginals = jax.jit(gaussian_chain.chain_marginals)(above)
        for found, expected in zip(jax.jit(gaussian_chain.marginals_in_pairs)(above), marginals, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def test_a_gaussian_chain_whose_elements_have_no_message_of_their_own_but_the_last():
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        given = links(rng, 50, 2, 1)
        precision = jnp.zeros((50, 2, 2, 1)).at[-1].set(1e6 * jnp.eye(2)[:, :, None])
        own = precision, jnp.zeros((50, 2, 1)).at[-1].set(1e6)
        expected = jax.jit(gaussian_chain.chain_messages)(given, *own)
        for found, one_by_one in zip(jax.jit(gaussian_chain.messages_in_pairs)(given, *own), expected, strict=True):
            np.testing.assert_allclose(found, one_by_one, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("times", ["one table", "a table for each step"])
@pytest.mark.parametrize("lanes_of_table", [1, 3])
@pytest.mark.parametrize("time", [1, 2, 20])
def test_chains_of_states(time, lanes_of_table, times):
    rng = np.random.default_rng(time)
    steps = 1 if times == "one table" else time - 1
    with jax.enable_x64(True):
        first = jnp.log(jnp.asarray(rng.dirichlet(np.ones(4), 3).T))
        table = np.log(rng.dirichlet(np.full(4, 0.5), (steps, 4, lanes_of_table)))
        table = jnp.asarray(np.moveaxis(table, -1, 2))
        node = jnp.asarray(rng.normal(scale=5.0, size=(time, 4, 3)))
        expected, least = jax.jit(discrete_chain.one_by_one)(first, table, node)
        found, also_least = jax.jit(discrete_chain.by_pairs)(first, table, node)
        np.testing.assert_allclose(also_least, least, rtol=1e-10)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_a_state_that_must_be_passed_and_whose_weight_underflows_is_noticed():
    with jax.enable_x64(True):
        table = jnp.log(jnp.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]))[None, :, :, None]
        node = jnp.zeros((40, 3, 1)).at[20, 1].set(-2000.0).at[20, 0].set(-2000.0)
        first = jnp.log(jnp.array([[1.0], [0.0], [0.0]]))
        for way in (discrete_chain.by_pairs, discrete_chain.one_by_one):
            assert not jax.jit(way)(first, table, node)[1] > discrete_chain.SMALLEST


def test_processors_go_step_by_step():
    assert in_pairs(1) == (jax.default_backend() != "cpu")

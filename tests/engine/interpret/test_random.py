"""Random keys and bits are JAX's, to the last bit, so that a seed means the same however a program is run."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cavity.engine.interpret.interpreter import can_interpret


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**64 - 1])
def test_keys_and_bits(agree, seed):
    words = np.asarray([seed >> 32, seed & 0xFFFFFFFF], np.uint32)

    def function(words):
        key = jax.random.wrap_key_data(words)
        keys = jax.random.split(key, 5)
        return (
            jax.random.key_data(keys), jax.random.key_data(jax.random.fold_in(key, 7)), jax.random.bits(key, (3, 2)),
            jax.random.bits(key, (), "uint32"), jax.random.bits(key, (5,), "uint8"),
            jax.vmap(lambda key: jax.random.bits(key, (2,)))(keys[::2]), jax.random.key_data(keys[jnp.array([4, 0])]),
            jax.vmap(lambda key: jax.random.key_data(jax.random.fold_in(key, 3)))(keys), jax.random.permutation(key, 9),
        )  # fmt: skip

    agree(function, words)
    agree(lambda words: jax.random.normal(jax.random.wrap_key_data(words), (20,)), words, tolerance=1e-12)


@pytest.mark.parametrize("type", ["int32", "int64", "uint32", "uint64"])
def test_seeds(agree, type):
    agree(lambda seed: jax.random.key_data(jax.random.key(seed)), np.asarray(2**31 - 5, type))


def test_draws_of_gamma_variables(agree):
    words, shape = np.asarray([3, 4], np.uint32), np.array([0.2, 1.0, 7.5])
    agree(lambda words, shape: jax.random.gamma(jax.random.wrap_key_data(words), shape), words, shape, tolerance=1e-10)


def test_keys_through_loops(agree):
    def function(words):
        keys = jax.random.split(jax.random.wrap_key_data(words), 3)
        return jax.lax.map(lambda key: jax.random.bits(key, (2,)), keys)

    agree(function, np.asarray([3, 4], np.uint32))


def test_other_generators_are_left_to_the_compiler():
    closed = jax.make_jaxpr(lambda: jax.random.bits(jax.random.key(0, impl="rbg"), (2,)))()
    assert "key<rbg>" in can_interpret(closed)

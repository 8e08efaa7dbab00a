"""A function that many traced functions call is traced once, and what is no array stays what it is."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from cavity.engine.support.traced_once import traced_once


def test_one_trace_serves_many_functions_and_new_shapes_take_another():
    traces = []

    @traced_once
    def function(x, name):
        traces.append(name)
        return {"sum": x.sum(), "size": x.size, "name": name, "table": np.arange(3)}

    def first(x):
        found = function(x, "a")
        assert (type(found["size"]), found["name"], type(found["table"])) == (int, "a", np.ndarray)
        return found["sum"]

    def second(x, y):
        return jax.lax.cond(x[0] > 0, lambda: function(x, "a")["sum"], lambda: function(y, "a")["sum"])

    x = np.arange(4.0)
    np.testing.assert_allclose(jax.jit(first)(x), 6.0)
    np.testing.assert_allclose(jax.jit(second)(x, 2.0 * x), 12.0)
    np.testing.assert_allclose(jax.vmap(first)(jnp.ones((2, 4))), [4.0, 4.0])
    assert traces == ["a"]
    jax.jit(lambda x: function(x, "b")["sum"])(x)
    jax.jit(first)(np.ones(5))
    assert traces == ["a", "b", "a"]

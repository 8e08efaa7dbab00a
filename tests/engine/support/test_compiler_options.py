"""Programs of small arrays are compiled with options of their own, and by any XLA."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cavity.engine.support import compiler_options
from cavity.engine.support.compiler_options import machine_code, mean_size


def traced(size):
    def function(x):
        return jax.lax.fori_loop(0, 3, lambda i, y: jnp.sin(y) @ x * y, x)

    return jax.jit(function).trace(np.eye(size))


def compiled(found):
    """A function compiled, with the options that were tried."""
    tried, lowered = [], found.lower()

    def compile(options):
        tried.append(options)
        return lowered.compile(options)

    return machine_code(found, compile), tried


def test_equations_of_loops_count():
    assert 2**6 < mean_size(traced(16).jaxpr.jaxpr) <= 2**8


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="options of the compiler for processors")
@pytest.mark.parametrize(("size", "expected"), [(4, [compiler_options.OPTIONS]), (64, [None])])
def test_options_by_size(size, expected):
    found = traced(size)
    function, tried = compiled(found)
    np.testing.assert_allclose(function(np.eye(size)), found.lower().compile()(np.eye(size)), rtol=1e-12)
    assert tried == expected


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="options of the compiler for processors")
def test_an_option_that_xla_does_not_know_is_done_without(monkeypatch):
    monkeypatch.setattr(compiler_options, "OPTIONS", {"xla_cpu_of_another_release": True})
    found = traced(4)
    function, tried = compiled(found)
    assert tried == [compiler_options.OPTIONS, None]
    np.testing.assert_allclose(function(np.eye(4)), found.lower().compile()(np.eye(4)), rtol=1e-12)

"""Matrices of every size class: values, first and second derivatives, and batches under vmap, against LAPACK."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cavity.factors.families import matrices


# Written out, by column, and by LAPACK: two more sizes in the slow suite.
@pytest.fixture(
    params=[3, *(pytest.param(n, marks=pytest.mark.slow) for n in (10, 20)), 70], ids=lambda size: f"{size} rows"
)
def stack(request):
    draws = np.random.default_rng(0).normal(size=(4, request.param, request.param))
    return draws @ draws.swapaxes(1, 2) + request.param * np.eye(request.param)


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("log_det", lambda m: jnp.linalg.slogdet(m)[1]),
        ("inverse", jnp.linalg.inv),
        ("regular_inverse", jnp.linalg.inv),
    ],
)
def test_values_and_derivatives(stack, name, reference):
    function, direction = getattr(matrices, name), matrices.symmetric(stack**2 / stack.shape[-1])

    def along(f):
        def total(scale):
            return jnp.sin(f(stack + scale * direction)).sum()

        value, slope = jax.value_and_grad(total)(0.1)
        return value, slope, jax.grad(jax.grad(total))(0.1)

    with jax.enable_x64(True):
        np.testing.assert_allclose(along(function), along(reference), rtol=1e-10, atol=1e-10)
        many = jax.vmap(lambda scale: function(scale * stack))(jnp.asarray([1.0, 2.0]))
        np.testing.assert_allclose(many[1], reference(2.0 * stack), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["cholesky", "inverse", "regular_inverse"])
def test_large_matrices_are_never_a_batch(name):
    """Of LAPACK, on a CPU: see `_one_by_one`."""
    with jax.enable_x64(True):
        program = str(jax.make_jaxpr(jax.vmap(getattr(matrices, name)))(jnp.ones((5, 20, 20))))
    lines = [
        line for line in program.splitlines() if " cholesky" in line or " lu" in line or "triangular_solve" in line
    ]
    assert lines
    assert not any("[5,20,20]" in line for line in lines)


def test_not_positive_definite_is_told(stack):
    with jax.enable_x64(True):
        told = matrices.is_positive_definite(jnp.concatenate([stack[:1], -stack[:1]]))
    assert told.tolist() == [True, False]


def test_large_batches_inside_a_loop(stack):
    """XLA's threads once waited for each other here for ever."""
    with jax.enable_x64(True):
        step = jax.jit(lambda m: jax.lax.fori_loop(0, 20, lambda _, a: a + 1e-3 * matrices.inverse(a), m))
        found, expected = step(stack), stack
    for _ in range(20):
        expected = expected + 1e-3 * np.linalg.inv(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-12)

"""What moves, picks, sums and factorises arrays does what XLA does, at the edges too."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

from cavity.engine.interpret.interpreter import Interpreter
from cavity.engine.interpret.writing import written

A = np.arange(24.0).reshape(2, 3, 4) - 7.5
MODES = ("clip", "fill", "drop", "promise_in_bounds")


def test_views(agree):
    def function(a):
        return (
            a.reshape(6, 4), a.reshape(-1), a.transpose(2, 0, 1), a[:, ::-1], a[0, 1:, ::2], a[1, 2, 3], a[:, None],
            jnp.stack([a, a], 1), jnp.unstack(a, axis=1), jnp.split(a, 2, axis=2), jnp.concatenate([a, a[:, :1]], 1),
            jnp.broadcast_to(a[0], (5, 3, 4)), jnp.squeeze(a[:1], 0), lax.iota("int32", 4), lax.rev(a, (0, 2)),
        )  # fmt: skip

    agree(function, A)


@pytest.mark.parametrize("config", [((1, 2, 0),), ((0, 3, 2),), ((-1, -2, 0),), ((-2, 1, 1),), ((-9, 12, 0),)])
def test_padding(agree, config):
    agree(lambda a: lax.pad(a, -1.0, config), np.arange(5.0))


@settings(max_examples=15, derandomize=True, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=3, max_size=3))
def test_slices_that_stick_out_are_moved_back(starts):
    def function(a, part, i, j, k):
        part = lax.dynamic_update_slice(a, part, (i, j, k))
        return lax.dynamic_slice(a, (i, j, k), (1, 2, 3)), part, lax.dynamic_index_in_dim(a, j, 1)

    with jax.enable_x64(True):
        arguments = (A, np.ones((2, 2, 2)), *map(np.asarray, starts))
        own = Interpreter(written(jax.make_jaxpr(function)(*arguments)))(*arguments)
        for found, wanted in zip(own, function(*arguments), strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("mode", MODES)
def test_gather(agree, mode):
    inside = mode == "promise_in_bounds"
    rows = np.array([0, 1, 1, 0] if inside else [0, 1, -1, 5, 2, -7])
    columns = rows[::-1].copy()

    def function(a, i, j):
        return (
            a.at[i].get(mode=mode), a.at[:, i].get(mode=mode), a.at[i, j].get(mode=mode), a.at[i, :, j].get(mode=mode),
            a.at[i[0]].get(mode=mode), a.at[i[:, None], j[None]].get(mode=mode), a.at[0, 1, i].get(mode=mode),
        )  # fmt: skip

    agree(function, A, rows, columns)


def test_gather_beside_others(agree):
    """Mapped gathers and scatters have axes that go along with those of the places."""
    rows = np.array([[0, 1, 3], [2, 2, 1]])
    agree(lambda a, i: jax.vmap(lambda a, i: a[i])(a, i), A[:, 0], rows)
    agree(lambda a, i: jax.vmap(lambda a, i: a[:, i])(a, i), A, rows)
    agree(lambda a, i: jax.vmap(lambda a, i: a.at[i].add(1.0))(a, i), A[:, 0], rows)
    agree(lambda a, i: jnp.take_along_axis(a, i, 1), A[:, 0], rows)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("verb", ["add", "mul", "min", "max"])
def test_scatter(agree, mode, verb):
    inside = mode == "promise_in_bounds"
    rows = np.array([0, 1, 1, 0] if inside else [0, 1, -1, 5, 1, -7])
    new = np.linspace(-1.0, 3.0, rows.size)

    def function(a, i, new):
        return (
            getattr(a.at[i, 1, 2], verb)(new, mode=mode),
            getattr(a.at[:, 1, i], verb)(new, mode=mode),
            getattr(a.at[i], verb)(new[:, None, None], mode=mode),
        )

    agree(function, A, rows, new)


def test_scatter_that_replaces(agree):
    def function(a, i):
        return a.at[i].set(0.0), a.at[1, i].set(a[0, i] + 1.0), a.at[:, 0].set(3.0), a.at[7].set(1.0), a.at[-1].set(2.0)

    agree(function, A, np.array([1, 0]))
    agree(lambda a, i: a.at[i].set(True), np.zeros(3, bool), np.asarray(2))
    mapped = jax.vmap(lambda a, i: jax.lax.dynamic_update_index_in_dim(a, a[0], i, 0))
    agree(mapped, np.zeros((3, 2, 0)), np.array([0, 1, 1]))  # where nothing moves


def test_reductions(agree):
    def function(a, whole, truth):
        return (
            a.sum(), a.sum(1), a.sum((0, 2)), a.prod(2), a.max((0, 1)), a.min(0), a.max(), jnp.cumsum(a, 1),
            jnp.cumprod(a, 2), lax.cummax(a, 1, reverse=True), lax.cummin(a, 0), lax.cumsum(a, 2, reverse=True),
            lax.cumlogsumexp(a, 1), whole.sum(), whole.max(), whole.sum(dtype=jnp.int32), truth.all(0), truth.any(),
            jnp.argmax(a, 1), jnp.argmin(a.reshape(-1)), truth.sum(), whole[:0].sum(),
            lax.reduce_and(whole, (0,)), lax.reduce_or(whole, (0,)), lax.reduce_xor(whole, (0,)),
        )  # fmt: skip

    whole = np.array([3, -1, 2**31 - 1, 5], np.int32)
    agree(function, A, whole, A > 0, tolerance=1e-13)
    odd = np.where(A > 9, np.nan, A)
    agree(lambda a: (a.sum(0), a.max(2), a.min(), jnp.argmax(a, 2), jnp.argmin(a)), odd, tolerance=1e-13)


def test_sorting(agree):
    first = np.array([2.0, np.nan, -0.0, 0.0, -np.inf, 2.0, np.inf, -1.0])
    second = np.array([1, 5, 9, 2, 4, 0, 3, 7])
    agree(lambda a, b: (lax.sort(a), lax.sort((a, b), num_keys=1), lax.sort((a, b), num_keys=2)), first, second)
    agree(lambda a: (jnp.sort(a, axis=0), jnp.argsort(-a, axis=1), jnp.lexsort((a[0, 0], a[0, 1]))), A)


PRODUCTS = [
    "i,i->", "i,j->ij", "ij,j->i", "j,ij->i", "ij,jk->ik", "ij,ik->jk", "bij,bjk->bik", "bij,bj->bi", "bi,bi->b",
    "bij,bkj->bki", "ij,ij->", "abij,abkj->abik", "bi,bj->bij", "ijk,jk->i", "ib,bj->bij",
]  # fmt: skip
SIZES = {"a": 2, "b": 3, "i": 4, "j": 5, "k": 2}


@pytest.mark.parametrize("term", PRODUCTS)
def test_products(agree, term):
    rng = np.random.default_rng(0)
    left, right = term.split("->")[0].split(",")
    arrays = [rng.normal(size=[SIZES[axis] for axis in axes]) for axes in (left, right)]
    agree(lambda a, b: jnp.einsum(term, a, b), *arrays, tolerance=1e-12)


@pytest.mark.parametrize("batch", [(), (2,), (6,), (2, 3)])
def test_factorisations(agree, batch):
    rng = np.random.default_rng(1)
    a = rng.normal(size=(*batch, 4, 4))
    definite, right = a @ np.swapaxes(a, -1, -2) + np.eye(4), rng.normal(size=(*batch, 4, 2))

    def triangular(a, b, **kind):
        return [
            lax.linalg.triangular_solve(a, b, left_side=True, lower=lower, transpose_a=transposed, **kind)
            for lower in (True, False)
            for transposed in (True, False)
        ] + [lax.linalg.triangular_solve(a, jnp.swapaxes(b, -1, -2), lower=lower, **kind) for lower in (True, False)]

    def of_definite(a, b):
        values, vectors = jnp.linalg.eigh(a)
        again = (vectors * values[..., None, :]) @ jnp.swapaxes(vectors, -1, -2)
        return jnp.linalg.cholesky(a), jnp.linalg.solve(a, b), jnp.linalg.inv(a), values, again

    def of_any(a):
        left, values, right = jnp.linalg.svd(a)
        parts = jnp.linalg.svd(a, compute_uv=False), (left * values[..., None, :]) @ right
        return jnp.linalg.slogdet(a), lax.linalg.lu(a), jnp.linalg.qr(a), parts

    agree(of_definite, definite, right, tolerance=1e-9)
    agree(of_any, a, tolerance=1e-9)
    agree(lambda a, b: triangular(a, b) + triangular(a, b, unit_diagonal=True), definite, right, tolerance=1e-9)


def test_factorisations_that_fail_give_no_numbers(agree):
    indefinite, unknown = np.diag([1.0, -1.0]), np.full((2, 2), np.nan)
    agree(lambda a: jnp.linalg.cholesky(a), np.stack([indefinite, np.eye(2), unknown]))
    agree(lambda a: jnp.linalg.cholesky(a), indefinite)
    agree(lambda a: jnp.linalg.solve(a, jnp.ones(2)), np.zeros((2, 2)))


def test_the_inputs_are_left_alone():
    """Nothing is written into an array that came in, and nothing that goes out is a view of one."""
    with jax.enable_x64(True):
        given = np.arange(5.0)
        run = Interpreter(written(jax.make_jaxpr(lambda a: (a, a[1:], a.at[0].set(9.0), a.reshape(5, 1)))(given)))
        outputs = run(given)
        assert not any(np.shares_memory(given, out) for out in outputs)
        assert all(out.flags.writeable for out in outputs)
        np.testing.assert_array_equal(given, np.arange(5.0))

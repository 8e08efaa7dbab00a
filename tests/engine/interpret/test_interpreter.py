"""Programs: control flow, what is computed once or never, and what is left to the compiler."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from scipy import linalg

from cavity.engine.interpret import lapack
from cavity.engine.interpret.elementwise import ELEMENTWISE
from cavity.engine.interpret.graph import Graph
from cavity.engine.interpret.interpreter import Interpreter, can_interpret
from cavity.engine.interpret.writing import written


def test_loops_and_choices(agree):
    def function(a, n):
        total = lax.while_loop(lambda c: c[1] < n, lambda c: (c[0] + jnp.sin(a).sum(), c[1] + 1), (0.0, 0))
        none = lax.while_loop(lambda c: c > 1e9, lambda c: c + jnp.sum(a), 1.0)
        there = lax.scan(lambda c, x: (c + x, (c, x[::-1])), jnp.zeros(2), a.reshape(-1, 2))
        back = lax.scan(lambda c, x: (c * x, c), 1.0, a, reverse=True)
        which = lax.switch(n, [lambda x: x, lambda x: -x, lambda x: jnp.zeros_like(x)], a)
        return (
            total,
            none,
            there,
            back,
            which,
            lax.cond(n > 1, lambda: a, lambda: a * 2),
            lax.fori_loop(0, 3, jnp.add, a),
        )

    for n in (-1, 0, 1, 2, 7):
        agree(function, np.array([0.5, 1.5, -2.0, 3.0]), np.asarray(n))


def test_loops_side_by_side(agree):
    """A mapped loop ends with its last element, and those that ended before stay as they are."""

    def count(x):
        return lax.while_loop(lambda c: c[0] < 100.0, lambda c: (c[0] * x, c[1] + 1, c[2] + x), (1.0, 0, jnp.zeros(2)))

    agree(jax.vmap(count), np.array([1.5, 3.0, 200.0]))
    agree(jax.vmap(lambda n, x: lax.cond(n > 0, jnp.sin, jnp.cos, x)), np.array([0, 1, 2]), np.ones(3))


def test_calls(agree):
    @jax.custom_jvp
    def doubled(x):
        return 2 * x

    doubled.defjvp(lambda primals, tangents: (doubled(*primals), 2 * tangents[0]))

    @jax.custom_vjp
    def tripled(x):
        return 3 * x

    tripled.defvjp(lambda x: (3 * x, None), lambda _, g: (3 * g,))
    function = lambda x: (doubled(x), tripled(x), jax.jit(jnp.sin)(x), jax.checkpoint(jnp.exp)(x))  # noqa: E731
    agree(function, np.arange(3.0))
    agree(lambda x: jax.grad(lambda x: sum(jnp.sum(part**2) for part in function(x)))(x), np.arange(3.0))


def test_numbers_that_repeat_are_computed_once(agree):
    """A number spread over a plate stays one number until something asks for the plate."""
    closed = jax.make_jaxpr(lambda x: jnp.exp(jnp.broadcast_to(x, (1000, 1000))) + 1.0)(1.0)
    graph = Graph()
    (out,) = graph.inline(closed, [graph.value(())])
    assert graph.shapes[out] == ()
    agree(lambda x, a: (jnp.broadcast_to(x, (3, 4)) * a).sum(0) + jnp.full(4, x)[1], 2.0, np.ones((3, 4)))


def test_what_does_not_change_in_a_loop_is_computed_once():
    calls = []

    def counted(x):
        calls.append(x)
        return np.sin(x)

    closed = jax.make_jaxpr(lambda x: lax.fori_loop(0, 5, lambda i, c: c + jnp.sin(x), 0.0))(1.0)
    run = Interpreter(written(closed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ELEMENTWISE, "sin", lambda equation: counted)
        (found,) = Interpreter(written(closed))(1.0)
    assert len(calls) == 1
    assert found == pytest.approx(run(1.0)[0]) == pytest.approx(5 * np.sin(1.0))


def test_what_nobody_reads_is_not_computed():
    def function(x):
        jnp.linalg.cholesky(x)
        return x + 1.0

    run = Interpreter(written(jax.make_jaxpr(function)(np.eye(2))))
    np.testing.assert_array_equal(run(np.eye(2))[0], np.eye(2) + 1.0)
    assert len(run.body.turn.actions) == 1


def test_division_by_zero_is_no_news(recwarn):
    run = Interpreter(written(jax.make_jaxpr(lambda x: (1.0 / x, jnp.log(x), x / x))(np.zeros(2))))
    inverse, logarithm, ratio = run(np.zeros(2))
    np.testing.assert_array_equal([inverse, logarithm, ratio], np.outer([np.inf, -np.inf, np.nan], np.ones(2)))
    assert not recwarn.list


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: jax.pure_callback(np.sin, x, x), "pure_callback"),
        (lambda x: jax.debug.print("{}", x), "effects"),
        (lambda x: lax.map(lambda y: jax.pure_callback(np.sin, y, y), x), "pure_callback"),
        (lambda x: x * 1j, "complex128"),
        (lambda x: lax.reduce(x, 0.0, lambda a, b: a * b + 1.0, (0,)), "reduce"),
    ],
)
def test_what_is_unknown_is_told_before_anything_runs(function, reason):
    assert reason in can_interpret(jax.make_jaxpr(function)(np.ones(2)))


def test_what_is_known_is_told():
    assert can_interpret(jax.make_jaxpr(jnp.sin)(1.0)) is None


def test_what_is_written_is_plain_data():
    """Without jaxprs, which a process would have to trace again; equal equations are written once."""

    def function(x, a):
        total = lax.scan(lambda c, row: (c + jnp.sin(row) * x, c), a[0], a)
        return lax.cond(x > 0, lambda: total, lambda: (a[1], a)), jnp.sin(a[0]) + jnp.sin(a[1]) + jnp.sin(a[2])

    arguments = np.asarray(2.0), np.arange(12.0).reshape(3, 4)
    first, second = (pickle.dumps(written(jax.make_jaxpr(function)(*arguments))) for _ in range(2))
    assert first == second
    assert b"jaxpr" not in first
    turn = pickle.loads(first).listing.turn
    sines = [place for place, equation in enumerate(turn.equations) if equation.name == "sin"]
    assert len(sines) == 1
    assert [place for place, _, _ in turn.steps].count(sines[0]) == 3


def test_the_routines_of_lapack_are_scipys(monkeypatch):
    """Found without loading all of its linear algebra, and with it where they are not where they were."""
    a = np.array([[2.0, 0.5], [0.5, 1.0]])
    wanted = linalg.lapack.dpotrf(a, lower=1)[0], linalg.lapack.dgetrf(a)[0], linalg.blas.dtrsm(1.0, a, a)

    def found():
        return lapack.routine("potrf")(a, lower=1)[0], lapack.routine("getrf")(a)[0], lapack.routine("trsm")(1.0, a, a)

    np.testing.assert_array_equal(found(), wanted)
    monkeypatch.setattr(lapack.PathFinder, "find_spec", lambda *_: None)
    for cached in (lapack.routine, lapack._library):
        cached.cache_clear()
    np.testing.assert_array_equal(found(), wanted)
    assert lapack.routine("potrf") is linalg.lapack.dpotrf
    for cached in (lapack.routine, lapack._library):
        cached.cache_clear()

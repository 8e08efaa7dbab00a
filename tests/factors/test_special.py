"""Special functions against 45-digit tables, their derivatives, and their behaviour at the ends of the number line."""

from __future__ import annotations

import json
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from cavity.factors import special

TABLES = json.loads(Path(__file__).with_name("special_tables.json").read_text())
NAMES = list(TABLES)

# A zero that a formula reaches by cancellation has absolute accuracy: the error is relative to max(1, |value|).
ABSOLUTE_VALUE = {"lgamma", "digamma"}
ABSOLUTE_SLOPE = {"lgamma", "truncated_variance"}
VALUE_TOLERANCE = {"inverse_digamma": 1e-13}
# float32 keeps about 24 bits everywhere except where the argument itself is amplified (inverse_digamma at 30).
SINGLE_TOLERANCE = {"inverse_digamma": 1e-5}


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def table(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arguments, values, derivatives (the tables hold more digits than float64 needs)."""
    x, value, slope = zip(*TABLES[name], strict=True)
    return np.array([float.fromhex(a) for a in x]), np.array(value, float), np.array(slope, float)


def error(got, want: np.ndarray, absolute: bool) -> float:
    scale = np.maximum(1.0, np.abs(want)) if absolute else np.maximum(np.abs(want), np.finfo(float).tiny)
    return float(np.max(np.abs(np.asarray(got, float) - want) / scale))


def slopes(function, x):
    return jax.vmap(jax.grad(function))(jnp.asarray(x))


@pytest.mark.parametrize("name", NAMES)
def test_value_matches_the_table(name):
    x, value, _ = table(name)
    assert error(getattr(special, name)(x), value, name in ABSOLUTE_VALUE) < VALUE_TOLERANCE.get(name, 4e-15)


@pytest.mark.parametrize("name", NAMES)
def test_derivative_matches_the_table(name):
    x, _, slope = table(name)
    normal = (np.abs(slope) > np.finfo(float).tiny) | (slope == 0)
    assert error(slopes(getattr(special, name), x)[normal], slope[normal], name in ABSOLUTE_SLOPE) < 1e-13


@pytest.mark.parametrize("name", NAMES)
def test_single_precision(name):
    x, value, _ = table(name)
    limits = np.finfo(np.float32)
    inside = (np.abs(x) < limits.max) & (np.abs(value) < 1e37) & (np.abs(value) > 1e-36)
    if name in ("log", "lgamma", "digamma", "trigamma", "tetragamma"):
        inside &= x > 1e-36
    x32 = x[inside].astype(np.float32)
    got = jax.jit(getattr(special, name))(jnp.asarray(x32))
    assert got.dtype == jnp.float32
    # The reference is taken at the rounded argument: its rounding is not the function's error.
    want = np.asarray(getattr(special, name)(x32.astype(float)))
    assert error(got, want, name in ABSOLUTE_VALUE | {"log"}) < SINGLE_TOLERANCE.get(name, 2e-6)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("name", NAMES)
def test_no_nan_in_first_and_second_derivatives_at_extreme_arguments(name, dtype):
    domain_positive = name in ("log", "lgamma", "digamma", "trigamma", "tetragamma")
    if domain_positive:
        ends = [1e-6, 1.0, 1e6, 1e12]
    elif name == "inverse_digamma":
        ends = [-1e6, -2.22, 0.0, 30.0]
    elif name == "erfcx":
        ends = [-9.0, 0.0, 10.0, 1e8]
    else:
        ends = [-1e8, -1e4, -40.0, 0.0, 38.0, 1e4, 1e8]
    function = getattr(special, name)
    x = jnp.asarray(ends, dtype)
    first = slopes(function, x)
    second = slopes(jax.grad(function), x)
    assert first.dtype == dtype
    assert bool(jnp.isfinite(function(x)).all())
    assert not bool(jnp.isnan(first).any())
    assert not bool(jnp.isnan(second).any())


def test_second_derivatives_are_the_closed_forms():
    x = np.linspace(-30, 8, 77)
    h = np.asarray(special.hazard(x))
    np.testing.assert_allclose(
        slopes(jax.grad(special.log_ndtr), x), -h * np.asarray(special.truncated_mean(x)), rtol=1e-13
    )
    a = np.linspace(0.1, 20, 50)
    np.testing.assert_allclose(slopes(jax.grad(special.lgamma), a), special.trigamma(a), rtol=1e-14)
    np.testing.assert_allclose(slopes(jax.grad(jax.grad(special.lgamma)), a), special.tetragamma(a), rtol=1e-14)


def test_forward_and_reverse_mode_agree_under_jit():
    x = jnp.linspace(-5.0, 5.0, 11)

    def total(x):
        return (special.log_ndtr(x) + special.softplus(x) * special.hazard(x)).sum()

    tangent = jnp.ones_like(x)
    forward = jax.jit(lambda x: jax.jvp(total, (x,), (tangent,))[1])(x)
    assert float(forward) == pytest.approx(float(jax.jit(jax.grad(total))(x).sum()), rel=1e-13)


def test_shapes_and_integers():
    x = np.arange(1, 7).reshape(2, 3)
    for name in NAMES:
        function = getattr(special, name)
        got = function(x)
        assert got.shape == (2, 3)
        assert got.dtype == jnp.float64
        np.testing.assert_allclose(jax.vmap(function)(x), got, rtol=1e-15)
        np.testing.assert_allclose(function(2), got[0, 1], rtol=1e-15)


def test_infinities_and_nan():
    inf, nan = math.inf, math.nan
    expected = {
        "log": [(0.0, -inf), (inf, inf), (-1.0, nan), (nan, nan)],
        "sigmoid": [(-inf, 0.0), (inf, 1.0), (nan, nan)],
        "softplus": [(-inf, 0.0), (inf, inf), (nan, nan)],
        "log_sigmoid": [(-inf, -inf), (inf, 0.0), (nan, nan)],
        "ndtr": [(-inf, 0.0), (inf, 1.0), (nan, nan)],
        "log_ndtr": [(-inf, -inf), (inf, 0.0), (nan, nan)],
        "hazard": [(-inf, inf), (inf, 0.0), (nan, nan)],
        "truncated_mean": [(-inf, 0.0), (inf, inf), (nan, nan)],
        "truncated_variance": [(-inf, 0.0), (inf, 1.0), (nan, nan)],
        "erfcx": [(-inf, inf), (inf, 0.0), (-30.0, inf), (nan, nan)],
        "lgamma": [(0.0, inf), (inf, inf), (-0.5, nan), (nan, nan)],
        "digamma": [(0.0, -inf), (inf, inf), (-0.5, nan), (nan, nan)],
        "trigamma": [(0.0, inf), (inf, 0.0), (-0.5, nan), (nan, nan)],
    }
    for name, pairs in expected.items():
        x, want = map(np.array, zip(*pairs, strict=True))
        # trigamma's recurrence is bounded at 1e150, which leaves 4e-300 at infinity.
        np.testing.assert_allclose(getattr(special, name)(x), want, rtol=1e-15, atol=1e-290, err_msg=name)


def test_truncated_moments_keep_their_signs_far_out():
    x = -np.logspace(0, 8, 50)
    mean, variance = np.asarray(special.truncated_mean(x)), np.asarray(special.truncated_variance(x))
    assert (mean > 0).all()
    assert (variance > 0).all()
    assert (variance < mean**2).all()  # an exponential tail has equality in the limit


def test_inverse_digamma_round_trip():
    x = np.logspace(-6, 13, 200)
    np.testing.assert_allclose(special.inverse_digamma(special.digamma(x)), x, rtol=1e-13)


@pytest.mark.parametrize("d", [1, 2, 3, 7])
def test_multivariate_gamma(d):
    a = np.linspace(0.5 * (d - 1) + 0.1, 40, 25)
    want = [scipy.special.multigammaln(value, d) for value in a]
    np.testing.assert_allclose(special.multivariate_lgamma(a, d), want, rtol=1e-13, atol=1e-13)
    got = slopes(lambda value: special.multivariate_lgamma(value, d), a)
    np.testing.assert_allclose(got, special.multivariate_digamma(a, d), rtol=1e-13)
    want = sum(scipy.special.digamma(a - 0.5 * j) for j in range(d))
    np.testing.assert_allclose(special.multivariate_digamma(a, d), want, rtol=1e-12, atol=1e-13)

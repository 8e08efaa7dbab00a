"""Products of sticks: their logarithms, and the two bounds of the logarithm of one minus a product."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy import special

from cavity.factors import LINKS
from cavity.factors.families import Beta
from cavity.factors.links.cumprod import BOUNDS
from cavity.factors.moments import Unit

LINK = LINKS["cumprod"]
FIRST, SECOND = np.array([3.5, 1.2, 8.0]), np.array([2.25, 0.7, 1.5])


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def moments(bound):
    belief = Beta.from_parameters(a=jnp.asarray(FIRST), b=jnp.asarray(SECOND))
    found = jax.jit(lambda belief: LINK.moments(belief.moments(), bound))(belief)
    return np.asarray(found.log), np.asarray(found.log_complement)


def log_complements():
    """E log(1 - v_1 .. v_k) with 30 digits: the series of the logarithm is a hypergeometric function at one."""
    mpmath.mp.dps = 30
    for k in range(1, 4):
        first, second = ([mpmath.mpf(x) for x in part[:k]] for part in (FIRST, SECOND))
        lead = mpmath.fprod(a / (a + b) for a, b in zip(first, second, strict=True))
        lower = [2, *(a + b + 1 for a, b in zip(first, second, strict=True))]
        yield float(-lead * mpmath.hyper([1, 1, *(a + 1 for a in first)], lower, 1))


@pytest.mark.parametrize(("bound", "loose"), [("multinomial", 0.6), ("taylor", 0.05)])
def test_bounds_are_below_the_expectation(bound, loose):
    log, found = moments(bound)
    true = np.array(list(log_complements()))
    assert (found <= true + 1e-12).all()
    assert (found >= true - loose).all()
    assert log == pytest.approx(np.cumsum(special.digamma(FIRST) - special.digamma(FIRST + SECOND)), abs=1e-12)


def test_one_stick_is_exact():
    wanted = special.digamma(SECOND[0]) - special.digamma(FIRST[0] + SECOND[0])
    assert moments("multinomial")[1][0] == pytest.approx(wanted, abs=1e-12)


def test_the_series_without_its_remainder_is_no_lower_bound():
    """A control: the truncated sum alone is above the expectation."""
    true = special.digamma(SECOND[0]) - special.digamma(FIRST[0] + SECOND[0])
    r = np.arange(50)
    products = np.cumprod((FIRST[0] + r) / (FIRST[0] + SECOND[0] + r))
    assert -(products / (r + 1.0)).sum() > true
    assert moments("taylor")[1][0] < true


def test_known_sticks_have_the_logarithms_of_their_products():
    v = np.array([[0.9, 0.5, 0.2], [0.1, 0.99, 0.6]])
    found = jax.jit(lambda v: LINK.moments(Beta.moments_at(v)))(v)
    assert np.asarray(found.log) == pytest.approx(np.log(LINK.value(v)), abs=1e-12)
    assert np.asarray(found.log_complement) == pytest.approx(np.log1p(-np.cumprod(v, axis=1)), abs=1e-12)


@pytest.mark.parametrize("bound", BOUNDS)
def test_gradients_are_derivatives_and_finite(bound):
    @jax.jit
    def total(log, log_complement):
        return LINK.moments(Unit(log, log_complement), bound).log_complement.sum()

    point = Beta.from_parameters(a=jnp.asarray(FIRST), b=jnp.asarray(SECOND)).moments()
    gradient = jax.jit(jax.grad(total, (0, 1)))
    for number in range(2):
        for i in range(3):
            step = [1e-6 * np.eye(3)[i] * (number == part) for part in range(2)]
            up, down = (total(*(m + sign * s for m, s in zip(point, step, strict=True))) for sign in (1.0, -1.0))
            assert float(gradient(*point)[number][i]) == pytest.approx(float(up - down) / 2e-6, rel=1e-5, abs=1e-7)
    for first, second in (([1e-3, 1.0, 1e3], [1e3, 1e-3, 1.0]), ([1e5, 1e5, 1e5], [0.01, 0.01, 1e-3])):
        extreme = Beta.from_parameters(a=jnp.asarray(first), b=jnp.asarray(second)).moments()
        assert all(np.isfinite(part).all() for part in gradient(*extreme))

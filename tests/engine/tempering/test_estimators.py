"""Estimators on draws that are made here, ladders, exchanges and errors of correlated series."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from cavity.engine.tempering.annealing import weighed
from cavity.engine.tempering.estimators import _tail, bridge, error_of_mean, estimates, stepping_stone
from cavity.engine.tempering.ladder import equalised, first_ladder, rejections
from cavity.engine.tempering.replicas import _exchanged, round_trips

LADDER = np.array([0.0, 0.05, 0.15, 0.3, 0.6, 1.0])
TRUTH = norm.logpdf(3.0, 0.0, np.sqrt(1.25))


def drawn(seed, sweeps=400, copies=4):
    """Independent log likelihoods of one number 3.0 of variance 1/4 around a standard normal one, along the ladder."""
    random = np.random.default_rng(seed)
    precision = 1.0 + 4.0 * LADDER
    x = 12.0 * LADDER / precision + random.normal(size=(sweeps, copies, len(LADDER))) / np.sqrt(precision)
    return norm.logpdf(3.0, x, 0.5)


def test_estimators_are_right_within_errors_that_repeats_confirm():
    found = [estimates(drawn(seed), LADDER) for seed in range(200)]
    for name in ("bridge", "stepping stone", "thermodynamic integration"):
        scores = np.array([(one[name].value - TRUTH) / one[name].error for one in found])
        assert abs(scores.mean()) < 0.25
        assert 0.85 < scores.std() < 1.2


def test_an_error_that_forgets_the_correlation_would_be_seen():
    random = np.random.default_rng(0)
    noise, rho = random.normal(size=(200, 2000, 4)), 0.9
    series = np.zeros_like(noise)
    for i in range(1, noise.shape[1]):
        series[:, i] = rho * series[:, i - 1] + noise[:, i]
    errors = np.array([error_of_mean(one) for one in series])
    real = series.mean((1, 2)).std()
    assert errors.mean() == pytest.approx(real, rel=0.15)
    plain = series[0].std() / np.sqrt(series[0].size)
    assert plain < 0.4 * real


def test_copies_that_disagree_make_the_error_large():
    series = np.random.default_rng(0).normal(size=(500, 4)) + np.array([0.0, 0.0, 3.0, 3.0])
    assert error_of_mean(series) > 0.5


def test_a_constant_ratio_has_no_error():
    ratio = np.full((50, 2, len(LADDER)), -7.0)
    for found in estimates(ratio, LADDER).values():
        assert found.value == pytest.approx(-7.0, abs=1e-9)
        assert found.error < 1e-9


def test_impossible_draws_of_the_reference_leave_the_estimate():
    """A number above zero, given that it is above zero: half of the draws at zero have no likelihood."""
    random = np.random.default_rng(1)
    below = random.uniform(size=(4000, 4)) < 0.5
    ratio = np.stack([np.where(below, -np.inf, 0.0), np.zeros((4000, 4))], axis=-1)
    for estimator in (bridge, stepping_stone):
        found = estimator(ratio, np.array([0.0, 1.0]))
        assert found.value == pytest.approx(np.log(0.5), abs=4.0 * found.error)
    assert "thermodynamic integration" not in estimates(ratio, np.array([0.0, 1.0]))


def test_the_tail_is_that_of_a_hyperbola():
    def mean(b):
        return -3.0 - 2.0 / (b + 1e-3)

    ladder = np.array([0.0, 0.01, 0.1, 1.0])
    truth, _ = quad(mean, 0.0, 0.01, points=[1e-4, 1e-3])
    assert _tail(ladder, mean(ladder)) == pytest.approx(truth, rel=1e-9)


def test_a_ladder_is_moved_to_equal_rejections():
    rejected = rejections(drawn(7), LADDER)
    assert rejected.shape == (5,)
    assert np.all((rejected > 0.0) & (rejected < 1.0))
    moved = equalised(np.array([0.0, 0.2, 1.0]), np.array([0.6, 0.2]), 5)
    assert moved[0] == 0.0
    assert moved[-1] == 1.0
    assert np.all(np.diff(moved) > 0.0)
    assert np.count_nonzero(moved < 0.2 + 1e-9) == 4  # three quarters of the barrier lie there
    assert first_ladder(np.array([-1e6, -3e6, -2e6, -5e6, -np.inf]), 6)[1] < 1e-5


def test_round_trips_are_counted_from_end_to_end():
    up_and_down = np.array([[0, 1, 2], [1, 0, 2], [1, 2, 0], [1, 2, 0], [1, 0, 2], [0, 1, 2], [0, 1, 2]])
    assert round_trips(up_and_down[:, None, :]) == 1
    assert round_trips(up_and_down[:4, None, :]) == 0


@pytest.mark.parametrize("one_pair", [False, True])
def test_exchanges_keep_every_replica_once(one_pair):
    ratio = jnp.asarray(np.random.default_rng(0).normal(size=(50, 6)) * 3.0)
    order = np.asarray(_exchanged(jax.random.key(0), ratio, jnp.asarray(LADDER), jnp.asarray(1), one_pair))
    np.testing.assert_array_equal(np.sort(order, axis=1), np.tile(np.arange(6), (50, 1)))
    moved = order != np.arange(6)
    assert moved.any()
    if one_pair:
        assert moved.sum(1).max() == 2
    else:
        assert not moved[:, [0, 5]].any()  # the odd pairs are 1 and 2, 3 and 4


def test_exchanges_go_where_the_density_is_larger_and_never_to_what_is_impossible():
    ladder = jnp.asarray([0.0, 1.0])
    better, worse, lost = [5.0, -5.0], [-50.0, 50.0], [-np.inf, 0.0]
    order = _exchanged(jax.random.key(0), jnp.asarray([better, worse, lost]), ladder, jnp.asarray(0), False)
    np.testing.assert_array_equal(np.asarray(order), [[1, 0], [0, 1], [0, 1]])


def test_weights_of_annealing_have_an_effective_number():
    alike = weighed(np.full(100, -3.0))
    assert alike.estimate == pytest.approx((-3.0, 0.0))
    assert alike.effective == pytest.approx(100.0)
    one = weighed(np.array([0.0, -1000.0, -1000.0, -1000.0]))
    assert one.effective == pytest.approx(1.0)
    assert one.estimate.error == pytest.approx(np.sqrt(0.75))

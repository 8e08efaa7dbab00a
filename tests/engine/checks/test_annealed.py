"""Draws along a path to the posterior: right where one distribution is far from it, worth nothing if not arrived."""

import functools

import jax
import numpy as np
import pytest
from scipy import integrate, stats
from small_models import correlated

import cavity as cv
from cavity.engine.checks.annealed import ISLANDS, _behind, annealed_draws, particles_within
from cavity.engine.checks.reference import belief_draws, functions
from cavity.engine.density.log_density import density_of

close = np.testing.assert_allclose


def banana():
    """y = x^2 + e: two modes that are mirror images, and a ridge between them."""
    m = cv.Model("banana")
    x, e = m.random("x", cv.gaussian(0.0, variance=1.0)), m.random("e", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.gaussian(x * x + e, variance=0.05))
    return m, {"y": 1.0}


@functools.cache
def run(build, seed=0):
    m, data = build()
    density = density_of(posterior := cv.infer(m, data, method="vmp", accuracy="fast"))
    with jax.enable_x64(True):
        call = functions(density)
        start = belief_draws(density, call, posterior, 0, 1000)
        found = annealed_draws(density, call, start, seed, 512)
        return found, call.constrain(found.z)


def moments(found, values, power=1):
    return found.weighted.weights @ values**power


def test_a_gaussian_posterior_is_met():
    found, values = run(correlated)
    assert found.usable
    assert found.weighted.effective > 500
    precision = np.array([[11.0, 10.0], [10.0, 11.0]])
    covariance = np.linalg.inv(precision)
    z = np.column_stack([values["a"], values["b"]])
    close(found.weighted.weights @ z, covariance @ [10.0, 10.0], atol=0.06)
    close(np.cov(z.T, aweights=found.weighted.weights), covariance, atol=0.06)
    close(found.log_total, stats.norm.logpdf(1.0, 0.0, np.sqrt(2.1)), atol=0.15)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_evidence_of_many_numbers_is_that_of_the_closed_form(seed):
    """Hardly more particles than numbers: those that move on the scale of their own spread are nats off."""
    random = np.random.default_rng(3)
    games, players = 800, 100
    first = random.integers(0, players, games)
    other = (first + random.integers(1, players, games)) % players
    x = np.eye(players)[first] - np.eye(players)[other]
    y = x @ random.normal(size=players) * 0.7 + random.normal(size=games)
    m = cv.Model("differences")
    row = m.plate("row")
    w = m.random("w", cv.vector_gaussian(np.zeros(players), covariance=np.eye(players)))
    m.random("y", cv.gaussian(cv.dot(w, m.input("x", cv.vector(players), plates=row)), sd=1.0), plates=row)
    posterior = cv.infer(m, {"x": x, "y": y}, method="vmp", accuracy="fast")
    density = density_of(posterior)
    with jax.enable_x64(True):
        call = functions(density)
        found = annealed_draws(density, call, belief_draws(density, call, posterior, 0, 1000), seed, 256)
    truth = stats.multivariate_normal.logpdf(y, np.zeros(games), np.eye(games) + x @ x.T)
    assert abs(found.log_total - truth) < 3.0 * found.error
    assert found.error < 0.6


def test_the_error_of_the_evidence_counts_what_moves_fall_behind():
    """A random walk of 84 days, of known evidence: by the islands alone errors are 2.3 times what they tell."""
    days, random = np.arange(84), np.random.default_rng(0)
    y = np.cumsum(0.1 * random.normal(size=84)) + 0.4 * random.normal(size=84)
    m = cv.Model("random walk")
    day = m.plate("day")
    level = m.chain("level", over=day, first=cv.gaussian(0.0, sd=5.0), then=lambda before: cv.gaussian(before, sd=0.1))
    m.random("y", cv.gaussian(level, sd=0.4), plates=day)
    posterior = cv.infer(m, {"y": y})
    density = density_of(posterior)
    with jax.enable_x64(True):
        call = functions(density)
        start = belief_draws(density, call, posterior, 0, 1000)
        found = [annealed_draws(density, call, start, seed, 256) for seed in range(8)]
    covariance = 25.0 + 0.01 * np.minimum.outer(days, days) + 0.16 * np.eye(84)
    truth = stats.multivariate_normal.logpdf(y, np.zeros(84), covariance)
    off = np.array([(one.log_total - truth) / one.error for one in found])
    assert np.abs(off).max() < 3.0
    assert np.mean(off**2) < 3.0
    assert max(one.error for one in found) < 1.0


def test_particles_that_moves_leave_half_way_are_as_far_behind_as_they_went():
    random = np.random.default_rng(0)
    before = random.normal(size=100_000)
    after = 0.5 * before + np.sqrt(0.75) * random.normal(size=100_000) + 3.0
    close(_behind(before, after), 3.0, atol=0.1)
    close(_behind(before, random.normal(size=100_000) + 3.0), 0.0, atol=0.05)
    assert _behind(before, np.zeros(100_000)) == 0.0


def test_a_ridge_with_two_modes_is_met():
    found, values = run(banana)

    def density(x, power):
        return stats.norm.pdf(x) * stats.norm.pdf(1.0, x * x, np.sqrt(1.05)) * x**power

    total, square, fourth = (integrate.quad(density, -9, 9, args=(power,))[0] for power in (0, 2, 4))
    assert found.usable
    close(found.log_total, np.log(total), atol=0.15)
    close(moments(found, values["x"], 2), square / total, rtol=0.1)
    close(moments(found, values["x"], 4), fourth / total, rtol=0.2)
    close(moments(found, values["x"]), 0.0, atol=0.1)


def test_the_same_seed_draws_the_same_and_another_others():
    run.cache_clear()
    one, again, other = run(correlated)[0], run.__wrapped__(correlated)[0], run(correlated, 1)[0]
    np.testing.assert_array_equal(one.z, again.z)
    assert one.log_total == again.log_total
    assert np.abs(one.z - other.z).max() > 0.1
    close(one.log_total, other.log_total, atol=0.2)


def test_weights_sum_to_one_and_islands_share_them():
    found, _ = run(correlated)
    weights = found.weighted.weights.reshape(-1, ISLANDS, 512 // ISLANDS)
    close(weights.sum(), 1.0, rtol=1e-12)
    assert np.ptp(weights, axis=(0, 2)).max() < 1e-15  # within an island all count alike


@pytest.mark.parametrize("seed", [0, 1])
def test_what_has_not_arrived_is_worth_nothing(seed):
    """A funnel: its neck is so narrow, and its mouth so wide, that particles still spread at the end."""
    m = cv.Model("funnel")
    n = m.plate("n", 60)
    height = m.random("height", cv.gaussian(0.0, variance=16.0))
    m.random("x", cv.gaussian(0.0, sd=cv.exp(height)), plates=n)
    probe = m.random("probe", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.gaussian(m.randoms["x"] * probe, sd=5.0))
    found, _ = run(lambda: (m, {"y": np.zeros(60)}), seed)
    assert not found.usable
    assert found.weighted.effective == 0.0


def test_particles_are_as_many_as_are_affordable():
    m, data = correlated()
    density = density_of(cv.infer(m, data, method="vmp"))
    numbers = [particles_within(density, most) for most in (np.inf, 1e6, 0.0)]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] == 512
    assert numbers[-1] == 0


@pytest.mark.parametrize("build", [correlated, banana])
def test_trust_and_the_default_answer_are_made_of_usable_draws_alone(build):
    m, data = build()
    posterior = cv.infer(m, data)
    assert posterior.converged
    assert posterior.verdict.level == "good"

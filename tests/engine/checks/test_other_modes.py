"""Modes beside a fixed point are told: exchanged classes against enumeration, saddles, other starts."""

import itertools
import re

import numpy as np
import pytest
from scipy import special

import cavity as cv
from cavity.engine.checks.other_modes import other_modes
from cavity.engine.run.diagnosis import fixed_points, on_starts

TIMES = np.array([13.0, 17.0, 16.0, 12.0, 13.0, 12.0, 14.0, 18.0, 27.0, 32.0])
ALIKE = {"x": np.array([-3.0, -2.5, -2.0, -3.5, 2.0, 3.0, 2.5, 3.5, 2.2, -2.1])}


def kinds_of_days(usual, variance):
    """Two classes whose means have priors of their own, at `usual`; known noise and shares."""
    m = cv.Model("kinds of days")
    kind, day = m.plate("kind", 2), m.plate("day")
    centre = m.input("usual", cv.real, plates=kind)
    average = m.random("average", cv.gaussian(centre, variance=variance))
    z = m.random("z", cv.categorical(np.array([0.5, 0.5])), plates=day)
    m.random("time", cv.gaussian(average[z], variance=4.0))
    return m, {"usual": usual, "time": TIMES}


def exact_mode_odds(usual, variance):
    """log odds of the best assignment over the same with its classes exchanged, summed around each."""
    logs = {}
    for states in itertools.product((0, 1), repeat=len(TIMES)):
        total = 0.0
        for k in (0, 1):
            y = TIMES[np.array(states) == k]
            covariance = 4.0 * np.eye(len(y)) + variance
            off = y - usual[k]
            total -= 0.5 * (off @ np.linalg.solve(covariance, off) + np.linalg.slogdet(2.0 * np.pi * covariance)[1])
        logs[states] = total
    late = {z: log for z, log in logs.items() if z[-1] == 1 and z[0] == 0}
    early = {z: log for z, log in logs.items() if z[-1] == 0 and z[0] == 1}
    return special.logsumexp(list(late.values())) - special.logsumexp(list(early.values()))


@pytest.mark.parametrize("variance", [100.0, 150.0])
def test_classes_that_priors_hardly_tell_apart_are_two_modes(variance):
    model, data = kinds_of_days([15.0, 30.0], variance)
    posterior = cv.infer(model, data, accuracy="fast")
    ((level, remark),) = other_modes(posterior)
    assert level == "doubtful"
    assert lost(remark) == pytest.approx(exact_mode_odds([15.0, 30.0], variance), abs=0.15)
    assert posterior.verdict.level == "doubtful"


@pytest.mark.parametrize(("usual", "variance"), [([15.0, 30.0], 9.0), ([20.0, 20.0], 0.01)])
def test_one_mode_has_no_remark(usual, variance):
    """Priors that tell the classes apart; and priors so narrow that both classes are the same wherever they are."""
    model, data = kinds_of_days(usual, variance)
    assert list(other_modes(cv.infer(model, data, accuracy="fast"))) == []


def lost(remark):
    """The nats that a remark tells."""
    size, word = re.search(r"([\d.e-]+) nats (less|more)", remark).groups()
    return float(size) * (1.0 if word == "less" else -1.0)


def two_means(prior=None):
    m = cv.Model("two means")
    k, n = m.plate("k", 2), m.plate("n")
    share = m.random("share", cv.dirichlet(np.ones(2) if prior is None else np.array(prior)))
    mean = m.random("mean", cv.gaussian(0.0, variance=25.0), plates=k)
    z = m.random("z", cv.categorical(share), plates=n)
    m.random("x", cv.gaussian(mean[z], variance=1.0))
    return m


def test_classes_without_an_order_are_no_second_mode():
    assert list(other_modes(cv.infer(two_means(), ALIKE, accuracy="fast"))) == []


def test_an_unequal_prior_of_shares_makes_exchanged_classes_another_mode():
    """The bound of the exchanged classes is that of the mode but for what a sweep would still add to it."""
    posterior = cv.infer(two_means([3.0, 2.0]), {"x": np.append(ALIKE["x"], [2.4, 3.1])}, accuracy="fast")
    ((level, remark),) = other_modes(posterior)
    first = np.array([3.0, 2.0])
    counts = posterior["z"].mean.sum(0)
    exact = special.gammaln(first + counts).sum() - special.gammaln(first + counts[::-1]).sum()
    assert level == "doubtful"
    assert exact - 0.01 < lost(remark) < exact + 0.2


def test_classes_that_stay_alike_are_poor():
    """Equal observations, from which nothing can be told of classes."""
    posterior = cv.infer(two_means(), {"x": np.zeros(10)}, accuracy="fast")
    assert np.ptp(posterior["mean"].mean) < 1e-6
    assert [level for level, _ in other_modes(posterior)] == ["poor"]
    assert posterior.verdict.level == "poor"


def test_fixed_points_are_counted_from_the_best():
    evidence = np.array([-131.0, -120.3, -np.inf, -120.3001, 3e13, -131.0])
    assert fixed_points(evidence, -120.3) == [(-120.3, 2), (-131.0, 2)]
    told = on_starts(evidence, -120.3)
    assert told == (
        "The best of 6 starts, by log evidence of 2 fixed points: -120.3 (2 starts); -131 (2 starts); 2 starts did not "
        "end well."
    )
    assert on_starts(np.array([-1.0]), -1.0) == ""
    assert on_starts(np.array([-1.0, -1.0]), -1.0) == "All of 2 starts met the same log evidence."

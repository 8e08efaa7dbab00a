"""Maxima of joint densities: against closed forms, and optima of densities that are written anew."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import invgamma, norm

import cavity as cv

ROWS = np.array([-3.0, -2.5, -3.2, -2.8, 2.0, 2.4, 3.1, 2.9, 3.3])


def conjugate():
    """Four conjugate parts side by side."""
    m = cv.Model("conjugate")
    n = m.plate("n")
    p = m.random("p", cv.beta(2.0, 3.0))
    rate = m.random("rate", cv.gamma(shape=3.0, rate=2.0))
    shares = m.random("shares", cv.dirichlet(np.array([2.0, 3.0, 1.5])))
    mean = m.random("mean", cv.gaussian(1.0, variance=4.0))
    m.random("heads", cv.bernoulli(p), plates=n)
    m.random("counts", cv.poisson(rate), plates=n)
    m.random("class", cv.categorical(shares), plates=n)
    m.random("y", cv.gaussian(mean, variance=2.0), plates=n)
    m.let("odds", p / (1.0 - p))
    return m


CONJUGATE = {
    "heads": np.array([1, 0, 1, 1], bool),
    "counts": np.array([0, 2, 5, 1]),
    "class": np.array([0, 1, 1, 2]),
    "y": np.array([0.3, 2.0, -1.0, 4.0]),
}


def test_a_density_that_is_infinite_at_a_corner_has_no_mode():
    """p^(n - 1/2) (1 - p)^(-1/2) rounds to p = 1, where it is infinite; a class without a row does so too."""
    m = cv.Model("all heads")
    share = m.random("share", cv.beta(0.5, 0.5))
    m.random("heads", cv.bernoulli(share), plates=m.plate("n"))
    with pytest.raises(cv.UnsupportedError, match="not bounded: it rises without end as 'share'"):
        cv.map(m, {"heads": [True, True]})
    assert cv.map(m, {"heads": [True, False, True]})["share"] == pytest.approx(0.75, abs=1e-6)


@pytest.mark.slow
def test_shares_of_which_one_has_no_row_have_no_mode():
    m = cv.Model("three classes")
    shares = m.random("shares", cv.dirichlet(np.full(3, 0.5)))
    m.random("class", cv.categorical(shares), plates=m.plate("n"))
    with pytest.raises(cv.UnsupportedError, match="not bounded: it rises without end as 'shares'"):
        cv.map(m, {"class": [0, 0, 1]})


def test_conjugate_models_have_their_mode():
    found = cv.map(conjugate(), CONJUGATE, restarts=2)
    assert found.converged
    assert found.at_edge == ()
    assert found["p"] == pytest.approx((2.0 + 3.0 - 1.0) / (5.0 + 4.0 - 2.0), rel=1e-7)
    assert found["rate"] == pytest.approx((3.0 + 8.0 - 1.0) / (2.0 + 4.0), rel=1e-7)
    assert found["shares"] == pytest.approx((np.array([2.0, 3.0, 1.5]) - 1.0 + [1, 2, 1]) / (6.5 - 3.0 + 4.0), rel=1e-7)
    assert found["mean"] == pytest.approx((1.0 / 4.0 + 5.3 / 2.0) / (1.0 / 4.0 + 4.0 / 2.0), rel=1e-7)
    assert found["odds"] == pytest.approx(found["p"] / (1.0 - found["p"]), rel=1e-12)
    own = {name: found[name] for name in ("p", "rate", "shares", "mean")}
    assert found.log_density == pytest.approx(cv.log_density(conjugate(), CONJUGATE)(own), abs=1e-9)
    assert "rate" in found.summary()
    assert "the variables themselves" in found.explain()
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.converged = False  # type: ignore[misc]
    with pytest.raises(KeyError, match="no value of 'q'"):
        found["q"]


def test_without_priors_it_is_the_likelihood_and_with_jacobian_the_mode_of_coordinates():
    found = cv.map(conjugate(), CONJUGATE, flat=True, restarts=1)
    assert found["p"] == pytest.approx(0.75, rel=1e-7)
    assert found["rate"] == pytest.approx(2.0, rel=1e-7)
    assert found["shares"] == pytest.approx([0.25, 0.5, 0.25], rel=1e-7)
    assert found["mean"] == pytest.approx(5.3 / 4.0, rel=1e-7)
    one = cv.map(conjugate(), CONJUGATE, flat=["rate"], restarts=1)
    assert one["rate"] == pytest.approx(2.0, rel=1e-7)
    assert one["p"] == pytest.approx(4.0 / 7.0, rel=1e-7)
    moved = cv.map(conjugate(), CONJUGATE, jacobian=True, restarts=1)
    assert moved["rate"] == pytest.approx(11.0 / 6.0, rel=1e-7)
    assert moved["p"] == pytest.approx(5.0 / 9.0, rel=1e-7)


def mixture():
    m = cv.Model("mixture")
    n, k = m.plate("n"), m.plate("k", 2)
    share = m.random("share", cv.dirichlet(np.array([2.0, 2.0])))
    z = m.random("z", cv.categorical(share), plates=n)
    mean = m.random("mean", cv.gaussian(0.0, sd=3.0), plates=k)
    variance = m.random("variance", cv.inverse_gamma(shape=2.0, scale=1.0), plates=k)
    m.random("y", cv.gaussian(mean[z], variance=variance[z]))
    return m


def by_hand(theta, prior=True):
    """Minus the log density of the mixture at log odds, means and log variances, by SciPy's densities."""
    share, mean, variance = 1.0 / (1.0 + np.exp(-theta[0])), theta[1:3], np.exp(theta[3:])
    rows = norm.logpdf(ROWS[:, None], mean, np.sqrt(variance)) + np.log([share, 1.0 - share])
    own = np.log(6.0 * share * (1.0 - share)) + np.sum(norm.logpdf(mean, 0.0, 3.0))
    return -(np.sum(logsumexp(rows, axis=1)) + prior * (own + np.sum(invgamma.logpdf(variance, 2.0, scale=1.0))))


@pytest.mark.parametrize("prior", [True, False])
def test_a_mixture_has_the_optimum_of_a_density_written_anew(prior):
    """The first start, components all alike, leads to a saddle; from there the climb goes on."""
    exact = minimize(by_hand, np.array([0.0, -2.0, 2.0, 0.0, 0.0]), args=(prior,), tol=1e-12)
    found = cv.map(mixture(), {"y": ROWS}, flat=not prior, restarts=1)
    order = np.argsort(found["mean"])
    assert found.log_density == pytest.approx(-exact.fun, abs=1e-7)
    assert found["mean"][order] == pytest.approx(exact.x[1:3], rel=1e-4)
    assert found["variance"][order] == pytest.approx(np.exp(exact.x[3:]), rel=1e-4)
    assert found.summed == ("z",)


def schools():
    m = cv.Model("schools")
    n = m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, sd=5.0))
    scale = m.random("scale", cv.half_cauchy(5.0))
    effect = m.random("effect", cv.gaussian(mean, sd=scale), plates=n)
    m.random("y", cv.gaussian(effect, sd=m.input("sd", cv.positive, plates=n)))
    return m


SCHOOLS = {"y": np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), "sd": np.array([15.0, 10, 16, 11, 9, 11, 10, 18])}


def test_a_density_without_a_bound_is_refused_by_name():
    with pytest.raises(cv.UnsupportedError, match=r"not bounded: it rises without end as 'scale'"):
        cv.map(schools(), SCHOOLS)
    m = cv.Model("rate")
    rate = m.random("rate", cv.gamma(shape=0.5, rate=1.0))
    m.random("y", cv.gaussian(rate, sd=1.0))
    with pytest.raises(cv.UnsupportedError, match="not bounded: it rises without end as 'rate'"):
        cv.map(m, {"y": -1.0})
    inside = cv.map(m, {"y": -1.0}, jacobian=True, restarts=1)  # x^.5 exp(-x - (x + 1)^2 / 2)
    assert inside["rate"] == pytest.approx((-2.0 + np.sqrt(4.0 + 2.0)) / 2.0, rel=1e-6)


def test_starts_that_fall_onto_one_point_are_told_of_beside_a_maximum_of_likelihood():
    fallen = {"mean": [-3.2, 0.5], "variance": [1e-4, 8.0]}
    with pytest.raises(cv.UnsupportedError, match=r"not bounded: it rises without end as .*'variance'"):
        cv.map(mixture(), {"y": ROWS}, flat=True, start=fallen, restarts=1)
    with pytest.warns(cv.CavityWarning, match="rose without end: The density is not bounded.* 'variance'"):
        found = cv.map(mixture(), {"y": ROWS}, flat=True, start=fallen, restarts=3)
    assert np.isinf(found.starts[-1])
    assert found.log_density == pytest.approx(-by_hand_optimum(), abs=1e-7)


def by_hand_optimum():
    return minimize(by_hand, np.array([0.0, -2.0, 2.0, 0.0, 0.0]), args=(False,), tol=1e-12).fun


def logits():
    m = cv.Model("logits")
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    slope, intercept = m.random("slope", cv.gaussian(0.0, sd=10.0)), m.random("intercept", cv.gaussian(0.0, sd=10.0))
    m.random("y", cv.bernoulli(cv.logistic(slope * x + intercept)))
    return m


def test_separated_classes_have_no_maximum_and_equal_columns_no_single_one():
    x = np.array([-2.0, -1.0, 1.0, 2.0])
    with pytest.raises(cv.UnsupportedError, match="no maximum: it rises to its limit as 'slope'"):
        cv.map(logits(), {"x": x, "y": x > 0}, flat=True)
    assert cv.map(logits(), {"x": x, "y": x > 0}, restarts=1).converged  # by the prior
    with pytest.warns(cv.CavityWarning, match="not one point"):
        ridge = cv.map(logits(), {"x": np.ones(4), "y": x > 0}, flat=True, restarts=1)
    assert not ridge.converged
    assert ridge["slope"] + ridge["intercept"] == pytest.approx(0.0, abs=1e-6)


def test_a_maximum_at_an_edge_is_told():
    m = cv.Model("edge")
    p, n = m.random("p", cv.beta(1.0, 1.0)), m.plate("n")
    far = m.random("far", cv.gaussian(5.0, sd=1e-4))
    m.random("y", cv.bernoulli(p), plates=n)
    m.random("x", cv.gaussian(far, sd=1e-4))
    found = cv.map(m, {"y": np.zeros(5, bool), "x": 5.0})
    assert found.converged
    assert found.at_edge == ("p",)
    assert found["p"] == pytest.approx(0.0, abs=1e-6)
    assert found["far"] == pytest.approx(5.0, abs=1e-9)
    assert "'p' at the edge" in found.diagnosis


def test_parameters_below_random_effects_are_left_flat_by_name():
    """With effects integrated by hand the mean would be weighted; jointly it is the mean of the effects."""
    with pytest.raises(cv.UnsupportedError, match=r"nothing tells of 'mean'"):
        cv.map(schools(), SCHOOLS, flat=True)
    m = cv.Model("effects")
    n = m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, sd=1.0))
    effect = m.random("effect", cv.gaussian(mean, sd=2.0), plates=n)
    m.random("y", cv.gaussian(effect, sd=1.0))
    y = np.array([1.0, 4.0, 7.0])
    found = cv.map(m, {"y": y}, flat=["mean"], restarts=1)
    assert found["mean"] == pytest.approx(4.0, abs=1e-8)
    assert found["effect"] == pytest.approx((4.0 * y + 4.0) / 5.0, abs=1e-8)


def test_it_begins_where_asked_and_is_the_same_for_the_same_seed():
    posterior = cv.infer(mixture(), {"y": ROWS}, seed=0, accuracy="fast")
    ours = cv.map(mixture(), {"y": ROWS}, start=posterior, restarts=1)
    order = np.argsort(ours["mean"])
    np.testing.assert_array_equal(order, np.argsort(posterior["mean"].mean))
    one, same = (cv.map(mixture(), {"y": ROWS}, restarts=2, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one["mean"], same["mean"])
    there = cv.map(mixture(), {"y": ROWS}, start={"mean": [2.0, -2.0]}, restarts=1)
    assert there["mean"][0] > 0.0 > there["mean"][1]


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(cv.ModelError, match="restarts=0"):
        cv.map(mixture(), {"y": ROWS}, restarts=0)
    with pytest.raises(cv.ModelError, match="flat= names 'z', which is no continuous unknown"):
        cv.map(mixture(), {"y": ROWS}, flat=["z"])
    with pytest.raises(cv.DataError, match="start= names 'z'"):
        cv.map(mixture(), {"y": ROWS}, start={"z": 1})
    m = cv.Model("coin")
    p = m.random("side", cv.bernoulli(0.5))
    m.random("y", cv.bernoulli(cv.logistic(cv.where(p, -1.0, 1.0))))
    with pytest.raises(cv.UnsupportedError, match="discrete or integrated out"):
        cv.map(m, {"y": True})
    m = cv.Model("order")
    a = m.random("a", cv.gaussian(0.0, sd=1.0))
    m.random("y", cv.gaussian(a, sd=1.0))
    m.constrain(a > 0.0)
    with pytest.raises(cv.UnsupportedError, match="density jump"):
        cv.map(m, {"y": 1.0})

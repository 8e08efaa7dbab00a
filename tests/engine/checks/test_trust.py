"""The verdict on posteriors that are right, and on those that are known to be wrong; the check against NUTS."""

import functools
import sys

import jax
import numpy as np
import pytest
from scipy import stats
from small_models import SCHOOLS, correlated, schools

import cavity as cv
from cavity.engine.checks.psis import smoothed
from cavity.engine.checks.reference import belief_draws, functions, spread_of
from cavity.engine.checks.trust import _finding, _of_states
from cavity.engine.checks.trust import trust as trust_in
from cavity.engine.density.log_density import density_of

close = np.testing.assert_allclose
random = np.random.default_rng(11)


def eight_schools():
    return cv.infer(schools(), SCHOOLS, method="vmp")


def correlated_apart():
    return cv.infer(*correlated(), method="vmp")


def uncentred_line():
    m = cv.Model("line")
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    a, b = m.random("a", cv.gaussian(0.0, variance=100.0)), m.random("b", cv.gaussian(0.0, variance=100.0))
    m.random("y", cv.gaussian(a + b * x, variance=1.0))
    x = random.normal(size=30) + 5.0
    return cv.infer(m, {"x": x, "y": 1.0 + 2.0 * x + random.normal(size=30)}, method="vmp")


def conjugate():
    m = cv.Model("coin")
    n = m.plate("n")
    p = m.random("p", cv.beta(1.0, 1.0))
    m.random("y", cv.bernoulli(p), plates=n)
    return cv.infer(m, {"y": random.random(10) < 0.3})


def probit():
    m = cv.Model("probit")
    n = m.plate("n")
    x = m.input("x", cv.vector(3), plates=n)
    w = m.random("w", cv.vector_gaussian(np.zeros(3), covariance=100.0 * np.eye(3)))
    m.random("y", cv.bernoulli(cv.probit(cv.dot(w, x))))
    x = np.column_stack([np.ones(80), random.normal(size=(80, 2))])
    return cv.infer(m, {"x": x, "y": x @ [0.3, 1.0, -1.0] + random.normal(size=80) > 0})


def skills():
    m = cv.Model("skills")
    player, game = m.plate("player", 10), m.plate("game")
    winner, loser = (m.input(side, cv.index(player), plates=game) for side in ("winner", "loser"))
    skill = m.random("skill", cv.gaussian(0.0, variance=0.5), plates=player)
    margin = m.random("margin", cv.gaussian(skill[winner] - skill[loser], variance=1.0))
    m.constrain(margin > 0)
    first = random.integers(10, size=60)
    return cv.infer(m, {"winner": first, "loser": (first + random.integers(1, 10, size=60)) % 10})


@functools.cache
def judged(build):
    """The posterior and its verdict, which is compiled for seconds."""
    posterior = build()
    return posterior, posterior.trust()


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(eight_schools, marks=pytest.mark.slow),
        correlated_apart,
        pytest.param(uncentred_line, marks=pytest.mark.slow),
    ],
)
def test_it_warns(build):
    _, trust = judged(build)
    assert trust.level == "poor"
    assert not trust.ok
    assert min(finding.ratio for finding in trust.findings) < 0.7
    assert "too narrow" in trust.verdict
    assert "posterior.check()" in trust.verdict


@pytest.mark.parametrize(
    "build", [conjugate, pytest.param(probit, marks=pytest.mark.slow), pytest.param(skills, marks=pytest.mark.slow)]
)
def test_it_does_not_warn(build):
    trust = build().trust()
    assert trust.ok, trust
    assert all(abs(np.log(finding.ratio)) < 0.1 and finding.shift < 0.15 for finding in trust.findings)


def test_it_measures_the_known_error_of_a_mean_field():
    """a and b have variance 11/21 each and correlation -10/11; the mean field gives them 1/11."""
    _, found = judged(correlated_apart)
    wanted = np.sqrt((1 / 11) / (11 / 21))
    for finding in found.findings:
        close(finding.ratio, wanted, rtol=0.05)
        close(finding.correlation, -10 / 11, atol=0.03)
    assert {f.name: f.partner for f in found.findings} == {"a": "b", "b": "a"}


def test_equal_weights_show_that_beliefs_are_the_posterior():
    posterior = conjugate()
    assert "verdict: good: exact." in posterior.summary()
    assert posterior.trust().pareto_k == -np.inf
    assert "verdict: good: means and sds agree" in posterior.summary()


def test_what_cannot_be_checked_says_why():
    m = cv.Model("counts")
    n = m.random("n", cv.poisson(5.0))
    m.random("y", cv.binomial(n, 0.5))
    found = cv.infer(m, {"y": 3}, accuracy="fast").trust()
    assert found.level == "unchecked"
    assert "'n' counts and is not observed" in found.verdict


def test_a_process_is_checked():
    m = cv.Model("process")
    n = m.plate("n")
    x = m.input("x", cv.vector(1), plates=n)
    f = m.random("f", cv.gaussian_process(x, cv.kernels.squared_exponential(scale=1.0)))
    m.random("y", cv.gaussian(f, variance=0.1))
    posterior = cv.infer(m, {"x": [[0.0], [1.0]], "y": [0.2, 0.5]}, accuracy="fast")
    assert posterior.trust().level == "good"
    close(posterior.trust().findings[0].ratio, 1.0, atol=0.05)


def test_hidden_states_with_known_parameters_are_good():
    m = cv.Model("hidden Markov")
    t, k = m.plate("t"), m.plate("k", 2)
    step, level = m.input("step", cv.simplex(2), plates=k), m.input("level", cv.real, plates=k)
    state = m.chain("state", over=t, first=cv.categorical([0.5, 0.5]), then=lambda last: cv.categorical(step[last]))
    m.random("y", cv.gaussian(level[state], variance=0.5))
    y = np.concatenate([np.random.default_rng(1).normal(mean, 0.7, 15) for mean in (0.0, 2.0, 0.0)])
    found = cv.infer(m, {"step": [[0.9, 0.1], [0.2, 0.8]], "level": [0.0, 2.0], "y": y}).trust()
    assert found.level == "good"
    assert {f.name: f.witness for f in found.findings} == {"state": "enumeration"}
    assert max(f.shift for f in found.findings) < 1e-9


def test_what_is_all_discrete_is_compared_with_the_sum_over_its_states():
    m = cv.Model("two coins")
    first, second = m.random("first", cv.bernoulli(0.5)), m.random("second", cv.bernoulli(0.5))
    m.let("both", first & second)
    posterior = cv.infer(m, {"both": False})
    found = posterior.trust()
    assert found.level == "good"
    assert {f.name: f.witness for f in found.findings} == {"first": "enumeration", "second": "enumeration"}
    assert max(f.shift for f in found.findings) < 1e-9
    wrong = {name: posterior[name] for name in posterior}
    wrong["first"] = cv.infer(m, {"second": True, "both": False})["first"]  # P(first) is 0, not 1/3
    worst = _of_states(wrong, "first", np.array([2 / 3, 1 / 3]), 0.0, "enumeration")
    close(worst.shift, 1 / 3)
    assert worst.level == "poor"


def test_hard_constraints_are_compared_by_draws():
    """A half-Gaussian product: exact moments by quadrature are those that EP keeps."""
    m = cv.Model("bounds")
    a = m.random("a", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.gaussian(a, variance=1.0))
    m.constrain(a > 0.0, name="positive")
    found = cv.infer(m, {"y": 0.5}).trust()
    assert found.level == "good"
    assert [f.witness for f in found.findings] == ["weighted draws"]


def bounded():
    """Gaussian beliefs of variables between bounds, some of whose mass lies beyond them."""
    m = cv.Model()
    r = m.random("r", cv.truncated_gaussian(0.0, 1.0, -0.5, 1.5))
    u = m.random("u", cv.uniform(-2.0, 3.0), plates=m.plate("n", 2))
    m.random("y", cv.gaussian(r + u, variance=1.0))
    return cv.infer(m, {"y": [0.3, 0.4]}, method="ep")


def vast():
    """A prior of a scale so vast that most of its draws are of no use."""
    m = cv.Model()
    mu = m.random("mu", cv.gaussian(0.0, variance=1e6))
    sigma = m.random("sigma", cv.half_cauchy(1e9))
    m.random("y", cv.gaussian(mu, sd=sigma), plates=m.plate("n"))
    return cv.infer(m, {"y": 3.0 + random.normal(size=40)})


@pytest.mark.parametrize("build", [bounded, pytest.param(vast, marks=pytest.mark.slow)])
def test_beliefs_with_mass_outside_the_support(build):
    _, trust = judged(build)
    assert trust.ok, trust
    assert {f.witness for f in trust.findings} == {"weighted draws"}


def test_the_moments_of_bounded_variables_are_the_true_ones():
    """The reference of `bounded` against a grid over r, given which both elements of u are truncated Gaussians."""
    posterior, trust = judged(bounded)
    r = np.linspace(-0.5, 1.5, 4001)
    low, high = -2.0, 3.0
    mass = np.exp(stats.norm.logpdf(r))
    for y in (0.3, 0.4):
        mass = mass * (stats.norm.cdf(high, y - r) - stats.norm.cdf(low, y - r))
    mass /= mass.sum()
    sd = np.sqrt(mass @ (r - mass @ r) ** 2)
    finding = next(f for f in trust.findings if f.name == "r")
    close(finding.shift, abs(posterior["r"].mean - mass @ r) / sd, atol=0.05)
    close(finding.ratio, posterior["r"].sd / sd, rtol=0.03)


def test_a_belief_outside_its_support_is_not_checked():
    shifted = cv.Model()
    r = shifted.random("r", cv.gaussian(0.0, variance=100.0))
    shifted.random("y", cv.gaussian(r, variance=1.0))
    posterior, _ = judged(bounded)
    density, beliefs = density_of(posterior), {"u": posterior["u"], "r": cv.infer(shifted, {"y": 30.0})["r"]}
    with jax.enable_x64(True), pytest.raises(cv.UnsupportedError, match="No draw of the belief of 'r' lies inside"):
        belief_draws(density, functions(density), beliefs, 0)


def test_what_failed_is_unchecked():
    m = cv.Model()
    x = m.random("x", cv.gaussian(0.0, variance=1.0))
    m.constrain(x > 1)
    m.constrain(x < -1)
    with pytest.warns(cv.CavityWarning, match="contradict each other"):
        posterior = cv.infer(m, {})
    assert posterior.code == "contradiction"
    assert posterior.trust().level == "unchecked"
    assert posterior.diagnosis in posterior.trust().verdict


@pytest.mark.slow
def test_curvature_does_not_vouch_for_other_modes():
    """A gate under a mean field leaves out its rarer state, of which the curvature at the beliefs says nothing."""
    m = cv.Model()
    first = m.random("first", cv.gaussian(-0.49, variance=0.456))
    on = m.random("on", cv.bernoulli(cv.probit(first)))
    second = m.random("second", cv.gaussian(first, variance=0.334))
    cases = cv.switch(on, cv.gaussian(-0.96, variance=0.509), cv.gaussian(2.0 * second, variance=0.231))
    m.random("y", cases, plates=m.plate("n"))
    posterior = cv.infer(m, {"y": [-2.06, -1.71, -2.11]}, accuracy="fast")
    cheap = trust_in(posterior, None, most=0.0)
    assert cheap.reference_k > 0.7
    assert cheap.level == "doubtful"
    assert "The states of on may add modes" in cheap.verdict + str(cheap)
    # Draws along a path know both.
    found = next(finding for finding in posterior.trust().findings if finding.name == "on")
    exact = cv.infer(m, {"y": [-2.06, -1.71, -2.11]}, accuracy="best")["on"].mean
    close(found.shift, abs(posterior["on"].mean - exact), atol=0.02)


def test_what_is_no_number_is_poor():
    mean_only = _finding("a", "", np.array([np.nan]), np.ones(1), (0.1, 0.5), (1.1, 1.5), 0.0)
    assert mean_only.level == "poor"
    with pytest.raises(cv.UnsupportedError, match="no finite second derivatives"):
        spread_of(np.array([[np.nan]]))


@pytest.mark.parametrize("shape", [0.2, 0.5, 0.9])
def test_the_pareto_shape_is_recovered(shape):
    """The mean over 40 samples; the weak prior pulls by at most 10 / 200 of the distance to a half."""
    found = [smoothed(np.log1p(stats.genpareto.rvs(shape, size=4000, random_state=i))).k for i in range(40)]
    close(np.mean(found), shape, atol=0.06)


def test_smoothed_weights():
    weights = smoothed(np.zeros(100))
    assert weights.k == -np.inf
    assert weights.effective == 100.0
    close(smoothed(np.append(np.full(99, -np.inf), 0.0)).weights[-1], 1.0)
    assert smoothed(np.full(100, -np.inf)).k == np.inf


@pytest.mark.slow
def test_nuts_agrees_with_an_exact_posterior_and_not_with_a_mean_field():
    pytest.importorskip("numpyro")
    m = cv.Model("sum")
    w = m.random("w", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)))
    m.random("y", cv.gaussian(cv.dot(w, np.ones(2)), variance=0.1))
    check = cv.infer(m, {"y": 1.0}).check(draws=800, chains=2)
    assert check.ok, check
    assert check.divergences == 0
    assert check.samples["w"].shape == (2, 800, 2)
    assert check.rows[0].ess.min() > 200
    assert "agrees with NUTS" in str(check)
    wrong = correlated_apart().check(draws=800, chains=2)
    assert not wrong.ok
    assert "differs from NUTS in 'a'" in wrong.verdict
    close(wrong.rows[0].ratio[0], np.sqrt((1 / 11) / (11 / 21)), rtol=0.15)


def test_wrong_arguments_of_check(monkeypatch):
    posterior = conjugate()
    with pytest.raises(cv.ModelError, match="against='hmc'"):
        posterior.check("hmc")
    with pytest.raises(cv.ModelError, match="draws=0"):
        posterior.check(draws=0)
    monkeypatch.setitem(sys.modules, "numpyro", None)  # its parts may be loaded already by another test
    with pytest.raises(cv.UnsupportedError, match=r"pip install 'cavity\[mcmc\]'"):
        posterior.check()

"""The verdict that comes unasked: right on what is exact, alarmed by what is wrong, with advice that can be taken."""

import numpy as np
import pytest
from small_models import correlated

import cavity as cv
from cavity.engine.answers.verdict import LEVELS
from cavity.engine.checks.remedies import remedy


def conjugate():
    m = cv.Model("coin")
    p = m.random("p", cv.beta(1.0, 1.0))
    m.random("y", cv.bernoulli(p), plates=m.plate("n"))
    return m, {"y": np.array([True, False, True])}


def regression():
    m = cv.Model("line")
    x = m.input("x", cv.vector(2), plates=m.plate("n"))
    w = m.random("w", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)))
    m.random("y", cv.gaussian(cv.dot(w, x), variance=1.0))
    return m, {"x": np.array([[1.0, 2.0], [0.0, 1.0]]), "y": [1.0, 2.0]}


def interval():
    """EP's mean and variance of one sharp interval are exact."""
    m = cv.Model("interval")
    x = m.random("x", cv.gaussian(0.0, variance=1.0))
    m.random("inside", cv.between(x, 0.2, 1.0))
    return m, {"inside": True}


def two_explanations():
    """A selector that is taken apart from the two means that it chooses between."""
    m = cv.Model("two explanations")
    which = m.random("which", cv.bernoulli(0.5))
    a, b = m.random("a", cv.gaussian(0.0, variance=4.0)), m.random("b", cv.gaussian(0.0, variance=4.0))
    m.random("y", cv.switch(which, cv.gaussian(a, variance=1.0), cv.gaussian(b, variance=4.0)), plates=m.plate("n"))
    return m, {"y": np.array([1.0, 3.0, -0.5])}


@pytest.mark.parametrize("build", [conjugate, regression, interval])
def test_what_is_exact_is_said_to_be_at_no_cost(build):
    posterior = cv.infer(*build())
    assert posterior.verdict.sentence == "good: exact."
    assert posterior.verdict.ok
    assert posterior._trust is None  # nothing was compared
    assert repr(posterior).endswith("good: exact>")
    assert "\nverdict: good: exact." in posterior.summary()


def test_a_sharp_interval_is_compared_by_draws_not_by_curvature():
    found = cv.infer(*interval()).trust()
    assert found.level == "good"
    assert {finding.witness for finding in found.findings} == {"weighted draws"}


def test_a_mean_field_is_told_of():
    posterior = cv.infer(*correlated(), method="vmp")
    verdict = posterior.verdict
    assert verdict.level == "poor"
    assert not verdict.ok
    assert "'a' (sds 0.4" in verdict.sentence
    assert "leave method= out" in verdict.sentence
    assert "verdict: poor: 'a'" in posterior.summary()
    assert repr(posterior).endswith("; poor>")


def exact_choice(y):
    """P(which) of `two_explanations`: the means integrated out."""

    def log_density(variance):
        covariance = variance * np.eye(len(y)) + 4.0
        return -0.5 * (np.linalg.slogdet(covariance)[1] + y @ np.linalg.solve(covariance, y))

    return 1.0 / (1.0 + np.exp(log_density(4.0) - log_density(1.0)))


def test_a_selector_that_was_summed_out_is_compared():
    model, data = two_explanations()
    posterior = cv.infer(model, data, accuracy="fast")
    exact = exact_choice(data["y"])
    off = abs(float(posterior["which"].mean) - exact)
    assert off > 0.1  # else the test shows nothing
    finding = next(f for f in posterior.trust().findings if f.name == "which")
    assert finding.discrete
    assert finding.level == "poor"
    np.testing.assert_allclose(finding.shift, off, atol=0.05)
    right = cv.infer(model, data, integrate=["which"])
    np.testing.assert_allclose(float(right["which"].mean), exact, atol=1e-6)
    assert right.verdict.sentence == "good: exact at every point of a grid over which."


@pytest.mark.parametrize(
    ("build", "options"), [(two_explanations, {"accuracy": "fast"}), (correlated, {"method": "vmp"})]
)
def test_advice_can_be_taken_and_helps(build, options):
    model, data = build()
    posterior = cv.infer(model, data, **options)
    advice = remedy(posterior)
    if "integrate=" in advice:
        names = advice.split("integrate=[")[1].split("]")[0].replace("'", "").split(", ")
        better = cv.infer(model, data, integrate=names)
    else:
        assert "leave method= out" in advice
        better = cv.infer(model, data)
    assert LEVELS.index(better.verdict.level) < LEVELS.index(posterior.verdict.level)


def test_classes_that_are_all_alike_are_named():
    m = cv.Model("two topics")
    k, n = m.plate("k", 2), m.plate("n")
    chances = m.random("chances", cv.dirichlet(np.ones(2)))
    rate = m.random("rate", cv.beta(1.0, 1.0), plates=k)
    z = m.random("z", cv.categorical(chances), plates=n)
    m.random("y", cv.bernoulli(rate[z]))
    posterior = cv.infer(m, {"y": np.arange(12) % 3 == 0}, accuracy="fast")
    if np.ptp(posterior["rate"].mean) < 1e-3 * posterior["rate"].sd.max():
        assert posterior.verdict.level == "poor"
        assert "All classes of 'z' are alike" in posterior.verdict.sentence
    else:  # a start that tells them apart
        assert "alike" not in posterior.verdict.sentence


def noise(prior, data):
    """A centre that is known, so that the scale alone is to be told."""
    m = cv.Model("noise")
    scale = m.random("scale", prior)
    m.random("y", cv.gaussian(0.0, sd=scale), plates=m.plate("n"))
    return cv.infer(m, {"y": data})


WIDE = 20.0 * np.array([-1.2, -0.4, 0.1, 0.9, 1.4, -0.8, 0.3, -0.2])


@pytest.mark.parametrize("prior", [cv.half_normal(1.0), cv.gamma(2.0, 2.0)])
def test_a_scale_in_the_tail_of_its_prior_is_named_and_alarms_nobody(prior):
    """The answer is exact; it is the prior that does not fit."""
    verdict = noise(prior, WIDE).verdict
    assert verdict.level == "good"
    assert "In the tail of its prior: 'scale' (median" in verdict.sentence
    assert "% of the prior lies above)" in verdict.sentence


@pytest.mark.parametrize("prior", [cv.half_normal(30.0), cv.half_cauchy(1.0), cv.gamma(0.001, 0.001)])
def test_a_vague_prior_has_no_tail_to_run_into(prior):
    assert "tail" not in noise(prior, WIDE).verdict.sentence


def test_a_scale_below_what_its_prior_allows_is_named():
    verdict = noise(cv.log_normal(3.0, variance=0.25), 0.01 * WIDE).verdict
    assert "'scale' (median" in verdict.sentence
    assert "of the prior lies below)" in verdict.sentence


@pytest.mark.slow
def test_a_scale_that_is_not_told_from_zero_is_named_where_beliefs_are_off():
    m = cv.Model("groups")
    group = m.plate("group")
    centre, spread = m.random("centre", cv.gaussian(0.0, variance=25.0)), m.random("spread", cv.half_normal(5.0))
    effect = m.random("effect", cv.gaussian(centre, variance=spread**2), plates=group)
    m.random("y", cv.gaussian(effect, sd=1.0), plates=group)
    data = {"y": np.array([0.1, -0.2, 0.3, 0.0])}
    told = cv.infer(m, data, accuracy="fast").verdict
    assert told.level == "doubtful"
    assert "Not told from zero by the data: spread." in told.sentence
    right = cv.infer(m, data).verdict
    assert right.level == "good"
    assert "zero" not in right.sentence


def test_what_ep_projects_is_integrated_where_that_is_advised():
    """A line that separates the classes: the posterior is skewed, and EP's sd of it too small."""
    x = np.linspace(-2.0, 2.0, 24)
    m = cv.Model("separated")
    slope, level = (m.random(name, cv.gaussian(0.0, sd=8.0)) for name in ("slope", "level"))
    score = level + slope * m.input("x", cv.real, plates=m.plate("n"))
    m.random("y", cv.bernoulli(cv.logistic(score)))
    data = {"x": x, "y": x > 0.3}
    plain = cv.infer(m, data)
    assert plain.verdict.level == "doubtful"
    assert "accuracy='best'" in str(plain.verdict)
    best = cv.infer(m, data, accuracy="best")
    assert best.verdict.level == "good"
    assert best["slope"].sd > 1.1 * plain["slope"].sd

"""Cases that once gave a wrong answer, a false alarm or a raw error."""

import numpy as np
import pytest

import cavity as cv


def close(found, expected, **tolerances):
    np.testing.assert_allclose(found, expected, **tolerances)


def test_news_that_reaches_a_site_late_is_not_divergence():
    """The site of b has nothing to say until the gated factor has spoken: residuals start at zero and rise."""
    m = cv.Model()
    g = m.random("g", cv.gaussian(0.0, variance=4.0))
    b = m.random("b", cv.bernoulli(cv.probit(g)))
    m.random("c", cv.switch(b, cv.bernoulli(0.9), cv.bernoulli(0.2)))
    posterior = cv.infer(m, {"c": True})
    assert posterior.converged
    close(posterior["b"].mean, 0.45 / 0.55, rtol=1e-9)
    close(posterior.log_evidence, np.log(0.55), rtol=1e-9)


def test_beliefs_on_the_scale_of_populations():
    """Means of Gaussian belief propagation are exact also where precisions are 1e-16."""
    m = cv.Model()
    n, g = m.plate("n", 2), m.plate("g")
    index = m.input("index", cv.index(n), plates=g)
    a = m.random("a", cv.gaussian(0.0, variance=1e16), plates=n)
    b = m.random("b", cv.gaussian(0.0, variance=1e16))
    m.random("x", cv.gaussian(a[index], variance=1e14))
    m.random("z", cv.gaussian(a[index] + b, variance=1e14))
    x, z = np.array([1e8, 2e8]), np.array([3e8, 5e8])
    posterior = cv.infer(m, {"index": [0, 1], "x": x, "z": z}, tolerance=1e-9)
    rows = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1]])
    exact = np.linalg.solve(np.eye(3) / 1e16 + rows.T @ rows / 1e14, rows.T @ np.r_[x, z] / 1e14)
    close(posterior["a"].mean, exact[:2], rtol=1e-6)
    close(posterior["b"].mean, exact[2], rtol=1e-6)


def real_contradiction():
    m = cv.Model()
    a = m.random("a", cv.gaussian(0.0, variance=1.0))
    m.constrain(a > 1)
    m.constrain(a < 0)
    return m


def boolean_contradiction():
    m = cv.Model()
    a, b = (m.random(name, cv.bernoulli(0.3)) for name in "ab")
    m.constrain(a & b)
    m.constrain(~a)
    return m


@pytest.mark.parametrize("model", [real_contradiction, boolean_contradiction])
def test_constraints_that_exclude_each_other(model):
    with pytest.warns(cv.CavityWarning, match="contradict each other"):
        posterior = cv.infer(model(), {})
    assert not posterior.converged
    assert posterior.code == "contradiction"
    assert posterior.log_evidence == -np.inf
    assert "contradict" in posterior.diagnosis


def test_data_that_contradict_an_expression():
    m = cv.Model()
    a, b = (m.random(name, cv.bernoulli(0.5)) for name in "ab")
    m.let("both", a & b)
    with pytest.raises(cv.DataError, match=r"contradict 'both'.*observed as 0"):
        cv.infer(m, {"a": True, "b": True, "both": False})
    close(cv.infer(m, {"a": True, "b": True, "both": True}).log_evidence, np.log(0.25), rtol=1e-12)


def test_a_certain_prior():
    m = cv.Model()
    a, b = m.random("a", cv.bernoulli(1.0)), m.random("b", cv.bernoulli(0.3))
    m.let("o", a & b)
    posterior = cv.infer(m, {"o": True})
    assert posterior.converged
    close([posterior["a"].mean, posterior["b"].mean], 1.0, rtol=1e-12)
    close(posterior.log_evidence, np.log(0.3), rtol=1e-9)


def test_dimensions_that_differ():
    m = cv.Model()
    with pytest.raises(cv.ModelError, match=r"'q'.*2 coordinates.*3 x 3"):
        m.random("q", cv.vector_gaussian(np.zeros(2), covariance=np.eye(3)))


def test_missing_entries_are_predicted_and_the_others_points():
    m = cv.Model()
    n = m.plate("n")
    a = m.random("a", cv.gaussian(0.0, variance=10.0))
    m.random("y", cv.gaussian(a, variance=1.0), plates=n)
    marginal = cv.infer(m, {"y": [1.0, np.nan, 2.0]})["y"]
    variance = 1 / (0.1 + 2)
    close(marginal.mean, [1.0, 3.0 * variance, 2.0], rtol=1e-9)
    close(marginal.sd, [0.0, np.sqrt(1 + variance), 0.0], rtol=1e-9)
    assert marginal.sample(0, (5,)).shape == (5, 3)
    close(marginal.interval(0.9)[0][[0, 2]], [1.0, 2.0])


@pytest.mark.parametrize("variance", [1e4, pytest.param(1e6, marks=pytest.mark.slow), 1e8])
def test_logistic_under_a_very_vague_prior(variance):
    """By symmetry the evidence is one half, and the mean nearly that of a half normal."""
    m = cv.Model()
    w = m.random("w", cv.gaussian(0.0, variance=variance))
    m.random("y", cv.bernoulli(cv.logistic(w)))
    posterior = cv.infer(m, {"y": True})
    close(posterior.log_evidence, np.log(0.5), atol=1e-9)
    close(posterior["w"].mean, np.sqrt(2 * variance / np.pi), rtol=1e-3)


@pytest.mark.parametrize(
    "options",
    [{"seed": -1}, {"seed": None}, {"tolerance": "a"}, {"method": ["ep"]}, {"sizes": [("n", 3)]}, {"restarts": 0}],
)
def test_options_without_meaning(options):
    m = cv.Model()
    m.random("a", cv.bernoulli(0.5))
    with pytest.raises(cv.ModelError, match=r"=|seed"):
        cv.infer(m, {}, **options)


def test_a_builder_tells_the_name_of_the_variable():
    m = cv.Model()
    with pytest.raises(cv.ModelError, match=r"'speed'.*precision must be positive.*found -1"):
        m.random("speed", cv.gaussian(0.0, precision=-1.0))


def test_explain_tells_of_loops():
    m = cv.Model()
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    a, b = (m.random(name, cv.gaussian(0.0, variance=100.0)) for name in "ab")
    m.random("y", cv.gaussian(a + b * x, variance=1.0))
    text = cv.explain(m, {"x": [1.0, 2.0], "y": [1.0, 2.0]}, method="ep")
    assert "approximate for a, b: messages may come back to where they began (y)" in text
    assert "loops: Gaussian variables meet in y with beliefs of their own; method='auto'" in text
    assert "loops" not in cv.explain(m, {"x": [1.0, 2.0], "y": [1.0, 2.0]})
    star = cv.Model()
    mean = star.random("mean", cv.gaussian(0.0, variance=100.0))
    group = star.random("group", cv.gaussian(mean, variance=1.0), plates=star.plate("g"))
    star.random("z", cv.gaussian(group, variance=1.0))
    assert "loops" not in cv.explain(star, {"z": [1.0, 2.0]})


def test_elements_without_data_leave_the_evidence_alone():
    """Under EP the cavity of an element that nothing else informs holds nothing; that must not cost digits."""

    def evidence(elements):
        m = cv.Model()
        element, row = m.plate("element", elements), m.plate("row")
        of = m.input("of", cv.index(element), plates=row)
        centre = m.random("centre", cv.gaussian(300.0, variance=2.0))
        level = m.random("level", cv.gaussian(centre, variance=1.5), plates=element)
        m.random("y", cv.gaussian(level[of], variance=0.5), plates=row)
        return cv.infer(m, {"of": [0, 1, 2], "y": [299.0, 301.0, 300.5]}, method="ep").log_evidence

    # The floor of a cavity is 1e-12 of the belief's precision, and the means are some 250 standard deviations from 0.
    assert abs(evidence(12) - evidence(3)) < 9 * 1e-12 * 250**2

"""Terms inside terms: the same model as with their variables declared."""

import numpy as np

import cavity as cv


def test_a_beta_inside_a_bernoulli(tmp_path):
    m = cv.Model()
    m.random("y", cv.bernoulli(cv.beta(1.0, 1.0)), plates=m.plate("n"))
    posterior = cv.infer(m, {"y": [True, True, False]})
    parameters = posterior["y.probability"].parameters
    np.testing.assert_allclose([parameters["a"], parameters["b"]], [3.0, 2.0])
    np.testing.assert_allclose(posterior.log_evidence, np.log(1.0 / 12.0))
    posterior.save(tmp_path / "coin")
    loaded = cv.load(tmp_path / "coin", m)
    np.testing.assert_allclose(loaded["y.probability"].mean, 0.6)


def test_the_same_answers_as_with_names():
    y = [1.0, 2.0, 3.0, 2.5]
    inner = cv.Model()
    term = cv.gaussian(cv.gaussian(0.0, variance=10.0), sd=cv.half_normal(2.0))
    inner.random("y", term, plates=inner.plate("n"))
    outer = cv.Model()
    mean = outer.random("mean", cv.gaussian(0.0, variance=10.0))
    sd = outer.random("sd", cv.half_normal(2.0))
    outer.random("y", cv.gaussian(mean, sd=sd), plates=outer.plate("n"))
    found, wanted = cv.infer(inner, {"y": y}), cv.infer(outer, {"y": y})
    for name in ("mean", "sd"):
        np.testing.assert_allclose(found[f"y.{name}"].mean, wanted[name].mean, rtol=1e-9)
        np.testing.assert_allclose(found[f"y.{name}"].sd, wanted[name].sd, rtol=1e-9)

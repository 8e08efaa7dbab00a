"""Hyperparameters of largest evidence, against closed forms and a grid."""

import numpy as np
import pytest

import cavity as cv

close = np.testing.assert_allclose
Y = np.array([2.0, -1.5, 3.0, -2.5, 0.5])


def effects():
    """y_i ~ N(mean, variance + 1)."""
    m = cv.Model("effects")
    n = m.plate("n")
    mean, variance = m.input("mean", cv.real), m.input("variance", cv.positive)
    effect = m.random("effect", cv.gaussian(mean, variance=variance), plates=n)
    m.random("y", cv.gaussian(effect, variance=1.0))
    return cv.compile(m, ["y"], tolerance=1e-10)


def test_a_mean_and_a_variance_without_compiling_again():
    program = effects()
    learned = cv.learn(program, {"y": Y, "mean": 0.0, "variance": 1.0}, ["mean", "variance"], tolerance=1e-6)
    assert learned.converged
    assert learned.bounded == ()
    close(learned.values["mean"], Y.mean(), atol=1e-5)
    close(learned.values["variance"], Y.var() - 1.0, rtol=1e-5)
    assert program.traces == 1
    assert learned.trace.max() == learned.posterior.log_evidence
    assert "converged" in repr(learned)


def test_names_that_are_not_learned_stay():
    learned = cv.learn(effects(), {"y": Y, "mean": 1.0, "variance": 1.0}, "variance", tolerance=1e-6)
    assert set(learned.values) == {"variance"}
    close(learned.values["variance"], np.mean((Y - 1.0) ** 2) - 1.0, rtol=1e-5)


def test_what_the_data_do_not_limit_ends_at_its_reach_and_is_named():
    """The data vary less than the noise alone: the best variance is zero."""
    data = {"y": 0.1 * Y, "mean": 0.0, "variance": 1.0}
    learned = cv.learn(effects(), data, ["mean", "variance"], tolerance=1e-6)
    close(learned.values["variance"], np.exp(-10.0), rtol=1e-2)
    assert learned.bounded == ("variance",)
    assert learned.converged
    assert "at the end of its reach: variance" in repr(learned)


def test_an_array_of_probabilities():
    """Two groups, z ~ Bernoulli(p_g) seen through a channel of 10 % errors: the best p_g is (rate - 0.1) / 0.8."""
    m = cv.Model()
    group, n = m.plate("group", 2), m.plate("n")
    p = m.input("p", cv.unit, plates=group)
    of = m.input("of", cv.index(group), plates=n)
    z = m.random("z", cv.bernoulli(p[of]))
    m.random("y", cv.switch(z, cv.bernoulli(0.9), cv.bernoulli(0.1)))
    seen, of_what = np.array([1, 1, 1, 0, 0, 1, 0, 0, 0, 0], bool), np.repeat([0, 1], 5)
    program = cv.compile(m, ["y"])
    learned = cv.learn(program, {"y": seen, "of": of_what, "p": [0.5, 0.4]}, ["p"], tolerance=1e-7)
    close(learned.values["p"], [(0.6 - 0.1) / 0.8, (0.2 - 0.1) / 0.8], rtol=1e-6)


def test_what_cannot_be_learned():
    program, data = effects(), {"y": Y, "mean": 0.0, "variance": 1.0}
    with pytest.raises(cv.DataError, match="'effect' is a variable of the model, not an input"):
        cv.learn(program, data, ["effect"])
    with pytest.raises(cv.DataError, match="'scale' is unknown"):
        cv.learn(program, data, ["scale"])
    with pytest.raises(cv.DataError, match="the data lack 'variance'"):
        cv.learn(program, {"y": Y, "mean": 0.0}, ["variance"])
    m = cv.Model()
    n = m.plate("n")
    which = m.input("which", cv.boolean)
    m.random("y", cv.switch(which, cv.gaussian(0.0, variance=1.0), cv.gaussian(1.0, variance=1.0)), plates=n)
    with pytest.raises(cv.UnsupportedError, match="input 'which' is boolean, which has no free coordinates"):
        cv.learn(cv.compile(m, ["y"]), {"y": Y, "which": True}, ["which"])


@pytest.mark.parametrize(
    ("names", "settings", "said"),
    [([], {}, "no input to learn|no name"), (["mean"], {"max_steps": 0}, "max_steps= must be at least 1")],
)
def test_nothing_to_learn_is_told(names, settings, said):
    with pytest.raises(cv.CavityError, match=said):
        cv.learn(effects(), {"y": Y, "mean": 0.0, "variance": 1.0}, names, **settings)


def test_a_name_given_twice_is_learned_once():
    data = {"y": Y, "mean": 0.0, "variance": 1.0}
    twice, once = (cv.learn(effects(), data, names) for names in (["mean", "mean"], ["mean"]))
    close(twice.values["mean"], once.values["mean"])

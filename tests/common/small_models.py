"""Small models, data and a comparison that tests of several rooms share."""

import numpy as np

import cavity as cv

close = np.testing.assert_allclose


def mean_model():
    m = cv.Model("mean")
    n = m.plate("n")
    mean = m.random("mean", cv.gaussian(1.0, variance=9.0))
    m.random("x", cv.gaussian(mean, precision=2.0), plates=n)
    return m


def dice_model():
    m = cv.Model("dice")
    n = m.plate("n")
    weights = m.random("weights", cv.dirichlet([1.0, 2.0, 0.5]))
    m.random("x", cv.categorical(weights), plates=n)
    return m


def skills():
    m = cv.Model("skills")
    player, game = m.plate("player"), m.plate("game")
    winner = m.input("winner", cv.index(player), plates=game)
    loser = m.input("loser", cv.index(player), plates=game)
    skill = m.random("skill", cv.gaussian(0.0, variance=0.5), plates=player)
    margin = m.random("margin", cv.gaussian(skill[winner] - skill[loser], variance=1.0))
    m.constrain(margin > 0)
    return m


def clutter():
    m = cv.Model("clutter")
    n = m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, variance=100.0))
    clean = m.random("clean", cv.bernoulli(0.5), plates=n)
    m.random("x", cv.switch(clean, cv.gaussian(mean, variance=1.0), cv.gaussian(0.0, variance=10.0)))
    return m


EARLY = {"winner": [0, 1, 2, 0], "loser": [1, 2, 3, 2]}
LATE = {"winner": [3, 3, 1, 0], "loser": [1, 2, 0, 3]}
SIZES = {"player": 4}


def same(one, other, rtol=1e-10):
    """Marginals agree in all parameters."""
    assert type(one.family) is type(other.family)
    for name, value in one.parameters.items():
        close(value, other.parameters[name], rtol=rtol, atol=1e-12)


SCHOOLS = {"y": [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0], "sd": [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]}


def schools():
    m = cv.Model("eight schools")
    school = m.plate("school", 8)
    mu = m.random("mu", cv.gaussian(0.0, variance=25.0))
    precision = m.random("precision", cv.gamma(1.0, 5.0))
    sd = m.input("sd", cv.positive, plates=school)
    effect = m.random("effect", cv.gaussian(mu, precision=precision), plates=school)
    m.random("y", cv.gaussian(effect, sd=sd))
    return m


def correlated():
    """A Gaussian posterior with a correlation of -.91, and the data: its moments are known."""
    m = cv.Model("sum")
    a, b = m.random("a", cv.gaussian(0.0, variance=1.0)), m.random("b", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.gaussian(a + b, variance=0.1))
    return m, {"y": 1.0}

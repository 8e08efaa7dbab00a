"""Models that need more of the vocabulary than the tutorials do, as users of PyMC, brms and Stan write them first.

Each function of `MODELS` returns a model and its data. Small classic data are typed in, others come from a seeded
generator.
"""

import numpy as np

import cavity as cv


def limit_of_detection():
    """Tobit: censored regression of PyMC's examples, a line of which nothing below zero is seen."""
    m = cv.Model("tobit")
    x = m.input("x", cv.real, plates=m.plate("row"))
    intercept, slope = m.random("intercept", cv.gaussian(0.0, sd=3.0)), m.random("slope", cv.gaussian(0.0, sd=3.0))
    sd = m.random("sd", cv.half_normal(2.0))
    m.random("y", cv.censored(cv.gaussian(intercept + slope * x, sd=sd), low=0.0))
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    return m, {"x": x, "y": np.maximum(0.0, 0.5 + x + rng.normal(size=40))}


def remission_times():
    """Stan's manual, censored data: weeks of remission under 6-MP (Freireich et al. 1963), Weibull, right censored."""
    m = cv.Model("remission")
    patient = m.plate("patient")
    followed = m.input("followed", cv.positive, plates=patient)
    shape, scale = m.random("shape", cv.gamma(2.0, 1.0)), m.random("scale", cv.gamma(2.0, 0.05))
    m.random("weeks", cv.censored(cv.weibull(shape, scale), high=followed))
    weeks = np.array([6, 6, 6, 7, 10, 13, 16, 22, 23, 6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35], float)
    return m, {"weeks": weeks, "followed": np.where(np.arange(21) < 9, np.inf, weeks)}


def extra_zeros():
    """PyMC, zero-inflated Poisson: the class of each row is summed out."""
    m = cv.Model("extra zeros")
    never, rate = m.random("never", cv.beta(1.0, 1.0)), m.random("rate", cv.gamma(1.0, 0.2))
    m.random("y", cv.mixture(never, cv.point(0), cv.poisson(rate)), plates=m.plate("row"))
    return m, {"y": [0, 3, 0, 0, 5, 2, 0, 4, 1, 0, 0, 2, 3, 0, 6, 0, 2, 0, 0, 4]}


def only_positive_counts():
    """PyMC, truncated counts: a Poisson of which zeros are never recorded."""
    m = cv.Model("only positive counts")
    rate = m.random("rate", cv.gamma(1.0, 0.3))
    m.random("y", cv.truncated(cv.poisson(rate), low=1), plates=m.plate("row"))
    return m, {"y": [1, 2, 1, 1, 3, 2, 1, 4, 1, 2, 1, 1, 2, 3, 1]}


def ratings():
    """Stan's manual, ordered logistic regression: a slope and three random cutpoints, the default of brms and PyMC."""
    m = cv.Model("ratings")
    x = m.input("x", cv.real, plates=m.plate("row"))
    slope = m.random("slope", cv.gaussian(0.0, sd=2.0))
    cutpoints = m.random("cutpoints", cv.ordered(cv.gaussian(0.0, sd=3.0), size=3))
    m.random("y", cv.ordered_logistic(slope * x, cutpoints))
    rng = np.random.default_rng(1)
    x = rng.normal(size=60)
    return m, {"x": x, "y": np.searchsorted([-1.0, 0.5, 2.0], 1.2 * x + rng.logistic(size=60))}


def teams_of_any_size():
    """Infer.NET, TrueSkill's teams: each team is the sum of its members, whoever they are."""
    m = cv.Model("teams")
    player, team, place = m.plate("player", 6), m.plate("team"), m.plate("place")
    member = m.input("member", cv.index(player), plates=place)
    of = m.input("of", cv.index(team), plates=place)
    skill = m.random("skill", cv.gaussian(0.0, sd=1.0), plates=player)
    m.random("points", cv.gaussian(cv.sum(skill[member], by=of), sd=0.5))
    return m, {
        "member": [0, 1, 2, 3, 4, 0, 4, 1, 3],
        "of": [0, 0, 0, 1, 1, 2, 2, 3, 3],
        "points": [3.0, -1.0, 1.5, 0.2],
    }


def players_by_year():
    """MBML, chapter 3: a skill for each player and year; a game reads both players in its year."""
    m = cv.Model("players by year")
    player, year, game = m.plate("player", 3), m.plate("year", 3), m.plate("game")
    white, black = (m.input(side, cv.index(player), plates=game) for side in ("white", "black"))
    when = m.input("when", cv.index(year), plates=game)
    skill = m.chain(
        "skill",
        over=year,
        first=cv.gaussian(0.0, sd=1.0),
        then=lambda before: cv.gaussian(before, sd=0.4),
        plates=player,
    )
    m.random("margin", cv.gaussian(skill[white, when] - skill[black, when], sd=0.7))
    return m, {
        "white": [0, 1, 2, 0, 1, 2],
        "black": [1, 2, 0, 2, 0, 1],
        "when": [0, 0, 1, 1, 2, 2],
        "margin": [1.0, 0.5, -0.8, 1.2, -0.3, 0.4],
    }


def states_of_known_levels():
    """PyMC and Stan index constants by a class, `level[z]`: three known levels, and the noise."""
    m = cv.Model("levels")
    z = m.random("z", cv.categorical([0.5, 0.3, 0.2]), plates=m.plate("row"))
    noise = m.random("noise", cv.half_normal(2.0))
    m.random("y", cv.gaussian(cv.table([0.0, 2.0, 5.0])[z], sd=noise))
    return m, {"y": [0.1, 2.2, 4.9, 0.3, 1.8, 5.5, 1.2, 3.4]}


def enzyme():
    """PyMC, nonlinear regression: puromycin (Bates and Watts), Michaelis and Menten's curve written as such."""
    m = cv.Model("enzyme")
    x = m.input("x", cv.positive, plates=m.plate("row"))
    top, half = m.random("top", cv.gaussian(200.0, sd=50.0)), m.random("half", cv.half_normal(0.5))
    sd = m.random("sd", cv.half_normal(20.0))
    m.random("y", cv.gaussian(top * x / (half + x), sd=sd))
    x = [0.02, 0.02, 0.06, 0.06, 0.11, 0.11, 0.22, 0.22, 0.56, 0.56, 1.1, 1.1]
    return m, {"x": x, "y": [76.0, 47.0, 97.0, 107.0, 123.0, 139.0, 159.0, 152.0, 191.0, 201.0, 207.0, 200.0]}


def chance_by_itself():
    """PyMC's coin in one line: a term is given as the argument of another."""
    m = cv.Model("coin")
    m.random("heads", cv.bernoulli(cv.beta(2.0, 2.0)), plates=m.plate("throw"))
    return m, {"heads": [True, True, False, True, True, False, True]}


def unknown_variance():
    """Stan's default without priors: a flat mean, and a variance of the inverse Gamma kind."""
    m = cv.Model("unknown variance")
    mean, variance = m.random("mean", cv.flat()), m.random("variance", cv.inverse_gamma(2.0, 3.0))
    m.random("y", cv.gaussian(mean, variance=variance), plates=m.plate("row"))
    return m, {"y": [3.1, 5.2, 0.8, 4.4, 2.9, 6.1, 1.7, 3.8]}


def waiting_times():
    """PyMC, survival with a covariate: exponential times whose mean is log-linear."""
    m = cv.Model("waiting times")
    x = m.input("x", cv.real, plates=m.plate("row"))
    a, b = m.random("a", cv.gaussian(0.0, sd=2.0)), m.random("b", cv.gaussian(0.0, sd=2.0))
    m.random("t", cv.exponential(mean=cv.exp(a + b * x)))
    rng = np.random.default_rng(2)
    x = rng.normal(size=30)
    return m, {"x": x, "t": rng.exponential(np.exp(0.5 + 0.8 * x))}


def small_steps():
    """Slices of a plate: a curve whose first differences are small, seen at its ends and in the middle."""
    m = cv.Model("small steps")
    x = m.random("x", cv.gaussian(0.0, sd=10.0), plates=m.plate("t", 9))
    m.random("step", cv.gaussian(x[1:] - x[:-1], sd=1.0))
    for name, place in (("begins", 0), ("middle", 4), ("ends", -1)):
        m.random(name, cv.gaussian(x[place], sd=0.3))
    return m, {"step": np.zeros(8), "begins": 0.0, "middle": 3.0, "ends": -1.0}


def drifts_by_regime():
    """RxInfer and PyMC, a switching linear system: a level whose drift another chain chooses."""
    m = cv.Model("drifts by regime")
    t = m.plate("t")
    up = m.chain("up", over=t, first=cv.bernoulli(0.5), then=lambda before: cv.bernoulli(cv.table([0.1, 0.9])[before]))
    level = m.chain(
        "level",
        over=t,
        first=cv.gaussian(0.0, sd=2.0),
        then=lambda before: cv.switch(up, cv.gaussian(before + 0.5, sd=0.2), cv.gaussian(before - 0.5, sd=0.2)),
    )
    m.random("y", cv.gaussian(level, sd=0.5))
    return m, {"y": [0.1, 0.4, 1.2, 1.4, 1.1, 1.6, 0.9, 0.6, -0.3, -0.4]}


def rare_jumps():
    """A level that mostly stays and sometimes jumps: a random walk with Student-t steps."""
    m = cv.Model("rare jumps")
    level = m.chain(
        "level", over=m.plate("t"), first=cv.gaussian(0.0, sd=5.0), then=lambda x: cv.student_t(3.0, x, 0.1)
    )
    m.random("y", cv.gaussian(level, sd=0.5))
    return m, {"y": np.repeat([0.0, 3.0], 20) + 0.5 * np.random.default_rng(1).normal(size=40)}


MODELS = (
    limit_of_detection,
    remission_times,
    extra_zeros,
    only_positive_counts,
    ratings,
    teams_of_any_size,
    players_by_year,
    states_of_known_levels,
    enzyme,
    chance_by_itself,
    unknown_variance,
    waiting_times,
    small_steps,
    drifts_by_regime,
    rare_jumps,
)

"""The gradient of the log evidence against differences of whole inferences, and in an optimiser."""

import numpy as np
import pytest
from scipy.optimize import brentq

import cavity as cv

close = np.testing.assert_allclose
random = np.random.default_rng(3)
X = random.normal(size=(20, 2))
S = X @ [1.0, -1.0]


def regression(outcome):
    m = cv.Model(outcome)
    n = m.plate("n")
    prior, noise = m.input("prior", cv.positive), m.input("noise", cv.positive)
    x = m.input("x", cv.vector(2), plates=n)
    w = m.random("w", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)))
    b = m.random("b", cv.gaussian(0.0, variance=prior))
    s = cv.dot(w, x) + b
    if outcome == "gaussian":
        m.random("y", cv.gaussian(s, variance=noise))
    else:
        f = m.random("f", cv.gaussian(s, variance=noise))
        m.random("y", cv.bernoulli(getattr(cv, outcome)(f)))
    y = S + random.normal(size=20)
    return m, {"x": X, "y": y if outcome == "gaussian" else y > 0, "prior": 1.3, "noise": 0.7}


def mean_precision():
    m = cv.Model("mean and precision")
    n = m.plate("n")
    prior, rate = m.input("prior", cv.positive), m.input("rate", cv.positive)
    mean = m.random("mean", cv.gaussian(0.0, variance=prior))
    precision = m.random("precision", cv.gamma(1.0, rate))
    m.random("y", cv.gaussian(mean, precision=precision), plates=n)
    return m, {"y": S, "prior": 3.0, "rate": 2.0}


def skills():
    m = cv.Model("skills")
    player, game = m.plate("player", 8), m.plate("game")
    prior = m.input("prior", cv.positive)
    winner = m.input("winner", cv.index(player), plates=game)
    loser = m.input("loser", cv.index(player), plates=game)
    skill = m.random("skill", cv.gaussian(0.0, variance=prior), plates=player)
    margin = m.random("margin", cv.gaussian(skill[winner] - skill[loser], variance=1.0))
    m.constrain(margin > 0)
    first = random.integers(8, size=40)
    return m, {"winner": first, "loser": (first + random.integers(1, 8, size=40)) % 8, "prior": 0.5}


def random_walk(learned):
    """A chain; with a learned precision its states are exact given the precision's moments."""
    m = cv.Model("random walk")
    t = m.plate("t")
    slope = m.input("slope", cv.real)
    first, step, noise = (m.input(name, cv.positive) for name in ("first", "step", "noise"))
    precision = m.random("precision", cv.gamma(2.0, 1.0)) if learned else 1.0
    begin = cv.gaussian(0.0, variance=first)
    state = m.chain(
        "state", over=t, first=begin, then=lambda before: cv.gaussian(slope * before, precision=precision / step)
    )
    m.random("y", cv.gaussian(state, variance=noise))
    return m, {"y": np.cumsum(S), "slope": 0.9, "first": 2.0, "step": 1.5, "noise": 0.4}


WALK = ["slope", "first", "step", "noise"]
CASES = {
    "gaussian": (lambda: regression("gaussian"), ["prior", "noise"], "auto"),
    "probit": (lambda: regression("probit"), ["prior", "noise"], "ep"),
    "power of probit": (lambda: regression("probit"), ["prior", "noise"], cv.power(0.5)),
    "logistic by quadrature": (lambda: regression("logistic"), ["prior", "noise"], "ep"),
    "logistic bound": (lambda: regression("logistic"), ["prior", "noise"], {"y": cv.ncvmp(bound="tilted")}),
    "vmp": (mean_precision, ["prior", "rate"], "vmp"),
    "skills, with loops": (skills, ["prior"], "auto"),
    "chain": (lambda: random_walk(False), WALK, "auto"),
    "chain with a random precision": (lambda: random_walk(True), WALK, "auto"),
}


def differences(program, data, name, step=1e-4):
    """The derivative of fourth order in one scalar input."""

    def at(move):
        return program({**data, name: data[name] + move}).log_evidence

    h = step * abs(data[name])
    return (8.0 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12.0 * h)


# Cases that another covers: sites of EP and their powers by those with loops, chains by those with a random precision.
SLOW = {"probit", "power of probit", "logistic by quadrature", "chain"}


@pytest.mark.parametrize("case", [pytest.param(c, marks=[pytest.mark.slow] * (c in SLOW)) for c in CASES])
def test_it_is_the_slope_of_the_evidence(case):
    build, names, method = CASES[case]
    model, data = build()
    observed = [name for name in data if name in model.randoms]
    program = cv.compile(model, observed, method=method, tolerance=1e-11)
    evidence, gradient = cv.evidence_gradient(program, data, names)
    close(evidence, program(data).log_evidence, rtol=1e-12)
    for name in names:
        close(gradient[name], differences(program, data, name), rtol=1e-6)


def test_inputs_over_plates_and_by_default_all_continuous_ones():
    m = cv.Model()
    n = m.plate("n")
    sd = m.input("sd", cv.positive, plates=n)
    mean = m.random("mean", cv.gaussian(0.0, variance=4.0))
    m.random("y", cv.gaussian(mean, sd=sd))
    data = {"y": np.array([1.0, -0.5, 2.0]), "sd": np.array([1.0, 0.5, 2.0])}
    found = cv.infer(m, data).evidence_gradient()["sd"]

    def exact(s):
        covariance = np.diag(s**2) + 4.0
        return -0.5 * (data["y"] @ np.linalg.solve(covariance, data["y"]) + np.linalg.slogdet(covariance)[1])

    steps = 1e-5 * np.eye(3)
    close(found, [(exact(data["sd"] + h) - exact(data["sd"] - h)) / 2e-5 for h in steps], rtol=1e-8)


def test_the_tables_of_a_discrete_tree():
    """Along the simplex, row by row: the pairs' marginals have the gradient that the sweep over the tree hides."""
    m = cv.Model()
    node, k = m.plate("node"), m.plate("k", 2)
    parent = m.input("parent", cv.index(node), plates=node)
    rows, value = m.input("rows", cv.simplex(2), plates=k), m.input("value", cv.real, plates=k)
    z = m.tree(
        "z", over=node, parent=parent, root=cv.categorical([0.3, 0.7]), then=lambda above: cv.categorical(rows[above])
    )
    m.random("y", cv.gaussian(value[z], variance=0.5))
    program, table = cv.compile(m, ["y"]), np.array([[0.8, 0.2], [0.4, 0.6]])
    data = {"parent": np.array([1, 1, 1, 0, 0, 2]), "rows": table, "value": np.array([-1.0, 1.0]), "y": S[:6]}
    _, gradient = cv.evidence_gradient(program, data, "rows")
    for row in range(2):
        move = np.outer(np.arange(2) == row, [1e-5, -1e-5])
        ends = [program({**data, "rows": table + sign * move}).log_evidence for sign in (1.0, -1.0)]
        close(gradient["rows"][row] @ [1.0, -1.0], (ends[0] - ends[1]) / 2e-5, rtol=1e-7)


def test_an_optimiser_finds_the_best_prior_variance():
    """y_i ~ N(0, v + 1): the evidence is largest where v + 1 is the mean square."""
    m = cv.Model()
    n = m.plate("n")
    variance = m.input("variance", cv.positive)
    effect = m.random("effect", cv.gaussian(0.0, variance=variance), plates=n)
    m.random("y", cv.gaussian(effect, variance=1.0))
    y = 2.0 * np.random.default_rng(1).normal(size=30)  # its own: a mean square of 1 would leave no root
    program = cv.compile(m, ["y"])

    def slope(log_variance):
        data = {"y": y, "variance": np.exp(log_variance)}
        return float(cv.evidence_gradient(program, data, "variance")[1]["variance"]) * np.exp(log_variance)

    best = brentq(slope, -3.0, 4.0, xtol=1e-10)
    close(np.exp(best), np.mean(y**2) - 1.0, rtol=1e-5)
    assert program.traces == 1


def test_what_has_no_gradient():
    model, data = mean_precision()
    posterior = cv.infer(model, data, method="vmp")
    with pytest.raises(cv.DataError, match="'mean' is a variable of the model, not an input"):
        posterior.evidence_gradient("mean")
    with pytest.raises(cv.DataError, match="'pior' is unknown"):
        posterior.evidence_gradient("pior")
    model, data = skills()
    with pytest.raises(cv.DataError, match=r"input 'winner' is index\(player\), which has no derivative"):
        cv.infer(model, data).evidence_gradient("winner")
    with pytest.warns(cv.CavityWarning, match="Stopped after 1 sweep[ ,]"):
        early = cv.infer(model, data, max_iterations=1, accuracy="fast")
    with pytest.raises(cv.UnsupportedError, match="holds at a fixed point"):
        early.evidence_gradient("prior")

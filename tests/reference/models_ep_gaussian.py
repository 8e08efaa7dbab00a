"""The programs of ep_gaussian.json: each takes a case and returns its model, or a model with the data it needs."""

from __future__ import annotations

import numpy as np
from runner import Setup

import cavity as cv


def clutter(case):
    m = cv.Model("clutter")
    n = m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, variance=100.0))
    clean = m.random("clean", cv.bernoulli(0.5), plates=n)
    m.random("x", cv.switch(clean, cv.gaussian(mean, variance=1.0), cv.gaussian(0.0, variance=10.0)))
    return m


def linear_score(m, features):
    x = m.input("x", cv.vector(features), plates=m.plate("n"))
    w = m.random("w", cv.vector_gaussian(np.zeros(features), covariance=np.eye(features)))
    return cv.dot(w, x)


def step_machine(case):
    m = cv.Model("step")
    m.let("y", linear_score(m, 3) > 0)
    return m


def noisy_machine(case):
    m = cv.Model("probit")
    mean = linear_score(m, len(case["data"]["x"][0]))
    score = m.random("score", cv.gaussian(mean, variance=case["parameters"]["noise"]))
    m.let("y", score > 0)
    return m


def flipped_machine(case):
    flip = case["parameters"]["flip"]
    m = cv.Model("noisy step")
    above = m.let("above", linear_score(m, 3) > 0)
    m.random("y", cv.switch(above, cv.bernoulli(1.0 - flip), cv.bernoulli(flip)))
    return m


def multiclass_machine(case):
    """All weights are one vector, w_fc at 3 f + c, so that what the constraints say of several is kept."""
    x = np.array(case["data"]["x"])
    m = cv.Model("three classes")
    row, cls, other, feature = m.plate("row"), m.plate("class", 3), m.plate("other", 2), m.plate("feature", 2)
    inputs = m.input("inputs", cv.vector(6), plates=(row, cls))
    ones = m.input("ones", cv.vector(6), plates=feature)
    winner = m.input("winner", cv.index(cls), plates=row)
    loser = m.input("loser", cv.index(cls), plates=(row, other))
    w = m.random("w", cv.vector_gaussian(np.zeros(6), covariance=np.eye(6)))
    m.let("sum", cv.dot(w, ones))
    m.random("label", cv.categorical(np.full(3, 1 / 3)), plates=row)
    score = m.random("score", cv.gaussian(cv.dot(w, inputs), variance=1.0))
    m.constrain(score[winner] > score[loser])
    spread = np.einsum("nf,cd->ncfd", x, np.eye(3)).reshape(len(x), 3, 6)
    sums = np.repeat(np.eye(2), 3, axis=1)
    return Setup(m, {"inputs": spread, "ones": sums, **{k: v for k, v in case["data"].items() if k != "x"}})


def probit_message(case):
    m = cv.Model("probit")
    x = m.random("x", cv.gaussian(1.0, variance=0.5))
    m.random("y", cv.bernoulli(cv.probit(x)))
    return m


def soft_probit(case):
    m = cv.Model("soft evidence")
    centre = m.input("centre", cv.real, plates=m.plate("n"))
    x = m.random("x", cv.gaussian(centre, variance=1.0))
    score = m.random("score", cv.gaussian(x, variance=0.01))
    positive = m.let("positive", score > 0)
    m.random("seen", cv.switch(positive, cv.bernoulli(0.7), cv.bernoulli(0.3)))
    return m


def truncated(case):
    m = cv.Model("truncated")
    threshold = m.input("threshold", cv.real, plates=m.plate("n"))
    x = m.random("x", cv.gaussian(0.0, variance=1.0), plates=threshold.plates)
    m.constrain(x > threshold)
    return m


def two_truncations(case):
    m = cv.Model("two truncations")
    x = m.random("x", cv.gaussian(0.0, variance=1.0))
    b = m.random("b", cv.gaussian(0.0, variance=1.0))
    m.constrain(b < x)
    m.constrain(x < 3.0)
    return m


def maximum(case):
    m = cv.Model("maximum")
    a, b = (
        m.random(name, cv.gaussian(mean, variance=variance)) for name, (mean, variance) in case["parameters"].items()
    )
    m.let("largest", cv.max(a, b))
    return m


def performances(case):
    m = cv.Model("skills")
    player, game = m.plate("player"), m.plate("game")
    winner = m.input("winner", cv.index(player), plates=game)
    loser = m.input("loser", cv.index(player), plates=game)
    skill = m.random("skill", cv.gaussian(0.0, variance=100.0), plates=player)
    first = m.random("winning performance", cv.gaussian(skill[winner], variance=1.0))
    second = m.random("losing performance", cv.gaussian(skill[loser], variance=1.0))
    m.constrain(first > second)
    return m


def draws(case):
    m = cv.Model("skills with draws")
    player, entry, win, draw = m.plate("player"), m.plate("entry"), m.plate("win"), m.plate("draw")
    player_of = m.input("player_of", cv.index(player), plates=entry)
    better, worse = (m.input(name, cv.index(entry), plates=win) for name in ("better", "worse"))
    drawn, drawn_with = (m.input(name, cv.index(entry), plates=draw) for name in ("drawn", "drawn_with"))
    skill = m.random("skill", cv.gaussian(25.0, variance=(25.0 / 3.0) ** 2), plates=player)
    performance = m.random("performance", cv.gaussian(skill[player_of], variance=1.0))
    m.constrain(performance[better] - performance[worse] > 0.7)
    gap = performance[drawn] - performance[drawn_with]
    m.constrain((gap > -0.7) & (gap < 0.7))
    return m


def sparse_process(case):
    """f_i ~ N(k_i . alpha, r_i), r_i what the basis leaves of the prior: the model, f, and the inputs from x."""
    basis, length = np.array(case["parameters"]["basis"]), case["parameters"]["length"]

    def kernel(a, b):
        return np.exp(-((a[:, None] - b[None, :]) ** 2) / (2.0 * length**2))

    precision = kernel(basis, basis)

    def features(data):
        k = kernel(np.array(data["x"]), basis)
        rest = 1.0 - np.sum(k * np.linalg.solve(precision, k.T).T, axis=-1)
        # At a basis point the rest is zero up to rounding; a variance must be positive.
        return {"k": k, "rest": np.maximum(rest, 1e-13)}

    m = cv.Model("sparse Gaussian process")
    row = m.plate("row")
    k = m.input("k", cv.vector(len(basis)), plates=row)
    rest = m.input("rest", cv.positive, plates=row)
    alpha = m.random("alpha", cv.vector_gaussian(np.zeros(len(basis)), precision=precision))
    f = m.random("f", cv.gaussian(cv.dot(alpha, k), variance=rest))
    return m, f, features


def gp_step(case):
    m, f, features = sparse_process(case)
    m.let("y", f > 0)
    return Setup(m, {**features(case["data"]), "y": case["data"]["y"]}, features)


def gp_noise(case):
    m, f, features = sparse_process(case)
    m.random("y", cv.gaussian(f, variance=0.1))
    return Setup(m, {**features(case["data"]), "y": case["data"]["y"]}, features)


def sum_with_noise(case):
    m = cv.Model("sum")
    x = m.random("x", cv.gaussian(1.0, variance=2.0))
    z = m.random("z", cv.gaussian(x + 3.0, variance=4.0))
    m.random("seen", cv.gaussian(z, variance=6.0))
    return m


def noisy_product(case):
    m = cv.Model("product")
    x = m.random("x", cv.gaussian(1.0, variance=2.0))
    y = m.random("y", cv.gaussian(3.0, variance=4.0))
    m.random("seen", cv.gaussian(x * y, variance=6.0))
    return m


def cyclist(case):
    m = cv.Model("cyclist")
    mean = m.random("mean", cv.gaussian(15.0, precision=0.01))
    precision = m.random("precision", cv.gamma(shape=2.0, rate=2.0))
    m.random("time", cv.gaussian(mean, precision=precision), plates=m.plate("n"))
    return m


def drift(case):
    p = case["parameters"]
    m = cv.Model("drift")
    t = m.plate("t", p["length"])
    precision = m.input("precision", cv.positive, plates=t)
    shifts = [m.random(f"shift{k + 1}", cv.gaussian(0.0, variance=1.0)) for k in range(p["shifts"])]
    drift = sum(shifts[1:], start=shifts[0])
    first = cv.gaussian(1.0, variance=1.0)
    state = m.chain("state", over=t, first=first, then=lambda previous: cv.gaussian(previous + drift, variance=1.0))
    m.random("y", cv.gaussian(state, precision=precision))
    precisions = np.full(p["length"], 1e-8)
    precisions[0] = p["first_precision"]
    return Setup(m, {"precision": precisions, "y": np.arange(float(p["length"]))})


def skip_chain(case):
    m = cv.Model("skip chain")
    seen, step = case["data"]["seen"], case["data"]["step"]
    states = [m.random(f"s{i}", cv.gaussian(0.0, variance=1000.0)) for i in range(2)]
    data = {}
    for i in range(2):
        m.random(f"seen {i}", cv.gaussian(states[i], variance=1.0))
        data[f"seen {i}"] = seen[i]
    for i in range(2, 2 + len(step)):
        states.append(m.random(f"s{i}", cv.gaussian(states[-1], variance=1.0)))
        m.let(f"step {i}", states[i] - states[i - 2])
        data[f"step {i}"] = step[i - 2]
    return Setup(m, data)

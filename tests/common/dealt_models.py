"""Models of every kind whose rows can be dealt to devices, with data of sizes that no number of devices divides."""

from __future__ import annotations

import numpy as np

import cavity as cv


def logistic(rows=103, columns=3):
    random = np.random.default_rng(0)
    x = random.normal(size=(rows, columns))
    m = cv.Model("logistic")
    row = m.plate("row")
    inputs = m.input("x", cv.vector(columns), plates=row)
    weight = m.random("weight", cv.vector_gaussian(np.zeros(columns), covariance=np.eye(columns)))
    m.random("y", cv.bernoulli(cv.logistic(cv.dot(weight, inputs))), plates=row)
    return m, {"x": x, "y": random.random(rows) < 1.0 / (1.0 + np.exp(-x @ np.ones(columns)))}, {}


def coin(rows=21):
    m = cv.Model("coin")
    p = m.random("p", cv.beta(1.0, 1.0))
    m.random("y", cv.bernoulli(p), plates=m.plate("row"))
    return m, {"y": np.arange(rows) % 3 == 0}, {}


def missing(rows=51):
    m = cv.Model("missing entries")
    mean, precision = m.random("mean", cv.gaussian(0.0, sd=10.0)), m.random("precision", cv.gamma(1.0, 1.0))
    m.random("y", cv.gaussian(mean, precision=precision), plates=m.plate("row"))
    y = np.random.default_rng(1).normal(size=rows) * 2.0 + 1.0
    y[::7] = np.nan
    return m, {"y": y}, {}


def mixture(rows=101, components=2):
    random = np.random.default_rng(2)
    m = cv.Model("mixture")
    row, component = m.plate("row"), m.plate("component", components)
    share = m.random("share", cv.dirichlet(np.ones(components)))
    centre = m.random("centre", cv.gaussian(0.0, sd=5.0), plates=component)
    z = m.random("z", cv.categorical(share), plates=row)
    m.random("y", cv.gaussian(centre[z], sd=1.0), plates=row)
    half = rows // 2
    return m, {"y": np.concatenate([random.normal(size=half) - 3.0, random.normal(size=rows - half) + 3.0])}, {}


def skills(games=203, players=10):
    random = np.random.default_rng(3)
    level = random.normal(size=players)
    one = random.integers(0, players, games)
    other = (one + 1 + random.integers(0, players - 1, games)) % players
    first = level[one] + random.normal(size=games) > level[other]
    data = {"winner": np.where(first, one, other), "loser": np.where(first, other, one)}
    m = cv.Model("skills")
    player, game = m.plate("player"), m.plate("game")
    winner, loser = (m.input(name, cv.index(player), plates=game) for name in ("winner", "loser"))
    skill = m.random("skill", cv.gaussian(0.0, variance=0.5), plates=player)
    margin = m.random("margin", cv.gaussian(skill[winner] - skill[loser], variance=1.0))
    m.constrain(margin > 0)
    return m, data, {"sizes": {"player": players}}


def factors(rows=60, columns=7):
    """One factor, whose sign alone is free."""
    random = np.random.default_rng(4)
    m = cv.Model("factors")
    row, column = m.plate("row"), m.plate("column")
    loading = m.random("loading", cv.gaussian(1.0, sd=1.0), plates=column)
    score = m.random("score", cv.gaussian(0.0, sd=1.0), plates=row)
    precision = m.random("precision", cv.gamma(1.0, 1.0))
    m.random("y", cv.gaussian(score * loading, precision=precision), plates=(row, column))
    return m, {"y": np.outer(random.normal(size=rows), random.normal(size=columns) + 1.0)
               + 0.3 * random.normal(size=(rows, columns))}, {}  # fmt: skip


def topics(documents=21, words=30, vocabulary=8):
    random = np.random.default_rng(5)
    m = cv.Model("topics")
    document, word, topic = m.plate("document"), m.plate("word"), m.plate("topic", 2)
    share = m.random("share", cv.dirichlet(np.ones(2)), plates=document)
    phi = m.random("phi", cv.dirichlet(np.ones(vocabulary)), plates=topic)
    z = m.random("z", cv.categorical(share), plates=(document, word))
    m.random("w", cv.categorical(phi[z]), plates=(document, word))
    half = vocabulary // 2
    return m, {"w": random.integers(0, half, (documents, words)) + np.arange(documents)[:, None] % 2 * half}, {}


def counts(rows=77):
    random = np.random.default_rng(6)
    x = random.normal(size=rows)
    m = cv.Model("counts")
    row = m.plate("row")
    inputs = m.input("x", cv.real, plates=row)
    level, slope = m.random("level", cv.gaussian(0.0, sd=2.0)), m.random("slope", cv.gaussian(0.0, sd=2.0))
    m.random("y", cv.poisson(cv.exp(level + slope * inputs)), plates=row)
    return m, {"x": x, "y": random.poisson(np.exp(0.3 + 0.5 * x))}, {}


def groups(rows=90, number=6):
    random = np.random.default_rng(7)
    m = cv.Model("groups")
    row, group = m.plate("row"), m.plate("group", number)
    place = m.input("place", cv.index(group), plates=row)
    mean, precision = m.random("mean", cv.gaussian(0.0, sd=5.0)), m.random("precision", cv.gamma(1.0, 1.0))
    effect = m.random("effect", cv.gaussian(mean, precision=precision), plates=group)
    noise = m.random("noise", cv.gamma(1.0, 1.0))
    m.random("y", cv.gaussian(effect[place], precision=noise), plates=row)
    own = random.integers(0, number, rows)
    return m, {"place": own, "y": random.normal(size=number)[own] + random.normal(size=rows)}, {}


def abilities(persons=61, items=12):
    random = np.random.default_rng(8)
    m = cv.Model("abilities")
    person, item = m.plate("person"), m.plate("item")
    ability = m.random("ability", cv.gaussian(0.0, sd=1.0), plates=person)
    difficulty = m.random("difficulty", cv.gaussian(0.0, sd=2.0), plates=item)
    m.random("y", cv.bernoulli(cv.logistic(ability - difficulty)), plates=(person, item))
    logits = random.normal(size=persons)[:, None] - random.normal(size=items)
    return m, {"y": random.random((persons, items)) < 1.0 / (1.0 + np.exp(-logits))}, {}


# By name: how a model is made, how it is inferred, and which of its data belong to single rows.
CASES = {
    "logistic, ncvmp": (logistic, {"method": "ncvmp"}, ("x", "y")),
    "logistic, ep": (logistic, {"method": "ep"}, ("x", "y")),
    "coin": (coin, {}, ("y",)),
    "missing": (missing, {"method": "vmp"}, ("y",)),
    "mixture, vmp": (mixture, {"method": "vmp"}, ("y",)),
    "mixture, ep": (mixture, {"method": "ep"}, ("y",)),
    "skills": (skills, {}, ("winner", "loser")),
    "factors": (factors, {"method": "vmp"}, ("y",)),
    "topics": (topics, {"method": "vmp"}, ("w",)),
    "counts": (counts, {}, ("x", "y")),
    "groups": (groups, {"accuracy": "fast"}, ("place", "y")),
    "abilities, ncvmp": (abilities, {"method": "ncvmp"}, ("y",)),
}


def means(posterior):
    """The means of all variables, by name."""
    return {name: np.asarray(posterior[name].mean, float).tolist() for name in posterior}

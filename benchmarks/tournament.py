"""The skills problem: games and model, apart from the peers so that a fresh process loads only what it times.

skill ~ N(0, 0.5), margin ~ N(skill[winner] - skill[loser], 1), margin > 0.
"""

import math

import numpy as np

VARIANCE = 0.5


def tournament(players, games, seed=1):
    """Random pairings; the better performance wins."""
    rng = np.random.default_rng(seed)
    skill = rng.normal(0.0, math.sqrt(VARIANCE), players)
    first = rng.integers(players, size=games)
    second = (first + rng.integers(1, players, size=games)) % players
    wins = skill[first] - skill[second] + rng.normal(size=games) > 0
    return np.where(wins, first, second).astype(np.int32), np.where(wins, second, first).astype(np.int32)


def model(cv):
    m = cv.Model("skills")
    player, game = m.plate("player"), m.plate("game")
    winner = m.input("winner", cv.index(player), plates=game)
    loser = m.input("loser", cv.index(player), plates=game)
    skill = m.random("skill", cv.gaussian(0.0, variance=VARIANCE), plates=player)
    margin = m.random("margin", cv.gaussian(skill[winner] - skill[loser], variance=1.0))
    m.constrain(margin > 0)
    return m

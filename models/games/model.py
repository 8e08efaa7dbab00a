"""The models of skills: players whose skills move in time, and the numbers of a game that they decide."""

from __future__ import annotations

import functools

import cavity as cv  # pyright: ignore[reportMissingImports]

RESULT, ORDER, MARGIN = "result", "order", "margin"
OUTCOMES = {"lost": 0, "drawn": 1, "won": 2}  # of the first team of a game
STILL = 1e-9  # the variance of the origin, from which all first skills step away


def together(size: int, kinds: tuple[str, ...]) -> cv.Model:
    """All skills as one Gaussian vector: z ~ N(prior_mean, prior_covariance), and games that see <z, x>.

    result ~ ordered_probit(<z, x>, (-draw, draw)), that is, with noise of variance one; between(<z, y>, low, high) of
    neighbours in an order; margin ~ N(<z, x>, 1). The vector has skills at their times, the advantage of playing at
    home and what a team had of luck in a game of several. `size` is its length, `kinds` the games that there are. EP
    keeps all covariances. Returns the model. Source: herbrich2006trueskill, dangauthier2007ttt.
    """
    m = cv.Model("skills together")
    mean = m.input("prior_mean", cv.vector(size))
    skill = m.random("skill", cv.vector_gaussian(mean, covariance=m.input("prior_covariance", cv.posdef(size))))
    if RESULT in kinds:
        game = m.plate("game")
        x, draw = m.input("x", cv.vector(size), plates=game), m.input("draw", cv.positive)
        m.random(RESULT, cv.ordered_probit(cv.dot(skill, x), cv.stack(-draw, draw)), plates=game)
    if ORDER in kinds:
        pair = m.plate("pair")
        y = m.input("y", cv.vector(size), plates=pair)
        low, high = m.input("low", cv.real, plates=pair), m.input("high", cv.real, plates=pair)
        m.random(ORDER, cv.between(cv.dot(skill, y), low, high))
    if MARGIN in kinds:
        row = m.plate("row")
        m.random(MARGIN, cv.gaussian(cv.dot(skill, m.input("z", cv.vector(size), plates=row)), variance=1.0))
    return m


def apart(seats: int, kinds: tuple[str, ...], moving: bool, home: bool) -> cv.Model:
    """Skills with a belief each: chains in time, all of one tree whose root is zero, and games that see sums of them.

    skill_s ~ N(skill_parent(s) + shift_s, step_s) where they are `moving`, else skill_s ~ N(shift_s, step_s). A game
    sees the sum over its `seats` of share * skill, and at_home * home where `home` says so, as in `together`; a team of
    a game between several has a luck of its own. A chain is exact given the messages of games. Returns the model.
    Source: herbrich2006trueskill, dangauthier2007ttt.
    """
    m = cv.Model("skills")
    state = m.plate("state")
    shift, step = m.input("shift", cv.real, plates=state), m.input("step", cv.positive, plates=state)
    if moving:
        root = cv.gaussian(0.0, variance=STILL)
        parent = m.input("parent", cv.index(state), plates=state)
        skill = m.tree(
            "skill", over=state, parent=parent, root=root, then=lambda above: cv.gaussian(above + shift, variance=step)
        )
    else:
        skill = m.random("skill", cv.gaussian(shift, variance=step))

    def seen(rows: cv.Expr, prefix: str) -> cv.Expr:
        total = 0.0
        for k in range(seats):
            who = m.input(f"{prefix}_who_{k}", cv.index(state), plates=rows)
            total = total + m.input(f"{prefix}_share_{k}", cv.real, plates=rows) * skill[who]
        return total

    advantage = None
    if home:
        prior = m.input("home_mean", cv.real), m.input("home_variance", cv.positive)
        advantage = m.random("home", cv.gaussian(prior[0], variance=prior[1]))
    for kind in kinds:
        rows = m.plate(f"{kind}_row")
        total = seen(rows, kind)
        if advantage is not None and kind != ORDER:
            total = total + advantage * m.input(f"{kind}_home", cv.real, plates=rows)
        if kind == RESULT:
            draw = m.input("draw", cv.positive)
            m.random(kind, cv.ordered_probit(total, cv.stack(-draw, draw)), plates=rows)
        elif kind == MARGIN:
            m.random(kind, cv.gaussian(total, variance=1.0), plates=rows)
        else:
            team = m.plate("team")
            luck = m.random("luck", cv.gaussian(0.0, variance=m.input("luck_variance", cv.positive, plates=team)))
            up, down = (m.input(name, cv.index(team), plates=rows) for name in ("up", "down"))
            low, high = m.input("low", cv.real, plates=rows), m.input("high", cv.real, plates=rows)
            m.random(kind, cv.between(total + luck[up] - luck[down], low, high))
    return m


@functools.lru_cache(maxsize=16)
def program(shape: tuple, tolerance: float, iterations: int) -> cv.Program:
    """The program of a model, compiled once: `shape` is whether it is `together`, and the arguments."""
    joint, *arguments = shape
    model = together(*arguments) if joint else apart(*arguments)
    options = {"tolerance": tolerance, "max_iterations": iterations, "execution": "auto"}
    return cv.compile(model, arguments[1], method="ep", trace_evidence=False, **options)

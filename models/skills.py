"""Player skills from games won and lost."""

import cavity as cv  # pyright: ignore[reportMissingImports]

from ..factors.calls import call_checked


@call_checked
def skills(prior_variance: float = 0.5, noise_variance: float = 1.0) -> cv.Model:
    """The winner played better: skill_w - skill_l + noise > 0.

    skill ~ N(0, prior_variance), noise ~ N(0, noise_variance) for each game. Only the ratio of the two variances
    matters for the ranking. Inputs: `winner` and `loser` (game), indices of players. Random: `skill` (player),
    `margin` (game). The number of players is given by `sizes={"player": ...}`. Returns the model.
    Source: herbrich2006trueskill.
    """
    m = cv.Model("skills")
    player, game = m.plate("player"), m.plate("game")
    winner = m.input("winner", cv.index(player), plates=game)
    loser = m.input("loser", cv.index(player), plates=game)
    skill = m.random("skill", cv.gaussian(0.0, variance=prior_variance), plates=player)
    margin = m.random("margin", cv.gaussian(skill[winner] - skill[loser], variance=noise_variance))
    m.constrain(margin > 0)
    return m

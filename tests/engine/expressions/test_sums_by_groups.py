"""Sums over the members of groups of any size, against Gaussian algebra."""

import numpy as np
import pytest
from scipy import stats

import cavity as cv


def teams(players, number, seats, weighted=False, **options):
    """A posterior of skills and totals, with their exact means and sds; a player may hold several seats of a team."""
    rng = np.random.default_rng(seats)
    member, weight = rng.integers(0, players, seats), rng.normal(size=seats)
    team = rng.permutation(np.r_[np.arange(number), rng.integers(0, number, seats - number)])
    y = 2.0 * rng.normal(size=number)
    m = cv.Model("teams")
    player, group, seat = m.plate("player", players), m.plate("team", number), m.plate("seat")
    who, of = m.input("who", cv.index(player), plates=seat), m.input("of", cv.index(group), plates=seat)
    share = m.input("share", cv.real, plates=seat)
    skill = m.random("skill", cv.gaussian(0.5, variance=2.0), plates=player)
    total = m.let("total", cv.sum(skill[who] * share if weighted else skill[who], by=of))
    m.random("y", cv.gaussian(total, variance=0.5))
    posterior = cv.infer(m, {"who": member, "of": team, "share": weight, "y": y}, **options)
    H = np.zeros((number, players))
    np.add.at(H, (team, member), weight if weighted else 1.0)
    covariance = np.linalg.inv(np.eye(players) / 2.0 + H.T @ H / 0.5)
    mean = covariance @ (H.T @ y / 0.5 + 0.25)
    return posterior, (mean, covariance), (H @ mean, H @ covariance @ H.T)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_joint_belief_is_exact(weighted):
    posterior, *wanted = teams(6, 4, 12, weighted)
    for name, (mean, covariance) in zip(("skill", "total"), wanted, strict=True):
        np.testing.assert_allclose(posterior[name].mean, mean, atol=1e-9)
        np.testing.assert_allclose(posterior[name].sd, np.sqrt(np.diag(covariance)), atol=1e-9)


def test_messages_are_exact_where_no_player_links_two_teams():
    posterior, *wanted = teams(12, 1, 7, method="ep")
    for name, (mean, covariance) in zip(("skill", "total"), wanted, strict=True):
        np.testing.assert_allclose(posterior[name].mean, mean, atol=1e-9)
        np.testing.assert_allclose(posterior[name].sd, np.sqrt(np.diag(covariance)), atol=1e-9)


def test_more_players_than_a_joint_belief_holds():
    """Messages in loops: the means are exact where they converge."""
    posterior, (mean, covariance), _ = teams(300, 50, 150, weighted=True)
    np.testing.assert_allclose(posterior["skill"].mean, mean, atol=1e-5)
    np.testing.assert_allclose(posterior["skill"].sd, np.sqrt(np.diag(covariance)), rtol=0.02)


def test_vmp_counts_a_member_twice_as_twice_the_member():
    m = cv.Model()
    player, team, seat = m.plate("player", 2), m.plate("team", 1), m.plate("seat")
    who, of = m.input("who", cv.index(player), plates=seat), m.input("of", cv.index(team), plates=seat)
    skill = m.random("skill", cv.gaussian(0.0, variance=1.0), plates=player)
    m.random("y", cv.gaussian(cv.sum(skill[who], by=of), variance=1.0))
    data = {"who": [0, 1, 1], "of": [0, 0, 0], "y": [1.0]}
    posterior = cv.infer(m, data, method="vmp", tolerance=1e-10)
    np.testing.assert_allclose(posterior["skill"].mean, [1.0 / 6.0, 2.0 / 6.0], rtol=1e-6)
    np.testing.assert_allclose(posterior["skill"].variance, [1.0 / 2.0, 1.0 / 5.0], rtol=1e-6)


def test_games_between_teams_whose_members_perform():
    """One game: a team of two beats a team of one, each performance the skill and noise; half-normal by symmetry."""
    m = cv.Model()
    player, team, seat, game = m.plate("player", 3), m.plate("team", 2), m.plate("seat"), m.plate("game")
    who, of = m.input("who", cv.index(player), plates=seat), m.input("of", cv.index(team), plates=seat)
    winner, loser = (m.input(name, cv.index(team), plates=game) for name in ("winner", "loser"))
    skill = m.random("skill", cv.gaussian(0.0, variance=1.0), plates=player)
    performance = m.random("performance", cv.gaussian(skill[who], variance=0.5))
    total = m.let("total", cv.sum(performance, by=of))
    m.constrain(total[winner] - total[loser] > 0)
    posterior = cv.infer(m, {"who": [0, 1, 2], "of": [0, 0, 1], "winner": [0], "loser": [1]})
    margin = np.sqrt(4.5) * stats.halfnorm.mean()
    np.testing.assert_allclose(posterior["skill"].mean, margin / 4.5 * np.array([1.0, 1.0, -1.0]), atol=1e-6)
    np.testing.assert_allclose(posterior["total"].mean, margin / 4.5 * np.array([3.0, -1.5]), atol=1e-6)


def test_empty_groups_other_groups_and_batches():
    m = cv.Model()
    player, team, seat = m.plate("player", 3), m.plate("team"), m.plate("seat")
    who, of = m.input("who", cv.index(player), plates=seat), m.input("of", cv.index(team), plates=seat)
    skill = m.random("skill", cv.gaussian(0.0, variance=1.0), plates=player)
    m.random("y", cv.gaussian(cv.sum(skill[who], by=of), variance=1.0))
    together, apart = ({"who": [0, 1], "of": of, "y": [1.0, 2.0, 3.0]} for of in ([0, 0], [1, 2]))
    posterior = cv.infer(m, together)
    np.testing.assert_allclose(posterior["skill"].mean, [1.0 / 3.0, 1.0 / 3.0, 0.0], atol=1e-9)
    predicted = posterior.predict({"who": [0, 1, 2], "of": [0, 0, 0]}, sizes={"team": 1})["y"]
    np.testing.assert_allclose(predicted.mean, [2.0 / 3.0], atol=1e-9)
    batch = cv.compile(m, observed=["y"]).batch([apart, together])
    np.testing.assert_allclose(batch[0]["skill"].mean, [1.0, 1.5, 0.0], atol=1e-9)
    np.testing.assert_allclose(batch[1]["skill"].mean, [1.0 / 3.0, 1.0 / 3.0, 0.0], atol=1e-9)


def test_sums_of_data():
    m = cv.Model()
    team, seat = m.plate("team"), m.plate("seat")
    x, of = m.input("x", cv.real, plates=seat), m.input("of", cv.index(team), plates=seat)
    a = m.random("a", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.gaussian(a * cv.sum(x, by=of), variance=1.0))
    posterior = cv.infer(m, {"x": [1.0, 2.0, 3.0], "of": [0, 0, 1], "y": [3.1, 2.9]})
    np.testing.assert_allclose(posterior["a"].mean, (3.0 * 3.1 + 3.0 * 2.9) / 19.0, atol=1e-9)

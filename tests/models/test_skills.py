"""`Skills`: laws, exact posteriors of small tournaments by weighted draws, and what other systems compute."""

import pickle

import numpy as np
import pytest
from scipy import stats

import cavity as cv
from cavity.models import Skills
from cavity.models.games.games import from_pairs, whole
from cavity.models.games.layout import Scales, arrays_apart, layout

DRAWS = 2**18
GAMES = {
    "winners": ["ann", "ann", "bob", ["cy", "dee"], "dee", "ann", "bob", "cy"],
    "losers": ["bob", "cy", "cy", ["ann", "bob"], "bob", "dee", "ann", ["dee", "bob"]],
    "draws": [False, False, True, False, True, False, False, False],
}
MARGINS = {"winners": list("abacbdac"), "losers": list("bcddacbd"), "margins": [3, 1, 0, 2, 4, 1, 2, 6]}
TIMES = [0.0, 0.0, 1.0, 2.0, 2.0, 2.0, 5.0, 5.0]
HOME = [1, 0, -1, 1, 0, 1, -1, 1]


def normal_draws(numbers):
    """Standard normal numbers (draw, number), evenly spread."""
    return stats.norm.ppf(stats.qmc.Sobol(numbers, seed=0).random(DRAWS))


def weighted(skill, log_weight):
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    mean = weight @ skill
    return (
        mean,
        np.sqrt(weight @ (skill - mean) ** 2),
        log_weight.max() + np.log(np.exp(log_weight - log_weight.max()).mean()),
    )


def outcome(difference, size, drawn, draw):
    """log P of a win, or a draw, where noise of variance size / 2 joins the difference."""
    sd = np.sqrt(size / 2.0)
    if not drawn:
        return stats.norm.logcdf(difference / sd - draw)
    return np.log(stats.norm.cdf(difference / sd + draw) - stats.norm.cdf(difference / sd - draw))


def team(side):
    return side if isinstance(side, list) else [side]


def test_teams_and_draws_are_the_exact_posterior():
    found = Skills(draw_margin=0.4).fit(**GAMES)
    skill = normal_draws(4)
    number = {player: n for n, player in enumerate(found.players_)}
    log = np.zeros(DRAWS)
    for a, b, drawn in zip(GAMES["winners"], GAMES["losers"], GAMES["draws"], strict=True):
        difference = sum(skill[:, number[p]] for p in team(a)) - sum(skill[:, number[p]] for p in team(b))
        log += outcome(difference, len(team(a) + team(b)), drawn, 0.4)
    mean, sd, evidence = weighted(skill, log)
    np.testing.assert_allclose(found.mean_, mean, atol=0.01)
    np.testing.assert_allclose(found.sd_, sd, rtol=0.01)
    assert found.log_evidence_ == pytest.approx(evidence, abs=0.02)
    weight = np.exp(log - log.max())
    win = weight @ stats.norm.cdf(skill[:, number["ann"]] - skill[:, number["dee"]] - 0.4) / weight.sum()
    assert found.predict_proba("ann", "dee")[0, 0] == pytest.approx(win, abs=0.005)


def test_home_and_time_are_the_exact_posterior():
    """Ann, bob and cy at two times, so six skills and the advantage of playing at home."""
    winners, losers, times = list("abcab"), list("bcaca"), [0.0, 0.0, 2.0, 2.0, 2.0]
    found = Skills(drift=0.5).fit(winners=winners, losers=losers, times=times, home=[1, 0, -1, 1, 1])
    z = normal_draws(7)
    later = z[:, :3] + np.sqrt(0.5) * z[:, 3:6]
    log = np.zeros(DRAWS)
    for a, b, t, home in zip(winners, losers, times, [1, 0, -1, 1, 1], strict=True):
        skill = later if t else z[:, :3]
        difference = skill[:, "abc".index(a)] - skill[:, "abc".index(b)] + home * z[:, 6]
        log += outcome(difference, 2, False, 0.0)
    mean, sd, _ = weighted(np.concatenate([z[:, :3], later, z[:, 6:]], axis=1), log)
    curves = [found.curve(player) for player in "abc"]
    means, sds = (np.stack([getattr(c, name) for c in curves], axis=1).ravel() for name in ("mean", "sd"))
    np.testing.assert_allclose([*means, found.home_advantage_[0]], mean, atol=0.015)
    np.testing.assert_allclose([*sds, found.home_advantage_[1]], sd, rtol=0.01)
    np.testing.assert_array_equal(curves[0].times, [0.0, 2.0])


def test_an_order_of_several_teams_is_the_exact_posterior():
    """One that is best before two who tie; its luck is integrated in closed form, that of the others drawn."""
    found = Skills(draw_margin=0.3).fit([["a", ["b", "c"], "d"], ["d", "a"]], ranks=[[1, 2, 2], [1, 2]])
    assert found.players_ == ["a", "b", "c", "d"]
    z = normal_draws(6)
    skill = z[:, :4]
    second, third = skill[:, 1] + skill[:, 2] + z[:, 4], skill[:, 3] + np.sqrt(0.5) * z[:, 5]
    limit = 0.3 * np.sqrt(1.5)
    inside = np.abs(second - third) < limit
    log = stats.norm.logcdf((skill[:, 0] - second - limit) / np.sqrt(0.5))
    log += outcome(skill[:, 3] - skill[:, 0], 2, False, 0.3)
    mean, sd, evidence = weighted(skill[inside], log[inside])
    np.testing.assert_allclose(found.mean_, mean, atol=0.02)
    np.testing.assert_allclose(found.sd_, sd, rtol=0.02)
    assert found.log_evidence_ == pytest.approx(evidence + np.log(inside.mean()), abs=0.02)


def test_margins_are_a_gaussian_posterior_and_learned_in_turns_as_at_once():
    """Beliefs are Gaussian exactly, so any cut of the games in time gives the same."""
    settings = {"drift": 0.3, "points": 2.0, "tolerance": 1e-9}
    whole = Skills(**settings).fit(**MARGINS, times=TIMES, home=HOME)
    turns = Skills(**settings)
    for cut in (slice(0, 3), slice(3, 5), slice(5, 7), slice(7, 8)):
        turns.partial_fit(**{k: v[cut] for k, v in MARGINS.items()}, times=TIMES[cut], home=HOME[cut])
    order = [turns.players_.index(player) for player in whole.players_]
    np.testing.assert_allclose(turns.mean_[order], whole.mean_, atol=1e-6)
    np.testing.assert_allclose(turns.sd_[order], whole.sd_, atol=1e-6)
    np.testing.assert_allclose(turns.home_advantage_, whole.home_advantage_, atol=1e-6)
    np.testing.assert_allclose(
        turns.predict_margin("a", "d", home=1), whole.predict_margin("a", "d", home=1), atol=1e-6
    )
    for player in "abcd":  # the games of one time that come in two calls are one row
        np.testing.assert_array_equal(turns.curve(player).times, whole.curve(player).times)
    covariance = np.eye(5)
    design = np.zeros((8, 5))
    for n, (a, b) in enumerate(zip(MARGINS["winners"], MARGINS["losers"], strict=True)):
        design[n, "abcd".index(a)], design[n, "abcd".index(b)], design[n, 4] = 1.0, -1.0, HOME[n]
    still = Skills(points=2.0, tolerance=1e-9).fit(**MARGINS, home=HOME)
    covariance = np.linalg.inv(covariance + design.T @ design)
    mean = covariance @ (design.T @ np.array(MARGINS["margins"]) / 2.0)
    places = ["abcd".index(player) for player in still.players_]
    np.testing.assert_allclose(still.mean_, mean[places], atol=1e-6)
    np.testing.assert_allclose(still.sd_, np.sqrt(np.diag(covariance))[places], atol=1e-6)
    law = stats.multivariate_normal(np.zeros(8), 4.0 * (design @ design.T + np.eye(8)))
    assert still.log_evidence_ == pytest.approx(law.logpdf(MARGINS["margins"]), abs=1e-6)


def test_beliefs_apart_are_those_together_where_games_make_no_loop():
    """Sums over trees are exact; through time as well, where no two players meet twice."""
    games = {"winners": list("aabb"), "losers": list("bcde"), "times": [0.0, 1.0, 1.5, 3.0], "draws": [0, 1, 0, 0]}
    together, apart = (
        Skills(drift=0.4, draw_margin=0.2, joint=joint, tolerance=1e-8).fit(**games) for joint in (True, False)
    )
    np.testing.assert_allclose(apart.mean_, together.mean_, atol=1e-5)
    np.testing.assert_allclose(apart.sd_, together.sd_, atol=1e-5)
    assert apart.log_evidence_ == pytest.approx(together.log_evidence_, abs=1e-4)
    # Those who play next agree; those who do not learn of it as well where covariances are kept.
    for skills in (together, apart):
        skills.partial_fit(winners=["f"], losers=["a"], times=[4.0], draws=[False])
    played = [together.players_.index("a"), together.players_.index("f")]
    np.testing.assert_allclose(apart.mean_[played], together.mean_[played], atol=1e-5)
    np.testing.assert_allclose(apart.sd_[played], together.sd_[played], atol=1e-5)
    assert np.array_equal(apart.curve("a").times, [0.0, 1.0, 4.0])
    with pytest.raises(cv.DataError, match="before the last"):
        apart.partial_fit(winners=["a"], losers=["f"], times=[2.0])


def test_predictions_are_probabilities_and_symmetric():
    found = Skills(draw_margin=0.4, drift=0.0).fit(**GAMES)
    there, back = found.predict_proba(["ann", "bob"], ["cy", "zoe"]), found.predict_proba(["cy", "zoe"], ["ann", "bob"])
    np.testing.assert_allclose(there.sum(1), 1.0)
    np.testing.assert_allclose(there, back[:, ::-1])
    np.testing.assert_allclose(found.predict_proba("yan", "zoe")[0, 0], found.predict_proba("yan", "zoe")[0, 2])
    both = found.predict_order("ann", "bob", seed=1)
    wins = Skills(draw_margin=0.0).fit(winners=["a"], losers=["b"])
    np.testing.assert_allclose(both.sum(0), 1.0)
    order, exact = wins.predict_order("a", "b"), wins.predict_proba("a", "b")[0]
    np.testing.assert_allclose(order[0], exact, atol=0.008)
    np.testing.assert_array_equal(order, wins.predict_order("a", "b"))
    three = wins.predict_order("a", "b", ["a2", "b2"])
    np.testing.assert_allclose([three.sum(0), three.sum(1)], 1.0)
    assert exact.shape == (2,)


def test_uncertainty_grows_with_time_and_is_that_of_an_interval_of_the_walk():
    found = Skills(drift=0.5).fit(winners=["a"], losers=["b"], times=["2024-01-01"])
    now, later = (found.predict_proba("a", "b", times=day)[0, 0] for day in ("2024-01-01", "2024-03-01"))
    assert 0.5 < later < now
    mean = found.mean_[0] - found.mean_[1]
    assert later == pytest.approx(
        stats.norm.cdf(mean / np.sqrt(stats.norm.ppf(now) ** -2 * mean**2 + 2 * 0.25 * 60)), abs=1e-9
    )
    with pytest.raises(cv.DataError, match="dates"):
        found.predict_proba("a", "b", times=5.0)


def test_scales_are_learned_at_the_largest_evidence():
    rng = np.random.default_rng(0)
    skill = 1.5 * rng.normal(size=10)
    first = rng.integers(10, size=160)
    second = (first + rng.integers(1, 10, size=160)) % 10
    difference = skill[first] - skill[second] + rng.normal(size=160)
    draws = np.abs(difference) < 0.5
    swap = difference < 0
    games = {"winners": np.where(swap, second, first), "losers": np.where(swap, first, second), "draws": draws}
    found = Skills(spread=None).fit(**games)
    assert 0.35 < found.draw_margin_ < 0.65
    assert 0.8 < found.spread_ < 2.6
    for factor in (0.8, 1.25):
        for more in ({"spread": found.spread_ * factor}, {"draw_margin": found.draw_margin_ * factor}):
            other = Skills(**{"spread": found.spread_, "draw_margin": found.draw_margin_} | more).fit(**games)
            assert other.log_evidence_ < found.log_evidence_
    assert np.corrcoef(found.mean_, skill[found.players_])[0, 1] > 0.95
    board = found.leaderboard(3)
    assert [standing.place for standing in board] == [1, 2, 3]
    assert board[0].mean == found.mean_.max()
    assert sum(standing.games for standing in found.leaderboard()) == 320


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    frames = pytest.importorskip(library)
    columns = {"w": ["a", "b"], "w2": ["c", None], "loser": ["b", "c"], "day": ["2024-01-01", "2024-02-01"]}
    found = Skills(drift=0.01).fit(frames.DataFrame(columns), winners=["w", "w2"], times="day")
    lists = Skills(drift=0.01).fit(winners=[["a", "c"], "b"], losers=["b", "c"], times=columns["day"])
    assert found.players_ == lists.players_ == ["a", "c", "b"]
    np.testing.assert_allclose(found.mean_, lists.mean_)
    assert found.curve("b").times[0] == np.datetime64("2024-01-01")
    with pytest.raises(cv.DataError, match="no column 'winner'"):
        Skills().fit(frames.DataFrame(columns))
    numbers = Skills().fit(frames.DataFrame({"w": [1.0, 2.0], "w2": [3.0, None], "loser": [2, 1]}), winners=["w", "w2"])
    assert numbers.players_ == [1, 3, 2]


def test_files_and_pickles(tmp_path):
    found = Skills(draw_margin=0.4).fit(**GAMES)
    found.save(tmp_path / "kept")
    for other in (Skills.load(tmp_path / "kept"), pickle.loads(pickle.dumps(found))):
        np.testing.assert_array_equal(other.predict_proba("ann", "zoe"), found.predict_proba("ann", "zoe"))
        assert other.leaderboard() == found.leaderboard()
        other.partial_fit(winners=["ann"], losers=["eve"], draws=[False])
        assert len(other.curve("ann").times) == 1
    content = bytearray((tmp_path / "kept").read_bytes())
    content[len(content) // 2] ^= 255
    (tmp_path / "damaged").write_bytes(content)
    for path in ("damaged", "absent"):
        with pytest.raises(cv.DataError):
            Skills.load(tmp_path / path)


WRONG = [
    ({"winners": [], "losers": []}, "no games"),
    ({"winners": ["a"], "losers": ["a"]}, "twice"),
    ({"winners": ["a"], "losers": ["b", "c"]}, "1 games and losers 2"),
    ({"winners": "a", "losers": "b"}, "for each game"),
    ({"winners": [None], "losers": ["b"]}, "text or a whole number"),
    ({"winners": [1.5], "losers": ["b"]}, "text or a whole number"),
    ({"winners": ["a"], "losers": ["b"], "times": [20240531]}, "look like dates"),
    ({"winners": ["a"], "losers": ["b"], "times": [np.nan]}, "not known"),
    ({"winners": ["a"], "losers": ["b"], "times": ["soon"]}, "times are numbers, dates"),
    ({"winners": ["a"], "losers": ["b"], "times": [True]}, "times are numbers, dates"),
    ({"winners": ["a"], "losers": ["b"], "times": ["20240531"]}, "that of game 0 is '20240531'"),
    ({"winners": ["a"], "losers": ["b"], "times": ["today"]}, "that of game 0 is 'today'"),
    ({"winners": ["a"], "losers": ["b"], "draws": [True]}, "All games are draws"),
    ({"winners": ["a"], "losers": ["b"], "draws": ["no"]}, "true or false"),
    ({"winners": ["a"], "losers": ["b"], "margins": [-1]}, "change places"),
    ({"winners": ["a"], "losers": ["b"], "margins": [2], "draws": [True]}, "disagree"),
    ({"winners": ["a"], "losers": ["b"], "home": [2]}, "at home"),
    ({"winners": ["a"]}, "There are no games"),
    ({"winners": ["a"], "losers": ["b"], "draws": [None]}, "found None"),
    ({"games": [["a", "b"]], "ranks": 3}, "for each game"),
    ({"games": "a"}, "list of games"),
    ({"games": [["a"]]}, "at least two teams"),
    ({"games": [["a", "b"]], "ranks": [[1]]}, "ranks of game 0"),
    ({"games": [["a", "b", "c"]], "home": [1]}, "two teams"),
]


@pytest.mark.parametrize(("games", "told"), WRONG)
def test_games_that_are_none(games, told):
    with pytest.raises(cv.DataError, match=told):
        Skills().fit(**games)


@pytest.mark.parametrize(
    "settings", [{"spread": 0}, {"drift": -1}, {"joint": 3}, {"unseen": "skip"}, {"tolerance": None}, {"iterations": 0}]
)
def test_settings_that_are_none(settings):
    with pytest.raises(cv.ModelError):
        Skills(**settings)


def test_questions_that_have_no_answer():
    with pytest.raises(cv.DataError, match="Call fit"):
        Skills().leaderboard()
    found = Skills(unseen="error", joint=True).fit(winners=["a"], losers=["b"])
    with pytest.raises(cv.DataError, match="'zoe' has played no game"):
        found.predict_proba("a", "zoe")
    with pytest.raises(cv.DataError, match="margins="):
        found.predict_margin("a", "b")
    with pytest.raises(cv.DataError, match="no curve"):
        found.curve("zoe")
    with pytest.raises(cv.DataError, match="one of each"):
        found.predict_proba("a", ["a", "b"])
    with pytest.raises(cv.DataError, match="'a' twice"):
        found.predict_proba("a", "a")
    with pytest.raises(cv.ModelError, match="seed="):
        found.predict_order("a", "b", seed="x")
    with pytest.raises(cv.ModelError, match="interval="):
        found.leaderboard(interval=90)
    with pytest.raises(cv.DataError, match="had no draws"):
        found.partial_fit(winners=["a"], losers=["b"], draws=[True])
    with pytest.raises(cv.DataError, match="Give times"):
        Skills(drift=None).fit(winners=["a"], losers=["b"])
    with pytest.raises(cv.DataError, match="have no times"):
        Skills(drift=0.1).fit(winners=["a"], losers=["b"])
    with pytest.raises(cv.DataError, match="draw_margin=0"):
        Skills(draw_margin=0.0).fit(winners=["a", "b"], losers=["b", "a"], draws=[True, False])
    with pytest.raises(cv.ModelError, match="number="):
        found.leaderboard(-1)
    with pytest.raises(cv.DataError, match="at most 1024"):
        Skills(joint=True).fit(winners=range(0, 1100, 2), losers=range(1, 1100, 2))


def test_sds_below_what_games_can_tell_are_said():
    """Four players in sixty games: the sd of the mean of all skills is a half before and after."""
    rng = np.random.default_rng(0)
    winners = rng.integers(4, size=60)
    games = {"winners": winners, "losers": (winners + rng.integers(1, 4, size=60)) % 4}
    assert Skills().fit(**games).sd_.min() > 0.5
    with pytest.warns(cv.CavityWarning, match="sds of skills are too small"):
        assert Skills(joint=False).fit(**games).sd_.max() < 0.3


@pytest.mark.slow
def test_few_players_at_many_times_are_one_belief_too():
    """Three players on ninety days."""
    rng = np.random.default_rng(0)
    winners = rng.integers(3, size=360)
    losers, days = (winners + rng.integers(1, 3, size=360)) % 3, np.repeat(np.arange(90.0), 4)
    found = Skills(drift=0.02).fit(winners=winners, losers=losers, times=days)
    assert sum(len(found.curve(player).times) for player in range(3)) > 256
    assert found.sd_.min() > np.sqrt((1.0 + 89 * 0.02**2) / 3)  # the sd of the mean of all, which no game touches


def test_a_scale_that_games_do_not_tell_is_said():
    with pytest.warns(cv.CavityWarning, match="hardly tell spread"):
        Skills(spread=None).fit(winners=list("aab"), losers=list("bcc"))


def test_one_game_of_two_teams_is_that_of_trueskill():
    trueskill = pytest.importorskip("trueskill")
    peer = trueskill.TrueSkill(mu=0.0, sigma=1.0, beta=np.sqrt(0.5), tau=0.0, draw_probability=0.0)
    rated = peer.rate([[peer.create_rating(), peer.create_rating()], [peer.create_rating()]], [0, 1])
    found = Skills().fit(winners=[["a", "b"]], losers=["c"])
    np.testing.assert_allclose(found.mean_, [r.mu for side in rated for r in side], atol=1e-4)
    np.testing.assert_allclose(found.sd_, [r.sigma for side in rated for r in side], atol=1e-4)


def test_a_history_is_that_of_trueskill_through_time():
    ttt = pytest.importorskip("trueskillthroughtime")
    games = [[["a"], ["b"]], [["b"], ["c"]], [["a"], ["c"]], [["b"], ["a"]]]
    history = ttt.History(games, times=[0, 1, 3, 4], mu=0.0, sigma=1.0, beta=np.sqrt(0.5), gamma=0.3)
    history.convergence(epsilon=1e-8, iterations=100, verbose=False)
    found = Skills(drift=0.3, joint=False, tolerance=1e-8).fit(games, times=[0, 1, 3, 4])
    for player, curve in history.learning_curves().items():
        np.testing.assert_allclose(found.curve(player).mean, [belief.mu for _, belief in curve], atol=1e-4)
        np.testing.assert_allclose(found.curve(player).sd, [belief.sigma for _, belief in curve], atol=1e-4)


def test_another_number_of_games_and_draws_has_the_same_shapes():
    """What compiles a program anew is the shape of what has a belief for each element; the engine pads rows."""
    rng = np.random.default_rng(0)
    shapes = set()
    for number in (100, 101, 110):
        first = rng.integers(0, 30, number)
        second = (first + rng.integers(1, 30, number)) % 30
        teams, ranks = from_pairs(first, second, rng.random(number) < 0.2)
        games = whole(teams, ranks, rng.integers(0, 500, number), None, None, True)
        laid = layout(games, True, None, everyone=False)
        arrays = arrays_apart(laid, Scales(1.0, 0.1, 0.3, 1.0), None, True, 2)
        shapes.add((tuple(laid.rows), arrays["step"].shape, arrays["parent"].shape))
        assert len(arrays["result"]) == number
        assert arrays["step"].min() > 0.0
        assert not laid.is_of_few
    assert shapes == {(("result",), (256,), (256,))}


def test_who_meets_often_is_few():
    """More seats than half the square of the number of players: three in two games are not, in three they are."""
    for number, few in ((2, False), (3, True)):
        teams, ranks = from_pairs(list("abc")[:number], list("bca")[:number], None)
        laid = layout(whole(teams, ranks, range(number), None, None, False), True, None, everyone=True)
        assert laid.is_of_few == few

"""What a prediction carries: which plates have new elements, and that what was learned of the others is used, whole."""

import numpy as np
import pytest

import cavity as cv
from cavity.compiler.data.bind import bind
from cavity.engine.answers.new_elements import fresh_plates

close = np.testing.assert_allclose
RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3))


def linear(locals_on_rows=False):
    """Weights on a feature plate, and perhaps an effect for every row, seen twice so that it is not just noise."""
    m = cv.Model("linear")
    n, k = m.plate("n"), m.plate("k")
    x = m.input("x", cv.real, plates=(n, k))
    w = m.random("w", cv.gaussian(0.0, variance=9.0), plates=k)
    score = m.let("score", cv.sum(w * x, over=k))
    if not locals_on_rows:
        m.random("y", cv.gaussian(score, variance=0.25), plates=n)
        return m
    effect = m.random("effect", cv.gaussian(1.0, variance=2.0), plates=n)
    for name in ("y", "z"):
        m.random(name, cv.gaussian(score + effect, variance=0.25), plates=n)
    return m


def conditioned(prior_mean, prior, design, noise, outcome):
    """The exact posterior of a linear Gaussian model."""
    gain = prior @ design.T @ np.linalg.inv(design @ prior @ design.T + noise)
    return prior_mean + gain @ (outcome - design @ prior_mean), prior - gain @ design @ prior


def test_weights_on_a_feature_plate_are_carried():
    y = X @ [5.0, -3.0, 2.0] + 0.5 * RNG.normal(size=12)
    posterior = cv.infer(linear(), {"x": X, "y": y})
    mean, covariance = conditioned(np.zeros(3), 9.0 * np.eye(3), X, 0.25 * np.eye(12), y)
    for new in (X, X[:4] - 1.0):
        found = posterior.predict({"x": new})
        close(found["y"].mean, new @ mean, rtol=1e-6, atol=1e-8)
        close(found["y"].variance, np.einsum("ni,ij,nj->n", new, covariance, new) + 0.25, rtol=1e-6)
        assert set(found) == {"score", "y"}
    with pytest.raises(cv.DataError, match="2 elements of plate 'k', but 'w' was learned for its 3"):
        posterior.predict({"x": X[:, :2]})
    close(posterior.predict({"x": X[:2]}, new=["n", "k"])["y"].variance, 9.0 * (X[:2] ** 2).sum(1) + 0.25, rtol=1e-9)


def test_effects_of_new_rows_are_new_and_weights_keep_their_covariances():
    rows = 12
    y, z = RNG.normal(size=(2, rows)) + X @ [5.0, -3.0, 2.0]
    posterior = cv.infer(linear(locals_on_rows=True), {"x": X, "y": y, "z": z})
    design = np.vstack([np.hstack([X, np.eye(rows)])] * 2)
    prior_mean = np.r_[np.zeros(3), np.ones(rows)]
    prior = np.diag(np.r_[np.full(3, 9.0), np.full(rows, 2.0)])
    mean, covariance = conditioned(prior_mean, prior, design, 0.25 * np.eye(2 * rows), np.r_[y, z])
    found = posterior.predict({"x": X})
    close(found["effect"].mean, 1.0, rtol=1e-9)
    close(found["y"].mean, X @ mean[:3] + 1.0, rtol=1e-5)
    close(found["y"].variance, np.einsum("ni,ij,nj->n", X, covariance[:3, :3], X) + 2.25, rtol=1e-5)
    same = posterior.predict({"x": X}, new=[])  # the same rows once more
    whole = design[:rows]
    close(same["y"].mean, whole @ mean, rtol=1e-5)
    close(same["y"].variance, np.einsum("ni,ij,nj->n", whole, covariance, whole) + 0.25, rtol=1e-5)


# The rules, without inference ----------------------------------------------------------------------------------------


def decided(m, learned, before, now, sizes=None, new=None, old_sizes=None):
    return fresh_plates(m, bind(m, before, old_sizes), learned, now, sizes or {}, new)


def test_outcomes_on_two_plates():
    m = cv.Model("panel")
    n, k = m.plate("n"), m.plate("k")
    x = m.input("x", cv.real, plates=(n, k))
    a = m.random("a", cv.gaussian(0.0, variance=1.0), plates=n)
    w = m.random("w", cv.gaussian(0.0, variance=1.0), plates=k)
    m.random("y", cv.gaussian(a + w * x, variance=1.0))
    before = {"x": X, "y": X}
    assert decided(m, ["w"], before, {"x": X}) == {"n"}
    assert decided(m, ["w"], before, {"x": X[:5]}) == {"n"}
    assert decided(m, ["a", "w"], before, {"x": X[:5]}) == {"n"}
    assert decided(m, ["a", "w"], before, {"x": X[:, :2]}) == {"k"}
    assert decided(m, ["a", "w"], before, {"x": X}) == set()
    assert decided(m, ["a", "w"], before, {"x": X + 1.0}, new=["n"]) == {"n"}
    assert decided(m, ["a", "w"], before, {"x": X + 1.0}, new=[]) == set()
    with pytest.raises(cv.DataError, match=r"'a', 'w' was learned: whether.*new=\['n'\], or none, new=\[\]"):
        decided(m, ["a", "w"], before, {"x": X + 1.0})
    with pytest.raises(cv.DataError, match="2 elements of plate 'k', but 'w'"):
        decided(m, ["w"], before, {"x": X[:, :2]})
    with pytest.raises(cv.DataError, match="5 elements of plate 'n', but 'a'"):
        decided(m, ["a", "w"], before, {"x": X[:5, :2]})
    with pytest.raises(cv.DataError, match="a plate 'm', which the model does not have"):
        decided(m, ["w"], before, {"x": X}, new=["m"])


def schools():
    """Groups with a covariate of their own, which their effects depend on or not, and rows that point to them."""
    m = cv.Model("schools")
    n, g = m.plate("n"), m.plate("g")
    group, u = m.input("group", cv.index(g), plates=n), m.input("u", cv.real, plates=g)
    slope = m.random("slope", cv.gaussian(0.0, variance=1.0))
    a = m.random("a", cv.gaussian(slope * u, variance=1.0), plates=g)
    b = m.random("b", cv.gaussian(0.0, variance=1.0), plates=g)
    m.random("y", cv.gaussian(a[group] + b[group], variance=1.0))
    return m


def test_groups_are_new_where_what_defines_them_is():
    before = {"group": [0, 0, 1, 2], "u": [0.5, 1.0, 2.0], "y": np.zeros(4)}
    m = schools()
    assert decided(m, ["slope", "a", "b"], before, {"group": [0, 2]}) == {"n"}
    assert decided(m, ["slope", "a", "b"], before, {"group": [0, 2], "u": [0.5, 1.0, 2.0]}) == {"n"}
    assert decided(m, ["slope", "a", "b"], before, {"group": [0, 2], "u": [5.0, 1.0, 2.0]}) == {"n", "g"}
    assert decided(m, ["slope", "a", "b"], before, {"group": [0, 1], "u": [5.0, 1.0]}) == {"n", "g"}
    assert decided(m, ["slope", "b"], before, {"group": [0, 1], "u": [5.0, 1.0, 2.0]}) == {"n"}
    with pytest.raises(cv.DataError, match="4 elements of plate 'g', but 'a', 'b' was"):
        decided(m, ["slope", "a", "b"], before, {"group": [0, 2]}, sizes={"g": 4})


def test_games_and_sizes():
    m = cv.Model("skills")
    player, game = m.plate("player"), m.plate("game")
    winner, loser = (m.input(name, cv.index(player), plates=game) for name in ("winner", "loser"))
    skill = m.random("skill", cv.gaussian(0.0, variance=0.5), plates=player)
    m.constrain(m.random("margin", cv.gaussian(skill[winner] - skill[loser], variance=1.0)) > 0)
    before, sizes = {"winner": [0, 1], "loser": [1, 2]}, {"player": 4}
    learned, now = ["skill", "margin"], {"winner": [3], "loser": [0]}
    assert decided(m, learned, before, now, old_sizes=sizes) == {"game"}
    assert decided(m, learned, before, now, sizes, old_sizes=sizes) == {"game"}
    with pytest.raises(cv.DataError, match="9 elements of plate 'player', but 'skill'"):
        decided(m, learned, before, now, {"player": 9}, old_sizes=sizes)
    assert decided(m, learned, before, now, {"player": 9}, ["game", "player"], sizes) == {"game", "player"}

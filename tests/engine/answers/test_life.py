"""Posteriors go on to the next batch, and a batch is taken away again."""

from __future__ import annotations

import numpy as np
import pytest
from small_models import EARLY, LATE, SIZES, dice_model, mean_model, same, skills

import cavity as cv

close = np.testing.assert_allclose
RANDOM = np.random.default_rng(7)


def rate_model():
    m = cv.Model("rate")
    n = m.plate("n")
    rate = m.random("rate", cv.gamma(2.0, 3.0))
    m.random("x", cv.poisson(rate), plates=n)
    return m


def coin_model():
    m = cv.Model("coin")
    n = m.plate("n")
    p = m.random("p", cv.beta(2.0, 1.0))
    m.random("x", cv.bernoulli(p), plates=n)
    return m


def vector_model():
    m = cv.Model("vector")
    n = m.plate("n")
    mean = m.random("mean", cv.vector_gaussian(np.zeros(2), covariance=np.array([[2.0, 0.3], [0.3, 1.0]])))
    m.random("x", cv.vector_gaussian(mean, precision=np.array([[1.0, 0.2], [0.2, 3.0]])), plates=n)
    return m


def scatter_model():
    m = cv.Model("scatter")
    n = m.plate("n")
    precision = m.random("precision", cv.wishart(dof=4.0, scale=np.eye(2) / 4.0))
    m.random("x", cv.vector_gaussian(np.zeros(2), precision=precision), plates=n)
    return m


CONJUGATE = {
    "gaussian": (mean_model, RANDOM.normal(2.0, 0.7, 40)),
    "gamma": (rate_model, RANDOM.poisson(1.5, 40)),
    "dirichlet": (dice_model, RANDOM.integers(0, 3, 40)),
    "beta": (coin_model, RANDOM.integers(0, 2, 40).astype(bool)),
    "vector": (vector_model, RANDOM.normal(size=(40, 2))),
    "wishart": (scatter_model, RANDOM.normal(size=(40, 2))),
}


# streaming ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", CONJUGATE)
def test_batches_one_after_the_other_are_all_of_them_at_once(family):
    make, x = CONJUGATE[family]
    model = make()
    posterior, evidence = None, 0.0
    program = cv.compile(model, ["x"])
    for batch in np.split(x, 4):
        posterior = program({"x": batch}, prior=posterior)
        evidence += posterior.log_evidence
    assert program.traces == 2  # with the declared prior, and with a given one
    whole = cv.infer(model, {"x": x})
    (name,) = posterior.carried
    same(posterior[name], whole[name])
    close(evidence, whole.log_evidence, rtol=1e-10)
    close(sum(posterior.evidence.values()), posterior.log_evidence, rtol=1e-12)
    assert "belief given with prior=" in posterior.explain()


@pytest.mark.parametrize("family", ["gaussian", "gamma", "vector"])
def test_a_sliding_window_is_recomputed_from_contributions(family):
    make, x = CONJUGATE[family]
    model, batches = make(), np.split(x, 5)
    (name,) = cv.infer(model, {"x": batches[0]}).carried
    window, posterior = [], None
    for number, batch in enumerate(batches):
        start = posterior if len(window) < 3 else posterior - window.pop(0)
        posterior = cv.infer(model, {"x": batch}, prior=start)
        window.append(posterior.contribution)
        recomputed = cv.infer(model, {"x": np.concatenate(batches[max(0, number - 2) : number + 1])})
        same(posterior[name], recomputed[name])
    total = window[0] + window[1] + window[2]
    same((recomputed - (total - window[2]))[name], cv.infer(model, {"x": batches[-1]})[name], rtol=1e-9)
    same((cv.infer(model, {"x": batches[-1]}) + (total - window[2]))[name], recomputed[name])


def bayes_point_machine():
    m = cv.Model("bayes point machine")
    n = m.plate("n")
    x0, x1 = m.input("x0", cv.real, plates=n), m.input("x1", cv.real, plates=n)
    w0, w1 = (m.random(name, cv.gaussian(0.0, variance=1.0)) for name in ("w0", "w1"))
    score = m.random("score", cv.gaussian(w0 * x0 + w1 * x1, variance=1.0))
    m.let("y", score > 0)
    return m


E6 = {"x0": [0.0, 1.0, 0.0], "x1": [0.0, 0.0, 1.0], "y": [False, True, True]}


@pytest.mark.slow
def test_e6_incremental_training_on_the_same_data():
    """The numbers that Infer.NET's own tests print for its Bayes point machine, trained twice on the same rows."""
    model = bayes_point_machine()
    posterior = cv.infer(model, E6, tolerance=1e-9)
    close(posterior.log_evidence, -2.0794415416798357, rtol=1e-9)
    new = {"x0": [0.0, 4.0], "x1": [2.0, 0.0]}
    close(posterior.predict(new)["y"].mean, [0.72056019196590348, 0.74344670077888442], rtol=1e-8)
    again = cv.infer(model, E6, prior=posterior, tolerance=1e-9)
    close(again.predict(new)["y"].mean, [0.83123739083799109, 0.86418552521719771], rtol=1e-8)


@pytest.mark.slow
def test_skills_go_on_to_the_next_games_and_can_forget_them():
    model = skills()
    first = cv.infer(model, EARLY, sizes=SIZES)
    second = cv.infer(model, LATE, sizes=SIZES, prior=first)
    both = cv.infer(model, {k: EARLY[k] + LATE[k] for k in EARLY}, sizes=SIZES)
    assert list(first.carried) == ["skill"]  # margins belong to their games
    assert np.all(np.abs(second["skill"].mean - both["skill"].mean) < 0.35 * both["skill"].sd)
    close(first.log_evidence + second.log_evidence, both.log_evidence, atol=0.2)
    same((second - second.contribution)["skill"], first["skill"], rtol=1e-9)
    alone = cv.infer(model, LATE, sizes=SIZES)
    without = (second - first.contribution)["skill"]
    assert np.all(np.abs(without.mean - alone["skill"].mean) < 0.35 * alone["skill"].sd)


@pytest.mark.slow
def test_components_told_apart_by_earlier_data_keep_their_places():
    m = cv.Model("mixture")
    k, n = m.plate("component", 2), m.plate("n")
    weights = m.random("weights", cv.dirichlet(np.ones(2)))
    mean = m.random("mean", cv.gaussian(0.0, variance=100.0), plates=k)
    z = m.random("z", cv.categorical(weights), plates=n)
    m.random("x", cv.gaussian(mean[z], variance=1.0))
    x = np.concatenate([RANDOM.normal(-4.0, 1.0, 30), RANDOM.normal(5.0, 1.0, 30)])
    first = cv.infer(m, {"x": x}, restarts=3)
    order = np.argsort(first["mean"].mean)
    for seed in range(4):
        second = cv.infer(m, {"x": x[::-1].copy()}, prior=first, seed=seed)
        assert np.array_equal(np.argsort(second["mean"].mean), order)
        close(second["weights"].parameters["concentration"].sum(), 2 + 120, rtol=1e-9)


def test_a_dictionary_says_what_is_carried():
    model = mean_model()
    posterior = cv.infer(model, {"x": [1.0, 2.0]})
    one = cv.infer(model, {"x": [3.0]}, prior={"mean": posterior["mean"]})
    same(one["mean"], cv.infer(model, {"x": [3.0]}, prior=posterior)["mean"], rtol=1e-14)
    assert cv.infer(model, {}, sizes={"n": 1}, prior=posterior)["mean"].mean == pytest.approx(posterior["mean"].mean)


def hierarchy():
    m = cv.Model("hierarchy")
    n = m.plate("n")
    top = m.random("top", cv.gamma(2.0, 2.0))
    m.random("mean", cv.gaussian(0.0, precision=top))
    m.random("x", cv.gaussian(m.randoms["mean"], variance=1.0), plates=n)
    return m


def test_what_cannot_be_carried_says_why():
    model = mean_model()
    posterior = cv.infer(model, {"x": [1.0, 2.0]})
    cases = [
        (7.0, "takes a posterior of the same model"),
        ({}, "carries no variable over"),
        ({"median": posterior["mean"]}, "'median', which is no random variable"),
        ({"mean": cv.infer(rate_model(), {"x": [1]})["rate"]}, "the family Gaussian"),
        ({"mean": posterior["x"]}, "the family Gaussian"),
    ]
    for prior, message in cases:
        with pytest.raises(cv.DataError, match=message):
            cv.infer(model, {"x": [1.0]}, prior=prior)
    with pytest.raises(cv.DataError, match="'mean', which the data observe"):
        cv.infer(model, {"x": [1.0], "mean": 0.0}, prior=posterior)
    with pytest.raises(cv.DataError, match=r"plates of shape \(4,\).*player: 5"):
        cv.infer(skills(), EARLY, sizes={"player": 5}, prior=cv.infer(skills(), EARLY, sizes=SIZES))
    levels = hierarchy()
    below = cv.infer(levels, {"x": [1.0, 2.0]})
    with pytest.raises(cv.DataError, match="none of 'top', which 'mean' depends on"):
        cv.infer(levels, {"x": [1.0]}, prior={"mean": below["mean"]})
    with pytest.raises(cv.UnsupportedError, match="'mean' has no baseline: its prior depends on top"):
        below.contribution
    parts = cv.infer(levels, {"x": [1.0]}, prior=below).contribution.naturals
    assert [part.members for part in parts] == [("top",), ("mean",)]


def test_a_batch_is_removed_once():
    model = mean_model()
    first = cv.infer(model, {"x": [1.0, 2.0, 3.0]})
    second = cv.infer(model, {"x": [2.0]}, prior=first)
    with pytest.raises(cv.DataError, match=r"'mean' is improper.*remove each batch once"):
        second - first.contribution - first.contribution
    with pytest.raises(cv.DataError, match="speaks of 'rate'"):
        second - cv.infer(rate_model(), {"x": [1]}).contribution
    with pytest.raises(TypeError):
        second - 1.0


@pytest.mark.parametrize(
    ("make", "x"), [(coin_model, [True, False, True, False]), (rate_model, [1, 2, 3, 4]), (dice_model, [0, 1, 2, 1])]
)
def test_masked_entries_of_discrete_data_are_missing(make, x):
    hidden = np.array([False, True, False, False])
    masked = cv.infer(make(), {"x": np.ma.masked_array(x, hidden)})
    rest = cv.infer(make(), {"x": np.array(x)[~hidden]})
    (name,) = rest.carried
    same(masked[name], rest[name], rtol=1e-14)
    close(masked.log_evidence, rest.log_evidence, rtol=1e-14)
    predicted = rest[name].mean  # of a rate, a probability, or class probabilities alike
    close(masked["x"].mean[1], predicted, rtol=1e-12)


# joint beliefs --------------------------------------------------------------------------------------------------------


def line_model():
    m = cv.Model("line")
    n = m.plate("n")
    u = m.input("u", cv.real, plates=n)
    a = m.random("a", cv.gaussian(0.0, variance=100.0))
    b = m.random("b", cv.gaussian(1.0, variance=25.0))
    m.random("y", cv.gaussian(a + b * u, variance=0.5), plates=n)
    return m


def lines_model():
    """A line for each group: one joint belief for each element of a plate."""
    m = cv.Model("lines")
    n, k = m.plate("n"), m.plate("k", 3)
    u, i = m.input("u", cv.real, plates=n), m.input("i", cv.index(k), plates=n)
    a = m.random("a", cv.gaussian(0.0, variance=100.0), plates=k)
    b = m.random("b", cv.gaussian(1.0, variance=25.0), plates=k)
    m.random("y", cv.gaussian(a[i] + b[i] * u, variance=0.5), plates=n)
    return m


def levels_model():
    """Intercepts around a common one, one slope: one joint belief over all elements, with a random prior inside."""
    m = cv.Model("levels")
    n, k = m.plate("n"), m.plate("k", 3)
    u, i = m.input("u", cv.real, plates=n), m.input("i", cv.index(k), plates=n)
    centre = m.random("centre", cv.gaussian(0.0, variance=9.0))
    a = m.random("a", cv.gaussian(centre, variance=4.0), plates=k)
    b = m.random("b", cv.gaussian(1.0, variance=25.0))
    m.random("y", cv.gaussian(a[i] + b * u, variance=0.5), plates=n)
    return m


def rows(model, start, stop):
    random = np.random.default_rng(3)
    u, i = random.normal(5.0, 1.0, 40), random.integers(0, 3, 40)
    data = {"u": u, "i": i, "y": 1.0 + 2.0 * u + random.normal(0.0, 0.7, 40)}
    return {name: array[start:stop] for name, array in data.items() if name in {**model.inputs, "y": None}}


@pytest.mark.parametrize("make", [line_model, lines_model, pytest.param(levels_model, marks=pytest.mark.slow)])
def test_joint_beliefs_go_over_with_their_covariances(make, tmp_path):
    model = make()
    first = cv.infer(model, rows(model, 0, 15))
    second = cv.infer(model, rows(model, 15, 40), prior=first)
    whole = cv.infer(model, rows(model, 0, 40))
    back = second - second.contribution
    other = cv.infer(model, rows(model, 0, 15), prior=whole - first.contribution)
    second.save(tmp_path / "second.npz")
    read = cv.load(tmp_path / "second.npz")
    third = cv.infer(model, rows(model, 0, 5), prior=second)
    again = cv.infer(model, rows(model, 0, 5), prior=read)
    close(first.log_evidence + second.log_evidence, whole.log_evidence, atol=1e-8)
    for name in first.carried:
        for found, wanted in ((second, whole), (back, first), (other, whole), (again, third)):
            close(found[name].mean, wanted[name].mean, atol=1e-8)
            close(found[name].sd, wanted[name].sd, atol=1e-8)
        close((read - read.contribution)[name].sd, first[name].sd, atol=1e-8)


def test_members_of_a_joint_belief_may_be_carried_one_by_one():
    model = line_model()
    first = cv.infer(model, rows(model, 0, 15))
    apart = cv.infer(model, rows(model, 15, 40), prior={"a": first["a"], "b": first["b"]})
    together = cv.infer(model, rows(model, 15, 40), prior=first)
    assert apart["a"].sd < 0.95 * together["a"].sd  # beliefs without their covariance claim to know more


def test_the_carried_part_of_a_joint_belief_is_its_marginal():
    """An effect of each row shares the belief of the intercept; the rows of the next batch are others."""
    m = cv.Model("effects")
    n, r = m.plate("n"), m.plate("r")
    row = m.input("row", cv.index(n), plates=r)
    u = m.input("u", cv.real, plates=r)
    a = m.random("a", cv.gaussian(0.0, variance=10.0))
    b = m.random("b", cv.gaussian(0.0, variance=10.0))
    effect = m.random("effect", cv.gaussian(0.0, variance=1.0), plates=n)
    m.input("size", cv.real, plates=n)
    m.random("y", cv.gaussian(a + b * u + effect[row], variance=0.3), plates=r)
    random = np.random.default_rng(4)
    row_of, x, y = np.repeat(np.arange(6), 3), random.normal(3.0, 1.0, 18), random.normal(0.0, 2.0, 18)

    def batch(start, stop):
        chosen = (row_of >= start) & (row_of < stop)
        return {"row": row_of[chosen] - start, "u": x[chosen], "y": y[chosen], "size": np.ones(stop - start)}

    first = cv.infer(m, batch(0, 2))
    second = cv.infer(m, batch(2, 6), prior=first)
    whole = cv.infer(m, batch(0, 6))
    assert list(first.carried) == ["a", "b"]
    close(first.log_evidence + second.log_evidence, whole.log_evidence, atol=1e-8)
    for name in ("a", "b"):
        close(second[name].mean, whole[name].mean, atol=1e-8)
        close(second[name].sd, whole[name].sd, atol=1e-8)
        close((second - second.contribution)[name].sd, first[name].sd, atol=1e-8)

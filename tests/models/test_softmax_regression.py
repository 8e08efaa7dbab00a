"""Softmax regression: every bound converges, Infer.NET's evidences, the tighter bound above the tilted one."""

import pathlib

import numpy as np
import pytest

import cavity as cv
from cavity import models
from cavity.compiler.passes import join
from cavity.factors.links.softmax import BOUNDS

RUNS = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "reference" / "runs" / "infernet_softmax"
shared = pytest.mark.skipif(not RUNS.is_dir(), reason=f"needs other systems' runs in {RUNS.name}, absent here")
TIGHT = "quadrature"


def table(name):
    """Standardised features and classes as Infer.NET had them."""
    content = np.loadtxt(RUNS / f"{name}_std.csv", delimiter=",", skiprows=1)
    return {"x": content[:, 1:], "y": content[:, 0].astype(int)}


def own_iris():
    from sklearn.datasets import load_iris

    x, y = load_iris(return_X_y=True)
    return {"x": (x - x.mean(0)) / x.std(0), "y": y}


def apart(bound):
    """A method for all factors keeps the beliefs of weights and biases apart; one for `y` alone lets them be joint."""
    return cv.ncvmp(bound=bound)


@pytest.mark.parametrize(
    ("name", "method", "evidence"),
    [
        ("iris", apart("tilted"), -46.2206),
        ("iris", {"y": cv.ncvmp(bound="tilted")}, -45.1737),
        pytest.param("wine", apart("tilted"), -37.4033, marks=pytest.mark.slow),
        ("wine", apart("quadratic"), -85.41889),
    ],
    ids=["iris apart", "iris joint", "wine apart", "wine quadratic"],
)
@shared
def test_evidences_of_infer_net(name, method, evidence):
    """Infer.NET has weights and bias in one vector for -45.1737, apart elsewhere."""
    data = table(name)
    model = models.softmax_regression(data["x"].shape[1], 3)
    posterior = cv.infer(model, data, method=method)
    assert posterior.converged, posterior.diagnosis
    assert posterior.log_evidence == pytest.approx(evidence, abs=1e-3)


# The tilted bound has its reference case (N6) by default, and quadrature the recovery in test_regressions.py.
@pytest.mark.parametrize(
    "bound", [pytest.param(b, marks=[pytest.mark.slow] * (b in ("tilted", "quadrature"))) for b in BOUNDS]
)
def test_every_bound_converges_on_iris(bound):
    data = own_iris()
    posterior = cv.infer(models.softmax_regression(4, 3), data, method={"y": cv.ncvmp(bound=bound)})
    assert posterior.converged, posterior.diagnosis
    assert np.isfinite(posterior.log_evidence)
    score = data["x"] @ posterior["weight"].mean.T + posterior["bias"].mean
    assert np.mean(score.argmax(1) != data["y"]) < 0.08


@pytest.mark.slow
@shared
def test_the_tighter_bound_is_above_the_tilted_on_all_splits():
    data, masks = table("iris"), np.loadtxt(RUNS / "iris_splits16.csv", delimiter=",", skiprows=1).T.astype(bool)
    halves = [{name: array[mask] for name, array in data.items()} for mask in masks]
    found = {}
    for bound in ("tilted", TIGHT):
        program = cv.compile(models.softmax_regression(4, 3), observed=["y"], method=apart(bound))
        batch = program.batch(halves)
        assert batch.converged.all()
        assert program.traces == 1
        found[bound] = np.asarray(batch.log_evidence)
    assert len(masks) == 16
    assert (found[TIGHT] > found["tilted"]).all()
    assert found["tilted"].mean() == pytest.approx(-31.27, abs=0.01)  # of Infer.NET on the same splits


@pytest.mark.parametrize("wrong", [3, -1])
def test_classes_out_of_range_are_named(wrong):
    data = own_iris()
    data["y"] = np.where(np.arange(150) == 7, wrong, data["y"])
    with pytest.raises(cv.DataError, match="y"):
        cv.infer(models.softmax_regression(4, 3), data)


def test_labels_are_text_or_numbers_of_classes():
    data = own_iris()
    with pytest.raises(cv.DataError, match="y"):
        cv.infer(models.softmax_regression(4, 3), {**data, "y": data["y"] + 0.5})
    species = np.array(["setosa", "versicolor", "virginica"])[data["y"]]  # sorted already
    m = models.softmax_regression(4, 3)
    bound = cv.compile(m, ["y"], sizes={"row": len(species)}).bind({**data, "y": species})
    np.testing.assert_array_equal(bound.observed["y"], data["y"])


def drawn(model, data, names):
    """Means and sds by long chains of NUTS."""
    draws = cv.sample(model, data, draws=500, chains=4, seed=1)
    flat = {name: np.asarray(draws[name]).reshape((-1, *np.shape(draws[name])[2:])) for name in names}
    return {name: (own.mean(0), own.std(0)) for name, own in flat.items()}


def agree(posterior, truth, shift, ratio):
    for name, (mean, sd) in truth.items():
        assert np.max(np.abs(posterior[name].mean - mean) / sd) < shift
        assert np.max(np.abs(np.log(posterior[name].std / sd))) < np.log(ratio)


def test_beliefs_of_all_classes_together_have_the_sds_of_long_chains():
    """What classes have in common is told by the prior alone: apart, sds would be half of these."""
    data, model = own_iris(), models.softmax_regression(4, 3)
    posterior = cv.infer(model, data, accuracy="fast")
    assert posterior.converged
    assert posterior.iterations < 30
    agree(posterior, drawn(model, data, ("weight", "bias")), 0.12, 1.1)


def test_a_verdict_of_dozens_of_dimensions_is_of_draws_around_the_joint_belief():
    """Draws adapted to themselves fail in 42 dimensions, and curvature calls right sds of a skewed posterior narrow."""
    from sklearn.datasets import load_wine

    x, y = load_wine(return_X_y=True)
    posterior = cv.infer(models.softmax_regression(13, 3), {"x": (x - x.mean(0)) / x.std(0), "y": y})
    assert posterior.verdict.level == "good", posterior.verdict
    assert posterior.trust().effective > 200.0


def conditional_logit():
    """One weight for each attribute, the same for all alternatives: their scores are dependent."""
    m, rng = cv.Model("conditional logit"), np.random.default_rng(0)
    row, option = m.plate("row"), m.plate("option", 3)
    x = m.input("x", cv.vector(4), plates=(row, option))
    weight = m.random("weight", cv.vector_gaussian(np.zeros(4), precision=0.25))
    m.random("y", cv.categorical(cv.softmax(cv.dot(weight, x), over=option)), plates=row)
    given = rng.normal(size=(60, 3, 4))
    score = given @ np.array([1.0, -0.5, 0.8, 0.0]) + rng.gumbel(size=(60, 3))
    return m, {"x": given, "y": score.argmax(1)}


def of_groups(count, slopes, rows, seed, variance, steep):
    """Scalars of each class and effects of groups, chosen by index data; `steep` groups have own slopes too."""
    m, rng = cv.Model("groups"), np.random.default_rng(seed)
    row, cls, group = m.plate("row"), m.plate("class", len(slopes)), m.plate("group", count)
    x, own = m.input("x", cv.real, plates=row), m.input("own", cv.index(group), plates=row)
    bias = m.random("bias", cv.gaussian(0.0, variance=4.0), plates=cls)
    slope = m.random("slope", cv.gaussian(0.0, variance=4.0), plates=cls)
    score = bias + slope * x + m.random("level", cv.gaussian(0.0, variance=variance), plates=(group, cls))[own]
    if steep:
        score = score + m.random("steepness", cv.gaussian(0.0, variance=variance), plates=(group, cls))[own] * x
    m.random("y", cv.categorical(cv.softmax(score, over=cls)), plates=row)
    given, chosen = rng.normal(size=rows), rng.integers(count, size=rows)
    shape = len(given), len(slopes)
    drawn = np.outer(given, slopes) + rng.normal(size=(count, len(slopes)))[chosen] + rng.gumbel(size=shape)
    return m, {"x": given, "own": chosen, "y": drawn.argmax(1)}


def groups():
    return of_groups(5, [1.0, -1.0, 0.5, 0.0], 100, seed=1, variance=1.0, steep=False)


def many_groups():
    """Two joint beliefs, of 6 and 96 dimensions: together they would be too many."""
    return of_groups(16, [1.0, 0.0, -1.0], 120, seed=2, variance=4.0, steep=True)


def lone_weights():
    """Weights that share a belief with nothing but themselves, beside effects that are too many for one."""
    m, rng = cv.Model("lone weights"), np.random.default_rng(3)
    row, cls, group = m.plate("row"), m.plate("class", 3), m.plate("group", 40)
    x, own = m.input("x", cv.vector(3), plates=row), m.input("own", cv.index(group), plates=row)
    weight = m.random("weight", cv.vector_gaussian(np.zeros(3), precision=0.25), plates=cls)
    effect = m.random("effect", cv.gaussian(0.0, variance=0.25), plates=(group, cls))
    m.random("y", cv.categorical(cv.softmax(cv.dot(weight, x) + effect[own], over=cls)), plates=row)
    given, chosen = rng.normal(size=(400, 3)) + np.eye(3)[0], rng.integers(40, size=400)
    score = given @ rng.normal(size=(3, 3)) + 0.5 * rng.normal(size=(40, 3))[chosen] + rng.gumbel(size=(400, 3))
    return m, {"x": given, "own": chosen, "y": score.argmax(1)}


def test_weights_without_a_partner_share_a_belief_over_classes():
    model, data = lone_weights()
    assert "of 9 dimensions, with all covariances: weight" in cv.infer(model, data, accuracy="fast").explain()


@pytest.mark.slow
@pytest.mark.parametrize("made", [conditional_logit, groups, many_groups, lone_weights])
def test_other_scores_of_a_softmax_have_them_too(made):
    model, data = made()
    posterior = cv.infer(model, data, accuracy="fast")
    assert posterior.converged
    agree(posterior, drawn(model, data, posterior.graph.model.randoms.keys() - {"y"}), 0.15, 1.17)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::cavity.CavityWarning")  # curvature knows little of a scale and what it scales
def test_points_of_a_grid_that_weigh_next_to_nothing_need_not_converge():
    posterior = cv.infer(models.softmax_regression(4, 3, prior_variance="shared"), own_iris())
    codes = np.asarray(posterior.mixture.outputs["code"])
    assert posterior.converged
    assert np.sum(posterior.weights[codes > 0]) < 1e-3
    assert ("of next to no weight" in posterior.diagnosis) == bool(np.any(codes > 0))


def test_shared_weights_of_alternatives_are_one_belief():
    model, data = conditional_logit()
    assert "of 4 dimensions, with all covariances" in cv.infer(model, data, accuracy="fast").explain()


def test_more_classes_than_the_expectation_takes_have_beliefs_of_their_own():
    model, data = models.softmax_regression(2, 11), {"x": np.eye(11)[:, :2], "y": np.arange(11)}
    told = cv.infer(model, data, accuracy="fast").explain()
    assert "of 3 dimensions, with all covariances" in told
    told = cv.infer(models.softmax_regression(2, 10), {"x": np.eye(10)[:, :2], "y": np.arange(10)}).explain()
    assert "of 30 dimensions, with all covariances" in told


def test_what_was_one_belief_stays_one_in_a_larger_batch(monkeypatch):
    """A batch whose classes would have beliefs of their own takes the belief of an earlier one as it is."""
    data, model = own_iris(), models.softmax_regression(4, 3)
    early = np.random.default_rng(0).random(150) < 0.6
    first = cv.infer(model, {name: array[early] for name, array in data.items()}, accuracy="fast")
    monkeypatch.setitem(join.CELLS, "default", 1000)
    rest = {name: array[~early] for name, array in data.items()}
    assert "of 5 dimensions, with all covariances" in cv.infer(model, rest, accuracy="fast").explain()
    both = cv.infer(model, rest, prior=first, accuracy="fast")
    assert "of 15 dimensions, with all covariances" in both.explain()
    monkeypatch.undo()
    at_once = cv.infer(model, data, accuracy="fast")
    assert first.log_evidence + both.log_evidence == pytest.approx(at_once.log_evidence, abs=0.2)
    np.testing.assert_allclose(both["weight"].mean, at_once["weight"].mean, atol=0.1)


def test_a_named_bound_keeps_classes_apart():
    told = cv.infer(models.softmax_regression(4, 3), own_iris(), method={"y": cv.ncvmp(bound="tilted")}).explain()
    assert "of 5 dimensions, with all covariances" in told


def test_predictions_know_of_the_covariances():
    """The expected shares of new rows, by draws of the belief."""
    data = own_iris()
    posterior = cv.infer(models.softmax_regression(4, 3), data, accuracy="fast")
    new = 2.0 * np.random.default_rng(0).normal(size=(5, 4))
    drawn = posterior.sample(20_000, seed=1)
    score = np.einsum("skd,nd->snk", drawn["weight"], new) + drawn["bias"][:, None]
    share = np.exp(score - score.max(-1, keepdims=True))
    share /= share.sum(-1, keepdims=True)
    np.testing.assert_allclose(posterior.predict({"x": new})["y"].mean, share.mean(0), atol=0.01)

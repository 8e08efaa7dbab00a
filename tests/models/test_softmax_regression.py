"""Softmax regression: every bound converges, Infer.NET's evidences, the tighter bound above the tilted one."""

import pathlib

import numpy as np
import pytest

import cavity as cv
from cavity import models
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

"""Shipped definitions: short, documented, and each infers on data of its own kind."""

import ast
import inspect

import numpy as np
import pytest

import cavity as cv
from cavity import models

ARGUMENTS = {
    "diffusion_tree": (2,),
    "gamma_estimation": (),
    "gaussian_mixture": (3, 2),
    "heteroskedastic_gp": (),
    "heteroskedastic_regression": (2,),
    "indian_buffet": (3,),
    "logistic_regression": (2,),
    "mixture": (3, 2),
    "multinomial_probit": (2, 3),
    "nsfa": (4,),
    "ordinal_regression": (2, 4),
    "poisson_regression": (2,),
    "probit_regression": (2,),
    "skills": (),
    "softmax_regression": (2, 3),
}


def statements(function):
    """Statements of the body, without the docstring."""
    (definition,) = ast.parse(inspect.getsource(function)).body
    return sum(isinstance(node, ast.stmt) for node in ast.walk(definition)) - 2


def test_all_definitions_are_tested_here():
    assert set(ARGUMENTS) == set(models.__all__)


@pytest.mark.parametrize("name", models.__all__)
def test_definitions_build_and_are_short(name):
    build = getattr(models, name)
    model = build(*ARGUMENTS[name])
    assert isinstance(model, cv.Model)
    assert model.randoms
    assert statements(build) <= 25
    assert "Source: " in build.__doc__


@pytest.mark.parametrize("name", models.__all__)
def test_a_definition_is_a_function_in_a_file_of_its_name(name):
    assert getattr(models, name).__module__ == f"cavity.models.{name}"


@pytest.mark.slow  # see test_regressions.py for its weights and tests/engine/run/test_program.py for predictions
def test_softmax_regression_predicts_the_class_of_separate_clusters():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    centres = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
    x = centres[y] + 0.3 * rng.normal(size=(60, 2))
    posterior = cv.infer(models.softmax_regression(2, 3), {"x": x, "y": y})
    assert posterior.converged
    assert posterior["weight"].shape == (3, 2)
    probability = posterior.predict({"x": centres})["y"].mean
    assert probability.shape == (3, 3)
    assert probability.argmax(axis=1).tolist() == [0, 1, 2]


def test_skills_rank_by_games_won():
    posterior = cv.infer(models.skills(), {"winner": [0, 0, 1], "loser": [1, 2, 2]}, sizes={"player": 3})
    assert posterior.converged
    skill = posterior["skill"].mean
    assert skill[0] > skill[1] > skill[2]
    assert skill.sum() == pytest.approx(0.0, abs=1e-6)


def test_skills_depend_on_the_ratio_of_the_variances():
    data, sizes = {"winner": [0, 0, 1], "loser": [1, 2, 2]}, {"player": 3}
    one = cv.infer(models.skills(0.5, 1.0), data, sizes=sizes)
    four = cv.infer(models.skills(2.0, 4.0), data, sizes=sizes)
    assert four["skill"].mean == pytest.approx(2 * one["skill"].mean, abs=1e-5)
    assert four.log_evidence == pytest.approx(one.log_evidence, abs=1e-6)


@pytest.mark.slow
def test_mixture_finds_two_clusters_and_leaves_the_third_to_its_prior():
    rng = np.random.default_rng(1)
    x = np.repeat([[-2.0, 0.0], [2.0, 1.0]], 40, axis=0) + 0.3 * rng.normal(size=(80, 2))
    posterior = cv.infer(models.mixture(3, 2), {"x": x}, restarts=4, seed=0)
    assert posterior.converged
    order = np.argsort(-posterior["weights"].mean)
    assert posterior["weights"].mean[order[:2]] == pytest.approx([41 / 83, 41 / 83], abs=0.02)
    found = posterior["mean"].mean[order[:2]]
    assert found[np.argsort(found[:, 0])] == pytest.approx(np.array([[-2.0, 0.0], [2.0, 1.0]]), abs=0.2)
    assert posterior["mean"].mean[order[2]] == pytest.approx([0.0, 0.0], abs=0.3)
    assert set(posterior["z"].mean.argmax(axis=1)[:40]) != set(posterior["z"].mean.argmax(axis=1)[40:])

"""Constants that discrete variables choose, against enumeration."""

import itertools

import numpy as np
import pytest
from scipy import stats

import cavity as cv

P = np.array([0.2, 0.3, 0.5])
ROWS = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
VALUES = np.array([0.1, 1.0, 3.0])
CASES = {
    "mean": (lambda z: cv.gaussian(cv.table(VALUES)[z], variance=1.0), 1.5, stats.norm.pdf(1.5, VALUES)),
    "function": (
        lambda z: cv.gaussian(2.0 * cv.table(VALUES)[z] - 1.0, variance=1.0),
        1.5,
        stats.norm.pdf(1.5, 2.0 * VALUES - 1.0),
    ),
    "sd": (lambda z: cv.gaussian(0.0, sd=cv.table(VALUES)[z]), 1.5, stats.norm.pdf(1.5, 0.0, VALUES)),
    "rate": (lambda z: cv.poisson(cv.table(VALUES)[z]), 2, stats.poisson.pmf(2, VALUES)),
    "row": (lambda z: cv.categorical(cv.table(ROWS)[z]), 1, ROWS[:, 1]),
    "list": (lambda z: cv.bernoulli(cv.table([0.1, 0.5, 0.9])[z]), True, np.array([0.1, 0.5, 0.9])),
    "vector": (
        lambda z: cv.vector_gaussian(cv.table(ROWS)[z], covariance=np.eye(3)),
        [1.0, 0.0, 0.5],
        stats.multivariate_normal(cov=np.eye(3)).pdf(np.array([1.0, 0.0, 0.5]) - ROWS),
    ),
}


@pytest.mark.parametrize("method", ["auto", "ep", "vmp"])
@pytest.mark.parametrize("case", CASES)
def test_one_index(case, method):
    term, y, likelihood = CASES[case]
    m = cv.Model()
    z = m.random("z", cv.categorical(P))
    m.random("y", term(z))
    posterior = cv.infer(m, {"y": y}, method=method)
    np.testing.assert_allclose(posterior["z"].mean, P * likelihood / (P @ likelihood), atol=1e-9)
    np.testing.assert_allclose(posterior.log_evidence, np.log(P @ likelihood), atol=1e-9)


def test_two_indices_of_one_variable():
    """A block model: links between four nodes of three classes."""
    links = np.array([[0.9, 0.2, 0.1], [0.2, 0.8, 0.3], [0.1, 0.3, 0.7]])
    first, second, linked = [0, 0, 1, 2], [1, 2, 3, 3], [True, False, True, False]
    m = cv.Model()
    node, pair = m.plate("node", 4), m.plate("pair")
    i, j = (m.input(name, cv.index(node), plates=pair) for name in ("i", "j"))
    z = m.random("z", cv.categorical(P), plates=node)
    m.random("linked", cv.bernoulli(cv.table(links)[z[i], z[j]]))
    posterior = cv.infer(m, {"i": first, "j": second, "linked": linked})
    states = np.array(list(itertools.product(range(3), repeat=4)))
    chance = links[states[:, first], states[:, second]]
    weight = P[states].prod(1) * np.where(linked, chance, 1.0 - chance).prod(1)
    wanted = [[weight[states[:, n] == c].sum() / weight.sum() for c in range(3)] for n in range(4)]
    np.testing.assert_allclose(posterior["z"].mean, wanted, atol=1e-9)
    np.testing.assert_allclose(posterior.log_evidence, np.log(weight.sum()), atol=1e-9)


def test_two_classes_of_one_plate_and_a_boolean():
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(3), (3, 3, 2))
    m = cv.Model()
    k = m.plate("k", 3)
    prior = m.input("prior", cv.simplex(k))
    a, c = (m.random(name, cv.categorical(prior)) for name in ("a", "c"))
    b = m.random("b", cv.bernoulli(0.3))
    m.random("y", cv.categorical(cv.table(rows)[a, c, b]))
    posterior = cv.infer(m, {"prior": P, "y": 2})
    joint = P[:, None, None] * P[:, None] * np.array([0.7, 0.3]) * rows[..., 2]
    np.testing.assert_allclose(posterior["a"].mean, joint.sum((1, 2)) / joint.sum(), atol=1e-9)
    np.testing.assert_allclose(posterior["c"].mean, joint.sum((0, 2)) / joint.sum(), atol=1e-9)
    np.testing.assert_allclose(posterior["b"].mean, joint[..., 1].sum() / joint.sum(), atol=1e-9)


@pytest.mark.parametrize("method", ["auto", "ep", "vmp"])
@pytest.mark.parametrize("named", [False, True])
def test_an_index_that_a_variable_chooses(named, method):
    """Index data are chosen by z, and choose a row in turn: under VMP this was a KeyError."""
    chances, index = np.array([0.1, 0.3, 0.6, 0.9]), np.array([3, 0, 1])
    m = cv.Model()
    player, k = m.plate("player", 4), m.plate("k", 3)
    candidates = m.input("candidates", cv.index(player), plates=k)
    z = m.random("z", cv.categorical(P))
    chosen = m.let("chosen", candidates[z]) if named else candidates[z]
    m.random("y", cv.bernoulli(cv.table(chances)[chosen]))
    posterior = cv.infer(m, {"candidates": index, "y": True}, method=method)
    weight = P * chances[index]
    np.testing.assert_allclose(posterior["z"].mean, weight / weight.sum(), atol=1e-9)


def test_index_data_choose_from_a_table_and_new_rows_are_predicted():
    m = cv.Model()
    row = m.plate("row")
    kind = m.input("kind", cv.category(3), plates=row)
    a = m.random("a", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.gaussian(a * cv.table([-3.0, 0.0, 3.0])[kind], variance=1.0))
    posterior = cv.infer(m, {"kind": [0, 1, 2], "y": [-3.0, 0.5, 2.0]})
    np.testing.assert_allclose(posterior["a"].mean, 15.0 / 19.0, atol=1e-9)
    predicted = posterior.predict({"kind": [2, 2, 0, 1]})["y"].mean
    np.testing.assert_allclose(predicted, 15.0 / 19.0 * np.array([3.0, 3.0, -3.0, 0.0]), atol=1e-9)

"""Symmetric starts: broken wherever classes or factors are alike, whatever they are called; more starts never lose."""

import itertools

import numpy as np
import pytest

import cavity as cv
from cavity.compiler.symmetry import choices, many_modes


def crowd(diagonal=0.0, seed=0):
    """Fifteen workers label sixty items of three classes, each item five times; also the true classes."""
    m = cv.Model("crowd")
    worker, item, kind, row = m.plate("worker", 15), m.plate("item", 60), m.plate("kind", 3), m.plate("row")
    who, what = m.input("who", cv.index(worker), plates=row), m.input("what", cv.index(item), plates=row)
    belief = m.input("belief", cv.vector(3), plates=kind) if diagonal else np.ones(3)
    confusion = m.random("confusion", cv.dirichlet(belief), plates=(worker, kind))
    true = m.random("true", cv.categorical(m.random("share", cv.dirichlet(np.ones(3)))), plates=item)
    m.random("label", cv.categorical(confusion[who][true[what]]))
    rng = np.random.default_rng(seed)
    classes = rng.choice(3, 60)
    who, what = np.concatenate([rng.permutation(15)[:5] for _ in range(60)]), np.repeat(np.arange(60), 5)
    label = np.where(rng.random(300) < 0.85, classes[what], rng.integers(3, size=300))
    data = {"who": who, "what": what, "label": label}
    return m, data | ({"belief": np.ones((3, 3)) + diagonal * np.eye(3)} if diagonal else {}), classes


def right(probabilities, classes, orders):
    """The part of the elements in their class, in the best order of the classes."""
    found = probabilities.argmax(-1)
    return max(np.mean(np.array(order)[found] == classes) for order in orders)


def states(seed=0):
    """A chain of three states that stay nine times of ten, each with Gaussian noise around a mean of its own."""
    m = cv.Model("states")
    t, k = m.plate("t"), m.plate("k", 3)
    move = m.random("move", cv.dirichlet(np.ones(3)), plates=k)
    mean = m.random("mean", cv.gaussian(0.0, variance=25.0), plates=k)
    first = cv.categorical(np.full(3, 1.0 / 3.0))
    state = m.chain("state", over=t, first=first, then=lambda previous: cv.categorical(move[previous]))
    m.random("y", cv.gaussian(mean[state], variance=1.0))
    rng = np.random.default_rng(seed)
    path = [0]
    for _ in range(99):
        path.append(rng.choice(3, p=np.where(np.arange(3) == path[-1], 0.9, 0.05)))
    return m, {"y": 3.0 * np.array(path) + rng.normal(size=100)}, np.array(path)


def two_cases(first=0.0, second=0.0):
    m = cv.Model("two cases")
    a, b = m.random("a", cv.gaussian(first, variance=25.0)), m.random("b", cv.gaussian(second, variance=25.0))
    z = m.random("z", cv.bernoulli(0.5), plates=m.plate("n"))
    m.random("x", cv.switch(z, cv.gaussian(a, variance=1.0), cv.gaussian(b, variance=1.0)))
    return m, {"x": np.array([-3.0, -2.5, -2.0, -3.5, 2.0, 3.0, 2.5, 3.5, 2.2, -2.1])}


def groups(shares=(1.0, 1.0)):
    m = cv.Model("groups")
    k, n = m.plate("k", 2), m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, variance=25.0), plates=k)
    z = m.random("z", cv.categorical(m.random("share", cv.dirichlet(np.array(shares)))), plates=n)
    m.random("x", cv.gaussian(mean[z], variance=1.0))
    return m, {"x": np.concatenate([np.linspace(-4.0, -2.0, 8), np.linspace(2.0, 4.0, 4)])}


def test_labels_without_help_of_a_diagonal_find_their_classes():
    """Cells of confusion matrices are chosen through a gather; at the saddle all items have the same probabilities."""
    model, data, classes = crowd()
    posterior = cv.infer(model, data, accuracy="fast")
    assert right(posterior["true"].mean, classes, itertools.permutations(range(3))) > 0.9


def test_priors_with_a_diagonal_keep_the_names_of_classes():
    model, data, classes = crowd(diagonal=2.0)
    assert not any(choice.alike for choice in choices(cv.compile(model, ["label"]).plan))
    posterior = cv.infer(model, data, accuracy="fast")
    assert right(posterior["true"].mean, classes, [range(3)]) > 0.9


def test_a_chain_of_states_leaves_its_saddle():
    """Extrapolated sweeps led back to it: all states alike, with ninety nats less."""
    model, data, path = states()
    posterior = cv.infer(model, data, accuracy="fast")
    assert right(posterior["state"].mean, path, itertools.permutations(range(3))) > 0.9
    plain = cv.infer(model, data, accuracy="fast", acceleration=0)
    np.testing.assert_allclose(posterior.log_evidence, plain.log_evidence, atol=1e-4)


def test_cases_of_a_switch_are_told_apart_by_their_priors_alone():
    alike, other = two_cases(), two_cases(second=1.0)
    plans = [cv.compile(model, ["x"]).plan for model, _ in (alike, other)]
    assert [[choice.alike for choice in choices(plan)] for plan in plans] == [[True], [False]]
    posterior = cv.infer(*alike, accuracy="fast")
    means = sorted([posterior["a"].mean, posterior["b"].mean])
    np.testing.assert_allclose(means, [-2.62, 2.64], atol=0.1)


def test_the_order_of_classes_in_the_data_is_no_order_of_the_answer():
    """Permuting the components of a mixture, here by exchanged priors of shares, permutes the answer."""
    (model, data), (other, _) = groups((9.0, 1.0)), groups((1.0, 9.0))
    one, two = cv.infer(model, data, restarts=5, accuracy="fast"), cv.infer(other, data, restarts=5, accuracy="fast")
    np.testing.assert_allclose(one["mean"].mean, two["mean"].mean[::-1], atol=1e-5)
    np.testing.assert_allclose(one["z"].mean, two["z"].mean[:, ::-1], atol=1e-5)
    assert one["share"].mean[0] > one["share"].mean[1]  # the prior's larger share is that of the larger group


@pytest.mark.parametrize("build", [groups, two_cases])
def test_starts_by_default_never_lose_evidence(build):
    model, data = build()
    one = cv.infer(model, data, accuracy="fast")
    several = cv.infer(model, data, restarts=5, accuracy="fast")
    assert len(one.restarts.by_start) == 1
    assert several.log_evidence >= one.log_evidence - 1e-9
    highest = several.restarts.by_start.max()  # of equal ones, to rounding, the first
    assert abs(several.log_evidence - highest) <= 1e-8 * (1 + abs(highest))


def factors():
    m = cv.Model("factors")
    n, d, k = m.plate("n", 12), m.plate("d", 4), m.plate("k", 2)
    w = m.random("w", cv.gaussian(0.0, variance=1.0), plates=(d, k))
    f = m.random("f", cv.gaussian(0.0, variance=1.0), plates=(n, k))
    m.random("x", cv.gaussian(cv.sum(w * f, over=k), variance=0.5), plates=(n, d))
    rng = np.random.default_rng(1)
    return m, {"x": rng.normal(size=(12, 2)) @ rng.normal(size=(2, 4))}


@pytest.mark.parametrize(("build", "names"), [(groups, ("z",)), (factors, ("w", "f"))])
def test_starts_that_nobody_asked_for_are_few_and_told(build, names):
    model, data = build()
    assert many_modes(cv.compile(model, ["x"]).plan) == names
    assert "5 starts" in cv.explain(model, data)
    assert "starts" not in cv.explain(model, data, effort=0)
    first, again = cv.infer(model, data, effort=1.0), cv.infer(model, data, effort=1.0)
    np.testing.assert_allclose(first.log_evidence, again.log_evidence, rtol=1e-10)  # the second may be machine code
    assert "5 starts" in first.explain()
    assert len(cv.infer(model, data, restarts=2).restarts.by_start) in (1, 2)  # of weighted draws there is one

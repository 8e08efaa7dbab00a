"""Joint Gaussian beliefs: twins with one vector variable, dense algebra, and what is left apart."""

import jax.numpy as jnp
import numpy as np
import pytest

import cavity as cv

RNG = np.random.default_rng(0)
N = 40
X = RNG.normal(10.0, 1.0, N)
Y = 1.0 + 2.0 * X + RNG.normal(0.0, 0.5, N)
GROUP = RNG.integers(0, 4, N)
DESIGN = np.stack([np.ones(N), X], axis=1)


def dense(design, y, prior, noise):
    """Posterior and log evidence of y = design w + noise, w ~ N(0, prior)."""
    covariance = np.linalg.inv(design.T @ design / noise + np.linalg.inv(prior))
    marginal = design @ prior @ design.T + noise * np.eye(len(y))
    evidence = -0.5 * (y @ np.linalg.solve(marginal, y) + np.linalg.slogdet(2.0 * np.pi * marginal)[1])
    return covariance @ design.T @ y / noise, covariance, evidence


def straight_line(outcome):
    m = cv.Model()
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    a = m.random("a", cv.gaussian(0.0, variance=100.0))
    b = m.random("b", cv.gaussian(0.0, variance=25.0))
    m.random("y", outcome(a + b * x, m), plates=n)
    return m


def one_vector(outcome):
    m = cv.Model()
    n = m.plate("n")
    x = m.input("x", cv.vector(2), plates=n)
    w = m.random("w", cv.vector_gaussian(jnp.zeros(2), covariance=jnp.diag(jnp.array([100.0, 25.0]))))
    m.random("y", outcome(cv.dot(w, x), m), plates=n)
    return m


def unknown_noise(score, m):
    return cv.gaussian(score, precision=m.random("precision", cv.gamma(2.0, 1.0)))


OUTCOMES = {
    "known noise": (lambda score, m: cv.gaussian(score, variance=0.25), Y),
    "unknown noise": (unknown_noise, Y),
    "probit": (lambda score, m: cv.bernoulli(cv.probit(score)), X > 10.2),
    "logistic": (lambda score, m: cv.bernoulli(cv.logistic(score)), X + RNG.normal(0, 0.5, N) > 10.2),
    "counts": (lambda score, m: cv.poisson(cv.exp(score)), RNG.poisson(np.exp(0.1 * X))),
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in ("probit", "counts"))) for n in OUTCOMES]
)
def test_a_straight_line_is_one_vector(name):
    outcome, y = OUTCOMES[name]
    apart = cv.infer(straight_line(outcome), {"x": X, "y": y}, tolerance=1e-9)
    twin = cv.infer(one_vector(outcome), {"x": DESIGN, "y": y}, tolerance=1e-9)
    means = [apart["a"].mean, apart["b"].mean]
    np.testing.assert_allclose(means, twin["w"].mean, rtol=1e-6)
    np.testing.assert_allclose([apart["a"].variance, apart["b"].variance], twin["w"].variance, rtol=1e-6)
    np.testing.assert_allclose(apart.log_evidence, twin.log_evidence, rtol=1e-8)
    new = np.array([9.0, 0.0])
    here = apart.predict({"x": new})["y"]
    there = twin.predict({"x": np.stack([np.ones(2), new], axis=1)})["y"]
    np.testing.assert_allclose(here.mean, there.mean, rtol=1e-6)
    np.testing.assert_allclose(here.variance, there.variance, rtol=1e-6)


def test_known_noise_is_exact():
    posterior = cv.infer(straight_line(OUTCOMES["known noise"][0]), {"x": X, "y": Y})
    mean, covariance, evidence = dense(DESIGN, Y, np.diag([100.0, 25.0]), 0.25)
    np.testing.assert_allclose([posterior["a"].mean, posterior["b"].mean], mean, rtol=1e-9)
    np.testing.assert_allclose([posterior["a"].variance, posterior["b"].variance], np.diag(covariance), rtol=1e-9)
    np.testing.assert_allclose(posterior.log_evidence, evidence, rtol=1e-10)


def groups_model():
    m = cv.Model()
    n, g = m.plate("n"), m.plate("group", 4)
    x, group = m.input("x", cv.real, plates=n), m.input("member", cv.index(g), plates=n)
    centre = m.random("centre", cv.gaussian(0.0, variance=9.0))
    level = m.random("level", cv.gaussian(centre, variance=4.0), plates=g)
    slope = m.random("slope", cv.gaussian(0.0, variance=1.0), plates=g)
    m.let("line", level[group] + slope[group] * x)
    m.random("y", cv.gaussian(level[group] + slope[group] * x, variance=0.25), plates=n)
    return m


def test_groups_by_index_data_are_exact():
    posterior = cv.infer(groups_model(), {"x": X, "member": GROUP, "y": Y})
    onehot = np.eye(4)[GROUP]
    design = np.concatenate([np.zeros((N, 1)), onehot, onehot * X[:, None]], axis=1)
    prior = np.eye(9)
    prior[0, 0] = 9.0
    prior[0, 1:5] = prior[1:5, 0] = 9.0
    prior[1:5, 1:5] = 9.0 + 4.0 * np.eye(4)
    mean, covariance, evidence = dense(design, Y, prior, 0.25)
    found = np.concatenate([[posterior["centre"].mean], posterior["level"].mean, posterior["slope"].mean])
    variance = np.concatenate(
        [[posterior["centre"].variance], posterior["level"].variance, posterior["slope"].variance]
    )
    np.testing.assert_allclose(found, mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(variance, np.diag(covariance), rtol=1e-8)
    np.testing.assert_allclose(posterior.log_evidence, evidence, rtol=1e-10)
    spread = np.einsum("ni,ij,nj->n", design, covariance, design)
    np.testing.assert_allclose(posterior["line"].variance, spread, rtol=1e-8)


def test_aligned_plates_share_one_belief_for_each_element():
    """Many groups: the joint belief is of two dimensions a group, and equals a vector variable over the groups."""
    groups = 300
    index = np.repeat(np.arange(groups), 5)
    x = RNG.normal(3.0, 1.0, len(index))
    y = RNG.normal(size=groups)[index] + 0.5 * x + RNG.normal(0.0, 0.3, len(index))

    def model(vector):
        m = cv.Model()
        n, g = m.plate("n"), m.plate("group", groups)
        group = m.input("member", cv.index(g), plates=n)
        precision = m.random("precision", cv.gamma(1.0, 1.0))
        if vector:
            features = m.input("x", cv.vector(2), plates=n)
            w = m.random("w", cv.vector_gaussian(jnp.zeros(2), covariance=jnp.eye(2)), plates=g)
            line = cv.dot(w[group], features)
        else:
            features = m.input("x", cv.real, plates=n)
            level, slope = (m.random(v, cv.gaussian(0.0, variance=1.0), plates=g) for v in ("level", "slope"))
            line = level[group] + slope[group] * features
        m.random("y", cv.gaussian(line, precision=precision), plates=n)
        return m

    apart = cv.infer(model(False), {"x": x, "member": index, "y": y}, tolerance=1e-9)
    assert "one Gaussian belief of 2 dimensions" in apart.explain()
    twin = cv.infer(model(True), {"x": np.stack([np.ones_like(x), x], 1), "member": index, "y": y}, tolerance=1e-9)
    np.testing.assert_allclose(apart["slope"].mean, twin["w"].mean[:, 1], rtol=1e-6)
    np.testing.assert_allclose(apart["slope"].variance, twin["w"].variance[:, 1], rtol=1e-6)
    np.testing.assert_allclose(apart.log_evidence, twin.log_evidence, rtol=1e-9)


def duel(accuracy="default", method="auto"):
    """Three players; performances are integrated out and recovered."""
    m = cv.Model("skills")
    player, game = m.plate("player"), m.plate("game")
    winner, loser = (m.input(v, cv.index(player), plates=game) for v in ("winner", "loser"))
    skill = m.random("skill", cv.gaussian(0.0, variance=2.0), plates=player)
    margin = m.random("margin", cv.gaussian(skill[winner] - skill[loser], variance=1.0))
    m.constrain(margin > 0)
    data = {"winner": [0, 1, 2, 0], "loser": [1, 2, 0, 2]}
    return cv.infer(m, data, sizes={"player": 3}, tolerance=1e-10, accuracy=accuracy, method=method)


def skills_by_vector():
    m = cv.Model()
    game = m.plate("game")
    x = m.input("x", cv.vector(3), plates=game)
    w = m.random("w", cv.vector_gaussian(jnp.zeros(3), covariance=2.0 * jnp.eye(3)))
    margin = m.random("margin", cv.gaussian(cv.dot(w, x), variance=1.0))
    m.constrain(margin > 0)
    x = np.array([[1, -1, 0], [0, 1, -1], [-1, 0, 1], [1, 0, -1]], float)
    return cv.infer(m, {"x": x}, tolerance=1e-10)


def test_elements_of_one_variable_that_meet():
    joint, twin, apart = duel(), skills_by_vector(), duel(method="ep")
    np.testing.assert_allclose(joint["skill"].mean, twin["w"].mean, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(joint["skill"].variance, twin["w"].variance, rtol=1e-7)
    np.testing.assert_allclose(joint.log_evidence, twin.log_evidence, rtol=1e-9)
    np.testing.assert_allclose(joint["margin"].mean, twin["margin"].mean, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(joint["margin"].variance, twin["margin"].variance, rtol=1e-6)
    assert abs(apart.log_evidence - joint.log_evidence) > 1e-3  # asked for EP: apart, unless the best is asked for
    best = duel(accuracy="best", method="ep")
    np.testing.assert_allclose(best["skill"].variance, twin["w"].variance, rtol=1e-7)


def test_products_and_scales_stay_apart():
    """A variable that is multiplied by another, or that is also a scale, has no place in a joint belief."""
    m = cv.Model()
    n = m.plate("n", 5)
    a, b, c = (m.random(name, cv.gaussian(0.5, variance=1.0)) for name in "abc")
    m.random("y", cv.gaussian(a * b + c, variance=1.0), plates=n)
    text = cv.explain(m, {"y": np.arange(5.0)}, accuracy="fast")
    assert "one Gaussian belief" not in text
    m = cv.Model()
    n = m.plate("n", 5)
    mean, log_scale = (m.random(name, cv.gaussian(0.0, variance=1.0)) for name in ("mean", "log scale"))
    both = m.let("both", mean + log_scale)
    m.random("y", cv.gaussian(both, precision=cv.exp(log_scale)), plates=n)
    assert "one Gaussian belief" not in cv.explain(m, {"y": np.arange(5.0)}, accuracy="fast")


def test_accuracy_is_checked():
    with pytest.raises(cv.ModelError, match="accuracy"):
        duel(accuracy="high")


# one observed sum of what descends from one variable x: variables by name, each a coefficient of others and its own
# noise of variance 1, and what is seen, with noise of variance 1
FAMILIES = {
    "beside its parent": ({"a": {"x": 1.0}}, {"x": 1.0, "a": 1.0}),
    "two children": ({"a": {"x": 2.0}, "b": {"x": -1.0}}, {"a": 1.0, "b": 1.0}),
    "a grandchild": ({"a": {"x": 1.0}, "b": {"a": 1.0}}, {"x": -1.0, "b": 1.0}),
    "child and grandchild": ({"a": {"x": 1.0}, "b": {"x": 0.5}, "c": {"b": 1.0}}, {"a": 2.0, "c": 1.0}),
}


def test_what_is_integrated_out_is_not_seen_apart_from_its_parent():
    """Variables that are used once, in a factor with their parent: side by side in one model, against dense algebra."""
    m, data, wanted, evidence = cv.Model(), {}, {}, 0.0
    for number, (children, seen) in enumerate(FAMILIES.values()):
        names = ["x", *children]
        nodes, rows = {"x": m.random(f"x{number}", cv.gaussian(0.0, variance=1.0))}, {"x": np.eye(len(names) + 1)[0]}
        for place, (name, form) in enumerate(children.items(), start=1):
            mean = sum(c * nodes[parent] for parent, c in form.items())
            nodes[name] = m.random(f"{name}{number}", cv.gaussian(mean, variance=1.0))
            rows[name] = sum(c * rows[parent] for parent, c in form.items()) + np.eye(len(names) + 1)[place]
        m.random(f"y{number}", cv.gaussian(sum(c * nodes[name] for name, c in seen.items()), variance=1.0))
        row = sum(c * rows[name] for name, c in seen.items()) + np.eye(len(names) + 1)[-1]
        data[f"y{number}"], total = 1.5, row @ row
        evidence += -0.5 * (np.log(2 * np.pi * total) + 1.5**2 / total)
        for name in names:
            gain = rows[name] @ row / total
            wanted[f"{name}{number}"] = (1.5 * gain, rows[name] @ rows[name] - gain**2 * total)
    posterior = cv.infer(m, data)
    for name, (mean, variance) in wanted.items():
        np.testing.assert_allclose(posterior[name].mean, mean, rtol=1e-6, atol=1e-9, err_msg=name)
        np.testing.assert_allclose(posterior[name].variance, variance, rtol=1e-6, err_msg=name)
    np.testing.assert_allclose(posterior.log_evidence, evidence, rtol=1e-6)

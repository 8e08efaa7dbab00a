"""Chains whose steps are not linear, or not Gaussian, against linear chains and exact grids."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import laplace, norm
from scipy.stats import t as student

import cavity as cv

GRID = np.linspace(-8.0, 8.0, 1601)


def on_grid(step, data, sd, first=(0.0, 1.0)):
    """Means, sds and log evidence of a chain of numbers by sums over a grid; `step` is p(after | before)."""
    width = GRID[1] - GRID[0]
    move = step(GRID[:, None], GRID[None]) * width
    seen = norm.pdf(np.asarray(data)[:, None], GRID, sd)
    forward, total, known = [], 0.0, norm.pdf(GRID, *first)
    for row in seen:
        known = known * row
        mass = known.sum() * width
        total += np.log(mass)
        forward.append(known / mass)
        known = (known / mass) @ move
    back, found = np.ones_like(GRID), []
    for row, known in zip(seen[::-1], forward[::-1], strict=True):
        belief = known * back / (known * back).sum()
        mean = belief @ GRID
        found.append((mean, np.sqrt(belief @ (GRID - mean) ** 2)))
        back = move @ (back * row)
        back = back / back.max()
    mean, spread = np.array(found[::-1]).T
    return mean, spread, total


def chained(then, sd=0.5, first=None):
    m = cv.Model("curved chain")
    t = m.plate("t")
    state = m.chain("state", over=t, first=cv.gaussian(0.0, sd=1.0) if first is None else first, then=then)
    m.random("y", cv.gaussian(state, sd=sd))
    return m


def walk(steps, draw, seed=0, sd=0.5):
    rng = np.random.default_rng(seed)
    x = [rng.normal()]
    for _ in range(steps - 1):
        x.append(draw(rng, x[-1]))
    return np.array(x) + sd * rng.normal(size=steps)


def agree(posterior, exact, of_mean, of_sd, of_evidence):
    mean, spread, evidence = exact
    assert posterior.converged
    assert np.abs((posterior["state"].mean - mean) / spread).max() < of_mean
    assert np.abs(np.sqrt(posterior["state"].variance) / spread - 1.0).max() < of_sd
    assert abs(posterior.log_evidence - evidence) < of_evidence


def test_a_linear_step_written_as_a_curve_is_the_linear_chain():
    data = np.random.default_rng(1).normal(size=15)
    data[4] = np.nan
    plain = cv.infer(chained(lambda x: cv.gaussian(0.8 * x + 0.3, sd=0.4)), {"y": data})
    curved = cv.infer(chained(lambda x: cv.gaussian(0.8 * cv.log(cv.exp(x)) + 0.3, sd=0.4)), {"y": data})
    assert "exact" in plain.explain()
    assert "moments of tilted pairs [message: quadrature]" in curved.explain()
    np.testing.assert_allclose(curved["state"].mean, plain["state"].mean, atol=1e-9)
    np.testing.assert_allclose(curved["state"].variance, plain["state"].variance, rtol=1e-9)
    np.testing.assert_allclose(curved.log_evidence, plain.log_evidence, atol=1e-8)


def test_vectors_too_and_nothing_observed_is_the_prior():
    turn = np.array([[0.9, 0.2], [-0.1, 0.8]])
    noise = np.array([[0.3, 0.1], [0.1, 0.2]])
    data = np.random.default_rng(2).normal(size=9)

    def model(then, observed=True):
        m = cv.Model()
        t = m.plate("t")
        first = cv.vector_gaussian(np.ones(2), covariance=np.eye(2))
        state = m.chain("state", over=t, first=first, then=then)
        m.random("y", cv.gaussian(cv.element(state, 0), sd=0.5))
        m.random("z", cv.gaussian(m.random("level", cv.gaussian(0.0, sd=1.0)), sd=1.0))
        return m

    def bent(x):
        first, second = cv.log(cv.exp(cv.element(x, 0))), cv.element(x, 1)
        moved = cv.stack(0.9 * first + 0.2 * second, 0.8 * second - 0.1 * first)
        return cv.vector_gaussian(moved, covariance=noise)

    def straight(x):
        return cv.vector_gaussian(turn @ x, covariance=noise)

    for observations in ({"y": data}, {}):
        runs = [cv.infer(model(then), {**observations, "z": 0.0}, sizes={"t": 9}) for then in (bent, straight)]
        for part in ("mean", "covariance"):
            found, wanted = (np.asarray(run["state"].parameters[part]) for run in runs)
            np.testing.assert_allclose(found, wanted, atol=1e-8)
        np.testing.assert_allclose(*(run.log_evidence for run in runs), atol=1e-8)


def test_a_curved_mean_and_a_noise_that_depends_on_the_state():
    data = walk(25, lambda rng, x: 0.9 * np.tanh(1.5 * x) + np.exp(0.3 * np.tanh(x) - 0.8) * rng.normal())
    m = chained(lambda x: cv.gaussian(0.9 * cv.tanh(1.5 * x), sd=cv.exp(0.3 * cv.tanh(x) - 0.8)))

    def step(before, after):
        return norm.pdf(after, 0.9 * np.tanh(1.5 * before), np.exp(0.3 * np.tanh(before) - 0.8))

    agree(cv.infer(m, {"y": data}), on_grid(step, data, 0.5), 0.05, 0.05, 0.05)


OWN = cv.factor(
    "heavy step",
    out=cv.real,
    before=cv.real,
    log_density=lambda out, before: (
        student.logpdf(0.0, 3.0) - jnp.log(0.2) - 2.0 * jnp.log1p(25.0 * (out - before) ** 2 / 3.0)
    ),
)
STEPS = {
    "student": (lambda x: cv.student_t(3.0, x, 0.2), lambda a, b: student.pdf((b - a) / 0.2, 3.0) / 0.2),
    "own": (lambda x: OWN(before=x), lambda a, b: student.pdf((b - a) / 0.2, 3.0) / 0.2),
    "laplace": (lambda x: cv.laplace(0.9 * x, 0.3), lambda a, b: laplace.pdf(b, 0.9 * a, 0.3)),
    "cauchy": (lambda x: cv.cauchy(cv.sin(x), 0.1), lambda a, b: student.pdf((b - np.sin(a)) / 0.1, 1.0) / 0.1),
}


@pytest.mark.parametrize(
    "name", ["student", "laplace", *(pytest.param(n, marks=pytest.mark.slow) for n in ("own", "cauchy"))]
)
def test_steps_of_any_density(name):
    then, step = STEPS[name]
    data = walk(20, lambda rng, x: 0.9 * x + 0.2 * rng.standard_t(3), seed=3)
    agree(cv.infer(chained(then), {"y": data}), on_grid(step, data, 0.5), 0.1, 0.1, 0.1)


def test_a_tree_that_is_a_chain_and_chains_side_by_side():
    data = np.random.default_rng(4).normal(size=(12, 2))

    def then(x):
        return cv.gaussian(0.8 * x + 0.3 * cv.sin(x), sd=0.5)

    alone = [cv.infer(chained(then), {"y": column}) for column in data.T]
    m = cv.Model()
    n = m.plate("n")
    parent = m.input("parent", cv.index(n), plates=n)
    state = m.tree("state", over=n, parent=parent, root=cv.gaussian(0.0, sd=1.0), then=then)
    m.random("y", cv.gaussian(state, sd=0.5))
    tree = cv.infer(m, {"y": data[::-1, 0], "parent": np.minimum(np.arange(12) + 1, 11)})
    np.testing.assert_allclose(tree["state"].mean[::-1], alone[0]["state"].mean, atol=1e-5)
    np.testing.assert_allclose(tree.log_evidence, alone[0].log_evidence, atol=1e-6)
    m = cv.Model()
    t, i = m.plate("t"), m.plate("i")
    state = m.chain("state", over=t, first=cv.gaussian(0.0, sd=1.0), then=then, plates=i)
    m.random("y", cv.gaussian(state, sd=0.5), plates=(t, i))
    both = cv.infer(m, {"y": data})
    found = np.asarray(both["state"].mean).reshape(2, 12)
    for own, one in zip(found, alone, strict=True):
        np.testing.assert_allclose(own, one["state"].mean, atol=1e-5)
    np.testing.assert_allclose(both.log_evidence, sum(one.log_evidence for one in alone), atol=1e-6)


def test_what_is_observed_tells_of_the_parameters():
    rng = np.random.default_rng(5)
    x = [0.5]
    for _ in range(60):
        x.append(2.0 * np.sin(x[-1]) + 0.3 * rng.normal())
    m = cv.Model()
    t = m.plate("t")
    slope = m.random("slope", cv.gaussian(0.0, sd=5.0))
    m.chain("x", over=t, first=cv.gaussian(0.0, sd=1.0), then=lambda a: cv.gaussian(slope * cv.sin(a), sd=0.3))
    posterior = cv.infer(m, {"x": x})
    u, v = np.sin(x[:-1]), np.array(x[1:])
    precision = 1.0 / 25.0 + u @ u / 0.09
    np.testing.assert_allclose(posterior["slope"].mean, u @ v / 0.09 / precision, rtol=1e-3)
    np.testing.assert_allclose(posterior["slope"].variance, 1.0 / precision, rtol=2e-2)


def test_the_gradient_of_the_log_evidence():
    data = np.random.default_rng(6).normal(size=8)
    m = cv.Model()
    t = m.plate("t")
    slope, scale = m.input("slope", cv.real), m.input("scale", cv.positive)
    state = m.chain(
        "state", over=t, first=cv.gaussian(0.0, sd=1.0), then=lambda x: cv.gaussian(slope * cv.tanh(x), sd=scale)
    )
    m.random("y", cv.gaussian(state, sd=0.5))
    program = cv.compile(m, observed=["y"], tolerance=1e-9)
    at = {"y": data, "slope": 1.2, "scale": 0.6}
    _, gradient = cv.evidence_gradient(program, at, ["slope", "scale"])
    for name in ("slope", "scale"):
        up, down = (program.run({**at, name: at[name] + step}).log_evidence for step in (1e-4, -1e-4))
        np.testing.assert_allclose(gradient[name], (up - down) / 2e-4, rtol=1e-3)


def test_a_search_that_does_not_end_is_told():
    rng = np.random.default_rng(1)
    data = np.where(np.arange(40) < 20, 0.0, 12.0) + 0.5 * rng.normal(size=40)
    program = cv.compile(chained(lambda x: cv.student_t(2.0, x, 0.05)), observed=["y"])
    posterior = program.run({"y": data})
    exact = posterior.converged and abs(posterior["state"].mean[25] - 12.0) < 0.5
    assert exact or posterior.code == "slow"


def test_what_is_refused():
    m = cv.Model()
    t = m.plate("t")
    speed = m.random("speed", cv.gaussian(0.0, sd=1.0))
    state = m.chain(
        "state", over=t, first=cv.gaussian(0.0, sd=1.0), then=lambda x: cv.gaussian(cv.sin(speed * x), sd=0.2)
    )
    m.random("y", cv.gaussian(state, sd=0.3))
    with pytest.raises(cv.UnsupportedError, match="has no moments in speed"):
        cv.infer(m, {"y": np.zeros(5)})

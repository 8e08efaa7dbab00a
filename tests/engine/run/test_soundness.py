"""What leaves a run: finite numbers of a sound state, with a warning where it did not converge, or an error."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import cavity as cv
from cavity.engine.run.control.result_codes import preferred


def vague_rate():
    """E exp(x) overflows under the prior."""
    m = cv.Model("vague rate")
    x = m.random("x", cv.gaussian(0.0, variance=1e4))
    m.random("y", cv.poisson(cv.exp(x)))
    return m, {"y": 3}, "ncvmp"


def censored_lifetimes():
    """Weibull lifetimes of which the last are only known to be longer: the energy overflows under the priors."""

    def log_density(out, shape, scale, event):
        density = jnp.log(shape / scale) + (shape - 1.0) * jnp.log(out / scale)
        return event * density - (out / scale) ** shape

    edges = {"shape": cv.positive, "scale": cv.positive, "event": cv.real}
    weibull = cv.factor("a censored lifetime", out=cv.positive, log_density=log_density, **edges)
    m = cv.Model("lifetimes")
    n = m.plate("n")
    event = m.input("event", cv.real, plates=n)
    shape, scale = (m.random(name, cv.gamma(2.0, 1.0)) for name in ("shape", "scale"))
    m.random("time", weibull(shape=shape, scale=scale, event=event), plates=n)
    times = 1.3 * stats.weibull_min(2.0).ppf((np.arange(12) + 0.5) / 12)
    return m, {"time": np.minimum(times, 1.8), "event": (times < 1.8) * 1.0}, "auto"


def volatility():
    """A hierarchical Gaussian filter: a walk whose steps have a variance that walks too."""
    m = cv.Model("volatility")
    t = m.plate("t")
    first, wide = cv.gaussian(0.0, variance=1.0), cv.gaussian(0.0, variance=1.0)
    z = m.chain("z", over=t, first=first, then=lambda before: cv.gaussian(before, variance=0.1))
    x = m.chain("x", over=t, first=wide, then=lambda before: cv.gaussian(before, variance=cv.exp(z - 1.0)))
    m.random("y", cv.gaussian(x, variance=0.1))
    return m, {"y": np.array([0.1, -0.4, 0.3, 1.9, 3.1, 2.8])}, "auto"


def answers():
    """Students, questions and random discriminations: EP meets cavities that are improper."""
    m = cv.Model("answers")
    s, q, n = m.plate("s", 4), m.plate("q", 5), m.plate("n")
    student, question = m.input("student", cv.index(s), plates=n), m.input("question", cv.index(q), plates=n)
    ability = m.random("ability", cv.gaussian(0.0, variance=1.0), plates=s)
    difficulty = m.random("difficulty", cv.gaussian(0.0, variance=1.0), plates=q)
    sharp = m.random("sharp", cv.gamma(5.0, 1.0), plates=q)
    advantage = m.random("advantage", cv.gaussian(ability[student] - difficulty[question], precision=sharp[question]))
    knows = m.let("knows", advantage > 0)
    m.random("right", cv.switch(knows, cv.bernoulli(0.9), cv.bernoulli(0.2)))
    i, j = np.divmod(np.arange(20), 5)
    return m, {"student": i, "question": j, "right": (i + 2 * j) % 4 > 1}, "ep"


def impossible():
    """Two constraints that exclude each other."""
    m = cv.Model("impossible")
    x = m.random("x", cv.gaussian(0.0, variance=1.0))
    m.constrain(x > 1)
    m.constrain(x < -1)
    return m, {}, "auto"


def test_without_a_sound_state_there_is_no_answer():
    m = cv.Model("too large")
    a, p = m.random("a", cv.gaussian(0.0, variance=1.0)), m.random("p", cv.gamma(0.5, 0.5))
    m.random("y", cv.gaussian(a, precision=p), plates=m.plate("n"))
    with pytest.raises(cv.UnsupportedError, match="'too large' found no sound state"):
        cv.infer(m, {"y": [1e200, 2.0, 3.0]})  # whose square overflows


@pytest.mark.parametrize(
    "case", [vague_rate, censored_lifetimes, volatility, pytest.param(answers, marks=pytest.mark.slow), impossible]
)
def test_what_leaves_a_run_is_finite(case):
    m, data, method = case()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        posterior = cv.infer(m, data, method=method)
    for name in m.randoms:
        assert np.all(np.isfinite(posterior[name].mean)), name
        assert np.all(np.isfinite(posterior[name].variance)), name
    ours = [each for each in caught if each.category is cv.CavityWarning]
    assert len(ours) == (not posterior.converged)
    assert len(caught) == len(ours)
    for each in ours:
        assert str(each.message) == posterior.diagnosis
        assert each.filename == __file__
    assert posterior.log_evidence == -np.inf if case is impossible else np.isfinite(posterior.log_evidence)
    assert (posterior.code == "contradiction") == (case is impossible)
    if case in (vague_rate, censored_lifetimes, volatility):  # the start was at fault
        assert posterior.converged


def test_a_rate_that_overflows_at_the_prior_against_quadrature():
    m, data, method = vague_rate()
    posterior = cv.infer(m, data, method=method)
    x = np.linspace(-6.0, 5.0, 20001)
    log_joint = stats.norm.logpdf(x, 0.0, 100.0) + stats.poisson.logpmf(3, np.exp(x))
    total = integrate.simpson(np.exp(log_joint), x=x)
    weights = np.exp(log_joint) / total
    mean = integrate.simpson(weights * x, x=x)
    sd = np.sqrt(integrate.simpson(weights * (x - mean) ** 2, x=x))
    assert -0.1 < posterior.log_evidence - np.log(total) < 0.0  # a bound, and close
    assert abs(posterior["x"].mean - mean) < 0.1 * sd


def test_sound_runs_come_first():
    converged, slow, _, diverged, _, contradiction = range(6)
    codes = [slow, diverged, converged, converged, contradiction]
    evidence, found = np.array([5.0, 3e13, -8.0, -7.0, -np.inf]), np.array([True] * 5)

    def best(found, monotone=False, codes=codes):
        return int(preferred(np.array(codes), np.array(found), evidence, monotone))

    assert best(found) == 3
    assert best(found, codes=[slow, diverged, slow, diverged, contradiction]) == 0
    assert best(found, codes=[diverged, contradiction, contradiction, contradiction, diverged]) == 0
    assert best(found, monotone=True) == 0  # a bound is a bound before convergence too
    assert best([True, True, False, False, True]) == 0
    assert best([False, True, False, False, True]) == 1
    assert best([False] * 4 + [True]) == 4


def test_the_answer_is_there_when_infer_returns():
    m = cv.Model()
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    w = m.random("w", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.gaussian(w * x, variance=1.0))
    posterior = cv.infer(m, {"x": np.arange(1e5) / 1e5, "y": np.arange(1e5) % 7})
    leaves = jax.tree.leaves(posterior.result.outputs)
    assert all(leaf.is_ready() for leaf in leaves)


def test_a_batch_tells_which_did_not_converge():
    m = cv.Model()
    c = m.input("c", cv.real)
    r = m.random("r", cv.gaussian(0.3, variance=2.0))
    m.constrain(c > r**2)
    program = cv.compile(m)
    with pytest.warns(cv.CavityWarning, match="1 of 3 inferences did not converge, the first at position 1"):
        batch = program.batch([{"c": 1.0}, {"c": -1.0}, {"c": 2.0}])
    assert list(batch.converged) == [True, False, True]
    assert batch.log_evidence[1] == -np.inf
    assert np.isfinite(batch[1]["r"].mean)
    with pytest.warns(cv.CavityWarning) as caught:
        program({"c": -1.0})
    assert [each.filename for each in caught] == [__file__]


def separate_means(components):
    m = cv.Model("separate means")
    k, n = m.plate("k", components), m.plate("n", 20)
    centre = m.input("centre", cv.real, plates=k)
    weight = m.random("weight", cv.dirichlet(np.ones(components)))
    mean = m.random("mean", cv.gaussian(centre, variance=9.0), plates=k)
    z = m.random("z", cv.categorical(weight), plates=n)
    m.random("y", cv.gaussian(mean[z], variance=1.0))
    return m


@pytest.mark.slow
def test_acceleration_keeps_the_evidence_of_plain_ascent():
    """Two components that start almost alike are near a saddle, onto which extrapolation pulled most of these runs."""
    rng, m = np.random.default_rng(0), separate_means(2)
    data = [
        {"centre": rng.normal(0.0, 0.5, 2), "y": rng.normal(size=20) + rng.normal(0.0, 3.0, 2)[rng.integers(0, 2, 20)]}
        for _ in range(30)
    ]
    data.append({"centre": np.array([-0.5, 0.5]), "y": rng.normal(size=20) + np.where(np.arange(20) < 12, -2.0, 2.0)})
    plain, fast = (
        cv.compile(m, ["y"], acceleration=depth, tolerance=1e-4, max_iterations=4000).batch(data) for depth in (0, 10)
    )
    assert np.all(plain.converged)
    assert np.all(fast.converged)
    assert np.all(fast.log_evidence > plain.log_evidence - 1e-3)


@pytest.mark.parametrize("left", [True, False])
def test_a_square_has_two_signs(left):
    """What tells the sign is weak and what tells the size is strong: a run from one start saw one side."""
    y, s, sign = np.array([8.5, 9.2, 9.6, 8.8]), -2.0 if left else 2.0, -1.0 if left else 1.0
    m = cv.Model()
    x = m.random("x", cv.gaussian(-sign, variance=4.0))
    t = m.random("t", cv.gamma(3.0, 3.0))
    m.random("y", cv.gaussian(x * x, precision=t), plates=m.plate("n"))
    where = m.input("where", cv.real)
    m.random("s", cv.gaussian(x - where, variance=0.5))
    posterior = cv.infer(m, {"y": y, "s": s, "where": 0.0}, accuracy="fast")
    grid = np.linspace(-5.0, 5.0, 20001)
    log_joint = stats.norm.logpdf(grid, -sign, 2.0) + stats.norm.logpdf(s, grid, np.sqrt(0.5))
    half = 0.5 * ((y[:, None] - grid**2) ** 2).sum(axis=0)  # t integrated in closed form: 4 / 2 more of its shape
    log_joint += 3.0 * np.log(3.0) - 2.0 * np.log(2.0 * np.pi) + np.log(24.0 / 2.0) - 5.0 * np.log(3.0 + half)
    total = integrate.simpson(np.exp(log_joint), x=grid)
    mean = integrate.simpson(np.exp(log_joint) * grid, x=grid) / total
    assert sign * mean > 2.9
    assert abs(posterior["x"].mean - mean) < 0.02
    assert -0.5 < posterior.log_evidence - np.log(total) < 0.0  # VMP: a bound
    assert len(posterior.restarts.by_start) == 2


def test_restarts_leave_the_start_of_a_single_run():
    """Components with priors of their own start alike at every restart; seeds from the data do not."""
    rng = np.random.default_rng(4)
    y = np.concatenate([rng.normal(-4.0, 1.0, 8), rng.normal(0.0, 1.0, 6), rng.normal(5.0, 1.0, 6)])
    data, m = {"centre": [-0.02, 0.0, 0.01], "y": y}, separate_means(3)
    one, many = (cv.infer(m, data, restarts=restarts, accuracy="fast") for restarts in (1, 6))
    np.testing.assert_allclose(many.restarts.by_start[0], one.log_evidence, rtol=1e-12)
    assert many.log_evidence == many.restarts.by_start.max() >= one.log_evidence
    assert np.ptp(many.restarts.by_start) > 1e-3
    np.testing.assert_allclose(np.sort(many["mean"].mean), [-4.0, 0.0, 5.0], atol=1.0)


def test_a_scale_that_is_a_power_of_another_is_no_contradiction():
    """E exp(-2 r) overflows under vague beliefs; the truth by quadrature is finite, and the run stays near it."""
    m = cv.Model()
    k = m.plate("k", 3)
    r = m.random("r", cv.gaussian(1.7, sd=1.2))
    p = m.random("p", cv.half_normal(cv.exp(r)))
    m.random("y", cv.gaussian(r, sd=p + p**2), k)
    y = np.array([7.9, 1.3, 10.4])
    found = cv.infer(m, {"y": y})
    at_r, at_p = np.meshgrid(np.linspace(-6.0, 9.0, 600), np.exp(np.linspace(-8.0, 6.0, 800)), indexing="ij")
    logs = stats.norm.logpdf(at_r, 1.7, 1.2) + stats.halfnorm.logpdf(at_p, scale=np.exp(at_r)) + np.log(at_p)
    logs = logs + sum(stats.norm.logpdf(one, at_r, at_p + at_p**2) for one in y)
    w = np.exp(logs - logs.max())
    total, w = w.sum() * (15.0 / 599) * (14.0 / 799), w / w.sum()
    assert found.code == "converged"
    # Two beliefs, one factorised: within half a standard deviation, and half a nat of evidence.
    np.testing.assert_allclose(found["r"].mean, (w * at_r).sum(), atol=0.4)
    np.testing.assert_allclose(found["p"].mean, (w * at_p).sum(), atol=0.4)
    np.testing.assert_allclose(found.log_evidence, np.log(total) + logs.max(), atol=0.5)

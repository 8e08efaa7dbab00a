"""The joint log density against SciPy, term by term, and its unconstrained form against numerical Jacobians."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats as st
from scipy.special import logsumexp

import cavity as cv

close = np.testing.assert_allclose
random = np.random.default_rng(20)


def mean_precision():
    m = cv.Model()
    n = m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, variance=100.0))
    precision = m.random("precision", cv.gamma(shape=2.0, rate=1.5))
    m.random("x", cv.gaussian(mean, precision=precision), plates=n)
    return m


def test_gaussian_with_a_missing_entry():
    x = np.array([1.0, 2.0, np.nan, 4.0])
    density = cv.log_density(mean_precision(), {"x": x})
    wanted = st.norm(0, 10).logpdf(0.3) + st.gamma(2, scale=1 / 1.5).logpdf(2.0)
    wanted += st.norm(0.3, 2**-0.5).logpdf(x[[0, 1, 3]]).sum()
    close(density({"mean": 0.3, "precision": 2.0}), wanted, rtol=1e-13)
    z = density.unconstrain({"mean": 0.3, "precision": 2.0})
    close(density.unconstrained(z), wanted + np.log(2.0), rtol=1e-13)
    assert density.dimension == 2
    assert density.shapes == {"mean": (), "precision": ()}


def test_regression_with_links_far_out():
    """log(1 - logistic(s)) would be minus infinity at s = 800."""
    m = cv.Model()
    n = m.plate("n")
    x = m.input("x", cv.vector(2), plates=n)
    w = m.random("w", cv.vector_gaussian(np.zeros(2), covariance=np.array([[2.0, 0.5], [0.5, 1.0]])))
    m.random("y", cv.bernoulli(cv.logistic(cv.dot(w, x))))
    m.random("c", cv.poisson(cv.exp(cv.dot(w, x))))
    X, y, c = np.array([[1.0, 0.5], [400.0, -1.0]]), np.array([True, False]), np.array([2, 1])
    w = np.array([2.0, -0.3])
    s = X @ w
    wanted = st.multivariate_normal(np.zeros(2), [[2.0, 0.5], [0.5, 1.0]]).logpdf(w)
    wanted += -np.logaddexp(0, -s[0]) - np.logaddexp(0, s[1])
    close(cv.log_density(m, {"x": X, "y": y})({"w": w}), wanted, rtol=1e-12)
    small = X[:1]
    more = st.multivariate_normal(np.zeros(2), [[2.0, 0.5], [0.5, 1.0]]).logpdf(w) + st.poisson(np.exp(s[0])).logpmf(2)
    close(cv.log_density(m, {"x": small, "c": c[:1]})({"w": w}), more, rtol=1e-12)


def test_softmax_and_probit():
    m = cv.Model()
    row, cls = m.plate("row"), m.plate("class", 3)
    x = m.input("x", cv.vector(2), plates=row)
    w = m.random("w", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)), plates=cls)
    m.random("y", cv.categorical(cv.softmax(cv.dot(w, x), over=cls)), plates=row)
    b = m.random("b", cv.bernoulli(cv.probit(cv.sum(cv.dot(w, x), over=cls))))
    assert b.plates == (row,)
    X, y, v = random.normal(size=(4, 2)), np.array([0, 2, 1, 1]), random.normal(size=(3, 2))
    scores = X @ v.T
    prior = st.norm.logpdf(v).sum()
    wanted = prior + (scores[np.arange(4), y] - logsumexp(scores, axis=1)).sum()
    close(cv.log_density(m, {"x": X, "y": y})({"w": v}), wanted, rtol=1e-12)
    flags = np.array([True, False, True, False])
    wanted = prior + st.norm.logcdf(np.where(flags, 1, -1) * scores.sum(1)).sum()
    close(cv.log_density(m, {"x": X, "b": flags})({"w": v}), wanted, rtol=1e-12)


def test_mixture_is_summed_over_its_components():
    m = cv.Model("mixture")
    k, n = m.plate("component", 3), m.plate("n")
    weights = m.random("weights", cv.dirichlet(jnp.array([1.0, 2.0, 3.0])))
    mean = m.random("mean", cv.vector_gaussian(jnp.zeros(2), covariance=10.0 * jnp.eye(2)), plates=k)
    precision = m.random("precision", cv.wishart(dof=4.0, scale=jnp.eye(2) / 4.0), plates=k)
    z = m.random("z", cv.categorical(weights), plates=n)
    m.random("x", cv.vector_gaussian(mean[z], precision=precision[z]))
    X = random.normal(size=(7, 2))
    density = cv.log_density(m, {"x": X})
    assert density.summed == ("z",)
    assert density.dimension == 2 + 6 + 9
    start = density.initial(0)
    v = density.constrain(start)
    wanted, cases = st.dirichlet([1, 2, 3]).logpdf(v["weights"]), np.zeros((7, 3))
    for j in range(3):
        wanted += st.multivariate_normal(np.zeros(2), 10 * np.eye(2)).logpdf(v["mean"][j])
        wanted += st.wishart(4, np.eye(2) / 4).logpdf(v["precision"][j])
        found = st.multivariate_normal(v["mean"][j], np.linalg.inv(v["precision"][j])).logpdf(X)
        cases[:, j] = np.log(v["weights"][j]) + found
    close(density(v), wanted + logsumexp(cases, axis=1).sum(), rtol=1e-12)
    close(density.unconstrain(v), start, rtol=0, atol=1e-12)


def test_switch_and_boolean_selector():
    m = cv.Model("clutter")
    n = m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, variance=100.0))
    clean = m.random("clean", cv.bernoulli(0.3), plates=n)
    m.random("x", cv.switch(clean, cv.gaussian(mean, variance=1.0), cv.gaussian(0.0, variance=10.0)))
    x = np.array([0.1, 2.3, -4.0])
    wanted = st.norm(0, 10).logpdf(0.7)
    wanted += np.log(0.3 * st.norm(0.7, 1).pdf(x) + 0.7 * st.norm(0, 10**0.5).pdf(x)).sum()
    close(cv.log_density(m, {"x": x})({"mean": 0.7}), wanted, rtol=1e-12)


def test_states_read_through_an_index_are_summed_by_element():
    """Two workers label three items; each item's truth is one state for all its labels."""
    m = cv.Model("labels")
    item, worker, label = m.plate("item"), m.plate("worker"), m.plate("label")
    which = m.input("which", cv.index(item), plates=label)
    who = m.input("who", cv.index(worker), plates=label)
    truth = m.random("truth", cv.bernoulli(0.4), plates=item)
    skill = m.random("skill", cv.beta(2.0, 1.0), plates=worker)
    m.random("y", cv.switch(truth[which], cv.bernoulli(skill[who]), cv.bernoulli(0.3)))
    items, workers = np.array([0, 0, 1, 2, 2, 2]), np.array([0, 1, 0, 1, 0, 0])
    y, s = np.array([1, 0, 1, 1, 0, 1], bool), np.array([0.7, 0.6])
    wanted = st.beta(2, 1).logpdf(s).sum()
    for i in range(3):
        mine = items == i
        true = np.log(0.4) + st.bernoulli(s[workers[mine]]).logpmf(y[mine]).sum()
        wanted += np.logaddexp(true, np.log(0.6) + st.bernoulli(0.3).logpmf(y[mine]).sum())
    density = cv.log_density(m, {"which": items, "who": workers, "y": y}, {"item": 3, "worker": 2})
    close(density({"skill": s}), wanted, rtol=1e-12)


def test_discrete_models_are_summed_entirely():
    m = cv.Model("two coins")
    first, second = m.random("first", cv.bernoulli(0.5)), m.random("second", cv.bernoulli(0.5))
    m.let("both", first & second)
    close(cv.log_density(m, {"both": False})({}), np.log(0.75), rtol=1e-14)


def test_noise_of_a_comparison_is_integrated_out():
    m = cv.Model("skills")
    player, game = m.plate("player"), m.plate("game")
    winner = m.input("winner", cv.index(player), plates=game)
    loser = m.input("loser", cv.index(player), plates=game)
    skill = m.random("skill", cv.gaussian(0.0, variance=0.5), plates=player)
    margin = m.random("margin", cv.gaussian(skill[winner] - skill[loser], variance=2.0))
    m.constrain(3.0 * margin > 0.6)
    w, lost, s = np.array([0, 1, 2, 0]), np.array([1, 2, 0, 3]), random.normal(size=4)
    density = cv.log_density(m, {"winner": w, "loser": lost}, {"player": 4})
    assert density.collapsed == ("margin",)
    assert density.names == ("skill",)
    assert not density.hard
    wanted = st.norm(0, 0.5**0.5).logpdf(s).sum() + st.norm.logcdf((s[w] - s[lost] - 0.2) / 2**0.5).sum()
    close(density({"skill": s}), wanted, rtol=1e-12)


def test_a_constraint_on_latent_values_themselves_is_hard():
    m = cv.Model()
    a, b = m.random("a", cv.gaussian(0.0, variance=1.0)), m.random("b", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.gaussian(a + b, variance=1.0))
    m.constrain(a > b, name="order")
    density = cv.log_density(m, {"y": 0.5})
    assert density.hard == ("order",)
    assert density({"a": 0.0, "b": 1.0}) == -np.inf
    wanted = st.norm.logpdf([1.0, 0.0]).sum() + st.norm(1.0, 1).logpdf(0.5)
    close(density({"a": 1.0, "b": 0.0}), wanted, rtol=1e-13)


def test_chain():
    m = cv.Model()
    t = m.plate("t", 5)
    first, then = cv.gaussian(0.0, variance=4.0), lambda previous: cv.gaussian(0.9 * previous, variance=0.5)
    state = m.chain("state", over=t, first=first, then=then)
    m.random("y", cv.gaussian(state, variance=2.0))
    y, x = np.arange(5.0), random.normal(size=5)
    wanted = st.norm(0, 2).logpdf(x[0]) + st.norm(0.9 * x[:-1], 0.5**0.5).logpdf(x[1:]).sum()
    wanted += st.norm(x, 2**0.5).logpdf(y).sum()
    close(cv.log_density(m, {"y": y})({"state": x}), wanted, rtol=1e-12)


def test_it_is_jitted_and_differentiated():
    density = cv.log_density(mean_precision(), {"x": [1.0, 2.0, 4.0]})
    with jax.enable_x64(True):
        z = jnp.array([0.3, np.log(2.0)])
        gradient = jax.jit(jax.grad(density.unconstrained))(z)
        steps = np.eye(2) * 1e-5
        differences = [(density.unconstrained(z + s) - density.unconstrained(z - s)) / 2e-5 for s in steps]
    close(gradient, differences, rtol=1e-8)


def test_wrong_values():
    density = cv.log_density(mean_precision(), {"x": [1.0, 2.0]})
    with pytest.raises(cv.DataError, match="'precision' is missing"):
        density({"mean": 0.0})
    with pytest.raises(cv.DataError, match="'z' is not among them"):
        density({"mean": 0.0, "precision": 1.0, "z": 1.0})
    with pytest.raises(cv.DataError, match=r"'mean' must have shape \(\)"):
        density({"mean": [0.0, 1.0], "precision": 1.0})
    with pytest.raises(cv.DataError, match="vector of 2 numbers"):
        density.unconstrained(np.zeros(3))
    assert density({"mean": 0.0, "precision": 0.0}) == -np.inf


def test_models_without_a_joint_density():
    m = cv.Model()
    a, b = m.random("a", cv.gaussian(0.0, variance=1.0)), m.random("b", cv.gaussian(0.0, variance=1.0))
    m.let("s", a + b)
    with pytest.raises(cv.UnsupportedError, match="'s' is a deterministic expression"):
        cv.log_density(m, {"s": 1.0})
    m = cv.Model()
    n = m.plate("n", 40)
    z = m.random("z", cv.bernoulli(0.5), plates=n)
    i, j = m.input("i", cv.index(n)), m.input("j", cv.index(n))
    m.let("pair", z[i] & z[j])
    with pytest.raises(cv.UnsupportedError, match="joins several elements of the discrete variable 'z'"):
        cv.log_density(m, {"i": 0, "j": 1, "pair": True})


def test_the_prior_is_the_density_without_the_data():
    density = cv.log_density(mean_precision(), {"x": [1.0, 2.0, np.nan]})
    z = density.unconstrain({"mean": 0.3, "precision": 2.0})
    close(density.prior(z), st.norm(0, 10).logpdf(0.3) + st.gamma(2, scale=1 / 1.5).logpdf(2.0) + np.log(2.0))
    with jax.enable_x64(True):
        close(jax.jit(density.prior)(z), density.prior(z), rtol=1e-13)


def test_classes_of_the_outcome_alone_leave_a_prior_and_others_do_not():
    m = cv.Model()
    n, k = m.plate("n"), m.plate("k", 2)
    centre = m.random("centre", cv.gaussian(0.0, sd=3.0), plates=k)
    z = m.random("z", cv.categorical([0.3, 0.7]), plates=n)
    own = m.random("own", cv.gaussian(centre[z], sd=1.0))
    m.random("y", cv.gaussian(own, sd=1.0))
    density = cv.log_density(m, {"y": [0.0, 1.0]})
    with pytest.raises(cv.UnsupportedError, match="'own' depends on 'z', which is summed out"):
        density.prior(np.zeros(density.dimension))
    density = cv.log_density(m, {"own": [0.0, 1.0]})
    close(density.prior([0.5, -1.0]), st.norm(0, 3).logpdf([0.5, -1.0]).sum())

"""Joint draws of posteriors and models, their covariances and tables, against closed forms and integrals on a grid."""

import itertools

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import cavity as cv

X = np.linspace(-1.0, 5.0, 20)
Y = 1.0 + 2.0 * X + np.random.default_rng(0).normal(size=20)
DRAWS = 4000


def line(noise):
    """A straight line, whose two numbers are strongly correlated; `noise` are the arguments of its Gaussian."""
    m = cv.Model("line")
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    a = m.random("a", cv.gaussian(0.0, variance=100.0))
    b = m.random("b", cv.gaussian(0.0, variance=100.0))
    height = m.let("height", a + b * x)
    m.random("y", cv.gaussian(height, **noise(m)))
    return m


@pytest.fixture(scope="module")
def exact():
    return cv.infer(line(lambda m: {"variance": 1.0}), {"x": X, "y": Y})


@pytest.fixture(scope="module")
def integrated():
    return cv.infer(line(lambda m: {"precision": m.random("precision", cv.gamma(2.0, 2.0))}), {"x": X, "y": Y})


@pytest.fixture(scope="module")
def logistic():
    m = cv.Model("logistic")
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    a = m.random("a", cv.gaussian(0.0, variance=4.0))
    b = m.random("b", cv.gaussian(0.0, variance=4.0))
    m.random("y", cv.bernoulli(cv.logistic(a + b * x)))
    return m


OUTCOMES = np.array([0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1]) > 0


def right_covariance():
    """Of intercept and slope of the line with noise of variance one."""
    design = np.stack([np.ones(20), X], axis=1)
    return np.linalg.inv(design.T @ design + np.eye(2) / 100.0)


def test_covariances_of_a_joint_belief_are_exact(exact):
    right = right_covariance()
    assert_allclose(exact.covariance("a", "b"), right[0, 1], rtol=1e-9)
    assert_allclose(exact.covariance("b"), right[1, 1], rtol=1e-9)


def test_draws_of_an_exact_posterior_have_its_covariance(exact):
    draws, right = exact.sample(DRAWS), right_covariance()
    assert_allclose(np.cov(draws["a"], draws["b"]), right, rtol=0.1)
    assert_allclose(draws["height"], draws["a"][:, None] + draws["b"][:, None] * X, rtol=1e-12)


def test_draws_of_an_integrated_posterior(integrated):
    draws, right = integrated.sample(DRAWS), right_covariance()
    correlation = right[0, 1] / np.sqrt(right[0, 0] * right[1, 1])
    assert_allclose(np.corrcoef(draws["a"], draws["b"])[0, 1], correlation, atol=0.03)
    assert_allclose(draws["precision"].mean(), integrated["precision"].mean, rtol=0.03)
    assert_allclose(draws["height"], draws["a"][:, None] + draws["b"][:, None] * X, rtol=1e-12)


def test_draws_of_a_density_without_conjugacy_against_a_grid(logistic):
    posterior = cv.infer(logistic, {"x": X, "y": OUTCOMES})
    a, b = np.meshgrid(np.linspace(-8, 8, 401), np.linspace(-6, 8, 401), indexing="ij")
    score = a[..., None] + b[..., None] * X
    log = -(a**2 + b**2) / 8.0 + np.sum(np.where(OUTCOMES, -np.logaddexp(0, -score), -np.logaddexp(0, score)), axis=-1)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    middle = np.sum(weight * a), np.sum(weight * b)
    right = np.sum(weight * (a - middle[0]) * (b - middle[1]))
    assert_allclose(posterior.covariance("a", "b"), right, rtol=0.1)
    draws = posterior.sample(DRAWS)
    assert_allclose(draws["a"].mean(), middle[0], atol=0.06)
    assert_allclose((draws["a"] + 2.0 * draws["b"] > 0).mean(), np.sum(weight * (a + 2.0 * b > 0)), atol=0.03)


def test_classes_are_drawn_with_the_means_they_belong_to():
    m = cv.Model("two groups")
    k, n = m.plate("k", 2), m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, variance=9.0), plates=k)
    z = m.random("z", cv.categorical([0.5, 0.5]), plates=n)
    m.random("y", cv.gaussian(mean[z], variance=1.0))
    y = np.array([-1.0, 0.5, 1.5])
    draws = cv.infer(m, {"y": y}).sample(DRAWS)
    weights, pairs = [], []
    for states in np.ndindex(2, 2, 2):
        log = 0.0
        for group in range(2):
            own = y[np.array(states) == group]
            covariance = np.eye(len(own)) + 9.0
            log -= 0.5 * (own @ np.linalg.solve(covariance, own) + np.linalg.slogdet(covariance)[1])
        weights.append(np.exp(log))
        pairs.append([states[0] == states[1], states[0] == states[2]])
    right = np.average(pairs, axis=0, weights=weights)
    found = [(draws["z"][:, 0] == draws["z"][:, i]).mean() for i in (1, 2)]
    assert_allclose(found, right, atol=0.03)


def test_where_no_joint_draws_are_usable_a_warning_says_so():
    m = cv.Model("many")
    n = m.plate("n")
    rate = m.random("rate", cv.gamma(2.0, 1.0), plates=n)
    level = m.random("level", cv.gaussian(0.0, variance=1.0), plates=n)
    m.random("y", cv.student_t(2.0, level, rate))
    posterior = cv.infer(m, {"y": np.linspace(-30.0, 30.0, 300)}, accuracy="fast")
    with pytest.warns(cv.CavityWarning, match="each marginal by itself"):
        draws = posterior.sample(50)
    assert draws["rate"].shape == (50, 300)


def test_what_shares_a_belief_is_drawn_together_where_no_weighted_draws_are_usable():
    m = cv.Model("line of many precisions")
    row = m.plate("row")
    x = m.input("x", cv.real, plates=row)
    level, slope = m.random("level", cv.gaussian(0.0, sd=3.0)), m.random("slope", cv.gaussian(0.0, sd=3.0))
    precision = m.random("precision", cv.gamma(2.0, 2.0), plates=row)
    m.random("y", cv.gaussian(level + slope * x, precision=precision))
    rng = np.random.default_rng(0)
    x = rng.normal(4.0, 1.0, 300)
    posterior = cv.infer(m, {"x": x, "y": x - 4.0 + rng.normal(size=300)}, accuracy="fast")
    with pytest.warns(cv.CavityWarning, match="together: level, slope"):
        draws = posterior.sample(4000)
    with jax.enable_x64(True):
        covariance = np.asarray(posterior.families["joint of level, slope"].covariance())
    exact = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert exact < -0.9
    assert_allclose(np.corrcoef(draws["level"], draws["slope"])[0, 1], exact, atol=0.01)


def chain_model():
    m = cv.Model("switching")
    t = m.plate("t")
    stay = np.array([[0.9, 0.1], [0.2, 0.8]])
    state = m.chain("state", over=t, first=cv.categorical([0.5, 0.5]), then=lambda s: cv.categorical(cv.table(stay)[s]))
    m.random("y", cv.gaussian(cv.table(np.array([-1.0, 1.0]))[state], variance=2.0))
    return m, stay


def test_states_of_a_chain_are_drawn_jointly():
    m, stay = chain_model()
    y = np.array([-1.0, 0.3, 0.2, 1.2])
    draws = cv.infer(m, {"y": y}).sample(DRAWS)["state"]
    paths = list(np.ndindex(2, 2, 2, 2))
    weights = [np.prod([stay[a, b] for a, b in itertools.pairwise(p)]) for p in paths]
    weights = np.array(weights) * [np.exp(-np.sum((y - (2.0 * np.array(p) - 1.0)) ** 2) / 4.0) for p in paths]
    found = [np.mean((draws == p).all(axis=1)) for p in paths]
    assert_allclose(found, weights / weights.sum(), atol=0.03)


def test_coins_of_which_not_both_are_heads():
    m = cv.Model("coins")
    first = m.random("first", cv.bernoulli(0.5))
    second = m.random("second", cv.bernoulli(0.5))
    m.let("both", first & second)
    draws = cv.infer(m, {"both": False}).sample(DRAWS)
    assert not np.any(draws["first"] & draws["second"])
    assert_allclose(draws["first"].mean(), 1.0 / 3.0, atol=0.03)


def test_a_longer_chain_than_is_drawn_jointly_is_told(monkeypatch):
    m, _ = chain_model()
    monkeypatch.setattr("cavity.engine.sampling.from_weights.MOST", 4)
    with pytest.warns(cv.CavityWarning, match="state"):
        cv.infer(m, {"y": np.zeros(5)}).sample(20)


def test_the_same_seed_gives_the_same_draws_and_keys_are_seeds(exact):
    assert_array_equal(exact.sample(10, 3)["a"], exact.sample(10, seed=3)["a"])
    assert np.any(exact.sample(10, 3)["a"] != exact.sample(10, 4)["a"])
    key = jax.random.key(7)
    assert_array_equal(exact.sample(10, key)["a"], exact.sample(10, key)["a"])


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "many"])
def test_what_is_no_number_of_draws(exact, n):
    for call in (exact.sample, exact.predictive, exact.model.simulate):
        with pytest.raises(cv.ModelError, match="whole number"):
            call(n)
    with pytest.raises(cv.ModelError, match="seed"):
        exact.sample(3, seed="one")


# predictive draws -----------------------------------------------------------------------------------------------------


def test_data_drawn_anew_have_the_predictive_moments(integrated):
    drawn = integrated.predictive(DRAWS)
    assert set(drawn) == {"y", "height"}
    assert drawn["y"].shape == (DRAWS, 20)
    right = integrated.predict({"x": X})["y"]
    assert_allclose(drawn["y"].mean(axis=0), right.mean, atol=0.1)
    assert_allclose(drawn["y"].std(axis=0), right.sd, rtol=0.1)


def test_new_rows_are_drawn_together(exact):
    drawn = exact.predictive(DRAWS, {"x": [10.0, 10.0]}, seed=5)["y"]
    right = exact.predict({"x": [10.0]})["y"]
    assert_allclose(drawn.std(axis=0), right.sd * np.ones(2), rtol=0.1)
    shared = right.variance - 1.0  # that of the line, which both rows share
    assert_allclose(np.cov(drawn.T)[0, 1], shared * np.ones(1), rtol=0.2)


def test_predictive_draws_of_weighted_draws(logistic):
    posterior = cv.infer(logistic, {"x": X, "y": OUTCOMES})
    drawn = posterior.predictive(DRAWS, {"x": [-1.0, 1.0, 5.0]})["y"]
    assert_allclose(drawn.mean(axis=0), posterior.predict({"x": [-1.0, 1.0, 5.0]})["y"].mean, atol=0.03)


def test_where_constraints_alone_were_observed_new_inputs_are_asked_for():
    m = cv.Model("one game")
    a = m.random("a", cv.gaussian(0.0, variance=1.0))
    m.constrain(a > 0.0)
    with pytest.raises(cv.DataError, match="new inputs"):
        cv.infer(m, {}).predictive(3)


# draws of models ------------------------------------------------------------------------------------------------------


def test_draws_of_a_model_before_it_has_seen_data():
    m = line(lambda m: {"precision": m.random("precision", cv.gamma(2.0, 2.0))})
    drawn = m.simulate(DRAWS, {"x": X, "y": Y}, seed=1)
    assert {name: array.shape[1:] for name, array in drawn.items()} == {
        "a": (), "b": (), "height": (20,), "precision": (), "y": (20,),
    }  # fmt: skip
    assert_allclose(drawn["a"].std(), 10.0, rtol=0.05)
    assert_allclose(drawn["height"], drawn["a"][:, None] + drawn["b"][:, None] * X, rtol=1e-12)
    noise = (drawn["y"] - drawn["height"]) * np.sqrt(drawn["precision"])[:, None]
    assert_allclose(noise.std(), 1.0, rtol=0.02)
    assert_array_equal(drawn["y"], m.simulate(DRAWS, {"x": X}, seed=1)["y"])


def test_sizes_of_plates_without_data():
    m = cv.Model()
    m.random("x", cv.poisson(m.random("rate", cv.gamma(2.0, 1.0))), plates=m.plate("n"))
    assert m.simulate(3, sizes={"n": 5})["x"].shape == (3, 5)


def test_constraints_hold_in_every_draw():
    m = cv.Model("ordered")
    a = m.random("a", cv.gaussian(0.0, variance=1.0))
    b = m.random("b", cv.gaussian(0.0, variance=1.0))
    m.constrain(a > b)
    drawn = m.simulate(500)
    assert np.all(drawn["a"] > drawn["b"])
    assert_allclose(drawn["a"].mean(), 1.0 / np.sqrt(np.pi), atol=0.15)


def test_an_improper_prior_has_no_draws():
    m = cv.Model()
    m.random("y", cv.gaussian(m.random("a", cv.flat()), variance=1.0))
    with pytest.raises(cv.UnsupportedError, match="'a'"):
        m.simulate()


# tables ---------------------------------------------------------------------------------------------------------------


def test_a_frame_of_marginals(integrated):
    pytest.importorskip("pandas")
    frame = integrated.to_frame()
    assert list(frame.columns) == ["mean", "sd", "q5", "q50", "q95"]
    assert frame.loc["a", "mean"] == integrated["a"].mean
    assert frame.loc["height[3]", "q95"] == integrated["height"].quantile(0.95)[3]
    assert "y[0]" not in frame.index  # observed


def test_frames_and_data_sets_of_draws(integrated):
    pytest.importorskip("pandas")
    frame = integrated.to_frame(draws=6, seed=2)
    assert frame.shape == (6, 3 + 20)
    assert_array_equal(frame["b"], integrated.sample(6, 2)["b"])
    pytest.importorskip("xarray")
    found = integrated.to_xarray(6, seed=2)
    assert found["height"].dims == ("draw", "n")
    assert_array_equal(found["a"], frame["a"])


# what a reader found --------------------------------------------------------------------------------------------------


def test_comparisons_hold_in_joint_draws():
    m = cv.Model("compared")
    a = m.random("a", cv.gaussian(0.0, variance=1.0))
    b = m.random("b", cv.gaussian(0.0, variance=1.0))
    m.constrain(a > b)
    draws = cv.infer(m, {}).sample(DRAWS)
    assert np.all(draws["a"] > draws["b"])
    assert_allclose(draws["a"].mean(), 1.0 / np.sqrt(np.pi), atol=0.05)


def test_what_is_left_by_an_integration_is_drawn_together():
    m = cv.Model("integrated mixture")
    n = m.plate("n")
    precision = m.random("precision", cv.gamma(2.0, 2.0))
    mu = m.random("mu", cv.gaussian(0.0, variance=9.0))
    z = m.random("z", cv.bernoulli(0.5), plates=n)
    m.random("y", cv.gaussian(mu + cv.where(z, 3.0, -3.0), precision=precision), plates=n)
    draws = cv.infer(m, {"y": [0.2, 0.3]}).sample(DRAWS)
    assert_allclose(np.mean(draws["z"][:, 0] == draws["z"][:, 1]), 0.98, atol=0.02)
    assert_allclose(np.cov(draws["mu"], draws["z"][:, 0])[0, 1], -1.368, atol=0.1)


def test_missing_entries_are_drawn():
    m = cv.Model()
    mean = m.random("mean", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.gaussian(mean, variance=1.0), plates=m.plate("n"))
    draws = cv.infer(m, {"y": [1.0, np.nan, 3.0]}).sample(DRAWS)
    assert_array_equal(draws["y"][:, [0, 2]], np.broadcast_to([1.0, 3.0], (DRAWS, 2)))
    assert_allclose(np.cov(draws["mean"], draws["y"][:, 1]), [[1 / 3, 1 / 3], [1 / 3, 4 / 3]], rtol=0.15)

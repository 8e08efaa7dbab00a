"""Missing entries of observed variables that others depend on, against models whose rows are split by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

import cavity as cv

close = np.testing.assert_allclose
RANDOM = np.random.default_rng(11)
N = 24
MISSING = np.arange(N) % 3 == 1


def split_by_hand(model, rows):
    """The same model twice over: `rows(m, shared, plate, suffix)` declares what lives on a plate of rows."""
    m = cv.Model("rows")
    shared = model(m)
    for suffix in ("", " missing"):
        rows(m, shared, m.plate(f"n{suffix}"), suffix)
    return m


def as_one(model, rows):
    m = cv.Model("rows")
    rows(m, model(m), m.plate("n"), "")
    return m


def agree(model, rows, name, full, other, method="auto", names=()):
    """A variable with missing entries gives what the model gives whose rows are split into known and unknown."""
    values = full[name].astype(float) if full[name].dtype.kind == "f" else full[name]
    data = {**full, name: np.ma.array(values, mask=MISSING)}
    found = cv.infer(as_one(model, rows), data, method=method, tolerance=1e-12, accuracy="fast")
    apart = {key: array[~MISSING] for key, array in full.items()}
    apart |= {f"{key} missing": full[key][MISSING] for key in other}
    wanted = cv.infer(split_by_hand(model, rows), apart, method=method, tolerance=1e-12, accuracy="fast")
    assert found.converged
    assert wanted.converged
    close(found.log_evidence, wanted.log_evidence, atol=1e-8)
    close(sum(found.evidence.values()), found.log_evidence, atol=1e-8)
    for shared in names:
        close(found[shared].mean, wanted[shared].mean, atol=1e-8)
    close(np.asarray(found[name].mean)[MISSING], wanted[f"{name} missing"].mean, atol=1e-8)
    return found


def regression(m):
    return {
        "mu": m.random("mu", cv.gaussian(0.0, variance=100.0)),
        "tau": m.random("tau", cv.gamma(1.0, 1.0)),
        "a": m.random("a", cv.gaussian(0.0, variance=100.0)),
        "b": m.random("b", cv.gaussian(0.0, variance=100.0)),
    }


def covariates(m, shared, n, suffix):
    x = m.random(f"x{suffix}", cv.gaussian(shared["mu"], precision=shared["tau"]), plates=n)
    m.random(f"y{suffix}", cv.gaussian(shared["a"] + shared["b"] * x, variance=0.25), plates=n)


X = RANDOM.normal(1.0, 2.0, N)
Y = 0.5 + 1.5 * X + RANDOM.normal(0.0, 0.5, N)


@pytest.mark.parametrize("method", ["auto", pytest.param("vmp", marks=pytest.mark.slow)])
def test_a_regression_with_missing_covariates(method):
    found = agree(regression, covariates, "x", {"x": X, "y": Y}, ["y"], method, ["mu", "tau", "a", "b"])
    marginal = found["x"]
    close(np.asarray(marginal.mean)[~MISSING], X[~MISSING])
    close(np.asarray(marginal.variance)[~MISSING], 0.0)
    assert (np.asarray(marginal.variance)[MISSING] > 0.0).all()
    assert "x in part" in found.explain()
    assert "where not: x is given" in found.explain()


def test_it_is_saved_and_predicts(tmp_path):
    model = as_one(regression, covariates)
    found = cv.infer(model, {"x": np.where(MISSING, np.nan, X), "y": Y}, accuracy="fast")
    found.save(tmp_path / "x.npz")
    again, alone = cv.load(tmp_path / "x.npz", model), cv.load(tmp_path / "x.npz")
    close(again["x"].mean, found["x"].mean)
    close(alone["x"].mean, found["x"].mean)
    new = again.predict({}, sizes={"n": 2})
    close(new["x"].mean, np.full(2, found["mu"].mean))
    close(new["y"].mean, np.full(2, found["a"].mean + found["b"].mean * found["mu"].mean))


def mixture(m):
    k = m.plate("k", 3)
    return {
        "weights": m.random("weights", cv.dirichlet(np.ones(3))),
        "centre": m.random("centre", cv.gaussian(0.0, variance=25.0), plates=k),
    }


def labelled(m, shared, n, suffix):
    z = m.random(f"z{suffix}", cv.categorical(shared["weights"]), plates=n)
    m.random(f"x{suffix}", cv.gaussian(shared["centre"][z], variance=0.5), plates=n)


def test_a_mixture_with_some_labels():
    z = np.arange(N) // 2 % 3
    x = np.array([-3.0, 0.0, 3.0])[z] + RANDOM.normal(0.0, 0.7, N)
    found = agree(mixture, labelled, "z", {"z": z, "x": x}, ["x"], names=["weights", "centre"])
    close(np.asarray(found["z"].mean)[~MISSING], np.eye(3)[z[~MISSING]])
    assert (np.diff(found["centre"].mean) > 1.0).all()  # labels decide which component is which


def level(m):
    return {"mu": m.random("mu", cv.gaussian(0.0, variance=10.0))}


def states(m, shared, n, suffix):
    x = m.random(f"x{suffix}", cv.gaussian(shared["mu"], variance=2.0), plates=n)
    m.random(f"y{suffix}", cv.gaussian(x, variance=0.5), plates=n)
    m.random(f"s{suffix}", cv.bernoulli(cv.probit(x)), plates=n)


@pytest.mark.parametrize(
    "method", ["auto", pytest.param("ep", marks=pytest.mark.slow), pytest.param("vmp", marks=pytest.mark.slow)]
)
def test_states_with_two_kinds_of_observations(method):
    full = {"x": X, "y": Y, "s": X + RANDOM.normal(0.0, 1.0, N) > 0.0}
    agree(level, states, "x", full, ["y", "s"], method, ["mu"])


def one_observation(m, shared, n, suffix):
    x = m.random(f"x{suffix}", cv.gaussian(shared["mu"], variance=2.0), plates=n)
    m.random(f"y{suffix}", cv.gaussian(x, variance=0.5), plates=n)


def test_states_in_one_belief_and_outcomes_missing_too():
    y = np.where(np.arange(N) % 4 == 0, np.nan, Y)
    found = agree(level, one_observation, "x", {"x": X, "y": y}, ["y"], names=["mu"])
    prior = 10.0 + 2.0 * np.eye(N)
    covariance = np.block([[prior, prior], [prior, prior + 0.5 * np.eye(N)]])
    seen = np.concatenate([~MISSING, np.isfinite(y)])
    values, covariance = np.concatenate([X, y])[seen], covariance[np.ix_(seen, seen)]
    log_z = -0.5 * values @ np.linalg.solve(covariance, values) - 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    close(found.log_evidence, log_z, atol=1e-8)


def test_a_boolean_cause_under_a_table_is_enumerated():
    table = np.array([[0.9, 0.2], [0.4, 0.7]])
    m = cv.Model()
    n = m.plate("n", 3)
    i, j = m.plate("i", 2), m.plate("j", 2)
    effects = m.input("effects", cv.unit, plates=(i, j))
    a, b = (m.random(name, cv.bernoulli(p), plates=n) for name, p in (("a", 0.3), ("b", 0.6)))
    m.random("c", cv.bernoulli(effects[a][b]), plates=n)
    given_a = np.ma.array([True, False, False], mask=[False, True, True])
    given_b = np.ma.array([False, True, False], mask=[False, False, True])
    c = np.array([True, False, True])
    found = cv.infer(m, {"a": given_a, "b": given_b, "c": c, "effects": table})
    total, means = 0.0, []
    for row in range(3):
        weights = {}
        for s, t in itertools.product((0, 1), repeat=2):
            fits = (given_a.mask[row] or given_a[row] == s) and (given_b.mask[row] or given_b[row] == t)
            p = table[s, t] if c[row] else 1.0 - table[s, t]
            weights[s, t] = fits * p * (0.3 if s else 0.7) * (0.6 if t else 0.4)
        z = sum(weights.values())
        total += np.log(z)
        means.append(
            [sum(w for (s, _), w in weights.items() if s) / z, sum(w for (_, t), w in weights.items() if t) / z]
        )
    close(found.log_evidence, total, rtol=1e-9)
    close(np.stack([found["a"].mean, found["b"].mean], axis=-1)[:2], np.array(means)[:2], rtol=1e-9, atol=1e-12)


def test_elements_are_given_one_by_one_through_an_index():
    """Games between players of whom some strengths are known: the same as constants in their place."""
    first, second = np.array([0, 1, 2, 0, 3]), np.array([1, 2, 3, 3, 1])
    margin = np.array([0.5, -1.0, 2.0, 0.3, 0.1])
    known = np.array([1.2, np.nan, -0.7, np.nan])

    m = cv.Model()
    players, games = m.plate("players"), m.plate("games")
    i, j = (m.input(name, cv.index(players), plates=games) for name in ("i", "j"))
    skill = m.random("skill", cv.gaussian(0.0, variance=4.0), plates=players)
    m.random("margin", cv.gaussian(skill[i] - skill[j], variance=0.5), plates=games)
    found = cv.infer(m, {"skill": known, "i": first, "j": second, "margin": margin}, tolerance=1e-12)

    free = np.isnan(known)
    design = np.zeros((5, 4))
    design[np.arange(5), first] += 1.0
    design[np.arange(5), second] -= 1.0
    rest = margin - design[:, ~free] @ known[~free]
    precision = np.eye(2) / 4.0 + design[:, free].T @ design[:, free] / 0.5
    mean = np.linalg.solve(precision, design[:, free].T @ rest / 0.5)
    close(np.asarray(found["skill"].mean)[free], mean, atol=1e-8)
    close(np.asarray(found["skill"].variance)[free], np.diag(np.linalg.inv(precision)), atol=1e-8)
    covariance = 0.5 * np.eye(5) + 4.0 * design[:, free] @ design[:, free].T
    log_z = -0.5 * rest @ np.linalg.solve(covariance, rest) - 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    log_z += np.sum(-0.5 * known[~free] ** 2 / 4.0 - 0.5 * np.log(2 * np.pi * 4.0))
    close(found.log_evidence, log_z, atol=1e-8)


def test_a_sum_over_entries_some_of_which_are_missing():
    m = cv.Model()
    n, d = m.plate("n"), m.plate("d")
    w = m.input("w", cv.real, plates=d)
    x = m.random("x", cv.gaussian(0.0, variance=1.0), plates=(n, d))
    m.random("y", cv.gaussian(cv.sum(w * x, over=d), variance=0.1), plates=n)
    values = RANDOM.normal(size=(5, 3))
    values[[0, 1, 3, 3], [0, 2, 0, 1]] = np.nan
    weights, y = np.array([1.0, -2.0, 0.5]), RANDOM.normal(size=5)
    found = cv.infer(m, {"x": values, "w": weights, "y": y}, tolerance=1e-12)
    total = 0.0
    for row in range(5):
        free = np.isnan(values[row])
        rest = y[row] - weights[~free] @ values[row, ~free]
        variance = 0.1 + weights[free] @ weights[free]
        mean = weights[free] * rest / variance
        close(np.asarray(found["x"].mean)[row, free], mean, atol=1e-8)
        total += -0.5 * rest**2 / variance - 0.5 * np.log(2 * np.pi * variance)
        total += np.sum(-0.5 * values[row, ~free] ** 2 - 0.5 * np.log(2 * np.pi))
    close(found.log_evidence, total, atol=1e-8)


def test_a_constraint_on_what_is_partly_observed():
    m = cv.Model()
    n = m.plate("n")
    x = m.random("x", cv.gaussian(0.0, variance=1.0), plates=n)
    m.constrain(x > 0.0)
    found = cv.infer(m, {"x": [1.0, np.nan]})
    close(found["x"].mean, [1.0, np.sqrt(2.0 / np.pi)], atol=1e-8)
    close(found.log_evidence, -0.5 - 0.5 * np.log(2 * np.pi) + np.log(0.5), atol=1e-8)


def test_what_cannot_be_split_says_why():
    m = cv.Model()
    n, k = m.plate("n"), m.plate("k", 2)
    centre = m.random("centre", cv.gaussian(0.0, variance=1.0), plates=k)
    z = m.random("z", cv.categorical([0.5, 0.5]), plates=n)
    m.random("x", cv.gaussian(centre[z], variance=1.0), plates=n)
    with pytest.raises(cv.UnsupportedError, match="the random 'z' chooses among its elements"):
        cv.infer(m, {"centre": [0.0, np.nan], "x": [0.0, 1.0]})


def test_an_observed_expression_may_be_missing_at_some_elements():
    m = cv.Model()
    n = m.plate("n")
    a = m.random("a", cv.gaussian(1.0, variance=4.0), plates=n)
    m.let("twice", 2.0 * a)
    found = cv.infer(m, {"twice": [0.0, np.nan]})
    close(found["a"].mean, [0.0, 1.0], atol=1e-8)
    close(found["a"].sd, [0.0, 2.0], atol=1e-3)  # what is told exactly has a millionth of the variance
    close(found.log_evidence, stats.norm(2.0, 4.0).logpdf(0.0), atol=1e-8)


BOUNDED = {
    "uniform": (lambda low, high: cv.uniform(low, high), lambda low, high: stats.uniform(low, high - low)),
    "truncated gaussian": (
        lambda low, high: cv.truncated_gaussian(0.0, 1.0, low, high),
        lambda low, high: stats.truncnorm(low, high),
    ),
}


@pytest.mark.parametrize("family", BOUNDED)
def test_what_stands_in_for_a_missing_value_may_lie_beyond_the_bounds_of_its_row(family):
    """Zero is nowhere in (2, 5): the missing entry costs nothing, and its marginal is the distribution of its row."""
    term, distribution = BOUNDED[family]
    m = cv.Model()
    rows = m.plate("rows")
    m.random("y", term(m.input("low", cv.real, rows), m.input("high", cv.real, rows)), rows)
    low, high, y = np.array([0.0, 2.0, 2.0]), np.array([1.0, 5.0, 4.0]), np.array([0.5, np.nan, 3.0])
    found = cv.infer(m, {"low": low, "high": high, "y": y})
    wanted = distribution(low, high)
    close(found.log_evidence, wanted.logpdf(y)[[0, 2]].sum(), rtol=1e-12)
    close(found["y"].mean, [0.5, wanted.mean()[1], 3.0], rtol=1e-8)
    close(found["y"].variance, [0.0, wanted.var()[1], 0.0], rtol=1e-6)


def test_infinite_bounds_given_as_data_bound_nothing():
    m = cv.Model()
    rows = m.plate("rows")
    low, high = m.input("low", cv.real, rows), m.input("high", cv.real, rows)
    m.random("cut", cv.truncated_gaussian(0.0, 1.0, low, high), rows)
    x = m.random("x", cv.gaussian(0.0, variance=1.0), rows)
    m.random("seen", cv.between(x, low, high), rows)
    a, b = np.array([-np.inf, -np.inf, 0.5, 0.2]), np.array([np.inf, 1.0, np.inf, 0.7])
    found = cv.infer(m, {"low": a, "high": b, "seen": np.ones(4, bool)})
    wanted = stats.truncnorm(a, b)
    for name in ("cut", "x"):
        close(found[name].mean, wanted.mean(), atol=1e-9)
        close(found[name].variance, wanted.var(), atol=1e-9)
    close(found.log_evidence, np.log(stats.norm.cdf(b) - stats.norm.cdf(a)).sum(), rtol=1e-9)


def test_a_side_of_a_product_that_is_given_in_part_inside_a_sum():
    """What is given makes a linear term of the sum, what is not a product: both read the same tastes."""

    def model(style_of):
        m = cv.Model()
        trait, user, film, rating = m.plate("trait", 2), m.plate("user", 5), m.plate("film", 4), m.plate("rating")
        who, what = m.input("who", cv.index(user), plates=rating), m.input("what", cv.index(film), plates=rating)
        taste = m.random("taste", cv.gaussian(0.0, variance=1.0), plates=(user, trait))
        style = style_of(m, (film, trait))
        m.random("stars", cv.gaussian(cv.sum(taste[who] * style[what], over=trait), variance=0.5))
        return m

    rng = np.random.default_rng(3)
    given = rng.normal(size=(4, 2))
    partly = np.where(np.arange(4)[:, None] < 3, given, np.nan)
    who, what = (a.ravel() for a in np.indices((5, 3)))  # nobody rates the film that is not known
    data = {"who": who, "what": what, "stars": rng.normal(size=15)}
    latent = model(lambda m, plates: m.random("style", cv.gaussian(0.0, variance=1.0), plates=plates))
    known = model(lambda m, plates: m.input("style", cv.real, plates=plates))
    found = cv.infer(latent, {**data, "style": partly}, method="vmp")
    wanted = cv.infer(known, {**data, "style": given}, method="vmp")
    np.testing.assert_allclose(found["taste"].mean, wanted["taste"].mean, atol=1e-6)
    np.testing.assert_allclose(found["style"].mean[3], 0.0, atol=1e-9)
    # and with ratings of it there is something to learn
    more = {"who": [0, 1], "what": [3, 3], "stars": [3.0, 2.0]}
    more = {name: np.append(data[name], rows) for name, rows in more.items()}
    assert np.abs(cv.infer(latent, {**more, "style": partly})["style"].mean[3]).max() > 0.05

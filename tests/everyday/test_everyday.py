"""Over fifty things that people do every day, each in five lines at most, right and without a traceback.

What stands before a task is its data; the task itself is the function's body up to the first assertion.
"""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import cavity as cv

X = np.linspace(-2.0, 2.0, 12)
Y = 0.5 + 1.5 * X + np.array([0.3, -0.2, 0.1, -0.4, 0.2, 0.0, -0.1, 0.4, -0.3, 0.1, 0.2, -0.3])
CITY = ["York", "Leeds", "Hull", "York", "Leeds", "York", "Hull", "Leeds", "York", "York", "Hull", "Leeds"]
DATA = {"x": X, "y": Y}


def line(noise=0.1):
    m = cv.Model("line")
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    a = m.random("a", cv.gaussian(0.0, variance=10.0))
    b = m.random("b", cv.gaussian(0.0, variance=10.0))
    height = m.let("height", a + b * x)
    m.random("y", cv.gaussian(height, variance=noise))
    return m


def by_city():
    m = cv.Model("cities")
    city, n = m.plate("city"), m.plate("n")
    where = m.input("where", cv.index(city), plates=n)
    level = m.random("level", cv.gaussian(0.0, variance=10.0), plates=city)
    m.random("y", cv.gaussian(level[where], variance=1.0))
    return m


@pytest.fixture(scope="module")
def posterior():
    return cv.infer(line(), DATA)


@pytest.fixture(scope="module")
def cities():
    return cv.infer(by_city(), {"where": CITY, "y": Y})


def right_level(name):
    own = Y[np.array(CITY) == name]
    return own.sum() / (len(own) + 0.1)


# data in --------------------------------------------------------------------------------------------------------------


def test_01_categories_as_text(cities):
    assert_allclose(cities["level"]["York"], right_level("York"))


def test_02_a_frame():
    pandas = pytest.importorskip("pandas")
    posterior = cv.infer(by_city(), pandas.DataFrame({"where": CITY, "y": Y, "note": "n"}))
    assert_allclose(posterior["level"]["Hull"], right_level("Hull"))


def test_03_a_categorical_in_its_own_order():
    pandas = pytest.importorskip("pandas")
    posterior = cv.infer(by_city(), {"where": pandas.Categorical(CITY, ["York", "Leeds", "Hull"]), "y": Y})
    assert_allclose(posterior["level"].mean[0], right_level("York"))


def test_04_a_frame_of_polars():
    polars = pytest.importorskip("polars")
    posterior = cv.infer(by_city(), polars.DataFrame({"where": CITY, "y": Y}))
    assert_allclose(posterior["level"]["Leeds"], right_level("Leeds"))


def test_05_dates_as_names():
    days = np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]")[[0, 1, 0]]
    posterior = cv.infer(by_city(), {"where": days, "y": [1.0, 2.0, 3.0]})
    assert_allclose(posterior["level"].sel(city="2024-01-01").mean, 4.0 / 2.1)


def test_06_a_plate_with_declared_names():
    m = cv.Model()
    city = m.plate("city", names=["York", "Leeds"])
    level = m.random("level", cv.gaussian(0.0, variance=1.0), plates=city)
    m.random("y", cv.gaussian(level, variance=1.0))
    assert_allclose(cv.infer(m, {"y": [1.0, 3.0]})["level"]["Leeds"], 1.5)


def test_07_a_long_table():
    m = cv.Model()
    user, item = m.plate("user"), m.plate("item")
    taste = m.random("taste", cv.gaussian(0.0, variance=1.0), plates=user)
    m.random("stars", cv.gaussian(taste, variance=1.0), plates=(user, item))
    table = {"u": ["a", "b", "a"], "i": ["x", "x", "y"], "s": [1.0, 2.0, 2.0]}
    posterior = cv.infer(m, {"stars": cv.long(table, rows="u", columns="i", value="s")})
    assert_allclose(posterior["taste"]["a"], 1.0)


def test_08_missing_outcomes():
    y = np.where(np.arange(12) == 3, np.nan, Y)
    posterior = cv.infer(line(), {"x": X, "y": y})
    assert abs(posterior["y"].mean[3] - (0.5 + 1.5 * X[3])) < 0.3


def test_09_missing_labels():
    m = cv.Model()
    p = m.random("p", cv.dirichlet([1.0, 1.0]))
    m.random("kind", cv.categorical(p), plates=m.plate("n"))
    posterior = cv.infer(m, {"kind": np.array(["a", None, "b", "a"], dtype=object)})
    assert_allclose(posterior["p"].mean, [3.0 / 5.0, 2.0 / 5.0])


def test_10_an_array_of_xarray():
    xarray = pytest.importorskip("xarray")
    posterior = cv.infer(line(), {"x": xarray.DataArray(X, dims="n"), "y": xarray.DataArray(Y, dims="n")})
    assert abs(posterior["b"].mean - 1.5) < 0.2


# answers --------------------------------------------------------------------------------------------------------------


def test_11_mean_and_spread(posterior):
    b = posterior["b"]
    assert_allclose([b.std, b.var], [b.sd, b.variance])


def test_12_median_mode_and_intervals(posterior):
    b = posterior["b"]
    assert_allclose([b.median, b.mode], b.mean)
    assert_allclose(b.hdi(0.8), b.interval(0.8), atol=1e-3)


def test_13_the_probability_of_a_statement(posterior):
    assert posterior["b"].prob(lambda v: v > 0) > 0.999


def test_14_joint_draws(posterior):
    draws = posterior.sample(500)
    assert_allclose(draws["height"], draws["a"][:, None] + draws["b"][:, None] * X)


def test_15_the_covariance_of_two_variables(posterior):
    assert_allclose(posterior.covariance("a", "b"), 0.0, atol=1e-6)  # the inputs are centred


def test_16_a_function_of_several_variables(posterior):
    ratio = np.quantile(posterior.sample(2000, seed=1)["b"] / 2.0, 0.5)
    assert abs(ratio - posterior["b"].mean / 2.0) < 0.02


def test_17_a_table_of_the_answer(posterior):
    pytest.importorskip("pandas")
    assert_allclose(posterior.to_frame().loc["b", "mean"], posterior["b"].mean)


def test_18_a_data_set_of_draws(cities):
    pytest.importorskip("xarray")
    assert list(cities.to_xarray(10)["city"].values) == ["Hull", "Leeds", "York"]


def test_19_arviz(posterior):
    pytest.importorskip("arviz")
    assert posterior.to_arviz(10)["posterior"]["b"].shape == (1, 10)


def test_20_one_element_by_name(cities):
    york = cities["level"].sel(city="York")
    assert_allclose(york.mean, cities["level"]["York"])


def test_21_prior_predictive_draws():
    drawn = line().simulate(2000, DATA)
    assert_allclose(drawn["a"].std(), np.sqrt(10.0), rtol=0.1)


def test_22_posterior_predictive_draws(posterior):
    again = posterior.predictive(500)["y"]
    assert 0.01 < np.mean(again.max(axis=1) > Y.max()) < 0.99


def test_23_predictions_for_new_rows(posterior):
    new = posterior.predict({"x": [10.0]})["y"]
    assert abs(new.mean[0] - 15.5) < 2.0


def test_24_predictive_draws_for_new_rows(posterior):
    drawn = posterior.predictive(2000, {"x": [10.0]})["y"]
    assert_allclose(drawn.std(), posterior.predict({"x": [10.0]})["y"].sd[0], rtol=0.1)


def test_25_predictions_by_name(cities):
    assert_allclose(cities.predict({"where": ["Hull"]})["y"].mean, [right_level("Hull")])


def test_26_a_saved_answer(posterior, tmp_path):
    posterior.save(tmp_path / "answer")
    assert cv.load(tmp_path / "answer", line())["b"].mean == posterior["b"].mean


def test_27_a_pickled_answer(posterior):
    assert pickle.loads(pickle.dumps(posterior))["b"].mean == posterior["b"].mean


def test_28_a_copied_model():
    assert_array_equal(cv.infer(copy.deepcopy(line()), DATA)["b"].mean, cv.infer(line(), DATA)["b"].mean)


# models ---------------------------------------------------------------------------------------------------------------


def test_29_two_models_compared(posterior):
    found = posterior.compare(cv.infer(line(noise=5.0), DATA))
    assert found.log_evidence[0] > found.log_evidence[1]


def test_30_a_thousand_data_sets():
    program = cv.compile(line(), observed=["y"], sizes={"n": 12})
    found = program.batch([{"x": X, "y": Y + k} for k in range(1000)])["a"]
    assert_allclose(np.diff(found.mean), 120.0 / 120.1, rtol=1e-6)


def test_31_the_next_batch_of_data(posterior):
    first = cv.infer(line(), {"x": X[:6], "y": Y[:6]})
    both = cv.infer(line(), {"x": X[6:], "y": Y[6:]}, prior=first)
    assert_allclose(both["b"].mean, posterior["b"].mean, rtol=0.05)


def test_32_a_verdict(posterior):
    assert posterior.verdict.level == "good"


def test_33_what_the_compiler_chose():
    assert "gaussian" in str(cv.explain(line(), DATA)).lower()


def test_34_leave_one_out(posterior):
    assert posterior.loo()["y"].shape == (12,)


def test_35_the_log_evidence(posterior):
    design = np.stack([np.ones(12), X], axis=1)
    covariance = 0.1 * np.eye(12) + 10.0 * design @ design.T
    right = -0.5 * (Y @ np.linalg.solve(covariance, Y) + np.linalg.slogdet(2.0 * np.pi * covariance)[1])
    assert_allclose(posterior.log_evidence, right, rtol=1e-6)


def test_36_functions_of_numpy_on_expressions():
    m = cv.Model()
    log_rate = m.random("log_rate", cv.gaussian(0.0, variance=1.0))
    m.random("count", cv.poisson(np.exp(log_rate)))
    assert cv.infer(m, {"count": 3})["log_rate"].mean > 0.3


def test_37_differences_of_neighbours():
    m = cv.Model()
    x = m.random("x", cv.gaussian(0.0, variance=1.0), plates=m.plate("t", 3))
    step = m.let("step", x[1:] - x[:-1])
    m.random("seen", cv.gaussian(step, variance=1.0))
    assert cv.infer(m, {"seen": [1.0, 1.0]})["step"].mean[0] > 0.3


def test_38_a_random_walk_along_days():
    m = cv.Model()
    t = m.plate("t")
    state = m.chain("state", over=t, first=cv.gaussian(0.0, variance=9.0), then=lambda s: cv.gaussian(s, variance=0.1))
    m.random("y", cv.gaussian(state, variance=1.0))
    assert cv.infer(m, {"y": Y})["state"].shape == (12,)


def test_39_groups_of_a_mixture():
    m = cv.Model()
    k, n = m.plate("k", 2), m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, variance=25.0), plates=k)
    m.random("y", cv.gaussian(mean[m.random("z", cv.categorical([0.5, 0.5]), plates=n)], variance=1.0))
    posterior = cv.infer(m, {"y": [-4.0, -5.0, 4.0, 5.0, 6.0]}, restarts=4)
    assert_allclose(np.sort(posterior["mean"].mean), [-4.41, 4.93], atol=0.05)


def test_40_text_where_a_name_is_misspelt_is_answered(cities):
    with pytest.raises(cv.DataError, match="Is it 'Leeds'"):
        cities.predict({"where": ["Leds"]})


# what people stumbled over -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "dtype", "right"),
    [
        ([True, None, False, True], "boolean", 3.0 / 5.0),
        ([True, None, False, True], object, 3.0 / 5.0),
        ([1, None, 0, 1], "Int64", 3.0 / 5.0),
    ],
)
def test_41_missing_values_of_nullable_columns(values, dtype, right):
    pandas = pytest.importorskip("pandas")
    m = cv.Model()
    p = m.random("p", cv.beta(1.0, 1.0))
    m.random("y", cv.bernoulli(p), plates=m.plate("n"))
    column = pandas.Series([pandas.NA if v is None else v for v in values], dtype=dtype)
    assert_allclose(cv.infer(m, pandas.DataFrame({"y": column}))["p"].mean, right)


def test_42_counts_that_are_not_available():
    pandas = pytest.importorskip("pandas")
    m = cv.Model()
    rate = m.random("rate", cv.gamma(1.0, 1.0))
    m.random("y", cv.poisson(rate), plates=m.plate("n"))
    column = pandas.Series([1, pandas.NA, 3], dtype=object)
    assert_allclose(cv.infer(m, {"y": column})["rate"].mean, 5.0 / 3.0)


def test_43_an_index_of_two_levels(tmp_path):
    pandas = pytest.importorskip("pandas")
    m = cv.Model()
    level = m.random("level", cv.gaussian(0.0, variance=1.0), plates=m.plate("n"))
    m.random("y", cv.gaussian(level, variance=1.0))
    index = pandas.MultiIndex.from_tuples([("York", 2023), ("Hull", 2024)])
    posterior = cv.infer(m, {"y": pandas.Series([1.0, 3.0], index=index)})
    assert_allclose(posterior["level"].sel(n=("Hull", 2024)).mean, 1.5)
    posterior.save(tmp_path / "answer")
    assert_allclose(cv.load(tmp_path / "answer")["level"]["Hull, 2024"], 1.5)


def test_44_names_of_a_file_that_is_read_without_its_model(cities, tmp_path):
    cities.save(tmp_path / "answer")
    saved = cv.load(tmp_path / "answer")
    assert_allclose(saved["level"].sel(city="York").mean, right_level("York"))
    assert saved["level"].axes == cities["level"].axes


@pytest.mark.parametrize("how", ["switch", "index"])
def test_45_how_many_are_true_decides(how):
    m = cv.Model()
    on = m.random("on", cv.bernoulli(0.3), plates=(n := m.plate("n", 3)))
    count = m.let("count", cv.sum(on, over=n))
    values = m.input("values", cv.real, plates=m.plate("v", 4)) if how == "index" else None
    terms = [cv.gaussian(float(k), sd=1.0) for k in range(4)]
    m.random("y", cv.gaussian(values[count], sd=1.0) if how == "index" else cv.switch(count, *terms))
    posterior = cv.infer(m, {"y": 2.0} | ({"values": np.arange(4.0)} if how == "index" else {}))
    weights = np.array([0.343, 0.441, 0.189, 0.027]) * np.exp(-0.5 * (2.0 - np.arange(4)) ** 2)
    assert_allclose(posterior["count"].mean, weights / weights.sum(), rtol=1e-6)
    assert_allclose(posterior["on"].mean, weights @ np.arange(4) / weights.sum() / 3.0, rtol=1e-6)


def test_46_whether_any_is_true_decides():
    m = cv.Model()
    on = m.random("on", cv.bernoulli(0.3), plates=(n := m.plate("n", 3)))
    lit = m.let("lit", cv.any(on, over=n))
    m.random("y", cv.switch(lit, cv.gaussian(1.0, sd=1.0), cv.gaussian(0.0, sd=1.0)))
    odds = 0.657 / 0.343 * np.exp(-0.5 * (2.0 - 1.0) ** 2 + 0.5 * 2.0**2)
    assert_allclose(cv.infer(m, {"y": 2.0})["lit"].mean, odds / (1.0 + odds), rtol=1e-6)


def test_47_what_counts_is_told_where_it_is_used_wrongly():
    def with_sum(use):
        m = cv.Model()
        n = m.plate("n", 3)
        on = m.random("on", cv.bernoulli(0.3), plates=n)
        return use(m, n, on)

    def switched(m, n, on):
        m.random("y", cv.switch(m.let("k", cv.sum(on, over=n)), cv.gaussian(0.0, sd=1.0), cv.gaussian(1.0, sd=1.0)))

    def chosen(m, n, on):
        m.random("y", cv.gaussian(cv.sum(cv.where(on, 1.0, 0.0), over=n), sd=1.0))
        cv.infer(m, {"y": 1.0})

    with pytest.raises(cv.ModelError, match="counts, from 0 to 3"):
        with_sum(switched)
    with pytest.raises(cv.ModelError, match=r"m\.let\('k', sum\(on, over=n\)\)"):
        with_sum(lambda m, n, on: m.random("y", cv.switch(cv.sum(on, over=n), *[cv.gaussian(0.0, sd=1.0)] * 4)))
    with pytest.raises(cv.UnsupportedError, match="at all elements of plate 'n'"):
        with_sum(chosen)
    with pytest.raises(cv.ModelError, match="over=n: give over="):
        with_sum(lambda m, n, on: cv.sum(on))


def test_48_one_sweep_is_one(posterior):
    assert "in 1 sweep;" in repr(cv.infer(by_city(), {"where": ["York"], "y": [1.0]}))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_49_predictions_for_a_frame(posterior, library):
    frame = pytest.importorskip(library).DataFrame({"x": [10.0], "note": ["new"]})
    assert_array_equal(posterior.predict(frame)["y"].mean, posterior.predict({"x": [10.0]})["y"].mean)
    assert_array_equal(posterior.predictive(5, frame)["y"], posterior.predictive(5, {"x": [10.0]})["y"])


def test_50_many_answers_travel():
    batch = cv.compile(line(), observed=["y"], sizes={"n": 12}).batch([DATA, {"x": X, "y": Y + 1.0}])
    again = pickle.loads(pickle.dumps(batch))
    assert_array_equal(again["a"].mean, batch["a"].mean)
    assert_array_equal(again.log_evidence, batch.log_evidence)
    assert repr(again) == "<2 posteriors of a, b, y, height; 2 converged>"


def test_51_what_is_called_so_elsewhere(posterior):
    pytest.importorskip("pandas")
    assert posterior.to_dataframe().equals(posterior.to_frame())
    drawn = cv.simulate(line(), 3, DATA)
    assert all(np.array_equal(drawn[name], values) for name, values in line().simulate(3, DATA).items())
    for name, told in {"waic": "posterior.loo", "predict": "posterior.predict", "mean": "cv.sum"}.items():
        with pytest.raises(AttributeError, match=told):
            getattr(cv, name)

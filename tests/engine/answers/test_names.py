"""Names of elements: from declarations and from data, in answers, tables and files."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import cavity as cv
from cavity.compiler.data.bind import bind
from cavity.compiler.data.labels import resolved

WHERE = np.array(["York", "Leeds", "Hull", "York", "Leeds", "York"])
Y = np.array([1.0, 2.0, 3.0, 1.5, 2.5, 0.5])
RIGHT = {"York": 3.0 / 3.25, "Leeds": 4.5 / 2.25, "Hull": 3.0 / 1.25}


def cities(**plate):
    m = cv.Model("cities")
    city, n = m.plate("city", **plate), m.plate("n")
    where = m.input("where", cv.index(city), plates=n)
    level = m.random("level", cv.gaussian(0.0, variance=4.0), plates=city)
    m.random("y", cv.gaussian(level[where], variance=1.0))
    return m


def kinds():
    m = cv.Model("kinds")
    n, kind = m.plate("n"), m.plate("kind", 3)
    x = m.input("x", cv.real, plates=n)
    weight = m.random("weight", cv.gaussian(0.0, variance=1.0), plates=kind)
    m.random("y", cv.categorical(cv.softmax(weight * x, over=kind)), plates=n)
    return m


@pytest.fixture(scope="module")
def posterior():
    return cv.infer(cities(), {"where": WHERE, "y": Y})


# names of data --------------------------------------------------------------------------------------------------------


def test_text_is_sorted_and_answers_have_its_names(posterior):
    assert posterior.binding.names == {"city": ("Hull", "Leeds", "York")}
    for name, right in RIGHT.items():
        assert_allclose(posterior["level"][name], right)
        found = posterior["level"].sel(city=name)
        assert_allclose(found.mean, right)
        assert found.shape == ()
    assert "York: 0.9231" in posterior.summary()


def test_declared_names_have_the_order_of_the_declaration():
    posterior = cv.infer(cities(names=["York", "Bath", "Hull", "Leeds"]), {"where": WHERE, "y": Y})
    assert_allclose(posterior["level"].mean, [RIGHT["York"], 0.0, RIGHT["Hull"], RIGHT["Leeds"]])


def test_positions_are_still_positions_where_names_are_declared(posterior):
    codes = np.array([2, 1, 0, 2, 1, 2])
    found = cv.infer(cities(names=["Hull", "Leeds", "York"]), {"where": codes, "y": Y})
    assert_array_equal(found["level"].mean, posterior["level"].mean)


def test_numbers_that_are_no_positions_are_names():
    years = np.array([2021, 2019, 2021])
    posterior = cv.infer(cities(names=[2019, 2020, 2021]), {"where": years, "y": [1.0, 2.0, 1.0]})
    assert_allclose(posterior["level"].mean, [2.0 / 1.25, 0.0, 2.0 / 2.25])
    assert_allclose(posterior["level"].sel(city=2021).mean, 2.0 / 2.25)


def test_dates_are_names():
    days = np.array(["2024-03-01", "2024-02-28", "2024-03-01"], dtype="datetime64[D]")
    posterior = cv.infer(cities(), {"where": days, "y": [1.0, 2.0, 1.0]})
    assert posterior.binding.names["city"] == ("2024-02-28", "2024-03-01")
    assert_allclose(posterior["level"].sel(city=days[0]).mean, 2.0 / 2.25)


def test_two_inputs_share_the_names_of_their_plate():
    m = cv.Model("games")
    player, game = m.plate("player"), m.plate("game")
    winner = m.input("winner", cv.index(player), plates=game)
    loser = m.input("loser", cv.index(player), plates=game)
    skill = m.random("skill", cv.gaussian(0.0, variance=1.0), plates=player)
    m.constrain(m.random("margin", cv.gaussian(skill[winner] - skill[loser], variance=1.0)) > 0)
    posterior = cv.infer(m, {"winner": ["Ann", "Cas"], "loser": ["Bob", "Ann"]})
    assert posterior.binding.names["player"] == ("Ann", "Bob", "Cas")
    assert posterior["skill"]["Cas"] > posterior["skill"]["Ann"] > posterior["skill"]["Bob"]
    drawn = posterior.predict({"winner": ["Cas"], "loser": ["Bob"]})["margin"]
    assert drawn.prob(lambda v: v > 0)[0] > 0.5


def test_classes_have_names():
    x, y = np.array([1.0, 2.0, -1.0, 1.5]), np.array(["cat", "dog", "cow", "cat"])
    posterior = cv.infer(kinds(), {"x": x, "y": y}, method="vmp", accuracy="fast")
    assert posterior.binding.names["kind"] == ("cat", "cow", "dog")
    predicted = posterior.predict({"x": [2.0]})["y"]
    assert predicted.elements == ["0, cat", "0, cow", "0, dog"]
    assert_array_equal(predicted[0, "dog"], predicted.mean[0, 2])


def test_missing_labels_are_inferred_of_outcomes():
    y = np.array(["cat", None, "cow", "dog"], dtype=object)
    data, _ = resolved(kinds(), {"x": np.ones(4), "y": y})
    assert data["y"].mask.tolist() == [False, True, False, False]
    assert data["y"].data[[0, 2, 3]].tolist() == [0, 1, 2]


# frames and their kin -------------------------------------------------------------------------------------------------


def test_frames_of_pandas(posterior):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"where": WHERE, "y": Y, "other": 1})
    assert_array_equal(cv.infer(cities(), frame)["level"].mean, posterior["level"].mean)
    own = pandas.CategoricalDtype(["York", "Bath", "Leeds", "Hull"])
    found = cv.infer(cities(), frame.astype({"where": own}))
    assert found.binding.names["city"] == ("York", "Bath", "Leeds", "Hull")
    assert_allclose(found["level"]["Bath"], 0.0)
    assert_allclose(found["level"]["Hull"], RIGHT["Hull"])
    assert_allclose(found.predict(frame.iloc[:2])["y"].mean, [RIGHT["York"], RIGHT["Leeds"]])


def test_frames_of_polars(posterior):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"where": WHERE, "y": Y, "other": 1})
    assert_array_equal(cv.infer(cities(), frame)["level"].mean, posterior["level"].mean)
    for kind in (polars.Categorical, polars.Enum(["York", "Hull", "Leeds"])):
        of_kinds = cv.infer(cities(), frame.with_columns(polars.col("where").cast(kind)))
        assert_allclose(of_kinds["level"]["Leeds"], RIGHT["Leeds"])
    assert of_kinds.binding.names["city"] == ("York", "Hull", "Leeds")


def test_rows_of_series_are_put_in_the_order_of_their_plate():
    pandas = pytest.importorskip("pandas")
    m = cv.Model()
    city = m.plate("city", names=["York", "Leeds", "Hull"])
    x = m.input("x", cv.real, plates=city)
    m.random("y", cv.gaussian(x, variance=1.0))
    series = pandas.Series([1.0, 2.0, 3.0], index=["Hull", "York", "Leeds"])
    assert bind(m, {"x": series, "y": np.zeros(3)}).inputs["x"].tolist() == [2.0, 3.0, 1.0]
    with pytest.raises(cv.DataError, match="'Bath' is none"):
        bind(m, {"x": series.rename({"Hull": "Bath"})})


def test_indices_that_count_rows_or_name_them_twice_are_no_names():
    pandas = pytest.importorskip("pandas")
    for index in (range(3), [4, 4, 5]):
        data = {"where": ["a", "b", "a"], "y": pandas.Series([1.0, 2.0, 3.0], index=index)}
        assert "n" not in bind(cities(), data).names


def test_arrays_of_xarray():
    xarray = pytest.importorskip("xarray")
    m = cv.Model()
    rows, columns = m.plate("user"), m.plate("item")
    m.random(
        "y",
        cv.gaussian(m.random("a", cv.gaussian(0.0, variance=1.0), plates=rows), variance=1.0),
        plates=(rows, columns),
    )
    array = xarray.DataArray(
        [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dims=("item", "user"), coords={"user": ["Ann", "Bob"]}
    )
    bound = bind(m, {"y": array})
    assert bound.names == {"user": ("Ann", "Bob")}
    assert bound.observed["y"].tolist() == [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]


# answers --------------------------------------------------------------------------------------------------------------


def test_tables_have_the_names(posterior):
    pytest.importorskip("pandas")
    assert list(posterior.to_frame().index) == ["level[Hull]", "level[Leeds]", "level[York]"]
    assert list(posterior.to_frame(draws=2).columns) == ["level[Hull]", "level[Leeds]", "level[York]"]
    pytest.importorskip("xarray")
    assert list(posterior.to_xarray(2)["city"].values) == ["Hull", "Leeds", "York"]


def test_arviz_has_the_names(posterior):
    pytest.importorskip("arviz")
    assert list(posterior.to_arviz(2)["posterior"]["city"].values) == ["Hull", "Leeds", "York"]


def test_draws_of_chains_have_the_names():
    pytest.importorskip("arviz")
    draws = cv.sample(cities(), {"where": WHERE, "y": Y}, draws=10, chains=1)
    assert list(draws.to_arviz()["posterior"]["city"].values) == ["Hull", "Leeds", "York"]
    assert "level[York]" in draws.summary().index


def test_files_have_the_names(posterior, tmp_path):
    posterior.save(tmp_path / "file")
    loaded = cv.load(tmp_path / "file", cities())
    assert loaded.binding.names == posterior.binding.names
    assert_allclose(loaded["level"]["Hull"], RIGHT["Hull"])
    assert_allclose(loaded.predict({"where": ["Leeds"]})["y"].mean, [RIGHT["Leeds"]])


def test_elements_of_any_distribution():
    m = cv.Model()
    k = m.plate("k", names=["a", "b"])
    m.random("t", cv.student_t(4.0, np.array([0.0, 2.0]), 1.0), plates=k)
    m.random("v", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)), plates=k)
    m.random("seen", cv.gaussian(0.0, variance=1.0))
    posterior = cv.infer(m, {"seen": 0.0})
    one, whole = posterior["t"].sel(k="b"), posterior["t"]
    assert one.mean == 2.0
    assert_allclose(one.quantile([0.1, 0.9]), whole.quantile([0.1, 0.9])[:, 1])
    assert_allclose(one.log_density([1.0, 3.0]), whole.log_density([[0.0, 1.0], [0.0, 3.0]])[:, 1])
    assert_allclose(one.prob(lambda v: v > 2.0), 0.5, atol=1e-9)
    assert one.sample(3, (5,)).shape == (5,)
    assert posterior["v"].sel(k="a").covariance.shape == (2, 2)


# what is refused ------------------------------------------------------------------------------------------------------


def test_unknown_names(posterior):
    with pytest.raises(cv.DataError, match=r"'Leds', in place 1.*Is it 'Leeds'"):
        posterior.predict({"where": ["York", "Leds"]})
    with pytest.raises(cv.DataError, match="Is it 'York'"):
        posterior["level"]["Yorck"]
    with pytest.raises(cv.DataError, match="no plate 'town'"):
        posterior["level"].sel(town="York")
    with pytest.raises(cv.DataError, match="no name of plate 'city'"):
        cv.infer(cities(names=["York"]), {"where": WHERE, "y": Y})


def test_text_where_numbers_or_truths_are_needed():
    with pytest.raises(cv.DataError, match="'y'"):
        cv.infer(cities(), {"where": WHERE, "y": WHERE})
    m = cv.Model()
    m.random("b", cv.bernoulli(0.5), plates=m.plate("n"))
    with pytest.raises(cv.DataError, match="which is true is not known"):
        cv.infer(m, {"b": ["yes", "no"]})


@pytest.mark.parametrize("names", ["York", 3, [], ["a", "a"], None])
def test_names_of_plates(names):
    if names is None:
        with pytest.raises(cv.ModelError, match="2 names"):
            cv.Model().plate("k", 3, names=["a", "b"])
    else:
        with pytest.raises(cv.ModelError, match="'k'"):
            cv.Model().plate("k", names=names)


def test_a_size_that_the_names_contradict():
    with pytest.raises(cv.DataError, match="5 elements"):
        cv.infer(cities(size=5), {"where": WHERE, "y": Y})


def test_marginals_of_many_data_sets_are_stacked():
    program = cv.compile(cities(), observed=["y"], sizes={"city": 3, "n": 6})
    codes = np.array([2, 1, 0, 2, 1, 2])
    batch = program.batch([{"where": codes, "y": Y}, {"where": codes, "y": Y + 1.0}])
    found = batch["level"]
    assert found.shape == (2, 3)
    for k in range(2):
        assert_array_equal(found.mean[k], batch[k]["level"].mean)
        assert_array_equal(found.quantile(0.9)[k], batch[k]["level"].quantile(0.9))


def test_data_sets_of_a_batch_have_the_names_of_the_first():
    program = cv.compile(cities(), observed=["y"], sizes={"n": 6})
    batch = program.batch([{"where": WHERE, "y": Y}, {"where": WHERE[::-1], "y": Y[::-1]}])
    assert batch[1].binding.names == {"city": ("Hull", "Leeds", "York")}
    assert_allclose(batch["level"][1, "York"], RIGHT["York"])
    with pytest.raises(cv.DataError, match=r"Data set 1.*'Bath'"):
        program.batch([{"where": WHERE, "y": Y}, {"where": np.where(WHERE == "York", "Bath", WHERE), "y": Y}])


def test_beliefs_are_not_carried_to_elements_of_other_names(posterior):
    other = np.where(WHERE == "York", "Bath", WHERE)
    with pytest.raises(cv.DataError, match="'Bath'"):
        cv.infer(cities(), {"where": other, "y": Y}, prior=posterior)
    with pytest.raises(cv.DataError, match="'Bath'"):
        cv.infer(cities(), {"where": other, "y": Y}, prior={"level": posterior["level"]})
    again = cv.infer(cities(), {"where": WHERE[::-1], "y": Y[::-1]}, prior=posterior)
    assert_allclose(again["level"]["York"], 6.0 / 6.25)


VERBS = {
    "checkpoint": lambda m, d, place: cv.infer(m, d, checkpoint=place / str(id(d)))["level"].mean,
    "sample": lambda m, d, place: cv.sample(m, d, draws=20, chains=1)["level"],
    "map": lambda m, d, place: cv.map(m, d)["level"],
    "log_density": lambda m, d, place: cv.log_density(m, d)({"level": np.zeros(3)}),
    "explain": lambda m, d, place: np.array(cv.explain(m, d).splitlines()[1:8]),
    "simulate": lambda m, d, place: m.simulate(2, d)["y"],
    "best": lambda m, d, place: cv.infer(m, d, accuracy="best")["level"].mean,
    "map of a program": lambda m, d, place: cv.compile(m, ["y"]).map([d])[0]["level"].mean,
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_labels_and_frames(verb, tmp_path):
    pandas = pytest.importorskip("pandas")
    data = {"where": WHERE, "y": Y}
    right = VERBS[verb](cities(size=3), {"where": np.array([2, 1, 0, 2, 1, 2]), "y": Y}, tmp_path)
    assert_array_equal(VERBS[verb](cities(), data, tmp_path), right)
    assert_array_equal(VERBS[verb](cities(), pandas.DataFrame({**data, "other": 1}), tmp_path), right)


def test_unseen_names_have_their_prior_where_that_is_asked_for(posterior):
    new = {"where": ["Bath", "York"]}
    with pytest.raises(cv.DataError, match="'Bath'"):
        posterior.predict(new)
    found = posterior.predict(new, unseen="prior")["y"]
    assert_allclose(found.mean, [0.0, RIGHT["York"]], atol=1e-12)
    assert_allclose(found.variance, [4.0 + 1.0, 1.0 / 3.25 + 1.0])
    assert posterior.predict({"where": ["Hull"]}, unseen="prior")["y"].mean[0] == posterior["level"]["Hull"]
    with pytest.raises(cv.ModelError, match="unseen"):
        posterior.predict(new, unseen="guess")


def test_unseen_names_of_a_hierarchy_are_near_its_mean():
    m = cv.Model("hierarchy")
    city, n = m.plate("city"), m.plate("n")
    where = m.input("where", cv.index(city), plates=n)
    middle = m.random("middle", cv.gaussian(0.0, variance=100.0))
    level = m.random("level", cv.gaussian(middle, variance=0.25), plates=city)
    m.random("y", cv.gaussian(level[where], precision=m.random("noise", cv.gamma(2.0, 2.0))))
    posterior = cv.infer(m, {"where": WHERE, "y": Y + 5.0})
    found = posterior.predict({"where": ["Bath", "Hull"]}, unseen="prior")["y"]
    assert_allclose(found.mean[0], posterior["middle"].mean, atol=0.02)
    assert_allclose(found.mean[1], posterior["level"]["Hull"], atol=0.02)


def test_unseen_names_of_a_declared_plate_are_those_of_a_plate_without_names(posterior):
    declared = cv.infer(cities(names=["York", "Leeds", "Hull"]), {"where": WHERE, "y": Y})
    new = {"where": ["Bath", "York"]}
    found, right = (each.predict(new, unseen="prior")["y"] for each in (declared, posterior))
    assert_allclose([found.mean, found.variance], [right.mean, right.variance], atol=1e-12)
    with pytest.raises(cv.DataError, match="'Bath'"):
        declared.predict(new)


@pytest.mark.parametrize("made", ["constants", "input", "slice", "last"])
def test_unseen_names_are_refused_where_the_model_stands_at_each_element(made):
    m = cv.Model(made)
    city, n = m.plate("city", names=None if made == "last" else ["York", "Leeds", "Hull"]), m.plate("n")
    where = m.input("where", cv.index(city), plates=n)
    centre = np.arange(3.0) if made == "constants" else m.input("c", cv.real, plates=city) if made == "input" else 0.0
    level = m.random("level", cv.gaussian(centre, variance=4.0), plates=city)
    if made in ("slice", "last"):
        m.random("step", cv.gaussian(level[1:] - level[:-1] if made == "slice" else level[-1], variance=1.0))
    m.random("y", cv.gaussian(level[where], variance=1.0))
    found = cv.infer(m, {"where": WHERE, "y": Y, **({"c": np.arange(3.0)} if made == "input" else {})})
    with pytest.raises(cv.UnsupportedError, match="made for the elements"):
        found.predict({"where": ["Bath"]}, unseen="prior")


def test_unseen_names_are_drawn_as_they_are_predicted(posterior):
    new = {"where": ["Bath", "York"]}
    drawn, right = posterior.predictive(8000, new, unseen="prior")["y"], posterior.predict(new, unseen="prior")["y"]
    assert_allclose(drawn.mean(axis=0), right.mean, atol=0.1)
    assert_allclose(drawn.std(axis=0), right.sd, rtol=0.05)
    with pytest.raises(cv.DataError, match="'Bath'"):
        posterior.predictive(3, new)
    with pytest.raises(cv.ModelError, match="unseen='any'"):
        posterior.predictive(3, unseen="any")


def test_the_means_of_several_names(posterior):
    assert_array_equal(posterior["level"][["York", "Hull"]], [posterior["level"][c] for c in ("York", "Hull")])
    for kind in (str, object):
        assert_array_equal(posterior["level"][np.array(["York", "Hull"], kind)], posterior["level"][["York", "Hull"]])
    with pytest.raises(cv.DataError, match="'Bath'"):
        posterior["level"][["York", "Bath"]]
    with pytest.raises(cv.DataError, match="One name of 'city'"):
        posterior["level"].sel(city=["York", "Hull"])


@pytest.mark.parametrize("odd", [None, float("nan"), np.array(["York"]), ["York"], np.datetime64("NaT")])
def test_what_names_nothing_is_no_name(odd):
    with pytest.raises(cv.ModelError, match="is no name"):
        cv.Model().plate("city", names=["Leeds", odd])


# what a reader found --------------------------------------------------------------------------------------------------


def test_new_rows_keep_their_own_order():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"where": ["b", "a", "b"], "y": [1.0, 2.0, 3.0]}, index=[7, 8, 9])
    posterior = cv.infer(cities(), frame)
    new = pandas.DataFrame({"where": ["a", "b", "b"]}, index=[9, 7, 8])
    a, b = posterior["level"]["a"], posterior["level"]["b"]
    assert_allclose(posterior.predict(new)["y"].mean, [a, b, b])


def test_columns_of_vectors_are_put_in_the_order_they_were_learned_in():
    pandas = pytest.importorskip("pandas")
    m = cv.Model()
    n = m.plate("n")
    x = m.input("x", cv.vector(2), plates=n)
    w = m.random("w", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)))
    m.random("y", cv.gaussian(cv.dot(w, x), variance=0.1))
    table = pandas.DataFrame({"a": [1.0, 0.0, 2.0], "b": [0.0, 1.0, 1.0]})
    posterior = cv.infer(m, {"x": table, "y": [1.0, -1.0, 1.0]})
    right = posterior.predict({"x": table.to_numpy()})["y"].mean
    assert_allclose(posterior.predict({"x": table[["b", "a"]]})["y"].mean, right)
    with pytest.raises(cv.DataError, match="'c' is none"):
        posterior.predict({"x": table.rename(columns={"b": "c"})})


def test_axes_that_are_called_as_plates_in_part_are_refused():
    xarray = pytest.importorskip("xarray")
    m = cv.Model()
    city, day = m.plate("city"), m.plate("day")
    m.random("y", cv.gaussian(0.0, variance=1.0), plates=(city, day))
    with pytest.raises(cv.DataError, match="which axis is 'city'"):
        cv.infer(m, {"y": xarray.DataArray(np.zeros((2, 2)), dims=("day", "station"))})


def test_numbers_for_names_that_are_numbers_as_text_are_refused():
    with pytest.raises(cv.DataError, match="numbers as text"):
        cv.infer(cities(names=["1", "2", "3"]), {"where": [1, 1, 2], "y": [0.0, 1.0, 2.0]})


def test_dates_to_the_nanosecond_are_dates():
    days = np.array(["2024-03-01", "2024-02-28"], dtype="datetime64[ns]")
    assert bind(cities(), {"where": days, "y": [1.0, 2.0]}).names["city"] == ("2024-02-28", "2024-03-01")


def test_classes_of_which_some_have_no_name_are_refused():
    m = cv.Model()
    m.random("kind", cv.categorical(m.random("p", cv.dirichlet(np.ones(3)))), plates=m.plate("n"))
    with pytest.raises(cv.DataError, match="3 classes"):
        cv.infer(m, {"kind": ["b", "c", "b"]})


def test_places_beyond_the_end_are_refused(posterior):
    m = cv.Model()
    a = m.random("a", cv.gaussian(0.0, variance=1.0), plates=m.plate("r", 2))
    m.let("e", cv.exp(a))
    found = cv.infer(m, {})
    for name in ("a", "e"):
        for place in (2, 9, -1):
            with pytest.raises(cv.DataError, match="2 elements"):
                found[name].sel(r=place)


def test_data_sets_of_which_some_have_no_names_are_refused():
    program = cv.compile(cities(), observed=["y"], sizes={"n": 6, "city": 3})
    with pytest.raises(cv.DataError, match="Data set 1 has names"):
        program.batch([{"where": np.array([2, 1, 0, 2, 1, 2]), "y": Y}, {"where": WHERE, "y": Y}])


def test_one_element_of_what_was_observed_in_part():
    pandas = pytest.importorskip("pandas")
    m = cv.Model()
    mean = m.random("mean", cv.gaussian(0.0, variance=1.0))
    m.random("y", cv.gaussian(mean, variance=1.0), plates=m.plate("n"))
    y = cv.infer(m, {"y": pandas.Series([1.0, np.nan, 3.0], index=list("abc"))})["y"]
    whole = y.prob(lambda v: v > 1.5)
    for i, name in enumerate("abc"):
        one = y.sel(n=name)
        assert_allclose(one.prob(lambda v: v > 1.5), whole[i])
        assert_allclose(one.mode, y.mode[i])


def test_text_of_ordered_classes_and_text_beside_numbers_are_refused():
    m = cv.Model()
    m.random("y", cv.ordered_probit(0.0, [-1.0, 1.0]), plates=m.plate("n"))
    with pytest.raises(cv.DataError, match="in an order"):
        cv.infer(m, {"y": ["low", "middle", "high"]})
    pandas = pytest.importorskip("pandas")
    levels = pandas.Categorical(["low", "high"], ["low", "middle", "high"])
    assert bind(m, {"y": levels}).observed["y"].tolist() == [0, 2]
    with pytest.raises(cv.DataError, match="text and numbers"):
        cv.infer(cities(), {"where": [0, 1, "York", 0, 1, 0], "y": Y})

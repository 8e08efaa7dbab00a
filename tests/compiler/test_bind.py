"""Binding data: what fits arrives in shape, dtype and place; what does not is named, located and explained."""

import time

import jax.numpy as jnp
import numpy as np
import pytest

from cavity.compiler.data.bind import bind
from cavity.compiler.data.bind_many import bind_many
from cavity.compiler.language.functions import softmax
from cavity.compiler.language.model import Model
from cavity.factors import domains
from cavity.factors.discrete.bernoulli import bernoulli
from cavity.factors.discrete.categorical import categorical
from cavity.factors.discrete.poisson import poisson
from cavity.factors.errors import DataError
from cavity.factors.positive.beta import beta
from cavity.factors.positive.gamma import gamma
from cavity.factors.real.gaussian import gaussian
from cavity.factors.real.interval import between
from cavity.factors.real.truncated_gaussian import truncated_gaussian
from cavity.factors.vectors.dirichlet import dirichlet
from cavity.factors.vectors.vector_gaussian import vector_gaussian
from cavity.factors.vectors.wishart import wishart


def refused(model, data, *parts, sizes=None):
    """Binding raises a DataError whose message contains all `parts`."""
    with pytest.raises(DataError) as caught:
        bind(model, data, sizes)
    message = str(caught.value)
    absent = [part for part in parts if part not in message]
    assert not absent, f"{absent} not in: {message}"


@pytest.fixture
def skills():
    m = Model("skills")
    player, game = m.plate("player"), m.plate("game")
    winner = m.input("winner", domains.index(player), plates=game)
    loser = m.input("loser", domains.index(player), plates=game)
    skill = m.random("skill", gaussian(0.0, variance=0.5), plates=player)
    m.random("margin", gaussian(skill[winner] - skill[loser], variance=1.0))
    return m


@pytest.fixture
def grid():
    m = Model("grid")
    row, column = m.plate("row"), m.plate("column", 3)
    x = m.random("x", gaussian(0.0, variance=1.0), plates=(row, column))
    m.random("y", gaussian(x, variance=1.0))
    m.random("v", vector_gaussian(np.zeros(2), covariance=np.eye(2)), plates=row)
    m.random("p", gamma(1.0, 1.0), plates=row)
    return m


def single(term):
    """A model of one variable 'x' over the plate 'n'."""
    m = Model("single")
    m.random("x", term, plates=m.plate("n"))
    return m


def given(domain):
    """A model of one input 'x' over the plate 'n'."""
    m = Model("given")
    m.input("x", domain, plates=m.plate("n"))
    return m


# What fits


def test_sizes_from_the_call_and_from_data(skills):
    binding = bind(skills, {"winner": [0, 1], "loser": [2, 0]}, {"player": 3})
    assert binding.sizes == {"player": 3, "game": 2}
    assert binding.inputs["winner"].dtype == np.int32
    assert binding.inputs["winner"].tolist() == [0, 1]
    assert binding.observed == binding.missing == {}


def test_sizes_may_be_keyed_by_plate(skills):
    assert bind(skills, {"winner": [0], "loser": [1]}, {skills.plates["player"]: 2}).sizes["player"] == 2


def test_size_of_an_indexed_plate_from_another_array(skills):
    assert bind(skills, {"winner": [0], "loser": [1], "skill": [0.0, 1.0, 2.0]}).sizes["player"] == 3


def test_sizes_from_constants_and_gates():
    m = Model()
    n, k = m.plate("n"), m.plate("k")
    mean = m.random("mean", gaussian(0.0, variance=1.0), plates=k)
    z = m.random("z", categorical(np.ones(3) / 3), plates=n)
    m.random("x", gaussian(mean[z], variance=np.ones(5)))
    assert bind(m, {}).sizes == {"n": 5, "k": 3}


def test_size_of_the_classes_from_a_probability_vector():
    m = Model()
    row, cls = m.plate("row"), m.plate("class")
    score = m.random("score", gaussian(0.0, variance=1.0), plates=(row, cls))
    m.let("p", softmax(score, over=cls))
    assert bind(m, {"p": np.full((4, 5), 0.2)}).sizes == {"row": 4, "class": 5}


@pytest.mark.parametrize(
    ("term", "value", "dtype"),
    [
        (gaussian(0.0, variance=1.0), [1, 2], np.float64),
        (gaussian(0.0, variance=1.0), np.float32([1, 2]), np.float64),
        (gaussian(0.0, variance=1.0), jnp.ones(3), np.float64),
        (bernoulli(0.5), [True, False], np.bool_),
        (bernoulli(0.5), [1.0, 0.0], np.bool_),
        (bernoulli(0.5), np.array([1, 0]), np.bool_),
        (categorical([0.5, 0.5]), [0, 1], np.int32),
        (categorical([0.5, 0.5]), [0.0, 1.0], np.int32),
        (poisson(1.0), [3, 0], np.float64),
        (gamma(1.0, 1.0), [3, 1], np.float64),
        (beta(1.0, 1.0), [0.5], np.float64),
        (dirichlet([1.0, 1.0]), [[0.25, 0.75]], np.float64),
        (vector_gaussian(np.zeros(2), covariance=np.eye(2)), [[1, 2]], np.float64),
        (wishart(4.0, np.eye(2)), [np.eye(2)], np.float64),
    ],
)
def test_types_of_observations(term, value, dtype):
    binding = bind(single(term), {"x": value})
    assert binding.observed["x"].dtype == dtype
    np.testing.assert_array_equal(binding.observed["x"], np.asarray(value))
    assert binding.missing == {}


def test_scalars_without_plates():
    m = Model()
    first = m.random("first", bernoulli(0.5))
    m.let("both", first & m.random("second", bernoulli(0.5)))
    m.random("x", gaussian(0.0, variance=1.0))
    binding = bind(m, {"both": False, "x": float("nan")})
    assert binding.observed["both"].shape == ()
    assert not binding.observed["both"]
    assert binding.missing["x"]
    assert binding.observed["x"] == 0.0


def test_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
    assert bind(given(domains.vector(2)), {"x": frame}).inputs["x"].tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert bind(single(gaussian(0.0, variance=1.0)), {"x": frame["b"]}).observed["x"].tolist() == [3.0, 4.0]


def test_data_are_not_changed(grid):
    x = np.array([[1.0, np.nan, 3.0]])
    bind(grid, {"x": x})
    assert np.isnan(x[0, 1])


# Missing values


def test_missing_scalars(grid):
    binding = bind(grid, {"x": [[1.0, np.nan, 3.0]]})
    assert binding.missing["x"].tolist() == [[False, True, False]]
    assert binding.observed["x"].tolist() == [[1.0, 0.0, 3.0]]


def test_missing_vectors(grid):
    binding = bind(grid, {"v": [[1.0, 2.0], [np.nan, np.nan]]})
    assert binding.missing["v"].tolist() == [False, True]
    assert binding.observed["v"].tolist() == [[1.0, 2.0], [0.0, 0.0]]
    refused(grid, {"v": [[1.0, 2.0], [np.nan, 2.0]]}, "'v'", "[1]", "some coordinates", "as a whole")


def test_missing_classes_and_truth_values():
    labels = bind(single(categorical([0.5, 0.5])), {"x": [0.0, np.nan]})
    assert labels.observed["x"].dtype == np.int32
    assert labels.missing["x"].tolist() == [False, True]
    masked = np.ma.masked_array([7, 1], mask=[True, False])
    assert bind(single(categorical([0.5, 0.5])), {"x": masked}).missing["x"].tolist() == [True, False]
    assert bind(single(bernoulli(0.5)), {"x": [np.nan, 1.0]}).missing["x"].tolist() == [True, False]


def test_masks_and_nan_join(grid):
    masked = np.ma.masked_array([[1.0, np.nan, 3.0]], mask=[[True, False, False]])
    assert bind(grid, {"x": masked}).missing["x"].tolist() == [[True, True, False]]
    unmasked = np.ma.masked_array([[1.0, 2.0, 3.0]])
    assert bind(grid, {"x": unmasked}).missing == {}


@pytest.mark.parametrize(
    ("term", "value", "filled"),
    [
        (gamma(1.0, 1.0), [np.nan], 1.0),
        (beta(1.0, 1.0), [np.nan], 0.5),
        (dirichlet([1.0, 1.0]), [[np.nan, np.nan]], [0.5, 0.5]),
        (wishart(4.0, np.eye(2)), [[[np.nan, np.nan], [np.nan, np.nan]]], np.eye(2)),
        (poisson(1.0), [np.nan], 0.0),
    ],
)
def test_missing_values_are_filled_with_legal_ones(term, value, filled):
    binding = bind(single(term), {"x": value})
    assert binding.missing["x"].tolist() == [True]
    np.testing.assert_array_equal(binding.observed["x"][0], filled)


# Names, shapes and sizes that do not fit


def test_unknown_name(skills):
    data = {"winner": [0], "loser": [1]}
    refused(skills, data | {"margins": [1.0]}, "'margins'", '"skills"', "nearest names are margin", sizes={"player": 2})
    refused(skills, data | {"zzz": [1.0]}, "'zzz'", "names are winner, loser, skill, margin")
    refused(skills, data | {"player": 3}, "'player'", "is a plate", "sizes={'player'")
    refused(skills, [1.0], "by name", "list")


def test_missing_input(skills):
    refused(skills, {"winner": [0]}, "'loser'", "index(player)", "(game: ?,)", "Add")


def test_wrong_number_of_axes(grid):
    refused(grid, {"x": 3.0}, "'x'", "shape ()", "2 axes", "(row: ?, column: 3)")
    refused(grid, {"v": [1.0, 2.0]}, "'v'", "shape (2,)", "vector(2)", "(row: ?, 2)")
    refused(single(gaussian(0.0, variance=1.0)), {"x": [[1.0]]}, "'x'", "(1, 1)", "1 axes", "(n: ?,)")


def test_shapes_that_contradict_sizes(grid, skills):
    refused(grid, {"x": np.zeros((2, 4))}, "'x'", "plate 'column' 4", "its declaration", "3")
    refused(grid, {"x": np.zeros((2, 3)), "p": np.ones(5)}, "'p'", "plate 'row' 5", "the array of 'x'", "2")
    refused(skills, {"winner": [0, 1], "loser": [0]}, "'loser'", "plate 'game' 1", "the array of 'winner'", "2")
    refused(grid, {"x": np.zeros((2, 3))}, "'x'", "'row' 2", "sizes=", "7", sizes={"row": 7})
    refused(grid, {}, "sizes=", "'column' 4", "its declaration", "3", sizes={"column": 4})
    m = Model()
    m.random("x", gaussian(np.zeros(3), variance=1.0), plates=m.plate("n"))
    refused(m, {"x": np.zeros(4)}, "'x'", "'n' 4", "array of shape (3,) in random variable 'x'", "gives it 3")


def test_dimension_of_a_value(grid):
    refused(grid, {"v": np.zeros((5, 3))}, "'v'", "3 coordinates", "vector(2)", "(row: 5, 2)")
    refused(single(dirichlet([1.0, 1.0])), {"x": [[0.2, 0.3, 0.5]]}, "'x'", "3 coordinates", "simplex(2)")
    refused(single(wishart(4.0, np.eye(2))), {"x": np.eye(3)[None]}, "'x'", "3 coordinates", "posdef(2)")


def test_unknown_size(skills, grid):
    refused(skills, {"winner": [5], "loser": [1]}, "'player'", "'winner' is 5", 'sizes={"player": ...}')
    refused(grid, {}, "'row'", 'sizes={"row": ...}')


@pytest.mark.parametrize("size", [0, -3, 2.5, "two", True])
def test_sizes_that_are_none(grid, size):
    refused(grid, {}, "'row'", repr(size), "positive integer", sizes={"row": size})


def test_sizes_of_a_plate_not_in_the_model(grid):
    refused(grid, {}, "'rows'", '"grid"', "row, column", sizes={"rows": 3})


def test_empty_data(grid):
    refused(grid, {"x": np.zeros((0, 3))}, "'x'", "no values", "(0, 3)", "leave")


@pytest.mark.parametrize(
    ("value", "part"), [(["a", "b"], "<U1"), ([[1.0], [1.0, 2.0]], "equally long"), (None, "None"), ([None, {}], "not")]
)
def test_data_that_are_no_numbers(value, part):
    refused(single(gaussian(0.0, variance=1.0)), {"x": value}, "Observed 'x'", part)


# Values that do not fit


@pytest.mark.parametrize(
    ("domain", "value", "parts"),
    [
        (domains.real, [1.0, np.nan], ("must be finite", "found nan at [1]")),
        (domains.real, [1.0, np.inf], ("must be finite", "found inf at [1]")),
        (domains.real, np.ma.masked_array([1.0, 2.0], mask=[True, False]), ("masked", "fill them in")),
        (domains.positive, [1.0, -2.0, 0.0], ("must be positive", "found -2 at [1] and 1 more")),
        (domains.unit, [0.5, 1.5], ("between 0 and 1", "found 1.5 at [1]")),
        (domains.boolean, [0, 2], ("true or false", "found 2 at [1]")),
        (domains.count, [1.5], ("whole numbers", "found 1.5 at [0]")),
        (domains.count, [-1], ("must not be negative", "found -1 at [0]")),
        (domains.category(3), [0, 3], ("(3 classes)", "0 ... 2", "found 3 at [1]")),
        (domains.category(3), [1, 2, 3], ("numbered from 1", "subtract 1")),
        (domains.category(3), [-1], ("(3 classes)", "must not be negative")),
        (domains.simplex(2), [[0.5, 0.5], [0.5, 0.6]], ("sum to one", "a sum of 1.1 at [1]", "divide")),
        (domains.vector(2), [[0.5, np.nan]], ("must be finite", "found nan at [0, 1]")),
        (domains.posdef(2), [[[1.0, 2.0], [2.0, 1.0]]], ("positive definite", "smallest eigenvalue of -1 at [0]")),
        (domains.posdef(2), [[[1.0, 0.3], [0.2, 1.0]]], ("must be symmetric", "at [0]")),
    ],
)
def test_values_of_inputs(domain, value, parts):
    refused(given(domain), {"x": value}, "Input 'x'", *parts)


@pytest.mark.parametrize(
    ("term", "value", "parts"),
    [
        (gaussian(0.0, variance=1.0), [1.0, -np.inf], ("must be finite", "found -inf at [1]")),
        (gamma(1.0, 1.0), [-1.0], ("must be positive", "found -1")),
        (poisson(1.0), [-1], ("must not be negative", "whole number")),
        (bernoulli(0.5), [0.5], ("true or false", "found 0.5")),
        (categorical([0.5, 0.5]), [2], ("(2 classes)", "0 ... 1", "found 2 at [0]")),
        (beta(1.0, 1.0), [0.0], ("strictly between", "Shrink")),
        (wishart(4.0, np.eye(2)), [[[0.0, 0.0], [0.0, 0.0]]], ("positive definite",)),
    ],
)
def test_values_of_observations(term, value, parts):
    refused(single(term), {"x": value}, "Observed 'x'", *parts)


def test_classes_that_are_a_plate():
    m = Model()
    row, cls = m.plate("row"), m.plate("class", 3)
    score = m.random("score", gaussian(0.0, variance=1.0), plates=(row, cls))
    m.random("y", categorical(softmax(score, over=cls)))
    assert bind(m, {"y": [0, 2]}).observed["y"].dtype == np.int32
    refused(m, {"y": [0, 3]}, "'y'", "(3 classes)", "found 3 at [1]")


def test_indices(skills):
    sizes = {"player": 3}
    place = "(positions in plate 'player' of size 3)"
    refused(skills, {"winner": [0, 7], "loser": [0, 1]}, "'winner'", place, "0 ... 2", "found 7 at [1]", sizes=sizes)
    refused(skills, {"winner": [0, -1], "loser": [0, 1]}, "'winner'", place, "found -1 at [1]", sizes=sizes)
    refused(skills, {"winner": [0, 0.5], "loser": [0, 1]}, "'winner'", place, "whole numbers", "0.5", sizes=sizes)
    refused(skills, {"winner": [3, 1], "loser": [0, 1]}, "'winner'", "from 1", "larger sizes=", sizes=sizes)


# Speed


def test_small_data_bind_quickly(skills):
    data, sizes = {"winner": np.array([0, 1]), "loser": np.array([1, 2])}, {"player": 3}
    assert min(_seconds(lambda: bind(skills, data, sizes)) for _ in range(50)) < 1e-3  # measured: 12 microseconds


def test_large_data_bind_quickly():
    model, data = single(gaussian(0.0, variance=1.0)), {"x": np.ones(10**7)}
    assert min(_seconds(lambda: bind(model, data)) for _ in range(3)) < 1.0  # measured: 9 milliseconds


def _seconds(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def test_an_input_that_is_nothing_but_a_bound_may_be_infinite():
    model = Model()
    rows = model.plate("rows")
    low = model.input("low", domains.real, rows)
    high = model.input("high", domains.real, rows)
    both = model.input("both", domains.real, rows)
    x = model.random("x", gaussian(both, variance=1.0), rows)
    model.random("seen", between(x, low, high), rows)
    model.random("cut", truncated_gaussian(0.0, 1.0, low=low, high=both), rows)
    bounds = {"low": [-np.inf, 0.0], "high": [1.0, np.inf], "both": [1.0, 2.0]}
    np.testing.assert_array_equal(bind(model, bounds).inputs["low"], bounds["low"])
    np.testing.assert_array_equal(bind_many(model, [bounds, bounds]).inputs["high"], [bounds["high"]] * 2)
    refused(model, {**bounds, "both": [1.0, np.inf]}, "Input 'both' (real): must be finite; found inf at [1]")
    refused(model, {**bounds, "low": [np.nan, 0.0]}, "Input 'low' (real): must be finite; found nan at [0]")

"""Draws beside data: what is drawn is counted and read back from the axes."""

import numpy as np
import pytest

import cavity as cv

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib.figure import Figure  # noqa: E402

DRAWS = np.random.default_rng(0).normal(size=(200, 7)) + np.arange(7.0)


def axes():
    return Figure().add_subplot()


def test_few_elements_are_a_line_each_with_its_interval():
    own = axes()
    assert cv.plot_draws({"y": DRAWS}, {"y": np.arange(7.0)}, interval=0.8, ax=own, names=list("abcdefg")) is own
    (lines,) = own.collections
    ends = np.array([segment[:, 0] for segment in lines.get_segments()])
    np.testing.assert_allclose(ends, np.quantile(DRAWS, [0.1, 0.9], axis=0).T)
    assert [text.get_text() for text in own.get_yticklabels()] == list("abcdefg")
    np.testing.assert_allclose(own.lines[-1].get_xdata(), np.arange(7.0))


def test_names_of_a_series_are_used():
    pandas = pytest.importorskip("pandas")
    own = axes()
    cv.plot_draws({"y": DRAWS}, {"y": pandas.Series(np.arange(7.0), index=list("tuvwxyz"))}, ax=own)
    assert [text.get_text() for text in own.get_yticklabels()] == list("tuvwxyz")


def test_data_come_into_the_order_of_the_names_of_draws():
    pandas = pytest.importorskip("pandas")
    own = axes()
    shuffled = pandas.Series(np.arange(7.0), index=list("abcdefg"))[list("gacbfed")]
    cv.plot_draws({"y": DRAWS}, {"y": shuffled}, names=list("abcdefg"), ax=own)
    np.testing.assert_array_equal(own.lines[-1].get_xdata(), np.arange(7.0))


def test_names_of_a_posterior_are_used():
    pandas = pytest.importorskip("pandas")
    m = cv.Model("levels")
    city = m.plate("city", names=["York", "Hull"])
    m.random("y", cv.gaussian(m.random("level", cv.gaussian(0.0, sd=9.0), plates=city), sd=1.0))
    data = {"y": pandas.Series([1.0, 5.0], index=["Hull", "York"])}
    posterior, own = cv.infer(m, data), axes()
    cv.plot_draws(posterior.predictive(50), data, names=posterior, ax=own)
    assert [text.get_text() for text in own.get_yticklabels()] == ["York", "Hull"]
    np.testing.assert_array_equal(own.lines[-1].get_xdata(), [5.0, 1.0])
    assert len(cv.plot_draws({"y": DRAWS}, names=posterior).axes) == 1  # seven rows are others than these two


def test_what_is_missing_is_no_dot_and_no_line():
    own = axes()
    cv.plot_draws({"one": DRAWS[:, 0]}, {"one": np.nan}, ax=own)  # a legend of nothing would warn
    assert len(own.lines) == 0


def test_many_elements_are_a_band_and_one_is_a_histogram():
    figure = cv.plot_draws({"many": np.zeros((20, 3000)), "one": DRAWS[:, 0]})
    many, one = figure.axes
    assert "1,000 of 3,000" in many.get_title()
    assert len(many.lines[0].get_xdata()) == 1000
    np.testing.assert_allclose(sum(bar.get_height() * bar.get_width() for bar in one.patches), 1.0)


def test_a_value_that_was_observed_is_a_line_in_the_histogram():
    own = axes()
    cv.plot_draws({"one": DRAWS[:, 0]}, {"one": 0.25}, ax=own)
    assert own.lines[0].get_xdata()[0] == 0.25


def test_only_what_was_observed_is_drawn_where_anything_was():
    assert len(cv.plot_draws({"y": DRAWS, "a": DRAWS[:, 0]}, {"y": np.arange(7.0), "x": 1.0}).axes) == 1


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: cv.plot_draws(DRAWS), "draws by name"),
        (lambda: cv.plot_draws({}), "draws by name"),
        (lambda: cv.plot_draws({"y": DRAWS}, {"y": [1.0]}), "7 elements in each draw, and 1"),
        (lambda: cv.plot_draws({"y": DRAWS}, [1.0]), "arrays by name, or a frame"),
        (lambda: cv.plot_draws({"y": DRAWS}, interval=1.5), "interval"),
        (lambda: cv.plot_draws({"y": DRAWS}, names=["a"]), "one for each of the 7"),
        (lambda: cv.plot_draws({"y": DRAWS}, names="abcdefg"), "or a posterior"),
        (lambda: cv.plot_draws({"y": DRAWS, "z": DRAWS}, ax=axes()), "One variable fits"),
        (lambda: cv.plot_draws({"y": "text"}), "The draws of 'y'"),
        (lambda: cv.plot_draws({"y": DRAWS}, axes=axes()), "Here it is ax="),
    ],
)
def test_wrong_calls_are_told(call, told):
    with pytest.raises(cv.CavityError, match=told):
        call()

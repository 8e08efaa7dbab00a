"""Pictures of sparse factor models: everything is where it should be, and names can be read."""

import itertools
import sys

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import same_color

from cavity.engine.answers.loadings import block_order
from cavity.factors.errors import DataError, UnsupportedError
from cavity.models.sparse import plot_count, plot_factors, plot_loadings, plot_scores, plot_sparsity

RNG = np.random.default_rng(0)
LOADING = RNG.normal(size=(30, 4)) * (RNG.random((30, 4)) < 0.3)
ACTIVITY = np.clip((LOADING != 0.0) * RNG.beta(8.0, 1.0, LOADING.shape) + 0.05, 0.0, 1.0)
FACTOR = RNG.normal(size=(3, 12))


def drawn(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    assert np.asarray(canvas.buffer_rgba()).std() > 0.0
    return canvas.get_renderer()


def texts(labels):
    return [label.get_text() for label in labels]


def apart(labels, renderer, page, side):
    """Whether labels, in the order of their places, do not overlap and stand on the page."""
    boxes = sorted((label.get_window_extent(renderer) for label in labels), key=lambda box: getattr(box, f"{side}0"))
    assert all(getattr(low, f"{side}1") <= getattr(high, f"{side}0") + 1.0 for low, high in itertools.pairwise(boxes))
    assert all(box.x0 >= page.x0 and box.x1 <= page.x1 and box.y0 >= page.y0 and box.y1 <= page.y1 for box in boxes)


def test_loadings_stand_in_blocks_beside_their_activity():
    figure = plot_loadings(LOADING, ACTIVITY, title="a title")
    drawn(figure)
    order = block_order(LOADING, ACTIVITY)
    first, second = (axes.images[0] for axes in figure.axes[:2])
    assert np.array_equal(first.get_array(), LOADING[order])
    assert np.array_equal(second.get_array(), ACTIVITY[order])
    assert first.norm.vmin == -first.norm.vmax  # white is zero
    assert second.get_clim() == (0.0, 1.0)
    assert same_color(first.cmap(0.5), "white")
    strength = np.abs(LOADING * ACTIVITY)[order]
    owner = np.where(strength.any(axis=1), strength.argmax(axis=1), 4)
    cuts = [segment[0, 1] for segment in figure.axes[0].collections[0].get_segments()]
    assert cuts == [i + 0.5 for i in range(29) if owner[i] != owner[i + 1]]
    assert texts(figure.axes[0].get_xticklabels()) == ["1", "2", "3", "4"]
    assert figure.get_suptitle() == "a title"


@pytest.mark.parametrize("rows", [3, 30, 100])
def test_names_of_rows_do_not_overlap(rows):
    loading = np.resize(LOADING, (rows, 4))
    names = [f"a long name {i}" for i in range(rows)]
    figure = plot_loadings(loading, rows=names, factors=["CRP", "FNR", "ArcA", "a longer name"])
    renderer = drawn(figure)
    labels = figure.axes[0].get_yticklabels()
    assert texts(labels) == [names[i] for i in block_order(loading)]
    apart(labels, renderer, figure.bbox, "y")
    apart(figure.axes[0].get_xticklabels(), renderer, figure.bbox, "x")


def test_rows_may_keep_their_order():
    figure = plot_loadings(LOADING, ordered=False, rows=list(range(30)))
    assert np.array_equal(figure.axes[0].images[0].get_array(), LOADING)
    assert texts(figure.axes[0].get_yticklabels()) == list(map(str, range(30)))
    assert not figure.axes[0].collections


def test_a_large_loading_is_drawn_without_names():
    figure = plot_loadings(np.resize(LOADING, (3000, 40)), rows=[f"gene {i}" for i in range(3000)])
    renderer = drawn(figure)
    assert not figure.axes[0].get_yticklabels()
    assert figure.axes[0].get_ylabel() == "3,000 rows, by their strongest factor"
    apart(figure.axes[0].get_xticklabels(), renderer, figure.bbox, "x")
    drawn(plot_loadings(np.zeros((5, 2))))


def test_factors_along_time_are_lines_in_its_order():
    time = RNG.permutation(12) * 2.5
    figure = plot_factors(FACTOR, time, deviation=np.full(FACTOR.shape, 0.5), label="minutes", factors=["a", "b", "c"])
    drawn(figure)
    assert len(figure.axes) == 3
    for axes, values in zip(figure.axes, FACTOR, strict=True):
        x, y = axes.lines[1].get_data()
        assert np.array_equal(x, np.sort(time))
        assert np.array_equal(y, values[np.argsort(time)])
        band = axes.collections[0].get_paths()[0].vertices[:, 1]
        assert band.max() == pytest.approx(values.max() + 1.0)
        assert band.min() == pytest.approx(values.min() - 1.0)
    assert [axes.get_ylabel() for axes in figure.axes] == ["a", "b", "c"]
    assert figure.axes[-1].get_xlabel() == "minutes"


@pytest.mark.parametrize("samples", [4, 100])
def test_factors_of_named_samples_are_bars(samples):
    factor = np.resize(FACTOR, (3, samples))
    groups = ["case"] * 3 + ["control"] * (samples - 3)
    figure = plot_factors(
        factor, samples=[f"sample {i}" for i in range(samples)], groups=groups, deviation=np.ones((3, samples))
    )
    renderer = drawn(figure)
    axes = figure.axes[-1]
    assert [bar.get_height() for bar in axes.patches] == pytest.approx(factor[-1].tolist())
    colours = [bar.get_facecolor() for bar in axes.patches]
    assert colours[0] == colours[2] != colours[3]
    assert texts(figure.legends[0].get_texts()) == ["case", "control"]
    whiskers = axes.collections[0].get_segments()
    assert np.allclose([segment[:, 1] for segment in whiskers], np.c_[factor[-1] - 2.0, factor[-1] + 2.0])
    apart(axes.get_xticklabels(), renderer, figure.bbox, "x")


def test_of_many_factors_the_first_are_drawn():
    figure = plot_factors(np.ones((30, 5)), title="tumours")
    assert len(figure.axes) == 24
    assert figure.axes[0].get_title() == "tumours (first 24 of 30)"
    assert figure.axes[23].get_ylabel() == "factor 24"


def test_the_number_of_factors_and_its_posterior():
    counts = [[1, 2, 3, 3, 4, 3], [5, 4, 4, 4]]
    figure = plot_count(counts, warmup=2, truth=3)
    drawn(figure)
    trace, share = figure.axes
    for line, chain in zip(trace.lines, counts, strict=False):
        assert line.get_xdata().tolist() == list(range(1, len(chain) + 1))
        assert line.get_ydata().tolist() == chain
    assert [bar.get_width() for bar in share.patches] == [0.75, 0.25, 0.0, 1.0]
    assert share.patches[0].get_y() < share.patches[2].get_y() + 0.4 == pytest.approx(3.0 + 0.4)
    assert trace.lines[2].get_ydata() == [3, 3]
    assert all(tick == round(tick) for tick in trace.get_yticks())
    assert texts(figure.legends[0].get_texts()) == ["chain 1", "chain 2"]
    assert trace.patches[0].get_x() == 0.5
    assert trace.patches[0].get_width() == 2.0


def test_one_chain_needs_no_legend():
    assert not plot_count(np.array([2, 2, 2])).legends
    assert not plot_sparsity(np.array([0.9, 0.9])).legends


def test_the_fraction_of_zeros_and_its_posterior():
    fractions = 0.9 + 0.02 * RNG.random((2, 50))
    figure = plot_sparsity(fractions, warmup=10, truth=0.91)
    drawn(figure)
    trace, share = figure.axes
    assert np.array_equal(trace.lines[1].get_ydata(), fractions[1])
    kept = fractions[:, 10:]
    corners = np.concatenate([patch.get_xy() for patch in share.patches])
    assert corners[:, 1].min() == pytest.approx(kept.min())
    assert corners[:, 1].max() == pytest.approx(kept.max())
    edges = np.unique(corners[:, 1])
    expected = np.histogram(kept[0], edges)[0] / 40
    assert corners[:, 0].max() >= expected.max() - 1e-12


def test_scores_are_boxes_with_their_points():
    scores = {"finite": [1.0, 2.0, 3.0, 4.0, 50.0], "infinite": [2.5]}
    figure = plot_scores(scores, label="score")
    renderer = drawn(figure)
    axes = figure.axes[0]
    assert texts(axes.get_yticklabels()) == ["finite", "infinite"]
    box = axes.patches[0]
    assert (box.get_x(), box.get_width()) == (2.0, 2.0)
    assert axes.collections[0].get_segments()[0][:, 0].tolist() == [1.0, 4.0]  # 50 is beyond the whisker
    assert axes.collections[1].get_segments()[0][:, 0].tolist() == [3.0, 3.0]
    assert axes.collections[2].get_offsets()[:, 0].tolist() == scores["finite"]
    first, second = (label.get_window_extent(renderer) for label in axes.get_yticklabels())
    assert first.y0 > second.y1  # from top to bottom
    assert plot_scores(scores, axes=figure.axes[0]) is figure


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: plot_loadings(np.ones(3)), "Loadings are"),
        (lambda: plot_loadings([[np.nan]]), "finite"),
        (lambda: plot_loadings(LOADING, ACTIVITY[:, :1]), "each of the"),
        (lambda: plot_loadings(LOADING, 2.0 * ACTIVITY), "probability"),
        (lambda: plot_loadings(LOADING, rows=["a"]), "each of the 30 rows; found 1"),
        (lambda: plot_loadings(LOADING, factors=["a"]), "each of the 4 factors"),
        (lambda: plot_factors(FACTOR, np.arange(3)), r"\(12,\)"),
        (lambda: plot_factors(FACTOR, deviation=np.ones(12)), "deviations"),
        (lambda: plot_factors(FACTOR, groups=["a"]), "12 samples' groups"),
        (lambda: plot_count([3, 4], warmup=2), "more sweeps than the warm-up of 2"),
        (lambda: plot_count([]), "Values of the number of factors"),
        (lambda: plot_sparsity([[0.5], []]), "Fractions of zeros"),
        (lambda: plot_scores({}), "one model"),
        (lambda: plot_scores({"a": [np.nan]}), "'a'"),
    ],
)
def test_what_does_not_fit_is_said(call, said):
    with pytest.raises(DataError, match=said):
        call()


def test_without_matplotlib_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UnsupportedError, match=r"cavity\[plot\]"):
        plot_loadings(LOADING)

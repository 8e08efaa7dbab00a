"""Pictures of trees: everything is where it should be, and names can be read."""

import itertools
import sys

import jax
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cavity.engine.plots.runs import plot_evidence
from cavity.factors.errors import DataError, UnsupportedError
from cavity.models.trees.fitted_tree import fit_tree
from cavity.models.trees.plots import plot_density, plot_tree, plot_tree_on_scatter
from cavity.models.trees.prior import TreePrior
from cavity.models.trees.shapes.arrays import Leaves
from cavity.models.trees.shapes.sample import sample_locations, sample_tree
from cavity.models.trees.tree import Tree

KEY = jax.random.key(0)
BALANCED = Tree(np.array([4, 4, 5, 5, 6, 6, -1]), np.array([np.inf] * 4 + [1.0, 0.5, 0.2]), ("a", "b", "c", "d"))


def drawn(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    assert np.asarray(canvas.buffer_rgba()).std() > 0.0
    return canvas.get_renderer()


@pytest.mark.parametrize("leaves", [2, 33, 200])
@pytest.mark.parametrize("scale", ["time", "depth"])
def test_names_do_not_overlap(leaves, scale):
    tree = sample_tree(TreePrior(1.0, 0.2), leaves, KEY).renamed([f"a long name {i}" for i in range(leaves)])
    figure = plot_tree(tree, tree.labels(clusters=min(5, leaves)), scale=scale)
    renderer = drawn(figure)
    labels = figure.axes[0].get_yticklabels()
    assert sorted(label.get_text() for label in labels) == sorted(tree.names)
    boxes = sorted((label.get_window_extent(renderer) for label in labels), key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 + 1.0 for low, high in itertools.pairwise(boxes))
    page = figure.bbox
    assert all(box.x1 <= page.x1 and box.y0 >= page.y0 and box.y1 <= page.y1 for box in boxes)


def test_branches_are_at_their_times_and_do_not_cross():
    figure = plot_tree(BALANCED)
    lines = figure.axes[0].collections[0].get_segments()
    assert len(lines) == BALANCED.n_nodes + 3  # a line along every branch, one across at every branch point
    for node, line in enumerate(lines[: BALANCED.n_nodes]):
        assert line[1, 0] == pytest.approx(BALANCED.time[node])
        assert line[0, 1] == line[1, 1]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["a", "b", "c", "d"]


def test_smaller_clades_come_first():
    tree = sample_tree(TreePrior(), 40, KEY)
    names = [label.get_text() for label in plot_tree(tree).axes[0].get_yticklabels()]
    place = np.array([names.index(name) for name in tree.names])
    for node in range(tree.n_leaves, tree.n_nodes):
        rows = np.sort(place[tree.members[node]])
        assert rows[-1] - rows[0] == len(rows) - 1  # a clade stands together
        sizes = [tree.count[child] for child in sorted(tree.children[node], key=lambda c: place[tree.members[c]].min())]
        assert sizes == sorted(sizes)


def test_groups_colour_branches_with_one_group_below():
    figure = plot_tree(BALANCED, ["x", "x", "x", "y"])
    lines = figure.axes[0].collections[0]
    colours = [tuple(colour) for colour in lines.get_colors()]
    assert colours[4] == colours[0] == colours[1] == colours[2]
    assert colours[3] not in (colours[0], colours[5])
    assert colours[5] == colours[6]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["x", "y"]


def test_support_is_shown_by_dots_and_numbers():
    figure = plot_tree(BALANCED, support=np.array([0.0] * 4 + [0.25, 0.5, 1.0]))
    drawn(figure)
    assert len(figure.axes[0].collections[1].get_offsets()) == 3
    assert {"0.25", "0.50"} <= {text.get_text() for text in figure.axes[0].texts}


def test_a_large_tree_is_drawn_without_names():
    tree = sample_tree(TreePrior(), 500, KEY)
    figure = plot_tree(tree, tree.labels(clusters=3))
    drawn(figure)
    assert not figure.axes[0].get_yticklabels()


def test_tree_over_its_data():
    tree = sample_tree(TreePrior(), 30, KEY)
    locations = sample_locations(tree, 2, KEY)
    figure = plot_tree_on_scatter(tree, locations, tree.labels(clusters=4), title="thirty points")
    drawn(figure)
    lines, points = figure.axes[0].collections
    np.testing.assert_allclose(points.get_offsets(), locations[:30])
    assert len(lines.get_segments()) == tree.n_nodes - 1
    assert max(lines.get_linewidths()) > min(lines.get_linewidths())


def test_evidence_against_time_has_a_line_for_each_run():
    seconds = np.linspace(0.01, 1.0, 20)
    figure = plot_evidence(
        {"one": (seconds, -1.0 / seconds), "many": [(seconds, -2.0 / seconds), (seconds, 0 * seconds)]}
    )
    drawn(figure)
    assert len(figure.axes[0].lines) == 3
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["one", "many"]


def test_density_covers_the_data():
    tree = sample_tree(TreePrior(), 30, KEY)
    data = sample_locations(tree, 3, KEY)[:30]
    fitted = fit_tree(tree, Leaves(data, np.full((30, 1), 0.05)), TreePrior(), noise=0.05)
    figure = plot_density(fitted, data, columns=(0, 2), resolution=30, groups=tree.labels(clusters=3))
    drawn(figure)
    np.testing.assert_allclose(figure.axes[0].collections[-1].get_offsets(), data[:, [0, 2]])
    low, high = figure.axes[0].get_xlim()
    assert low < data[:, 0].min()
    assert high > data[:, 0].max()


def test_pictures_go_on_given_axes():
    figure = Figure(layout="constrained")
    left, right = figure.subplots(1, 2)
    tree = sample_tree(TreePrior(), 10, KEY)
    groups = tree.labels(clusters=2)
    assert plot_tree(tree, groups, axes=left) is figure
    assert plot_tree_on_scatter(tree, sample_locations(tree, 2, KEY), groups, axes=right) is figure
    assert len(figure.legends) == 1
    drawn(figure)


def test_errors_say_what_was_found():
    with pytest.raises(DataError, match="scale"):
        plot_tree(BALANCED, scale="years")
    with pytest.raises(DataError, match="4 leaves"):
        plot_tree(BALANCED, ["x"])
    for support in (np.ones(3), np.full(7, 1.5)):
        with pytest.raises(DataError, match="Support"):
            plot_tree(BALANCED, support=support)
    with pytest.raises(DataError, match="Locations"):
        plot_tree_on_scatter(BALANCED, np.zeros((4, 2)))
    with pytest.raises(DataError, match="run of 'one'"):
        plot_evidence({"one": ([1.0, 2.0], [0.0])})


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UnsupportedError, match="matplotlib"):
        plot_tree(BALANCED)

"""Plots: the right artists in the right places, nothing global, and a clear error without matplotlib."""

import sys
from itertools import combinations

import numpy as np
import pytest
from small_models import clutter

import cavity as cv
from cavity.engine.plots import plot_convergence, plot_graph, plot_posterior
from cavity.engine.plots.figure import new_figure
from cavity.engine.plots.graph_layout import factor_nodes, lay_out
from cavity.models import mixture, skills, softmax_regression


def crossed_plates():
    m = cv.Model("factor analysis")
    n, d, k = m.plate("n"), m.plate("d", 5), m.plate("k", 3)
    alpha = m.random("alpha", cv.gamma(1.0, 1.0), plates=k)
    loading = m.random("loading", cv.gaussian(0.0, precision=alpha), plates=(d, k))
    z = m.random("z", cv.gaussian(0.0, variance=1.0), plates=(n, k))
    noise = m.random("noise_precision", cv.gamma(1.0, 1.0), plates=d)
    m.random("x", cv.gaussian(cv.sum(loading * z, over=k), precision=noise))
    return m


MODELS = {
    "softmax": softmax_regression(4, 3),
    "skills": skills(),
    "mixture": mixture(6, 2),
    "clutter": clutter(),
    "crossed": crossed_plates(),
}


def marks(figure, kind):
    """Names of the patches of one kind, and the patches."""
    patches = [p for p in figure.axes[0].patches if (p.get_gid() or "").split(" ")[0] == kind]
    return [p.get_gid().removeprefix(f"{kind} ") for p in patches], patches


@pytest.fixture(scope="module")
def gaussian():
    m = cv.Model("gaussian")
    n = m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, variance=100.0))
    precision = m.random("precision", cv.gamma(shape=1.0, rate=1.0))
    m.random("x", cv.gaussian(mean, precision=precision), plates=n)
    return cv.infer(m, {"x": np.linspace(1.0, 5.0, 30)}, method="vmp")


@pytest.fixture(scope="module")
def mixed():
    x = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0.0, 0.0], [6.0, 0.0]], 30, axis=0)
    return cv.infer(mixture(3, 2), {"x": x}, restarts=2, accuracy="fast")


@pytest.mark.parametrize("name", MODELS)
def test_graph_has_each_variable_plate_and_factor(name):
    model = MODELS[name]
    figure = plot_graph(model)
    assert marks(figure, "variable")[0] == [*model.inputs, *model.randoms, *model.lets]
    assert set(marks(figure, "plate")[0]) == set(model.plates)
    assert set(marks(figure, "factor")[0]) == set(model.randoms)


@pytest.mark.parametrize("name", MODELS)
def test_graph_is_drawn_to_a_file(name, tmp_path):
    plot_graph(MODELS[name]).savefig(tmp_path / "graph.png")
    assert (tmp_path / "graph.png").stat().st_size > 5000


@pytest.mark.parametrize("name", MODELS)
def test_plates_hold_their_own_nodes_and_no_others(name):
    model = MODELS[name]
    factors = factor_nodes(model)
    layout = lay_out(model, factors)
    nodes = {**model.inputs, **model.randoms, **model.lets}
    plates_of = {n: {p.name for p in node.plates} for n, node in nodes.items()} | {
        f.name: set(f.plates) for f in factors
    }
    for plate, boxes in layout.plates.items():
        for node, (x, y) in layout.positions.items():
            inside = any(
                left < x < left + width and bottom < y < bottom + height for left, bottom, width, height in boxes
            )
            assert inside == (plate in plates_of[node]), (plate, node)


@pytest.mark.parametrize("name", MODELS)
def test_nodes_do_not_overlap(name):
    layout = lay_out(MODELS[name], factor_nodes(MODELS[name]))
    circles = [
        spot
        for node, spot in layout.positions.items()
        if node in {**MODELS[name].inputs, **MODELS[name].randoms, **MODELS[name].lets}
    ]
    assert min(np.hypot(a[0] - b[0], a[1] - b[1]) for a, b in combinations(circles, 2)) > 0.8
    assert min(np.hypot(a[0] - b[0], a[1] - b[1]) for a, b in combinations(layout.positions.values(), 2)) > 0.5


@pytest.mark.parametrize("name", MODELS)
def test_arrows_of_the_graph_point_down(name):
    layout = lay_out(MODELS[name], factor_nodes(MODELS[name]))
    for factor in factor_nodes(MODELS[name]):
        height = layout.positions[factor.name][1]
        assert all(layout.positions[parent][1] > height for parent in factor.parents)
        assert factor.out is None or layout.positions[factor.out][1] < height


def test_gates_are_dashed_boxes_with_a_square_for_each_case():
    figure = plot_graph(clutter())
    assert marks(figure, "gate")[0] == ["factor x"]
    assert marks(figure, "factor")[0].count("x") == 2
    assert {"true: gaussian", "false: gaussian"} <= {text.get_text() for text in figure.axes[0].texts}
    assert marks(plot_graph(mixture(2, 2)), "gate")[0] == ["factor x"]
    assert marks(plot_graph(skills()), "gate")[0] == []


def test_constraints_are_squares():
    figure = plot_graph(skills())
    assert marks(figure, "constraint")[0] == ["1"]
    assert "margin > 0" in {text.get_text() for text in figure.axes[0].texts}


def test_observed_variables_are_shaded(gaussian):
    names, circles = marks(plot_graph(gaussian), "variable")
    shaded = {
        name for name, circle in zip(names, circles, strict=True) if circle.get_facecolor()[:3] != (1.0, 1.0, 1.0)
    }
    assert shaded == {"x"}
    assert "n (30)" in {text.get_text() for text in plot_graph(gaussian).axes[0].texts}
    assert any(text.get_text() == "n" for text in plot_graph(gaussian.model).axes[0].texts)


def test_models_without_plates_are_drawn():
    m = cv.Model("two coins")
    first, second = m.random("first", cv.bernoulli(0.5)), m.random("second", cv.bernoulli(0.5))
    m.let("both", first & second)
    figure = plot_graph(m)
    assert marks(figure, "let")[0] == ["both"]
    assert marks(figure, "plate")[0] == []


def test_what_was_not_swept_has_no_panel_of_convergence(gaussian):
    integrated = cv.infer(gaussian.model, {"x": [1.0, 2.0, 4.0]})
    assert [axes.get_title() for axes in plot_posterior(integrated).axes] == ["mean", "precision"]
    assert [axes.get_title() for axes in plot_posterior(gaussian, ["mean"]).axes][:2] == ["mean", "convergence"]
    said = [text.get_text() for axes in plot_convergence(integrated).axes for text in axes.texts]
    assert "no sweeps of its own" in said[0]


def test_scalars_are_densities_of_area_one(gaussian):
    figure = plot_posterior(gaussian)
    assert [axes.get_title() for axes in figure.axes[:3]] == ["mean", "precision", "convergence"]
    for axes, name in zip(figure.axes, ["mean", "precision"], strict=False):
        x, density = axes.lines[0].get_data()
        assert np.trapezoid(density, x) == pytest.approx(1.0, abs=2e-3)
        # Differences of the distribution function at the middle of an interval: right to second order.
        assert density[100] == pytest.approx(np.exp(gaussian[name].log_density(x[100])), rel=1e-3)


def test_discrete_marginals_are_bars_of_all_elements(mixed):
    figure = mixed.plot("z", "weights", "precision")
    bars, densities, forest, convergence, evidence = figure.axes
    assert bars.get_title() == "z"
    assert len(bars.patches) == 3 * 60
    assert sum(bar.get_height() for bar in bars.patches) == pytest.approx(60.0)
    assert len(densities.lines) == 3
    assert forest.get_ylabel() == "component, row, column"
    assert forest.lines[0].get_xdata() == pytest.approx(mixed["precision"].mean.ravel())
    assert convergence.get_yscale() == "log"
    assert evidence.get_ylabel() == "log evidence"


def test_forest_shows_the_intervals(mixed):
    points = plot_posterior(mixed, ["mean", "precision"], interval=0.5).axes[1]
    segments = points.collections[0].get_segments()
    half = 0.6744897501960817 * mixed["precision"].sd.ravel()
    assert [s[1][0] - s[0][0] for s in segments] == pytest.approx(2 * half)


def many(size):
    m = cv.Model("many")
    m.random("z", cv.gaussian(m.input("mean", cv.real, plates=m.plate("n")), variance=4.0))
    return cv.infer(m, {"mean": np.arange(float(size))})


def test_many_elements_are_a_band_over_their_places():
    axes = many(50).plot("z").axes[0]
    assert axes.lines[0].get_xdata() == pytest.approx(np.arange(50.0))
    assert axes.lines[0].get_ydata() == pytest.approx(np.arange(50.0))
    edge = axes.collections[0].get_paths()[0].vertices
    inside = edge[edge[:, 0] == 25.0][:, 1]
    assert np.unique(np.round(inside, 6)) == pytest.approx([25.0 - 1.6448536 * 2.0, 25.0 + 1.6448536 * 2.0])
    assert axes.get_title() == "z"


def test_of_very_many_elements_some_are_drawn_and_it_is_said():
    axes = many(2500).plot("z").axes[0]
    assert axes.get_title() == "z (1,000 of 2,500, evenly spaced)"
    x = axes.lines[0].get_xdata()
    assert (len(x), x[0], x[-1]) == (1000, 0, 2499)


def test_plots_on_axes_of_the_user_return_them(gaussian):
    figure = new_figure(9.0, 3.0)
    graph, marginal, convergence = figure.subplots(1, 3)
    assert plot_graph(gaussian, ax=graph) is graph
    assert gaussian.plot("mean", ax=marginal) is marginal
    assert plot_convergence(gaussian, ax=convergence) is convergence
    assert len(figure.axes) == 4  # the evidence has an axis of its own
    assert graph.get_title() == "gaussian"
    assert {"variable mean", "variable x"} <= {patch.get_gid() for patch in graph.patches}
    assert marginal.lines[0].get_xdata() == pytest.approx(gaussian.plot("mean").axes[0].lines[0].get_xdata())
    assert convergence.get_yscale() == "log"


def test_one_marginal_fits_on_given_axes(gaussian):
    for names in ((), ("mean", "precision")):
        with pytest.raises(cv.ModelError, match="One marginal fits on ax="):
            gaussian.plot(*names, ax=new_figure(3.0, 3.0).add_subplot())


def test_a_boolean_is_two_bars():
    m = cv.Model("coin")
    coin = m.random("coin", cv.bernoulli(0.25))
    m.constrain(coin | m.random("other", cv.bernoulli(0.5)))
    posterior = cv.infer(m, {})
    heights = [bar.get_height() for bar in posterior.plot("coin").axes[0].patches]
    assert heights == pytest.approx([1 - 0.4, 0.4])


def test_convergence_follows_the_trace(gaussian):
    residual, evidence = plot_convergence(gaussian).axes
    assert residual.lines[0].get_ydata()[-1] == gaussian.trace.residual[-1]
    assert evidence.lines[0].get_ydata()[-1] == pytest.approx(gaussian.log_evidence)


def test_convergence_without_recorded_evidence():
    data = {"winner": [0, 1, 0], "loser": [1, 2, 2]}
    posterior = cv.infer(skills(), data, sizes={"player": 3}, trace_evidence=False)
    figure = plot_convergence(posterior)
    assert not figure.axes[1].lines
    assert "trace_evidence" in figure.axes[1].texts[0].get_text()
    assert len(plot_posterior(posterior, ["skill"]).axes) == 2


def test_observed_and_unknown_names_are_refused(gaussian):
    with pytest.raises(cv.DataError, match="'x' is observed"):
        gaussian.plot("x")
    with pytest.raises(KeyError, match="no 'y' here"):
        gaussian.plot("y")


@pytest.mark.parametrize("plot", [plot_graph, plot_posterior, plot_convergence])
def test_without_matplotlib_the_error_says_what_to_install(plot, gaussian, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(cv.UnsupportedError, match="pip install matplotlib"):
        plot(gaussian)


def test_pyplot_is_not_touched(gaussian, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    plot_graph(gaussian)
    plot_posterior(gaussian)
    plot_convergence(gaussian)

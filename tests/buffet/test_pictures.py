"""Pictures of features: the artists are what was asked for, and what cannot be drawn is refused."""

import jax
import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cavity.factors.errors import DataError
from cavity.models.buffet.chains import sample_features
from cavity.models.buffet.likelihoods import LinearGaussian, NoisyOr
from cavity.models.buffet.ordering import left_ordered
from cavity.models.buffet.pictures import plot_features, plot_matrix, plot_tags, plot_traces
from cavity.models.buffet.prior import BetaBernoulli, IndianBuffet
from cavity.models.buffet.samplers.law import Law

MATRIX = np.array([[0, 1, 0], [1, 1, 0], [1, 0, 1], [0, 0, 1]], bool)


def drawn(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    assert np.asarray(canvas.buffer_rgba()).std() > 0.0
    return canvas.get_renderer()


def test_a_matrix_is_drawn_in_its_left_ordered_form():
    figure = plot_matrix(MATRIX, features=["tail", "fur", "wings"], rows=["a", "b", "c", "d"], title="animals")
    drawn(figure)
    axes = figure.axes[0]
    np.testing.assert_array_equal(axes.images[0].get_array(), left_ordered(MATRIX).matrix)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["fur", "tail", "wings"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c", "d"]
    assert axes.get_title() == "animals"


def test_a_matrix_as_it_is_on_axes_of_others():
    axes = Figure().add_subplot()
    assert plot_matrix(MATRIX, ordered=False, axes=axes) is axes.figure
    np.testing.assert_array_equal(axes.images[0].get_array(), MATRIX)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "3"]
    assert not axes.get_yticks().size
    assert not plot_matrix(np.ones((3, 150))).axes[0].get_xticks().size


def test_features_are_images_of_one_scale():
    values = np.arange(-15.0, 15.0).reshape(5, 6)
    figure = plot_features(values, (2, 3), columns=3, features=list("abcde"))
    drawn(figure)
    assert len(figure.axes) == 6
    for axes, value, name in zip(figure.axes, values, "abcde", strict=False):
        np.testing.assert_array_equal(axes.images[0].get_array(), value.reshape(2, 3))
        assert axes.images[0].get_clim() == (-15.0, 15.0)
        assert axes.get_title() == name
    assert not figure.axes[5].images


@pytest.fixture(scope="module", params=[Law(), Law((2.0, 1.0), features=3)], ids=["buffet", "finite"])
def chains(request):
    data = np.random.default_rng(0).normal(size=(8, 2))
    return sample_features(data, jax.random.key(0), 4, LinearGaussian(), request.param, chains=2, thin=2)


def test_traces_are_of_all_chains(chains):
    figure = plot_traces(chains)
    drawn(figure)
    for axes, name in zip(figure.axes, ("number_of_features", "log_joint"), strict=True):
        for line, values in zip(axes.lines, chains[name], strict=True):
            np.testing.assert_array_equal(line.get_ydata(), values)
        assert axes.get_ylabel() == name.replace("_", " ")
    assert len(plot_traces(chains, ["mass"]).axes) == 1


def test_the_log_joint_is_that_of_data_and_matrix(chains):
    law = chains.sampler.law
    for chain, number in np.ndindex(*chains.shape):
        draw = chains.draw(chain, number)
        prior = BetaBernoulli(draw.mass, 3) if law.features else IndianBuffet(draw.mass, draw.concentration)
        expected = chains["log_likelihood"][chain, number] + prior.log_probability(draw.active)
        # Of its class there, of the matrix as it stands, or with its columns in any order, here.
        _, same = np.unique(draw.active, axis=1, return_counts=True)
        counts = [np.log(np.arange(1, count + 1)).sum() for count in (draw.active.shape[1], *same)]
        expected += sum(counts[1:]) - counts[0]
        assert chains["log_joint"][chain, number] == pytest.approx(expected, abs=1e-9)


def test_words_are_as_large_as_their_values():
    values = np.array([[0.9, 0.3, 0.0, 0.6], [0.0, 0.0, -1.0, 0.5]])
    figure = plot_tags(values, ["space", "moon", "god", "orbit"], features=["sky", "rest"])
    renderer = drawn(figure)
    first, second = ([text for text in axes.texts if text.get_text()] for axes in figure.axes)
    assert [text.get_text() for text in first] == ["space", "orbit", "moon"]
    assert [text.get_text() for text in second] == ["orbit"]
    sizes = np.array([text.get_fontsize() for text in first])
    np.testing.assert_allclose((sizes - 6.0) / 10.0, [1.0, 2.0 / 3.0, 1.0 / 3.0])
    boxes = [text.get_window_extent(renderer) for text in first]
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])


def test_many_words_stay_within_their_cloud():
    values = np.linspace(1.0, 0.5, 60)[None]
    figure = plot_tags(values, [f"a long word {i}" for i in range(60)], most=60)
    renderer = drawn(figure)
    texts, page = figure.axes[0].texts, figure.axes[0].bbox
    assert 3 <= len(texts) < 60
    assert all(text.get_window_extent(renderer).y0 >= page.y0 - 2.0 for text in texts)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(DataError, match=r"entries 0 and 1; found 0\.5"):
        plot_matrix(np.full((2, 2), 0.5))
    with pytest.raises(DataError, match="There are 3 features, each with a name; found 1"):
        plot_matrix(MATRIX, features=["one"])
    with pytest.raises(DataError, match="Images of 2 x 2 have 4 pixels; found 6"):
        plot_features(np.zeros((1, 6)), (2, 2))
    with pytest.raises(DataError, match="at least one of each"):
        plot_features(np.zeros((0, 6)), (2, 3))
    with pytest.raises(DataError, match="There are 4 words"):
        plot_tags(np.zeros((1, 4)), ["word"])


@pytest.mark.parametrize("name", ["active", "nothing"])
def test_a_trace_of_what_is_no_number_is_refused(name):
    data = np.array([[1.0, 0.0], [0.0, 1.0]])
    found = sample_features(data, jax.random.key(0), 2, NoisyOr(), chains=1)
    with pytest.raises(DataError, match=f"'{name}' is none"):
        plot_traces(found, [name])

"""What the experiments compute beside cavity is right: peers, stand-ins, the collapsed sampler as published."""

import importlib
import itertools
import os
import sys
from pathlib import Path
from unittest import mock

import jax
import numpy as np
import pytest
from scipy.special import betaln
from scipy.stats import multivariate_normal, norm

from cavity.models.buffet import harmonic
from cavity.models.buffet.correlated import DpIbp
from cavity.models.buffet.likelihoods.linear_gaussian import log_marginal

HERE = Path(__file__).resolve().parents[2] / "benchmarks" / "buffet"
OURS = (
    "common",
    "sets",
    "by_hand",
    "peers",
    "serial",
    "six_sets",
    "correlated",
    "blocks",
    "harness",
    "experiments",
    "reference_runs",
)


@pytest.fixture(scope="module")
def experiments():
    """The modules by name; other folders of experiments have some of the same names."""
    others = {name: module for name, module in sys.modules.items() if name not in OURS}
    with (
        mock.patch.dict(os.environ),  # the harness pins threads
        mock.patch.dict(sys.modules, others, clear=True),
        mock.patch.object(sys, "path", [str(HERE), str(HERE.parent), *sys.path]),
    ):
        yield {
            name: importlib.import_module(name)
            for name in ("common", "sets", "by_hand", "peers", "serial", "six_sets", "correlated", "blocks")
        }


def drawn(rows=7, features=3, columns=4):
    random = np.random.default_rng(0)
    active = np.array(random.random((rows, features)) < 0.5)
    active[0] = True, True, False
    active[1] = False, True, True
    return random.normal(size=(rows, columns)), active


def dense(values, active, noise, own):
    covariance = noise * np.eye(len(values)) + own * active @ active.T.astype(float)
    return sum(multivariate_normal.logpdf(column, np.zeros(len(values)), covariance) for column in values.T)


def test_the_sampler_as_published_has_the_density_of_all_rows(experiments):
    values, active = drawn()
    sampler = experiments["by_hand"].Collapsed(values, active, 0.3, 2.0)
    found = sampler.log_marginal(sampler.z, sampler.inverse, sampler.log_det)
    assert found == pytest.approx(dense(values, active, 0.3, 2.0), abs=1e-9)
    with jax.enable_x64(True):
        ours = log_marginal(values, active, {"noise_precision": 1.0 / 0.3, "value_precision": 0.5})
    assert found == pytest.approx(float(ours), abs=1e-9)


def test_an_entry_of_the_sampler_as_published_moves_the_inverse_with_it(experiments):
    values, active = drawn()
    sampler = experiments["by_hand"].Collapsed(values, active, 0.3, 2.0)
    z, inverse, log_det = sampler.flipped(0, 2)
    m = z.T @ z + np.eye(3) * 0.3 / 2.0
    assert z[0, 2] != sampler.z[0, 2]
    np.testing.assert_allclose(inverse, np.linalg.inv(m), atol=1e-12)
    assert log_det == pytest.approx(np.linalg.slogdet(m)[1], abs=1e-12)


def test_the_sampler_as_published_draws_entries_by_their_conditional(experiments):
    values, active = drawn()
    chosen = {}
    for bit in (0.0, 1.0):
        other = active.astype(float)
        other[2, 1] = bit
        chosen[bit] = dense(values, other, 0.3, 2.0)
    others = active[:, 1].sum() - active[2, 1]
    odds = np.log(others / (7 - others)) + chosen[1.0] - chosen[0.0]
    hits = []
    for seed in range(2000):
        sampler = experiments["by_hand"].Collapsed(values, active, 0.3, 2.0, seed)
        sampler.entry(2, 1)
        hits.append(sampler.z[2, 1])
    p = 1.0 / (1.0 + np.exp(-odds))
    assert 0.02 < p < 0.98
    assert abs(np.mean(hits) - p) < 4.0 * np.sqrt(p * (1.0 - p) / 2000)


def test_factor_analysis_is_conditioned_on_what_is_seen(experiments):
    random = np.random.default_rng(1)
    values = random.normal(size=(30, 2)) @ random.normal(size=(2, 5)) + 0.3 * random.normal(size=(30, 5))
    gaps = experiments["common"].hidden(values.shape, 0.2, 0)
    model = experiments["peers"].factor_analysis(values, gaps, 2, 0)
    mean, sd = experiments["peers"].conditional(model, values, gaps)
    covariance = model.get_covariance()
    for row, gap in zip(range(30), gaps, strict=True):
        gain = covariance[np.ix_(gap, ~gap)] @ np.linalg.inv(covariance[np.ix_(~gap, ~gap)])
        expected = model.mean_[gap] + gain @ (values[row] - model.mean_)[~gap]
        spread = np.diag(covariance[np.ix_(gap, gap)] - gain @ covariance[np.ix_(~gap, gap)])
        np.testing.assert_allclose(mean[row, gap], expected, atol=1e-8)
        np.testing.assert_allclose(sd[row, gap] ** 2, spread, atol=1e-8)


@pytest.mark.parametrize("name", ["column means", "NMF", "BernoulliRBM", "FactorAnalysis"])
def test_peers_do_not_see_what_is_hidden(experiments, name):
    values = np.random.default_rng(2).random((20, 8))
    gaps = experiments["common"].hidden(values.shape, 0.2, 0)
    fit = experiments["peers"].PEERS[name]
    found = fit(values, gaps, 3, 0)
    np.testing.assert_array_equal(found, fit(np.where(gaps, 7.0, values), gaps, 3, 0))
    assert found.shape == values.shape


def test_scores_are_of_hidden_entries(experiments):
    table = experiments["sets"].Table(np.array([[0.0, 2.0], [1.0, 5.0]]), "gaussian")
    gaps, mean = np.array([[True, False], [True, False]]), np.array([[0.5, 9.0], [0.5, 9.0]])
    error, log = experiments["peers"].scores(table, gaps, mean, 2.0)
    assert error == pytest.approx(0.5)
    assert log == pytest.approx(norm.logpdf(0.5, 0.0, 2.0))
    bits = experiments["sets"].Table(np.array([[0.0, 1.0], [1.0, 0.0]]), "bernoulli")
    assert experiments["peers"].scores(bits, gaps, np.full((2, 2), 0.25))[1] == pytest.approx(
        0.5 * (np.log(0.75) + np.log(0.25))
    )


def test_no_row_or_column_is_hidden_as_a_whole(experiments):
    for seed in range(20):
        gaps = experiments["common"].hidden((4, 3), 0.8, seed)
        assert not gaps.all(axis=0).any()
        assert not gaps.all(axis=1).any()


def test_stand_ins_have_the_shapes_of_what_they_stand_for(experiments):
    sets = experiments["sets"]
    found = [sets.emoticons(70), sets.faces_with_things(26), sets.brain_waves(44), sets.piano(100), sets.speech()]
    found += [sets.ratings(), sets.robot_tags(), sets.menus(155, 15, 15, 6, 0), sets.from_sticks(9, 8, 7, 0)]
    shapes = [(70, 1032), (26, 1598), (44, 32), (100, 161), (245, 10), (500, 30), (750, 23), (155, 15), (9, 8)]
    assert [each.shape for each in found] == shapes
    assert all(np.isfinite(each).all() and each.std() > 0 for each in found)
    values, has = sets.images(500, 0, [0, 1, 3, 15])
    assert {tuple(row) for row in has.astype(int)} == {(0, 0, 0, 0), (1, 0, 0, 0), (1, 1, 0, 0), (1, 1, 1, 1)}
    assert np.std(values - has @ experiments["common"].blocks()) == pytest.approx(0.5, abs=0.02)


def test_burn_in_ends_where_the_last_quarter_is_reached(experiments):
    trace = np.concatenate([np.linspace(-100.0, -1.0, 10), np.tile([0.0, 1.0], 15)])
    assert experiments["six_sets"].burn_in(trace) == 11
    assert experiments["six_sets"].burn_in(np.zeros(8)) == 1


def cycles(n, number):
    """Unsigned Stirling numbers of the first kind, permutations of so many cycles, one element after the other."""
    if n == 0 or number == 0:
        return float(n == number)
    return cycles(n - 1, number - 1) + (n - 1) * cycles(n - 1, number)


def test_twins_of_categories_agree_with_all_their_numbers(experiments):
    """Of three rows with one feature, two with two and one without any; the mass is integrated out."""
    has, concentration, (shape, rate) = np.array([[1, 0]] * 3 + [[1, 1]] * 2 + [[0, 0]]) > 0, 0.8, (2.0, 1.5)
    found = experiments["blocks"].twins(DpIbp(concentration, (shape, rate)), has, np.random.default_rng(0), 20_000)
    expected = np.zeros(7)
    for one, two in itertools.product(range(1, 4), range(1, 3)):
        every = one + two + 1
        menus = betaln(one + two, every - one - two + 1) + betaln(two, every - two + 1)
        log = every * np.log(concentration) + menus - (shape + 2) * np.log(rate + harmonic(every))
        expected[every] += cycles(3, one) * cycles(2, two) * np.exp(log)
    expected /= expected.sum()
    shares = (found[:, None] == np.arange(7)).reshape(20, -1, 7).mean(axis=1)
    spread = shares.std(axis=0, ddof=1) / np.sqrt(20)
    assert np.all(np.abs(shares.mean(axis=0) - expected) <= 4.0 * spread)


class Kept:
    """What a report is told."""

    def __init__(self):
        self.tables = {}

    def table(self, title, note, columns, lines, measured):
        assert all(len(line) == len(columns) for line in lines)
        assert all(isinstance(cell, str) for line in lines for cell in line)
        self.tables[title] = lines


def test_slopes_are_those_of_the_cost(experiments, monkeypatch):
    serial, kept = experiments["serial"], Kept()

    def cost(values, state):
        return float(len(values)) ** 3 * values.shape[1] * state.active.any(axis=0).sum() ** 2

    monkeypatch.setattr(serial, "published", lambda values, state, entries: cost(values, state))
    monkeypatch.setattr(serial, "timed", lambda name, values, state: cost(values, state))
    serial.slopes(kept, mock.Mock(seed=0))
    (lines,) = kept.tables.values()
    assert [line[3] for line in lines] == ["3.00", "2.00", "1.00"] * 4


def test_pictures_have_what_was_measured(experiments):
    serial, six = experiments["serial"], experiments["six_sets"]
    mixed = {f"{count}, {name}": [count, 0.5, 0.4] for count in (50, 100) for name in ("as published", *serial.SWEEPS)}
    lines = serial.picture(mixed, [50, 100]).axes[0].lines
    assert [list(line.get_ydata()) for line in lines] == [[50, 100]] * 3
    traces = {f"{name}, {kind}": ([1.0, 2.0], [3.0, 4.0]) for name in ("a", "b", "c") for kind in six.SWEEPS}
    shown = [axis for axis in six.by_time(traces).axes if axis.lines]
    assert [axis.get_title() for axis in shown] == ["a", "b", "c"]
    draw = mock.Mock(active=np.array([[True, False], [True, True]]), values=np.arange(12.0).reshape(2, 6))
    assert [axis.get_title() for axis in six.in_parts(draw, (2, 3)).axes] == ["2", "1"]


def test_made_data_are_a_draw_of_the_model(experiments):
    counts = [experiments["serial"].synthetic(20, seed=seed)[1].shape[1] for seed in range(300)]
    expected = 2.0 * np.sum(1.0 / np.arange(1, 21))
    assert abs(np.mean(counts) - expected) < 4.0 * np.sqrt(expected / 300)
    values, has, _ = experiments["serial"].synthetic(400, seed=1)
    left = values - has @ np.linalg.lstsq(has.astype(float), values, rcond=None)[0]
    assert np.sqrt(np.sum(left**2) / ((400 - has.shape[1]) * 10)) == pytest.approx(0.2, abs=0.01)


def test_predictions_of_draws_are_averaged(experiments):
    correlated = experiments["correlated"]
    values, gaps = np.array([[1.0, 0.0]]), np.array([[True, False]])
    likelihood = correlated.Detection()
    draws = [(np.array([[1.0]]), np.array([[float(bit), 0.0]]), {"miss": 0.1, "false": 0.2}) for bit in (0, 1)]
    log, error = correlated.predicted(draws, values, gaps, likelihood)
    assert log == pytest.approx(np.log(0.55))
    assert error == pytest.approx(0.45**2)


def test_models_start_one_from_another(experiments, monkeypatch):
    """All but the sweeps: chains of two draws that stay where they start."""
    correlated, kept, begun = experiments["correlated"], Kept(), []

    def stay(kernel, key, draws, chains, warmup):
        state = kernel.init(key)
        recorded = kernel.record(state)
        begun.append(state)
        found = mock.MagicMock(states=[state])
        found.__getitem__.side_effect = lambda name: np.stack([[recorded[name]] * draws])
        return found

    def features(values, seed, sweeps, last, likelihood, law, sweep, chains, held_out, start):
        active, own, numbers = start.draw(None)
        assert active.any(axis=0).all()
        assert own.shape == (active.shape[1], values.shape[1])
        assert "miss" in numbers
        return mock.MagicMock(score=-1.0, error=0.5, cpu=2.0, found={"number_of_features": np.full((1, 2), 3)})

    monkeypatch.setattr(correlated, "run", stay)
    monkeypatch.setattr(experiments["common"], "sample", features)
    monkeypatch.setattr(
        correlated, "tables", lambda _: {"robot": (experiments["sets"].robot_tags(40), correlated.Detection())}
    )
    correlated.compared(kept, mock.Mock(seed=0, sets=["robot"]), 4)
    (lines,) = kept.tables.values()
    assert [line[0] for line in lines] == list(correlated.ORDER)
    first, *others = begun
    assert all(np.array_equal(first.active.any(axis=1), state.active.any(axis=1)) for state in others)

"""Features of new rows: of sums over all sets and of weighted sets, under each law, against sums written out here."""

import itertools

import jax
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from cavity.factors.errors import UnsupportedError
from cavity.models.buffet import predict as module
from cavity.models.buffet.chains import Draw
from cavity.models.buffet.choices import choices_of
from cavity.models.buffet.correlated import DpIbp, IbpIbp, NoisyOrIbp
from cavity.models.buffet.correlated.chains import CorrelatedDraw, categories_of
from cavity.models.buffet.likelihoods import LinearGaussian
from cavity.models.buffet.predict import of_new_rows
from cavity.models.buffet.samplers.law import Law

RANDOM = np.random.default_rng(0)
NUMBERS = {"noise_precision": np.asarray(2.0), "value_precision": np.asarray(1.0)}
VALUES = RANDOM.normal(size=(4, 3))
MENU = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]], bool)
CHOICE = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]], bool)
SEVERAL = CHOICE | np.array([[0, 1, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 1]], bool)
NEW = np.array([[0.5, -1.0, 0.3], [2.0, np.nan, -0.4], [np.nan, np.nan, np.nan]])


def draw_of(choice):
    return CorrelatedDraw(choice.astype(int) @ MENU > 0, VALUES, NUMBERS, choice, MENU)


def independent():
    active = draw_of(SEVERAL).active
    owners = active.sum(axis=0)
    p = owners / (6 + 1.0)
    sets = [np.array(each, bool) for each in itertools.product([0, 1], repeat=4)]
    return Law(1.0), Draw(active, VALUES, NUMBERS, 1.0, 1.0), [(each, np.where(each, p, 1 - p).prod()) for each in sets]


def one_category():
    return DpIbp(), draw_of(CHOICE), [(MENU[l], CHOICE[:, l].mean()) for l in range(3)]  # noqa: E741


def several_categories():
    p = SEVERAL.sum(axis=0) / (6 + 1.0)
    sets = [np.array(each) for each in itertools.product([0, 1], repeat=3)]
    return IbpIbp(), draw_of(SEVERAL), [(each @ MENU > 0, np.where(each, p, 1 - p).prod()) for each in sets]


def exact(sets):
    """(rows, K) probabilities, (rows, 3) means and (rows,) log densities."""
    features, prior = np.array([each for each, _ in sets], float), np.log([p for _, p in sets])
    totals = features @ VALUES
    logs = np.nansum(norm.logpdf(NEW[:, None], totals, np.sqrt(0.5)), axis=2) + prior
    log_density = logsumexp(logs, axis=1)
    weight = np.exp(logs - log_density[:, None])
    return weight @ features, weight @ totals, log_density


@pytest.mark.parametrize("case", [independent, one_category, several_categories])
def test_all_sets_are_summed(case):
    law, draw, sets = case()
    found = of_new_rows(draw, NEW, LinearGaussian(), law, jax.random.key(0))
    for one, other in zip(found, exact(sets), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", [independent, several_categories])
def test_weighted_sets_are_close(case, monkeypatch):
    monkeypatch.setattr(module, "ALL", 0)
    law, draw, sets = case()
    found = of_new_rows(draw, np.tile(NEW, (30, 1)), LinearGaussian(), law, jax.random.key(0))
    for one, other in zip(found, exact(sets), strict=True):
        mean = np.asarray(one).reshape(30, 3, *other.shape[1:])
        np.testing.assert_allclose(mean.mean(axis=0), other, rtol=0, atol=0.03)


@pytest.mark.parametrize("case", [independent, one_category, several_categories])
def test_features_are_drawn_as_they_are_probable(case):
    law, draw, sets = case()
    drawn = choices_of(law, draw).draw(np.random.default_rng(1), 40_000)
    for features in {tuple(each) for each, _ in sets}:
        p = sum(each for other, each in sets if tuple(other) == features)
        share = (drawn == features).all(axis=1).mean()
        assert abs(share - p) < 4.5 * np.sqrt(p * (1 - p) / 40_000) + 1e-12


def test_features_of_rows_become_categories():
    active = draw_of(SEVERAL).active
    for law in (DpIbp(), IbpIbp()):
        choice, menu = categories_of(law, active)
        np.testing.assert_array_equal(choice.astype(int) @ menu > 0, active)
        assert choice.any(axis=0).all()
    assert (categories_of(DpIbp(), active)[0].sum(axis=1) == 1).all()


def test_other_laws_are_refused():
    with pytest.raises(UnsupportedError, match="not drawn under NoisyOrIbp"):
        of_new_rows(draw_of(SEVERAL), NEW, LinearGaussian(), NoisyOrIbp(), jax.random.key(0))

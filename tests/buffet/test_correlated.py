"""Correlated features: priors and growth against exact laws, starts, the driver, and what is refused."""

import jax
import numpy as np
import pytest
from correlated_prior import structure
from scipy.stats import poisson

from cavity.engine.mcmc.run import run
from cavity.factors.errors import DataError, ModelError, UnsupportedError
from cavity.models.buffet import IndianBuffet, harmonic
from cavity.models.buffet.correlated import (
    Correlated,
    DpIbp,
    IbpIbp,
    NoisyOrIbp,
    Partition,
    as_features,
    growth,
    of_partition,
)
from cavity.models.buffet.correlated.chains import CorrelatedChains
from cavity.models.buffet.correlated.growth import expected_categories
from cavity.models.buffet.correlated.sampler import padded
from cavity.models.buffet.likelihoods import LinearGaussian, NoisyOr
from cavity.models.buffet.likelihoods.contract import Rows

LAWS = {"dp": DpIbp(1.5, 2.0), "buffets": IbpIbp(1.5, 2.0), "noisy": NoisyOrIbp(1.5, 2.0, 0.3)}
KEY = jax.random.key(0)
GAUSSIAN = LinearGaussian(noise_precision=(2.0, 1.0), value_precision=(2.0, 2.0))


def rows_of(seed=0, rows=12, dimensions=4):
    """Two groups far apart."""
    random = np.random.default_rng(seed)
    centre = np.where(np.arange(rows)[:, None] % 2, 3.0, -3.0)
    return Rows(centre + random.normal(size=(rows, dimensions)), np.ones((rows, dimensions), bool))


def table_probabilities(concentration, rows):
    """(rows + 1,) probabilities of so many categories: one row after the other, as independent coins."""
    found = np.zeros(rows + 1)
    found[0] = 1.0
    for i in range(rows):
        new = concentration / (concentration + i)
        found = (1.0 - new) * found + new * np.append(0.0, found[:-1])
    return found


def categories_of(law, rows):
    """Probabilities of 0, 1, ... categories, to where they are negligible."""
    if isinstance(law, DpIbp):
        return table_probabilities(law.concentration, rows)
    return poisson.pmf(np.arange(200), law.category_mass * harmonic(rows))


@pytest.mark.parametrize("name", LAWS)
def test_features_of_a_generated_structure_are_poisson_given_their_categories(name):
    """Finitely many rows have finitely many features: counts against the mixture of Poisson laws that they follow."""
    law, rows, every = LAWS[name], 12, 1000
    prior = {key: np.asarray(value) for key, value in law.first().items()}
    keys = jax.random.split(jax.random.key(1), every)
    drawn = [law.generate(key, prior, rows) for key in keys]
    assert all(choice.any(axis=0).all() and menu.any(axis=0).all() for choice, menu, _ in drawn)
    counts = np.array([menu.shape for _, menu, _ in drawn])
    weights = categories_of(law, rows)
    rates = law.mass * np.array([harmonic(n) for n in range(len(weights))])
    expected = np.array([np.sum(weights * poisson.pmf(k, rates)) for k in range(40)])
    for own, probabilities in ((counts[:, 0], np.pad(weights, (0, 40))[:40]), (counts[:, 1], expected)):
        seen = np.bincount(own, minlength=40)[:40]
        spread = np.sqrt(every * probabilities * (1.0 - probabilities))
        often = every * probabilities > 5.0
        assert often.sum() > 4
        assert np.max(np.abs(seen - every * probabilities)[often] / spread[often]) < 4.5


@pytest.mark.parametrize("name", LAWS)
def test_structures_agree_with_those_of_the_tests_own_generator(name):
    law, rows, every = LAWS[name], 5, 1000
    prior = {key: np.asarray(value) for key, value in law.first().items()}
    random = np.random.default_rng(2)
    one = [law.generate(key, prior, rows) for key in jax.random.split(jax.random.key(3), every)]
    other = [structure(random, {key: float(value) for key, value in prior.items()}, rows) for _ in range(every)]

    def numbers(drawn):
        choice, menu, fired = drawn
        z = fired.any(axis=1)
        return [choice.sum(), (choice.sum(axis=0) ** 2).sum(), menu.sum(), (menu.sum(axis=0) ** 2).sum(), fired.sum(),
                z.sum(), (z.sum(axis=0) ** 2).sum(), z[0].sum(), z[-1].sum()]  # fmt: skip

    one, other = (np.array([numbers(each) for each in drawn], float) for drawn in (one, other))
    spread = np.sqrt((one.var(axis=0) + other.var(axis=0)) / every)
    assert np.all(np.abs(one.mean(axis=0) - other.mean(axis=0)) <= 4.0 * spread)


@pytest.mark.parametrize("name", ["dp", "buffets"])
def test_growth_agrees_with_the_exact_numbers_of_features(name):
    law, lines = LAWS[name], (1, 10, 300, 5000)
    found = growth(law, lines, 4000, jax.random.key(0))
    for line, categories, features, error, bound in zip(*found, strict=True):
        weights = categories_of(law, int(line))
        exact = law.mass * np.sum(weights * np.array([harmonic(n) for n in range(len(weights))]))
        assert np.isclose(categories, np.sum(weights * np.arange(len(weights))), rtol=1e-9)
        assert abs(features - exact) < 4.0 * error
        assert exact < bound


def test_features_grow_as_the_logarithm_of_the_logarithm_of_rows():
    """A buffet of the same rows has `mass H_N`, some ten times as many."""
    found = growth(DpIbp(2.0, 2.0), (10, 1000, 100_000), 300, jax.random.key(0))
    doubly = np.log(np.log(found.rows))
    slope = np.diff(found.features) / np.diff(doubly)
    assert np.all(found.features < found.bound)
    assert np.all((slope > 1.0) & (slope < 3.0)), slope  # the mass, and more while categories are few
    assert IndianBuffet(2.0).expected_features(100_000) > 3.0 * found.features[-1]


def test_expected_categories_of_the_restaurant_and_of_the_buffet():
    assert np.isclose(expected_categories(DpIbp(2.0, 1.0), 3), 1.0 + 2.0 / 3.0 + 2.0 / 4.0)
    assert np.isclose(expected_categories(IbpIbp(2.0, 1.0), 3), 2.0 * (1.0 + 1.0 / 2.0 + 1.0 / 3.0))


def check_state(law, state):
    """What is passed on is of categories that a row has and of features on their menus, and nothing empty has any."""
    offered = state.choice[:, :, None] & state.menu
    assert not (state.fired & ~offered).any()
    assert not (state.menu.any(axis=1) & ~state.choice.any(axis=0)).any()
    assert not state.values[~state.menu.any(axis=0)].any()
    if not isinstance(law, NoisyOrIbp):
        assert np.array_equal(state.fired, offered)
    if isinstance(law, Partition):
        assert np.array_equal(state.choice.sum(axis=1), np.ones(len(state.choice)))


def test_more_places_change_no_draw_and_a_chain_with_few_grows():
    law = DpIbp()
    sampler = Correlated(rows_of(), GAUSSIAN, law, start=of_partition(np.arange(12) % 2, rows_of(), GAUSSIAN, KEY))
    state = sampler.init(KEY)
    wide, small = padded(state, 16, 16), padded(state, 2, 2)
    for i in range(6):
        wide = padded(sampler.step(jax.random.key(i), wide), 16, 16)
        state, small = (sampler.step(jax.random.key(i), each) for each in (state, small))
        check_state(law, state)
        for other in (wide, small):
            one, other = (padded(each, 16, 16) for each in (state, other))
            for name in ("choice", "menu", "values"):
                assert np.allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-12)
    assert small.menu.shape[0] > 2


def start_of_all(laws, stepped):
    """Each law started from a state of the one before."""
    rows = rows_of()
    state = of_partition(np.arange(12) % 2, rows, GAUSSIAN, KEY)
    for law in laws:
        sampler = Correlated(rows, GAUSSIAN, law, start=state)
        begin = sampler.init(jax.random.key(1))
        assert np.allclose(begin.active @ begin.values, state.active @ state.values)
        assert set(begin.prior) == set(law.first())
        state = sampler.step(jax.random.key(2), begin) if stepped else begin
        check_state(law, state)
    assert Correlated(rows, GAUSSIAN, laws[-1], start=state).init(KEY).prior == state.prior


def test_a_partition_starts_all_other_models_one_after_the_other():
    start_of_all([Partition(), DpIbp(), IbpIbp(), NoisyOrIbp()], False)


@pytest.mark.slow
def test_chains_of_each_model_start_where_one_of_another_stopped():
    start_of_all([Partition(), DpIbp(), IbpIbp(), NoisyOrIbp()], True)


def test_labels_start_with_values_near_the_data_and_become_features():
    rows = rows_of()
    state = of_partition(np.arange(12) % 2, rows, GAUSSIAN, KEY)
    fit = state.active @ state.values
    assert np.corrcoef(fit.ravel(), rows.values.ravel())[0, 1] > 0.9
    features = as_features(state, mass=2.0)
    assert np.array_equal(features.active.sum(axis=0)[:3], [6, 6, 0])
    assert np.allclose(features.active @ features.values, fit)


def test_chains_of_the_driver_are_the_same_for_the_same_seed():
    rows = rows_of()
    kernel = Correlated(rows, GAUSSIAN, DpIbp(), keep=("choice", "menu", "active", "values", "fit")).kernel()
    one, other = (run(kernel, jax.random.key(5), 4, chains=2, progress=False) for _ in range(2))
    assert all(np.array_equal(one.draws[name], other.draws[name]) for name in one.draws)
    assert one["fit"].shape == (2, 4, 12, 4)
    assert np.array_equal(one["number_of_features"], one["menu"].any(axis=2).sum(axis=-1))
    menus = [len(np.unique(found.menu, axis=0)) for found in CorrelatedChains(one, ("noise_precision",)).draws()]
    assert np.array_equal(one["number_of_menus"].ravel(), menus)
    z = np.einsum("cdnl,cdlk->cdnk", one["choice"] * 1.0, one["menu"] * 1.0)
    assert np.array_equal(z, one["active"])
    assert np.allclose(z @ one["values"], one["fit"])


def test_a_chain_that_stopped_goes_on_from_its_checkpoint(tmp_path):
    kernel = Correlated(rows_of(), GAUSSIAN, DpIbp()).kernel()
    whole = run(kernel, jax.random.key(5), 6, chains=1, progress=False)
    file = tmp_path / "chains"
    run(kernel, jax.random.key(5), 3, chains=1, progress=False, checkpoint=file)
    again = run(kernel, jax.random.key(5), 6, chains=1, progress=False, checkpoint=file)
    assert all(np.array_equal(whole.draws[name], again.draws[name]) for name in whole.draws)


class Weighted(LinearGaussian):
    weighted = True


def test_wrong_settings_and_starts_are_refused():
    rows = rows_of()
    for wrong in (lambda: DpIbp(0.0), lambda: IbpIbp(mass=-1.0), lambda: NoisyOrIbp(withheld=1.5)):
        with pytest.raises(ModelError):
            wrong()
    with pytest.raises(UnsupportedError, match="weight"):
        Correlated(rows, Weighted(), DpIbp())
    with pytest.raises(DataError, match="0 and 1"):
        Correlated(rows, NoisyOr(), DpIbp())
    with pytest.raises(DataError, match="label"):
        of_partition(np.zeros(3, int), rows, GAUSSIAN, jax.random.key(0))
    state = of_partition(np.arange(12) % 2, rows, GAUSSIAN, jax.random.key(0))
    with pytest.raises(DataError, match="same data"):
        Correlated(rows_of(rows=5), GAUSSIAN, DpIbp(), start=state)
    with pytest.raises(DataError, match="same likelihood"):
        Correlated(Rows((rows.values > 0) * 1.0, rows.seen), NoisyOr(), DpIbp(), start=state)
    several = state._replace(choice=state.choice | state.choice[::-1])
    with pytest.raises(DataError, match="row 0 has 2"):
        Correlated(rows, GAUSSIAN, DpIbp(), start=several)
    common = state._replace(menu=state.menu | (np.arange(8) < 2)[:, None] & (np.arange(8) < 2))
    with pytest.raises(DataError, match="in common"):
        Correlated(rows, GAUSSIAN, Partition(), start=common)
    with pytest.raises(ModelError, match="learned"):
        growth(DpIbp(mass=1.0), (10,), 10, jax.random.key(0))
    with pytest.raises(ModelError, match="increase"):
        growth(DpIbp(1.0, 1.0), (10, 5), 10, jax.random.key(0))

"""Samplers of matrices of trees, of known features, of counts and of kin: conditionals, Geweke's test, controls."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from geweke_of_features import geweke, prior_matrices
from three_leaves import PAIR, STAR

from cavity.factors.errors import DataError, ModelError, UnsupportedError
from cavity.models.buffet.chains import sample_features
from cavity.models.buffet.likelihoods import ExponentialGaussian, LaplaceICA, LinearGaussian, NoisyOr, PoissonGamma
from cavity.models.buffet.likelihoods.contract import Point, Rows
from cavity.models.buffet.samplers.accelerated import accelerated
from cavity.models.buffet.samplers.births import given_rows
from cavity.models.buffet.samplers.law import Law, OfRow
from cavity.models.buffet.samplers.sampler import compiled
from cavity.models.buffet.samplers.semi_collapsed import semi_collapsed
from cavity.models.buffet.samplers.slices import slices
from cavity.models.buffet.samplers.state import State
from cavity.models.buffet.samplers.uncollapsed import uncollapsed
from cavity.models.buffet.structured import (
    BetaProcess,
    BetaProcessLaw,
    CausedBits,
    CountLaw,
    GammaPoisson,
    MarkovLaw,
    PhylogeneticBuffet,
    PhylogeneticLaw,
    RelatedFactors,
    counted,
    sample_coalescent,
    shared_time,
)
from cavity.models.buffet.structured.coalescent_sampler import time_together
from cavity.models.trees.tree import Tree

GAUSSIAN = LinearGaussian(noise_precision=(4.0, 2.0), value_precision=(4.0, 4.0))
NOISY_OR = NoisyOr(quiet=(4.0, 2.0), attenuation=(2.0, 3.0), share=(3.0, 3.0))
EXPONENTIAL = ExponentialGaussian(noise_precision=(4.0, 2.0), rate=(4.0, 4.0))
RELATED = RelatedFactors((4.0, 2.0), (4.0, 4.0), relatives=3, first_variance=0.5, rate=2.0)
POISSON = PoissonGamma(base=(4.0, 4.0), shape=1.5, rate=(4.0, 4.0))
KIN = PhylogeneticLaw(PAIR, mass=(8.0, 8.0))
ATOMS = BetaProcessLaw(BetaProcess((0.2, 0.5, 0.7), concentration=1.5))
COUNTS = CountLaw(mass=(8.0, 8.0), precision=3.0)
MATRIX = np.array([[1, 1, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]], bool)


def state_of(matrix, mass=1.0):
    none = np.zeros((0, 0))
    return State(matrix, np.zeros((matrix.shape[1], 2)), none, {}, np.asarray(mass), np.ones(()))


def test_odds_on_a_tree_are_ratios_of_the_probability_of_the_matrix():
    prior = PhylogeneticBuffet(PAIR, 1.3)
    with jax.enable_x64(True):
        of_row = jax.jit(lambda row: KIN.of_row(row, jnp.asarray(MATRIX), state_of(MATRIX, 1.3))[:2])
        for row in range(3):
            found = OfRow(*of_row(row))
            with_it, without = MATRIX.copy(), MATRIX.copy()
            with_it[row], without[row] = True, False
            shared = without.any(axis=0)
            wanted = prior.log_rates(with_it[:, shared]) - prior.log_rates(without[:, shared])
            assert np.allclose(np.asarray(found.odds)[shared], wanted, rtol=0, atol=1e-10)
            assert np.isneginf(np.asarray(found.odds)[~shared]).all()
            assert np.isclose(found.rate, np.exp(prior.log_rates(np.eye(3, dtype=bool)[:, [row]])[0]), rtol=1e-10)


def test_odds_of_known_features_are_ratios_of_the_probability_of_the_matrix():
    prior, matrix = ATOMS.prior, MATRIX[:, :3]
    with jax.enable_x64(True):
        of_row = jax.jit(lambda row: ATOMS.of_row(row, jnp.asarray(matrix), state_of(matrix)).odds)
        for row in range(3):
            odds = of_row(row)
            for place in range(3):
                with_it, without = matrix.copy(), matrix.copy()
                with_it[row, place], without[row, place] = True, False
                wanted = prior.log_probability(with_it) - prior.log_probability(without)
                assert np.isclose(odds[place], wanted, rtol=0, atol=1e-10)


def test_branches_that_meet_at_the_root_make_the_draws_of_a_buffet():
    random = np.random.default_rng(0)
    rows = Rows(random.normal(size=(3, 2)), np.ones((3, 2), bool))
    state = state_of(np.pad(MATRIX, [(0, 0), (0, 4)]))._replace(
        values=random.normal(size=(8, 2)), numbers={"noise_precision": np.ones(()), "value_precision": np.ones(())}
    )
    for seed in range(6):
        found = [
            compiled(uncollapsed, LinearGaussian(1.0, 1.0), law)(jax.random.key(seed), rows, state).state
            for law in (PhylogeneticLaw(STAR, 1.0), Law(1.0))
        ]
        assert np.array_equal(found[0].active, found[1].active)
        assert np.allclose(found[0].values, found[1].values, rtol=0, atol=1e-9)


def test_time_together_is_that_of_the_prior():
    for number in range(5):
        genealogy = sample_coalescent(4, jax.random.key(number))
        with jax.enable_x64(True):
            found = time_together(jnp.asarray(genealogy.pairs), jnp.asarray(genealogy.ages))
        assert np.allclose(found, shared_time(genealogy), rtol=0, atol=1e-12)


CAUSED = CausedBits((0.3,), 2.0, 0.1)


@pytest.mark.parametrize(
    ("likelihood", "data", "value_of", "log_prior"),
    [
        (ExponentialGaussian(1.5, 0.8), [1.1, 0.2, 2.0], np.exp, lambda z, a: z - 0.8 * a),
        (PoissonGamma(0.5, 1.5, 0.8), [2.0, 1.0, 4.0], np.exp, lambda z, a: 1.5 * z - 0.8 * a),
        # The weight w of odds exp(z) is Beta(0.6, 2.4), and its value is -log(1 - w).
        (CAUSED, [1.0, 0.0, 1.0], lambda z: np.logaddexp(0.0, z), lambda z, a: 0.6 * (z - a) - 2.4 * a),
    ],
    ids=["exponential", "counts", "reasons"],
)
def test_values_of_what_rows_have_several_times_are_those_of_quadrature(likelihood, data, value_of, log_prior):
    rows, times = Rows(np.array(data)[:, None], np.ones((3, 1), bool)), np.array([[2.0], [1.0], [3.0]])
    with jax.enable_x64(True):
        numbers, place = likelihood.draw_numbers(jax.random.key(0)), jnp.ones((1, 1))

        def step(values, key):
            return likelihood.update(
                key, rows, Point(jnp.asarray(times > 0.0), values, jnp.asarray(times), numbers)
            ).values

        def walk(key):
            return jax.lax.scan(lambda now, key: (step(now, key),) * 2, place, jax.random.split(key, 60))[1][20:]

        found = np.exp(-jax.jit(jax.vmap(walk))(jax.random.split(jax.random.key(1), 500))).mean(axis=(1, 2, 3))
        z = np.linspace(-25.0, 6.0, 3000)
        value = value_of(z)
        entries = likelihood.log_entry(rows.values, times * value, numbers).sum(axis=0)
    weight = np.exp(np.asarray(entries) + log_prior(z, value))
    wanted = weight @ np.exp(-value) / weight.sum()
    assert abs(found.mean() - wanted) < 4.0 * found.std() / np.sqrt(len(found))


def on_a_tree(law, random, mass, concentration, rows, places):
    found = np.zeros((len(mass), rows, places), bool)
    for one, own in zip(found, mass, strict=True):
        drawn = PhylogeneticBuffet(law.tree, own).sample(jax.random.key(int(random.integers(2**31))))
        one[:, : drawn.shape[1]] = drawn
    return found


def by_atoms(law, random, mass, concentration, rows, places):
    weights = random.beta(*law.prior.shapes, (len(mass), 1, places))
    return random.random((len(mass), rows, places)) < weights


def several_times(law, random, mass, concentration, rows, places):
    found = np.zeros((len(mass), rows, places), int)
    for one, own in zip(found, mass, strict=True):
        drawn = GammaPoisson(own, law.precision).sample(rows, jax.random.key(int(random.integers(2**31))))
        one[:, : drawn.shape[1]] = drawn
    return found


def scores_of(sweep, likelihood, law, matrices, chains=400, steps=25):
    return geweke(
        sweep, likelihood, law, chains=chains, steps=steps, places=law.features or 16, missing=[(0, 1)], seed=1,
        matrices=matrices,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sweep", "likelihood", "law", "matrices"),
    [
        pytest.param(uncollapsed, GAUSSIAN, KIN, on_a_tree, id="tree"),
        pytest.param(semi_collapsed, GAUSSIAN, KIN, on_a_tree, id="tree semi-collapsed"),
        pytest.param(given_rows, NOISY_OR, KIN, on_a_tree, id="tree of booleans"),
        pytest.param(uncollapsed, NOISY_OR, ATOMS, by_atoms, id="atoms"),
        pytest.param(uncollapsed, RELATED, Law((8.0, 4.0), features=3), prior_matrices, id="genealogy"),
        pytest.param(counted, GAUSSIAN, COUNTS, several_times, id="counts"),
        pytest.param(counted, EXPONENTIAL, COUNTS, several_times, id="counts not negative"),
        pytest.param(counted, POISSON, COUNTS, several_times, id="counts of counts"),
        pytest.param(counted, NOISY_OR, COUNTS, several_times, id="counts of booleans"),
    ],
)
def test_sweeps_leave_the_law_of_model_and_data_as_it_is(sweep, likelihood, law, matrices):
    scores = scores_of(sweep, likelihood, law, matrices)
    assert max(abs(score) for score in scores.values()) < 4.0, scores


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "taken_for", "matrices"),
    [
        pytest.param(KIN, PhylogeneticLaw(STAR, mass=(8.0, 8.0)), on_a_tree, id="no kin"),
        pytest.param(ATOMS, BetaProcessLaw(BetaProcess((0.4, 0.4, 0.4), 1.5)), by_atoms, id="equal atoms"),
        pytest.param(COUNTS, CountLaw(mass=(8.0, 8.0), precision=2.0), several_times, id="more counts"),
    ],
)
def test_sweeps_of_another_law_are_found(law, taken_for, matrices):
    def wrong(key, rows, state, likelihood, law):
        return taken_for.sweeps[0](key, rows, state, likelihood, taken_for)

    scores = scores_of(wrong, GAUSSIAN, law, matrices)
    assert max(abs(score) for score in scores.values()) > 6.0, scores


@pytest.mark.slow
def test_weights_of_less_variance_are_found():
    def wrong(key, rows, state, likelihood, law):
        return uncollapsed(key, rows, state, dataclasses.replace(likelihood, first_variance=0.05, rate=0.05), law)

    scores = scores_of(wrong, RELATED, Law((8.0, 4.0), features=3), prior_matrices)
    assert max(abs(score) for score in scores.values()) > 6.0, scores


@pytest.mark.parametrize(
    ("law", "rows"),
    [(KIN, 3), (ATOMS, 6), (COUNTS, 6), (MarkovLaw(), 6), (MarkovLaw(features=2), 6)],
    ids=["tree", "atoms", "counts", "chains", "finite chains"],
)
def test_chains_of_every_law_have_a_density(law, rows):
    data = np.random.default_rng(0).normal(size=(rows, 2))
    found = sample_features(data, jax.random.key(0), 3, LinearGaussian(), law, chains=1)
    assert found["log_joint"].shape == (1, 3)
    assert np.isfinite(found["log_joint"]).all()
    if law is COUNTS:
        counts = np.where(found["active"] > 0, found["weights"], 0.0)[0, -1]
        drawn = found.draw(0, -1)
        assert np.array_equal(drawn.weights, counts[:, counts.any(axis=0)])
        assert np.array_equal(drawn.weights > 0.0, drawn.active)
        wanted = GammaPoisson(found["mass"][0, -1], 3.0).log_probability(counts)
        assert np.isclose(found["log_joint"][0, -1] - found["log_likelihood"][0, -1], wanted, rtol=1e-10)


def test_a_chain_goes_on_under_its_own_tree_alone(tmp_path):
    """Trees that print alike: the first branch points are of one time, and the leaves below them are not."""
    data, other = np.random.default_rng(0).normal(size=(3, 2)), Tree(np.array([4, 3, 3, 4, -1]), PAIR.depth)
    asked = {"chains": 1, "checkpoint": tmp_path / "chain", "progress": False}
    assert repr(other) == repr(PAIR)
    for draws in (1, 2):
        sample_features(data, jax.random.key(0), draws, GAUSSIAN, KIN, **asked)
    with pytest.raises(DataError, match="another"):
        sample_features(data, jax.random.key(0), 2, GAUSSIAN, dataclasses.replace(KIN, tree=other), **asked)


def test_what_is_not_for_a_law_is_refused():
    data = np.ones((3, 2))
    for likelihood, law, sweep in ((GAUSSIAN, KIN, accelerated), (GAUSSIAN, MarkovLaw(), uncollapsed),
                                   (LaplaceICA(), COUNTS, None), (LaplaceICA(), Law(), given_rows),
                                   (RELATED, Law(), None), (RELATED, Law(features=3), slices)):  # fmt: skip
        with pytest.raises(UnsupportedError):
            sample_features(data, jax.random.key(0), 1, likelihood, law, sweep=sweep, chains=1)
    for likelihood, law, sweep, said in (
        (GAUSSIAN, PhylogeneticBuffet(PAIR, 1.0), None, "for which there is no sampler"),
        (GAUSSIAN, CountLaw, None, "for which there is no sampler"),
        (GAUSSIAN, Law(), "uncollapsed", "is a sweep itself"),
        ("linear", Law(), None, "likelihood= is one of"),
    ):
        with pytest.raises(ModelError, match=said):
            sample_features(data, jax.random.key(0), 1, likelihood, law, sweep=sweep, chains=1)
    with pytest.raises(DataError, match="3 leaves, and the data have 4 rows"):
        sample_features(np.ones((4, 2)), jax.random.key(0), 1, GAUSSIAN, KIN, chains=1)
    for make in (
        lambda: PhylogeneticLaw(PAIR, 0.0), lambda: CountLaw(precision=-1.0), lambda: CountLaw(mass="many"),
        lambda: BetaProcessLaw(BetaProcess((0.5,), mass=1.0)), lambda: RelatedFactors(relatives=1),
        lambda: RelatedFactors(rate=(1.0, 1.0)), lambda: PhylogeneticLaw("tree"), lambda: BetaProcessLaw(0.3),
        lambda: BetaProcess(0.3),
    ):  # fmt: skip
        with pytest.raises(ModelError):
            make()

"""Chains over trees: known numbers without data, Geweke's test of every sampler, and that the test can fail."""

import dataclasses

import geweke
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import dense_evidence
from scipy.stats import multivariate_normal

from cavity.engine.support.machine_code import Kernel, native
from cavity.factors.errors import ModelError
from cavity.models.trees.backend import NAMES, kernels
from cavity.models.trees.chains.hyper import Hyperpriors
from cavity.models.trees.chains.sampler import Sampler
from cavity.models.trees.chains.settings import Settings
from cavity.models.trees.divergence import Divergence
from cavity.models.trees.jax_kernels import moves
from cavity.models.trees.likelihoods.locations import column_evidence, draw_locations
from cavity.models.trees.likelihoods.table import Data
from cavity.models.trees.mcmc import sample_posterior
from cavity.models.trees.prior import TreePrior, log_prior
from cavity.models.trees.prior import tables as tables_of
from cavity.models.trees.shapes.arrays import Leaves, pack, unpack
from cavity.models.trees.shapes.sample import sample_data, sample_tree
from cavity.models.trees.tree import Tree

KEY = jax.random.key(0)
DDT, PYDT = TreePrior(), TreePrior(1.0, 0.2)


def mean_and_error(draws):
    draws = np.asarray(draws, float)
    batches = draws[: len(draws) // 50 * 50].reshape(50, -1).mean(axis=1)
    return draws.mean(), batches.std(ddof=1) / np.sqrt(50)


# trees without data ---------------------------------------------------------------------------------------------------


def without_data(subtree_moves, prior, n, draws, share, depth_moves=None):
    """Of a chain over trees without data: whether the top parts 2 and 2 leaves, its time, how many branch points."""
    arrays, table = pack(sample_tree(prior, n, KEY)), tables_of(prior, n)
    leaves = Leaves(np.zeros((n, 2)), np.full((n, 1), np.inf))
    balanced, top_time, points = [], [], []
    for seed in range(draws):
        arrays, *_ = subtree_moves(arrays, leaves, table, seed, 6, share)
        if depth_moves is not None:
            arrays = depth_moves(arrays, leaves, table, 10**9 + seed)  # the same seed can mean the same numbers
        top = np.flatnonzero(arrays.parent == 2 * n - 1)[0]
        balanced.append(np.array_equal(arrays.count[arrays.parent == top], [2, 2]))
        top_time.append(-np.expm1(-arrays.depth[top]))
        points.append((arrays.degree >= 2).sum())
    return tuple(mean_and_error(found) for found in (balanced, top_time, points))


def near(found, exact, errors=3.0):
    return abs(found[0] - exact) < errors * found[1]


LONG = pytest.param(100_000, marks=pytest.mark.slow)
ENGINES = [("jax", 0.0), ("jax", 0.5), ("jax", 1.0), ("numba", 0.0), ("numba", 1.0)]


def engine_of(backend):
    if backend == "numba":
        pytest.importorskip("numba")
    return kernels(backend)


@pytest.mark.parametrize(("backend", "share"), ENGINES)
@pytest.mark.parametrize("draws", [4000, LONG])
def test_dirichlet_diffusion_tree_without_data(backend, share, draws):
    engine = engine_of(backend)
    balanced, top_time, points = without_data(engine.subtree_moves, DDT, 4, draws, share, engine.depth_moves)
    assert near(balanced, 3 / 11)
    assert near(top_time, 6 / 17)
    assert points[0] == 3.0


@pytest.mark.parametrize(("backend", "share"), ENGINES)
@pytest.mark.parametrize("draws", [4000, LONG])
def test_pitman_yor_diffusion_tree_without_data(backend, share, draws):
    engine = engine_of(backend)
    _, top_time, points = without_data(engine.subtree_moves, PYDT, 6, draws, share, engine.depth_moves)
    # Exact: 1 / (1 + H(5)); the number of branch points is the mean of a long run of the sequential process.
    assert near(top_time, 1.0 / (1.0 + tables_of(PYDT, 6).harmonic[5]))
    assert abs(points[0] - 3.285) < 3.0 * np.hypot(points[1], 0.006)


@pytest.mark.slow
def test_the_published_acceptance_of_subtree_moves_is_wrong_and_found_out(monkeypatch):
    """The ratio of evidences is right for single leaves only: here the subtree counts as one leaf in the prior."""

    def published(rest, tables, place):
        prior = moves._prior_gain(rest.arrays, tables, place, jnp.inf, 1)
        return prior + moves._evidence_gain(rest, place)

    wrong = native(lambda rest, tables, new, old: moves._change(lambda at: published(rest, tables, at), new, old))
    monkeypatch.setattr(moves, "gained_", wrong)
    # A function of its own: JAX would remember what it made of the right one.
    kernel = Kernel(lambda *arguments: moves.subtree_moves_(*arguments))
    balanced, top_time, _ = without_data(kernel, DDT, 4, 12_000, 0.0)
    assert not near(balanced, 3 / 11)
    assert not near(top_time, 6 / 17, 4.0)


# the joint distribution -----------------------------------------------------------------------------------------------

PRIORS = Hyperpriors(
    precision=(3.0, 2.0), noise=(3.0, 1.0), rate=(4.0, 4.0), concentration=(3.0, 2.0), discount=(2.0, 2.0)
)
BASE = Settings(learn=frozenset(), priors=PRIORS, start="prior", share_scored=0.5)
NUMBERS = np.array([[0.3, -1.0], [1.2, 0.4], [-0.5, 0.8], [0.1, 0.2]])
GAP = np.where([[False, False], [True, False], [False, False], [False, False]], np.nan, NUMBERS)
MIXED = np.column_stack([GAP[:, 0], [0.0, 1.0, 1.0, 0.0]])
SAMPLERS = {
    "Dirichlet, exact leaves, two levels of precisions": (
        Data(NUMBERS),
        {"learn": {"variance", "rate"}, "per_column": True, "shared_rate": (3.0, 2.0)},
    ),
    "Pitman-Yor, noise": (
        Data(NUMBERS),
        {
            "learn": {"variance", "noise", "rate", "concentration", "discount"},
            "prior": TreePrior(1.0, 0.3),
            "noise": 0.3,
        },
    ),
    "Neal's divergence, a binary column, a gap": (
        Data(MIXED, np.array([False, True])),
        {
            "learn": {"variance", "constant", "rate", "square"},
            "prior": TreePrior(divergence=Divergence(1.0, 0.5, 0.5)),
            "per_column": True,
        },
    ),
    "Pitman-Yor, relative noise, an imputed gap": (
        Data(GAP),
        {
            "learn": {"variance", "noise", "concentration"},
            "prior": TreePrior(1.0, 0.3),
            "noise": 0.3,
            "relative": True,
            "impute": True,
        },
    ),
}


SHORT = [(name, "jax", 700) for name in SAMPLERS] + [("Pitman-Yor, noise", "numba", 700)]
FULL = [pytest.param(name, backend, 100_000, marks=pytest.mark.slow) for name in SAMPLERS for backend in NAMES]


@pytest.mark.parametrize(("name", "backend", "draws"), SHORT + FULL)
def test_joint_distribution(name, backend, draws):
    data, changes = SAMPLERS[name]
    sampler = Sampler(data, dataclasses.replace(BASE, **changes), engine_of(backend))
    found = geweke.scores(sampler, jax.random.key(7), draws)
    assert len(found) >= 10
    assert max(abs(score) for score in found.values()) < 4.0, found


def test_joint_distribution_notices_a_wrong_update(monkeypatch):
    data, changes = SAMPLERS["Dirichlet, exact leaves, two levels of precisions"]
    sampler = Sampler(data, dataclasses.replace(BASE, **changes))
    column = sampler.draw_scales
    monkeypatch.setattr(
        sampler, "draw_scales", lambda state, random: column(state._replace(values=0.8 * state.values), random)
    )
    found = geweke.scores(sampler, jax.random.key(7), 700)
    assert max(abs(score) for score in found.values()) > 6.0


# messages -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entries", [1, 3])
def test_evidence_of_columns(entries):
    random = np.random.default_rng(1)
    tree = sample_tree(PYDT, 7, KEY)
    variance = random.gamma(1.0, size=(7, entries))
    if entries == 3:
        variance[2, 0], variance[4] = np.inf, np.inf
    leaves = Leaves(random.normal(size=(7, 3)), variance)
    arrays = pack(tree)
    columns = column_evidence(arrays, kernels("jax").sweep(arrays, leaves))
    for column in range(3):
        one = Leaves(leaves.mean[:, [column]], np.broadcast_to(variance, (7, 3))[:, [column]])
        assert columns.log_evidence[column] == pytest.approx(dense_evidence(tree, one), abs=1e-10)
        scaled = Leaves(2.0 * one.mean, one.variance)
        known = np.isfinite(one.variance[:, 0])
        covariance = tree.shared_time[np.ix_(known, known)] + np.diag(one.variance[known, 0])
        expected = one.mean[known, 0] @ np.linalg.solve(covariance, one.mean[known, 0])
        assert columns.quadratic[column] == pytest.approx(expected, rel=1e-10)
        assert dense_evidence(tree, scaled) == pytest.approx(
            columns.log_evidence[column] - 1.5 * columns.quadratic[column], abs=1e-9
        )


def test_draws_of_locations_have_the_exact_posterior():
    random = np.random.default_rng(2)
    tree = sample_tree(DDT, 5, KEY)
    leaves = Leaves(random.normal(size=(5, 1)), np.array([[0.3], [0.0], [np.inf], [0.1], [1.0]]))
    arrays = pack(tree)
    messages = kernels("jax").sweep(arrays, leaves)
    draws = np.array([draw_locations(arrays, messages, random)[:5, 0] for _ in range(20_000)])
    known = np.isfinite(leaves.variance[:, 0])
    prior = tree.shared_time
    gain = prior[:, known] @ np.linalg.inv(prior[np.ix_(known, known)] + np.diag(leaves.variance[known, 0]))
    mean, covariance = gain @ leaves.mean[known, 0], prior - gain @ prior[known]
    error = np.sqrt(np.diag(covariance).max() / len(draws))
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=4.5 * error)
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.05 * np.abs(covariance).max())
    assert draws[:, 1] == pytest.approx(leaves.mean[1, 0])


def test_log_joint_is_in_units_of_the_data():
    data = Data(NUMBERS)
    sampler = Sampler(data, dataclasses.replace(BASE, variance=2.5, noise=0.4))
    state = sampler.init(KEY)
    tree = unpack(state.arrays)
    covariance = 2.5 * tree.shared_time + 0.4 * np.eye(4)
    expected = sum(multivariate_normal.logpdf(column, np.zeros(4), covariance) for column in NUMBERS.T)
    assert sampler.log_joint(state) == pytest.approx(expected + log_prior(tree, DDT), abs=1e-9)


# use ------------------------------------------------------------------------------------------------------------------


def small_chains(key=KEY, draws=12, **options):
    settings = dataclasses.replace(BASE, learn={"variance", "rate"})
    return sample_posterior(Data(NUMBERS), key, draws, settings, chains=2, **options)


def test_same_key_same_draws_and_a_stopped_chain_goes_on(tmp_path):
    whole = small_chains()
    again = small_chains()
    for name, draws in whole.chains.draws.items():
        np.testing.assert_array_equal(draws, again.chains[name])
    file = tmp_path / "trees.zip"
    small_chains(draws=5, checkpoint=file)
    resumed = small_chains(checkpoint=file)
    for name, draws in whole.chains.draws.items():
        np.testing.assert_array_equal(draws, resumed.chains[name])
    other = small_chains(jax.random.key(1))
    assert not np.array_equal(other.chains["depth"], whole.chains["depth"])


def test_draws_give_trees_and_predictions():
    found = small_chains()
    tree = found.tree(1, 7)
    np.testing.assert_array_equal(
        np.sort(tree.depth), np.sort(found.chains["depth"][1, 7][found.chains["parent"][1, 7] >= 0])
    )
    fitted = found.fitted(1, 7)
    assert fitted.scale == pytest.approx(np.sqrt(found.chains["variance"][1, 7, 0]))
    state = found.sampler.state_of(found.chains, 1, 7)
    assert found.sampler.log_joint(state) == pytest.approx(found.chains["log_joint"][1, 7], abs=1e-9)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_chains_from_the_prior_meet():
    arviz = pytest.importorskip("arviz")
    _, values = sample_data(DDT, 6, 2, KEY)
    settings = dataclasses.replace(BASE, learn={"variance", "rate"})
    found = sample_posterior(Data(values), KEY, 250, settings, chains=4, warmup=50).to_arviz()
    assert set(found["posterior"].data_vars) == {"log_joint", "variance", "rate", "top_time"}
    rhat = arviz.rhat(found)
    assert float(rhat["log_joint"]) < 1.1
    assert float(rhat["variance"].max()) < 1.05
    assert float(arviz.ess(found)["top_time"]) > 50


def test_settings_that_cannot_be():
    with pytest.raises(ModelError, match="What can be sampled"):
        Settings(learn={"temperature"})
    with pytest.raises(ModelError, match="concentration starts"):
        Settings(learn={"concentration"})
    with pytest.raises(ModelError, match="noise starts"):
        Settings(learn={"noise"})
    with pytest.raises(ModelError, match="share_scored"):
        Settings(share_scored=1.5)
    with pytest.raises(ModelError, match="all columns are binary"):
        Sampler(Data(np.array([[0.0, 1.0], [1.0, 0.0]]), True), Settings(noise=0.1))


@pytest.mark.parametrize("backend", NAMES)
def test_depths_beyond_the_smallest_numbers(backend):
    """Large concentrations part late: a star whose 1 - time is zero in doubles has a density, and is left."""
    tree = Tree(np.array([4, 4, 4, 4, -1]), np.array([np.inf] * 4 + [3000.0]))
    leaves = Leaves(np.arange(8.0).reshape(4, 2), np.full((4, 1), 0.5))
    table = tables_of(TreePrior(5.4, 0.3), 4)
    engine = engine_of(backend)
    assert np.isfinite(engine.joint_gradient(pack(tree), leaves, table)[0])
    arrays, seen = pack(tree), []
    for seed in range(40):
        arrays = engine.depth_moves(arrays, leaves, table, 2 * seed)
        arrays, _, _ = engine.subtree_moves(arrays, leaves, table, 2 * seed + 1, 20, 0.5)
        seen.append(unpack(arrays).n_nodes)
    assert np.asarray(arrays.depth)[4] != 3000.0
    assert max(seen) > 5

"""Moves of a tree in `cv.sample`: their stationary law by known numbers of the prior, and all trees of few leaves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from enumeration import enumerated

import cavity as cv
from cavity.models.diffusion_tree import diffusion_tree, gaussian_leaves
from cavity.models.trees import (
    TREE,
    Divergence,
    TreePrior,
    kernels,
    log_prior,
    pack,
    sample_tree,
    subtree_moves,
    tables,
)
from cavity.models.trees.likelihoods.leaves import to_leaves
from cavity.models.trees.likelihoods.table import Data
from cavity.models.trees.moves import Hanging, counts, log_prior_of


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def hanging(tree):
    return Hanging(jnp.asarray(tree.parent), jnp.asarray(tree.depth[tree.n_leaves :]))


@pytest.mark.parametrize(
    "prior",
    [TreePrior(), TreePrior(-0.6, 0.3), TreePrior(1.0, -0.5), TreePrior(divergence=Divergence(1.0, 0.5, 0.2))],
)
@pytest.mark.parametrize("leaves", [2, 5, 9])
def test_the_prior_of_a_moved_tree_is_that_of_trees(prior, leaves):
    tree = sample_tree(prior, leaves, jax.random.key(leaves))
    found = log_prior_of(hanging(tree), tables(prior, leaves))
    assert float(found) == pytest.approx(log_prior(tree, prior), abs=1e-10)


def walked(moves, tree, steps, key, wrong=False):
    """Chains of the prior alone by proposals of all moves: shares of balanced trees of four leaves, and top times."""

    def score(tree):
        return log_prior_of(tree, tables(TreePrior(), tree.leaves))

    def accepted(move, tree, key):
        keys = jax.random.split(key)
        other, ratio = move.propose(keys[0], tree, score)
        gain = score(other) - score(tree) + (0.0 if wrong else ratio)
        taken = jnp.log(jax.random.uniform(keys[1])) < gain
        return jax.tree.map(lambda new, old: jnp.where(taken, new, old), other, tree)

    def step(tree, key):
        for i, move in enumerate(moves):
            tree = accepted(move, tree, jax.random.fold_in(key, i))
        balanced = jnp.sum(counts(tree) == 2) == 2
        return tree, (balanced, 1.0 - jnp.exp(-jnp.min(tree.depth)))

    def chain(key):
        return jax.lax.scan(step, tree, jax.random.split(key, steps))[1]

    return [np.asarray(part)[:, 200:] for part in jax.jit(jax.vmap(chain))(jax.random.split(key, 20))]


@pytest.mark.parametrize("wrong", [False, True])
def test_chains_of_the_prior_have_its_known_numbers(wrong):
    """P(balanced) = 3 / 11, E t of the top = 0.3529. The control leaves out the ratio of proposals, and fails."""
    tree = hanging(sample_tree(TreePrior(), 4, jax.random.key(0)))
    balanced, top = walked(subtree_moves(), tree, 3000, jax.random.key(1), wrong)
    close = []
    for found, exact in ((balanced, 3.0 / 11.0), (top, 0.3529)):
        means = found.mean(axis=1)
        close.append(abs(means.mean() - exact) < 3.5 * means.std(ddof=1) / np.sqrt(len(means)))
    assert all(close) != wrong


def clades(parent, above):
    """The sets of leaves below the branch points, of arrays as the model has them."""
    below = np.eye(len(parent), dtype=bool)
    for _ in parent:
        below = below | below[parent]
    return frozenset(tuple(np.flatnonzero(below[above, point])) for point in range(len(parent)))


def test_trees_of_gaussian_leaves_against_all_trees():
    values = np.array([[1.0], [1.3], [-0.8], [-0.2]])
    model = diffusion_tree(1, gaussian_leaves(0.1), tree="moved")
    found = cv.sample(
        model,
        {"y": values, "variance": np.ones(1)},
        draws=1500,
        warmup=100,
        moves={"parent": subtree_moves()},  # which says that all of TREE changes
        collapse=["location", "tip"],
        sizes={"branch point": 3},
        progress=False,
    )
    drawn = [
        [clades(*pair) for pair in zip(*chain, strict=True)]
        for chain in zip(found.draws["parent"], found.draws["above"], strict=True)
    ]
    exact = enumerated(to_leaves(Data(values), 1.0, 0.1)[0], TreePrior())
    for tree, probability in zip(exact.trees, exact.probability, strict=True):
        own = frozenset(tuple(np.flatnonzero(tree.members[v])) for v in range(4, tree.n_nodes))
        shares = np.array([np.mean([each == own for each in chain]) for chain in drawn])
        assert shares.mean() == pytest.approx(probability, abs=0.03)


def rate_posterior(values, noise, size=400_000):
    """Mean rate, mean precision and share of the tree in which leaf 2 parts first, of three leaves with one column: by
    draws of the prior with weights."""
    random = np.random.default_rng(0)
    rate, precision = random.exponential(size=(2, size))
    first = random.exponential(1.0 / (1.5 * rate))
    times = -np.expm1(-np.array([first, first + random.exponential(1.0 / rate)]))
    odd = random.integers(0, 3, size)
    covariance = np.empty((size, 3, 3))
    for i in range(3):
        for j in range(3):
            shared = np.where((odd == i) | (odd == j), times[0], times[1]) if i != j else 1.0
            covariance[:, i, j] = shared / precision + noise * (i == j)
    square = np.einsum("i,nij,j->n", values, np.linalg.inv(covariance), values)
    log_weight = -0.5 * (square + np.linalg.slogdet(covariance)[1])
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    return weight @ rate, weight @ precision, weight[odd == 2].sum()


@pytest.mark.slow
def test_rate_and_precision_of_a_moved_tree_against_weighted_draws_of_the_prior():
    values = np.array([0.9, 1.0, -1.2])
    found = cv.sample(
        diffusion_tree(1, gaussian_leaves(0.05), variance="shared", rate="learned", tree="moved"),
        {"y": values[:, None]},
        draws=2500,
        moves={TREE: subtree_moves(times=4)},
        collapse=["location", "tip"],
        sizes={"branch point": 2},
        progress=False,
    )
    rate, precision, share = rate_posterior(values, 0.05)
    assert abs(rate - 1.0) > 0.15 < abs(precision - 1.0)  # else the prior would do
    assert found.draws["rate"].mean() == pytest.approx(rate, abs=0.05)
    assert found.draws["precision"].mean() == pytest.approx(precision, abs=0.05)
    pairs = zip(found.draws["parent"].reshape(-1, 2), found.draws["above"].reshape(-1, 3), strict=True)
    own = frozenset({(0, 1, 2), (0, 1)})
    assert np.mean([clades(*pair) == own for pair in pairs]) == pytest.approx(share, abs=0.03)


def poisson_posterior(counts_, variance, size=300_000):
    """Which of three leaves parts first, and the mean leaf, by draws of the prior with weights."""
    random = np.random.default_rng(0)
    first = random.exponential(1.0 / 1.5, size)
    times = -np.expm1(-np.array([first, first + random.exponential(1.0, size)]))
    odd = random.integers(0, 3, size)
    steps = random.normal(size=(5, size)) * np.sqrt(variance)
    top = steps[0] * np.sqrt(times[0])
    x = top + steps[1] * np.sqrt(times[1] - times[0]) + steps[2:] * np.sqrt(1.0 - times[1])
    x[odd, np.arange(size)] = top + steps[2 + odd, np.arange(size)] * np.sqrt(1.0 - times[0])
    log_weight = (counts_ * x - np.exp(x)).sum(axis=0)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    return np.array([weight[odd == leaf].sum() for leaf in range(3)]), x @ weight


@pytest.mark.slow
def test_trees_of_counts_against_weighted_draws_of_the_prior():
    observed = np.array([[9], [6], [0]])
    model = diffusion_tree(1, lambda m, x: m.random("y", cv.poisson(cv.exp(x))), tree="moved")
    found = cv.sample(
        model,
        {"y": observed, "variance": np.full(1, 2.0)},
        draws=1500,
        moves={TREE: subtree_moves()},
        collapse=["location"],
        sizes={"branch point": 2},
        progress=False,
    )
    shares, mean = poisson_posterior(observed, 2.0)
    pairs = zip(found.draws["parent"].reshape(-1, 2), found.draws["above"].reshape(-1, 3), strict=True)
    drawn = [clades(*pair) for pair in pairs]
    for leaf in range(3):
        own = frozenset({(0, 1, 2), tuple(other for other in range(3) if other != leaf)})
        assert np.mean([each == own for each in drawn]) == pytest.approx(shares[leaf], abs=0.04)
    np.testing.assert_allclose(found.draws["tip"].mean(axis=(0, 1))[:, 0], mean, atol=0.12)


def test_what_moves_of_trees_refuse():
    with pytest.raises(cv.UnsupportedError, match="binary"):
        subtree_moves(TreePrior(1.0))
    with pytest.raises(cv.ModelError, match="whole number"):
        subtree_moves(times=0)
    with pytest.raises(cv.ModelError, match="given"):
        diffusion_tree(1, tree="drawn")
    model = diffusion_tree(1, tree="moved")
    data = {"y": np.zeros((3, 1)), "variance": np.ones(1)}
    with pytest.raises(cv.ModelError, match="in this order"):
        cv.sample(model, data, moves={TREE[::-1]: subtree_moves()}, sizes={"branch point": 2})
    with pytest.raises(cv.ModelError, match="Leave parent out"):
        cv.sample(model, {**data, "parent": np.zeros(2, int)}, moves={TREE: subtree_moves()}, sizes={"branch point": 2})


def test_the_score_of_a_tree_is_the_log_joint_density_of_the_kernels():
    """Up to a constant: locations integrated by the engine's derivatives, and by one sweep of messages."""
    from cavity.engine.sampling.choose import start
    from cavity.engine.sampling.collapse import collapsed
    from cavity.engine.sampling.restructure import score_of
    from cavity.engine.sampling.sample import joint_of

    values = np.random.default_rng(3).normal(size=(5, 2))
    model = diffusion_tree(2, gaussian_leaves(0.1), tree="moved")
    data = {"y": values, "variance": np.full(2, 1.5)}
    joint = joint_of(model, data, {"branch point": 4}, {TREE: subtree_moves()}, 0)
    starts = [start(joint, jax.random.key(i)) for i in range(3)]
    left, _ = collapsed(joint, ["location", "tip"], starts, jax.random.key(0))
    score = score_of(left, left.structures[0], starts[0], left.arrays)
    leaves, jacobian = to_leaves(Data(values), 1.5, 0.1)
    gaps = []
    for seed in range(4):
        tree = sample_tree(TreePrior(), 5, jax.random.key(seed))
        log_joint, _, _ = kernels().joint_gradient(pack(tree), leaves, tables(TreePrior(), 5))
        gaps.append(float(score(hanging(tree))) - log_joint - jacobian)
    np.testing.assert_allclose(gaps, 0.0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "likelihood",
    [
        lambda m, x: m.random("y", cv.student_t(4.0, x, 0.5)),
        lambda m, x: m.random("y", cv.bernoulli(cv.probit(x))),
        gaussian_leaves(),
    ],
)
def test_a_tree_under_another_likelihood_is_sampled(likelihood):
    values = np.array([[1.0], [1.0], [0.0]])
    found = cv.sample(
        diffusion_tree(1, likelihood, tree="moved"),
        {"y": values, "variance": np.ones(1)},
        draws=20,
        warmup=10,
        chains=2,
        moves={TREE: subtree_moves(times=2)},
        collapse=["location"],
        sizes={"branch point": 2},
        progress=False,
    )
    assert np.isfinite(found.draws["tip"]).all()
    assert len(np.unique(found.draws["first"])) > 5

"""One definition of Gaussian messages on trees: the kernels and the engine's blocks compute what it says."""

import importlib

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from hypothesis import strategies as st

from cavity.engine.blocks.chain import gaussian_chain, trees
from cavity.models.trees.messages import log_normal, meet, sweep
from cavity.models.trees.shapes.arrays import Leaves, pack
from cavity.models.trees.tree import ORIGIN

SHAPES = ((1, 2, 1), (7, 3, 1), (12, 3, 3))  # leaves, columns, variances
ANY = (0.0, 0.3, np.inf)
trees_of_any_arity = hypothesis.given(seed=st.integers(0, 2**32 - 1), shape=st.sampled_from(SHAPES))
settings = hypothesis.settings(max_examples=40, deadline=None, derandomize=True)


def case(seed, shape, noise):
    n, columns, entries = shape
    random = np.random.default_rng(seed)
    tree = oracle.random_tree(random, n, many=random.uniform(0.0, 0.8))
    return tree, Leaves(random.normal(size=(n, columns)), random.choice(noise, size=(n, entries)))


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


@settings
@trees_of_any_arity
def test_the_evidence_is_that_of_the_dense_gaussian(seed, shape):
    tree, leaves = case(seed, shape, ANY)
    close(sweep(tree, leaves).log_evidence, oracle.dense_evidence(tree, leaves))


@pytest.mark.parametrize("backend", ["jax", "numba"])
@settings
@trees_of_any_arity
def test_kernels_give_the_messages_of_the_definition(backend, seed, shape):
    if backend == "numba":
        pytest.importorskip("numba")
    kernels = importlib.import_module(f"cavity.models.trees.{backend}_kernels")
    tree, leaves = case(seed, shape, ANY)
    wanted, found = sweep(tree, leaves), kernels.sweep(pack(tree), leaves)
    close(found.log_evidence, wanted.log_evidence)
    for which in ("up", "down"):
        variance = getattr(wanted, f"{which}_variance")
        close(getattr(found, f"{which}_variance")[: tree.n_nodes], variance)
        known = np.broadcast_to(np.isfinite(variance), (tree.n_nodes, shape[1]))  # without variance, any mean will do
        means = (getattr(of, f"{which}_mean")[: tree.n_nodes] for of in (found, wanted))
        close(*(np.where(known, mean, 0.0) for mean in means))


@jax.jit
def by_the_engine(parent, length, shift, precision):
    """Marginals and log Z of a tree block: every element is N(its parent, length), the root N(0, length)."""
    tree = trees.tree_of(parent)
    one = jnp.ones((1, 1, 1)) * jnp.where(tree.root, 0.0, 1.0)[:, None, None, None]
    none = jnp.zeros_like(one)
    links = gaussian_chain.LinearTransitions(one, none[:, 0], length[:, None, None, None], none, none[:, 0])
    known = trees.gaussian_messages(tree, links, precision[:, None, None], shift[:, None])
    above, log_z = gaussian_chain.given_parent(links, *known)
    mean, covariance = trees.gaussian_marginals(tree, above)
    return mean[:, 0], covariance[:, 0, 0], log_z.sum()


@settings
@trees_of_any_arity
def test_blocks_of_the_engine_give_its_marginals_and_evidence(seed, shape):
    tree, leaves = case(seed, shape, (0.1, 0.3, np.inf))
    parent = np.where(tree.parent == ORIGIN, np.arange(tree.n_nodes), tree.parent)
    precision = np.zeros((tree.n_nodes, shape[1]))
    precision[: tree.n_leaves] = 1.0 / leaves.variance
    shift = precision.copy()
    shift[: tree.n_leaves] *= leaves.mean
    with jax.enable_x64(True):
        mean, variance, log_z = map(np.asarray, by_the_engine(parent, tree.length, shift, precision))
    found = sweep(tree, leaves)
    above = found.down_variance + tree.length[:, None]
    at, spread = meet(found.down_mean, above, found.up_mean, found.up_variance)
    close(mean, at)
    close(variance, np.broadcast_to(spread, at.shape))
    own = log_normal(leaves.mean**2, np.broadcast_to(leaves.variance, leaves.mean.shape), shape[1]).sum()
    close(log_z + own, found.log_evidence)


def test_branches_may_have_variances_of_their_own():
    """Those of the tree, twice as wide, are the tree's in units of half the variance."""
    tree, leaves = case(5, (7, 3, 1), (0.3,))
    wide = sweep(tree, Leaves(leaves.mean, 2.0 * leaves.variance), 2.0 * tree.length)
    scaled = sweep(tree, Leaves(leaves.mean / np.sqrt(2.0), leaves.variance))
    close(wide.log_evidence, scaled.log_evidence - 0.5 * leaves.mean.size * np.log(2.0))
    close(wide.up_mean, np.sqrt(2.0) * scaled.up_mean)
    close(wide.down_variance, 2.0 * scaled.down_variance)

"""All divergence times at once: never worse than the start, a maximum, and the measure that is asked for."""

import numpy as np
import pytest
from oracle import dense_evidence, log_joint, random_tree

from cavity.factors.errors import DataError, UnsupportedError
from cavity.models.trees import backend
from cavity.models.trees.backend import kernels
from cavity.models.trees.divergence import Divergence
from cavity.models.trees.likelihoods.times import branch_points, optimise_times, paths
from cavity.models.trees.prior import TreePrior, log_prior, tables
from cavity.models.trees.shapes.arrays import GAP, Leaves, pack, unpack
from cavity.models.trees.tree import Tree


def problem(seed, n, many=0.0, columns=3, noise=0.0):
    random = np.random.default_rng(seed)
    tree = random_tree(random, n, many)
    return tree, Leaves(random.normal(size=(n, columns)), np.full((n, 1), noise))


@pytest.mark.parametrize("prior", [TreePrior(), TreePrior(1.0, 0.2)], ids=["binary", "many children"])
@pytest.mark.parametrize("seed", range(3))
def test_a_maximum(seed, prior):
    tree, leaves = problem(seed, 9, 0.3 * (not prior.binary), noise=0.1)
    found = optimise_times(pack(tree), leaves, tables(prior, 9), tolerance=1e-9)
    best = unpack(found.arrays)
    assert found.log_joint == pytest.approx(log_joint(best, leaves, prior), abs=1e-9)
    assert found.log_joint > log_joint(tree, leaves, prior)
    assert (best.parent == tree.parent).all()
    above = np.where(best.parent < 0, 0.0, best.depth[best.parent])
    for node in range(9, tree.n_nodes):  # no step of one depth, within its neighbours, gains
        below = best.depth[list(best.children[node])].min()
        for moved in (best.depth[node] - 1e-3, best.depth[node] + 1e-3):
            if above[node] < moved < below:
                depth = best.depth.copy()
                depth[node] = moved
                assert log_joint(Tree(best.parent, depth), leaves, prior) <= found.log_joint + 1e-7


def test_depths_along_a_path_differ():
    tree, leaves = problem(1, 12, columns=30)
    found = optimise_times(pack(tree), leaves, tables(TreePrior(), 12))
    arrays = found.arrays
    points = branch_points(arrays)
    assert (arrays.depth[points] - arrays.depth[arrays.parent[points]] >= 0.99 * GAP).all()
    assert found.converged


def test_the_measure_of_times_runs_away_and_that_of_depths_does_not():
    """Two noisy leaves: the density with respect to times grows towards time 1, that of depths does not."""
    tree, prior = Tree(np.array([2, 2, -1]), np.array([np.inf, np.inf, 0.5])), TreePrior(divergence=Divergence(0.5))
    leaves, table = Leaves(np.array([[0.3], [0.31]]), np.full((2, 1), 0.5)), tables(prior, 2)
    kept = optimise_times(pack(tree), leaves, table)
    gone = optimise_times(pack(tree), leaves, table, measure="time")
    assert unpack(kept.arrays).time[2] < 0.9
    assert unpack(gone.arrays).time[2] > 0.999
    assert gone.log_joint == pytest.approx(
        dense_evidence(unpack(gone.arrays), leaves) + log_prior(unpack(gone.arrays), prior, "time"), abs=1e-8
    )


def test_one_leaf_and_two():
    one = Tree(np.array([-1]), np.array([np.inf]))
    found = optimise_times(pack(one), Leaves(np.array([[0.7]]), np.zeros((1, 1))), tables(TreePrior(), 1))
    assert found.log_joint == pytest.approx(-0.5 * (np.log(2 * np.pi) + 0.49))
    tree = Tree(np.array([2, 2, -1]), np.array([np.inf, np.inf, 0.5]))
    leaves = Leaves(np.array([[0.5], [-0.7]]), np.zeros((2, 1)))
    found = optimise_times(pack(tree), leaves, tables(TreePrior(), 2), tolerance=1e-10)
    grid = np.linspace(1e-9, 5.0, 4000)
    dense = [log_joint(Tree(tree.parent, np.array([np.inf, np.inf, d])), leaves, TreePrior()) for d in grid]
    assert found.log_joint == pytest.approx(max(dense), abs=1e-5)


def test_paths():
    tree, _ = problem(3, 10)
    arrays = pack(tree)
    points = branch_points(arrays)
    rise = arrays.depth[points] - np.where(arrays.parent[points] == 19, 0.0, arrays.depth[arrays.parent[points]])
    np.testing.assert_allclose(paths(arrays, points) @ rise, arrays.depth[points], atol=1e-12)


def test_what_is_refused(monkeypatch):
    tree, leaves = problem(0, 4)
    with pytest.raises(DataError, match="depth, time"):
        optimise_times(pack(tree), leaves, tables(TreePrior(), 4), measure="B")
    with pytest.raises(DataError, match="jax, numba; asked: 'torch'"):
        kernels("torch")
    monkeypatch.setattr(backend.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnsupportedError, match=r"cavity\[numba\]"):
        kernels("numba")

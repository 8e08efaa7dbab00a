"""Trees: what they know of themselves, and what is refused."""

import jax
import numpy as np
import pytest
from oracle import random_tree, restricted

from cavity.factors.errors import DataError
from cavity.models.trees.prior import TreePrior
from cavity.models.trees.shapes.arrays import pack, unpack
from cavity.models.trees.shapes.sample import sample_tree
from cavity.models.trees.tree import Tree

INF = np.inf
# ((0, 2) at time 0.7, 1, 3) at time 0.3
EXAMPLE = Tree(np.array([5, 4, 5, 4, -1, 4]), np.array([INF] * 4 + [-np.log(0.7), -np.log(0.3)]), tuple("abcd"))


def test_the_example_by_hand():
    tree = EXAMPLE
    assert (tree.n_leaves, tree.n_nodes, tree.top) == (4, 6, 4)
    np.testing.assert_allclose(tree.time, [1, 1, 1, 1, 0.3, 0.7])
    np.testing.assert_allclose(tree.length, [0.3, 0.7, 0.3, 0.7, 0.3, 0.4])
    assert tree.children[4:] == ((1, 3, 5), (0, 2))
    assert tree.count.tolist() == [1, 1, 1, 1, 4, 2]
    assert tree.clades == (frozenset({0, 1, 2, 3}), frozenset({0, 2}))
    shared = np.full((4, 4), 0.3)
    shared[[0, 2], [2, 0]] = 0.7
    np.fill_diagonal(shared, 1.0)
    np.testing.assert_allclose(tree.shared_time, shared)
    assert repr(tree) == "Tree(4 leaves, 2 branch points, the first at time 0.3)"
    assert repr(Tree(np.array([-1]), np.array([INF]))) == "Tree(1 leaves, 0 branch points)"


@pytest.mark.parametrize("seed", range(20))
def test_laws(seed):
    tree = random_tree(np.random.default_rng(seed), 3 + seed, many=0.3 * (seed % 2))
    place = np.argsort(tree.order)
    assert sorted(tree.order) == list(range(tree.n_nodes))
    assert all(place[node] < place[above] for node, above in enumerate(tree.parent) if above >= 0)
    assert (tree.count == tree.members.sum(1)).all()
    assert sum(len(children) for children in tree.children) == tree.n_nodes - 1
    for leaf in range(tree.n_leaves):  # lengths down to a leaf sum to 1
        total, node = 0.0, leaf
        while node != -1:
            total, node = total + tree.length[node], tree.parent[node]
        assert total == pytest.approx(1.0, rel=1e-12)
    assert np.linalg.eigvalsh(tree.shared_time).min() > -1e-12


@pytest.mark.parametrize("seed", range(10))
def test_structure_is_a_key_of_the_branching(seed):
    random = np.random.default_rng(seed)
    tree = random_tree(random, 8, many=0.3)
    points = 8 + random.permutation(tree.n_nodes - 8)
    number = np.concatenate([np.arange(8), points])
    parent, depth = np.empty_like(tree.parent), np.empty_like(tree.depth)
    parent[number] = np.where(tree.parent < 0, -1, number[tree.parent])
    depth[number] = tree.depth
    other = Tree(parent, depth)
    assert tree.structure == other.structure
    assert hash(tree.structure) == hash(other.structure)
    assert tree.structure != restricted(tree, [1, 0, *range(2, 8)]).structure or tree.parent[0] == tree.parent[1]


@pytest.mark.parametrize("seed", range(6))
def test_packing_comes_back(seed):
    tree = random_tree(np.random.default_rng(seed), 9, many=0.4)
    back = unpack(pack(tree), tree.names)
    assert (back.parent == tree.parent).all()
    assert (back.depth == tree.depth).all()
    assert back.names == tree.names


def test_cuts():
    assert EXAMPLE.labels(time=0.0).tolist() == [0, 0, 0, 0]
    assert EXAMPLE.labels(time=0.5).tolist() == [0, 1, 0, 2]
    assert EXAMPLE.labels(time=1.0).tolist() == [0, 1, 2, 3]
    assert EXAMPLE.labels(clusters=1).tolist() == [0, 0, 0, 0]
    assert EXAMPLE.labels(clusters=2).tolist() == [0, 1, 0, 2]
    assert EXAMPLE.labels(clusters=4).tolist() == [0, 1, 2, 3]


def test_a_cut_through_branch_points_of_one_depth_gives_enough_clusters():
    tree = Tree(np.array([4, 4, 5, 5, 6, 6, -1]), np.array([INF] * 4 + [0.5, 0.5, 0.5]))
    assert tree.labels(clusters=2).tolist() == [0, 1, 2, 3]
    assert tree.labels(clusters=3).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("clusters", [1, 3, 10, 25, 40])
def test_a_cut_of_a_binary_tree_gives_the_number_asked(clusters):
    tree = sample_tree(TreePrior(), 40, jax.random.key(clusters))
    labels = tree.labels(clusters=clusters)
    assert np.unique(labels).tolist() == list(range(clusters))
    assert (np.diff(np.unique(labels, return_index=True)[1]) > 0).all()  # numbered by first appearance


def test_arrays_are_copied_and_fixed():
    parent, depth = np.array([2, 2, -1]), np.array([INF, INF, 1.0])
    tree = Tree(parent, depth)
    depth[2] = 5.0
    assert tree.depth[2] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        tree.depth[2] = 3.0
    assert parent.flags.writeable


@pytest.mark.parametrize(
    ("parent", "depth", "match"),
    [
        ([[2, 2, -1]], [[INF, INF, 1.0]], "one parent and one depth"),
        ([], [], "one parent and one depth"),
        ([2, 2, -1], [INF, INF], "one parent and one depth"),
        ([2.0, 2.0, -1.0], [INF, INF, 1.0], "numbers of nodes"),
        ([2, 2, -2], [INF, INF, 1.0], "Parents are"),
        ([2, 3, -1], [INF, INF, 1.0], "Parents are"),
        ([2, 2, 2], [INF, INF, 1.0], "hangs from the origin"),
        ([2, -1, -1], [INF, INF, 1.0], "hangs from the origin"),
        ([2, 3, -1, 2], [INF, INF, 1.0, 2.0], "at least two children"),
        ([3, 4, -1, 4, 3], [INF, INF, INF, 1.0, 1.0], "cycle"),
        ([2, 2, -1], [INF, INF, np.nan], "Depths"),
        ([2, 2, -1], [INF, INF, INF], "Depths"),
        ([2, 2, -1], [INF, 3.0, 1.0], "Depths"),
        ([2, 2, -1], [INF, INF, -0.1], "no node comes before its parent"),
        ([3, 3, 4, 4, -1], [INF, INF, INF, 1.0, 2.0], "no node comes before its parent"),
    ],
)
def test_what_is_no_tree_is_refused(parent, depth, match):
    with pytest.raises(DataError, match=match):
        Tree(np.array(parent), np.array(depth))


def test_bad_names_and_cuts_are_refused():
    with pytest.raises(DataError, match="names"):
        EXAMPLE.renamed("abc")
    for bad in ({}, {"time": 0.5, "clusters": 2}, {"time": 1.5}, {"time": -0.1}, {"clusters": 0}, {"clusters": 5}):
        with pytest.raises(DataError, match="cut"):
            EXAMPLE.labels(**bad)

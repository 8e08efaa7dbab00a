"""Newick, NetworkX and SciPy forms of trees: what goes out comes back."""

import jax
import networkx
import numpy as np
import pytest
from oracle import random_tree
from scipy.cluster import hierarchy

from cavity.factors.errors import DataError
from cavity.models.trees.prior import TreePrior
from cavity.models.trees.shapes.export import from_linkage, from_newick, to_linkage, to_networkx, to_newick
from cavity.models.trees.shapes.sample import sample_tree
from cavity.models.trees.tree import Tree


def depths(tree):
    return dict(zip(tree.clades, tree.depth[tree.n_leaves :], strict=True))


def assert_same(first, second):
    assert first.names == second.names
    assert first.structure == second.structure
    wanted, found = depths(first), depths(second)
    np.testing.assert_allclose([found[c] for c in wanted], list(wanted.values()), rtol=1e-12, atol=1e-14)


def sampled(seed, n=30, concentration=0.0, discount=0.0):
    return sample_tree(TreePrior(concentration, discount), n, jax.random.key(seed))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("parameters", [(0.0, 0.0), (1.0, 0.3)])
def test_newick_comes_back(seed, parameters):
    tree = sampled(seed, 30, *parameters)
    assert_same(tree, from_newick(to_newick(tree)))


def test_newick_keeps_depths_where_times_round_to_one():
    tree = Tree(np.array([3, 3, 4, 4, -1]), np.array([np.inf] * 3 + [80.0, 45.0]))
    assert tree.time[3] == tree.time[4] == 1.0
    assert_same(tree, from_newick(to_newick(tree)))


def test_newick_of_a_deep_tree_and_of_one_leaf():
    n = 3000
    parent = np.concatenate([[n, *range(n, 2 * n - 1)], np.arange(n + 1, 2 * n - 1), [-1]])
    caterpillar = Tree(parent, np.concatenate([np.full(n, np.inf), np.linspace(5.0, 0.1, n - 1)]))
    back = from_newick(to_newick(caterpillar))
    np.testing.assert_allclose(np.sort(back.depth), np.sort(caterpillar.depth), rtol=1e-11)
    assert (np.sort(back.count) == np.sort(caterpillar.count)).all()
    leaf = Tree(np.array([-1]), np.array([np.inf]), ("a",))
    assert to_newick(leaf) == "'a':1.0;"
    assert from_newick("'a':1.0;").names == ("a",)


def test_names_are_quoted_and_may_be_anything():
    names = ("it's", "a b", "(x,y):1;", "[no comment]", "ünï")
    tree = sampled(1, 5).renamed(names)
    assert_same(tree, from_newick(to_newick(tree), names))
    assert "'it''s'" in to_newick(tree)


def test_newick_by_hand():
    tree = from_newick("[a comment] ((x:0.25, y:.25)0.9:0.5,z:7.5e-1)top:0.25 ;")
    assert tree.names == ("x", "y", "z")
    np.testing.assert_allclose(tree.time[3:], [0.25, 0.75])
    assert tree.structure == {frozenset({0, 1}), frozenset({0, 1, 2})}
    single = from_newick("(((x:0.25,y:0.25):0.25):0.25):0.25;")  # branch points of one child are none
    assert single.n_nodes == 3
    assert single.time[2] == pytest.approx(0.75)


def test_support_is_written_as_labels():
    tree = Tree(np.array([3, 3, 4, 4, -1]), np.array([np.inf] * 3 + [1.0, 0.5]))
    text = to_newick(tree, support=np.array([1, 1, 1, 0.75, 1.0]))
    assert ")0.75:" in text
    assert text.endswith(f")1:{float(tree.length[4])!r};")
    assert_same(tree, from_newick(text))


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("(a:0.5,b:0.5):0.5", "semicolon"),
        ("((a:0.5,b:0.5):0.5;", "brackets"),
        ("(a:0.5,b:0.5)):0.5;", "closing"),
        ("(a:0.5,b:0.5):0.5,c:1;", "one tree"),
        ("(a:0.5,b:x):0.5;", "number"),
        ("(a:0.5,b):0.5;", "no length"),
        ("(a:-0.5,b:0.5):0.5;", "no length"),
        ("(a:0.5,b:0.25):0.5;", "at time 1"),
        ("(a:5,b:5):5;", "at time 1"),
        ("(a:0.5,a:0.5):0.5;", "names"),
        ("", "semicolon"),
    ],
)
def test_bad_newick_is_refused(text, match):
    with pytest.raises(DataError, match=match):
        from_newick(text)


def test_other_names_are_refused():
    with pytest.raises(DataError, match="names"):
        from_newick("(a:0.5,b:0.5):0.5;", names=("a", "c"))


def test_networkx_graph_is_the_tree():
    tree = sampled(2, 20, 1.0).renamed([f"leaf {i}" for i in range(20)])
    graph = to_networkx(tree)
    assert networkx.is_arborescence(graph)
    assert graph.number_of_nodes() == tree.n_nodes + 1
    lengths = networkx.single_source_dijkstra_path_length(graph, -1, weight="length")
    np.testing.assert_allclose([lengths[leaf] for leaf in range(20)], 1.0)
    for node in range(tree.n_nodes):
        assert graph.nodes[node]["time"] == pytest.approx(lengths[node])
        below = [n for n in networkx.descendants(graph, node) | {node} if graph.out_degree(n) == 0]
        assert graph.nodes[node]["leaves"] == len(below)
    assert graph.nodes[3]["name"] == "leaf 3"


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("parameters", [(0.0, 0.0), (1.0, 0.3)])
def test_linkage_comes_back(seed, parameters):
    tree = sampled(seed, 30, *parameters)
    linkage = to_linkage(tree)
    assert hierarchy.is_valid_linkage(linkage)
    assert hierarchy.is_monotonic(linkage)
    assert_same(tree, from_linkage(linkage, tree.names))


def test_scipy_reads_the_same_tree():
    tree = sampled(3, 25)
    linkage = to_linkage(tree)
    height = np.exp(-tree.depth)
    together = np.zeros((25, 25))
    for node in tree.order[::-1]:
        together[np.ix_(tree.members[node], tree.members[node])] = height[node]
    pairs = np.triu_indices(25, 1)
    np.testing.assert_allclose(hierarchy.cophenet(linkage), together[pairs])
    for clusters in (2, 5, 11):
        ours, theirs = tree.labels(clusters=clusters), hierarchy.fcluster(linkage, clusters, "maxclust")
        assert (np.equal.outer(ours, ours) == np.equal.outer(theirs, theirs)).all()


def test_linkage_of_scipy_becomes_a_tree():
    random = np.random.default_rng(0)
    linkage = hierarchy.linkage(random.normal(size=(12, 2)), "average")
    with pytest.raises(DataError, match="Heights"):
        from_linkage(np.where(np.arange(4) == 2, linkage + 1.0, linkage))
    linkage[:, 2] /= 1.1 * linkage[-1, 2]
    tree = from_linkage(linkage)
    np.testing.assert_allclose(to_linkage(tree), linkage)


def test_ties_may_stay_apart():
    linkage = np.array([[0, 1, 0.5, 2], [2, 3, 0.5, 3.0]])
    assert from_linkage(linkage).n_nodes == 4
    assert from_linkage(linkage, join_ties=False).n_nodes == 5


def test_bad_linkage_is_refused():
    with pytest.raises(DataError, match="four columns"):
        from_linkage(np.ones((3, 3)))
    with pytest.raises(DataError, match="not there yet"):
        from_linkage([[0, 4, 0.5, 2], [1, 2, 0.6, 3]])
    with pytest.raises(DataError, match="at least two leaves"):
        to_linkage(Tree(np.array([-1]), np.array([np.inf])))


@pytest.mark.parametrize("seed", range(10))
def test_forms_of_any_tree(seed):
    tree = random_tree(np.random.default_rng(seed), 15, many=0.4)
    assert_same(tree, from_newick(to_newick(tree)))
    assert_same(tree, from_linkage(to_linkage(tree), tree.names))

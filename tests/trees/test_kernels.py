"""Laws of the sequential kernels, the same for every back end: against dense Gaussians and trees changed by hand."""

import functools
import importlib

import hypothesis
import numpy as np
import oracle
import pytest
from hypothesis import strategies as st

from cavity.models.trees.divergence import Divergence
from cavity.models.trees.prior import TreePrior, log_prior, tables
from cavity.models.trees.shapes.arrays import Leaves, Subtree, pack, unpack
from cavity.models.trees.tree import ORIGIN, Tree

SHAPES = ((1, 2, 1), (2, 1, 1), (3, 2, 2), (7, 3, 1), (12, 3, 3), (12, 4, 1))  # leaves, columns, variances
PRIORS = {
    "binary": TreePrior(),
    "neal": TreePrior(divergence=Divergence(rate=0.5, constant=0.4, square=0.3)),
    "many children": TreePrior(1.0, 0.3, Divergence(rate=0.7, constant=0.2, square=0.1)),
    "three children": TreePrior(1.2, -0.4),
    "unbalanced": TreePrior(-1.0, 0.5),
}
FRACTIONS = np.array([0.02, 0.4, 0.93])
settings = hypothesis.settings(max_examples=40, deadline=None, derandomize=True)


@pytest.fixture(scope="module", params=["jax", "numba"])
def kernels(request):
    if request.param == "numba":
        pytest.importorskip("numba")
    return importlib.import_module(f"cavity.models.trees.{request.param}_kernels")


def need(kernels, *names):
    for name in names:
        if not hasattr(kernels, name):
            pytest.skip(f"this back end has no {name} yet")


def case(seed, shape, prior=PRIORS["binary"], noise=(0.0, 0.3, np.inf)):
    n, columns, entries = shape
    random = np.random.default_rng(seed)
    most = prior.most_children
    tree = oracle.random_tree(random, n, many=0.0 if most == 2 else random.uniform(0.0, 0.8))
    while most and n > 1 and max(map(len, tree.children)) > most:
        tree = oracle.random_tree(random, n, many=0.2)
    return tree, Leaves(random.normal(size=(n, columns)), random.choice(noise, size=(n, entries)))


def close(found, wanted, tolerance):
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@settings
@hypothesis.given(seed=st.integers(0, 2**32 - 1), shape=st.sampled_from(SHAPES))
def test_the_evidence_is_that_of_the_dense_gaussian(kernels, seed, shape):
    tree, leaves = case(seed, shape, PRIORS["many children"])
    close(kernels.sweep(pack(tree), leaves).log_evidence, oracle.dense_evidence(tree, leaves), 1e-10)


def test_messages_say_what_is_known_of_each_location(kernels):
    tree, leaves = case(3, (7, 3, 1), PRIORS["many children"], noise=(0.0, 0.3))
    arrays, covariance = pack(tree), tree.shared_time + np.diag(leaves.variance[:, 0])
    messages = kernels.sweep(arrays, leaves)
    for node in range(tree.n_nodes):
        if node == tree.top:
            assert not messages.down_mean[node].any()
            assert not messages.down_variance[node].any()
            continue
        below, above = tree.members[node], tree.parent[node]
        others = np.flatnonzero(~below)
        shared = np.array([tree.shared_time[np.ix_([leaf], tree.members[above])].min() for leaf in others])
        weights = np.linalg.solve(covariance[np.ix_(others, others)], shared)
        close(messages.down_mean[node], weights @ leaves.mean[others], 1e-9)
        close(messages.down_variance[node], tree.time[above] - weights @ shared, 1e-9)


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("shape", [(7, 3, 1), (12, 3, 3)])
def test_the_gradient_is_that_of_finite_differences(kernels, name, shape):
    need(kernels, "joint_gradient")
    prior, step = PRIORS[name], 1e-4
    tree, leaves = case(11, shape, prior)
    log_joint, by_depth, by_scale = kernels.joint_gradient(pack(tree), leaves, tables(prior, shape[0]))
    close(log_joint, oracle.log_joint(tree, leaves, prior), 1e-10)
    assert not by_depth[tree.n_nodes :].any()
    assert not by_depth[: tree.n_leaves].any()

    def moved(node, by):
        depth = tree.depth.copy()
        depth[node] += by
        return oracle.log_joint(Tree(tree.parent, depth), leaves, prior)

    def scaled(column, by):
        factor = np.where(np.arange(shape[1]) == column, np.exp(by), 1.0)
        variance = np.broadcast_to(leaves.variance, leaves.mean.shape)
        known = np.isfinite(variance[:, column]).sum()
        return oracle.dense_evidence(tree, Leaves(leaves.mean / factor, variance / factor**2)) - known * by

    for node in range(tree.n_leaves, tree.n_nodes):
        close(by_depth[node], slope(functools.partial(moved, node), step), 1e-6)
    for column in range(shape[1]):
        close(by_scale[column], slope(functools.partial(scaled, column), step), 1e-6)


def slope(function, step):
    """The derivative at zero, by differences of fourth order: a short branch has a large third derivative."""
    near, far = (function(by) - function(-by) for by in (step, 2.0 * step))
    return (8.0 * near - far) / (12.0 * step)


def joined(rest, subtree, branch, depth=None):
    """The rest and a subtree on the branch above `branch` at a depth, or at the branch point `branch` itself."""
    first, second = rest.n_leaves, subtree.n_leaves
    place = [node if node < first else node + second for node in range(rest.n_nodes)]
    inner = [first + node if node < second else rest.n_nodes + node for node in range(subtree.n_nodes)]
    parent = np.full(rest.n_nodes + subtree.n_nodes, ORIGIN)
    depths = np.empty(len(parent))
    for tree, number in ((rest, place), (subtree, inner)):
        for node, at in enumerate(number):
            parent[at] = ORIGIN if tree.parent[node] == ORIGIN else number[tree.parent[node]]
            depths[at] = tree.depth[node]
    if depth is None:
        parent[inner[subtree.top]] = place[branch]
        return Tree(parent, depths)
    parent, depths = np.append(parent, parent[place[branch]]), np.append(depths, depth)
    parent[place[branch]] = parent[inner[subtree.top]] = len(parent) - 1
    return Tree(parent, depths)


def inside(subtree, message, leaves, prior):
    """What is within a subtree: its joint density but for the location of its root and the time before it."""
    mean, variance = message
    total = np.broadcast_to(variance + subtree.time[subtree.top], mean.shape)
    known = np.isfinite(total)
    outside = -0.5 * (mean[known] ** 2 / total[known] + np.log(2.0 * np.pi * total[known])).sum()
    within = oracle.dense_evidence(subtree, leaves) - outside + log_prior(subtree, prior)
    if subtree.n_leaves == 1:
        return within
    passed = prior.divergence.cumulative(subtree.depth[subtree.top])
    return within + passed * tables(prior, subtree.n_leaves).harmonic[subtree.n_leaves - 1]


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("entries", [1, 3])
@pytest.mark.parametrize("name", PRIORS)
def test_scores_are_what_attaching_adds_to_the_joint(kernels, name, entries, size):
    need(kernels, "score")
    prior = PRIORS[name]
    rest, leaves = case(5, (6, 3, entries), prior)
    subtree, more = case(6, (size, 3, entries), prior)
    if size > 1:
        subtree = Tree(subtree.parent, subtree.depth + rest.depth[rest.top] + 0.1)
    both = Leaves(*(np.concatenate(parts) for parts in zip(leaves, more, strict=True)))
    inner = kernels.sweep(pack(subtree), more)
    root = subtree.top
    message = inner.up_mean[root], inner.up_variance[root]
    seen = Subtree(*message, subtree.depth[root], size)
    arrays = pack(rest)
    messages = kernels.sweep(arrays, leaves)
    branch, point = kernels.score(arrays, messages, seen, tables(prior, 6 + size), FRACTIONS)
    before = oracle.log_joint(rest, leaves, prior) + inside(subtree, message, more, prior)
    assert np.isneginf(branch[rest.n_nodes :]).all()
    assert np.isneginf(point[rest.n_nodes :]).all()
    assert np.isneginf(point[:6]).all()
    scored = 0
    for node in range(rest.n_nodes):
        start = 0.0 if rest.parent[node] == ORIGIN else rest.depth[rest.parent[node]]
        end = min(rest.depth[node], subtree.depth[root])
        for value, fraction in zip(branch[node], FRACTIONS, strict=True):
            if end <= start:
                assert np.isneginf(value)
                continue
            depth = -np.log(np.exp(-end) + (1.0 - fraction) * np.exp(-start) * -np.expm1(start - end))
            after = oracle.log_joint(joined(rest, subtree, node, depth), both, prior)
            close(value, after - before, 1e-9)
            scored += 1
        if node >= 6 and rest.depth[node] < subtree.depth[root]:
            after = oracle.log_joint(joined(rest, subtree, node), both, prior)
            close(point[node], after - before, 1e-9)
        else:
            assert np.isneginf(point[node])
    assert scored > 6


def test_a_subtree_taken_out_and_put_back_leaves_all_as_it_was():
    from cavity.engine.support.machine_code import Kernel
    from cavity.models.trees.jax_kernels.edit import attach_, detach_

    def there_and_back(arrays, node):
        rest, place = detach_(arrays, node)
        return rest, attach_(rest, node, place)

    kernel = Kernel(there_and_back)
    for seed in range(3):
        tree, leaves = case(seed, (12, 3, 1), PRIORS["many children"])
        wanted = oracle.log_joint(tree, leaves, PRIORS["many children"])
        for node in set(range(tree.n_nodes)) - {tree.top}:
            rest, back = kernel(pack(tree), np.int32(node))
            gone = tree.members[node].sum()
            assert rest.count[-1] == 12 - gone
            assert back.count[-1] == 12
            assert rest.degree[-1] == 1
            close(oracle.log_joint(unpack(back), leaves, PRIORS["many children"]), wanted, 1e-12)
            assert np.array_equal(np.sort(back.count), np.sort(pack(tree).count))
            assert np.array_equal(np.sort(back.degree), np.sort(pack(tree).degree))


def well_formed(arrays):
    """Whether the arrays are those of their tree."""
    tree, rows = unpack(arrays), np.flatnonzero(arrays.parent >= 0)
    assert np.array_equal(arrays.count[rows], tree.count)
    assert np.array_equal(arrays.degree[rows], [len(below) for below in tree.children])
    return tree


def sample(seed, shape):
    """Leaves whose locations come from a tree."""
    tree, leaves = case(seed, shape, noise=(0.0,))
    root = np.linalg.cholesky(tree.shared_time + 1e-12 * np.eye(shape[0]))
    return Leaves(root @ leaves.mean, leaves.variance)


@pytest.mark.parametrize("name", ["binary", "many children", "three children"])
def test_building_and_search_return_the_joint_of_their_tree(kernels, name):
    need(kernels, "build", "search")
    prior, shape = PRIORS[name], (12, 2, 1)
    leaves, table = sample(8, shape), tables(prior, 12)
    order = np.random.default_rng(0).permutation(12)
    arrays, log_joint = kernels.build(leaves, table, order, 0)
    close(log_joint, oracle.log_joint(well_formed(arrays), leaves, prior), 1e-9)
    found, after, trace = kernels.search(arrays, leaves, table, 1, 130)
    tree = well_formed(found)
    close(after, oracle.log_joint(tree, leaves, prior), 1e-9)
    close(trace[-1], after, 1e-9)
    assert len(trace) == 130
    again = kernels.search(arrays, leaves, table, 1, 130)
    assert np.array_equal(again[2], trace)
    assert np.array_equal(again[0].parent, found.parent)
    if prior.binary:
        assert np.diff(np.concatenate([[log_joint], trace])).min() >= -1e-9
        assert after > log_joint + 1e-3
    if prior.most_children:
        assert max(map(len, tree.children)) <= prior.most_children


def test_search_joins_branch_points_where_the_mass_is(kernels):
    need(kernels, "build", "search")
    prior, leaves = TreePrior(6.0, 0.0), Leaves(np.zeros((12, 2)), np.full((12, 1), np.inf))
    arrays, _ = kernels.build(leaves, tables(prior, 12), np.arange(12), 0)
    found, _, _ = kernels.search(arrays, leaves, tables(prior, 12), 0, 60)
    assert max(map(len, well_formed(found).children)) >= 6  # without data, a large concentration makes stars


@pytest.mark.parametrize("n", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_small_trees(kernels, n):
    need(kernels, "build", "search")
    leaves, prior = sample(9, (n, 2, 1)), PRIORS["binary"]
    arrays, log_joint = kernels.build(leaves, tables(prior, n), np.arange(n), 0)
    found, after, trace = kernels.search(arrays, leaves, tables(prior, n), 0, 7)
    close(after, oracle.log_joint(well_formed(found), leaves, prior), 1e-9)
    assert len(trace) == 7
    assert after >= log_joint - 1e-9


@pytest.mark.parametrize("name", ["binary", "many children"])
@pytest.mark.parametrize("trouble", ["identical", "outlier", "missing"])
def test_hard_data_stay_finite(kernels, name, trouble):
    need(kernels, "build", "search", "joint_gradient")
    leaves, table = sample(10, (12, 2, 1)), tables(PRIORS[name], 12)
    if trouble == "identical":
        leaves.mean[3:9] = leaves.mean[2]
    if trouble == "outlier":
        leaves.mean[4] = 1e6
    if trouble == "missing":
        leaves.variance[4] = np.inf
    arrays, _ = kernels.build(leaves, table, np.arange(12), 0)
    found, after, trace = kernels.search(arrays, leaves, table, 0, 50)
    well_formed(found)
    assert np.isfinite(after)
    assert np.isfinite(trace).all()
    assert all(np.isfinite(part).all() for part in kernels.joint_gradient(found, leaves, table))


def test_one_compilation_serves_all_of_a_shape():
    search = importlib.import_module("cavity.models.trees.jax_kernels.search")
    gradient = importlib.import_module("cavity.models.trees.jax_kernels.gradient")
    shape, before = (12, 2, 1), None
    for seed, prior in enumerate(PRIORS.values()):
        leaves, table = sample(seed, shape), tables(prior, 12)
        arrays, _ = search.build(leaves, table, np.arange(12)[::-1], 0)
        search.search(arrays, leaves, table, seed, 30 + 90 * seed)
        gradient.joint_gradient(arrays, leaves, table)
        traces = search._steps.traces, gradient.joint_gradient.traces
        before = before or traces
        assert traces == before
        assert min(traces) >= 1


def test_an_unknown_compiler_gets_plain_loops(monkeypatch):
    """The mark on loops is an internal one of XLA: without it the numbers are the same."""
    from cavity.engine.support import machine_code
    from cavity.models.trees.jax_kernels import sweep
    from cavity.models.trees.jax_kernels.sweep import sweep_

    random = np.random.default_rng(0)
    arrays = pack(oracle.random_tree(random, 9, 0.3))
    leaves = Leaves(random.normal(size=(9, 2)), np.full((9, 1), 0.1))
    marked = sweep(arrays, leaves)
    monkeypatch.setattr(machine_code, "MARKED", False)
    for plain, known in zip(machine_code.Kernel(sweep_)(arrays, leaves), marked, strict=True):
        np.testing.assert_allclose(plain, known, rtol=1e-12)

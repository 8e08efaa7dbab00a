"""The samplers of the numba back end against exact numbers: empty data, where the prior is known, and three leaves."""

import numpy as np
import pytest

pytest.importorskip("numba", reason="numba is an extra: pip install 'cavity[numba]'")

import oracle

from cavity.models.trees.divergence import Divergence
from cavity.models.trees.numba_kernels import depth_moves, subtree_moves
from cavity.models.trees.numba_kernels.moves import run_moves
from cavity.models.trees.numba_kernels.prior import prior_of
from cavity.models.trees.numba_kernels.state import exact, whole
from cavity.models.trees.prior import TreePrior, tables
from cavity.models.trees.shapes.arrays import Leaves, pack

DDT, PYDT = TreePrior(), TreePrior(concentration=1.0, discount=0.2)
SHARES = [0.0, 1.0, 0.5]
PURE = [0.0, 1.0, pytest.param(0.5, marks=pytest.mark.slow)]  # both kinds in turn: by default for a posterior only


def empty(n, columns=1, parts=1):
    return Leaves(np.zeros((n, columns)), np.full((n, parts), np.inf))


def top_of(arrays):
    return np.flatnonzero(arrays.parent == len(arrays.parent) - 1)[0]


def root_time(arrays):
    return -np.expm1(-arrays.depth[top_of(arrays)])


def is_balanced(arrays):
    return float((arrays.count[arrays.parent == top_of(arrays)] == len(arrays.parent) // 4).all())


def points(arrays):
    return float((arrays.degree[:-1] > 0).sum())


def chain(move, arrays, calls, *statistics):
    """Means of statistics after each call of `move(arrays, number)`, and their standard errors from 50 batches."""
    draws = np.empty((calls, len(statistics)))
    for k in range(calls):
        arrays = move(arrays, k)
        draws[k] = [statistic(arrays) for statistic in statistics]
    batches = draws.reshape(50, -1, len(statistics)).mean(axis=1)
    return np.transpose([batches.mean(axis=0), batches.std(axis=0, ddof=1) / np.sqrt(50)])


def moves(leaves, prior, share, steps=4):
    table = tables(prior, len(leaves.mean))
    return lambda arrays, k: subtree_moves(arrays, leaves, table, 1000 + k, steps, share)[0]


def start(n, seed=0):
    return pack(oracle.random_tree(np.random.default_rng(seed), n))


def deviations(found, wanted):
    """How many standard errors each mean is away."""
    return np.abs(found[:, 0] - wanted) / found[:, 1]


@pytest.mark.parametrize("share", PURE)
def test_moves_leave_the_prior_of_four_leaves(share):
    found = chain(moves(empty(4), DDT, share), start(4), 20_000, is_balanced, root_time)
    assert (deviations(found, [3 / 11, 6 / 17]) < 3.0).all(), found
    assert (found[:, 1] < 0.006).all()


def test_without_its_correction_the_proposal_from_the_prior_fails():
    leaves, prior = exact(empty(4)), prior_of(tables(DDT, 4))

    def wrong(arrays, k):
        return run_moves(whole(arrays), leaves, prior, 1000 + k, 4, 0.0, False)[0]

    found = chain(wrong, start(4), 20_000, is_balanced, root_time)
    assert deviations(found, [3 / 11, 6 / 17])[1] > 10.0, found


@pytest.mark.parametrize("share", PURE)
def test_moves_leave_the_prior_with_many_children(share):
    """The mean root time is 1 / (1 + H), H the table `harmonic`; the mean number of branch points is by simulation."""
    found = chain(moves(empty(6), PYDT, share, 6), start(6), 20_000, root_time, points)
    wanted = [1.0 / (1.0 + tables(PYDT, 6).harmonic[5]), 3.285]
    assert wanted[0] == pytest.approx(0.5344, abs=1e-4)
    assert (deviations(found, wanted) < 3.0).all(), found


@pytest.mark.parametrize("prior", [DDT, TreePrior(divergence=Divergence(0.5, 0.3, 0.4))])
def test_slice_sampling_agrees_with_moves(prior):
    table, leaves = tables(prior, 5), empty(5, 2, 2)

    def both(arrays, k):
        return depth_moves(subtree_moves(arrays, leaves, table, 2 * k, 2, 0.0)[0], leaves, table, 2 * k + 1)

    one = chain(both, start(5), 20_000, root_time)
    two = chain(moves(leaves, prior, 1.0, 5), start(5), 20_000, root_time)
    assert abs(one[0, 0] - two[0, 0]) < 3.0 * np.hypot(one[0, 1], two[0, 1]), (one, two)


def three_leaves(mean, variance):
    """P(pair that parts last) and the mean root time by quadrature over two depths, from dense Gaussians."""
    first, more = np.meshgrid(*[(np.arange(400) + 0.5) * 0.02] * 2, indexing="ij")
    early, late = -np.expm1(-first), -np.expm1(-first - more)
    mass, time = [], []
    for pair in ((0, 1), (0, 2), (1, 2)):
        covariance = np.broadcast_to(early[..., None, None], (*early.shape, 3, 3)).copy()
        covariance[..., pair[0], pair[1]] = covariance[..., pair[1], pair[0]] = late
        covariance[..., [0, 1, 2], [0, 1, 2]] = 1.0 + variance
        solved = np.linalg.solve(covariance, np.broadcast_to(mean, (*early.shape, *mean.shape)))
        log = -0.5 * (mean * solved).sum(axis=(-1, -2)) - 0.5 * mean.shape[1] * np.linalg.slogdet(covariance)[1]
        weight = np.exp(log - 1.5 * first - more)
        mass.append(weight.sum())
        time.append((weight * early).sum())
    return np.array(mass) / np.sum(mass), np.sum(time) / np.sum(mass)


@pytest.mark.parametrize("share", [*SHARES, None])
def test_posterior_of_three_leaves_equals_quadrature(share):
    mean = np.array([[0.6, -0.2], [0.1, 0.3], [-0.9, 0.8]])
    variance = np.array([0.05, 0.1, 0.2])
    leaves, table = Leaves(mean, variance[:, None]), tables(DDT, 3)

    def with_depths(arrays, k):
        return depth_moves(subtree_moves(arrays, leaves, table, 2 * k, 3, 0.3)[0], leaves, table, 2 * k + 1)

    def parts_first(leaf):
        return lambda arrays: float(arrays.parent[leaf] == top_of(arrays))

    statistics = [parts_first(2), parts_first(1), parts_first(0), root_time]
    found = chain(with_depths if share is None else moves(leaves, DDT, share, 5), start(3), 20_000, *statistics)
    shares, time = three_leaves(mean, variance)
    assert (deviations(found, [*shares, time]) < 3.0).all(), (found, shares, time)


def test_the_same_seed_gives_the_same_draws():
    leaves = Leaves(np.random.default_rng(0).normal(size=(9, 2)), np.zeros((9, 1)))
    table = tables(PYDT, 9)
    one, two, three = (subtree_moves(start(9), leaves, table, seed, 200, 0.5) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one[0].depth, two[0].depth)
    assert (one[1] == two[1]).all()
    assert one[2].sum() == 200
    assert (one[1] > 0).all()
    assert not np.array_equal(one[0].depth, three[0].depth)

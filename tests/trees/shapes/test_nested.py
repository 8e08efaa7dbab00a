"""Nested restaurants tend to the diffusion trees; the coalescent and fragmentation undo each other."""

import jax
import numpy as np
import pytest
from coalescent import coalesced, fragmented, sample_partition
from enumeration import log_probability, structures
from nested import sample_nested, sample_nested_crp
from scipy import stats
from scipy.linalg import expm
from scipy.special import gammaln

from cavity.factors.errors import DataError
from cavity.models.trees.divergence import Divergence
from cavity.models.trees.prior import TreePrior, tables


def means(draw, times=1200):
    """Mean and standard error of the first time, and of the number of branch points, over draws of six leaves."""
    trees = [draw(jax.random.key(seed)) for seed in range(times)]
    first = np.array([tree.time[tree.top] for tree in trees])
    points = np.array([tree.n_nodes - 6.0 for tree in trees])
    return [(x.mean(), x.std() / np.sqrt(times)) for x in (first, points)]


@pytest.mark.parametrize("prior", [TreePrior(), TreePrior(1.0, 0.2), TreePrior(3.0, -1.0, Divergence(1.0, 0.0, 20.0))])
def test_nested_partitions_tend_to_the_tree(prior):
    every = structures(6, prior.most_children)
    probability = np.exp([log_probability(tree, prior) for tree in every])
    points = probability @ [tree.n_nodes - 6.0 for tree in every]
    (_, coarse), (_, fine) = (means(lambda key, s=s: sample_nested(prior, 6, s, key)) for s in (3, 3000))
    assert abs(fine[0] - points) < 4.0 * fine[1] + 0.01
    assert (
        abs(coarse[0] - points) > 8.0 * coarse[1]
    )  # a test that could not tell three levels from three thousand fails


def test_first_time_of_nested_partitions():
    prior = TreePrior(1.0, 0.2)
    wanted = 1.0 / (1.0 + tables(prior, 6).harmonic[5])
    first, _ = means(lambda key: sample_nested(prior, 6, 3000, key))
    assert abs(first[0] - wanted) < 4.0 * first[1] + 1e-3


def test_nested_restaurants_tend_to_the_binary_tree():
    crowded = [means(lambda key, s=s: sample_nested_crp(Divergence(), 6, s, key))[1][0] for s in (3, 30, 3000)]
    assert crowded[0] < crowded[1] - 0.2 < crowded[2] - 0.2
    assert 4.97 < crowded[2] <= 5.0
    first, _ = means(lambda key: sample_nested_crp(Divergence(), 6, 3000, key))
    assert abs(first[0] - 1.0 / (1.0 + (1.0 / np.arange(1, 6)).sum())) < 4.0 * first[1] + 1e-3


@pytest.mark.parametrize("levels", [1, 2, 5])
def test_levels_are_where_they_should_be(levels):
    for seed in range(50):
        tree = sample_nested(TreePrior(0.5, 0.2), 8, levels, jax.random.key(seed))
        place = tree.time[8:] * levels
        last = np.isclose(place, levels - 0.5)
        np.testing.assert_allclose(place[~last], np.round(place[~last]), atol=1e-12)
        above = tree.parent[8:]
        assert (tree.depth[8:] > np.where(above < 0, -1.0, tree.depth[above])).all()


def test_one_level_is_one_restaurant():
    """Two points part in one level of rate 1 with probability g / (1 + g), g = 1."""
    parted = np.array([sample_nested(TreePrior(), 2, 1, jax.random.key(s)).time[2] == 0.0 for s in range(2000)])
    assert abs(parted.mean() - 0.5) < 4.0 * np.sqrt(0.25 / 2000)
    three = [sample_nested_crp(Divergence(), 3, 1, jax.random.key(s)) for s in range(3000)]
    together = np.mean([tree.time[tree.top] == 0.5 for tree in three])  # one table: 1/2 * 2/3
    apart = np.mean([tree.n_nodes == 4 and tree.time[3] == 0.0 for tree in three])  # three tables: 1/2 * 1/3
    assert abs(together - 1.0 / 3.0) < 4.0 * np.sqrt(2.0 / 9.0 / 3000)
    assert abs(apart - 1.0 / 6.0) < 4.0 * np.sqrt(5.0 / 36.0 / 3000)


def test_nested_keys_and_bad_requests():
    first, again = (sample_nested(TreePrior(1.0), 20, 50, jax.random.key(3)) for _ in range(2))
    assert (first.parent == again.parent).all()
    for n, levels in ((0, 5), (5, 0)):
        with pytest.raises(DataError, match="at least one"):
            sample_nested(TreePrior(), n, levels, jax.random.key(0))


def partitions(n):
    """All set partitions as labels numbered by first appearance."""
    found = [(0,)]
    for _ in range(n - 1):
        found = [(*p, label) for p in found for label in range(max(p) + 2)]
    return found


def canonical(labels):
    seen = {}
    return tuple(seen.setdefault(label, len(seen)) for label in labels)


def generators(n, rate):
    """Of the coalescent and of fragmentation, from their definitions: rates of pairs, and of sets parting."""
    states = partitions(n)
    place = {state: i for i, state in enumerate(states)}
    merge, part = np.zeros((2, len(states), len(states)))
    for i, state in enumerate(states):
        for a in range(max(state) + 1):
            for b in range(a):
                j = place[canonical([b if label == a else label for label in state])]
                merge[i, j] += 1.0
                left, right = state.count(a), state.count(b)
                part[j, i] += rate * np.exp(gammaln(left) + gammaln(right) - gammaln(left + right))
    for generator in (merge, part):
        np.fill_diagonal(generator, -generator.sum(1))
    return merge, part


def restaurant(n, concentration):
    weight = []
    for state in partitions(n):
        sizes = np.bincount(state)
        weight.append(len(sizes) * np.log(concentration) + gammaln(sizes).sum())
    weight = np.exp(np.array(weight))
    return weight / weight.sum()


@pytest.mark.parametrize("concentration", [0.4, 1.0, 2.5])
def test_coalescent_and_fragmentation_are_in_balance(concentration):
    merge, part = generators(5, concentration)
    law = restaurant(5, concentration)
    np.testing.assert_allclose(law[:, None] * np.triu(merge, 1), (law[:, None] * np.tril(part, -1)).T, atol=1e-15)
    np.testing.assert_allclose(law @ (merge + part), 0.0, atol=1e-14)
    gaps = [np.abs(law @ expm(dt * merge) @ expm(dt * part) - law).sum() for dt in (1e-2, 5e-3)]
    assert gaps[0] / gaps[1] == pytest.approx(4.0, rel=0.1)  # of order dt^2
    wrong = generators(5, 2.0 * concentration)[1]
    assert np.abs(law @ (merge + wrong)).sum() > 0.05


@pytest.mark.parametrize("concentration", [0.7, 2.0])
def test_draws_come_back_to_the_restaurant(concentration):
    states, times = {state: i for i, state in enumerate(partitions(4))}, 2500
    before, merged, after = np.zeros((3, 15))
    for seed in range(times):
        key = jax.random.split(jax.random.key(seed), 3)
        drawn = sample_partition(4, concentration, key[0])
        once = coalesced(drawn, 0.2, key[1])
        before[states[tuple(drawn.tolist())]] += 1
        merged[states[tuple(once.tolist())]] += 1
        after[states[tuple(fragmented(once, 0.2, key[2], concentration).tolist())]] += 1
    law = restaurant(4, concentration)
    merge, part = generators(4, concentration)
    assert stats.chisquare(before, times * law).pvalue > 1e-3
    assert stats.chisquare(merged, times * law @ expm(0.2 * merge)).pvalue > 1e-3
    assert stats.chisquare(after, times * law @ expm(0.2 * merge) @ expm(0.2 * part)).pvalue > 1e-3
    assert stats.chisquare(merged, times * law).pvalue < 1e-6  # fragmentation had something to undo


def test_partitions_refuse_bad_requests():
    key = jax.random.key(0)
    with pytest.raises(DataError, match="concentration"):
        sample_partition(4, 0.0, key)
    with pytest.raises(DataError, match="duration"):
        coalesced([0, 1], -1.0, key)
    with pytest.raises(DataError, match="rate"):
        fragmented([0, 0], 1.0, key, 0.0)

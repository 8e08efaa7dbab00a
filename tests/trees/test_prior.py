"""The prior: its worked example, exchangeability, normalisation, divergence functions, and what is refused."""

import itertools

import numpy as np
import pytest
from enumeration import log_probability, structures
from oracle import random_tree, restricted
from scipy import integrate
from scipy.special import gamma, gammaln

from cavity.factors.errors import DataError, ModelError, UnsupportedError
from cavity.models.trees.divergence import Divergence
from cavity.models.trees.prior import TreePrior, log_prior, log_structure, log_times, tables
from cavity.models.trees.tree import ORIGIN, Tree

REGIMES = [(0.0, 0.0), (1.0, 0.0), (0.8, 0.25), (-0.5, 0.4), (3.0, -1.0), (8.0, -2.0), (-1.2, 0.6), (4.0, -2.0)]
NEAL = Divergence(rate=0.5, constant=1.0, square=0.3)
EXAMPLE = Tree(np.array([5, 4, 5, 4, -1, 4]), np.array([np.inf] * 4 + [-np.log(0.7), -np.log(0.3)]))


def sequential(tree, prior):
    """Log density, in depths, that the leaves arrive in their order: each point's own walk, from the definition."""
    theta, alpha, a = prior.concentration, prior.discount, prior.divergence
    total = 0.0
    for arrived in range(2, tree.n_leaves + 1):
        now = restricted(tree, range(arrived))
        before = now.members[:, : arrived - 1].sum(1)  # points that went there earlier
        path = [arrived - 1]
        while now.parent[path[0]] != ORIGIN:
            path.insert(0, now.parent[path[0]])
        above = 0.0
        for node, following in itertools.pairwise(path):
            m = before[node]
            rate = gamma(m - alpha) / gamma(m + 1.0 + theta)
            total -= rate * (a.cumulative(now.depth[node]) - a.cumulative(above))
            others = [child for child in now.children[node] if before[child]]
            if len(others) == 1:
                total += np.log(rate * a.intensity(now.depth[node]))
            elif following == arrived - 1:
                total += np.log((theta + alpha * len(others)) / (m + theta))
            else:
                total += np.log((before[following] - alpha) / (m + theta))
            above = now.depth[node]
    return total


@pytest.mark.parametrize(("parameters", "wanted"), [((1.0, 0.0), -3.00170840), ((0.8, 0.25), -2.43816033)])
def test_worked_example(parameters, wanted):
    assert log_prior(EXAMPLE, TreePrior(*parameters), "time") == pytest.approx(wanted, abs=5e-9)


@pytest.mark.parametrize("parameters", REGIMES)
@pytest.mark.parametrize("divergence", [Divergence(), Divergence(2.5), NEAL])
def test_points_in_any_order_have_the_stated_density(parameters, divergence):
    prior, random = TreePrior(*parameters, divergence), np.random.default_rng(3)
    for _ in range(3):
        tree = random_tree(random, 7, many=0.0 if prior.binary else 0.3)
        if prior.most_children and max(map(len, tree.children)) > prior.most_children:
            assert log_prior(tree, prior) == -np.inf
            continue
        for _ in range(4):
            shuffled = restricted(tree, random.permutation(7))
            assert sequential(shuffled, prior) == pytest.approx(log_prior(tree, prior), rel=1e-11, abs=1e-11)


def test_every_order_of_the_example():
    prior = TreePrior(0.8, 0.25)
    found = [sequential(restricted(EXAMPLE, order), prior) for order in itertools.permutations(range(4))]
    np.testing.assert_allclose(found, log_prior(EXAMPLE, prior), rtol=1e-12)


def set_partitions(items):
    if not items:
        yield []
        return
    for rest in set_partitions(items[1:]):
        yield [[items[0]], *rest]
        for i, block in enumerate(rest):
            yield [*rest[:i], [items[0], *block], *rest[i + 1 :]]


@pytest.mark.parametrize("parameters", REGIMES)
def test_splits_of_a_clade_sum_to_the_harmonic_number(parameters):
    theta, alpha = parameters
    prior = TreePrior(*parameters)
    for m in range(2, 8):
        total = 0.0
        for partition in set_partitions(list(range(m))):
            if 2 <= len(partition) <= (prior.most_children or m):
                new = np.prod([theta + (k - 1) * alpha for k in range(3, len(partition) + 1)])
                follow = np.prod([gamma(len(block) - alpha) for block in partition])
                total += new * follow / (gamma(m + theta) * gamma(1.0 - alpha) ** (len(partition) - 1))
        assert tables(prior, m).harmonic[m - 1] == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("parameters", REGIMES)
def test_structures_have_total_probability_one(parameters):
    prior = TreePrior(*parameters)
    for n in range(1, 6):
        total = sum(np.exp(log_probability(tree, prior)) for tree in structures(n))
        assert total == pytest.approx(1.0, rel=1e-12)


def test_numbers_of_structures():
    assert [len({t.structure for t in structures(n, 2)}) for n in range(1, 7)] == [1, 1, 3, 15, 105, 945]
    assert [len({t.structure for t in structures(n)}) for n in range(1, 6)] == [1, 1, 4, 26, 236]
    assert len(structures(5)) == 236
    with pytest.raises(UnsupportedError, match="1 to 6 leaves"):
        structures(7)


def test_balanced_tree_of_four():
    balanced = [t for t in structures(4, 2) if sorted(t.count[list(t.children[t.top])]) == [2, 2]]
    assert len(balanced) == 3
    assert sum(np.exp(log_probability(t, TreePrior())) for t in balanced) == pytest.approx(3.0 / 11.0, rel=1e-13)


@pytest.mark.parametrize("parameters", [(0.0, 0.0), (0.8, 0.25), (3.0, -1.0), (-1.2, 0.6)])
@pytest.mark.parametrize("divergence", [Divergence(1.7), NEAL])
def test_density_of_three_leaves_integrates_to_one(parameters, divergence):
    """From log_prior alone; structure by structure to `log_probability`."""
    prior, total = TreePrior(*parameters, divergence), 0.0
    x, weight = np.polynomial.laguerre.laggauss(24)
    x, weight = 0.8 * x, 0.8 * weight * np.exp(x)  # of an integral over the half-line, whatever the integrand
    harmonic = tables(prior, 3).harmonic
    for tree in structures(3, prior.most_children):
        found = 0.0
        for places in itertools.product(range(24), repeat=tree.n_nodes - 3):
            depth, level, mass = np.full(tree.n_nodes, np.inf), {ORIGIN: 0.0}, 1.0
            for place, node in zip(places, tree.order[-1:2:-1], strict=True):
                level[node] = level[tree.parent[node]] + x[place] / harmonic[tree.count[node] - 1]
                depth[node] = divergence.inverse(level[node])
                mass *= weight[place] / harmonic[tree.count[node] - 1] / divergence.intensity(depth[node])
            found += mass * np.exp(log_prior(Tree(tree.parent, depth), prior))
        assert found == pytest.approx(np.exp(log_probability(tree, prior)), rel=1e-10)
        total += found
    assert total == pytest.approx(1.0, rel=1e-10)


@pytest.mark.parametrize("parameters", REGIMES)
@pytest.mark.parametrize("rate", [0.4, 1.0, 3.0])
def test_pair(parameters, rate):
    """Mean time at which two points part, 1 / (1 + c H), which is the correlation of their locations; both measures."""
    prior = TreePrior(*parameters, Divergence(rate))
    depth = np.exp(np.linspace(-40.0, 20.0, 1201))
    pairs = [Tree(np.array([2, 2, -1]), np.array([np.inf, np.inf, d])) for d in depth]
    density = np.exp([log_prior(pair, prior) for pair in pairs])
    mass = depth * 0.05 * density  # the trapezoidal rule in log depth
    assert mass.sum() == pytest.approx(1.0, rel=1e-9)
    harmonic = gamma(1.0 - prior.discount) / gamma(2.0 + prior.concentration)
    assert (1.0 - np.exp(-depth)) @ mass == pytest.approx(1.0 / (1.0 + rate * harmonic), rel=1e-8)
    in_time = np.array([log_prior(pair, prior, "time") for pair in pairs[:800]])
    np.testing.assert_allclose(np.exp(in_time), density[:800] * np.exp(depth[:800]), rtol=1e-9)


def test_measures_differ_by_the_time_left():
    for seed in range(5):
        tree = random_tree(np.random.default_rng(seed), 9, many=0.2)
        prior = TreePrior(1.0, 0.3)
        left = np.log1p(-tree.time[9:]).sum()
        assert log_prior(tree, prior, "depth") - log_prior(tree, prior, "time") == pytest.approx(left, rel=1e-9)
        assert log_prior(tree, prior) == pytest.approx(log_structure(tree, prior) + log_times(tree, prior))
    with pytest.raises(DataError, match="measure"):
        log_times(EXAMPLE, TreePrior(1.0), "t")


def test_tables_by_hand():
    table = tables(TreePrior(3.0, -1.0), 6)
    m = np.arange(1, 7)
    np.testing.assert_allclose(np.diff(table.harmonic), gamma(m + 1.0) / gamma(m + 4.0), rtol=1e-12)
    np.testing.assert_allclose(table.log_follow[1:], gammaln(m + 1.0))
    np.testing.assert_allclose(table.log_total[2:], gammaln(m[1:] + 3.0))
    np.testing.assert_array_equal(table.log_new[:3], 0.0)
    assert table.log_new[3] == pytest.approx(0.0)  # concentration + 2 discount = 1
    assert (table.log_new[4:] == -np.inf).all()
    for prior in (TreePrior(), TreePrior(-1.2, 0.6), TreePrior(2.0, -1.0)):  # binary: no third child, nor a later one
        assert (tables(prior, 8).log_new[3:] == -np.inf).all()
    for n in (1, 2):
        assert all(np.isfinite(entry).all() for entry in tables(TreePrior(1.0, 0.2), n))


@pytest.mark.parametrize(
    "divergence", [Divergence(), Divergence(0.2), NEAL, Divergence(0.0, 0.0, 2.0), Divergence(1, 5)]
)
def test_divergence_functions(divergence):
    depth = np.concatenate([[0.0], np.logspace(-9, 1.5, 60)])
    time = -np.expm1(-depth)
    a = divergence.rate / (1.0 - time) + divergence.constant + divergence.square / (1.0 - time) ** 2
    np.testing.assert_allclose(divergence.intensity(depth[:50]), (a * (1.0 - time))[:50], rtol=1e-6)
    for d in (1e-3, 0.5, 3.0):
        integral = integrate.quad(lambda x: float(divergence.intensity(x)), 0.0, d, epsabs=0.0, epsrel=1e-12)[0]
        assert float(divergence.cumulative(d)) == pytest.approx(integral, rel=1e-11)
    np.testing.assert_allclose(divergence.inverse(divergence.cumulative(depth)), depth, rtol=1e-13)
    level = np.logspace(-200, 200, 400)
    np.testing.assert_allclose(divergence.cumulative(divergence.inverse(level)), level, rtol=1e-12)
    assert divergence.inverse(np.array([0.0, np.inf])).tolist() == [0.0, np.inf]
    assert (np.diff(divergence.inverse(level)) >= 0.0).all()


@pytest.mark.parametrize(
    "bad",
    [{"rate": -1.0}, {"rate": np.nan}, {"square": np.inf}, {"constant": -0.1}, {"rate": "1"}, {"rate": [1.0, 2.0]}],
)
def test_bad_divergence_functions_are_refused(bad):
    with pytest.raises(ModelError, match=f"finite {next(iter(bad))}"):
        Divergence(**bad)


def test_a_divergence_function_with_finite_integral_is_refused():
    with pytest.raises(ModelError, match="coincide"):
        Divergence(rate=0.0, constant=5.0)


@pytest.mark.parametrize(
    ("concentration", "discount", "match"),
    [
        (np.nan, 0.0, "finite"),
        (0.0, np.inf, "finite"),
        ("1", 0.0, "finite"),
        (0.0, 1.0, "below 1"),
        (-2.0, 1.5, "below 1"),
        (-1.0, 0.2, "third child"),
        (2.5, -1.0, "-k discount"),
        (1.0, -1.0, "-k discount"),
        (-1.0, -1.0, "-k discount"),
        (500.0, 0.0, "coincide"),
    ],
)
def test_bad_parameters_are_refused(concentration, discount, match):
    with pytest.raises(ModelError, match=match):
        TreePrior(concentration, discount)


def test_a_divergence_must_be_one():
    with pytest.raises(ModelError, match="Divergence"):
        TreePrior(divergence=1.0)


def test_regimes_know_their_largest_degree():
    assert [TreePrior(*p).most_children for p in REGIMES] == [2, None, None, None, 3, 4, 2, 2]
    assert [TreePrior(*p).binary for p in REGIMES] == [True, False, False, False, False, False, True, True]
    assert TreePrior(np.float32(1.0), np.array(0.25)) == TreePrior(1.0, 0.25)
    assert hash(TreePrior(np.float64(1.0))) == hash(TreePrior(1.0))

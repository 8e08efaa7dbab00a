"""What trees are compared with: conjugate Gaussians, an infinite mixture by Gibbs and merges, against enumeration."""

import infinite_mixture
import merges
import numpy as np
import pytest
from conjugate import Law, Sums, log_marginal, log_predictive, sums_of
from scipy.special import gammaln, logsumexp
from scipy.stats import gamma, norm

LAWS = [Law(0.3, 4.0, 0.7), Law(0.3, 2.5, 0.7, columns=True)]


def partitions(n):
    """All partitions of n things, as (n,) labels in the order of their first members."""
    if not n:
        yield ()
        return
    for rest in partitions(n - 1):
        for label in range(max(rest, default=-1) + 2):
            yield (*rest, label)


def summed(sums):
    return Sums(*(part.sum(axis=0) for part in (sums.number, sums.total, sums.square)))


def weights(rows, law, mass):
    """{labels: log p(labels, rows)} under a Dirichlet process mixture."""
    own, found = sums_of(rows, law), {}
    for labels in partitions(len(rows)):
        parts = [summed(own[np.array(labels) == k]) for k in range(max(labels) + 1)]
        prior = sum(np.log(mass) + gammaln(part.number) for part in parts)
        prior += gammaln(mass) - gammaln(mass + len(rows))
        found[labels] = prior + log_marginal(infinite_mixture.stacked(parts), law).sum()
    return found


@pytest.mark.parametrize("law", LAWS, ids=["full", "columns"])
def test_predictions_one_after_another_make_the_marginal(law):
    rows = np.random.default_rng(0).normal(size=(6, 3))
    own, total = sums_of(rows, law), 0.0
    for n in range(6):
        before = summed(own[np.arange(6) < n])
        total += log_predictive(rows[[n]], infinite_mixture.stacked([before]), law)[0, 0]
    assert log_marginal(summed(own), law) == pytest.approx(total, abs=1e-10)


def test_one_column_is_an_integral_over_mean_and_precision():
    law, rows = Law(0.3, 4.0, 0.7), np.array([[0.4], [-1.1], [2.0]])

    def density(mean, precision):
        prior = gamma.pdf(precision, 2.0, scale=2.0 / 0.7) * norm.pdf(mean, 0.0, (0.3 * precision) ** -0.5)
        return prior * np.prod([norm.pdf(row, mean, precision**-0.5) for row in rows[:, 0]], axis=0)

    mean, log_precision = np.linspace(-25.0, 25.0, 2001)[:, None], np.linspace(-14.0, 5.0, 800)
    exact = (density(mean, np.exp(log_precision)) * np.exp(log_precision)).sum() * 0.025 * (19.0 / 799.0)
    for columns in (False, True):
        same = law._replace(columns=columns)
        assert log_marginal(summed(sums_of(rows, same)), same) == pytest.approx(np.log(exact), abs=1e-5)


@pytest.mark.parametrize("law", LAWS, ids=["full", "columns"])
def test_the_sampler_has_the_posterior_of_all_partitions(law, monkeypatch):
    rows = np.array([[0.0, 0.2], [0.3, -0.1], [2.5, 2.2], [2.2, 2.9]])
    exact = weights(rows, law, 0.8)
    total = logsumexp(list(exact.values()))
    monkeypatch.setattr(infinite_mixture, "drawn_mass", lambda *_: 0.8)
    draws = infinite_mixture.sample(rows, 1500, columns=law.columns, keep=1, grid=[law])[50:]
    found: dict[tuple[int, ...], float] = {}
    for draw in draws:
        labels = tuple(np.unique(draw.cluster, return_index=True)[1][draw.cluster])
        order = {first: place for place, first in enumerate(sorted(set(labels)))}
        key = tuple(order[first] for first in labels)
        found[key] = found.get(key, 0.0) + 1.0 / len(draws)
    for labels, log_weight in exact.items():
        probability = np.exp(log_weight - total)
        assert abs(found.get(labels, 0.0) - probability) < 5.0 * np.sqrt(probability / 150.0) + 1e-3, labels
    test = np.array([[0.1, 0.1], [5.0, -3.0]])
    densities = []
    for labels, log_weight in exact.items():
        draw = infinite_mixture.Draw(np.array(labels), 0.8, law)
        densities.append(log_weight - total + infinite_mixture.log_density(rows, [draw], test))
    assert np.allclose(infinite_mixture.log_density(rows, draws, test), logsumexp(densities, axis=0), atol=0.1)


def test_the_mass_given_clusters_is_its_posterior():
    random, mass, kept = np.random.default_rng(0), 1.0, []
    for _ in range(20_000):
        mass = infinite_mixture.drawn_mass(mass, 4, 30, random)
        kept.append(mass)
    grid = np.linspace(1e-3, 15.0, 4000)
    log = 4.0 * np.log(grid) + gammaln(grid) - gammaln(grid + 30.0) - grid
    weight = np.exp(log - log.max())
    assert np.mean(kept) == pytest.approx((weight * grid).sum() / weight.sum(), rel=0.03)


@pytest.mark.parametrize("law", LAWS, ids=["full", "columns"])
def test_the_evidence_of_merges_is_the_sum_over_the_partitions_of_the_tree(law):
    rows = np.random.default_rng(3).normal(size=(5, 2)) + 3.0 * np.array([[0, 0, 1, 1, 1]]).T
    found = merges.merge(rows, law, 0.7)
    members = [frozenset([n]) for n in range(5)]
    cuts = [[frozenset([members[n]])] for n in range(5)]
    for i, j in found.children:
        members.append(members[i] | members[j])
        cuts.append([frozenset([members[-1]]), *(one | two for one in cuts[i] for two in cuts[j])])
    exact = weights(rows, law, 0.7)
    of_tree = [
        log
        for labels, log in exact.items()
        if frozenset(frozenset(np.flatnonzero(np.array(labels) == k).tolist()) for k in set(labels)) in cuts[-1]
    ]
    prior = [sum(np.log(0.7) + gammaln(len(part)) for part in cut) + gammaln(0.7) - gammaln(5.7) for cut in cuts[-1]]
    assert found.log_evidence == pytest.approx(logsumexp(of_tree) - logsumexp(prior), abs=1e-9)
    share = merges.shares(found)
    assert (share * found.sums.number).sum() == pytest.approx(5.0)
    assert set(merges.clusters(found, 2)[[0, 1]]) != set(merges.clusters(found, 2)[[2, 3, 4]])
    grid = np.linspace(-30.0, 30.0, 241)
    points = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2)
    assert np.exp(merges.log_density(found, points)).sum() * 0.25**2 == pytest.approx(1.0, abs=0.03)


def test_rows_below_one_cluster_are_in_it_whatever_the_odds_below():
    found = merges.merge(np.array([[0.0], [0.1], [0.2], [9.0]]), Law(0.3, 4.0, 0.7), 1.0)
    found = found._replace(children=np.array([[0, 1], [4, 2], [5, 3]]))
    for odds, expected in (([-1, 2, -1], [0, 0, 0, 1]), ([1, -2, -1], [0, 0, 1, 2]), ([-1, -1, 3], [0, 0, 0, 0])):
        label = merges.clusters(found._replace(log_odds=np.array([np.inf] * 4 + odds)))
        together = np.equal.outer(label, label)
        assert np.array_equal(together, np.equal.outer(expected, expected)), odds
    assert [len(set(merges.clusters(found, number))) for number in (1, 2, 3, 4)] == [1, 2, 3, 4]

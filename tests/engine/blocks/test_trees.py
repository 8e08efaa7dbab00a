"""Trees against dense algebra, enumeration and chains."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

import cavity as cv

close = np.testing.assert_allclose
RNG = np.random.default_rng(5)
PARENT = np.array([2, 2, 2, 0, 0, 1, 5, 3])


def diffusion():
    m = cv.Model()
    node = m.plate("node")
    parent = m.input("parent", cv.index(node), plates=node)
    length = m.input("length", cv.positive, plates=node)
    location = m.tree(
        "location",
        over=node,
        parent=parent,
        root=cv.gaussian(0.0, variance=1e-6),
        then=lambda above: cv.gaussian(above, variance=length),
    )
    m.random("x", cv.gaussian(location, variance=0.5))
    return m


def branches(parent, i):
    """The elements from i up to its root, without the root."""
    found = []
    while parent[i] != i:
        found.append(i)
        i = parent[i]
    return found, i


def diffusion_covariance(parent, length, root):
    size = len(parent)
    paths = [branches(parent, i) for i in range(size)]
    cov = np.zeros((size, size))
    for i, j in itertools.product(range(size), repeat=2):
        if paths[i][1] == paths[j][1]:
            cov[i, j] = root + sum(length[k] for k in set(paths[i][0]) & set(paths[j][0]))
    return cov


@pytest.mark.parametrize("parent", [PARENT, np.array([0, 0, 1, 2, 3, 4, 5, 6]), np.array([0, 1, 0, 1, 2, 3, 3, 7])])
def test_diffusion_of_the_language_against_a_dense_normal(parent):
    """A bushy tree, a chain, and three trees at once."""
    length, data = RNG.uniform(0.5, 2.0, 8), RNG.normal(size=8)
    data[2] = np.nan
    posterior = cv.infer(diffusion(), {"parent": parent, "length": length, "x": data})
    cov = diffusion_covariance(parent, length, 1e-6)
    seen = np.flatnonzero(~np.isnan(data))
    total = cov[np.ix_(seen, seen)] + 0.5 * np.eye(len(seen))
    gain = cov[:, seen] @ np.linalg.inv(total)
    np.testing.assert_allclose(posterior["location"].mean, gain @ data[seen], rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(posterior["location"].variance, np.diag(cov - gain @ cov[seen]), rtol=1e-8)
    evidence = multivariate_normal(np.zeros(len(seen)), total).logpdf(data[seen])
    np.testing.assert_allclose(posterior.log_evidence, evidence, rtol=1e-11)


def test_another_tree_does_not_recompile():
    program = cv.compile(diffusion(), observed=["x"])
    for parent in (PARENT, np.array([0, 0, 1, 2, 3, 4, 5, 6])):
        program({"parent": parent, "length": RNG.uniform(0.5, 2.0, 8), "x": RNG.normal(size=8)})
    assert program.traces == 1


@pytest.mark.slow
def test_a_tree_whose_parents_are_the_elements_before_is_a_chain():
    """With a random precision, so that the pairs' moments are compared too."""
    data = np.cumsum(RNG.normal(size=(10, 2)), axis=0)

    def model(tree):
        m = cv.Model()
        t = m.plate("t")
        precision = m.random("precision", cv.wishart(dof=4.0, scale=np.eye(2) / 4.0))
        first = cv.vector_gaussian(np.zeros(2), covariance=np.eye(2))

        def then(above):
            return cv.vector_gaussian(0.9 * above, precision=precision)

        if tree:
            parent = m.input("parent", cv.index(t), plates=t)
            state = m.tree("state", over=t, parent=parent, root=first, then=then)
        else:
            state = m.chain("state", over=t, first=first, then=then)
        m.random("y", cv.vector_gaussian(state, covariance=np.eye(2)))
        return m

    chain = cv.infer(model(False), {"y": data}, tolerance=1e-10)
    tree = cv.infer(model(True), {"y": data, "parent": np.maximum(np.arange(10) - 1, 0)}, tolerance=1e-10)
    np.testing.assert_allclose(tree["state"].mean, chain["state"].mean, rtol=1e-8)
    np.testing.assert_allclose(tree["precision"].mean, chain["precision"].mean, rtol=1e-8)
    np.testing.assert_allclose(tree.log_evidence, chain.log_evidence, rtol=1e-10)


def test_a_discrete_tree_against_enumeration():
    """Mutation along a phylogeny, one table for all branches."""
    table, first, values = RNG.dirichlet(np.ones(2), size=2), np.array([0.3, 0.7]), np.array([-1.0, 1.0])
    data = RNG.normal(size=8)
    m = cv.Model()
    node, k = m.plate("node"), m.plate("k", 2)
    parent = m.input("parent", cv.index(node), plates=node)
    rows = m.input("rows", cv.simplex(2), plates=k)
    value = m.input("value", cv.real, plates=k)
    z = m.tree(
        "z", over=node, parent=parent, root=cv.categorical(first), then=lambda above: cv.categorical(rows[above])
    )
    m.random("y", cv.gaussian(value[z], variance=0.5))
    posterior = cv.infer(m, {"parent": PARENT, "rows": table, "value": values, "y": data})
    states = np.array(list(itertools.product(range(2), repeat=8)))
    log = np.log(first)[states[:, 2]] - 0.5 * np.sum((data - values[states]) ** 2 / 0.5 + np.log(np.pi), axis=1)
    log += sum(np.log(table)[states[:, PARENT[i]], states[:, i]] for i in range(8) if i != 2)
    weight = np.exp(log - logsumexp(log))
    marginals = np.array([[weight[states[:, i] == j].sum() for j in range(2)] for i in range(8)])
    np.testing.assert_allclose(posterior["z"].mean, marginals, rtol=1e-9)
    np.testing.assert_allclose(posterior.log_evidence, logsumexp(log), rtol=1e-11)


def test_mutations_are_learnt_from_an_observed_tree():
    shown = np.array([0, 1, 0, 0, 1, 1, 1, 0])
    m = cv.Model()
    node, k = m.plate("node"), m.plate("k", 2)
    parent = m.input("parent", cv.index(node), plates=node)
    rows = m.random("rows", cv.dirichlet(np.ones(2)), plates=k)
    m.tree("z", over=node, parent=parent, root=cv.categorical([0.5, 0.5]), then=lambda a: cv.categorical(rows[a]))
    posterior = cv.infer(m, {"parent": PARENT, "z": shown})
    counts = np.ones((2, 2))
    for i, above in enumerate(PARENT):
        counts[shown[above], shown[i]] += i != above
    np.testing.assert_allclose(posterior["rows"].parameters["concentration"], counts, rtol=1e-10)


def test_parents_that_form_a_cycle_are_refused():
    data = {"length": np.ones(4), "x": np.zeros(4)}
    with pytest.raises(cv.DataError, match="a cycle: 1 -> 2 -> 1; 3 elements never reach a root"):
        cv.infer(diffusion(), {"parent": np.array([0, 2, 1, 1]), **data})
    with pytest.raises(cv.DataError, match=r"must lie in 0 \.\.\. 3"):
        cv.infer(diffusion(), {"parent": np.array([0, 0, 1, 4]), **data})


def test_the_parent_must_be_an_index_into_the_same_plate():
    m = cv.Model()
    node, other = m.plate("node"), m.plate("other")
    parent = m.input("parent", cv.index(other), plates=node)
    with pytest.raises(cv.ModelError, match=r"must be an input of domain cv.index\(node\)"):
        m.tree("x", over=node, parent=parent, root=cv.gaussian(0.0, variance=1.0), then=lambda a: cv.gaussian(a, sd=1))


# parameters of every element ------------------------------------------------------------------------------------------


def best_gamma(step):
    """Mean and evidence bound of the best Gamma for l ~ Gamma(1, 2) and a step ~ N(0, l)."""

    def loss(z):
        a, b = 1.0 + np.exp(z[0]), np.exp(z[1])
        log, mean, inverse = scipy.special.digamma(a) - np.log(b), a / b, b / (a - 1.0)
        entropy = a - np.log(b) + scipy.special.gammaln(a) + (1.0 - a) * scipy.special.digamma(a)
        seen = -0.5 * np.log(2.0 * np.pi) - 0.5 * log - 0.5 * step**2 * inverse
        return -(seen + np.log(2.0) - 2.0 * mean + entropy)

    found = scipy.optimize.minimize(loss, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13})
    a, b = 1.0 + np.exp(found.x[0]), np.exp(found.x[1])
    return a / b, -found.fun


@pytest.mark.parametrize("parents", [None, [0, 0, 1, 1], [0]], ids=["chain", "tree", "root alone"])
def test_a_length_that_nothing_uses_stays_at_its_prior(parents):
    """The first element has no step: 1 / length has no mean there, which must spoil nothing."""
    m = cv.Model()
    node = m.plate("node")
    length = m.random("length", cv.gamma(1.0, 2.0), plates=node)
    values, data = np.array([0.3, 1.1, -0.4, 2.0]), {}
    first, then = cv.gaussian(0.0, variance=1.0), lambda above: cv.gaussian(above, precision=1 / length)
    if parents is None:
        m.chain("state", over=node, first=first, then=then)
        parents = [0, 0, 1, 2]
    else:
        data["parent"] = parents
        parent = m.input("parent", cv.index(node), plates=node)
        m.tree("state", over=node, parent=parent, root=first, then=then)
    values = values[: len(parents)]
    posterior = cv.infer(m, {**data, "state": values}, tolerance=1e-8, accuracy="fast")
    best = [best_gamma(values[i] - values[parents[i]]) for i in range(1, len(values))]
    close(posterior["length"].mean, [0.5, *(mean for mean, _ in best)], rtol=1e-5)
    bound = scipy.stats.norm.logpdf(values[0]) + sum(bound for _, bound in best)
    close(posterior.log_evidence, bound, atol=1e-7)


def test_lengths_of_hidden_elements_are_finite():
    """The model of a diffusion with unknown lengths, against lengths drawn from their prior and weighted."""
    m = cv.Model()
    node = m.plate("node")
    parent = m.input("parent", cv.index(node), plates=node)
    length = m.random("length", cv.gamma(1.0, 2.0), plates=node)
    first, then = cv.gaussian(0.0, variance=1.0), lambda above: cv.gaussian(above, precision=1 / length)
    place = m.tree("place", over=node, parent=parent, root=first, then=then)
    m.random("y", cv.gaussian(place, variance=0.1))
    parents, y = [0, 0, 0, 1, 1], np.array([0.0, 1.0, -1.0, 2.0, 1.5])
    posterior = cv.infer(m, {"parent": parents, "y": y}, accuracy="fast")
    lengths = np.random.default_rng(0).gamma(1.0, 0.5, size=(40_000, 5))
    prior = np.zeros((40_000, 5, 5))
    prior[:, 0, 0] = 1.0
    for i in range(1, 5):
        prior[:, i, :i] = prior[:, parents[i], :i]
        prior[:, :i, i] = prior[:, i, :i]
        prior[:, i, i] = prior[:, parents[i], parents[i]] + lengths[:, i]
    seen = prior + 0.1 * np.eye(5)
    solved = np.linalg.solve(seen, np.broadcast_to(y, (40_000, 5))[..., None])[..., 0]
    log = -0.5 * (solved @ y) - 0.5 * np.linalg.slogdet(2.0 * np.pi * seen)[1]
    weights = np.exp(log) / np.exp(log).sum()
    places = weights @ np.einsum("nij,nj->ni", prior, solved)
    assert posterior.converged
    close(posterior["place"].mean, places, atol=0.03)  # a structured approximation: not exact
    close(posterior["length"].mean, weights @ lengths, atol=0.06)
    assert posterior.log_evidence < np.log(np.exp(log).mean())

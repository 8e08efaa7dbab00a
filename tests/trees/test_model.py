"""The model of a diffusion tree in the language, against dense Gaussians, conjugacy, quadrature and the EP of sites."""

import numpy as np
import pytest
from oracle import dense_evidence, dense_sweep, random_tree
from scipy.integrate import dblquad, quad
from scipy.special import digamma, expit, gammaln, logsumexp
from scipy.stats import gamma, multivariate_normal, norm, poisson

import cavity as cv
from cavity.models.diffusion_tree import diffusion_tree, gaussian_leaves, mixed_leaves, probit_leaves
from cavity.models.trees.divergence import Divergence
from cavity.models.trees.inputs import inputs, log_constant
from cavity.models.trees.likelihoods.leaves import to_leaves
from cavity.models.trees.likelihoods.sites import fit_sites
from cavity.models.trees.likelihoods.table import Data
from cavity.models.trees.prior import TreePrior, log_prior
from cavity.models.trees.shapes.arrays import pack
from cavity.models.trees.tree import Tree

PRIOR = TreePrior(concentration=0.5, discount=0.2, divergence=Divergence(1.5, 0.3))
PAIR = Tree(np.array([2, 2, -1]), np.array([np.inf, np.inf, 0.8]))


def log_waiting(tree, prior):
    """log joint of the tree, minus what the model leaves out: its factor `waiting`."""
    return log_prior(tree, prior) - log_constant(tree, prior)


@pytest.fixture(scope="module")
def gaussian():
    return cv.compile(diffusion_tree(3, gaussian_leaves(0.3)), observed=["y", "waiting"], tolerance=1e-10)


def gaussian_case(seed, leaves=6):
    random = np.random.default_rng(seed)
    tree = random_tree(random, leaves)
    values = random.normal(size=(leaves, 3)) * 2.0
    values[1, 2] = values[4, 0] = np.nan
    return tree, values, np.array([0.5, 2.0, 4.0])


def test_evidence_of_gaussian_leaves_is_that_of_a_dense_normal_and_a_new_tree_compiles_nothing(gaussian):
    for seed in range(3):
        tree, values, variance = gaussian_case(seed)
        leaves, jacobian = to_leaves(Data(values), variance, 0.3)
        posterior = gaussian({**inputs(tree, PRIOR), "variance": variance, "y": values})
        total = posterior.log_evidence + log_constant(tree, PRIOR)
        assert total == pytest.approx(dense_evidence(tree, leaves) + jacobian + log_prior(tree, PRIOR), abs=1e-10)
        assert posterior.evidence["waiting"] == pytest.approx(log_waiting(tree, PRIOR), abs=1e-11)
    assert gaussian.traces == 1


def test_gradient_in_lengths_is_the_closed_form(gaussian):
    """d/d length_v = sum over columns of variance ((u' a)^2 - u' K^-1 u) / 2, u the leaves below v, K a = y."""
    tree, values, variance = gaussian_case(7)
    data = {**inputs(tree, PRIOR), "variance": variance, "y": values}
    _, gradient = cv.evidence_gradient(gaussian, data, ["length", "first"])
    expected = np.zeros(tree.n_nodes)
    for d in range(3):
        seen = ~np.isnan(values[:, d])
        covariance = variance[d] * tree.shared_time[np.ix_(seen, seen)] + 0.3 * np.eye(seen.sum())
        below = tree.members[:, seen].astype(float)
        reached = below @ np.linalg.solve(covariance, values[seen, d])
        own = np.einsum("vi,vi->v", below, np.linalg.solve(covariance, below.T).T)
        expected += 0.5 * variance[d] * (reached**2 - own)
    assert gradient["first"] == pytest.approx(expected[tree.top], abs=1e-9)
    others = np.arange(tree.n_nodes) != tree.top
    np.testing.assert_allclose(gradient["length"][others], expected[others], atol=1e-9)


def test_probit_leaves_have_the_evidence_of_ep_sites():
    random = np.random.default_rng(1)
    tree, variance = random_tree(random, 5, 0.3), np.array([2.0, 5.0])
    values = (random.normal(size=(5, 2)) > 0.0) * 1.0
    values[2, 1] = np.nan
    data = Data(values, binary=True)
    sites = fit_sites(
        pack(tree), data, to_leaves(data, variance)[0], variance, sweeps=200, tolerance=1e-12, sweep=dense_sweep(tree)
    )
    posterior = cv.infer(
        diffusion_tree(2, probit_leaves), {**inputs(tree), "variance": variance, "y": values}, tolerance=1e-9
    )
    found = posterior.log_evidence - posterior.evidence["waiting"]
    assert found == pytest.approx(sites.messages.log_evidence + sites.correction, abs=1e-6)


def test_the_posterior_of_the_rate_is_conjugate():
    """Gamma(1 + branch points, 1 + waiting), with its evidence; the locations do not matter to it."""
    tree, values, variance = gaussian_case(3)
    data = {**inputs(tree), "variance": variance, "y": values}
    posterior = cv.infer(diffusion_tree(3, gaussian_leaves(0.3), rate="learned"), data)
    points, total = len(data["waiting"]), data["waiting"].sum()
    assert posterior["rate"].parameters["shape"] == pytest.approx(1.0 + points)
    assert posterior["rate"].parameters["rate"] == pytest.approx(1.0 + total)
    evidence = np.log(quad(lambda c: c**points * np.exp(-c * (1.0 + total)), 0.0, np.inf, epsabs=0.0)[0])
    leaves, jacobian = to_leaves(Data(values), variance, 0.3)
    assert posterior.log_evidence == pytest.approx(evidence + dense_evidence(tree, leaves) + jacobian, abs=1e-9)


def test_a_learned_variance_is_that_of_structured_variational_bayes():
    """Locations exact given the mean precision: the bound's formula, below the integral over the precision."""
    random = np.random.default_rng(5)
    tree = random_tree(random, 8)
    values = random.multivariate_normal(np.zeros(8), 2.0 * tree.shared_time + 0.2 * np.eye(8), size=6).T
    posterior = cv.infer(
        diffusion_tree(6, gaussian_leaves(0.2), variance="shared"),
        {**inputs(tree), "y": values},
        tolerance=1e-9,
        accuracy="fast",
    )
    branches, shape, rate = 6 * tree.n_nodes, *(posterior["precision"].parameters[n] for n in ("shape", "rate"))
    log_mean, mean_log = np.log(shape / rate), digamma(shape) - np.log(rate)
    divergence = (shape - 1.0) * digamma(shape) - gammaln(shape) + np.log(rate) + shape * (1.0 - rate) / rate
    bound = posterior.log_evidence - posterior.evidence["waiting"]
    expected = dense(tree, values, rate / shape, 0.2) + 0.5 * branches * (mean_log - log_mean) - divergence
    assert shape == pytest.approx(1.0 + 0.5 * branches)
    assert bound == pytest.approx(expected, abs=1e-7)
    precision = np.exp(np.linspace(-4.0, 2.0, 301))
    log = np.array([dense(tree, values, 1.0 / p, 0.2) + gamma.logpdf(p, 1.0) + np.log(p) for p in precision])
    exact, weight = logsumexp(log) + np.log(6.0 / 300), np.exp(log - logsumexp(log))
    mean = weight @ precision
    assert exact - 1.5 < bound < exact
    assert abs(shape / rate - mean) < 0.3 * np.sqrt(weight @ (precision - mean) ** 2)


def dense(tree, values, variance, noise):
    leaves, jacobian = to_leaves(Data(values), variance, noise)
    return dense_evidence(tree, leaves) + jacobian


LIKELIHOODS = {
    "counts": (lambda m, x: m.random("y", cv.poisson(cv.exp(x))), [3, 0], lambda x, y: poisson.pmf(y, np.exp(x)), 2e-2),
    "grades": (
        lambda m, x: m.random("y", cv.ordered_probit(x, np.array([-0.5, 0.8]))),
        [2, 1],
        lambda x, y: np.diff(np.concatenate([[0.0], norm.cdf(np.array([-0.5, 0.8]) - x), [1.0]]))[y],
        2e-3,
    ),
    "logistic": (
        lambda m, x: m.random("y", cv.bernoulli(cv.logistic(x))),
        [True, False],
        lambda x, y: expit(x if y else -x),
        2e-3,
    ),
}


@pytest.mark.parametrize(
    "name", ["counts", pytest.param("grades", marks=pytest.mark.slow), pytest.param("logistic", marks=pytest.mark.slow)]
)
def test_any_likelihood_hangs_on_the_leaves(name):
    """Counts, ordered grades and the logistic link, against the integral over two locations."""
    likelihood, values, density, error = LIKELIHOODS[name]
    data = {**inputs(PAIR), "variance": np.array([1.5]), "y": np.array(values)[:, None]}
    posterior = cv.infer(diffusion_tree(1, likelihood), data)
    normal = multivariate_normal(np.zeros(2), 1.5 * PAIR.shared_time)
    exact = dblquad(
        lambda a, b: density(a, values[0]) * density(b, values[1]) * normal.pdf([a, b]), -9, 9, -9, 9, epsabs=1e-8
    )[0]
    assert posterior.converged
    assert posterior.log_evidence - posterior.evidence["waiting"] == pytest.approx(np.log(exact), abs=error)


@pytest.mark.slow
def test_mixed_columns_have_the_sum_of_their_evidences():
    """Columns are independent given the tree; the noise of the numbers is learned."""
    random = np.random.default_rng(2)
    tree, numbers, answers = random_tree(random, 5), random.normal(size=(5, 2)), random.normal(size=(5, 1)) > 0.0
    both = cv.infer(
        diffusion_tree(3, mixed_leaves(), variance="per column"),
        {**inputs(tree), "y": numbers, "answer": answers, "numbers": [0, 1], "questions": [2]},
        tolerance=1e-9,
    )
    first = cv.infer(diffusion_tree(2, variance="per column"), {**inputs(tree), "y": numbers}, tolerance=1e-9)
    second = cv.infer(
        diffusion_tree(1, probit_leaves, variance="per column"), {**inputs(tree), "y": answers}, tolerance=1e-9
    )
    total = first.log_evidence + second.log_evidence - first.evidence["waiting"]
    assert both.log_evidence == pytest.approx(total, abs=1e-6)
    assert both["noise_precision"].mean == pytest.approx(first["noise_precision"].mean, rel=1e-5)


def test_inputs_refuse_what_the_model_cannot_hold():
    with pytest.raises(cv.DataError, match="two leaves at least"):
        inputs(Tree(np.array([-1]), np.array([np.inf])))
    with pytest.raises(cv.DataError, match="above node 3 has length zero"):
        inputs(Tree(np.array([3, 3, 4, 4, -1]), np.array([np.inf] * 3 + [0.5, 0.5])))
    with pytest.raises(cv.ModelError, match='rate= "given" or "learned"'):
        diffusion_tree(2, rate="fixed")

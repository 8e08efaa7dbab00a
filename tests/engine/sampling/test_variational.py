"""Variational transition kernels: the toy of the source at its digits, mixtures and chains against enumeration."""

import itertools

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import gammaln

import cavity as cv
from cavity.engine.sampling.sample import joint_of, kernel_of
from cavity.engine.sampling.variational import log_ratio, planned

OUTER = 25.25252525252525  # the precision of x given z in the toy of the source; the correlation is .98
R = 0.9604  # of the present point, what its proposal keeps
RANDOM = np.random.default_rng(5)


def toy(r=R):
    """theta ~ N(0, 1) with z between: precision [[a, -b], [-b, a]] has r = (b/a)^2."""
    outer = 1.0 / (1.0 - r)
    inner = np.sqrt(r) * outer
    m = cv.Model("toy")
    theta = m.random("theta", cv.gaussian(0.0, precision=outer - inner))
    z = m.random("z", cv.gaussian(theta, precision=inner))
    m.random("x", cv.gaussian(z, precision=outer - inner))
    return m, {"x": np.array(0.0)}


def proposed(model, data, collapse=(), kernel="variational"):
    with jax.enable_x64(True):
        joint = joint_of(model, data, None, {}, 0).bare()
        return joint, planned(joint, kernel_of(kernel, None), 0, collapse)


@pytest.fixture(scope="module")
def ratio():
    """log of the ratio of Metropolis and Hastings in the toy, at points; and the proposal at a point."""
    joint, (left, proposals, _) = proposed(*toy(), ["z"])
    proposal = proposals["theta",]

    def log_ratio_of(now, new):
        return log_ratio(left, ("theta",), proposal, {"theta": now}, {"theta": new}, joint.arrays)

    return jax.jit(log_ratio_of), jax.jit(lambda now: proposal.of({"theta": now}, joint.arrays))


def accepted(ratio, now):
    """The mean acceptance at a point, by quadrature."""
    centre, sd = R * now, OUTER**-0.5
    grid = np.linspace(centre - 9.0 * sd, centre + 9.0 * sd, 20001)
    with jax.enable_x64(True):
        taken = np.exp(np.minimum(0.0, jax.vmap(ratio, (None, 0))(now, grid)))
    return np.trapezoid(taken * stats.norm.pdf(grid, centre, sd), grid)


# the toy --------------------------------------------------------------------------------------------------------------


def test_a_step_proposes_from_the_narrow_gaussian_of_the_source(ratio):
    with jax.enable_x64(True):
        mean, root = ratio[1](1.3)
    np.testing.assert_allclose(np.ravel(mean), R * 1.3, rtol=1e-12)
    np.testing.assert_allclose(np.ravel(root) ** 2, OUTER, rtol=1e-12)


@pytest.mark.parametrize(
    ("now", "wanted", "digits"),
    [
        (0.0, 1.0, 1e-10),
        (1.0, 0.924146, 1e-6),
        (2.0, 0.822387, 1e-6),
        (5.0, 0.480840, 1e-6),
        (10.0, 0.098432, 1e-6),
        (15.0, 0.007958, 1e-6),
        (20.0, 2.46e-4, 1e-6),
    ],
)
def test_acceptance_falls_in_the_tails_as_printed(ratio, now, wanted, digits):
    assert accepted(ratio[0], now) == pytest.approx(wanted, abs=digits)


def test_mean_acceptance_is_that_printed(ratio):
    found = quad(lambda now: 2.0 * stats.norm.pdf(now) * accepted(ratio[0], now), 0.0, 8.0, epsabs=1e-8)[0]
    assert found == pytest.approx(0.939350, abs=1e-6)
    samples = cv.sample(*toy(), draws=5000, chains=4, collapse=["z"], kernel="variational", progress=False)
    assert samples.acceptance["theta"]["variational"] == pytest.approx(0.939350, abs=0.006)


def test_a_walk_moves_what_is_stuck_in_a_tail():
    """A datum far out has chains start a hundred sds from the posterior, where a step alone is never accepted."""
    model, _ = toy()
    far, exact = {"x": np.array(200.0)}, 99.0
    alone, walked = (
        cv.sample(model, far, draws=2000, warmup=1500, chains=2, collapse=["z"], kernel=kernel, progress=False)
        for kernel in (cv.VariationalKernel(random_walk=False), "variational")
    )
    assert alone.acceptance["theta"]["variational"] == 0.0
    assert alone.mean("theta") < exact - 50.0
    assert walked.mean("theta") == pytest.approx(exact, abs=0.2)


@pytest.mark.parametrize(("r", "wanted"), [(0.1, 0.017864), (0.2, 0.095445)])
def test_variance_of_weights_is_the_closed_form(r, wanted):
    assert wanted == pytest.approx((1 - r) * np.sqrt((1 + r) / (1 - r - 4 * r * r)) - 1, abs=1e-6)
    kernel = cv.VariationalKernel(weighted=True)
    model, data = toy(r)
    samples = cv.sample(model, data, draws=20000, chains=4, collapse=["z"], kernel=kernel, progress=False)
    posterior = cv.infer(model, data, method="ep")
    evidence = posterior.log_evidence
    weights = np.exp(samples.log_weights - evidence)
    assert weights.mean() == pytest.approx(1.0, abs=0.01)
    assert weights.var() == pytest.approx(wanted, rel=0.12)
    assert samples.mean("theta") == pytest.approx(0.0, abs=0.02)
    assert samples.sd("theta") == pytest.approx(posterior["theta"].sd, rel=0.03)
    assert samples.pareto_k < 0.7


# what is proposed -----------------------------------------------------------------------------------------------------


def mixture():
    m = cv.Model("mixture")
    n, k = m.plate("n"), m.plate("k", 2)
    share = m.random("share", cv.dirichlet([1.0, 2.0]))
    rate = m.random("rate", cv.gamma(2.0, 0.5), plates=k)
    z = m.random("z", cv.categorical(share), plates=n)
    m.random("y", cv.poisson(rate[z]))
    m.let("sum", rate[0] + rate[1])
    m.let("product", rate[0] * rate[1])
    return m, {"y": np.array([1, 0, 7, 2, 9])}


def test_proposals_have_the_expected_sufficient_statistics():
    model, data = mixture()
    joint, (_, proposals, _) = proposed(model, data)
    share, rate = np.array([0.3, 0.7]), np.array([1.2, 5.0])
    weight = share * stats.poisson.pmf(data["y"][:, None], rate)
    weight /= weight.sum(1, keepdims=True)
    with jax.enable_x64(True):
        values = {"share": jax.numpy.asarray(share), "rate": jax.numpy.asarray(rate)}
        at = {name: proposals[name,].of(values, joint.arrays) for name in ("share", "rate")}
        simplex = RANDOM.dirichlet([2.0, 2.0], 4)
        rates = RANDOM.gamma(3.0, 1.0, (4, 2))
        found_share = [float(proposals["share",].log_density(at["share"], {"share": x})) for x in simplex]
        found_rate = [float(proposals["rate",].log_density(at["rate"], {"rate": x})) for x in rates]
    wanted = stats.gamma(2.0 + weight.T @ data["y"], scale=1.0 / (0.5 + weight.sum(0)))
    np.testing.assert_allclose(found_rate, wanted.logpdf(rates).sum(1), rtol=1e-9)
    wanted = [stats.dirichlet(np.array([1.0, 2.0]) + weight.sum(0)).logpdf(x) for x in simplex]
    np.testing.assert_allclose(found_share, wanted, rtol=1e-9, atol=1e-9)


def test_where_nothing_is_integrated_out_everything_is_accepted():
    m = cv.Model()
    n = m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, sd=10.0))
    precision = m.random("precision", cv.gamma(1.0, 1.0))
    m.random("y", cv.gaussian(mean, precision=precision), plates=n)
    data = {"y": RANDOM.normal(2.0, 1.5, 30)}
    pure = cv.VariationalKernel(random_walk=False)
    samples = cv.sample(m, data, draws=1500, chains=2, kernel=pure, progress=False)
    gibbs = cv.sample(m, data, draws=1500, chains=2, progress=False)
    assert samples.acceptance == {"mean": {"variational": 1.0}, "precision": {"variational": 1.0}}
    for name in ("mean", "precision"):
        assert abs(samples.mean(name) - gibbs.mean(name)) < 0.15 * gibbs.sd(name)


# posteriors -----------------------------------------------------------------------------------------------------------


def exact_mixture(data):
    """Means of the sum and the product of both rates, which know no order, by enumeration of all allocations."""
    y = data["y"]
    weights, means = [], []
    for z in itertools.product([0, 1], repeat=len(y)):
        z = np.array(z)
        counts = np.array([(z == 0).sum(), (z == 1).sum()])
        sums = np.array([y[z == 0].sum(), y[z == 1].sum()])
        shape, rate, alpha = 2.0 + sums, 0.5 + counts, np.array([1.0, 2.0]) + counts
        weights.append(np.sum(gammaln(shape) - shape * np.log(rate)) + gammaln(alpha).sum())
        means.append([(shape / rate).sum(), (shape / rate).prod()])
    weights = np.exp(np.array(weights) - np.max(weights))
    return weights / weights.sum() @ np.array(means)


@pytest.mark.parametrize(
    "kernel",
    [
        cv.VariationalKernel(),
        cv.VariationalKernel(random_walk=False),
        cv.VariationalKernel(weighted=True),
    ],
    ids=["with a walk", "alone", "weighted"],
)
def test_mixture_has_its_exact_means(kernel):
    model, data = mixture()
    samples = cv.sample(model, data, draws=4000, chains=4, kernel=kernel, progress=False)
    found = [samples.mean("sum"), samples.mean("product")]
    assert np.all(np.abs(found - exact_mixture(data)) < [0.1, 0.3])
    assert samples["z"].shape == (4, 4000, 5)


def test_reference_proposes_from_its_beliefs():
    model, data = mixture()
    posterior = cv.infer(model, data, seed=1)
    kernel = cv.VariationalKernel(reference=posterior)
    samples = cv.sample(model, data, draws=4000, chains=4, kernel=kernel, progress=False)
    assert np.all(np.abs([samples.mean("sum"), samples.mean("product")] - exact_mixture(data)) < [0.15, 0.4])
    assert "from the beliefs of the reference" in samples.explain()
    assert 0.0 < samples.acceptance["share, rate"]["variational"] < 1.0


# what is refused ------------------------------------------------------------------------------------------------------


def test_same_seed_same_draws():
    model, data = mixture()
    one, other = (cv.sample(model, data, draws=100, chains=2, kernel="variational", progress=False) for _ in range(2))
    np.testing.assert_array_equal(one["rate"], other["rate"])
    third = cv.sample(model, data, draws=100, chains=2, kernel="variational", seed=1, progress=False)
    assert np.any(third["rate"] != one["rate"])


def test_what_has_no_closed_step_is_named():
    m = cv.Model()
    n = m.plate("n")
    slope = m.random("slope", cv.gaussian(0.0, sd=1.0))
    x = m.input("x", cv.real, plates=n)
    m.random("y", cv.bernoulli(cv.logistic(slope * x)))
    data = {"x": RANDOM.normal(size=6), "y": np.array([0, 1, 1, 0, 1, 1])}
    with pytest.raises(cv.UnsupportedError, match=r"'slope' has no closed step .* kernel='gibbs'"):
        cv.sample(m, data, kernel="variational")
    with pytest.raises(cv.UnsupportedError, match="no belief about 'share'"):
        cv.sample(*mixture(), kernel=cv.VariationalKernel(reference=cv.infer(m, data)))


def test_arguments_are_checked():
    model, data = mixture()
    with pytest.raises(cv.ModelError, match=r"it is 'gibbs', 'variational' or a cv\.VariationalKernel"):
        cv.sample(model, data, kernel="nuts")
    with pytest.raises(cv.ModelError, match=r"a posterior of cv\.infer"):
        cv.VariationalKernel(reference={"rate": 1.0})
    with pytest.raises(cv.UnsupportedError, match="beside Gibbs sampling alone"):
        cv.sample(model, data, kernel="variational", moves={"z": cv.moves.relabels()})

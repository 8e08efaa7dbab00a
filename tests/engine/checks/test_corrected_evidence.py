"""corrected_evidence and corrected_marginals: pairs of factors, against grids and the figures of the source."""

import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_expit, logsumexp

import cavity as cv

RANDOM = np.random.default_rng(2)
FAST = {"method": "ep", "accuracy": "fast", "tolerance": 1e-11}


# mixtures -------------------------------------------------------------------------------------------------------------


def components(x, number=2):
    """The toy of the source: Gaussian components, Dirichlet weights."""
    m = cv.Model("components")
    n, k = m.plate("n"), m.plate("k", number)
    share = m.random("share", cv.dirichlet([1.0] * number))
    tau = m.random("tau", cv.gamma(1.0, 0.11), plates=k)
    mu = m.random("mu", cv.gaussian(0.0, precision=0.01 * tau), plates=k)
    z = m.random("z", cv.categorical(share), plates=n)
    m.random("x", cv.gaussian(mu[z], precision=tau[z]))
    return m, {"x": np.asarray(x)}


SEVEN = [-3.1, -2.4, -1.9, 1.2, 1.8, 2.5, 3.0]


def test_mixture_has_the_figures_of_the_source():
    """Exact is -31.7654: log 2! of the orders of the components is no part of the correction."""
    posterior = cv.infer(*components(SEVEN + SEVEN), method="ep")
    found = posterior.corrected_evidence
    assert posterior.log_evidence == pytest.approx(-32.4599, abs=1e-4)
    assert found == pytest.approx(-32.4593, abs=1e-4)
    assert found.plain == posterior.log_evidence
    assert float(found) == found.plain + found.correction
    assert found.trusted
    assert found.warning == ""


def test_of_seven_rows_one_fixed_point_is_corrected_and_one_cannot_be():
    """Exact is -19.1041, log 2! among it: that of the smaller evidence is the better approximation."""
    modes = cv.infer(*components(SEVEN), method="ep", restarts=12).all_modes()
    good = min(modes, key=lambda mode: abs(mode.log_evidence + 19.8136))
    assert good.log_evidence == pytest.approx(-19.8136, abs=1e-4)
    assert good.corrected_evidence == pytest.approx(-19.8029, abs=1e-4)
    (bad,) = [mode for mode in modes if mode.log_evidence > -19.5]
    with pytest.warns(cv.CavityWarning, match="cannot be trusted"):
        found = bad.corrected_evidence
    assert not found.trusted
    assert "check_evidence" in str(found)


def clutter(x):
    """Half of the numbers are around a centre, the others anywhere."""
    m = cv.Model("clutter")
    n = m.plate("n")
    centre = m.random("centre", cv.gaussian(0.0, variance=100.0))
    z = m.random("z", cv.bernoulli(0.5), plates=n)
    m.random("x", cv.switch(z, cv.gaussian(centre, variance=1.0), cv.gaussian(0.0, variance=10.0)))
    return m, {"x": np.asarray(x)}


def test_pairs_of_a_mixture_are_those_of_a_grid():
    """EP by hand on a grid: q, the tilted distributions, and E_q e_m e_n by quadrature."""
    x = np.array([3.9, 4.4, 3.1, -2.0, 4.9])
    model, data = clutter(x)
    posterior = cv.infer(model, data, **FAST)
    grid = np.linspace(-60.0, 60.0, 120_001)
    step = grid[1] - grid[0]
    like = 0.5 * stats.norm.pdf(x[:, None], grid, 1.0) + 0.5 * stats.norm.pdf(x, 0.0, np.sqrt(10.0))[:, None]
    precision, shift = np.zeros(len(x)), np.zeros(len(x))
    for _ in range(200):
        for i in range(len(x)):
            left, own = 0.01 + precision.sum() - precision[i], shift.sum() - shift[i]
            tilted = like[i] * stats.norm.pdf(grid, own / left, left**-0.5)
            tilted /= tilted.sum() * step
            mean = tilted @ grid * step
            variance = tilted @ (grid - mean) ** 2 * step
            precision[i], shift[i] = 1.0 / variance - left, mean / variance - own
    total = 0.01 + precision.sum()
    q = stats.norm.pdf(grid, shift.sum() / total, total**-0.5)
    ratios = []
    for i in range(len(x)):
        left, own = total - precision[i], shift.sum() - shift[i]
        tilted = like[i] * stats.norm.pdf(grid, own / left, left**-0.5)
        ratios.append(np.where(q > 1e-250, tilted / (tilted.sum() * step) / np.maximum(q, 1e-250), 0.0))
    pairs = [(q @ (ratios[i] * ratios[j])) * step - 1.0 for i in range(len(x)) for j in range(i)]
    np.testing.assert_allclose(posterior["centre"].variance, 1.0 / total, rtol=1e-6)
    found = posterior.corrected_evidence
    assert found.correction == pytest.approx(np.log1p(sum(pairs)), abs=1e-7)
    assert found.size == pytest.approx(np.abs(pairs).sum(), abs=1e-7)
    exact = np.log(np.prod(like, axis=0) @ stats.norm.pdf(grid, 0.0, 10.0) * step)
    assert abs(found - exact) < abs(posterior.log_evidence - exact)


# linear forms of Gaussians --------------------------------------------------------------------------------------------


def on_grid(log_density, dimension, half, points):
    """log of the integral of exp(log_density) over a cube, and the means and sds of this density."""
    line = np.linspace(-half, half, points)
    grid = np.stack(np.meshgrid(*[line] * dimension, indexing="ij"), axis=-1)
    logs = log_density(grid)
    total, axes = logsumexp(logs), tuple(range(dimension))
    weights = np.exp(logs - total)
    mean = np.tensordot(weights, grid, axes=(axes, axes))
    variance = np.tensordot(weights, (grid - mean) ** 2, axes=(axes, axes))
    return total + dimension * np.log(line[1] - line[0]), mean, np.sqrt(variance)


def regression():
    x = np.random.default_rng(0).normal(size=(12, 2))
    y = x @ [1.5, 1.5] + np.random.default_rng(1).normal(size=12) > 0
    m = cv.Model("probit regression")
    n = m.plate("n")
    inputs = m.input("x", cv.vector(2), plates=n)
    w = m.random("w", cv.vector_gaussian(np.zeros(2), covariance=4.0 * np.eye(2)))
    m.random("y", cv.bernoulli(cv.probit(cv.dot(w, inputs))))

    def log_density(w):
        return stats.norm.logpdf(w, 0.0, 2.0).sum(-1) + stats.norm.logcdf((w @ x.T) * np.where(y, 1.0, -1.0)).sum(-1)

    return m, {"x": x, "y": y}, on_grid(log_density, 2, 16.0, 801)


def skills():
    winner, loser = np.array([0, 0, 1, 2, 0]), np.array([1, 2, 2, 1, 1])
    m = cv.Model("skills")
    player, game = m.plate("player", 3), m.plate("game")
    skill = m.random("skill", cv.gaussian(0.0, variance=1.0), plates=player)
    first, second = (m.input(name, cv.index(player), plates=game) for name in ("winner", "loser"))
    m.random("won", cv.bernoulli(cv.probit(skill[first] - skill[second])))

    def log_density(s):
        return stats.norm.logpdf(s).sum(-1) + stats.norm.logcdf(s[..., winner] - s[..., loser]).sum(-1)

    return m, {"winner": winner, "loser": loser, "won": np.ones(5, bool)}, on_grid(log_density, 3, 7.0, 121)


def process():
    x, y = np.array([0.0, 0.7, 1.5])[:, None], np.array([True, False, True])
    m = cv.Model("classes by a Gaussian process")
    n = m.plate("n")
    inputs = m.input("x", cv.vector(1), plates=n)
    f = m.random("f", cv.gaussian_process(inputs, kernel=cv.kernels.squared_exponential(variance=4.0)))
    m.random("y", cv.bernoulli(cv.logistic(f)))
    prior = stats.multivariate_normal(np.zeros(3), 4.0 * np.exp(-0.5 * (x - x.T) ** 2) + 1e-8 * np.eye(3))
    sign = np.where(y, 1.0, -1.0)

    def log_density(f):
        return prior.logpdf(f) + log_expit(f * sign).sum(-1)

    return m, {"x": x, "y": y}, on_grid(log_density, 3, 11.0, 161)


@pytest.mark.parametrize(("make", "share"), [(regression, 0.2), (skills, 0.5), (process, 0.05)])
def test_correction_leaves_a_share_of_what_ep_lacks(make, share):
    model, data, (exact, _, _) = make()
    posterior = cv.infer(model, data, **FAST)
    found = posterior.corrected_evidence
    assert abs(posterior.log_evidence - exact) > 2e-4
    assert abs(found - exact) < share * abs(posterior.log_evidence - exact)
    assert found.trusted


@pytest.mark.parametrize(
    ("make", "name", "of_mean", "of_sd"),
    [(regression, "w", 3.0, 0.2), (skills, "skill", 0.5, 0.6), (process, "f", 0.05, 0.1)],
)
def test_marginals_are_corrected_too(make, name, of_mean, of_sd):
    """The mean of a few rows of a regression is right before, to a hundredth of its sd, and is no better after."""
    model, data, (_, mean, sd) = make()
    posterior = cv.infer(model, data, **FAST)
    found = posterior.corrected_marginals[name]
    before = np.abs(np.asarray(posterior[name].mean) - mean).max(), np.abs(np.asarray(posterior[name].sd) - sd).max()
    assert np.abs(found.mean - mean).max() < of_mean * before[0]
    assert np.abs(found.sd - sd).max() < of_sd * before[1]


def test_members_of_a_joint_belief_have_their_own_marginals():
    """The regression with its weights declared one by one, which share a belief over all of them."""
    model, data, _ = regression()
    whole = cv.infer(model, data, **FAST).corrected_marginals["w"]
    m = cv.Model("apart")
    n = m.plate("n")
    weights = [m.random(name, cv.gaussian(0.0, variance=4.0)) for name in "ab"]
    columns = [m.input(f"x_{name}", cv.real, plates=n) for name in "ab"]
    m.random("y", cv.bernoulli(cv.probit(weights[0] * columns[0] + weights[1] * columns[1])))
    inputs = {"x_a": data["x"][:, 0], "x_b": data["x"][:, 1], "y": data["y"]}
    found = cv.infer(m, inputs, tolerance=1e-11).corrected_marginals
    np.testing.assert_allclose([found[name].mean for name in "ab"], whole.mean, rtol=1e-5)
    np.testing.assert_allclose([found[name].sd for name in "ab"], whole.sd, rtol=1e-5)


def test_covariances_that_beliefs_leave_out_are_part_of_it():
    """Two sums of the same two numbers: everything is Gaussian, but q is a product."""
    m = cv.Model("sums")
    a, b = (m.random(name, cv.gaussian(0.0, variance=1.0)) for name in "ab")
    m.random("y", cv.gaussian(a + b, variance=4.0))
    m.random("z", cv.gaussian(a - 0.5 * b, variance=4.0))
    data = {"y": 1.0, "z": 0.3}
    design = np.array([[1.0, 1.0], [1.0, -0.5]])
    exact = stats.multivariate_normal(np.zeros(2), design @ design.T + 4.0 * np.eye(2)).logpdf([1.0, 0.3])
    posterior = cv.infer(m, data, **FAST)
    assert abs(posterior.log_evidence - exact) > 1e-4
    assert abs(posterior.corrected_evidence - exact) < 0.3 * abs(posterior.log_evidence - exact)


def test_where_ep_is_exact_nothing_is_added():
    m = cv.Model("linear")
    n = m.plate("n")
    x = m.input("x", cv.vector(2), plates=n)
    w = m.random("w", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)))
    m.random("y", cv.gaussian(cv.dot(w, x), variance=0.5))
    posterior = cv.infer(m, {"x": RANDOM.normal(size=(6, 2)), "y": RANDOM.normal(size=6)}, **FAST)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert posterior.corrected_evidence.correction == pytest.approx(0.0, abs=1e-12)


# what is refused ------------------------------------------------------------------------------------------------------


def test_what_has_no_correction_is_named():
    with pytest.raises(cv.UnsupportedError, match="is updated by vmp, whose evidence is a bound"):
        _ = cv.infer(*components(SEVEN), method="vmp").corrected_evidence
    model, data, _ = regression()
    with pytest.raises(cv.UnsupportedError, match=r"EP of power 0\.5"):
        _ = cv.infer(model, data, method=cv.power(0.5), accuracy="fast").corrected_evidence
    with pytest.raises(cv.UnsupportedError, match="linear forms of Gaussians"):
        _ = cv.infer(*components(SEVEN + SEVEN), method="ep").corrected_marginals
    with pytest.warns(cv.CavityWarning):
        stopped = cv.infer(model, data, **FAST, max_iterations=1)
    with pytest.raises(cv.UnsupportedError, match="until it has converged"):
        _ = stopped.corrected_evidence

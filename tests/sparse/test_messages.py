"""Factor models by messages: the bound against numbers that do not use the engine, and what they find."""

import functools

import jax
import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from scipy.special import betaln, digamma, expit, gammaln

import cavity as cv
from cavity.models.nsfa import nsfa, rows_in_use

LOG_TWO_PI = np.log(2.0 * np.pi)


@functools.cache
def example():
    """Loadings, data and data with missing entries of three sparse factors."""
    rng = np.random.default_rng(0)
    sizes = rng.choice([-1.0, 1.0], size=(24, 3)) * rng.uniform(0.6, 1.4, size=(24, 3))
    rows = np.arange(24)[:, None]
    loading = np.where((rows >= [0, 8, 16]) & (rows < [10, 18, 24]), sizes, 0.0)  # two rows in two factors each
    y = loading @ rng.normal(size=(3, 60)) + 0.3 * rng.normal(size=(24, 60))
    return loading, y, np.where(rng.random(y.shape) < 0.1, np.nan, y)


@functools.cache
def fitted():
    return cv.infer(nsfa(5), {"y": example()[2]}, method="vmp")


def gamma_divergence(shape, rate):
    """KL(Gamma(shape, rate) || Gamma(1, 1)), summed."""
    return np.sum((shape - 1) * digamma(shape) - gammaln(shape) + np.log(rate) + shape * (1 - rate) / rate)


def bound(y, q, mass=1.0):
    """E log p(y, everything) + entropy under the beliefs `q`, entry by entry; and that with other beliefs."""
    p, m, v = (q["loading"][name] for name in ("probability", "slab_mean", "slab_variance"))
    mean, covariance = q["score"]["mean"], q["score"]["covariance"]
    (a, b), (s, r), (n, u) = (tuple(q[name].values()) for name in ("activity", "precision", "noise"))
    factors = len(a)
    first, second = p * m, p * (m**2 + v)
    outer = covariance + mean[:, :, None] * mean[:, None, :]
    square = np.einsum("di,nij,dj->dn", first, outer, first)
    square = square + np.einsum("dk,nkk->dn", second - first**2, outer)
    error = y**2 - 2.0 * y * (first @ mean.T) + square
    tau, log_tau = (n / u)[:, None], (digamma(n) - np.log(u))[:, None]
    total = np.nansum(0.5 * (log_tau - LOG_TWO_PI) - 0.5 * tau * error)
    total -= gamma_divergence(n, u) + gamma_divergence(s, r)
    trace = np.trace(covariance, axis1=1, axis2=2) + (mean**2).sum(1)
    total += np.sum(0.5 * (np.linalg.slogdet(covariance)[1] + factors - trace))
    log_slab = digamma(s) - np.log(r)
    total += np.sum(0.5 * p * (log_slab - LOG_TWO_PI) - 0.5 * second * s / r + 0.5 * p * (1 + np.log(2 * np.pi * v)))
    with np.errstate(divide="ignore", invalid="ignore"):
        total -= np.nansum(p * np.log(p)) + np.nansum((1 - p) * np.log1p(-p))
    on, off = digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)
    total += np.sum(p * on + (1 - p) * off)
    return total + np.sum(betaln(a, b) - betaln(mass / factors, 1.0) + (mass / factors - a) * on + (1.0 - b) * off)


def beliefs(posterior):
    names = ("loading", "score", "activity", "precision", "noise")
    return {name: {key: value.copy() for key, value in posterior[name].parameters.items()} for name in names}


def test_evidence_is_the_bound_and_no_step_of_any_belief_raises_it():
    y, posterior = example()[2], fitted()
    assert posterior.converged
    q = beliefs(posterior)
    best = bound(y, q)
    assert posterior.log_evidence == pytest.approx(best, abs=1e-6)
    rng = np.random.default_rng(1)
    for variable, parameters in q.items():
        for name, value in parameters.items():
            scale = 1e-3 * (np.abs(value) if name != "mean" and name != "slab_mean" else 1.0)
            for _ in range(3):
                step = scale * rng.normal(size=value.shape)
                step = 0.5 * (step + step.swapaxes(-1, -2)) if name == "covariance" else step
                moved = np.clip(value + step, 1e-300, 1.0) if name == "probability" else value + step
                assert bound(y, q | {variable: parameters | {name: moved}}) < best + 1e-7, (variable, name)


def test_every_sweep_raises_the_evidence():
    program = cv.compile(nsfa(5), ["y"], method="vmp", acceleration=0, max_iterations=30)
    posterior = program.run({"y": example()[2]})  # stops early
    evidence = posterior.trace.evidence[1:]  # the first sweep sees probabilities of one half, whatever their beliefs
    assert np.all(np.diff(evidence) > -1e-8 * abs(posterior.log_evidence))


def test_factors_are_found_and_the_others_switched_off():
    loading, y, _ = example()
    posterior = fitted()
    used = rows_in_use(posterior) > 0.5
    assert used.sum() == 3
    found = posterior["loading"].mean[:, used]
    match = np.abs(np.corrcoef(found.T, loading.T)[:3, 3:])
    order = match.argmax(axis=1)
    assert sorted(order) == [0, 1, 2]
    assert match.max(axis=1).min() > 0.9
    active = posterior["loading"].probability[:, used] > 0.5
    assert active[loading[:, order] != 0.0].mean() > 0.95
    hidden = np.isnan(example()[2])
    predicted = posterior["y"]
    score = (predicted.mean[hidden] - y[hidden]) / predicted.sd[hidden]
    assert np.mean(score**2) == pytest.approx(1.0, abs=0.4)
    assert np.mean((predicted.mean[hidden] - y[hidden]) ** 2) < 0.3 * y.var()


def test_predictions_of_missing_entries_are_the_moments_of_draws():
    posterior, number = fitted(), 20_000
    d, n = map(int, np.argwhere(np.isnan(example()[2]))[0])
    loading = posterior["loading"].sample(0, (number,))[:, d]
    q = beliefs(posterior)
    score = np.random.default_rng(0).multivariate_normal(q["score"]["mean"][n], q["score"]["covariance"][n], number)
    signal = np.sum(loading * score, axis=1)
    noise = q["noise"]["rate"][d] / (q["noise"]["shape"][d] - 1.0)
    assert posterior["y"].mean[d, n] == pytest.approx(signal.mean(), abs=5 * signal.std() / np.sqrt(number))
    assert posterior["y"].variance[d, n] == pytest.approx(signal.var() + noise, rel=0.05)


def test_a_single_loading_under_known_probability_and_noise_is_exact():
    """w ~ 0.3 N(0, 1 / 2) or zero, y_i ~ N(w, 1 / 4): the posterior by quadrature."""
    y = np.array([0.3, 0.9, -0.1])
    m = cv.Model()
    i = m.plate("i")
    w = m.random("w", cv.spike_and_slab(0.3, precision=2.0))
    m.random("y", cv.gaussian(w, precision=4.0), plates=i)
    posterior = cv.infer(m, {"y": y})
    likelihood = lambda x: np.prod(scipy.stats.norm.pdf(y, x, 0.5))  # noqa: E731
    slab = lambda x: 0.3 * scipy.stats.norm.pdf(x, 0.0, np.sqrt(0.5)) * likelihood(x)  # noqa: E731
    zero = 0.7 * likelihood(0.0)
    one, mean, square = (scipy.integrate.quad(lambda x, k=k: x**k * slab(x), -4, 4)[0] for k in range(3))
    assert posterior.log_evidence == pytest.approx(np.log(zero + one), abs=1e-9)
    assert posterior["w"].probability == pytest.approx(one / (zero + one), abs=1e-9)
    assert posterior["w"].mean == pytest.approx(mean / (zero + one), abs=1e-9)
    assert posterior["w"].variance == pytest.approx(square / (zero + one) - (mean / (zero + one)) ** 2, abs=1e-9)


@pytest.mark.slow  # chains with known factors have a twin by default
def test_a_mask_of_zeros_and_ones_is_kept():
    loading, y, _ = example()
    data = {"y": y, "prior": (loading != 0.0).astype(float)}
    posterior = cv.infer(nsfa(3, sparsity="known"), data, method="vmp")
    assert np.array_equal(posterior["loading"].probability, data["prior"])
    assert np.all(posterior["loading"].mean[loading == 0.0] == 0.0)
    assert np.isfinite(posterior.log_evidence)


def test_sparse_regression_takes_turns_over_known_rows():
    """One row with known scores: coordinate ascent in NumPy from the same fixed point."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(30, 4))
    y = x @ np.array([1.5, 0.0, 0.0, -1.0]) + 0.5 * rng.normal(size=30)
    m = cv.Model()
    n, k = m.plate("n"), m.plate("k", 4)
    rows = m.input("x", cv.vector(4), plates=n)
    w = m.random("w", cv.spike_and_slab(0.4, variance=1.0), plates=k)
    m.random("y", cv.gaussian(cv.dot(cv.stack(w, over=k), rows), variance=0.25), plates=n)
    posterior = cv.infer(m, {"x": x, "y": y}, method="vmp")
    first = np.zeros(4)
    gram, seen = 4.0 * x.T @ x, 4.0 * x.T @ y
    for _ in range(500):
        for j in range(4):
            precision = 1.0 + gram[j, j]
            h = seen[j] - gram[j] @ first + gram[j, j] * first[j]
            p = expit(np.log(0.4 / 0.6) - 0.5 * np.log(precision) + 0.5 * h**2 / precision)
            first[j] = p * h / precision
    assert posterior.converged
    assert posterior["w"].mean == pytest.approx(first, abs=1e-5)


@pytest.mark.slow
def test_scalars_on_both_sides_take_turns_and_their_bound_is_lower():
    y = example()[2]
    m = cv.Model()
    row, sample, factor = m.plate("row"), m.plate("sample"), m.plate("factor", 5)
    precision = m.random("precision", cv.gamma(1.0, 1.0), plates=factor)
    activity = m.random("activity", cv.beta(0.2, 1.0), plates=factor)
    loading = m.random("loading", cv.spike_and_slab(activity, precision=precision), plates=(row, factor))
    score = m.random("score", cv.gaussian(0.0, variance=1.0), plates=(sample, factor))
    noise = m.random("noise", cv.gamma(1.0, 1.0), plates=row)
    m.random("y", cv.gaussian(cv.sum(loading * score, over=factor), precision=noise), plates=(row, sample))
    apart = cv.infer(m, {"y": y}, method="vmp")
    assert apart.converged
    assert apart.log_evidence < fitted().log_evidence
    diagonal = apart["score"].variance[:, :, None] * np.eye(5)
    q = {name: apart[name].parameters for name in ("loading", "activity", "precision", "noise")}
    q["score"] = {"mean": apart["score"].mean, "covariance": diagonal}
    assert apart.log_evidence == pytest.approx(bound(y, q), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"sparsity": "none"},
        {"sparsity": "none", "slab": "shared", "noise": "shared"},
        {"sparsity": "none", "slab": "element"},
        {"slab": "shared"},
        {"mass": "learned", "noise": "shared"},
    ],
)
def test_the_family_predicts_missing_entries(options):
    _, y, observed = example()
    posterior = cv.infer(nsfa(5, **options), {"y": observed}, method="vmp")
    hidden = np.isnan(observed)
    assert np.mean((posterior["y"].mean[hidden] - y[hidden]) ** 2) < 0.4 * y.var()
    assert np.isfinite(posterior.log_evidence)


def test_words_that_are_none_are_refused():
    with pytest.raises(cv.ModelError, match="per factor"):
        nsfa(3, slab="per row")


def test_a_marginal_without_a_probability_says_so():
    with pytest.raises(cv.UnsupportedError, match="Gamma marginal"):
        _ = fitted()["noise"].probability


def test_a_stack_over_a_plate_needs_its_size_and_independent_elements():
    m = cv.Model()
    n, k = m.plate("n"), m.plate("k")
    x = m.random("x", cv.gaussian(0.0, variance=1.0), plates=(n, k))
    with pytest.raises(cv.ModelError, match="Give the plate a size"):
        cv.stack(x, over=k)
    with pytest.raises(cv.ModelError, match="a single value"):
        cv.stack(x, x, over=k)
    m = cv.Model()
    n, k = m.plate("n", 3), m.plate("k", 2)
    b = m.random("b", cv.gaussian(0.0, variance=1.0), plates=n)
    x = m.random("x", cv.gaussian(0.0, variance=1.0), plates=(n, k))
    v = m.random("v", cv.vector_gaussian(np.zeros(2), covariance=np.eye(2)))
    m.random("y", cv.gaussian(cv.dot(cv.stack(x + b, over=k), v), precision=1.0))
    with pytest.raises(cv.UnsupportedError, match="share random variables"):
        cv.infer(m, {"y": np.zeros(3)}, method="vmp")


def test_log_density_of_the_factor_at_zero_is_a_probability():
    m = cv.Model()
    m.random("w", cv.spike_and_slab(0.3, sd=2.0), plates=m.plate("i", 2))
    with jax.enable_x64(True):
        prior = cv.infer(m, {})["w"].log_density(np.array([0.0, 1.0]))
    assert prior == pytest.approx([np.log(0.7), np.log(0.3) + scipy.stats.norm.logpdf(1.0, 0.0, 2.0)])

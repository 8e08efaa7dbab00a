"""`cv.evidence` against closed forms, quadrature and enumeration."""

import itertools

import jax
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln, gammaln, log_expit, logsumexp, multigammaln
from scipy.stats import binom, cauchy, gamma, multivariate_normal, norm, poisson, t, uniform

import cavity as cv
from cavity.compiler.symmetry import interchangeable
from cavity.engine.data.rules_of_arguments import bind_checked
from cavity.engine.sampling.sample import plan
from cavity.engine.tempering.annealing import log_weights, weighed
from cavity.engine.tempering.estimators import estimates
from cavity.engine.tempering.evidence import Asked, _adapted, _tell_gaps, path_of
from cavity.engine.tempering.ladder import equalised
from cavity.engine.tempering.orders import log_permanent, orders_of, shares_of
from cavity.engine.tempering.path import Path, summed
from cavity.engine.tempering.replicas import program, run

RANDOM = np.random.default_rng(0)
MODELS = {}


def known(make):
    """A function that gives model, data and true log evidence."""
    MODELS[make.__name__] = make
    return make


def integral(log_prior, log_likelihood, low=-np.inf, high=np.inf, centre=0.0):
    """log of the integral of a prior times a likelihood, around a point where both are large."""
    top = log_prior(centre) + log_likelihood(centre)
    points = None if np.isinf([low, high]).any() else [centre]
    found, _ = quad(
        lambda x: np.exp(log_prior(x) + log_likelihood(x) - top), low, high, points=points, limit=500, epsabs=1e-10
    )
    return top + np.log(found)


@known
def line():
    m = cv.Model()
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    a, b = m.random("a", cv.gaussian(0.0, sd=10.0)), m.random("b", cv.gaussian(0.0, sd=10.0))
    m.random("y", cv.gaussian(a + b * x, sd=0.5))
    x = RANDOM.normal(size=20)
    y = 1.0 + 2.0 * x + 0.5 * RANDOM.normal(size=20)
    design = np.column_stack([np.ones(20), x])
    return (
        m,
        {"x": x, "y": y},
        multivariate_normal.logpdf(y, np.zeros(20), 100.0 * design @ design.T + 0.25 * np.eye(20)),
    )


def normal_gamma(y, scale=0.01, shape=1.0, rate=0.11):
    """log evidence of normal numbers with mean N(0, 1 / (scale t)) and precision t of a gamma."""
    n, precision = len(y), scale + len(y)
    after = rate + 0.5 * (np.sum(y**2) - np.sum(y) ** 2 / precision)
    return (
        0.5 * np.log(scale / precision)
        + shape * np.log(rate)
        - (shape + 0.5 * n) * np.log(after)
        + gammaln(shape + 0.5 * n)
        - gammaln(shape)
        - 0.5 * n * np.log(2.0 * np.pi)
    )


@known
def mean_and_precision():
    m = cv.Model()
    n = m.plate("n")
    precision = m.random("precision", cv.gamma(1.0, 0.11))
    centre = m.random("centre", cv.gaussian(0.0, precision=0.01 * precision))
    m.random("y", cv.gaussian(centre, precision=precision), plates=n)
    y = RANDOM.normal(3.0, 2.0, size=15)
    return m, {"y": y}, normal_gamma(y)


@known
def coin():
    m = cv.Model()
    n = m.plate("n")
    p = m.random("p", cv.beta(2.0, 1.0))
    m.random("y", cv.bernoulli(p), plates=n)
    return m, {"y": np.arange(12) < 3}, betaln(5.0, 10.0) - betaln(2.0, 1.0)


@known
def counts():
    m = cv.Model()
    n = m.plate("n")
    rate = m.random("rate", cv.gamma(2.0, 0.5))
    m.random("y", cv.poisson(rate), plates=n)
    y = np.array([3, 5, 2, 8, 4])
    truth = 2.0 * np.log(0.5) - gammaln(2.0) + gammaln(2.0 + y.sum()) - (2.0 + y.sum()) * np.log(5.5)
    return m, {"y": y}, truth - gammaln(y + 1.0).sum()


@known
def waiting():
    m = cv.Model()
    n = m.plate("n")
    rate = m.random("rate", cv.gamma(2.0, 3.0))
    m.random("y", cv.exponential(rate), plates=n)
    y = np.array([0.3, 1.2, 0.7, 2.0])
    return m, {"y": y}, 2.0 * np.log(3.0) + gammaln(6.0) - gammaln(2.0) - 6.0 * np.log(3.0 + y.sum())


@known
def shares():
    m = cv.Model()
    n = m.plate("n")
    share = m.random("share", cv.dirichlet([1.0, 2.0, 0.5]))
    m.random("y", cv.categorical(share), plates=n)
    prior, count = np.array([1.0, 2.0, 0.5]), np.array([4.0, 1.0, 5.0])
    truth = gammaln(prior.sum()) - gammaln(13.5) + np.sum(gammaln(prior + count) - gammaln(prior))
    return m, {"y": np.repeat([0, 1, 2], [4, 1, 5])}, truth


@known
def vectors():
    m = cv.Model()
    n = m.plate("n")
    mean = m.random("mean", cv.vector_gaussian(np.zeros(2), covariance=4.0 * np.eye(2)))
    noise = np.array([[1.0, 0.5], [0.5, 2.0]])
    m.random("y", cv.vector_gaussian(mean, covariance=noise), plates=n)
    y = RANDOM.normal(1.0, 1.0, size=(5, 2))
    covariance = np.kron(np.ones((5, 5)), 4.0 * np.eye(2)) + np.kron(np.eye(5), noise)
    return m, {"y": y}, multivariate_normal.logpdf(y.ravel(), np.zeros(10), covariance)


@known
def matrix():
    m = cv.Model()
    n = m.plate("n")
    precision = m.random("precision", cv.wishart(4.0, scale=0.5 * np.eye(2)))
    m.random("y", cv.vector_gaussian(np.zeros(2), precision=precision), plates=n)
    y = RANDOM.normal(0.0, 1.5, size=(6, 2))
    before, after = 2.0 * np.eye(2), 2.0 * np.eye(2) + y.T @ y
    truth = 2.0 * np.linalg.slogdet(before)[1] - 5.0 * np.linalg.slogdet(after)[1] - 6.0 * np.log(np.pi)
    return m, {"y": y}, truth + multigammaln(5.0, 2) - multigammaln(2.0, 2)


def mixture_of(classes, y):
    """A mixture with all parameters random, and its evidence by enumeration of all allocations."""
    m = cv.Model()
    n, k = m.plate("n"), m.plate("k", classes)
    share = m.random("share", cv.dirichlet(np.ones(classes)))
    precision = m.random("precision", cv.gamma(1.0, 0.11), plates=k)
    centre = m.random("centre", cv.gaussian(0.0, precision=0.01 * precision), plates=k)
    z = m.random("z", cv.categorical(share), plates=n)
    m.random("y", cv.gaussian(centre[z], precision=precision[z]))
    logs = []
    for row in map(np.array, itertools.product(range(classes), repeat=len(y))):
        parts = [y[row == c] for c in range(classes)]
        weight = gammaln(classes) - gammaln(classes + len(y)) + sum(gammaln(1.0 + len(part)) for part in parts)
        logs.append(weight + sum(normal_gamma(part) for part in parts if len(part)))
    return m, {"y": y}, logsumexp(logs)


@known
def two_classes():
    return mixture_of(2, np.array([-3.1, -2.4, -1.9, 1.2, 1.8, 2.5, 3.0]))


@known
def three_classes():
    return mixture_of(3, np.array([-3.1, -2.4, -1.9, 1.2, 1.8, 2.5, 3.0]))


@known
def alarms():
    m = cv.Model()
    first, second = m.random("first", cv.bernoulli(0.2)), m.random("second", cv.bernoulli(0.6))
    m.random("y", cv.switch(first | second, cv.bernoulli(0.9), cv.bernoulli(0.1)))
    return m, {"y": True}, np.log(0.9 * (1.0 - 0.8 * 0.4) + 0.1 * 0.8 * 0.4)


@known
def hidden_states():
    m = cv.Model()
    time = m.plate("time", 12)
    step = np.array([[0.9, 0.1], [0.3, 0.7]])
    state = m.chain(
        "state", over=time, first=cv.categorical([0.5, 0.5]), then=lambda before: cv.categorical(cv.table(step)[before])
    )
    m.random("y", cv.gaussian(cv.table([-1.0, 1.5])[state], sd=1.0))
    y = RANDOM.normal(size=12)
    alpha = np.log([0.5, 0.5]) + norm.logpdf(y[0], [-1.0, 1.5])
    for now in y[1:]:
        alpha = logsumexp(alpha[:, None] + np.log(step), axis=0) + norm.logpdf(now, [-1.0, 1.5])
    return m, {"y": y}, logsumexp(alpha)


@known
def walk():
    m = cv.Model()
    time = m.plate("time", 8)
    x = m.chain("x", over=time, first=cv.gaussian(0.0, sd=2.0), then=lambda before: cv.gaussian(0.9 * before, sd=0.5))
    m.random("y", cv.gaussian(x, sd=1.0))
    y = RANDOM.normal(size=8)
    covariance = np.zeros((8, 8))
    variance = 4.0
    for i in range(8):
        variance = variance if i == 0 else 0.81 * variance + 0.25
        covariance[i, i:] = covariance[i:, i] = variance * 0.9 ** np.arange(8 - i)
    return m, {"y": y}, multivariate_normal.logpdf(y, np.zeros(8), covariance + np.eye(8))


@known
def logistic():
    m = cv.Model()
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    w = m.random("w", cv.gaussian(0.0, sd=2.0))
    m.random("y", cv.bernoulli(cv.logistic(w * x)))
    x = np.array([-1.0, 0.5, 1.0, 2.0, -2.0])
    y = np.array([False, True, False, True, False])
    truth = integral(lambda w: norm.logpdf(w, 0.0, 2.0), lambda w: log_expit(np.where(y, 1, -1) * w * x).sum())
    return m, {"x": x, "y": y}, truth


@known
def probit():
    m = cv.Model()
    n = m.plate("n")
    w = m.random("w", cv.gaussian(0.0, sd=2.0))
    m.random("y", cv.bernoulli(cv.probit(w)), plates=n)
    truth = integral(lambda w: norm.logpdf(w, 0.0, 2.0), lambda w: 3.0 * norm.logcdf(w) + 2.0 * norm.logcdf(-w))
    return m, {"y": np.arange(5) < 3}, truth


@known
def heavy_tails():
    m = cv.Model()
    n = m.plate("n")
    x = m.random("x", cv.gaussian(0.0, sd=5.0))
    m.random("y", cv.student_t(3.0, x, 1.0), plates=n)
    y = np.array([0.2, -1.0, 0.7, 9.0])
    return m, {"y": y}, integral(lambda x: norm.logpdf(x, 0.0, 5.0), lambda x: t.logpdf(y, 3.0, x, 1.0).sum())


@known
def scale():
    m = cv.Model()
    n = m.plate("n")
    s = m.random("s", cv.half_cauchy(2.0))
    m.random("y", cv.gaussian(0.0, sd=s), plates=n)
    y = np.array([0.2, -1.0, 0.7, 2.0])

    def height(s):
        return norm.logpdf(y, 0.0, s).sum()

    return m, {"y": y}, integral(lambda s: np.log(2.0) + cauchy.logpdf(s, 0.0, 2.0), height, low=0.0, centre=1.0)


@known
def between_ends():
    m = cv.Model()
    n = m.plate("n")
    x = m.random("x", cv.uniform(0.0, 3.0))
    m.random("y", cv.gaussian(x, sd=1.0), plates=n)
    y = np.array([-0.5, 0.4, 0.1])
    truth = integral(
        lambda x: uniform.logpdf(x, 0.0, 3.0), lambda x: norm.logpdf(y, x, 1.0).sum(), low=0.0, high=3.0, centre=0.1
    )
    return m, {"y": y}, truth


@known
def log_rate():
    m = cv.Model()
    n = m.plate("n")
    x = m.random("x", cv.gaussian(0.0, sd=1.0))
    m.random("y", cv.poisson(cv.exp(x)), plates=n)
    y = np.array([2, 4, 1])
    return (
        m,
        {"y": y},
        integral(norm.logpdf, lambda x: poisson.logpmf(y, np.exp(x)).sum(), low=-9.0, high=9.0, centre=0.7),
    )


@known
def a_constraint():
    m = cv.Model()
    n = m.plate("n")
    x = m.random("x", cv.gaussian(0.0, sd=1.0))
    m.random("y", cv.gaussian(x, sd=1.0), plates=n)
    m.constrain(x > 0.5)
    y = np.array([0.2, 0.9])
    truth = multivariate_normal.logpdf(y, np.zeros(2), 1.0 + np.eye(2)) + norm.logsf(0.5, y.sum() / 3.0, 3.0**-0.5)
    return m, {"y": y}, truth


@known
def a_game():
    m = cv.Model()
    a, b = m.random("a", cv.gaussian(1.0, sd=1.0)), m.random("b", cv.gaussian(0.0, sd=1.0))
    margin = m.random("margin", cv.gaussian(a - b, sd=1.0))
    m.let("won", margin > 0.0)
    return m, {"won": False}, norm.logcdf(-1.0, scale=3.0**0.5)


@known
def in_part():
    m = cv.Model()
    n = m.plate("n")
    rate = m.random("rate", cv.gamma(2.0, 1.0))
    m.random("y", cv.gaussian(0.0, precision=rate), plates=n)
    y = np.array([1.0, np.nan, -2.0, np.nan])
    given = np.array([1.0, -2.0])
    truth = integral(
        lambda r: gamma.logpdf(r, 2.0), lambda r: norm.logpdf(given, 0.0, r**-0.5).sum(), low=0.0, centre=0.5
    )
    return m, {"y": y}, truth


QUICK = ("coin", "between_ends")
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in MODELS if name not in QUICK]


@pytest.mark.parametrize("name", [*QUICK, *SLOW])
def test_the_evidence_is_that_of_closed_forms_and_enumeration(name):
    m, data, truth = MODELS[name]()
    found = cv.evidence(m, data, sweeps=512, replicas=8, progress=False)
    assert found.standard_error < 0.15
    for estimate in found.estimates.values():
        assert abs(estimate.value - truth) < 3.5 * estimate.error + 1e-9


def coins():
    """Rows of two coins of unknown bias, and the evidence by enumeration of which coin each was."""
    m = cv.Model()
    n, k = m.plate("n"), m.plate("k", 2)
    share = m.random("share", cv.beta(2.0, 1.0))
    chance = m.random("chance", cv.beta(1.0, 2.0), plates=k)
    z = m.random("z", cv.bernoulli(share), plates=n)
    m.random("y", cv.binomial(4, cv.where(z, chance[0], chance[1])))
    y, logs = np.array([0, 4, 3, 1]), []
    for row in map(np.array, itertools.product([True, False], repeat=4)):
        heads = [(y[row == of].sum(), (4 - y[row == of]).sum()) for of in (True, False)]
        logs.append(betaln(2.0 + row.sum(), 1.0 + (~row).sum()) - betaln(2.0, 1.0))
        logs[-1] += sum(betaln(1.0 + up, 2.0 + down) - betaln(1.0, 2.0) for up, down in heads)
    return m, {"y": y}, logsumexp(logs) + sum(np.log([1.0, 1.0, 4.0, 4.0]))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"sum_out": True}, {"collapse": ["share"]}], ids=["summed out", "collapsed"])
def test_what_is_summed_or_integrated_out_leaves_the_evidence(options):
    m, data, truth = coins()
    found = cv.evidence(m, data, sweeps=512, replicas=4, progress=False, **options)
    assert found.standard_error < 0.1
    assert abs(found.log_evidence - truth) < 3.5 * found.standard_error


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two_classes", "three_classes"])
@pytest.mark.parametrize("options", [{"sum_out": True}, {"collapse": ["share"]}], ids=["summed out", "collapsed"])
def test_mixtures_have_one_evidence_by_each_path(name, options):
    m, data, truth = MODELS[name]()
    found = cv.evidence(m, data, sweeps=512, replicas=8, progress=False, **options)
    assert abs(found.log_evidence - truth) < 3.5 * found.standard_error


def test_the_likelihood_is_summed_over_all_states():
    m, data, _ = coins()
    share, chance = np.array(0.3), np.array([0.2, 0.6])
    with jax.enable_x64(True):
        path = summed(Path(m, bind_checked(m, data), {}))
        found = path.log_ratio({"share": share, "chance": chance}, path.arrays)
    each = [binom.logpmf(data["y"], 4, chance[of]) + np.log([share, 1.0 - share][of]) for of in (0, 1)]
    assert float(found) == pytest.approx(logsumexp(each, axis=0).sum(), abs=1e-12)


def test_a_prior_that_depends_on_a_state_cannot_be_summed_out():
    m = cv.Model()
    z = m.random("z", cv.bernoulli(0.5))
    x = m.random("x", cv.switch(z, cv.gaussian(0.0, sd=1.0), cv.gaussian(0.0, sd=3.0)))
    m.random("y", cv.gaussian(x, sd=1.0))
    with pytest.raises(cv.UnsupportedError, match="prior of x depends"):
        cv.evidence(m, {"y": 1.0}, sum_out=True, progress=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two_classes", "three_classes"])
@pytest.mark.parametrize("method", ["vmp", "ep"])
def test_a_path_from_beliefs_counts_all_orders_of_components(name, method):
    m, data, truth = MODELS[name]()
    posterior = cv.infer(m, data, method=method, restarts=4, seed=0)
    found = cv.evidence(m, data, posterior, sweeps=512, progress=False)
    assert 0.0 < found.orders < np.log(6.0) + 0.01
    assert abs(found.log_evidence - truth) < 3.5 * found.standard_error + 0.02
    assert f"add {found.orders:.2f}" in found.explain()


def test_orders_are_summed_as_by_enumeration():
    tables = RANDOM.normal(scale=3.0, size=(5, 4, 4))
    found = log_permanent(tables)
    orders = list(itertools.permutations(range(4)))
    wanted = logsumexp([[t[range(4), order].sum() for order in orders] for t in tables], axis=1)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_the_named_share_is_that_of_all_orders_of_the_beliefs():
    """log r under each order of the components, by its own density, beside the sum of what components add."""
    m, data, _ = MODELS["three_classes"]()
    posterior = cv.infer(m, data, method="vmp", seed=0)
    with jax.enable_x64(True):
        path = path_of(m, bind_checked(m, data), posterior, 1.5)
        drawn = jax.vmap(lambda key: path.drawn(key, path.arrays))(jax.random.split(jax.random.key(0), 3))
        orders = list(itertools.permutations(range(3)))
        logs = [[sum(_of_beliefs(path, _renamed(drawn, draw, order))) for order in orders] for draw in range(3)]
        share = np.array(logs)[:, 0] - logsumexp(logs, axis=1)
        named = jax.vmap(orders_of(path, interchangeable(posterior.graph)).named)(drawn)
    found = shares_of(np.asarray(named)[:, None, None])
    assert found.orders == pytest.approx(np.log(6.0) + logsumexp(share) - np.log(3.0), abs=1e-9)
    np.testing.assert_allclose(found.weights[:, 0, 0], np.exp(share) / np.exp(share).mean(), rtol=1e-9)


def _renamed(drawn, draw, order):
    """A draw whose component k is called order[k]."""
    values = {name: np.asarray(value)[draw] for name, value in drawn.items()}
    back = np.argsort(order)
    own = {name: values[name][back] for name in ("share", "precision", "centre")}
    return {**own, "z": np.array(order)[values["z"]]}


def _of_beliefs(path, values):
    return [float(np.sum(belief.log_density(values[name]))) for name, belief in path.beliefs.items()]


def test_a_ladder_that_no_replica_climbs_is_told():
    with pytest.warns(cv.CavityWarning, match="No replica went"):
        _tell_gaps(np.full(4, 0.5), np.linspace(0.0, 1.0, 5), 0, 256)


def repeated(m, data, repeats=32, copies=4, sweeps=512, particles=128, temperatures=64):
    """All estimators on independent groups of copies and of particles of one program."""
    with jax.enable_x64(True):
        path = Path(m, bind_checked(m, data), {})
        prepared, key = program(path, plan(path), False), jax.random.key(0)
        asked = Asked(sweeps=sweeps, replicas=6, copies=repeats * copies)
        ready = _adapted(prepared, key, asked.copies, asked.replicas, sweeps=sweeps, counter=lambda done: None)
        learned = False, False
        _, trace = run(prepared, key, ready.replicas, ready.ladder, sweeps, ready.done, learned, lambda done: None)
        ladder = equalised(ready.ladder, ready.rejected, temperatures + 1)
        own = jax.random.fold_in(key, 1)
        weights = log_weights(
            prepared, own, ladder, ready.replicas, ready.ladder, repeats * particles, lambda done: None
        )
    groups = np.split(trace.log_ratio, repeats, axis=1)
    annealed = [{"annealed importance sampling": weighed(part).estimate} for part in np.split(weights, repeats)]
    return [estimates(group, ready.ladder) | more for group, more in zip(groups, annealed, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mean_and_precision", "logistic", "two_classes"])
def test_errors_are_those_of_repeats(name):
    m, data, truth = MODELS[name]()
    found = repeated(m, data)
    assert len(found[0]) == 4
    for estimator in found[0]:
        scores = np.array([(one[estimator].value - truth) / one[estimator].error for one in found])
        assert abs(scores.mean()) < 4.0 / np.sqrt(len(found)), estimator
        assert scores.std() < 1.0 + 3.0 / np.sqrt(2.0 * len(found)), estimator
        if estimator != "thermodynamic integration":  # whose error has a bound of what interpolation misses
            assert scores.std() > 1.0 - 3.0 / np.sqrt(2.0 * len(found)), estimator


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["line", "coin", "matrix", "hidden_states", "logistic", "scale", "between_ends", "alarms"]
)
def test_beliefs_may_be_the_reference(name):
    m, data, truth = MODELS[name]()
    found = cv.evidence(m, data, cv.infer(m, data), sweeps=512, replicas=8, wider=1.5, progress=False)
    assert abs(found.log_evidence - truth) < 3.5 * found.standard_error + 1e-9


def test_a_spike_has_its_prior_as_reference_and_the_evidence_stays():
    rng = np.random.default_rng(1)
    m = cv.Model()
    n = m.plate("n")
    x = m.input("x", cv.real, plates=n)
    w = m.random("w", cv.spike_and_slab(0.4, precision=0.5))
    m.random("y", cv.gaussian(w * x, sd=1.0))
    data = {"x": rng.normal(size=6), "y": rng.normal(size=6)}
    posterior = cv.infer(m, data)
    slab = multivariate_normal.logpdf(data["y"], np.zeros(6), np.eye(6) + 2.0 * np.outer(data["x"], data["x"]))
    exact = np.logaddexp(np.log(0.6) + norm.logpdf(data["y"]).sum(), np.log(0.4) + slab)
    found = cv.evidence(m, data, posterior, wider=2.0, sweeps=512, progress=False)
    assert abs(found.log_evidence - exact) < 4.0 * found.standard_error + 1e-3


def test_time_that_is_over_leaves_an_honest_answer():
    m, data, exact = line()
    found = cv.evidence(m, data, replicas=6, max_seconds=1e-6, progress=False)
    assert found.sweeps == 32
    assert abs(found.log_evidence - exact) < 4.0 * found.standard_error
    assert "max_seconds ended the sweeps after 32 of 1,024" in found.explain()
    with pytest.raises(cv.ModelError, match="whole path or tell nothing"):
        cv.evidence(m, data, method="annealing", max_seconds=1.0)


def test_what_is_no_reference_is_refused():
    m = cv.Model()
    mu = m.random("mu", cv.gaussian(0.0, sd=1.0))
    m.random("y", cv.gaussian(mu, sd=1.0))
    for reference in ({}, {"mu": 1.0}, np.zeros(3), "posterior"):
        with pytest.raises(cv.ModelError, match="reference"):
            cv.evidence(m, {"y": 1.0}, reference)
    with pytest.raises(cv.ModelError, match="two ends"):
        cv.evidence(m, {"y": 1.0}, replicas=1)
    flat = cv.Model()
    level = flat.random("level", cv.flat())
    flat.random("y", cv.gaussian(level, sd=1.0))
    with pytest.raises(cv.UnsupportedError, match="flat prior"):
        cv.infer(flat, {"y": 1.0}).check_evidence()


def test_a_ladder_that_is_given_is_kept_and_the_means_along_it_are_known():
    y, prior, noise = np.array([1.0, 1.6, 0.4, 2.2, 1.1]), 9.0, 0.5
    m = cv.Model()
    mean = m.random("mean", cv.gaussian(0.0, variance=prior))
    m.random("y", cv.gaussian(mean, variance=noise), plates=m.plate("n"))
    ladder = [0.0, *np.geomspace(0.01, 1.0, 9)]
    found = cv.evidence(m, {"y": y}, ladder=ladder, sweeps=2048, seed=3)
    np.testing.assert_array_equal(found.ladder, ladder)
    precision = 1.0 / prior + found.ladder * len(y) / noise
    centre = found.ladder * y.sum() / noise / precision
    square = ((y - centre[:, None]) ** 2).sum(-1) + len(y) / precision
    expected = -0.5 * len(y) * np.log(2.0 * np.pi * noise) - 0.5 * square / noise
    error = found.log_ratio_sds / np.sqrt(4 * 2048)
    assert np.all(np.abs(found.log_ratio_means - expected) < 6.0 * error + 1e-9)
    truth = multivariate_normal.logpdf(y, np.zeros(5), prior * np.ones((5, 5)) + noise * np.eye(5))
    assert abs(found.log_evidence - truth) < 4.0 * found.standard_error


@pytest.mark.parametrize(
    "options",
    [
        {"ladder": [0.0, 0.5]},
        {"ladder": [0.1, 1.0]},
        {"ladder": [0.0, 0.5, 0.5, 1.0]},
        {"ladder": 3.0},
        {"ladder": [0.0, 1.0], "replicas": 3},
        {"ladder": [0.0, 1.0], "method": "annealing"},
    ],
)
def test_what_is_no_ladder_is_refused(options):
    model, data, _ = line()
    with pytest.raises(cv.ModelError, match="ladder"):
        cv.evidence(model, data, **options)


def test_rungs_without_a_state_in_common_are_told():
    m = cv.Model()
    mean = m.random("mean", cv.gaussian(0.0, sd=1e4))
    m.random("y", cv.gaussian(mean, sd=0.01), plates=m.plate("n"))
    with pytest.warns(cv.CavityWarning, match="hardly a state in common"):
        cv.evidence(m, {"y": np.array([1.0, 1.01, 0.99])}, ladder=[0.0, 1.0], sweeps=256)

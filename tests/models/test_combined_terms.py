"""Censored, truncated and mixed terms: the default answer against grids by SciPy, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import cavity as cv
from cavity.factors.conditionals import conditional_of

RNG = np.random.default_rng(5)
N = 14


def on_grid(log_joint, first, second):
    """The log evidence, and mean and sd of each of two numbers."""
    a, b = np.meshgrid(first, second, indexing="ij")
    logs = log_joint(a, b)
    weights = np.exp(logs - logs.max()) * np.gradient(first)[:, None] * np.gradient(second)
    total = weights.sum()
    means = [(weights * x).sum() / total for x in (a, b)]
    sds = [np.sqrt((weights * (x - mean) ** 2).sum() / total) for x, mean in zip((a, b), means, strict=True)]
    return logs.max() + np.log(total), means, sds


def agrees(posterior, names, wanted, tolerance=0.02):
    evidence, means, sds = wanted
    assert posterior.log_evidence == pytest.approx(evidence, abs=tolerance)
    for name, mean, sd in zip(names, means, sds, strict=True):
        assert posterior[name].mean == pytest.approx(mean, abs=tolerance * sd)
        assert posterior[name].sd == pytest.approx(sd, rel=tolerance)


def survival():
    m = cv.Model("survival")
    n = m.plate("n")
    followed = m.input("followed", cv.positive, plates=n)
    shape = m.random("shape", cv.gamma(2.0, 1.0))
    scale = m.random("scale", cv.gamma(2.0, 1.0))
    m.random("time", cv.censored(cv.weibull(shape, scale), high=followed))
    return m


def survival_data():
    life, follow = 2.0 * RNG.weibull(1.5, N), RNG.uniform(0.5, 3.0, N)
    return np.minimum(life, follow), life <= follow


def log_survival(shape, scale, time, died):
    total = scipy.stats.gamma.logpdf(shape, 2.0) + scipy.stats.gamma.logpdf(scale, 2.0)
    law = scipy.stats.weibull_min
    for t, d in zip(time, died, strict=True):
        total = total + (law.logpdf if d else law.logsf)(t, shape, scale=scale)
    return total


def test_censored_lifetimes_are_those_of_a_grid(tmp_path):
    time, died = survival_data()
    data = {"time": time, "followed": np.where(died, np.inf, time)}
    posterior = cv.infer(survival(), data)
    wanted = on_grid(lambda k, s: log_survival(k, s, time, died), np.linspace(0.1, 6, 300), np.linspace(0.2, 12, 400))
    agrees(posterior, ("shape", "scale"), wanted)
    posterior.save(tmp_path / "survival.npz")
    assert cv.load(tmp_path / "survival.npz", survival())["scale"].mean == posterior["scale"].mean


def test_the_log_density_has_the_tails():
    time, died = survival_data()
    density = cv.log_density(survival(), {"time": time, "followed": np.where(died, np.inf, time)})
    for point in ((1.5, 2.0), (4.0, 0.05)):
        wanted = log_survival(*point, time, died)
        assert density(dict(zip(("shape", "scale"), point, strict=True))) == pytest.approx(wanted, rel=1e-12)


def test_predictions_are_of_the_value_itself():
    m = cv.Model()
    n = m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, sd=10.0))
    m.random("y", cv.censored(cv.gaussian(mean, sd=1.0), high=0.5), plates=n)
    posterior = cv.infer(m, {"y": [0.5, 0.5, np.nan, 0.2]})
    assert posterior["y"].mean[2] == pytest.approx(posterior["mean"].mean)
    assert posterior["mean"].mean > 0.5
    assert posterior["y"].variance[2] == pytest.approx(1.0 + posterior["mean"].variance)


def test_what_is_not_observed_is_not_censored():
    def model(censored):
        m = cv.Model()
        term = cv.gaussian(0.0, sd=1.0)
        x = m.random("x", cv.censored(term, high=0.5) if censored else term)
        m.random("y", cv.gaussian(x, sd=1.0))
        return m

    found, wanted = (cv.infer(model(c), {"y": 2.0}) for c in (True, False))
    assert found["x"].mean == wanted["x"].mean
    assert found.log_evidence == wanted.log_evidence
    densities = [cv.log_density(model(c), {"y": 2.0})({"x": 1.3}) for c in (True, False)]
    assert densities[0] == densities[1]


def test_intervals_by_row():
    value = RNG.normal(1.0, 1.5, N)
    exact = np.arange(N) % 3 == 0
    low, high = np.where(exact, value, np.floor(value)), np.where(exact, value, np.floor(value) + 1.0)
    high[1] = np.inf
    m = cv.Model()
    n = m.plate("n")
    until = m.input("until", cv.real, plates=n)
    mean, sd = m.random("mean", cv.gaussian(0.0, sd=5.0)), m.random("sd", cv.gamma(2.0, 1.0))
    m.random("y", cv.censored(cv.gaussian(mean, sd=sd), until=until))

    def log_joint(mean, sd):
        total = scipy.stats.norm.logpdf(mean, 0, 5) + scipy.stats.gamma.logpdf(sd, 2.0)
        law = scipy.stats.norm(mean, sd)
        for a, b in zip(low, high, strict=True):
            total = total + (law.logpdf(a) if a == b else np.log(np.maximum(law.cdf(b) - law.cdf(a), 1e-300)))
        return total

    posterior = cv.infer(m, {"y": low, "until": high})
    agrees(posterior, ("mean", "sd"), on_grid(log_joint, np.linspace(-2, 5, 300), np.linspace(0.3, 7, 300)))


@pytest.mark.parametrize("method", ["auto", "ep", "vmp"])
def test_tobit_regression(method):
    """A known sd, so that each method has one linear form to integrate over."""
    x = RNG.normal(size=N)
    y = np.maximum(0.5 + x + RNG.normal(size=N), 0.0)
    m = cv.Model("tobit")
    n = m.plate("n")
    t = m.input("x", cv.real, plates=n)
    a, b = m.random("a", cv.gaussian(0.0, sd=3.0)), m.random("b", cv.gaussian(0.0, sd=3.0))
    m.random("y", cv.censored(cv.gaussian(a + b * t, sd=1.0), low=0.0))

    def log_joint(a, b):
        total = scipy.stats.norm.logpdf(a, 0, 3) + scipy.stats.norm.logpdf(b, 0, 3)
        for u, v in zip(x, y, strict=True):
            law = scipy.stats.norm(a + b * u)
            total = total + (law.logpdf(v) if v > 0 else law.logcdf(0.0))
        return total

    wanted = on_grid(log_joint, np.linspace(-4, 5, 250), np.linspace(-3, 6, 250))
    posterior = cv.infer(m, {"x": x, "y": y}, method=method)
    if method != "vmp":
        agrees(posterior, ("a", "b"), wanted, 0.03)
        return
    assert wanted[0] - 0.3 < posterior.log_evidence < wanted[0]  # a lower bound
    np.testing.assert_allclose([posterior[name].mean for name in "ab"], wanted[1], atol=0.2 * wanted[2][0])


COUNTS = np.array([0, 3, 0, 0, 2, 5, 1, 0, 4, 2, 3, 0, 1, 3])


def zeros(hurdle):
    m = cv.Model("zeros")
    n = m.plate("n")
    p, rate = m.random("p", cv.beta(1.0, 1.0)), m.random("rate", cv.gamma(1.0, 0.5))
    counts = cv.poisson(rate)
    m.random("y", cv.mixture(p, cv.point(0), cv.truncated(counts, low=1) if hurdle else counts), plates=n)
    return m


@pytest.mark.parametrize("hurdle", [False, True])
def test_zeros_of_two_kinds(hurdle):
    def log_joint(p, rate):
        total = scipy.stats.gamma.logpdf(rate, 1.0, scale=2.0)
        for y in COUNTS:
            mass = scipy.stats.poisson.pmf(y, rate)
            mass = np.where(y == 0, 0.0, mass / -np.expm1(-rate)) if hurdle else mass
            total = total + np.log((1 - p) * mass + p * (y == 0))
        return total

    wanted = on_grid(log_joint, np.linspace(5e-4, 0.9995, 300), np.linspace(0.01, 9, 400))
    posterior = cv.infer(zeros(hurdle), {"y": COUNTS})
    agrees(posterior, ("p", "rate"), wanted)
    share = posterior["y class"].mean
    assert np.all(share[COUNTS > 0] < 1e-6)
    assert np.all(share[COUNTS == 0] > (0.999999 if hurdle else 0.5))
    by_mean_field = cv.infer(zeros(hurdle), {"y": COUNTS}, method="vmp")
    assert by_mean_field.converged
    assert by_mean_field.log_evidence == pytest.approx(wanted[0], abs=1e-3 if hurdle else 0.5)


def test_a_mixture_is_the_switch_written_out():
    def data():
        return {"y": np.array([0.2, 0.5, 9.0, -0.3, 0.1])}

    def model(mixed):
        m = cv.Model()
        n = m.plate("n")
        mean, p = m.random("mean", cv.gaussian(0.0, sd=5.0)), m.random("p", cv.beta(1.0, 4.0))
        terms = cv.gaussian(mean, sd=5.0), cv.gaussian(mean, sd=0.5)
        if mixed:
            m.random("y", cv.mixture(p, *terms), plates=n)
        else:
            m.random("y", cv.switch(m.random("y class", cv.bernoulli(p), plates=n), *terms))
        return m

    found, wanted = cv.infer(model(True), data()), cv.infer(model(False), data())
    assert found.log_evidence == wanted.log_evidence
    np.testing.assert_array_equal(found["y class"].mean, wanted["y class"].mean)


def test_weights_of_several_terms():
    m = cv.Model()
    n = m.plate("n")
    weights = m.random("weights", cv.dirichlet(np.ones(3)))
    m.random("y", cv.mixture(weights, *(cv.gaussian(c, sd=1.0) for c in (-10.0, 0.0, 10.0))), plates=n)
    posterior = cv.infer(m, {"y": [-10.0, 0.0, 0.5, 9.0]})
    np.testing.assert_allclose(posterior["weights"].mean, np.array([2.0, 3.0, 2.0]) / 7.0, rtol=1e-6)


def test_censored_mixtures_are_mixtures_of_censored_terms():
    m = cv.Model()
    m.random("y", cv.censored(cv.mixture(0.3, cv.exponential(1.0), cv.exponential(0.1)), high=2.0))
    wanted = np.log(0.3 * np.exp(-2.0) + 0.7 * np.exp(-0.2))
    assert cv.infer(m, {"y": 2.0}).log_evidence == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("term", "law"),
    [
        (cv.truncated(cv.poisson(1.5), low=1, high=4), lambda: scipy.stats.poisson(1.5)),
        (cv.truncated(cv.weibull(1.5, 2.0), low=1.0, high=4.0), lambda: scipy.stats.weibull_min(1.5, scale=2.0)),
    ],
    ids=["poisson", "weibull"],
)
def test_truncated_terms_are_known_between_the_bounds(term, law):
    law = law()
    discrete = hasattr(law, "pmf") and term.factor.kind == "count"
    x = np.arange(1, 5) if discrete else np.linspace(1.0, 4.0, 20001)
    weights = law.pmf(x) if discrete else law.pdf(x)
    weights = weights / weights.sum()
    with jax.enable_x64(True):
        conditional = conditional_of(term.factor, term.factor.kind)
        arguments = {edge: jnp.asarray(value, float) for edge, value in term.args.items()}
        assert conditional.mean(**arguments) == pytest.approx(weights @ x, rel=1e-3)
        assert conditional.variance(**arguments) == pytest.approx(weights @ (x - weights @ x) ** 2, rel=1e-3)
        assert conditional.below is not None
        assert conditional.below(jnp.asarray(2.0), **arguments) == pytest.approx(weights[x <= 2.0].sum(), rel=1e-3)
        keys = jax.random.split(jax.random.key(0), 400)
        drawn = np.asarray(jax.vmap(lambda key: conditional.draw(key, **arguments))(keys))
        log_density = term.factor.log_density(jnp.asarray(2.0), **arguments)
    assert drawn.min() >= 1.0
    assert drawn.max() <= 4.0
    assert abs(drawn.mean() - weights @ x) < 5 * drawn.std() / 20.0
    assert np.isfinite(log_density)


def declare(term, data=None, **inputs):
    m = cv.Model()
    n = m.plate("n")
    m.random("y", term(m, n), plates=n)
    return cv.infer(m, {**(data or {}), **inputs})


REFUSED = {
    "no term": (lambda m, n: cv.censored(m.random("x", cv.gaussian(0.0, sd=1.0)), high=3.0), cv.ModelError, "no term"),
    "of booleans": (lambda m, n: cv.censored(cv.bernoulli(0.3), high=3.0), cv.ModelError, "boolean"),
    "bounds twice": (lambda m, n: cv.truncated(cv.uniform(0.0, 2.0), high=1.0), cv.ModelError, "bounds of its own"),
    "of a mixture": (
        lambda m, n: cv.truncated(cv.mixture(0.2, cv.point(0), cv.poisson(2.0)), low=1),
        cv.ModelError,
        "a mixture of terms",
    ),
    "reversed": (lambda m, n: cv.censored(cv.poisson(2.0), low=3, high=1), cv.ModelError, "below `high`"),
    "beyond": (lambda m, n: cv.truncated(cv.poisson(2.0), low=1), cv.DataError, "between `low` and `high`"),
    "backwards": (
        lambda m, n: cv.censored(cv.poisson(2.0), until=m.input("until", cv.real, plates=n)),
        cv.DataError,
        "`until` must not be below",
    ),
    "one term": (lambda m, n: cv.mixture(0.5, cv.poisson(2.0)), cv.ModelError, "at least two"),
    "weights that miss one": (
        lambda m, n: cv.mixture([0.2, 0.2], cv.point(0), cv.poisson(2.0)),
        cv.ModelError,
        "sum to one",
    ),
    "real weights": (
        lambda m, n: cv.mixture(m.random("x", cv.gaussian(0.0, sd=1.0)), cv.point(0), cv.poisson(2.0)),
        cv.ModelError,
        "probability of the first term",
    ),
    "listed weights": (
        lambda m, n: cv.mixture([p := m.random("p", cv.beta(1.0, 1.0)), 1.0 - p], cv.point(0), cv.poisson(2.0)),
        cv.ModelError,
        "list of expressions",
    ),
    "nested": (
        lambda m, n: cv.mixture(0.5, cv.mixture(0.2, cv.point(0), cv.poisson(2.0)), cv.poisson(1.0)),
        cv.ModelError,
        "inside another",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_meaning_is_refused(case):
    term, error, words = REFUSED[case]
    inputs = {"until": [3.0, -1.0]} if case == "backwards" else {}
    with pytest.raises(error, match=words):
        declare(term, {"y": [0, 2]}, **inputs)


def test_a_random_count_compared_with_a_number():
    """The rate of a Poisson of which only this is known, by a grid over the rate."""
    rates = np.linspace(1e-3, 40.0, 40000)
    laws = {"over": scipy.stats.poisson.sf(3, rates), "at most": scipy.stats.poisson.cdf(3, rates)}
    for case, chance in laws.items():
        m = cv.Model()
        rate = m.random("rate", cv.gamma(2.0, 1.0))
        n = m.random("n", cv.poisson(rate))
        m.let("seen", n > 3 if case == "over" else n <= 3)
        posterior = cv.infer(m, {"seen": True})
        weights = scipy.stats.gamma.pdf(rates, 2.0) * chance
        mean = weights @ rates / weights.sum()
        assert posterior.log_evidence == pytest.approx(np.log(weights.sum() * (rates[1] - rates[0])), abs=1e-5)
        assert posterior["rate"].mean == pytest.approx(mean, rel=1e-4)
        assert posterior["rate"].variance == pytest.approx(weights @ (rates - mean) ** 2 / weights.sum(), rel=1e-3)


def test_counts_that_no_case_allows_are_a_contradiction():
    m = cv.Model("neither")
    share = m.random("share", cv.beta(1.0, 1.0))
    m.random("y", cv.mixture(share, cv.point(0), cv.point(1)), plates=m.plate("n"))
    with pytest.warns(cv.CavityWarning, match="contradict each other"):
        posterior = cv.infer(m, {"y": [0, 1, 5]}, accuracy="fast")
    assert (posterior.code, posterior.log_evidence) == ("contradiction", -np.inf)

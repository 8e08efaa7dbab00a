"""The laws of factors and links, which are discovered; each needs an entry in the tables of arguments below."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.special
from cavity.factors import LINKS, REGISTRY
from cavity.factors.families import (
    FOR_DOMAIN,
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Gamma,
    Gaussian,
    Poisson,
    VectorGaussian,
    Wishart,
)
from cavity.factors.moments import BY_KIND, Category, Real, Vector
from cavity.factors.probit import positive_site

close = np.testing.assert_allclose


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


# Random arguments ----------------------------------------------------------------------------------------------------


def positive(rng):
    return float(np.exp(rng.normal()))


def matrix(rng, size=3):
    root = rng.normal(size=(size, size))
    return root @ root.T + 0.5 * np.eye(size)


def simplex(rng, size=3):
    return rng.dirichlet(np.full(size, 2.0))


# factor -> points of out and of all edges
POINTS = {
    "beta": lambda r: {"out": r.uniform(0.1, 0.9), "a": positive(r), "b": positive(r)},
    "bernoulli": lambda r: {"out": float(r.integers(2)), "probability": r.uniform(0.1, 0.9)},
    "categorical": lambda r: {"out": int(r.integers(3)), "probability": simplex(r)},
    "dirichlet": lambda r: {"out": simplex(r), "concentration": np.exp(r.normal(size=3))},
    "gamma": lambda r: {"out": positive(r), "shape": positive(r), "rate": positive(r)},
    "gaussian": lambda r: {"out": r.normal(), "mean": r.normal(), "precision": positive(r)},
    "poisson": lambda r: {"out": float(r.integers(6)), "rate": positive(r)},
    "vector_gaussian": lambda r: {"out": r.normal(size=3), "mean": r.normal(size=3), "precision": matrix(r)},
    "wishart": lambda r: {"out": matrix(r), "dof": 3.0 + positive(r), "rate": matrix(r)},
}


def gaussian(r):
    return Gaussian.from_parameters(mean=r.normal(), variance=positive(r))


def vector_gaussian(r):
    return VectorGaussian.from_parameters(mean=r.normal(size=3), covariance=matrix(r))


def gamma(r):
    return Gamma.from_parameters(shape=2.0 + positive(r), rate=positive(r))


def wishart(r):
    return Wishart.from_parameters(dof=4.0 + positive(r), scale=matrix(r) / 4.0)


def dirichlet(r):
    return Dirichlet.from_parameters(concentration=1.0 + np.exp(r.normal(size=3)))


# factor -> beliefs over out and the edges that may be random; the others are fixed at a point
BELIEFS = {
    "beta": lambda r: {"out": Beta.from_parameters(a=1 + positive(r), b=1 + positive(r))},
    "bernoulli": lambda r: {
        "out": Bernoulli.from_parameters(probability=r.uniform(0.1, 0.9)),
        "probability": Beta.from_parameters(a=1 + positive(r), b=1 + positive(r)),
    },
    "categorical": lambda r: {"out": Categorical.from_parameters(probability=simplex(r)), "probability": dirichlet(r)},
    "dirichlet": lambda r: {"out": dirichlet(r)},
    "gamma": lambda r: {"out": gamma(r), "rate": gamma(r)},
    "gaussian": lambda r: {"out": gaussian(r), "mean": gaussian(r), "precision": gamma(r)},
    "poisson": lambda r: {"out": Poisson.from_parameters(rate=positive(r)), "rate": gamma(r)},
    "vector_gaussian": lambda r: {"out": vector_gaussian(r), "mean": vector_gaussian(r), "precision": wishart(r)},
    "wishart": lambda r: {"out": wishart(r), "rate": wishart(r)},
}


def outer(x):
    return np.outer(x, x)


def mean_square(a, b):
    """E (a - b)(a - b)' of independent vectors."""
    return a.covariance() + b.covariance() + outer(a.mean() - b.mean())


# (factor, edge) -> the natural parameters of the message in a textbook, from the beliefs (and points) of the others
TEXTBOOK = {
    ("beta", "out"): lambda b, p: (p["a"] - 1, p["b"] - 1),
    ("bernoulli", "out"): lambda b, p: (b["probability"].moments().log - b["probability"].moments().log_complement,),
    ("bernoulli", "probability"): lambda b, p: (b["out"].mean(), 1 - b["out"].mean()),
    ("categorical", "out"): lambda b, p: (b["probability"].moments().log,),
    ("categorical", "probability"): lambda b, p: (b["out"].mean(),),
    ("dirichlet", "out"): lambda b, p: (p["concentration"] - 1,),
    ("gamma", "out"): lambda b, p: (-b["rate"].mean(), p["shape"] - 1),
    ("gamma", "rate"): lambda b, p: (-b["out"].mean(), p["shape"]),
    ("gaussian", "out"): lambda b, p: (b["precision"].mean() * b["mean"].mean(), -0.5 * b["precision"].mean()),
    ("gaussian", "mean"): lambda b, p: (b["precision"].mean() * b["out"].mean(), -0.5 * b["precision"].mean()),
    ("gaussian", "precision"): lambda b, p: (
        -0.5 * ((b["out"].mean() - b["mean"].mean()) ** 2 + b["out"].variance() + b["mean"].variance()),
        0.5,
    ),
    ("poisson", "out"): lambda b, p: (b["rate"].moments().log,),
    ("poisson", "rate"): lambda b, p: (-1.0, b["out"].mean()),
    ("vector_gaussian", "out"): lambda b, p: (b["precision"].mean() @ b["mean"].mean(), -0.5 * b["precision"].mean()),
    ("vector_gaussian", "mean"): lambda b, p: (b["precision"].mean() @ b["out"].mean(), -0.5 * b["precision"].mean()),
    ("vector_gaussian", "precision"): lambda b, p: (-0.5 * mean_square(b["out"], b["mean"]), 0.5),
    ("wishart", "out"): lambda b, p: (-0.5 * b["rate"].mean(), 0.5 * (p["dof"] - 4)),
    ("wishart", "rate"): lambda b, p: (-0.5 * b["out"].mean(), 0.5 * p["dof"]),
}

KIND_OF_OUT = {
    "beta": "unit", "bernoulli": "boolean", "categorical": "category", "dirichlet": "simplex", "gamma": "positive",
    "gaussian": "real", "poisson": "count", "vector_gaussian": "vector", "wishart": "posdef",
}  # fmt: skip

each_factor = pytest.mark.parametrize("name", sorted(REGISTRY))
each_seed = pytest.mark.parametrize("seed", range(2))


def test_every_entry_of_the_vocabulary_is_in_the_tables():
    names = set(REGISTRY)
    assert set(POINTS) == set(BELIEFS) == set(KIND_OF_OUT) == names, "give the new factor random arguments"
    open_edges = {(name, edge) for name in names for edge in ("out", *REGISTRY[name].edges)}
    closed = {(name, edge) for name in names for edge in REGISTRY[name].unsupported}
    # The degrees of freedom of a Wishart, shapes and concentrations: whatever is declared unsupported is not checked.
    assert set(TEXTBOOK) == open_edges - closed, "give the new edge its textbook message"
    assert {(name, edge) for name in names for edge in BELIEFS[name](np.random.default_rng(0))} == set(TEXTBOOK)
    assert {(name, link) for name in names for link in REGISTRY[name].sites} == set(SITES), (
        "give the new site a density"
    )
    assert set(LINKS) == set(LINK_REFERENCES), "give the new link a reference"


def kind_of(name, edge):
    return KIND_OF_OUT[name] if edge == "out" else REGISTRY[name].edges[edge]


def moments_of_point(name, edge, value):
    kind = kind_of(name, edge)
    if kind == "concentration":
        return Vector(jnp.asarray(value), jnp.zeros((len(value), len(value))))
    if kind == "category":
        return Category(jax.nn.one_hot(value, 3))
    return FOR_DOMAIN[kind].moments_at(jnp.asarray(value))


# Factors -------------------------------------------------------------------------------------------------------------


@each_factor
@each_seed
def test_expected_log_at_points_is_the_log_density(name, seed):
    points = POINTS[name](np.random.default_rng(seed))
    assert set(points) == {"out", *REGISTRY[name].edges}
    moments = {edge: moments_of_point(name, edge, value) for edge, value in points.items()}
    expected = REGISTRY[name].log_density(**{edge: jnp.asarray(value) for edge, value in points.items()})
    close(REGISTRY[name].expected_log(**moments), expected, rtol=1e-12, atol=1e-12)


def draws(belief, kind, key, number):
    """Independent values; categories and truth values as numbers."""
    values = np.asarray(belief.sample(key, (number,)))
    return values.astype(int) if kind == "category" else values.astype(float)


@each_factor
@each_seed
def test_expected_log_is_the_expectation_of_the_log_density(name, seed):
    """Monte Carlo, within five standard errors."""
    rng, number = np.random.default_rng(seed), 40_000
    beliefs, points = BELIEFS[name](rng), POINTS[name](rng)
    moments = {edge: moments_of_point(name, edge, value) for edge, value in points.items()}
    moments |= {edge: belief.moments() for edge, belief in beliefs.items()}
    found = float(REGISTRY[name].expected_log(**moments))
    keys = jax.random.split(jax.random.key(seed), len(beliefs))
    samples = {e: draws(b, kind_of(name, e), k, number) for (e, b), k in zip(beliefs.items(), keys, strict=True)}
    fixed = {edge: value for edge, value in points.items() if edge not in beliefs}
    values = np.asarray(jax.vmap(lambda s: REGISTRY[name].log_density(**s, **fixed))(samples))
    assert np.isfinite(found)
    assert abs(found - values.mean()) < 5 * values.std() / np.sqrt(number) + 1e-9


@pytest.mark.parametrize(("name", "edge"), sorted(TEXTBOOK), ids=lambda text: text)
def test_messages_are_the_textbook_ones(name, edge):
    rng = np.random.default_rng(7)
    beliefs, points = BELIEFS[name](rng), POINTS[name](rng)
    moments = {e: moments_of_point(name, e, value) for e, value in points.items()}
    moments |= {e: belief.moments() for e, belief in beliefs.items()}
    target = beliefs[edge]
    gradient = jax.grad(lambda own: REGISTRY[name].expected_log(**{**moments, edge: own}))(target.moments())
    found = type(target).pull(target.moments(), gradient)
    expected = TEXTBOOK[name, edge](beliefs, points)
    if isinstance(target, Categorical):  # logits are identified up to a constant
        found, expected = (found[0] - found[0].mean(),), (expected[0] - expected[0].mean(),)
    for one, other in zip(found, expected, strict=True):
        close(one, other, rtol=1e-10, atol=1e-12)


@each_factor
def test_predictions_at_points_are_the_factor_itself(name):
    """With known arguments the predictive marginal is the density: the same differences of log density in `out`."""
    rng = np.random.default_rng(3)
    first, second = POINTS[name](rng), POINTS[name](rng)
    arguments = {edge: value for edge, value in first.items() if edge != "out"}
    family = REGISTRY[name].predict(**{e: moments_of_point(name, e, value) for e, value in arguments.items()})
    for out in (first["out"], second["out"]):
        expected = REGISTRY[name].log_density(out=jnp.asarray(out), **{e: jnp.asarray(v) for e, v in arguments.items()})
        close(family.log_density(jnp.asarray(out)), expected, rtol=1e-10, atol=1e-10)


# Sites ---------------------------------------------------------------------------------------------------------------


def log_poisson(s, out):
    return out * s - np.exp(np.minimum(s, 600.0)) - scipy.special.gammaln(out + 1)


def log_bernoulli(log_link):
    return lambda s, out: log_link(s if out else -s)


# (factor, link) -> (log density of the observation given s, observations); None: a point mass at the observation
SITES = {
    ("bernoulli", "logistic"): (log_bernoulli(lambda s: -np.logaddexp(0.0, -s)), (0.0, 1.0)),
    ("bernoulli", "probit"): (log_bernoulli(scipy.special.log_ndtr), (0.0, 1.0)),
    ("poisson", "exp"): (log_poisson, (0.0, 1.0, 30.0)),
    ("gaussian", "identity"): (None, (-1.5, 2.0)),
}
MEANS = (-6.0, -1.0, 0.0, 0.7, 5.0)
each_site = pytest.mark.parametrize(("name", "link"), sorted(SITES), ids=lambda text: text)


def site_of(name, link):
    return REGISTRY[name].sites[link]


def integrals(log_factor, mean, variance, power):
    """log evidence, mean and variance of factor^power x normal, by adaptive quadrature from its mode outwards."""

    def height(s):
        return power * log_factor(s) - 0.5 * (s - mean) ** 2 / variance

    sd = np.sqrt(variance)
    # The mode lies within power x (slope of the factor) x variance of the mean.
    grid = mean + np.concatenate([-np.geomspace(1e-3, 300, 200)[::-1], [0], np.geomspace(1e-3, 300, 200)]) * sd
    centre = grid[np.argmax(height(grid))]
    mode = scipy.optimize.minimize_scalar(lambda s: -height(s), (centre - 0.1 * sd, centre), tol=1e-12).x
    top = height(mode)
    ends = [mode + sd * t for t in (-14, -6, -2.5, -1, -0.3, 0, 0.3, 1, 2.5, 6, 14)]

    def piece(order, a, b):
        tolerance = {"epsabs": 1e-14 * sd ** (order + 1), "epsrel": 1e-13, "limit": 200}
        return scipy.integrate.quad(lambda s: (s - mode) ** order * np.exp(height(s) - top), a, b, **tolerance)[0]

    def moment(order):
        return sum(piece(order, a, b) for a, b in itertools.pairwise(ends))

    zero, one, two = (moment(order) for order in range(3))
    shift = one / zero
    return top + np.log(zero) - 0.5 * np.log(2 * np.pi * variance), mode + shift, two / zero - shift**2


def reference(name, link, out, mean, variance, power):
    """log evidence, score, curvature, ratio."""
    log_factor = SITES[name, link][0]
    if log_factor is None:
        evidence = -0.5 * np.log(2 * np.pi * variance) - 0.5 * (out - mean) ** 2 / variance
        return evidence, (out - mean) / variance, 1 / variance, 0.0
    evidence, tilted_mean, tilted_variance = integrals(lambda s: log_factor(s, out), mean, variance, power)
    ratio = tilted_variance / variance
    return evidence, (tilted_mean - mean) / variance, (1 - ratio) / variance, ratio


def site_errors(name, link, power, variances):
    """Greatest errors over the grid: log evidence; score in cavity sds; ratio, relative; curvature x v."""
    cases = [(out, m, v) for out in SITES[name, link][1] for m in MEANS for v in variances]
    out, mean, variance = (jnp.asarray(column) for column in np.array(cases).T)
    found = site_of(name, link)(out, mean, variance, power)
    log_evidence, score, curvature, ratio = np.array([reference(name, link, *case, power) for case in cases]).T
    close(found.ratio, 1.0 - variance * found.curvature, atol=1e-9, err_msg="ratio = 1 - v curvature")
    errors = (
        (found.log_evidence - log_evidence) / (1 + np.abs(log_evidence)),
        np.sqrt(variance) * (found.score - score),
        (found.ratio - ratio) / np.maximum(ratio, 1e-12),
        variance * (found.curvature - curvature),
    )
    return [float(np.max(np.abs(error))) for error in errors]


@each_site
@pytest.mark.parametrize("power", [1.0, 0.5])
def test_sites_are_the_integral_and_its_derivatives(name, link, power):
    log_evidence, score, ratio, curvature = site_errors(name, link, power, (1e-4, 0.3, 2.0))
    assert log_evidence < 2e-9
    assert score < 1e-8
    assert ratio < 1e-7
    assert curvature < 1e-8


@pytest.mark.parametrize(
    ("name", "link", "power", "variance", "tolerance"),
    [
        ("bernoulli", "logistic", 1.0, 10.0, 1e-8),
        ("bernoulli", "logistic", 0.5, 10.0, 1e-8),
        ("bernoulli", "logistic", 1.0, 100.0, 1e-6),
        ("bernoulli", "logistic", 1.0, 1e4, 1e-2),
        ("bernoulli", "probit", 0.5, 10.0, 1e-8),
        ("bernoulli", "probit", 0.5, 100.0, 1e-5),
        ("poisson", "exp", 1.0, 10.0, 1e-6),
        ("poisson", "exp", 1.0, 100.0, 1e-3),
    ],
)
def test_sites_under_wide_cavities(name, link, power, variance, tolerance):
    """The step of the factor is narrow against the cavity, as it is in the first sweep under a vague prior."""
    assert max(site_errors(name, link, power, (variance,))) < tolerance


@each_site
def test_score_and_curvature_are_derivatives_of_the_log_evidence(name, link):
    """Central differences in the cavity's mean."""
    site, out = site_of(name, link), jnp.asarray(SITES[name, link][1][-1])
    mean, variance, step = jnp.asarray([-1.0, 0.0, 0.7, 3.0]), jnp.asarray([0.5, 1.0, 4.0, 2.0]), 1e-3
    low, middle, high = (site(out, mean + d, variance) for d in (-step, 0.0, step))
    close(middle.score, (high.log_evidence - low.log_evidence) / (2 * step), rtol=1e-5, atol=1e-6)
    close(middle.curvature, -(high.score - low.score) / (2 * step), rtol=1e-5, atol=1e-6)


def exact_probit(z, noise, variance):
    """log evidence, score x sd and ratio for argument z = mean / sqrt(variance + noise), to hundreds of digits."""
    with mpmath.workdps(400):
        z, total = mpmath.mpf(z), mpmath.mpf(variance) + noise
        cdf = mpmath.erfc(-z / mpmath.sqrt(2)) / 2
        r = mpmath.npdf(z) / cdf
        shrunk = 1 - r * (z + r)
        ratio = (noise + variance * shrunk) / total
        return [float(mpmath.log(cdf)), float(r / mpmath.sqrt(total) * mpmath.sqrt(variance)), float(ratio)]


@pytest.mark.parametrize("noise", [0, 1], ids=["positive", "probit"])
@pytest.mark.parametrize("truth", [0.0, 1.0])
def test_step_sites_in_the_tails(noise, truth):
    """z from -1000 to 30 standard deviations against many digits."""
    z = np.array([-1e3, -100.0, -40.0, -30.5, -30.0, -29.5, -12.0, -5.0, -1.0, 0.0, 2.0, 8.0, 30.0])
    site = [positive_site, site_of("bernoulli", "probit")][noise]
    for variance in (1e-3, 1.0, 50.0):
        mean = (2 * truth - 1) * z * np.sqrt(variance + noise)
        found = site(jnp.asarray(truth), jnp.asarray(mean), jnp.full_like(mean, variance))
        log_evidence, score, ratio = np.array([exact_probit(float(t), noise, variance) for t in z]).T
        close(found.log_evidence, log_evidence, rtol=1e-12)
        close((2 * truth - 1) * found.score * np.sqrt(variance), score, rtol=1e-12)
        close(found.ratio, ratio, rtol=1e-8)
        assert np.all(found.ratio >= 0)
        assert np.all(found.curvature >= 0)


ALL_SITES = [*sorted(SITES), ("constraint", "positive")]


def any_site(name, link):
    return positive_site if name == "constraint" else site_of(name, link)


@pytest.mark.parametrize(("name", "link"), ALL_SITES, ids=lambda text: text)
def test_sites_under_jit_and_vmap_equal_eager(name, link):
    site = any_site(name, link)
    out = jnp.asarray([0.0, 1.0, 1.0, 0.0])
    mean, variance = jnp.asarray([-3.0, 0.0, 2.0, 9.0]), jnp.asarray([0.1, 1.0, 20.0, 3.0])
    eager = site(out, mean, variance, 1.0)
    for mapped in (jax.jit(lambda *a: site(*a, 1.0)), jax.vmap(lambda *a: site(*a, 1.0))):
        for one, other in zip(mapped(out, mean, variance), eager, strict=True):
            close(one, other, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(("name", "link"), ALL_SITES, ids=lambda text: text)
@pytest.mark.parametrize("power", [1.0, 0.5])
def test_sites_of_extreme_inputs_are_finite(name, link, power):
    reach = 300.0 if link == "exp" else 1e5  # a log rate of 1e5 has no finite likelihood
    means, variances = [-reach, -300.0, -30.0, 0.0, 30.0, 300.0, reach], [1e-10, 1.0, 1e4, 1e8]
    grid = np.meshgrid([0.0, 1.0], means, variances, indexing="ij")
    out, mean, variance = (jnp.asarray(a.ravel()) for a in grid)
    site = any_site(name, link)(out, mean, variance, power)
    for field, values in site._asdict().items():
        bad = ~np.isfinite(values)
        assert not bad.any(), f"{field} at out {out[bad]}, mean {mean[bad]}, variance {variance[bad]}"
    ordinary = np.abs(mean) <= 30 * np.sqrt(variance)
    assert np.all(site.ratio[ordinary] >= 0), "a variance is negative"


def test_probit_power_site_far_out():
    """m = -300, v = 1, power 1/2: Phi(s)^(1/2) is near exp(-s^2 / 4), which gives -m^2 / 4 / (1 + v / 2) = -15000."""
    site = site_of("bernoulli", "probit")(jnp.asarray(1.0), jnp.asarray(-300.0), jnp.asarray(1.0), 0.5)
    close(site.log_evidence, -15000.0, rtol=1e-3)


# Links ---------------------------------------------------------------------------------------------------------------


def expectation(function, mean, variance):
    """E f(s) under a normal, by a trapezoid rule of 8001 nodes."""
    z = np.linspace(-12, 12, 8001)
    weight = np.exp(-0.5 * z**2)
    nodes = mean[:, None] + np.sqrt(variance)[:, None] * z
    return function(nodes) @ weight / weight.sum()


def log_unit(log_link):
    return lambda m, v: (expectation(log_link, m, v), expectation(lambda s: log_link(-s), m, v))


# link of one real -> the moments of its value, by fine quadrature; a link of a vector -> None, tested below
LINK_REFERENCES = {
    "exp": lambda m, v: (expectation(np.exp, m, v), m),
    "logistic": log_unit(lambda s: -np.logaddexp(0.0, -s)),
    "probit": log_unit(scipy.special.log_ndtr),
    "softmax": None,
}
SCALAR_BOUNDS = [(name, b) for name in sorted(LINKS) if LINK_REFERENCES.get(name) for b in LINKS[name].bounds]
ALL_BOUNDS = [(name, bound) for name in sorted(LINKS) for bound in LINKS[name].bounds]
M, V = (a.ravel() for a in np.meshgrid([-4.0, -1.0, 0.0, 0.5, 3.0], [0.0, 0.01, 0.5, 1.0, 4.0], indexing="ij"))


@pytest.mark.parametrize(("name", "bound"), SCALAR_BOUNDS, ids=lambda text: text)
def test_moments_of_links(name, bound):
    """Equal to fine quadrature, or below it where the link says that it is a bound (of log probabilities)."""
    found = LINKS[name].moments(Real(jnp.asarray(M), jnp.asarray(V)), bound)
    accuracy = LINKS[name].bounds[bound]
    assert accuracy in ("exact", "quadrature", "bound")
    for one, other in zip(found, LINK_REFERENCES[name](M, V), strict=True):
        if accuracy == "bound":
            assert np.all(one <= other + 1e-12)
            close(one, other, atol=0.5)
        else:
            close(one, other, rtol=1e-12 if accuracy == "exact" else 1e-6, atol=1e-7)


@pytest.mark.parametrize(("name", "bound"), ALL_BOUNDS, ids=lambda text: text)
def test_links_at_a_point_are_their_value(name, bound):
    """Every bound but those with curvature of their own is tight at variance zero."""
    s = jnp.asarray([-2.0, 0.3, 1.1])
    moments = LINKS[name].moments(Real(s, jnp.zeros(3)), bound)
    value = LINKS[name].value(s)
    log = moments[1] if type(moments) is BY_KIND["positive"] else moments[0]
    if bound == "quadratic":  # one bound for each class: loose even at a point
        assert np.all(log <= jnp.log(value) + 1e-12)
    else:
        close(log, jnp.log(value), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("name", "bound"), ALL_BOUNDS, ids=lambda text: text)
def test_gradients_of_links_are_finite_everywhere(name, bound):
    variances = np.array([0.0, 1e-12, 1.0, 100.0, 1e4])
    means = np.array([-300.0, -1.0, 0.0, 1.0, 300.0])
    if LINK_REFERENCES[name] is None:
        means = np.array([[0.0, 0.0, 0.0], [-300.0, 0.0, 300.0], [1.0, 2.0, -1.0]])
        variances = np.array([[v, v, v] for v in variances] + [[0.0, 1.0, 1e4]])
    m, v = (
        jnp.asarray(np.concatenate(a))
        for a in zip(*((means, np.broadcast_to(v, means.shape)) for v in variances), strict=True)
    )
    if name == "exp":  # its mean itself overflows
        m, v = jnp.clip(m, -10, 10), jnp.minimum(v, 100.0)

    def total(m, v):
        return sum(jnp.sum(part) for part in LINKS[name].moments(Real(m, v), bound))

    value, gradient = jax.value_and_grad(total, (0, 1))(m, v)
    assert np.isfinite(value)
    for part, label in zip(gradient, ("mean", "variance"), strict=True):
        bad = ~np.isfinite(part)
        assert not bad.any(), f"d / d {label} at mean {m[bad]}, variance {v[bad]}"


@pytest.mark.parametrize(("name", "bound"), ALL_BOUNDS, ids=lambda text: text)
def test_gradients_of_links_are_derivatives(name, bound):
    m, v, step = jnp.asarray([-1.0, 0.2, 1.5]), jnp.asarray([0.5, 1.0, 2.0]), 1e-4
    total = jax.jit(lambda m, v: sum(jnp.sum(part) for part in LINKS[name].moments(Real(m, v), bound)))
    in_mean, in_variance = jax.grad(total, (0, 1))(m, v)
    for i in range(3):
        e = step * jnp.eye(3)[i]
        close(in_mean[i], (total(m + e, v) - total(m - e, v)) / (2 * step), rtol=1e-5, atol=1e-6)
        close(in_variance[i], (total(m, v + e) - total(m, v - e)) / (2 * step), rtol=1e-4, atol=1e-5)


def log_sum_exp(m, v, bound):
    """E log sum exp(s), or what bounds it, from the moments of the link."""
    m, v = jnp.asarray(m), jnp.asarray(v)
    return np.asarray((m - LINKS["softmax"].moments(Real(m, v), bound).log)[..., 0])


@pytest.fixture(scope="module")
def softmax_cases():
    """Means, variances (200, 4) and E log sum exp with its standard error, by Monte Carlo; some variances are zero."""
    rng = np.random.default_rng(0)
    m, v = 2 * rng.normal(size=(200, 4)), np.exp(1.5 * rng.normal(size=(200, 4)))
    v[::7, 1] = 0.0
    z = rng.normal(size=(20_000, 4))
    z = np.concatenate([z, -z])
    values = np.stack([scipy.special.logsumexp(a + np.sqrt(b) * z, axis=-1) for a, b in zip(m, v, strict=True)])
    pairs = 0.5 * (values[:, :20_000] + values[:, 20_000:])
    return m, v, pairs.mean(1), pairs.std(1) / np.sqrt(20_000)


def test_softmax_quadrature_is_the_expectation(softmax_cases):
    m, v, mean, error = softmax_cases
    assert np.all(np.abs(log_sum_exp(m, v, "quadrature") - mean) < 5 * error + 1e-7)


def test_softmax_quadrature_of_two_classes_is_logistic():
    """log(e^a + e^b) = b + softplus(a - b): one integral, done finely."""
    m, v = np.array([[0.0, 0.0], [1.0, -2.0], [3.0, 1.0]]), np.array([[1.0, 1.0], [0.5, 4.0], [0.0, 2.0]])
    exact = m[:, 1] + expectation(lambda s: np.logaddexp(0.0, s), m[:, 0] - m[:, 1], v.sum(1))
    close(log_sum_exp(m, v, "quadrature"), exact, rtol=1e-8)


@pytest.mark.parametrize("bound", [b for b, accuracy in LINKS["softmax"].bounds.items() if accuracy == "bound"])
def test_softmax_bounds_are_upper_bounds(softmax_cases, bound):
    m, v, _, _ = softmax_cases
    assert np.all(log_sum_exp(m, v, bound) >= log_sum_exp(m, v, "quadrature") - 1e-7)


def test_softmax_tilted_is_tighter_than_log(softmax_cases):
    m, v, _, _ = softmax_cases
    assert np.all(log_sum_exp(m, v, "tilted") <= log_sum_exp(m, v, "log") + 1e-12)

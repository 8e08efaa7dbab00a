"""The laws of sites, which are discovered with their factors; the truth of each stands in the tables below."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.special
import scipy.stats
from factor_arguments import CUTPOINTS

from cavity.factors import REGISTRY
from cavity.factors.links.probit import positive_site

close = np.testing.assert_allclose


def log_poisson(s, out):
    return out * s - np.exp(np.minimum(s, 600.0)) - scipy.special.gammaln(out + 1)


def log_bernoulli(log_link):
    return lambda s, out: log_link(s if out else -s)


# (factor, link) -> (log density of the observation given s, observations); None: a point mass at the observation
def log_binomial(log_link):
    return lambda s, out: np.log(scipy.special.comb(7, out)) + out * log_link(s) + (7 - out) * log_link(-s)


def log_student(s, out):
    return scipy.stats.t.logpdf(out - s, 3.0, scale=0.5)


def log_laplace(s, out):
    return -np.abs(out - s) / 0.7 - np.log(1.4)


def log_skew_normal(s, out):
    z = (out - s) / 0.7
    return np.log(2.0 / 0.7) + scipy.stats.norm.logpdf(z) + scipy.special.log_ndtr(3.0 * z)


def log_ordered(cdf):
    bounds = np.concatenate([[-np.inf], CUTPOINTS, [np.inf]])

    def log_density(s, out):
        low, high = bounds[int(out)] - s, bounds[int(out) + 1] - s
        flip = low > 0  # the difference of the smaller tail
        with np.errstate(divide="ignore"):
            return np.log(np.where(flip, cdf(-low) - cdf(-high), cdf(high) - cdf(low)))

    return log_density


def log_inside(s, out):
    inside = (s > -1.0) & (s < 2.0)
    return np.where(inside == bool(out), 0.0, -np.inf)


def log_truncated(s, out):
    inside = scipy.stats.truncnorm.logpdf(s, (-1 - 0.4) / 1.5, (2 - 0.4) / 1.5, loc=0.4, scale=1.5)
    return np.where((s > -1.0) & (s < 2.0), inside, -np.inf)


def log_weibull(s, out):
    """Of shape 1.7 and scale exp(s)."""
    z = 1.7 * (np.log(out) - s)
    return np.log(1.7 / out) + z - np.exp(np.minimum(z, 600.0))


def log_exponential(s, out):
    """Of rate exp(s)."""
    return s - out * np.exp(np.minimum(s, 600.0))


BOUNDS = {"low": -1.0, "high": 2.0}
# (factor, link) -> the known other arguments
OTHERS = {
    ("binomial", "logistic"): {"n": 7.0},
    ("binomial", "probit"): {"n": 7.0},
    ("between", "linear"): BOUNDS,
    ("laplace", "linear"): {"scale": 0.7},
    ("negative_binomial", "exp"): {"dispersion": 2.5},
    ("ordered_logistic", "linear"): {"cutpoints": CUTPOINTS},
    ("ordered_probit", "linear"): {"cutpoints": CUTPOINTS},
    ("skew_normal", "linear"): {"scale": 0.7, "skew": 3.0},
    ("student_t", "linear"): {"dof": 3.0, "scale": 0.5},
    ("truncated_gaussian", "out"): {"mean": 0.4, "precision": 1 / 1.5**2, **BOUNDS},
    ("uniform", "out"): BOUNDS,
    ("weibull", "exp"): {"shape": 1.7},
}
SITES = {
    ("between", "linear"): (log_inside, (1.0, 0.0)),
    ("binomial", "logistic"): (log_binomial(lambda s: -np.logaddexp(0.0, -s)), (0.0, 3.0, 7.0)),
    ("binomial", "probit"): (log_binomial(scipy.special.log_ndtr), (0.0, 3.0)),
    ("laplace", "linear"): (log_laplace, (-1.5, 2.0)),
    ("negative_binomial", "exp"): (
        lambda s, out: scipy.stats.nbinom.logpmf(out, 2.5, 2.5 / (2.5 + np.exp(s))),
        (0.0, 3.0, 20.0),
    ),
    ("exponential", "exp"): (log_exponential, (0.01, 1.0, 30.0)),
    ("ordered_logistic", "linear"): (log_ordered(scipy.special.expit), (0.0, 1.0, 3.0)),
    ("ordered_probit", "linear"): (log_ordered(scipy.special.ndtr), (0.0, 1.0, 3.0)),
    ("skew_normal", "linear"): (log_skew_normal, (-1.5, 2.0)),
    ("student_t", "linear"): (log_student, (-1.5, 2.0)),
    ("truncated_gaussian", "out"): (log_truncated, (0.0,)),
    ("uniform", "out"): (lambda s, out: log_inside(s, 1.0) - np.log(3.0), (0.0,)),
    ("bernoulli", "logistic"): (log_bernoulli(lambda s: -np.logaddexp(0.0, -s)), (0.0, 1.0)),
    ("bernoulli", "probit"): (log_bernoulli(scipy.special.log_ndtr), (0.0, 1.0)),
    ("poisson", "exp"): (log_poisson, (0.0, 1.0, 30.0)),
    ("weibull", "exp"): (log_weibull, (0.3, 1.0, 9.0)),
    ("gaussian", "identity"): (None, (-1.5, 2.0)),
}


MEANS = (-6.0, -1.0, 0.0, 0.7, 5.0)
each_site = pytest.mark.parametrize(("name", "link"), sorted(SITES), ids=lambda text: text)


SHARP = {("between", "linear"), ("truncated_gaussian", "out"), ("uniform", "out")}  # a density with jumps
ROUGH = {*SHARP, ("laplace", "linear"), ("student_t", "linear")}  # not smooth, or not log-concave


def test_every_site_has_its_truth():
    found = {(name, link) for name, factor in REGISTRY.items() for link in factor.sites}
    assert set(SITES) == found, "give the new site a log density written apart from it, and observations"


def test_densities_behind_links_are_those_of_scipy():
    s = np.linspace(-3.0, 3.0, 7)
    close(log_weibull(s, 2.3), scipy.stats.weibull_min.logpdf(2.3, 1.7, scale=np.exp(s)), rtol=1e-12)
    close(log_exponential(s, 2.3), scipy.stats.expon.logpdf(2.3, scale=np.exp(-s)), rtol=1e-12)
    close(log_skew_normal(s, 0.4), scipy.stats.skewnorm.logpdf(0.4, 3.0, loc=s, scale=0.7), rtol=1e-9)
    close(log_poisson(s, 4.0), scipy.stats.poisson.logpmf(4.0, np.exp(s)), rtol=1e-12)


def site_of(name, link):
    return functools.partial(REGISTRY[name].sites[link], **OTHERS.get((name, link), {}))


def rough_integrals(log_factor, mean, variance, power, breaks):
    """The same by Gauss-Legendre on many pieces between the given breaks: for jumps, kinks and two modes."""
    sd = np.sqrt(variance)
    ends = np.unique(
        np.concatenate(
            [mean + sd * np.linspace(-14, 14, 141), breaks, (breaks + np.linspace(-3, 3, 61)[:, None]).ravel()]
        )
    )
    ends = ends[(ends >= mean - 14 * sd) & (ends <= mean + 14 * sd)]
    x, w = np.polynomial.legendre.leggauss(20)
    half = 0.5 * np.diff(ends)[:, None]
    nodes = 0.5 * (ends[1:] + ends[:-1])[:, None] + half * x
    height = power * log_factor(nodes) - 0.5 * (nodes - mean) ** 2 / variance
    top = height.max()
    weight = np.exp(height - top) * half * w
    zero, shift = weight.sum(), (weight * (nodes - mean)).sum() / weight.sum()
    spread = (weight * (nodes - mean - shift) ** 2).sum() / zero
    return top + np.log(zero) - 0.5 * np.log(2 * np.pi * variance), mean + shift, spread


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
    if (name, link) in ROUGH:
        breaks = np.array([-1.0, 2.0]) if (name, link) in SHARP else np.array([out])
        found = rough_integrals(lambda s: log_factor(s, out), mean, variance, power, breaks)
    else:
        found = integrals(lambda s: log_factor(s, out), mean, variance, power)
    evidence, tilted_mean, tilted_variance = found
    ratio = tilted_variance / variance
    return evidence, (tilted_mean - mean) / variance, (1 - ratio) / variance, ratio


def site_errors(name, link, power, variances):
    """Greatest errors over the grid: log evidence; score in cavity sds; ratio, relative; curvature x v."""
    cases = [(out, m, v) for out in SITES[name, link][1] for m in MEANS for v in variances]
    if (name, link) in SHARP:  # far from the bounds the reference underflows: see tests/factors/test_truncation.py
        cases = [
            (out, m, v) for out, m, v in cases if -1 - 10 * np.sqrt(v) < m < 2 + 10 * np.sqrt(v) and (out or v > 0.1)
        ]
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


def with_powers(sites):
    """Each site, and the power 1/2 of some with and without closed forms; of all in the slow suite."""
    some = {("bernoulli", "logistic"), ("bernoulli", "probit"), ("between", "linear"), ("constraint", "positive")}
    for site in sites:
        yield pytest.param(*site, 1.0)
        yield pytest.param(*site, 0.5, marks=[pytest.mark.slow] * (site not in some))


@pytest.mark.parametrize(("name", "link", "power"), list(with_powers(sorted(SITES))))
def test_sites_are_the_integral_and_its_derivatives(name, link, power):
    variances = (0.3, 2.0) if (name, link) in SHARP else (1e-4, 0.3, 2.0)
    log_evidence, score, ratio, curvature = site_errors(name, link, power, variances)
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


UNBOUNDED = {("exponential", "exp"), ("poisson", "exp"), ("weibull", "exp")}  # 1e5 there has no finite likelihood
ALL_SITES = [*sorted(SITES), ("constraint", "positive")]


def any_site(name, link):
    return positive_site if name == "constraint" else site_of(name, link)


def seen_at(name, link):
    return [0.0, 1.0] if name == "constraint" else SITES[name, link][1]


@pytest.mark.parametrize(("name", "link"), ALL_SITES, ids=lambda text: text)
def test_sites_under_jit_and_vmap_equal_eager(name, link):
    site = any_site(name, link)
    out = jnp.asarray(np.resize(seen_at(name, link), 4))
    mean, variance = jnp.asarray([-3.0, 0.0, 2.0, 9.0]), jnp.asarray([0.1, 1.0, 20.0, 3.0])
    eager = site(out, mean, variance, 1.0)
    for mapped in (jax.jit(lambda *a: site(*a, 1.0)), jax.vmap(lambda *a: site(*a, 1.0))):
        for one, other in zip(mapped(out, mean, variance), eager, strict=True):
            close(one, other, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(("name", "link", "power"), list(with_powers(ALL_SITES)))
def test_sites_of_extreme_inputs_are_finite(name, link, power):
    reach = 300.0 if (name, link) in UNBOUNDED else 1e5
    means = np.clip([-1e5, -300.0, -30.0, 0.0, 30.0, 300.0, 1e5], -reach, reach)
    grid = np.meshgrid(seen_at(name, link), means, [1e-10, 1.0, 1e4, 1e8], indexing="ij")
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

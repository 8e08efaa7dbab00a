"""Sparse priors of real numbers: densities, tails, and draws of precisions, against quadrature and each other."""

import itertools

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import exp1

from cavity.factors.errors import DataError, ModelError
from cavity.models.sparse.slabs import GaussianSlab, HorseshoeSlab, LaplaceSlab, SpikeAndSlab, StudentTSlab, sample_slab

SLABS = [GaussianSlab(2.0), StudentTSlab(3.0, 0.7), StudentTSlab(0.6), LaplaceSlab(1.4), HorseshoeSlab(0.6)]
WITH_SPIKES = [*SLABS, SpikeAndSlab(0.3, LaplaceSlab(2.0))]


def mixture(slab):
    """The prior of the precision, as a density of its logarithm."""
    if isinstance(slab, StudentTSlab):
        return stats.loggamma(0.5 * slab.dof, loc=-np.log(0.5 * slab.dof * slab.scale**2)).pdf
    if isinstance(slab, LaplaceSlab):  # the variance is exponential
        return lambda t: stats.expon(scale=2.0 * slab.scale**2).pdf(np.exp(-t)) * np.exp(-t)
    return lambda t: stats.halfcauchy(scale=slab.scale).pdf(np.exp(-0.5 * t)) * 0.5 * np.exp(-0.5 * t)


@pytest.mark.parametrize("slab", SLABS[1:], ids=str)
def test_densities_are_mixtures_of_gaussians(slab):
    of_log_precision = mixture(slab)
    for x in (1e-3, 0.2, 1.0, -4.0, 30.0):
        found = quad(
            lambda t, x=x: stats.norm.pdf(x, scale=np.exp(-0.5 * t)) * of_log_precision(t),
            -60.0, 40.0, points=(-5.0, 0.0, 5.0), limit=1000, epsabs=0.0, epsrel=1e-10,
        )[0]  # fmt: skip
        assert np.isclose(slab.log_density(x), np.log(found), rtol=0, atol=1e-8)


@pytest.mark.parametrize("slab", SLABS, ids=str)
def test_densities_integrate_to_one(slab):
    total = quad(lambda t: 2.0 * np.exp(slab.log_density(np.exp(t)) + t), -60.0, 60.0, limit=1000, points=(-3, 0, 3))[0]
    assert abs(total - 1.0) < 1e-8


def test_densities_of_names():
    x = np.array([-7.0, -0.3, 0.0, 1e-9, 2.0, 1e8])
    assert np.allclose(StudentTSlab(1.0, 2.0).log_density(x), stats.cauchy(scale=2.0).logpdf(x), rtol=1e-13)
    assert np.allclose(StudentTSlab(0.05, 0.5).log_density(x), stats.t(0.05, scale=0.5).logpdf(x), rtol=1e-12)
    assert np.allclose(LaplaceSlab(0.4).log_density(x), np.log(1.25) - np.abs(x) / 0.4, rtol=1e-13)
    assert np.allclose(GaussianSlab(4.0).log_density(x), stats.norm(scale=0.5).logpdf(x), rtol=1e-13)
    assert np.allclose(LaplaceSlab(0.4).log_density(x[:5]), stats.laplace(scale=0.4).logpdf(x[:5]), rtol=1e-13)


def test_tails():
    far = np.array([1e6, 1e9, 1e60, 1e190])
    for slab, slope in ((StudentTSlab(1.0, 3.0), -2.0), (StudentTSlab(0.05), -1.05), (HorseshoeSlab(0.2), -2.0)):
        assert np.allclose(np.diff(slab.log_density(far)) / np.diff(np.log(far)), slope, rtol=1e-9)
    slope = np.diff(LaplaceSlab(0.5).log_density(far[:3])) / np.diff(far[:3])
    assert np.allclose(slope, -2.0, rtol=1e-9)
    assert np.isclose(GaussianSlab(3.0).log_density(1e6), -1.5e12, rtol=1e-9)


def test_horseshoe_density_from_zero_to_infinity():
    slab = HorseshoeSlab(2.0)
    assert slab.log_density(0.0) == np.inf
    constant = -np.log(2.0) - 0.5 * np.log(2.0 * np.pi**3)
    for x in (1e-200, 1e-30):  # a logarithm: exp(u) E1(u) = -log u - euler_gamma
        wanted = -(2.0 * np.log(x / 2.0) - np.log(2.0)) - np.euler_gamma
        assert np.isclose(slab.log_density(x) - constant, np.log(wanted), rtol=1e-13)
    x = np.sqrt(8.0 * np.array([1e-9, 0.1, 5.0, 49.9, 50.1, 300.0]))
    wanted = [np.log(exp1(u)) + u for u in x**2 / 8.0]
    assert np.allclose(slab.log_density(x) - constant, wanted, rtol=0, atol=1e-12)
    y = np.geomspace(1e-3, 1e3, 25) * 2.0  # the bounds of Carvalho, Polson and Scott
    density = np.exp(slab.log_density(y)) * 2.0 * np.sqrt(2.0 * np.pi**3)
    assert (density > 0.5 * np.log1p(4.0 * (2.0 / y) ** 2)).all()
    assert (density < np.log1p(2.0 * (2.0 / y) ** 2)).all()


def test_spike_and_slab():
    slab = SpikeAndSlab(0.3, StudentTSlab(2.0))
    assert np.isclose(slab.log_density(0.0), np.log(0.7))
    assert np.isclose(slab.log_density(1.5), np.log(0.3) + StudentTSlab(2.0).log_density(1.5))
    values = sample_slab(slab, jax.random.key(0), 5000)
    assert abs((values != 0.0).mean() - 0.3) < 4.0 * np.sqrt(0.21 / 5000)
    assert stats.kstest(values[values != 0.0], stats.t(2.0).cdf).pvalue > 1e-4
    assert (slab.precision_given([0.0, -0.0], jax.random.key(1)) == np.inf).all()
    for share in (0.0, 1.0):
        assert ((sample_slab(SpikeAndSlab(share), jax.random.key(2), 50) != 0.0) == share).all()
    assert SpikeAndSlab(1.0).log_density(0.0) == SpikeAndSlab(0.0).log_density(1.0) == -np.inf


@pytest.mark.parametrize("slab", SLABS, ids=str)
def test_values_have_the_density(slab):
    values = np.abs(sample_slab(slab, jax.random.key(3), 4000))
    edges = (0.0, 0.1, 0.3, 0.6, 1.0)
    wanted = [2.0 * quad(lambda x: np.exp(slab.log_density(x)), *pair)[0] for pair in itertools.pairwise(edges)]
    observed = np.histogram(values, [*edges, np.inf])[0]
    assert stats.chisquare(observed, 4000 * np.append(wanted, 1.0 - sum(wanted))).pvalue > 1e-4


@pytest.mark.parametrize("slab", WITH_SPIKES, ids=str)
def test_precisions_given_values_keep_the_joint_law(slab):
    of_precision, of_value, of_new, of_other = jax.random.split(jax.random.key(4), 4)
    precision = slab.sample_precision(of_precision, (6000,))
    value = np.asarray(jax.random.normal(of_value, (6000,)), dtype=np.float64) / np.sqrt(precision)
    new, other = slab.precision_given(value, of_new), slab.sample_precision(of_other, 6000)
    some = np.isfinite(new)
    assert (some == np.isfinite(precision)).all()
    assert stats.ks_2samp(np.sort(new[some]), np.sort(other[np.isfinite(other)])).pvalue > 1e-4
    assert stats.kstest(new[some] * value[some] ** 2, "chi2", (1,)).pvalue > 1e-4


@pytest.mark.parametrize("x", [1e-40, 3e-3, 0.4, -1.3, 25.0])
def test_precisions_given_a_value_have_their_stated_law(x):
    given, key = np.full(20_000, x), jax.random.key(5)
    student, laplace, horseshoe = StudentTSlab(3.0, 0.7), LaplaceSlab(1.4), HorseshoeSlab(0.6)
    law = stats.gamma(2.0, scale=2.0 / (3.0 * 0.49 + x * x))
    assert stats.kstest(student.precision_given(given, key), law.cdf).pvalue > 1e-4
    found = laplace.precision_given(given, key)
    if abs(x) < 1e-6:  # the inverse of a chi-square variable
        assert stats.kstest(1.4**-2 / found, "chi2", (1,)).pvalue > 1e-4
    else:
        mean, shape = 1.0 / (1.4 * abs(x)), 1.4**-2
        assert stats.kstest(found, stats.invgauss(mean / shape, scale=shape).cdf).pvalue > 1e-4
    b = x * x / (2.0 * 0.36)
    found = horseshoe.precision_given(given, key) * 0.36  # of density exp(-b precision) / (1 + precision)
    if b < 600.0:
        assert stats.kstest(1.0 - exp1(b * (1.0 + found)) / exp1(b), "uniform").pvalue > 1e-4
    else:
        assert stats.kstest(found * b, "expon").pvalue > 1e-4


def test_extreme_values_have_finite_positive_precisions():
    values, key = [1e-300, -1e-160, 1e-20, 1e20, -1e155, 1e300], jax.random.key(6)
    for slab in WITH_SPIKES:
        found = slab.precision_given(values, key)
        assert (found > 0.0).all()
        assert np.isfinite(found).all()
        assert not np.isnan(slab.log_density(values)).any()
        assert (found == slab.precision_given(values, key)).all()
    assert np.isfinite(LaplaceSlab().precision_given(np.zeros(100), key)).all()
    assert np.isfinite(HorseshoeSlab().precision_given(np.zeros(100), key)).all()
    assert (StudentTSlab(0.01).sample_precision(key, 10_000) > 0.0).all()


def test_bad_requests_are_refused():
    for value in (0.0, -1.0, np.nan, "wide"):
        for make in (GaussianSlab, StudentTSlab, LaplaceSlab, HorseshoeSlab, lambda v: StudentTSlab(1.0, v)):
            with pytest.raises(ModelError, match="is a finite number > 0"):
                make(value)
    for value in (-0.1, 1.1, np.nan, "half"):
        with pytest.raises(ModelError, match="probability of the slab"):
            SpikeAndSlab(value)
    with pytest.raises(ModelError, match="prior with a density"):
        SpikeAndSlab(0.5, SpikeAndSlab(0.5))
    for value in ([1.0, np.nan], [np.inf], "text"):
        with pytest.raises(DataError, match="real numbers"):
            LaplaceSlab().log_density(value)
        with pytest.raises(DataError, match="real numbers"):
            HorseshoeSlab().precision_given(value, jax.random.key(0))

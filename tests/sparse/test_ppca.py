"""The evidence of principal components against integrals and scikit-learn."""

import numpy as np
import pytest
import scipy.spatial.transform
import scipy.stats
from scipy.special import gammainc, gammaincinv, gammaln, logsumexp
from sklearn.decomposition import PCA
from sklearn.decomposition._pca import _assess_dimension

from cavity.factors.errors import DataError
from cavity.models.sparse.ppca import ppca_evidence


def with_spectrum(spectrum, samples, seed=0):
    """(D, N) values whose covariance, divided by N - 1, has exactly these eigenvalues."""
    rng = np.random.default_rng(seed)
    rank = np.count_nonzero(spectrum)
    noise = rng.normal(size=(samples, rank))
    across = np.linalg.qr(noise - noise.mean(axis=0))[0].T
    turn = np.linalg.qr(rng.normal(size=(len(spectrum), rank)))[0]
    return turn @ (np.sqrt((samples - 1) * np.asarray(spectrum[:rank]))[:, None] * across) + 3.0


def planted(rows, samples, factors, seed, noise=0.3):
    rng = np.random.default_rng(seed)
    loading = np.linalg.qr(rng.normal(size=(rows, factors)))[0] * np.linspace(3.0, 1.5, factors)
    return loading @ rng.normal(size=(factors, samples)) + noise * rng.normal(size=(rows, samples))


@pytest.mark.parametrize(("rows", "samples"), [(6, 40), (12, 9), (20, 21), (2, 7)])
def test_the_evidence_is_scikit_learns_with_the_terms_that_it_leaves_out(rows, samples):
    """One less than the number of samples takes the part of that number there, since the mean was integrated out."""
    n = samples - 1
    spectrum = np.where(np.arange(rows) < n, 1.6 ** -np.arange(rows, dtype=float), 0.0)
    found = ppca_evidence(with_spectrum(spectrum, samples)).log_evidence
    assert len(found) == min(rows, n)
    constant = -0.5 * n * rows * np.log(2.0 * np.pi * np.e) - 0.5 * rows * np.log(samples)
    for k in range(1, len(found)):
        modes, widths = k * np.log(2.0), 0.5 * k * np.log(2.0) + 0.5 * np.log(4.0 * np.pi / (n * (rows - k)))
        assert found[k] == pytest.approx(_assess_dimension(spectrum, k, n) + constant + modes + widths, abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_the_number_of_factors_is_scikit_learns_and_the_truth(seed):
    values = planted(10, 80, 1 + seed % 4, seed)
    assert ppca_evidence(values).best == PCA("mle").fit(values.T).n_components_ == 1 + seed % 4


def test_the_number_of_factors_is_found_with_fewer_samples_than_rows_and_without_factors():
    assert ppca_evidence(planted(60, 30, 3, 5)).best == 3
    noise = ppca_evidence(np.random.default_rng(0).normal(size=(5, 200)))
    assert noise.best == 0
    assert noise.probability.sum() == pytest.approx(1.0)
    assert noise.probability[0] == pytest.approx(np.exp(noise.log_evidence[0] - logsumexp(noise.log_evidence)))


def integrand(spectrum, samples, frames):
    """Log likelihood of each frame (frames, D, k), its variances integrated out in their order, and the mean.

    Given the frame each variance has an inverse gamma density; that all of `L_i` are above v is an expectation over v,
    by quadrature, and their order among themselves one of k! equal parts.
    """
    n, rows, k = samples - 1, frames.shape[1], frames.shape[2]
    power = n * np.einsum("fdk,d->fk", frames**2, np.asarray(spectrum))
    rest = n * np.sum(spectrum) - power.sum(axis=1)
    shape = 0.5 * n * (rows - k)
    log = (gammaln(0.5 * n) - 0.5 * n * np.log(0.5 * power)).sum(axis=1) + gammaln(shape) - shape * np.log(0.5 * rest)
    nodes, weights = np.polynomial.legendre.leggauss(24)
    draws = gammaincinv(shape, 0.5 * (nodes + 1.0))
    above = np.prod(gammainc(0.5 * n, power[:, :, None] * draws / rest[:, None, None]), axis=1) @ (0.5 * weights)
    with np.errstate(divide="ignore"):
        log += np.log(above) - gammaln(k + 1.0)
    return log - 0.5 * n * rows * np.log(2.0 * np.pi) - 0.5 * rows * np.log(samples)


def on_the_sphere(spectrum, samples):
    """The evidence of one factor in three rows, by quadrature over its direction."""
    height, weights = np.polynomial.legendre.leggauss(160)
    angle = 2.0 * np.pi * np.arange(160) / 160
    height, angle = (one.ravel() for one in np.meshgrid(height, angle))
    flat = np.sqrt(1.0 - height**2)
    frames = np.stack([flat * np.cos(angle), flat * np.sin(angle), height], axis=1)[:, :, None]
    return logsumexp(integrand(spectrum, samples, frames), b=np.tile(weights, 160) / (2.0 * 160))


def test_one_factor_against_an_integral_over_directions():
    """The error falls as one over the number of samples, as Laplace's does."""
    spectrum = [6.0, 2.0, 0.5]
    gaps = [
        ppca_evidence(with_spectrum(spectrum, samples)).log_evidence[1] - on_the_sphere(spectrum, samples)
        for samples in (26, 101, 401)
    ]
    assert abs(gaps[0]) < 0.2
    assert abs(gaps[1]) < 0.4 * abs(gaps[0])
    assert abs(gaps[2]) < 0.4 * abs(gaps[1])
    assert abs(gaps[2]) < 0.01


def over_rotations(spectrum, samples, draws=20_000):
    """The evidence of two factors in three rows, and its relative error: rotations drawn near one of 2^2 2! modes."""
    first, second, third = spectrum
    axes = np.array([(second, third), (first, third), (first, second)]).T
    width = 1.2 / np.sqrt((samples - 1) * (axes[0] - axes[1]) ** 2 / (axes[0] * axes[1]))
    turns = width * np.random.default_rng(0).normal(size=(draws, 3))
    angle = np.linalg.norm(turns, axis=1)
    uniform = np.log(8.0 * 2.0 * (1.0 - np.cos(angle)) / angle**2 / (8.0 * np.pi**2))
    frames = scipy.spatial.transform.Rotation.from_rotvec(turns).as_matrix()[:, :, :2]
    log = integrand(spectrum, samples, frames) + uniform - scipy.stats.norm.logpdf(turns, 0.0, width).sum(axis=1)
    weight = np.exp(log - log.max())
    return logsumexp(log) - np.log(draws), weight.std() / weight.mean() / np.sqrt(draws)


def test_two_factors_against_an_integral_over_rotations():
    spectrum, gaps = [9.0, 2.0, 0.4], []
    for samples in (41, 161):
        exact, error = over_rotations(spectrum, samples)
        assert error < 0.01
        gaps.append(ppca_evidence(with_spectrum(spectrum, samples)).log_evidence[2] - exact)
    assert abs(gaps[0]) < 0.2
    assert abs(gaps[1]) < 0.4 * abs(gaps[0])


@pytest.mark.parametrize("samples", [5, 50])
def test_no_factor_has_an_exact_evidence_but_for_stirling(samples):
    spectrum = [2.0, 1.0, 0.7, 0.2]
    n, x = samples - 1, 0.5 * (samples - 1) * 4
    exact = gammaln(x) - x * np.log(np.pi * n * sum(spectrum)) - 2.0 * np.log(samples)
    found = ppca_evidence(with_spectrum(spectrum, samples)).log_evidence[0]
    assert exact - found == pytest.approx(1.0 / (12.0 * x), rel=0.01)


def test_equal_eigenvalues_have_a_finite_evidence():
    """scikit-learn's is infinite: nothing curves where two directions are alike."""
    values = with_spectrum([4.0, 4.0, 1.0, 1.0], 30)
    found = ppca_evidence(values)
    assert found.best == 2
    near = ppca_evidence(with_spectrum([4.0 + 1e-9, 4.0, 1.0, 1.0], 30))
    assert np.allclose(found.log_evidence, near.log_evidence, atol=1e-4)


def test_the_evidence_does_not_depend_on_turns_and_shifts():
    values = planted(5, 20, 2, 3)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0]
    assert np.allclose(ppca_evidence(values).log_evidence, ppca_evidence(turn @ values + 7.0).log_evidence)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ppca_evidence([[1.0, np.inf, 0.0], [2.0, 3.0, 1.0]]), "1 of 6 values are missing or infinite"),
        (lambda: ppca_evidence(np.ones(4)), "two of each"),
        (lambda: ppca_evidence(np.ones((4, 1))), "two of each"),
        (lambda: ppca_evidence(np.ones((4, 3))), "All 3 samples are equal"),
    ],
)
def test_what_does_not_fit_is_said(call, said):
    with pytest.raises(DataError, match=said):
        call()

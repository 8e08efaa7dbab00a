"""Posteriors of sparse factor models so small that they are known by integration, against chains of both samplers."""

import itertools

import numpy as np
import pytest
from geweke_of_factors import Case
from posteriors_of_factors import TWO_ROWS, log_normal, near, posterior, squares, weighted
from scipy.integrate import quad
from scipy.stats import chi, poisson
from serial_sweep import serial

from cavity.models.buffet.prior import BetaBernoulli
from cavity.models.sparse.kernels import collapsed, parallel
from cavity.models.sparse.state import Switches

SWEEPS = {"parallel": parallel, "serial": serial, "collapsed": collapsed}
PLAIN = Switches(precision="fixed", noise="fixed", learn=(), rows=2, most=4)


# two rows, two factors: all sixteen patterns of zeros -----------------------------------------------------------------

GRID = np.linspace(-6.3, 6.3, 43)  # the trapezoid rule is exact to 1e-8 for functions as smooth as these
PATTERNS = tuple(itertools.product((0, 1), repeat=4))


def exact_patterns(mass, noise):
    """Probabilities of PATTERNS (factor by factor), and the mean of `squares`, by integration over the loadings."""
    slab = np.exp(-0.5 * GRID**2) / np.sqrt(2.0 * np.pi) * (GRID[1] - GRID[0])
    weights, means = [], []
    for pattern in PATTERNS:
        points = [GRID if on else np.zeros(1) for on in pattern]
        g = np.meshgrid(*points, indexing="ij", sparse=True)  # of factor 1 in rows 1 and 2, of factor 2 in them
        likelihood = log_normal(
            (g[0] ** 2 + g[2] ** 2, g[1] ** 2 + g[3] ** 2), g[0] * g[1] + g[2] * g[3], noise, TWO_ROWS
        )
        prior = BetaBernoulli(mass, 2).log_matrix_probability(np.array(pattern).reshape(2, 2).T)
        weight = np.exp(likelihood + prior)
        for axis, on in enumerate(pattern):
            weight = weight * (slab if on else np.ones(1)).reshape([-1 if axis == each else 1 for each in range(4)])
        weights.append(weight.sum())
        means.append((weight * np.minimum(sum(each**2 for each in g), 20.0)).sum())
    return np.array(weights) / sum(weights), sum(means) / sum(weights)


@pytest.mark.parametrize("sweep", SWEEPS)
def test_finite_model_against_enumeration(sweep):
    case = Case(PLAIN._replace(sparsity="finite"), samples=3, factors=2, mass=1.5, noise=2.0, places=2)
    probability, mean = exact_patterns(case.mass, case.noise)
    assert probability.max() < 0.5  # no pattern is certain, so that there is something to get wrong

    def is_pattern(pattern):
        return lambda loading: ((loading != 0.0) == np.array(pattern, bool).reshape(2, 2)).all((1, 2))

    functions = {pattern: is_pattern(pattern) for pattern in PATTERNS}
    found = posterior(case, SWEEPS[sweep], TWO_ROWS, functions | {"squares": squares})
    for pattern, exact in zip(PATTERNS, probability, strict=True):
        assert near(found[pattern], exact), (pattern, found[pattern], exact)
    assert near(found["squares"], mean)


# one row: how many factors --------------------------------------------------------------------------------------------

ONE_ROW = 2.0 * np.random.default_rng(0).standard_normal((1, 20))


def exact_number(mass, most):
    """P(kappa | y), kappa = 0 ... most: y_n ~ N(0, 1 + s) with s the sum of kappa squared standard normal loadings."""
    energy, samples = (ONE_ROW**2).sum(), ONE_ROW.shape[1]

    def likelihood(s):
        return np.exp(-0.5 * (samples * np.log1p(s) + energy / (1.0 + s) - samples * np.log(4.0) - energy / 4.0))

    def evidence(kappa):
        return quad(lambda r: chi.pdf(r, kappa) * likelihood(r * r), 0.0, 12.0, epsabs=1e-12)[0]

    weight = np.array([likelihood(0.0), *(evidence(kappa) for kappa in range(1, most + 1))])
    weight *= poisson.pmf(np.arange(most + 1), mass)
    return weight / weight.sum()


@pytest.mark.parametrize("sweep", ["parallel", "serial", pytest.param("collapsed", marks=pytest.mark.slow)])
def test_number_of_factors_of_one_row(sweep):
    # Rows that have more than `most` factors of their own stay as they are, and one row alone then never gets there.
    case = Case(PLAIN, rows=1, samples=20, mass=0.1, places=8, numbers={"multiplier": 10.0})
    exact = exact_number(case.mass, case.switches.most)
    assert exact[1] > 0.8  # a sampler that takes a row's own factors away before it proposes finds P(0) = .9
    functions = {
        kappa: lambda loading, kappa=kappa: (loading != 0.0).sum((1, 2)) == kappa for kappa in range(len(exact))
    }
    found = posterior(case, SWEEPS[sweep], ONE_ROW, functions)
    for kappa, probability in enumerate(exact):
        assert near(found[kappa], probability, 1e-4), (kappa, found[kappa], probability)


# two rows: how many factors, and which of them are shared -------------------------------------------------------------


@pytest.mark.parametrize(
    "sweep", ["parallel", *(pytest.param(each, marks=pytest.mark.slow) for each in ("serial", "collapsed"))]
)
def test_buffet_of_two_rows_against_weighted_draws(sweep):
    case = Case(PLAIN, samples=3, mass=1.0, concentration=1.7, noise=2.0)

    def number(rows, count):
        return lambda loading: ((loading != 0.0).sum(2) == rows).sum(1) == count

    functions = {f"{count} factors of {rows}": number(rows, count) for rows in (1, 2) for count in range(3)}
    functions |= {"count": lambda loading: (loading != 0.0).any(2).sum(1), "squares": squares}
    found = posterior(case, SWEEPS[sweep], TWO_ROWS, functions)
    for name, (exact, error) in weighted(case, functions).items():
        assert near(found[name], exact, error), (name, found[name], exact, error)

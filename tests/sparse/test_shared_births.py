"""Births and deaths of factors that several rows share: the density that decides, the law that stays, and what they
find from no factor at all."""

import jax
import numpy as np
import pytest
from geweke_of_factors import FULL, KEY, KNOWN, PLAIN, Case, compare, far
from posteriors_of_factors import TWO_ROWS, near, posterior, squares, weighted
from scipy import integrate, stats
from scipy.special import betaln

from cavity.engine.support.machine_code import Kernel
from cavity.models.sparse import family, sample_posterior
from cavity.models.sparse.data import numbers_of, switches_of
from cavity.models.sparse.kernels import collapsed, parallel, shared_births
from cavity.models.sparse.settings import Priors
from cavity.models.sparse.state import State

OWN = PLAIN._replace(precision="factor", noise="row", learn=("mass",), shared=4)
CASES = {
    "own precisions": (parallel, Case(OWN, rows=4, samples=3, places=32)),
    "fixed": (parallel, Case(PLAIN._replace(shared=4), rows=3, samples=3, concentration=2.5, places=32)),
    "all": (parallel, Case(FULL._replace(shared=2), rows=3, places=32, missing=((0, 2), (1, 0)))),
    "known, shared": (
        parallel,
        Case(PLAIN._replace(precision="shared", noise="shared", known=2, shared=3), rows=3, places=32, known=KNOWN),
    ),
    "collapsed": (collapsed, Case(OWN, rows=3, samples=4, places=32)),
}
ROWS, SAMPLES = 5, 12
SETTINGS = family("nsfa", shared=1, mass=1.7, concentration=1.3, priors=Priors(noise=(2.0, 0.7), precision=(3.0, 2.0)))


def left_over():
    """(ROWS, SAMPLES) of one factor that four rows share, and noise."""
    random = np.random.default_rng(4)
    loading = np.array([1.0, -0.8, 0.9, 0.7, 0.0])
    return np.outer(loading, random.normal(size=SAMPLES)) + 0.6 * random.normal(size=(ROWS, SAMPLES))


def state_of(mass, concentration):
    """A state of no factor, whose rates are those of the priors."""
    priors, none = SETTINGS.priors, np.zeros(0)
    return State(
        np.zeros((1, ROWS)), np.zeros((1, SAMPLES)), np.array(0), np.ones(1), np.zeros((0, 0)), none, np.ones(ROWS),
        np.array(mass), np.array(concentration), np.array(priors.precision[1]), np.array(priors.noise[1]), none,
    )  # fmt: skip


@pytest.fixture(scope="module")
def weighed():
    """`worth` of a factor of given scores and loadings, with what was proposed from row 0."""
    numbers, switches = numbers_of(SETTINGS, ROWS), switches_of(SETTINGS, ROWS)

    def both(rest, scores, loading):
        state = state_of(SETTINGS.mass, SETTINGS.concentration)
        aimed = shared_births.aim(rest, 0)
        guessed = shared_births.guess(rest, scores, aimed.odds, 0, state, numbers, switches)
        return shared_births.worth(scores, loading, aimed, guessed, state, numbers, switches), aimed, guessed

    return Kernel(both)


@pytest.mark.parametrize(
    "loading", [[0.9, -0.7, 0.0, 0.6, 0.0], [1.1, -0.8, 0.9, 0.7, -0.1], [0.4, 0.0, 0.0, 0.0, 0.0]]
)
def test_what_decides_is_the_density_of_one_factor_more_over_that_of_proposing_it(weighed, loading):
    rest, loading = left_over(), np.array(loading)
    scores = np.random.default_rng(5).normal(size=SAMPLES)
    found, aimed, guessed = weighed(rest, scores, loading)
    on, (shape, rate) = loading != 0.0, SETTINGS.priors.noise

    def evidence(row, g):
        """Of a row's data, its noise precision integrated out."""
        energy = ((rest[row] - g * scores) ** 2).sum()
        return np.log(integrate.quad(
            lambda p: stats.gamma.pdf(p, shape, scale=1.0 / rate) * p ** (SAMPLES / 2) * np.exp(-0.5 * p * energy),
            0.0, 60.0, epsabs=0.0, epsrel=1e-11,
        )[0])  # fmt: skip

    slab = np.log(integrate.quad(
        lambda p: stats.gamma.pdf(p, 3.0, scale=0.5) * stats.norm.pdf(loading[on], 0.0, p**-0.5).prod(), 0.0, 60.0
    )[0])  # fmt: skip
    mass, c = SETTINGS.mass, SETTINGS.concentration
    target = np.log(mass * c) + betaln(on.sum(), ROWS - on.sum() + c) + slab + stats.norm.logpdf(scores).sum()
    target += sum(evidence(row, loading[row]) - evidence(row, 0.0) for row in np.flatnonzero(on))
    proposed = -np.log(2.0 * ROWS) + stats.norm(aimed.mean, np.sqrt(aimed.variance)).logpdf(scores).sum()
    proposed += guessed.log_in[on].sum() + guessed.log_out[~on].sum()
    proposed += stats.norm(guessed.mean, guessed.precision**-0.5).logpdf(loading)[on].sum()
    assert found == pytest.approx(target - proposed - np.log(on.sum()), abs=1e-7)
    np.testing.assert_allclose(np.exp(guessed.log_in) + np.exp(guessed.log_out), 1.0)
    assert guessed.log_in[0] == 0.0  # the row that proposes takes part


def test_the_law_stays_in_short():
    sweep, case = CASES["own precisions"]
    assert not far(compare(case, sweep, KEY, 200, 10))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_law_stays(name):
    sweep, case = CASES[name]
    assert not far(compare(case, sweep, KEY, 1000, 100))


@pytest.mark.slow
def test_a_wrong_density_is_found_out(monkeypatch):
    right = shared_births.worth
    monkeypatch.setattr(shared_births, "worth", lambda *each: right(*each) + 0.7)
    sweep, case = CASES["own precisions"]
    assert compare(case, lambda *each: sweep(*each), KEY, 300, 30).scores()["count"] > 5.0


@pytest.mark.slow
def test_two_rows_against_weighted_draws():
    case = Case(PLAIN._replace(shared=4), samples=3, mass=1.0, concentration=1.7, noise=2.0)

    def number(rows, count):
        return lambda loading: ((loading != 0.0).sum(2) == rows).sum(1) == count

    functions = {f"{count} factors of {rows}": number(rows, count) for rows in (1, 2) for count in range(3)}
    functions |= {"count": lambda loading: (loading != 0.0).any(2).sum(1), "squares": squares}
    found = posterior(case, parallel, TWO_ROWS, functions)
    for name, (exact, error) in weighted(case, functions).items():
        assert near(found[name], exact, error), (name, found[name], exact, error)


@pytest.mark.slow
def test_planted_factors_are_found_from_none_in_few_sweeps():
    random = np.random.default_rng(0)
    loading = random.normal(size=(60, 6)) * (random.random((60, 6)) < 0.3)
    values = loading @ random.normal(size=(6, 100)) + 0.5 * random.normal(size=(60, 100))
    with_moves, without = (
        sample_posterior(values, jax.random.key(0), 20, family("nsfa", start="empty", shared=each), chains=2, warmup=20)
        for each in (20, 0)
    )
    assert np.abs(with_moves["number_of_factors"].mean(1) - 6).max() < 1.0
    assert without["number_of_factors"].mean(1).max() < 5.0  # there is something to find

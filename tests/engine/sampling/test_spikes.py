"""Variables that may be exactly zero: against all their supports, quadrature and the law of the prior."""

import itertools

import arviz
import jax
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp, roots_hermitenorm, softmax

import cavity as cv
from cavity.engine.sampling.conditionals import spikes
from cavity.models.nsfa import nsfa

from .test_prior_law import FAR, distance

Y = np.array([[2.1, -1.7, 0.4, np.nan]])
SEEN = Y[~np.isnan(Y)]


def near(draws, mean, errors=4.5):
    size = float(np.asarray(arviz.ess(draws.astype(float))))
    assert draws.mean() == pytest.approx(mean, abs=errors * draws.std() / np.sqrt(size))


def test_a_regression_of_few_columns_is_that_of_all_supports():
    random = np.random.default_rng(0)
    x = random.normal(size=(5, 3))
    x[:, 1] = x[:, 0] + 0.3 * x[:, 1]
    y = x @ np.array([1.0, 0.0, -0.5]) + 0.7 * random.normal(size=5)
    m = cv.Model()
    n, k = m.plate("n"), m.plate("k", 3)
    design = m.input("x", cv.vector(3), plates=n)
    w = m.random("w", cv.spike_and_slab(0.3, sd=2.0), plates=k)
    m.random("y", cv.gaussian(cv.dot(cv.stack(w, over=k), design), sd=0.7))
    supports = np.array(list(itertools.product([0, 1], repeat=3)))
    scores = []
    for s in supports:
        covariance = 0.49 * np.eye(5) + 4.0 * (x * s) @ x.T
        scores.append(stats.multivariate_normal(np.zeros(5), covariance).logpdf(y) + s.sum() * np.log(0.3 / 0.7))
    samples = cv.sample(m, {"x": x, "y": y}, draws=3000, progress=False)
    for column, probability in enumerate(softmax(scores) @ supports):
        near(samples["w"][..., column] != 0.0, probability)


def factor_analysis(outcome):
    """The definition of NSFA with one factor and unknown slab, activity and noise, and another outcome."""
    m = cv.Model()
    row, sample, factor = m.plate("row"), m.plate("sample"), m.plate("factor", 1)
    precision = m.random("precision", cv.gamma(1.0, 1.0), plates=factor)
    activity = m.random("activity", cv.beta(1.0, 1.0), plates=factor)
    loading = m.random("loading", cv.spike_and_slab(activity, precision=precision), plates=(row, factor))
    score = m.random("score", cv.vector_gaussian(np.zeros(1), covariance=np.eye(1)), plates=sample)
    noise = m.random("noise", cv.gamma(1.0, 1.0), plates=row)
    m.random("y", outcome(m, row, cv.dot(cv.stack(loading, over=factor), score), noise), plates=(row, sample))
    return m


def by_quadrature(log_likelihood):
    """P(the loading is not zero) and the mean of the noise precision; a slab of unknown precision is Student-t.

    `log_likelihood(loading, noise)` of the data, the scores integrated out, on a grid.
    """
    loading, noise = np.linspace(-40.0, 40.0, 1601), np.linspace(0.005, 14.0, 400)
    slab = np.log(0.5) + stats.t(2).logpdf(loading) + np.log(loading[1] - loading[0])
    prior = stats.gamma(1).logpdf(noise)
    active = (slab[:, None] + prior + log_likelihood(loading[:, None], noise)).ravel()
    none = np.log(0.5) + prior + log_likelihood(np.zeros((1, 1)), noise)[0]
    both = softmax(np.concatenate([active, none]))
    return np.exp(logsumexp(active) - logsumexp([*active, *none])), both @ np.concatenate([np.tile(noise, 1601), noise])


def test_nsfa_itself_on_one_row_is_that_of_quadrature():
    def log_likelihood(loading, noise):
        sd = np.sqrt(loading**2 + 1.0 / noise)
        return stats.norm(0.0, sd[..., None]).logpdf(SEEN).sum(-1)

    active, mean = by_quadrature(log_likelihood)
    samples = cv.sample(nsfa(1), {"y": Y}, draws=5000, seed=1, progress=False)
    near(samples["loading"][..., 0, 0] != 0.0, active)
    near(samples["noise"][..., 0], mean)
    assert set(samples) >= {"precision", "activity", "score", "mean"}


def test_nsfa_with_student_noise_is_that_of_quadrature():
    m = factor_analysis(lambda m, row, mean, noise: cv.student_t(4.0, mean, noise))  # noise is a scale here
    nodes, weights = roots_hermitenorm(60)
    weights = np.log(weights / weights.sum())

    def log_likelihood(loading, noise):
        total = 0.0
        for y in SEEN:
            at = (y - loading[..., None] * nodes) / noise[:, None]
            total = total + logsumexp(stats.t(4).logpdf(at) - np.log(noise[:, None]) + weights, axis=-1)
        return total

    active, mean = by_quadrature(
        lambda loading, noise: np.concatenate(
            [log_likelihood(c, noise) for c in np.array_split(loading, max(1, len(loading) // 50))]
        )
    )
    samples = cv.sample(m, {"y": Y}, draws=5000, progress=False)
    near(samples["loading"][..., 0, 0] != 0.0, active)
    near(samples["noise"][..., 0], mean)


def test_nsfa_with_a_covariate_of_rows_is_that_of_quadrature():
    """Its effect integrated out, the outcomes are Gaussian with a common part."""
    x = np.array([0.5, -1.0, 2.0, 1.0])

    def outcome(m, row, mean, noise):
        covariate = m.input("x", cv.real, plates=m.plates["sample"])
        return cv.gaussian(mean + m.random("effect", cv.gaussian(0.0, sd=1.5), plates=row) * covariate, precision=noise)

    def log_likelihood(loading, noise):
        own = loading**2 + 1.0 / noise
        common = np.array([0.5, -1.0, 2.0])
        square, cross = (common**2).sum() / own, (SEEN * common).sum() / own
        gain = 2.25 * square + 1.0
        fit = (SEEN**2).sum() / own - 2.25 * cross**2 / gain
        return -0.5 * (3 * np.log(own) + np.log(gain) + fit)

    active, mean = by_quadrature(log_likelihood)
    samples = cv.sample(factor_analysis(outcome), {"y": Y, "x": x}, draws=5000, progress=False)
    near(samples["loading"][..., 0, 0] != 0.0, active)
    near(samples["noise"][..., 0], mean)


def two_by_three():
    m = nsfa(2, mass=2.0)
    return m, {"sample": 3, "row": 2}


def prior_draws(seed=0):
    from cavity.engine.data.rules_of_arguments import bind_checked
    from cavity.engine.sampling.joint import Joint
    from cavity.engine.sampling.sample import chains_of

    m, sizes = two_by_three()
    with jax.enable_x64(True):
        joint = Joint(m, bind_checked(m, {}, sizes), everything=True)
        return chains_of(joint, 4000, 4, seed, 500).draws


def far_from_the_prior(draws):
    laws = {"activity": stats.beta(1.0, 1.0), "precision": stats.gamma(1.0), "noise": stats.gamma(1.0)}
    return {name: distance(draws[name][..., 0], law) for name, law in laws.items()}


@pytest.mark.slow
def test_nothing_observed_is_the_prior():
    draws = prior_draws()
    assert max(far_from_the_prior(draws).values()) < FAR
    near(draws["loading"][..., 0, 0] != 0.0, 0.5)


@pytest.mark.slow
def test_a_wrong_conditional_is_found(monkeypatch):
    right = spikes.precision_by_lane
    monkeypatch.setattr(spikes, "precision_by_lane", lambda *given: 1.5 * right(*given))
    assert max(far_from_the_prior(prior_draws()).values()) > FAR


def test_loadings_of_many_rows_are_drawn_row_by_row():
    random = np.random.default_rng(0)
    y = random.normal(size=(150, 4)) @ random.normal(size=(4, 12)) + 0.1 * random.normal(size=(150, 12))
    m = nsfa(3, sparsity="none")
    samples = cv.sample(m, {"y": y}, draws=20, warmup=20, chains=1, progress=False)
    assert "loading: for each row jointly, from its Gaussian conditional" in samples.explain()


def test_a_spike_that_a_link_reads_is_refused_by_name():
    m = cv.Model()
    w = m.random("w", cv.spike_and_slab(0.5, variance=1.0))
    m.random("y", cv.poisson(cv.exp(w)))
    with pytest.raises(cv.UnsupportedError, match="'w' may be exactly zero"):
        cv.sample(m, {"y": 1}, draws=10, progress=False)

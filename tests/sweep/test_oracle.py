"""The oracle itself: densities, draws and laws agree with each other, and grids with weighted draws."""

from __future__ import annotations

import densities
import numpy as np
import pytest
from laws import LAW
from scipy import integrate
from scipy.special import logsumexp
from small import log_terms, simulate
from truths import Solver
from verdicts import Structure

SCALARS = {
    "gaussian": ({"mean": 0.3, "precision": 2.0}, (-np.inf, np.inf)),
    "truncated_gaussian": ({"mean": 2.3, "variance": 0.7, "low": -0.5, "high": 1.5}, (-0.5, 1.5)),
    "student_t": ({"dof": 8.0, "mean": 0.2, "scale": 0.7}, (-np.inf, np.inf)),
    "laplace": ({"mean": 0.2, "scale": 0.7}, (-np.inf, np.inf)),
    "uniform": ({"low": -2.0, "high": 3.0}, (-2.0, 3.0)),
    "gamma": ({"shape": 2.0, "rate": 1.5}, (0.0, np.inf)),
    "truncated_gamma": ({"shape": 2.0, "rate": 1.5, "low": 0.3, "high": 3.0}, (0.3, 3.0)),
    "log_normal": ({"mean": 0.2, "variance": 0.3}, (0.0, np.inf)),
    "half_normal": ({"scale": 1.3}, (0.0, np.inf)),
    "weibull": ({"shape": 1.7, "scale": 1.3}, (0.0, np.inf)),
    "von_mises": ({"mean": 2.4, "concentration": 1.6}, (-np.pi, np.pi)),
    "half_cauchy": ({"scale": 1.3}, (0.0, np.inf)),
    "beta": ({"mean": 0.3, "total": 5.0}, (0.0, 1.0)),
    "cauchy": ({"location": 0.2, "scale": 0.7}, (-np.inf, np.inf)),
    "skew_normal": ({"location": 0.2, "scale": 0.7, "skew": 2.0}, (-np.inf, np.inf)),
    "exponential": ({"rate": 1.7}, (0.0, np.inf)),
    "inverse_gamma": ({"shape": 6.0, "scale": 4.0}, (0.0, np.inf)),
    "inverse_gaussian": ({"mean": 1.2, "shape": 3.0}, (0.0, np.inf)),
    "half_student_t": ({"dof": 9.0, "scale": 0.8}, (0.0, np.inf)),
    "logit_normal": ({"mean": 0.3, "variance": 0.6}, (0.0, 1.0)),
    "own_logistic": ({"mean": 0.3, "scale": 0.6}, (-np.inf, np.inf)),
    "own_waiting": ({"rate": 1.7}, (0.0, np.inf)),
}
COUNTS = {
    "poisson": {"rate": 3.2},
    "binomial": {"n": 5.0, "p": 0.3},
    "negative_binomial": {"mean": 3.0, "dispersion": 2.5},
    "bernoulli": {"p": 0.3},
    "own_agreement": {"other": 1.0},
}


def spread(args):
    return {name: np.asarray(value).reshape(1, 1, 1, 1) for name, value in args.items()}


@pytest.mark.parametrize("name", SCALARS)
def test_the_law_is_that_of_the_density(name):
    args, (low, high) = SCALARS[name]
    law = LAW[name](**spread(args))

    def density(x):
        return float(np.exp(densities.LOG[name](np.full((1, 1, 1, 1), x), **spread(args))).ravel()[0])

    middle = (max(low, -1.0) + min(high, 3.0)) / 2

    def total(f, a, b):
        return sum(integrate.quad(lambda x: f(x) * density(x), *ends)[0] for ends in ((a, middle), (middle, b)))

    np.testing.assert_allclose(total(lambda x: 1.0, low, high), 1.0, rtol=1e-7)
    for q in (middle, middle + 0.4):
        wanted = integrate.quad(density, low, middle)[0] + integrate.quad(density, middle, q)[0]
        np.testing.assert_allclose(law.cdf(np.asarray(q)).ravel(), wanted, rtol=1e-6)
    if name not in ("half_cauchy", "cauchy"):
        mean = total(lambda x: x, low, high)
        np.testing.assert_allclose(law.mean.ravel(), mean, rtol=1e-6)
        np.testing.assert_allclose(law.variance.ravel(), total(lambda x: (x - mean) ** 2, low, high), rtol=1e-5)


@pytest.mark.parametrize("name", COUNTS)
def test_the_law_is_that_of_the_probabilities(name):
    args, x = (
        spread(COUNTS[name]),
        np.arange(400.0 if name in ("poisson", "negative_binomial") else 6.0 if name == "binomial" else 2.0),
    )
    p = np.exp(densities.LOG[name](x.reshape(-1, 1, 1, 1), **args)).ravel()
    law = LAW[name](**args)
    np.testing.assert_allclose(p.sum(), 1.0, rtol=1e-10)
    np.testing.assert_allclose(law.mean.ravel(), p @ x, rtol=1e-10)
    np.testing.assert_allclose(law.variance.ravel(), p @ (x - p @ x) ** 2, rtol=1e-9)


@pytest.mark.parametrize("name", [*SCALARS, *COUNTS])
def test_draws_follow_the_law(name):
    args = spread(SCALARS[name][0] if name in SCALARS else COUNTS[name])
    x = densities.DRAW[name](np.random.default_rng(0), (40_000, 1, 1, 1), **args).ravel()
    law = LAW[name](**args)
    if law.cdf is not None:
        q = np.quantile(x, [0.1, 0.5, 0.9])
        np.testing.assert_allclose(law.cdf(q.reshape(3, 1, 1, 1)).ravel(), [0.1, 0.5, 0.9], atol=0.01)
    if name not in ("half_cauchy", "cauchy"):
        np.testing.assert_allclose(x.mean(), law.mean.ravel(), atol=5 * np.sqrt(law.variance.ravel()[0] / len(x)))
        np.testing.assert_allclose(x.var(), law.variance.ravel(), rtol=0.1)


def weighted(structure, case, draws=100_000):
    """Evidence, means and sds by draws of the prior, weighted by what is observed; and how many draws count."""
    small, rng = structure.small, np.random.default_rng(3)
    with np.errstate(all="ignore"):
        env = simulate(small, case.given, rng, draws)
        unseen = {v.name: np.ones((1, 1, 1, 1), bool) for v in small.variables if not v.observed}  # drawn, not weighted
        log = np.broadcast_to(log_terms(small, {**env, **case.seen}, {**unseen, **case.missing}), draws)
    log = np.where(np.isnan(log), -np.inf, log)
    w = np.exp(log - logsumexp(log))
    found = {}
    for name, a in env.items():
        if name not in case.given and name not in case.seen:
            a = np.broadcast_to(a, (draws, *a.shape[1:])).astype(float)
            if structure.kind(name) == "category":
                a = (
                    a[..., None] == np.arange(next(s.size for s in small.statements if getattr(s, "name", "") == name))
                ).astype(float)
            mean = np.einsum("r,r...->...", w, a)
            found[name] = mean, np.sqrt(np.einsum("r,r...->...", w, (a - mean) ** 2))
    return logsumexp(log) - np.log(draws), found, 1.0 / np.sum(w**2)


@pytest.mark.slow
def test_grids_agree_with_weighted_draws():
    """Over many structures, none of which is compiled: evidence and every mean to what draws can tell."""
    compared = 0
    for seed in range(100, 190):
        try:
            structure = Structure(seed)
        except Exception:
            continue
        case = structure.case(0)
        truth = case and Solver(structure.small, case.given, case.seen, case.missing).truth()
        if not truth or truth.doubt or truth.evidence_error() > 1e-3:
            continue
        evidence, found, enough = weighted(structure, case)
        if enough < 3_000:
            continue
        np.testing.assert_allclose(
            truth.evidence, evidence, atol=6.0 / np.sqrt(enough), err_msg=f"seed {seed}\n{structure.small}"
        )
        for name, (mean, sd) in found.items():
            if truth.error(name) < 0.01:
                tolerance = 7.0 * np.max(sd) / np.sqrt(enough) + 1e-9
                np.testing.assert_allclose(
                    np.broadcast_to(truth.parts[name].mean, mean.shape),
                    mean,
                    atol=tolerance,
                    err_msg=f"seed {seed}, {name}\n{structure.small}",
                )
                compared += 1
    assert compared > 60

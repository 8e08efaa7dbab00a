"""Every factor with one argument random under the plainest prior, and as a prior itself, against a grid.

The default call with a few data: no crash, no nan; the posterior mean of the only random scalar within a part of its
sd. Densities are those of `densities.py`, apart from the engine. A fixed few run by default, the whole table is slow.
"""

from __future__ import annotations

import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from densities import DRAW, LOG
from scipy import stats

import cavity as cv

WEIBULL = cv.factor(
    "own_weibull",
    out=cv.positive,
    shape=cv.positive,
    scale=cv.positive,
    log_density=lambda out, shape, scale: (
        jnp.log(shape / scale) + (shape - 1.0) * jnp.log(out / scale) - (out / scale) ** shape
    ),
)
WEIBULL_LOG = {**LOG, "weibull": lambda out, shape, scale: stats.weibull_min.logpdf(out, shape, scale=scale)}
WEIBULL_DRAW = {**DRAW, "weibull": lambda rng, size, shape, scale: scale * rng.weibull(shape, size)}

# term -> its arguments, and the kinds of those that may be random
CUTPOINTS = np.array([-0.6, 0.8])
TERMS = {
    "gaussian": ({"mean": 0.4, "variance": 1.5}, {"mean": "real", "variance": "positive"}),
    "gaussian ": ({"mean": 0.4, "precision": 0.7}, {"precision": "positive"}),
    "gaussian  ": ({"mean": 0.4, "sd": 1.2}, {"sd": "positive"}),
    "truncated_gaussian": (
        {"mean": 0.4, "variance": 1.5, "low": -0.5, "high": 1.5},
        {"mean": "real", "variance": "positive"},
    ),
    "student_t": ({"dof": 4.0, "mean": 0.4, "scale": 1.2}, {"dof": "positive", "mean": "real", "scale": "positive"}),
    "laplace": ({"mean": 0.4, "scale": 1.2}, {"mean": "real", "scale": "positive"}),
    "uniform": ({"low": -2.0, "high": 3.0}, {"low": "real", "high": "real"}),
    "gamma": ({"shape": 2.0, "rate": 1.5}, {"shape": "positive", "rate": "positive"}),
    "truncated_gamma": ({"shape": 2.0, "rate": 1.5, "low": 0.3, "high": 3.0}, {"rate": "positive"}),
    "log_normal": ({"mean": 0.2, "variance": 0.6}, {"mean": "real", "variance": "positive"}),
    "half_cauchy": ({"scale": 1.3}, {"scale": "positive"}),
    "half_normal": ({"scale": 1.3}, {"scale": "positive"}),
    "beta": ({"a": 2.0, "b": 1.5}, {"a": "positive", "b": "positive"}),
    "beta ": ({"mean": 0.4, "total": 3.0}, {"mean": "unit", "total": "positive"}),
    "bernoulli": ({"p": 0.4}, {"p": "unit"}),
    "poisson": ({"rate": 2.5}, {"rate": "positive"}),
    "binomial": ({"n": 6.0, "p": 0.4}, {"n": "count", "p": "unit"}),
    "negative_binomial": ({"mean": 2.5, "dispersion": 2.0}, {"mean": "positive", "dispersion": "positive"}),
    "negative_binomial ": ({"successes": 2.0, "probability": 0.4}, {"successes": "positive", "probability": "unit"}),
    "ordered_probit": ({"score": 0.3, "cutpoints": CUTPOINTS}, {"score": "real"}),
    "ordered_logistic": ({"score": 0.3, "cutpoints": CUTPOINTS}, {"score": "real"}),
    "between": ({"value": 0.4, "low": -0.7, "high": 0.9}, {"value": "real", "low": "real", "high": "real"}),
    "weibull": ({"shape": 2.0, "scale": 1.5}, {"shape": "positive", "scale": "positive"}),
}
# kind -> a prior, its density and a grid
PRIORS = {
    "real": (lambda: cv.gaussian(0.3, variance=2.0), stats.norm(0.3, 2.0**0.5), np.linspace(-12.0, 12.0, 24001)),
    "positive": (lambda: cv.gamma(2.0, 1.0), stats.gamma(2.0), np.linspace(0.0005, 40.0, 80000)),
    "unit": (lambda: cv.beta(2.0, 2.0), stats.beta(2.0, 2.0), (np.arange(20000) + 0.5) / 20000),
    "count": (lambda: cv.poisson(7.0), stats.poisson(7.0), np.arange(200.0)),
}
# what a prior is observed through, by the kind of its variable: a term and the density of what was seen
CHILDREN = {
    "real": (lambda x: cv.gaussian(x, variance=0.8), [0.6, 0.1], lambda y, x: stats.norm.logpdf(y, x, 0.8**0.5)),
    "positive": (cv.poisson, [2.0, 1.0], stats.poisson.logpmf),
    "unit": (cv.bernoulli, [1.0, 0.0, 1.0], lambda y, p: stats.bernoulli.logpmf(int(y), p)),
    "count": (lambda n: cv.binomial(n, 0.5), [1.0], lambda y, n: stats.binom.logpmf(y, n, 0.5)),
}
OUT = {
    "gaussian": "real", "truncated_gaussian": "real", "student_t": "real", "laplace": "real", "uniform": "real",
    "gamma": "positive", "truncated_gamma": "positive", "log_normal": "positive", "half_cauchy": "positive",
    "half_normal": "positive", "weibull": "positive", "beta": "unit", "poisson": "count", "negative_binomial": "count",
}  # fmt: skip
# By mean, sd and evidence: in sds, as a ratio and in nats. The mean field of VMP is narrow where a scale is random; a
# Poisson belief has its mean for variance; and rows that each cut a Gaussian belief leave what is none.
SHARP = ("uniform", "between")  # of a random bound each row cuts the belief: a run may not converge, and says so
USUAL = (0.15, 1.45, 0.1)
LOOSE = dict.fromkeys([("binomial", "n"), ("negative_binomial", "out")], (0.3, 2.5, 0.7)) | {
    ("between", edge): (0.3, 1.5, 0.4) for edge in ("value", "low", "high")
}
CASES = [(name, edge) for name, (_, random) in TERMS.items() for edge in random]
CASES += [(name, "out") for name in OUT]
DEFAULT = {("negative_binomial", "dispersion"), ("truncated_gamma", "rate"), ("student_t", "dof")}


def builder(name):
    return {"weibull": WEIBULL, "bernoulli": lambda p: cv.bernoulli(p)}.get(name) or getattr(cv, name)


def arrays(arguments):
    return {key: np.asarray(value)[None] for key, value in arguments.items()}


def posed(name, edge):
    """The model, its data, and the log joint density on the grid of the only random number, called "x"."""
    key, (arguments, kinds) = name.strip(), TERMS[name]
    m = cv.Model(f"{key}, random {edge}")
    rows = m.plate("row")
    if edge == "out":
        kind = OUT[key]
        term, seen, density = CHILDREN[kind]
        x = m.random("x", builder(key)(**arguments))
        m.random("y", term(x), plates=rows)
        grid = PRIORS[kind][2]
        with np.errstate(all="ignore"):
            log = WEIBULL_LOG[key](grid, **arguments) + sum(density(y, grid) for y in seen)
        return m, {"y": np.array(seen)}, grid, log
    prior, density, grid = PRIORS[kinds[edge]]
    drawn = WEIBULL_DRAW[key](np.random.default_rng(7), (5,), **arrays(arguments))
    x = m.random("x", prior())
    m.random("y", builder(key)(**{**arguments, edge: x}), plates=rows)
    around = {
        **{k: v[..., None] if v.ndim == 1 else v[None] for k, v in arrays(arguments).items()},
        edge: grid[None, :],
    }
    with np.errstate(all="ignore"):
        log = (density.logpmf if kinds[edge] == "count" else density.logpdf)(grid)
        log = log + WEIBULL_LOG[key](drawn[:, None], **around).sum(0)
    return m, {"y": drawn}, grid, log


def error(name, edge):
    """How far the mean and the sd are off in true sds, and the evidence."""
    m, data, grid, log = posed(name, edge)
    log = np.where(np.isnan(log), -np.inf, log)
    weights = np.exp(log - log.max())
    mean = weights @ grid / weights.sum()
    sd = np.sqrt(weights @ (grid - mean) ** 2 / weights.sum())
    total = np.log(weights.sum() * (grid[1] - grid[0])) + log.max()
    posterior = cv.infer(m, data)
    found = posterior["x"]
    return abs(found.mean - mean) / sd, found.sd / sd, posterior.log_evidence - total


def marked(case):
    return case if case in DEFAULT else pytest.param(*case, marks=pytest.mark.slow)


@pytest.mark.parametrize(("name", "edge"), [marked(case) for case in CASES])
def test_one_random_number(name, edge):
    if name in SHARP:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cv.CavityWarning)
            found = error(name, edge)
    else:
        found = error(name, edge)
    far, wide, off = LOOSE.get((name, edge), USUAL)
    moved, ratio, evidence = found
    assert moved < far, found
    assert 1.0 / wide < ratio < wide, found
    assert abs(evidence) < off, found

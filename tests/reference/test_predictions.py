"""Predictions at the training rows, and at some of them in another order, against the beliefs integrated by hand.

For shipped models and for models of the suite: the truth is the mean and variance of the outcome under the beliefs of
the posterior, by closed forms and quadrature of NumPy and SciPy. So an input, a plate or a covariance that `predict`
loses shows, whatever the fit.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from models_bugs import eight_schools, pumps
from models_ep_gaussian import noisy_machine
from models_ncvmp import logistic_regression
from models_posteriors import rats
from scipy.special import expit, ndtr

import cavity as cv
from cavity import models

RNG = np.random.default_rng(5)
N = 9
SOME = [7, 2, 3]  # of the rows, in another order
X = RNG.normal(size=(N, 2))
DESIGN = np.column_stack([X, np.ones(N)])
SCORE = DESIGN @ [1.0, -0.7, 0.3]
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclasses.dataclass(frozen=True)
class Case:
    """A model, its data, and `truth(posterior)`: mean and variance of `outcome` in the rows that inputs `rows` give."""

    model: cv.Model
    data: dict[str, Any]
    rows: tuple[str, ...]
    truth: Callable[[Any], tuple[Any, Any]]
    outcome: str = "y"
    infer: dict[str, Any] = dataclasses.field(default_factory=dict)
    predict: dict[str, Any] = dataclasses.field(default_factory=dict)
    axis: int = 0  # of the rows in the outcome
    some: list[int] | None = dataclasses.field(default_factory=lambda: SOME)


# The beliefs ----------------------------------------------------------------------------------------------------------


def belief(posterior, *names):
    """Mean and covariance of the vector of these variables, which share a joint belief, by plate where it is plated."""
    found = [j for j in posterior.machine.graph.joints if set(names) <= {member.name for member in j.members}]
    shared, members = (found[0].variable.name, [m.name for m in found[0].members]) if found else (*names, names)
    linear, quadratic = map(np.asarray, posterior.naturals_of(shared))
    covariance = np.linalg.inv(-2.0 * quadratic)
    mean = np.einsum("...ij,...j->...i", covariance, linear)
    start, where = 0, {}
    for name in members:
        own = np.reshape(posterior[name].mean, (*mean.shape[:-1], -1))
        where[name] = np.arange(start, start := start + own.shape[-1])
        np.testing.assert_allclose(mean[..., where[name]], own, rtol=1e-6, atol=1e-9)
    order = np.concatenate([where[name] for name in names])
    return mean[..., order], covariance[..., order[:, None], order]


def scores(posterior, design, *names):
    """Means and variances of `design` (row, element) times the vector of the named variables."""
    mean, covariance = belief(posterior, *names)
    return mean @ design.T, np.einsum("ni,...ij,nj->...n", design, covariance, design)


def averaged(function, mean, variance):
    """E function(s), s ~ N(mean, variance)."""
    return function(mean[..., None] + np.sqrt(variance)[..., None] * NODES) @ WEIGHTS


def inverse(gamma):
    """Mean and variance of 1 / x, x with a Gamma marginal."""
    shape, rate = gamma.mean**2 / gamma.variance, gamma.mean / gamma.variance
    return rate / (shape - 1.0), rate**2 / (shape - 1.0) ** 2 / (shape - 2.0)


def of_probability(p):
    return p, p * (1.0 - p)


# Outcomes -------------------------------------------------------------------------------------------------------------


def probit_of(noise, *names):
    def truth(posterior):
        mean, variance = scores(posterior, DESIGN[:, : 2 if len(names) == 1 else 3], *names)
        return of_probability(ndtr(mean / np.sqrt(noise + variance)))

    return truth


def logistic(posterior):
    return of_probability(averaged(expit, *scores(posterior, DESIGN, "weight", "bias")))


def logistic_of_two(posterior):
    w1, w2 = posterior["w1"], posterior["w2"]
    parts = [part for part in posterior.carried.parts if "w1" in part.members]
    if len(parts[0].members) == 2:
        return of_probability(averaged(expit, *scores(posterior, X, "w1", "w2")))
    return of_probability(averaged(expit, X @ [w1.mean, w2.mean], X**2 @ [w1.variance, w2.variance]))


def poisson(posterior):
    score, variance = scores(posterior, DESIGN, "weight", "bias")
    mean = np.exp(score + 0.5 * variance)
    return mean, mean + mean**2 * np.expm1(variance)


def ordinal(posterior):
    mean, variance = scores(posterior, DESIGN, "weight", "bias")
    below = ndtr((np.array([0.0, 0.9]) - mean[:, None]) / np.sqrt(1.0 + variance)[:, None])
    return of_probability(np.diff(np.column_stack([np.zeros(N), below, np.ones(N)]), axis=1))


def softmax(posterior):
    mean, variance = scores(posterior, DESIGN, "weight", "bias")  # (class, row)
    nodes, weights = np.polynomial.hermite_e.hermegauss(24)
    grid = np.stack(np.meshgrid(nodes, nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 3)
    mass = np.einsum("i,j,k->ijk", weights, weights, weights).ravel() / weights.sum() ** 3
    e = np.exp(mean.T[:, None] + np.sqrt(variance.T)[:, None] * grid)
    return of_probability(mass @ (e / e.sum(-1, keepdims=True)))


def largest(posterior):
    mean, variance = scores(posterior, DESIGN, "weight", "bias")
    sd, p = np.sqrt(1.0 + variance), np.zeros((N, 3))
    for k in range(3):
        a, b = [j for j in range(3) if j != k]
        s = mean[k][:, None] + sd[k][:, None] * NODES
        below = [ndtr((s - mean[j][:, None]) / sd[j][:, None]) for j in (a, b)]
        p[:, k] = (below[0] * below[1]) @ WEIGHTS
    return of_probability(p)


def heteroskedastic(posterior):
    mean, variance = scores(posterior, DESIGN, "weight", "bias")
    log_precision, spread = scores(posterior, DESIGN, "precision_weight", "precision_bias")
    return mean, variance + np.exp(-log_precision + 0.5 * spread)


def process(posterior):
    f, g = posterior["f"], posterior["log_precision"]
    return f.mean, f.variance + np.exp(-g.mean + 0.5 * g.variance)


def margin(posterior):
    design = np.eye(3)[GAMES["winner"]] - np.eye(3)[GAMES["loser"]]
    mean, variance = scores(posterior, design, "skill")
    return mean, variance + 1.0


def of_mixture(posterior):
    share, place, wishart = posterior["weights"].mean, posterior["mean"], posterior["precision"].family
    noise = -np.asarray(wishart.negative_half_inverse_scale) / np.asarray(wishart.log_det_coefficient)[:, None, None]
    second = np.diagonal(noise, axis1=1, axis2=2) + place.variance + place.mean**2
    mean = share @ place.mean
    return np.tile(mean, (4, 1)), np.tile(share @ second - mean**2, (4, 1))


def draws_of_gamma(posterior):
    shape, (scale, spread) = posterior["shape"], inverse(posterior["rate"])
    mean = shape.mean * scale
    second = (shape.variance + shape.mean**2 + shape.mean) * (spread + scale**2)  # E x^2 = E shape (shape + 1) / rate^2
    return np.full(4, mean), np.full(4, second - mean**2)


def new_schools(posterior):
    mu, tau = posterior["mu"], posterior["tau"]
    return np.full(8, mu.mean), mu.variance + tau.variance + tau.mean**2 + ERRORS**2


def same_schools(posterior):
    return posterior["theta"].mean, posterior["theta"].variance + ERRORS**2


def same_pumps(posterior):
    mean = TIMES * posterior["theta"].mean
    return mean, mean + TIMES**2 * posterior["theta"].variance


def new_pumps(posterior):
    scale, spread = inverse(posterior["beta"])
    mean = 0.7 * TIMES * scale
    return mean, mean + TIMES**2 * (0.7 * (scale**2 + spread) + 0.49 * spread)


def growth(posterior):
    mean, covariance = belief(posterior, "alpha", "beta")
    ages, rat = np.asarray(RATS["x"], float) - RATS["xbar"], np.eye(3)
    design = np.concatenate([np.broadcast_to(rat[:, None], (3, 4, 3)), rat[:, None] * ages[:, None]], axis=-1)
    noise, _ = inverse(posterior["tau.y"])
    return design @ mean, np.einsum("rwi,ij,rwj->rw", design, covariance, design) + noise


GAMES = {"winner": np.array([0, 0, 1, 2]), "loser": np.array([1, 2, 2, 1])}
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
EFFECTS = [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]
TIMES = np.array([94.3, 15.7, 62.9, 126.0])
RATS = {
    "x": [8.0, 15.0, 22.0, 29.0],
    "xbar": 20.0,
    "y": [[151, 199, 246, 283], [145, 199, 249, 293], [147, 214, 263, 312]],
}
POINTS = np.concatenate([RNG.normal(-1.0, 0.4, (6, 2)), RNG.normal(1.5, 0.4, (8, 2))])
LABELS = np.array([0, 1, 2, 0, 1, 2, 2, 1, 0])
CASES = {
    "logistic regression": lambda: Case(models.logistic_regression(2), {"x": X, "y": SCORE > 0.2}, ("x",), logistic),
    "probit regression": lambda: Case(
        models.probit_regression(2), {"x": X, "y": SCORE > 0.2}, ("x",), probit_of(1.0, "weight", "bias")
    ),
    "Poisson regression": lambda: Case(
        models.poisson_regression(2), {"x": X, "y": RNG.poisson(np.exp(SCORE))}, ("x",), poisson
    ),
    "ordinal regression": lambda: Case(
        models.ordinal_regression(2, 3),
        {"x": X, "precision": 1.0, "gap_1": 0.9, "y": (SCORE > 0.0) * 1 + (SCORE > 0.9)},
        ("x",),
        ordinal,
    ),
    "softmax regression": lambda: Case(models.softmax_regression(2, 3), {"x": X, "y": LABELS}, ("x",), softmax),
    "multinomial probit": lambda: Case(models.multinomial_probit(2, 3), {"x": X, "y": LABELS}, ("x",), largest),
    "heteroskedastic regression": lambda: Case(
        models.heteroskedastic_regression(2), {"x": X, "y": SCORE + 0.3 * X[:, 0]}, ("x",), heteroskedastic
    ),
    "heteroskedastic process": lambda: Case(
        models.heteroskedastic_gp(),
        {"x": X[:, 0], "y": SCORE, "scale": 1.0, "variance": 1.0, "noise_scale": 2.0, "noise_variance": 0.5},
        ("x",),
        process,
    ),
    "skills": lambda: Case(
        models.skills(), GAMES, ("winner", "loser"), margin, "margin", infer={"sizes": {"player": 3}}, some=[3, 1]
    ),
    "gamma estimation": lambda: Case(
        models.gamma_estimation(), {"x": [1.0, 2.5, 0.7, 1.3, 2.0, 0.4]}, (), draws_of_gamma, "x",
        predict={"sizes": {"n": 4}}, some=None,
    ),
    "mixture": lambda: Case(
        models.mixture(2, 2), {"x": POINTS}, (), of_mixture, "x", predict={"sizes": {"n": 4}}, some=None
    ),
    "rats": lambda: Case(*rats(RATS)[:2], ("age",), growth, some=[3, 1], axis=1),
    "probit of the suite": lambda: Case(
        noisy_machine({"data": {"x": X}, "parameters": {"noise": 0.5}}), {"x": X, "y": SCORE > 0.2}, ("x",),
        probit_of(0.5, "w"),
    ),
    "two weights": lambda: Case(
        logistic_regression(None), {"x1": X[:, 0], "x2": X[:, 1], "y": SCORE > 0.2}, ("x1", "x2"), logistic_of_two
    ),
    "new schools": lambda: Case(eight_schools(None), {"s": ERRORS, "y": EFFECTS}, ("s",), new_schools),
    "same schools": lambda: Case(
        eight_schools(None), {"s": ERRORS, "y": EFFECTS}, ("s",), same_schools, predict={"new": []}, some=None
    ),
    "new pumps": lambda: Case(pumps(None), {"t": TIMES, "x": [5, 1, 5, 14]}, ("t",), new_pumps, "x", some=[3, 1]),
    "same pumps": lambda: Case(
        pumps(None), {"t": TIMES, "x": [5, 1, 5, 14]}, ("t",), same_pumps, "x", predict={"new": []}, some=None
    ),
}  # fmt: skip
QUICK = {"probit regression", "skills", "same pumps", "two weights", "rats"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.slow]) for n in CASES])
def test_predictions_at_the_training_rows_are_those_of_the_beliefs(name):
    case = CASES[name]()
    posterior = cv.infer(case.model, case.data, **{"accuracy": "fast", **case.infer})
    mean, variance = case.truth(posterior)
    for rows in (slice(None), case.some):
        if rows is None:
            continue
        given = {key: np.asarray(case.data[key])[rows] for key in case.rows}
        found = posterior.predict(given, **case.predict)[case.outcome]
        where = (slice(None),) * case.axis + (rows,)
        np.testing.assert_allclose(found.mean, mean[where], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(found.variance, variance[where], rtol=1e-6)
